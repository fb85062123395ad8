"""Codes a grammar's bodies and its rows as one stream of events, for files.

Rows are read in order. The first use of a rule is replaced by its length and its body, so that no rule is numbered
before it occurs; words are numbered by shape and first occurrence, so that numbers of one length, which are often
alike, are stored together. Events are therefore: end of a row, new word, new rule of
some length, and a symbol that occurred before. Such a symbol is coded as its class, which says about how often it
occurs, and its place in the list of the symbols of that class.

Two streams of :mod:`polars_tadoc.kernels.host.grammars.coded_streams`. The first, of codes, holds the classes of words,
those of rules, bits of the steps between rules, and the kinds of events. With predictions, kinds follow whether these
hit. Without, kinds are four runs of equal length, one for each state, side by side. The second stream, of bits, holds
places. A decoder reads as many events as the counts allow and checks each number.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.grammars.coded_streams import (
    STATES,
    explicit,
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
) -> tuple[int, int]:
    """Write what the streams are to hold of events: codes to ``kinds``, place and length of list to ``places``.

    Counts the codes of each table in ``tallies``. Returns the codes and the places.
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
    coded, placed, events, began = 0, 0, 0, interrupts()
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
                return coded, placed
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
    return coded, placed


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
