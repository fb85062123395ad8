"""Definition of the coded streams of packed rows: a decoder in plain Python."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

EXACT, END, LONG, WORD, OLD, SCALE = 7, 0, 19, 20, 53, 12
WORD_CLASS, RULE_CLASS, STEP, GAP, LONG_GAP = 4, 5, 6, 7, 232


class Stream:
    """A stream of rANS: numbers of 32 bits after a state of 64."""

    def __init__(self, numbers: list[int]) -> None:
        self.state, self.rest = numbers[0] << 32 | numbers[1], numbers[2:]

    def refill(self) -> None:
        if self.state < 1 << 31:
            self.state = self.state << 32 | self.rest.pop(0)

    def code(self, frequencies: list[int]) -> int:
        slot = self.state % (1 << SCALE)
        ends = list(accumulate(frequencies))
        code = next(code for code, end in enumerate(ends) if slot < end)
        frequency = frequencies[code]
        start = ends[code] - frequency
        self.state = frequency * (self.state >> SCALE) + slot - start
        self.refill()
        return code

    def place(self, length: int) -> int:
        bits = max((length - 1).bit_length() - 8, 0)
        count = ((length - 1) >> bits) + 1
        slot = self.state & 0xFFFF
        high = slot * count >> 16
        start, end = -(-(high << 16) // count), -(-(high + 1 << 16) // count)
        self.state = (end - start) * (self.state >> 16) + slot - start
        low = self.state % (1 << bits)
        self.state >>= bits
        self.refill()
        return high << bits | low


def step_of(bits: int, places: Stream) -> int:
    """Return the number near 0 of some bits, whose sign is the last one."""
    step = 0
    if bits > 17:
        step = places.place(1 << bits - 17) << 16 | places.place(1 << 16) | 1 << bits - 1
    elif bits:
        step = places.place(1 << bits - 1) | 1 << bits - 1
    return step >> 1 ^ -(step & 1)


def gaps_of(codes: list[int], word_gaps: list[int], bodies: list[list[int]], bits: int) -> list[list[int]]:
    """Return the gaps within bodies, whose symbols are words or earlier bodies."""
    words, rest = len(word_gaps), iter(codes)
    after: dict[int, int] = {}
    before = dict(enumerate(word_gaps))
    between: dict[int, int] = {}
    ends = [(word, word) for word in range(words)]
    found = []
    for body in bodies:
        found.append([0])
        for left, right in pairwise(body):
            key = (ends[left][1], ends[right][0])
            place = (key[0] * 0x9E3779B97F4A7C15 + key[1] * 0xC2B2AE3D27D4EB4F) % (1 << 64) >> 64 - bits
            known = [between.get(place), after.get(key[0]), before.get(key[1])]
            guesses = list(dict.fromkeys(one for one in known if one is not None))
            code = next(rest)
            gap = guesses[code] if code < len(guesses) else code - 3
            between[place] = after[key[0]] = before[key[1]] = gap
            found[-1].append(gap)
        ends.append((ends[body[0]][0], ends[body[-1]][1]))
    assert next(rest, None) is None
    return found


def predictions(mask: int) -> Any:
    """Two tables of codes that followed, by two codes and by one, and how sure each is."""
    return [[None, 0] for _ in range(2 * (mask + 1))]


def slot_of(before: int, last: int, mask: int) -> int:
    key = before * 0x9E3779B97F4A7C15 + last * 0xC2B2AE3D27D4EB4F
    return (key % (1 << 64) >> 40) & mask


def decode(
    words: int, rules: int, rows: int, predicts: bool, mask: int, streams: Any, tables: Any, shapes: list[int]
) -> Any:
    """Return rows and bodies, with words by shape and rules by first use, steps between rules, and codes of gaps."""
    kinds, places = Stream(streams[0]), Stream(streams[1])
    first_words = [sum(shapes[:shape]) for shape in range(len(shapes))]
    lists: dict[int, list[int]] = {}
    class_by, left = {}, {}
    bodies: list[list[int]] = []
    found: list[list[int]] = [[]]
    open_rules: list[tuple[list[int], int, int]] = []
    top = words + rules
    guesses = predictions(mask) if predicts else []
    chances = [2048] * 128
    before = last = context = history = 0
    while len(found) <= rows:
        code, hit = None, False
        if predicts:
            first, second = guesses[slot_of(before, last, mask)], guesses[mask + 1 + slot_of(0, last, mask)]
            for number, guess in enumerate([first, second]):
                if hit or guess[1] == 0 or (number == 1 and first[1] and first[0] == guess[0]):
                    continue
                at = 64 * number + 4 * guess[1] + history
                hit = kinds.code([chances[at], 4096 - chances[at]]) == 0
                chances[at] += (4096 - chances[at]) >> 5 if hit else -(chances[at] >> 5)
                code = guess[0]
        if not hit:
            code = top + kinds.code(tables[context])
        assert code is not None
        kind = code - top if code >= top else OLD + class_by[code]
        length = 0
        if kind >= OLD:
            members = lists[kind - OLD]
            symbol = code if hit else members[places.place(len(members))]
            code = symbol
            left[symbol] -= 1
            if left[symbol] == 0 and kind - OLD <= EXACT:
                members[members.index(symbol)] = members[-1]
                members.pop()
            context = 3
        elif kind == END:
            found.append([])
            context = 0
        else:
            if kind >= WORD:
                symbol, context = first_words[kind - WORD], 1
                first_words[kind - WORD] += 1
            else:
                symbol, context = words + len(bodies), 2
                length = kind + (places.place(1 << 16) << 16 | places.place(1 << 16) if kind == LONG else 0)
            c = kinds.code(tables[WORD_CLASS if kind >= WORD else RULE_CLASS])
            class_by[symbol], left[symbol] = c, c if c <= EXACT else 1 << 60
            if c and not length:
                lists.setdefault(c, []).append(symbol)
        if predicts:
            for guess in (first, second):
                if guess[0] == code:
                    guess[1] = min(guess[1] + 1, 15)
                elif guess[1] > 3:
                    guess[1] >>= 1
                else:
                    guess[:] = [code, 1]
            history = (2 * history + hit) & 3
            before = last
        last = code
        if kind == END:
            continue
        (open_rules[-1][0] if open_rules else found[-1]).append(symbol)
        if length:
            bodies.append([])
            open_rules.append((bodies[-1], length, symbol))
        while open_rules and len(open_rules[-1][0]) == open_rules[-1][1]:
            rule = open_rules.pop()[2]
            if class_by[rule]:
                lists.setdefault(class_by[rule], []).append(rule)
    steps = [step_of(kinds.code(tables[STEP]), places) for _ in range(rules)]
    gaps: list[int] = []
    for _ in range(sum(map(len, bodies)) - rules):
        first, second = ([0, 0, *gaps])[-2:]
        code = kinds.code(tables[GAP + 2 * (first != 0) + (second != 0)])
        gaps.append(
            code if code < LONG_GAP else LONG_GAP - 1 + (1 << code - LONG_GAP) + places.place(1 << code - LONG_GAP)
        )
    assert (kinds.state, kinds.rest, places.state, places.rest) == (1 << 31, [], 1 << 31, [])
    return found[:rows], bodies, steps, gaps
