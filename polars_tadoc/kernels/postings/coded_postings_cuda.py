"""Coded postings on the device: resident, decoded, bounded.

A warp decodes a block of 128 postings, four adjacent ones per lane, and computes documents in the same pass as gaps:
their prefix sum starts at the block's skip head (Ding et al., WWW 2009, section 4).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.postings.coded import BLOCK, Lists, Postings, Stream
from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan, expand
from polars_tadoc.runtime.device import device_errors, get_kernel, launch_each

_THREADS, _RUN = 256, 4  # of coded_postings.cu
_WARPS = _THREADS // 32

_NUMBER = np.dtype(np.uint64)
_STREAM = np.dtype([(field, _NUMBER) for field in (*Stream._fields, "low_bytes", "exceptions", "unary_bytes")])
_CODED = np.dtype(
    [
        *((field, _NUMBER) for field in ("frequencies", "block_offsets", "heads", "lists", "documents")),
        *((field, _STREAM) for field in ("gaps", "counts")),
    ]
)
_PLAIN = np.dtype([(field, _NUMBER) for field in (*Lists._fields, "lists")])


def load_postings(postings: Postings) -> Postings:
    """Copy postings from host memory to the device."""
    with device_errors(f"loading {len(postings.frequencies):,} lists of postings"):
        import cupy

        def load(array: Any) -> Any:
            return cupy.asarray(np.ascontiguousarray(array))

        gaps, counts = (Stream(*map(load, stream)) for stream in (postings.gaps, postings.counts))
        frequencies, block_offsets, heads = map(load, (postings.frequencies, postings.block_offsets, postings.heads))
        return Postings(postings.codec, postings.documents, frequencies, block_offsets, heads, gaps, counts)


def decode_lists(postings: Postings, lists: Any) -> tuple[Any, Any, Any]:
    """Decode whole lists.

    Parameters and result as for :func:`polars_tadoc.kernels.postings.decode_cpu.decode_lists`, as cupy arrays.
    """
    with device_errors(f"decoding {len(lists):,} lists of postings"):
        import cupy

        numbers = cupy.asarray(lists, np.uint32)
        sizes, blocks = (cupy.empty(len(numbers), np.uint32) for _ in range(2))
        launch_each(
            *("coded_postings", "measure_lists", len(numbers)),
            *(coded(postings), numbers, np.uint32(len(numbers)), sizes, blocks),
        )
        offsets, block_starts = exclusive_scan(sizes), exclusive_scan(blocks)
        total = int(offsets[-1])  # synchronize!
        documents, counts = cupy.empty(total, np.uint32), cupy.empty(total, np.uint32)
        decode_into(postings, numbers, offsets, block_starts, documents, counts)
        return offsets, documents, counts


def decode_into(postings: Postings, lists: Any, offsets: Any, block_starts: Any, documents: Any, counts: Any) -> None:
    """Decode whole lists into existing arrays; the host does not wait.

    Parameters
    ----------
    postings
        From :func:`load_postings`.
    lists
        cupy uint32: numbers of lists.
    offsets, block_starts
        cupy int64, lists + 1: offsets of each list's postings and blocks.
    documents, counts
        cupy uint32: outputs, one entry per posting.

    """
    if len(documents):
        most_blocks = len(documents) // BLOCK + len(lists)
        get_kernel("coded_postings", "decode_lists", codec_defines(postings))(
            (-(-most_blocks // (_RUN * _WARPS)),),
            (_THREADS,),
            (coded(postings), lists, np.uint32(len(lists)), offsets, block_starts, documents, counts),
        )


def block_bounds(postings: Postings, norms: Any) -> Any:
    """Return the maximum contribution of a posting of each block to a score, for weight 1.

    Parameters and result as for :func:`polars_tadoc.kernels.search.search_cpu.block_bounds`, as cupy arrays.
    """
    blocks = len(postings.heads)
    with device_errors(f"bounding {blocks:,} blocks of postings"):
        import cupy

        bounds = cupy.empty(blocks, np.float32)
        if blocks:
            get_kernel("coded_postings", "bound_blocks", codec_defines(postings))(
                (-(-blocks // _WARPS),),
                (_THREADS,),
                (coded(postings), expand(postings.block_offsets, blocks), np.uint64(blocks), norms, bounds),
            )
        return bounds


def codec_defines(postings: Postings) -> tuple[str, ...]:
    """Return the compiler definitions of the kernels that decode these postings."""
    return (f"-DRICE={postings.codec}",)


def coded(postings: Postings) -> Any:
    """Return the kernels' ``Coded``: a structure that is passed by value."""
    lists, documents = len(postings.frequencies), postings.documents
    arrays = (postings.frequencies, postings.block_offsets, postings.heads)
    streams = (_stream(stream) for stream in (postings.gaps, postings.counts))
    return np.array([(*map(_address, arrays), lists, documents, *streams)], _CODED)


def plain(lists: Lists | None) -> Any:
    """Return the kernels' ``Plain``: a structure passed by value; the arrays are on the device."""
    if lists is None:
        return np.zeros(1, _PLAIN)
    return np.array([(*map(_address, lists), len(lists.offsets) - 1)], _PLAIN)


def _stream(stream: Stream) -> tuple[int, ...]:
    return (*map(_address, stream), len(stream.low), len(stream.exception_places), len(stream.unary))


def _address(array: Any) -> int:
    return int(array.data.ptr)
