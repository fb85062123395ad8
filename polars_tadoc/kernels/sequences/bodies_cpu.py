"""Input of windows: the bodies of rules and documents, and the occurrences of each rule."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from polars_tadoc.config import settings
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.traverse.results_cpu import rule_weights
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64

ROOM = 8
"""Share of the expansion limit for entries of heads and tails, and of windows with ids."""

MOST_ENDS = 8
"""Maximum ends added for each symbol: with more, counting each length by itself is faster."""


@dataclass(frozen=True)
class Bodies:
    """Rules, documents, occurrences of each rule in the documents, and words if those are the terminals."""

    rules: Rules
    root_offsets: Int64
    roots: UInt32
    weights: UInt64
    words: int = 0

    @classmethod
    def of(cls, rules: Rules, root_offsets: Int64, roots: UInt32) -> Bodies:
        """Compute the weights of the rules."""
        weights = rule_weights(rules, roots)
        words = int(weights[: rules.terminals].sum())
        return cls(rules, root_offsets, roots, weights[rules.terminals :], words)


def longest_document(bodies: Bodies, enough: int) -> int:
    """Return the words of the longest document, or of a rule of one that has ``enough``."""
    rules = bodies.rules
    longest_rule = int(rules.lengths.max(initial=1, where=bodies.weights > 0))
    if longest_rule >= enough:
        return longest_rule
    is_rule = bodies.roots >= rules.terminals
    lengths = np.ones(len(bodies.roots), np.int64)
    lengths[is_rule] = rules.lengths[bodies.roots[is_rule] - np.uint32(rules.terminals)]
    before = running_sum(lengths)
    return int((before[bodies.root_offsets[1:]] - before[bodies.root_offsets[:-1]]).max(initial=0))


def end_documents(rules: Rules, root_offsets: Int64, roots: UInt32, times: int) -> tuple[Rules, Int64, UInt32] | None:
    """Append a new terminal, the last one, to each document: then a window of several words begins at each word.

    Returns None if that would make documents many times longer.

    Parameters
    ----------
    rules, root_offsets, roots
        Rules and documents.
    times
        How often it is appended.

    """
    end, documents = rules.terminals, len(root_offsets) - 1
    if documents * times > MOST_ENDS * (len(roots) + len(rules.symbols)):
        return None
    sizes = np.diff(root_offsets)
    offsets = running_sum(sizes + times)
    symbols = np.full(int(offsets[-1]), end, np.uint32)
    inside = np.ones(len(symbols), np.bool_)
    inside[(offsets[1:, None] - np.arange(1, times + 1)).reshape(-1)] = False
    symbols[inside] = _moved(roots[root_offsets[0] : root_offsets[-1]], end)
    return replace(rules, terminals=end + 1, symbols=_moved(rules.symbols, end)), offsets, symbols


def _moved(symbols: UInt32, end: int) -> UInt32:
    """Number rules one higher."""
    return symbols + (symbols >= end).astype(np.uint32)


def require_room(places: int, what: str) -> None:
    """Raise before allocating the memory of long sequences, or wide windows, on nested rules."""
    limit = settings().expansion_limit // ROOM
    if places > limit:
        raise LimitExceededError(
            f"{what} take {places:,} places, {limit:,} are allowed: use shorter sequences, a narrower window or "
            "fewer rows; if the data is trusted, raise the limit: tadoc.Config(expansion_limit=…)"
        )
