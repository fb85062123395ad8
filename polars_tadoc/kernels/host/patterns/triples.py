"""Matches rows by their triples: a symbol with the gaps before and after it, of which rows have few distinct ones.

In the first state after a word, each gap leads to a base state. A triple is quiet if, from the base state of its first
gap, its symbol completes no match and the gap after it leads to that gap's base state again. What a triple does is
found once per pattern; rows of quiet triples are not read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.patterns.exact_rows import FOUND_AFTER, FOUND_BEFORE, STOPPED, Exact, WordSteps
from polars_tadoc.kernels.host.rows.expand import OK
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, kernel, polled_kernel, polled_njit

QUIET, OPEN, MATCH = 0, 1, 2
"""Verdicts on a triple: it does nothing; its row must be read; its row matches, whatever state it is entered in."""

RESTFUL, STILL = 1, 2
"""A symbol without a match leads to the first state: from that state, or from any; 0: neither."""

_FOUND_BIT = 63


class Triples(NamedTuple):
    """Distinct triples; number 0 is none, quiet."""

    symbols: UInt32
    """The symbol; the number of all symbols for a row without words."""
    before: UInt32
    """Code of the gap before; plus the number of codes at a row's start."""
    after: UInt32
    """Code of the gap after; plus the number of codes at a row's end."""


@polled_kernel
def number_triples(exact: Exact, codes: int, slots: UInt32, triples: Triples, numbers: UInt32) -> int:
    """Number the distinct triples of rows; return how many there are.

    Parameters
    ----------
    exact
        Rules and rows.
    codes
        Number of gap codes, and one more: no gap.
    slots
        Hash table: number of the triple; initially zero.
    triples
        Output; with room for one per place, and one more.
    numbers
        Output: number by place in rows, from the first row's first on; a place behind a row's last word has 0.

    """
    began = interrupts()
    one, mask = nb.uint64(1), nb.uint64(len(slots) - 1)
    rules, count = exact.rule_count, 1
    begin = exact.offsets[rules]
    triples.symbols[0] = triples.before[0] = triples.after[0] = nb.uint32(0xFFFFFFFF)
    for row in range(rules, len(exact.offsets) - 1):
        first, stop = exact.offsets[row], exact.offsets[row + 1] - 1
        numbers[stop - begin] = 0
        for i in range(first, max(stop, first + 1)):
            if i & 0xFFFF == 0 and interrupts() != began:
                return 0
            symbol, before = exact.symbols[i], exact.gaps[i]
            if i == first:
                before += nb.uint32(codes)
            after = nb.uint32(0)
            if i < stop:
                after = exact.gaps[i + 1]
                if i + 1 == stop:
                    after += nb.uint32(codes)
            key = (nb.uint64(symbol) << nb.uint64(32) | nb.uint64(before)) * nb.uint64(0x9E3779B97F4A7C15)
            key = (key ^ (key >> nb.uint64(29)) ^ nb.uint64(after)) * nb.uint64(0xBF58476D1CE4E5B9)
            at = (key >> nb.uint64(31)) & mask
            number = slots[at]
            while number != 0 and (
                triples.symbols[number] != symbol or triples.before[number] != before or triples.after[number] != after
            ):
                at = (at + one) & mask
                number = slots[at]
            if number == 0:
                number = nb.uint32(count)
                slots[at] = number
                triples.symbols[count], triples.before[count], triples.after[count] = symbol, before, after
                count += 1
            numbers[i - begin] = number
    return count


@polled_kernel
def list_rows(offsets: Int64, numbers: UInt32, last: UInt32, starts: UInt32, rows: UInt32) -> None:
    """List the rows that have each triple, ascending, each once.

    Parameters
    ----------
    offsets
        Offsets of rows; the first is where ``numbers`` begin.
    numbers
        Triple by place.
    last
        By triple; initially zero.
    starts
        Output: offsets by triple, one more than there are triples; initially zero.
    rows
        Output: with room for one per place.

    """
    began = interrupts()
    begin, count = offsets[0], len(starts) - 1
    for is_filled in range(2):
        for row in range(len(offsets) - 1):
            for i in range(offsets[row] - begin, offsets[row + 1] - begin):
                if i & 0xFFFF == 0 and interrupts() != began:
                    return
                triple = numbers[i]
                if triple == 0 or last[triple] == nb.uint32(row + 1):
                    continue
                last[triple] = row + 1
                if is_filled:
                    rows[starts[triple]] = row
                    starts[triple] += nb.uint32(1)
                else:
                    starts[triple + nb.uint32(1)] += nb.uint32(1)
        if is_filled:  # each start has become the next one's
            for triple in range(count, 0, -1):
                starts[triple] = starts[triple - 1]
            starts[0] = 0
        else:
            for triple in range(count):
                starts[triple + 1] += starts[triple]
                last[triple] = 0


@inner
def _after(symbol: int, entry: int, exact: Exact, steps: WordSteps, table: UInt8) -> Any:
    """Return the state after a symbol."""
    if symbol < exact.vocabulary_size:
        return nb.int64(steps.exits[nb.int64(steps.classes[symbol]) * steps.width + entry]) - 1
    return nb.int64(table[(symbol - exact.vocabulary_size) * steps.width + entry]) - 1


@inner
def _is_calm(still: int, entry: int) -> Any:
    """Tell whether a symbol leads to the first state, by what it does and the state before it."""
    return entry != FOUND_BEFORE and (still == STILL or (still == RESTFUL and entry == 0))


@polled_njit
def fill_rules(exact: Exact, steps: WordSteps, longest: int, flags: UInt8, still: UInt8, table: UInt8) -> None:
    """Fill 1 plus the state after each rule, by rule and state before it.

    Parameters
    ----------
    exact, steps
        Rules, and the pattern.
    longest
        Symbols of the longest rule.
    flags
        By symbol: 0 for a rule of nothing but restful words, and gaps that lead from the first state to the first one.
    still
        By symbol: ``RESTFUL``, ``STILL`` or 0; filled for rules.
    table
        Output; initially 1.

    """
    began = interrupts()
    size, width, codes = exact.vocabulary_size, steps.width, steps.codes
    path = np.empty(longest + 1, np.uint8)  # states after each symbol from the first state before the rule:
    for rule in range(exact.rule_count):  # from another one, most rules soon go on alike
        if rule & 0xFF == 0 and interrupts() != began:
            return
        if flags[size + rule] == 0 and width == 1:
            still[size + rule] = STILL
            continue
        first, stop = exact.offsets[rule], exact.offsets[rule + 1]
        is_same, all_still = still[exact.symbols[first]] == STILL, True
        if flags[size + rule] == 0:
            still[size + rule] = STILL if is_same else RESTFUL
            if is_same:
                continue
            for entry in range(1, width):
                state, i = _after(nb.int64(exact.symbols[first]), entry, exact, steps, table), first + 1
                while state != 0 and state != FOUND_AFTER and i < stop:
                    if i & 0xFFFF == 0 and interrupts() != began:
                        return
                    before = nb.int64(steps.entries[state * codes + nb.int64(exact.gaps[i])])
                    if before == FOUND_BEFORE:
                        state = nb.int64(FOUND_AFTER)
                    else:
                        state = _after(nb.int64(exact.symbols[i]), before, exact, steps, table)
                    i += 1
                table[rule * width + entry] = state + 1
            continue
        for entry in range(width):
            if is_same and entry > 0:
                table[rule * width + entry] = table[rule * width]
                continue
            state = nb.int64(0)
            if not is_same:
                state = _after(nb.int64(exact.symbols[first]), entry, exact, steps, table)
            i = first
            while True:
                if i & 0xFFFF == 0 and interrupts() != began:
                    return
                if entry == 0:
                    path[i - first] = state
                elif path[i - first] == state:
                    state = nb.int64(table[rule * width]) - 1
                    break
                i += 1
                if state == 0:
                    while i < stop and _is_calm(still[exact.symbols[i]], steps.entries[exact.gaps[i]]):
                        if entry == 0:
                            path[i - first] = 0
                        i += 1
                if i == stop or state == FOUND_AFTER:
                    break
                before = nb.int64(steps.entries[state * codes + nb.int64(exact.gaps[i])])
                if before == FOUND_BEFORE:
                    state = nb.int64(FOUND_AFTER)
                    break
                state = _after(nb.int64(exact.symbols[i]), before, exact, steps, table)
            if entry == 0:
                while i < stop:  # no state is this one
                    path[i - first] = FOUND_BEFORE
                    i += 1
            table[rule * width + entry] = state + 1
            all_still = all_still and state == 0
        still[size + rule] = STILL if all_still else RESTFUL if table[rule * width] == 1 else 0


@kernel
def find_entries(steps: WordSteps, reached: UInt64) -> None:
    """Fill, by gap code, the bits of the states after it; the last bit if it may complete a match."""
    for state in range(len(steps.ends_after)):
        for code in range(steps.codes):
            entry = nb.uint64(steps.entries[state * steps.codes + code])
            reached[code] |= nb.uint64(1) << min(entry, nb.uint64(_FOUND_BIT))


@inner
def _ends(state: int, code: int, steps: WordSteps) -> Any:
    """Tell whether a row matches by its end after a state and a last gap."""
    if code == steps.codes - 1:
        return steps.ends_after[state] != 0
    entry = nb.int64(steps.entries[state * steps.codes + code])
    return entry == FOUND_BEFORE or steps.ends_before[entry] != 0


@inner
def _outcome(symbol: int, entry: int, after: int, exact: Exact, steps: WordSteps, table: UInt8) -> Any:
    """Return what a symbol between two gaps does that is entered in some state; ``MATCH`` then only from there."""
    codes = steps.codes
    if entry == FOUND_BEFORE:
        return nb.int64(MATCH)
    state = _after(symbol, entry, exact, steps, table)
    if state == FOUND_AFTER:
        return nb.int64(MATCH)
    if after >= codes:
        return nb.int64(MATCH if _ends(state, after - codes, steps) else QUIET)
    following = nb.int64(steps.entries[state * codes + after])
    if following == nb.int64(steps.entries[after]):
        return nb.int64(QUIET)
    return nb.int64(MATCH if following == FOUND_BEFORE else OPEN)


@kernel
def pend_rules(offsets: UInt32, rules: UInt32, codes: UInt32, pending: UInt64) -> None:
    """Set the bits of the rules that have one of some gaps, of lists by gap code."""
    for k in range(len(codes)):
        for i in range(offsets[codes[k]], offsets[codes[k] + nb.uint32(1)]):
            pending[rules[i] >> nb.uint32(6)] |= nb.uint64(1) << nb.uint64(rules[i] & nb.uint32(63))


@kernel
def list_triples(offsets: UInt32, triples: UInt32, symbols: UInt32, count: int, some: UInt32) -> int:
    """List the triples of some symbols, or gaps, of lists by them, behind others; return the number of all."""
    for k in range(len(symbols)):
        for i in range(offsets[symbols[k]], offsets[symbols[k] + nb.uint32(1)]):
            some[count] = triples[i] + nb.uint32(1)
            count += 1
    return count


@polled_kernel
def judge_triples(
    exact: Exact,
    steps: WordSteps,
    table: UInt8,
    still: UInt8,
    reached: UInt64,
    triples: Triples,
    some: UInt32,
    first: int,
    stop: int,
    verdicts: UInt8,
) -> None:
    """Fill what each triple does.

    Parameters
    ----------
    exact, steps, table, still
        Rules, the pattern, the states after rules, and what symbols do.
    reached
        By gap code: bits of the states after it.
    triples
        The triples.
    some
        The ones to judge; empty: all but number 0.
    first, stop
        Places in ``some``, or in all after number 0.
    verdicts
        Output by triple: ``QUIET``, ``OPEN`` or ``MATCH``.

    """
    began = interrupts()
    codes, symbols = steps.codes, exact.vocabulary_size + exact.rule_count
    start = steps.start * codes
    for place in range(first, stop):
        if place & 0xFFF == 0 and interrupts() != began:
            return
        k = nb.int64(some[place]) if len(some) else place + 1
        symbol, before, after = nb.int64(triples.symbols[k]), nb.int64(triples.before[k]), nb.int64(triples.after[k])
        if symbol >= symbols:
            verdicts[k] = MATCH if _ends(nb.int64(steps.start), before - codes, steps) else QUIET
            continue
        entry = nb.int64(steps.entries[before if before < codes else start + before - codes])
        if after < codes and _is_calm(still[symbol], entry):
            verdicts[k] = QUIET
            continue
        own = _outcome(symbol, entry, after, exact, steps, table)
        if own == MATCH and before < codes:
            others = reached[before]
            for other in range(_FOUND_BIT):
                if others >> nb.uint64(other) == 0:
                    break
                is_other = others >> nb.uint64(other) & nb.uint64(1) and other != entry
                if is_other and _outcome(symbol, other, after, exact, steps, table) != MATCH:
                    own = nb.int64(OPEN)
                    break
        verdicts[k] = own


@polled_kernel
def mark_rows(starts: UInt32, rows: UInt32, triples: UInt32, mark: int, found: UInt8, marked: UInt32) -> int:
    """Mark rows that have one of some triples, if they have no mark; return their number.

    Parameters
    ----------
    starts, rows, triples
        Rows by triple, and the triples.
    mark
        The mark.
    found
        Marks by row.
    marked
        Output: the rows, if there is room for one.

    """
    began = interrupts()
    count = 0
    for k in range(len(triples)):
        if k & 0xFFF == 0 and interrupts() != began:
            return 0
        for i in range(starts[triples[k]], starts[triples[k] + nb.uint32(1)]):
            row = rows[i]
            if found[row] == 0:
                found[row] = mark
                if len(marked):
                    marked[count] = row
                count += 1
    return count


@polled_kernel
def read_rows(
    exact: Exact,
    steps: WordSteps,
    table: UInt8,
    numbers: UInt32,
    verdicts: UInt8,
    some: UInt32,
    first: int,
    stop: int,
    found: UInt8,
) -> int:
    """Tell which rows match.

    Parameters
    ----------
    exact, steps, table
        Rules and rows, the pattern, and the states after rules.
    numbers, verdicts
        Triple by place, and what it does.
    some
        The rows to read; empty: all.
    first, stop
        Places in ``some`` to read, or rows.
    found
        Output by row: 1 if it matches, else 0; ``MATCH`` beforehand if that is known, and it remains.

    """
    began = interrupts()
    rules, codes = exact.rule_count, steps.codes
    begin = exact.offsets[rules]
    for k in range(first, stop):
        if k & 0xFF == 0 and interrupts() != began:
            return STOPPED
        row = nb.int64(some[k]) if len(some) else k
        if found[row] == MATCH:
            continue
        start, last = exact.offsets[rules + row], exact.offsets[rules + row + 1] - 1
        i, matches = start, False
        while i <= last and not matches:
            own = verdicts[numbers[i - begin]]
            if own == QUIET:
                i += 1
                continue
            if own == MATCH:
                matches = True
                break
            base = steps.start * codes if i == start else 0
            entry = nb.int64(steps.entries[base + nb.int64(exact.gaps[i])])
            while entry != FOUND_BEFORE:
                if i & 0xFFFF == 0 and interrupts() != began:
                    return STOPPED
                state = _after(nb.int64(exact.symbols[i]), entry, exact, steps, table)
                if state == FOUND_AFTER:
                    matches = True
                    break
                i += 1
                code = nb.int64(exact.gaps[i])
                if i == last:
                    matches = _ends(state, code, steps)
                    i += 1
                    break
                entry = nb.int64(steps.entries[state * codes + code])
                if entry == nb.int64(steps.entries[code]):
                    break
            matches |= entry == FOUND_BEFORE
        found[row] = matches
    return OK
