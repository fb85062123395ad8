"""What is counted, runs of words or pairs of nearby ones, and what of it the documents can hold at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polars_tadoc.errors import EngineUnavailableError
from polars_tadoc.kernels.primitives.primitives_cuda import segmented_sum
from polars_tadoc.kernels.traverse.rules import Rules

MAX_NUMBERS = (1 << 32) - 1

_PIECE = 1 << 20  # symbols that are looked up at a time


@dataclass(frozen=True)
class Kind:
    """What is counted: ``windows`` of so many words, or ``pairs`` of words at most ``reach`` apart."""

    name: str
    words: int
    reach: int
    """Words beyond the first one of a window that it may take."""

    @property
    def defines(self) -> tuple[str]:
        """Macros that compile kernels for this kind."""
        return (f"-DKIND={self.name.capitalize()}",)

    @property
    def least(self) -> int:
        """Words that a rule has at least if it holds any of them."""
        return self.words

    @property
    def most_at_position(self) -> int:
        """How many of them start in one symbol and end in a later one, at most."""
        if self.name == "windows":
            return max(self.reach, 1)
        return self.reach * (self.reach + 1) // 2

    def lengths(self, lengths: Any) -> Any:
        """How many a rule of each length stands for, cupy uint64."""
        import cupy

        if self.name == "windows":
            return cupy.maximum(lengths, np.uint64(self.reach)) - np.uint64(self.reach)
        apart = cupy.minimum(cupy.maximum(lengths, np.uint64(1)) - np.uint64(1), np.uint64(self.reach))
        return apart * lengths - apart * (apart + np.uint64(1)) // np.uint64(2)


def possible_kind(kind: Kind, rules: Rules, root_offsets: Any, roots: Any) -> Kind | None:
    """Return what can be found at all: a window is no longer than the longest document."""
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
    """Return the error for what 32 bits cannot number."""
    return EngineUnavailableError(
        f'engine="gpu": {count:,} {what} are beyond its 32-bit numbers; use engine="cpu", or fewer rows at a time'
    )
