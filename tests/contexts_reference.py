"""Definition of the streams of packed rows that are coded in context: decoders in plain Python."""

from __future__ import annotations

from typing import Any

from tests.coded_reference import EXACT, LONG, OLD, WORD, Bits, Stream, slot_of, step_of

SCALE, RATE, GROUPS, CHOICES = 15, 5, 6, 5
Contexts = dict[Any, list[int]]


class Coder(Stream):
    """A stream of codes whose chances adapt."""

    def __init__(self, numbers: list[int]) -> None:
        super().__init__(numbers, states=1)
        self.contexts: Contexts = {}

    def adaptive(self, context: Any, starts: list[int]) -> int:
        """Return a code; where each code starts moves down, or up behind the code."""
        own = self.contexts.setdefault(context, starts)
        slot = self.states[0] % (1 << SCALE)
        code = max(i for i in range(len(own)) if own[i] <= slot)
        self.take(own[code], [*own, 1 << SCALE][code + 1] - own[code], SCALE)
        self.refill()
        for i in range(len(own)):
            own[i] += ((1 << SCALE - RATE) - 1) * (i > code) - (own[i] - i >> RATE)
        return code

    def four_bits(self, context: Any) -> int:
        return self.adaptive(context, [i << SCALE - 4 for i in range(16)])

    def byte(self, context: Any) -> int:
        high = self.four_bits((context, "high"))
        return high << 4 | self.four_bits((context, high))

    def choice(self, known: list[list[int] | None], history: int) -> int:
        """Return which guess is right, in the context of which there are and are equal."""
        (first, sure), (second, second_sure), (third, _), (fourth, _) = (one or [0, 0] for one in known)
        new = second != first, third not in (first, second), fourth not in (first, second, third)
        agree = sum(guess == first for guess in (second, third, fourth))
        levels = sum(sure >= least for least in (1, 2, 3, 4, 8, 15)), (second_sure > 1) + (second_sure > 4)
        context = ("choice", levels, new, agree, history)
        return self.adaptive(context, [i * 6553 for i in range(CHOICES)])


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
    kinds, places = Coder(streams[0]), Bits(streams[1])
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
        choice = kinds.choice(guesses, history)
        hit, code = choice < 4, None
        if hit:
            chosen = guesses[choice]
            assert chosen is not None
            code = chosen[0]
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


def row_strings(words: int, mask: int, bodies: list[list[int]], rows: list[list[int]], stream: Any) -> list[int]:
    """Return the number of each row's string; numbers are in the order of first use."""
    coder, known, history = Coder(stream), {}, 0
    sizes = [1] * words
    for body in bodies:
        sizes.append(sum(sizes[symbol] for symbol in body))
    found: list[int] = []
    for row in rows:
        count = sum(sizes[symbol] for symbol in row) % (1 << 16)
        sides = [row[-1] if row else 0, max(row, default=0), 0]
        slots = [(i, slot_of(count, side, mask)) for i, side in enumerate(sides)]
        guesses = [known.get(slot) for slot in slots]
        choice = coder.choice([*guesses, None], history)
        number = max(found, default=-1) + 1
        if choice < 3:
            chosen = guesses[choice]
            assert chosen is not None
            number = chosen[0]
        elif choice == 3:
            bits = coder.byte("bits")
            rest = 0
            for i in range((bits + 2) // 4):
                rest = rest << 4 | coder.four_bits(("number", bits, i))
            number = rest | 1 << bits - 1 if bits else 0
        for slot in slots:
            learn(known, slot, number)
        history = (2 * history + (choice != 0)) & 3
        found.append(number)
    coder.require_end()
    return found
