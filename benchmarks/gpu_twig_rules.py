"""Filters compressed XML by twig queries on a GPU, beside the same documents as parsed events; MB/s of XML.

``python -m benchmarks.gpu_twig_rules --write FOLDER`` compresses the XML corpora and draws queries of 10 nodes and 3
splits with ``*`` and ``//`` at 10 % from them (it needs lxml and the corpora), ``python -m benchmarks.gpu_twig_rules
FOLDER`` runs on them.

``rules`` is the matcher over a grammar that is on the device, ``events`` the one over parsed events there, between
CUDA events; ``cpu rules`` and ``cpu events`` are ours on as many threads as said, on the same machine, after they have
seen these documents. Results are compared first.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from polars_tadoc.engine.choose import CPU, GPU
from polars_tadoc.model import column
from polars_tadoc.twig.events import parse_documents
from polars_tadoc.twig.words import Declarations, JudgedWords

CORPORA = ("xml_acl_papers", "xml_exoplanet", "multi_cldr_annotations")
COUNTS = (32, 256, 2048)
MAX_LEVELS = 10_000


def write(folder: Path) -> None:
    """Write compressed columns and queries."""
    from benchmarks.twig_queries import Sample, Shape

    folder.mkdir(parents=True, exist_ok=True)
    for name in CORPORA:
        _, text = corpora.load(name)
        tadoc.compress(text, tokenizer="xml").to_frame("text").write_parquet(folder / f"{name}.parquet")
        drawn = Sample(text.gather_every(max(1, len(text) // 60)).to_list()).draw(
            COUNTS[-1], Shape(10, 3, 0.1, 0.1), seed=1
        )
        (folder / f"{name}.json").write_text(json.dumps([drawn.queries, drawn.namespaces]), "utf-8")


def measure(compressed: pl.Series, twigs: tadoc.TwigSet, threads: int, repeat: int) -> dict[str, float]:
    """Time all ways over one column of one grammar; megabytes of XML a second."""
    from benchmarks.gpu_sequences import device_ms, wall_ms
    from polars_tadoc.engine import cuda

    (part,) = column.split(compressed)
    text = tadoc.decompress(compressed)
    compiled = twigs._compiled()
    contexts, _ = Declarations.of(part.grammar).contexts(part.root_offsets, part.roots)
    words = JudgedWords.of(part.grammar.vocabulary, contexts[0]).events(compiled.alphabet)
    events = parse_documents(text, compiled.alphabet, max_depth=MAX_LEVELS, max_bytes=1 << 30).events
    own, device = compiled.matcher(CPU), compiled.matcher(GPU)
    rules, device_rules = CPU.kernels.load_rules(part.grammar), cuda.load_rules(part.grammar)
    offsets, roots = cuda.load_array(part.root_offsets), cuda.load_array(part.roots)
    device_words, device_events = cuda.load_word_events(words), cuda.load_events(events)
    expected = own.match(events)
    ways = {
        "rules": lambda: device.match_rules(device_rules, offsets, roots, device_words, MAX_LEVELS),
        "events": lambda: device.match(device_events),
    }
    for name, call in ways.items():
        if any(not np.array_equal(cuda.to_host(a), b) for a, b in zip(call()[:2], expected, strict=True)):
            raise SystemExit(f"{name}, {len(twigs)} queries: WRONG")
    taken = device_ms(ways, repeat)
    with tadoc.Config(threads=threads):
        for _ in range(3):  # documents that come again are paired
            own.match_rules(rules, part.root_offsets, part.roots, words, MAX_LEVELS)
        taken["cpu rules"] = wall_ms(
            lambda: own.match_rules(rules, part.root_offsets, part.roots, words, MAX_LEVELS), repeat
        )
        taken["cpu events"] = wall_ms(lambda: own.match(events), repeat)
    size = int(text.str.len_bytes().sum())
    return {way: size / 1e3 / ms for way, ms in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write compressed columns and queries")
    parser.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))), help="of the CPU engine")
    parser.add_argument("--repeat", type=int, default=9)
    args = parser.parse_args()
    if args.write:
        return write(args.write)
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"machine: {corpora.machine()}; {name}, CuPy {cupy.__version__}; CPU on {args.threads} threads; MB/s of XML")
    print(f"{'corpus':24}{'queries':>9}{'rules':>12}{'events':>12}{'cpu rules':>12}{'cpu events':>12}   ratios")
    for corpus in CORPORA:
        compressed = pl.read_parquet(args.folder / f"{corpus}.parquet")["text"]
        queries, namespaces = json.loads((args.folder / f"{corpus}.json").read_text("utf-8"))
        for count in COUNTS:
            twigs = tadoc.TwigSet(dict(list(queries.items())[:count]), namespaces=namespaces)
            row = measure(compressed, twigs, args.threads, args.repeat)
            print(f"{corpus:24}{count:9,}" + "".join(f"{speed:12,.0f}" for speed in row.values()), end="")
            ratios = (
                f"rules/events {row['rules'] / row['events']:.2f}, GPU/CPU rules {row['rules'] / row['cpu rules']:.1f}"
            )
            print(f"   {ratios}, events {row['events'] / row['cpu events']:.1f}", flush=True)
    return None


if __name__ == "__main__":
    main()
