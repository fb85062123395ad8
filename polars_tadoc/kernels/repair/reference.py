"""Plain-Python definition of Re-Pair, Sequitur and gaps; CPU and GPU kernels must return the same results.

Written for reading, not for speed: lists, dicts and big integers, no NumPy. Tests compare every fast kernel with these
functions on generated inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

Pair = tuple[int, int]
Item = TypeVar("Item")

_MASK = (1 << 64) - 1
_K1, _K2 = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93


def hash_pair(pair: Pair) -> int:
    """Hash a pair of symbols to 64 bits."""
    h = ((pair[0] << 32 | pair[1]) * _K1) & _MASK
    h = ((h ^ h >> 32) * _K2) & _MASK
    return h ^ h >> 32


INNER_ROUNDS = 6


def hash_line(words: Sequence[int]) -> int:
    """Hash a line: the sum of its words' hashes, each times twice the word's number and one."""
    hashes = (((word + 1) * _K1) & _MASK for word in words)
    return _sum_hashes([(h ^ h >> 32) * _K2 for h in hashes])


def _sum_hashes(hashes: Sequence[int]) -> int:
    return sum(h * (2 * k + 1) for k, h in enumerate(hashes)) & _MASK


def split_row(words: Sequence[int], ends: Sequence[int], least: int) -> list[list[int]]:
    """Split a row after each word that at least ``least`` line ends follow; ``ends`` has their numbers between words.

    Examples
    --------
    >>> split_row([4, 5, 6, 7], [1, 0, 2], 1), split_row([4, 5, 6, 7], [1, 0, 2], 2)
    ([[4], [5, 6], [7]], [[4, 5, 6], [7]])

    """
    units: list[list[int]] = [[]]
    for word, end in zip(words, [0, *ends], strict=True) if words else ():
        if end >= least:
            units.append([])
        units[-1].append(word)
    return units


def repeated_units(rows: Sequence[Sequence[int]], ends: Sequence[Sequence[int]]) -> list[list[list[int]]] | None:
    """Split rows into paragraphs or lines, if they repeat; None if neither do.

    Two line ends between words, or more, end a paragraph, and each ends a line. Paragraphs repeat if, in distinct rows,
    half of the words or more are in paragraphs that equal an earlier one, by a sample: those whose hash has three zeros
    on top. They have four words or more on average. Lines likewise. A paragraph's or row's hash is the sum of its
    lines' hashes, each times twice the line's number and one.
    """
    lines = [split_row(row, own, 1) for row, own in zip(rows, ends, strict=True)]
    hashes = [_sum_hashes([hash_line(line) for line in row]) for row in lines]
    distinct = [k for k, h in enumerate(hashes) if hashes.index(h) == k]
    for least in (2, 1):
        units = [split_row(row, own, least) for row, own in zip(rows, ends, strict=True)]
        if sum(map(len, units)) == len(rows):
            continue
        sizes, words, repeated, seen = [], 0, 0, set()
        for k in distinct:
            own_lines = iter(lines[k])
            for unit in units[k]:
                sizes.append(len(unit))
                own, size = [], 0
                while size < len(unit):
                    own.append(hash_line(line := next(own_lines)))
                    size += len(line)
                h = _sum_hashes(own)
                if h >> 61 == 0:
                    words += len(unit)
                    repeated += len(unit) * (h in seen)
                    seen.add(h)
        if sum(sizes) >= 4 * len(sizes) and 0 < words <= 2 * repeated:
            return units
    return None


def batch_repair(
    sequences: list[list[int]],
    vocabulary_size: int,
    part: int = 1,
    whole: int = 2,
    ends: Sequence[Sequence[int]] | None = None,
) -> tuple[list[Pair], list[list[int]]]:
    """Replace repeated pairs in rounds; rule k becomes symbol ``vocabulary_size + k``.

    If paragraphs or lines repeat (:func:`repeated_units`), the first ``INNER_ROUNDS`` rounds take each of them as a
    row, and replace pairs that are selected at two thirds of the counted positions or more. Then rounds take the rows.
    ``ends``, by row, has the numbers of line ends between words; None: there are none.

    Examples
    --------
    >>> batch_repair([[0, 1, 0, 1], [0, 1]], 2)
    ([(0, 1)], [[2, 2], [2]])

    """
    rules: dict[Pair, int] = {}
    units = None if ends is None else repeated_units(sequences, ends)
    if units is not None:
        each = [unit for row in units for unit in row]
        share = (part, whole) if 3 * part > 2 * whole else (2, 3)
        inside = iter(run_rounds(each, rules, vocabulary_size, *share, INNER_ROUNDS))
        sequences = [[symbol for _ in row for symbol in next(inside)] for row in units]
    rows = run_rounds(sequences, rules, vocabulary_size, part, whole)
    return list(rules), rows


def run_rounds(
    sequences: list[list[int]],
    rules: dict[Pair, int],
    vocabulary_size: int,
    part: int = 1,
    whole: int = 2,
    most_rounds: int | None = None,
) -> list[list[int]]:
    """Run rounds, all or at most ``most_rounds``; return the rows' symbols, and add to the rules.

    All rows form one sequence, with a separator after each. A position represents the pair that starts there. In each
    round

    1. count the pairs at alive positions; a pair with count two or more has the priority (count, hash);
    2. select the positions whose priority is above those of both adjacent positions; if priorities are equal (in a run
       of one symbol, as different pairs have different hashes), select at even distance from the run's start;
    3. replace the pairs that are selected at two positions or more, and at ``part / whole`` of the counted positions or
       more (other counts are stale and wait for the next round); new pairs become rules, numbered by first selected
       position;
    4. positions whose pair was counted once die; positions whose pair contains a new symbol become alive. If the round
       made no rule, the selected positions die as well, so that adjacent positions can be selected.

    Ends if at most one position is alive, nothing is selected, or two consecutive rounds made no rule.
    """
    separator = -1
    sequence = [symbol for row in sequences for symbol in (*row, separator)]
    alive = [a != separator != b for a, b in _neighbours(sequence, separator)]
    stalled_before, rounds = False, 0
    while sum(alive) > 1 and rounds != most_rounds:
        rounds += 1
        pairs = _neighbours(sequence, separator)
        counts = Counter(pair for pair, is_alive in zip(pairs, alive, strict=True) if is_alive)
        nothing = (0, 0)
        priority = [
            (counts[pair], hash_pair(pair)) if is_alive and counts[pair] > 1 else nothing
            for pair, is_alive in zip(pairs, alive, strict=True)
        ]
        selected = []
        run_start = 0
        for i, here in enumerate(priority):
            run_start = run_start if i > 0 and sequence[i] == sequence[i - 1] else i
            even = (i - run_start) % 2 == 0
            neighbours = [priority[j] for j in (i - 1, i + 1) if 0 <= j < len(priority)]
            selected.append(here > nothing and all(here > n or (here == n and even) for n in neighbours))
        times = Counter(pair for pair, is_selected in zip(pairs, selected, strict=True) if is_selected)
        # a Counter keeps the order of first positions
        new = [pair for pair in times if times[pair] > 1 and whole * times[pair] >= part * counts[pair]]
        if not new and (stalled_before or not any(selected)):
            break
        stalled_before = not new
        for pair in new:
            rules.setdefault(pair, vocabulary_size + len(rules))
        symbol_of = {pair: rules[pair] for pair in new}
        written: list[tuple[int, bool, bool]] = []  # symbol, whether it was alive, whether it is new
        i = 0
        while i < len(sequence):
            if selected[i] and pairs[i] in symbol_of:
                written.append((symbol_of[pairs[i]], True, True))
                i += 2
            else:
                keeps = alive[i] and counts[pairs[i]] > 1 and not (selected[i] and not new)
                written.append((sequence[i], keeps, False))
                i += 1
        sequence = [symbol for symbol, _, _ in written]
        alive = [
            a[0] != separator != b[0] and (a[1] or a[2] or b[2])
            for a, b in _neighbours(written, (separator, False, False))
        ]
    rows: list[list[int]] = [[]]
    for symbol in sequence:
        if symbol == separator:
            rows.append([])
        else:
            rows[-1].append(symbol)
    return rows[:-1]


def _neighbours(items: list[Item], after_last: Item) -> list[tuple[Item, Item]]:
    return list(zip(items, [*items, after_last][1:], strict=True))


def prune(
    rules: list[Pair], sequences: list[list[int]], vocabulary_size: int, margin: int = 1, passes: int = 4
) -> tuple[list[list[int]], list[int], list[list[int]]]:
    """Inline rules that do not pay, and sort the others by level.

    A rule with body length l and u uses is kept if ``l * u > l + u + margin``. Each pass counts uses with the rules
    dropped before inlined, then visits rules in order; lengths are updated at once. A rule's level is one above the
    highest rule in its body; the order within a level is kept.

    Returns
    -------
    (bodies, level_offsets, rows)
        Bodies and rows with the new numbers; the first rule of each level, then the number of rules.

    Examples
    --------
    >>> prune([(0, 1), (2, 2)], [[3, 3], [3, 3]], 2, margin=0)
    ([[0, 1, 0, 1]], [0, 1], [[2, 2], [2, 2]])

    """
    kept = [True] * len(rules)

    def inline(symbols: Sequence[int]) -> list[int]:
        return [
            s
            for symbol in symbols
            for s in (
                [symbol]
                if symbol < vocabulary_size or kept[symbol - vocabulary_size]
                else inline(rules[symbol - vocabulary_size])
            )
        ]

    for _ in range(passes):
        bodies = [inline(rule) for rule, keep in zip(rules, kept, strict=True) if keep]
        uses = Counter(s for symbols in (*bodies, *map(inline, sequences)) for s in symbols)
        dropped = False
        for r, rule in enumerate(rules):
            length, used = len(inline(rule)), uses[vocabulary_size + r]
            if kept[r] and length * used <= length + used + margin:
                kept[r] = False
                dropped = True
        if not dropped:
            break
    level: dict[int, int] = {}
    for r, rule in enumerate(rules):
        if kept[r]:
            level[r] = 1 + max((level[s - vocabulary_size] for s in inline(rule) if s >= vocabulary_size), default=-1)
    order = sorted(level, key=lambda r: (level[r], r))
    number = {vocabulary_size + r: vocabulary_size + k for k, r in enumerate(order)}

    def renumber(symbols: Sequence[int]) -> list[int]:
        return [number.get(s, s) for s in inline(symbols)]

    level_offsets = [0]
    for height in range(1 + max(level.values(), default=-1)):
        level_offsets.append(level_offsets[-1] + sum(h == height for h in level.values()))
    return [renumber(rules[r]) for r in order], level_offsets, [renumber(row) for row in sequences]


def decode_gaps(data: bytes, words: int, gap_vocabulary: Sequence[str]) -> list[str]:
    """List the words + 1 gaps of a row from varint pairs (number of skipped default gaps, gap id).

    The default gap is one space, or empty before the first and after the last word.

    Raises
    ------
    ValueError
        The stream ends inside a number, or refers to a gap or position that does not exist.

    Examples
    --------
    >>> decode_gaps(bytes([1, 0]), 3, [", "])
    ['', ', ', ' ', '']

    """
    gaps = ["", *[" "] * (words - 1), ""] if words else [""]
    at = 0
    place = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            if at == len(data):
                raise ValueError("the stream ends inside a number")
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        place += varint()
        gap = varint()
        if place > words or gap >= len(gap_vocabulary):
            raise ValueError("no such position or gap")
        gaps[place] = gap_vocabulary[gap]
        place += 1
    return gaps


def expand_rows(
    vocabulary_size: int, bodies: Sequence[Sequence[int]], rows: Sequence[Sequence[int]], word_ids: Sequence[int]
) -> list[list[int]]:
    """List each row's words with mapped ids.

    Examples
    --------
    >>> expand_rows(2, [[0, 1]], [[2, 0], []], [5, 7])
    [[5, 7, 5], []]

    """
    expansions = [[word_ids[word]] for word in range(vocabulary_size)]
    for body in bodies:
        expansions.append([word for symbol in body for word in expansions[symbol]])
    return [[word for symbol in row for word in expansions[symbol]] for row in rows]


def gap_keys(
    row: Sequence[int], vocabulary_size: int, rule_offsets: Sequence[int], symbols: Sequence[int]
) -> list[int]:
    """Return for each gap between two words of a row the key of its prediction.

    If the words belong to different top-level symbols of the row, the key is the word after the gap. If they belong to
    positions k - 1 and k of one rule body, the key is ``vocabulary_size + rule_offsets[rule] + k``.

    Examples
    --------
    >>> gap_keys([2, 2, 1], 2, [0, 2], [0, 1])  # rule 2 expands to the words 0 and 1
    [3, 0, 3, 1]

    """
    keys = []

    def visit(symbol: int, key: int | None) -> None:
        if symbol < vocabulary_size:
            keys.append(symbol if key is None else key)
            return
        first = rule_offsets[symbol - vocabulary_size]
        for place in range(first, rule_offsets[symbol - vocabulary_size + 1]):
            visit(int(symbols[place]), key if place == first else vocabulary_size + place)

    for symbol in row:
        visit(int(symbol), None)
    return keys[1:]


def predict_gaps(
    rows: Sequence[Sequence[int]],
    codes: Sequence[Sequence[int]],
    vocabulary_size: int,
    rule_offsets: Sequence[int],
    symbols: Sequence[int],
) -> list[int]:
    """Predict a gap code for each key of :func:`gap_keys`: the most frequent one over all rows.

    Ties go to the smallest code; codes seen once do not count. Without any, the prediction is code 0.

    Parameters
    ----------
    rows
        Each row's top-level symbols.
    codes
        Each row's words + 1 gap codes: 0 for a single space, otherwise 1 + the gap's id. The first and last gap,
        outside of the words, are not predicted.
    vocabulary_size, rule_offsets, symbols
        The grammar.

    Returns
    -------
    list of int
        Code by key: ``vocabulary_size + len(symbols)`` codes.

    Examples
    --------
    >>> predict_gaps([[2, 1], [2, 2]], [[0, 5, 4, 0], [0, 5, 4, 6, 0]], 2, [0, 2], [0, 1])
    [0, 0, 0, 5]

    """
    seen: list[Counter[int]] = [Counter() for _ in range(vocabulary_size + len(symbols))]
    for row, row_codes in zip(rows, codes, strict=True):
        for key, code in zip(gap_keys(row, vocabulary_size, rule_offsets, symbols), row_codes[1:-1], strict=True):
            seen[key][code] += 1
    return [
        min((-count, code) for code, count in [*counts.items(), (0, 1)] if count > 1 or code == 0)[1] for counts in seen
    ]


def encode_predicted_gaps(codes: Sequence[int], predicted: Sequence[int]) -> bytes:
    """Encode a row's gaps that differ from the prediction: varint pairs (number of skipped gaps, gap code).

    Parameters
    ----------
    codes
        The row's words + 1 gap codes, as for :func:`predict_gaps`, but for the first and the last gap 0 means an empty
        gap.
    predicted
        The predicted code of each gap between two words.

    Examples
    --------
    >>> list(encode_predicted_gaps([0, 5, 0, 7, 2], [5, 6, 7]))
    [2, 0, 1, 2]

    """
    assumed = [0, *predicted, 0] if len(codes) > 1 else [0]
    data = bytearray()
    passed = 0
    for code, expected in zip(codes, assumed, strict=True):
        if code == expected:
            passed += 1
            continue
        for number in (passed, code):
            while number >= 0x80:
                data.append(number & 0x7F | 0x80)
                number >>= 7
            data.append(number)
        passed = 0
    return bytes(data)


def decode_predicted_gaps(data: bytes, predicted: Sequence[int] | None, gap_vocabulary: Sequence[str]) -> list[str]:
    """List the words + 1 gaps of a row; ``predicted`` is None for a row without words.

    Raises
    ------
    ValueError
        The stream ends inside a number, refers to a gap or position that does not exist, or has code 0 for the first or
        last gap.

    Examples
    --------
    >>> decode_predicted_gaps(bytes([2, 0, 1, 2]), [1, 2, 1], [", ", "-"])
    ['', ', ', ' ', ', ', '-']

    """
    strings = [" ", *gap_vocabulary]
    gaps = [""] if predicted is None else ["", *(strings[code] for code in predicted), ""]
    for place, code in _varint_pairs(data):
        if place >= len(gaps) or code >= len(strings) or (code == 0 and place in (0, len(gaps) - 1)):
            raise ValueError("no such position or gap")
        gaps[place] = strings[code]
    return gaps


def _varint_pairs(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield position and value of each varint pair (skipped positions, value)."""
    numbers: list[int] = []
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(value)
            value = shift = 0
    if shift or len(numbers) % 2:
        raise ValueError("the stream ends inside a number")
    place = 0
    for passed, value in zip(numbers[::2], numbers[1::2], strict=True):
        place += passed
        yield place, value
        place += 1


def fewest_symbols(
    vocabulary_size: int, bodies: Sequence[Sequence[int]], rows_of_words: Sequence[Sequence[int]]
) -> list[int]:
    """Return for each row the minimum number of words and rules that expand to it.

    Examples
    --------
    >>> fewest_symbols(2, [[0, 1], [2, 2]], [[0, 1, 0, 1, 1], []])
    [2, 0]

    """
    expansions = expand_rows(
        vocabulary_size, bodies, [[s] for s in range(vocabulary_size + len(bodies))], range(vocabulary_size)
    )
    counts = []
    for row in rows_of_words:
        fewest = [0]
        for end in range(1, len(row) + 1):
            fewest.append(
                1 + min(fewest[end - len(e)] for e in expansions if len(e) <= end and row[end - len(e) : end] == e)
            )
        counts.append(fewest[-1])
    return counts


def sequitur(sequences: list[list[int]], vocabulary_size: int) -> tuple[list[list[int]], list[int], list[list[int]]]:
    """Infer a grammar word by word (Nevill-Manning and Witten, 1997); all rows share the rules.

    No digram occurs twice without overlap (digram uniqueness), and every rule is used at least twice (rule utility). A
    digram is two adjacent symbols of a row or of a rule's body. One position is recorded per digram, the first one in a
    run; a position with a new digram is pending. While there are pending positions, take the latest:

    1. if its digram is not recorded, record it;
    2. if the recorded position overlaps (three equal symbols), record the first of both, and make the position after it
       pending;
    3. if the recorded position, or otherwise this one, is the whole body of a rule, replace the other by that rule;
    4. if the first symbol is a rule with uses in these two positions only, append the second symbol to its body (this
    is
       what a new rule and rule utility would lead to);
    5. otherwise make the digram a rule, first at the recorded position, then at the other.

    After 3 to 5, the first, then the last symbol of that rule's body is replaced by its own body if it has no other
    use. If both positions are whole bodies, both stay. A new pending position precedes those already pending; inserting
    a symbol makes its position pending, then the position before it, so that the latter is taken first.

    Returns
    -------
    (bodies, level_offsets, rows)
        As for :func:`prune`: a rule's level is one above the highest rule in its body; within a level, rules are in
        order of creation.

    Examples
    --------
    >>> sequitur([[0, 1, 2, 0, 1, 2], [1, 2]], 3)
    ([[1, 2], [0, 3]], [0, 1, 2], [[4, 4], [3]])

    """
    inference = _Sequitur(vocabulary_size)
    for words in sequences:
        row: list[int] = []
        inference.rows.append(row)
        for word in words:
            inference.append(row, word)
    return inference.levelled()


class _Sequitur:
    """Rows and bodies as linked lists of positions; a position has a symbol while it is in a list."""

    def __init__(self, vocabulary_size: int) -> None:
        self.vocabulary_size = vocabulary_size
        self.symbols: list[int] = []
        self.lines: dict[int, list[int]] = {}
        self.rows: list[list[int]] = []
        self.bodies: dict[int, list[int]] = {}
        self.rules_made = 0
        self.recorded: dict[Pair, int] = {}
        self.pending: list[int] = []

    def append(self, row: list[int], word: int) -> None:
        place = len(self.symbols)
        self.symbols.append(word)
        self.lines[place] = row
        row.append(place)
        self.pending = row[-2:-1]
        while self.pending:
            self.look_at(self.pending.pop())

    def neighbour(self, place: int, step: int) -> int | None:
        line = self.lines[place]
        i = line.index(place) + step
        return line[i] if 0 <= i < len(line) else None

    def digram(self, place: int | None) -> Pair | None:
        if place is None or place not in self.lines:
            return None
        after = self.neighbour(place, 1)
        return None if after is None else (self.symbols[place], self.symbols[after])

    def uses(self, symbol: int) -> int:
        return sum(self.symbols[place] == symbol for place in self.lines)

    def look_at(self, place: int) -> None:
        digram = self.digram(place)
        if digram is None:
            return
        known = self.recorded.setdefault(digram, place)
        if known == place or self.neighbour(known, 1) == place:
            return
        if self.neighbour(place, 1) == known:
            self.recorded[digram] = place
            self.pending += self.lines[known][self.lines[known].index(known) + 1 :][:1]
        else:
            self.match(digram, place, known)

    def match(self, digram: Pair, place: int, known: int) -> None:
        whole = {id(body): rule for rule, body in self.bodies.items() if len(body) == 2}
        rule, own_rule = whole.get(id(self.lines[known])), whole.get(id(self.lines[place]))
        if rule is not None and own_rule is not None:
            return
        if rule is not None:
            self.substitute(place, rule)
        elif own_rule is not None:
            rule = own_rule
            del self.recorded[digram]
            self.substitute(known, rule)
            self.recorded[digram] = place
        elif digram[0] >= self.vocabulary_size and self.uses(digram[0]) == 2:
            del self.recorded[digram]
            moved = self.detach_second(known)
            self.detach_second(place)
            body = self.bodies[digram[0]]
            self.pending.append(body[-1])
            body.append(moved)
            self.lines[moved] = body
            self.expand(moved)
            return
        else:
            rule = self.vocabulary_size + self.rules_made
            self.rules_made += 1
            del self.recorded[digram]
            self.bodies[rule] = body = [self.substitute(known, rule), self.substitute(place, rule)]
            for moved, symbol in zip(body, digram, strict=True):
                self.lines[moved], self.symbols[moved] = body, symbol
            self.recorded[digram] = body[0]
        self.expand(self.bodies[rule][0])
        self.expand(self.bodies[rule][-1])

    def forget(self, place: int | None) -> None:
        """Forget the digram at a position before it is removed; record another position of its run instead."""
        digram = self.digram(place)
        if place is None or digram is None or self.recorded.get(digram) != place:
            return
        del self.recorded[digram]
        for overlapping in (self.neighbour(place, -1), self.neighbour(place, 1)):
            if overlapping is not None and self.digram(overlapping) == digram:
                self.pending.append(overlapping)

    def detach_second(self, place: int) -> int:
        second = self.neighbour(place, 1)
        assert second is not None
        self.forget(second)
        self.lines.pop(second).remove(second)
        if self.digram(place) is not None:
            self.pending.append(place)
        return second

    def substitute(self, place: int, rule: int) -> int:
        before = self.neighbour(place, -1)
        self.forget(before)
        second = self.detach_second(place)
        self.symbols[place] = rule
        if before is not None:
            self.pending.append(before)
        return second

    def expand(self, place: int) -> None:
        rule = self.symbols[place]
        if rule < self.vocabulary_size or self.uses(rule) != 1:
            return
        before = self.neighbour(place, -1)
        self.forget(before)
        self.forget(place)
        line, body = self.lines.pop(place), self.bodies.pop(rule)
        i = line.index(place)
        line[i : i + 1] = body
        self.lines.update(dict.fromkeys(body, line))
        if self.digram(body[-1]) is not None:
            self.pending.append(body[-1])
        if before is not None:
            self.pending.append(before)

    def levelled(self) -> tuple[list[list[int]], list[int], list[list[int]]]:
        levels: dict[int, int] = {}
        while len(levels) < len(self.bodies):
            for rule, body in self.bodies.items():
                named = [self.symbols[p] for p in body if self.symbols[p] >= self.vocabulary_size]
                if all(symbol in levels for symbol in named):
                    levels[rule] = 1 + max((levels[symbol] for symbol in named), default=-1)
        order = sorted(levels, key=lambda rule: (levels[rule], rule))
        number = {rule: self.vocabulary_size + k for k, rule in enumerate(order)}

        def renumber(line: list[int]) -> list[int]:
            return [number.get(self.symbols[place], self.symbols[place]) for place in line]

        heights = Counter(levels.values())
        offsets = [0]
        for level in range(len(heights)):
            offsets.append(offsets[-1] + heights[level])
        return [renumber(self.bodies[rule]) for rule in order], offsets, [renumber(row) for row in self.rows]
