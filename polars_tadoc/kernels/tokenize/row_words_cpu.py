"""Finds the words of each row of text by their number, without interning them."""

from __future__ import annotations

import numba as nb

from polars_tadoc.kernels.tokenize.tokenize_cpu import Classes, cut_block, tables_of
from polars_tadoc.runtime.addresses import bit_length, count_ones, trailing_zeros
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner, kernel

_POLLED = 0xFFF
"""An interrupt is looked for when the number of blocks has none of these bits."""


@polled
@kernel
def count_row_words(addresses: UInt64, lengths: UInt32, classes: Classes, tail: UInt8, counts: UInt64) -> None:
    """Count the words of each row; ``tail`` is work space as for :func:`tokenize_cpu.scan`."""
    tables, began, blocks = tables_of(classes, tail), interrupts(), nb.int64(0)
    for row in range(len(counts)):
        position, stop, in_word, single_end, count = 0, nb.int64(lengths[row]), 0, -1, 0
        while position < stop:
            blocks += 1
            if blocks & _POLLED == 0 and interrupts() != began:
                return
            starts, _, size, in_word, single_end = cut_block(
                addresses[row] + nb.uint64(position), stop - position, in_word, single_end, *tables
            )
            count += count_ones(starts)
            position += size
        counts[row] = count


@inner
def _place_of_bit(bits: int, number: int) -> int:
    """Return the position of the set bit with a number, from 0."""
    for _ in range(number):
        bits &= bits - nb.uint64(1)
    return int(trailing_zeros(bits))


@polled
@kernel
def find_row_words(
    addresses: UInt64,
    lengths: UInt32,
    documents: Int64,
    firsts: Int64,
    stops: Int64,
    classes: Classes,
    tail: UInt8,
    starts: Int64,
    ends: Int64,
) -> None:
    """Return start and end in bytes of intervals of words in their rows.

    Parameters
    ----------
    addresses, lengths
        All rows.
    documents
        The row of each interval. Consecutive intervals of one row with ascending ``firsts`` search it once.
    firsts, stops
        The first word, and the one after the last, which may exceed the row.
    classes, tail
        Tokenizer and work space.
    starts, ends
        Output; equal if there is no such word.

    """
    tables, began, blocks = tables_of(classes, tail), interrupts(), nb.int64(0)
    known_row, known_first = nb.int64(-1), nb.int64(0)
    # the state before the block that contains the previous interval's first word: byte, in_word, single_end, starts,
    # ends
    at_known, in_known, single_known, starts_known, ends_known = 0, 0, -1, 0, 0
    for i in range(len(documents)):
        row, first, stop = documents[i], firsts[i], stops[i]
        starts[i] = ends[i] = 0
        if stop <= first:
            continue
        if row != known_row or first < known_first:
            at_known, in_known, single_known, starts_known, ends_known = 0, 0, -1, 0, 0
        known_row, known_first = row, first
        at, in_word, single_end, started, ended = at_known, in_known, single_known, starts_known, ends_known
        size, is_found, last_end = nb.int64(lengths[row]), False, 0
        while at < size:
            blocks += 1
            if blocks & _POLLED == 0 and interrupts() != began:
                return
            begins, finishes, width, in_next, single_next = cut_block(
                addresses[row] + nb.uint64(at), size - at, in_word, single_end, *tables
            )
            if not is_found and first < started + count_ones(begins):
                starts[i] = at + _place_of_bit(begins, first - started)
                is_found = True
                at_known, in_known, single_known, starts_known, ends_known = at, in_word, single_end, started, ended
            if stop <= ended + count_ones(finishes):
                ends[i] = at + _place_of_bit(finishes, stop - 1 - ended)
                break
            if finishes != 0:
                last_end = at + bit_length(finishes) - 1
            started += count_ones(begins)
            ended += count_ones(finishes)
            at, in_word, single_end = at + width, in_next, single_next
        else:
            if is_found:
                ends[i] = size if in_word else last_end
