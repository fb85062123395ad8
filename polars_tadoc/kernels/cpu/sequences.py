"""Sequences and pairs of words on rules: heads and tails, own windows, own pairs, derived rules.

Each window of a document has one lowest rule (or the document) that holds it: there it spans two or more children.
Heads and tails, the first and last words of each rule, give the words of all windows without expanding anything
(G-TADOC, Zhang et al., ICDE 2021, section IV-D).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.errors import LimitExceededError
from polars_tadoc.kernels.cpu.keys import (
    Counted,
    Form,
    Numbered,
    Ranks,
    Spread,
    count,
    dense_ids,
    in_result_order,
    unpack,
)
from polars_tadoc.kernels.cpu.memory import prefetch
from polars_tadoc.kernels.cpu.parallel import map_parallel, weighted_chunks
from polars_tadoc.kernels.cpu.results import count_by_terminal, rule_weights, terminal_counts
from polars_tadoc.kernels.rules import Rules

Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]

SIZE = np.uint64(58)
"""Bits that packed words may take where their number, six bits, stands above them."""

AHEAD = 16
"""Symbols of a body whose cache lines are asked for before they are needed."""

FEW = 16
"""Documents up to which a posting list is put in order by insertion."""


@nb.njit(nogil=True, cache=True)
def _fill_ends(
    terminals: int,
    rule_offsets: Int64,
    symbols: UInt32,
    rank: UInt32,
    sizes: Int64,
    starts: Int64,
    words: UInt32,
) -> None:
    """Write each rule's head, and its tail where that is not the same, lowest rule first.

    Without ``rank`` terminals are numbered in their order.
    """
    for r in range(len(sizes)):
        size, start, stop = sizes[r], starts[r], starts[r + 1]
        filled = 0
        i = rule_offsets[r]
        while filled < size:
            symbol = nb.int64(symbols[i])
            i += 1
            if symbol < terminals:
                words[start + filled] = rank[symbol] if len(rank) > 0 else symbol
                filled += 1
            else:
                head = starts[symbol - terminals]
                for k in range(min(sizes[symbol - terminals], size - filled)):
                    words[start + filled + k] = words[head + k]
                filled += min(sizes[symbol - terminals], size - filled)
        if stop - start == size:
            continue
        filled = 0
        i = rule_offsets[r + 1] - 1
        while filled < size:
            symbol = nb.int64(symbols[i])
            i -= 1
            if symbol < terminals:
                filled += 1
                words[stop - filled] = rank[symbol] if len(rank) > 0 else symbol
            else:
                tail = starts[symbol - terminals + 1] - 1
                for k in range(min(sizes[symbol - terminals], size - filled)):
                    words[stop - filled - 1 - k] = words[tail - k]
                filled += min(sizes[symbol - terminals], size - filled)


@nb.njit(nogil=True, cache=True)
def _pack_ends(
    terminals: int,
    rule_offsets: Int64,
    symbols: UInt32,
    rank: UInt32,
    sizes: Int64,
    reach: int,
    bits: int,
    ends: UInt64,
) -> None:
    """Write the head of each symbol, packed from the highest place on, with its size, then its tail, packed.

    Sixteen bytes for each symbol: four of them share a cache line. At most ``reach`` words are packed.
    """
    mask = (nb.uint64(1) << nb.uint64(bits * reach)) - nb.uint64(1)
    for t in range(terminals):
        ends[2 * t] = (nb.uint64(rank[t]) << nb.uint64(bits * (reach - 1))) | (nb.uint64(1) << SIZE)
        ends[2 * t + 1] = rank[t]
    for r in range(len(sizes)):
        head, tail = nb.uint64(0), nb.uint64(0)
        size = sizes[r]
        filled = 0
        i = rule_offsets[r]
        while filled < size:
            child = ends[2 * nb.int64(symbols[i])]
            head |= (child & mask) >> nb.uint64(bits * filled)
            filled += nb.int64(child >> SIZE)
            i += 1
        filled = 0
        i = rule_offsets[r + 1] - 1
        while filled < size:
            child = 2 * nb.int64(symbols[i])
            tail |= ends[child + 1] << nb.uint64(bits * filled)
            filled += nb.int64(ends[child] >> SIZE)
            i -= 1
        ends[2 * (terminals + r)] = head | (nb.uint64(size) << SIZE)
        ends[2 * (terminals + r) + 1] = tail & mask


@nb.njit(nogil=True, cache=True)
def _count_windows(
    terminals: int, offsets: Int64, symbols: UInt32, spans: UInt32, reach: int, first: int, stop: int, counts: Int64
) -> None:
    """Count the own windows of owners: one ends at each word of its children's heads, but for its first ones.

    ``spans`` are the words of heads: a terminal's, then each rule's.
    """
    for owner in range(first, stop):
        total = 0
        for i in range(offsets[owner], offsets[owner + 1]):
            total += nb.int64(spans[max(0, nb.int64(symbols[i]) - terminals + 1)])
        counts[owner] = max(0, total - reach)


@nb.njit(nogil=True, cache=True)
def _write_packed(
    offsets: Int64,
    symbols: UInt32,
    ends: UInt64,
    reach: int,
    bits: int,
    places: Int64,
    first: int,
    stop: int,
    keys: UInt64,
) -> None:
    """Write the own windows of owners as packed ranks; see :func:`_pack_ends`."""
    mask = nb.uint64(0xFFFFFFFFFFFFFFFF) >> nb.uint64(64 - bits * (reach + 1))
    words = (nb.uint64(1) << nb.uint64(bits * reach)) - nb.uint64(1)
    limit = places[stop] - reach
    for owner in range(first, stop):
        at = places[owner]
        if places[owner + 1] == at:
            continue
        before = 0
        packed = nb.uint64(0)
        for i in range(offsets[owner], offsets[owner + 1]):
            prefetch(ends, 2 * nb.int64(symbols[min(i + AHEAD, len(symbols) - 1)]))
            child = 2 * nb.int64(symbols[i])
            head, size = ends[child] & words, nb.int64(ends[child] >> SIZE)
            if before == reach and at <= limit:
                for k in range(reach):  # what lies beyond the child's words is written over
                    later = nb.uint64(bits * (reach - 1 - k))
                    keys[at + k] = ((packed << nb.uint64(bits * (k + 1))) | (head >> later)) & mask
                at += size
            else:
                for k in range(max(0, reach - before), size):
                    later = nb.uint64(bits * (reach - 1 - k))
                    keys[at] = ((packed << nb.uint64(bits * (k + 1))) | (head >> later)) & mask
                    at += 1
                before = min(reach, before + size)
            packed = (packed << nb.uint64(bits * size)) | ends[child + 1]


@nb.njit(nogil=True, cache=True)
def _write_windows(
    terminals: int,
    offsets: Int64,
    symbols: UInt32,
    rank: UInt32,
    sizes: Int64,
    starts: Int64,
    words: UInt32,
    reach: int,
    bits: int,
    lags: Int64,
    places: Int64,
    first: int,
    stop: int,
    keys: UInt64,
) -> None:
    """Write the own windows of owners: of each, the terminals that stand ``lags`` before its last one, packed."""
    ring = 1
    while ring <= reach:
        ring *= 2
    recent = np.zeros(ring, np.uint64)
    for owner in range(first, stop):
        at = places[owner]
        if places[owner + 1] == at:
            continue
        before = 0
        end = 0
        for i in range(offsets[owner], offsets[owner + 1]):
            symbol = nb.int64(symbols[i])
            rule = symbol - terminals
            size = 1 if rule < 0 else sizes[rule]
            own = 0 if rule < 0 else starts[rule]
            for k in range(size):
                if rule >= 0:
                    recent[end & (ring - 1)] = words[own + k]
                else:
                    recent[end & (ring - 1)] = rank[symbol] if len(rank) > 0 else nb.uint32(symbol)
                if before + k >= reach:
                    packed = nb.uint64(0)
                    for lag in lags:
                        packed = (packed << nb.uint64(bits)) | recent[(end - lag) & (ring - 1)]
                    keys[at] = packed
                    at += 1
                end += 1
            if rule >= 0 and starts[rule + 1] - own > size:
                for k in range(starts[rule + 1] - size, starts[rule + 1]):
                    recent[end & (ring - 1)] = words[k]
                    end += 1
            before = min(reach, before + size)


@nb.njit(nogil=True, cache=True)
def _count_pairs(
    terminals: int, offsets: Int64, symbols: UInt32, sizes: Int64, window: int, first: int, stop: int, counts: Int64
) -> None:
    """Count the own pairs of owners: those of a child's first words with the ones before it."""
    for owner in range(first, stop):
        before = 0
        total = 0
        for i in range(offsets[owner], offsets[owner + 1]):
            symbol = nb.int64(symbols[i])
            size = 1 if symbol < terminals else sizes[symbol - terminals]
            full = min(size, window - before)  # words that pair with all the words before
            total += full * before + (size - full) * window - (size * (size - 1) - full * (full - 1)) // 2
            before = min(window, before + size)
        counts[owner] = total


@nb.njit(nogil=True, cache=True)
def _write_pairs(
    terminals: int,
    offsets: Int64,
    symbols: UInt32,
    rank: UInt32,
    sizes: Int64,
    starts: Int64,
    words: UInt32,
    window: int,
    bits: int,
    places: Int64,
    first: int,
    stop: int,
    keys: UInt64,
) -> None:
    """Write the own pairs of owners, lower rank in the higher bits."""
    recent = np.zeros(4 * window + 64, np.uint32)
    shift = nb.uint64(bits)
    for owner in range(first, stop):
        at = places[owner]
        if places[owner + 1] == at:
            continue
        before = 0
        end = 0
        for i in range(offsets[owner], offsets[owner + 1]):
            symbol = nb.int64(symbols[i])
            rule = symbol - terminals
            size = 1 if rule < 0 else sizes[rule]
            own = nb.uint64(rank[symbol] if rule < 0 and len(rank) > 0 else symbol)
            for k in range(size):
                word = own if rule < 0 else nb.uint64(words[starts[rule] + k])
                for j in range(end - min(before, window - k), end):
                    other = nb.uint64(recent[j])
                    keys[at] = (min(word, other) << shift) | max(word, other)
                    at += 1
            if end + size > len(recent):
                for k in range(before):
                    recent[k] = recent[end - before + k]
                end = before
            if rule < 0:
                recent[end] = own
            else:
                for k in range(size):
                    recent[end + k] = words[starts[rule + 1] - size + k]
            end += size
            before = min(window, before + size)


@nb.njit(nogil=True, cache=True)
def _write_derived(
    terminals: int,
    offsets: Int64,
    symbols: UInt32,
    long: npt.NDArray[np.bool_],
    spans: UInt32,
    reach: int,
    ids: UInt32,
    places: Int64,
    derived_terminals: int,
    derived_offsets: Int64,
    first: int,
    stop: int,
    derived: UInt32,
) -> None:
    """Write bodies of own ids and of the children that have ids themselves, in the order in which windows start."""
    for owner in range(first, stop):
        out = derived_offsets[owner]
        if out == derived_offsets[owner + 1]:
            continue
        at = places[owner]
        missing = reach
        for i in range(offsets[owner], offsets[owner + 1]):
            rule = nb.int64(symbols[i]) - terminals
            span = nb.int64(spans[max(0, rule + 1)])
            for _ in range(span - min(missing, span)):
                derived[out] = ids[at]
                out += 1
                at += 1
            missing -= min(missing, span)
            if rule >= 0 and long[rule]:
                derived[out] = derived_terminals + rule
                out += 1
        for i in range(at, places[owner + 1]):
            derived[out] = ids[i]
            out += 1


@nb.njit(nogil=True, cache=True)
def _count_children(offsets: Int64, symbols: UInt32, terminals: int, long: npt.NDArray[np.bool_], sizes: Int64) -> None:
    """Add the children that have ids themselves to the sizes of derived bodies."""
    for owner in range(len(offsets) - 1):
        for i in range(offsets[owner], offsets[owner + 1]):
            rule = nb.int64(symbols[i]) - terminals
            sizes[owner] += rule >= 0 and long[rule]


@nb.njit(nogil=True, cache=True)
def _measure_postings(offsets: Int64, counts: UInt64, least: int, most: int, sizes: Int64) -> None:
    """Measure what is kept of each posting list: -1 where its counts sum up to less than ``least``."""
    for k in range(len(offsets) - 1):
        total = nb.uint64(0)
        for i in range(offsets[k], offsets[k + 1]):
            total += counts[i]
        sizes[k] = min(offsets[k + 1] - offsets[k], most) if total >= nb.uint64(least) else -1


@nb.njit(nogil=True, cache=True)
def _write_postings(
    offsets: Int64,
    documents: UInt32,
    counts: UInt64,
    out_offsets: Int64,
    first: int,
    stop: int,
    out_documents: UInt32,
    out_counts: UInt64,
) -> None:
    """Order each posting list by count falling, stably, in place, and write what is kept of it."""
    histogram = np.zeros(256, np.int64)
    longest = 0
    for k in range(first, stop):
        if out_offsets[k + 1] > out_offsets[k]:
            longest = max(longest, offsets[k + 1] - offsets[k])
    spare_documents, spare_counts = np.empty(longest, np.uint32), np.empty(longest, np.uint64)
    for k in range(first, stop):
        start, end = offsets[k], offsets[k + 1]
        if out_offsets[k + 1] == out_offsets[k]:
            continue
        if end - start <= FEW:
            for i in range(start + 1, end):
                document, count = documents[i], counts[i]
                j = i - 1
                while j >= start and counts[j] < count:
                    documents[j + 1], counts[j + 1] = documents[j], counts[j]
                    j -= 1
                documents[j + 1], counts[j + 1] = document, count
        else:
            most, fewest = nb.uint64(0), counts[start]
            for i in range(start, end):
                most, fewest = max(most, counts[i]), min(fewest, counts[i])
            shift = nb.uint64(0)
            while fewest < most and shift < nb.uint64(64) and most >> shift != 0:
                for c in range(256):
                    histogram[c] = 0
                for i in range(start, end):
                    histogram[255 - nb.int64((counts[i] >> shift) & nb.uint64(255))] += 1
                before = 0
                for c in range(256):
                    before, histogram[c] = before + histogram[c], before
                for i in range(start, end):
                    digit = 255 - nb.int64((counts[i] >> shift) & nb.uint64(255))
                    spare_documents[histogram[digit]], spare_counts[histogram[digit]] = documents[i], counts[i]
                    histogram[digit] += 1
                for i in range(start, end):
                    documents[i], counts[i] = spare_documents[i - start], spare_counts[i - start]
                shift += nb.uint64(8)
        for i in range(out_offsets[k + 1] - out_offsets[k]):
            out_documents[out_offsets[k] + i] = documents[start + i]
            out_counts[out_offsets[k] + i] = counts[start + i]


@dataclass(frozen=True)
class _Ends:
    """Heads and tails of all rules: what their own windows, and those above them, are read from.

    A rule's head is ``words[starts[r]:]``, its tail ``words[:starts[r + 1]]``, ``sizes[r]`` ranks each; rules of at
    most ``reach`` words have one stretch for both.
    """

    terminals: int
    rank: UInt32
    sizes: Int64
    starts: Int64
    words: UInt32
    reach: int

    @classmethod
    def of(cls, rules: Rules, rank: UInt32 | None, reach: int) -> _Ends:
        """Fill heads and tails of up to ``reach`` words."""
        rank = np.zeros(0, np.uint32) if rank is None else rank
        sizes = _sizes(rules, reach)
        starts = _before(sizes * (1 + (rules.lengths > np.uint64(reach))))
        words = np.empty(starts[-1], np.uint32)
        _fill_ends(rules.terminals, rules.rule_offsets, rules.symbols, rank, sizes, starts, words)
        return cls(rules.terminals, rank, sizes, starts, words, reach)

    def read(self, offsets: Int64, symbols: UInt32) -> tuple[Any, ...]:
        """What kernels read to write the own windows of these bodies."""
        return self.terminals, offsets, symbols, self.rank, self.sizes, self.starts, self.words, self.reach


@dataclass(frozen=True)
class _PackedWindows:
    """Runs of two words or more whose ranks fit 64 bits, read from packed heads and tails of n - 1 words."""

    terminals: int
    reach: int
    form: Ranks
    spans: UInt32
    ends: UInt64

    @classmethod
    def of(cls, rules: Rules, rank: UInt32 | None, n: int) -> _PackedWindows:
        """Fill heads and tails."""
        rank = np.arange(rules.terminals, dtype=np.uint32) if rank is None else rank
        form, sizes = Ranks(n, _bits(rules.terminals)), _sizes(rules, n - 1)
        ends = np.empty(2 * (rules.terminals + rules.rule_count), np.uint64)
        _pack_ends(rules.terminals, rules.rule_offsets, rules.symbols, rank, sizes, n - 1, form.bits, ends)
        return cls(rules.terminals, n - 1, form, _spans(sizes), ends)

    def measure(self, offsets: Int64, symbols: UInt32, first: int, stop: int, counts: Int64) -> None:
        """Count the own windows of owners."""
        _count_windows(self.terminals, offsets, symbols, self.spans, self.reach, first, stop, counts)

    def write(self, offsets: Int64, symbols: UInt32, places: Int64, first: int, stop: int, keys: UInt64) -> None:
        """Write the own windows of owners from their places on."""
        _write_packed(offsets, symbols, self.ends, self.reach, self.form.bits, places, first, stop, keys)

    def lengths(self, lengths: UInt64) -> UInt64:
        """Windows in so many words."""
        return np.maximum(lengths, np.uint64(self.reach)) - np.uint64(self.reach)


@dataclass(frozen=True)
class _SpreadWindows:
    """Runs of terminals that stand for runs of words each: some of them tell all words of the whole run."""

    ends: _Ends
    spans: UInt32
    form: Spread

    @classmethod
    def of(cls, rules: Rules, rank: UInt32 | None, n: int, terminal: Form) -> _SpreadWindows:
        """Fill heads and tails; ``n`` counts words, ``terminal`` is what a terminal's number stands for."""
        ends = _Ends.of(rules, rank, n - terminal.words)
        return cls(ends, _spans(ends.sizes), Spread.of(terminal, n))

    @property
    def reach(self) -> int:
        """Terminals of a window after the first one."""
        return self.ends.reach

    def measure(self, offsets: Int64, symbols: UInt32, first: int, stop: int, counts: Int64) -> None:
        """Count the own windows of owners."""
        _count_windows(self.ends.terminals, offsets, symbols, self.spans, self.reach, first, stop, counts)

    def write(self, offsets: Int64, symbols: UInt32, places: Int64, first: int, stop: int, keys: UInt64) -> None:
        """Write the own windows of owners from their places on."""
        lags = self.reach - np.array(self.form.starts, np.int64)
        read = (*self.ends.read(offsets, symbols), self.form.part.width, lags)
        _write_windows(*read, places, first, stop, keys)

    def lengths(self, lengths: UInt64) -> UInt64:
        """Windows in so many terminals."""
        return np.maximum(lengths, np.uint64(self.reach)) - np.uint64(self.reach)


def _bits(terminals: int) -> int:
    return max(1, (terminals - 1).bit_length())


def _sizes(rules: Rules, reach: int) -> Int64:
    """Words of each rule's head."""
    sizes: Int64 = np.minimum(rules.lengths, np.uint64(reach)).astype(np.int64)
    return sizes


def _spans(sizes: Int64) -> UInt32:
    """Words of a terminal, and of each rule's head."""
    return np.append(1, sizes).astype(np.uint32)


@dataclass(frozen=True)
class _PairWindows:
    """Pairs of words; heads and tails have as many as two paired words may be apart."""

    ends: _Ends

    @property
    def form(self) -> Ranks:
        """Two ranks always fit."""
        return Ranks(2, _bits(self.ends.terminals))

    @property
    def spans(self) -> UInt32:
        """None: pairs have no order that derived rules could keep."""
        return np.zeros(len(self.ends.sizes) + 1, np.uint32)

    @property
    def reach(self) -> int:
        """Words that two paired words may be apart."""
        return self.ends.reach

    def measure(self, offsets: Int64, symbols: UInt32, first: int, stop: int, counts: Int64) -> None:
        """Count the own pairs of owners."""
        ends = self.ends
        _count_pairs(ends.terminals, offsets, symbols, ends.sizes, ends.reach, first, stop, counts)

    def write(self, offsets: Int64, symbols: UInt32, places: Int64, first: int, stop: int, keys: UInt64) -> None:
        """Write the own pairs of owners from their places on."""
        ends = self.ends
        _write_pairs(*ends.read(offsets, symbols), self.form.bits, places, first, stop, keys)

    def lengths(self, lengths: UInt64) -> UInt64:
        """Pairs in so many words: each word with the ``reach`` before it, the first ones with fewer."""
        near = np.minimum(lengths, np.uint64(self.ends.reach))
        pairs: UInt64 = near * (near - (near > 0)) // np.uint64(2) + (lengths - near) * np.uint64(self.ends.reach)
        return pairs


Windows = _PackedWindows | _SpreadWindows | _PairWindows
"""How own windows are counted and written."""


@dataclass(frozen=True)
class _Bodies:
    """Rules, the documents over them, and how often each rule occurs in these."""

    rules: Rules
    root_offsets: Int64
    roots: UInt32
    weights: UInt64

    @classmethod
    def of(cls, rules: Rules, root_offsets: Int64, roots: UInt32) -> _Bodies:
        """Weigh the rules."""
        return cls(rules, root_offsets, roots, rule_weights(rules, roots)[rules.terminals :])


@dataclass(frozen=True)
class _Owned:
    """Keys of the own windows of rules and of documents, the rules' first."""

    keys: UInt64
    rule_places: Int64
    document_places: Int64

    @classmethod
    def by(cls, windows: Windows, bodies: _Bodies) -> _Owned:
        """List the own windows of documents and of rules that have weight."""
        rules = bodies.rules
        counts = _measure(windows, rules.rule_offsets, rules.symbols)
        counts[bodies.weights == 0] = 0
        rule_places = _before(counts)
        document_places = rule_places[-1] + _before(_measure(windows, bodies.root_offsets, bodies.roots))
        keys = np.empty(document_places[-1], np.uint64)
        _write(windows, rules.rule_offsets, rules.symbols, rule_places, keys)
        _write(windows, bodies.root_offsets, bodies.roots, document_places, keys)
        return cls(keys, rule_places, document_places)

    @property
    def of_rules(self) -> int:
        """Number of windows that rules own."""
        return int(self.rule_places[-1])


def _measure(windows: Windows, offsets: Int64, symbols: UInt32) -> Int64:
    counts = np.zeros(len(offsets) - 1, np.int64)
    map_parallel(lambda chunk: windows.measure(offsets, symbols, *chunk, counts), weighted_chunks(offsets))
    return counts


def _write(windows: Windows, offsets: Int64, symbols: UInt32, places: Int64, keys: UInt64) -> None:
    map_parallel(lambda chunk: windows.write(offsets, symbols, places, *chunk, keys), weighted_chunks(places))


def _before(sizes: Int64) -> Int64:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


@dataclass(frozen=True)
class _Derived:
    """Rules and documents over window ids, which ascend with the windows, and what an id stands for."""

    bodies: _Bodies
    form: Numbered

    @classmethod
    def by(cls, windows: Windows, bodies: _Bodies) -> _Derived:
        """Give each distinct window an id, and put own windows in the place of what they are made of."""
        owned, rules = _Owned.by(windows, bodies), bodies.rules
        ids, distinct = dense_ids(owned.keys)
        lengths = windows.lengths(rules.lengths)
        lengths[bodies.weights == 0] = 0
        if len(distinct) + rules.rule_count >= 1 << 32:
            raise LimitExceededError("more distinct sequences and rules than 32-bit symbols can name")
        derive = _Derivation(rules.terminals, windows, lengths > 0, ids, len(distinct))
        rule_bodies = derive(rules.rule_offsets, rules.symbols, owned.rule_places, ~derive.long)
        derived = Rules(len(distinct), *rule_bodies, rules.level_offsets, lengths)
        documents = derive(bodies.root_offsets, bodies.roots, owned.document_places)
        return cls(_Bodies(derived, *documents, bodies.weights), Numbered(distinct, windows.form))

    def parts(self, rank: UInt32 | None) -> tuple[Rules, Int64, UInt32, UInt32]:
        """Return the rules, the documents' offsets and symbols, and the words by id."""
        bodies = self.bodies
        return bodies.rules, bodies.root_offsets, bodies.roots, _words(self.form.distinct, self.form.form, rank)


@dataclass(frozen=True)
class _Derivation:
    """Writes derived bodies."""

    terminals: int
    windows: Windows
    long: npt.NDArray[np.bool_]
    ids: UInt32
    distinct: int

    def __call__(
        self, offsets: Int64, symbols: UInt32, places: Int64, unused: npt.NDArray[np.bool_] | None = None
    ) -> tuple[Int64, UInt32]:
        """Return offsets and symbols; bodies of ``unused`` owners are empty."""
        sizes = np.diff(places)
        _count_children(offsets, symbols, self.terminals, self.long, sizes)
        if unused is not None:
            sizes[unused] = 0
        derived_offsets = _before(sizes)
        derived = np.empty(derived_offsets[-1], np.uint32)
        spans, reach = self.windows.spans, self.windows.reach
        read = (self.terminals, offsets, symbols, self.long, spans, reach, self.ids, places, self.distinct)
        map_parallel(
            lambda chunk: _write_derived(*read, derived_offsets, *chunk, derived), weighted_chunks(derived_offsets)
        )
        return derived_offsets, derived


def _sequence_windows(bodies: _Bodies, rank: UInt32 | None, n: int) -> tuple[Windows, _Bodies]:
    """Make runs of n words keys of 64 bits (iterated pairing).

    Where the words' ranks do not fit, runs of fewer words become the terminals, and two or three of these, which may
    overlap, tell the words of a run.
    """
    bits = _bits(bodies.rules.terminals)
    if n > 1 and n * bits <= 64 and (n - 1) * bits <= SIZE:
        return _PackedWindows.of(bodies.rules, rank, n), bodies
    terminal: Form = Ranks(1, bits)
    parts = 3
    while Spread.of(terminal, n).width > 64:
        words = max(min(-(-n // parts), 64 // terminal.width * terminal.words), terminal.words + 1)
        if terminal.words == 1:
            derived = _Derived.by(*_sequence_windows(bodies, rank, words))
        else:
            derived = _Derived.by(_SpreadWindows.of(bodies.rules, None, words, terminal), bodies)
        bodies, terminal, parts = derived.bodies, derived.form, 2
    ranked = rank if terminal.words == 1 else None
    return _SpreadWindows.of(bodies.rules, ranked, n, terminal), bodies


def sequence_counts(
    rules: Rules,
    root_offsets: Int64,
    roots: UInt32,
    n: int,
    rank: UInt32 | None,
    strategy: str,
    min_count: int = 1,
    top: int | None = None,
) -> tuple[UInt32, UInt64]:
    """Count the runs of n words.

    Parameters
    ----------
    rules
        The bodies of rules over words.
    root_offsets, roots
        int64, documents + 1, and uint32: the documents' symbols.
    n
        Words of a run, at least 1.
    rank
        uint32 by word: its place in the order of words, each place once; None where words are numbered so.
    strategy
        "top_down": own windows count as often as their rules; "bottom_up": they are the terminals of derived rules.
    min_count, top
        Runs counted less often are left out; at most so many are returned.

    Returns
    -------
    (uint32 array, uint64 array)
        The words of each run, runs x n, and its count; by count falling, equal ones by their words' ranks.

    """
    if n > _longest(rules, root_offsets, roots, n):
        return np.zeros((0, n), np.uint32), np.zeros(0, np.uint64)
    if n == 1:
        counts = terminal_counts(rules, roots, strategy)
        keys = np.arange(rules.terminals, dtype=np.uint64) if rank is None else rank.astype(np.uint64)
        return _chosen(Counted.of(keys, counts), Ranks(1, _bits(rules.terminals)), rank, min_count, top)
    windows, bodies = _sequence_windows(_Bodies.of(rules, root_offsets, roots), rank, n)
    return _window_counts(windows, bodies, rank, strategy, min_count, top)


def pair_counts(
    rules: Rules,
    root_offsets: Int64,
    roots: UInt32,
    window: int,
    rank: UInt32 | None,
    strategy: str,
    min_count: int = 1,
    top: int | None = None,
) -> tuple[UInt32, UInt64]:
    """Count the pairs of words at most ``window`` words apart.

    Parameters
    ----------
    window
        Most words from one to the other, at least 1.
    rules, root_offsets, roots, rank, strategy, min_count, top
        As for :func:`sequence_counts`.

    Returns
    -------
    (uint32 array, uint64 array)
        The words of each pair, pairs x 2, the one of lower rank first, and its count; by count falling, equal ones by
        their words' ranks.

    """
    window = min(window, _longest(rules, root_offsets, roots, window))
    windows = _PairWindows(_Ends.of(rules, rank, max(window, 1)))
    return _window_counts(windows, _Bodies.of(rules, root_offsets, roots), rank, strategy, min_count, top)


def sequence_postings(
    rules: Rules,
    root_offsets: Int64,
    roots: UInt32,
    n: int,
    rank: UInt32 | None,
    strategy: str,
    min_count: int = 1,
    top: int | None = None,
) -> tuple[UInt32, Int64, UInt32, UInt64]:
    """List the documents that hold each run of n words.

    Parameters
    ----------
    min_count
        Runs counted less often over all documents are left out.
    top
        At most so many documents of each run.
    rules, root_offsets, roots, n, rank, strategy
        As for :func:`sequence_counts`.

    Returns
    -------
    (uint32 array, int64 array, uint32 array, uint64 array)
        The words of each run, runs x n, in the order of their ranks; where its documents start, runs + 1; the
        documents, by count falling, then ascending; how often each holds it.

    """
    if n > _longest(rules, root_offsets, roots, n):
        return np.zeros((0, n), np.uint32), np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.uint64)
    derived = _Derived.by(*_sequence_windows(_Bodies.of(rules, root_offsets, roots), rank, n))
    bodies = derived.bodies
    offsets, documents, counts = count_by_terminal(
        bodies.rules, bodies.root_offsets, bodies.roots, strategy, counted=True
    )
    assert counts is not None
    kept, offsets, documents, counts = rank_postings(offsets, documents, counts, min_count, top)
    return _words(derived.form.distinct[kept], derived.form.form, rank), offsets, documents, counts


def rank_postings(
    offsets: Int64, documents: UInt32, counts: UInt64, min_count: int, top: int | None
) -> tuple[Int64, Int64, UInt32, UInt64]:
    """Order each posting list by count falling, equal ones ascending.

    Parameters
    ----------
    offsets, documents, counts
        int64, lists + 1, uint32, ascending within a list, and uint64; they are reordered in place.
    min_count
        Lists whose counts sum up to less are left out.
    top
        At most so many documents of each list.

    Returns
    -------
    (int64 array, int64 array, uint32 array, uint64 array)
        Numbers of the lists kept; where each one's documents start, kept + 1; documents; counts.

    """
    if min_count <= 1 and top is None:  # all stay where they are
        map_parallel(
            lambda chunk: _write_postings(offsets, documents, counts, offsets, *chunk, documents, counts),
            weighted_chunks(offsets),
        )
        kept = np.flatnonzero(np.diff(offsets))
        return kept, np.append(offsets[kept], offsets[-1]), documents, counts
    sizes = np.zeros(len(offsets) - 1, np.int64)
    most = len(documents) if top is None else max(top, 0)
    _measure_postings(offsets, counts, max(min_count, 1), most, sizes)
    kept = np.flatnonzero(sizes >= 0)
    kept_offsets = _before(np.maximum(sizes, 0))
    kept_documents, kept_counts = np.empty(kept_offsets[-1], np.uint32), np.empty(kept_offsets[-1], np.uint64)
    map_parallel(
        lambda chunk: _write_postings(offsets, documents, counts, kept_offsets, *chunk, kept_documents, kept_counts),
        weighted_chunks(offsets),
    )
    return kept, np.append(kept_offsets[kept], kept_offsets[-1]), kept_documents, kept_counts


def derive_sequences(
    rules: Rules, root_offsets: Int64, roots: UInt32, n: int, rank: UInt32 | None
) -> tuple[Rules, Int64, UInt32, UInt32]:
    """Turn the rules and documents of words into those of runs of n words.

    Parameters
    ----------
    rules, root_offsets, roots, n, rank
        As for :func:`sequence_counts`.

    Returns
    -------
    (Rules, int64 array, uint32 array, uint32 array)
        Rules whose terminals are the distinct runs, numbered in the order of their words' ranks; the documents' symbols
        over them; the words of each run, runs x n. Documents put together have the runs of each, and no others.

    """
    n = min(n, _longest(rules, root_offsets, roots, n) + 1)  # of more words there are none
    return _Derived.by(*_sequence_windows(_Bodies.of(rules, root_offsets, roots), rank, n)).parts(rank)


def derive_pairs(
    rules: Rules, root_offsets: Int64, roots: UInt32, window: int, rank: UInt32 | None
) -> tuple[Rules, Int64, UInt32, UInt32]:
    """Turn the rules and documents of words into those of pairs of words.

    Parameters
    ----------
    rules, root_offsets, roots, window, rank
        As for :func:`pair_counts`.

    Returns
    -------
    (Rules, int64 array, uint32 array, uint32 array)
        As for :func:`derive_sequences`, of pairs, the word of lower rank first.

    """
    window = max(min(window, _longest(rules, root_offsets, roots, window)), 1)
    windows = _PairWindows(_Ends.of(rules, rank, window))
    return _Derived.by(windows, _Bodies.of(rules, root_offsets, roots)).parts(rank)


def _window_counts(
    windows: Windows, bodies: _Bodies, rank: UInt32 | None, strategy: str, min_count: int, top: int | None
) -> tuple[UInt32, UInt64]:
    if strategy == "bottom_up":
        derived = _Derived.by(windows, bodies)
        totals = terminal_counts(derived.bodies.rules, derived.bodies.roots, strategy)
        return _chosen(Counted.of(derived.form.distinct, totals), windows.form, rank, min_count, top)
    owned = _Owned.by(windows, bodies)
    weights = np.repeat(bodies.weights, np.diff(owned.rule_places))
    counted = count(owned.keys[owned.of_rules :], owned.keys[: owned.of_rules], weights)
    return _chosen(counted, windows.form, rank, min_count, top)


def _chosen(
    counted: Counted, form: Form, rank: UInt32 | None, min_count: int, top: int | None
) -> tuple[UInt32, UInt64]:
    keys, counts = in_result_order(counted, min_count, top)
    return _words(keys, form, rank), counts


def _words(keys: UInt64, form: Form, rank: UInt32 | None) -> UInt32:
    inverse = np.zeros(0 if rank is None else len(rank), np.uint32)
    if rank is not None:
        inverse[rank] = np.arange(len(rank), dtype=np.uint32)
    return unpack(keys, form, inverse)


def _longest(rules: Rules, root_offsets: Int64, roots: UInt32, enough: int) -> int:
    """Words of the longest document, or of any rule if those are ``enough``."""
    longest_rule = int(rules.lengths.max(initial=1))
    if longest_rule >= enough:
        return longest_rule
    is_rule = roots >= rules.terminals
    lengths = np.ones(len(roots), np.int64)
    lengths[is_rule] = rules.lengths[roots[is_rule] - np.uint32(rules.terminals)]
    before = _before(lengths)
    return int((before[root_offsets[1:]] - before[root_offsets[:-1]]).max(initial=0))
