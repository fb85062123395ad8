"""Windows and passages on the device; the protocol describes the calls.

All windows are fingerprinted, and fingerprints are sorted with their places. Each window is linked to the one before it
in its group, and compared with that one: next to a window whose link is next to this one's, one word tells. So copies
and periodic texts cost one comparison for each window. If any windows differ from what they are linked to, new
fingerprints are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polars_tadoc.errors import DeviceMemoryError, EngineUnavailableError
from polars_tadoc.kernels.host.passages.windows import NONE, Fingerprints, draw_fingerprints
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan, radix_sort
from polars_tadoc.kernels.windows.protocol import Part
from polars_tadoc.kernels.windows.windows_cpu import ALL_BITS
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32
from polars_tadoc.runtime.device import device_errors, launch_each

MOST_WINDOWS = (1 << 30) - 1
"""Maximum number of windows: keys are sorted at once, and more windows may share fingerprints."""

DRAWS = 8
"""Fingerprints are drawn at most this many times: among 2^30 windows, two that differ have equal ones once in four
draws, among 2^27 once in 250."""

LEAST_EACH = 32
"""Least number of adjacent windows of a thread: the first is hashed as a whole, the others are rolled."""


def lay_words(starts: Int64, parts: Sequence[Part]) -> Any:
    """Write the documents of some parts; as :meth:`WindowKernels.lay_words`."""
    with device_errors(f"laying out {starts[-1]:,} words"):
        import cupy

        words = _nones(int(starts[-1]))
        for offsets, ids, image, documents in parts:
            given = (
                offsets,
                ids,
                len(ids),
                cupy.asarray(image),
                cupy.asarray(starts[documents]),
                len(documents),
                words,
            )
            launch_each("passage_windows", "lay_words", len(ids), *given)
        return words


def map_words(words: Any, image: UInt32) -> Any:
    """Renumber words; as :meth:`WindowKernels.map_words`."""
    with device_errors(f"renumbering {len(words):,} words"):
        import cupy

        return cupy.asarray(np.append(image, NONE))[cupy.minimum(words, np.uint32(len(image)))]


def find_windows(words: Any, starts: Int64, length: int, mask: int = ALL_BITS) -> tuple[Any, Any]:
    """Find the first occurrence and the count of every window; as :meth:`WindowKernels.find_windows`.

    Raises
    ------
    DeviceMemoryError
        Too many windows, or the device is out of memory.
    EngineUnavailableError
        The device computes wrongly, or failed.

    """
    with device_errors(f"finding windows of {len(words):,} words"):
        import cupy

        first, counts = _nones(len(words)), cupy.zeros(len(words), np.uint32)
        before = running_sum(np.maximum(np.diff(starts) - length, 0))
        if before[-1] == 0:
            return first, counts
        if before[-1] > MOST_WINDOWS:
            raise DeviceMemoryError(
                f'engine="gpu": {before[-1]:,} windows are too many for one sort; use engine="cpu", or fewer rows'
            )
        layout = cupy.asarray(starts), cupy.asarray(before), len(starts) - 1, int(before[-1])
        for _ in range(DRAWS):
            previous = _group(words, layout, length, mask, first, counts)
            wrong = cupy.zeros(1, np.uint32)
            launch_each("passage_windows", "verify_windows", len(words), words, previous, len(words), length, wrong)
            if int(wrong[0]) == 0:  # synchronize!
                return first, counts
            mask = ALL_BITS
        raise EngineUnavailableError(
            f'engine="gpu": different windows had equal fingerprints {DRAWS} times, {int(wrong[0]):,} of them the last '
            'time: the device computes wrongly; use engine="cpu"'
        )


def _group(words: Any, layout: tuple[Any, Any, int, int], length: int, mask: int, first: Any, counts: Any) -> Any:
    """Fill the first place and the count of each fingerprint; return the place before each in its group, or NONE."""
    import cupy

    total, hashed = layout[-1], _hashed(length, draw_fingerprints(length))
    fingerprints, places = cupy.empty(total, np.uint64), cupy.empty(total, np.uint32)
    _launch_windows("fingerprint_windows", words, layout, hashed, mask, fingerprints, places)
    fingerprints, places = radix_sort(fingerprints, places, overwrite=True)
    heads = cupy.empty(total, np.uint8)
    launch_each("passage_windows", "mark_groups", total, fingerprints, total, heads)
    del fingerprints
    before = exclusive_scan(heads)
    groups = int(before[-1])  # synchronize!
    previous = _nones(len(words))
    of = cupy.empty(groups, np.uint32), cupy.empty(groups + 1, np.uint32)
    launch_each("passage_windows", "link_windows", total, places, heads, before, total, previous, *of)
    launch_each("passage_windows", "set_first", total, places, before, total, *of, first, counts)
    return previous


def find_known(
    words: Any, starts: Int64, fingerprints: Fingerprints, length: int, reference: tuple[Any, Any, Any, Any]
) -> Any:
    """Find each window in a reference; as :meth:`WindowKernels.find_known`."""
    with device_errors(f"finding windows of {len(words):,} words in a reference"):
        import cupy

        found = _nones(len(words))
        before = running_sum(np.maximum(np.diff(starts) - length, 0))
        if before[-1]:
            slots, bits, *others = reference
            layout = cupy.asarray(starts), cupy.asarray(before), len(starts) - 1, int(before[-1])
            table = (slots, len(slots) - 1, bits, 64 * len(bits) - 1, *others)
            _launch_windows("find_known", words, layout, _hashed(length, fingerprints), *table, found)
        return found


def _hashed(length: int, fingerprints: Fingerprints) -> tuple[int, ...]:
    """Return length, windows of a thread, base, power and key, as kernels take them."""
    base, power, key = map(int, fingerprints)
    return length, max(LEAST_EACH, length // 4), base >> 3, power, key


def _launch_windows(
    kernel: str, words: Any, layout: tuple[Any, Any, int, int], hashed: tuple[int, ...], *arguments: Any
) -> None:
    """Launch a kernel with threads for adjacent windows."""
    launch_each("passage_windows", kernel, layout[-1], words, *layout, *hashed, *arguments, each=hashed[1])


def find_runs(
    starts: Int64, length: int, kind: int, min_count: int, first: Any, counts: Any
) -> tuple[Int64, Int64, Int64]:
    """Find the passages of a kind; as :meth:`WindowKernels.find_runs`."""
    with device_errors(f"finding passages of {len(first):,} words"):
        import cupy

        size, hits = len(first), cupy.empty(len(first), np.uint8)
        given = (first, counts, size, cupy.asarray(starts), len(starts) - 1, kind, min_count, hits)
        launch_each("passage_windows", "mark_hits", size, *given)
        places = cupy.flatnonzero(hits)  # synchronize!
        one = cupy.ones(min(len(places), 1), np.bool_)
        ends_here = places[1:] - places[:-1] > length  # a separator is between the windows of two documents
        begins = places[cupy.concatenate([one, ends_here])].get()  # synchronize!
        ends = places[cupy.concatenate([ends_here, one])].get() + length
        return np.searchsorted(starts, begins, side="right") - 1, begins, ends


def describe_runs(begins: Int64, ends: Int64, length: int, first: Any, counts: Any) -> tuple[UInt32, Bools]:
    """Return count and whether first of each passage; as :meth:`WindowKernels.describe_runs`."""
    with device_errors(f"describing {len(begins):,} passages"):
        import cupy

        runs = len(begins)
        copies, are_first = cupy.ones(runs, np.uint32), cupy.ones(runs, np.bool_)
        if runs:
            given = (cupy.asarray(begins), cupy.asarray(ends), runs, length, first, counts, len(first))
            launch_each("passage_windows", "describe_runs", len(first), *given, copies, are_first)
        return copies.get(), are_first.get()  # synchronize!


def count_covered(starts: Int64, length: int, kind: int, first: Any, counts: Any) -> Int64:
    """Count the words of each document in passages of a kind; as :meth:`WindowKernels.count_covered`."""
    rows, begins, ends = find_runs(starts, length, kind, 2, first, counts)
    covered = np.zeros(len(starts) - 1, np.int64)
    np.add.at(covered, rows, ends - begins)
    return covered


def _nones(size: int) -> Any:
    import cupy

    return cupy.full(size, NONE, np.uint32)
