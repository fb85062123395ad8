"""Pruning on the device, with the same symbols as :mod:`polars_tadoc.kernels.repair.prune`."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.primitives.primitives_cuda import radix_sort
from polars_tadoc.kernels.repair.batch_repair_cuda import DeviceRules
from polars_tadoc.kernels.repair.prune import MARGIN, MAX_PASSES, LevelledRules
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.device import device_errors, even_blocks, launch, launch_each, launch_resident

THREADS = 256
TILE = 8 * THREADS
"""Rules or symbols per block of a reduction."""

_LONG = 17  # minimum symbols of an inlined body that is written in chunks


@array_dataclass
class DeviceLevelledRules:
    """Rules in level order and the rows that use them, on the device."""

    rule_offsets: Any
    """cupy uint32[rules + 1]."""
    symbols: Any
    """cupy uint32: the concatenated bodies."""
    level_offsets: Any
    """cupy uint32[levels + 1]."""
    root_offsets: Any
    """cupy int64[rows + 1]."""
    roots: Any
    """cupy uint32: the rows' concatenated symbols."""

    @classmethod
    def of(cls, rules: LevelledRules) -> DeviceLevelledRules:
        """Copy to the device."""
        with device_errors("copying a grammar to the device"):
            import cupy

            arrays = (rules.rule_offsets, rules.symbols, rules.level_offsets, rules.root_offsets, rules.roots)
            return cls(*map(cupy.asarray, arrays))

    def to_host(self) -> LevelledRules:
        """Copy to host memory."""
        with device_errors("copying a grammar to the host"):
            return LevelledRules(  # synchronize!
                self.rule_offsets.get(),
                self.symbols.get(),
                self.level_offsets.get(),
                self.root_offsets.get(),
                self.roots.get(),
            )


def prune(rules: DeviceRules, vocabulary_size: int, rows: int, margin: int = MARGIN) -> DeviceLevelledRules:
    """Keep a rule of length l with u uses only if ``l * u > l + u + margin``; inline the others.

    Parameters
    ----------
    rules
        From :func:`polars_tadoc.kernels.repair.batch_repair_cuda.build`.
    vocabulary_size
        Number of words; the first rule has this symbol.
    rows
        Number of separators in the sequence.
    margin
        Cost of a kept rule in addition to its symbols.

    Returns
    -------
    DeviceLevelledRules
        Equal to the result of ``kernels.repair.prune.prune`` for the same rules.

    """
    with device_errors(f"pruning {len(rules.left):,} rules"):
        import cupy

        nodes = cupy.empty((len(rules.left), 2), np.uint32)
        keys = cupy.empty(len(rules.left), np.uint64)
        kept, body_symbols, root_symbols, level_offsets = _decide(rules, vocabulary_size, margin, nodes, keys)
        rule_offsets, symbols = cupy.zeros(kept + 1, np.uint32), cupy.empty(body_symbols, np.uint32)
        root_offsets, roots = cupy.zeros(rows + 1, np.int64), cupy.empty(root_symbols, np.uint32)
        named = (rules.left, rules.right, nodes, vocabulary_size)
        if kept:
            keys = radix_sort(keys, overwrite=True)  # dropped rules come last
            _launch_tiles("number_rules", kept, keys, kept, nodes, vocabulary_size, rule_offsets)
            chunks = _Chunks(body_symbols)
            written = (rule_offsets, symbols, chunks.places, chunks.count)
            launch_each("inline", "write_bodies", kept, keys, kept, *named, *written)
            chunks.write(*named, symbols)
        if len(rules.sequence):
            chunks = _Chunks(root_symbols)
            written = (root_offsets, roots, chunks.places, chunks.count)
            _launch_tiles("write_rows", len(rules.sequence), rules.sequence, len(rules.sequence), *named, *written)
            chunks.write(*named, roots)
        return DeviceLevelledRules(rule_offsets, symbols, cupy.asarray(level_offsets), root_offsets, roots)


def _decide(
    rules: DeviceRules, vocabulary_size: int, margin: int, nodes: Any, keys: Any
) -> tuple[int, int, int, np.ndarray[Any, np.dtype[np.uint32]]]:
    """Decide which rules stay; return their number, their bodies' symbols, the rows' symbols, the levels' offsets."""
    import cupy

    rule_count, rounds = len(rules.left), len(rules.round_offsets) - 1
    uses = cupy.zeros((2, rule_count), np.uint32)
    report = cupy.zeros(6 + rounds // 2 + 1, np.uint64)  # totals, then rules by level
    totals, level_sizes = report[:6], report[6:].view(np.uint32)
    launch_resident(
        *("prune", "prune", -(-max(rule_count, len(rules.sequence)) // THREADS), THREADS, rules.left, rules.right),
        *(nodes, vocabulary_size, rules.round_offsets, rounds, rules.sequence, len(rules.sequence), margin, MAX_PASSES),
        *(uses[0], uses[1], keys, level_sizes, totals),
        cooperative=True,
    )
    told = report.get()  # synchronize!
    sizes = told[6:].view(np.uint32)
    level_offsets = np.concatenate([[0], np.cumsum(sizes[sizes > 0])]).astype(np.uint32)
    return int(told[2] & 0xFFFFFFFF), int(told[0]), int(told[1]), level_offsets


class _Chunks:
    """Buffer of the chunks of long inlined bodies."""

    def __init__(self, symbols: int) -> None:
        import cupy

        self.most = symbols // _LONG
        self.places, self.count = cupy.empty((self.most, 4), np.uint32), cupy.zeros(1, np.uint32)

    def write(self, left: Any, right: Any, nodes: Any, vocabulary_size: int, target: Any) -> None:
        """Write the chunks."""
        if self.most:
            launch(
                *("inline", "write_chunks", even_blocks(32 * self.most), THREADS, self.places, self.count, left, right),
                *(nodes, vocabulary_size, target),
            )


def _launch_tiles(kernel: str, items: int, *arguments: Any) -> None:
    """Launch a kernel that reduces over all items."""
    import cupy

    tiles = -(-items // TILE)
    sums, taken = cupy.empty(tiles, np.uint64), cupy.zeros(1, np.uint32)
    sums.data.memset_async(0xFF, sums.nbytes)
    launch("inline", kernel, tiles, THREADS, *arguments, sums, taken)
