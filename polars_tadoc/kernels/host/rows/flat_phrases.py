"""Counts phrases and words near each other in the text of documents, kept as the terms of their words."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from polars_tadoc.kernels.host.rows.phrases import LEFT_OUT
from polars_tadoc.kernels.host.rows.row_words import next_word
from polars_tadoc.kernels.postings.coded import BLOCK, Lists
from polars_tadoc.kernels.postings.decode_cpu import View
from polars_tadoc.kernels.primitives.simd import load, to_all
from polars_tadoc.kernels.search.blocks_cpu import BLOCKS, Bitmaps, open_list, open_marked, read_documents
from polars_tadoc.kernels.search.programs_cpu import keep_common
from polars_tadoc.runtime.addresses import count_ones, load_u64, prefetch, trailing_zeros
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner, kernel

_0, _1, _LANES = nb.uint64(0), nb.uint64(1), 16
_AHEAD = 8
"""Documents whose text is prefetched."""


class FlatText(NamedTuple):
    """The text of a segment's documents (:func:`flatten`), and which are deleted."""

    starts: Any
    words: Any
    deleted: Any


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


@intrinsic
def _pairs_at(typing_context: Any, address: Any, one: Any, two: Any) -> Any:
    """Return a bit for each of the sixteen terms at an address that is ``one`` and is followed by ``two``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, one, two = arguments
        after = load(builder, builder.add(address, ir.IntType(64)(4)))
        ones = builder.icmp_unsigned("==", load(builder, address), to_all(builder, one))
        twos = builder.icmp_unsigned("==", after, to_all(builder, two))
        return builder.zext(builder.bitcast(builder.and_(ones, twos), ir.IntType(16)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint32, types.uint32), generate


@inner
def count_phrase(words: UInt32, first: int, stop: int, phrase: UInt32) -> Any:
    """Count a phrase of at least two words in a document, also where occurrences overlap."""
    size, count, base = len(phrase), nb.int64(0), nb.uint64(words.ctypes.data)
    one, two, last = phrase[0], phrase[1], nb.int64(stop) - size + 1
    i, safe = nb.int64(first), len(words) - _LANES - 1
    while i < last:
        if i <= safe:
            found = _pairs_at(base + nb.uint64(4 * i), one, two)
        else:
            found = nb.uint64((words[i] == one) & (words[i + 1] == two))
        step = _LANES if i <= safe else 1
        if last - i < step:
            found &= (_1 << nb.uint64(last - i)) - _1
        if size == 2:
            count += nb.int64(count_ones(found))
        else:
            while found != _0:
                place, at = i + nb.int64(trailing_zeros(found)), 2
                found &= found - _1
                while at < size and words[place + at] == phrase[at]:
                    at += 1
                count += nb.int64(at == size)
        i += step
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


@inner
def find_phrase(
    view: View, no_lists: Lists, bitmaps: Bitmaps, phrase: UInt32, flat: FlatText, slop: int, frequencies: Any,
    row: int, ring: Any, last: Int64, room: UInt32, documents: UInt32, counts: UInt32,
) -> Any:  # fmt: skip
    """Write the live documents with a phrase, and its counts; return how many there are, negative without room."""
    rarest, size = 0, nb.uint64(0)
    for i in range(len(phrase)):
        if frequencies[phrase[i]] < frequencies[phrase[rarest]]:
            rarest = i
    open_list(view, no_lists, nb.int64(phrase[rarest]), row)
    count = 0
    for number in range(load_u64(row + BLOCKS)):
        if count + BLOCK > len(documents):
            return -1
        size = read_documents(view, row, nb.uint64(number), nb.uint64(room.ctypes.data))
        for i in range(size):
            documents[count] = room[i]
            count += 1
    for i in range(len(phrase)):
        is_new = phrase[i] != phrase[rarest]
        for j in range(i):
            is_new = is_new and phrase[j] != phrase[i]
        if is_new and count != 0:
            open_marked(view, no_lists, bitmaps, nb.int64(phrase[i]), row)
            count = keep_common(view, row, documents, count, room)
    kept = 0
    for c in range(count):
        document = documents[c]
        ahead = documents[min(c + _AHEAD, count - 1)]
        prefetch(flat.words, flat.starts[ahead])
        first, stop = flat.starts[document], flat.starts[nb.int64(document) + 1]
        if len(flat.deleted) and flat.deleted[document >> 5] >> (document & nb.uint32(31)) & nb.uint32(1) != 0:
            continue
        if slop == 0:
            own = count_phrase(flat.words, first, stop, phrase)
        else:
            own = count_spread(flat.words, first, stop, phrase, True, slop, ring, last)
        documents[kept], counts[kept] = document, nb.uint32(own)
        kept += nb.int64(own != 0)
    return kept
