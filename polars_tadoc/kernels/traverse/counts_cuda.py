"""Word counts on the device: top-down weights, counts under a morphism, selection in result order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from polars_tadoc.errors import EngineUnavailableError
from polars_tadoc.kernels.primitives.load_cuda import load_symbols
from polars_tadoc.kernels.primitives.primitives_cuda import radix_sort
from polars_tadoc.kernels.traverse import fuse_levels_cuda as fuse_levels
from polars_tadoc.kernels.traverse.rules import GrammarArrays, RankedWords
from polars_tadoc.runtime.array_types import UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.device import (
    device_attribute,
    device_errors,
    even_blocks,
    launch,
    launch_each,
    launch_resident,
)


@dataclass(frozen=True)
class Design:
    """Tuning parameters of the top-down kernel; ``benchmarks/gpu_word_count.py --variants`` measures others."""

    threads: int = 1024
    """Threads per block."""
    blocks_per_multiprocessor: int = 1
    """Maximum resident blocks: with fewer, grid barriers are faster."""
    private_words: int = 1 << 14
    """Number of most frequent words that each block counts in shared memory."""
    hot_slots: int = 1 << 13
    """Slots of each block's table of frequent rules, 0 for no table; an eighth of it on small devices."""
    growth: int = fuse_levels.GROWTH
    """Maximum symbols that fusing a level may add; negative: do not fuse."""


design = Design()

_TILE = 128  # symbols per warp and step of top_down.cu
_CANDIDATES = 1 << 16  # up to this many are sorted on the host
_FIRST_LOOK = 1 << 10  # candidates copied together with their number


@array_dataclass
class ResidentGrammar:
    """A grammar's bodies on the device, with thin levels fused (see ``fuse_levels_cuda.py``)."""

    vocabulary_size: int
    rule_count: int
    level_count: int
    symbols: Any
    """cupy uint32: the concatenated bodies, lowest step first, padded to whole tiles."""
    owners: Any
    """cupy uint32[symbols / 32, 2]: number of bodies that start before each 32 positions, and a bit per start in
    them."""
    body_rules: Any
    """cupy uint32 by body: its rule; None if no body is empty, because then both have the same numbers."""
    steps: Any
    """cupy uint32[steps, 2]: symbol positions of each step, lowest first."""
    widest: int
    """Symbols of the widest step."""
    nbytes: int
    """Bytes of device memory."""


def load_grammar(grammar: GrammarArrays) -> ResidentGrammar:
    """Copy a checked grammar to the device, with the index that finds the body of a symbol position."""
    offsets, symbols, steps = fuse_levels.fuse_levels(
        grammar.vocabulary_size, grammar.rule_offsets, grammar.symbols, grammar.level_offsets, design.growth
    )
    starts, body_rules = offsets, None
    if (offsets[1:] == offsets[:-1]).any():
        body_rules = np.flatnonzero(offsets[1:] > offsets[:-1]).astype(np.uint32)
        starts = offsets[body_rules]
    bodies = len(starts) if body_rules is not None else grammar.rule_count
    tiles = -(-len(symbols) // _TILE)
    if tiles * _TILE >= 1 << 32:
        raise EngineUnavailableError(
            f'engine="gpu": a grammar of {len(symbols):,} symbols exceeds the 32-bit positions of the GPU; '
            'use engine="cpu", or compress in more parts'
        )
    with device_errors(f"loading a grammar of {len(symbols):,} symbols"):
        import cupy

        padded = cupy.zeros(tiles * _TILE, np.uint32)
        padded[: len(symbols)].set(np.ascontiguousarray(symbols))
        marks = cupy.empty((tiles * _TILE // 32, 2), np.uint32)
        launch_each("owners", "mark_owners", len(marks), cupy.asarray(starts), bodies, marks, len(marks))
        resident_rules = None if body_rules is None else cupy.asarray(body_rules)
        resident_steps = cupy.asarray(np.ascontiguousarray(steps))
    arrays = (padded, marks, resident_rules, resident_steps)
    return ResidentGrammar(
        vocabulary_size=grammar.vocabulary_size,
        rule_count=grammar.rule_count,
        level_count=grammar.level_count,
        symbols=padded,
        owners=marks,
        body_rules=resident_rules,
        steps=resident_steps,
        widest=int((steps[:, 1] - steps[:, 0]).max(initial=0)),
        nbytes=sum(int(array.nbytes) for array in arrays if array is not None),
    )


def top_down_weights(grammar: ResidentGrammar, roots: Any) -> Any:
    """Count the words in the expansion of the roots (G-TADOC, Zhang et al., ICDE 2021, Algorithm 1).

    One cooperative launch runs all steps; the host does not wait for it.

    Parameters and result as for :func:`polars_tadoc.kernels.traverse.counts_cpu.top_down_weights`, as cupy arrays.
    """
    with device_errors(f"counting the words of {len(roots):,} symbols"):
        import cupy

        vocabulary, rules, steps = grammar.vocabulary_size, grammar.rule_count, len(grammar.steps)
        if vocabulary == 0 or len(roots) == 0:
            return cupy.zeros(vocabulary, np.uint64)
        held, hot_slots = _shared_counters(vocabulary)
        work = max(len(roots), grammar.widest)
        blocks = design.blocks_per_multiprocessor * device_attribute("MultiProcessorCount")
        # one allocation and one memset
        zeros = cupy.zeros(vocabulary + rules + 1, np.uint64)
        counts = zeros[:vocabulary]
        launch_resident(
            *("top_down", "top_down_weights", min(blocks, -(-work // (_TILE * design.threads // 32))), design.threads),
            *(grammar.symbols, grammar.owners, grammar.body_rules, grammar.steps, steps),
            *(cupy.ascontiguousarray(roots), len(roots), vocabulary, held, zeros[vocabulary:], counts, zeros[-1:]),
            defines=top_down_defines(hot_slots),
            shared=4 * (held + 2 * hot_slots),
            cooperative=True,
        )
        return counts


def map_counts(counts: Any, image: UInt32, size: int) -> Any:
    """Sum counts by image; cupy uint64.

    Parameters as for :func:`polars_tadoc.kernels.traverse.counts_cpu.map_counts`; ``image`` is in host memory.
    """
    with device_errors(f"mapping the counts of {len(counts):,} words"):
        import cupy

        sums = cupy.zeros(size, np.uint64)
        if size and len(counts):
            held = min(size, 4096)
            launch(
                *("map_counts", "map_counts", even_blocks(len(counts)), 1024, counts, load_symbols(image), len(counts)),
                *(held, sums),
                shared=4 * held,
            )
        return sums


def select(counts: Any, words: RankedWords, min_count: int, top: int | None) -> tuple[UInt32, UInt64]:
    """Select the words of a result, in result order; only they are copied to the host.

    A small ``top`` needs no sort: one pass finds the bucket of counts that contains the last result, another takes the
    words from there up. Counts that descend with ascending ids, as they do if all rows are present, need no sort
    either.

    Parameters and result as for :func:`polars_tadoc.kernels.traverse.counts_cpu.select`; ``counts`` is cupy uint64.
    """
    least = max(min_count, 1)
    if len(counts) == 0 or least >= 1 << 64 or (top is not None and top <= 0):
        return np.empty(0, np.uint32), np.empty(0, np.uint64)
    with device_errors(f"selecting among {len(counts):,} words"):
        if top is not None and top <= min(_CANDIDATES, len(counts)) // 4:
            candidates = _select_candidates(counts, least, top)
            if candidates is not None:
                return _in_order(*candidates, words, top)
        return _select_sorted(counts, words, least, top)


def _select_candidates(counts: Any, least: int, top: int) -> tuple[UInt32, UInt64] | None:
    """Return at least the ``top`` most frequent words, unsorted, or None if too many counts are equal."""
    import cupy

    capacity = min(_CANDIDATES, len(counts))
    zeros = cupy.zeros(1024 + 2, np.uint64)  # 2048 uint32 buckets, and the report
    found = cupy.zeros(1 + 2 * capacity, np.uint64)
    blocks, size = even_blocks(len(counts)), len(counts)
    launch("select", "survey", blocks, 1024, counts, None, size, least, zeros, zeros[1024:])
    launch("select", "collect", blocks, 1024, counts, size, least, top, zeros, capacity, found)
    pairs = found[: 1 + 2 * _FIRST_LOOK].get()  # synchronize!
    number = int(pairs[0])
    if number > capacity:
        return None
    if number > _FIRST_LOOK:
        pairs = found[: 1 + 2 * number].get()  # synchronize!
    return pairs[2 : 2 * number + 1 : 2].astype(np.uint32), pairs[1 : 2 * number + 1 : 2]


def _in_order(ids: UInt32, counts: UInt64, words: RankedWords, top: int) -> tuple[UInt32, UInt64]:
    order = np.argsort(~counts)
    if (np.diff(counts[order][: top + 1]) == 0).any():  # ties are decided by code points
        order = np.lexsort((words.rank_of(ids), ~counts))
    order = order[:top]
    return ids[order], counts[order]


def _select_sorted(counts: Any, words: RankedWords, least: int, top: int | None) -> tuple[UInt32, UInt64]:
    import cupy

    blocks, size = even_blocks(len(counts)), len(counts)
    zeros = cupy.zeros(1024 + 2, np.uint64)
    ascending = _resident_order(words, "ascending")
    launch("select", "survey", blocks, 1024, counts, ascending, size, least, zeros, zeros[1024:])
    kept, disordered = (int(value) for value in zeros[1024:].get())  # synchronize!
    kept = kept if top is None else min(kept, top)
    if not disordered:
        return np.arange(kept, dtype=np.uint32), counts[:kept].get()  # synchronize!
    keys, by_rank = cupy.empty(len(counts), np.uint64), cupy.empty(len(counts), np.uint32)
    launch("select", "order_keys", blocks, 1024, counts, _resident_order(words, "rank"), size, least, keys, by_rank)
    places = cupy.arange(len(keys), dtype=np.uint64)
    _, order = radix_sort(keys, places, overwrite=True)  # stable: equal counts stay in code point order
    ids, chosen = cupy.empty(kept, np.uint32), cupy.empty(kept, np.uint64)
    launch("select", "gather", blocks, 1024, counts, by_rank, order, kept, ids, chosen)
    return ids.get(), chosen.get()  # synchronize!


_orders: WeakKeyDictionary[RankedWords, dict[tuple[int, str], Any]] = WeakKeyDictionary()
"""Orders of vocabularies in use, five bytes a word, by device."""


def _resident_order(words: RankedWords, name: str) -> Any:
    """Return "rank" or "ascending" of a vocabulary on the device, where they stay with it."""
    import cupy

    kept = _orders.setdefault(words, {})
    place = cupy.cuda.runtime.getDevice(), name
    if place not in kept:
        order = words.rank if name == "rank" else np.append(words.ascending, True)
        kept[place] = cupy.asarray(np.ascontiguousarray(order))
    return kept[place]


def _shared_counters(vocabulary: int) -> tuple[int, int]:
    """Return how many frequent words each block counts in shared memory, and its slots for frequent rules."""
    offered = device_attribute("MaxSharedMemoryPerBlockOptin") // 4
    hot_slots = design.hot_slots if offered >= 4 * design.hot_slots else design.hot_slots // 8
    return max(0, min(vocabulary, design.private_words, offered - 2 * hot_slots)), hot_slots


def top_down_defines(hot_slots: int) -> tuple[str, ...]:
    """Return the compiler definitions of the top-down kernel for a number of slots for frequent rules."""
    sizes = {"THREADS": design.threads, "BLOCKS": design.blocks_per_multiprocessor, "HOT_SLOTS": hot_slots}
    return tuple(f"-D{macro}={value}" for macro, value in sizes.items())
