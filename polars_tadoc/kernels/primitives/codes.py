"""Numbers that stand for no word, in arrays that give words or terminals new ones; every engine reads them."""

from __future__ import annotations

import numpy as np

DELETED = 0xFFFFFFFF
"""Image of a word that is left out as if it were not there."""

UNKNOWN = np.uint32(0xFFFFFFFE)
"""Image of a word that counts to its document's length only."""
