"""Rules' bodies and documents in the form that kernels of sequences read: with the first and last words of rules."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from polars_tadoc.kernels.sequences.windows_cuda import Kind
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.traverse.tables_cuda import device_levels
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.device import launch_each, launch_resident

THREADS = 256
_STRUCT = np.dtype("u8, u8, u8, u8, u4, u4, u8, u4", align=True)  # Text of bodies.cuh


@array_dataclass
class Text:
    """Bodies or documents in the form for kernels."""

    offsets: Any
    """cupy int64, owners + 1."""
    symbols: Any
    starts: Any
    """cupy uint32: a bit by position, set at the start of an owner."""
    ends: Any
    """cupy uint32: the lengths, first and last words of rules."""
    stride: int
    terminals: int
    rank: Any
    reach: int

    @property
    def struct(self) -> Any:
        """Return the struct that kernels take by value."""
        symbols, starts, ends = (array.data.ptr for array in (self.symbols, self.starts, self.ends))
        rank = 0 if self.rank is None else self.rank.data.ptr
        numbers = (len(self.symbols), starts, ends, self.stride, self.terminals, rank, self.reach)
        return np.array((symbols, *numbers), _STRUCT)


def make_texts(kind: Kind, rules: Rules, root_offsets: Any, roots: Any, rank: Any) -> tuple[Text, Text]:
    """Return the rules' bodies and the documents for kernels; small arrays of the bodies are cached with the rules."""
    kept = _bodies.get(rules)
    if kept is not None and kept.reach == kind.reach and kept.rank is rank:
        ends, starts, stride = kept.ends, kept.starts, kept.stride
    else:
        stride = -(-(1 + 2 * kind.reach) // 4) * 4
        ends = _fill_ends(rules, rank, kind.reach, stride)
        starts = _mark_starts(rules.rule_offsets, rules.symbols)
    bodies = Text(rules.rule_offsets, rules.symbols, starts, ends, stride, rules.terminals, rank, kind.reach)
    if ends.nbytes + starts.nbytes <= _MAX_KEPT:
        # not the rules' own arrays: values of a dictionary with weak keys must not refer to the key
        _bodies[rules] = _Ends(kind.reach, rank, ends, starts, stride)
    starts = _mark_starts(root_offsets, roots)
    return bodies, Text(root_offsets, roots, starts, ends, stride, rules.terminals, rank, kind.reach)


@array_dataclass
class _Ends:
    """Cached ends of rules, for the same words in the same order."""

    reach: int
    rank: Any
    ends: Any
    starts: Any
    stride: int


_MAX_KEPT = 12 << 20
"""Maximum bytes of device memory cached with rules."""
_bodies: WeakKeyDictionary[Rules, _Ends] = WeakKeyDictionary()


def _fill_ends(rules: Rules, rank: Any, reach: int, stride: int) -> Any:
    import cupy

    ends = cupy.empty(rules.rule_count * stride, np.uint32)
    if rules.rule_count:
        levels = np.asarray(rules.level_offsets, np.int64)
        widest = int(np.diff(levels).max(initial=1))
        launch_resident(
            *("rule_ends", "fill_ends", -(-2 * widest // THREADS), THREADS, device_levels(rules), len(levels) - 1),
            *(rules.rule_offsets, rules.symbols, rules.lengths, rules.terminals, rank, reach, stride, ends),
            cupy.zeros(1, np.uint32),
            cooperative=True,
        )
    return ends


def _mark_starts(offsets: Any, symbols: Any) -> Any:
    import cupy

    starts = cupy.zeros(-(-len(symbols) // 32), np.uint32)
    launch_each("rule_ends", "mark_starts", len(offsets) - 1, offsets, len(offsets) - 1, starts)
    return starts
