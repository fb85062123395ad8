"""Batch RePair and pruning on the device: words per second, milliseconds by kernel and by round, peak memory.

``python -m benchmarks.gpu_construction docs_peps prose_books`` makes one grammar of all the corpora named.
The result is compared with the host's before anything is timed.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import cupy
import numpy as np
import polars as pl

from benchmarks import corpora
from polars_tadoc.kernels.repair import batch_repair as rules_on_host
from polars_tadoc.kernels.repair import batch_repair_cuda as batch_repair
from polars_tadoc.kernels.repair import prune as prune_on_host
from polars_tadoc.kernels.repair import prune_cuda as prune
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize
from polars_tadoc.runtime import device

DESIGNS = {
    "default": batch_repair.Design(),
    "never sieved": batch_repair.Design(sieved=1 << 40),
    "always sieved": batch_repair.Design(sieved=0),
    "sieved above 2^17": batch_repair.Design(sieved=1 << 17),
    "sieved above 2^23": batch_repair.Design(sieved=1 << 23),
    "sieved, a quarter": batch_repair.Design(sieved_entries=0.25),
    "unsieved, all": batch_repair.Design(entries=1.0),
    "round by round": batch_repair.Design(late=0),
    "late from 2^16": batch_repair.Design(late=1 << 16),
    "late from 2^20": batch_repair.Design(late=1 << 20),
}


class Stopwatch:
    """Times each launch with events."""

    def __init__(self) -> None:
        self.launches: list[tuple[str, Any, Any]] = []

    def wrap(self, get_kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that stands for ``get_kernel``."""

        def get(family: str, name: str, *options: Any, **more: Any) -> Any:
            kernel = get_kernel(family, name, *options, **more)

            def launch(*arguments: Any, **sizes: Any) -> None:
                begin, end = cupy.cuda.Event(), cupy.cuda.Event()
                begin.record()
                kernel(*arguments, **sizes)
                end.record()
                self.launches.append((f"{family}.{name}", begin, end))

            launch.kernel = getattr(kernel, "kernel", None)  # type: ignore[attr-defined]
            return launch

        return get

    def milliseconds(self) -> list[tuple[str, float]]:
        """List the launches so far."""
        cupy.cuda.Device().synchronize()
        return [(name, cupy.cuda.get_elapsed_time(begin, end)) for name, begin, end in self.launches]


def timed(call: Callable[[], Any], repeat: int) -> list[float]:
    """Milliseconds of each call, with nothing left to do on the device."""
    taken = []
    for _ in range(repeat):
        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        call()
        cupy.cuda.Device().synchronize()
        taken.append(1e3 * (time.perf_counter() - begin))
    return taken


def copy_bandwidth() -> float:
    """Bytes per second that a large copy reads and writes."""
    source, target = cupy.empty(1 << 30, np.uint8), cupy.empty(1 << 30, np.uint8)
    source.data.memset_async(7, source.nbytes)
    return float(
        2
        * source.nbytes
        / (1e-3 * np.median(timed(lambda: target.data.copy_from_device(source.data, source.nbytes), 10)))
    )


def same(got: Any, expected: Any, *fields: str) -> bool:
    """Whether arrays of two results are equal."""
    return all(np.array_equal(getattr(got, field), getattr(expected, field)) for field in fields)


def by_kernel(sequence: Any, vocabulary_size: int, rows: int) -> tuple[dict[str, float], list[dict[str, float]]]:
    """Milliseconds by kernel, and by kernel for each round."""
    watch, rounds = Stopwatch(), []
    marks: list[tuple[int, int]] = []
    replacement = watch.wrap(device.get_kernel)
    with patch.object(device, "get_kernel", replacement):
        device._resident.cache_clear()
        rules = batch_repair.build(
            sequence.copy(), vocabulary_size, lambda _, alive: marks.append((len(watch.launches), alive))
        )
        marks.append((len(watch.launches) - 1, 0))
        prune.prune(rules, vocabulary_size, rows)
    device._resident.cache_clear()
    launches = watch.milliseconds()
    total: dict[str, float] = defaultdict(float)
    for name, taken in launches:
        total[name] += taken
    for (first, alive), (stop, _) in pairwise(marks):
        line = {"alive": float(alive)}
        for name, taken in launches[first:stop]:
            line[name.split(".")[1]] = line.get(name.split(".")[1], 0.0) + taken
        rounds.append(line)
    return dict(total), rounds


def main() -> None:
    parser = corpora.arguments(__doc__)
    parser.add_argument("--variants", action="store_true", help="time other designs as well")
    parser.add_argument("--rounds", action="store_true", help="print a line for each round")
    parser.add_argument("--out", type=Path, help="write all figures as JSON")
    args = parser.parse_args()
    text = pl.concat([corpora.load(name)[1] for name in corpora.names(args.corpora)]).rechunk()
    tokens = tokenize(text, Tokenizer("words"))
    words, size = int((tokens.sequence != SEPARATOR).sum()), len(tokens.vocabulary)
    rows = len(tokens.sequence) - words
    print(f"{cupy.cuda.runtime.getDeviceProperties(0)['name'].decode()}; {words:,} words, {rows:,} rows")

    pool = cupy.get_default_memory_pool()
    sequence = cupy.asarray(tokens.sequence)
    first = timed(lambda: prune.prune(batch_repair.build(sequence.copy(), size), size, rows), 1)[0]
    on_host = rules_on_host.build(tokens.sequence.copy(), size)
    rules = batch_repair.build(sequence.copy(), size)
    pruned = prune.prune(rules, size, rows)
    assert same(rules.to_host(), on_host, "left", "right", "sequence")
    pruned_on_host = prune_on_host.prune(on_host, size, rows)
    assert same(pruned.to_host(), pruned_on_host, *vars(pruned_on_host))
    figures: dict[str, Any] = {"words": words, "rows": rows, "rules": len(on_host.left), "first_ms": first}
    del rules, pruned
    pool.free_all_blocks()
    copies = sequence.copy()
    held = pool.total_bytes()
    prune.prune(batch_repair.build(copies, size), size, rows)
    figures["peak_bytes_per_word"] = (pool.total_bytes() - held + copies.nbytes) / words
    print(f"equal to the host's; first call {first:.0f} ms; {figures['peak_bytes_per_word']:.1f} bytes a word at most")

    contenders = DESIGNS if args.variants else {"default": batch_repair.Design()}
    taken: dict[str, list[float]] = defaultdict(list)
    default = batch_repair.design
    for _ in range(args.repeat):
        for name, design in contenders.items():
            batch_repair.design = design
            copies = sequence.copy()
            taken[name] += timed(lambda copies=copies: batch_repair.build(copies, size), 1)  # type: ignore[misc]
        batch_repair.design = default
    rules = batch_repair.build(sequence.copy(), size)
    taken["prune"] = timed(lambda: prune.prune(rules, size, rows), args.repeat)
    for name, milliseconds in taken.items():
        median, least = float(np.median(milliseconds)), min(milliseconds)
        print(f"{name:20} {median:8.2f} ms (least {least:.2f}), {words / median / 1e3:8,.0f} M words/s")
    figures["milliseconds"] = dict(taken)

    total, rounds = by_kernel(sequence, size, rows)
    for name, kernel_ms in sorted(total.items(), key=lambda item: -item[1]):
        print(f"  {name:28} {kernel_ms:7.3f} ms")
    if args.rounds:
        for number, line in enumerate(rounds):
            print(
                f"  round {number:2} {line['alive']:12,.0f}",
                *(f"{k[:6]} {1e3 * v:6.0f}" for k, v in line.items() if k != "alive"),
            )
    bandwidth = copy_bandwidth()
    figures |= {"kernels": total, "rounds": rounds, "copy_bytes_per_s": bandwidth}
    print(f"  {len(rounds)} rounds; a copy moves {bandwidth / 1e12:.2f} TB/s")
    if args.out:
        args.out.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
