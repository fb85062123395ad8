"""Tokenizes phrases, and finds their words in a vocabulary."""

from __future__ import annotations

import numba as nb

from polars_tadoc.kernels.tokenize.tokenize_cpu import GAP, Classes, classify, word_end_from
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32
from polars_tadoc.runtime.jit import kernel

UNKNOWN = 0xFFFFFFFF
"""Id of a word outside of the vocabulary."""


@kernel
def cut_words(data: UInt8, offsets: Int64, classes: Classes, tail: UInt8, spans: Int64, word_offsets: Int64) -> int:
    """Tokenize texts as the tokenizer cuts rows.

    Parameters
    ----------
    data, offsets
        The texts' concatenated UTF-8 bytes, and their offsets.
    classes
        Character classes of the tokenizer.
    tail
        Work space: ``BLOCK`` bytes.
    spans
        Output: start and end of each word in the bytes; room for two numbers per byte.
    word_offsets
        Output: number of words before each text, and in total.

    Returns
    -------
    int
        The number of words.

    """
    base = nb.uint64(data.ctypes.data)
    page_of, pages = nb.uint64(classes.page_of.ctypes.data), nb.uint64(classes.pages.ctypes.data)
    words = 0
    word_offsets[0] = 0
    for text in range(len(offsets) - 1):
        first, at = offsets[text], 0
        address, length = base + nb.uint64(first), offsets[text + 1] - first
        while at < length:
            kind, width = classify(address + nb.uint64(at), length - at, page_of, pages)
            if kind == GAP:
                at += width
                continue
            end = word_end_from(address, length, at, length, classes, tail)
            end = length if end < 0 else end
            spans[2 * words], spans[2 * words + 1] = first + at, first + end
            words += 1
            at = end
        word_offsets[text + 1] = words
    return words


@kernel
def find_words(data: UInt8, spans: Int64, offsets: Int64, strings: UInt8, by_rank: UInt32, ids: UInt32) -> None:
    """Find words in a vocabulary by binary search.

    Parameters
    ----------
    data, spans
        The words, as :func:`cut_words` gives them.
    offsets, strings
        The vocabulary's words.
    by_rank
        Their ids in code point order.
    ids
        Output: the id of each word, ``UNKNOWN`` if it is missing.

    """
    for word in range(len(ids)):
        start, length = spans[2 * word], spans[2 * word + 1] - spans[2 * word]
        low, high = 0, len(by_rank)
        ids[word] = UNKNOWN
        while low < high:
            middle = (low + high) >> 1
            own = by_rank[middle]
            first, size = offsets[own], offsets[own + 1] - offsets[own]
            i = 0
            while i < min(length, size) and strings[first + i] == data[start + i]:
                i += 1
            if i == length and i == size:
                ids[word] = own
                break
            if i == size or (i < length and strings[first + i] < data[start + i]):
                low = middle + 1
            else:
                high = middle
