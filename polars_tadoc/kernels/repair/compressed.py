"""What compressing gives on every engine: one grammar and its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polars_tadoc.kernels.repair.prune import LevelledRules

METHODS: tuple[str, ...] = ("batch_repair", "sequitur")
"""Ways to make rules."""


@dataclass(frozen=True, eq=False)
class Compressed:
    """One grammar and its rows, in host memory."""

    vocabulary: pa.LargeStringArray
    gap_vocabulary: pa.LargeStringArray
    rules: LevelledRules
    predicted_gaps: npt.NDArray[np.uint32]
    gap_offsets: npt.NDArray[np.int64]
    gap_data: npt.NDArray[np.uint8]
