"""Documents of several text columns: postings of weighted counts (BM25F), and the columns' text as one column.

The text of document d in field f of n is row n d + f.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from polars_tadoc.compress.compress import named_tokenizer
from polars_tadoc.compress.decompress import decompress
from polars_tadoc.engine.choose import choose
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.index.codecs import Codec
from polars_tadoc.index.construct.collect import MAX_DOCUMENTS, Counted, count_words
from polars_tadoc.index.construct.plain_text import stored_form
from polars_tadoc.index.fields import MARK, Fields, term_in
from polars_tadoc.index.segment import Segment
from polars_tadoc.index.store.stored_text import StoredText
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.column import split
from polars_tadoc.model.corpus import Corpus, require_countable
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.model.word_map import naming_normalize
from polars_tadoc.runtime.array_types import Int64
from polars_tadoc.traversal.options import Options
from polars_tadoc.traversal.text_corpus import WORDS, corpora_of, require_text


class Joined(NamedTuple):
    """Documents of several columns."""

    rows: Int64
    """int64, ascending: rows with a text that is not null."""
    segment: Segment
    text: StoredText | None


def tokenizer_of_all(texts: list[pl.Series], named: Tokenizer | None, call: str = "build_index") -> Tokenizer:
    """Return the tokenizer of compressed columns, or the named one."""
    known = {
        named_tokenizer(corpus.grammar): text.name
        for text in texts
        if text.dtype != pl.String
        for corpus in split(text)
    }
    for tokenizer, name in known.items():
        if named is not None and tokenizer != named:
            raise TypeError(
                f'{call}: column "{name}" was cut by tokenizer "{tokenizer.name}", not "{named.name}": compress '
                "it with that one, or omit tokenizer="
            )
    if len(known) > 1:
        names = ", ".join(f'"{tokenizer.name}"' for tokenizer in known)
        raise ValueError(f"{call}: the columns were cut by different tokenizers, {names}; use one of them for all")
    return next(iter(known), named or WORDS)


class FieldTexts(NamedTuple):
    """The texts of several columns as one column."""

    rows: Int64
    """int64, ascending: rows of the frame with a text that is not null."""
    column: pl.Series
    """The texts of these rows, field by field: compressed if they are stored."""
    corpora: list[Corpus]


def interleave(
    frame: pl.DataFrame, fields: Fields, tokenizer: Tokenizer, options: Options, store: bool, call: str
) -> FieldTexts:
    """Join columns of a frame; a null text beside others is empty."""
    texts = [require_text(frame[name], call) for name in fields.names]
    is_null = np.logical_and.reduce([text.is_null().to_numpy() for text in texts])
    rows, count = np.flatnonzero(~is_null), len(texts)
    if len(rows) * count > MAX_DOCUMENTS:
        raise LimitExceededError(f"{call}: an index holds at most {MAX_DOCUMENTS:,} texts; build several")
    plain = [(text if text.dtype == pl.String else decompress(text)).fill_null("") for text in texts]
    places = rows[:, None] + len(is_null) * np.arange(count)
    column = pl.concat([text.alias("text") for text in plain]).gather(pl.Series(places.ravel()))
    kept = stored_form(column, tokenizer, options.engine, store)
    return FieldTexts(rows, kept, corpora_of(kept, call, tokenizer if kept.dtype == pl.String else None))


def count_fields(texts: FieldTexts, fields: Fields, options: Options, call: str) -> Counted:
    """Count words by document: in each field, and weighted over all fields."""
    require_countable(texts.corpora)
    engine = choose(options.engine, sum(corpus.symbol_count for corpus in texts.corpora))
    with naming_normalize(call):
        counted = count_words(texts.corpora, np.arange(len(texts.column)), engine, options)
    return _of_documents(counted, texts.rows, fields, call)


def join(
    frame: pl.DataFrame, fields: Fields, tokenizer: Tokenizer, options: Options, store: bool, codec: Codec, call: str
) -> Joined:
    """Join columns of a frame to documents; a null text beside others is empty."""
    texts = interleave(frame, fields, tokenizer, options, store, call)
    total = count_fields(texts, fields, options, call)
    weighted = total.lengths(texts.rows, call)
    ordered, (offsets, found, counts) = total.in_order()
    segment = Segment(ordered, codec.encode(offsets, found, counts, len(texts.rows)), weighted)
    return Joined(texts.rows, segment, StoredText.of(texts.column) if store else None)


def _of_documents(counted: Counted, rows: Int64, fields: Fields, call: str) -> Counted:
    """Convert counts by text to counts by document: of each word in each field, and of its weighted sum."""
    count, weights = len(fields.names), np.array(fields.weights, np.uint64)
    words, lengths = counted.words.series, counted.lengths(np.repeat(rows, count), call)
    if words.str.starts_with(MARK).any():
        raise ValueError(f"{call}: a word begins with a NUL character, which marks words of fields; use normalize=")
    owners = np.repeat(np.arange(len(words)), np.diff(counted.offsets))
    documents, places = counted.documents // np.uint32(count), counted.documents % np.uint32(count)
    counts = counted.counts.astype(np.uint64) * weights[places]
    firsts = np.flatnonzero((np.diff(owners, prepend=-1) != 0) | (np.diff(documents.astype(np.int64), prepend=-1) != 0))
    parts: list[tuple[pl.Series, Any, Any, Any]] = [
        (words, owners[firsts], documents[firsts], np.add.reduceat(counts, firsts) if len(firsts) else counts)
    ]
    for place, name in enumerate(fields.names):
        own = places == place
        parts.append((term_in(name, "") + words, owners[own], documents[own], counts[own]))
    sizes = np.concatenate([np.bincount(own, minlength=len(words)) for _, own, _, _ in parts])
    terms = Vocabulary.copied(pl.concat([names.alias("word") for names, _, _, _ in parts]))
    sums = lengths.reshape(len(rows), count).astype(np.float64) @ weights.astype(np.float64)
    found, counts = (np.concatenate([part[at] for part in parts]) for at in (2, 3))
    return Counted(terms, running_sum(sizes), found, counts, sums)
