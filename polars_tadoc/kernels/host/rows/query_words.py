"""Tells the words of queries apart, and finds them among a segment's terms."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.runtime.compiled import njit

UInt8 = npt.NDArray[np.uint8]
UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]

UNKNOWN = -1
"""Number of a word that a segment does not have."""

_PRIME, _SPREAD = np.uint64(0x100000001B3), np.uint64(0x9E3779B97F4A7C15)
_32 = np.uint64(32)


@njit(nogil=True)
def number_words(data: UInt8, spans: Int64, slots: Int64, numbers: Int64, firsts: Int64) -> int:
    """Number words in order of first use, equal ones alike.

    Parameters
    ----------
    data, spans
        UTF-8 bytes, and where each word starts and ends in them, one after another.
    slots
        Work space, -1 throughout: a power of two, at least twice as long as there are words.
    numbers
        Filled: each word's number.
    firsts
        Filled: the first word that has each number.

    Returns
    -------
    int
        How many distinct words there are.

    """
    distinct = 0
    mask = np.uint64(len(slots) - 1)
    for word in range(len(numbers)):
        start, stop = spans[2 * word], spans[2 * word + 1]
        digest = np.uint64(0xCBF29CE484222325)  # FNV-1a, spread over the upper bits
        for i in range(start, stop):
            digest = (digest ^ np.uint64(data[i])) * _PRIME
        slot = (digest * _SPREAD >> _32) & mask
        while True:
            own = slots[slot]
            if own < 0:
                slots[slot], firsts[distinct], numbers[word] = distinct, word, distinct
                distinct += 1
                break
            first = spans[2 * firsts[own]]
            if spans[2 * firsts[own] + 1] - first == stop - start:
                i = 0
                while i < stop - start and data[first + i] == data[start + i]:
                    i += 1
                if i == stop - start:
                    numbers[word] = own
                    break
            slot = (slot + np.uint64(1)) & mask
    return distinct


@njit(nogil=True)
def copy_words(data: UInt8, spans: Int64, words: Int64, offsets: Int64, copied: UInt8) -> None:
    """Copy some words one after another; ``offsets`` says where each goes."""
    for k in range(len(words)):
        start, at = spans[2 * words[k]], offsets[k]
        for i in range(offsets[k + 1] - at):
            copied[at + i] = data[start + i]


@njit(nogil=True)
def first_bytes(data: Any, start: int, stop: int) -> Any:
    """Return the first eight bytes of a word, 0 beyond its end, such that numbers stand in the order of words."""
    key = np.uint64(0)
    for i in range(start, start + 8):
        key = key << np.uint64(8) | (np.uint64(data[i]) if i < stop else np.uint64(0))
    return key


@njit(nogil=True)
def fill_keys(offsets: Any, terms: Any, keys: UInt64) -> None:
    """Fill in the first bytes of each term."""
    for term in range(len(keys)):
        keys[term] = first_bytes(terms, offsets[term], offsets[term + 1])


@njit(nogil=True)
def find_terms(data: UInt8, spans: Int64, order: Int64, offsets: Any, terms: Any, keys: Any, numbers: Int64) -> None:
    """Find words among ascending terms, by their first bytes, then by comparison of those that share these.

    Parameters
    ----------
    data, spans
        The words, as for :func:`number_words`.
    order
        int64: the order in which they are looked for; each search begins where the last one ended, so that many
        words in the order of their first bytes are found with one walk over the terms.
    offsets, terms
        int64, terms + 1, and the UTF-8 bytes of the terms, ascending.
    keys
        uint64 by term, of :func:`fill_keys`.
    numbers
        Filled: each word's number among the terms, ``UNKNOWN`` where it is not there.

    """
    at, before = 0, np.uint64(0)
    for word in order:
        start, length = spans[2 * word], spans[2 * word + 1] - spans[2 * word]
        own = first_bytes(data, start, start + length)
        low, step = at if own >= before else 0, 1
        while low + step < len(keys) and keys[low + step] < own:
            low += step
            step *= 2
        high = min(low + step, len(keys))
        while low < high:
            middle = (low + high) >> 1
            if keys[middle] < own:
                low = middle + 1
            else:
                high = middle
        at, before, numbers[word], step = low, own, UNKNOWN, 1
        while low + step < len(keys) and keys[low + step] == own:
            step *= 2
        high = min(low + step, len(keys))
        while low < high:
            middle = (low + high) >> 1
            first, size = offsets[middle], offsets[middle + 1] - offsets[middle]
            i = 0
            while i < min(length, size) and terms[first + i] == data[start + i]:
                i += 1
            if i == length and i == size:
                numbers[word] = middle
                break
            if i == size or (i < length and terms[first + i] < data[start + i]):
                low = middle + 1
            else:
                high = middle


@njit(nogil=True)
def word_keys(data: UInt8, spans: Int64, keys: UInt64) -> None:
    """Fill in the first bytes of each word."""
    for word in range(len(keys)):
        keys[word] = first_bytes(data, spans[2 * word], spans[2 * word + 1])
