"""Definition of the streams of packed rows that are coded in context: decoders in plain Python."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.coded_reference import EXACT, LONG, LONG_GAP, OLD, WORD, Stream, slot_of, step_of

SCALE, RATE, GROUPS = 15, 5, 6
Contexts = dict[Any, list[int]]


class Coder(Stream):
    """A stream of codes whose chances adapt."""

    def __init__(self, numbers: list[int]) -> None:
        super().__init__(numbers, states=1)
        self.contexts: Contexts = {}
        self.chances: dict[Any, int] = {}

    def adaptive(self, start: int, frequency: int) -> None:
        self.take(start, frequency, SCALE)
        self.refill()

    def four_bits(self, context: Any) -> int:
        starts = self.contexts.setdefault(context, [i << SCALE - 4 for i in range(16)])
        slot = self.states[0] % (1 << SCALE)
        code = max(i for i in range(16) if starts[i] <= slot)
        self.adaptive(starts[code], [*starts, 1 << SCALE][code + 1] - starts[code])
        for i in range(16):
            target = i if i <= code else (1 << SCALE) - 16 + i
            starts[i] += (target - starts[i]) >> RATE
        return code

    def byte(self, context: Any) -> int:
        high = self.four_bits((context, "high"))
        return high << 4 | self.four_bits((context, high))

    def is_hit(self, context: Any) -> bool:
        chance = self.chances.get(context, 1 << SCALE - 1)
        hit = self.states[0] % (1 << SCALE) < chance
        self.adaptive(0 if hit else chance, chance if hit else (1 << SCALE) - chance)
        self.chances[context] = chance + ((1 << SCALE) - chance >> RATE) if hit else chance - (chance >> RATE)
        return hit


def class_of(uses: int) -> int:
    """Exact up to 7; then 8, 16, 32, 64 and 128, 256 and 1,024, 8,192 or more."""
    return uses if uses <= EXACT else 7 + sum(uses >= least for least in (8, 16, 32, 64, 128, 256, 1024, 8192))


def group_of(shape: int) -> int:
    return min(shape, 4) if shape <= 16 else 5


def note_of(kind: int, group: int) -> int:
    """What is remembered of an event that followed a word."""
    if kind == 0:
        return 1
    if kind < WORD:
        return 2 + (kind > 2) + (kind > 4)
    if kind < OLD:
        return kind - WORD + 5 if kind - WORD <= 16 else 22 + (kind - WORD - 16) // 4
    return 30 + group


def learn(known: dict[Any, list[int]], place: Any, found: int) -> None:
    """Note what occurred, and how sure it is."""
    guess = known.setdefault(place, [found, 0])
    if guess[0] == found:
        guess[1] = min(guess[1] + 1, 15)
    elif guess[1] > 3:
        guess[1] >>= 1
    else:
        guess[:] = [found, 1]


def decode(words: int, rules: int, rows: int, mask: int, streams: Any, shapes: list[int]) -> Any:
    """Return rows and bodies, with words by shape and rules by first use, and steps between rules."""
    kinds, places = Coder(streams[0]), Stream(streams[1])
    first_words = [sum(shapes[:shape]) for shape in range(len(shapes))]
    groups = {
        word: group_of(shape)
        for shape, size in enumerate(shapes)
        for word in range(first_words[shape], first_words[shape] + size)
    }
    lists: dict[tuple[int, int], list[int]] = {}
    class_by: dict[int, int] = {}
    left: dict[int, int] = {}
    last_words = {word: word for word in range(words)}
    bodies: list[list[int]] = []
    found: list[list[int]] = [[]]
    open_rules: list[tuple[list[int], int, int]] = []
    top = words + rules
    known: dict[Any, list[int]] = {}
    notes: dict[Any, int] = {}
    before: list[int] = [0, 0, 0]
    last_type, last_word, history = 0, words, 0
    while len(found) <= rows:
        slots = [
            *((0, slot_of(before[1], before[0], mask)), (1, slot_of(0, before[0], mask))),
            *((2, slot_of(0, before[1], mask)), (3, slot_of(0, before[2], mask))),
        ]
        guesses = [known.get(slot) for slot in slots]
        code, tried = None, 0
        for number, guess in enumerate(guesses):
            if guess is None or any(other and other[0] == guess[0] for other in guesses[:number]):
                continue
            agree = sum(other is not None and other[0] == guess[0] for other in guesses[number + 1 :])
            if kinds.is_hit((number, guess[1], tried, agree, history)):
                code = guess[0]
                break
            tried += 1
        hit = code is not None
        if code is not None:
            kind = code - top if code >= top else OLD + class_by[code]
        else:
            own = kinds.four_bits(("type", last_type, notes.get(last_word, 0)))
            value = (own, len(open_rules) > 0)
            if own == 0:
                kind = 0
            elif own < 3:
                kind = kinds.byte(("value", value)) + (2 if own == 1 else WORD)
            else:
                kind = OLD + kinds.four_bits(("class", value))
                members = lists[own - 3, kind - OLD]
                code = members[places.place(len(members))]
            code = top + kind if code is None else code
        length, symbol, next_word = 0, code, words
        if kind >= OLD:
            members = lists.get((groups[symbol], kind - OLD), [])
            left[symbol] -= 1
            if left[symbol] == 0 and kind - OLD <= EXACT:
                members[members.index(symbol)] = members[-1]
                members.pop()
            last_type, next_word = 3, last_words[symbol]
        elif kind == 0:
            found.append([])
            last_type = 0
        elif kind >= WORD:
            symbol, last_type, next_word = first_words[kind - WORD], 2, words + 1 + kind - WORD
            first_words[kind - WORD] += 1
        else:
            symbol, last_type, next_word = words + len(bodies), 1, last_word
            length = kind + (places.place(1 << 16) << 16 | places.place(1 << 16) if kind == LONG else 0)
        if 0 < kind < OLD:
            c = kinds.four_bits(("new", groups[symbol] if kind >= WORD else None))
            class_by[symbol], left[symbol] = c, c if c <= EXACT else 1 << 60
            if c and not length:
                lists.setdefault((groups[symbol], c), []).append(symbol)
        for slot in slots:
            learn(known, slot, code)
        history = (2 * history + hit) & 3
        notes[last_word] = note_of(kind, groups[symbol] if kind >= OLD else 0)
        last_word, before = next_word, [code, *before[:2]]
        if kind == 0:
            continue
        (open_rules[-1][0] if open_rules else found[-1]).append(symbol)
        if length:
            bodies.append([])
            open_rules.append((bodies[-1], length, symbol))
        while open_rules and len(open_rules[-1][0]) == open_rules[-1][1]:
            body, _, rule = open_rules.pop()
            last_words[rule], groups[rule] = last_words[body[-1]], GROUPS + groups[body[0]] % GROUPS
            if class_by[rule]:
                lists.setdefault((groups[rule], class_by[rule]), []).append(rule)
    steps = [step_of(kinds.byte("step"), places) for _ in range(rules)]
    kinds.require_end()
    places.require_end()
    return found[:rows], bodies, steps


def row_gaps(
    words: int,
    mask: int,
    shapes: list[int],
    bodies: list[list[int]],
    predicted: Any,
    rows: list[list[int]],
    stream: Any,
) -> tuple[list[bytes], int]:
    """Return each row's gaps that differ from the prediction, as varint pairs, and how many gaps are coded.

    ``predicted`` has those before words, and those within each body.
    """
    coder, history, loud = Coder(stream), 0, []
    word_gaps, body_gaps = predicted
    for body, gaps in zip(bodies, body_gaps, strict=True):
        loud.append([False])
        for i in range(1, len(body)):
            loud[-1].append(coder.is_hit(("loud", history & 3, gaps[i] != 0)))
            history = 2 * history + loud[-1][-1]
    ends = [(word, word) for word in range(words)]
    for body in bodies:
        ends.append((ends[body[0]][0], ends[body[-1]][1]))
    known: dict[Any, list[int]] = {}
    met: set[int] = set()
    history, visits = 0, 0

    def coded(left: int, right: int, expected: int) -> int:
        nonlocal history, visits
        visits += 1
        alike = right if right == words or right in met else words + 1 + shapes[right]
        met.add(right)
        slots = [("pair", slot_of(left + 1, alike, mask)), ("before", alike), ("after", left)]
        guesses = [*map(known.get, slots), [expected, 0]]
        gap = None
        for number, guess in enumerate(guesses):
            if guess is not None and not any(other and other[0] == guess[0] for other in guesses[:number]):
                is_first = number == 0
                if coder.is_hit((number, guess[1], history)):
                    gap = guess[0]
            if number == 0:
                history = (2 * history + (gap is None)) & 3
            if gap is not None:
                break
        if gap is not None and is_first:
            learn(known, slots[0], gap)
            return gap
        if gap is None:
            gap = coder.byte("gap")
            if gap >= LONG_GAP:
                size = gap - LONG_GAP
                rest = sum(coder.four_bits(("raw", i)) << 4 * i for i in range((size + 3) // 4))
                gap = LONG_GAP - 1 + (1 << size) + rest % (1 << size)
        for slot in slots:
            learn(known, slot, gap)
        return gap

    def gaps_within(symbol: int) -> list[tuple[int, int]]:
        """List a symbol's gaps, with the predicted ones."""
        if symbol < words:
            return []
        body, found = bodies[symbol - words], gaps_within(bodies[symbol - words][0])
        for i, (left, right) in enumerate(pairwise(body), 1):
            expected = body_gaps[symbol - words][i]
            is_loud = loud[symbol - words][i]
            found.append((coded(ends[left][1], ends[right][0], expected) if is_loud else expected, expected))
            found += gaps_within(right)
        return found

    made = []
    for row in rows:
        found, left = [], words
        for symbol in row:
            expected = word_gaps[ends[symbol][0]] if found else 0
            found.append((coded(left, ends[symbol][0], expected), expected))
            found += gaps_within(symbol)
            left = ends[symbol][1]
        found.append((coded(left, words, 0), 0))
        data, skipped = bytearray(), 0
        for gap, expected in found:
            if gap == expected:
                skipped += 1
                continue
            for number in (skipped, gap):
                while number >= 0x80:
                    data.append(number & 0x7F | 0x80)
                    number >>= 7
                data.append(number)
            skipped = 0
        made.append(bytes(data))
    coder.require_end()
    return made, visits
