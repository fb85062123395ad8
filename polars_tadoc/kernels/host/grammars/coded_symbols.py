"""Codes a grammar's bodies and its rows as one stream of events, for files.

Rows are read in order. The first use of a rule is replaced by its length and its body, so that no rule is numbered
before it occurs; words are numbered by shape and first occurrence, so that numbers of one length, which are often
alike, are stored together. Events are therefore: end of a row, new word, new rule of
some length, and a symbol that occurred before. Such a symbol is coded as its class, which says about how often it
occurs, and its place in the list of the symbols of that class.

Two streams of rANS (J. Duda, "Asymmetric numeral systems", arXiv:1311.2540), of 32-bit words: the first holds kinds
and classes, and whether predictions hit; the second places, whose probabilities are equal. Each stream starts with its
64-bit state. A decoder reads as many events as the counts allow, checks each number, and requires that both streams end
with the state that encoders start from.
"""

from __future__ import annotations

import numba as nb
import numpy as np

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
WORD_CLASS, RULE_CLASS, STEP, GAP = CONTEXTS, CONTEXTS + 1, CONTEXTS + 2, CONTEXTS + 3
TABLES = CONTEXTS + 7
"""Tables of frequencies: kinds after a row's end, a new word, a new rule, an old symbol; classes of new words and of
new rules; bits of the steps between rules in the order of first use; codes of gaps, by which of two before are 0."""

LONG_GAP, MAX_GAP_BITS = 232, 22
"""From this code of gaps on, ``LONG_GAP + b`` is for those whose distance plus 1 has ``b`` bits behind its first."""

SCALE = 12
"""Frequencies of a table add up to ``1 << SCALE``."""

_LOW = np.uint64(1 << 31)
_FLAG = np.uint32(1 << 31)
_POLL = (1 << 12) - 1
"""Between looks for an interrupt, this number of events, less 1, a power of two less 1."""

MAX_MEMBERS = 1 << 23
"""Maximum symbols of a class."""

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
def _adapt(hits: UInt32, at: int, hit: bool) -> None:
    """Move the probability of a hit, in 4096ths, towards what happened."""
    if hit:
        hits[at] += (nb.uint32(4096) - hits[at]) >> nb.uint32(5)
    else:
        hits[at] -= hits[at] >> nb.uint32(5)


@inner
def _learn(predicted: UInt32, sureness: UInt8, at: int, code: int) -> None:
    """Note which code followed."""
    if predicted[at] == code:
        if sureness[at] < 15:
            sureness[at] += nb.uint8(1)
    elif sureness[at] > 3:
        sureness[at] >>= nb.uint8(1)
    else:
        predicted[at] = code
        sureness[at] = 1


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
    class_sizes: UInt32,
) -> tuple[int, int, int]:
    """Write what the streams are to hold: codes of the first to ``kinds``, place and length of list to ``places``.

    Counts the codes of each table in ``tallies`` and the symbols of each class in ``class_sizes``. Returns the codes,
    the places, and the hits among predictions.
    """
    rules = len(rule_offsets) - 1
    for s in range(words + rules):
        class_sizes[class_of(nb.int64(uses[s]))] += nb.uint32(1)
    starts = np.zeros(CLASSES, np.int64)
    for c in range(1, CLASSES):
        starts[c] = starts[c - 1] + class_sizes[c - 1]
    members = np.empty(words + rules, np.uint32)
    lengths = np.zeros(CLASSES, np.int64)
    stands = np.empty(words + rules, np.int64)
    left = uses.copy()
    met = np.zeros(words + rules, np.bool_)
    following = np.empty(rules + 1, np.int64)
    ends = np.empty(rules + 1, np.int64)
    open_rules = np.empty(rules + 1, np.uint32)
    predicted = np.full(2 * (mask + 1), _NO_SYMBOL, np.uint32)
    sureness = np.zeros(2 * (mask + 1), np.uint8)
    hits = np.full(128, 2048, np.uint32)
    coded, placed, hit_count, events, began = 0, 0, 0, 0, interrupts()
    before, last, context, history = nb.int64(0), nb.int64(0), 0, 0
    top = nb.int64(words + rules)
    for d in range(len(root_offsets) - 1):
        at = root_offsets[d]
        depth = 0
        while True:
            ending = False
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
                sure = sureness[first]
                if sure > 0:
                    hit = predicted[first] == code
                    where = nb.int64(sure) * 4 + history
                    kinds[coded] = _FLAG | (hits[where] << nb.uint32(1)) | nb.uint32(hit)
                    coded += 1
                    _adapt(hits, where, hit)
                if not hit and sureness[second] > 0 and (sure == 0 or predicted[second] != predicted[first]):
                    hit = predicted[second] == code
                    where = 64 + nb.int64(sureness[second]) * 4 + history
                    kinds[coded] = _FLAG | (hits[where] << nb.uint32(1)) | nb.uint32(hit)
                    coded += 1
                    _adapt(hits, where, hit)
                _learn(predicted, sureness, first, code)
                _learn(predicted, sureness, second, code)
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
                context = 3
            elif kind == END:
                context = 0
                break
            else:
                met[symbol] = True
                table = WORD_CLASS
                context = 1
                if kind < NEW_WORD:
                    table = RULE_CLASS
                    context = 2
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
                kinds[coded] = nb.uint32(table * 256 + c)
                tallies[table * 256 + c] += nb.uint32(1)
                coded += 1
                if c > 0 and kind >= NEW_WORD:
                    stands[symbol] = lengths[c]
                    members[starts[c] + lengths[c]] = symbol
                    lengths[c] += 1
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
def plan_steps(steps: Int64, kinds: UInt32, places: UInt64, tallies: UInt32) -> int:
    """Append numbers near 0 to what the streams are to hold, one code each; return their places."""
    placed = 0
    for i in range(len(steps)):
        step = (steps[i] << 1) ^ (steps[i] >> 63)
        bits = 0
        while step >> bits:
            bits += 1
        kinds[i] = STEP * 256 + bits
        tallies[STEP * 256 + bits] += nb.uint32(1)
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


@njit
def plan_gaps(codes: UInt32, kinds: UInt32, places: UInt64, tallies: UInt32) -> int:
    """Append codes of gaps to what the streams are to hold; return their places."""
    placed, history = 0, 0
    for i in range(len(codes)):
        code, bits = nb.int64(codes[i]), 0
        if code >= LONG_GAP:
            over = nb.uint64(code - LONG_GAP + 1)
            while over >> nb.uint64(bits + 1):
                bits += 1
            length = nb.uint64(1) << nb.uint64(bits)
            places[placed] = (over - length) << nb.uint64(32) | length
            placed += 1
            code = LONG_GAP + bits
        kinds[i] = (GAP + history) * 256 + code
        tallies[(GAP + history) * 256 + code] += nb.uint32(1)
        history = (2 * history + nb.int64(code != 0)) & 3
    return placed


@inner
def _low_bits(length: int) -> int:
    """Return how many low bits of a place in a list that are stored as they are; the rest has at most 256 values."""
    bits = 0
    while (length - 1) >> bits >= 256:
        bits += 1
    return bits


@njit
def write_kinds(kinds: UInt32, starts: UInt32, frequencies: UInt32, out: UInt32) -> int:
    """Encode the first stream, last code first; fill ``out`` from its end and return where it starts."""
    state = _LOW
    at = len(out)
    for i in range(len(kinds) - 1, -1, -1):
        code = kinds[i]
        if code & _FLAG:
            chance = (code >> nb.uint32(1)) & nb.uint32(0xFFF)
            start = nb.uint64(0) if code & nb.uint32(1) else nb.uint64(chance)
            frequency = nb.uint64(chance) if code & nb.uint32(1) else nb.uint64(4096 - chance)
        else:
            start = nb.uint64(starts[code])
            frequency = nb.uint64(frequencies[code])
        if state >= frequency << nb.uint64(63 - SCALE):
            at -= 1
            out[at] = nb.uint32(state & nb.uint64(0xFFFFFFFF))
            state >>= nb.uint64(32)
        state = ((state // frequency) << nb.uint64(SCALE)) + state % frequency + start
    out[at - 1] = nb.uint32(state & nb.uint64(0xFFFFFFFF))
    out[at - 2] = nb.uint32(state >> nb.uint64(32))
    return at - 2


@njit
def write_places(places: UInt64, out: UInt32) -> int:
    """Encode the second stream, like :func:`write_kinds`."""
    state = _LOW
    at = len(out)
    for i in range(len(places) - 1, -1, -1):
        place, length = places[i] >> nb.uint64(32), places[i] & nb.uint64(0xFFFFFFFF)
        bits = nb.uint64(_low_bits(nb.int64(length)))
        high, count = place >> bits, ((length - nb.uint64(1)) >> bits) + nb.uint64(1)
        start = ((high << nb.uint64(16)) + count - nb.uint64(1)) // count
        frequency = ((high << nb.uint64(16)) + nb.uint64(0xFFFF) + count) // count - start
        if state >= frequency << (nb.uint64(47) - bits):
            at -= 1
            out[at] = nb.uint32(state & nb.uint64(0xFFFFFFFF))
            state >>= nb.uint64(32)
        state = (state << bits) | (place & ((nb.uint64(1) << bits) - nb.uint64(1)))
        state = ((state // frequency) << nb.uint64(16)) + state % frequency + start
    out[at - 1] = nb.uint32(state & nb.uint64(0xFFFFFFFF))
    out[at - 2] = nb.uint32(state >> nb.uint64(32))
    return at - 2


@njit
def look_up(frequencies: UInt32, starts: UInt32, entries: UInt32) -> bool:
    """Fill where each code starts and, by slot of each table, frequency less 1, slot in the code and the code itself.

    The slots of a table without frequencies have a code that no table has. False if frequencies do not add up to all
    slots or to none.
    """
    for table in range(TABLES):
        total = nb.int64(0)
        for code in range(256):
            frequency = nb.int64(frequencies[table * 256 + code])
            starts[table * 256 + code] = total
            if total + frequency > 1 << SCALE:
                return False
            for slot in range(frequency):
                entries[(table << SCALE) + total + slot] = ((frequency - 1) << 20) | (slot << 8) | code
            total += frequency
        if total != 0 and total != 1 << SCALE:
            return False
        if total == 0:
            for slot in range(1 << SCALE):
                entries[(table << SCALE) + slot] = 255
    return True


@inner
def refill(x: int, stream: UInt32, at: int) -> tuple[int, int]:
    """Take the next number of a stream if the state is low; return the state and the place in the stream.

    Without a branch, which could not be foreseen: beyond the end it takes the last number again.
    """
    number = nb.uint64(stream[min(at, len(stream) - 1)])
    is_low = x < _LOW
    return (x << nb.uint64(32)) | number if is_low else x, at + nb.int64(is_low)


@inner
def _code(x: int, stream: UInt32, at: int, entries: UInt32, table: int) -> tuple[int, int, int]:
    """Decode one code of the first stream; return it, the new state and place in the stream."""
    entry = nb.uint64(entries[(table << SCALE) + nb.int64(x & nb.uint64(0xFFF))])
    frequency = (entry >> nb.uint64(20)) + nb.uint64(1)
    x = frequency * (x >> nb.uint64(SCALE)) + ((entry >> nb.uint64(8)) & nb.uint64(0xFFF))
    x, at = refill(x, stream, at)
    return nb.int64(entry & nb.uint64(0xFF)), x, at


@inner
def place_of(y: int, stream: UInt32, at: int, length: int, low_bits: int) -> tuple[int, int, int]:
    """Decode one place of the second stream; return it, the new state and place in the stream."""
    bits = nb.uint64(low_bits)
    count = ((nb.uint64(length) - nb.uint64(1)) >> bits) + nb.uint64(1)
    slot = y & nb.uint64(0xFFFF)
    high = (slot * count) >> nb.uint64(16)
    start = nb.uint64(nb.uint32((high << nb.uint64(16)) + count - nb.uint64(1)) // nb.uint32(count))
    end = nb.uint64(nb.uint32((high << nb.uint64(16)) + nb.uint64(0xFFFF) + count) // nb.uint32(count))
    y = (end - start) * (y >> nb.uint64(16)) + slot - start
    place = (high << bits) | (y & ((nb.uint64(1) << bits) - nb.uint64(1)))
    y, at = refill(y >> bits, stream, at)
    return nb.int64(place), y, at


@inner
def _enter(
    list_starts: Int64,
    members: UInt32,
    lengths: Int64,
    low_bits: Int64,
    stands: UInt32,
    left: UInt8,
    symbol: int,
    c: int,
) -> bool:
    """Add a symbol to the list of its class; False if the list is full."""
    if lengths[c] >= list_starts[c + 1] - list_starts[c]:
        return False
    members[list_starts[c] + lengths[c]] = symbol
    if lengths[c] >> low_bits[c] >= 256:
        low_bits[c] += 1
    if c <= EXACT:
        left[symbol] = c
        stands[symbol] = lengths[c]
    lengths[c] += 1
    return True


@polled
@njit
def read(
    words: int,
    predicts: bool,
    mask: int,
    kinds: UInt32,
    places: UInt32,
    entries: UInt32,
    shape_starts: UInt32,
    class_sizes: UInt32,
    rule_starts: UInt32,
    bodies: UInt32,
    heights: UInt32,
    root_offsets: Int64,
    roots: UInt32,
    steps: Int64,
    gap_codes: UInt32,
) -> int:
    """Decode both streams; return ``OK`` or what is wrong. Never accesses memory out of bounds.

    Parameters
    ----------
    words
        Number of words; rules, rows and symbols are as many as the arrays hold.
    predicts, mask
        Whether the encoder predicted, and the size of its table less 1, a power of two less 1.
    kinds, places
        The streams.
    entries
        By slot of each table, as filled by :func:`look_up`.
    shape_starts
        The first word of each shape, and the number of words.
    class_sizes
        Symbols of each class; they add up to at most words and rules.
    rule_starts, bodies, heights
        Filled: where each rule's body starts, in order of first use, all bodies, and each rule's level from 1.
    root_offsets, roots
        Filled: each row's symbols.
    steps
        Filled: by rule, the numbers that :func:`plan_steps` took.
    gap_codes
        Filled: the codes that :func:`plan_gaps` took.

    """
    rules, rows = len(heights), len(root_offsets) - 1
    if len(kinds) < 2 or len(places) < 2:
        return TRUNCATED
    x = (nb.uint64(kinds[0]) << nb.uint64(32)) | nb.uint64(kinds[1])
    kind_at = 2
    y = (nb.uint64(places[0]) << nb.uint64(32)) | nb.uint64(places[1])
    place_at = 2
    shape_ends = np.empty(SHAPES + 1, np.uint32)
    shape_ends[:] = shape_starts
    list_starts = np.zeros(CLASSES + 1, np.int64)
    for c in range(1, CLASSES):
        list_starts[c + 1] = list_starts[c] + nb.int64(class_sizes[c])
    members = np.empty(list_starts[CLASSES], np.uint32)
    lengths = np.zeros(CLASSES, np.int64)
    low_bits = np.zeros(CLASSES, np.int64)
    left = np.zeros(words + rules, np.uint8)
    stands = np.empty(words + rules, np.uint32)
    lists = list_starts, members, lengths, low_bits, stands, left
    class_by = np.zeros(words + rules, np.uint8)
    stack = np.empty(rules + 1, np.uint32)
    filled = np.empty(rules + 1, np.int64)
    predicted = np.full(2 * (mask + 1), _NO_SYMBOL, np.uint32)
    sureness = np.zeros(2 * (mask + 1), np.uint8)
    hits = np.full(128, 2048, np.uint32)
    top = nb.int64(words + rules)
    first, second = 0, 0
    found_words, found_rules, body_at, root_at, row, depth = 0, 0, nb.int64(0), nb.int64(0), 0, 0
    before, last, context, history = nb.int64(0), nb.int64(0), 0, 0
    root_offsets[0] = 0
    began, events = interrupts(), 0
    while row < rows:
        events += 1
        if events & _POLL == 0 and interrupts() != began:
            return WRONG_END
        hit = False
        code = nb.int64(0)
        if predicts:
            first = slot_of(before, last, mask)
            second = mask + 1 + slot_of(0, last, mask)
            for attempt in range(2):
                at = first if attempt == 0 else second
                if sureness[at] == 0 or (attempt == 1 and sureness[first] > 0 and predicted[first] == predicted[at]):
                    continue
                where = attempt * 64 + nb.int64(sureness[at]) * 4 + history
                chance = nb.uint64(hits[where])
                slot = x & nb.uint64(0xFFF)
                hit = slot < chance
                if hit:
                    x = chance * (x >> nb.uint64(SCALE)) + slot
                else:
                    x = (nb.uint64(4096) - chance) * (x >> nb.uint64(SCALE)) + slot - chance
                x, kind_at = refill(x, kinds, kind_at)
                _adapt(hits, where, hit)
                if hit:
                    code = nb.int64(predicted[at])
                    break
        if hit:
            kind = code - top if code >= top else OLD + nb.int64(class_by[code])
        else:
            kind, x, kind_at = _code(x, kinds, kind_at, entries, context)
            code = top + kind
        symbol = nb.int64(0)
        if kind >= OLD:
            c = kind - OLD
            if c >= CLASSES:
                return WRONG_TABLE
            if hit:
                symbol = code
            else:
                if lengths[c] == 0:
                    return WRONG_PLACE
                chosen, y, place_at = place_of(y, places, place_at, lengths[c], low_bits[c])
                if chosen >= lengths[c]:
                    return WRONG_PLACE
                symbol = nb.int64(members[list_starts[c] + chosen])
                code = symbol
            if c <= EXACT:
                if left[symbol] == 0:
                    return WRONG_PLACE
                left[symbol] -= nb.uint8(1)
                if left[symbol] == 0:
                    lengths[c] -= 1
                    if low_bits[c] > 0 and (lengths[c] - 1) >> (low_bits[c] - 1) < 256:
                        low_bits[c] -= 1
                    moved = members[list_starts[c] + lengths[c]]
                    members[list_starts[c] + nb.int64(stands[symbol])] = moved
                    stands[moved] = stands[symbol]
            context = 3
        elif kind == END:
            if depth > 0:
                return OPEN_RULE
            row += 1
            root_offsets[row] = root_at
            context = 0
        else:
            table = WORD_CLASS
            length = nb.int64(0)
            if kind >= NEW_WORD:
                shape = kind - NEW_WORD
                if shape_ends[shape] == shape_starts[shape + 1]:
                    return WRONG_COUNT
                symbol = nb.int64(shape_ends[shape])
                shape_ends[shape] += nb.uint32(1)
                found_words += 1
                context = 1
            else:
                length = kind
                if kind == LONG_RULE:
                    upper, y, place_at = place_of(y, places, place_at, 1 << 16, 8)
                    lower, y, place_at = place_of(y, places, place_at, 1 << 16, 8)
                    length += (upper << 16) | lower
                if found_rules == rules or length > len(bodies) - body_at:
                    return WRONG_COUNT
                symbol = words + found_rules
                table = RULE_CLASS
                context = 2
            c, x, kind_at = _code(x, kinds, kind_at, entries, table)
            if c >= CLASSES:
                return WRONG_TABLE
            class_by[symbol] = c
            if c > 0 and kind >= NEW_WORD and not _enter(*lists, symbol, c):
                return WRONG_COUNT
        if predicts:
            _learn(predicted, sureness, first, code)
            _learn(predicted, sureness, second, code)
            history = (history * 2 + nb.int64(hit)) & 3
            before = last
        last = code
        if kind == END:
            continue
        if depth > 0:
            bodies[filled[depth - 1]] = symbol
            filled[depth - 1] += 1
        else:
            if root_at == len(roots):
                return WRONG_COUNT
            roots[root_at] = symbol
            root_at += 1
        if kind < NEW_WORD:
            stack[depth] = found_rules
            filled[depth] = body_at
            rule_starts[found_rules] = body_at
            body_at += length
            rule_starts[found_rules + 1] = body_at
            found_rules += 1
            depth += 1
            continue
        while depth > 0 and filled[depth - 1] == nb.int64(rule_starts[stack[depth - 1] + 1]):
            rule = nb.int64(stack[depth - 1])
            height = nb.uint32(0)
            for i in range(nb.int64(rule_starts[rule]), nb.int64(rule_starts[rule + 1])):
                if bodies[i] >= words:
                    height = max(height, heights[bodies[i] - words])
            heights[rule] = height + nb.uint32(1)
            c = nb.int64(class_by[words + rule])
            if c > 0 and not _enter(*lists, words + rule, c):
                return WRONG_COUNT
            depth -= 1
    if found_words != words or found_rules != rules or body_at != len(bodies) or root_at != len(roots):
        return WRONG_COUNT
    for rule in range(rules):
        if rule & _POLL == 0 and interrupts() != began:
            return WRONG_END
        bits, x, kind_at = _code(x, kinds, kind_at, entries, STEP)
        if bits > 32:
            return WRONG_TABLE
        step = nb.int64(0)
        if bits > 17:
            step, y, place_at = place_of(y, places, place_at, 1 << (bits - 17), max(bits - 25, 0))
            low, y, place_at = place_of(y, places, place_at, 1 << 16, 8)
            step = (step << 16) | low | 1 << (bits - 1)
        elif bits > 0:
            step, y, place_at = place_of(y, places, place_at, 1 << (bits - 1), max(bits - 9, 0))
            step |= 1 << (bits - 1)
        steps[rule] = (step >> 1) ^ -(step & 1)
    history = 0
    for i in range(len(gap_codes)):
        if i & _POLL == 0 and interrupts() != began:
            return WRONG_END
        code, x, kind_at = _code(x, kinds, kind_at, entries, GAP + history)
        history = (2 * history + nb.int64(code != 0)) & 3
        if code >= LONG_GAP:
            bits = code - LONG_GAP
            if bits > MAX_GAP_BITS:
                return WRONG_TABLE
            over, y, place_at = place_of(y, places, place_at, 1 << bits, max(bits - 8, 0))
            code = LONG_GAP - 1 + (over | 1 << bits)
        gap_codes[i] = code
    if kind_at != len(kinds) or x != _LOW or place_at != len(places) or y != _LOW:
        return WRONG_END
    return OK
