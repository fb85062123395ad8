"""The input of traversals: bodies of rules over terminals of any kind (words, sequences, pairs of words)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from polars_tadoc.runtime.array_types import Bools, Int64, UInt32, UInt64, array_dataclass


class GrammarArrays(Protocol):
    """The arrays of a grammar, in host memory."""

    @property
    def vocabulary_size(self) -> int:
        """Number of words."""

    @property
    def rule_count(self) -> int:
        """Number of rules."""

    @property
    def level_count(self) -> int:
        """Number of levels of rules."""

    @property
    def rule_offsets(self) -> UInt32:
        """Offset of each body in ``symbols``, rules + 1."""

    @property
    def symbols(self) -> UInt32:
        """The concatenated bodies."""

    @property
    def level_offsets(self) -> UInt32:
        """The first rule of each level, levels + 1."""

    @property
    def expansion_lengths(self) -> UInt64:
        """Number of words in the expansion of each rule."""


class RankedWords(Protocol):
    """The code point order of a vocabulary's words, in host memory."""

    @property
    def rank(self) -> UInt32:
        """Rank of each word in code point order."""

    @property
    def ascending(self) -> Bools:
        """For each word but the last, whether the next one has a higher rank."""

    @property
    def by_rank(self) -> UInt32:
        """Word ids in code point order."""

    def rank_of(self, ids: UInt32) -> UInt32:
        """Return the ranks of some words."""


@array_dataclass
class Rules:
    """Rules in the order of a grammar: a body refers to terminals and rules of lower levels only.

    Symbol ``s`` below ``terminals`` is terminal ``s``; any other is rule ``s - terminals``. A body may be empty. The
    arrays belong to an engine (NumPy or CuPy), except for ``level_offsets``.
    """

    terminals: int
    """Number of terminals."""
    rule_offsets: Any
    """int64, rules + 1: offset of each body in ``symbols``."""
    symbols: Any
    """uint32: the concatenated bodies."""
    level_offsets: Int64
    """int64, levels + 1, in host memory: the first rule of each level, lowest level first."""
    lengths: Any
    """uint64 by rule: number of terminals in its expansion."""

    @property
    def rule_count(self) -> int:
        """Number of rules."""
        return len(self.rule_offsets) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of the engine's arrays."""
        return int(self.rule_offsets.nbytes + self.symbols.nbytes + self.lengths.nbytes)

    @classmethod
    def of(cls, grammar: GrammarArrays) -> Rules:
        """Return a grammar's rules over its words, in host memory."""
        offsets, levels = grammar.rule_offsets.astype(np.int64), grammar.level_offsets.astype(np.int64)
        return cls(grammar.vocabulary_size, offsets, grammar.symbols, levels, grammar.expansion_lengths)

    def loaded(self, load: Callable[[Any], Any]) -> Rules:
        """Return host rules with arrays of an engine."""
        offsets, symbols, lengths = (load(array) for array in (self.rule_offsets, self.symbols, self.lengths))
        return Rules(self.terminals, offsets, symbols, self.level_offsets, lengths)
