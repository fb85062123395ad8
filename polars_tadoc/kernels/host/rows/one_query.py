"""Answers one query of an index of one segment: from its bytes to documents and scores, without Python between.

It cuts the query into words, finds their lists, weighs and searches these, as the stages for many queries do one after
another, with the same functions: results are the same, bit for bit.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.rows.query_words import analyze_words, find_lists, weigh_words
from polars_tadoc.kernels.postings.coded import BLOCK
from polars_tadoc.kernels.search.search_cpu import run_search
from polars_tadoc.runtime.array_types import Float32, Float64, Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.jit import inner, kernel

NOT_HERE = -1
"""Instead of a count: this query takes the way of many."""


@inner
def _sum_features(edge: Float64, held: Int64, entries: Int64, documents: int) -> Any:
    """Sum what the features of a query cost: those of :func:`.costs.features_of`, in their order."""
    postings, blocks, longest, shortest = 0, 0, 0, 0
    for entry in range(len(entries)):
        own = held[entries[entry]]
        if entry == 0:
            shortest = own
        else:
            blocks += min((own + BLOCK - 1) // BLOCK, shortest)
        postings, longest = postings + own, own
    lists = len(entries)
    return (
        edge[0]
        + edge[1] * lists
        + edge[2] * shortest
        + edge[3] * blocks
        + edge[4] * postings
        + edge[5] * (postings - longest)
        + edge[6] * (nb.float64(lists) * documents)
    )


@kernel
def answer_words(
    data: UInt8,
    is_mapped: bool,
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
    term_offsets: Any,
    terms: Any,
    keys: Any,
    frequencies: Any,
    weights: Any,
    bases: Any,
    addresses: UInt64,
    norms: Float32,
    bounds: Float32,
    no_lists: Int64,
    require_all: bool,
    first: int,
    second: int,
    allowed: UInt32,
    edge: Float64,
    lowered: UInt8,
    room: Int64,
    entry_weights: Float32,
    lists: UInt32,
    best: UInt32,
    block: UInt64,
    for_lists: UInt64,
    accumulators: Float32,
    marks: UInt8,
    for_blocks: UInt32,
    documents: Int64,
    scores: Float32,
) -> Any:
    """Find the best documents for a query of words.

    Parameters
    ----------
    data
        The query's UTF-8 bytes.
    is_mapped
        Whether words are mapped, so that :func:`.query_words.analyze_words` must have done it.
    page_of, pages, firsts, widths, maps, lowers, stop_offsets, stop_terms, stop_keys, lower_case
        As for :func:`.query_words.analyze_words`.
    term_offsets, terms, keys, frequencies
        As for :func:`.query_words.find_lists`.
    weights, bases
        float64 by document frequency, as for :func:`.query_words.weigh_words`; words that more documents hold are not
        answered here.
    addresses, norms, bounds, no_lists, allowed
        As for :func:`polars_tadoc.kernels.search.search_cpu.run_search`.
    require_all, first, second
        Whether documents hold all words; the :func:`.search_cpu.search_function`, and the one for queries for which
        that does not find enough, 0 without.
    edge
        By feature, what it takes here less what it takes on another engine (:func:`.costs.edge`); empty without one.
    lowered, room, entry_weights, lists
        Work space: as many numbers as bytes, and twelve times as many and 20 int64.
    best, block, for_lists, accumulators, marks, for_blocks
        Work space: two uint32 a result, and that of ``run_search``.
    documents, scores
        Filled: int64 and float32, as many as there may be results.

    Returns
    -------
    int
        How many documents were found, or ``NOT_HERE``.

    """
    size = len(data)
    ends, offsets, entry_offsets, room = room[:2], room[2:4], room[4:7], room[7:]
    entries, held, numbers = room[:size], room[size : 2 * size], room[2 * size : 3 * size]
    distinct, words, work = room[3 * size : 5 * size], room[5 * size : 6 * size], room[6 * size :]
    ends[0], ends[1] = 0, size
    count, found, was_mapped = analyze_words(
        data, ends, page_of, pages, firsts, widths, maps, lowers, stop_offsets, stop_terms, stop_keys, lower_case,
        lowered, work, words, offsets, distinct,
    )  # fmt: skip
    if is_mapped and not was_mapped:
        return NOT_HERE
    order, held, spans = work[:found], held[:found], distinct[: 2 * found]
    for word in range(found):
        order[word], held[word] = word, 0
    find_lists(lowered, spans, order, term_offsets, terms, keys, frequencies, numbers[:found], held)
    for word in range(found):
        if held[word] >= len(weights):
            return NOT_HERE
    gains = entry_weights[size : size + 1]
    at = weigh_words(
        offsets, words[:count], lowered, spans, held, weights, bases, held, entry_offsets[:2], entries, entry_weights,
        gains,
    )  # fmt: skip
    own = 0
    for entry in range(at):
        if held[entries[entry]] != 0:
            lists[own], entry_weights[own] = numbers[entries[entry]], entry_weights[entry]
            own += 1
    entry_offsets[1] = own
    if len(edge) and _sum_features(edge, held, entries[:at], nb.int64(addresses[1])) > 0:
        return NOT_HERE
    kept, plain = min(len(documents), nb.int64(addresses[1])), best[:0]
    best_documents = best[:kept].reshape((1, kept))
    bits = best[kept : 2 * kept].reshape((1, kept))
    as_scores, total, function = bits.view(np.float32), entry_offsets[2:], first
    if require_all and own < at:
        function = second
    total[0] = 0
    while function != 0 and own != 0 and kept != 0:
        run_search(
            function, block, addresses, norms, bounds, entry_offsets[:2], lists[:own], entry_weights[:own], no_lists,
            plain, plain, allowed, 0, 1, accumulators, marks, for_blocks, for_lists[: 2 * kept + 10 * own + 1], total,
            best_documents, bits,
        )  # fmt: skip
        if function == second or total[0] == kept:
            break
        function = second
    for rank in range(total[0]):
        documents[rank], scores[rank] = best_documents[0, rank], as_scores[0, rank]
    if len(bases):
        for rank in range(total[0]):
            scores[rank] += gains[0]
    return total[0]
