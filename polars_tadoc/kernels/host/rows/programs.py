"""Answers queries with syntax on an index of one segment: from texts and programs to documents and scores.

It cuts words, expands beginnings and misspelled words, finds and weighs lists, counts phrases, and runs the programs,
without Python between. Scores are those of the stages for many segments, bit for bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb

from polars_tadoc.kernels.host.rows.flat_phrases import FlatText, find_phrase
from polars_tadoc.kernels.host.rows.query_shapes import cut_query, find_shape, has_letters
from polars_tadoc.kernels.host.rows.query_words import UNKNOWN, analyze_words, compare_words, find_terms
from polars_tadoc.kernels.host.rows.spelling import LONG, SHORT, decode_word, find_alike
from polars_tadoc.kernels.postings.coded import Lists
from polars_tadoc.kernels.postings.decode_cpu import view_at
from polars_tadoc.kernels.search import programs
from polars_tadoc.kernels.search.accumulators_cpu import push, write_best
from polars_tadoc.kernels.search.arguments_cpu import f32s, f64s, i64s, u8s, u16s, u32s, u64s
from polars_tadoc.kernels.search.blocks_cpu import ROW_BYTES, Bitmaps, open_marked
from polars_tadoc.kernels.search.count_cpu import FEW, count_all, count_any
from polars_tadoc.kernels.search.programs_cpu import SETS, WORDS, run_program
from polars_tadoc.kernels.search.search_cpu import run_search
from polars_tadoc.kernels.search.workspace_cpu import workspace_of
from polars_tadoc.runtime.array_types import Float32, Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner, kernel

NOT_HERE = -1
"""Instead of a number of documents: this query takes the way of many segments."""

NEW_SHAPE = -2
"""The same: the table of shapes lacks that of a single query."""

MAX_LISTS = 1024
"""Lists of a query."""

MAX_SEGMENT = 1 << 30
"""Terms, and documents, of a segment."""

MAX_PHRASE = 32
"""Words of a phrase."""

MAX_TEXTS = 32
"""Words and phrases of a query."""

_ROOM = MAX_TEXTS + 8
_FIXED = 9 * _ROOM
NUMBERS = 7 * MAX_LISTS + _FIXED
"""int64 of work space for lists and entries."""

GIVEN = "HBqBQIqBQIdQffqQqIQQQIqII"
"""Types of the arrays of an index: ``page_of``, ``pages``, stop words (offsets, bytes, keys) and the table of lower
case, as for :func:`.one_query.answer_words`; the terms (offsets, bytes, keys), their frequencies, ``weights``,
``addresses``, ``norms`` and ``bounds``, the same; lists and words of :class:`.blocks_cpu.Bitmaps`; the terms as
:func:`.spelling.find_alike` takes them, empty if no word is looked up by its spelling; :class:`.flat_phrases.FlatText`,
empty without one. Numbers follow: ``firsts``, ``widths``, ``maps``, ``lowers`` and ``is_mapped``, the same; the
:func:`.search_cpu.search_function` of any and all."""

BATCH = "BqqqqIqqIII"
"""Types of the arrays of queries: texts in UTF-8, each followed by a line feed but the last one of a query; where each
query begins; by query, the number of its program; the programs (:mod:`polars_tadoc.kernels.search.programs`), offsets
first; the bitmap of the documents that may be found, as for ``run_search``. Outputs by query: number of best documents
or ``NOT_HERE``; of all, if they are counted; the best ones, and their scores as bits; all documents, ascending. Then a
number: the room for all documents of a query."""

SHAPES = "qqBqq"
"""Types of a table of shapes: slots and spans as of :func:`.query_words.number_words`, and shapes; offsets and programs
by shape. Then a number: how texts are cut (:mod:`.query_shapes`)."""

WORK = "BqqQfIIQqqBQIIQQfBIBBq"
"""Types of work space: as many bytes as a query has; ten numbers a byte and 20; ``NUMBERS``; eight, a weight and a
number per list; words of phrases; words that may replace one; :func:`.spelling.table_size`; two numbers a term; a ring
of ``MAX_PHRASE`` squared; ``SETS`` bitmaps; documents with phrases, and their counts; work space of ``run_search``; the
text of a single query, and its shape; output: its best documents."""

LINE_FEED = 10
"""Between the texts of a query."""

_0, _1 = nb.uint64(0), nb.uint64(1)
_TERM_BITS, _FREQUENCIES, _EDITS = nb.uint64(30), nb.uint64(0xFFFFFFFF), nb.uint64(62)


class _Terms(NamedTuple):
    """The words of a segment."""

    offsets: Any
    data: Any
    frequencies: Any
    starts: Any
    order: Any
    signatures: Any
    heads: Any
    tails: Any
    places: Any
    """``starts`` to ``places``: as :func:`.spelling.find_alike` takes them; or empty."""


@inner
def _beginning(terms: _Terms, text: UInt8, after: int) -> Any:
    """Return the first term that does not begin below the text, or, with ``after`` 1, above it."""
    low, high = 0, len(terms.offsets) - 1
    while low < high:
        middle = (low + high) >> 1
        first, stop = terms.offsets[middle], terms.offsets[middle + 1]
        order = compare_words(terms.data, first, min(stop, first + len(text)), text, 0, len(text))
        if order < after:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _offer(heap: UInt64, size: int, edits: int, frequency: int, term: int) -> Any:
    """Add a term to the heap of those with the fewest edits, then the most documents, then in order."""
    if frequency == 0:
        return size
    key = nb.uint64(edits) << _EDITS | (_FREQUENCIES - nb.uint64(frequency)) << _TERM_BITS | nb.uint64(term)
    return push(heap, size, ~key)


@inner
def _expand(
    terms: _Terms, text: UInt8, kind: int, edits: int, heap: UInt64, points: UInt32, table: Int64, found: Int64
) -> Any:
    """Fill the heap with the terms that replace a beginning or a misspelled word; return their number."""
    size = _0
    if kind == programs.PREFIX:
        for term in range(_beginning(terms, text, 0), _beginning(terms, text, 1)):
            size = _offer(heap, size, 0, terms.frequencies[term], term)
        return size
    length, half = decode_word(text, points), len(found) >> 1
    if edits < 0:
        edits = 0 if length < SHORT else (1 if length < LONG else 2)
    count = find_alike(
        terms.offsets, terms.data, terms.starts, terms.order, terms.signatures, terms.heads, terms.tails, terms.places,
        points[:length], edits, table, found[:half], found[half:],
    )  # fmt: skip
    for i in range(count):
        size = _offer(heap, size, found[half + i], terms.frequencies[found[i]], found[i])
    return size


class _Entries(NamedTuple):
    """The words and phrases that add to scores, by entry its place among the lists and its slot; the lists by place."""

    places: Any
    slots: Any
    lists: Any
    held: Any
    """Number of live documents."""
    phrases: Any
    phrase_ends: Any
    """``phrases``, ``phrase_ends``: terms of phrases; by phrase its first term, number of terms, and slop."""


@inner
def _is_before(one: int, other: int, given: _Entries, coded: int) -> Any:
    """Tell whether an entry comes before another one: by documents, then words, in order, before phrases."""
    first, second = given.places[one], given.places[other]
    if given.held[first] != given.held[second]:
        return given.held[first] < given.held[second]
    first, second = given.lists[first], given.lists[second]
    if first == second:
        return one < other
    if first < coded or second < coded:
        return first < second
    own, others = given.phrase_ends[3 * (first - coded) :], given.phrase_ends[3 * (second - coded) :]
    at = 0
    while at < min(own[1], others[1]):
        left, right = given.phrases[own[0] + at], given.phrases[others[0] + at]
        if left != right:
            return left < right
        at += 1
    return own[1] < others[1] or (own[1] == others[1] and own[2] < others[2])


@inner
def _sort_entries(order: Int64, given: _Entries, coded: int) -> None:
    gap = 1
    while gap < len(order) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(order)):
            own, at = order[i], i
            while at >= gap and _is_before(own, order[at - gap], given, coded):
                order[at] = order[at - gap]
                at -= gap
            order[at] = own
        gap //= 3


@inner
def _join_equal(order: Int64, given: _Entries, weights: Any, slots: Int64, entry_weights: Float32) -> Any:
    """Join sorted entries of one list and slot, and weigh them; return their number."""
    count = 0
    for i in range(len(order)):
        own = order[i]
        place, same = given.places[own], count - 1
        number = given.lists[place]
        while same >= 0 and given.lists[given.places[order[same]]] == number and slots[same] != given.slots[own]:
            same -= 1
        if same < 0 or given.lists[given.places[order[same]]] != number:
            same, count = count, count + 1
            order[same], slots[same], entry_weights[same] = own, given.slots[own], nb.float32(0)
        entry_weights[same] += nb.float32(1)  # as a number of times, exact
    for i in range(count):
        held = given.held[given.places[order[i]]]
        entry_weights[i] = nb.float32(nb.float64(entry_weights[i]) * weights[held])
    return count


@inner
def _read_text(work: UInt64, batch: UInt64, shapes: UInt64, size: int) -> Any:
    """Make a batch of the text of a single query; return the number of its program, negative if there is none."""
    shape, ends, program_ends, code_ends = u8s(work, 20), i64s(batch, 1), i64s(batch, 3), i64s(shapes, 3)
    length, spelled = cut_query(u8s(work, 19), size, nb.int64(shapes[2 * len(SHAPES)]), u8s(batch, 0), shape)
    if length < 0:
        return nb.int64(NOT_HERE)
    number = find_shape(shape[:spelled], i64s(shapes, 0), i64s(shapes, 1), u8s(shapes, 2))
    if number < 0:
        return nb.int64(NEW_SHAPE)
    if code_ends[number] == code_ends[number + 1]:
        return nb.int64(NOT_HERE)
    ends[0], ends[1] = 0, length
    program_ends[0], program_ends[1] = code_ends[number], code_ends[number + 1]
    return number


@polled
@kernel
def answer_programs(
    given: UInt64,
    work: UInt64,
    batch: UInt64,
    shapes: UInt64,
    start: int,
    stop: int,
    size: int,
    width: int,
    whole: bool,
) -> Any:
    """Answer queries.

    Parameters
    ----------
    given
        The arrays of the index: the result of :func:`.arguments_cpu.packed` of ``GIVEN``.
    work
        Work space of the thread: the same of ``WORK``.
    batch
        The queries and their results: the same of ``BATCH``.
    shapes
        For a single query: the same of ``SHAPES``.
    start, stop
        The range of queries.
    size
        For a single query whose text is in the work space: its bytes; otherwise negative.
    width, whole
        Maximum number of best documents, and whether all documents of a query are counted.

    Returns
    -------
    int
        For a single query its number of best documents, ``NOT_HERE`` or ``NEW_SHAPE``.

    """
    if size >= 0:
        program_number = _read_text(work, batch, shapes, size)
        if program_number < 0:
            return program_number
    page_of, pages, stop_offsets, stop_terms = u16s(given, 0), u8s(given, 1), i64s(given, 2), u8s(given, 3)
    stop_keys, lower_case, term_offsets, terms = u64s(given, 4), u32s(given, 5), i64s(given, 6), u8s(given, 7)
    keys, frequencies, weights, addresses = u64s(given, 8), u32s(given, 9), f64s(given, 10), u64s(given, 11)
    norms, bounds, marked_lists, marked_words = f32s(given, 12), f32s(given, 13), i64s(given, 14), u64s(given, 15)
    spelled_starts, spelled_order, spelled_signatures = i64s(given, 16), u32s(given, 17), u64s(given, 18)
    spelled_heads, spelled_tails, spelled_places = u64s(given, 19), u64s(given, 20), u32s(given, 21)
    flat = FlatText(i64s(given, 22), u32s(given, 23), u32s(given, 24))
    rest = given[2 * len(GIVEN) :]
    firsts, widths, maps, lowers = nb.int64(rest[0]), nb.int64(rest[1]), rest[2] != _0, rest[3] != _0
    is_mapped, search_any, search_all = rest[4] != _0, rest[5], rest[6]
    lowered, room, numbers, rows = u8s(work, 0), i64s(work, 1), i64s(work, 2), u64s(work, 3)
    entry_weights, entry_lists, phrases, expanded = f32s(work, 4), u32s(work, 5), u32s(work, 6), u64s(work, 7)
    table, spelled, ring, sets = i64s(work, 8), i64s(work, 9), u8s(work, 10), u64s(work, 11)
    extra_documents, extra_counts, block, for_lists = u32s(work, 12), u32s(work, 13), u64s(work, 14), u64s(work, 15)
    accumulators, marks, for_blocks = f32s(work, 16), u8s(work, 17), u32s(work, 18)
    data, ends, kinds, program_ends = u8s(batch, 0), i64s(batch, 1), i64s(batch, 2), i64s(batch, 3)
    codes = i64s(shapes, 4) if size >= 0 else i64s(batch, 4)
    allowed, found, totals, hits = u32s(batch, 5), i64s(batch, 6), i64s(batch, 7), u32s(batch, 10)
    best_documents, best_scores, listed = u32s(batch, 8), u32s(batch, 9), nb.int64(batch[2 * len(BATCH)])
    segment = _Terms(
        term_offsets, terms, frequencies, spelled_starts, spelled_order, spelled_signatures, spelled_heads,
        spelled_tails, spelled_places,
    )  # fmt: skip
    view, coded = view_at(addresses), len(frequencies)
    lists, held = numbers[_FIXED:], numbers[_FIXED + MAX_LISTS :]
    places, slots = numbers[_FIXED + 2 * MAX_LISTS :], numbers[_FIXED + 3 * MAX_LISTS :]
    order, entry_rows = numbers[_FIXED + 4 * MAX_LISTS :], numbers[_FIXED + 5 * MAX_LISTS :]
    entry_slots = numbers[_FIXED + 6 * MAX_LISTS :]
    list_ends, text_ends, text_words = numbers[:_ROOM], numbers[_ROOM : 2 * _ROOM], numbers[2 * _ROOM : 3 * _ROOM]
    extra_offsets, phrase_ends = numbers[3 * _ROOM : 4 * _ROOM], numbers[4 * _ROOM : 7 * _ROOM]
    last, entry_offsets = numbers[7 * _ROOM : 8 * _ROOM], numbers[8 * _ROOM : 8 * _ROOM + 2]
    kept = min(nb.int64(width), nb.int64(addresses[1]))
    workspace, base = workspace_of(accumulators, marks, for_blocks), nb.uint64(rows.ctypes.data)
    windows, bitmaps = sets.reshape((SETS, WORDS)), Bitmaps(marked_lists, marked_words)
    began = interrupts()
    for query in range(start, stop):
        if interrupts() != began:
            return nb.int64(NOT_HERE)
        found[query] = NOT_HERE
        program = codes[program_ends[kinds[query]] : program_ends[kinds[query] + 1]]
        form, texts, entries = program[0], program[1], program[2]
        own, own_size = data[ends[query] : ends[query + 1]], ends[query + 1] - ends[query]
        text, text_ends[0] = 0, 0
        for i in range(own_size):
            if own[i] == LINE_FEED and text < texts:
                text += 1
                text_ends[text] = i + 1
        if text != texts - 1:
            continue
        text_ends[texts] = own_size
        words, distinct, known = room[:own_size], room[own_size : 3 * own_size], room[3 * own_size : 4 * own_size]
        _, different, was_mapped = analyze_words(
            own, text_ends[: texts + 1], page_of, pages, firsts, widths, maps, lowers, stop_offsets, stop_terms,
            stop_keys, lower_case, lowered, room[4 * own_size :], words, text_words, distinct,
        )  # fmt: skip
        if is_mapped and not was_mapped:
            continue
        best, bits = (
            best_documents[query * width : (query + 1) * width],
            best_scores[query * width : (query + 1) * width],
        )
        for word in range(different):
            order[word] = word
        find_terms(lowered, distinct[: 2 * different], order[:different], term_offsets, terms, keys, known[:different])
        is_here, at, phrase_count, phrase_words, made = True, 0, 0, 0, 0
        extra_offsets[0] = 0
        for text in range(texts):
            kind, argument = program[4 + 2 * text], program[5 + 2 * text]
            first, many = text_words[text], text_words[text + 1] - text_words[text]
            list_ends[text] = at
            if kind != programs.PREFIX and (many == 0 or (many > 1 and kind in (programs.WORD, programs.FUZZY))):
                is_here = False
                break
            if kind == programs.PREFIX or kind == programs.FUZZY:
                if size >= 0:
                    is_here = has_letters(own, text_ends[text], text_ends[text + 1] - (0 if text == texts - 1 else 1))
                if not is_here or (kind == programs.FUZZY and len(spelled_starts) == 0):
                    is_here = False
                    break
                stem = lowered[text_ends[text] : text_ends[text + 1] - (0 if text == texts - 1 else 1)]
                if kind == programs.FUZZY:
                    stem = lowered[distinct[2 * words[first]] : distinct[2 * words[first] + 1]]
                taken = nb.int64(
                    _expand(segment, stem, kind, argument, expanded, phrases[phrase_words:], table, spelled)
                )
                if at + taken > MAX_LISTS:
                    is_here = False
                    break
                for i in range(taken):
                    term = nb.int64(~expanded[i] & ((_1 << _TERM_BITS) - _1))
                    lists[at], held[at] = term, frequencies[term]
                    at += 1
                continue
            if kind == programs.PHRASE and many > 1:
                if many > MAX_PHRASE or phrase_words + many > len(phrases) or len(flat.words) == 0:
                    is_here = False
                    break
                phrase, missing = phrases[phrase_words : phrase_words + many], False
                for i in range(many):
                    term = known[words[first + i]]
                    missing = missing or term == UNKNOWN or frequencies[term] == 0
                    phrase[i] = nb.uint32(term)
                if missing:
                    continue
                same = -1
                for other in range(phrase_count):
                    is_same = phrase_ends[3 * other + 1] == many and phrase_ends[3 * other + 2] == argument
                    i = 0
                    while is_same and i < many:
                        is_same = phrases[phrase_ends[3 * other] + i] == phrase[i]
                        i += 1
                    same = other if is_same else same
                if same < 0:
                    same = phrase_count
                    phrase_ends[3 * same], phrase_ends[3 * same + 1], phrase_ends[3 * same + 2] = (
                        phrase_words, many, argument,
                    )  # fmt: skip
                    own_count = find_phrase(
                        view, Lists(extra_offsets[:1], extra_documents, extra_counts), bitmaps, phrase, flat,
                        argument, frequencies, base, ring, last, workspace.block.documents, extra_documents[made:],
                        extra_counts[made:],
                    )  # fmt: skip
                    if own_count < 0:
                        is_here = False
                        break
                    made += own_count
                    phrase_count, phrase_words = phrase_count + 1, phrase_words + many
                    extra_offsets[phrase_count] = made
                if extra_offsets[same + 1] > extra_offsets[same]:
                    lists[at], held[at] = coded + same, extra_offsets[same + 1] - extra_offsets[same]
                    at += 1
                continue
            for i in range(many):
                term = known[words[first + i]]
                if at == MAX_LISTS:
                    is_here = False
                    break
                if term != UNKNOWN and frequencies[term] != 0:
                    lists[at], held[at] = term, frequencies[term]
                    at += 1
                elif kind == programs.ALL_WORDS:
                    at = list_ends[text]
                    break
        if not is_here:
            continue
        list_ends[texts] = at
        for place in range(at):
            is_here = is_here and held[place] < len(weights) and (lists[place] < coded or weights[held[place]] != 0)
        if not is_here:
            continue
        extra = Lists(extra_offsets[: phrase_count + 1], extra_documents[:made], extra_counts[:made])
        number, scored = 0, _Entries(places, slots, lists, held, phrases, phrase_ends)
        for entry in range(entries):
            text = program[4 + 2 * texts + 2 * entry]
            for place in range(list_ends[text], list_ends[text + 1]):
                places[number], slots[number], order[number] = place, program[5 + 2 * texts + 2 * entry], number
                number += 1
        _sort_entries(order[:number], scored, coded)
        number = _join_equal(order[:number], scored, weights, entry_slots, entry_weights)
        requires_all = form == programs.REQUIRES_ALL
        counts = whole and form != programs.TREE and listed == 0 and (requires_all or len(allowed) == 0)
        if counts or (form != programs.TREE and not whole):
            missing = at == 0
            for text in range(texts):
                missing = missing or (requires_all and list_ends[text] == list_ends[text + 1])
            found[query], totals[query] = 0, 0
            if missing:
                continue
            if counts and at == 1 and len(allowed) == 0:
                totals[query] = held[0]
            elif counts:
                for place in range(at):
                    open_marked(view, extra, bitmaps, lists[place], base + nb.uint64(place) * ROW_BYTES)
                if requires_all:
                    totals[query] = count_all(view, base, at, allowed, entry_rows, workspace)
                else:
                    totals[query] = count_any(view, base, at, entry_rows, windows, workspace)
            if number == 0 or kept == 0:
                continue
            for entry in range(number):
                entry_lists[entry] = lists[places[order[entry]]]
            entry_offsets[0], entry_offsets[1] = 0, number
            is_short = number == 1 and held[places[order[0]]] <= FEW
            run_search(
                search_all if requires_all or is_short else search_any, block, addresses, norms, bounds,
                entry_offsets, entry_lists[:number], entry_weights[:number], extra.offsets, extra.documents,
                extra.counts, allowed, 0, 1, accumulators, marks, for_blocks, for_lists[: 2 * kept + 10 * number + 1],
                found[query : query + 1], best[:kept].reshape((1, kept)), bits[:kept].reshape((1, kept)),
            )  # fmt: skip
            continue
        for place in range(at):
            open_marked(view, extra, bitmaps, lists[place], base + nb.uint64(place) * ROW_BYTES)
        for entry in range(number):
            entry_rows[entry] = places[order[entry]]
        heap = for_lists[:kept]
        totals[query], chosen = run_program(
            view, nb.uint64(norms.ctypes.data), bounds, program[4 + 2 * texts + 2 * entries :], program[4:],
            base,
            list_ends[: texts + 1], entry_rows[:number], entry_slots, entry_weights, allowed, windows, workspace, heap,
            _0, hits[query * listed : (query + 1) * listed],
        )  # fmt: skip
        found[query] = nb.int64(chosen)
        write_best(heap, chosen, best, bits)
    if size < 0:
        return nb.int64(0)
    numbered = i64s(work, 21)
    for rank in range(found[0]):
        numbered[rank] = nb.int64(best_documents[rank])
    return found[0]
