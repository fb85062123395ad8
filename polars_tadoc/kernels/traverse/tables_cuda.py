"""Rules on the device: their weights, and the tables of their terminals."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.device import device_errors, launch, launch_resident

NARROW = 1 << 32
"""From this many terminals on, counts have 64 bits."""

_TABLE_THREADS, _WEIGHT_THREADS = 256, 512  # of tables.cu, rule_weights.cu
_HELD = 1 << 13  # number of most frequent terminals that each block counts in shared memory
_MAX_RESIDENT = 18 << 20  # maximum bytes of tables that are cached with their rules


@array_dataclass
class Tables:
    """Terminals of each rule's expansion with counts, unsorted, in one arena."""

    starts: Any
    """cupy int64[rules + 1]."""
    sizes: Any
    """cupy uint32 by rule."""
    terminals: Any
    """cupy uint32."""
    counts: Any
    """cupy uint32, or uint64 if an expansion has too many terminals."""
    resident: bool = False
    """Whether they are cached with their rules."""
    most: int = 0
    """The highest count of cached tables."""

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return int(self.starts.nbytes + self.sizes.nbytes + self.terminals.nbytes + self.counts.nbytes)


def rule_weights(rules: Rules, roots: Any) -> Any:
    """Count the occurrences of each symbol, terminals, then rules (G-TADOC, ICDE 2021, Algorithm 1).

    ``roots`` are top-level symbols of the rows; arrays are cupy uint32, the weights cupy uint64.
    """
    with device_errors(f"weighing {rules.rule_count:,} rules"):
        import cupy

        symbols = rules.terminals + rules.rule_count
        zeros = cupy.zeros(symbols + 1, np.uint64)  # weights, then the barrier's counter
        if len(roots):
            held = min(rules.terminals, _HELD)
            launch_resident(
                *("rule_weights", "rule_weights", -(-max(len(roots), len(rules.symbols)) // _WEIGHT_THREADS)),
                *(_WEIGHT_THREADS, rules.terminals, rules.rule_offsets, rules.symbols, device_levels(rules)),
                *(len(rules.level_offsets) - 1, roots, len(roots), held, zeros, zeros[-1:]),
                shared=4 * held,
                cooperative=True,
            )
        return zeros[:symbols]


def terminal_counts(rules: Rules, roots: Any, strategy: str) -> Any:
    """Count each terminal over all documents.

    Parameters and result as for :func:`polars_tadoc.kernels.traverse.results_cpu.terminal_counts`, as cupy arrays.
    """
    if strategy == "top_down":
        return rule_weights(rules, roots)[: rules.terminals]
    tables = resident_tables(rules)
    plain = Rules(rules.terminals, rules.rule_offsets, rules.symbols, np.zeros(1, np.int64), rules.lengths)
    uses = rule_weights(plain, roots)  # no levels: nothing is propagated further
    with device_errors(f"adding up the tables of {rules.rule_count:,} rules"):
        counts = uses[: rules.terminals]
        if rules.rule_count:
            held = min(rules.terminals, _HELD)
            launch_resident(
                *("tables", "add_tables", -(-rules.rule_count // (_TABLE_THREADS // 32)), _TABLE_THREADS),
                *(rules.terminals, rules.rule_count, tables.starts, tables.sizes, tables.terminals, tables.counts),
                *(uses[rules.terminals :], held, counts),
                defines=width(tables.counts),
                shared=4 * held,
            )
        return counts


def make_tables(rules: Rules) -> Tables:
    """Count each rule's terminals, from the lowest rules up (G-TADOC, ICDE 2021, Algorithm 2).

    Upper bounds of the tables' sizes are computed first, so that one arena holds them all.
    """
    with device_errors(f"making the tables of {rules.rule_count:,} rules"):
        import cupy

        count = rules.rule_count
        if count == 0:
            nothing = cupy.zeros(1, np.uint32)
            return Tables(cupy.zeros(1, np.int64), nothing, nothing, nothing)
        levels, level_count = device_levels(rules), len(rules.level_offsets) - 1
        bounds, rooms = cupy.empty(count, np.uint32), cupy.empty(count, np.uint64)
        # counters of two barriers, sum of rooms, greatest length
        report = cupy.zeros(4, np.uint64)
        bodies = (rules.terminals, rules.rule_offsets, rules.symbols, levels, level_count)
        launch_resident(
            *("tables", "bound_tables", None, _TABLE_THREADS, *bodies, rules.lengths, bounds, rooms, report),
            defines=("-DWIDE=0",),
            cooperative=True,
        )
        starts = exclusive_scan(rooms)
        _, _, room, longest = (int(number) for number in report.get())  # synchronize!
        wide = longest >= NARROW
        sizes, terminals = cupy.zeros(count, np.uint32), cupy.empty(room, np.uint32)
        counts = cupy.empty(room, np.uint64 if wide else np.uint32)
        launch_resident(
            *("tables", "make_tables", None, _TABLE_THREADS, *bodies, bounds, starts, sizes, terminals, counts),
            report[1:],
            defines=width(counts),
            cooperative=True,
        )
        return Tables(starts, sizes, terminals, counts)


_tables: WeakKeyDictionary[Rules, Tables | None] = WeakKeyDictionary()


def resident_tables(rules: Rules) -> Tables:
    """Return the rules' tables; small tables are cached with the rules from the second call on.

    Rules that are counted once, such as those over sequences, cache nothing. Cached tables are packed without spare
    slots.
    """
    kept = _tables.get(rules)
    if kept is not None:
        return kept
    tables = make_tables(rules)
    if rules not in _tables or rules.rule_count == 0:
        _tables[rules] = None
        return tables
    with device_errors(f"packing the tables of {rules.rule_count:,} rules"):
        import cupy

        starts = exclusive_scan(tables.sizes)
        total = int(starts[-1:].get()[0])  # synchronize!
        if starts.nbytes + tables.sizes.nbytes + total * (4 + tables.counts.itemsize) > _MAX_RESIDENT:
            return tables
        terminals, counts = cupy.empty(total, np.uint32), cupy.empty(total, tables.counts.dtype)
        most = cupy.zeros(1, np.uint64)
        launch(
            *("tables", "pack_tables", -(-rules.rule_count // (_TABLE_THREADS // 32)), _TABLE_THREADS),
            *(rules.rule_count, tables.starts, tables.sizes, tables.terminals, tables.counts, starts, terminals),
            *(counts, most),
            defines=width(tables.counts),
        )
        highest = int(most.get()[0])  # synchronize!
        packed = _tables[rules] = Tables(starts, tables.sizes, terminals, counts, resident=True, most=highest)
        return packed


def device_levels(rules: Rules) -> Any:
    """Return the rules' level offsets on the device."""
    import cupy

    return _levels(rules.level_offsets.tobytes(), cupy.cuda.runtime.getDevice())


@lru_cache(maxsize=64)
def _levels(level_offsets: bytes, device: int) -> Any:
    import cupy

    return cupy.asarray(np.frombuffer(level_offsets, np.int64))


def width(counts: Any) -> tuple[str]:
    """Return the compiler definitions of a kernel for the type of these counts."""
    return (f"-DWIDE={int(counts.dtype == np.uint64)}",)
