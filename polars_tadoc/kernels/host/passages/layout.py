"""Lays documents out as words in one array, with a separator after each."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.primitives.codes import DELETED
from polars_tadoc.kernels.primitives.lists import copy_run
from polars_tadoc.runtime.addresses import prefetch
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import kernel

SEPARATOR = np.uint32(0xFFFFFFFF)
"""After each document; no word has this number."""

SHORT = 8
"""Maximum words of a short expansion, which is copied at once."""

_AHEAD = 12
"""Prefetch distance in symbols."""
_DELETED = np.uint32(DELETED)
_NEVER = np.uint32(0xFFFFFFFF)


@kernel
def copy_words(offsets: Int64, ids: UInt32, image: UInt32, starts: Int64, words: UInt32) -> None:
    """Copy documents, renumbered.

    Parameters
    ----------
    offsets, ids
        int64, documents + 1, and uint32: the documents' words.
    image
        uint32: the number of each id.
    starts
        int64, documents + 1: start of each document in ``words``; it ends with a separator.
    words
        uint32: the result.

    """
    for d in range(len(offsets) - 1):
        at = starts[d]
        for i in range(offsets[d], offsets[d + 1]):
            words[at] = image[ids[i]]
            at += 1
        words[at] = SEPARATOR


@polled
@kernel
def list_short(
    terminals: int, rule_offsets: UInt32, symbols: UInt32, image: UInt32, short: UInt32, sizes: UInt8
) -> None:
    """List the words of symbols with short expansions.

    Parameters
    ----------
    terminals, rule_offsets, symbols
        The rules; each refers to terminals and earlier rules.
    image
        uint32: the number of each terminal.
    short
        uint32, :data:`SHORT` by symbol: its words; what follows them is undefined.
    sizes
        uint8 by symbol: number of its words, 0 if there are more than :data:`SHORT`.

    """
    for symbol in range(terminals):
        short[SHORT * symbol], sizes[symbol] = image[symbol], 1
    for rule in range(len(rule_offsets) - 1):
        own = SHORT * (terminals + rule)
        size: Any = 0
        for i in range(np.int64(rule_offsets[rule]), np.int64(rule_offsets[rule + 1])):
            child = np.int64(symbols[i])
            more: Any = np.int64(sizes[child])
            if more == 0 or size + more > SHORT:
                size = 0
                break
            for j in range(more):
                short[own + size + j] = short[SHORT * child + j]
            size += more
        sizes[terminals + rule] = size


@polled
@kernel
def expand_rows(
    terminals: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    image: UInt32,
    root_offsets: Int64,
    roots: UInt32,
    starts: Int64,
    stops: Int64,
    short: UInt32,
    sizes: UInt8,
    words: UInt32,
    expanded: Int64,
    lengths: Int64,
    stack: Int64,
) -> None:
    """Expand documents; a rule that was expanded before is copied from there.

    Parameters
    ----------
    terminals, rule_offsets, symbols
        The rules.
    image
        uint32: the number of each terminal.
    root_offsets, roots
        int64, documents + 1, and uint32: the documents' symbols.
    starts, stops
        int64 by document: its start in ``words``, and the place after its separator.
    short, sizes
        The words of symbols with short expansions (:func:`list_short`), or no words, and zeros. They are copied without
        a branch that depends on how many there are: a mispredicted one costs more.
    words
        uint32: the result; a separator follows each document.
    expanded, lengths
        int64 by rule: place of an expansion in ``words``, at first -1, and its number of words.
    stack
        int64, three per level and three more: scratch.

    """
    began, last = interrupts(), len(roots) - 1
    for d in range(len(root_offsets) - 1):
        if d & 0xFF == 0 and interrupts() != began:
            return
        at, most = starts[d], stops[d] - SHORT
        for i in range(root_offsets[d], root_offsets[d + 1]):
            prefetch(short, SHORT * np.int64(roots[min(i + _AHEAD, last)]))
            symbol = np.int64(roots[i])
            size = np.int64(sizes[symbol])
            if size > 0 and at <= most:
                own = SHORT * symbol
                a, b, c, e = short[own], short[own + 1], short[own + 2], short[own + 3]
                f, g, h, k = short[own + 4], short[own + 5], short[own + 6], short[own + 7]
                words[at], words[at + 1], words[at + 2], words[at + 3] = a, b, c, e
                words[at + 4], words[at + 5], words[at + 6], words[at + 7] = f, g, h, k
                at += size
                continue
            if symbol < terminals:
                words[at] = image[symbol]
                at += 1
                continue
            rule, top = symbol - terminals, 0
            if expanded[rule] < 0:
                stack[0], stack[1], stack[2] = rule, np.int64(rule_offsets[rule]), at
                top = 1
            else:
                if not copy_run(words, expanded[rule], at, lengths[rule], began):
                    return
                at += lengths[rule]
            while top:
                base = 3 * (top - 1)
                open_rule, place = stack[base], stack[base + 1]
                if place == np.int64(rule_offsets[open_rule + 1]):
                    expanded[open_rule], lengths[open_rule] = stack[base + 2], at - stack[base + 2]
                    top -= 1
                    continue
                stack[base + 1] = place + 1
                symbol = np.int64(symbols[place])
                if symbol < terminals:
                    words[at] = image[symbol]
                    at += 1
                    continue
                rule = symbol - terminals
                if expanded[rule] < 0:
                    stack[base + 3], stack[base + 4], stack[base + 5] = rule, np.int64(rule_offsets[rule]), at
                    top += 1
                else:
                    if not copy_run(words, expanded[rule], at, lengths[rule], began):
                        return
                    at += lengths[rule]
        words[at] = SEPARATOR


@polled
@kernel
def renumber(words: UInt32, image: UInt32) -> None:
    """Replace each word by its number in ``image``, in place; separators stay."""
    for i in range(len(words)):
        word = np.int64(words[i])
        if word < len(image):
            words[i] = image[word]


@polled
@kernel
def count_kept(starts: Int64, words: UInt32, image: UInt32, kept: Int64) -> None:
    """Count the words of each document that a map of words keeps, int64 by document."""
    began = interrupts()
    for d in range(len(kept)):
        count = 0
        for i in range(starts[d], starts[d + 1] - 1):
            if i & 0xFFFF == 0 and interrupts() != began:
                return
            count += image[words[i]] != _DELETED
        kept[d] = count


@polled
@kernel
def keep_words(starts: Int64, words: UInt32, image: UInt32, kept_starts: Int64, kept: UInt32, places: UInt32) -> None:
    """Map the words of documents and drop those that map to nothing.

    Parameters
    ----------
    starts, words
        The documents.
    image
        uint32 by word: its number afterwards, or ``DELETED``.
    kept_starts
        int64, documents + 1: start of each document in the results.
    kept, places
        uint32: the words that stay, and the number of each among the document's own words. A separator follows each
        document.

    """
    began = interrupts()
    for d in range(len(starts) - 1):
        at = kept_starts[d]
        for i in range(starts[d], starts[d + 1] - 1):
            if i & 0xFFFF == 0 and interrupts() != began:
                return
            to = image[words[i]]
            if to != _DELETED:
                kept[at] = to
                places[at] = i - starts[d]
                at += 1
        kept[at] = SEPARATOR
        places[at] = starts[d + 1] - 1 - starts[d]
