"""Packed partitions that stream through a device: what reading, copies and kernels take, and what each overlap gains.

``python -m benchmarks.gpu_streaming FOLDER [--files N]``, a folder of packed files such as
``python -m benchmarks.near_copies FOLDER --packed`` makes. Nothing stays resident: each partition is copied to the
device, as where partitions are never the same. The last table has copies of the next partition's symbols run beside
the kernels of one, from pinned memory on a stream of their own, timed by events.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import polars_tadoc as tadoc
from benchmarks import corpora
from polars_tadoc.analytics import sequence_count, word_count
from polars_tadoc.engine import cuda
from polars_tadoc.engine.choose import CPU, GPU, Engine
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.execute.stages import Stages
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.packed.pushdown import packed_question
from polars_tadoc.runtime.process.prefetch import read_ahead

CALLS: dict[str, Analytic[Any, Any]] = {
    "word_count": word_count.WordCountRequest.from_arguments(),
    "sequence_count n=3": sequence_count.SequenceCountRequest.from_arguments(n=3),
}
LOADING = ("load_grammar", "load_rules", "load_symbols", "load_array")


def partitions(files: list[Path]) -> Iterator[Corpus]:
    question = packed_question(tadoc.scan_packed(files).select("text"))
    assert question is not None
    for _, corpus in question.corpora([], cached=False):
        yield corpus


def stream(analytic: Analytic[Any, Any], corpora: Iterable[Corpus], engine: Engine) -> int:
    """Work on one partition after the other, as a call with a memory limit does, but for the merging."""
    stages = Stages(analytic)
    return sum(int(stages.find_on(corpus, engine).nbytes) for corpus in corpora)


def seconds(work: Callable[[], Any], repeat: int) -> float:
    taken = []
    for _ in range(repeat):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken))


@contextmanager
def timed_loading() -> Iterator[list[tuple[Any, Any]]]:
    """Put events around what arranges arrays on the host and copies them to the device."""
    import cupy

    spans: list[tuple[Any, Any]] = []
    depth = [0]
    before = {name: getattr(cuda, name) for name in LOADING}

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def load(*arguments: Any) -> Any:
            if depth[0]:
                return function(*arguments)
            depth[0] = 1
            start, stop = cupy.cuda.Event(), cupy.cuda.Event()
            start.record()
            try:
                return function(*arguments)
            finally:
                depth[0] = 0
                stop.record()
                spans.append((start, stop))

        return load

    for name, function in before.items():
        setattr(cuda, name, timed(function))
    try:
        yield spans
    finally:
        for name, function in before.items():
            setattr(cuda, name, function)


def show_streams(files: list[Path], repeat: int) -> None:
    import cupy

    reading = seconds(lambda: [None for _ in partitions(files)], repeat) / len(files)
    print(f"\nreading and decoding a partition: {1e3 * reading:.1f} ms; all else in ms for each partition, too")
    print(
        f"{'call':22}{'engine':>8}{'one by one':>12}{'read ahead':>12}{'x':>6}{'working':>10}{'loading':>9}{'share':>8}"
    )
    held = list(partitions(files))
    for name, analytic in CALLS.items():
        every = analytic.without_limits()
        for engine in (CPU, GPU):
            stream(every, held, engine)  # compiles
            plain = seconds(lambda: stream(every, partitions(files), engine), repeat) / len(files)  # noqa: B023
            ahead = seconds(lambda: stream(every, read_ahead(partitions(files)), engine), repeat) / len(files)  # noqa: B023
            working = seconds(lambda: stream(every, held, engine), repeat) / len(files)  # noqa: B023
            loading = ""
            if engine is GPU:
                with timed_loading() as spans:
                    stream(every, held, engine)
                    cupy.cuda.runtime.deviceSynchronize()
                taken = sum(cupy.cuda.get_elapsed_time(*span) for span in spans) / len(files)
                loading = f"{taken:9.2f}{taken / (1e3 * plain):8.1%}"
            print(
                f"{name:22}{engine.name:>8}{1e3 * plain:12.1f}{1e3 * ahead:12.1f}{plain / ahead:6.2f}"
                f"{1e3 * working:10.1f}{loading}"
            )


def show_overlap(files: list[Path], repeat: int) -> None:
    import cupy

    held = next(partitions(files))
    symbols = np.concatenate([held.grammar.symbols, held.roots])
    pinned = cupy.cuda.alloc_pinned_memory(symbols.nbytes)
    staged = np.frombuffer(pinned, np.uint32, len(symbols))
    side = cupy.cuda.Stream(non_blocking=True)
    target = cupy.empty(len(symbols), np.uint32)
    staging = seconds(lambda: np.copyto(staged, symbols), repeat)
    print(f"\ncopying {symbols.nbytes:,} bytes of symbols: to pinned memory, by the reader {1e3 * staging:.2f} ms")
    print(f"{'call':22}{'kernels':>10}{'copy':>8}{'both, in turn':>15}{'side by side':>14}{'of the copy hidden':>20}")
    for name, analytic in CALLS.items():
        every = analytic.without_limits()

        def work(every: Analytic[Any, Any] = every) -> None:
            stream(every, [held], GPU)

        def copy_pageable() -> None:
            target.set(symbols)
            cupy.cuda.runtime.deviceSynchronize()

        def side_by_side(work: Callable[[], None] = work) -> None:
            target.set(staged, stream=side)
            work()
            side.synchronize()

        def in_turn(work: Callable[[], None] = work) -> None:
            copy_pageable()
            work()

        kernels, copy, both, beside = (
            1e3 * seconds(one, 3 * repeat) for one in (work, copy_pageable, in_turn, side_by_side)
        )
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record(side)
        target.set(staged, stream=side)
        stop.record(side)
        stop.synchronize()
        alone = cupy.cuda.get_elapsed_time(start, stop)
        print(
            f"{name:22}{kernels:10.2f}{copy:8.2f}{both:15.2f}{beside:14.2f}{(both - beside) / copy:20.0%}"
            f"   (from pinned memory alone, by events: {alone:.2f} ms)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    files = sorted(args.folder.glob("*.parquet"))[: args.files]
    import cupy

    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"machine: {corpora.machine()}; {device}, CuPy {cupy.__version__}; {len(files)} partitions")
    warnings.simplefilter("error", tadoc.errors.DeviceMemoryWarning)  # no batches are to be timed
    with tadoc.Config(device_cache_bytes=0):
        show_streams(files, args.repeat)
        show_overlap(files, args.repeat)


if __name__ == "__main__":
    main()
