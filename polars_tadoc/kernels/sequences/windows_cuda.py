"""Kinds of windows, sequences of words or pairs of nearby words, and the longest that documents can contain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polars_tadoc.errors import EngineUnavailableError
from polars_tadoc.kernels.primitives.primitives_cuda import segmented_sum
from polars_tadoc.kernels.traverse.rules import Rules

MAX_NUMBERS = (1 << 32) - 1

_PIECE = 1 << 20  # symbols looked up at a time


@dataclass(frozen=True)
class Kind:
    """The counted kind: ``windows`` of a number of words, or ``pairs`` of words at most ``reach`` apart."""

    name: str
    words: int
    reach: int
    """Maximum words of a window beyond its first one."""

    @property
    def defines(self) -> tuple[str]:
        """Compiler definitions of kernels for this kind."""
        return (f"-DKIND={self.name.capitalize()}",)

    @property
    def least(self) -> int:
        """Minimum words of a rule that contains any of them."""
        return self.words

    @property
    def most_at_position(self) -> int:
        """Maximum number of them that start in one symbol and end in a later one."""
        if self.name == "windows":
            return max(self.reach, 1)
        return self.reach * (self.reach + 1) // 2

    def lengths(self, lengths: Any) -> Any:
        """Return their number in rules of these lengths, cupy uint64."""
        import cupy

        if self.name == "windows":
            return cupy.maximum(lengths, np.uint64(self.reach)) - np.uint64(self.reach)
        apart = cupy.minimum(cupy.maximum(lengths, np.uint64(1)) - np.uint64(1), np.uint64(self.reach))
        return apart * lengths - apart * (apart + np.uint64(1)) // np.uint64(2)


def possible_kind(kind: Kind, rules: Rules, root_offsets: Any, roots: Any) -> Kind | None:
    """Return the kind, capped by the longest document's length; None if no window can occur."""
    import cupy

    if rules.terminals == 0 or len(roots) == 0:
        return None
    if kind.reach <= 16:
        return kind
    lengths = cupy.concatenate([cupy.ones(1, np.uint64), rules.lengths])
    sums = cupy.zeros(len(root_offsets) - 1, np.uint64)
    for begin in range(0, len(roots), _PIECE):
        some = cupy.maximum(roots[begin : begin + _PIECE], np.uint32(rules.terminals - 1))
        some -= np.uint32(rules.terminals - 1)
        sums += segmented_sum(lengths.take(some), cupy.clip(root_offsets - begin, 0, len(some)))
    longest = int(sums.max())  # synchronize!
    if longest <= (kind.reach if kind.name == "windows" else 1):
        return None
    return Kind(kind.name, kind.words, min(kind.reach, longest - 1))


def too_many(count: int, what: str) -> EngineUnavailableError:
    """Return the error for more items than 32 bits can number."""
    return EngineUnavailableError(
        f'engine="gpu": {count:,} {what} exceed its 32-bit numbers; use engine="cpu", or fewer rows at a time'
    )
