"""Rules with windows as terminals: kernels that count words then count windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.keys.keys_cuda import (
    Packing,
    no_windows,
    order_columns,
    pack,
    read_keys,
    sum_runs,
    words_by_rank,
)
from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan, radix_sort
from polars_tadoc.kernels.sequences.bodies_cuda import Text, make_texts
from polars_tadoc.kernels.sequences.windows_cuda import MAX_NUMBERS, Kind, possible_kind, too_many
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.device import device_errors, launch_each


@array_dataclass
class Derived:
    """Rules whose terminals are windows, numbered in the order of their keys."""

    rules: Rules
    root_offsets: Any
    roots: Any
    keys: Any
    packing: Packing


def derive_sequences(rules: Rules, root_offsets: Any, roots: Any, n: int, rank: Any) -> tuple[Rules, Any, Any, Any]:
    """Convert the rules and documents of words to those of sequences of n words.

    Parameters and errors as for :func:`sequence_counts`.

    Returns
    -------
    (Rules, cupy int64, cupy uint32, cupy uint32[m, n])
        Rules whose terminals are the distinct sequences, numbered in the order of their words' ranks; the documents'
        symbols; the words of each sequence. No sequence spans two documents.

    """
    return _derived_parts(Kind("windows", n, n - 1), rules, root_offsets, roots, rank)


def derive_pairs(rules: Rules, root_offsets: Any, roots: Any, window: int, rank: Any) -> tuple[Rules, Any, Any, Any]:
    """Convert the rules and documents of words to those of pairs of words at most ``window`` words apart.

    Parameters and errors as for :func:`sequence_counts`.

    Returns
    -------
    (Rules, cupy int64, cupy uint32, cupy uint32[m, 2])
        As for :func:`derive_sequences`, for pairs, the word of lower rank first.

    """
    return _derived_parts(Kind("pairs", 2, window), rules, root_offsets, roots, rank)


def _derived_parts(kind: Kind, rules: Rules, root_offsets: Any, roots: Any, rank: Any) -> tuple[Rules, Any, Any, Any]:
    with device_errors(f"turning documents into {kind.name} of words"):
        import cupy

        possible = possible_kind(kind, rules, root_offsets, roots)
        if possible is None:
            offsets, symbols = cupy.zeros(rules.rule_count + 1, np.int64), cupy.empty(0, np.uint32)
            empty = Rules(0, offsets, symbols, rules.level_offsets, cupy.zeros(rules.rule_count, np.uint64))
            return empty, cupy.zeros(len(root_offsets), np.int64), symbols, no_windows(kind.words)[0]
        derived = derive(possible, rules, root_offsets, roots, rank)
        every = cupy.arange(derived.rules.terminals, dtype=np.uint32)
        words = read_keys(derived.keys, derived.packing, every, words_by_rank(rank))
        return derived.rules, derived.root_offsets, derived.roots, words


def derive(kind: Kind, rules: Rules, root_offsets: Any, roots: Any, rank: Any) -> Derived:
    """Rewrite rules and documents over windows: own windows of a body, and the children that contain some."""
    import cupy

    packing = pack(kind, rules.terminals, 1)
    texts = make_texts(kind, rules, root_offsets, roots, rank)
    places = [_places(kind, text) for text in texts]
    body_offsets, document_offsets = (p[text.offsets] for p, text in zip(places, texts, strict=True))
    body_symbols = int(places[0][-1])  # synchronize!
    all_symbols = body_symbols + int(places[1][-1])  # synchronize!
    if all_symbols > MAX_NUMBERS:
        raise too_many(all_symbols, "places of windows")
    places[1] += body_symbols
    entries = sum(int(_measure(kind, text, MAX_NUMBERS).sum()) for text in texts)  # synchronize!
    columns, slots = cupy.empty((packing.columns, entries), np.uint64), cupy.empty(entries, np.uint32)
    taken = cupy.zeros(1, np.uint64)
    for text, text_places in zip(texts, places, strict=True):
        launch_each(
            *("derived_rules", "place_entries", len(text.symbols), text.struct, packing.struct, columns, entries),
            *(taken, text_places, slots),
            defines=kind.defines,
        )
    if packing.columns == 1:
        bits, first_bit = packing.sorted_bits(0)
        column, slots = radix_sort(columns[0], slots, bits, first_bit, overwrite=True)
        columns, order = column.reshape(1, -1), None
    else:
        order = order_columns(columns, packing.ranges())
    symbols = cupy.empty(all_symbols, np.uint32)
    keys, _ = sum_runs(columns, order, packing, slots, symbols)
    del columns, order, slots
    if keys.shape[1] + rules.rule_count > MAX_NUMBERS:
        raise too_many(keys.shape[1] + rules.rule_count, "runs of words and rules")
    for text, text_places in zip(texts, places, strict=True):
        given = (text.struct, kind.least, keys.shape[1], text_places, symbols)
        launch_each("derived_rules", "write_children", len(text.symbols), *given, defines=kind.defines)
    derived = Rules(
        terminals=keys.shape[1],
        rule_offsets=body_offsets,
        symbols=symbols[:body_symbols],
        level_offsets=rules.level_offsets,
        lengths=kind.lengths(rules.lengths),
    )
    return Derived(derived, document_offsets, symbols[body_symbols:], keys, packing)


def _places(kind: Kind, text: Text) -> Any:
    """Return the offset of each position's symbols in the derived bodies, cupy int64, one more than positions."""
    return exclusive_scan(_measure(kind, text, kind.least))


def _measure(kind: Kind, text: Text, least: int) -> Any:
    """Return the windows of each position, plus one if its child has at least ``least`` words, cupy uint32."""
    import cupy

    sizes = cupy.empty(len(text.symbols), np.uint32)
    launch_each("derived_rules", "measure", len(sizes), text.struct, least, sizes, defines=kind.defines)
    return sizes
