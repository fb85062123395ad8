"""The methods of making rules, and the result of compression on every engine: one grammar and its rows."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from polars_tadoc.kernels.repair.prune import LevelledRules
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, array_dataclass

METHODS: tuple[str, ...] = ("batch_repair", "sequitur")
"""Methods of making rules."""

NO_RULES = "no_rules"
"""Rows stay word ids."""

SMALL_RULES = "small_rules"
"""Batch RePair with more rounds; rules are numbered by first use in each level, as small packed files list them."""

AUTO_RULES = "auto_rules"
"""Batch RePair if rules pay in a sample, otherwise no rules."""

SHARES = {METHODS[0]: (1, 2), SMALL_RULES: (7, 8)}
"""By method: a pair becomes a rule in a round if it is selected at this part of its occurrences or more. With 15/16,
PEPs have 0.7 % more symbols than with 7/8."""

WINDOWS, WINDOW_WORDS = 1 << 6, 1 << 12
"""Windows of a sample of words, and the words and ends of rows in each: about 2 MB of text in all."""

MOST_SYMBOLS = 7, 10
"""Symbols and rules for each word of a sample, as a fraction, up to which rules pay. Of 23 corpora, those with more in
a sample (prose, abstracts, documentation) have 0.64 to 0.80 as a whole, those with less 0.03 to 0.60."""


def sample_windows(size: int) -> list[tuple[int, int]]:
    """Return the parts of a sequence that are its sample, first and after the last position; all of a short one."""
    if size <= WINDOWS * WINDOW_WORDS:
        return [(0, size)]
    starts = [size * k // WINDOWS for k in range(WINDOWS)]
    return [(start, start + WINDOW_WORDS) for start in starts]


def rules_pay(words: int, symbols: int, rules: int) -> bool:
    """Tell whether rules pay, given the words of a sample, and the symbols and rules of its grammar."""
    part, whole = MOST_SYMBOLS
    return whole * (symbols + rules) <= part * words


OnWords = Callable[[pa.LargeStringArray, pa.LargeStringArray], None]
"""Called with the vocabularies of words and gaps when they are known."""

OnRules = Callable[[UInt32, UInt32, UInt32], None]
"""Called with the rules' offsets, symbols and the levels' offsets when they are known, after the words."""

OnGaps = Callable[[UInt32], None]
"""Called with the predicted gaps when they are known, after the rules."""


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
