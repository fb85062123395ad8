"""Where compression's time goes: ``python -m benchmarks.compress_stages``.

Seconds, processor seconds and page faults of each stage and of the calls that run rounds, of one thread of control:
what other threads do meanwhile counts too, so stages that run side by side count each other's. ``--digests`` prints a
hash of the compressed column by corpus and number of threads instead, to compare grammars before and after a change.
"""

from __future__ import annotations

import hashlib
import resource
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from polars_tadoc.model.text_type import storage

MODULES = {
    "tokenize": ["kernels.tokenize.tokenizer", "cut", "number", "_encode_gaps"],
    "words": ["kernels.tokenize.shared_words_cpu.SharedWords", "number", "grow"],
    "rounds": ["kernels.repair.compress_cpu.batch_repair", "build"],
    "regions": ["kernels.repair.batch_repair._Rounds", "run", "run_regions"],
    "rules": ["kernels.repair.compress_cpu", "tokenize", "prune", "predict_gaps"],
    "frame": ["model.payload", "encode"],
    "column": ["model.column", "build"],
}


def owner_of(path: str) -> Any:
    """Import the module or class at a path."""
    parts = path.split(".")
    for stop in range(len(parts), 0, -1):
        try:
            found = import_module("polars_tadoc." + ".".join(parts[:stop]))
        except ModuleNotFoundError:
            continue
        for part in parts[stop:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(path)


def used() -> tuple[float, float, int]:
    """Wall seconds, processor seconds and page faults so far."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), own.ru_utime + own.ru_stime, own.ru_minflt


def by_stage(run: Callable[[], object]) -> dict[str, list[float]]:
    """Run once; return what each stage used."""
    taken: dict[str, list[float]] = {}

    def timed(label: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def stage(*arguments: Any, **options: Any) -> Any:
            before = used()
            try:
                return original(*arguments, **options)
            finally:
                own = taken.setdefault(label, [0.0] * 4)
                for k, (start, stop) in enumerate(zip(before, used(), strict=True)):
                    own[k] += stop - start
                own[3] += 1

        return stage

    replaced = []
    try:
        for group, (path, *names) in MODULES.items():
            owner = owner_of(path)
            for name in names:
                original = getattr(owner, name)
                replaced.append((owner, name, original))
                setattr(owner, name, timed(f"{group}.{name}", original))
        timed("whole", run)()
    finally:
        for owner, name, original in replaced:
            setattr(owner, name, original)
    return taken


def digest_of(column: pl.Series) -> str:
    """Hash payloads, symbols, gaps and validity of a compressed column."""
    rows = storage(column)
    own = hashlib.blake2b(digest_size=12)
    for field in rows.struct.fields:
        values = rows.struct.field(field)
        if values.dtype == pl.List(pl.UInt32):
            for part in (values.list.len(), values.explode(empty_as_null=False)):
                own.update(part.fill_null(0xFFFFFFFF).to_numpy().tobytes())
        elif values.dtype == pl.Binary:
            own.update(values.bin.size().fill_null(0xFFFFFFFF).to_numpy().tobytes())
            own.update(b"".join(values.drop_nulls()))
        else:
            for payload in values.unique(maintain_order=True).drop_nulls().cast(pl.String):
                own.update(payload.encode())
            own.update(values.to_physical().rle_id().to_numpy().tobytes())
    own.update(rows.is_null().to_numpy().tobytes())
    return own.hexdigest()


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--threads", type=int, nargs="*", default=[2])
    parser.add_argument("--digests", action="store_true")
    args = parser.parse_args()
    print(f"machine: {corpora.machine()}")
    for given in corpora.names(args.corpora):
        name, text = corpora.load(given)
        size = int(text.str.len_bytes().sum())
        for threads in args.threads:
            with tadoc.Config(threads=threads, engine="cpu"):
                if args.digests:
                    print(f"{name:24} {threads:3} {digest_of(tadoc.compress(text))}", flush=True)
                    continue
                tadoc.compress(text)
                runs = [by_stage(lambda text=text: tadoc.compress(text)) for _ in range(args.repeat)]
            runs.sort(key=lambda run: run["whole"][0])
            best = runs[0]
            print(f"{name}: {size / 1e6:.1f} MB, {threads} threads, {size / 1e6 / best['whole'][0]:.1f} MB/s")
            print(f"{'':26}{'s':>9}{'cpu s':>9}{'faults':>10}{'calls':>7}")
            for label, (wall, cpu, faults, calls) in best.items():
                print(f"{label:26}{wall:9.3f}{cpu:9.3f}{faults:10.0f}{calls:7.0f}")


if __name__ == "__main__":
    main()
