"""Runs an automaton over words and gaps through rows whose gaps are spelled out; each rule once for each state."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.patterns.match import FOUND, REST, Automaton, Text, run_gap, step
from polars_tadoc.kernels.host.rows.expand import OK
from polars_tadoc.runtime.addresses import load_u8, trailing_zeros
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt16, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, kernel, polled_kernel, polled_njit

FOUND_AFTER, FOUND_BEFORE = 254, 255
"""State after the first match, if one suffices: after words, and after gaps."""

LOUD_GAP = 0x100
"""Bit of a gap that completes a match by itself."""

UNKNOWN, MATCHES = 14, 15
"""Bits of the state after a symbol: it is not known before the symbol is read; there is a match inside."""

ALWAYS = 1 << UNKNOWN | 1 << MATCHES
"""These bits."""

STOPPED = -1


class Exact(NamedTuple):
    """Rules, then rows; see :class:`polars_tadoc.rows.pattern_exact.ExactRows`."""

    vocabulary_size: int
    rule_count: int
    offsets: Int64
    symbols: UInt32
    gaps: UInt32
    short_lengths: UInt8


class WordSteps(NamedTuple):
    """An automaton over words and gaps: states before words, and states after words."""

    classes: UInt8
    """Class by word."""
    exits: Any
    """By class and state before it: 1 plus the state after it, and 256 times the matches; uint8 without matches."""
    width: int
    """Number of states before words."""
    entries: UInt8
    """By state after a word and gap code: the state before the next word."""
    entry_counts: UInt32
    """Matches likewise; empty if one suffices."""
    codes: int
    """Number of gap codes, and one more: no gap."""
    start: int
    """State before a row, of those after words."""
    ends_after: UInt32
    """By state after a word: matches that the end completes."""
    ends_before: UInt32
    """By state after a gap, likewise."""
    is_over: bool
    """Whether no match can begin in the first state after a word."""
    gap_bits: UInt16
    """By gap code: bit of the state before a word after it, from the first state after a word; 0 for the first one."""
    alive: UInt16
    """By gap code: bits of the states after a word from which it leads elsewhere than from the first."""


class Quiet(NamedTuple):
    """Which symbols change nothing.

    A symbol is quiet between two gaps if, from the first state, the text goes on as if it had ended in the first state,
    without a match: ``masks`` and the bits of the gap before it have nothing in common, nor ``outs`` and the states
    that the gap after it can continue.
    """

    masks: UInt8
    """By symbol: bits of the states before it from which it leads elsewhere than from the first one."""
    outs: UInt16
    """By symbol: bit of the state after it, from the first one before it; 0 if it is the first one."""


@kernel
def find_common(gaps_at: int, gap_offsets: Int64, order: UInt32, common: UInt32) -> None:
    """Fill the bytes that each gap, in some order of codes, has in common with the one before it."""
    for k in range(1, len(order)):
        one, other = gap_offsets[order[k - 1] - nb.uint32(1)], gap_offsets[order[k] - nb.uint32(1)]
        length = min(gap_offsets[order[k - 1]] - one, gap_offsets[order[k]] - other)
        same = 0
        while same < length and load_u8(nb.uint64(gaps_at + one + same)) == load_u8(nb.uint64(gaps_at + other + same)):
            same += 1
        common[k] = same


@kernel
def run_gaps_apart(
    text: Text,
    automaton: Automaton,
    state: int,
    order: UInt32,
    common: UInt32,
    usual_exits: UInt16,
    usual_counts: UInt32,
    codes: UInt32,
    exits: UInt16,
    counts: UInt32,
) -> int:
    """List the gaps whose state after them, or whose matches, differ from those from ``REST``; return their number.

    Parameters
    ----------
    text, automaton
        Gaps, and the pattern.
    state
        State before the gap.
    order, common
        Gap codes from 1 on, ascending by bytes, and the bytes in common with the one before.
    usual_exits, usual_counts
        By gap code: state after it, and matches, from ``REST``.
    codes, exits, counts
        Output: gap code, state after it, matches.

    """
    found = 0
    after, count = run_gap(0, state, text, automaton)
    if after != usual_exits[0] or count != usual_counts[0]:
        codes[found], exits[found], counts[found] = 0, after, count
        found += 1
    equal_from = nb.int64(-1)  # the byte from which on both runs through the last gap were in the same state
    for k in range(len(order)):
        if equal_from >= 0 and nb.int64(common[k]) >= equal_from:
            continue
        equal_from = nb.int64(-1)
        code = order[k]
        first = nb.uint64(text.gaps_at + text.gap_offsets[code - nb.uint32(1)])
        stop = nb.uint64(text.gaps_at + text.gap_offsets[code])
        own, other, at = nb.uint64(state), nb.uint64(REST), first
        count, less = nb.uint64(0), nb.uint64(0)
        while at < stop and own != FOUND:
            other, _, more = step(at, other, automaton)
            less += more
            own, at, more = step(at, own, automaton)
            count += more
            if own == other and count == less:
                equal_from = nb.int64(at - first)
                break
        if equal_from < 0 and (own != usual_exits[code] or count != usual_counts[code]):
            codes[found], exits[found], counts[found] = code, own, count
            found += 1
    return found


@inner
def span_of(i: int, first: int, offsets: Int64) -> Any:
    """Return the number of the span that a place is in: of the spans between offsets, from some earlier one on."""
    step, end = 1, len(offsets) - 1
    while first + step < end and offsets[first + step] <= i:
        first += step
        step *= 2
    above = min(first + step, end)
    while above - first > 1:
        middle = (first + above) >> 1
        if offsets[middle] <= i:
            first = middle
        else:
            above = middle
    return first


@kernel
def find_in_words(data: UInt8, size: int, offsets: Int64, part: UInt8, words: UInt32) -> int:
    """List the words that contain some bytes; return their number.

    Parameters
    ----------
    data, size
        The bytes of all words, one after another, and their number.
    offsets
        Offsets of words.
    part
        The bytes.
    words
        Output.

    """
    length = len(part)
    first, last, ahead = part[0], part[length - 1], nb.uint64(length - 1)
    found, word, at = 0, 0, 0
    while at + length <= size:
        stop = min(at + 64, size - length + 1)
        some = nb.uint8(stop - at < 64)
        if stop - at == 64:
            begin = nb.uint64(at)
            for i in range(64):  # the compiler makes vectors of this
                here = begin + nb.uint64(i)
                some |= nb.uint8((data[here] == first) & (data[here + ahead] == last))
        if some:
            while at < stop:
                i = at
                at += 1
                if data[i] != first or data[i + length - 1] != last:
                    continue
                same = True
                for k in range(1, length - 1):
                    if data[i + k] != part[k]:
                        same = False
                        break
                if not same:
                    continue
                word = span_of(i, word, offsets)
                if i + length <= offsets[word + 1]:
                    words[found] = word
                    found += 1
                    at = stop = nb.int64(offsets[word + 1])
        at = stop
    return found


@inner
def _is_loud(symbol: int, before: int, following: int, steps: WordSteps, quiet: Quiet) -> Any:
    """Tell whether a symbol between two gaps is not quiet; for the second gap, its bits."""
    own = (nb.uint16(quiet.masks[symbol]) | nb.uint16(LOUD_GAP)) & steps.gap_bits[before]
    return own | quiet.outs[symbol] & nb.uint16(following)


@inner
def _sum_up(rule: int, exact: Exact, steps: WordSteps, quiet: Quiet) -> None:
    """Fill a rule's bits by those of its symbols."""
    first, stop = exact.offsets[rule], exact.offsets[rule + 1]
    symbol = exact.vocabulary_size + rule
    loud = nb.uint16(0)
    if stop - first > 1:
        loud = quiet.outs[exact.symbols[first]] & steps.alive[exact.gaps[first + 1]]
    for i in range(first + 1, stop - 1):
        if loud:
            break
        loud = _is_loud(exact.symbols[i], exact.gaps[i], steps.alive[exact.gaps[i + 1]], steps, quiet)
    last = exact.symbols[stop - 1]
    own = quiet.outs[last]
    if stop - first > 1:
        loud |= _is_loud(last, exact.gaps[stop - 1], nb.uint16(ALWAYS), steps, quiet)
    else:
        loud |= own & nb.uint16(ALWAYS)
    quiet.outs[symbol] = nb.uint16(1 << UNKNOWN) if loud else own
    quiet.masks[symbol] = quiet.masks[exact.symbols[first]]


@polled_kernel
def sum_up_all(exact: Exact, steps: WordSteps, quiet: Quiet) -> None:
    """Fill the bits of all rules by those of words."""
    began = interrupts()
    for rule in range(exact.rule_count):
        if rule & 0xFFF == 0 and interrupts() != began:
            return
        _sum_up(rule, exact, steps, quiet)


@polled_kernel
def sum_up_some(
    exact: Exact,
    steps: WordSteps,
    rule_offsets: UInt32,
    rules: UInt32,
    place_offsets: UInt32,
    places: UInt32,
    words: UInt32,
    must: bool,
    pending: UInt64,
    quiet: Quiet,
    bits: UInt64,
) -> None:
    """Fill the bits of rules that contain some words, and mark the places in rows that are not quiet.

    Parameters
    ----------
    exact, steps
        Rules and rows, and the pattern.
    rule_offsets, rules, place_offsets, places
        By symbol: the rules that contain it, and its places in rows.
    words
        The words; all others are quiet.
    must
        Whether all places of these words are to be marked, and rules with them.
    pending
        Bitmap of rules; initially zero.
    quiet
        Of the words; of rules initially zero.
    bits
        Output: bitmap of places; initially zero.

    """
    began = interrupts()
    one, size = nb.uint64(1), exact.vocabulary_size
    begin = exact.offsets[exact.rule_count]
    block, k = -1, 0
    while interrupts() == began:
        if k < len(words):
            symbol = nb.int64(words[k])
            k += 1
        else:
            block = max(block, 0)
            while block < len(pending) and pending[block] == 0:
                block += 1
            if block == len(pending):
                break
            own = pending[block]
            pending[block] = own & (own - one)  # only higher rules contain a rule: their bits come later
            rule = (block << 6) + trailing_zeros(own)
            symbol = size + rule
            if must:
                quiet.outs[symbol] = 1 << UNKNOWN
            else:
                _sum_up(rule, exact, steps, quiet)
                if quiet.outs[symbol] == 0 and quiet.masks[symbol] == 0:
                    continue
        for i in range(rule_offsets[symbol], rule_offsets[symbol + 1]):
            pending[rules[i] >> nb.uint32(6)] |= one << nb.uint64(rules[i] & nb.uint32(63))
        for i in range(place_offsets[symbol], place_offsets[symbol + 1]):
            at = begin + nb.int64(places[i])
            if must or _is_loud(symbol, exact.gaps[at], steps.alive[exact.gaps[at + 1]], steps, quiet):
                bits[places[i] >> nb.uint32(6)] |= one << nb.uint64(places[i] & nb.uint32(63))


@inner
def _next_bit(bits: UInt64, at: int, stop: int) -> Any:
    """Return the first set bit's place from ``at`` on; ``stop`` or more if there is none before it."""
    if at >= stop:
        return nb.int64(stop)
    block = at >> 6
    own = bits[block] >> nb.uint64(at & 63) << nb.uint64(at & 63)
    last = (stop - 1) >> 6
    while own == 0:
        block += 1
        if block > last:
            return nb.int64(stop)
        own = bits[block]
    return nb.int64((block << 6) + trailing_zeros(own))


@polled_njit
def run_rows(
    exact: Exact,
    steps: WordSteps,
    quiet: Quiet,
    bits: UInt64,
    back: int,
    all_rows: bool,
    levels: int,
    table: Any,
    first: int,
    stop_row: int,
    counts: Any,
) -> int:
    """Count the matches in rows, or tell whether there is one.

    Threads may share a table: an entry has one value, whichever thread writes it.

    Parameters
    ----------
    exact, steps, quiet
        Rules and rows, the pattern, and which symbols are quiet.
    bits
        Bitmap of the places in rows of symbols that are not quiet; empty: unknown.
    back
        If each match holds one of some words: words before it in which the match may begin. Then ``quiet.outs`` only
        tells which symbols have such a word. Otherwise -1.
    all_rows
        Whether rows without a symbol that is not quiet may match.
    levels
        Levels of rules.
    table
        By rule and state before it: as ``steps.exits``; 0: unknown. Initially zero.
    first, stop_row
        The rows to read.
    counts
        Output by row; initially zero.

    """
    began = interrupts()
    size, width, rules = exact.vocabulary_size, steps.width, exact.rule_count
    begin, end = exact.offsets[rules], nb.int64(stop_row)
    at, stop, until = np.empty(levels + 2, np.int64), np.empty(levels + 2, np.int64), np.empty(levels + 2, np.int64)
    slot, before = np.empty(levels + 2, np.int64), np.empty(levels + 2, np.uint64)
    row, reads, places = nb.int64(first), 0, exact.offsets[rules + end] - begin
    while row < end:
        if interrupts() != began:
            return STOPPED
        if not all_rows and len(bits):
            place = begin + _next_bit(bits, exact.offsets[rules + row] - begin, places)
            if place >= begin + places:
                break
            step = 1
            while row + step < end and exact.offsets[rules + row + step] <= place:
                row += step
                step *= 2
            above = min(end, row + step)
            while above - row > 1:
                middle = (row + above) >> 1
                if exact.offsets[rules + middle] <= place:
                    row = middle
                else:
                    above = middle
        at[0], stop[0] = exact.offsets[rules + row], exact.offsets[rules + row + 1] - 1
        until[0] = at[0]
        depth, state, entry = 0, nb.int64(steps.start), nb.int64(-1)
        count = nb.uint64(0)
        while state != FOUND_AFTER:
            i = at[depth]
            if i == stop[depth]:
                if depth == 0:
                    break
                table[slot[depth]] = (count - before[depth]) << nb.uint64(8) | nb.uint64(state + 1)
                depth -= 1
                continue
            reads += 1
            if reads & 0xFFFF == 0 and interrupts() != began:
                return STOPPED
            if entry < 0:
                if state == 0 and i >= until[depth]:
                    j, last = i, stop[depth]
                    if steps.is_over:
                        j = last
                    elif depth == 0 and len(bits):
                        j = min(last, begin + _next_bit(bits, i - begin, last - begin))
                    elif back >= 0:
                        while j < last and quiet.outs[exact.symbols[j]] == 0:
                            j += 1
                    else:
                        inside = last - (depth > 0)
                        code = exact.gaps[i]
                        while j < inside:
                            next_code = exact.gaps[j + 1]
                            if _is_loud(exact.symbols[j], code, steps.alive[next_code], steps, quiet):
                                break
                            code = next_code
                            j += 1
                        if j == inside and depth > 0:
                            j += not _is_loud(exact.symbols[j], exact.gaps[j], nb.uint16(ALWAYS), steps, quiet)
                    if j > i:
                        if back > 0:
                            words, k = 0, j
                            while k > i and words < back:
                                k -= 1
                                words += nb.int64(exact.short_lengths[exact.symbols[k]])
                            at[depth], until[depth] = k, j
                            continue
                        at[depth] = j
                        if back < 0 and j == last and not steps.is_over:
                            own_out = quiet.outs[exact.symbols[j - 1]]
                            if own_out:
                                state = nb.int64(trailing_zeros(nb.uint64(own_out)))
                        continue
                own = state * steps.codes + nb.int64(exact.gaps[i])
                entry = nb.int64(steps.entries[own])
                if len(steps.entry_counts):
                    count += nb.uint64(steps.entry_counts[own])
                if entry == FOUND_BEFORE:
                    state = nb.int64(FOUND_AFTER)
                    break
            symbol = nb.int64(exact.symbols[i])
            at[depth] = i + 1
            if symbol < size:
                value = nb.uint64(steps.exits[nb.int64(steps.classes[symbol]) * width + entry])
            else:
                if back < 0 and not steps.is_over:
                    if nb.int64(quiet.masks[symbol]) >> min(entry, 7) & 1 == 0:
                        entry = nb.int64(0)
                    out = quiet.outs[symbol]
                    if entry == 0 and out & nb.uint16(ALWAYS) == 0:
                        state = nb.int64(trailing_zeros(nb.uint64(out))) if out else nb.int64(0)
                        entry = nb.int64(-1)
                        continue
                value = nb.uint64(table[(symbol - size) * width + entry])
            if value == 0:
                depth += 1
                slot[depth], before[depth] = (symbol - size) * width + entry, count
                at[depth], stop[depth] = exact.offsets[symbol - size], exact.offsets[symbol - size + 1]
                until[depth] = at[depth]
                continue
            state = nb.int64(value & nb.uint64(0xFF)) - 1
            count += value >> nb.uint64(8)
            entry = nb.int64(-1)
        while depth > 0:  # a match was found inside rules
            table[slot[depth]] = FOUND_AFTER + 1
            depth -= 1
        if state != FOUND_AFTER:
            code = exact.gaps[stop[0]]
            if nb.int64(code) == steps.codes - 1:
                count += nb.uint64(steps.ends_after[state])
            else:
                own = state * steps.codes + nb.int64(code)
                entry = nb.int64(steps.entries[own])
                if len(steps.entry_counts):
                    count += nb.uint64(steps.entry_counts[own])
                if entry == FOUND_BEFORE:
                    state = nb.int64(FOUND_AFTER)
                else:
                    count += nb.uint64(steps.ends_before[entry])
        counts[row] = nb.uint64(1) if state == FOUND_AFTER else count
        row += 1
    return OK
