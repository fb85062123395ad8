"""Functions that every engine supplies for compressing rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import polars as pl

from polars_tadoc.kernels.repair.compressed import Compressed, OnGaps, OnRules, OnWords, ignore
from polars_tadoc.kernels.repair.lines.repeated_lines import Gaps
from polars_tadoc.kernels.repair.prune import LevelledRules
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.runtime.array_types import UInt32


class RepairKernels(Protocol):
    """Grammars of rows, in host memory."""

    RULE_METHODS: tuple[str, ...]
    """Methods of making rules that the engine supports, of :data:`polars_tadoc.kernels.repair.compressed.METHODS`."""

    def compress_rows(
        self,
        text: pl.Series,
        tokenizer: Tokenizer,
        *,
        method: str,
        lossless: bool,
        on_round: Callable[[int, int], None],
        on_words: OnWords = ignore,
        on_rules: OnRules = ignore,
        on_gaps: OnGaps = ignore,
        loaded: Callable[[], Any] = ignore,
    ) -> Compressed:
        """Compress the rows of a String series to one grammar."""
        ...

    def loading(self, text: pl.Series) -> Callable[[], Any]:
        """Return a function that loads rows for ``compress_rows`` in another thread, beside this thread's work."""
        ...

    def build_rules(
        self,
        sequence: UInt32,
        vocabulary_size: int,
        rows: int,
        *,
        method: str,
        on_round: Callable[[int, int], None],
        gaps: Gaps | None = None,
    ) -> LevelledRules:
        """Make rules from word ids with ``SEPARATOR`` after each row; ``sequence`` is overwritten.

        ``gaps`` tells where lines end inside rows; None if the gaps are not kept.
        """
        ...
