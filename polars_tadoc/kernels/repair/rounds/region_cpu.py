"""Many rounds of batch RePair in one call of machine code: threads begin once, and share the steps of all rounds.

What a round works on follows from its record, which is complete before the round begins and never changes afterwards:
a thread that comes late reads the records, finds no tasks left, and follows the others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from polars_tadoc.kernels.repair import pairs_cpu as counting
from polars_tadoc.kernels.repair.rounds import rounds_cpu as rounds
from polars_tadoc.kernels.repair.rounds.rounds_cpu import Buckets, Chosen, Pairs, Positions, Rules
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.runtime.addresses import bit_length, move
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.process.shared_tasks import all_done, done, take

STEPS = rounds.FIND_STEPS + rounds.REPLACE_STEPS + 2
"""Steps of a round."""

FIELDS = 9
SIZE, ALIVE, AT, KNOWN, STALLED, STATE, STALLS, AFTER, UNINDEXED = range(FIELDS)
"""A round's record: number of symbols; of alive positions; which memory has them, 0 or 1; number of rules; whether the
round before made none; its state; whether it makes none itself; number of rules after it; the first one that
is not in the hash table."""

UNKNOWN, RUNS, ENDS, GROWS, WAITS = range(5)
"""State of a round: not known yet; it runs; it is the last one; the hash table must grow before it replaces
pairs; it does not run in this call."""

POSITIONS_PER_LIST, MOST_LIST_BITS = 10, 9
"""Bits of the alive positions for each bucket of listed pairs, and most bits of such a bucket."""


class Sizing(NamedTuple):
    """How the work of rounds is cut."""

    tasks: int
    """Most tasks of a step."""
    threads: int
    per_task: int
    """Fewest positions of a task."""
    per_thread: int
    """Positions for each additional thread."""
    per_bucket: int
    """Positions for each additional bucket of pairs."""
    buckets: int
    """Most buckets that positions ask for."""
    most_bits: int
    """Bits of as many buckets as there may be, so that keys have 32 bits."""
    entry_bits: tuple[int, int]
    """Fewest and most bits of an entry in an item."""
    to_spread: int
    """Fewest rules that a task adds to the hash table."""
    is_apart: bool
    """Whether shares are rewritten to other memory."""


class Limits(NamedTuple):
    """When a call returns, apart from a last round."""

    alive: int
    """Positions that make no round any more."""
    sparse: int
    """A round waits if there are as many positions for each alive one; 0: none does."""
    threads: int
    """Threads of the call: a round of which half of them are enough waits."""
    work: int
    """Alive positions, and eighths of others, after which a round waits."""


class Room(NamedTuple):
    """Memory of all rounds' lists."""

    bucket_sizes: Int64
    bucket_places: UInt64
    bucket_edges: Int64
    list_sizes: Int64
    list_places: UInt64
    list_edges: Int64
    sums: Int64
    """int64[2, tasks, 2]: of the buckets, and of the lists."""
    bases: UInt64
    stops: UInt64
    free: UInt64
    counts: Int64
    new: Int64
    selected: UInt8
    firsts: Int64
    ends: Int64
    written: Int64
    table: UInt64
    rules: UInt32
    chosen: UInt32

    @classmethod
    def of(cls, sizing: Sizing, table: UInt64, rules: UInt32, chosen: UInt32) -> Room:
        """Allocate it; untouched memory is never allocated."""
        tasks, buckets, lists = sizing.tasks, max(sizing.buckets, 1 << sizing.most_bits), 1 << MOST_LIST_BITS
        return cls(
            bucket_sizes=np.empty(tasks * buckets, np.int64),
            bucket_places=np.empty(tasks * buckets, np.uint64),
            bucket_edges=np.empty(buckets + 1, np.int64),
            list_sizes=np.empty(tasks * lists, np.int64),
            list_places=np.empty(tasks * lists, np.uint64),
            list_edges=np.empty(lists + 1, np.int64),
            sums=np.empty((2, tasks, 2), np.int64),
            bases=np.empty(buckets, np.uint64),
            stops=np.empty(buckets, np.uint64),
            free=np.zeros(1, np.uint64),
            counts=np.empty(tasks, np.int64),
            new=np.empty(tasks, np.int64),
            selected=np.empty(tasks, np.uint8),
            firsts=np.empty(tasks + 1, np.int64),
            ends=np.empty((tasks, 3), np.int64),
            written=np.empty((tasks, 4), np.int64),
            table=table,
            rules=rules,
            chosen=chosen,
        )


@njit
def split_of(alive: int, symbols: int, sizing: Sizing) -> counting.Split:
    """Split pairs of numbers below ``symbols``: a bucket's keys fit a core's cache, and 32 bits if they can."""
    bits = max(bit_length(nb.uint64(min(alive // sizing.per_bucket, sizing.buckets))) - 1, 0)
    width = bit_length(nb.uint64(symbols))
    if 2 * width - 32 <= sizing.most_bits:
        bits = max(bits, 2 * width - 32)
    width = max(width, (bits + 1) // 2)
    key_bits = nb.uint64(2 * width - bits)
    return counting.Split(nb.uint64(width), key_bits, (nb.uint64(1) << key_bits) - nb.uint64(1), nb.uint64(63 - bits))


@njit
def tasks_of(positions: int, sizing: Sizing) -> Any:
    """Return the number of tasks of a pass: more than threads, as alive positions are unevenly distributed."""
    return max(nb.int64(1), min(sizing.tasks, positions // sizing.per_task))


@njit
def threads_of(size: int, alive: int, sizing: Sizing) -> Any:
    """Return how many threads a round is worth."""
    return min(sizing.threads, 1 + (alive + size // 8) // sizing.per_thread)


@njit
def _buckets(sizes: Int64, places: UInt64, edges: Int64, sums: Int64, tasks: int, buckets: int) -> Buckets:
    room, parts = tasks * buckets, min(tasks, buckets)
    shape = (tasks, buckets)
    return Buckets(sizes[:room].reshape(shape), places[:room].reshape(shape), edges[: buckets + 1], sums[:parts])


@njit
def _settle(own: Any, lists: Buckets, new: Any, selected: Any, firsts: Any, places: UInt32) -> None:
    """Number the first new rule of each task, and decide whether the round runs on."""
    firsts[0] = own[KNOWN]
    for k in range(len(new)):
        firsts[k + 1] = firsts[k] + new[k]
    own[AFTER], own[UNINDEXED] = firsts[len(new)], own[KNOWN]
    own[STALLS] = lists.edges[-1] == 0
    any_selected = False
    for k in range(len(selected)):
        any_selected |= selected[k] != 0
    if own[STALLS] != 0 and (own[STALLED] != 0 or not any_selected):
        own[STATE] = ENDS
    elif 3 * own[AFTER] > 2 * len(places):
        own[STATE] = GROWS


@njit
def _join(made: Positions, written: Any, following: Any) -> None:
    """Close the gaps between shares and correct the states at their seams; write the size and the alive positions."""
    symbols, state, classes = made.symbols, made.state, made.classes
    size = alive = nb.int64(0)
    for k in range(len(written)):
        first, kept = written[k, 0], written[k, 1]
        if size > 0 and kept > 0:  # the pair across the seam
            if symbols[first] == SEPARATOR:
                alive -= nb.int64(state[size - 1] != counting.DEAD)
                state[size - 1] = counting.DEAD
            elif written[k, 3] != 0 and symbols[size - 1] != SEPARATOR and state[size - 1] == counting.DEAD:
                state[size - 1] = counting.ALIVE
                alive += 1
        if size != first and kept > 0:
            move(symbols, size, first, kept)
            move(state, size, first, kept)
            if len(classes) > 0:
                move(classes, size, first, kept)
        size += kept
        alive += written[k, 2]
    state[size : (size + 15) // 8 * 8] = counting.DEAD
    following[SIZE], following[ALIVE] = size, alive


@polled
@njit
def run_rounds(
    progress: Int64,
    record: Int64,
    first: Positions,
    second: Positions,
    items: Any,
    listed: tuple[UInt64, UInt64],
    room: Room,
    rules: Rules,
    vocabulary_size: int,
    sizing: Sizing,
    limits: Limits,
    resumes: bool,
) -> None:
    """Run rounds until one ends, waits, or needs a larger hash table.

    Parameters
    ----------
    progress
        As of :func:`.shared_tasks.share_tasks`, with ``STEPS`` for each round.
    record
        int64[most rounds + 1, FIELDS]: initially zero but for the first round's; becomes that of each round.
    first, second
        The two memories of the sequence.
    items
        Memory for items of 32 or 64 bits where the sequence is in the first memory, and in the second.
    listed
        Memory for listed pairs likewise.
    room
        Memory of the rounds' lists.
    rules, vocabulary_size
        The rules so far, and the symbol of the first one.
    sizing, limits
        How work is cut, and when to return.
    resumes
        Whether pairs of the first round were found in a call before, which ended because the hash table was too small.

    """
    began, work = interrupts(), nb.int64(0)
    for number in range(len(record) - 1):
        own, following, step = record[number], record[number + 1], number * STEPS
        size, alive, is_first = own[SIZE], own[ALIVE], own[AT] == 0
        here, spare = (first, second) if is_first else (second, first)
        split = split_of(alive, vocabulary_size + own[KNOWN], sizing)
        blocks = (size + 7) // 8  # eight positions at a time, so that dead ranges cost an eighth
        many = min(tasks_of(max(alive, size // 4), sizing), blocks)
        shares = np.empty(many + 1, np.int64)
        for k in range(many + 1):
            shares[k] = k * blocks // many
        tasks = tasks_of(alive, sizing)
        list_bits = min(max(bit_length(nb.uint64(alive)) - POSITIONS_PER_LIST, 0), MOST_LIST_BITS)
        shift = max(bit_length(nb.uint64(size)) - list_bits, 0)
        sums, parts = room.sums, nb.int64(1) << nb.int64(nb.uint64(63) - split.shift)
        buckets = _buckets(room.bucket_sizes, room.bucket_places, room.bucket_edges, sums[0], many, parts)
        lists = _buckets(room.list_sizes, room.list_places, room.list_edges, sums[1], tasks, 1 << list_bits)
        # neighbours are never selected both. Shares begin at the same places in every round, so that memory is reused
        each = (len(room.chosen) - counting.AHEAD - 4 * sizing.tasks + 4 * many - 1) // (4 * many)
        chosen = Chosen(room.chosen, 4 * each, room.counts[:many])
        bases, stops = room.bases[:parts], room.stops[:parts]
        pairs = Pairs(room.table, bases, stops, room.free, room.rules, listed[0] if is_first else listed[1])
        new, firsts = room.new[:tasks], room.firsts[: tasks + 1]
        if number > 0 or not resumes:
            if not rounds.find_pairs(
                progress,
                step,
                began,
                here,
                size,
                shares,
                split,
                buckets,
                items[0] if is_first else items[1],
                spare.classes,
                sizing.entry_bits,
                tasks,
                pairs,
                chosen,
                lists,
                shift,
                rules,
                vocabulary_size,
                new,
                room.selected[:tasks],
            ):
                return
            last = step + STEPS - 2
            if take(progress, last) == 0:
                _settle(own, lists, new, room.selected[:tasks], firsts, rules.places)
                done(progress, last)
            if not all_done(progress, last, 1, began) or own[STATE] != RUNS:
                return
        is_apart = many > 1 and sizing.is_apart
        made, fresh = spare if is_apart else here, own[AFTER] - own[UNINDEXED]
        if not rounds.replace_pairs(
            progress,
            step + rounds.FIND_STEPS,
            began,
            here,
            size,
            shares,
            pairs,
            chosen,
            lists,
            rules,
            vocabulary_size,
            firsts,
            own[UNINDEXED],
            max(1, min(2 * sizing.threads, fresh // sizing.to_spread)),
            own[STALLS] != 0,
            made,
            is_apart,
            room.ends[:many],
            room.written[:many],
        ):
            return
        work += alive + size // 8
        last = step + STEPS - 1
        if take(progress, last) == 0:
            _join(made, room.written[:many], following)
            room.free[0] = 0
            following[AT] = own[AT] ^ nb.int64(is_apart)
            following[KNOWN], following[STALLED] = own[AFTER], own[STALLS]
            size, alive = following[SIZE], following[ALIVE]
            then = split_of(alive, vocabulary_size + own[AFTER], sizing)
            waits = alive <= limits.alive or (limits.sparse > 0 and alive < size // max(limits.sparse, 1))
            waits |= number + 2 == len(record) or work >= limits.work
            waits |= 2 * threads_of(size, alive, sizing) <= limits.threads
            waits |= (then.key_bits > nb.uint64(32)) != (split.key_bits > nb.uint64(32))
            waits |= then.key_bits > nb.uint64(32) and following[AT] != 0
            following[STATE] = WAITS if waits else RUNS
            done(progress, last)
        if not all_done(progress, last, 1, began) or following[STATE] != RUNS:
            return
