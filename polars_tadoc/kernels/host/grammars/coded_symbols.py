"""Codes a grammar's bodies and its rows as one stream of events, for files.

Rows are read in order. The first use of a rule is replaced by its length and its body, so that no rule is numbered
before it occurs; words are numbered by shape and first occurrence, so that numbers of one length, which are often
alike, are stored together. Events are therefore: end of a row, new word, new rule of
some length, and a symbol that occurred before. Such a symbol is coded as its class, which says about how often it
occurs, and its place in the list of the symbols of that class.

Two streams of :mod:`polars_tadoc.kernels.host.grammars.coded_streams`. The first holds the classes of words, those of
rules, bits of the steps between rules, and the kinds of events. With predictions, kinds follow whether these hit.
Without, kinds are four runs of equal length, one for each state, side by side. The second stream holds places, whose
probabilities are equal. A decoder reads as many events as the counts allow and checks each number.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.grammars.coded_streams import (
    SCALE,
    STATES,
    are_spent,
    code_of,
    count_of,
    explicit,
    load_states,
    next_place,
    place_of,
    read_codes,
    refill,
)
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner

SHAPES = 33
"""Shapes of words: 0 without digits; 1 to 16 the bytes of a word of digits (16: or more), 17 to 32 of other words."""

END, NEW_RULE, LONG_RULE, NEW_WORD, OLD = 0, 2, 19, 20, 20 + SHAPES
"""Kinds: rules of 2 to 18 symbols have a kind each, longer ones one together; words have one for each shape; class
``c`` has kind ``OLD + c``."""

CLASSES = 128
EXACT = 7
"""Up to this number of later uses, a class holds one number only; its symbols leave their list after the last use."""

CONTEXTS = 4
WORD_CLASS, RULE_CLASS, STEP = CONTEXTS, CONTEXTS + 1, CONTEXTS + 2
TABLES = CONTEXTS + 3
"""Tables of frequencies: kinds after a row's end, a new word, a new rule, an old symbol; classes of new words and of
new rules; bits of the steps between rules in the order of first use."""

_POLL = (1 << 12) - 1
"""Between looks for an interrupt, this number of events, less 1, a power of two less 1."""

MAX_MEMBERS = 1 << 23
"""Maximum symbols of a class."""

_LIST = 8
"""Numbers of a list of symbols, by kind: its start, length, values of the high part of a place, their reciprocal, and
low bits of a place."""

ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)

MAX_CODES = 1 << 28
"""Codes of events and symbols are below it, so that a prediction and its confidence are one number."""

_NO_SYMBOL = np.uint32(0xFFFFFFFF)

OK, TRUNCATED, WRONG_COUNT, WRONG_PLACE, OPEN_RULE, WRONG_TABLE, WRONG_END = range(7)


@njit
def class_of(uses: int) -> int:
    """Return the class of a number of later uses: exact up to 7, then four to each power of two."""
    if uses <= EXACT:
        return uses
    shift = 0
    while uses >> shift >= 8:
        shift += 1
    return 4 + 4 * shift + (uses >> shift) - 4


@njit
def classes_of(uses: UInt32, classes: UInt8) -> None:
    """Fill the class of each symbol."""
    for symbol in range(len(uses)):
        classes[symbol] = class_of(nb.int64(uses[symbol]))


@njit
def shapes_of(offsets: Int64, data: UInt8, shapes: UInt8) -> None:
    """Fill the shape of each word."""
    for word in range(len(shapes)):
        digits = 0
        length = offsets[word + 1] - offsets[word]
        for at in range(offsets[word], offsets[word + 1]):
            digits += nb.int64(nb.uint8(data[at] - nb.uint8(48)) < 10)
        shapes[word] = 0 if digits == 0 else min(length, 16) + (0 if digits == length else 16)


@njit
def split_lines(data: UInt8, end: int, lengths: Int64, out: UInt8) -> bool:
    """Copy lines without their ends, and fill their lengths; return whether there are ``len(lengths)``.

    ``out`` has room for ``data``.
    """
    lines, start, last = nb.uint64(0), nb.uint64(0), nb.uint64(end)
    for i in range(nb.uint64(len(data))):
        out[i - lines] = data[i]
        if data[i] == last:
            if lines == nb.uint64(len(lengths)):
                return False
            lengths[lines] = i - start
            lines += nb.uint64(1)
            start = i + nb.uint64(1)
    return bool(start == nb.uint64(len(data)) and lines == nb.uint64(len(lengths)))


@polled
@njit
def order_of_first_use(
    words: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    root_offsets: Int64,
    roots: UInt32,
    shapes: UInt8,
    numbers: UInt32,
    uses: UInt32,
) -> tuple[int, int]:
    """Number words by shape and first use, rules by first use from ``words``; count the uses behind it; by symbol.

    Returns the words and rules that are used.
    """
    shape_ends = np.zeros(SHAPES + 1, np.uint32)
    for word in range(words):
        shape_ends[shapes[word] + 1] += nb.uint32(1)
    for shape in range(SHAPES):
        shape_ends[shape + 1] += shape_ends[shape]
    rules = len(rule_offsets) - 1
    found_words, found_rules, events, began = 0, 0, 0, interrupts()
    following = np.empty(rules + 1, np.int64)
    ends = np.empty(rules + 1, np.int64)
    for s in range(len(numbers)):
        numbers[s] = _NO_SYMBOL
        uses[s] = 0
    for at in range(root_offsets[0], root_offsets[-1]):
        depth = 0
        symbol = nb.int64(roots[at])
        while True:
            events += 1
            if events & _POLL == 0 and interrupts() != began:
                return found_words, found_rules
            if numbers[symbol] != _NO_SYMBOL:
                uses[symbol] += nb.uint32(1)
            elif symbol < words:
                numbers[symbol] = shape_ends[shapes[symbol]]
                shape_ends[shapes[symbol]] += nb.uint32(1)
                found_words += 1
            else:
                numbers[symbol] = words + found_rules
                found_rules += 1
                following[depth] = rule_offsets[symbol - words]
                ends[depth] = rule_offsets[symbol - words + 1]
                depth += 1
            while depth > 0 and following[depth - 1] == ends[depth - 1]:
                depth -= 1
            if depth == 0:
                break
            symbol = nb.int64(symbols[following[depth - 1]])
            following[depth - 1] += 1
    return found_words, found_rules


@polled
@njit
def weigh(words: int, order: UInt32, rule_starts: UInt32, bodies: UInt32, roots: UInt32, weights: UInt64) -> None:
    """Count how often each symbol occurs in the rows, expanded; ``order`` has each rule after those in its body."""
    began = interrupts()
    for at in range(len(roots)):
        if at & _POLL == 0 and interrupts() != began:
            return
        weights[roots[at]] += nb.uint64(1)
    for i in range(len(order) - 1, -1, -1):
        weight = weights[words + order[i]]
        for at in range(nb.int64(rule_starts[order[i]]), nb.int64(rule_starts[order[i] + 1])):
            if at & _POLL == 0 and interrupts() != began:  # places of all rules together: short ones, too
                return
            weights[bodies[at]] += weight


@polled
@njit
def have_levels(words: int, rule_offsets: UInt32, symbols: UInt32, level_offsets: UInt32) -> bool:
    """Tell whether each rule's level is one more than the highest level among the rules in its body."""
    heights, began = np.zeros(len(rule_offsets) - 1, np.uint32), interrupts()
    for level in range(len(level_offsets) - 1):
        for rule in range(nb.int64(level_offsets[level]), nb.int64(level_offsets[level + 1])):
            height = nb.uint32(0)
            for at in range(nb.int64(rule_offsets[rule]), nb.int64(rule_offsets[rule + 1])):
                if at & _POLL == 0 and interrupts() != began:
                    return False
                if symbols[at] >= words:
                    height = max(height, heights[symbols[at] - words])
            if height != level:
                return False
            heights[rule] = height + nb.uint32(1)
    return True


@njit
def steps_between_rules(words: int, level_offsets: UInt32, numbers: UInt32, steps: Int64) -> None:
    """Fill by rule how far its place in its level's order of first use is from the place after the rule before it."""
    rules = len(steps)
    levels = np.empty(rules, np.uint32)
    for level in range(len(level_offsets) - 1):
        for rule in range(nb.int64(level_offsets[level]), nb.int64(level_offsets[level + 1])):
            levels[numbers[words + rule] - words] = level
    following = np.empty(len(level_offsets), np.uint32)
    following[:] = level_offsets
    places = np.empty(rules, np.int64)
    for rule in range(rules):
        places[rule] = following[levels[rule]]
        following[levels[rule]] += nb.uint32(1)
    for level in range(len(level_offsets) - 1):
        expected = nb.int64(level_offsets[level])
        for rule in range(nb.int64(level_offsets[level]), nb.int64(level_offsets[level + 1])):
            place = places[numbers[words + rule] - words]
            steps[rule] = place - expected
            expected = place + 1


@polled
@njit
def order_rules(heights: UInt32, steps: Int64, level_offsets: UInt32, order: UInt32) -> bool:
    """Order the rules, level by level, by the steps between their places in the order of first use.

    Fills the rule, by first use, of each number; False if a step leaves the level or a rule is met twice.
    """
    rules, levels = len(heights), len(level_offsets) - 1
    by_level = np.empty(rules, np.uint32)
    met = np.zeros(rules, np.bool_)
    following = np.empty(levels + 1, np.uint32)
    following[:] = level_offsets
    began = interrupts()
    for rule in range(rules):
        if rule & _POLL == 0 and interrupts() != began:
            return False
        level = heights[rule] - nb.uint32(1)
        by_level[following[level]] = rule
        following[level] += nb.uint32(1)
    for level in range(levels):
        start, stop = nb.int64(level_offsets[level]), nb.int64(level_offsets[level + 1])
        at = start - 1
        for number in range(start, stop):
            if number & _POLL == 0 and interrupts() != began:
                return False
            at += steps[number] + 1
            if at < start or at >= stop or met[at]:
                return False
            met[at] = True
            order[number] = by_level[at]
    return True


@polled
@njit
def renumber(
    order: UInt32, numbers: UInt32, rule_starts: UInt32, bodies: UInt32, rule_offsets: UInt32, symbols: UInt32
) -> None:
    """Write the bodies of the rules in an order, with their offsets; ``numbers`` maps the symbols."""
    out = nb.int64(0)
    began = interrupts()
    for i in range(len(order)):
        rule_offsets[i] = out
        for at in range(nb.int64(rule_starts[order[i]]), nb.int64(rule_starts[order[i] + 1])):
            if at & _POLL == 0 and interrupts() != began:
                return
            symbols[out] = numbers[bodies[at]]
            out += 1
    rule_offsets[len(order)] = out


@polled
@njit
def renumber_in_place(numbers: UInt32, symbols: UInt32) -> None:
    """Map symbols."""
    began = interrupts()
    for at in range(len(symbols)):
        if at & _POLL == 0 and interrupts() != began:
            return
        symbols[at] = numbers[symbols[at]]


@inner
def slot_of(before: int, last: int, mask: int) -> int:
    """Return the place of two symbols in the table of predictions."""
    key = nb.uint64(before) * nb.uint64(0x9E3779B97F4A7C15) + nb.uint64(last) * nb.uint64(0xC2B2AE3D27D4EB4F)
    place: int = nb.int64((key >> nb.uint64(40)) & nb.uint64(mask))
    return place


@inner
def adapted(chance: int, hit: bool) -> int:
    """Return the probability of a hit, in 4096ths, moved towards what happened."""
    return chance + ((4096 - chance) >> 5) if hit else chance - (chance >> 5)


@inner
def guessed(known: Any) -> Any:
    """Return the code that an entry guesses, -1 if none: entries are 16 times the code, plus their confidence."""
    return nb.int64(known >> nb.uint32(4)) if known != 0 else nb.int64(-1)


@inner
def learnt(known: Any, code: int) -> Any:
    """Return an entry after ``code`` followed."""
    sure = known & nb.uint32(15)
    if known >> nb.uint32(4) == nb.uint32(code) and known != 0:
        return known + nb.uint32(sure < 15)
    if sure > 3:
        return known - sure + (sure >> nb.uint32(1))
    return (nb.uint32(code) << nb.uint32(4)) | nb.uint32(1)


@inner
def context_of(kind: int) -> int:
    """Return the table of the kind after this one."""
    if kind >= OLD:
        return 3
    if kind >= NEW_WORD:
        return 1
    return 2 if kind != END else 0


@inner
def run_of(events: int) -> int:
    """Return the length of the runs of kinds: the last one is shorter."""
    return max((events + STATES - 1) // STATES, 1)


@polled
@njit
def plan(
    words: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    root_offsets: Int64,
    roots: UInt32,
    shapes: UInt8,
    numbers: UInt32,
    uses: UInt32,
    predicts: bool,
    mask: int,
    kinds: UInt32,
    places: UInt64,
    tallies: UInt32,
) -> tuple[int, int, int]:
    """Write what the streams are to hold of events: codes to ``kinds``, place and length of list to ``places``.

    Counts the codes of each table in ``tallies``. Returns the codes, the places, and the hits among predictions.
    """
    rules = len(rule_offsets) - 1
    starts = np.zeros(CLASSES + 1, np.int64)
    for s in range(words + rules):
        starts[class_of(nb.int64(uses[s])) + 1] += 1
    for c in range(CLASSES):
        starts[c + 1] += starts[c]
    members = np.empty(words + rules, np.uint32)
    lengths = np.zeros(CLASSES, np.int64)
    stands = np.empty(words + rules, np.int64)
    left = uses.copy()
    met = np.zeros(words + rules, np.bool_)
    following = np.empty(rules + 1, np.int64)
    ends = np.empty(rules + 1, np.int64)
    open_rules = np.empty(rules + 1, np.uint32)
    guesses = np.zeros(2 * (mask + 1), np.uint32)
    hits = np.full(128, 2048, np.int64)
    run = run_of(len(symbols) + len(roots) + len(root_offsets) - 1)
    coded, placed, hit_count, events, began = 0, 0, 0, 0, interrupts()
    before, last, context, history = nb.int64(0), nb.int64(0), 0, 0
    top = nb.int64(words + rules)
    for d in range(len(root_offsets) - 1):
        at = root_offsets[d]
        depth = 0
        while True:
            ending = False
            if not predicts and events % run == 0:
                context = 0
            events += 1
            if events & _POLL == 0 and interrupts() != began:
                return coded, placed, hit_count
            if depth > 0:
                symbol = nb.int64(symbols[following[depth - 1]])
                following[depth - 1] += 1
            elif at < root_offsets[d + 1]:
                symbol = nb.int64(roots[at])
                at += 1
            else:
                ending = True
                symbol = nb.int64(0)
            length = nb.int64(0)
            if ending:
                kind = END
                code = top
            elif met[symbol]:
                kind = OLD + class_of(nb.int64(uses[symbol]))
                code = nb.int64(numbers[symbol])
            elif symbol < words:
                kind = NEW_WORD + nb.int64(shapes[symbol])
                code = top + kind
            else:
                length = nb.int64(rule_offsets[symbol - words + 1]) - nb.int64(rule_offsets[symbol - words])
                kind = min(NEW_RULE + length - 2, LONG_RULE)
                code = top + kind
            hit = False
            if predicts:
                first = slot_of(before, last, mask)
                second = mask + 1 + slot_of(0, last, mask)
                known_0, known_1 = guesses[first], guesses[second]
                for attempt in range(2):
                    known = known_0 if attempt == 0 else known_1
                    if known == 0 or hit or (attempt == 1 and guessed(known) == guessed(known_0)):
                        continue
                    where = attempt * 64 + nb.int64(known & nb.uint32(15)) * 4 + history
                    hit = guessed(known) == code
                    chance = hits[where]
                    kinds[coded] = explicit(0, chance) if hit else explicit(chance, 4096 - chance)
                    coded += 1
                    hits[where] = adapted(chance, hit)
                guesses[first], guesses[second] = learnt(known_0, code), learnt(known_1, code)
                history = (history * 2 + nb.int64(hit)) & 3
                hit_count += nb.int64(hit)
                before, last = last, code
            if not hit:
                kinds[coded] = nb.uint32(context * 256 + kind)
                tallies[context * 256 + kind] += nb.uint32(1)
                coded += 1
            if kind >= OLD:
                c = kind - OLD
                if not hit:
                    places[placed] = (nb.uint64(stands[symbol]) << nb.uint64(32)) | nb.uint64(lengths[c])
                    placed += 1
                if c <= EXACT:
                    left[symbol] -= nb.uint32(1)
                    if left[symbol] == 0:
                        lengths[c] -= 1
                        moved = members[starts[c] + lengths[c]]
                        members[starts[c] + stands[symbol]] = moved
                        stands[moved] = stands[symbol]
            elif kind == END:
                context = 0
                break
            else:
                met[symbol] = True
                if kind < NEW_WORD:
                    if kind == LONG_RULE:
                        over = nb.uint64(length - LONG_RULE)
                        places[placed] = ((over >> nb.uint64(16)) << nb.uint64(32)) | nb.uint64(1 << 16)
                        places[placed + 1] = ((over & nb.uint64(0xFFFF)) << nb.uint64(32)) | nb.uint64(1 << 16)
                        placed += 2
                    following[depth] = rule_offsets[symbol - words]
                    ends[depth] = rule_offsets[symbol - words + 1]
                    open_rules[depth] = symbol
                    depth += 1
                c = class_of(nb.int64(uses[symbol]))
                if c > 0 and kind >= NEW_WORD:
                    stands[symbol] = lengths[c]
                    members[starts[c] + lengths[c]] = symbol
                    lengths[c] += 1
            context = context_of(kind)
            while depth > 0 and following[depth - 1] == ends[depth - 1]:
                depth -= 1
                rule = nb.int64(open_rules[depth])
                c = class_of(nb.int64(uses[rule]))
                if c > 0:
                    stands[rule] = lengths[c]
                    members[starts[c] + lengths[c]] = rule
                    lengths[c] += 1
    return coded, placed, hit_count


@njit
def plan_steps(steps: Int64, codes: UInt32, places: UInt64) -> int:
    """Write numbers near 0: how many bits each has, and these as places; return the number of places."""
    placed = 0
    for i in range(len(steps)):
        step = (steps[i] << 1) ^ (steps[i] >> 63)
        bits = 0
        while step >> bits:
            bits += 1
        codes[i] = bits
        if bits > 17:
            length = nb.uint64(1) << nb.uint64(bits - 17)
            places[placed] = ((nb.uint64(step) >> nb.uint64(16)) & (length - nb.uint64(1))) << nb.uint64(32) | length
            places[placed + 1] = (nb.uint64(step) & nb.uint64(0xFFFF)) << nb.uint64(32) | nb.uint64(1 << 16)
            placed += 2
        elif bits > 0:
            length = nb.uint64(1) << nb.uint64(bits - 1)
            places[placed] = ((nb.uint64(step) & (length - nb.uint64(1))) << nb.uint64(32)) | length
            placed += 1
    return placed


@inner
def _resize(lists: Int64, base: int, length: int) -> None:
    """Note a list's length, and what decoding a place in it takes."""
    bits = lists[base + FOUR]
    while bits > 0 and (length - 1) >> (bits - 1) < 256:
        bits -= 1
    while (length - 1) >> bits >= 256:
        bits += 1
    lists[base + ONE], lists[base + FOUR] = length, bits
    lists[base + TWO], lists[base + THREE] = count_of(length, bits)


@inner
def _enter(lists: Int64, members: UInt32, stands: UInt32, left: UInt8, symbol: int, kind: int) -> bool:
    """Add a symbol to the list of its kind; False if the list is full."""
    base = nb.uint64(_LIST) * nb.uint64(kind)
    length = lists[base + ONE]
    if length >= lists[base + nb.uint64(_LIST)] - lists[base]:
        return False
    members[nb.uint64(lists[base] + length)] = symbol
    if kind <= OLD + EXACT:
        left[nb.uint64(symbol)] = kind - OLD
        stands[nb.uint64(symbol)] = length
    _resize(lists, base, length + 1)
    return True


@inner
def _use(lists: Int64, members: UInt32, stands: UInt32, left: UInt8, symbol: int, kind: int) -> bool:
    """Count a use of a symbol of an exact class: after the last it leaves its list. False if none is left."""
    place = nb.uint64(symbol)
    if left[place] == 0:
        return False
    left[place] -= nb.uint8(1)
    if left[place] == 0:
        base = nb.uint64(_LIST) * nb.uint64(kind)
        length = lists[base + ONE] - 1
        moved = members[nb.uint64(lists[base] + length)]
        members[nb.uint64(lists[base] + nb.int64(stands[place]))] = moved
        stands[nb.uint64(moved)] = stands[place]
        _resize(lists, base, length)
    return True


@njit
def _read_runs(stream: UInt32, at: int, states: UInt64, entries: UInt32, kinds: UInt8) -> int:
    """Decode kinds in four runs side by side; return the place in the stream, -1 if interrupted."""
    began = interrupts()
    count = nb.uint64(len(kinds))
    run = nb.uint64(run_of(len(kinds)))
    x_0, x_1, x_2, x_3 = states[0], states[1], states[2], states[3]
    table_0, table_1, table_2, table_3 = 0, 0, 0, 0
    whole = count - nb.uint64(3) * run if count > nb.uint64(3) * run else nb.uint64(0)
    for i in range(whole):
        if i & nb.uint64(_POLL) == 0 and interrupts() != began:
            return -1
        kind_0, x_0, at = code_of(x_0, stream, at, entries, table_0)
        kind_1, x_1, at = code_of(x_1, stream, at, entries, table_1)
        kind_2, x_2, at = code_of(x_2, stream, at, entries, table_2)
        kind_3, x_3, at = code_of(x_3, stream, at, entries, table_3)
        kinds[i], kinds[i + run], kinds[i + run + run] = kind_0, kind_1, kind_2
        kinds[i + run + run + run] = kind_3
        table_0, table_1, table_2, table_3 = (
            *(context_of(kind_0), context_of(kind_1), context_of(kind_2)),
            context_of(kind_3),
        )
    states[0], states[1], states[2], states[3] = x_0, x_1, x_2, x_3
    tables = np.array([table_0, table_1, table_2, table_3])
    for i in range(whole, run):
        for number in range(nb.uint64(STATES)):
            if number * run + i < count:
                kind, states[number], at = code_of(states[number], stream, at, entries, tables[number])
                kinds[number * run + i] = kind
                tables[number] = context_of(kind)
    return at


@polled
@njit
def read(
    words: int,
    guesses: UInt32 | None,
    kinds: UInt32,
    places: UInt32,
    entries: UInt32,
    shape_starts: UInt32,
    rule_starts: UInt32,
    size: int,
    spelled: UInt32,
    heights: UInt32,
    root_offsets: Int64,
    steps: Int64,
) -> int:
    """Decode both streams; return ``OK`` or what is wrong. Never accesses memory out of bounds.

    Parameters
    ----------
    words
        Number of words; rules, rows and symbols are as many as the arrays hold.
    guesses
        If the encoder predicted, zeros: work space of two tables, whose sizes are powers of two. Without them, machine
        code of its own has fewer variables, and decodes an event in two thirds of the time.
    kinds, places
        The streams.
    entries
        By slot of each table, as filled by :func:`~polars_tadoc.kernels.host.grammars.coded_streams.look_up`.
    shape_starts
        The first word of each shape, and the number of words.
    rule_starts, heights, root_offsets
        Filled: where each rule's body starts, in order of first use, its level from 1, and where each row starts.
    size, spelled
        Number of symbols in bodies. Filled: the bodies' symbols, then those of rows.
    steps
        Filled: by rule, the numbers that :func:`plan_steps` took.

    """
    rules, rows = len(heights), len(root_offsets) - 1
    states, place_states = np.empty(STATES, np.uint64), np.empty(STATES, np.uint64)
    if not load_states(kinds, states) or not load_states(places, place_states):
        return TRUNCATED
    top = nb.int64(words + rules)
    if top + OLD >= MAX_CODES:
        return WRONG_COUNT
    kind_at, place_at, turn, place_turn = nb.int64(2 * STATES), nb.int64(2 * STATES), nb.uint64(0), nb.uint64(0)
    class_by, step_bits = np.empty(words + rules, np.uint8), np.empty(rules, np.uint8)
    for part, table in ((class_by[:words], WORD_CLASS), (class_by[words:], RULE_CLASS), (step_bits, STEP)):
        kind_at = read_codes(kinds, kind_at, states, entries, table, part)
        if kind_at < 0:
            return WRONG_END
    events = len(spelled) + rows
    event_kinds = np.empty(events if guesses is None else 0, np.uint8)
    if guesses is None:
        kind_at = _read_runs(kinds, kind_at, states, entries, event_kinds)
        if kind_at < 0:
            return WRONG_END
    lists = np.zeros(_LIST * 257, np.int64)
    for symbol in range(top):
        if class_by[symbol] >= CLASSES:
            return WRONG_TABLE
        lists[_LIST * (OLD + nb.int64(class_by[symbol]) + 1)] += 1
    for kind in range(256):
        if kind > OLD and lists[_LIST * (kind + 1)] > MAX_MEMBERS:
            return WRONG_COUNT
        lists[_LIST * (kind + 1)] += lists[_LIST * kind]
    members, stands = np.empty(top, np.uint32), np.empty(top, np.uint32)
    left = np.zeros(top, np.uint8)
    shape_ends = np.empty(SHAPES + 1, np.uint32)
    shape_ends[:] = shape_starts
    stack, following = np.empty(rules + 1, np.uint32), np.empty(rules + 1, np.int64)
    half = 1 if guesses is None else len(guesses) // 2
    hits = np.full(128, 2048, np.int64)
    found_words, found_rules, body_at, row, depth = 0, 0, nb.int64(0), 0, 0
    position, end = nb.int64(size), nb.int64(len(spelled))  # of the innermost open rule's body, or of rows
    before, last, context, history = nb.int64(0), nb.int64(0), 0, 0
    root_offsets[0] = 0
    began, event = interrupts(), nb.int64(0)
    while row < rows:
        if event & _POLL == 0 and interrupts() != began:
            return WRONG_END
        if event == events:
            return WRONG_COUNT
        hit, is_full = False, False
        kind, code = nb.int64(0), nb.int64(0)
        if guesses is None:
            most = min(events, event + _POLL + 1, event + end - position)
            while event < most:
                kind = nb.int64(event_kinds[nb.uint64(event)])
                if kind < OLD:
                    break
                base = nb.uint64(_LIST) * nb.uint64(kind)
                number = place_turn & nb.uint64(STATES - 1)
                place, place_states[number], place_at = place_of(
                    place_states[number], places, place_at, lists[base + FOUR], lists[base + TWO], lists[base + THREE]
                )
                place_turn += nb.uint64(1)
                if place >= lists[base + ONE]:
                    return WRONG_PLACE
                symbol = nb.int64(members[nb.uint64(lists[base] + place)])
                if kind <= OLD + EXACT and not _use(lists, members, stands, left, symbol, kind):
                    return WRONG_PLACE
                spelled[nb.uint64(position)] = symbol
                position += 1
                event += 1
            is_full = position == end and depth > 0
            if not is_full:
                if event & _POLL == 0 and interrupts() != began:
                    return WRONG_END
                if event == events:
                    return WRONG_COUNT
                kind = nb.int64(event_kinds[event])
        else:
            first, second = slot_of(before, last, half - 1), half + slot_of(0, last, half - 1)
            known_0, known_1 = guesses[first], guesses[second]
            for attempt in range(2):
                known = known_0 if attempt == 0 else known_1
                if known == 0 or (attempt == 1 and guessed(known) == guessed(known_0)):
                    continue
                where = attempt * 64 + nb.int64(known & nb.uint32(15)) * 4 + history
                chance = nb.uint64(hits[where])
                number = turn & nb.uint64(STATES - 1)
                x = states[number]
                slot = x & nb.uint64(0xFFF)
                hit = slot < chance
                start = nb.uint64(0) if hit else chance
                frequency = chance if hit else nb.uint64(4096) - chance
                x = frequency * (x >> nb.uint64(SCALE)) + slot - start
                states[number], kind_at = refill(x, kinds, kind_at)
                turn += nb.uint64(1)
                hits[where] = adapted(nb.int64(chance), hit)
                if hit:
                    code = guessed(known)
                    break
            if hit:
                kind = code - top if code >= top else OLD + nb.int64(class_by[code])
            else:
                number = turn & nb.uint64(STATES - 1)
                kind, states[number], kind_at = code_of(states[number], kinds, kind_at, entries, context)
                turn += nb.uint64(1)
        symbol, length = nb.int64(0), nb.int64(0)
        if not is_full:
            event += 1
            if not hit:
                code = top + kind
            if kind >= OLD:
                symbol = code
                if not hit:
                    base = nb.uint64(_LIST) * nb.uint64(kind)
                    number = place_turn & nb.uint64(STATES - 1)
                    place, place_states[number], place_at = place_of(
                        *(place_states[number], places, place_at, lists[base + FOUR], lists[base + TWO]),
                        lists[base + THREE],
                    )
                    place_turn += nb.uint64(1)
                    if place >= lists[base + ONE]:
                        return WRONG_PLACE
                    symbol = nb.int64(members[nb.uint64(lists[base] + place)])
                    code = symbol
                if kind <= OLD + EXACT and not _use(lists, members, stands, left, symbol, kind):
                    return WRONG_PLACE
            elif kind == END:
                if depth > 0:
                    return OPEN_RULE
                row += 1
                root_offsets[row] = position - size
            elif kind >= NEW_WORD:
                shape = kind - NEW_WORD
                if shape_ends[shape] == shape_starts[shape + 1]:
                    return WRONG_COUNT
                symbol = nb.int64(shape_ends[shape])
                shape_ends[shape] += nb.uint32(1)
                found_words += 1
                c = nb.int64(class_by[symbol])
                if c > 0 and not _enter(lists, members, stands, left, symbol, OLD + c):
                    return WRONG_COUNT
            else:
                length = kind
                if kind == LONG_RULE:
                    upper, place_at = next_place(place_states, places, place_at, place_turn, 1 << 16)
                    lower, place_at = next_place(place_states, places, place_at, place_turn + ONE, 1 << 16)
                    place_turn += nb.uint64(2)
                    length += (upper << 16) | lower
                if kind < NEW_RULE or found_rules == rules or length > size - body_at:
                    return WRONG_COUNT
                symbol = words + found_rules
            context = context_of(kind)
            if guesses is not None:
                guesses[first], guesses[second] = learnt(known_0, code), learnt(known_1, code)
                history = (history * 2 + nb.int64(hit)) & 3
                before, last = last, code
            if kind == END:
                continue
            if position == end:
                return WRONG_COUNT
            spelled[position] = symbol
            position += 1
            if kind < NEW_WORD:
                stack[depth], following[depth] = found_rules, position
                rule_starts[found_rules] = body_at
                position = body_at
                body_at += length
                rule_starts[found_rules + 1] = body_at
                end = body_at
                found_rules += 1
                depth += 1
        while depth > 0 and position == end:
            depth -= 1
            rule = nb.int64(stack[depth])
            height = nb.uint32(0)
            for i in range(nb.int64(rule_starts[rule]), position):
                if spelled[i] >= words:
                    height = max(height, heights[spelled[i] - words])
            heights[rule] = height + nb.uint32(1)
            c = nb.int64(class_by[words + rule])
            if c > 0 and not _enter(lists, members, stands, left, words + rule, OLD + c):
                return WRONG_COUNT
            position = following[depth]
            end = nb.int64(rule_starts[stack[depth - 1] + 1]) if depth > 0 else nb.int64(len(spelled))
    if found_words != words or found_rules != rules or body_at != size or position != end:
        return WRONG_COUNT
    for rule in range(rules):
        if rule & _POLL == 0 and interrupts() != began:
            return WRONG_END
        bits = nb.int64(step_bits[rule])
        if bits > 32:
            return WRONG_TABLE
        step = nb.int64(0)
        if bits > 17:
            step, place_at = next_place(place_states, places, place_at, place_turn, 1 << (bits - 17))
            lower, place_at = next_place(place_states, places, place_at, place_turn + nb.uint64(1), 1 << 16)
            place_turn += nb.uint64(2)
            step = (step << 16) | lower | 1 << (bits - 1)
        elif bits > 0:
            step, place_at = next_place(place_states, places, place_at, place_turn, 1 << (bits - 1))
            place_turn += nb.uint64(1)
            step |= 1 << (bits - 1)
        steps[rule] = (step >> 1) ^ -(step & 1)
    if not are_spent(states, kinds, kind_at) or not are_spent(place_states, places, place_at):
        return WRONG_END
    return OK
