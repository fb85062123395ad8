"""What every engine supplies to count runs of words and pairs of words."""

from __future__ import annotations

from typing import Any, Protocol

from polars_tadoc.kernels.traverse.rules import Rules


class SequenceKernels(Protocol):
    """Runs of n words, and pairs of words within a window."""

    def sequence_counts(
        self,
        rules: Rules,
        root_offsets: Any,
        roots: Any,
        n: int,
        rank: Any,
        strategy: str,
        min_count: int = 1,
        top: int | None = None,
    ) -> tuple[Any, Any]:
        """Count the runs of n words: words of each run, and counts."""
        ...

    def sequence_postings(
        self,
        rules: Rules,
        root_offsets: Any,
        roots: Any,
        n: int,
        rank: Any,
        strategy: str,
        min_count: int = 1,
        top: int | None = None,
    ) -> tuple[Any, Any, Any, Any]:
        """List the documents that hold each run of n words: words, offsets, documents, counts."""
        ...

    def pair_counts(
        self,
        rules: Rules,
        root_offsets: Any,
        roots: Any,
        window: int,
        rank: Any,
        strategy: str,
        min_count: int = 1,
        top: int | None = None,
    ) -> tuple[Any, Any]:
        """Count the pairs of words at most ``window`` words apart: words of each pair, and counts."""
        ...

    def derive_sequences(
        self, rules: Rules, root_offsets: Any, roots: Any, n: int, rank: Any
    ) -> tuple[Rules, Any, Any, Any]:
        """Turn rules and documents of words into those of runs of n words: rules, offsets, roots, words by run."""
        ...

    def derive_pairs(
        self, rules: Rules, root_offsets: Any, roots: Any, window: int, rank: Any
    ) -> tuple[Rules, Any, Any, Any]:
        """Turn rules and documents of words into those of pairs of words: rules, offsets, roots, words by pair."""
        ...
