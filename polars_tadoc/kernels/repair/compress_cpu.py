"""Compresses rows on the CPU: tokenizes them, makes rules, predicts gaps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import polars as pl

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.repair import batch_repair, compressed
from polars_tadoc.kernels.repair import sequitur_cpu as sequitur
from polars_tadoc.kernels.repair.batch_repair import BinaryRules
from polars_tadoc.kernels.repair.compressed import (
    SHARES,
    Compressed,
    OnGaps,
    OnRules,
    OnWords,
    ignore,
    rules_pay,
    sample_windows,
)
from polars_tadoc.kernels.repair.gaps import predict_gaps
from polars_tadoc.kernels.repair.lines.repeated_lines import Gaps, mark_lines, row_starts
from polars_tadoc.kernels.repair.prune import LevelledRules, by_first_use, prune
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize
from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.runtime.free_memory import give_back_memory, trim_heap
from polars_tadoc.runtime.process.threads import Task

LARGE = 1 << 20
"""Words from which on freed memory is returned between stages."""

RULE_METHODS = (*compressed.METHODS, compressed.NO_RULES, compressed.SMALL_RULES, compressed.AUTO_RULES)
"""The CPU supports all methods of making rules, and none."""


def compress_rows(
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
    """Compress the rows of a String series that share one grammar.

    Parameters
    ----------
    method
        One of ``RULE_METHODS``.
    lossless
        Keep the gaps between words.
    on_round
        Called with the number of each round of grammar construction and its alive positions.
    on_words, on_rules, on_gaps
        Called with parts of the grammar as soon as they are known, in this order.
    loaded
        Returns what :func:`loading` has loaded of the rows; not called: they are read in place.

    Raises
    ------
    LimitExceededError
        The rows have more words than a grammar may have.
    ValueError
        A row is not UTF-8.

    """
    tokens = tokenize(text, tokenizer, lossless=lossless)
    on_words(tokens.vocabulary, tokens.gap_vocabulary)
    method = _settled(method, tokens.sequence, len(tokens.vocabulary))
    has_rules = method != compressed.NO_RULES
    is_large = len(tokens.sequence) >= LARGE
    if is_large:
        _beside(give_back_memory)  # of the tokenizer's tables and sorts; rounds need larger pieces
    gaps = Gaps(tokens.gap_vocabulary, tokens.gap_offsets, tokens.gap_data) if lossless else None
    rules = build_rules(tokens.sequence, len(tokens.vocabulary), len(text), method=method, on_round=on_round, gaps=gaps)
    on_rules(rules.rule_offsets, rules.symbols, rules.level_offsets)
    if is_large and has_rules:
        _beside(trim_heap)
    made = Compressed(
        tokens.vocabulary, tokens.gap_vocabulary, rules, *predict_gaps(tokens, rules, are_words=not has_rules)
    )
    on_gaps(made.predicted_gaps)
    del tokens
    if is_large:
        _beside(trim_heap)
    return made


def _beside(give_back: Callable[[], None]) -> None:
    """Return freed memory, with many threads beside the next stage."""
    if thread_count() < batch_repair.FEWEST_TO_COPY:
        give_back()
        return
    with suppress(RuntimeError):  # there can be no thread
        Task(give_back).start()


def loading(text: pl.Series) -> Callable[[], None]:
    """Return a function that loads rows in another thread: it does nothing, they are read in place."""
    return lambda: None


def build_rules(
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
    method = _settled(method, sequence, vocabulary_size)
    if method == "sequitur":
        return sequitur.build(sequence, vocabulary_size, rows)
    if method == compressed.NO_RULES:
        none = np.zeros(0, np.uint32)
        return prune(BinaryRules(none, none, sequence), vocabulary_size, rows)
    starts = row_starts(sequence)
    has_marks = gaps is not None and mark_lines(sequence, starts, vocabulary_size, gaps)
    made = batch_repair.build(sequence, vocabulary_size, on_round, *SHARES[method], has_marks, starts)
    rules = prune(made, vocabulary_size, rows)
    return by_first_use(rules, vocabulary_size) if method == compressed.SMALL_RULES else rules


def sample_of(sequence: UInt32) -> UInt32:
    """Return the sample of rows by which "auto" decides."""
    end = np.array([SEPARATOR], np.uint32)
    return np.concatenate([part for own in sample_windows(len(sequence)) for part in (sequence[slice(*own)], end)])


def _settled(method: str, sequence: UInt32, vocabulary_size: int) -> str:
    """Return the method, or the one that a sample of the rows tells."""
    if method != compressed.AUTO_RULES:
        return method
    sample = sample_of(sequence)
    rows = int(np.count_nonzero(sample == SEPARATOR))
    words = len(sample) - rows
    rules = prune(batch_repair.build(sample, vocabulary_size), vocabulary_size, rows)
    pay = rules_pay(words, len(rules.symbols) + len(rules.roots), len(rules.rule_offsets) - 1)
    return compressed.METHODS[0] if pay else compressed.NO_RULES
