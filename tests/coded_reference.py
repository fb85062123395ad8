"""Definition of the coded streams of packed rows: a decoder in plain Python."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

EXACT, END, LONG, WORD, OLD, SCALE = 7, 0, 19, 20, 53, 12
WORD_CLASS, RULE_CLASS, STEP, LONG_GAP = 4, 5, 6, 232


class Stream:
    """A stream of rANS: numbers of 32 bits after states of 64, which codes use in turn."""

    def __init__(self, numbers: list[int], states: int = 4) -> None:
        self.states = [numbers[at] << 32 | numbers[at + 1] for at in range(0, 2 * states, 2)]
        self.rest, self.turn = numbers[2 * states :], 0

    def take(self, start: int, frequency: int, scale: int) -> None:
        """Remove a code from the state whose turn it is."""
        state = self.states[self.turn]
        self.states[self.turn] = frequency * (state >> scale) + state % (1 << scale) - start

    def refill(self) -> None:
        if self.states[self.turn] < 1 << 31:
            self.states[self.turn] = self.states[self.turn] << 32 | self.rest.pop(0)
        self.turn = (self.turn + 1) % len(self.states)

    def code(self, frequencies: list[int]) -> int:
        slot = self.states[self.turn] % (1 << SCALE)
        ends = list(accumulate(frequencies))
        code = next(code for code, end in enumerate(ends) if slot < end)
        self.take(ends[code] - frequencies[code], frequencies[code], SCALE)
        self.refill()
        return code

    def codes(self, count: int, frequencies: list[int]) -> list[int]:
        """Return codes of one table, from the first state on."""
        self.turn = 0
        found = [self.code(frequencies) for _ in range(count)]
        self.turn = 0
        return found

    def bits(self, count: int) -> int:
        value = self.states[self.turn] % (1 << SCALE) >> SCALE - count
        self.take(value << SCALE - count, 1 << SCALE - count, SCALE)
        self.refill()
        return value

    def require_end(self) -> None:
        assert self.rest == []
        assert set(self.states) == {1 << 31}


class Bits:
    """Bits of 32-bit numbers, the lowest first."""

    def __init__(self, numbers: list[int]) -> None:
        self.bits = "".join(f"{number:032b}"[::-1] for number in numbers)
        self.at, self.size = 0, len(numbers)

    def take(self, count: int) -> int:
        taken = self.bits[self.at : self.at + count]
        assert len(taken) == count
        self.at += count
        return int(taken[::-1] or "0", 2)

    def place(self, length: int) -> int:
        """Return a place in a list: the first places have a bit less than the others."""
        bits = length.bit_length() - 1
        place = self.take(bits)
        return place + (length - (1 << bits)) * self.take(1) if place + length >= 2 << bits else place

    def require_end(self) -> None:
        assert -(-self.at // 32) == self.size
        assert "1" not in self.bits[self.at :]


def step_of(bits: int, places: Bits) -> int:
    """Return the number near 0 of some bits, whose sign is the last one."""
    step = 0
    if bits > 17:
        step = places.place(1 << bits - 17) << 16 | places.place(1 << 16) | 1 << bits - 1
    elif bits:
        step = places.place(1 << bits - 1) | 1 << bits - 1
    return step >> 1 ^ -(step & 1)


def gaps_of(
    stream: list[int], tables: list[int], word_gaps: list[int], bodies: list[list[int]], bits: int
) -> list[list[int]]:
    """Return the gaps within bodies, whose symbols are words or earlier bodies."""
    words, codes = len(word_gaps), Stream(stream)
    after: dict[int, int] = {}
    before = dict(enumerate(word_gaps))
    between: dict[int, int] = {}
    ends = [(word, word) for word in range(words)]
    found, history = [], 0
    for body in bodies:
        found.append([0])
        for left, right in pairwise(body):
            key = (ends[left][1], ends[right][0])
            place = (key[0] * 0x9E3779B97F4A7C15 + key[1] * 0xC2B2AE3D27D4EB4F) % (1 << 64) >> 64 - bits
            first, second, third = guesses = [between.get(place), after.get(key[0]), before[key[1]]]
            flags = [first is not None, second is not None, first == second, first == third, second == third]
            context = 4 * sum(flag << i for i, flag in enumerate(flags)) + history
            choice = codes.code(tables[256 + 4 * context :][:4])
            if choice < 3:
                gap = guesses[choice]
                assert gap is not None
            elif (gap := codes.code(tables[:256])) >= LONG_GAP:
                size = gap - LONG_GAP
                high = codes.bits(max(size - 12, 0))
                gap = LONG_GAP - 1 + (1 << size | high << min(size, 12) | codes.bits(min(size, 12)))
            history = (2 * history + (choice != 0)) & 3
            between[place] = after[key[0]] = before[key[1]] = gap
            found[-1].append(gap)
        ends.append((ends[body[0]][0], ends[body[-1]][1]))
    codes.require_end()
    return found


def predictions(mask: int) -> Any:
    """Two tables of codes that followed, by two codes and by one, and how sure each is."""
    return [[None, 0] for _ in range(2 * (mask + 1))]


def slot_of(before: int, last: int, mask: int) -> int:
    key = before * 0x9E3779B97F4A7C15 + last * 0xC2B2AE3D27D4EB4F
    return (key % (1 << 64) >> 40) & mask


def context_of(kind: int) -> int:
    """Return the table of the next kind."""
    return 3 if kind >= OLD else 1 if kind >= WORD else 2 if kind else 0


def runs(events: int, kinds: Stream, tables: Any) -> list[int]:
    """Decode kinds in four runs side by side, each with a state of its own."""
    run = max(-(-events // 4), 1)
    found: list[list[int]] = [[], [], [], []]
    for i in range(run):
        for number, own in enumerate(found):
            if number * run + i < events:
                kinds.turn = number
                own.append(kinds.code(tables[context_of(own[-1]) if own else 0]))
    return [kind for own in found for kind in own]


def decode(
    words: int, rules: int, events: int, predicts: bool, mask: int, streams: Any, tables: Any, shapes: list[int]
) -> Any:
    """Return rows and bodies, with words by shape and rules by first use, and steps between rules."""
    kinds, places = Stream(streams[0]), Bits(streams[1])
    class_of = kinds.codes(words, tables[WORD_CLASS]) + kinds.codes(rules, tables[RULE_CLASS])
    step_bits = kinds.codes(rules, tables[STEP])
    side_by_side = None if predicts else iter(runs(events, kinds, tables))
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
    for _ in range(events):
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
            code = top + (kinds.code(tables[context]) if side_by_side is None else next(side_by_side))
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
        elif kind == END:
            found.append([])
        else:
            if kind >= WORD:
                symbol = first_words[kind - WORD]
                first_words[kind - WORD] += 1
            else:
                symbol = words + len(bodies)
                length = kind + (places.place(1 << 16) << 16 | places.place(1 << 16) if kind == LONG else 0)
            c = class_of[symbol]
            class_by[symbol], left[symbol] = c, c if c <= EXACT else 1 << 60
            if c and not length:
                lists.setdefault(c, []).append(symbol)
        context = context_of(kind)
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
    steps = [step_of(bits, places) for bits in step_bits]
    kinds.require_end()
    places.require_end()
    return found[:-1], bodies, steps
