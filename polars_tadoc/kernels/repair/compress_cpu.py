"""Compresses rows on the CPU: cut them into words, make rules, predict gaps."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from polars_tadoc.kernels.repair import batch_repair, compressed, sequitur
from polars_tadoc.kernels.repair.compressed import Compressed
from polars_tadoc.kernels.repair.gaps import predict_gaps
from polars_tadoc.kernels.repair.prune import LevelledRules, prune
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize
from polars_tadoc.runtime.array_types import UInt32

RULE_METHODS = compressed.METHODS
"""Ways to make rules that the CPU has: all."""


def compress_rows(
    text: pl.Series, tokenizer: Tokenizer, *, method: str, lossless: bool, on_round: Callable[[int, int], None]
) -> Compressed:
    """Compress the rows of a String series that share one grammar.

    Parameters
    ----------
    method
        One of ``RULE_METHODS``.
    lossless
        Keep what stands between words.
    on_round
        Called with the number of each round of grammar construction and its alive positions.

    Raises
    ------
    LimitExceededError
        The rows have more words than one grammar may.
    ValueError
        A row is not UTF-8.

    """
    tokens = tokenize(text, tokenizer, lossless=lossless)
    rules = build_rules(tokens.sequence, len(tokens.vocabulary), len(text), method=method, on_round=on_round)
    return Compressed(tokens.vocabulary, tokens.gap_vocabulary, rules, *predict_gaps(tokens, rules))


def build_rules(
    sequence: UInt32, vocabulary_size: int, rows: int, *, method: str, on_round: Callable[[int, int], None]
) -> LevelledRules:
    """Make the rules of word ids, ``SEPARATOR`` after each row; ``sequence`` is overwritten."""
    if method == "sequitur":
        return sequitur.build(sequence, vocabulary_size, rows)
    return prune(batch_repair.build(sequence, vocabulary_size, on_round), vocabulary_size, rows)
