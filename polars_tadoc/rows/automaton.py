"""The automaton that matches phrases (Aho and Corasick, CACM 1975), over classes of words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from polars_tadoc.kernels.host.rows.phrases import Automaton
from polars_tadoc.runtime.array_types import UInt32


def build_automaton(phrases: Iterable[Sequence[int]], classes: UInt32, class_count: int) -> Automaton:
    """Build the automaton of phrases of word classes.

    Parameters
    ----------
    phrases
        Classes of each phrase's words, from 1 on; no phrase is empty.
    classes
        uint32 by word: its class, 0 for words in no phrase.
    class_count
        Number of classes, including class 0.

    """
    children, depths, ends = _trie(phrases)
    fails, onward = [0] * len(children), [0] * len(children)
    order = list(children[0].values())
    for state in order:  # breadth first: shorter states are done
        fail = fails[state]
        ends[state] |= ends[fail]
        onward[state] = state if children[state] else onward[fail]
        for word, child in children[state].items():
            link = fail
            while link and word not in children[link]:
                link = fails[link]
            fails[child] = children[link].get(word, 0)
            order.append(child)
    from_start = np.zeros(class_count, np.uint32)
    for word, child in children[0].items():
        from_start[word] = child
    edges = [[], *(sorted(own.items()) for own in children[1:])]
    offsets = np.cumsum([0, *map(len, edges)]).astype(np.uint32)
    flat = np.array([edge for own in edges for edge in own], np.uint32).reshape(-1, 2)
    return Automaton(
        classes,
        from_start,
        offsets,
        np.ascontiguousarray(flat[:, 0]),
        np.ascontiguousarray(flat[:, 1]),
        np.array(fails, np.uint32),
        np.array(onward, np.uint32),
        np.array(depths, np.uint32),
        np.array(ends, np.uint8),
    )


def _trie(phrases: Iterable[Sequence[int]]) -> tuple[list[dict[int, int]], list[int], list[bool]]:
    """Return children by class, depth, and whether a phrase ends there, by state."""
    children: list[dict[int, int]] = [{}]
    depths, ends = [0], [False]
    for phrase in phrases:
        state = 0
        for word in phrase:
            if word not in children[state]:
                children[state][word] = len(children)
                children.append({})
                depths.append(depths[state] + 1)
                ends.append(False)
            state = children[state][word]
        ends[state] = True
    return children, depths, ends
