"""The result of compression on every engine: one grammar and its rows."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from polars_tadoc.kernels.repair.prune import LevelledRules
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, array_dataclass

METHODS: tuple[str, ...] = ("batch_repair", "sequitur")
"""Methods of making rules."""

NO_RULES = "no_rules"
"""Rows stay word ids."""

OnWords = Callable[[pa.LargeStringArray, pa.LargeStringArray], None]
"""Called with the vocabularies of words and gaps when they are known."""

OnRules = Callable[[UInt32, UInt32, UInt32], None]
"""Called with the rules' offsets, symbols and the levels' offsets when they are known, after the words."""


def ignore(*parts: object) -> None:
    """Ignore parts of a grammar."""


@array_dataclass
class Compressed:
    """One grammar and its rows, in host memory."""

    vocabulary: pa.LargeStringArray
    gap_vocabulary: pa.LargeStringArray
    rules: LevelledRules
    predicted_gaps: UInt32
    gap_offsets: Int64
    gap_data: UInt8
