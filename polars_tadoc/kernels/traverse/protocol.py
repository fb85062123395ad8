"""Functions that every engine supplies for counting words by traversing rules."""

from __future__ import annotations

from typing import Any, Protocol

from polars_tadoc.kernels.traverse.rules import GrammarArrays, RankedWords, Rules
from polars_tadoc.runtime.array_types import UInt32, UInt64


class TraverseKernels(Protocol):
    """Counts of terminals, over all documents."""

    def load_grammar(self, grammar: GrammarArrays) -> Any:
        """Make a grammar resident for :meth:`top_down_weights`."""

    def load_rules(self, grammar: GrammarArrays) -> Rules:
        """Make a grammar's rules resident for all other traversals."""
        ...

    def top_down_weights(self, grammar: Any, roots: Any) -> Any:
        """Count the words in the expansion of the roots: uint64 by word id."""

    def terminal_counts(self, rules: Rules, roots: Any, strategy: str) -> Any:
        """Count each terminal over all documents: uint64 by terminal."""

    def expand_words(self, rules: Rules, root_offsets: Any, roots: Any, rank: Any = None) -> tuple[Any, Any]:
        """Expand documents.

        Parameters
        ----------
        rules
            The rules.
        root_offsets, roots
            int64, documents + 1, and uint32: the documents' symbols.
        rank
            uint32 by word: its number in the result; None for its own.

        Returns
        -------
        (int64[documents + 1], uint32 array)
            Where each document's words start, and the words.

        """
        ...

    def map_counts(self, counts: Any, image: UInt32, size: int) -> Any:
        """Sum counts by image, which is in host memory: uint64 by new id."""

    def select(self, counts: Any, words: RankedWords, min_count: int, top: int | None) -> tuple[UInt32, UInt64]:
        """Select the words of a result, in result order: ids and counts, in host memory."""
        ...
