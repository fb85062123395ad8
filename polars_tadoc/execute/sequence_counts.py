"""Counts of sequences of words, or of pairs: the shared part of these calls."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import polars as pl

from polars_tadoc.engine.choose import Engine
from polars_tadoc.engine.kernels import Kernels
from polars_tadoc.execute.analytic import Analytic, Result
from polars_tadoc.execute.transport import Transport
from polars_tadoc.kernels.host.records.by_count import count_order
from polars_tadoc.kernels.host.records.merge_counts import joined, renumber
from polars_tadoc.kernels.host.sequences.text_sequences import Sequences
from polars_tadoc.kernels.keys.merge_cpu import sum_sequences
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.vocabulary import Vocabulary, unify
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.records.packed_records import sort_records
from polars_tadoc.records.records import Layout, Records, word_columns
from polars_tadoc.runtime.array_types import UInt32, UInt64, array_dataclass
from polars_tadoc.traversal.selector import timed_source
from polars_tadoc.traversal.source import prepare


@array_dataclass
class SequenceCounts(Result):
    """Sequences of words and counts, by descending count, then in code point order; arrays in host memory."""

    words: Vocabulary
    """Words by id."""
    ids: UInt32
    """uint32[sequences, n]: word ids."""
    counts: UInt64
    """uint64[sequences]."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and the words."""
        return self.ids.nbytes + self.counts.nbytes + self.words.nbytes


Counts = TypeVar("Counts", bound=SequenceCounts)


@dataclass(frozen=True)
class SequenceTransport(Transport[Counts]):
    """Records of a sequence's words and its count."""

    made: type[Counts]
    """Class of the partial results."""

    def records(self, part: Counts) -> Records:
        """Sort sequences by their words."""
        return sort_records(self.layout, part.words, part.ids, part.counts)

    def part(self, records: Records) -> Counts:
        """Sort sequences by their counts."""
        assert records.counts is not None
        order = count_order(records.counts)
        return self.made(records.vocabulary, records.keys[order], records.counts[order])


class CountsSequences(Analytic[Counts, Counts], Generic[Counts]):
    """Counts sequences of words in rows. Partial results and results have the same type."""

    made: ClassVar[type[Any]]
    """Class of the results."""
    span_option: ClassVar[str]
    """The option with the number of words, "n" or "window"."""
    joins_grammars_on: ClassVar[tuple[str, ...]] = ("cpu", "gpu")
    counts_text_on: ClassVar[tuple[str, ...]] = ("cpu",)
    """Engines that have :meth:`text_kernel`."""
    top: int | None
    min_count: int

    @property
    @abstractmethod
    def size(self) -> int:
        """Words of a sequence."""

    @property
    def span(self) -> int:
        """Words that kernels read together."""
        return int(getattr(self, self.span_option))

    @staticmethod
    @abstractmethod
    def kernel(kernels: Kernels) -> Callable[..., tuple[Any, Any]]:
        """Return the kernel that counts the sequences of one corpus."""

    @staticmethod
    @abstractmethod
    def text_kernel(
        text: pl.Series, tokenizer: Tokenizer, span: int, min_count: int, top: int | None
    ) -> Sequences | None:
        """Count the sequences of a String column; None where the kernel does not support the span or the words."""

    def partial(self, corpus: Corpus, engine: Engine) -> Counts:
        """Count one corpus' sequences."""
        source, to_host = prepare(corpus, engine, self.options.morphism), engine.kernels.to_host
        with timed_source(self.options.strategy, source, self.name, self.span) as (source, strategy):
            rules, offsets, roots, rank = source.rules, source.root_offsets, source.roots, source.rank
            count = self.kernel(engine.kernels)
            ids, counts = count(
                rules, offsets, roots, self.span, rank, strategy, min_count=self.min_count, top=self.top
            )
        made: Counts = self.made(source.words, to_host(ids), to_host(counts))  # takes the same time by any strategy
        return made

    def text_part(self, text: pl.Series, tokenizer: Tokenizer, engine: Engine) -> Counts | None:
        """Count the sequences of a String column block by block, on the CPU; raises ``ValueError`` if not UTF-8."""
        if engine.name not in self.counts_text_on or self.options.morphism is not None:
            return None
        found = self.text_kernel(text, tokenizer, self.span, self.min_count, self.top)
        if found is None:
            return None
        strings, ids, counts = found
        made: Counts = self.made(Vocabulary.ordered(strings), ids, counts)
        return made

    def merge(self, partials: Sequence[Counts]) -> Counts:
        """Add the counts of several corpora."""
        words, maps = unify([part.words for part in partials])
        ids = renumber([part.ids.reshape(-1) for part in partials], maps).reshape(-1, self.size)
        counts = joined(np.uint64, [part.counts for part in partials])
        made: Counts = self.made(words, *sum_sequences(ids, counts, words.rank, self.min_count, self.top))
        return made

    @property
    def asked(self) -> dict[str, Any]:
        """Everything that determines the records."""
        return {**super().asked, self.span_option: self.span}

    @property
    def transport(self) -> SequenceTransport[Counts]:
        """Return the conversion of partial results to records."""
        return SequenceTransport(Layout(word_columns(self.size), self.size, by_count=True), self.made)

    @property
    def limits(self) -> tuple[int, int | None]:
        """Limits of the call."""
        return self.min_count, self.top

    def ranged(self, records: Records, labels: Labels) -> Counts:
        """Keep the order of the sequences."""
        made: Counts = self.made(records.vocabulary, records.keys, records.counts)
        return made

    def result(self, total: Counts, labels: Labels) -> Counts:
        """Return the counts."""
        return total
