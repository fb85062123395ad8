"""MinHash signatures of texts: words are cut and hashed where they are, without a vocabulary."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.near.signatures import EMPTY, LANES, TOGETHER, mixed, take_least
from polars_tadoc.kernels.tokenize.tokenize_cpu import BLOCK, Classes, cut_block, tables_of
from polars_tadoc.runtime.addresses import load_u8, load_u64, trailing_zeros
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, polled_kernel

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_1, _8, _32 = np.uint64(1), np.uint64(8), np.uint64(32)
_LOOK = (1 << 10) - 1
"""Blocks between looks at the interrupts."""


@inner
def hash_word(address: np.uint64, length: int, room: int) -> Any:
    """Hash a word: its length, then eight bytes after another, each xored, multiplied, and its upper half xored.

    ``room`` is the number of bytes that may be read there, at least ``length``.
    """
    size, i = np.uint64(length), np.uint64(0)
    h = size * _FACTOR
    while i + _8 <= size:
        h = (h ^ load_u64(address + i)) * _FACTOR
        h ^= h >> _32
        i += _8
    left = size - i
    if left == 0:
        return h
    if i + _8 <= np.uint64(room):
        last = load_u64(address + i) & ((_1 << (left * _8)) - _1)
    else:
        last = np.uint64(0)
        for k in range(left):
            last |= np.uint64(load_u8(address + i + np.uint64(k))) << (_8 * np.uint64(k))
    h = (h ^ last) * _FACTOR
    return h ^ (h >> _32)


@polled_kernel
def hash_texts(offsets: Int64, data: UInt8, first: int, stop: int, found: UInt64) -> None:
    """Hash words of a vocabulary.

    Parameters
    ----------
    offsets, data
        int64, words + 1, and uint8: the words' bytes.
    first, stop
        The words to hash.
    found
        uint64: the hashes, from ``first`` on.

    """
    base, began, end = np.uint64(data.ctypes.data), interrupts(), offsets[stop]
    for word in range(first, stop):
        if interrupts() != began:
            return
        start = offsets[word]
        found[word - first] = hash_word(base + np.uint64(start), offsets[word + 1] - start, end - start)


@polled_kernel
def sign_text(
    addresses: UInt64,
    lengths: UInt32,
    classes: Classes,
    tail: UInt8,
    ngram: int,
    base: np.uint64,
    power: np.uint64,
    factors: UInt32,
    row_hashes: UInt64,
    held: UInt64,
    least: UInt32,
    found: UInt32,
) -> None:
    """Sign rows of text by double hashing.

    Parameters
    ----------
    addresses, lengths
        uint64 and uint32: the rows, UTF-8.
    classes, tail
        Tokenizer, and uint8, ``BLOCK``: scratch.
    ngram, base, power, factors, held, least
        As for :func:`polars_tadoc.kernels.host.near.signatures.sign_double`.
    row_hashes
        uint64: scratch, room for the words of an n-gram, or of the longest row, and at least twice ``BLOCK`` more.
    found
        uint32, rows by permutations: the signatures.

    """
    began, steps = interrupts(), len(factors) // LANES
    places = (np.uint64(factors.ctypes.data), np.uint64(held.ctypes.data), np.uint64(least.ctypes.data))
    tables = tables_of(classes, tail)
    for row in range(len(addresses)):
        if interrupts() != began:
            return
        for k in range(len(least)):
            least[k] = EMPTY
        address, at, stop, in_word, single_end = addresses[row], nb.int64(0), nb.int64(lengths[row]), 0, -1
        begun, blocks, h = nb.int64(-1), 0, np.uint64(0)
        number, filled, done, count = 0, 0, 0, 0  # words in n-grams; hashes, and those of such words; n-grams held
        while at < stop:
            blocks += 1
            if blocks & _LOOK == 0 and interrupts() != began:
                return
            starts, ends, size, in_word, single_end = cut_block(
                address + np.uint64(at), stop - at, in_word, single_end, *tables
            )
            while starts != 0 or (begun >= 0 and ends != 0):
                if begun < 0:
                    begun = at + nb.int64(trailing_zeros(starts))
                    starts &= starts - _1
                    if ends == 0:
                        break
                end = at + nb.int64(trailing_zeros(ends))
                ends &= ends - _1
                row_hashes[filled] = hash_word(address + np.uint64(begun), end - begun, stop - begun)
                filled, begun = filled + 1, nb.int64(-1)
            at += size
            if at >= stop and begun >= 0:
                row_hashes[filled] = hash_word(address + np.uint64(begun), stop - begun, stop - begun)
                filled += 1
            if at < stop and filled + 2 * BLOCK <= len(row_hashes):
                continue
            for i in range(done, filled):
                h = h * base + row_hashes[i]
                if number >= ngram:
                    h -= row_hashes[i - ngram] * power
                number += 1
                if number >= ngram:
                    held[count] = mixed(h)
                    count += 1
                    if count == TOGETHER:
                        take_least(*places, steps)
                        count = 0
            done = min(filled, ngram)
            for i in range(done):
                row_hashes[i] = row_hashes[filled - done + i]
            filled = done
        if 0 < number < ngram:
            held[0] = mixed(h)
            count = 1
        if count:
            for k in range(count, TOGETHER):
                held[k] = held[0]
            take_least(*places, steps)
        for k in range(found.shape[1]):
            found[row, k] = least[k]
