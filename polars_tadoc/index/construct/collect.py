"""Converts rows of a compressed column to documents: postings, counted on the rules, and the documents' data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.compress.compress import named_tokenizer
from polars_tadoc.engine.choose import Engine, choose
from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.index.codecs import Codec
from polars_tadoc.index.documents import Documents
from polars_tadoc.index.segment import Segment
from polars_tadoc.index.store.stored_text import StoredText
from polars_tadoc.kernels.primitives.lists import append_lists, gather_lists, running_sum
from polars_tadoc.model.arrow_results import from_arrow, to_arrow
from polars_tadoc.model.corpus import Corpus, require_countable
from polars_tadoc.model.vocabulary import Vocabulary, unify
from polars_tadoc.model.word_map import Morphism, encode, images_with_parts
from polars_tadoc.runtime.array_types import Int64, UInt32, array_dataclass
from polars_tadoc.runtime.plain_name import plain
from polars_tadoc.traversal.options import Options
from polars_tadoc.traversal.selector import choose_strategy
from polars_tadoc.traversal.source import prepare

MAX_DOCUMENTS = (1 << 32) - 2
MAX_WORDS = (1 << 32) - 1
"""Maximum words of a document."""


@array_dataclass
class Counted:
    """Counts of words by document; all arrays in host memory."""

    words: Vocabulary
    offsets: Int64
    """int64, words + 1."""
    documents: UInt32
    """Ascending within each word."""
    counts: npt.NDArray[Any]
    own_lengths: npt.NDArray[np.float64] | None = None
    """Words of each document, where they are not the sums of the counts."""

    def lengths(self, rows: Int64, call: str) -> UInt32:
        """Return the number of words of each document; ``rows`` are the documents' rows.

        Raises
        ------
        LimitExceededError
            A document has too many words.

        """
        # float64 counts are exact up to 2^53, and longer documents raise
        lengths: npt.NDArray[np.float64] = np.zeros(len(rows), np.float64)
        if self.own_lengths is not None:
            lengths = self.own_lengths
        elif len(self.documents):
            lengths = np.bincount(self.documents, self.counts, len(rows)).astype(np.float64, copy=False)
        if lengths.max(initial=0) > MAX_WORDS:
            raise LimitExceededError(
                f"{call}: row {rows[lengths.argmax()]:,} has more than {MAX_WORDS:,} words; split this document"
            )
        return lengths.astype(np.uint32)

    def in_order(self) -> tuple[Vocabulary, tuple[Int64, UInt32, npt.NDArray[Any]]]:
        """Return the distinct words in code point order, and the offsets, documents and counts of each."""
        order = self.words.by_rank
        order = order[np.diff(self.offsets)[order] > 0]
        documents: Any
        offsets, documents = gather_lists(self.offsets, self.documents, order)
        _, counts = gather_lists(self.offsets, self.counts, order)
        terms: Any = self.words.series.gather(order).to_arrow(compat_level=pl.CompatLevel.oldest())
        return Vocabulary(terms), (offsets, documents, counts)


def make_segment(corpora: Sequence[Corpus], rows: Int64, options: Options, codec: Codec) -> Segment:
    """Make the postings of the documents of some corpora.

    Parameters
    ----------
    corpora
        Result of :func:`polars_tadoc.model.column.split`.
    rows
        int64, ascending: the row of each document.
    options
        Normalisation, strategy and engine.
    codec
        Codec of the postings.

    """
    require_countable(corpora)
    engine = choose(options.engine, sum(corpus.symbol_count for corpus in corpora))
    total = count_words(corpora, rows, engine, options)
    lengths = total.lengths(rows, "build_index")
    terms, (offsets, documents, counts) = total.in_order()
    return Segment(terms, codec.encode(offsets, documents, counts, len(rows)), lengths)


def count_words(corpora: Sequence[Corpus], rows: Int64, engine: Engine, options: Options) -> Counted:
    """Count words by document in some corpora; parameters as for :func:`make_segment`."""
    batches = DeviceBatches("build_index", options.engine)
    has_parts = any(named_tokenizer(corpus.grammar).has_parts for corpus in corpora)
    morphism = None if has_parts else options.morphism

    def count(corpus: Corpus, engine: Engine) -> Counted:
        return _count(corpus, rows, engine, options.strategy, morphism)

    counted = [part for corpus in corpora for part in batches.parts(corpus, engine, count, count)]
    joined = counted[0] if len(counted) == 1 else _join(counted)
    return _with_parts(joined, len(rows), options.morphism) if has_parts else joined


def _with_parts(counted: Counted, size: int, morphism: Morphism | None) -> Counted:
    """Apply a morphism to words that also count for each of their parts, which add nothing to lengths."""
    pairs = images_with_parts(counted.words.series, morphism)
    owners = np.repeat(np.arange(len(counted.words)), np.diff(counted.offsets))
    kept = np.zeros(len(counted.words), np.bool_)
    kept[pairs["word"].to_numpy()] = True
    chosen = kept[owners]
    lengths = np.bincount(counted.documents[chosen], counted.counts[chosen], size).astype(np.float64)
    image = encode(pairs["image"])
    order = np.argsort(image.ids, kind="stable")
    words = pairs["word"].to_numpy()[order]
    documents: Any
    offsets, documents = gather_lists(counted.offsets, counted.documents, words)
    _, counts = gather_lists(counted.offsets, counted.counts, words)
    terms = np.repeat(image.ids[order], np.diff(offsets))
    keys = terms.astype(np.uint64) << np.uint64(32) | documents
    order = np.argsort(keys, kind="stable")
    firsts = np.flatnonzero(np.append(True, np.diff(keys[order]) > 0)[: len(keys)])
    sums = np.add.reduceat(counts[order], firsts) if len(firsts) else counts
    found = np.bincount(terms[order][firsts], minlength=len(image.words))
    return Counted(image.words, running_sum(found), documents[order][firsts], sums, lengths)


def _count(corpus: Corpus, rows: Int64, engine: Engine, asked: str, morphism: Morphism | None) -> Counted:
    """Count words by document in one corpus."""
    source = prepare(corpus, engine, morphism)
    kernels = engine.kernels
    strategy = choose_strategy(asked, source, "inverted_index")
    offsets, documents, counts = (
        kernels.to_host(array)
        for array in kernels.count_by_terminal(source.rules, source.root_offsets, source.roots, strategy, counted=True)
    )
    if len(source.rows) != len(rows):
        documents = np.searchsorted(rows, source.rows).astype(np.uint32)[documents]
    return Counted(source.words, offsets, documents, counts)


def _join(parts: Sequence[Counted]) -> Counted:
    """Merge the documents of several corpora, word by word."""
    words, maps = unify([part.words for part in parts])
    sizes = np.zeros(len(words), np.int64)
    for own, part in zip(maps, parts, strict=True):
        sizes[own] += np.diff(part.offsets)
    offsets = running_sum(sizes)
    documents, counts = np.empty(offsets[-1], np.uint32), np.empty(offsets[-1], np.uint64)
    free = offsets[:-1].copy()
    for own, part in zip(maps, parts, strict=True):
        append_lists(part.offsets, part.documents, part.counts, own, free, documents, counts)
    if not _stand_apart(parts):
        order = np.argsort(np.repeat(np.arange(len(words), dtype=np.uint64), sizes) << np.uint64(32) | documents)
        documents, counts = documents[order], counts[order]
    return Counted(words, offsets, documents, counts)


def _stand_apart(parts: Sequence[Counted]) -> bool:
    """Tell whether each corpus' documents follow all earlier ones, which holds unless rows were shuffled."""
    ends = [(int(part.documents.min()), int(part.documents.max())) for part in parts if len(part.documents)]
    return all(last < first for (_, last), (first, _) in pairwise(ends))


def document_rows(corpora: Sequence[Corpus]) -> Int64:
    """Return the row of each document, ascending."""
    if len(corpora) == 1:
        rows = corpora[0].rows
    else:
        rows = np.sort(np.concatenate([np.zeros(0, np.int64), *(corpus.rows for corpus in corpora)]))
    if len(rows) > MAX_DOCUMENTS:
        raise LimitExceededError(f"build_index: an index holds at most {MAX_DOCUMENTS:,} documents; build several")
    return rows


def documents_of(
    column: pl.Series, rows: Int64, id: pl.Series | None, metadata: pl.DataFrame | None, store: bool
) -> Documents:
    """Take the data of the documents in some rows of a column's storage."""
    ids = from_arrow("id", to_arrow(rows.astype(np.uint32))) if id is None else id.alias("id")
    text = column if store else None
    if len(rows) != len(column):
        places = from_arrow("place", to_arrow(rows))
        ids = ids if id is None else ids.gather(places)
        metadata = None if metadata is None else metadata[places]
        text = plain(column).gather(places) if store else None
    return Documents(ids, id is not None, len(column), metadata, None if text is None else StoredText.of(text))


def require_rows(
    column: pl.Series, id: pl.Series | None, metadata: pl.DataFrame | None, call: str = "build_index"
) -> None:
    """Raise unless ``id`` and ``metadata`` have one row per row of the column."""
    for name, value, kind in (("id", id, pl.Series), ("metadata", metadata, pl.DataFrame)):
        if value is None:
            continue
        if not isinstance(value, kind):
            raise TypeError(f"{call}: {name} is {type(value).__name__}, not a Polars {kind.__name__}")
        if isinstance(value, pl.Series) and value.dtype == pl.Object:
            raise TypeError(f"{call}: id holds Python objects, which results cannot hold; convert them to strings")
        if len(value) != len(column):
            raise ValueError(f"{call}: {name} has {len(value):,} rows, the column {len(column):,}")
