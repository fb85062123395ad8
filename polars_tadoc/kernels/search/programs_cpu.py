"""Runs programs on the CPU, window by window: sets of documents are bitmaps of a window.

A list is decoded whole where it is short, and else only where the documents found so far may be. If a required list has
few documents, sets are bitmaps of these instead. Scores are summed in
the order of entries, as in :mod:`.search_any_cpu`, so results are the same, bit for bit.
"""

from __future__ import annotations

from typing import Any

import numba as nb

from polars_tadoc.kernels.postings.coded import BLOCK
from polars_tadoc.kernels.postings.decode_cpu import View
from polars_tadoc.kernels.search import programs
from polars_tadoc.kernels.search.accumulators_cpu import WINDOW, as_bits, is_allowed, key_of, push, weigh
from polars_tadoc.kernels.search.blocks_cpu import (
    BLOCKS,
    NEXT_BLOCK,
    ROW_BYTES,
    bitmap_of,
    head,
    list_size,
    read_counts,
    read_documents,
)
from polars_tadoc.kernels.search.lookup_cpu import NO_DOCUMENT, find_block, look_up, places_below
from polars_tadoc.kernels.search.workspace_cpu import Workspace
from polars_tadoc.runtime.addresses import count_ones, load_u64, store_u64, trailing_zeros
from polars_tadoc.runtime.array_types import Float32, Int64, UInt32, UInt64
from polars_tadoc.runtime.jit import inner

WORDS = WINDOW // 64
"""64-bit numbers of a bitmap of a window."""

SETS = 2 + programs.MAX_DEPTH + programs.MAX_SLOTS
"""Bitmaps of a query: the documents found, those for an entry, the stack, the slots."""

_0, _1, _3, _4, _6, _8, _15, _63 = (nb.uint64(i) for i in (0, 1, 3, 4, 6, 8, 15, 63))
_WINDOW, _BLOCK = nb.uint64(WINDOW), nb.uint64(BLOCK)
FEW = 1 << 10
"""Documents of a list to which a program that requires it is limited before sets are made."""
_POSTINGS_A_LOOKUP = 8
"""Decoding this many postings takes as long as looking up one document."""
_NO_NEED = nb.float32(-3e38)
_UNTOUCHED = nb.float32(-0.0)


@inner
def mark_all(view: View, row: int, first: int, marks: UInt64, documents: UInt32) -> None:
    """Set the bits of a list's documents in a window."""
    bitmap = bitmap_of(row)
    if bitmap != _0:
        for word in range(min(nb.int64(WORDS), nb.int64((view.documents - first + _63) >> _6))):
            marks[word] |= load_u64(bitmap + (first >> _3) + _8 * nb.uint64(word))
        return
    to_documents, first_32 = nb.uint64(documents.ctypes.data), nb.uint32(first)
    blocks, number = load_u64(row + BLOCKS), find_block(row, load_u64(row + NEXT_BLOCK), first)
    store_u64(row + NEXT_BLOCK, number)
    while number < blocks and head(row, number) < first + _WINDOW:
        size = read_documents(view, row, number, to_documents)
        for i in range(size):
            place = nb.uint64(nb.uint32(documents[i] - first_32))  # modulo 2^32: documents before wrap to large places
            if place < _WINDOW:
                marks[place >> _6] |= _1 << (place & _63)
        number += _1


@inner
def keep_common(view: View, row: int, candidates: UInt32, count: int, documents: UInt32) -> Any:
    """Move those of ascending documents that are in a list to the front; return their number.

    ``documents`` is work space for a block.
    """
    blocks, number, at, kept = load_u64(row + BLOCKS), load_u64(row + NEXT_BLOCK), 0, 0
    bitmap = bitmap_of(row)
    if bitmap != _0:
        for c in range(count):
            document = nb.uint64(candidates[c])
            candidates[kept] = candidates[c]
            kept += nb.int64(load_u64(bitmap + (document >> _6) * _8) >> (document & _63) & _1)
        return kept
    while at < count and blocks != _0:
        number = find_block(row, number, nb.uint64(candidates[at]))
        if at == 0:
            store_u64(row + NEXT_BLOCK, number)
        limit = head(row, number + _1) if number + _1 < blocks else NO_DOCUMENT
        size = read_documents(view, row, number, nb.uint64(documents.ctypes.data))
        for i in range(size, _BLOCK):
            documents[i] = nb.uint32(0xFFFFFFFF)
        stop = at + 1  # guards against damaged heads that do not ascend
        while stop < count and nb.uint64(candidates[stop]) < limit:
            stop += 1
        for c in range(at, stop):
            document = candidates[c]
            candidates[kept] = document
            kept += nb.int64(documents[places_below(documents, document)] == document)
        at = stop
    return kept


@inner
def list_bits(marks: UInt64, words: int, first: int, documents: UInt32) -> Any:
    """Write the documents of a bitmap; return their number."""
    count = 0
    for word in range(words):
        bits, base = marks[word], first + nb.uint64(64) * nb.uint64(word)
        while bits != _0:
            documents[count] = nb.uint32(base + nb.uint64(trailing_zeros(bits)))
            bits &= bits - _1
            count += 1
    return count


@inner
def count_bits(marks: UInt64, words: int) -> Any:
    """Count the documents of a bitmap."""
    count = 0
    for word in range(words):
        count += nb.int64(count_ones(marks[word]))
    return count


@inner
def _fill(marks: UInt64, words: int, first: int, documents: int, allowed: UInt32) -> Any:
    """Fill the bitmap of a window with the allowed documents; return their number."""
    for word in range(words):
        marks[word] = ~_0
        if len(allowed):
            at = nb.int64(first >> nb.uint64(5)) + 2 * word
            high = nb.uint64(allowed[at + 1]) if at + 1 < len(allowed) else _0
            marks[word] = nb.uint64(allowed[at]) | high << nb.uint64(32)
    rest = (documents - first) & _63
    if words < WORDS and rest != _0:
        marks[words - 1] &= (_1 << rest) - _1
    return count_bits(marks, words)


@inner
def _mark_few(view: View, row: int, few: UInt32, size: int, marks: UInt64, room: UInt32, documents: UInt32) -> None:
    """Set the bits of those of a few ascending documents that are in a list."""
    store_u64(row + NEXT_BLOCK, _0)
    for c in range(size):
        room[c] = few[c]
    at = nb.uint64(0)
    for c in range(keep_common(view, row, room, size, documents)):
        while few[at] != room[c]:
            at += _1
        marks[at >> _6] |= _1 << (at & _63)


@inner
def _share(view: View, row: int) -> Any:
    """Return about how many documents of a list are in a window."""
    return nb.int64(list_size(row)) // (1 + (nb.int64(view.documents) >> 16))


@inner
def _run(
    view: View,
    code: Int64,
    kinds: Int64,
    base: int,
    word_lists: Int64,
    first: int,
    words: int,
    held: int,
    sets: UInt64,
    candidates: UInt32,
    documents: UInt32,
    few: UInt32,
) -> Any:
    """Run operations on a window; return how many of the ``held`` documents of the first bitmap remain.

    With ``few`` documents the bitmaps are of these.
    """
    marks, depth, at = sets[0], 2, 0
    slots = 2 + programs.MAX_DEPTH
    while at < len(code) and held != 0:
        operation, argument = code[at] & 7, code[at] >> programs.ARGUMENT_BITS
        last = sets[depth - 1]
        if operation == programs.PUSH:
            own, pushed = sets[depth], sets[depth]
            depth += 1
            for word in range(words):
                own[word] = _0
            for place in range(word_lists[argument], word_lists[argument + 1]):
                if kinds[2 * argument] == programs.ALL_WORDS and place > word_lists[argument]:
                    own = sets[1]
                    for word in range(words):
                        own[word] = _0
                row = base + nb.uint64(place) * ROW_BYTES
                if len(few):
                    _mark_few(view, row, few, len(few), own, candidates, documents)
                elif bitmap_of(row) == _0 and held * _POSTINGS_A_LOOKUP < _share(view, row):
                    kept = keep_common(view, row, candidates, list_bits(marks, words, first, candidates), documents)
                    for c in range(kept):
                        document = nb.uint64(candidates[c]) - first
                        own[document >> _6] |= _1 << (document & _63)
                else:
                    mark_all(view, row, first, own, documents)
                if kinds[2 * argument] == programs.ALL_WORDS and place > word_lists[argument]:
                    for word in range(words):
                        pushed[word] &= own[word]
        elif operation == programs.AND:
            depth -= 1
            other = sets[depth - 1]
            for word in range(words):
                other[word] &= last[word]
        elif operation == programs.OR:
            depth -= 1
            other = sets[depth - 1]
            for word in range(words):
                other[word] |= last[word]
        elif operation == programs.NOT:
            for word in range(words):
                last[word] = ~last[word]
        elif operation == programs.POP:
            depth -= 1
        elif operation == programs.SAVE:
            slot = sets[slots + argument]
            for word in range(words):
                slot[word] = last[word]
        elif operation == programs.MASK:
            slot = sets[slots + argument]
            for word in range(words):
                slot[word] &= last[word]
        else:
            depth -= 1
            for word in range(words):
                marks[word] &= last[word]
            held = count_bits(marks, words)
        at += 1
    return held


@inner
def _add_all(view: View, row: int, weight: float, norms: int, first: int, chosen: UInt64, workspace: Workspace) -> None:
    """Add a list's scores of the chosen documents of a window to the accumulators."""
    documents, added, accumulators = workspace.block.documents, workspace.block.added, workspace.accumulators
    to_documents, to_counts = nb.uint64(documents.ctypes.data), nb.uint64(workspace.block.counts.ctypes.data)
    to_added, first_32 = nb.uint64(added.ctypes.data), nb.uint32(first)
    blocks, number = load_u64(row + BLOCKS), find_block(row, load_u64(row + NEXT_BLOCK), first)
    while number < blocks and head(row, number) < first + _WINDOW:
        size = read_documents(view, row, number, to_documents)
        read_counts(view, row, number, to_counts)
        weigh(to_documents, to_counts, (size + _15) >> _4, norms, weight, to_added)
        for i in range(size):
            place = nb.uint64(nb.uint32(documents[i] - first_32))
            if place < _WINDOW and chosen[place >> _6] >> (place & _63) & _1 != _0:
                accumulators[place] += added[i]
        number += _1


@inner
def _add_found(
    view: View, row: int, weight: float, norms: int, bounds: Float32, first: int, chosen: UInt64, words: int,
    workspace: Workspace,
) -> None:  # fmt: skip
    """The same for a list that is long for so few documents."""
    found, accumulators = workspace.found, workspace.accumulators
    count, next_block = list_bits(chosen, words, first, found.documents), load_u64(row + NEXT_BLOCK)
    for c in range(count):
        found.scores[c] = accumulators[nb.uint64(found.documents[c]) - first]
    look_up(view, row, weight, bounds, norms, _NO_NEED, False, nb.uint64(count), found, workspace.block)
    for c in range(count):
        accumulators[nb.uint64(found.documents[c]) - first] = found.scores[c]
    store_u64(row + NEXT_BLOCK, next_block)


@inner
def _shortest(code: Int64, base: int, word_lists: Int64) -> Any:
    """Return the row of the shortest list that a program requires: 0 if all are long, all bits for no list."""
    found, fewest, at = _0, nb.uint64(FEW) + _1, 0
    while at + 1 < len(code) and code[at] & 7 == programs.PUSH and code[at + 1] == programs.NARROW:
        word = code[at] >> programs.ARGUMENT_BITS
        row = base + nb.uint64(word_lists[word]) * ROW_BYTES
        if word_lists[word + 1] == word_lists[word]:
            return ~_0
        if word_lists[word + 1] - word_lists[word] == 1 and list_size(row) < fewest:
            found, fewest = row, list_size(row)
        at += 2
    return found


@inner
def _run_few(
    view: View, norms: int, bounds: Float32, code: Int64, kinds: Int64, base: int, word_lists: Int64, row: int,
    entry_rows: Int64, entry_slots: Int64, weights: Float32, allowed: UInt32, sets: UInt64, workspace: Workspace,
    heap: UInt64, size: int, hits: UInt32,
) -> Any:  # fmt: skip
    """Do the same as :func:`run_program`, of which all documents are in the list of a row."""
    found, accumulators, documents = workspace.found, workspace.accumulators, workspace.block.documents
    few, count = found.origins, nb.int64(0)
    for number in range(load_u64(row + BLOCKS)):
        for i in range(read_documents(view, row, nb.uint64(number), nb.uint64(documents.ctypes.data))):
            few[count] = documents[i]
            count += nb.int64(is_allowed(allowed, nb.uint64(documents[i])))
    few, marks, words = few[:count], sets[0], (count + 63) >> 6
    if count == 0:
        return nb.int64(0), size
    held = _fill(marks, words, _0, nb.uint64(count), allowed[:0])
    held = _run(
        view, code, kinds, base, word_lists, _0, words, held, sets, found.documents, documents, few
    )  # fmt: skip
    if len(hits):
        for i in range(list_bits(marks, words, _0, found.documents)):
            hits[i] = few[nb.uint64(found.documents[i])]
    if held == 0 or len(heap) == 0:
        return nb.int64(held), size
    for entry in range(len(entry_rows)):
        own, chosen = base + nb.uint64(entry_rows[entry]) * ROW_BYTES, marks
        if entry_slots[entry] >= 0:
            chosen, slot = sets[1], sets[2 + programs.MAX_DEPTH + entry_slots[entry]]
            for word in range(words):
                chosen[word] = marks[word] & slot[word]
        places = found.documents[WINDOW // 2 :]
        count = list_bits(chosen, words, _0, places)
        for c in range(count):
            place = nb.uint64(places[c])
            found.documents[c], found.scores[c] = few[place], accumulators[place]
        store_u64(own + NEXT_BLOCK, _0)
        look_up(view, own, weights[entry], bounds[:0], norms, _NO_NEED, False, nb.uint64(count), found, workspace.block)
        for c in range(count):
            accumulators[nb.uint64(places[c])] = found.scores[c]
    for i in range(list_bits(marks, words, _0, found.documents)):
        place = nb.uint64(found.documents[i])
        score = as_bits(nb.float32(accumulators[place] + nb.float32(0)))
        accumulators[place] = _UNTOUCHED
        size = push(heap, size, key_of(nb.uint32(score), few[place]))
    return nb.int64(held), size


@inner
def run_program(
    view: View,
    norms: int,
    bounds: Float32,
    code: Int64,
    kinds: Int64,
    base: int,
    word_lists: Int64,
    entry_rows: Int64,
    entry_slots: Int64,
    weights: Float32,
    allowed: UInt32,
    sets: UInt64,
    workspace: Workspace,
    heap: UInt64,
    size: int,
    hits: UInt32,
) -> Any:
    """Find the documents of a program in a segment.

    Parameters
    ----------
    view, norms, bounds
        The postings, the address of the norms, and the bounds of blocks, or none.
    code, kinds
        The operations, and the kind and argument of each word.
    base, word_lists
        Address of the opened lists, and offsets of each word's lists in them.
    entry_rows, entry_slots, weights
        By entry, in the order in which scores are summed: its opened list, its slot, its weight.
    allowed
        Bitmap of the documents that may be found; empty for all.
    sets
        Work space: ``SETS`` bitmaps.
    workspace
        Work space of the thread.
    heap
        The best documents; without room, documents are only counted.
    size
        uint64 0.
    hits
        Output: all documents, ascending; without room, they are not written.

    Returns
    -------
    (int, int)
        Number of documents, and of those in the heap.

    """
    total, accumulators = nb.int64(0), workspace.accumulators
    few_row = _shortest(code, base, word_lists)
    if few_row == ~_0:
        return total, size
    if few_row != _0:
        return _run_few(
            view, norms, bounds, code, kinds, base, word_lists, few_row, entry_rows, entry_slots, weights, allowed,
            sets, workspace, heap, size, hits,
        )  # fmt: skip
    for number in range((nb.int64(view.documents) + WINDOW - 1) // WINDOW):
        first = nb.uint64(number) * _WINDOW
        words = nb.int64(min(_WINDOW, view.documents - first) + _63) >> 6
        marks = sets[0]
        held = _fill(marks, words, first, view.documents, allowed)
        held = _run(
            view,
            code,
            kinds,
            base,
            word_lists,
            first,
            words,
            held,
            sets,
            workspace.found.documents,
            workspace.block.documents,
            workspace.found.documents[:0],
        )
        if len(hits) and held != 0:
            list_bits(marks, words, first, hits[total:])
        total += held
        if held == 0 or len(heap) == 0:
            continue
        for entry in range(len(entry_rows)):
            row, chosen, count = base + nb.uint64(entry_rows[entry]) * ROW_BYTES, sets[0], held
            if entry_slots[entry] >= 0:
                chosen, slot = sets[1], sets[2 + programs.MAX_DEPTH + entry_slots[entry]]
                for word in range(words):
                    chosen[word] = marks[word] & slot[word]
                count = count_bits(chosen, words)
            if count * _POSTINGS_A_LOOKUP < _share(view, row):
                if count != 0:
                    _add_found(view, row, weights[entry], norms, bounds, first, chosen, words, workspace)
            else:
                _add_all(view, row, weights[entry], norms, first, chosen, workspace)
        for word in range(words):
            bits = marks[word]
            while bits != _0:
                place = nb.uint64(64) * nb.uint64(word) + nb.uint64(trailing_zeros(bits))
                bits &= bits - _1
                score = as_bits(nb.float32(accumulators[place] + nb.float32(0)))
                accumulators[place] = _UNTOUCHED
                size = push(heap, size, key_of(nb.uint32(score), nb.uint32(first + place)))
    return total, size
