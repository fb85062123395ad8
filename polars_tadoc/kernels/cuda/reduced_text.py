"""The words that own windows are made of: of each child the first and the last ones, as plain text.

Where all of it would take too much memory, documents are written some at a time, and again for each batch of keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cuda.bodies import Text
from polars_tadoc.kernels.cuda.device import launch_each
from polars_tadoc.kernels.cuda.primitives import exclusive_scan
from polars_tadoc.kernels.cuda.windows import too_many

THREADS = 256
"""Positions of a block."""


@dataclass(frozen=True, eq=False)
class Words:
    """Some of the words, see ``write_text`` in ``reduced_text.cu``."""

    words: Any
    """cupy uint32."""
    of_rules: int
    """Words of rules: the first ones."""
    owners: Any
    """cupy uint32: the rule of each of them."""
    reach: int
    document_starts: Any
    """cupy uint64: the first word of each document from ``first_document`` on."""
    first_document: int

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return int(self.words.nbytes + self.owners.nbytes + self.document_starts.nbytes)

    def arguments(self) -> tuple[Any, ...]:
        """Return what the kernels take."""
        return self.words, np.uint64(len(self.words)), np.uint64(self.of_rules), self.owners


@dataclass(frozen=True, eq=False)
class _Slice:
    """Owners from ``first`` to ``stop`` of a text, which stand from position ``begin`` to ``end``."""

    text: Text
    weights: Any
    """cupy uint64 by owner: those of none are left out; None for documents."""
    first: int
    stop: int
    begin: int
    end: int

    @property
    def blocks(self) -> int:
        """Blocks of positions."""
        return -(-(self.end - self.begin) // THREADS)


class ReducedText:
    """The words of rules that occur, then those of documents.

    Parameters
    ----------
    bodies, documents
        What to write.
    weights
        cupy uint64 by rule: 0 where it is to be left out.
    room
        Bytes that the words may take at a time, but for those of rules.

    """

    def __init__(self, bodies: Text, documents: Text, weights: Any, room: int) -> None:
        if bodies.terminals > 1 << 30:
            raise too_many(bodies.terminals, "words of the vocabulary")
        of_rules = _Slice(bodies, weights, 0, len(bodies.offsets) - 1, 0, len(bodies.symbols))
        of_documents = _Slice(documents, None, 0, len(documents.offsets) - 1, 0, len(documents.symbols))
        before, rule_words, total, most = _measure([of_rules, of_documents])
        self.most = max(most, 1)
        """The largest weight."""
        self._part = 0
        if 4 * total <= room:
            self._kept = _write([of_rules, of_documents], before, rule_words, total)
            self._cuts: list[_Slice] = []
        else:
            self._part = room // 4
            some = self._part // 4
            starts = documents.offsets.get()  # synchronize!
            self._cuts = [
                _Slice(documents, None, first, stop, int(starts[first]), int(starts[stop]))
                for first, stop in _cut(before[of_rules.blocks :].get(), starts, some)  # synchronize!
            ]
            del before
            self._kept = _write([of_rules], *_measure([of_rules])[:3])

    @property
    def nbytes(self) -> int:
        """Bytes of device memory that it takes at a time."""
        return self._kept.nbytes + self._part

    def parts(self) -> Iterator[Words]:
        """Yield all words, in one or several parts; a document is never cut."""
        yield self._kept
        for part in self._cuts:
            yield _write([part], *_measure([part])[:3])


def _measure(slices: list[_Slice]) -> tuple[Any, int, int, int]:
    """Return the words before each block, the words of rules, all words, the largest weight."""
    import cupy

    sizes = cupy.zeros(1 + sum(part.blocks for part in slices), np.uint64)  # the largest weight, words by block
    start = 1
    for part in slices:
        symbols, _, *others, _, reach = part.text.arguments()
        launch_each(
            *("reduced_text", "measure_text", part.end - part.begin, symbols, np.uint64(part.begin)),
            *(np.uint64(part.end), *others, reach, part.weights, part.text.offsets),
            *(np.uint32(len(part.text.offsets) - 1), sizes[start:], sizes),
        )
        start += part.blocks
    before = exclusive_scan(sizes[1:])
    told = cupy.empty(3, np.uint64)
    rule_blocks = sum(part.blocks for part in slices if part.weights is not None)
    blocks = (np.uint64(rule_blocks), np.uint64(len(before) - 1))
    launch_each("reduced_text", "tell", 1, before, *blocks, sizes, told)
    of_rules, total, most = told.get().tolist()  # synchronize!
    return before, of_rules, total, most


def _write(slices: list[_Slice], before: Any, of_rules: int, total: int) -> Words:
    """Write the words of some owners, rules first."""
    import cupy

    words, owners = cupy.empty(total, np.uint32), cupy.empty(of_rules, np.uint32)
    starts, first = cupy.empty(0, np.uint64), 0
    start = 0
    for part in slices:
        symbols, _, *others, rank, reach = part.text.arguments()
        if part.weights is None:
            starts, first = cupy.full(part.stop - part.first, total, np.uint64), part.first
        launch_each(
            *("reduced_text", "write_text", part.end - part.begin, symbols, np.uint64(part.begin)),
            *(np.uint64(part.end), *others, reach, rank, part.weights, part.text.offsets),
            *(np.uint32(len(part.text.offsets) - 1), before[start:], words),
            *((owners, np.uint32(0), None) if part.weights is not None else (None, np.uint32(first), starts)),
        )
        start += part.blocks
    return Words(words, of_rules, owners, slices[0].text.reach, starts, first)


def _cut(before: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64], most: int) -> list[tuple[int, int]]:
    """Cut documents so that each part has at most so many words, or one document.

    ``before`` are the words before each block of positions, ``offsets`` where each document starts.
    """
    lowest = before[offsets // THREADS]
    highest = before[np.minimum(-(-offsets // THREADS), len(before) - 1)]
    cuts = [0]
    while cuts[-1] < len(offsets) - 1:
        stop = int(np.searchsorted(highest, lowest[cuts[-1]] + most, side="right")) - 1
        cuts.append(max(stop, cuts[-1] + 1))
    return list(pairwise(cuts))
