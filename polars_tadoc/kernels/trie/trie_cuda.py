"""Dictionaries on the device: tokens to ids, ids to words.

A dictionary has two resident forms: its trie, and a hash table of its words that is made from it. Tokens are looked up
in the table, and words are copied from it; it takes fourteen times the trie's memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from polars_tadoc.errors import EngineUnavailableError
from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan
from polars_tadoc.kernels.primitives.upload_cuda import PADDING
from polars_tadoc.kernels.trie.arrays import Trie
from polars_tadoc.kernels.trie.word_rows_cuda import upload_words
from polars_tadoc.kernels.trie.word_table_cuda import WordTable, copy_words, find_words, make_table
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.device import device_errors, launch_each

GATHERS_SPELLED = False
"""Gathering would run on the host: spelling is faster for any number of ids."""

_KNOWN_STARTS = 1 << 16
"""Inner edges whose first child is stored separately: those near the root, which every walk passes."""
_CHUNK = 256
"""Tokens per warp. With 32, one per lane, 16 million drawn words took 5.9 ms instead of 5.0, a mix with long ones 8.0
instead of 6.8, prose the same (H200, ``benchmarks.gpu_dictionary``)."""
_MAX_BYTES = 1 << 32

_NUMBER = np.dtype(np.uint64)
_ARRAYS = (
    *("labels", "blocks", "codes", "code_ends", "phrases", "phrase_starts"),
    *("inner_words", "inner_words_before", "root_edges", "child_starts"),
)
_NUMBERS = ("words", "edges", "inner", "longest", "codes_size", "phrases_size", "known_starts")
_STRUCT = np.dtype([(field, _NUMBER) for field in (*_ARRAYS, *_NUMBERS)])  # Trie of trie.cuh


@array_dataclass
class DeviceTrie:
    """A trie's arrays on the device, and shortcuts near its root."""

    trie: Trie
    """With cupy arrays, the labels padded."""
    root_edges: Any
    """cupy uint32, 256: the root's edge by first byte, 0xFFFFFFFF if there is none."""
    child_starts: Any
    """cupy uint32: first child of each of the first inner edges."""

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return self.trie.nbytes + int(self.root_edges.nbytes) + int(self.child_starts.nbytes)


@array_dataclass
class ResidentTrie:
    """A dictionary on the device."""

    trie: DeviceTrie
    table: WordTable | None
    """Hash table of its words; None if they cannot have one: then tokens walk the trie."""

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return self.trie.nbytes + (0 if self.table is None else self.table.nbytes)


def load_trie(trie: Trie) -> ResidentTrie:
    """Copy a trie to the device and make the table of its words there.

    Parameters
    ----------
    trie
        A valid trie, in host memory.

    Returns
    -------
    ResidentTrie
        Ready for :func:`look_up` and :func:`spell`.

    Raises
    ------
    EngineUnavailableError
        The device is out of memory or failed, or the words have 4 GiB or more.

    """
    with device_errors(f"loading a dictionary of {trie.words:,} words"):
        import cupy

        on_device = copy_trie(trie)
        return ResidentTrie(on_device, make_table(*spell_by_trie(on_device, cupy.arange(trie.words, dtype=np.uint32))))


def look_up(trie: ResidentTrie, data: Any, starts: Any, stops: Any) -> Any:
    """Look up the tokens ``data[starts[i]:stops[i]]``; the host does not wait.

    The hash table is used for all tokens. It was faster than three alternatives on every text tried: walking the trie
    with each token, numbering a text's distinct words first and walking with those, and sorting the tokens' hashes.
    Million words per second, in this order, with 798,688 words in the dictionary: 31,200, 4,250, 8,030 and 3,770 on
    prose_books; 14,000, 2,720, 2,430 and 1,420 on docs_peps; 26,500, 3,560, 5,720 and 2,820 on logs_dmesg; 26,600,
    3,210, 6,920 and 3,630 on drawn documents; 3,340, 294, 115 and 458 if one word in a hundred has thousands of bytes;
    10,100, 1,330, 1,600 and 1,710 for 8.9 million n-grams drawn evenly (H200, ``python -m benchmarks.gpu_dictionary``).

    Parameters and result as for :func:`polars_tadoc.kernels.trie.trie_cpu.look_up`, as cupy arrays.
    """
    with device_errors(f"looking up {len(starts):,} words"):
        if trie.table is None:
            return walk_words(trie.trie, data, starts, stops)
        return find_words(trie.table, data, starts, stops)


def look_up_rows(trie: ResidentTrie, words: pl.Series) -> Any:
    """Look up the rows of a String series.

    Parameters
    ----------
    trie
        From :func:`load_trie`.
    words
        String series, in host memory.

    Returns
    -------
    cupy uint32
        Id of each row, the number of words for a missing one; any id for a null.

    """
    with device_errors(f"looking up {len(words):,} words"):
        import cupy

        parts = [look_up(trie, *part) for part in upload_words(words)]
        return parts[0] if len(parts) == 1 else cupy.concatenate([*parts, cupy.empty(0, np.uint32)])


def spell(trie: ResidentTrie, ids: Any) -> tuple[Any, Any]:
    """Return the words of ids.

    Parameters and result as for :func:`polars_tadoc.kernels.trie.trie_cpu.spell`, as cupy arrays.
    """
    with device_errors(f"spelling {len(ids):,} words"):
        offsets, data = spell_by_trie(trie.trie, ids) if trie.table is None else copy_words(trie.table, ids)
        return offsets, data[: len(data) - PADDING]


def copy_trie(trie: Trie) -> DeviceTrie:
    """Copy a trie's arrays to the device with shortcuts near its root."""
    import cupy

    labels = cupy.zeros(len(trie.labels) + PADDING, np.uint8)
    labels[: len(trie.labels)] = cupy.asarray(trie.labels)
    arrays = (cupy.asarray(np.ascontiguousarray(array)) for array in trie.arrays[1:])
    on_device = Trie(*trie[:4], labels, *arrays)
    starts = min(trie.inner, _KNOWN_STARTS)
    root_edges, child_starts = cupy.empty(256, np.uint32), cupy.empty(starts, np.uint32)
    given = (_struct(on_device, None, None), root_edges, child_starts, starts)
    launch_each("trie", "start_ways", max(256, starts), *given)
    return DeviceTrie(on_device, root_edges, child_starts)


def walk_words(trie: DeviceTrie, data: Any, starts: Any, stops: Any, chunk: int = _CHUNK) -> Any:
    """Look up tokens by walking the trie; parameters and result as for :func:`look_up`."""
    import cupy

    ids = cupy.empty(len(starts), np.uint32)
    warps = -(-len(starts) // chunk)
    launch_each("trie", "walk_words", 32 * warps, _of(trie), data, starts, stops, len(starts), chunk, ids)
    return ids


def spell_by_trie(trie: DeviceTrie, ids: Any) -> tuple[Any, Any]:
    """Return words by walking the trie; result as for :func:`spell`, with padded bytes."""
    import cupy

    count = len(ids)
    lengths = cupy.empty(len(ids), np.uint32)
    launch_each("trie", "measure_words", count, _of(trie), ids, count, lengths)
    offsets = exclusive_scan(lengths)
    size = int(offsets[-1])  # synchronize!
    if size + PADDING >= _MAX_BYTES:
        raise EngineUnavailableError(
            f'engine="gpu": {len(ids):,} words of a dictionary have {size:,} bytes, more than 32-bit positions allow; '
            'use engine="cpu", or fewer at a time'
        )
    data = cupy.empty(size + PADDING, np.uint8)
    data[size:] = 0
    if size:
        launch_each("trie", "spell_words", count, _of(trie), ids, count, offsets, data)
    return offsets, data


def _of(trie: DeviceTrie) -> Any:
    return _struct(trie.trie, trie.root_edges, trie.child_starts)


def _struct(trie: Trie, root_edges: Any, child_starts: Any) -> Any:
    """Make the struct that kernels take by value."""
    arrays = (*trie.arrays, root_edges, child_starts)
    starts = 0 if child_starts is None else len(child_starts)
    numbers = (*trie[:4], len(trie.codes), len(trie.phrases), starts)
    return np.array((*(0 if array is None else array.data.ptr for array in arrays), *numbers), _STRUCT)
