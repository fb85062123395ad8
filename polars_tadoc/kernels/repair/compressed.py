"""The result of compression on every engine: one grammar and its rows."""

from __future__ import annotations

import pyarrow as pa

from polars_tadoc.kernels.repair.prune import LevelledRules
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, array_dataclass

METHODS: tuple[str, ...] = ("batch_repair", "sequitur")
"""Methods of making rules."""

NO_RULES = "no_rules"
"""Rows stay word ids."""


@array_dataclass
class Compressed:
    """One grammar and its rows, in host memory."""

    vocabulary: pa.LargeStringArray
    gap_vocabulary: pa.LargeStringArray
    rules: LevelledRules
    predicted_gaps: UInt32
    gap_offsets: Int64
    gap_data: UInt8
