"""The GPUs that worker processes on this machine can use, one each."""

from __future__ import annotations

import os

from polars_tadoc.runtime.device import device_problem as device_problem


def visible_devices() -> list[str]:
    """List the visible GPUs, by their ids in ``CUDA_VISIBLE_DEVICES``."""
    if device_problem() is not None:
        return []
    import cupy

    count = cupy.cuda.runtime.getDeviceCount()
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [str(place) for place in range(count)] if named is None else named.split(",")[:count]
