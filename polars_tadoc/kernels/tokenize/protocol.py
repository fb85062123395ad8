"""What every engine supplies to cut text into words."""

from __future__ import annotations

from typing import Protocol

import polars as pl

from polars_tadoc.kernels.tokenize.number_words_cpu import Choice, NumberedWords
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer


class TokenizeKernels(Protocol):
    """Words of text that is not compressed."""

    def number_words(self, text: pl.Series, tokenizer: Tokenizer, choice: Choice) -> NumberedWords:
        """Cut each row of a String series into words numbered in code point order; null rows count as empty."""
        ...
