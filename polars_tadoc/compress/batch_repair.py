"""Batch RePair: many pairs become rules in each round, one definition for every engine.

RePair (Larsson and Moffat, 1999) replaces the most frequent pair, one pair at a time. Here a round counts
all adjacent pairs; each pair that occurs twice or more has a priority, (count, hash of the pair); a
position is replaced where its pair's priority beats both neighbours'; a pair replaced fewer than two
times is not made a rule. Pairs never cross a row's end. A pair of old symbols never gains occurrences, so
a position whose pair was seen once is dead until a neighbour changes, and only alive positions are
counted again. The hashed tie-break matters: ties ordered by symbol cascade through duplicated rows one
pair a round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.cpu import batch_repair as kernels
from polars_tadoc.kernels.cpu.parallel import even_chunks, map_parallel
from polars_tadoc.kernels.cpu.tokenize import SEPARATOR

UInt32 = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class BinaryRules:
    """Rules of two symbols each, rule k being symbol ``vocabulary_size + k``, and the sequence they leave."""

    left: UInt32
    right: UInt32
    sequence: UInt32
    """Symbols of all rows, ``SEPARATOR`` after each row."""


def build(
    sequence: UInt32, vocabulary_size: int, on_round: Callable[[int, int], None] = lambda round_, alive: None
) -> BinaryRules:
    """Run rounds until no pair repeats; ``sequence`` is overwritten.

    Parameters
    ----------
    sequence
        uint32 word ids, ``SEPARATOR`` after each row.
    vocabulary_size
        Words; the first rule gets this symbol.
    on_round
        Called with the round's number and the alive positions before each round.

    """
    size = len(sequence)
    state = np.zeros((size + 23) // 8 * 8, np.uint8)  # eight dead positions at least follow the last
    slots = np.empty(size, np.uint32)
    alive = sum(map_parallel(lambda c: kernels.mark_alive(sequence, state, *c), even_chunks(size)))
    rules = _Rules(vocabulary_size)
    round_number = 0
    stalled_before = False
    counter = _Counter()
    while alive > 1:
        on_round(round_number, alive)
        round_number += 1
        pairs = counter.count(_Sequence(sequence[:size], state, slots), alive)
        pairs.select()
        new, any_selected = pairs.count_selected()
        stalled = new == 0
        if stalled and (stalled_before or not any_selected):
            break
        stalled_before = stalled
        pairs.make_rules(new, rules)
        size, alive = pairs.rewrite(stalled)
        del pairs  # its table, before the next round's
        state[size : (size + 15) // 8 * 8] = kernels.DEAD
    return BinaryRules(*rules.arrays(), sequence[:size].copy())


class _Rules:
    """The rules made so far, and an index that finds them by pair."""

    def __init__(self, vocabulary_size: int) -> None:
        self.vocabulary_size, self.known = vocabulary_size, 0
        self.left, self.right = np.empty(1 << 10, np.uint32), np.empty(1 << 10, np.uint32)
        self.index = np.zeros(1 << 12, np.uint32)

    def assign(self, table: UInt32, entries: UInt32, symbols: UInt32) -> None:
        """Give each listed table entry its rule's symbol."""
        most = self.known + len(entries)
        if most > len(self.left):
            capacity = 1 << most.bit_length()
            self.left, self.right = np.resize(self.left, capacity), np.resize(self.right, capacity)
            self.index = np.zeros(4 * capacity, np.uint32)
            kernels.fill_index(self.left, self.right, self.known, self.index)
        self.known = int(
            kernels.assign_rules(
                table, entries, self.vocabulary_size, self.known, symbols, self.left, self.right, self.index
            )
        )

    def arrays(self) -> tuple[UInt32, UInt32]:
        """Left and right symbols by rule."""
        return self.left[: self.known].copy(), self.right[: self.known].copy()


@dataclass(frozen=True)
class _Sequence:
    """The sequence as one round sees it."""

    symbols: UInt32
    state: npt.NDArray[np.uint8]
    slots: UInt32

    @property
    def blocks(self) -> npt.NDArray[np.uint64]:
        return self.state.view(np.uint64)[: (len(self.symbols) + 7) // 8]

    def chunks(self) -> list[tuple[int, int]]:
        """Chunks of whole blocks, in blocks."""
        return even_chunks(len(self.blocks), 1 << 12)


@dataclass
class _Counter:
    """Counts the pairs of each round; what one round met decides how the next is counted."""

    worth_sieving: bool = True
    expected: int = 0
    """Distinct pairs of one thread's share, where they are not sieved."""

    def count(self, sequence: _Sequence, alive: int) -> _Pairs:
        """Count pairs exactly."""
        threads = thread_count() if alive > 1 << 14 else 1
        arrays = (sequence.symbols, sequence.state, sequence.blocks)
        if self.worth_sieving:
            # at most a byte a position, so that the first round's peak stays low
            wanted = min(2 * alive, len(sequence.slots)) // threads
            seen = [np.zeros(1 << min(max(10, wanted.bit_length()), 23), np.uint8) for _ in range(threads)]
            room = max(map_parallel(lambda t: kernels.sieve(*arrays, t, threads, seen[t]), range(threads)))
        else:
            seen = [np.zeros(0, np.uint8)] * threads
            room = min(self.expected, alive)
        capacity = 1 << max(6, (5 * room // 4).bit_length())
        while True:
            table = np.zeros(capacity * threads * kernels.FIELDS, np.uint32)

            def count(t: int, table: UInt32 = table) -> int:
                return int(kernels.count(*arrays, t, threads, seen[t], table, sequence.slots))

            entries = map_parallel(count, range(threads))
            if min(entries) >= 0:
                break
            capacity *= 2
        # few pairs that occur once: the sieve's pass over the sequence costs more than their entries
        self.worth_sieving = sum(entries) > alive // 16
        self.expected = max(entries)
        return _Pairs(sequence, threads, table)


class _Pairs:
    """The pairs of one round: one table of counts per thread, one after another."""

    def __init__(self, sequence: _Sequence, threads: int, table: UInt32) -> None:
        self.sequence, self.threads, self.table = sequence, threads, table
        self.rules = np.empty(len(table) // kernels.FIELDS, np.uint32)  # first places until the rules are numbered

    def select(self) -> None:
        """Select the positions to replace."""
        s = self.sequence
        map_parallel(
            lambda chunk: kernels.select(s.symbols, s.state, s.blocks, s.slots, self.table, *chunk), s.chunks()
        )

    def count_selected(self) -> tuple[int, bool]:
        """Count selected positions by pair; returns how many pairs get a rule and whether any was selected."""
        s = self.sequence
        found = map_parallel(
            lambda t: kernels.count_selected(s.state, s.blocks, s.slots, t, self.threads, self.table, self.rules),
            range(self.threads),
        )
        return sum(new for new, _ in found), any(selected for _, selected in found)

    def make_rules(self, new: int, rules: _Rules) -> None:
        """Find or make the rules of the pairs to replace; new ones are numbered by first use."""
        entries, places = np.empty(new, np.uint32), np.empty(new, np.uint32)
        kernels.list_rules(self.table, self.rules, entries, places)
        rules.assign(self.table, entries[np.argsort(places)], self.rules)

    def rewrite(self, stalled: bool) -> tuple[int, int]:
        """Rewrite every chunk in place, then close the gaps; returns the new size and the alive positions."""
        s, rules = self.sequence, self.rules
        chunks = [(8 * first, min(8 * stop, len(s.symbols))) for first, stop in s.chunks()]
        consumed = [
            first > 0 and s.state[first - 1] == kernels.SELECTED and rules[s.slots[first - 1]] != kernels.NO_RULE
            for first, _ in chunks
        ]
        written = map_parallel(
            lambda k: kernels.rewrite(s.symbols, s.state, s.blocks, s.slots, rules, *chunks[k], consumed[k], stalled),
            range(len(chunks)),
        )
        size = alive = 0
        for (first, _), (symbols, alive_here, starts_new) in zip(chunks, written, strict=True):
            if size > 0 and symbols > 0:  # the pair across the seam
                last = size - 1
                if s.symbols[first] == SEPARATOR:
                    alive -= int(s.state[last] != kernels.DEAD)
                    s.state[last] = kernels.DEAD
                elif starts_new and s.symbols[last] != SEPARATOR and s.state[last] == kernels.DEAD:
                    s.state[last] = kernels.ALIVE
                    alive += 1
            if size != first:
                s.symbols[size : size + symbols] = s.symbols[first : first + symbols]
                s.state[size : size + symbols] = s.state[first : first + symbols]
            size += symbols
            alive += alive_here
        return size, alive
