"""Checks for all nodes at once whether all their children are found.

A node's first child is its next bit, so one shift tells for all nodes whether their first child is found. For the other
children, the found nodes are *folded* first: from the last sibling to the first, a child stays only if its next sibling
is there. All children with equal distance from their next sibling and equal rank from the last are processed in one
step, ``found &= found >> distance | keepers``; a step processes all words, four or eight at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from polars_tadoc.kernels.twigs.arrays import NO_NODE, Twigs
from polars_tadoc.runtime.addresses import trailing_zeros
from polars_tadoc.runtime.jit import inner, kernel

_0, _1 = np.uint64(0), np.uint64(1)


class Folds(NamedTuple):
    """Steps in their required order."""

    distances: Any
    """uint64[steps]."""
    keepers: Any
    """uint64[steps * words]: all bits except the children that stay only if their next sibling is there."""
    crossing: Any
    """uint32: words with a node whose children are not all in it: such nodes are checked one by one."""


def make_folds(twigs: Twigs) -> Folds:
    """Compute the steps of twigs."""
    words, branches, siblings = twigs.words, twigs.branches, twigs.siblings
    needed, crosses = np.zeros(64 * 64, np.uint8), np.zeros(words, np.uint8)
    _list_steps(words, branches, siblings, crosses, needed)
    steps = np.flatnonzero(needed)
    numbers = np.zeros(64 * 64, np.int64)
    numbers[steps] = np.arange(len(steps))
    keepers = np.full(len(steps) * words, ~_0, np.uint64)
    _lay_out(words, branches, siblings, crosses, numbers, keepers)
    return Folds((steps % 64).astype(np.uint64), keepers, np.flatnonzero(crosses).astype(np.uint32))


@inner
def _count_children(siblings: Any, word: Any, node: Any) -> Any:
    """Count a node's children; 0 if one of them is in another word."""
    child, count = np.int64(node + 1), 0
    while child != NO_NODE:
        if child >> 6 != word:
            return 0
        child, count = np.int64(siblings[child]), count + 1
    return count


@kernel
def _list_steps(words: Any, branches: Any, siblings: Any, crosses: Any, needed: Any) -> None:
    for word in range(words):
        left = branches[word]
        while left != _0:
            node = word * 64 + trailing_zeros(left)
            children = _count_children(siblings, word, node)
            if children == 0:
                crosses[word] = 1
            child = np.int64(node + 1)
            for following in range(children - 1, 0, -1):
                sibling = np.int64(siblings[child])
                needed[(following - 1) * 64 + sibling - child] = 1
                child = sibling
            left &= left - _1


@kernel
def _lay_out(words: Any, branches: Any, siblings: Any, crosses: Any, numbers: Any, keepers: Any) -> None:
    for word in range(words):
        left = branches[word] if crosses[word] == 0 else _0
        while left != _0:
            node = word * 64 + trailing_zeros(left)
            child = np.int64(node + 1)
            for following in range(_count_children(siblings, word, node) - 1, 0, -1):
                sibling = np.int64(siblings[child])
                step = numbers[(following - 1) * 64 + sibling - child]
                keepers[step * words + word] ^= _1 << np.uint64(child & 63)
                child = sibling
            left &= left - _1


@inner
def fold(folds: Any, words: Any, source: Any, found: Any, folded: Any) -> None:
    """Copy a set from ``source[found]``, without nodes that lack a following sibling.

    Writes one more word, which is zero.
    """
    anything = _0
    for word in range(words):
        folded[word] = source[found + word]
        anything |= source[found + word]
    folded[words] = _0
    for step in range(len(folds.distances) if anything != _0 else 0):
        distance, keepers = folds.distances[step], step * words
        for word in range(words):
            folded[word] &= folded[word] >> distance | folds.keepers[keepers + word]


@inner
def keep_whole(folds: Any, branches: Any, siblings: Any, source: Any, found: Any, target: Any, to: Any) -> None:
    """Of nodes in ``target`` whose first child is found, keep those with all children found, in crossing words."""
    for place in range(len(folds.crossing)):
        word = np.int64(folds.crossing[place])
        left = target[to + word] & branches[word]
        while left != _0:
            following = siblings[word * 64 + trailing_zeros(left) + 1]
            while following != NO_NODE:
                bits = source[found + np.int64(following >> np.uint32(6))]
                if bits >> np.uint64(following & np.uint32(63)) & _1 == _0:
                    target[to + word] ^= left & (_0 - left)
                    break
                following = siblings[following]
            left &= left - _1
