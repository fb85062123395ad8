"""Times the word count on the grammar against word counts of the uncompressed ids, on one GPU.

``python3 benchmarks/gpu_word_count.py corpus.npz … [--variants] [--out times.json]``; the arrays come from
``export_corpus.py``. Needs CuPy, NumPy and Numba, no Polars. Device times are medians between events, with
the queue kept full; outputs are zeroed within them. Inputs are copied so often that a run finds none of its
own in the level 2 cache ("cold"); "warm" is one copy over and over.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import sys
import tempfile
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ["CUPY_CACHE_DIR"] = tempfile.mkdtemp()  # compile times are those of a first use

import cupy
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
package = types.ModuleType("polars_tadoc")  # the kernels without the package around them, which needs Polars
package.__path__ = [str(ROOT / "polars_tadoc")]
sys.modules.setdefault("polars_tadoc", package)

from polars_tadoc.engine import cuda  # noqa: E402
from polars_tadoc.kernels.traverse import counts_cuda  # noqa: E402
from polars_tadoc.kernels.traverse import fuse_levels_cuda as fuse_levels  # noqa: E402
from polars_tadoc.runtime import device as cuda_device  # noqa: E402
from polars_tadoc.runtime.device import with_headers  # noqa: E402

REPEAT = 60
DELAY_NS = 200_000  # more than the host takes to queue one run

OWNER_VARIANTS = {
    "owner per position": """
struct Variant {
    using Mark = u32;
    static __device__ __forceinline__ Mark load(const void* owners, u32 position)
    {
        return __ldg(static_cast<const u32*>(owners) + position);
    }
    static __device__ __forceinline__ u32 body(Mark mark) { return mark; }
};
""",
    "binary search": """
struct Variant {
    using Mark = u32;
    static __device__ __forceinline__ Mark load(const void* owners, u32 position)
    {
        const u32* starts = static_cast<const u32*>(owners) + 1;
        u32 low = 0;
        u32 high = __ldg(starts - 1);
        while (high - low > 1) {
            const u32 middle = low + (high - low) / 2;
            if (__ldg(starts + middle) <= position)
                low = middle;
            else
                high = middle;
        }
        return low;
    }
    static __device__ __forceinline__ u32 body(Mark mark) { return mark; }
};
""",
}


def baseline(name: str, *defines: str) -> Any:
    text = (ROOT / "benchmarks" / "histogram.cu").read_text("utf-8")
    return cupy.RawModule(code=with_headers(text), options=("-std=c++17", *defines)).get_function(name)


class Device:
    """The device's properties and its ceiling."""

    def __init__(self) -> None:
        attributes = cupy.cuda.Device().attributes
        self.name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
        self.multiprocessors = attributes["MultiProcessorCount"]
        self.shared = attributes["MaxSharedMemoryPerBlockOptin"]
        self.l2 = attributes["L2CacheSize"]
        self.delay = baseline("delay")
        source = cupy.arange(1 << 27, dtype=np.uint64)
        target = cupy.empty_like(source)
        seconds = self.seconds([lambda: target.data.copy_from_device_async(source.data, source.nbytes)])
        self.bandwidth = 2 * source.nbytes / seconds

    def seconds(self, runs: Sequence[Callable[[], Any]], repeat: int = REPEAT) -> float:
        """Median device seconds of the runs, taken in turn."""
        for i in range(max(3, len(runs))):
            runs[i % len(runs)]()
        pairs = []
        for i in range(max(repeat, len(runs))):
            start, stop = cupy.cuda.Event(), cupy.cuda.Event()
            self.delay((1,), (1,), (np.uint64(DELAY_NS),))
            start.record()
            runs[i % len(runs)]()
            stop.record()
            pairs.append((start, stop))
            if i % 32 == 31:
                stop.synchronize()  # the launch queue holds about a thousand
        cupy.cuda.get_current_stream().synchronize()
        return statistics.median(cupy.cuda.get_elapsed_time(a, b) for a, b in pairs) / 1e3

    def copies(self, nbytes: int) -> int:
        """How many copies of an input are thrice the level 2 cache; one if it is that by itself."""
        return max(1, min(48, -(-3 * self.l2 // max(nbytes, 1))))


def wall(run: Callable[[], Any], repeat: int = 15) -> float:
    """Median seconds on the host's clock, the device idle before and after."""
    run()
    taken = []
    for _ in range(repeat):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        run()
        cupy.cuda.Device().synchronize()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def poison(nbytes: int) -> None:
    """Leave garbage where the next allocation of that size will lie."""
    cupy.empty(nbytes, np.uint8).data.memset_async(0xAB, nbytes)


def host_counts(grammar: Any, roots: np.ndarray) -> np.ndarray:
    """The definition, level by level."""
    weights = np.zeros(grammar.vocabulary_size + grammar.rule_count, np.uint64)
    np.add.at(weights, roots, np.uint64(1))
    lengths = np.diff(grammar.rule_offsets)
    for first, last in zip(grammar.level_offsets[-2::-1], grammar.level_offsets[:0:-1], strict=True):
        own = weights[grammar.vocabulary_size + int(first) : grammar.vocabulary_size + int(last)]
        body = grammar.symbols[grammar.rule_offsets[first] : grammar.rule_offsets[last]]
        np.add.at(weights, body, np.repeat(own, lengths[first:last]))
    return weights[: grammar.vocabulary_size]


def check(grammar: Any, roots: np.ndarray, word_ids: np.ndarray, label: str) -> Any:
    """Load the grammar and hold the kernel's counts to the uncompressed ones; return the resident grammar."""
    resident, device_roots = cuda.load_grammar(grammar), cuda.load_symbols(roots)
    expected = np.bincount(word_ids, minlength=grammar.vocabulary_size).astype(np.uint64)
    half = np.random.default_rng(0).permutation(roots)[: len(roots) // 2]
    half_expected = host_counts(grammar, half)
    for symbols, right in ((device_roots, expected), (cuda.load_symbols(half), half_expected)):
        for repetition in range(5):  # an error that comes and goes is a race
            poison(8 * (grammar.vocabulary_size + grammar.rule_count + 1))
            counts = cuda.to_host(cuda.top_down_weights(resident, symbols))
            if not np.array_equal(counts, right):
                wrong = np.flatnonzero(counts != right)
                raise SystemExit(
                    f"{label}: WRONG, run {repetition}: {len(wrong)} of {len(right)} words, "
                    f"first {wrong[:5]}: {counts[wrong[:5]]} for {right[wrong[:5]]}"
                )
    return resident


def time_histogram(device: Device, ids: Any, size: int, expected: np.ndarray) -> dict[str, Any]:
    """The best of several sizes of the baseline, cold and warm."""
    best: dict[str, Any] = {"seconds": float("inf")}
    kernel = baseline("histogram")
    kernel.max_dynamic_shared_size_bytes = device.shared
    copies = [ids.copy() for _ in range(device.copies(ids.nbytes))]
    for blocks, held in ((1, 4096), (1, 16384), (1, 57000), (2, 2048), (2, 4096), (2, 8192), (2, 16384), (2, 28000)):
        held = min(held, size, device.shared // 4)
        grid = (blocks * device.multiprocessors,)

        def run(ids: Any, grid: tuple[int] = grid, held: int = held) -> Any:
            counts = cupy.zeros(size, np.uint64)
            kernel(grid, (1024,), (ids, np.uint64(len(ids)), np.uint32(held), counts), shared_mem=4 * held)
            return counts

        if not np.array_equal(run(ids).get(), expected):
            raise SystemExit("the baseline histogram is WRONG")
        seconds = device.seconds([lambda c=c: run(c) for c in copies])
        if seconds < best["seconds"]:
            warm = device.seconds([lambda: run(ids)])
            best = {"seconds": seconds, "warm": warm, "blocks_per_multiprocessor": blocks, "held": held}
    return best


def sweep_seconds(device: Device, residents: Sequence[Any], roots: Sequence[Any]) -> float:
    runs = [lambda g=g, r=r: cuda.top_down_weights(g, r) for g, r in zip(residents, roots, strict=True)]
    return device.seconds(runs)


def selections(counts: Any, half: Any, size: int) -> dict[str, float]:
    rank = np.random.default_rng(0).permutation(size).astype(np.uint32)
    shuffled = types.SimpleNamespace(ascending=rank[:-1] < rank[1:], rank=rank, rank_of=lambda ids: rank[ids])
    in_order = types.SimpleNamespace(ascending=np.ones(max(size - 1, 0), bool), rank=np.arange(size, dtype=np.uint32))
    in_order.rank_of = lambda ids: ids
    return {
        "top 20": wall(lambda: cuda.select(half, shuffled, 1, 20)),
        "top 1000": wall(lambda: cuda.select(half, shuffled, 1, 1000)),
        "all, in order": wall(lambda: cuda.select(counts, in_order, 1, None)),
        "all, sorted": wall(lambda: cuda.select(half, shuffled, 1, None)),
    }


def check_selection(half: Any, size: int) -> None:
    rank = np.random.default_rng(0).permutation(size).astype(np.uint32)
    words = types.SimpleNamespace(ascending=rank[:-1] < rank[1:], rank=rank, rank_of=lambda ids: rank[ids])
    counts = cuda.to_host(half)
    for least, top in ((1, None), (1, 20), (3, 1000), (2, size)):
        ids = np.flatnonzero(counts >= least)
        ids = ids[np.lexsort((rank[ids], ~counts[ids]))][:top]
        got_ids, got_counts = cuda.select(half, words, least, top)
        if not (np.array_equal(got_ids, ids) and np.array_equal(got_counts, counts[ids])):
            raise SystemExit(f"select(min_count={least}, top={top}) is WRONG")
    image = (np.arange(size, dtype=np.uint32) * np.uint32(7919)) % np.uint32(max(size // 3, 1))
    image[::5] = 0xFFFFFFFF
    for targets in (max(size // 3, 1), 10):
        mapped = np.where(image == 0xFFFFFFFF, image, image % np.uint32(targets))
        sums = np.zeros(targets, np.uint64)
        np.add.at(sums, mapped[mapped != 0xFFFFFFFF], counts[mapped != 0xFFFFFFFF])
        if not np.array_equal(cuda.to_host(cuda.map_counts(half, mapped, targets)), sums):
            raise SystemExit("map_counts is WRONG")


def bytes_moved(resident: Any, roots: int) -> int:
    """Each input read once; counts and weights zeroed, written and read once."""
    return 4 * roots + resident.nbytes + 2 * 8 * resident.vocabulary_size + 3 * 4 * resident.rule_count


def measure(device: Device, path: Path, variants: bool) -> dict[str, Any]:
    arrays = np.load(path)
    word_ids = np.ascontiguousarray(arrays["word_ids"], np.uint32)
    roots = np.ascontiguousarray(arrays["roots"], np.uint32)
    grammar = types.SimpleNamespace(
        vocabulary_size=int(arrays["vocabulary_size"]),
        rule_count=len(arrays["rule_offsets"]) - 1,
        level_count=len(arrays["level_offsets"]) - 1,
        **{key: np.ascontiguousarray(arrays[key], np.uint32) for key in ("rule_offsets", "symbols", "level_offsets")},
    )
    size, words = grammar.vocabulary_size, len(word_ids)
    expected = np.bincount(word_ids, minlength=size).astype(np.uint64)
    resident = check(grammar, roots, word_ids, path.name)
    ids, device_roots = cuda.load_symbols(word_ids), cuda.load_symbols(roots)
    counts = cuda.top_down_weights(resident, device_roots)
    half = cuda.top_down_weights(resident, device_roots[::2])
    check_selection(half, size)

    input_bytes = resident.nbytes + roots.nbytes
    copies = device.copies(input_bytes)
    residents = [cuda.load_grammar(grammar) for _ in range(copies)]
    root_copies = [device_roots.copy() for _ in range(copies)]
    id_copies = [ids.copy() for _ in range(device.copies(ids.nbytes))]
    naive = baseline("naive")

    def run_naive(ids: Any) -> Any:
        counts = cupy.zeros(size, np.uint64)
        naive((8 * device.multiprocessors,), (256,), (ids, np.uint64(words), counts))
        return counts

    if not np.array_equal(run_naive(ids).get(), expected):
        raise SystemExit("the naive baseline is WRONG")
    result: dict[str, Any] = {
        "corpus": path.stem,
        "words": words,
        "vocabulary": size,
        "rules": grammar.rule_count,
        "levels": grammar.level_count,
        "steps": len(resident.steps),
        "symbols": len(roots) + len(grammar.symbols),
        "fused_symbols": len(roots) + int(resident.steps.get().max(initial=0)),
        "copies": copies,
        "bytes_moved": bytes_moved(resident, len(roots)),
        "grammar": {"seconds": sweep_seconds(device, residents, root_copies)},
        "histogram": time_histogram(device, ids, size, expected),
        "naive": {"seconds": device.seconds([lambda c=c: run_naive(c) for c in id_copies], 50)},
        "bincount": {"seconds": wall(lambda: cupy.bincount(ids, minlength=size))},
        "grammar_wall": wall(lambda: cuda.top_down_weights(resident, device_roots)),
        "select": selections(counts, half, size),
        "transfer": {
            "roots": wall(lambda: cuda.load_symbols(roots)),
            "grammar": wall(lambda: cuda.load_grammar(grammar), 5),
            "of which fusing levels": wall(
                lambda: fuse_levels.fuse_levels(size, grammar.rule_offsets, grammar.symbols, grammar.level_offsets), 5
            ),
            "word ids": wall(lambda: cuda.load_symbols(word_ids), 5),
        },
    }
    result["grammar"]["warm"] = sweep_seconds(device, [resident], [device_roots])
    if variants:
        result["variants"] = measure_variants(device, grammar, roots, root_copies, word_ids, residents)
    return result


def owners_of(grammar: Any, resident: Any, variant: str) -> Any:
    offsets, _, _ = fuse_levels.fuse_levels(
        grammar.vocabulary_size, grammar.rule_offsets, grammar.symbols, grammar.level_offsets, counts_cuda.design.growth
    )
    starts = offsets[:-1][np.diff(offsets) > 0]
    if variant == "binary search":
        return cupy.asarray(np.concatenate([np.array([len(starts)], np.uint32), starts]))
    positions = np.arange(len(resident.symbols), dtype=np.uint32)
    return cupy.asarray((np.searchsorted(starts, positions, side="right") - 1).astype(np.uint32))


def measure_variants(
    device: Device, grammar: Any, roots: np.ndarray, root_copies: Sequence[Any], word_ids: np.ndarray, default: Any
) -> dict[str, float]:
    standard, source = counts_cuda.design, cuda_device.source
    designs: dict[str, dict[str, int]] = {
        "as is": {},
        "512 x 1": {"threads": 512},
        "512 x 2": {"threads": 512, "blocks_per_multiprocessor": 2},
        "512 x 3, 8192 shared words": {"threads": 512, "blocks_per_multiprocessor": 3, "private_words": 8192},
        "256 x 4": {"threads": 256, "blocks_per_multiprocessor": 4},
        "1024 x 2": {"blocks_per_multiprocessor": 2},
        "no shared words": {"private_words": 0},
        **{f"{n} shared words": {"private_words": n} for n in (1024, 4096, 8192, 32768, 50000)},
        **{f"{n} hot slots": {"hot_slots": n} for n in (0, 1024, 2048, 4096, 16384)},
        "no hot slots, no shared words": {"hot_slots": 0, "private_words": 0},
        "no fusing": {"growth": -1},
        **{f"fusing up to 2^{n}": {"growth": 1 << n} for n in (13, 15, 16, 18, 19, 20)},
        "as is, again": {},
    }
    times: dict[str, float] = {}
    for label, changes in designs.items():
        counts_cuda.design = dataclasses.replace(standard, **changes)
        residents = default
        if "growth" in changes:
            residents = [cuda.load_grammar(grammar) for _ in root_copies]
            label += f" ({len(residents[0].steps)} steps)"
        check_counts(residents[0], root_copies[0], word_ids)
        times[label] = sweep_seconds(device, residents, root_copies)
    counts_cuda.design = standard
    for label, text in OWNER_VARIANTS.items():

        def changed(family: str, text: str = text) -> str:
            standing = "using Owners = RankedOwners;"
            assert family != "top_down" or standing in source(family)
            return source(family).replace(standing, text + "using Owners = Variant;")

        cuda_device.source = changed
        forget_kernels()
        owners = owners_of(grammar, default[0], label)
        residents = [dataclasses.replace(resident, owners=owners.copy()) for resident in default]
        check_counts(residents[0], root_copies[0], word_ids)
        times[label] = sweep_seconds(device, residents, root_copies)
    cuda_device.source = source
    forget_kernels()
    return times


def check_counts(resident: Any, roots: Any, word_ids: np.ndarray) -> None:
    counts = cuda.to_host(cuda.top_down_weights(resident, roots))
    if not np.array_equal(counts, np.bincount(word_ids, minlength=resident.vocabulary_size)):
        raise SystemExit(f"WRONG counts with {counts_cuda.design}")


def forget_kernels() -> None:
    for cached in (cuda_device._module, cuda_device.get_kernel, cuda_device._resident):
        cached.cache_clear()


def compile_times() -> dict[str, float]:
    """Seconds that each family takes the first time ever; the first one loads the compiler."""
    baseline("delay")
    taken = {}
    for family, kernel in (("owners", "mark_owners"), ("map_counts", "map_counts"), ("select", "survey")):
        start = time.perf_counter()
        cuda_device.get_kernel(family, kernel)
        taken[family] = time.perf_counter() - start
    start = time.perf_counter()
    defines = counts_cuda.top_down_defines(counts_cuda.design.hot_slots)
    cuda_device.resident("top_down", "top_down_weights", defines, counts_cuda.design.threads, cooperative=True)
    taken["top_down"] = time.perf_counter() - start
    return taken


def show(device: Device, results: Sequence[dict[str, Any]], compiling: dict[str, float]) -> None:
    def us(seconds: float) -> str:
        return f"{1e6 * seconds:9.1f}"

    print(f"\n{device.name}: copy ceiling {device.bandwidth / 1e12:.2f} TB/s, L2 {device.l2 >> 20} MiB")
    print("first compile, ms:", ", ".join(f"{k} {1e3 * v:.0f}" for k, v in compiling.items()))
    for r in results:
        if "variants" in r:
            print(f"\n{r['corpus']}: variants, us")
            for label, seconds in r["variants"].items():
                print(f"  {us(seconds)}  {label}")
    for r in results:
        print(f"\n{r['corpus']}: other times, us (wall)")
        print("   select:  ", ", ".join(f"{k} {1e6 * v:.0f}" for k, v in r["select"].items()))
        print("   transfer:", ", ".join(f"{k} {1e6 * v:.0f}" for k, v in r["transfer"].items()))
        print(f"   top_down_weights with the host's part {1e6 * r['grammar_wall']:.0f}; histogram: {r['histogram']}")
    heads = ("words", "sym/word", "levels", "steps", "grammar", "warm", "histogram", "warm", "naive", "bincount")
    print("\nus; (a) grammar, (b) histogram, (c) naive, (d) cupy.bincount (wall); cold unless warm")
    print(f"{'corpus':<18}" + "".join(f"{h:>10}" for h in heads) + f"{'(b)/(a)':>9}{'warm':>7}{'MB':>7}{'of peak':>9}")
    for r in results:
        a, b = r["grammar"], r["histogram"]
        share = r["bytes_moved"] / a["seconds"] / device.bandwidth
        print(
            f"{r['corpus'][:17]:<18}{r['words']:>10}{r['symbols'] / max(r['words'], 1):>10.3f}{r['levels']:>10}"
            f"{r['steps']:>10} {us(a['seconds'])} {us(a['warm'])} {us(b['seconds'])} {us(b['warm'])} "
            f"{us(r['naive']['seconds'])} {us(r['bincount']['seconds'])}{b['seconds'] / a['seconds']:>9.2f}"
            f"{b['warm'] / a['warm']:>7.2f}{r['bytes_moved'] / 1e6:>7.1f}{share:>9.1%}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help=".npz files from export_corpus.py")
    parser.add_argument("--variants", action="store_true", help="time other designs of the kernel too")
    parser.add_argument("--out", type=Path, help="write all numbers as JSON")
    arguments = parser.parse_args()
    problem = cuda.device_problem()
    if problem is not None:
        raise SystemExit(problem)
    compiling = compile_times()
    device = Device()
    results = []
    for path in arguments.files:
        results.append(measure(device, path, arguments.variants))
        cupy.get_default_memory_pool().free_all_blocks()
        if arguments.out:  # after each file: a run that is cut off leaves what it had
            facts = {"device": device.name, "bandwidth": device.bandwidth, "compile": compiling, "results": results}
            arguments.out.write_text(json.dumps(facts, indent=1))
    show(device, results, compiling)


if __name__ == "__main__":
    main()
