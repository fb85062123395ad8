"""Functions that every engine supplies for windows of words.

``words`` is a uint32 array of the engine: the documents, a separator (2^32 - 1) after each. ``starts`` is int64, one
more than there are documents, in host memory: start of each document. A window is known by the place of its first word
in ``words``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from polars_tadoc.kernels.host.passages.windows import Fingerprints
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32

Part = tuple[Any, Any, UInt32, Int64]
"""Offsets, int64, documents + 1, and words, uint32, of documents: arrays of the engine. In host memory, the number of
each word (uint32), and of each document, ascending (int64)."""


class WindowKernels(Protocol):
    """Windows of exactly n words, and passages: maximal runs of words inside windows of a kind."""

    def lay_words(self, starts: Int64, parts: Sequence[Part]) -> Any:
        """Write the documents of some parts, a separator after each; documents of no part have no words."""

    def map_words(self, words: Any, image: UInt32) -> Any:
        """Renumber words by their images, which are in host memory; may write to ``words``, and separators stay."""

    def find_windows(self, words: Any, starts: Int64, length: int, mask: int = ...) -> tuple[Any, Any]:
        """Find the first occurrence and the count of every window of ``length`` words, exactly.

        Parameters
        ----------
        words, starts, length
            The documents, and the words of a window, at least 1.
        mask
            Bits of fingerprints that are used at first. Results do not depend on it.

        Returns
        -------
        (uint32 array, uint32 array)
            Arrays of the engine, by place: the place of the window's first occurrence, 2^32 - 1 where no window begins;
            and, at first occurrences, the number of occurrences, elsewhere undefined.

        """
        ...

    def find_known(
        self, words: Any, starts: Int64, fingerprints: Fingerprints, length: int, reference: tuple[Any, Any, Any, Any]
    ) -> Any:
        """Find each window in a reference.

        Parameters
        ----------
        words, starts
            The documents, with the numbers that their words have in the reference.
        fingerprints, length
            How windows are hashed, and their words.
        reference
            Arrays of the engine: slots and bits of the table of the reference
            (:func:`polars_tadoc.kernels.host.passages.matches.fill_table`), its words, and the first occurrences of its
            windows.

        Returns
        -------
        uint32 array
            By place: the first place of the window in the reference, or 2^32 - 1; an array of the engine.

        """

    def find_runs(
        self, starts: Int64, length: int, kind: int, min_count: int, first: Any, counts: Any
    ) -> tuple[Int64, Int64, Int64]:
        """Find the passages of a kind (:mod:`polars_tadoc.kernels.host.passages.runs`), in row order.

        Parameters
        ----------
        starts, length, first, counts
            As for :meth:`find_windows`, and its result.
        kind, min_count
            The windows to look for.

        Returns
        -------
        (int64, int64, int64) arrays
            In host memory: document, place of the first word, and of the one after the last.

        """
        ...

    def describe_runs(self, begins: Int64, ends: Int64, length: int, first: Any, counts: Any) -> tuple[UInt32, Bools]:
        """Return the largest count of the windows inside each passage, and whether all are first occurrences."""
        ...

    def count_covered(self, starts: Int64, length: int, kind: int, first: Any, counts: Any) -> Int64:
        """Count the words of each document in passages of a kind; repeated is twice or more. int64, in host memory."""
        ...
