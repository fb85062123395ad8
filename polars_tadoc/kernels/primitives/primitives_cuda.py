"""Data-parallel primitives on the device; :mod:`polars_tadoc.kernels.primitives.reference` defines them.

Each returns new arrays of exactly the size of its result, unless stated otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.errors import EngineUnavailableError
from polars_tadoc.runtime.device import device_errors, even_blocks, launch

THREADS = 256
SORT_TILE = 16 * THREADS
"""Keys per block of a sort."""
SCAN_TILE = 8 * THREADS
"""Items per block of any other primitive."""

_DIGIT_BITS, _DIGITS = 8, 256  # of radix_sort.cu
_MAX_KEYS = 1 << 30
_TYPES = {"bool": "u8", "uint8": "u8", "uint32": "u32", "int64": "i64", "uint64": "u64"}


def radix_sort(keys: Any, values: Any = None, bits: int = 64, first_bit: int = 0, overwrite: bool = False) -> Any:
    """Sort by some bits of the keys; stable.

    Parameters
    ----------
    keys
        cupy uint32 or uint64, fewer than 2^30.
    values
        cupy uint32 or uint64: one number per key, sorted with it, or None.
    bits
        Number of bits to sort by; one pass per 8 bits.
    first_bit
        The lowest of these bits.
    overwrite
        Allow the sort to overwrite ``keys`` and ``values`` with anything, or with its result: it needs less memory.

    Returns
    -------
    cupy array, or (cupy array, cupy array)
        The keys, and the values if given.

    Raises
    ------
    EngineUnavailableError
        Too many keys; the device is out of memory or failed.

    """
    size = len(keys)
    if size >= _MAX_KEYS:
        raise EngineUnavailableError(
            f'engine="gpu": {size:,} keys are too many for one sort; use engine="cpu", or fewer rows at a time'
        )
    bits = max(0, min(bits, 8 * keys.dtype.itemsize - first_bit))
    passes = -(-bits // _DIGIT_BITS)
    with device_errors(f"sorting {size:,} keys"):
        import cupy

        if passes == 0 or size < 2:
            kept = (keys, values) if overwrite else (keys.copy(), None if values is None else values.copy())
            return kept[0] if values is None else kept
        key_type, value_type = _TYPES[keys.dtype.name], "void" if values is None else _TYPES[values.dtype.name]
        defines = (f"-DKEY={key_type}", f"-DVALUE={value_type}")
        width = -(-bits // passes)
        tiles = -(-size // SORT_TILE)
        # by pass: digits, digits by tile, tiles taken
        zeros = cupy.zeros(passes * (_DIGITS + _DIGITS * tiles + 1), np.uint32)
        counts = zeros[: passes * _DIGITS]
        states = zeros[passes * _DIGITS : -passes].reshape(passes, -1)
        launch(
            *("radix_sort", "count_digits", min(4 * even_blocks(size), tiles), THREADS, keys, size, first_bit, bits),
            *(width, passes, counts),
            defines=defines,
        )
        source = (keys, values)
        spare = None
        for number in range(passes):
            if spare is None:
                target = (cupy.empty_like(keys), None if values is None else cupy.empty_like(values))
            else:
                target = spare
            begun = number * width
            mask = (1 << min(width, bits - begun)) - 1
            launch(
                *("radix_sort", "sort_pass", tiles, THREADS, *source, size, first_bit + begun, mask),
                *(counts[number * _DIGITS :], states[number], zeros[number - passes :], *target),
                defines=defines,
            )
            spare = source if number > 0 or overwrite else None
            source = target
        return source[0] if values is None else source


def exclusive_scan(values: Any) -> Any:
    """Return the prefix sums, and the total.

    Parameters
    ----------
    values
        cupy uint8, uint32, int64 or uint64; not negative, their sum below 2^62.

    Returns
    -------
    cupy int64
        Sums, one more than there are values; the last one is the total.

    """
    with device_errors(f"summing up {len(values):,} numbers"):
        import cupy

        sums = cupy.empty(len(values) + 1, np.int64)
        tiles, taken = _look_back(len(values) // SCAN_TILE + 1)
        _launch("exclusive_scan", values.dtype, len(values) + 1, values, len(values), tiles, taken, sums)
        return sums


def compact(values: Any, keep: Any) -> Any:
    """Drop values that are not to be kept.

    Parameters
    ----------
    values
        cupy uint32, int64 or uint64.
    keep
        cupy bool or uint8, as many.

    Returns
    -------
    cupy array
        Values with nonzero ``keep``, in order.

    """
    with device_errors(f"choosing among {len(values):,} numbers"):
        import cupy

        size = len(values)
        if not size:
            return values.copy()
        tiles, taken = _look_back(-(-len(values) // SCAN_TILE))
        _launch("count_kept", values.dtype, len(values), keep, size, tiles, taken)
        kept = cupy.empty(_total(tiles), values.dtype)
        _launch("write_kept", values.dtype, len(values), values, keep, size, tiles, kept)
        return kept


def sum_runs(keys: Any, weights: Any) -> tuple[Any, Any]:
    """Sum the weights of adjacent equal keys.

    Parameters
    ----------
    keys
        cupy uint32 or uint64.
    weights
        cupy uint64, as many.

    Returns
    -------
    (cupy array, cupy uint64)
        Each run's key, and its sum modulo 2^64.

    """
    with device_errors(f"adding up {len(keys):,} weights"):
        import cupy

        size = len(keys)
        if not size:
            return keys.copy(), cupy.zeros(0, np.uint64)
        tiles, taken = _look_back(-(-len(keys) // SCAN_TILE))
        _launch("count_runs", keys.dtype, len(keys), keys, size, tiles, taken)
        runs = _total(tiles)
        run_keys, sums = cupy.empty(runs, keys.dtype), cupy.zeros(runs, np.uint64)
        _launch("sum_runs", keys.dtype, len(keys), keys, weights, size, tiles, run_keys, sums)
        return run_keys, sums


def segmented_sum(values: Any, offsets: Any) -> Any:
    """Sum each segment.

    Parameters
    ----------
    values
        cupy uint8, uint32, int64 or uint64.
    offsets
        cupy int64, segments + 1: offsets, from 0 to the number of values.

    Returns
    -------
    cupy uint64
        Sum by segment, modulo 2^64.

    """
    with device_errors(f"adding up {len(offsets) - 1:,} segments"):
        import cupy

        sums = cupy.zeros(len(offsets) - 1, np.uint64)
        _launch("segmented_sum", values.dtype, len(values), values, offsets, len(sums), len(values), sums)
        return sums


def expand(offsets: Any, total: int | None = None) -> Any:
    """Return the segment of each position.

    Parameters
    ----------
    offsets
        cupy int64, segments + 1: offsets, the first one 0. Fewer than 2^32 segments.
    total
        The last offset, if the caller knows it: otherwise the host waits for it.

    Returns
    -------
    cupy uint32
        Segment by position.

    """
    with device_errors(f"laying out {len(offsets) - 1:,} segments"):
        import cupy

        total = int(offsets[-1]) if total is None else total  # synchronize!
        owners = cupy.empty(total, np.uint32)
        _launch("expand", np.dtype(np.uint64), total, offsets, len(offsets) - 1, total, owners)
        return owners


def _look_back(tiles: int) -> tuple[Any, Any]:
    """Return arrays for the sums that tiles publish, and for the number of tiles taken."""
    import cupy

    sums = cupy.empty(tiles + 1, np.uint64)
    sums.data.memset_async(0xFF, 8 * tiles)
    sums[tiles:].data.memset_async(0, 8)
    return sums[:tiles], sums[tiles:]


def _total(tiles: Any) -> int:
    """Return the sum over all tiles, without its flag bits."""
    return int(tiles[-1:].get()[0]) & ((1 << 62) - 1)  # synchronize!


def _launch(kernel: str, dtype: Any, items: int, *arguments: Any) -> None:
    defines = (f"-DVALUE={_TYPES[dtype.name]}",)
    launch("runs", kernel, -(-items // SCAN_TILE), THREADS, *arguments, defines=defines)
