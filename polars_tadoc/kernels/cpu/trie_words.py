"""Looks many words up in a trie."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cpu.jit import inner, kernel
from polars_tadoc.kernels.cpu.memory import load_u8
from polars_tadoc.kernels.cpu.trie_walk import (
    child_in_group,
    group_below,
    has_tail,
    is_inner,
    match_tail,
    tail_of,
    word_at,
)
from polars_tadoc.kernels.trie import Trie

UInt32 = npt.NDArray[np.uint32]
Int64 = npt.NDArray[np.int64]

_0, _1 = np.uint64(0), np.uint64(1)


@inner
def _look_up(trie: Trie, text: Any, stop: Any) -> Any:
    group, edges = _0, nb.uint64(trie.edges)
    while text < stop and group < edges:
        byte = load_u8(text)
        edge = child_in_group(trie, group, byte)
        if edge >= edges:
            break
        text += _1
        if has_tail(trie, edge):
            text = match_tail(trie, tail_of(trie, edge), nb.uint64(byte), text, stop)
            if text == _0:
                break
        if text == stop:
            return word_at(trie, edge)
        if not is_inner(trie, edge):
            break
        group = group_below(trie, edge)
    return nb.uint64(trie.words)


@kernel
def look_up_words(trie: Trie, data: Any, starts: Int64, stops: Int64, first: Any, last: Any, found: UInt32) -> None:
    """Look up the words from address ``data`` on."""
    for i in range(first, last):
        found[i] = _look_up(trie, data + nb.uint64(starts[i]), data + nb.uint64(stops[i]))
