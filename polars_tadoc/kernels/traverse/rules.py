"""What traversals read: the bodies of rules over terminals of any kind (words, sequences, pairs of words)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from polars_tadoc.runtime.array_types import Bools, Int64, UInt32, UInt64


class GrammarArrays(Protocol):
    """The arrays of a grammar, in host memory, as kernels read them."""

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
        """Where each body starts in ``symbols``, rules + 1."""

    @property
    def symbols(self) -> UInt32:
        """The bodies one after another."""

    @property
    def level_offsets(self) -> UInt32:
        """The first rule of each level, levels + 1."""

    @property
    def expansion_lengths(self) -> UInt64:
        """Words by rule."""


class RankedWords(Protocol):
    """The order of a vocabulary's words, in host memory, as kernels read it."""

    @property
    def rank(self) -> UInt32:
        """Place of each word in code point order."""

    @property
    def ascending(self) -> Bools:
        """For each word but the last, whether the next one has a higher rank."""

    @property
    def by_rank(self) -> UInt32:
        """Word ids in code point order."""

    def rank_of(self, ids: UInt32) -> UInt32:
        """Return the places of some words in code point order."""


@dataclass(frozen=True, eq=False)
class Rules:
    """Rules in the order of a grammar: a body names terminals and rules of lower levels only.

    Symbol ``s`` below ``terminals`` is terminal ``s``; any other is rule ``s - terminals``. A body may be empty.
    The arrays are an engine's (NumPy or CuPy), but for ``level_offsets``.
    """

    terminals: int
    """Number of terminals."""
    rule_offsets: Any
    """int64, rules + 1: where each body starts in ``symbols``."""
    symbols: Any
    """uint32: the bodies one after another."""
    level_offsets: Int64
    """int64, levels + 1, in host memory: the first rule of each level, lowest level first."""
    lengths: Any
    """uint64 by rule: terminals it stands for."""

    @property
    def rule_count(self) -> int:
        """Number of rules."""
        return len(self.rule_offsets) - 1

    @property
    def nbytes(self) -> int:
        """Bytes that the engine's arrays hold."""
        return int(self.rule_offsets.nbytes + self.symbols.nbytes + self.lengths.nbytes)

    @classmethod
    def of(cls, grammar: GrammarArrays) -> Rules:
        """Return a grammar's rules over its words, in host memory."""
        offsets, levels = grammar.rule_offsets.astype(np.int64), grammar.level_offsets.astype(np.int64)
        return cls(grammar.vocabulary_size, offsets, grammar.symbols, levels, grammar.expansion_lengths)

    def loaded(self, load: Callable[[Any], Any]) -> Rules:
        """Return rules in host memory as an engine's arrays."""
        offsets, symbols, lengths = (load(array) for array in (self.rule_offsets, self.symbols, self.lengths))
        return Rules(self.terminals, offsets, symbols, self.level_offsets, lengths)
