"""Runs of words and pairs of nearby words on the device, counted on the rules (G-TADOC, Zhang et al., ICDE 2021).

An owner (a rule's body or a document) holds the windows that span two or more of its children; the first and the
last words of rules tell their words, so that nothing is expanded. Top-down, windows are written as keys of packed
ranks with the weight of their owner, sorted and added up, as many at a time as device memory allows. Bottom-up, and
wherever documents matter, each distinct window gets a number and the rules are rewritten over those numbers: what
counts words then counts windows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from polars_tadoc.errors import EngineUnavailableError
from polars_tadoc.kernels.cuda.device import device_errors, even_blocks, get_kernel, launch_each
from polars_tadoc.kernels.cuda.documents import count_by_terminal
from polars_tadoc.kernels.cuda.primitives import compact, exclusive_scan, expand, radix_sort, segmented_sum
from polars_tadoc.kernels.cuda.tables import device_levels, terminal_counts
from polars_tadoc.kernels.rules import Rules

THREADS = 256
WORKING_MEMORY = 30 << 20
"""Bytes that a batch may take beside half of the rules and what the result allows."""
LEAST_MEMORY = 4 << 20
"""Bytes that a batch may take anyhow."""
EXPECTED = 0.5
"""Share of the keys that entries have been found to have so far which the rest is trusted to have."""

_RUN_TILE = 8 * THREADS
_BUCKET_BITS = 12
_MOST_NUMBERS = (1 << 32) - 1


@dataclass(frozen=True)
class _Kind:
    """What is counted: ``windows`` of so many words, or ``pairs`` of words at most ``reach`` apart."""

    name: str
    words: int
    reach: int
    """Words beyond the first one of a window that it may take."""

    @property
    def least(self) -> int:
        """Words that a rule has at least if it holds any of them."""
        return self.words

    def lengths(self, lengths: Any) -> Any:
        """How many a rule of each length stands for, cupy uint64."""
        import cupy

        if self.name == "windows":
            return cupy.maximum(lengths, np.uint64(self.reach)) - np.uint64(self.reach)
        apart = cupy.minimum(cupy.maximum(lengths, np.uint64(1)) - np.uint64(1), np.uint64(self.reach))
        return apart * lengths - apart * (apart + np.uint64(1)) // np.uint64(2)


@dataclass(frozen=True)
class _Packing:
    """How a key is written: see ``sequences.cu``."""

    words: int
    bits: int
    per_column: int
    columns: int
    spare: int
    digit_bits: int

    def sorted_bits(self, column: int) -> tuple[int, int]:
        """Return the bits of a column that belong to the key, and the lowest one."""
        if column + 1 < self.columns:
            return self.per_column * self.bits, 0
        return (self.words - column * self.per_column) * self.bits, self.spare

    def ranges(self) -> list[tuple[int, int]]:
        """Return them for all columns."""
        return [self.sorted_bits(column) for column in range(self.columns)]

    def arguments(self) -> tuple[np.uint32, ...]:
        sizes = (self.words, self.bits, self.per_column, self.columns, self.spare, self.digit_bits)
        return tuple(np.uint32(size) for size in sizes)


@dataclass(frozen=True, eq=False)
class _Text:
    """Bodies or documents as the kernels read them."""

    offsets: Any
    """cupy int64, owners + 1."""
    symbols: Any
    starts: Any
    """cupy uint32: a bit by position, set where an owner starts."""
    ends: Any
    """cupy uint32: the lengths, first and last words of rules."""
    stride: int
    terminals: int
    rank: Any
    reach: int

    def arguments(self) -> tuple[Any, ...]:
        return (
            *(self.symbols, np.uint64(len(self.symbols)), self.starts, self.ends, np.uint32(self.stride)),
            *(np.uint32(self.terminals), self.rank, np.uint32(self.reach)),
        )


def sequence_counts(
    rules: Rules,
    root_offsets: Any,
    roots: Any,
    n: int,
    rank: Any,
    strategy: str,
    min_count: int = 1,
    top: int | None = None,
) -> tuple[Any, Any]:
    """Count the runs of n words.

    Parameters
    ----------
    rules
        Bodies on the device.
    root_offsets
        cupy int64, documents + 1.
    roots
        cupy uint32: the documents' symbols.
    n
        Words of a run, at least 1.
    rank
        cupy uint32 by word: its place in code point order; None if words are numbered so.
    strategy
        ``"top_down"`` or ``"bottom_up"``.
    min_count
        Runs counted less often are left out.
    top
        At most so many runs.

    Returns
    -------
    (cupy uint32[m, n], cupy uint64[m])
        Words and counts, by count falling, equal ones by rank.

    Raises
    ------
    EngineUnavailableError
        The device is out of memory or failed, or the windows are beyond its 32-bit numbers.

    """
    return _counts(_Kind("windows", n, n - 1), rules, root_offsets, roots, rank, strategy, min_count, top)


def pair_counts(
    rules: Rules,
    root_offsets: Any,
    roots: Any,
    window: int,
    rank: Any,
    strategy: str,
    min_count: int = 1,
    top: int | None = None,
) -> tuple[Any, Any]:
    """Count the pairs of words at most ``window`` words apart, the word of lower rank first.

    Parameters and errors as in :func:`sequence_counts`.

    Returns
    -------
    (cupy uint32[m, 2], cupy uint64[m])
        Words and counts, by count falling, equal ones by rank.

    """
    return _counts(_Kind("pairs", 2, window), rules, root_offsets, roots, rank, strategy, min_count, top)


def sequence_postings(
    rules: Rules,
    root_offsets: Any,
    roots: Any,
    n: int,
    rank: Any,
    strategy: str,
    min_count: int = 1,
    top: int | None = None,
) -> tuple[Any, Any, Any, Any]:
    """List the documents that hold each run of n words, by count falling, then ascending.

    Parameters and errors as in :func:`sequence_counts`; ``min_count`` is of all documents together, ``top`` of
    documents for each run.

    Returns
    -------
    (cupy uint32[m, n], cupy int64[m + 1], cupy uint32, cupy uint64)
        Words by rank, where each run's documents start, the documents, and how often each holds the run.

    """
    with device_errors(f"listing the documents of runs of {n} words"):
        import cupy

        kind = _possible(_Kind("windows", n, n - 1), rules, root_offsets, roots)
        if kind is None:
            no_words, no_counts = _nothing(n)
            return no_words, cupy.zeros(1, np.int64), cupy.empty(0, np.uint32), no_counts
        packing = _pack(kind, rules.terminals, 1)
        found = None
        if strategy == "top_down":
            found = _list_documents(kind, packing, rules, root_offsets, roots, rank)
        all_occur = found is not None
        if found is None:
            derived = _derive(kind, rules, root_offsets, roots, rank)
            found = (
                derived.keys,
                *count_by_terminal(derived.rules, derived.root_offsets, derived.roots, strategy, counted=True),
            )
            del derived
        keys, offsets, documents, counts = found
        del found
        if len(documents) > _MOST_NUMBERS:
            raise _too_many(len(documents), "documents of runs")
        lists = expand(offsets, len(documents))
        _order_lists(lists, len(offsets) - 1, documents, counts)
        if top is None and min_count <= 1 and all_occur:
            return _read_keys(keys, packing, None, _words_by_rank(rank)), offsets, documents, counts
        wanted = offsets[1:] > offsets[:-1]
        if min_count > 1:
            wanted &= segmented_sum(counts, offsets) >= np.uint64(min(min_count, (1 << 64) - 1))
        keep = cupy.empty(len(lists), np.uint8)
        most = np.uint64((1 << 64) - 1 if top is None else top)
        launch_each(
            *("sequences", "keep_first", len(lists), lists, offsets, wanted.view(np.uint8)),
            *(np.uint64(len(lists)), most, keep),
        )
        sizes = segmented_sum(keep, offsets)
        chosen = compact(cupy.arange(len(wanted), dtype=np.uint32), wanted)
        offsets = exclusive_scan(compact(sizes, wanted))
        words = _read_keys(keys, packing, chosen, _words_by_rank(rank))
        return words, offsets, compact(documents, keep), compact(counts, keep)


def derive_sequences(rules: Rules, root_offsets: Any, roots: Any, n: int, rank: Any) -> tuple[Rules, Any, Any, Any]:
    """Turn the rules and documents of words into those of runs of n words.

    Parameters and errors as in :func:`sequence_counts`.

    Returns
    -------
    (Rules, cupy int64, cupy uint32, cupy uint32[m, n])
        Rules whose terminals are the distinct runs, numbered in the order of their words' ranks; the documents' symbols
        over them; the words of each run. Documents put together have the runs of each, and no others.

    """
    return _derived_parts(_Kind("windows", n, n - 1), rules, root_offsets, roots, rank)


def derive_pairs(rules: Rules, root_offsets: Any, roots: Any, window: int, rank: Any) -> tuple[Rules, Any, Any, Any]:
    """Turn the rules and documents of words into those of pairs of words at most ``window`` words apart.

    Parameters and errors as in :func:`sequence_counts`.

    Returns
    -------
    (Rules, cupy int64, cupy uint32, cupy uint32[m, 2])
        As for :func:`derive_sequences`, of pairs, the word of lower rank first.

    """
    return _derived_parts(_Kind("pairs", 2, window), rules, root_offsets, roots, rank)


def _derived_parts(kind: _Kind, rules: Rules, root_offsets: Any, roots: Any, rank: Any) -> tuple[Rules, Any, Any, Any]:
    with device_errors(f"turning documents into {kind.name} of words"):
        import cupy

        possible = _possible(kind, rules, root_offsets, roots)
        if possible is None:
            offsets, symbols = cupy.zeros(rules.rule_count + 1, np.int64), cupy.empty(0, np.uint32)
            empty = Rules(0, offsets, symbols, rules.level_offsets, cupy.zeros(rules.rule_count, np.uint64))
            return empty, cupy.zeros(len(root_offsets), np.int64), symbols, _nothing(kind.words)[0]
        derived = _derive(possible, rules, root_offsets, roots, rank)
        every = cupy.arange(derived.rules.terminals, dtype=np.uint32)
        words = _read_keys(derived.keys, derived.packing, every, _words_by_rank(rank))
        return derived.rules, derived.root_offsets, derived.roots, words


def _counts(
    kind: _Kind,
    rules: Rules,
    root_offsets: Any,
    roots: Any,
    rank: Any,
    strategy: str,
    min_count: int,
    top: int | None,
) -> tuple[Any, Any]:
    with device_errors(f"counting {kind.name} of words"):
        possible = _possible(kind, rules, root_offsets, roots)
        if possible is None or top == 0 or min_count >= 1 << 64:
            return _nothing(kind.words)
        least = max(min_count, 1)
        if strategy == "bottom_up":
            derived = _derive(possible, rules, root_offsets, roots, rank)
            packing, keys = derived.packing, derived.keys
            counts = terminal_counts(derived.rules, derived.roots, strategy)
            del derived
            found = [_chosen(keys, counts, least, top)]
            del keys, counts
        else:
            packing, found = _count_batches(possible, rules, root_offsets, roots, rank, least, top)
        return _ranked(found, packing, rank, top)


def _nothing(words: int) -> tuple[Any, Any]:
    import cupy

    return cupy.empty((0, words), np.uint32), cupy.empty(0, np.uint64)


def _too_many(count: int, what: str) -> EngineUnavailableError:
    return EngineUnavailableError(
        f'engine="gpu": {count:,} {what} are beyond its 32-bit numbers; use engine="cpu", or fewer rows at a time'
    )


def _possible(kind: _Kind, rules: Rules, root_offsets: Any, roots: Any) -> _Kind | None:
    """Return what can be found at all: a window is no longer than the longest document."""
    import cupy

    if rules.terminals == 0 or len(roots) == 0:
        return None
    if kind.reach <= 16:
        return kind
    lengths = cupy.concatenate([cupy.ones(1, np.uint64), rules.lengths])
    lengths = lengths[cupy.maximum(roots, np.uint32(rules.terminals - 1)) - np.uint32(rules.terminals - 1)]
    longest = int(segmented_sum(lengths, root_offsets).max())  # synchronize!
    if longest <= (kind.reach if kind.name == "windows" else 1):
        return None
    return _Kind(kind.name, kind.words, min(kind.reach, longest - 1))


def _texts(kind: _Kind, rules: Rules, root_offsets: Any, roots: Any, rank: Any) -> tuple[_Text, _Text]:
    """Return the rules' bodies and the documents, ready to be read."""
    import cupy

    stride = -(-(1 + 2 * kind.reach) // 4) * 4
    ends = cupy.empty(rules.rule_count * stride, np.uint32)
    if rules.rule_count:
        levels = np.asarray(rules.level_offsets, np.int64)
        widest = int(np.diff(levels).max(initial=1))
        kernel, blocks = _cooperative(cupy.cuda.runtime.getDevice(), "sequences", "fill_ends")
        kernel(
            (max(1, min(blocks, -(-2 * widest // THREADS))),),
            (THREADS,),
            (
                *(device_levels(rules), np.uint32(len(levels) - 1), rules.rule_offsets, rules.symbols, rules.lengths),
                *(np.uint32(rules.terminals), rank, np.uint32(kind.reach), np.uint32(stride), ends),
                cupy.zeros(1, np.uint32),
            ),
        )

    def text(offsets: Any, symbols: Any) -> _Text:
        starts = cupy.zeros(-(-len(symbols) // 32), np.uint32)
        launch_each("sequences", "mark_starts", len(offsets) - 1, offsets, np.uint32(len(offsets) - 1), starts)
        return _Text(offsets, symbols, starts, ends, stride, rules.terminals, rank, kind.reach)

    return text(rules.rule_offsets, rules.symbols), text(root_offsets, roots)


@lru_cache(maxsize=64)
def _cooperative(device: int, family: str, name: str) -> tuple[Any, int]:
    """Return a cooperative kernel and the blocks that can be resident together on the device, the current one."""
    import cupy

    kernel = get_kernel(family, name, cooperative=True)
    resident = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.kernel.ptr, THREADS, 0)
    return kernel, min(resident, 4) * cupy.cuda.Device(device).attributes["MultiProcessorCount"]


def _pack(kind: _Kind, terminals: int, most: int) -> _Packing:
    """Lay out keys in as few columns as hold the words, and digits of weights up to ``most`` beside the last ones."""
    bits = max(1, (terminals - 1).bit_length())
    for columns in itertools.count(1):
        per_column = -(-kind.words // columns)
        last = kind.words - (columns - 1) * per_column
        spare = 64 - last * bits
        if last >= 0 and spare > 0 and (columns == 1 or per_column * bits <= 64):
            digit_bits = _digit_bits(spare, max(1, most.bit_length()))
            if digit_bits:
                return _Packing(kind.words, bits, per_column, columns, spare, digit_bits)
    raise AssertionError


def _digit_bits(spare: int, weight_bits: int) -> int:
    """Return the bits of a digit where digits and their places fit into ``spare`` bits, or 0 for too few."""
    for place_bits in range(7):
        bits = min(spare - place_bits, 32)
        if bits >= min(weight_bits, 4) and bits << place_bits >= weight_bits:
            return bits
    return 0


def _count_batches(
    kind: _Kind, rules: Rules, root_offsets: Any, roots: Any, rank: Any, least: int, top: int | None
) -> tuple[_Packing, list[tuple[Any, Any]]]:
    """Return the packing and the keys and counts of each batch, keys ascending over all of them."""
    import cupy

    words = _write_words(kind, rules, roots, _texts(kind, rules, root_offsets, roots, rank))
    packing = _pack(kind, rules.terminals, words.most)
    given = (rules.rule_offsets, rules.symbols, rules.lengths, root_offsets, roots, rank)
    room = WORKING_MEMORY + _nbytes(given) // 2 - _nbytes((words.words, words.owners, words.weights))
    row = 4 * kind.words + 8
    entry = {1: 17, 2: 34}.get(packing.columns, 8 * packing.columns + 25)
    found: list[tuple[Any, Any]] = []
    written = 0
    total = 0

    def count(low: int, shift: int, buckets: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        nonlocal total
        counts = _count_entries(kind, words, packing, low, shift, buckets)
        total = total or int(counts.sum())  # of everything, at first
        return counts

    def capacity() -> int:
        """Entries that a batch may have: what the result is expected to be lets the memory grow."""
        kept = sum(len(counts) for _, counts in found)
        trusted = EXPECTED * total / max(written, 1) if top is None else 1.0
        expected = 1.5 * row * kept * max(trusted, 1.0)
        held = sum(_nbytes(batch) for batch in found)
        most = max(4 * written, WORKING_MEMORY // entry)  # what was found tells of no more
        return min(int(max(room + expected - held, LEAST_MEMORY) // entry), most)

    for low, high, entries in _ranges(count, capacity, 0, 32 + packing.bits):
        ranks = (np.uint64(low), np.uint64(high))
        columns, taken = cupy.empty((packing.columns, entries), np.uint64), cupy.zeros(1, np.uint64)
        launch_each(
            *("sequences", f"write_{kind.name}", len(words.words), *words.arguments(), *packing.arguments(), *ranks),
            *(columns, np.uint64(entries), taken),
        )
        order, columns = _sort(columns, packing)
        keys, sums = _sum_runs(columns, order, packing)
        del columns, order
        found.append(_chosen(keys, sums, least if least > 1 else 0, top))  # no entry counts nothing
        written += entries
        del keys, sums
    return packing, found


@dataclass(frozen=True, eq=False)
class _Words:
    """The words that windows are made of, see ``write_text`` in ``sequences.cu``."""

    words: Any
    """cupy uint32."""
    of_rules: int
    """Words of rules: the first ones."""
    owners: Any
    """cupy uint32: the rule of each of them."""
    weights: Any
    """cupy uint64 by rule."""
    most: int
    """The largest weight."""
    reach: int

    def arguments(self) -> tuple[Any, ...]:
        """Return what the kernels take."""
        sizes = (np.uint64(len(self.words)), np.uint64(self.of_rules))
        return (self.words, *sizes, self.owners, self.weights, np.uint32(self.reach))


def _write_words(kind: _Kind, rules: Rules, roots: Any, texts: tuple[_Text, _Text], documents: bool = False) -> _Words:
    """Write out what windows are made of; rules that do not occur have none. Owners may tell documents too."""
    import cupy

    if rules.terminals > 1 << 30:
        raise _too_many(rules.terminals, "words of the vocabulary")
    weights = _weigh_rules(rules, roots)
    blocks = [-(-len(text.symbols) // THREADS) for text in texts]
    sizes = cupy.zeros(1 + sum(blocks), np.uint64)  # the largest weight, then words by block
    starts = (1, 1 + blocks[0])
    for text, start, own in zip(texts, starts, (weights, None), strict=True):
        arguments = text.arguments()
        launch_each(
            *("sequences", "measure_text", len(text.symbols), *arguments[:6], arguments[7], own),
            *(text.offsets, np.uint32(len(text.offsets) - 1), sizes[start:], sizes),
        )
    before = exclusive_scan(sizes[1:])
    told = cupy.empty(3, np.uint64)
    launch_each("sequences", "tell", 1, before, np.uint64(blocks[0]), np.uint64(sum(blocks)), sizes, told)
    of_rules, total, most = told.get().tolist()  # synchronize!
    words, owners = cupy.empty(total, np.uint32), cupy.empty(total if documents else of_rules, np.uint32)
    for text, start, own in zip(texts, starts, (weights, None), strict=True):
        launch_each(
            *("sequences", "write_text", len(text.symbols), *text.arguments(), own, text.offsets),
            *(
                np.uint32(len(text.offsets) - 1),
                before[start - 1 :],
                words,
                owners if documents or own is not None else None,
            ),
        )
    return _Words(words, of_rules, owners, weights, max(most, 1), kind.reach)


def _weigh_rules(rules: Rules, roots: Any) -> Any:
    """Return how often each rule occurs, cupy uint64; words are not counted."""
    import cupy

    if not rules.rule_count:
        return cupy.zeros(0, np.uint64)
    narrow = rules.rule_count // 2 + 1
    zeros = cupy.zeros(narrow + rules.rule_count + 1, np.uint64)
    counts, weights, arrived = zeros[:narrow], zeros[narrow:-1], zeros[-1:]
    get_kernel("rule_occurrences", "count_roots")(
        (min(2 * even_blocks(len(roots)), -(-len(roots) // 512)),),
        (512,),
        (roots, np.uint64(len(roots)), np.uint32(rules.terminals), counts),
    )
    kernel, blocks = _cooperative(cupy.cuda.runtime.getDevice(), "rule_occurrences", "weigh_rules")
    kernel(
        (max(1, min(blocks, -(-max(len(rules.symbols), rules.rule_count) // THREADS))),),
        (THREADS,),
        (
            *(device_levels(rules), np.uint32(len(rules.level_offsets) - 1), rules.rule_offsets, rules.symbols),
            *(np.uint32(rules.terminals), counts, weights, arrived),
        ),
    )
    return weights


def _nbytes(arrays: Sequence[Any]) -> int:
    return sum(int(array.nbytes) for array in arrays if array is not None)


def _count_entries(
    kind: _Kind, words: _Words, packing: _Packing, low: int, shift: int, buckets: int
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return how many entries begin with each 2^shift pairs of ranks, from ``low`` on."""
    import cupy

    counts = cupy.zeros(buckets, np.uint64)
    if len(words.words):
        get_kernel("sequences", f"count_{kind.name}")(
            (even_blocks(len(words.words)),),
            (1024,),
            (
                *(*words.arguments(), np.uint32(packing.digit_bits), np.uint64(low)),
                *(np.uint64(low + (buckets << shift)), np.uint32(shift), np.uint32(buckets), counts),
            ),
        )
    told: np.ndarray[Any, np.dtype[np.uint64]] = counts.get()  # synchronize!
    return told.astype(np.int64)


def _ranges(
    count: Callable[[int, int, int], np.ndarray[Any, np.dtype[np.int64]]],
    capacity: Callable[[], int],
    low: int,
    bits: int,
) -> Iterator[tuple[int, int, int]]:
    """Yield ranges of pairs of ranks and their entries; only one pair of ranks may be beyond the capacity."""
    shift = max(0, bits - _BUCKET_BITS)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(count(low, shift, 1 << (bits - shift)))])
    first = 0
    while before[first] < before[-1]:
        most = capacity()
        stop = int(np.searchsorted(before, before[first] + most, side="right")) - 1
        stop = max(stop, int(np.searchsorted(before, before[first], side="right")))
        entries = int(before[stop] - before[first])
        if entries > most and shift > 0:
            stop = int(np.searchsorted(before, before[first], side="right"))
            yield from _ranges(count, capacity, low + (stop - 1 << shift), shift)
        else:
            yield low + (first << shift), low + (stop << shift), entries
        first = stop


def _sort(columns: Any, packing: _Packing) -> tuple[Any, Any]:
    """Return the order of the entries and their columns; None where the columns themselves are in order."""
    return _sort_columns(columns, packing.ranges())


def _sort_columns(columns: Any, ranges: Sequence[tuple[int, int]]) -> tuple[Any, Any]:
    """Sort by some bits of each column, given as their number and the lowest one, the first column counting most."""
    import cupy

    if len(columns) == 1:
        return None, radix_sort(columns[0], None, *ranges[0], overwrite=True).reshape(1, -1)
    if len(columns) == 2:
        last, first = radix_sort(columns[1], columns[0], *ranges[1], overwrite=True)
        del columns
        return None, cupy.stack(radix_sort(first, last, *ranges[0], overwrite=True))
    return _order(columns, ranges), columns


def _order(columns: Any, ranges: Sequence[tuple[int, int]]) -> Any:
    """Return the order of the entries, cupy uint32; the columns stay as they are."""
    import cupy

    order = cupy.arange(columns.shape[1], dtype=np.uint32)
    for column, (bits, first_bit) in reversed(list(zip(columns, ranges, strict=True))):
        if bits:
            order = radix_sort(column.take(order), order, bits, first_bit, overwrite=True)[1]
    return order


def _sum_runs(columns: Any, order: Any, packing: _Packing, slots: Any = None, derived: Any = None) -> tuple[Any, Any]:
    """Return each distinct key, and the sum of its weights; or write its number into ``derived``, at ``slots``."""
    import cupy

    size = columns.shape[1]
    tiles = cupy.empty(-(-size // _RUN_TILE), np.uint64)
    sorted_entries = (columns, np.uint64(size), np.uint32(packing.columns), np.uint32(packing.spare))
    kernel = get_kernel("sequences", "count_runs")
    if size:
        kernel((len(tiles),), (THREADS,), (*sorted_entries, order, np.uint64(size), tiles))
    before = exclusive_scan(tiles)
    runs = int(before[-1])  # synchronize!
    if runs + 1 > _MOST_NUMBERS:
        raise _too_many(runs, "runs of words")
    keys = cupy.empty((packing.columns, runs), np.uint64)
    sums = cupy.zeros(runs, np.uint64) if derived is None else None
    if size:
        get_kernel("sequences", "sum_runs")(
            (len(tiles),),
            (THREADS,),
            (
                *(*sorted_entries, np.uint32(packing.digit_bits), order, np.uint64(size), before),
                *(np.uint64(runs), keys, sums, slots, derived),
            ),
        )
    return keys, sums


def _chosen(keys: Any, counts: Any, least: int, top: int | None) -> tuple[Any, Any]:
    """Leave out the keys that are counted too seldom for the result."""
    if least > 0:
        keys, counts = _compact_keys(keys, counts, counts >= np.uint64(least))
    if top is None or len(counts) <= 2 * top:
        return keys, counts
    return _compact_keys(keys, counts, _may_lead(counts, top))


def _compact_keys(keys: Any, counts: Any, keep: Any) -> tuple[Any, Any]:
    import cupy

    columns = [compact(column, keep) for column in keys]
    return (columns[0].reshape(1, -1) if len(columns) == 1 else cupy.stack(columns)), compact(counts, keep)


def _may_lead(counts: Any, top: int) -> Any:
    """Return cupy bool: which may be among the ``top`` most counted ones, the earlier of equal ones first."""
    import cupy

    zeros = cupy.zeros(1024 + 2, np.uint64)
    get_kernel("select", "survey")(
        *((even_blocks(len(counts)),), (1024,)),
        (counts, None, np.uint32(len(counts)), np.uint64(1), zeros, zeros[1024:]),
    )
    steps = zeros[:1024].view(np.uint32).get()  # synchronize!
    above = np.cumsum(steps[::-1], dtype=np.int64)[::-1]  # counted at least as the step
    step = int(np.flatnonzero(above >= top)[-1])
    lowest = step if step < 32 else (32 + step % 32) << (step // 32 - 1)
    if step >= 64:  # many counts share the step
        return counts >= np.uint64(lowest)
    equal = counts == np.uint64(lowest)
    left = top - int(above[step + 1])
    return (counts > np.uint64(lowest)) | (equal & (exclusive_scan(equal)[:-1] < left))


def _ranked(found: list[tuple[Any, Any]], packing: _Packing, rank: Any, top: int | None) -> tuple[Any, Any]:
    """Return words and counts by count falling, equal ones by key. Takes what was found out of the list."""
    import cupy

    if not any(len(counts) for _, counts in found):
        return _nothing(packing.words)
    if len(found) == 1:
        keys, counts = found.pop()
    else:
        keys = cupy.concatenate([keys for keys, _ in found], axis=1)
        found[:] = [(None, counts) for _, counts in found]
        counts = cupy.concatenate([counts for _, counts in found])
        found.clear()
    most = int(counts.max())  # synchronize!
    bits = most.bit_length()
    narrow = bits <= 32
    falling = cupy.empty(len(counts), np.uint32) if narrow else np.uint64(most) - counts
    order = cupy.empty(len(counts), np.uint32)
    size = np.uint64(len(counts))
    launch_each("sequences", "fall", len(counts), counts, size, np.uint64(most), falling if narrow else None, order)
    del counts
    falling, order = radix_sort(falling, order, bits, overwrite=True)
    falling, order = falling[:top], order[:top]
    words = _read_keys(keys, packing, order, _words_by_rank(rank))
    del keys, order
    return words, cupy.subtract(np.uint64(most), falling, dtype=np.uint64)


def _words_by_rank(rank: Any) -> Any:
    import cupy

    if rank is None:
        return None
    words = cupy.empty(len(rank), np.uint32)
    launch_each("sequences", "invert", len(rank), rank, np.uint32(len(rank)), words)
    return words


def _read_keys(keys: Any, packing: _Packing, order: Any, words_by_rank: Any) -> Any:
    import cupy

    size = keys.shape[1] if order is None else len(order)
    words = cupy.empty((size, packing.words), np.uint32)
    if words.size:
        get_kernel("sequences", "read_keys")(
            (4 * even_blocks(words.size),),
            (THREADS,),
            (
                *(keys, np.uint64(keys.shape[1]), order, np.uint64(size), np.uint32(packing.words)),
                *(np.uint32(packing.bits), np.uint32(packing.per_column), np.uint32(packing.columns)),
                *(words_by_rank, words),
            ),
        )
    return words


@dataclass(frozen=True, eq=False)
class _Derived:
    """Rules whose terminals are windows, numbered as their keys ascend."""

    rules: Rules
    root_offsets: Any
    roots: Any
    keys: Any
    packing: _Packing


def _derive(kind: _Kind, rules: Rules, root_offsets: Any, roots: Any, rank: Any) -> _Derived:
    """Rewrite rules and documents over windows: a body's own ones, and the children that hold some."""
    import cupy

    packing = _pack(kind, rules.terminals, 1)
    texts = _texts(kind, rules, root_offsets, roots, rank)
    places = [_places(kind, text) for text in texts]
    body_offsets, document_offsets = (p[text.offsets] for p, text in zip(places, texts, strict=True))
    body_symbols = int(places[0][-1])  # synchronize!
    all_symbols = body_symbols + int(places[1][-1])  # synchronize!
    if all_symbols > _MOST_NUMBERS:
        raise _too_many(all_symbols, "places of windows")
    places[1] += body_symbols
    entries = sum(int(_measure(kind, text, _MOST_NUMBERS).sum()) for text in texts)  # synchronize!
    columns, slots = cupy.empty((packing.columns, entries), np.uint64), cupy.empty(entries, np.uint32)
    taken = cupy.zeros(1, np.uint64)
    for text, text_places in zip(texts, places, strict=True):
        launch_each(
            *("sequences", f"place_{kind.name}", len(text.symbols), *text.arguments(), *packing.arguments()),
            *(columns, np.uint64(entries), taken, text_places, slots),
        )
    if packing.columns == 1:
        bits, first_bit = packing.sorted_bits(0)
        column, slots = radix_sort(columns[0], slots, bits, first_bit, overwrite=True)
        columns, order = column.reshape(1, -1), None
    else:
        order = _order(columns, packing.ranges())
    symbols = cupy.empty(all_symbols, np.uint32)
    keys, _ = _sum_runs(columns, order, packing, slots, symbols)
    del columns, order, slots
    if keys.shape[1] + rules.rule_count > _MOST_NUMBERS:
        raise _too_many(keys.shape[1] + rules.rule_count, "runs of words and rules")
    for text, text_places in zip(texts, places, strict=True):
        launch_each(
            *("sequences", "write_children", len(text.symbols), text.symbols, np.uint64(len(text.symbols))),
            *(text.ends, np.uint32(text.stride), np.uint32(text.terminals), np.uint32(kind.least)),
            *(np.uint32(keys.shape[1]), text_places, symbols),
        )
    derived = Rules(
        terminals=keys.shape[1],
        rule_offsets=body_offsets,
        symbols=symbols[:body_symbols],
        level_offsets=rules.level_offsets,
        lengths=kind.lengths(rules.lengths),
    )
    return _Derived(derived, document_offsets, symbols[body_symbols:], keys, packing)


def _places(kind: _Kind, text: _Text) -> Any:
    """Return where each position's symbols start in the derived bodies, cupy int64, one more than positions."""
    return exclusive_scan(_measure(kind, text, kind.least))


def _measure(kind: _Kind, text: _Text, least: int) -> Any:
    """Return the windows of each position, and one more where its child has at least so many words, cupy uint32."""
    import cupy

    sizes = cupy.empty(len(text.symbols), np.uint32)
    launch_each("sequences", f"measure_{kind.name}", len(sizes), *text.arguments(), np.uint32(least), sizes)
    return sizes


def _list_documents(
    kind: _Kind, packing: _Packing, rules: Rules, root_offsets: Any, roots: Any, rank: Any
) -> tuple[Any, Any, Any, Any] | None:
    """Return the keys, and where their documents begin, the documents, ascending, and how often each holds the key.

    The documents of a rule are those of its windows. Documents' own windows need no counting by document at all.
    None where counts are beyond 32 bits.
    """
    import cupy

    texts = _texts(kind, rules, root_offsets, roots, rank)
    words = _write_words(kind, rules, roots, texts, documents=True)
    found = cupy.empty(len(words.words), np.uint8)
    marked = cupy.zeros(rules.rule_count, np.uint8)
    size, of_rules, reach = np.uint64(len(found)), np.uint64(words.of_rules), np.uint32(kind.reach)
    text = (words.words, size, of_rules, words.owners, reach)
    launch_each("sequences", "find_windows", len(found), *text, found, marked)
    occurring, occurring_offsets, occurring_roots = _mark_rules(kind, rules, texts, marked)
    list_offsets, documents, counts = count_by_terminal(
        occurring, occurring_offsets, occurring_roots, "top_down", counted=True
    )
    del occurring, occurring_offsets, occurring_roots, texts, marked
    if len(counts) and int(counts.max()) >> 32:  # synchronize!
        return None
    sizes = cupy.empty(len(found), np.uint32)
    launch_each("sequences", "count_documents", len(found), found, size, of_rules, words.owners, list_offsets, sizes)
    places = exclusive_scan(sizes)
    del sizes
    of_lists, total = (int(count) for count in places[[words.of_rules, len(found)]].get())  # synchronize!
    columns = cupy.empty((packing.columns + 1, total), np.uint64)
    plain = (*text, *packing.arguments()[:4])
    launch_each(
        *("sequences", "write_own_postings", len(found) - words.of_rules, *plain, found, places),
        *(columns, np.uint64(total)),
    )
    launch_each(
        *("sequences", "write_rule_postings", of_lists, *plain, expand(places[: words.of_rules + 1], of_lists)),
        *(np.uint64(of_lists), places, list_offsets, documents, counts, columns, np.uint64(total)),
    )
    del places, found, words, text, plain, documents, counts, list_offsets
    ranges = [(packing.sorted_bits(column)[0], 0) for column in range(packing.columns)]
    by_document = _Packing(0, 0, 0, packing.columns + 1, 32, 32)
    order, columns = _sort_columns(columns, [*ranges, ((len(root_offsets) - 2).bit_length(), 32)])
    pairs, counts = _sum_runs(columns, order, by_document)
    del columns, order
    lists = cupy.empty(len(counts), np.uint32)
    keys, _ = _sum_runs(pairs[:-1], None, _Packing(0, 0, 0, packing.columns, 0, 0), None, lists)
    offsets = cupy.zeros(keys.shape[1] + 1, np.int64)
    launch_each("sequences", "find_lists", len(lists), lists, np.uint64(len(lists)), np.uint32(keys.shape[1]), offsets)
    return keys, offsets, pairs[-1].astype(np.uint32), counts


def _mark_rules(kind: _Kind, rules: Rules, texts: tuple[_Text, _Text], marked: Any) -> tuple[Rules, Any, Any]:
    """Return rules over one terminal for each rule that has windows: who holds it holds the rule."""
    import cupy

    found = []
    for text in texts:
        found.append(cupy.empty(len(text.symbols), np.uint8))
        launch_each(
            *("sequences", "find_children", len(text.symbols), text.symbols, np.uint64(len(text.symbols)), text.ends),
            *(np.uint32(text.stride), np.uint32(text.terminals), np.uint32(kind.least), found[-1]),
        )
    places = [exclusive_scan(children) for children in found]
    markers = exclusive_scan(marked)
    offsets = places[0][rules.rule_offsets] + markers
    root_offsets = places[1][texts[1].offsets]
    ends = cupy.stack([offsets[-1], root_offsets[-1]]).get()  # synchronize!
    symbols, roots = (cupy.empty(int(end), np.uint32) for end in ends)
    launch_each("sequences", "mark_rules", rules.rule_count, np.uint32(rules.rule_count), marked, offsets, symbols)
    for text, children, before, shift, target in zip(
        texts, found, places, (markers, None), (symbols, roots), strict=True
    ):
        launch_each(
            *("sequences", "keep_children", len(text.symbols), text.symbols, np.uint64(len(text.symbols))),
            *(text.offsets, np.uint32(len(text.offsets) - 1), np.uint32(text.terminals)),
            *(np.uint32(rules.rule_count), children, before, shift, target),
        )
    # each of them has a window of its own: there are no more of them than windows
    lengths = kind.lengths(rules.lengths)
    occurring = Rules(rules.rule_count, offsets, symbols, rules.level_offsets, lengths)
    return occurring, root_offsets, roots


def _order_lists(lists: Any, list_count: int, documents: Any, counts: Any) -> None:
    """Order each list of documents by count falling, in place; they come ascending."""
    import cupy

    disordered = cupy.zeros(list_count, np.uint8)
    launch_each("sequences", "mark_disordered", len(lists), lists, counts, np.uint64(len(lists)), disordered)
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
