"""Matches twigs against documents: text, or rows of a grammar.

The rules of a grammar decide which twigs match a row, except for rows that may not be well-formed and rows where a twig
that compares a text may match. Those rows are decompressed and parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from polars_tadoc.compress.decompress import Allowance, document_sizes, write_texts
from polars_tadoc.config import settings
from polars_tadoc.engine.choose import Engine
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.execute.twig_matches import Matches
from polars_tadoc.kernels.primitives.lists import gather_lists, running_sum
from polars_tadoc.kernels.twigs.arrays import SOUND, WordEvents
from polars_tadoc.model.blocks import cut_blocks
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.runtime.array_types import Float64, Int64, UInt64
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.twig.compiled import CompiledTwigs
from polars_tadoc.twig.events import parse_documents
from polars_tadoc.twig.plain_parser import too_large
from polars_tadoc.twig.words import Declarations, JudgedWords, miscut_words

TEXT_BYTES = 1 << 28
"""Bytes of text parsed at a time."""

_COUNTED = 1 << 61
"""Maximum bytes of documents that are counted together."""

_TOO_LONG = (
    "decompressing it gives more than {words:,} words, more than {size:,} bytes or more than a String holds; if the "
    "data is trusted raise the limit: tadoc.Config(expansion_limit=…)"
)

_words: ByteLRU[Any] = ByteLRU(lambda: settings().host_cache_bytes // 4, lambda words: int(words.nbytes))
"""Cache by grammar: its words as XML, the namespaces that its documents can declare, and the events of its words for
the sets of twigs used so far."""


class WrongRow(NamedTuple):
    """A row that is not a valid document."""

    row: int
    why: str


Answer = tuple[Matches, list[WrongRow]]


@dataclass(frozen=True)
class Filtering:
    """The twigs and the limits of a filter call."""

    twigs: CompiledTwigs
    """The twigs; immutable."""
    max_depth: int
    """Maximum number of open elements."""
    max_bytes: int
    """Maximum bytes of a document."""

    @property
    def described(self) -> dict[str, Any]:
        """Return queries and limits as JSON values; equal filters give equal values, also in other processes."""
        twigs, digest = self.twigs, blake2b(digest_size=16)
        alphabet = twigs.alphabet
        for named in (alphabet.elements, alphabet.attributes, alphabet.attribute_values, alphabet.texts):
            digest.update(repr(sorted(named.items())).encode())
        for array in (*twigs.twigs, twigs.text_twigs):
            digest.update(np.ascontiguousarray(array).tobytes())
        return {"queries": [*twigs.names, digest.hexdigest()], "max_depth": self.max_depth, "max_bytes": self.max_bytes}

    def match_text(self, text: pl.Series, engine: Engine) -> Iterator[Answer]:
        """Match the rows of a String column, in blocks of bounded text."""
        for first, stop in _blocks(text):
            block = text if stop - first == len(text) else text[first:stop]
            parsed = parse_documents(block, self.twigs.alphabet, max_depth=self.max_depth, max_bytes=self.max_bytes)
            found = self.twigs.matcher(engine).match(engine.kernels.load_events(parsed.events))
            offsets, twigs = map(engine.kernels.to_host, found)
            rows = np.arange(first, stop)
            if parsed.errors or block.null_count():  # invalid and null rows have no events and match nothing
                held = ~block.is_null().to_numpy()
                held[[row for row, _ in parsed.errors]] = False
                rows, offsets = rows[held], running_sum(np.diff(offsets)[held])
            yield Matches(rows, offsets, twigs), [WrongRow(first + row, why) for row, why in parsed.errors]

    def match_corpus(self, corpus: Corpus, engine: Engine) -> Iterator[Answer]:
        """Match the rows of a grammar, grouped by the namespaces that they declare."""
        large = _larger(corpus, self.max_bytes)
        if large:
            yield Matches.none(), [WrongRow(int(corpus.rows[document]), why) for document, why in large]
            corpus = _some(corpus, np.delete(np.arange(corpus.document_count), [document for document, _ in large]))
        declarations: Declarations = _kept(f"{corpus.key}:declarations", lambda: Declarations.of(corpus.grammar))
        contexts, numbers = declarations.contexts(corpus.root_offsets, corpus.roots)
        for number, namespaces in enumerate(contexts):
            own = np.flatnonzero(numbers == number)
            same = corpus if len(own) == corpus.document_count else _some(corpus, own)
            yield from self._match_rules(same, namespaces, engine)

    def _match_rules(self, corpus: Corpus, namespaces: dict[str, str], engine: Engine) -> Iterator[Answer]:
        kernels = engine.kernels
        found = self.twigs.matcher(engine).match_rules(
            engine.load_rules(corpus.key, corpus.grammar),
            kernels.load_array(corpus.root_offsets),
            kernels.load_symbols(corpus.roots),
            self._words(corpus, namespaces, engine),
            self.max_depth,
        )
        offsets, twigs, states = map(kernels.to_host, found)
        unsure = states != SOUND
        if self.twigs.text_twigs.any():
            unsure |= np.diff(running_sum(self.twigs.text_twigs[twigs])[offsets]) > 0
        if not unsure.any():
            yield Matches(corpus.rows, offsets, twigs), []
            return
        sure = np.flatnonzero(~unsure)
        taken: Any = gather_lists(offsets, twigs, sure)
        yield Matches(corpus.rows[sure], *taken), []
        yield from self._match_written(_some(corpus, np.flatnonzero(unsure)), engine)

    def _match_written(self, corpus: Corpus, engine: Engine) -> Iterator[Answer]:
        """Decompress rows in blocks, and match their text."""
        lengths = np.concatenate([np.ones(corpus.grammar.vocabulary_size, np.uint64), corpus.grammar.expansion_lengths])
        sizes = np.maximum(_most_bytes(corpus), _sums(corpus, lengths))  # words may be empty
        limit = settings().expansion_limit
        for first, stop in cut_blocks(sizes, corpus.document_count, min(TEXT_BYTES, limit)):
            rows = corpus.rows[first:stop]
            numbered = replace(_some(corpus, np.arange(first, stop)), rows=np.arange(stop - first))
            try:
                text = write_texts([numbered], "", len(rows), "twig_filter")
            except LimitExceededError as error:
                if len(rows) > 1 or isinstance(error.__cause__, MemoryError):
                    raise
                yield Matches.none(), [WrongRow(int(rows[0]), _TOO_LONG.format(words=limit, size=16 * limit))]
                continue
            for matches, wrong in self.match_text(text, engine):
                yield replace(matches, rows=rows[matches.rows]), [WrongRow(int(rows[row]), why) for row, why in wrong]

    def _words(self, corpus: Corpus, namespaces: dict[str, str], engine: Engine) -> Any:
        """Return the events of a grammar's words for the twigs; cached for the next call."""
        words = f"{corpus.key}:{sorted(namespaces.items())}"
        events = f"{words}:{self.twigs.alphabet.version}"

        def make() -> WordEvents:
            grammar = corpus.grammar
            miscut = _kept(f"{corpus.key}:miscut", lambda: miscut_words(grammar.vocabulary, grammar.gap_vocabulary))
            judged: JudgedWords = _kept(words, lambda: JudgedWords.of(grammar.vocabulary, namespaces, miscut))
            return judged.events(self.twigs.alphabet)

        return engine.keep(f"{events}:twigs", lambda: engine.kernels.load_word_events(_kept(events, make)))


def _kept(key: str, make: Callable[[], Any]) -> Any:
    found = _words.get(key)
    return _words.put(key, make()) if found is None else found


def _blocks(text: pl.Series) -> Iterator[tuple[int, int]]:
    if text.estimated_size() <= TEXT_BYTES:  # views count shared text repeatedly, so this is an upper bound
        return iter([(0, len(text))])
    sizes = text.str.len_bytes().fill_null(0).cast(pl.Int64).to_numpy()
    return cut_blocks(sizes, len(sizes), TEXT_BYTES)


def _some(corpus: Corpus, documents: Int64) -> Corpus:
    """Select some of the documents, in their order."""
    taken: Any = gather_lists(corpus.root_offsets, corpus.roots, documents)
    offsets, roots = taken
    return Corpus(corpus.key, corpus.grammar, corpus.rows[documents], offsets, roots, corpus.gaps.gather(documents))


def _larger(corpus: Corpus, most: int) -> list[tuple[int, str]]:
    """Return the documents of more than ``most`` bytes, with messages."""
    longest = int(np.diff(corpus.root_offsets).max(initial=0)) * int(corpus.grammar.led_bytes.max(initial=0))
    if longest + int(_most_replaced(corpus).max(initial=0)) <= most:  # the usual case: no row is read
        return []
    documents = np.flatnonzero(_most_bytes(corpus) > most)
    sizes = _sizes(_some(corpus, documents))
    return [(int(documents[k]), too_large(int(sizes[k]), most)) for k in np.flatnonzero(sizes > most)]


def _sizes(corpus: Corpus) -> Int64:
    """Return the bytes of each document without writing it."""
    sizes = np.empty(corpus.document_count, np.int64)
    for first, stop in cut_blocks(_most_bytes(corpus).astype(np.float64), len(sizes), _COUNTED):
        allowance = Allowance("twig_filter")
        allowance.words_left = allowance.bytes_left = 2 * _COUNTED
        sizes[first:stop] = document_sizes(_some(corpus, np.arange(first, stop)), allowance).bytes
    return sizes


def _most_bytes(corpus: Corpus) -> Int64:
    """Return an upper bound of the bytes of each document."""
    sizes = _sums(corpus, corpus.grammar.led_bytes) + _most_replaced(corpus)
    bounded: Int64 = np.minimum(sizes, 1 << 62).astype(np.int64)
    return bounded


def _sums(corpus: Corpus, of_symbols: UInt64) -> Float64:
    """Sum a value over each document's symbols; float64, as sums may exceed 64 bits."""
    sums = np.zeros(corpus.document_count)
    held = np.diff(corpus.root_offsets) > 0
    if held.any():
        sums[held] = np.add.reduceat(of_symbols.astype(np.float64)[corpus.roots], corpus.root_offsets[:-1][held])
    return sums


def _most_replaced(corpus: Corpus) -> Int64:
    """Return an upper bound of the bytes of non-default separators in each document: each is coded in two bytes."""
    sizes = corpus.gaps.bin.size().fill_null(0).to_numpy().astype(np.int64)
    return sizes // 2 * int(corpus.grammar.gap_bytes.max())
