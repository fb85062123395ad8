"""Predicts the gaps between words, so that rows only store the gaps that differ.

Repeated text repeats its gaps: at every use of a rule, the gap between two symbols of its body is usually the same.
Between the top-level symbols of a row, the following word is the best predictor. One predicted gap per key is stored
with the grammar; :func:`polars_tadoc.kernels.repair.reference.predict_gaps` has the definition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.repair import gaps_cpu as kernels
from polars_tadoc.kernels.repair.prune import LevelledRules
from polars_tadoc.kernels.tokenize.tokenizer import Tokens
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks
from polars_tadoc.runtime.process.shared_tasks import share_tasks
from polars_tadoc.runtime.scratch import pages

GAPS_PER_BUCKET = 1 << 16
"""Gaps that one thread counts by key at a time, in its core's cache."""

PER_ROOT = 32
"""Words whose keys are copied while one symbol of a row is expanded."""

ITEM_BITS, MOST_BUCKET_BITS = 32, 12
"""Bits of the items of gaps, if up to two to the power of 12 buckets make this enough; otherwise they have 64."""


@dataclass(frozen=True)
class GapKeys:
    """The key that predicts each gap of some rows: the position in a rule's body after it, or the next word."""

    size: int
    """Number of keys: the vocabulary's words, then the positions of all bodies."""
    keys: UInt32
    """By row, words + 1 each: the key of each gap; the first and the last have none, and are not read."""
    starts: Int64
    """Offsets of each row's keys; length rows + 1."""
    row_words: Int64

    @classmethod
    def of(
        cls, rules: LevelledRules, vocabulary_size: int, work_space: UInt32 | None = None, are_words: bool = False
    ) -> GapKeys:
        """Compute the keys, in ``work_space`` if given (uint32, one entry per word and row).

        With ``are_words``, there are no rules, and ``work_space`` has the words of each row and its end: these are the
        keys, as a row's first and last one are not read.
        """
        symbols = vocabulary_size + len(rules.rule_offsets) - 1
        spans = np.empty(2 * symbols, np.uint32)
        row_words = np.empty(len(rules.root_offsets) - 1, np.int64)
        rows = np.array([0, *(stop for _, stop in weighted_chunks(rules.root_offsets))])
        made = (rules.rule_offsets, rules.symbols, rules.level_offsets, rules.root_offsets, rules.roots, rows)
        tasks = len(even_chunks(symbols + len(rules.roots)))
        share_tasks(
            lambda progress: kernels.measure(progress, tasks, vocabulary_size, *made, spans, row_words),
            len(rules.level_offsets) + 1,
            tasks,
        )
        starts = running_sum(row_words + 1)
        keys = np.empty(int(starts[-1]), np.uint32) if work_space is None else work_space

        levels = len(rules.level_offsets) - 1

        def fill(chunk: tuple[int, int]) -> None:
            first, stop = chunk
            rows = (rules.root_offsets[first : stop + 1], rules.roots, starts[first:stop], keys)
            known = np.zeros(len(rules.rule_offsets) - 1, np.uint32)  # untouched memory is never allocated
            kernels.fill_keys(vocabulary_size, rules.rule_offsets, rules.symbols, levels, spans, *rows, known)

        if not are_words:
            map_parallel(fill, weighted_chunks(starts + PER_ROOT * rules.root_offsets))
        return cls(vocabulary_size + len(rules.symbols), keys, starts, row_words)

    def predict(self, gap_vocabulary: int, gap_offsets: Int64, gap_data: UInt8) -> UInt32:
        """Return each key's most frequent gap code, uint32 by key; the gaps are encoded as by the tokenizer."""
        chunks = weighted_chunks(self.starts)
        code_bits = gap_vocabulary.bit_length()
        item_bits = self.size.bit_length() + code_bits
        bits = max((len(gap_data) // 2 // GAPS_PER_BUCKET).bit_length(), min(item_bits - ITEM_BITS, MOST_BUCKET_BITS))
        dtype: Any = np.uint32 if item_bits - bits <= ITEM_BITS else np.uint64
        places = np.zeros((len(chunks), 1 << bits), np.int64)

        def partition(k: int, seen: UInt32 | UInt64) -> int:
            own, offsets = slice(*chunks[k]), gap_offsets[chunks[k][0] : chunks[k][1] + 1]
            rows = (self.keys, self.starts[own], self.row_words[own], offsets, gap_data)
            return int(kernels.partition(*rows, bits, code_bits, places[k], seen))

        highest = max(map_parallel(lambda k: partition(k, np.zeros(0, dtype)), range(len(chunks))))
        ends = np.cumsum(places.T.reshape(-1)).reshape(-1, len(chunks))
        places = np.ascontiguousarray((ends - places.T).T)
        edges = np.append(0, ends[:, -1])
        seen = np.empty(int(edges[-1]), dtype)
        map_parallel(lambda k: partition(k, seen), range(len(chunks)))
        codes, left = np.zeros(self.size, np.uint32), np.zeros(self.size, np.int64)

        def decide(buckets: tuple[int, int]) -> None:
            first, stop = buckets
            kernels.decide(seen, edges[first : stop + 1], first, bits, code_bits, highest, codes, left)

        map_parallel(decide, even_chunks(1 << bits, 1, 4))

        # tables take no more memory than the keys, and huge pages: touching small ones would take longer than counting
        many = max(1, min(len(chunks), len(self.keys) // max(self.size, 1)))
        groups = [chunks[len(chunks) * k // many : len(chunks) * (k + 1) // many] for k in range(many)]

        def count(group: list[tuple[int, int]]) -> UInt32:
            own, totals = slice(group[0][0], group[-1][1]), pages(4 * self.size).view(np.uint32)
            kernels.count_keys(self.keys, self.starts[own], self.row_words[own], totals)
            return totals

        tables = map_parallel(count, groups)

        def drop(own: tuple[int, int]) -> None:
            for totals in tables:
                np.subtract(left[slice(*own)], totals[slice(*own)], out=left[slice(*own)])
            kernels.drop_codes(left[slice(*own)], codes[slice(*own)])

        map_parallel(drop, even_chunks(self.size))
        return codes

    def encode(self, codes: UInt32, gap_offsets: Int64, gap_data: UInt8) -> tuple[Int64, UInt8]:
        """Encode the gaps that differ from the prediction.

        Returns
        -------
        (int64 array, uint8 array)
            Offsets of each row's bytes, length rows + 1; varint pairs (number of skipped gaps, gap code).

        """
        sizes = np.empty(len(self.row_words), np.int64)

        def encode(chunk: tuple[int, int]) -> UInt8:
            own, offsets = slice(*chunk), gap_offsets[chunk[0] : chunk[1] + 1]
            gaps = int(self.starts[chunk[1]] - self.starts[chunk[0]])
            data = np.empty(kernels.MOST_BYTES * gaps, np.uint8)  # untouched memory is never allocated
            rows = (self.keys, self.starts[own], self.row_words[own], offsets, gap_data)
            return data[: int(kernels.encode(codes, *rows, sizes[own], data))]

        parts = map_parallel(encode, weighted_chunks(self.starts, each=4))
        ends = np.cumsum([0, *map(len, parts)])
        _, data = allocate(int(ends[-1]), np.uint8)  # in Arrow's memory, as a column shares it
        map_parallel(lambda k: np.copyto(data[ends[k] : ends[k + 1]], parts[k]), range(len(parts)))
        return running_sum(sizes), data


def predict_gaps(tokens: Tokens, rules: LevelledRules, *, are_words: bool = False) -> tuple[UInt32, Int64, UInt8]:
    """Predict the gaps of rows from all rows, and encode the others.

    Parameters
    ----------
    tokens
        The tokenized rows; ``sequence``, which is no longer needed, is overwritten.
    rules
        Rules and rows.
    are_words
        Whether no rules were made, so that ``sequence`` still has the words of the rows.

    Returns
    -------
    (uint32 array, int64 array, uint8 array)
        Gap codes by key: 0 for one space, otherwise 1 + gap id; then as :meth:`GapKeys.encode`.

    """
    vocabulary_size = len(tokens.vocabulary)
    if len(tokens.gap_data) == 0:
        return np.zeros(vocabulary_size + len(rules.symbols), np.uint32), tokens.gap_offsets, tokens.gap_data
    # the sequence has an entry for each gap; fresh pages would cost more than the work
    keys = GapKeys.of(rules, vocabulary_size, tokens.sequence, are_words)
    codes = keys.predict(len(tokens.gap_vocabulary), tokens.gap_offsets, tokens.gap_data)
    return codes, *keys.encode(codes, tokens.gap_offsets, tokens.gap_data)
