"""Gaps between words on the device: interned, predicted and encoded with the same result as the CPU."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from polars_tadoc.kernels.primitives.bitmap_cuda import rank
from polars_tadoc.kernels.repair.compressed import ignore
from polars_tadoc.kernels.tokenize.intern_cuda import intern
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.device import device_attribute, device_errors, launch, launch_each

if TYPE_CHECKING:
    from polars_tadoc.kernels.repair.prune_cuda import DeviceLevelledRules

_THREADS = 512  # of gaps.cu


@array_dataclass
class NotedGaps:
    """The gaps that differ from the default (one space inside a row, empty at its ends)."""

    vocabulary: pa.LargeStringArray
    """Distinct gaps by descending count, then code point order."""
    ids: Any
    """cupy uint32 by noted gap, in text order."""
    tokens: Any
    """cupy uint32 by noted gap: position in the sequence of the word or separator after it."""
    row_gaps: Any
    """cupy uint32: number of noted gaps before each row, and in total; length rows + 1."""
    row_tokens: Any
    """cupy uint32: offset of each row in the sequence, and its length; length rows + 1."""


@array_dataclass
class PredictedGaps:
    """The predictions, and rows with only the gaps that differ; all on the device."""

    codes: Any
    """cupy uint32 by key: 0 for one space, otherwise 1 + gap id; length vocabulary + rule symbols."""
    offsets: Any
    """cupy int64: offsets of each row's gap bytes; length rows + 1."""
    data: Any
    """cupy uint8: varint pairs (skipped gaps, gap code)."""


def note_gaps(text: Any, token_starts: Any, token_stops: Any, row_tokens: Any) -> NotedGaps:
    """Find and number the gaps between tokens.

    Parameters
    ----------
    text
        cupy uint8, padded.
    token_starts, token_stops
        cupy uint32: span of each word, and of an empty token at each row's end.
    row_tokens
        cupy uint32: number of tokens before each row, and in total; length rows + 1.

    """
    import cupy

    tokens = len(token_starts)
    bits = cupy.empty(tokens // 32 + 1, np.uint32)
    words = len(bits)
    launch_each("gaps", "mark_gaps", 32 * len(bits), text, token_starts, token_stops, tokens, words, bits)
    ranks = rank(bits)
    noted = int(ranks[-1])  # synchronize!
    gap_tokens, starts, stops = (cupy.empty(noted, np.uint32) for _ in range(3))
    launch_each(
        "gaps", "place_gaps", len(bits), bits, ranks, words, token_starts, token_stops, gap_tokens, starts, stops
    )
    row_gaps = _count_in_rows(row_tokens, bits, ranks)
    interned = intern(text, starts, stops, leave_empty_out=False)
    return NotedGaps(interned.distinct, interned.ids, gap_tokens, row_gaps, row_tokens)


def encode_gaps(gaps: NotedGaps) -> tuple[Any, Any]:
    """Encode each row's noted gaps as varint pairs (skipped gaps, gap id).

    Returns
    -------
    (cupy int64, cupy uint8)
        Offsets of each row's bytes, and the total, length rows + 1; the bytes.

    """
    return _encode(gaps.tokens, gaps.ids, gaps.row_gaps, gaps.row_tokens)


def predict_gaps(
    gaps: NotedGaps, vocabulary_size: int, rules: DeviceLevelledRules, on_codes: Callable[[Any], object] = ignore
) -> PredictedGaps:
    """Predict the gaps of rows from all rows, and encode the others, as :mod:`polars_tadoc.kernels.repair.gaps` does.

    Parameters
    ----------
    gaps
        The gaps of the rows.
    vocabulary_size
        Number of words; the first rule has this symbol.
    rules
        Rules and rows.
    on_codes
        Called with the predicted codes as soon as they are being made, before the rows are encoded.

    """
    with device_errors(f"predicting {len(gaps.ids):,} gaps"):
        import cupy

        tokens = int(gaps.row_tokens[-1])  # synchronize!
        keys = _find_keys(gaps.row_tokens, tokens, vocabulary_size, rules)
        codes = cupy.zeros(tokens, np.uint32)
        noted = len(gaps.ids)
        launch_each("gaps", "scatter_codes", noted, gaps.tokens, gaps.ids, noted, codes)
        predicted = _predict(keys, codes, noted, vocabulary_size + len(rules.symbols))
        on_codes(predicted)
        bits = cupy.empty(tokens // 32 + 1, np.uint32)
        words = len(bits)
        launch_each("gaps", "mark_surprises", 32 * words, keys, codes, tokens, predicted, words, bits)
        ranks = rank(bits)
        surprises = int(ranks[-1])  # synchronize!
        surprise_tokens, surprise_codes = cupy.empty(surprises, np.uint32), cupy.empty(surprises, np.uint32)
        found = (surprise_tokens, surprise_codes)
        launch_each("gaps", "list_surprises", words, bits, ranks, words, codes, *found)
        row_surprises = _count_in_rows(gaps.row_tokens, bits, ranks)
        return PredictedGaps(predicted, *_encode(surprise_tokens, surprise_codes, row_surprises, gaps.row_tokens))


def _find_keys(row_tokens: Any, tokens: int, vocabulary_size: int, rules: DeviceLevelledRules) -> Any:
    """Return the key of the gap before each token; 0xFFFFFFFF at the ends of rows."""
    import cupy

    rows, root_count = len(row_tokens) - 1, len(rules.roots)
    vocabulary, rule_count = vocabulary_size, len(rules.rule_offsets) - 1
    lengths, firsts = (cupy.empty(vocabulary_size + rule_count, np.uint32) for _ in range(2))
    words_before = cupy.empty(len(rules.symbols), np.uint32)
    launch_each("gaps", "measure_words", vocabulary_size, vocabulary, lengths, firsts)
    for first, stop in pairwise(rules.level_offsets.get()):  # synchronize!
        launch_each(
            *(
                "gaps",
                "measure_rules",
                32 * (int(stop) - int(first)),
                first,
                stop,
                vocabulary,
                rules.rule_offsets,
            ),
            *(rules.symbols, lengths, firsts, words_before),
        )
    root_lengths, root_tokens = (cupy.empty(root_count, np.uint32) for _ in range(2))
    launch_each("gaps", "measure_roots", root_count, rules.roots, root_count, lengths, root_lengths)
    root_bits, edge_bits = (cupy.zeros(tokens // 32 + 1, np.uint32) for _ in range(2))
    launch_each(
        *("gaps", "place_roots", root_count, rules.roots, root_count, lengths),
        *(cupy.cumsum(root_lengths, dtype=np.uint32), rules.root_offsets, rows, root_tokens, root_bits),
    )
    launch_each("gaps", "mark_edges", rows, row_tokens, rows, edge_bits)
    keys = cupy.empty(tokens, np.uint32)
    launch_each(
        *("gaps", "find_keys", tokens, tokens, edge_bits, root_bits, rank(root_bits), root_tokens, rules.roots),
        *(vocabulary, rules.rule_offsets, rules.symbols, firsts, words_before, keys),
    )
    return keys


def _predict(keys: Any, codes: Any, noted: int, key_count: int) -> Any:
    """Return the predicted code of each key."""
    import cupy

    capacity = 1 << (2 * noted).bit_length()
    slots, counts = cupy.zeros(capacity, np.uint64), cupy.zeros(key_count + capacity, np.uint32)
    blocks = min(-(-len(keys) // _THREADS), 4 * device_attribute("MultiProcessorCount"))
    given = (keys, codes, len(keys), key_count, slots, capacity - 1, counts)
    launch("gaps", "count_codes", blocks, _THREADS, *given)
    votes, predicted = cupy.empty(key_count, np.uint64), cupy.empty(key_count, np.uint32)
    launch_each("gaps", "start_votes", key_count, counts, key_count, votes)
    launch_each("gaps", "vote", capacity, slots, capacity, counts[key_count:], votes)
    launch_each("gaps", "decide", key_count, votes, key_count, predicted)
    return predicted


def _count_in_rows(row_tokens: Any, bits: Any, ranks: Any) -> Any:
    """Return the number of marked tokens before each row, and in total."""
    import cupy

    rows = len(row_tokens) - 1
    counts = cupy.empty(rows + 1, np.uint32)
    launch_each("gaps", "place_gap_rows", rows + 1, row_tokens, rows, bits, ranks, counts)
    return counts


def _encode(tokens: Any, numbers: Any, row_gaps: Any, row_tokens: Any) -> tuple[Any, Any]:
    """Encode gaps, given by the tokens after them, as varint pairs (skipped gaps, number)."""
    import cupy

    gaps, rows = len(tokens), len(row_gaps) - 1
    first_tokens = cupy.zeros(gaps, np.uint32)
    launch_each("gaps", "mark_first_gaps", rows, row_tokens, row_gaps, rows, first_tokens)
    sizes = cupy.empty(gaps, np.uint8)
    launch_each("gaps", "measure_gaps", gaps, tokens, first_tokens, numbers, gaps, sizes)
    stops = cupy.cumsum(sizes, dtype=np.uint64)
    data = cupy.empty(int(stops[-1]) if gaps else 0, np.uint8)  # synchronize!
    launch_each("gaps", "write_gaps", gaps, tokens, first_tokens, numbers, gaps, stops, data)
    offsets = cupy.empty(rows + 1, np.int64)
    launch_each("gaps", "place_gap_bytes", rows + 1, row_gaps, rows, stops, offsets)
    return offsets, data
