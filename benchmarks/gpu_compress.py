"""Compression on the GPU, text in host memory to compressed column in host memory.

``python -m benchmarks.gpu_compress docs_peps prose_books`` compresses all the corpora named as one column
(default: the standard four) on both engines in turn and takes the device's way apart by stage, waiting for the device
after each; stages that run side by side are counted twice, so that the rest may be below zero. A process of its own
with an empty cache compiles every kernel. Results of both engines are compared before anything is timed. A corpus may
be named several times.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from types import ModuleType

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.side_by_side import median_ms, ratio, times
from benchmarks.stages import by_stage
from polars_tadoc.compress import encode_beside
from polars_tadoc.kernels.repair import batch_repair_cuda as batch_repair
from polars_tadoc.kernels.repair import compress_cuda as on_device
from polars_tadoc.model import column

STAGES: list[tuple[ModuleType | type, str]] = [
    (on_device, "tokenize"),
    (batch_repair, "build"),
    (on_device, "prune"),
    (on_device, "predict_gaps"),
    (on_device, "copied"),
    (encode_beside.EncodingBeside, "payload"),
    (column, "build"),
]


def compressing(text: pl.Series, engine: str) -> Callable[[], object]:
    """Return a call that compresses."""
    return lambda: tadoc.compress(text, engine=engine)


def fields(column: pl.Series) -> list[pl.Series]:
    """Return the fields of a compressed column; equal payloads have equal codes."""
    stored = column.ext.storage().struct
    return [stored.field("grammar").to_physical(), stored.field("symbols"), stored.field("gaps")]


def cold_seconds() -> float:
    """Seconds of a first compression where no kernel has been compiled yet, imports not counted."""
    code = (
        "import time, polars as pl, polars_tadoc as tadoc, cupy; cupy.zeros(1).sum(); s = time.perf_counter(); "
        "tadoc.compress(pl.Series(['to be, or not to be'] * 9), engine='gpu'); print(time.perf_counter() - s)"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "CUPY_CACHE_DIR": folder}
        done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--cold", action="store_true", help="time the compilation of all kernels too")
    args = parser.parse_args()
    import cupy

    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"machine: {corpora.machine()}; {device}, CuPy {cupy.__version__}")
    given = [corpora.load(name) for name in corpora.names(args.corpora)]
    texts = dict(given)
    if len(given) > 1:
        texts["all of them"] = pl.concat([text for _, text in given]).rechunk()
    for name, text in texts.items():
        size = int(text.str.len_bytes().sum())
        both = [tadoc.compress(text, engine=engine) for engine in ("cpu", "gpu")]
        if not all(map(pl.Series.equals, *map(fields, both))):
            raise SystemExit(f"{name}: the engines differ")
        taken = times({engine: compressing(text, engine) for engine in ("cpu", "gpu")}, args.repeat)
        rate = {engine: size / 1e3 / median_ms(taken, engine) for engine in taken}
        best = size / 1e9 / min(taken["gpu"])
        label = name if len(name) < 22 else f"{name[:20]}…"
        print(
            f"{label:22}{size / 1e6:8.1f} MB   cpu {rate['cpu']:8.1f} MB/s   gpu {rate['gpu']:8.1f} MB/s "
            f"(best {best:.2f} GB/s)   {ratio(taken, 'cpu', 'gpu'):5.1f} times faster"
        )
        wait = cupy.cuda.Device().synchronize
        stages = [by_stage(compressing(text, "gpu"), STAGES, wait) for _ in range(args.repeat)]
        print("   " + ", ".join(f"{k} {1e3 * statistics.median(s[k] for s in stages):.1f}" for k in stages[0]) + " ms")
    for size in (1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24):
        part = next(reversed(texts.values()))
        part = part.head(max(1, int((part.str.len_bytes().cum_sum() < size).sum())))
        taken = times({engine: compressing(part, engine) for engine in ("cpu", "gpu")}, args.repeat)
        length = int(part.str.len_bytes().sum())
        print(f"{length:12,} bytes: cpu {median_ms(taken, 'cpu'):8.2f} ms, gpu {median_ms(taken, 'gpu'):8.2f} ms")
    if args.cold:
        print(f"first compression, nothing compiled: {cold_seconds():.1f} s")


if __name__ == "__main__":
    main()
