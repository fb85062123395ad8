"""Looks up many words in a trie, several at once, to overlap their memory accesses."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.trie.arrays import Trie
from polars_tadoc.kernels.trie.trie_walk_cpu import (
    CHILDREN,
    INNER,
    TAILED,
    TAILS,
    before_in_block,
    child_in_group,
    group_below,
    has,
    low_half,
    match_tail,
    tail_of,
    word_at,
)
from polars_tadoc.runtime.addresses import load_u8, prefetch
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.jit import inner, kernel

LANES = 32
"""Words looked up at once: 64 are a tenth slower (ten million runs of words, benchmarks/dictionary.py)."""

_0, _1, _3, _6, _7, _8 = (np.uint64(number) for number in (0, 1, 3, 6, 7, 8))


@inner
def _fetch_tail(trie: Trie, edge: Any) -> None:
    start = low_half(trie, edge, TAILS)
    near = start + (before_in_block(trie, edge, TAILED) << _1)  # tails have two codes on average
    prefetch(trie.code_ends, nb.int64(start >> _6))
    prefetch(trie.codes, nb.int64(near))


@inner
def _fetch_groups(trie: Trie, edge: Any) -> None:
    line = low_half(trie, edge, CHILDREN) >> _7 << _3
    prefetch(trie.blocks, nb.int64(line))
    prefetch(trie.blocks, nb.int64(line + _8))


@kernel
def look_up_words(
    trie: Trie, data: Any, starts: Int64, stops: Int64, first: Any, last: Any, found: UInt32, lanes: UInt64
) -> None:
    """Look up the words from address ``data`` on; ``lanes`` are four rows of :data:`LANES`.

    A lane is a word being looked up: its number, its current address, and its position in the trie (an edge or a group;
    ``edges`` if it is done). All lanes take a step before any takes the next: each step ends with a prefetch for the
    next one. It is one function, because separate functions per step were slower.
    """
    edges, unknown = nb.uint64(trie.edges), nb.uint64(trie.words)
    words, texts, stands, tailed = lanes[0], lanes[1], lanes[2], lanes[3]
    following, used = nb.uint64(first), _0
    end = nb.uint64(last)
    lane: Any
    while True:
        # finished lanes get new words, at the root, or, if there are none, the last lane's
        lane = _0
        while lane < nb.uint64(LANES) and (lane < used or following < end):
            if lane >= used or stands[lane] >= edges:
                while following < end and starts[following] >= stops[following]:
                    found[following] = unknown
                    following += _1
                if following < end:
                    words[lane] = following
                    texts[lane] = data + nb.uint64(starts[following])
                    stands[lane] = _0
                    following += _1
                    used = max(used, lane + _1)
                else:
                    if lane >= used:
                        break
                    used -= _1
                    words[lane], texts[lane], stands[lane] = words[used], texts[used], stands[used]
                    continue
            lane += _1
        if used == _0:
            return
        # from groups, whose labels were prefetched, to the next byte's edge
        count = _0
        for lane in range(used):
            edge = child_in_group(trie, stands[lane], load_u8(texts[lane]))
            stands[lane] = edge
            texts[lane] += _1
            if edge >= edges:
                found[words[lane]] = unknown
                continue
            tailed[count] = lane
            count += nb.uint64(has(trie, edge, TAILED))
        # these edges' lines are cached: prefetch the codes of all tails
        for number in range(count):
            _fetch_tail(trie, stands[tailed[number]])
        # the codes are cached: compare them with the text
        for number in range(count):
            lane = tailed[number]
            edge, stop = stands[lane], data + nb.uint64(stops[words[lane]])
            texts[lane] = match_tail(trie, tail_of(trie, edge), nb.uint64(trie.labels[edge]), texts[lane], stop)
        # words end, or prefetch the lines for finding their edge's children
        for lane in range(used):
            edge = stands[lane]
            if edge >= edges:
                continue
            word, text = words[lane], texts[lane]
            if text == data + nb.uint64(stops[word]):
                found[word] = word_at(trie, edge)
                stands[lane] = edges
            elif text == _0 or not has(trie, edge, INNER):
                found[word] = unknown
                stands[lane] = edges
            else:
                _fetch_groups(trie, edge)
        # the lines are cached: find the group of children, and prefetch its labels
        for lane in range(used):
            if stands[lane] < edges:
                group = group_below(trie, stands[lane])
                if group >= edges:
                    found[words[lane]] = unknown
                else:
                    prefetch(trie.labels, nb.int64(group))
                stands[lane] = group
