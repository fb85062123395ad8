"""Sequences and pairs of words on rules: heads and tails, own windows, own pairs, derived rules.

Each window of a document has one lowest rule (or the document) that holds it: there it spans two or more children.
Heads and tails, the first and last words of each rule, give the words of all windows without expanding anything
(G-TADOC, Zhang et al., ICDE 2021, section IV-D).

Indices are unsigned in kernels: one that might be negative costs a comparison and a choice each time it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.config import settings, thread_count
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.kernels.cpu.keys import (
    Counted,
    Form,
    Numbered,
    Ranks,
    Shares,
    Spread,
    Tally,
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
Chunk = tuple[int, int]
Bounds = tuple[Int64, Int64, Int64]
"""Of each piece of a body: the first symbol read, the first one whose words windows end at, and the end."""

SIZE = np.uint64(58)
"""Bits that packed words may take where their number, six bits, stands above them."""

AHEAD = 16
"""Symbols of a body whose cache lines are asked for before they are needed."""

BATCH = 1 << 23
"""Keys for each thread that are counted at a time, 64 MiB: fewer would slow down what fits memory easily."""

SHARES = 4
"""Pieces that each thread's windows are cut into at least, where their bodies are long: threads end together."""

MOSTLY = 0.75
"""Own windows by word from which on documents are expanded: rules save less then than reading them costs."""

SMALLEST = 1 << 15
"""Windows of the smallest piece that a body is cut into for that."""

HOT = 8
"""Bits that number the first words, the most frequent ones of a text: counters of their pairs take 256 KiB."""

LEAST_HOT = 1 << 22
"""Pairs of documents' symbols from which on those of hot words are counted aside."""

FEW = 16
"""Documents up to which a posting list is put in order by insertion."""

_0, _1, _2, _8, _255 = (np.uint64(number) for number in (0, 1, 2, 8, 255))
_AHEAD, _FEW = np.uint64(AHEAD), np.uint64(FEW)


ROOM = 8
"""Part of the expansion limit that heads and tails, and windows that are given ids, may have in places."""


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
    rules_from = nb.uint64(terminals)
    for r in range(nb.uint64(len(sizes))):
        size, start, stop = nb.uint64(sizes[r]), nb.uint64(starts[r]), nb.uint64(starts[r + _1])
        filled = _0
        i = nb.uint64(rule_offsets[r])
        while filled < size:
            symbol = nb.uint64(symbols[i])
            i += _1
            if symbol < rules_from:
                words[start + filled] = rank[symbol] if len(rank) > 0 else symbol
                filled += _1
            else:
                head = nb.uint64(starts[symbol - rules_from])
                many = min(nb.uint64(sizes[symbol - rules_from]), size - filled)
                for k in range(many):
                    words[start + filled + k] = words[head + k]
                filled += many
        if stop - start == size:
            continue
        filled = _0
        i = nb.uint64(rule_offsets[r + _1])
        while filled < size:
            i -= _1
            symbol = nb.uint64(symbols[i])
            if symbol < rules_from:
                filled += _1
                words[stop - filled] = rank[symbol] if len(rank) > 0 else symbol
            else:
                tail = nb.uint64(starts[symbol - rules_from + _1]) - _1
                many = min(nb.uint64(sizes[symbol - rules_from]), size - filled)
                for k in range(many):
                    words[stop - filled - _1 - k] = words[tail - k]
                filled += many


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
    width, rules_from = nb.uint64(bits), nb.uint64(terminals)
    top = width * nb.uint64(reach - 1)
    mask = (_1 << width * nb.uint64(reach)) - _1
    for t in range(rules_from):
        ends[_2 * t] = (nb.uint64(rank[t]) << top) | (_1 << SIZE)
        ends[_2 * t + _1] = rank[t]
    for r in range(nb.uint64(len(sizes))):
        head, tail = _0, _0
        size = nb.uint64(sizes[r])
        filled = _0
        i = nb.uint64(rule_offsets[r])
        while filled < size:
            child = ends[_2 * nb.uint64(symbols[i])]
            head |= (child & mask) >> (width * filled)
            filled += child >> SIZE
            i += _1
        filled = _0
        i = nb.uint64(rule_offsets[r + _1])
        while filled < size:
            i -= _1
            place = _2 * nb.uint64(symbols[i])
            tail |= ends[place + _1] << (width * filled)
            filled += ends[place] >> SIZE
        at = _2 * (rules_from + r)
        ends[at] = head | (size << SIZE)
        ends[at + _1] = tail & mask


@nb.njit(nogil=True, cache=True)
def _count_windows(
    terminals: int,
    symbols: UInt32,
    spans: UInt32,
    reach: int,
    starts: Int64,
    firsts: Int64,
    stops: Int64,
    first: int,
    stop: int,
    counts: Int64,
) -> None:
    """Count the own windows of pieces: one ends at each word of their children's heads, but for an owner's first ones.

    ``spans`` are the words of heads: a terminal's, then each rule's.
    """
    rules_from, most = nb.uint64(terminals), nb.uint64(reach)
    for piece in range(nb.uint64(first), nb.uint64(stop)):
        total = _0
        for i in range(nb.uint64(starts[piece]), nb.uint64(firsts[piece])):
            total += nb.uint64(spans[max(nb.uint64(symbols[i]) + _1, rules_from) - rules_from])
        before = max(total, most)
        for i in range(nb.uint64(firsts[piece]), nb.uint64(stops[piece])):
            total += nb.uint64(spans[max(nb.uint64(symbols[i]) + _1, rules_from) - rules_from])
        counts[piece] = max(total, most) - before


@nb.njit(nogil=True, cache=True)
def _write_packed(
    symbols: UInt32,
    ends: UInt64,
    reach: int,
    bits: int,
    starts: Int64,
    firsts: Int64,
    stops: Int64,
    places: Int64,
    first: int,
    stop: int,
    keys: UInt64,
) -> None:
    """Write the own windows of pieces as packed ranks; see :func:`_pack_ends`."""
    width, most = nb.uint64(bits), nb.uint64(reach)
    mask = nb.uint64(0xFFFFFFFFFFFFFFFF) >> nb.uint64(64 - bits * (reach + 1))
    words = (_1 << width * most) - _1
    last, limit = nb.uint64(len(symbols)) - _1, nb.uint64(places[stop])
    for piece in range(nb.uint64(first), nb.uint64(stop)):
        at = nb.uint64(places[piece])
        if nb.uint64(places[piece + _1]) == at:
            continue
        before, packed, own = _0, _0, nb.uint64(firsts[piece])
        for i in range(nb.uint64(starts[piece]), nb.uint64(stops[piece])):
            prefetch(ends, nb.int64(_2 * nb.uint64(symbols[min(i + _AHEAD, last)])))
            child = _2 * nb.uint64(symbols[i])
            head, size = ends[child] & words, ends[child] >> SIZE
            if i < own:
                before = min(most, before + size)
            elif before == most and at + most <= limit:
                for k in range(most):  # what lies beyond the child's words is written over
                    keys[at + k] = ((packed << width * (k + _1)) | (head >> width * (most - _1 - k))) & mask
                at += size
            else:
                for k in range(most - before, size):
                    keys[at] = ((packed << width * (k + _1)) | (head >> width * (most - _1 - k))) & mask
                    at += _1
                before = min(most, before + size)
            packed = (packed << width * size) | ends[child + _1]


@nb.njit(nogil=True, cache=True)
def _write_windows(
    terminals: int,
    symbols: UInt32,
    rank: UInt32,
    sizes: Int64,
    begins: Int64,
    words: UInt32,
    reach: int,
    bits: int,
    lags: Int64,
    starts: Int64,
    firsts: Int64,
    stops: Int64,
    places: Int64,
    first: int,
    stop: int,
    keys: UInt64,
) -> None:
    """Write the own windows of pieces: of each, the terminals that stand ``lags`` before its last one, packed."""
    ring = _1
    while ring <= nb.uint64(reach):
        ring *= _2
    recent = np.zeros(ring, np.uint64)
    ring -= _1
    rules_from, most = nb.uint64(terminals), nb.uint64(reach)
    for piece in range(nb.uint64(first), nb.uint64(stop)):
        at = nb.uint64(places[piece])
        if nb.uint64(places[piece + _1]) == at:
            continue
        before, end = _0, _0
        for i in range(nb.uint64(starts[piece]), nb.uint64(stops[piece])):
            symbol = nb.uint64(symbols[i])
            rule = symbol - rules_from  # beyond all rules where the symbol is a terminal
            is_rule = symbol >= rules_from
            size = nb.uint64(sizes[rule]) if is_rule else _1
            own = nb.uint64(begins[rule]) if is_rule else _0
            for k in range(size):
                if is_rule:
                    recent[end & ring] = words[own + k]
                else:
                    recent[end & ring] = rank[symbol] if len(rank) > 0 else nb.uint32(symbol)
                if before + k >= most and i >= nb.uint64(firsts[piece]):
                    packed = _0
                    for lag in lags:
                        packed = (packed << nb.uint64(bits)) | recent[(end - nb.uint64(lag)) & ring]
                    keys[at] = packed
                    at += _1
                end += _1
            if is_rule:
                stop_at = nb.uint64(begins[rule + _1])
                if stop_at - own > size:
                    for k in range(stop_at - size, stop_at):
                        recent[end & ring] = words[k]
                        end += _1
            before = min(most, before + size)


@nb.njit(nogil=True, cache=True)
def _write_flat(
    symbols: UInt32,
    lags: Int64,
    bits: int,
    stops: Int64,
    places: Int64,
    first: int,
    stop: int,
    keys: UInt64,
) -> None:
    """Write the windows of pieces that name no rules: of each, the symbols ``lags`` before its last one, packed."""
    for piece in range(nb.uint64(first), nb.uint64(stop)):
        ahead = nb.uint64(stops[piece] - places[piece + _1])
        for at in range(nb.uint64(places[piece]), nb.uint64(places[piece + _1])):
            packed = _0
            for lag in lags:
                packed = (packed << nb.uint64(bits)) | nb.uint64(symbols[at + ahead - nb.uint64(lag)])
            keys[at] = packed


@nb.njit(nogil=True, cache=True)
def _measure_documents(
    terminals: int, lengths: UInt64, offsets: Int64, roots: UInt32, first: int, stop: int, sizes: Int64
) -> None:
    """Count the words of documents."""
    rules_from = nb.uint64(terminals)
    for document in range(nb.uint64(first), nb.uint64(stop)):
        total = _0
        for i in range(nb.uint64(offsets[document]), nb.uint64(offsets[document + _1])):
            symbol = nb.uint64(roots[i])
            total += nb.uint64(lengths[symbol - rules_from]) if symbol >= rules_from else _1
        sizes[document] = total


@nb.njit(nogil=True, cache=True)
def _expand(
    terminals: int,
    rank: UInt32,
    begins: Int64,
    words: UInt32,
    offsets: Int64,
    roots: UInt32,
    places: Int64,
    first: int,
    stop: int,
    out: UInt32,
) -> None:
    """Write the words of documents; those of rule r are ``words[begins[r] : begins[r + 1]]``."""
    rules_from, last = nb.uint64(terminals), nb.uint64(len(roots)) - _1
    for document in range(nb.uint64(first), nb.uint64(stop)):
        at = nb.uint64(places[document])
        for i in range(nb.uint64(offsets[document]), nb.uint64(offsets[document + _1])):
            soon = nb.uint64(roots[min(i + _AHEAD, last)])
            if soon >= rules_from:
                prefetch(words, begins[soon - rules_from])
            symbol = nb.uint64(roots[i])
            if symbol < rules_from:
                out[at] = rank[symbol] if len(rank) > 0 else symbol
                at += _1
            else:
                rule = symbol - rules_from
                for k in range(nb.uint64(begins[rule]), nb.uint64(begins[rule + _1])):
                    out[at] = words[k]
                    at += _1


@nb.njit(nogil=True, cache=True)
def _count_pairs(
    terminals: int,
    symbols: UInt32,
    spans: UInt32,
    window: int,
    starts: Int64,
    firsts: Int64,
    stops: Int64,
    first: int,
    stop: int,
    counts: Int64,
) -> None:
    """Count the own pairs of pieces: those of a child's first words with the ones before it."""
    rules_from, most = nb.uint64(terminals), nb.uint64(window)
    for piece in range(nb.uint64(first), nb.uint64(stop)):
        before, total = _0, _0
        own = nb.uint64(firsts[piece])
        for i in range(nb.uint64(starts[piece]), nb.uint64(stops[piece])):
            size = nb.uint64(spans[max(nb.uint64(symbols[i]) + _1, rules_from) - rules_from])
            if i >= own:
                full = min(size, most - before)  # words that pair with all the words before
                total += full * before + (size - full) * most - (size * (size - _1) - full * (full - _1)) // _2
            before = min(most, before + size)
        counts[piece] = total


@nb.njit(nogil=True, cache=True)
def _write_pairs(
    terminals: int,
    symbols: UInt32,
    rank: UInt32,
    sizes: Int64,
    begins: Int64,
    words: UInt32,
    window: int,
    bits: int,
    starts: Int64,
    firsts: Int64,
    stops: Int64,
    places: Int64,
    first: int,
    stop: int,
    keys: UInt64,
    hot: int,
    counters: UInt32,
) -> Any:
    """Write the own pairs of pieces, lower rank in the higher bits; return where they end.

    Words are ranks above ``hot`` bits, which number the hot ones from 1 on. Where there are counters, pairs of two hot
    words are counted there, by both numbers, and not written.
    """
    recent = np.zeros(4 * window + 64, np.uint32)
    room = nb.uint64(len(recent))
    shift, rules_from, most = nb.uint64(bits), nb.uint64(terminals), nb.uint64(window)
    below, aside = nb.uint64(hot), nb.uint64(hot) if len(counters) > 1 else _0
    mask = (_1 << aside) - _1
    at = nb.uint64(places[first])
    for piece in range(nb.uint64(first), nb.uint64(stop)):
        if places[piece + _1] == places[piece]:
            continue
        before, end, owned = _0, _0, nb.uint64(firsts[piece])
        for i in range(nb.uint64(starts[piece]), nb.uint64(stops[piece])):
            symbol = nb.uint64(symbols[i])
            rule = symbol - rules_from  # beyond all rules where the symbol is a terminal
            is_rule = symbol >= rules_from
            size = nb.uint64(sizes[rule]) if is_rule else _1
            own = symbol if is_rule or len(rank) == 0 else nb.uint64(rank[symbol])
            head = nb.uint64(begins[rule]) if is_rule else _0
            for k in range(size if i >= owned else _0):
                word = nb.uint64(words[head + k]) if is_rule else own
                for j in range(end - min(before, most - k), end):
                    other = nb.uint64(recent[j])
                    low, high = min(word, other), max(word, other)
                    keys[at] = low >> below << shift | high >> below
                    low, high = low & mask, high & mask
                    counters[low << aside | high] += nb.uint32(1)  # no branch: half of all pairs are hot
                    at += nb.uint64(low == 0) | nb.uint64(high == 0)
            if end + size > room:
                for k in range(before):
                    recent[k] = recent[end - before + k]
                end = before
            if is_rule:
                tail = nb.uint64(begins[rule + _1]) - size
                for k in range(size):
                    recent[end + k] = words[tail + k]
            else:
                recent[end] = own
            end += size
            before = min(most, before + size)
    return nb.int64(at)


@nb.njit(nogil=True, cache=True)
def _write_derived(
    terminals: int,
    symbols: UInt32,
    long: npt.NDArray[np.bool_],
    spans: UInt32,
    reach: int,
    ids: UInt32,
    derived_terminals: int,
    starts: Int64,
    firsts: Int64,
    stops: Int64,
    places: Int64,
    derived_offsets: Int64,
    first: int,
    stop: int,
    derived: UInt32,
) -> None:
    """Write bodies of own ids and of the children that have ids themselves, in the order in which windows start."""
    rules_from, rules_to = nb.uint64(terminals), nb.uint64(derived_terminals)
    for piece in range(nb.uint64(first), nb.uint64(stop)):
        out = nb.uint64(derived_offsets[piece])
        if out == nb.uint64(derived_offsets[piece + _1]):
            continue
        at = nb.uint64(places[piece])
        missing = nb.uint64(reach)
        for i in range(nb.uint64(starts[piece]), nb.uint64(firsts[piece])):
            missing -= min(missing, nb.uint64(spans[max(nb.uint64(symbols[i]) + _1, rules_from) - rules_from]))
        for i in range(nb.uint64(firsts[piece]), nb.uint64(stops[piece])):
            symbol = nb.uint64(symbols[i])
            span = nb.uint64(spans[max(symbol + _1, rules_from) - rules_from])
            own = span - min(missing, span)
            for k in range(own):
                derived[out + k] = ids[at + k]
            out += own
            at += own
            missing -= span - own
            if symbol >= rules_from and long[symbol - rules_from]:
                derived[out] = rules_to + (symbol - rules_from)
                out += _1
        for i in range(at, nb.uint64(places[piece + _1])):
            derived[out] = ids[i]
            out += _1


@nb.njit(nogil=True, cache=True)
def _count_children(
    symbols: UInt32,
    terminals: int,
    long: npt.NDArray[np.bool_],
    firsts: Int64,
    stops: Int64,
    first: int,
    stop: int,
    sizes: Int64,
) -> None:
    """Add the children that have ids themselves to the sizes of derived bodies."""
    rules_from = nb.uint64(terminals)
    for piece in range(nb.uint64(first), nb.uint64(stop)):
        for i in range(nb.uint64(firsts[piece]), nb.uint64(stops[piece])):
            symbol = nb.uint64(symbols[i])
            sizes[piece] += symbol >= rules_from and long[symbol - rules_from]


@nb.njit(nogil=True, cache=True)
def _measure_postings(offsets: Int64, counts: UInt64, least: int, most: int, sizes: Int64) -> None:
    """Measure what is kept of each posting list: -1 where its counts sum up to less than ``least``."""
    for k in range(nb.uint64(len(sizes))):
        total = _0
        for i in range(nb.uint64(offsets[k]), nb.uint64(offsets[k + _1])):
            total += counts[i]
        sizes[k] = min(offsets[k + _1] - offsets[k], most) if total >= nb.uint64(least) else -1


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
    longest = nb.int64(0)
    for k in range(nb.uint64(first), nb.uint64(stop)):
        if out_offsets[k + _1] > out_offsets[k]:
            longest = max(longest, offsets[k + _1] - offsets[k])
    spare_documents, spare_counts = np.empty(longest, np.uint32), np.empty(longest, np.uint64)
    for k in range(nb.uint64(first), nb.uint64(stop)):
        start, end = nb.uint64(offsets[k]), nb.uint64(offsets[k + _1])
        if out_offsets[k + _1] == out_offsets[k]:
            continue
        if end - start <= _FEW:
            for i in range(start + _1, end):
                document, count = documents[i], counts[i]
                j: Any = i
                while j > start and counts[j - _1] < count:
                    documents[j], counts[j] = documents[j - _1], counts[j - _1]
                    j -= _1
                documents[j], counts[j] = document, count
        else:
            most, fewest = _0, counts[start]
            for i in range(start, end):
                most, fewest = max(most, counts[i]), min(fewest, counts[i])
            shift = _0
            while fewest < most and shift < nb.uint64(64) and most >> shift != 0:
                for c in range(256):
                    histogram[c] = 0
                for i in range(start, end):
                    histogram[_255 - (counts[i] >> shift & _255)] += 1
                before = nb.int64(0)
                for c in range(256):
                    before, histogram[c] = before + histogram[c], before
                for i in range(start, end):
                    digit = _255 - (counts[i] >> shift & _255)
                    to = nb.uint64(histogram[digit])
                    spare_documents[to], spare_counts[to] = documents[i], counts[i]
                    histogram[digit] += 1
                for i in range(start, end):
                    documents[i], counts[i] = spare_documents[i - start], spare_counts[i - start]
                shift += _8
        out = nb.uint64(out_offsets[k])
        for i in range(nb.uint64(out_offsets[k + _1]) - out):
            out_documents[out + i] = documents[start + i]
            out_counts[out + i] = counts[start + i]


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
        _require_room(int(starts[-1]), "the first and last words of rules")
        words = np.empty(starts[-1], np.uint32)
        _fill_ends(rules.terminals, rules.rule_offsets, rules.symbols, rank, sizes, starts, words)
        return cls(rules.terminals, rank, sizes, starts, words, reach)

    def read(self, symbols: UInt32) -> tuple[Any, ...]:
        """What kernels read to write the own windows of bodies of these symbols."""
        return self.terminals, symbols, self.rank, self.sizes, self.starts, self.words, self.reach


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

    def measure(self, symbols: UInt32, pieces: Bounds, chunk: Chunk, counts: Int64) -> None:
        """Count the own windows of pieces."""
        _count_windows(self.terminals, symbols, self.spans, self.reach, *pieces, *chunk, counts)

    def write(self, symbols: UInt32, pieces: Bounds, places: Int64, chunk: Chunk, keys: UInt64) -> None:
        """Write the own windows of pieces from their places on."""
        _write_packed(symbols, self.ends, self.reach, self.form.bits, *pieces, places, *chunk, keys)

    def span(self, symbol: int) -> int:
        """Words of a symbol's head."""
        return int(self.spans[max(0, symbol - self.terminals + 1)])

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

    def measure(self, symbols: UInt32, pieces: Bounds, chunk: Chunk, counts: Int64) -> None:
        """Count the own windows of pieces."""
        _count_windows(self.ends.terminals, symbols, self.spans, self.reach, *pieces, *chunk, counts)

    def write(self, symbols: UInt32, pieces: Bounds, places: Int64, chunk: Chunk, keys: UInt64) -> None:
        """Write the own windows of pieces from their places on."""
        lags = self.reach - np.array(self.form.starts, np.int64)
        _write_windows(*self.ends.read(symbols), self.form.part.width, lags, *pieces, places, *chunk, keys)

    def span(self, symbol: int) -> int:
        """Terminals of a symbol's head."""
        return int(self.spans[max(0, symbol - self.ends.terminals + 1)])

    def lengths(self, lengths: UInt64) -> UInt64:
        """Windows in so many terminals."""
        return np.maximum(lengths, np.uint64(self.reach)) - np.uint64(self.reach)


@dataclass(frozen=True)
class _FlatWindows:
    """Runs of terminals in documents that name no rules, as :class:`_SpreadWindows` has them."""

    reach: int
    form: Ranks | Spread

    @classmethod
    def of(cls, n: int, terminal: Form) -> _FlatWindows:
        """Pack single words one after another, terminals that stand for more as they cover the run."""
        form = Ranks(n, terminal.width) if terminal.words == 1 else Spread.of(terminal, n)
        return cls(n - terminal.words, form)

    @property
    def spans(self) -> UInt32:
        """Terminals of a terminal."""
        return np.ones(1, np.uint32)

    def measure(self, symbols: UInt32, pieces: Bounds, chunk: Chunk, counts: Int64) -> None:
        """Count the windows of pieces."""
        starts, firsts, stops = (bound[slice(*chunk)] for bound in pieces)
        lead = np.maximum(firsts - starts - self.reach, 0)
        counts[slice(*chunk)] = np.maximum(stops - starts - self.reach, 0) - lead

    def write(self, symbols: UInt32, pieces: Bounds, places: Int64, chunk: Chunk, keys: UInt64) -> None:
        """Write the windows of pieces from their places on."""
        starts = np.arange(self.reach + 1) if isinstance(self.form, Ranks) else np.array(self.form.starts, np.int64)
        width = self.form.bits if isinstance(self.form, Ranks) else self.form.part.width
        _write_flat(symbols, self.reach - starts, width, pieces[2], places, *chunk, keys)

    def span(self, symbol: int) -> int:
        """Each symbol is a terminal."""
        return 1

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
    """Pairs of words; heads and tails have as many as two paired words may be apart.

    Words of ``ends`` are ranks above ``hot_bits`` bits, which number the ``hot`` ranks, ascending, from 1 on.
    """

    ends: _Ends
    hot_bits: int
    hot: UInt32

    @classmethod
    def of(cls, bodies: _Bodies, rank: UInt32 | None, window: int) -> _PairWindows:
        """Fill heads and tails; no two words are farther apart than the longest document has words."""
        window = max(min(window, _longest(bodies, window)), 1)
        terminals = bodies.rules.terminals
        if len(bodies.roots) * window < LEAST_HOT or _bits(terminals) + HOT > 32:
            return cls(_Ends.of(bodies.rules, rank, window), 0, np.zeros(0, np.uint32))
        rank = np.arange(terminals, dtype=np.uint32) if rank is None else rank
        hot, words = hot_words(rank)
        return cls(_Ends.of(bodies.rules, words, window), HOT, hot)

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

    def measure(self, symbols: UInt32, pieces: Bounds, chunk: Chunk, counts: Int64) -> None:
        """Count the own pairs of pieces."""
        _count_pairs(self.ends.terminals, symbols, _spans(self.ends.sizes), self.reach, *pieces, *chunk, counts)

    def write(self, symbols: UInt32, pieces: Bounds, places: Int64, chunk: Chunk, keys: UInt64) -> None:
        """Write the own pairs of pieces from their places on."""
        self.write_cold(symbols, pieces, places, chunk, keys, np.zeros(1, np.uint32))

    def write_cold(
        self, symbols: UInt32, pieces: Bounds, places: Int64, chunk: Chunk, keys: UInt64, counters: UInt32
    ) -> Chunk:
        """Write the own pairs of pieces, but count those of two hot words; return where keys stand."""
        read = (*self.ends.read(symbols), self.form.bits, *pieces, places)
        return int(places[chunk[0]]), _write_pairs(*read, *chunk, keys, self.hot_bits, counters)

    def span(self, symbol: int) -> int:
        """Words of a symbol's head."""
        return 1 if symbol < self.ends.terminals else int(self.ends.sizes[symbol - self.ends.terminals])

    def lengths(self, lengths: UInt64) -> UInt64:
        """Pairs in so many words: each word with the ``reach`` before it, the first ones with fewer."""
        near = np.minimum(lengths, np.uint64(self.ends.reach))
        pairs: UInt64 = near * (near - (near > 0)) // np.uint64(2) + (lengths - near) * np.uint64(self.ends.reach)
        return pairs


def hot_words(rank: UInt32) -> tuple[UInt32, UInt32]:
    """Return the ranks of the hot words, the first ones, ascending; and the ranks of all above their hot numbers."""
    hot = np.sort(rank[: (1 << HOT) - 1])
    words = rank << np.uint32(HOT)
    words[: len(hot)] += np.searchsorted(hot, rank[: len(hot)]).astype(np.uint32) + np.uint32(1)
    return hot, words


def hot_pairs(hot: UInt32, bits: int, counters: UInt64) -> tuple[UInt64, UInt64]:
    """Return the keys of pairs of hot words, ranks of so many bits, that were counted by their numbers; and counts."""
    table = counters.reshape(1 << HOT, -1)[1:, 1:]
    low, high = np.nonzero(table)
    ranks = hot.astype(np.uint64)
    return ranks[low] << np.uint64(bits) | ranks[high], table[low, high]


Windows = _PackedWindows | _FlatWindows | _SpreadWindows | _PairWindows
"""How own windows are counted and written."""


@dataclass(frozen=True)
class _Bodies:
    """Rules, the documents over them, how often each rule occurs in these, and their words if those are terminals."""

    rules: Rules
    root_offsets: Int64
    roots: UInt32
    weights: UInt64
    words: int = 0

    @classmethod
    def of(cls, rules: Rules, root_offsets: Int64, roots: UInt32) -> _Bodies:
        """Weigh the rules."""
        weights = rule_weights(rules, roots)
        words = int(weights[: rules.terminals].sum())
        return cls(rules, root_offsets, roots, weights[rules.terminals :], words)


@dataclass(frozen=True)
class _Pieces:
    """Own windows of owners, rules or documents, in pieces that threads and batches take; long bodies are cut.

    ``owners`` is the first piece of each owner, owners + 1.
    """

    windows: Windows
    symbols: UInt32
    bounds: Bounds
    counts: Int64
    owners: Int64

    @classmethod
    def of(
        cls, windows: Windows, offsets: Int64, symbols: UInt32, used: npt.NDArray[np.bool_] | None = None
    ) -> _Pieces:
        """Make each body, or each that is used, a piece."""
        symbols = _read_only(symbols)
        bounds = offsets[:-1], offsets[:-1], offsets[1:]
        counts = _measure(windows, symbols, bounds)
        if used is not None:
            counts[~used] = 0
        return cls(windows, symbols, bounds, counts, np.arange(len(offsets), dtype=np.int64))

    def cut(self, most: int) -> _Pieces:
        """Cut pieces until each has at most so many windows, or one symbol."""
        _, firsts, stops = self.bounds
        parts = np.minimum(-(-self.counts // most), stops - firsts).clip(1)
        if not len(parts) or parts.max() == 1:
            return self
        before = _before(parts)
        piece = np.repeat(np.arange(len(parts)), parts)
        part, sizes = np.arange(len(piece)) - before[piece], (stops - firsts)[piece]
        edges = [firsts[piece] + sizes * k // parts[piece] for k in (part, part + 1)]
        starts, again = self.bounds[0][piece], np.flatnonzero(parts[piece] > 1)
        owner = np.searchsorted(self.owners, piece[again], "right") - 1
        opened = self.bounds[0][self.owners[owner]]
        for k, least in zip(again.tolist(), opened.tolist(), strict=True):
            starts[k] = self._lead(least, int(edges[0][k]))
        counts = self.counts[piece]
        counts[again] = _measure(self.windows, self.symbols, (starts[again], edges[0][again], edges[1][again]))
        bounds = starts, edges[0], edges[1]
        return _Pieces(self.windows, self.symbols, bounds, counts, before[self.owners]).cut(most)

    def _lead(self, least: int, first: int) -> int:
        """Return the symbol from which on there are enough words before ``first`` for its windows."""
        missing = self.windows.reach
        while first > least and missing > 0:
            first -= 1
            missing -= self.windows.span(int(self.symbols[first]))
        return first

    def batches(self, most: int) -> Iterator[tuple[int, int]]:
        """Ranges of pieces that have so many windows together, or one more piece."""
        before, first = _before(self.counts), 0
        while before[first] < before[-1]:
            stop = max(int(np.searchsorted(before, before[first] + most, "right")) - 1, first + 1)
            yield first, stop
            first = stop

    def write(self, keys: UInt64, first: int = 0, stop: int | None = None) -> None:
        """Write the windows' keys one after another."""
        starts, firsts, stops = (bound[first:stop] for bound in self.bounds)
        places = _before(self.counts[first:stop])
        map_parallel(
            lambda chunk: self.windows.write(self.symbols, (starts, firsts, stops), places, chunk, keys),
            weighted_chunks(places),
        )

    def write_cold(self, keys: UInt64, counters: UInt64, first: int = 0, stop: int | None = None) -> Shares:
        """Write the keys of pairs, but add those of two hot words to ``counters``; return where keys stand."""
        windows = self.windows
        assert isinstance(windows, _PairWindows)
        bounds = self.bounds[0][first:stop], self.bounds[1][first:stop], self.bounds[2][first:stop]
        places = _before(self.counts[first:stop])
        chunks = weighted_chunks(places)
        counted = np.zeros((len(chunks), len(counters)), np.uint32)
        shares = map_parallel(
            lambda k: windows.write_cold(self.symbols, bounds, places, chunks[k], keys, counted[k]), range(len(chunks))
        )
        counters += counted.sum(axis=0, dtype=np.uint64)
        return shares


@dataclass(frozen=True)
class _Owned:
    """Own windows of the rules that have weight, and of documents."""

    rules: _Pieces
    documents: _Pieces

    @classmethod
    def by(cls, windows: Windows, bodies: _Bodies) -> _Owned:
        """Cut them so that threads and batches have about equal shares."""
        rules = _Pieces.of(windows, bodies.rules.rule_offsets, bodies.rules.symbols, bodies.weights > 0)
        documents = _Pieces.of(windows, bodies.root_offsets, bodies.roots)
        total = int(rules.counts.sum() + documents.counts.sum())
        most = max(min(total // SHARES, BATCH * thread_count()) // thread_count(), SMALLEST)
        return cls(rules.cut(most), documents.cut(most))

    @property
    def of_rules(self) -> int:
        """Number of windows that rules own."""
        return int(self.rules.counts.sum())

    @property
    def total(self) -> int:
        """Number of windows."""
        return self.of_rules + int(self.documents.counts.sum())

    def keys(self) -> UInt64:
        """Return all keys, the rules' first."""
        keys = np.empty(self.total, np.uint64)
        self.rules.write(keys)
        self.documents.write(keys[self.of_rules :])
        return keys

    def count(self, weights: UInt64) -> Counted:
        """Count the windows, those of rules as often as these occur; some at a time where they are many."""
        most = BATCH * thread_count()
        weights = np.repeat(weights, np.diff(self.rules.owners))
        windows = self.rules.windows
        if isinstance(windows, _PairWindows) and windows.hot_bits > 0:
            return self._count_pairs(windows, weights, most)
        if self.total <= most:
            keys, of_rules = self.keys(), self.of_rules
            return count(keys[of_rules:], keys[:of_rules], np.repeat(weights, self.rules.counts))
        tally = Tally(self.total)
        self._tally_rules(tally, weights, most)
        for first, stop in self.documents.batches(most):
            keys = np.empty(int(self.documents.counts[first:stop].sum()), np.uint64)
            self.documents.write(keys, first, stop)
            tally.add(keys)
        return tally.counted()

    def _tally_rules(self, tally: Tally, weights: UInt64, most: int) -> None:
        for first, stop in self.rules.batches(most):
            sizes = self.rules.counts[first:stop]
            keys = np.empty(int(sizes.sum()), np.uint64)
            self.rules.write(keys, first, stop)
            tally.add(keys, np.repeat(weights[first:stop], sizes))

    def _count_pairs(self, windows: _PairWindows, weights: UInt64, most: int) -> Counted:
        """Count pairs, those of hot words in documents aside: nearly half of a text's, which never are keys."""
        counters = np.zeros(1 << 2 * windows.hot_bits, np.uint64)
        if self.total <= most:
            keys = np.empty(self.total - self.of_rules, np.uint64)
            of_rules = np.empty(self.of_rules, np.uint64)
            self.rules.write(of_rules)
            shares = self.documents.write_cold(keys, counters)
            hot, hot_counts = hot_pairs(windows.hot, windows.form.bits, counters)
            weights = np.append(np.repeat(weights, self.rules.counts), hot_counts)
            return count(keys, np.append(of_rules, hot), weights, shares)
        tally = Tally(self.total)
        self._tally_rules(tally, weights, most)
        for first, stop in self.documents.batches(most):
            keys = np.empty(int(self.documents.counts[first:stop].sum()), np.uint64)
            tally.add(keys, shares=self.documents.write_cold(keys, counters, first, stop))
        tally.add(*hot_pairs(windows.hot, windows.form.bits, counters))
        return tally.counted()


def _read_only(symbols: UInt32) -> UInt32:
    """View symbols as those of documents may be: kernels are compiled for one type, not two."""
    view = symbols.view()
    view.flags.writeable = False
    return view


def _measure(windows: Windows, symbols: UInt32, bounds: Bounds) -> Int64:
    counts = np.zeros(len(bounds[0]), np.int64)
    sizes = _before(bounds[2] - bounds[0])
    map_parallel(lambda chunk: windows.measure(symbols, bounds, chunk, counts), weighted_chunks(sizes))
    return counts


def _require_room(places: int, what: str) -> None:
    """Raise before memory is taken that a long run of words, or a wide window, on nested rules would ask for."""
    limit = settings().expansion_limit // ROOM
    if places > limit:
        raise LimitExceededError(
            f"{what} take {places:,} places where {limit:,} are allowed: ask for shorter runs, a narrower window or "
            "fewer rows; if the data is trusted, raise the limit: tadoc.Config(expansion_limit=…)"
        )


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
        _require_room(owned.total, "the sequences or pairs where symbols meet")
        ids, distinct = dense_ids(owned.keys())
        if isinstance(windows, _FlatWindows):
            counts, places = owned.documents.counts, owned.documents.owners
            plain = replace(rules, terminals=len(distinct))
            flat = _Bodies(plain, _before(counts)[places], ids, bodies.weights)
            return cls(flat, Numbered(distinct, windows.form))
        lengths = windows.lengths(rules.lengths)
        lengths[bodies.weights == 0] = 0
        if len(distinct) + rules.rule_count >= 1 << 32:
            raise LimitExceededError("more distinct sequences and rules than 32-bit symbols can name")
        derive = _Derivation(rules.terminals, windows, lengths > 0, len(distinct))
        rule_bodies = derive(owned.rules, ids[: owned.of_rules], ~derive.long)
        derived = Rules(len(distinct), *rule_bodies, rules.level_offsets, lengths)
        documents = derive(owned.documents, ids[owned.of_rules :])
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
    distinct: int

    def __call__(
        self, pieces: _Pieces, ids: UInt32, unused: npt.NDArray[np.bool_] | None = None
    ) -> tuple[Int64, UInt32]:
        """Return offsets and symbols; bodies of ``unused`` owners are empty."""
        _, firsts, stops = pieces.bounds
        sizes = pieces.counts.copy()
        map_parallel(
            lambda chunk: _count_children(pieces.symbols, self.terminals, self.long, firsts, stops, *chunk, sizes),
            weighted_chunks(_before(stops - firsts)),
        )
        if unused is not None:
            sizes[np.repeat(unused, np.diff(pieces.owners))] = 0
        offsets = _before(sizes)
        derived = np.empty(offsets[-1], np.uint32)
        spans, reach = self.windows.spans, self.windows.reach
        read = (self.terminals, pieces.symbols, self.long, spans, reach, ids, self.distinct, *pieces.bounds)
        places = _before(pieces.counts)
        map_parallel(lambda chunk: _write_derived(*read, places, offsets, *chunk, derived), weighted_chunks(offsets))
        return offsets[pieces.owners], derived


def _expanded(bodies: _Bodies, rank: UInt32 | None, n: int) -> _Bodies | None:
    """Expand documents, words as their ranks, where rules save few windows: None where they save more."""
    rules, offsets, roots = bodies.rules, bodies.root_offsets, bodies.roots
    least = MOSTLY * bodies.words
    if (len(roots) + len(rules.symbols)) * (n - 1) < least or rules.lengths.sum(dtype=np.float64) > bodies.words:
        return None
    if _own_windows(bodies, n) < least:
        return None
    ends = _Ends.of(rules, rank, int(rules.lengths.max(initial=1)))
    sizes = np.empty(len(offsets) - 1, np.int64)
    map_parallel(
        lambda chunk: _measure_documents(rules.terminals, rules.lengths, offsets, roots, *chunk, sizes),
        weighted_chunks(offsets),
    )
    places = _before(sizes)
    words = np.empty(places[-1], np.uint32)
    read = (rules.terminals, ends.rank, ends.starts, ends.words, offsets, roots, places)
    map_parallel(lambda chunk: _expand(*read, *chunk, words), weighted_chunks(places))
    none = np.zeros(0, np.uint64)
    plain = Rules(rules.terminals, np.zeros(1, np.int64), words[:0], np.zeros(1, np.int64), none)
    return _Bodies(plain, places, words, none, bodies.words)


def _own_windows(bodies: _Bodies, n: int) -> int:
    """Count the windows that documents and rules in use own."""
    rules, spans = bodies.rules, _spans(_sizes(bodies.rules, n - 1))

    def count_in(offsets: Int64, symbols: UInt32) -> Int64:
        counts = np.empty(len(offsets) - 1, np.int64)
        read = (rules.terminals, _read_only(symbols), spans, n - 1, offsets[:-1], offsets[:-1], offsets[1:])
        map_parallel(lambda chunk: _count_windows(*read, *chunk, counts), weighted_chunks(offsets))
        return counts

    of_rules = count_in(rules.rule_offsets, rules.symbols)[bodies.weights > 0]
    return int(of_rules.sum() + count_in(bodies.root_offsets, bodies.roots).sum())


def _sequence_windows(bodies: _Bodies, rank: UInt32 | None, n: int) -> tuple[Windows, _Bodies]:
    """Make runs of n words keys of 64 bits (iterated pairing).

    Where the words' ranks do not fit, runs of fewer words become the terminals, and two or three of these, which may
    overlap, tell the words of a run.
    """
    bits = _bits(bodies.rules.terminals)
    if n > 1 and n * bits <= 64 and (n - 1) * bits <= SIZE:
        return _PackedWindows.of(bodies.rules, rank, n), bodies
    expanded = _expanded(bodies, rank, n) if n > 1 else None
    if expanded is not None:
        bodies, rank = expanded, None
    terminal: Form = Ranks(1, bits)
    parts = 3
    while Spread.of(terminal, n).width > 64:
        words = max(min(-(-n // parts), 64 // terminal.width * terminal.words), terminal.words + 1)
        if terminal.words == 1 and expanded is None:
            derived = _Derived.by(*_sequence_windows(bodies, rank, words))
        else:
            derived = _Derived.by(_windows(bodies, None, words, terminal), bodies)
        bodies, terminal, parts = derived.bodies, derived.form, 2
    return _windows(bodies, rank if terminal.words == 1 else None, n, terminal), bodies


def _windows(bodies: _Bodies, rank: UInt32 | None, n: int, terminal: Form) -> Windows:
    if bodies.rules.rule_count == 0 and rank is None:
        return _FlatWindows.of(n, terminal)
    return _SpreadWindows.of(bodies.rules, rank, n, terminal)


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
    bodies = _Bodies.of(rules, root_offsets, roots)
    if n > _longest(bodies, n):
        return np.zeros((0, n), np.uint32), np.zeros(0, np.uint64)
    if n == 1:
        counts = terminal_counts(rules, roots, strategy)
        keys = np.arange(rules.terminals, dtype=np.uint64) if rank is None else rank.astype(np.uint64)
        return _chosen(Counted.of(keys, counts), Ranks(1, _bits(rules.terminals)), rank, min_count, top)
    windows, bodies = _sequence_windows(bodies, rank, n)
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
    bodies = _Bodies.of(rules, root_offsets, roots)
    return _window_counts(_PairWindows.of(bodies, rank, window), bodies, rank, strategy, min_count, top)


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
    bodies = _Bodies.of(rules, root_offsets, roots)
    if n > _longest(bodies, n):
        return np.zeros((0, n), np.uint32), np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.uint64)
    derived = _Derived.by(*_sequence_windows(bodies, rank, n))
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
    bodies = _Bodies.of(rules, root_offsets, roots)
    n = min(n, _longest(bodies, n) + 1)  # of more words there are none
    return _Derived.by(*_sequence_windows(bodies, rank, n)).parts(rank)


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
    bodies = _Bodies.of(rules, root_offsets, roots)
    return _Derived.by(_PairWindows.of(bodies, rank, window), bodies).parts(rank)


def _window_counts(
    windows: Windows, bodies: _Bodies, rank: UInt32 | None, strategy: str, min_count: int, top: int | None
) -> tuple[UInt32, UInt64]:
    if strategy == "bottom_up":
        derived = _Derived.by(windows, bodies)
        totals = terminal_counts(derived.bodies.rules, derived.bodies.roots, strategy)
        return _chosen(Counted.of(derived.form.distinct, totals), windows.form, rank, min_count, top)
    return _chosen(_Owned.by(windows, bodies).count(bodies.weights), windows.form, rank, min_count, top)


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


def _longest(bodies: _Bodies, enough: int) -> int:
    """Words of the longest document, or of any rule of one if those are ``enough``."""
    rules = bodies.rules
    longest_rule = int(rules.lengths.max(initial=1, where=bodies.weights > 0))
    if longest_rule >= enough:
        return longest_rule
    is_rule = bodies.roots >= rules.terminals
    lengths = np.ones(len(bodies.roots), np.int64)
    lengths[is_rule] = rules.lengths[bodies.roots[is_rule] - np.uint32(rules.terminals)]
    before = _before(lengths)
    return int((before[bodies.root_offsets[1:]] - before[bodies.root_offsets[:-1]]).max(initial=0))
