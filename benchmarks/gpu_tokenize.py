"""Tokenizing on the GPU: all of it, its stages and its kernels, against the CPU.

``python -m benchmarks.gpu_tokenize [--together] corpora``: text in host memory to word ids on the device. The
stages are timed with the device waited for after each, the kernels with events; ``--variants`` compiles the
interning kernel with other sizes and uploads in chunks of other sizes.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl

from benchmarks import corpora
from polars_tadoc.kernels.primitives import upload_cuda as upload
from polars_tadoc.kernels.repair import batch_repair
from polars_tadoc.kernels.repair import gaps_cuda as gaps
from polars_tadoc.kernels.repair.prune import prune
from polars_tadoc.kernels.repair.prune_cuda import DeviceLevelledRules
from polars_tadoc.kernels.tokenize import characters
from polars_tadoc.kernels.tokenize import intern_cuda as intern
from polars_tadoc.kernels.tokenize import tokenize_cuda as tokenize
from polars_tadoc.kernels.tokenize import tokenizer as on_cpu
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.runtime import device
from polars_tadoc.runtime.arrow_memory import binary_views

WORDS = Tokenizer("words")
VARIANTS = {
    "as is": (),
    "no hot slots": ("-DHOT_SLOTS=1",),
    "512 hot slots": ("-DHOT_SLOTS=512",),
    "4096 hot slots": ("-DHOT_SLOTS=4096",),
    "as is, again": (),
}


def stages(text: pl.Series) -> dict[str, float]:
    """Milliseconds of each stage of one run."""
    import cupy

    taken: dict[str, float] = {}

    def timed(stage: str, call: Callable[[], Any]) -> Any:
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        result = call()
        cupy.cuda.Device().synchronize()
        taken[stage] = 1e3 * (time.perf_counter() - start)
        return result

    addresses, lengths, views = timed("views", lambda: binary_views(text))
    before = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    bytes_ = timed("upload", lambda: upload.upload_rows(addresses, before))
    del views
    classes = characters.classes("words")
    spans = timed("spans", lambda: tokenize._spans_of_classes(bytes_, before.astype(np.uint32), classes))
    timed("intern words", lambda: intern.intern(bytes_, spans.starts, spans.stops, leave_empty_out=True))
    noted = timed("note gaps", lambda: gaps.note_gaps(bytes_, spans.starts, spans.stops, spans.row_tokens))
    timed("encode gaps", lambda: gaps.encode_gaps(noted))
    return taken


def rules_of(text: pl.Series) -> tuple[int, Any]:
    """Vocabulary size and rules, made by the CPU and copied to the device."""
    import cupy

    tokens = on_cpu.tokenize(text, WORDS)
    size = len(tokens.vocabulary)
    rules = prune(batch_repair.build(tokens.sequence, size), size, len(text))
    fields = (rules.rule_offsets, rules.symbols, rules.level_offsets, rules.root_offsets, rules.roots)
    return size, DeviceLevelledRules(*(cupy.asarray(field) for field in fields))


def kernels(run: Callable[[], Any]) -> dict[str, float]:
    """Milliseconds of each kernel of ours in one run."""
    import cupy

    marks: list[tuple[str, Any, Any]] = []
    standing = device.get_kernel

    def recording(family: str, kernel: str, *rest: Any) -> Callable[..., None]:
        def launch(*arguments: Any, **options: Any) -> None:
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            standing(family, kernel, *rest)(*arguments, **options)
            end.record()
            marks.append((f"{family}.{kernel}", begin, end))

        return launch

    with patch.object(device, "get_kernel", recording):
        run()
    cupy.cuda.Device().synchronize()
    taken: dict[str, float] = defaultdict(float)
    for name, begin, end in marks:
        taken[name] += cupy.cuda.get_elapsed_time(begin, end)
    return taken


def median_of(run: Callable[[], dict[str, float]], repeat: int) -> dict[str, float]:
    """Median of each figure over repeated runs, after one that warms up."""
    run()
    runs = [run() for _ in range(repeat)]
    return {key: statistics.median(one[key] for one in runs) for key in runs[0]}


def wall(call: Callable[[], Any]) -> dict[str, float]:
    """Milliseconds of one call with the device waited for."""
    import cupy

    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    call()
    cupy.cuda.Device().synchronize()
    return {"ms": 1e3 * (time.perf_counter() - start)}


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--together", action="store_true", help="all corpora as one column")
    parser.add_argument("--variants", action="store_true", help="time other sizes of the interning kernel")
    parser.add_argument("--predict", action="store_true", help="time the prediction of gaps too; the CPU makes rules")
    parser.add_argument("--no-cpu", action="store_true", help="leave the CPU's time out")
    args = parser.parse_args()
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"machine: {corpora.machine()}; {name}, CuPy {cupy.__version__}")
    texts = dict(corpora.load(name) for name in corpora.names(args.corpora))
    if args.together:
        texts = {"all": pl.concat(list(texts.values())).rechunk()}
    for label, text in texts.items():
        size = int(text.str.len_bytes().sum())
        whole = median_of(lambda: wall(lambda: tokenize.tokenize(text, WORDS)), args.repeat)["ms"]  # noqa: B023
        lossy = median_of(lambda: wall(lambda: tokenize.tokenize(text, WORDS, lossless=False)), args.repeat)["ms"]  # noqa: B023
        tokens = tokenize.tokenize(text, WORDS)
        assert tokens.gaps is not None
        print(
            f"{label}: {len(text):,} rows, {size:,} bytes, {len(tokens.sequence) - len(text):,} words, "
            f"{len(tokens.vocabulary):,} distinct; {len(tokens.gaps.ids):,} gaps noted, "
            f"{len(tokens.gaps.vocabulary):,} distinct"
        )
        print(f"  whole {whole:.2f} ms ({size / whole / 1e6:.2f} GB/s), without gaps {lossy:.2f} ms")
        del tokens
        if not args.no_cpu:
            cpu = median_of(lambda: wall(lambda: on_cpu.tokenize(text, WORDS)), min(args.repeat, 3))["ms"]  # noqa: B023
            print(f"  CPU {cpu:.2f} ms, {cpu / whole:.1f} x")
        for heading, figures in (
            ("stages", lambda: stages(text)),  # noqa: B023
            ("kernels", lambda: kernels(lambda: tokenize.tokenize(text, WORDS))),  # noqa: B023
        ):
            show(heading, median_of(figures, args.repeat))
        if args.predict:
            noted, (words, rules) = tokenize.tokenize(text, WORDS).gaps, rules_of(text)
            assert noted is not None
            predict = lambda: gaps.predict_gaps(noted, words, rules)  # noqa: B023, E731
            raw, left = len(gaps.encode_gaps(noted)[1]), len(predict().data)
            print(f"  predicted gaps: {raw:,} bytes become {left:,}, {median_of(lambda: wall(predict), args.repeat)}")  # noqa: B023
            show("kernels", median_of(lambda: kernels(predict), args.repeat))  # noqa: B023
        if args.variants:
            upload_variants(text, args.repeat)
            for variant, defines in VARIANTS.items():
                intern.hash_defines = defines
                taken = median_of(lambda: kernels(lambda: tokenize.tokenize(text, WORDS)), args.repeat)  # noqa: B023
                print(f"  {variant}: intern {taken['intern.intern']:.3f} ms")


def upload_variants(text: pl.Series, repeat: int) -> None:
    """Time the upload as the driver does it from pageable and pinned memory, and in chunks of several sizes."""
    import cupy

    addresses, lengths, views = binary_views(text)
    before = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    on_device = upload.upload_rows(addresses, before)
    pageable = on_device.get()
    pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(len(pageable)), np.uint8, len(pageable))
    pinned[:] = pageable
    calls: dict[str, Callable[[], Any]] = {
        "pageable": lambda: on_device.set(pageable),
        "pinned": lambda: on_device.set(pinned),
    }
    for label, call in calls.items():
        print(f"  upload {label}: {median_of(lambda: wall(call), repeat)['ms']:.2f} ms")  # noqa: B023
    standing = upload._CHUNK
    for chunk in (1 << 18, 1 << 20, 1 << 21, 1 << 22, 1 << 23):
        upload._CHUNK = chunk
        taken = median_of(lambda: wall(lambda: upload.upload_rows(addresses, before)), repeat)["ms"]
        print(f"  upload in chunks of {chunk >> 10:,} KiB: {taken:.2f} ms")
    upload._CHUNK = standing
    del views  # the addresses point into them until here


def show(heading: str, figures: dict[str, float]) -> None:
    """Print figures on one line."""
    print(f"  {heading}: " + ", ".join(f"{key} {value:.3f}" for key, value in figures.items()))


if __name__ == "__main__":
    main()
