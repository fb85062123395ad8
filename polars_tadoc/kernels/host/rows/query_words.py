"""Numbers the words of queries, finds them among a segment's terms, and sorts them by frequency."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.host.rows.phrase_words import cut_words
from polars_tadoc.kernels.tokenize.tokenize_cpu import BLOCK, Classes
from polars_tadoc.runtime.array_types import Float32, Float64, Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.jit import inner, kernel

UNKNOWN = -1
"""Number of a word that is not in the segment."""

NOT_ALONE = 0xFFFFFFFF
"""Instead of a character that lower-casing depends on others, or makes longer or shorter."""

_PRIME, _SPREAD = np.uint64(0x100000001B3), np.uint64(0x9E3779B97F4A7C15)
_32 = np.uint64(32)


@inner
def first_slot(data: UInt8, start: int, stop: int, slots: int) -> Any:
    """Return where to begin to look for a word in a table of a power of two of slots."""
    digest = np.uint64(0xCBF29CE484222325)  # FNV-1a, spread over the upper bits
    for i in range(start, stop):
        digest = (digest ^ np.uint64(data[i])) * _PRIME
    return np.int64((digest * _SPREAD >> _32) & np.uint64(slots - 1))


@kernel
def number_words(data: UInt8, spans: Int64, slots: Int64, numbers: Int64, distinct: Int64) -> int:
    """Number distinct words in order of first occurrence.

    Parameters
    ----------
    data, spans
        UTF-8 bytes, and start and end of each word in them.
    slots
        Work space: a power of two, at least twice the number of words.
    numbers
        Output: each word's number.
    distinct
        Output: start and end of the first word with each number.

    Returns
    -------
    int
        Number of distinct words.

    """
    count = 0
    mask = len(slots) - 1
    slots[:] = -1
    for word in range(len(numbers)):
        start, stop = spans[2 * word], spans[2 * word + 1]
        slot = first_slot(data, start, stop, len(slots))
        while True:
            own = slots[slot]
            if own < 0:
                slots[slot], numbers[word] = count, count
                distinct[2 * count], distinct[2 * count + 1] = start, stop
                count += 1
                break
            if compare_words(data, distinct[2 * own], distinct[2 * own + 1], data, start, stop) == 0:
                numbers[word] = own
                break
            slot = (slot + 1) & mask
    return count


@inner
def compare_words(left: Any, start: int, stop: int, right: Any, first: int, last: int) -> Any:
    """Compare two words bytewise; returns a negative number, 0 or a positive number."""
    for i in range(min(stop - start, last - first)):
        if left[start + i] != right[first + i]:
            return np.int64(left[start + i]) - np.int64(right[first + i])
    return (stop - start) - (last - first)


@inner
def first_bytes(data: Any, start: int, stop: int) -> Any:
    """Return the first eight bytes of a word, padded with zeros, as a number in the order of words."""
    key = np.uint64(0)
    for i in range(start, start + 8):
        key = key << np.uint64(8) | (np.uint64(data[i]) if i < stop else np.uint64(0))
    return key


@kernel
def fill_keys(offsets: Any, terms: Any, keys: UInt64) -> None:
    """Fill the first bytes of each term."""
    for term in range(len(keys)):
        keys[term] = first_bytes(terms, offsets[term], offsets[term + 1])


@kernel
def find_terms(data: UInt8, spans: Int64, order: Int64, offsets: Any, terms: Any, keys: Any, numbers: Int64) -> None:
    """Find words among ascending terms, by their first bytes, then by comparison of terms that share these.

    Parameters
    ----------
    data, spans
        The words, as for :func:`number_words`.
    order
        int64: order of the lookups; each search begins where the last one ended, so words sorted by first bytes are
        found in one pass over the terms.
    offsets, terms
        int64, terms + 1, and the UTF-8 bytes of the terms, ascending.
    keys
        uint64 by term, output of :func:`fill_keys`.
    numbers
        Output: each word's number among the terms, ``UNKNOWN`` if it is missing.

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
            order_of = compare_words(data, start, start + length, terms, offsets[middle], offsets[middle + 1])
            if order_of == 0:
                numbers[word] = middle
                break
            if order_of > 0:
                low = middle + 1
            else:
                high = middle


@kernel
def word_keys(data: UInt8, spans: Int64, keys: UInt64) -> None:
    """Fill the first bytes of each word."""
    for word in range(len(keys)):
        keys[word] = first_bytes(data, spans[2 * word], spans[2 * word + 1])


@kernel
def find_lists(
    data: UInt8,
    spans: Int64,
    order: Int64,
    offsets: Any,
    terms: Any,
    keys: Any,
    frequencies: Any,
    numbers: Int64,
    totals: Int64,
) -> None:
    """Find words as :func:`find_terms` does, and add the number of documents with each word to its total."""
    find_terms(data, spans, order, offsets, terms, keys, numbers)
    for word in range(len(numbers)):
        if numbers[word] != UNKNOWN:
            totals[word] += frequencies[numbers[word]]


@kernel
def lower_words(data: UInt8, lower_case: UInt32) -> bool:
    """Lower-case UTF-8 in place; tells whether each character's image does not depend on others, and is as long.

    Parameters
    ----------
    data
        The bytes.
    lower_case
        By code point, its image, or ``NOT_ALONE``; characters beyond keep themselves. Empty: only ASCII is lower-cased.

    """
    i = 0
    while i < len(data):
        lead = np.int64(data[i])
        if lead < 0x80:
            if 65 <= lead <= 90:
                data[i] = lead + 32
            i += 1
            continue
        width = 2 if lead < 0xE0 else (3 if lead < 0xF0 else 4)
        if len(lower_case) == 0 or i + width > len(data):
            return False
        point = lead & (0xFF >> (width + 1))
        for at in range(i + 1, i + width):
            point = point << 6 | (np.int64(data[at]) & 0x3F)
        if point < len(lower_case):
            image = np.int64(lower_case[point])
            if image == NOT_ALONE:
                return False
            if image != point:
                for at in range(i + width - 1, i, -1):
                    data[at] = 0x80 | (image & 0x3F)
                    image >>= 6
                data[i] = (0xF00 >> width & 0xFF) | image
        i += width
    return True


@kernel
def analyze_words(
    data: UInt8,
    ends: Int64,
    page_of: Any,
    pages: Any,
    firsts: int,
    widths: int,
    maps: bool,
    lowers: bool,
    stop_offsets: Any,
    stop_terms: Any,
    stop_keys: Any,
    lower_case: UInt32,
    lowered: UInt8,
    room: Int64,
    words: Int64,
    offsets: Int64,
    distinct: Int64,
) -> tuple[int, int, bool]:
    """Tokenize texts, lower-case and number their words, and drop stop words.

    Texts with characters that :func:`lower_words` cannot lower-case are only tokenized.

    Parameters
    ----------
    data, ends
        The texts' concatenated UTF-8 bytes, and the start of each.
    page_of, pages, firsts, widths
        Character classes of the tokenizer.
    maps
        Whether to lower-case and to drop stop words.
    lowers
        Whether lower-casing is part of that.
    stop_offsets, stop_terms, stop_keys
        Stop words, in the form of the terms of :func:`find_terms`.
    lower_case
        As for :func:`lower_words`.
    lowered
        Output: the bytes, lower-cased if requested.
    room
        Work space: six times the bytes, plus 10.
    words, offsets
        Output: the words' numbers, and offsets by text; room for one number per byte.
    distinct
        Output: start and end of the first word with each number; room for two numbers per byte.

    Returns
    -------
    (int, int, bool)
        Number of words and of distinct words, and whether lower-casing and stop words were applied.

    """
    size = len(data)
    spans, classes = room[: 2 * size], Classes(page_of, pages, np.uint32(firsts), np.uint32(widths))
    tail = room[2 * size : 2 * size + BLOCK // 8].view(np.uint8)
    count = cut_words(data, ends, classes, tail, spans, offsets)
    for i in range(size):
        lowered[i] = data[i]
    if maps and lowers and not lower_words(lowered[:size], lower_case):
        maps = False
        for i in range(size):
            lowered[i] = data[i]
    slots = 2
    while slots < 2 * count + 1:
        slots *= 2
    found = number_words(lowered, spans, room[2 * size : 2 * size + slots], words[:count], distinct)
    if maps and len(stop_keys) and count:
        order, gone = room[:found], room[found : 2 * found]
        for word in range(found):
            order[word] = word
        find_terms(lowered, distinct, order, stop_offsets, stop_terms, stop_keys, gone)
        count, at = 0, 0
        for text in range(len(ends) - 1):
            stop = offsets[text + 1]
            while at < stop:
                if gone[words[at]] == UNKNOWN:
                    words[count] = words[at]
                    count += 1
                at += 1
            offsets[text + 1] = count
    return count, found, maps


@inner
def _sort(words: Int64, data: UInt8, spans: Int64, frequencies: Int64) -> None:
    """Sort words by frequency, if given, then in the order of terms, then by number; phrases have no spans."""
    distinct, gap = len(spans) // 2, 1
    while gap < len(words) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(words)):
            word, at = words[i], i
            while at >= gap:
                other = words[at - gap]
                is_above = 0
                if len(frequencies):
                    is_above = frequencies[other] - frequencies[word]
                if is_above == 0 and max(other, word) < distinct:
                    span, own = spans[2 * other : 2 * other + 2], spans[2 * word : 2 * word + 2]
                    is_above = compare_words(data, span[0], span[1], data, own[0], own[1])
                if is_above == 0:
                    is_above = other - word
                if is_above <= 0:
                    break
                words[at] = other
                at -= gap
            words[at] = word
        gap //= 3


@kernel
def weigh_words(
    offsets: Int64,
    words: Int64,
    data: UInt8,
    spans: Int64,
    frequencies: Int64,
    weights: Float64,
    bases: Float64,
    places: Int64,
    entry_offsets: Int64,
    entries: Int64,
    entry_weights: Float32,
    totals: Float32,
) -> int:
    """Make one entry per distinct word or phrase of each query, in the order in which scores are summed.

    Parameters
    ----------
    offsets, words
        Offsets of each query's words, and the numbers of words and phrases; sorted in place.
    data, spans
        The distinct words; the numbers of phrases follow theirs.
    frequencies
        By number: documents that contain it. The rarest comes first; ties are in the order of terms.
    weights
        By position: maximum contribution to a score; times the occurrences in the query, it is the entry's weight.
    bases
        By position: constant that is added to the scores of all documents; empty if there are none.
    places
        By number: its position in ``weights`` and ``bases``; out of range, as in a damaged index, the last one is used.
    entry_offsets, entries, entry_weights
        Output: offsets of each query's entries; their numbers; their weights.
    totals
        By query: sum of the constants, in the order of terms; unchanged if ``bases`` is empty.

    Returns
    -------
    int
        Number of entries.

    """
    at = 0
    entry_offsets[0] = 0
    for query in range(len(offsets) - 1):
        own = words[offsets[query] : offsets[query + 1]]
        if len(bases):
            _sort(own, data, spans, frequencies[:0])
            total, i = 0.0, 0
            while i < len(own):
                stop = i + 1
                while stop < len(own) and own[stop] == own[i]:
                    stop += 1
                total += (stop - i) * bases[min(places[own[i]], len(bases) - 1)]
                i = stop
            totals[query] = np.float32(total)
        _sort(own, data, spans, frequencies)
        i = 0
        while i < len(own):
            stop = i + 1
            while stop < len(own) and own[stop] == own[i]:
                stop += 1
            entries[at] = own[i]
            entry_weights[at] = np.float32((stop - i) * weights[min(places[own[i]], len(weights) - 1)])
            at += 1
            i = stop
        entry_offsets[query + 1] = at
    return at
