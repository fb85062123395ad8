"""Predicts what stands between words, so that rows store only what comes otherwise.

Repeated text repeats its gaps: wherever a rule occurs, the same gap mostly stands between the same two symbols
of its body. Between the top-level symbols of a row the word that follows tells most. One predicted gap for each
such key is stored with the grammar; definition in :func:`polars_tadoc.kernels.reference.predict_gaps`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from polars_tadoc.compress.prune import LevelledRules
from polars_tadoc.compress.tokenize import Tokens
from polars_tadoc.kernels.cpu import gaps as kernels
from polars_tadoc.kernels.cpu.parallel import map_parallel, weighted_chunks

UInt8 = npt.NDArray[np.uint8]
UInt32 = npt.NDArray[np.uint32]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PredictedGaps:
    """The predictions, and rows that hold only what differs from them."""

    codes: UInt32
    """By key: 0 for one space, else 1 + gap id; length vocabulary + rule symbols."""
    offsets: Int64
    """Where each row's gap bytes start; length rows + 1."""
    data: UInt8
    """Varint pairs: gaps passed over, gap code."""


def predict_gaps(tokens: Tokens, rules: LevelledRules) -> PredictedGaps:
    """Predict the gaps of rows from all rows, and encode the rest.

    Parameters
    ----------
    tokens
        What the rows were cut into; ``sequence``, whose rules are made by now, is overwritten.
    rules
        Rules and rows.

    """
    vocabulary_size, gap_offsets, gap_data = len(tokens.vocabulary), tokens.gap_offsets, tokens.gap_data
    lengths, firsts = symbol_lengths(vocabulary_size, rules.rule_offsets, rules.symbols)
    rows = len(rules.root_offsets) - 1
    row_words = np.empty(rows, np.int64)
    kernels.count_row_words(lengths, rules.root_offsets, rules.roots, row_words)
    starts = np.concatenate([[0], np.cumsum(row_words + 1)])
    keys = tokens.sequence  # as long as all rows' words and one for each row: fresh pages would cost more than the work
    size = vocabulary_size + len(rules.symbols)
    chunks = weighted_chunks(starts)

    def list_seen(chunk: tuple[int, int]) -> tuple[UInt32, npt.NDArray[np.uint64]]:
        first, stop = chunk
        kernels.fill_keys(
            vocabulary_size,
            rules.rule_offsets,
            rules.symbols,
            len(rules.level_offsets) - 1,
            lengths,
            firsts,
            rules.root_offsets[first : stop + 1],
            rules.roots,
            starts[first:stop],
            keys,
        )
        totals = np.zeros(size, np.uint32)
        seen = np.empty(int(gap_offsets[stop] - gap_offsets[first]) // 2, np.uint64)
        count = kernels.list_seen(
            keys, starts[first:stop], row_words[first:stop], gap_offsets[first : stop + 1], gap_data, totals, seen
        )
        return totals, np.sort(seen[:count])

    parts = map_parallel(list_seen, chunks)
    totals = parts[0][0]
    for part in parts[1:]:
        totals += part[0]
    # merges sorted parts: a stable sort finds the runs
    seen = parts[0][1] if len(parts) == 1 else np.sort(np.concatenate([part[1] for part in parts]), kind="stable")
    codes = np.zeros(size, np.uint32)
    kernels.decide(seen, totals, codes)
    del parts, seen, totals
    return PredictedGaps(codes, *_encode(codes, keys, starts, row_words, gap_offsets, gap_data, chunks))


def symbol_lengths(vocabulary_size: int, rule_offsets: UInt32, symbols: UInt32) -> tuple[Int64, UInt32]:
    """Words that each symbol stands for, and the first of them, by symbol."""
    size = vocabulary_size + len(rule_offsets) - 1
    lengths, firsts = np.empty(size, np.int64), np.empty(size, np.uint32)
    kernels.measure_rules(vocabulary_size, rule_offsets, symbols, lengths, firsts)
    return lengths, firsts


def _encode(
    codes: UInt32,
    keys: UInt32,
    starts: Int64,
    row_words: Int64,
    gap_offsets: Int64,
    gap_data: UInt8,
    chunks: list[tuple[int, int]],
) -> tuple[Int64, UInt8]:
    sizes = np.empty(len(row_words), np.int64)

    def encode(chunk: tuple[int, int], writing: bool, data: UInt8) -> None:
        own = slice(*chunk)
        kernels.encode(keys, starts[own], row_words[own], writing, sizes[own], data)

    def measure(chunk: tuple[int, int]) -> None:
        own = slice(*chunk)
        kernels.mark(codes, starts[own], row_words[own], gap_offsets[chunk[0] : chunk[1] + 1], gap_data, keys)
        encode(chunk, False, np.zeros(0, np.uint8))

    map_parallel(measure, chunks)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    data = np.empty(int(offsets[-1]), np.uint8)
    map_parallel(lambda chunk: encode(chunk, True, data[offsets[chunk[0]] : offsets[chunk[1]]]), chunks)
    return offsets, data
