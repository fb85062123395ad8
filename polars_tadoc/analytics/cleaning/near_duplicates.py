"""Pairs and groups of rows whose sets of n-grams are similar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Unpack

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.cleaning.distinct_rows import (
    Sets,
    bands_of,
    empty_table,
    first_rows,
    random_key,
    runs_of,
)
from polars_tadoc.analytics.cleaning.laid_words import LaidWords, lay_out
from polars_tadoc.analytics.cleaning.options import reading_of
from polars_tadoc.analytics.cleaning.repeats import repeats
from polars_tadoc.analytics.cleaning.signatures import Scheme, SignatureOptions
from polars_tadoc.engine.progress import by_steps, part
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.kernels.host.near import pairs as kernels
from polars_tadoc.kernels.host.near.rows import NONE
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.arrow_results import numbers
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.runtime.arguments import require_integer
from polars_tadoc.runtime.array_types import Float64, Int64, UInt32, UInt64
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.option_signature import Default, takes_options
from polars_tadoc.runtime.parallel import map_parallel, tell, weighted_chunks

SIGNING_SHARE = 0.6
"""Share of the rest of a call's bar for signatures."""

ROOM = 1 << 16
"""Pairs that a thread collects before it makes room for more."""

Pairs = tuple[UInt32, UInt32, Float64]


class NearDuplicatesOptions(SignatureOptions, total=False):
    """Options of :func:`polars_tadoc.near_duplicates`."""

    threshold: Annotated[float, Default(0.8)]
    max_candidates: Annotated[int, Default(1_000_000_000)]


@dataclass(frozen=True)
class _Similarity:
    """The checked arguments of a call."""

    name: ClassVar[str]
    scheme: Scheme
    threshold: float
    max_candidates: int
    tokenizer: Tokenizer | None
    morphism: Morphism | None

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[NearDuplicatesOptions]) -> Any:
        """Check the arguments; errors as for :func:`near_duplicates`."""
        threshold = options["threshold"]
        if not isinstance(threshold, (int, float)) or isinstance(threshold, bool):
            raise TypeError(f"{cls.name}: threshold={threshold!r} must be a number")
        if not 0 < threshold <= 1:
            raise ValueError(f"{cls.name}: threshold={threshold!r} must be above 0 and at most 1")
        most = require_integer("max_candidates", options["max_candidates"], 1, (1 << 63) - 1)
        return cls(Scheme.of(options, cls.name), float(threshold), most, *reading_of(options))

    def _laid(self, column: pl.Series) -> LaidWords:
        return lay_out(column, self.name, self.tokenizer, self.morphism)

    def _keys(self, sets: Sets) -> UInt64:
        return sets.keys(self.scheme, *bands_of(self.threshold, self.scheme.permutations))

    def require_few(self, candidates: int) -> None:
        """Raise ``LimitExceededError`` if more pairs were proposed than the call allows."""
        if candidates > self.max_candidates:
            more = "ask for duplicate_groups, " if self.name == "near_duplicates" else ""
            raise LimitExceededError(
                f"{self.name}: signatures propose more than max_candidates={self.max_candidates:,} pairs: many rows "
                f"are alike; drop what they share first (drop_repeats), raise threshold= or ngram=, {more}or raise "
                "max_candidates="
            )


@dataclass(frozen=True, eq=False)
class SimilarPairs:
    """Similar pairs of rows."""

    firsts: UInt32
    """By row: the first one with its words; ``NONE`` for rows without words."""
    rows: Int64
    others: Int64
    similarities: Float64
    """``rows``, ``others``, ``similarities``: by pair of first rows; the earlier row first."""
    candidates: int
    """Pairs that were proposed."""


class NearDuplicatesRequest(_Similarity):
    """The checked arguments of :func:`near_duplicates`."""

    name = "near_duplicates"

    @staticmethod
    def schema(id_type: pl.DataType | None = None) -> pl.Schema:
        """Return the columns of the result, given the type of the ``id`` column, if there is one."""
        label = Labels.dtype(id_type)
        return pl.Schema({"id": label, "other": label, "similarity": pl.Float64()})

    @ends_on_interrupt
    @by_steps
    def frame(self, column: pl.Series, id: pl.Series | None = None) -> pl.DataFrame:
        """Find the pairs of a column held in memory."""
        laid, labels = self._laid(column), Labels.of(column, id, self.name)
        found = self.pairs(laid)
        copies = np.flatnonzero((found.firsts != NONE) & (found.firsts != np.arange(len(found.firsts))))
        rows = np.append(found.firsts[copies], found.rows).astype(np.uint64)
        others = np.append(copies, found.others).astype(np.uint64)
        order = np.argsort(rows << np.uint64(32) | others)
        similarities = np.append(np.ones(len(copies)), found.similarities)[order]
        return self.result(labels, rows[order].astype(np.int64), others[order].astype(np.int64), similarities)

    @staticmethod
    def result(labels: Labels, rows: Int64, others: Int64, similarities: Float64) -> pl.DataFrame:
        """Make the result of its columns."""
        found = [
            labels.series(rows).alias("id"),
            labels.series(others).alias("other"),
            numbers("similarity", similarities),
        ]
        return pl.DataFrame(found)

    def pairs(self, laid: LaidWords, before: int = 0) -> SimilarPairs:
        """Find the similar pairs of rows; ``before`` pairs were proposed among other rows."""
        firsts = first_rows(laid)
        sets = Sets.of(laid, firsts, self.scheme.ngram)
        parts, candidates = self._similar(sets, before)
        ones, others, similarities = (np.concatenate(part) for part in zip(*parts, strict=True))
        return SimilarPairs(firsts, sets.rows[ones], sets.rows[others], similarities, candidates)

    def _similar(self, sets: Sets, candidates: int) -> tuple[list[Pairs], int]:
        with part(SIGNING_SHARE):
            keys = self._keys(sets)
        key = random_key()
        fixed = sets.laid.starts, sets.sizes, sets.ngrams, self.threshold, key
        found: list[Pairs] = [(np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.float64))]
        for band in range(keys.shape[1]):
            tell(band / keys.shape[1], (band + 1) / keys.shape[1])
            order, ends = runs_of(keys[:, band])
            later = ends - np.arange(len(ends)) - 1
            candidates += int(later.sum())
            self.require_few(candidates)

            def find(some: tuple[int, int], order: UInt32 = order, ends: Int64 = ends, band: int = band) -> list[Pairs]:
                table, made = empty_table(sets.table_size), []
                state = np.array([some[0], -1, 0, 0], np.int64)
                while state[kernels.MEMBER] < some[1]:
                    state[kernels.COUNT] = 0
                    room = np.empty(ROOM, np.uint32), np.empty(ROOM, np.uint32), np.empty(ROOM, np.float64)
                    kernels.find_pairs(order, ends, *some, keys, band, *fixed, table, state, *room)
                    count = state[kernels.COUNT]
                    made.append((room[0][:count].copy(), room[1][:count].copy(), room[2][:count].copy()))
                return made

            weights = np.append(0, np.cumsum(later))
            for own in map_parallel(find, weighted_chunks(weights, 1 << 12)):
                found += own
        return found, candidates


class DuplicateGroupsRequest(_Similarity):
    """The checked arguments of :func:`duplicate_groups`."""

    name = "duplicate_groups"

    @staticmethod
    def schema(id_type: pl.DataType | None = None) -> pl.Schema:
        """Return the columns of the result, given the type of the ``id`` column, if there is one."""
        label = Labels.dtype(id_type)
        return pl.Schema({"id": label, "group": label, "keep": pl.Boolean()})

    @ends_on_interrupt
    @by_steps
    def frame(self, column: pl.Series, id: pl.Series | None = None) -> pl.DataFrame:
        """Group the rows of a column held in memory."""
        laid, labels = self._laid(column), Labels.of(column, id, self.name)
        groups, _ = self.groups(laid)
        return self.result(labels, np.arange(len(groups)), groups)

    @staticmethod
    def result(labels: Labels, rows: Int64, groups: Int64) -> pl.DataFrame:
        """Make the result of its columns."""
        found = [
            labels.series(rows).alias("id"),
            labels.series(groups).alias("group"),
            pl.Series("keep", groups == rows),
        ]
        return pl.DataFrame(found)

    def groups(self, laid: LaidWords, before: int = 0) -> tuple[Int64, int]:
        """Return the first row of each row's group, and the pairs looked at, with ``before`` among other rows."""
        firsts, rows = first_rows(laid), np.arange(len(laid.valid))
        sets = Sets.of(laid, firsts, self.scheme.ngram)
        components, work = self._components(sets, before)
        roots = rows.copy()
        roots[sets.rows] = sets.rows[components]
        return roots[np.where(firsts == NONE, rows, firsts)], work

    def _components(self, sets: Sets, before: int) -> tuple[Int64, int]:
        """Return the first row of each one's component, among distinct rows, and the pairs looked at."""
        with part(SIGNING_SHARE):
            keys = self._keys(sets)
        key, count = random_key(), len(sets.rows)
        parents = np.arange(count, dtype=np.uint32)
        scratch, table, state = np.zeros((5, count), np.int64), empty_table(sets.table_size), np.zeros(4, np.int64)
        state[kernels.WORK] = before
        for band in range(keys.shape[1]):
            tell(band / keys.shape[1], (band + 1) / keys.shape[1])
            order, ends = runs_of(keys[:, band])
            kernels.join_rows(
                order,
                ends,
                keys,
                band,
                sets.laid.starts,
                sets.sizes,
                sets.ngrams,
                self.threshold,
                self.max_candidates,
                key,
                table,
                parents,
                *scratch,
                state,
            )
            self.require_few(int(state[kernels.WORK]))
        roots = parents.astype(np.int64)
        while not np.array_equal(further := roots[roots], roots):
            roots = further
        return roots, int(state[kernels.WORK])


@documented_by(repeats)
def near_duplicates(
    column: pl.Series, *, id: pl.Series | None = None, **options: Unpack[NearDuplicatesOptions]
) -> pa.Table:
    """Find pairs of rows whose sets of n-grams of words are similar.

    The similarity is Jaccard's, exactly: the n-grams that both rows have, divided by those that at least one has. A row
    with fewer than ``ngram`` words is one n-gram. MinHash and banding propose the pairs to compare (A. Broder, *On the
    resemblance and containment of documents*, 1997; P. Indyk and R. Motwani, *Approximate nearest neighbors*, 1998):
    those whose signatures (:func:`minhash`, ``scheme="double"``) agree in all values of a band. Bands have the most
    values with which a pair at the threshold is proposed with a probability of 0.99 or more, or one value if
    ``permutations`` are too few; more similar pairs are proposed more often. No pair below the threshold is given.

    Rows of the same words after normalisation are copies: each is given once, with the first of them, and only the
    first one is compared with others. Rows without words and null rows are never given. Runs on the CPU.

    Parameters
    ----------
    threshold
        Least similarity, above 0 and at most 1.
    permutations
        Values of a signature, 1 to 65,536.
    ngram
        Words of an n-gram.
    seed
        Chooses the permutations, 0 to 4,294,967,295.
    max_candidates
        Most pairs that bands may propose, each counted in every band. Of n rows that are all alike, n (n - 1) / 2 pairs
        would be results: no pair is dropped silently, the call ends with an error instead. :func:`duplicate_groups`
        doesn't compare rows that it has joined.
    id
        Labels of the rows, one for each; default: row numbers.

    Returns
    -------
    pyarrow.Table
        ``id``, ``other`` (the labels' type, or uint32; ``id`` is the earlier row), ``similarity: double``; in order of
        both rows.

    Raises
    ------
    LimitExceededError
        Bands propose more than ``max_candidates`` pairs, or the column has more than 4,294,967,294 words and rows.
    TypeError
        ``threshold`` is not a number, ``permutations``, ``ngram``, ``seed`` or ``max_candidates`` not an integer,
        ``normalize`` not an expression, ``lowercase`` not a bool or ``stopwords`` not a list of strings; ``id`` is not
        a series, or of a type that results cannot hold.
    ValueError
        ``threshold``, ``permutations``, ``ngram``, ``seed`` or ``max_candidates`` is out of range, ``id`` has another
        length than the column, or ``normalize`` reads columns or does not give one String or null per word.

    Examples
    --------
    >>> text = pl.Series("text", ["to be or not to be", "to be, or not to be!", "to be or not to be that", "to do"])
    >>> tadoc.near_duplicates(text, ngram=2).to_pylist()
    [{'id': 0, 'other': 1, 'similarity': 1.0}, {'id': 0, 'other': 2, 'similarity': 0.8}]

    """
    found = NearDuplicatesRequest.from_arguments(**options).frame(column, id)
    table: pa.Table = found.to_arrow(compat_level=pl.CompatLevel.oldest())
    return table


@documented_by(near_duplicates)
def duplicate_groups(
    column: pl.Series, *, id: pl.Series | None = None, **options: Unpack[NearDuplicatesOptions]
) -> pa.Table:
    """Group rows that are copies or near duplicates, directly or through others.

    Groups are the connected components of the pairs of :func:`near_duplicates`. Pairs within a component are not
    compared any more, so that many rows that are alike take a comparison each.

    Parameters
    ----------
    max_candidates
        Most pairs of rows, not yet of one group, that share a band; the call ends with an error beyond that.

    Returns
    -------
    pyarrow.Table
        ``id``, ``group`` (the labels' type, or uint32; the group's first row), ``keep: bool`` (whether the row is the
        first one); all rows, in row order. Rows without words and null rows are groups of their own.

    Raises
    ------
    LimitExceededError
        More than ``max_candidates`` pairs share a band, or the column has more than 4,294,967,294 words and rows.

    Examples
    --------
    >>> text = pl.Series("text", ["to be or not to be", "to do", "to be or not to be that"])
    >>> tadoc.duplicate_groups(text, ngram=2)["group"].to_pylist()
    [0, 1, 0]

    """
    found = DuplicateGroupsRequest.from_arguments(**options).frame(column, id)
    table: pa.Table = found.to_arrow(compat_level=pl.CompatLevel.oldest())
    return table
