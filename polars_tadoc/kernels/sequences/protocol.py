"""Functions that every engine supplies for counting sequences and pairs of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypedDict, Unpack

from polars_tadoc.kernels.traverse.rules import Rules


class Limits(TypedDict, total=False):
    """Which sequences or documents a result has; by default all."""

    min_count: int
    """Minimum count over all documents."""
    top: int | None
    """Maximum number of sequences, or of documents per sequence."""


class SequenceKernels(Protocol):
    """Sequences of n words, and pairs of words within a window."""

    def sequence_counts(
        self, rules: Rules, root_offsets: Any, roots: Any, n: int, rank: Any, strategy: str, **limits: Unpack[Limits]
    ) -> tuple[Any, Any]:
        """Count the sequences of n words: words of each sequence, and counts."""
        ...

    def sequence_counts_of_lengths(
        self,
        rules: Rules,
        root_offsets: Any,
        roots: Any,
        lengths: Sequence[int],
        rank: Any,
        strategy: str,
        min_count: int = 1,
        top: int | None = None,
    ) -> list[tuple[Any, Any]]:
        """Count the sequences of several lengths: words of each sequence, and counts, by length."""
        ...

    def sequence_postings(
        self, rules: Rules, root_offsets: Any, roots: Any, n: int, rank: Any, strategy: str, **limits: Unpack[Limits]
    ) -> tuple[Any, Any, Any, Any]:
        """List the documents that contain each sequence of n words: words, offsets, documents, counts."""
        ...

    def pair_counts(
        self,
        rules: Rules,
        root_offsets: Any,
        roots: Any,
        window: int,
        rank: Any,
        strategy: str,
        **limits: Unpack[Limits],
    ) -> tuple[Any, Any]:
        """Count the pairs of words at most ``window`` words apart: words of each pair, and counts."""
        ...

    def derive_sequences(
        self, rules: Rules, root_offsets: Any, roots: Any, n: int, rank: Any
    ) -> tuple[Rules, Any, Any, Any]:
        """Convert rules and documents to those of sequences of n words: rules, offsets, roots, words by sequence."""
        ...

    def derive_pairs(
        self, rules: Rules, root_offsets: Any, roots: Any, window: int, rank: Any
    ) -> tuple[Rules, Any, Any, Any]:
        """Convert rules and documents of words to those of pairs of words: rules, offsets, roots, words by pair."""
        ...
