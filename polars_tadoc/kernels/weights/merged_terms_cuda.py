"""Maps the terms of documents on the device, by a normalisation of words or to a dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.primitives.codes import DELETED
from polars_tadoc.kernels.primitives.primitives_cuda import compact, exclusive_scan, segmented_sum
from polars_tadoc.runtime.device import device_errors


def merge_terms(offsets: Any, terminals: Any, counts: Any, image: Any) -> tuple[Any, Any, Any]:
    """Map the terms of documents, and sum the counts of adjacent equal ones.

    Parameters and result as for :func:`polars_tadoc.kernels.weights.weights_cpu.merge_terms`, as cupy arrays.
    """
    with device_errors(f"mapping {len(terminals):,} words of documents"):
        import cupy

        if not len(terminals):
            return offsets, terminals, counts
        images = image[terminals]
        kept = images != np.uint32(DELETED)
        offsets, images, counts = (
            exclusive_scan(kept.view(np.uint8))[offsets],
            compact(images, kept),
            compact(counts, kept),
        )
        if not len(images):
            return offsets, images, counts
        begins = cupy.zeros(len(images) + 1, np.bool_)
        begins[offsets[:-1]] = True  # for an empty document: the next one's term, or past the end
        begins = begins[:-1]
        begins[1:] |= images[1:] != images[:-1]
        places = compact(cupy.arange(len(images), dtype=np.int64), begins)
        ends = cupy.concatenate([places, cupy.full(1, len(images), np.int64)])
        return exclusive_scan(begins.view(np.uint8))[offsets], images[places], segmented_sum(counts, ends)
