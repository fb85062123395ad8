"""Functions that every engine supplies for tokenizing text."""

from __future__ import annotations

from typing import Any, Protocol

import polars as pl
import pyarrow as pa

from polars_tadoc.kernels.tokenize.number_words_cpu import Choice, NumberedWords
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer


class TokenizeKernels(Protocol):
    """Words of text that is not compressed."""

    def number_words(self, text: pl.Series, tokenizer: Tokenizer, choice: Choice) -> NumberedWords:
        """Cut each row of a String series into words numbered in code point order; null rows count as empty."""
        ...

    def count_text_words(self, text: pl.Series, tokenizer: Tokenizer) -> tuple[pa.LargeStringArray, Any]:
        """Return the distinct words of a String series in code point order, and the count of each, uint64."""
        ...
