"""Special values in arrays that map words or terminals to new numbers; shared by all engines."""

from __future__ import annotations

import numpy as np

DELETED = 0xFFFFFFFF
"""Image of a dropped word."""

UNKNOWN = np.uint32(0xFFFFFFFE)
"""Image of a word that only counts in its document's length."""
