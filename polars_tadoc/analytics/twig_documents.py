"""Matches twigs against documents, text or rows of a grammar.

The rules of a grammar tell which twigs match a row, save for two kinds of rows: those that may not be well-formed, and
those where a twig that asks for a text may match. These are decompressed and parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.analytics.twig_matches import Matches
from polars_tadoc.cache import ByteLRU
from polars_tadoc.compress.compress import cut_blocks
from polars_tadoc.config import settings
from polars_tadoc.corpus import Corpus
from polars_tadoc.decompress import Allowance, document_sizes, write_texts
from polars_tadoc.engine import Engine
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.kernels.cpu.lists import gather_lists, running_sum
from polars_tadoc.kernels.twigs import SOUND, WordEvents
from polars_tadoc.twig.compiled import CompiledTwigs
from polars_tadoc.twig.events import parse_documents
from polars_tadoc.twig.plain_parser import too_large
from polars_tadoc.twig.words import Declarations, JudgedWords

TEXT_BYTES = 1 << 28
"""Text that is parsed at a time."""

_words: ByteLRU[Any] = ByteLRU(lambda: settings().host_cache_bytes // 4, lambda words: int(words.nbytes))
"""What the words of grammars are as XML, which namespaces their documents can declare, and what words mean for the sets
of twigs that they were filtered by."""


class WrongRow(NamedTuple):
    """A row that is no document."""

    row: int
    why: str


Answer = tuple[Matches, list[WrongRow]]


@dataclass(frozen=True)
class Filtering:
    """What documents are matched against, and within which limits.

    Parameters
    ----------
    twigs
        The twigs, which do not change any more.
    max_depth
        Elements that may be open at once.
    max_bytes
        Most bytes of a document.

    """

    twigs: CompiledTwigs
    max_depth: int
    max_bytes: int

    def match_text(self, text: pl.Series, engine: Engine) -> Iterator[Answer]:
        """Match the rows of a String column, so much text at a time."""
        for first, stop in _blocks(text):
            block = text if stop - first == len(text) else text[first:stop]
            parsed = parse_documents(block, self.twigs.alphabet, max_depth=self.max_depth, max_bytes=self.max_bytes)
            found = self.twigs.matcher(engine).match(engine.kernels.load_events(parsed.events))
            offsets, twigs = map(engine.kernels.to_host, found)
            rows = np.arange(first, stop)
            if parsed.errors or block.null_count():  # rows without events, in which nothing was found
                held = ~block.is_null().to_numpy()
                held[[row for row, _ in parsed.errors]] = False
                rows, offsets = rows[held], running_sum(np.diff(offsets)[held])
            yield Matches(rows, offsets, twigs), [WrongRow(first + row, why) for row, why in parsed.errors]

    def match_corpus(self, corpus: Corpus, engine: Engine) -> Iterator[Answer]:
        """Match the rows of a grammar, all that declare the same namespaces at a time."""
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
        """Decompress rows, so many at a time, and match what was written."""
        for first, stop in cut_blocks(_most_bytes(corpus), corpus.document_count, TEXT_BYTES):
            rows = corpus.rows[first:stop]
            numbered = replace(_some(corpus, np.arange(first, stop)), rows=np.arange(stop - first))
            for matches, wrong in self.match_text(write_texts([numbered], "", len(rows), "twig_filter"), engine):
                yield replace(matches, rows=rows[matches.rows]), [WrongRow(int(rows[row]), why) for row, why in wrong]

    def _words(self, corpus: Corpus, namespaces: dict[str, str], engine: Engine) -> Any:
        """Say what a grammar's words mean for the twigs; kept for the next call."""
        words = f"{corpus.key}:{sorted(namespaces.items())}"
        events = f"{words}:{self.twigs.alphabet.version}"

        def make() -> WordEvents:
            judged: JudgedWords = _kept(words, lambda: JudgedWords.of(corpus.grammar.vocabulary, namespaces))
            return judged.events(self.twigs.alphabet)

        return engine.keep(f"{events}:twigs", lambda: engine.kernels.load_word_events(_kept(events, make)))


def _kept(key: str, make: Callable[[], Any]) -> Any:
    found = _words.get(key)
    return _words.put(key, make()) if found is None else found


def _blocks(text: pl.Series) -> Iterator[tuple[int, int]]:
    if text.estimated_size() <= TEXT_BYTES:  # of views, which count shared text anew: never too few
        return iter([(0, len(text))])
    sizes = text.str.len_bytes().fill_null(0).cast(pl.Int64).to_numpy()
    return cut_blocks(sizes, len(sizes), TEXT_BYTES)


def _some(corpus: Corpus, documents: npt.NDArray[np.int64]) -> Corpus:
    """Take some of the documents, in their order."""
    taken: Any = gather_lists(corpus.root_offsets, corpus.roots, documents)
    offsets, roots = taken
    roots.setflags(write=False)  # as those of a column are: kernels are compiled for one type
    return Corpus(corpus.key, corpus.grammar, corpus.rows[documents], offsets, roots, corpus.gaps.gather(documents))


def _larger(corpus: Corpus, most: int) -> list[tuple[int, str]]:
    """Find the documents of more than so many bytes, and say so."""
    longest = int(np.diff(corpus.root_offsets).max(initial=0)) * int(corpus.grammar.led_bytes.max(initial=0))
    if longest + int(_most_replaced(corpus).max(initial=0)) <= most:  # nearly always: no row need be read
        return []
    large = []
    for document in np.flatnonzero(_most_bytes(corpus) > most):
        try:
            size = int(document_sizes(_some(corpus, np.array([document])), Allowance("twig_filter")).bytes[0])
        except LimitExceededError as error:  # nor could it be decompressed
            large.append((int(document), str(error)))
            continue
        if size > most:
            large.append((int(document), too_large(size, most)))
    return large


def _most_bytes(corpus: Corpus) -> npt.NDArray[np.int64]:
    """Bound the bytes of each document from above."""
    sizes = np.zeros(corpus.document_count)
    held = np.diff(corpus.root_offsets) > 0
    if held.any():
        led = corpus.grammar.led_bytes.astype(np.float64)  # 64 bits might not hold the sums
        sizes[held] = np.add.reduceat(led[corpus.roots], corpus.root_offsets[:-1][held])
    bounded: npt.NDArray[np.int64] = np.minimum(sizes + _most_replaced(corpus), 1 << 62).astype(np.int64)
    return bounded


def _most_replaced(corpus: Corpus) -> npt.NDArray[np.int64]:
    """Bound the bytes of what stands in each document where something else was predicted: two bytes name a gap."""
    sizes = corpus.gaps.bin.size().fill_null(0).to_numpy().astype(np.int64)
    return sizes // 2 * int(corpus.grammar.gap_bytes.max())
