"""Counts phrases and words near each other in the text of documents, kept as the terms of their words."""

from __future__ import annotations

from typing import Any

import numba as nb

from polars_tadoc.kernels.host.rows.phrases import LEFT_OUT
from polars_tadoc.kernels.host.rows.row_words import next_word
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner, kernel


@polled
@kernel
def flatten(
    terminals: int,
    rule_offsets: Int64,
    symbols: UInt32,
    terms: Int64,
    root_offsets: Int64,
    roots: UInt32,
    documents: Int64,
    position: Int64,
    end: Int64,
    starts: Int64,
    words: UInt32,
) -> None:
    """Write the terms of the words of documents.

    Parameters
    ----------
    terminals, rule_offsets, symbols, terms, root_offsets, roots
        As for :func:`.phrases.count_in_rows`.
    documents
        int64 by row of the corpus: its document.
    position, end
        Work space: one number per level, and one.
    starts
        int64 by document: where its words begin; or, without words, filled with their number.
    words
        uint32, output: the terms, modulo 2^32; empty to count words.

    """
    began = interrupts()
    for row in range(len(documents)):
        if interrupts() != began:
            return
        at, count, depth = starts[documents[row]], nb.int64(0), nb.int64(0)
        position[0], end[0] = root_offsets[row], root_offsets[row + 1]
        while True:
            symbol, depth = next_word(terminals, rule_offsets, symbols, roots, position, end, depth)
            if symbol < 0:
                break
            if terms[symbol] != LEFT_OUT:
                if len(words):
                    words[at + count] = nb.uint32(terms[symbol])
                count += 1
        if not len(words):
            starts[documents[row]] = count


@inner
def count_phrase(words: UInt32, first: int, stop: int, phrase: UInt32) -> Any:
    """Count a phrase of at least two words in a document, also where occurrences overlap."""
    size, count = len(phrase), nb.int64(0)
    one, two = phrase[0], phrase[1]
    for i in range(first, stop - size + 1):
        count += nb.int64((words[i] == one) & (words[i + 1] == two))
    if size == 2 or count == 0:
        return count
    count = nb.int64(0)
    for i in range(first, stop - size + 1):
        at = 0
        while at < size and words[i + at] == phrase[at]:
            at += 1
        count += nb.int64(at == size)
    return count


@inner
def count_spread(
    words: UInt32, first: int, stop: int, phrase: UInt32, is_ordered: bool, slop: int, ring: Bools, last: Int64
) -> Any:
    """Count words near each other in a document, as :func:`.phrases_reference.count_near` defines.

    The shifts of words at positions up to p are complete up to p minus the last place: a ring of as many steps holds
    those that may still grow.

    Parameters
    ----------
    words, first, stop
        The document's terms.
    phrase, is_ordered, slop
        The terms; whether their places are 0, 1, ..., or all 0; the maximum difference between shifts.
    ring, last
        Work space: a flag per word and step, and a number per word.

    """
    size, count = len(phrase), nb.int64(0)
    steps = size if is_ordered else 1
    for i in range(size):
        last[i] = -(nb.int64(1) << nb.int64(60))
    for i in range(size * steps):
        ring[i] = False
    marked = nb.int64(0)  # from this step on the ring holds no flags
    for at in range(stop - first + steps - 1):
        if first + at < stop:
            for i in range(size):
                if phrase[i] == words[first + at]:
                    ring[(at - (i if is_ordered else 0)) % steps * size + i] = True
                    marked = at + steps
        if at >= marked:
            continue
        shift = at - steps + 1
        has_new, least = False, shift
        for i in range(size):
            if ring[shift % steps * size + i]:
                ring[shift % steps * size + i] = False
                last[i] = shift
                has_new = True
            least = min(least, last[i])
        count += nb.int64(has_new and least >= shift - slop)
    return count


@polled
@kernel
def count_in_flat(
    starts: Int64,
    words: UInt32,
    documents: Int64,
    phrase: UInt32,
    is_consecutive: bool,
    is_ordered: bool,
    slop: int,
    ring: Bools,
    last: Int64,
    counts: UInt64,
) -> None:
    """Count a phrase, or words near each other, in some documents.

    Parameters
    ----------
    starts, words
        int64, documents + 1, and uint32: the output of :func:`flatten`.
    documents
        int64: the documents to read.
    phrase, is_consecutive, is_ordered, slop
        The terms, whether they must be consecutive, and if not, as for :func:`count_spread`.
    ring, last
        Work space: the square of the number of terms, and as many.
    counts
        Output by document that is read.

    """
    began = interrupts()
    for i in range(len(documents)):
        if i & 0xFF == 0 and interrupts() != began:
            return
        first, stop = starts[documents[i]], starts[documents[i] + 1]
        if is_consecutive:
            counts[i] = nb.uint64(count_phrase(words, first, stop, phrase))
        else:
            counts[i] = nb.uint64(count_spread(words, first, stop, phrase, is_ordered, slop, ring, last))
