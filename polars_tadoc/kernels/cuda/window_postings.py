"""The documents that hold each run of words."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.cuda.bodies import make_texts
from polars_tadoc.kernels.cuda.derived_rules import derive
from polars_tadoc.kernels.cuda.device import device_errors, launch_each
from polars_tadoc.kernels.cuda.documents import count_by_terminal
from polars_tadoc.kernels.cuda.keys import Packing, no_windows, pack, read_keys, sort_columns, sum_runs, words_by_rank
from polars_tadoc.kernels.cuda.primitives import compact, exclusive_scan, expand, radix_sort, segmented_sum
from polars_tadoc.kernels.cuda.reduced_text import write_words
from polars_tadoc.kernels.cuda.rule_occurrences import mark_rules
from polars_tadoc.kernels.cuda.windows import MOST_NUMBERS, Kind, possible_kind, too_many
from polars_tadoc.kernels.rules import Rules


def list_windows(
    kind: Kind, rules: Rules, root_offsets: Any, roots: Any, rank: Any, strategy: str, min_count: int, top: int | None
) -> tuple[Any, Any, Any, Any]:
    """Return words by rank, where each window's documents start, the documents, and how often each holds it."""
    with device_errors(f"listing the documents of runs of {kind.words} words"):
        import cupy

        possible = possible_kind(kind, rules, root_offsets, roots)
        if possible is None:
            no_words, no_counts = no_windows(kind.words)
            return no_words, cupy.zeros(1, np.int64), cupy.empty(0, np.uint32), no_counts
        packing = pack(kind, rules.terminals, 1)
        found = None
        if strategy == "top_down":
            found = list_documents(kind, packing, rules, root_offsets, roots, rank)
        all_occur = found is not None
        if found is None:
            derived = derive(kind, rules, root_offsets, roots, rank)
            found = (
                derived.keys,
                *count_by_terminal(derived.rules, derived.root_offsets, derived.roots, strategy, counted=True),
            )
            del derived
        keys, offsets, documents, counts = found
        del found
        if len(documents) > MOST_NUMBERS:
            raise too_many(len(documents), "documents of runs")
        lists = expand(offsets, len(documents))
        order_lists(lists, len(offsets) - 1, documents, counts)
        if top is None and min_count <= 1 and all_occur:
            return read_keys(keys, packing, None, words_by_rank(rank)), offsets, documents, counts
        wanted = offsets[1:] > offsets[:-1]
        if min_count > 1:
            wanted &= segmented_sum(counts, offsets) >= np.uint64(min(min_count, (1 << 64) - 1))
        keep = cupy.empty(len(lists), np.uint8)
        most = np.uint64((1 << 64) - 1 if top is None else top)
        launch_each(
            *("window_postings", "keep_first", len(lists), lists, offsets, wanted.view(np.uint8)),
            *(np.uint64(len(lists)), most, keep),
        )
        sizes = segmented_sum(keep, offsets)
        chosen = compact(cupy.arange(len(wanted), dtype=np.uint32), wanted)
        offsets = exclusive_scan(compact(sizes, wanted))
        words = read_keys(keys, packing, chosen, words_by_rank(rank))
        return words, offsets, compact(documents, keep), compact(counts, keep)


def list_documents(
    kind: Kind, packing: Packing, rules: Rules, root_offsets: Any, roots: Any, rank: Any
) -> tuple[Any, Any, Any, Any] | None:
    """Return the keys, and where their documents begin, the documents, ascending, and how often each holds the key.

    The documents of a rule are those of its windows. Documents' own windows need no counting by document at all.
    None where counts are beyond 32 bits.
    """
    import cupy

    texts = make_texts(kind, rules, root_offsets, roots, rank)
    words = write_words(kind, rules, roots, texts, documents=True)
    found = cupy.empty(len(words.words), np.uint8)
    marked = cupy.zeros(rules.rule_count, np.uint8)
    size, of_rules, reach = np.uint64(len(found)), np.uint64(words.of_rules), np.uint32(kind.reach)
    text = (words.words, size, of_rules, words.owners, reach)
    launch_each("rule_occurrences", "find_windows", len(found), *text, found, marked)
    occurring, occurring_offsets, occurring_roots = mark_rules(kind, rules, texts, marked)
    list_offsets, documents, counts = count_by_terminal(
        occurring, occurring_offsets, occurring_roots, "top_down", counted=True
    )
    del occurring, occurring_offsets, occurring_roots, texts, marked
    if len(counts) and int(counts.max()) >> 32:  # synchronize!
        return None
    sizes = cupy.empty(len(found), np.uint32)
    launch_each(
        "window_postings", "count_documents", len(found), found, size, of_rules, words.owners, list_offsets, sizes
    )
    places = exclusive_scan(sizes)
    del sizes
    of_lists, total = (int(count) for count in places[[words.of_rules, len(found)]].get())  # synchronize!
    columns = cupy.empty((packing.columns + 1, total), np.uint64)
    plain = (*text, *packing.arguments()[:4])
    launch_each(
        *("window_postings", "write_own_postings", len(found) - words.of_rules, *plain, found, places),
        *(columns, np.uint64(total)),
    )
    launch_each(
        *("window_postings", "write_rule_postings", of_lists, *plain, expand(places[: words.of_rules + 1], of_lists)),
        *(np.uint64(of_lists), places, list_offsets, documents, counts, columns, np.uint64(total)),
    )
    del places, found, words, text, plain, documents, counts, list_offsets
    ranges = [(packing.sorted_bits(column)[0], 0) for column in range(packing.columns)]
    by_document = Packing(0, 0, 0, packing.columns + 1, 32, 32)
    order, columns = sort_columns(columns, [*ranges, ((len(root_offsets) - 2).bit_length(), 32)])
    pairs, counts = sum_runs(columns, order, by_document)
    del columns, order
    lists = cupy.empty(len(counts), np.uint32)
    keys, _ = sum_runs(pairs[:-1], None, Packing(0, 0, 0, packing.columns, 0, 0), None, lists)
    offsets = cupy.zeros(keys.shape[1] + 1, np.int64)
    launch_each(
        "window_postings", "find_lists", len(lists), lists, np.uint64(len(lists)), np.uint32(keys.shape[1]), offsets
    )
    return keys, offsets, pairs[-1].astype(np.uint32), counts


def order_lists(lists: Any, list_count: int, documents: Any, counts: Any) -> None:
    """Order each list of documents by count falling, in place; they come ascending."""
    import cupy

    disordered = cupy.zeros(list_count, np.uint8)
    launch_each("window_postings", "mark_disordered", len(lists), lists, counts, np.uint64(len(lists)), disordered)
    places = compact(cupy.arange(len(lists), dtype=np.uint32), disordered.take(lists))
    if not len(places):
        return
    moved = counts.take(places)
    most = int(moved.max())  # synchronize!
    order = radix_sort(
        np.uint64(most) - moved, cupy.arange(len(places), dtype=np.uint32), most.bit_length(), overwrite=True
    )[1]
    owners = lists.take(places).take(order)
    order = radix_sort(owners, order, list_count.bit_length(), overwrite=True)[1]
    counts[places] = moved.take(order)
    documents[places] = documents.take(places).take(order)
