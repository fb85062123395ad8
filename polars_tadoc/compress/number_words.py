"""Cuts a String column into words numbered in code point order, without rules and without what stands between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.compress.tokenize import Tokenizer, tokenize
from polars_tadoc.kernels.cpu.text_words import keep_words
from polars_tadoc.kernels.cpu.tokenize import SEPARATOR
from polars_tadoc.vocabulary import Vocabulary

Choose = Callable[[pa.LargeStringArray], tuple[Vocabulary, npt.NDArray[np.uint32] | None]]
"""Names the distinct words of a text, given in code point order: the words to be kept, and by given word its number
among them, ``DELETED`` for one that is as if not there, ``UNKNOWN`` for one that counts to lengths only; None: all are
kept as they are."""


@dataclass(frozen=True, eq=False)
class NumberedWords:
    """Rows as word ids; arrays of the engine that made them."""

    words: Vocabulary
    offsets: Any
    """int64, rows + 1: where each row's ids start."""
    ids: Any
    """uint32."""
    lengths: Any
    """uint64 by row: its words, with those that count to lengths only."""


def number_words(text: pl.Series, tokenizer: Tokenizer, choose: Choose, mapping: str | None = None) -> NumberedWords:
    """Cut each row of a String series; null rows count as empty.

    Parameters
    ----------
    text
        String series.
    tokenizer
        How to cut.
    choose
        Which words are kept, and their numbers.
    mapping
        How words are mapped to ids; here always by a hash table.

    Raises
    ------
    ValueError
        A row is not UTF-8.

    """
    tokens = tokenize(text, tokenizer, lossless=False)
    found = Vocabulary(tokens.vocabulary)
    words, numbers = choose(tokens.vocabulary.take(pa.array(found.by_rank)))
    final = found.rank if numbers is None else numbers[found.rank]
    offsets, lengths = np.zeros(len(text) + 1, np.int64), np.zeros(len(text), np.uint64)
    kept = keep_words(tokens.sequence, np.uint32(SEPARATOR), final, offsets, lengths)
    return NumberedWords(words, offsets, tokens.sequence[:kept], lengths)
