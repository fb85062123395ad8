"""Searches spelled out rows by their triples: a symbol with the gaps before and after it.

A pattern's first call on a column finds what each distinct triple does, and keeps it. Calls then read the rows of
triples that may begin a match, and those of triples that hold one are known to match.
"""

from __future__ import annotations

import itertools
from weakref import finalize

import numpy as np

from polars_tadoc.config import settings
from polars_tadoc.kernels.host.patterns import triples as kernels
from polars_tadoc.kernels.host.patterns.exact_rows import FOUND_BEFORE, WordSteps
from polars_tadoc.kernels.host.patterns.match import flag_owners
from polars_tadoc.kernels.host.rows.phrases import Owners
from polars_tadoc.rows.pattern_exact import ExactRows, owners_of
from polars_tadoc.rows.pattern_words import WordAutomaton
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, array_dataclass
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks

LONG = 256
"""Rows with more symbols than this, on average, are not searched by triples: most would be read."""

DENSE = 4
"""All rows are read if triples that may begin a match are in more than one place in this many."""

CHUNK = 1 << 16
"""Minimum places per thread if all rows are read."""

MARKED = 1 << 12
"""Minimum rows per thread, otherwise."""

JUDGED = 1 << 15
"""Minimum triples per thread, the first time."""

SPARSE = 4
"""The rules and triples to judge are listed by words if at most one word in this many does something."""


@array_dataclass
class Judged:
    """Verdicts on triples, for a pattern."""

    table: UInt8
    """1 plus the state after each rule, by rule and state before it."""
    verdicts: UInt8
    """By triple."""
    opens: UInt32
    """Triples that may begin a match, ascending."""
    matches: UInt32
    """Triples that hold one, ascending."""
    open_places: int
    match_places: int
    """Places in rows of either."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self.table.nbytes + self.verdicts.nbytes + self.opens.nbytes + self.matches.nbytes + 256


@array_dataclass
class RowTriples:
    """The distinct triples of some rows."""

    triples: kernels.Triples
    numbers: UInt32
    """By place in rows: its triple."""
    starts: UInt32
    rows: UInt32
    """``starts``, ``rows``: by triple, the rows that have it."""
    of_symbols: Owners
    of_gaps: Owners
    """``of_symbols``, ``of_gaps``: by symbol, and by the gap before it but spaces: triples, numbers less one."""
    ends: UInt32
    """The triples at ends of rows."""
    gap_rules: Owners
    """By gap code but 0, the rules that have it."""
    number: int
    """Of these rows' triples; no others have it."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory, without those of patterns."""
        own = self.ends.nbytes + self.numbers.nbytes + self.starts.nbytes + self.rows.nbytes
        return own + sum(array.nbytes for array in (*self.triples, *self.of_symbols, *self.of_gaps, *self.gap_rules))

    @classmethod
    def of(cls, exact: ExactRows, steps: WordSteps) -> RowTriples | None:
        """Return the triples of rows, from the cache if possible; None if rows are long, or a pattern's table large."""
        if 4 * steps.width * exact.rule_count > _budget():
            return None
        key = str(id(exact))
        made = _triples.get(key)
        if made is None:
            places = len(exact.symbols) - int(exact.offsets[exact.rule_count])
            if places > LONG * exact.row_count or 24 * places > _budget():  # the bytes if all triples are distinct
                return None
            made = _triples.put(key, cls._number(exact, steps.codes, places))
            finalize(exact, _triples.discard, key).atexit = False
        return made

    @classmethod
    def _number(cls, exact: ExactRows, codes: int, places: int) -> RowTriples:
        slots = np.zeros(1 << (2 * places).bit_length(), np.uint32)
        room = [np.empty(places + 1, np.uint32) for _ in range(3)]
        numbers = np.empty(places, np.uint32)
        distinct = kernels.number_triples(exact.bodies, codes, slots, kernels.Triples(*room), numbers)
        starts, rows = np.zeros(distinct + 1, np.uint32), np.empty(places, np.uint32)
        kernels.list_rows(exact.offsets[exact.rule_count :], numbers, np.zeros(distinct, np.uint32), starts, rows)
        triples = kernels.Triples(*(own[:distinct].copy() for own in room))
        each, symbols = np.arange(distinct), exact.vocabulary_size + exact.rule_count + 1
        of_symbols = owners_of(symbols, each, triples.symbols[1:])
        of_gaps = _owners_of_gaps(2 * codes, each, triples.before[1:])
        ends = (1 + np.flatnonzero(triples.after[1:] >= codes)).astype(np.uint32)
        bounds = exact.offsets[: exact.rule_count + 1]
        gap_rules = _owners_of_gaps(codes, bounds, exact.gaps[: bounds[-1]])
        rows = rows[: starts[-1]].copy()
        return cls(triples, numbers, starts, rows, of_symbols, of_gaps, ends, gap_rules, next(_numbers))

    def search(self, exact: ExactRows, own: WordAutomaton, key: str) -> UInt8:
        """Tell by row whether it matches a pattern, which has a key in the cache: not 0 if it does."""
        key = f"{self.number} {key}"
        judged = _judged.get(key) or _judged.put(key, self._judge(exact, own))
        found = np.zeros(exact.row_count, np.uint8)
        rows, starts = exact.bodies, self.starts
        opens, matches, places = judged.open_places, judged.match_places, len(self.numbers)
        some = np.empty(0, np.uint32)
        is_dense = opens * DENSE > places
        if not is_dense or matches * DENSE <= places:
            kernels.mark_rows(starts, self.rows, judged.matches, kernels.MATCH, found, some)
        if is_dense:
            chunks = weighted_chunks(exact.offsets[exact.rule_count :], CHUNK)
        else:
            some = np.empty(min(opens, exact.row_count), np.uint32)
            count = kernels.mark_rows(starts, self.rows, judged.opens, kernels.OPEN, found, some)
            some, chunks = some[:count], even_chunks(count, MARKED)
            if not count:
                return found
        read = rows, own.steps, judged.table, self.numbers, judged.verdicts, some
        map_parallel(lambda own: kernels.read_rows(*read, *own, found), chunks)
        return found

    def _judge(self, exact: ExactRows, own: WordAutomaton) -> Judged:
        rows, steps = exact.bodies, own.steps
        size, symbols = exact.vocabulary_size, exact.vocabulary_size + exact.rule_count
        entries = steps.entries.reshape(-1, steps.codes)
        lengths = np.diff(exact.offsets[: exact.rule_count + 1])
        table = np.ones(steps.width * exact.rule_count, np.uint8)
        still = np.zeros(symbols, np.uint8)
        is_restful = steps.exits.reshape(-1, steps.width)[:, 0] == 1
        calm = np.zeros(256, np.uint8)
        calm[: len(is_restful)] = np.where(is_restful, kernels.RESTFUL, 0)
        calm[0] = kernels.STILL
        still[:size] = np.frombuffer(
            steps.classes.tobytes().translate(calm.tobytes()), np.uint8
        )  # twice as fast as by index
        loud = np.flatnonzero(still[:size] == 0).astype(np.uint32)
        is_sparse = entries[0, 0] == 0 and len(loud) * SPARSE <= size
        gaps = np.flatnonzero(entries[0]).astype(np.uint32)
        flags = (np.zeros if is_sparse else np.ones)(symbols, np.uint8)
        if is_sparse:
            pending = np.zeros(-(-exact.rule_count // 64), np.uint64)
            kernels.pend_rules(*self.gap_rules, gaps, pending)
            flag_owners(size, *exact.owners, loud, pending, flags)
        kernels.fill_rules(rows, steps, int(lengths.max(initial=0)), flags, still, table)
        reached = np.zeros(steps.codes, np.uint64)
        kernels.find_entries(steps, reached)
        verdicts = np.zeros(len(self.triples.symbols), np.uint8)
        some, count = np.empty(0, np.uint32), len(verdicts) - 1
        if is_sparse:
            some = np.empty(3 * count, np.uint32)  # some by several lists
            loud = np.append(np.flatnonzero(still == 0), symbols).astype(np.uint32)  # and rows without words
            gaps = np.append(gaps, steps.codes + np.flatnonzero(entries[steps.start])).astype(np.uint32)
            count = kernels.list_triples(*self.of_symbols, loud, 0, some)
            count = kernels.list_triples(*self.of_gaps, gaps, count, some)
            if steps.ends_after[0] or steps.ends_before.any() or (entries[0] == FOUND_BEFORE).any():
                some[count : count + len(self.ends)] = self.ends
                count += len(self.ends)
        read = rows, steps, table, still, reached, self.triples, some
        map_parallel(lambda own: kernels.judge_triples(*read, *own, verdicts), even_chunks(count, JUDGED))
        opens, matches = (np.flatnonzero(verdicts == one).astype(np.uint32) for one in (kernels.OPEN, kernels.MATCH))
        places = (int((self.starts[own + np.uint32(1)] - self.starts[own]).sum()) for own in (opens, matches))
        return Judged(table, verdicts, opens, matches, *places)


def _owners_of_gaps(codes: int, offsets: Int64, gaps: UInt32) -> Owners:
    """Return the bodies that contain each gap but 0, a space."""
    before = np.concatenate([[0], np.cumsum(gaps != 0)])
    return owners_of(codes, before[offsets], gaps[gaps != 0])


def _budget() -> int:
    return settings().host_cache_bytes // 16


_triples: ByteLRU[RowTriples] = ByteLRU(lambda: 2 * _budget(), lambda own: own.nbytes)
"""Cache of rows' triples, by the identity of the rows."""

_judged: ByteLRU[Judged] = ByteLRU(_budget, lambda own: own.nbytes)
"""Cache of what triples do, by their number and the pattern."""

_numbers = itertools.count()
