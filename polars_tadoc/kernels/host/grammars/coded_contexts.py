"""Codes a grammar's bodies and its rows as one stream of events, each in the context of those before it, for files.

Events are those of :mod:`polars_tadoc.kernels.host.grammars.coded_symbols`, and so are the streams. Here all
probabilities adapt, and only the streams are stored. An event is first guessed: by the event that followed the last
two events before, the last one, the one before it, and the one before that. The latter two find the next part of a
line whose variables differ. One choice tells which guess is right, or none. An event that no guess meets has a type,
in the context of the type that followed the same word the last time, and a value:

- the end of a row;
- a new rule, and its length;
- a new word, and its shape;
- a symbol that occurred before: a type for each group of words (by digits), and one for the rules that start with such
  words. The value is the class, which says how often it occurs. Then follows its place among the symbols of this type
  and class, as bits.

One function encodes and decodes: what it decodes to arrays, it otherwise reads there.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.grammars.adaptive_codes import (
    BYTE,
    code_4_bits,
    code_byte,
    code_choice,
    new_choices,
    new_contexts,
)
from polars_tadoc.kernels.host.grammars.coded_runs import step_of
from polars_tadoc.kernels.host.grammars.coded_streams import ends_at, place_in, with_room
from polars_tadoc.kernels.host.grammars.coded_symbols import (
    END,
    EXACT,
    LONG_RULE,
    MAX_MEMBERS,
    NEW_RULE,
    NEW_WORD,
    OK,
    OLD,
    OPEN_RULE,
    SHAPES,
    TRUNCATED,
    WRONG_COUNT,
    WRONG_END,
    WRONG_PLACE,
    WRONG_TABLE,
    guessed,
    learnt,
    slot_of,
)
from polars_tadoc.kernels.host.grammars.event_contexts import (
    CHOICE_CONTEXTS,
    FOLLOWS,
    GROUPS,
    choice_of,
    follow_of,
    group_of,
)
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner, kernel

TYPE_END, TYPE_RULE, TYPE_WORD, TYPE_OLD = 0, 1, 2, 3
"""Types of events; of words of group ``g`` it is ``TYPE_OLD + g``, of rules that start with one, ``GROUPS`` more."""

TYPES = TYPE_OLD + 2 * GROUPS

CLASSES = 16
"""Classes of numbers of later uses: exact up to 7, then by the number's bits, in steps that grow."""

VALUES = 4 * FOLLOWS
CLASSES_OF_OLD = VALUES + 2 * TYPE_OLD * BYTE
NEW = CLASSES_OF_OLD + 4 * GROUPS
STEPS = NEW + 1 + GROUPS
CONTEXTS = STEPS + BYTE
"""First contexts: of types, by the type before and what followed; of values, by type and whether in a body; of classes
of new symbols, by group; of steps; and their number."""

GUESSES = 4
LISTS = 2 * GROUPS * CLASSES

_LOW = np.uint64(1 << 31)
_1, _2 = np.uint64(1), np.uint64(2)
_POLL = (1 << 12) - 1


@kernel
def class_of(uses: int) -> int:
    """Return the class of a number of later uses."""
    if uses <= EXACT:
        return uses
    bits = 4
    while uses >> bits:
        bits += 1
    if bits <= 8:
        return bits + 4
    return 13 + int(bits > 10) + int(bits > 13)


@inner(forceinline=True)
def code_place(is_coded: bool, stream: UInt32, at: int, length: int, place: int) -> Any:
    """Read a place in a list, or append the list's length and the place; return it, and the place in the stream."""
    if is_coded:
        return place_in(stream, at, nb.uint64(length))
    stream[at] = length
    stream[at + _1] = place
    return nb.uint64(place), at + _2


@inner
def _enter(
    pool: UInt32,
    used: int,
    list_starts: Int64,
    capacities: Int64,
    lengths: Int64,
    stands: UInt32,
    which: int,
    symbol: int,
) -> int:
    """Add a symbol to a list, which moves when it is full; return the used part of the pool."""
    length = lengths[which]
    if length == capacities[which]:
        capacity = max(2 * length, 4)
        for i in range(length):
            pool[used + i] = pool[list_starts[which] + i]
        list_starts[which], capacities[which] = used, capacity
        used += capacity
    pool[list_starts[which] + length] = symbol
    stands[symbol] = length
    lengths[which] = length + 1
    return used


@polled
@njit
def code_symbols(
    words: int,
    mask: int,
    shapes: UInt8,
    shape_starts: UInt32,
    uses: UInt32 | None,
    kinds: UInt32,
    places: UInt32,
    rule_starts: UInt32,
    bodies: UInt32,
    heights: UInt32,
    root_offsets: Int64,
    roots: UInt32,
    steps: Int64,
) -> tuple[int, int, int]:
    """Decode both streams, or list what they are to hold; return ``OK`` or what is wrong, and the lists' lengths.

    Never accesses memory out of bounds when it decodes.

    Parameters
    ----------
    words, mask
        Number of words, and the size of each table of guesses less 1, a power of two less 1.
    shapes, shape_starts
        Each word's shape, ascending; the first word of each shape, and the number of words.
    uses
        Each symbol's uses after the first; None to decode, by machine code of its own.
    kinds, places
        The streams; otherwise filled: start and frequency of each code, length and place for each place.
    rule_starts, bodies, heights
        Rules in order of first use, their symbols, numbered in this order, and each rule's level from 1.
    root_offsets, roots
        Each row's symbols.
    steps
        By rule, numbers near 0.

    """
    is_coded = uses is None
    rules, rows = len(heights), len(root_offsets) - 1
    x, kind_at, place_at, bits = _LOW, 0, nb.uint64(0), nb.uint64(32) * nb.uint64(len(places))
    if is_coded:
        if len(kinds) < 2:
            return TRUNCATED, 0, 0
        x = (nb.uint64(kinds[0]) << nb.uint64(32)) | nb.uint64(kinds[1])
        kind_at, places = 2, with_room(places)
    top = nb.int64(words + rules)
    if (top + OLD) >> 28:
        return WRONG_COUNT, 0, 0
    contexts = new_contexts(CONTEXTS)
    choices = new_choices(CHOICE_CONTEXTS)
    size = mask + 1
    guesses = np.zeros(GUESSES * size, np.uint32)  # what followed, times 16, and how sure it is
    shape_ends = np.empty(SHAPES + 1, np.uint32)
    shape_ends[:] = shape_starts
    pool, used = np.empty(4 * (words + rules + LISTS), np.uint32), 0
    list_starts, capacities = np.zeros(LISTS, np.int64), np.zeros(LISTS, np.int64)
    lengths = np.zeros(LISTS, np.int64)
    left, class_by = np.zeros(words + rules, np.uint8), np.zeros(words + rules, np.uint8)
    stands = np.empty(words + rules, np.uint32)
    groups, last_words = np.zeros(words + rules, np.uint8), np.empty(rules, np.uint32)
    for word in range(words):
        groups[word] = group_of(nb.int64(shapes[word]))
    followed = np.zeros(words + 1 + SHAPES, np.uint8)
    stack, filled = np.empty(rules + 1, np.uint32), np.empty(rules + 1, np.int64)
    found_words, found_rules, body_at, root_at, row, depth = 0, 0, nb.int64(0), nb.int64(0), 0, 0
    third, second, first, history, before = nb.int64(0), nb.int64(0), nb.int64(0), 0, TYPE_END
    word = nb.int64(words)  # before the event; a number beyond the words for ends and new words
    root_offsets_start = nb.int64(0)
    if is_coded:
        root_offsets[0] = root_offsets_start
    began, events = interrupts(), 0
    while row < rows:
        events += 1
        if (events & _POLL == 0 and interrupts() != began) or (is_coded and place_at > bits):
            return WRONG_END, 0, 0
        symbol, kind, code = nb.int64(0), nb.int64(0), nb.int64(0)
        if not is_coded:
            if depth > 0:
                symbol = nb.int64(bodies[filled[depth - 1]])
            elif root_at < root_offsets[row + 1]:
                symbol = nb.int64(roots[root_at])
            else:
                symbol = top
            if symbol == top:
                kind, code = nb.int64(END), top
            elif symbol < words and symbol >= nb.int64(shape_ends[shapes[symbol]]):
                kind = nb.int64(NEW_WORD + shapes[symbol])
                code = top + kind
            elif symbol >= words + found_rules:
                length = nb.int64(rule_starts[found_rules + 1]) - nb.int64(rule_starts[found_rules])
                kind = nb.int64(min(NEW_RULE + length - 2, LONG_RULE))
                code = top + kind
            else:
                kind, code = OLD + nb.int64(class_by[symbol]), symbol
        slot_0, slot_1 = slot_of(second, first, mask), size + slot_of(0, first, mask)
        slot_2, slot_3 = 2 * size + slot_of(0, second, mask), 3 * size + slot_of(0, third, mask)
        known_0, known_1, known_2, known_3 = guesses[slot_0], guesses[slot_1], guesses[slot_2], guesses[slot_3]
        choice = nb.int64(GUESSES)
        if not is_coded:
            if guessed(known_0) == code:
                choice = nb.int64(0)
            elif guessed(known_1) == code:
                choice = nb.int64(1)
            elif guessed(known_2) == code:
                choice = nb.int64(2)
            elif guessed(known_3) == code:
                choice = nb.int64(3)
        context = choice_of(known_0, known_1, known_2, known_3, history)
        choice, x, kind_at = code_choice(is_coded, x, kinds, kind_at, choices, context, choice)
        hit = choice < GUESSES
        if hit:
            known = known_0 if choice == 0 else known_1
            known = known if choice < 2 else known_2
            known = known if choice < 3 else known_3
            if known == 0:
                return WRONG_PLACE, 0, 0
            code = nb.int64(known >> nb.uint32(4))
        group = 0
        if hit:
            if code >= top:
                kind = code - top
            else:
                kind, symbol, group = OLD + nb.int64(class_by[code]), code, nb.int64(groups[code])
        else:
            kind_type = nb.int64(TYPE_END)
            if not is_coded:
                if kind >= OLD:
                    group = nb.int64(groups[symbol])
                    kind_type = TYPE_OLD + group
                elif kind >= NEW_WORD:
                    kind_type = nb.int64(TYPE_WORD)
                elif kind >= NEW_RULE:
                    kind_type = nb.int64(TYPE_RULE)
            context = before * FOLLOWS + nb.int64(followed[word])
            kind_type, x, kind_at = code_4_bits(is_coded, x, kinds, kind_at, contexts, context, kind_type)
            if kind_type >= TYPES:
                return WRONG_TABLE, 0, 0
            offset = nb.int64(OLD)
            if kind_type < TYPE_OLD:
                offset = nb.int64(NEW_WORD) if kind_type == TYPE_WORD else nb.int64(NEW_RULE)
            if kind_type == TYPE_END:
                kind, code = nb.int64(END), top
            else:
                is_inner = nb.int64(depth > 0)
                value = kind - offset
                if kind_type >= TYPE_OLD:
                    context = CLASSES_OF_OLD + 2 * (kind_type - TYPE_OLD) + is_inner
                    value, x, kind_at = code_4_bits(is_coded, x, kinds, kind_at, contexts, context, value)
                else:
                    context = VALUES + (2 * kind_type + is_inner) * BYTE
                    value, x, kind_at = code_byte(is_coded, x, kinds, kind_at, contexts, context, value)
                kind = offset + value
                if (kind_type == TYPE_RULE and kind > LONG_RULE) or (kind_type == TYPE_WORD and kind >= OLD):
                    return WRONG_TABLE, 0, 0
                code = top + kind
            if kind_type >= TYPE_OLD:
                group = kind_type - TYPE_OLD
                which = group * CLASSES + kind - OLD
                if lengths[which] == 0:
                    return WRONG_PLACE, 0, 0
                place, place_at = code_place(is_coded, places, place_at, nb.uint64(lengths[which]), stands[symbol])
                symbol = nb.int64(pool[nb.uint64(list_starts[which]) + place])
                code = symbol
        before = TYPE_OLD
        next_word = nb.int64(words)
        length = nb.int64(0)
        if kind >= OLD:
            if kind - OLD <= EXACT:
                if left[symbol] == 0:
                    return WRONG_PLACE, 0, 0
                left[symbol] -= nb.uint8(1)
                if left[symbol] == 0:
                    which = group * CLASSES + kind - OLD
                    lengths[which] -= 1
                    moved = pool[list_starts[which] + lengths[which]]
                    pool[list_starts[which] + nb.int64(stands[symbol])] = moved
                    stands[moved] = stands[symbol]
            next_word = symbol if symbol < words else nb.int64(last_words[symbol - words])
        elif kind == END:
            if depth > 0:
                return OPEN_RULE, 0, 0
            row += 1
            if is_coded:
                root_offsets[row] = root_at
            before = TYPE_END
        elif kind >= NEW_WORD:
            shape = kind - NEW_WORD
            if shape_ends[shape] == shape_starts[shape + 1]:
                return WRONG_COUNT, 0, 0
            symbol = nb.int64(shape_ends[shape])
            shape_ends[shape] += nb.uint32(1)
            found_words += 1
            before = TYPE_WORD
            next_word = words + 1 + shape
            context = NEW + 1 + nb.int64(groups[symbol])
            c = nb.int64(0) if uses is None else class_of(nb.int64(uses[symbol]))
            c, x, kind_at = code_4_bits(is_coded, x, kinds, kind_at, contexts, context, c)
            class_by[symbol] = c
            if c > 0:
                which = nb.int64(groups[symbol]) * CLASSES + c
                if lengths[which] == MAX_MEMBERS:
                    return WRONG_COUNT, 0, 0
                left[symbol] = min(c, 255)
                used = _enter(pool, used, list_starts, capacities, lengths, stands, which, symbol)
        else:
            if kind == NEW_RULE - 1:
                return WRONG_TABLE, 0, 0
            if found_rules == rules:
                return WRONG_COUNT, 0, 0
            symbol = words + found_rules
            length = kind
            if kind == LONG_RULE:
                over = nb.int64(0)
                if not is_coded:
                    over = nb.int64(rule_starts[found_rules + 1]) - nb.int64(rule_starts[found_rules]) - LONG_RULE
                upper, place_at = code_place(is_coded, places, place_at, _1 << nb.uint64(16), over >> 16)
                lower, place_at = code_place(is_coded, places, place_at, _1 << nb.uint64(16), over & 0xFFFF)
                length += nb.int64((upper << nb.uint64(16)) | lower)
            if length > len(bodies) - body_at:
                return WRONG_COUNT, 0, 0
            before = TYPE_RULE
            next_word = word
            c = nb.int64(0) if uses is None else class_of(nb.int64(uses[symbol]))
            c, x, kind_at = code_4_bits(is_coded, x, kinds, kind_at, contexts, NEW, c)
            class_by[symbol] = c
        guesses[slot_0], guesses[slot_1] = learnt(known_0, code), learnt(known_1, code)
        guesses[slot_2], guesses[slot_3] = learnt(known_2, code), learnt(known_3, code)
        history = (history * 2 + nb.int64(hit)) & 3
        followed[word] = follow_of(kind, group)
        word = next_word
        third, second, first = second, first, code
        if kind == END:
            continue
        if depth > 0:
            if is_coded:
                bodies[filled[depth - 1]] = symbol
            filled[depth - 1] += 1
        else:
            if root_at == len(roots):
                return WRONG_COUNT, 0, 0
            if is_coded:
                roots[root_at] = symbol
            root_at += 1
        if kind < NEW_WORD:
            stack[depth] = found_rules
            filled[depth] = body_at
            if is_coded:
                rule_starts[found_rules] = body_at
            body_at += length
            if is_coded:
                rule_starts[found_rules + 1] = body_at
            found_rules += 1
            depth += 1
            continue
        while depth > 0 and filled[depth - 1] == nb.int64(rule_starts[stack[depth - 1] + 1]):
            rule = nb.int64(stack[depth - 1])
            start, stop = nb.int64(rule_starts[rule]), nb.int64(rule_starts[rule + 1])
            height = nb.uint32(0)
            for i in range(start, stop):
                if bodies[i] >= words:
                    height = max(height, heights[bodies[i] - words])
            heights[rule] = height + nb.uint32(1)
            last = nb.int64(bodies[stop - 1])
            last_words[rule] = last if last < words else nb.int64(last_words[last - words])
            group = GROUPS + nb.int64(groups[bodies[start]]) % GROUPS
            groups[words + rule] = group
            c = nb.int64(class_by[words + rule])
            if c > 0:
                which = group * CLASSES + c
                if lengths[which] == MAX_MEMBERS:
                    return WRONG_COUNT, 0, 0
                left[words + rule] = c
                used = _enter(pool, used, list_starts, capacities, lengths, stands, which, words + rule)
            depth -= 1
    if found_words != words or found_rules != rules or body_at != len(bodies) or root_at != len(roots):
        return WRONG_COUNT, 0, 0
    for rule in range(rules):
        if (rule & _POLL == 0 and interrupts() != began) or (is_coded and place_at > bits):
            return WRONG_END, 0, 0
        step, size = nb.int64(0), nb.int64(0)
        if not is_coded:
            step = (steps[rule] << 1) ^ (steps[rule] >> 63)
            while step >> size:
                size += 1
        size, x, kind_at = code_byte(is_coded, x, kinds, kind_at, contexts, STEPS, size)
        if size > 32:
            return WRONG_TABLE, 0, 0
        if is_coded:
            steps[rule], place_at = step_of(nb.uint64(size), places, place_at)
        elif size > 17:
            rest = step & ((1 << (size - 1)) - 1)
            _, place_at = code_place(is_coded, places, place_at, 1 << (size - 17), rest >> 16)
            _, place_at = code_place(is_coded, places, place_at, 1 << 16, rest & 0xFFFF)
        elif size > 0:
            _, place_at = code_place(is_coded, places, place_at, 1 << (size - 1), step & ((1 << (size - 1)) - 1))
    if is_coded and (kind_at != len(kinds) or x != _LOW or not ends_at(places, place_at)):
        return WRONG_END, 0, 0
    return OK, kind_at, nb.int64(place_at)
