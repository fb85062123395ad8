"""Numbers the distinct byte strings on the device in code point order, by sorting their hashes.

Wakatsuki et al. map the words of a text without a dictionary in this way. It reads and writes all words several times;
:mod:`.intern` does so once.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from polars_tadoc.kernels.primitives.primitives_cuda import compact, exclusive_scan, radix_sort
from polars_tadoc.kernels.tokenize import intern_cuda as intern
from polars_tadoc.runtime.device import launch_each

_SORTED_BITS = 40  # bits of a hash: among a million words, two collide in every second text; then bytes decide
_HASH_BITS = ((1 << _SORTED_BITS) - 1) << (64 - _SORTED_BITS)


def number_by_sort(text: Any, starts: Any, stops: Any) -> intern.Interned:
    """Number the strings ``text[starts[i]:stops[i]]``; parameters as for :func:`~.intern.intern`."""
    import cupy

    strings, launch = len(starts), partial(launch_each, "text_sort", defines=intern.hash_defines)
    if strings == 0:
        return intern.Interned(pa.nulls(0, pa.large_string()), cupy.empty(0, np.uint32))
    hashes, places = cupy.empty(strings, np.uint64), cupy.empty(strings, np.uint32)
    launch("hash_strings", strings, text, starts, stops, strings, hashes, places)
    hashes, places = radix_sort(hashes, places, _SORTED_BITS, 64 - _SORTED_BITS, overwrite=True)
    heads = cupy.empty(strings, np.uint8)
    launch("mark_heads", strings, text, starts, stops, hashes, _HASH_BITS, places, strings, heads)
    del hashes
    run_places = compact(places, heads)
    runs = len(run_places)
    run_starts, run_stops = cupy.empty(runs, np.uint32), cupy.empty(runs, np.uint32)
    launch("describe_runs", runs, run_places, runs, starts, stops, run_starts, run_stops)
    order = intern.order_strings(text, run_starts, run_stops)
    fresh = cupy.empty(runs, np.uint8)
    launch("compare_runs", runs, text, order, runs, run_starts, run_stops, fresh)
    numbers_before = exclusive_scan(fresh)
    count = int(numbers_before[-1])  # synchronize!
    run_numbers, distinct = cupy.empty(runs, np.uint32), cupy.empty(count, np.uint32)
    lengths = cupy.empty(count, np.uint64)
    numbered = (run_numbers, distinct, lengths)
    launch("number_runs", runs, order, runs, fresh, numbers_before, run_starts, run_stops, *numbered)
    ids = cupy.empty(strings, np.uint32)
    launch("scatter_numbers", strings, places, strings, exclusive_scan(heads), run_numbers, ids)
    return intern.Interned(intern.copy_strings(text, run_starts, distinct, lengths), ids)
