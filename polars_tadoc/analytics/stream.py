"""Answers an analytic over the rows of a lazy plan batch by batch, in memory that does not grow with the rows.

Rows are gathered until a share of the limit is full, and go through the kernels grammar by grammar. What is found is
merged whenever it has doubled. So the result and one grammar with its rows are what has to fit; the column need not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Generic

import numpy as np
import numpy.typing as npt
import polars as pl
import polars.selectors as cs

from polars_tadoc.analytics.analytic import Analytic, Made, Part
from polars_tadoc.analytics.results import Labels
from polars_tadoc.column import DTYPE, split_one_by_one
from polars_tadoc.config import MOST
from polars_tadoc.corpus import Corpus
from polars_tadoc.device_batches import DeviceBatches
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.packed.question import PackedQuestion
from polars_tadoc.payload import short_name

ROWS_SHARE = 64
"""Rows that wait take at most so small a share of the limit."""

TEXT_SHARE = 16
"""Text that waits takes at most so small a share of the limit; cutting it into words takes some times as much."""

MERGING = 6
"""How many times what was found merging takes, or making a frame of it (``benchmarks.streaming_analytics``)."""

FRESH_SHARE = 64
"""What was found since the last merge waits until it is as large as what was found before, or such a share."""

SYMBOL_BYTES = 40
"""What kernels take for each symbol of a grammar and its rows, about (``benchmarks.streaming_analytics``)."""

MOST_ROWS = 1 << 32
"""Results number rows in 32 bits."""

TOO_MANY_ROWS = f"the plan has more than {MOST_ROWS:,} rows, which results number in 32 bits"


def run_stream(
    plan: pl.LazyFrame, column: str, labels: str | None, analytic: Analytic[Part, Made], limit: int
) -> pl.DataFrame:
    """Answer an analytic over a compressed column of a plan, which runs in Polars' streaming engine.

    Parameters
    ----------
    plan
        The plan.
    column, labels
        Names of the compressed column and of the one that labels rows, if any.
    analytic
        What is asked.
    limit
        Bytes.

    Raises
    ------
    LimitExceededError
        The result, or one grammar with its rows, does not fit.

    """
    names = [column] if labels in (None, column) else [column, labels]
    read = plan.select(cs.by_name(*names))
    kept = _KeptLabels(labels, analytic.name, limit)
    kept.keep(read.collect_schema().to_frame())  # of a plan without rows there may be no batch
    batches = read.collect_batches(maintain_order=True)
    columns = (kept.keep(batch)[column] for batch in batches)
    if read.collect_schema()[column] == pl.String:
        return _answer_text(columns, kept, analytic, limit)
    return _answer(corpora_of_batches(columns, limit, analytic.reads_gaps), kept, analytic, limit)


def run_packed(
    question: PackedQuestion, labels: str | None, analytic: Analytic[Part, Made], limit: int | None
) -> pl.DataFrame:
    """Answer an analytic over documents of a packed scan, without making rows of them.

    Parameters
    ----------
    question
        The documents.
    labels
        Name of the column that labels rows, if any.
    analytic
        What is asked.
    limit
        Bytes; None to hold all partitions, and keep their grammars for the next call.

    Raises
    ------
    LimitExceededError
        The result, or one grammar with its rows, does not fit.

    """
    others = [] if labels is None else [labels]
    kept = _KeptLabels(labels, analytic.name, MOST if limit is None else limit)
    kept.keep(question.scan.schema.to_frame())
    corpora = _labelled(question.corpora(others, cached=limit is None), kept)
    if limit is None:
        return analytic.answer(list(corpora), kept.all()).to_frame()
    return _answer((_fitting(corpus, limit) for corpus in corpora), kept, analytic, limit)


def _labelled(found: Iterable[tuple[pl.DataFrame, Corpus]], kept: _KeptLabels) -> Iterator[Corpus]:
    for frame, corpus in found:
        if corpus.document_count and corpus.rows[-1] >= MOST_ROWS:
            raise LimitExceededError(TOO_MANY_ROWS)
        kept.keep(frame)
        yield corpus


def _answer(corpora: Iterable[Corpus], kept: _KeptLabels, analytic: Analytic[Part, Made], limit: int) -> pl.DataFrame:
    found = _Found(analytic, limit)
    for corpus in corpora:
        found.add(corpus)
    return analytic.finish(found.total(), kept.all()).to_frame()


def _answer_text(
    batches: Iterable[pl.Series], kept: _KeptLabels, analytic: Analytic[Part, Made], limit: int
) -> pl.DataFrame:
    """Do the same for batches of a String column, so many of them at a time that each word is named once for all."""
    found = _Found(analytic, limit)
    held: list[pl.Series] = []
    first = waiting = 0
    for batch in batches:
        held.append(batch)
        waiting += len(batch)
        if first + waiting > MOST_ROWS:
            raise LimitExceededError(TOO_MANY_ROWS)
        if sum(int(text.estimated_size()) for text in held) >= limit // TEXT_SHARE:
            found.add_text(pl.concat(held), first)
            held, first, waiting = [], first + waiting, 0
    if held:
        found.add_text(pl.concat(held), first)
    return analytic.finish(found.total(), kept.all()).to_frame()


def corpora_of_batches(batches: Iterable[pl.Series], limit: int, gaps: bool = False) -> Iterator[Corpus]:
    """Gather the rows of batches grammar by grammar; a grammar's rows may come in several corpora.

    Parameters
    ----------
    batches
        Compressed columns, one after another.
    limit
        Bytes; rows that wait take at most a share of it and a batch.
    gaps
        Keep what stood between words; most analytics do not read it.

    """
    held, numbers, size, first = [pl.Series("text", [], DTYPE)], [np.zeros(0, np.int64)], 0, 0
    for batch in batches:
        if first + len(batch) > MOST_ROWS:
            raise LimitExceededError(TOO_MANY_ROWS)
        held.append(batch.alias("text") if gaps else _without_gaps(batch))
        numbers.append(np.arange(first, first + len(batch)))
        first += len(batch)
        size += _nbytes(held[-1])
        if size >= limit // ROWS_SHARE:
            column, rows = pl.concat(held), np.concatenate(numbers)
            later = _of_last_grammar(column)  # of which more may come
            yield from _corpora(column.filter(~later), rows[~later.to_numpy()], limit)
            held, numbers = [column.filter(later)], [rows[later.to_numpy()]]
            size = _nbytes(held[0])
    yield from _corpora(pl.concat(held), np.concatenate(numbers), limit)


def _corpora(column: pl.Series, rows: npt.NDArray[np.int64], limit: int) -> Iterator[Corpus]:
    for corpus in split_one_by_one(column, cached=False):
        yield replace(_fitting(corpus, limit), rows=rows[corpus.rows])


def _fitting(corpus: Corpus, limit: int) -> Corpus:
    needed = corpus.grammar.nbytes + SYMBOL_BYTES * corpus.symbol_count
    if needed > limit:
        raise LimitExceededError(
            f"{short_name(corpus.key)} and its rows take about {needed:,} bytes, more than memory_limit={limit:,}; "
            "raise it, or make smaller grammars: compress(rows_per_grammar=…)"
        )
    return corpus


def _without_gaps(column: pl.Series) -> pl.Series:
    """Drop what most analytics do not read."""
    column = column.alias("text")  # Polars' own calls take some names for patterns
    gaps = pl.Series("gaps", [None], pl.Binary).new_from_index(0, len(column))
    return pl.DataFrame([column.struct.field("grammar"), column.struct.field("symbols"), gaps]).to_struct("text")


def _nbytes(column: pl.Series) -> int:
    """Bytes of rows."""
    gaps = int(column.struct.field("gaps").bin.size().sum())
    return 4 * int(column.struct.field("symbols").list.len().sum()) + gaps + 40 * len(column)


def _of_last_grammar(column: pl.Series) -> pl.Series:
    """Tell the rows of the last row's grammar; none where that is the only one."""
    codes = column.struct.field("grammar").to_physical()
    used = codes.drop_nulls()
    if used.n_unique() < 2:
        return pl.Series([False]).new_from_index(0, len(codes))
    same: pl.Series = codes == used[-1]
    return same.fill_null(False)


@dataclass
class _KeptLabels:
    """The values that label rows, gathered."""

    name: str | None
    call: str
    limit: int
    parts: list[pl.Series] = field(default_factory=list)
    nbytes: int = 0

    def keep(self, batch: pl.DataFrame) -> pl.DataFrame:
        """Keep a batch's labels; returns the batch."""
        if self.name is not None:
            self.parts.append(batch[self.name])
            self.nbytes += int(self.parts[-1].estimated_size())
            if self.nbytes > self.limit // 2:
                raise LimitExceededError(
                    f'{self.call}: memory_limit={self.limit:,}: the labels of column "{self.name}" alone take '
                    f"{self.nbytes:,} bytes; raise it, or leave id= out and join the rows' numbers with the labels"
                )
        return batch

    def all(self) -> Labels:
        """Return the labels of all rows."""
        return Labels(pl.concat(self.parts) if self.parts else None)


class _Found(Generic[Part]):
    """What was found so far, merged now and then."""

    def __init__(self, analytic: Analytic[Part, Any], limit: int) -> None:
        self.analytic, self.every, self.limit = analytic, analytic.without_limits(), limit
        self.batches = DeviceBatches(analytic.name, analytic.options.engine)
        self.merged: list[Part] = []
        self.fresh: list[Part] = []
        self.documents = self.words = 0

    def add(self, corpus: Corpus) -> None:
        """Answer for one corpus, and merge where there is much that is not merged."""
        self._count(corpus)
        engine = self.analytic.choose_engine(corpus.symbol_count)
        self.documents += corpus.document_count
        self._add(self.every.partial_in(self.batches, corpus, engine))

    def add_text(self, text: pl.Series, first: int) -> None:
        """Do the same for a String column whose first row has a number."""
        self.documents += len(text)
        for part in self.every.text_partials(text, first):
            self._add(part)

    def _add(self, part: Part) -> None:
        self.fresh.append(self.every.on_host(part))  # what waits to be merged takes no memory of a device
        before, fresh = (sum(part.nbytes for part in parts) for parts in (self.merged, self.fresh))
        room = self.limit // MERGING
        if fresh >= max(before, self.limit // FRESH_SHARE) or before + fresh > room:
            self.merged, self.fresh = [self.every.merge([*self.merged, *self.fresh])], []
            if self.merged[0].nbytes > room - self.limit // FRESH_SHARE:
                raise LimitExceededError(
                    f"{self.analytic.name}: memory_limit={self.limit:,}: what the first {self.documents:,} documents "
                    f"hold takes {self.merged[0].nbytes:,} bytes and, to be put together, {MERGING} times as much; "
                    "raise it, or ask for less: fewer rows, or fewer words (stopwords=, normalize=)"
                )

    def _count(self, corpus: Corpus) -> None:
        """Check that no count can wrap 64 bits."""
        self.words += corpus.word_total()
        if self.words * min(self.analytic.pairs_per_word, self.words) >= 1 << 63:
            raise LimitExceededError(f"{self.analytic.name}: the rows stand for more than 64 bits count")

    def total(self) -> Part:
        """Merge all, under the limits of what was asked."""
        return self.analytic.merge([*self.merged, *self.fresh])
