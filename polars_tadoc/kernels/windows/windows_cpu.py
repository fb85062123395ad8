"""Windows of documents on the CPU: repeated ones, those of a reference, and the passages in them."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from polars_tadoc.kernels.host.passages import stretches
from polars_tadoc.kernels.host.passages import windows as kernels
from polars_tadoc.kernels.primitives.lists import filled
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

BUCKET = 1 << 15
"""Windows of a bucket, about: its table fits in a processor's second cache (about 0.8 MB)."""

MOST_BUCKETS = 1 << 11
"""Maximum number of buckets that are written side by side."""

PASS_SHARE = 3
"""A pass holds at most a third of all windows, or :data:`LEAST_PASS`."""

LEAST_PASS = 1 << 20
"""Windows that one pass may always hold."""

LEAST_FILTERED = 6
"""Least words of windows for which it pays to look for those that cannot occur again."""

SLOTS_A_STRETCH = 16
"""Slots of the filter for each stretch; one in as many single windows, at most, is not recognised."""

ALL_BITS = (1 << 64) - 1

_WRONG_ROOM = 1 << 10


@array_dataclass
class _Found:
    """Words, and the first places and counts of their windows."""

    words: UInt32
    starts: Int64
    length: int
    first: UInt32
    counts: UInt32


def find_windows(words: UInt32, starts: Int64, length: int, mask: int = ALL_BITS) -> tuple[UInt32, UInt32]:
    """Find the first occurrence and the count of every window; as :meth:`WindowKernels.find_windows`."""
    first = filled(len(words), kernels.NONE, np.uint32)
    counts = np.zeros(len(words), np.uint32)
    found = _Found(words, starts, length, first, counts)
    total = int(np.maximum(np.diff(starts) - length, 0).sum())
    if total == 0:
        return first, counts
    chunks = weighted_chunks(starts)
    drawn, bits = kernels.draw_fingerprints(length), np.uint64(mask)

    def link(chunk: tuple[int, int]) -> None:
        a, b = chunk
        slots = 1 << min(max(int(starts[b] - starts[a]) // kernels.ANCHORS, 1 << 8).bit_length(), 21)
        kernels.link(words, starts, a, b, length, *drawn, bits, np.zeros(slots, np.uint64), first, counts)

    map_parallel(link, chunks)
    left = _set_single(found, chunks) if length >= LEAST_FILTERED else total
    bucket_bits = max(left // BUCKET, 1).bit_length() - 1
    shift = np.uint64(64 - bucket_bits if bucket_bits else 63)
    sizes = np.zeros((len(chunks), max(1 << bucket_bits, 2)), np.int64)

    def count(t: int) -> None:
        kernels.count_buckets(words, starts, *chunks[t], length, *drawn, bits, shift, first, sizes[t])

    map_parallel(count, range(len(chunks)))
    for a, b in _passes(sizes.sum(axis=0), max(total // PASS_SHARE, LEAST_PASS)):
        _group(found, chunks, sizes[:, a:b], (*drawn, bits, shift), a)
    wrong = np.empty((len(chunks), _WRONG_ROOM), np.int64)

    def resolve(t: int) -> int:
        a, b = chunks[t]
        return int(kernels.resolve(words, starts, a, b, length, first, counts, wrong[t]))

    amounts = map_parallel(resolve, range(len(chunks)))
    if any(amounts):
        _regroup(found, [own[:count] for own, count in zip(wrong, amounts, strict=True)], max(amounts))
    return first, counts


def _set_single(found: _Found, chunks: list[tuple[int, int]]) -> int:
    """Make windows that cannot occur again their own first occurrences; return an upper bound of the others."""
    grams = stretches.draw_grams(found.length)
    some = map_parallel(lambda chunk: stretches_of(found.words, found.starts, chunk, grams, found.first), chunks)
    slots = filter_for(sum(len(keys) for _, _, keys in some))
    for _, _, keys in some:
        stretches.mark(keys, stretches.ROTATION, slots)
    return sum(
        map_parallel(
            lambda own: int(stretches.set_single(slots, stretches.ROTATION, *own, found.first, found.counts)), some
        )
    )


def stretches_of(
    words: UInt32, starts: Int64, chunk: tuple[int, int], grams: stretches.Grams, first: UInt32
) -> tuple[UInt32, UInt32, UInt64]:
    """Return place, windows and hash of the stretches of some rows (:func:`stretches.find_stretches`)."""
    most = int(starts[chunk[1]] - starts[chunk[0]])
    places, sizes, keys = np.empty(most, np.uint32), np.empty(most, np.uint32), np.empty(most, np.uint64)
    ring = np.empty(1 << (grams.length - grams.gram + 1).bit_length(), np.uint64)
    made = stretches.find_stretches(words, starts, *chunk, *grams, first, ring, places, sizes, keys)
    return places[:made], sizes[:made], keys[:made]


def filter_for(stretches_: int) -> UInt64:
    """Return an empty filter."""
    slots = SLOTS_A_STRETCH * stretches_ // stretches.SLOTS_A_NUMBER
    return np.zeros(1 << max(slots - 1, 0).bit_length(), np.uint64)


def _passes(sizes: Int64, most: int) -> list[tuple[int, int]]:
    """Cut buckets into ranges that hold at most ``most`` windows, or one bucket."""
    edges, held = [0], 0
    for bucket, size in enumerate(sizes.tolist()):
        if bucket > edges[-1] and (held + size > most or bucket - edges[-1] == MOST_BUCKETS):
            edges.append(bucket)
            held = 0
        held += size
    return list(zip(edges, [*edges[1:], len(sizes)], strict=True))


def _group(
    found: _Found,
    chunks: list[tuple[int, int]],
    sizes: Int64,
    fingerprint: tuple[np.uint64, ...],
    first_bucket: int,
) -> None:
    """Group the windows of some buckets."""
    buckets = sizes.shape[1]
    before = np.append(0, np.cumsum(sizes.T.reshape(-1)))  # bucket by bucket, in each one thread by thread
    bases = np.ascontiguousarray(before[:-1].reshape(buckets, len(chunks)).T)
    cursors = bases.copy()
    fingerprints, places = np.empty(before[-1], np.uint64), np.empty(before[-1], np.uint32)

    def scatter(t: int) -> None:
        a, b = chunks[t]
        kernels.scatter(
            found.words,
            found.starts,
            a,
            b,
            found.length,
            *fingerprint,
            first_bucket,
            found.first,
            found.counts,
            cursors[t],
            np.zeros(buckets, np.uint8),
            np.empty(buckets * kernels.STAGED, np.uint64),
            np.empty(buckets * kernels.STAGED, np.uint32),
            fingerprints,
            places,
        )

    map_parallel(scatter, range(len(chunks)))

    def group(some: tuple[int, int]) -> None:
        a, b = some
        most = int(sizes[:, a:b].sum(axis=0).max(initial=0))
        slots = np.empty(1 << max(2 * most, 8).bit_length(), np.uint32)
        totals = np.empty(most, np.uint32)
        kernels.group(bases, cursors, a, b, fingerprints, places, slots, totals, found.first, found.counts)

    map_parallel(group, weighted_chunks(before[:: len(chunks)]))


def _regroup(found: _Found, wrong: list[Int64], most: int) -> None:
    """Group windows by their words where different windows have equal fingerprints; keeps digests, not words."""
    first, counts, words, length = found.first, found.counts, found.words, found.length
    if most > _WRONG_ROOM:  # not all are listed
        members = np.flatnonzero(first != kernels.NONE)
    else:
        roots = np.unique(first[np.concatenate(wrong)])
        members = np.flatnonzero(np.isin(first, roots) & (first != kernels.NONE))
    places: dict[bytes, int] = {}
    totals: dict[int, int] = {}
    for place in members.tolist():
        own = words[place : place + length]
        key = blake2b(own.data, digest_size=16).digest()
        while (root := places.setdefault(key, place)) != place and not np.array_equal(words[root : root + length], own):
            key += b"+"  # another window has this digest
        first[place] = root
        totals[root] = totals.get(root, 0) + 1
    counts[list(totals)] = list(totals.values())
