"""Kernels on records of analytics, for millions of records at a time."""

from __future__ import annotations

import numpy as np

from polars_tadoc.runtime.array_types import Bools, Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.jit import kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

_K1, _K2 = np.uint64(0x100000001B3), np.uint64(0xD6E8FEB86659FD93)
_START, _32 = np.uint64(0xCBF29CE484222325), np.uint64(32)


def hash_words(offsets: Int64, data: UInt8) -> UInt64:
    """Hash the bytes of each word, identically on every machine (FNV-1a with a final mix).

    Parameters
    ----------
    offsets, data
        int64, words + 1: offsets of the words in the UTF-8 bytes.

    Returns
    -------
    uint64 array
        One hash per word.

    """
    hashes = np.empty(len(offsets) - 1, np.uint64)
    _hash_words(offsets, data, hashes)
    return hashes


@kernel
def _hash_words(offsets: Int64, data: UInt8, hashes: UInt64) -> None:
    for word in range(len(hashes)):
        h = _START
        for at in range(offsets[word], offsets[word + 1]):
            h = (h ^ np.uint64(data[at])) * _K1
        h = (h ^ (h >> _32)) * _K2
        hashes[word] = h ^ (h >> _32)


def mark(keys: UInt32, columns: list[bool], used: Bools) -> None:
    """Mark the numbers that occur in some columns of keys, uint32[keys, columns]; ``used`` is bool by number."""
    own = np.flatnonzero(columns)
    map_parallel(lambda chunk: _mark(keys, own, used, *chunk), even_chunks(len(keys)))


@kernel
def _mark(keys: UInt32, columns: Int64, used: Bools, first: int, stop: int) -> None:
    for i in range(first, stop):
        for column in columns:
            used[keys[i, column]] = True
