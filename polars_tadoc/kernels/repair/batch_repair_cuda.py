"""Batch RePair on the device, with the same symbols as :mod:`polars_tadoc.kernels.repair.batch_repair`.

A round is five kernels and one synchronisation: the host reads the numbers of remaining symbols and alive positions,
which determine the size of the next round's table. Once few positions are alive, one kernel runs all further rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from polars_tadoc.errors import EngineUnavailableError
from polars_tadoc.kernels.repair.batch_repair import BinaryRules
from polars_tadoc.kernels.repair.lines.repeated_lines import INNER_ROUNDS, inner_share
from polars_tadoc.kernels.repair.lines.repeated_lines_cuda import split_lines
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.device import device_attribute, device_errors, even_blocks, launch, launch_resident

THREADS = 256
TILE = 8 * THREADS
"""Positions per block."""
GROUP = 1024
"""Positions per warp that numbers rules."""

_LATE_THREADS = 512  # of late_rounds.cu
_LATE_BLOCKS = 1  # by multiprocessor
_ENTRY_BYTES = 32
_MAX_SYMBOLS = (1 << 31) - 1  # one bit of a symbol marks dead positions, and the other 31 must not be all ones


@dataclass(frozen=True)
class Design:
    """Tuning parameters without effect on the result; ``benchmarks/gpu_construction.py`` measures others."""

    sieved: int = 1 << 20
    """From this many alive positions on, a sieve drops pairs that occur once before counting."""
    sieved_entries: float = 0.5
    """Table entries per alive position with a sieve, in the first attempt."""
    entries: float = 1.5
    """The same without a sieve. Each further attempt takes twice as many."""
    late: int = 1 << 18
    """Up to so many alive positions, one launch runs all rounds that follow."""
    late_rounds: int = 512
    """Most rounds of one launch."""


design = Design()


@array_dataclass
class DeviceRules:
    """Rules of two symbols each, rule k being symbol ``vocabulary_size + k``, and the remaining sequence."""

    left: Any
    """cupy uint32 by rule."""
    right: Any
    """cupy uint32 by rule."""
    sequence: Any
    """cupy uint32: symbols of all rows, ``SEPARATOR`` after each row."""
    round_offsets: Any
    """cupy uint32[rounds + 1]: the first rule of each round; rules refer to words and rules of earlier rounds."""

    def to_host(self) -> BinaryRules:
        """Copy to host memory."""
        with device_errors("copying rules to the host"):
            return BinaryRules(self.left.get(), self.right.get(), self.sequence.get())  # synchronize!


def build(
    sequence: Any,
    vocabulary_size: int,
    on_round: Callable[[int, int], None] = lambda round_, alive: None,
    part: int = 1,
    whole: int = 2,
    has_marks: bool = False,
) -> DeviceRules:
    """Make the rules of :func:`polars_tadoc.kernels.repair.batch_repair.build`; ``sequence`` is a cupy array.

    Raises
    ------
    EngineUnavailableError
        The sequence exceeds 31-bit symbols, or the device is out of memory or failed.

    """
    _require_symbols(sequence, vocabulary_size)
    with device_errors(f"making rules of {len(sequence):,} words"):
        import cupy

        if len(sequence) == 0:
            empty = cupy.empty(0, np.uint32)
            return DeviceRules(empty, empty, sequence, cupy.zeros(1, np.uint32))
        lines = split_lines(sequence) if has_marks else None
        if lines is None:
            rounds = _Rounds(sequence, vocabulary_size, part, whole)
        else:
            _require_symbols(lines.sequence, vocabulary_size)
            rounds = _Rounds(lines.sequence, vocabulary_size, *inner_share(part, whole))
            _run_rounds(rounds, on_round, INNER_ROUNDS)
            rounds.part, rounds.whole = part, whole
            rounds.begin(lines.join(rounds.sequence[: rounds.size]))
        _run_rounds(rounds, on_round)
        return DeviceRules(*rounds.result(), cupy.asarray(np.array(rounds.offsets, np.uint32)))


def _require_symbols(sequence: Any, vocabulary_size: int) -> None:
    if vocabulary_size + len(sequence) // 2 >= _MAX_SYMBOLS or len(sequence) >= _MAX_SYMBOLS:
        raise EngineUnavailableError(
            f'engine="gpu": {len(sequence):,} words exceed its 31-bit symbols; use engine="cpu", or '
            "compress in more parts"
        )


def _run_rounds(rounds: _Rounds, on_round: Callable[[int, int], None], most: int | None = None) -> None:
    """Run rounds, all or at most ``most``."""
    number = 0
    while not rounds.ended and number != most:
        if rounds.is_late:
            for alive in rounds.run_late(None if most is None else most - number):
                on_round(number, alive)
                number += 1
        else:
            on_round(number, rounds.alive)
            number += 1
            rounds.run()


class _Rounds:
    """Buffers of all rounds, and their state."""

    def __init__(self, sequence: Any, vocabulary_size: int, part: int, whole: int) -> None:
        import cupy

        self.part, self.whole = part, whole
        self.size, self.vocabulary_size, self.offsets = len(sequence), vocabulary_size, [0]
        self.sequence, self.target = sequence, cupy.empty(self.size, np.uint32)
        self.slots = cupy.empty(self.size, np.uint32)
        words = -(-self.size // 32)
        self.selected, self.replaced = cupy.empty(words, np.uint32), cupy.empty(words, np.uint32)
        self.tile_starts = cupy.empty(-(-self.size // TILE), np.uint32)
        self.groups = cupy.empty(-(-self.size // GROUP), np.uint32)
        self.sums = cupy.empty(0, np.uint8)
        # a rule replaces at least two pairs of symbols
        self.left = cupy.empty(self.size // 2 + 1, np.uint32)
        self.right = cupy.empty(self.size // 2 + 1, np.uint32)
        self.index = cupy.zeros(self.size + 64, np.uint32)
        self.table = self.sieve = cupy.empty(0, np.uint8)
        self.report = cupy.zeros(6, np.uint32)
        self.begin(sequence)

    def begin(self, sequence: Any) -> None:
        """Take a sequence, no longer than the first one, all of whose pairs may repeat."""
        self.sequence, self.size = sequence, len(sequence)
        self.report.data.memset_async(0, self.report.nbytes)
        self._launch("mark_alive", self.sequence, self.size, self.report)
        self.alive = int(self.report.get()[0])  # synchronize!
        self.ended, self._is_stripped, self._has_stalled = self.alive <= 1, False, False
        self._has_long_runs = False

    @property
    def is_late(self) -> bool:
        """Whether one launch may run all rounds that follow."""
        return self.alive <= design.late and not self._has_long_runs

    @property
    def known(self) -> int:
        """Number of rules so far."""
        return self.offsets[-1]

    def run(self) -> None:
        """Run one round."""
        import cupy

        sieved = self.alive >= design.sieved
        sieve_bits = max(12, (2 * self.alive).bit_length()) if sieved else 0
        capacity = int(self.alive * (design.sieved_entries if sieved else design.entries)) + 64
        while True:
            self._start(capacity, sieve_bits)
            alive, size, known, any_selected, table_full, _ = self.report.get().tolist()  # synchronize!
            if not table_full:
                break
            capacity = min(2 * capacity, (1 << 32) - 1)
            self.table = cupy.empty(0, np.uint8)  # frees the old one before the new one is made
        stalled = size == self.size
        self.ended = alive <= 1 or (stalled and (self._has_stalled or not any_selected))
        self._step(alive, size, stalled, [known])

    def run_late(self, most: int | None) -> list[int]:
        """Run the rounds that follow, at most ``most``; return the positions alive at the start of each.

        Others follow if a run of one symbol is too long, or if they are too many.
        """
        import cupy

        most = design.late_rounds if most is None else min(most, design.late_rounds)
        room = entries = 2 * self.alive + 64
        if self.table.nbytes < 2 * _ENTRY_BYTES * entries:
            self.table = cupy.empty(0, np.uint8)  # frees the old one before the new one is made
            self.table = cupy.empty(2 * _ENTRY_BYTES * entries, np.uint8)
        lists = cupy.empty(7 * room, np.uint32)
        blocks = _LATE_BLOCKS * device_attribute("MultiProcessorCount")
        told = cupy.zeros(10 + 2 * (most + blocks), np.uint32)
        state, sums, notes = told[:10], told[10 : 10 + 2 * blocks], told[10 + 2 * blocks :]
        launch_resident(
            *("late_rounds", "late_rounds", blocks, _LATE_THREADS, self.sequence, self.size, self.target, self.slots),
            *(self.table, entries, lists, room, self.left, self.right, self.index, len(self.index)),
            *(self.vocabulary_size, self.known, self.part, self.whole, self._has_stalled, most),
            *(notes, sums, state),
            cooperative=True,
        )
        numbers = told.get()  # synchronize!
        alive, size, _, stalled, ended, gave_up, rounds, *_ = numbers[:10].tolist()
        self.ended, self._is_stripped, self._has_long_runs = bool(ended) or alive <= 1, bool(ended), bool(gave_up)
        by_round = numbers[10 + 2 * blocks :].reshape(-1, 2)[:rounds]
        self._step(alive, size, bool(stalled), by_round[:, 1].tolist())
        positions: list[int] = by_round[:, 0].tolist()
        return positions

    def _step(self, alive: int, size: int, stalled: bool, known: list[int]) -> None:
        """Note what rounds have made; ``known`` are the rules after each of them."""
        self.sequence, self.target = self.target, self.sequence
        self.alive, self.size, self._has_stalled = alive, size, stalled
        self.offsets += [rules for before, rules in pairwise([self.known, *known]) if rules > before]

    def _start(self, capacity: int, sieve_bits: int) -> None:
        """Launch all kernels of a round; the host does not wait in between."""
        number_blocks = -(-self.size // (GROUP * THREADS // 32))
        self.table = _all_ones(self.table, _ENTRY_BYTES * capacity)
        self.sums = _all_ones(self.sums, 8 * number_blocks)
        self.report.data.memset_async(0, self.report.nbytes)
        sequence, table = (self.sequence, self.size), (self.table, capacity)
        sieve, cells = None, (1 << sieve_bits) - 1
        if sieve_bits:
            sieve = self.sieve = _all_ones(self.sieve, (1 << sieve_bits) // 4)
            self._launch("sieve_pairs", *sequence, sieve, cells)
        self._launch("count_pairs", *sequence, sieve, cells, *table, self.slots, self.tile_starts, self.report)
        self._launch("select_pairs", *sequence, self.table, self.slots, self.tile_starts, self.selected, self.report)
        self._launch(
            "number_rules",
            *(self.size, self.table, self.slots, self.selected, self.replaced, self.left, self.right),
            *(self.index, len(self.index), self.vocabulary_size, self.known, self.part, self.whole),
            *(self.sums, self.groups, self.report),
            blocks=number_blocks,
        )
        self._launch(
            "rewrite",
            *(*sequence, self.slots, self.table, self.selected, self.replaced, self.groups, self.target, self.report),
        )

    def _launch(self, kernel: str, *arguments: Any, blocks: int = 0) -> None:
        launch("batch_repair", kernel, blocks or -(-self.size // TILE), THREADS, *arguments)

    def result(self) -> tuple[Any, Any, Any]:
        """Left and right symbols by rule, and the sequence."""
        import cupy

        target = self.sequence[: self.size]
        if not self._is_stripped:
            target = cupy.empty(self.size, np.uint32)
            launch("batch_repair", "strip_marks", even_blocks(self.size), THREADS, self.sequence, self.size, target)
        return self.left[: self.known].copy(), self.right[: self.known].copy(), target


def _all_ones(buffer: Any, nbytes: int) -> Any:
    """Return the buffer, or a larger one, with its first ``nbytes`` bytes set."""
    import cupy

    if buffer.nbytes < nbytes:
        buffer = cupy.empty(nbytes, np.uint8)
    buffer.data.memset_async(0xFF, nbytes)
    return buffer
