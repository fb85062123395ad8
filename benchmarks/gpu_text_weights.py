"""Weights of plain text on the GPU, step by step: documents in host memory to identifiers, words and weights there.

``python -m benchmarks.gpu_text_weights vocabulary.parquet --megabytes 200 500`` draws documents as
``benchmarks.drawn_text`` does, takes each step with its bytes and their rate, the ways of mapping words (hash table,
sort, a dictionary of the whole vocabulary) and of sorting documents (each in shared memory, all together by a radix
sort), and the calls as a whole beside two CPU cores. Results of both engines are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa

import polars_tadoc as tadoc
from benchmarks import corpora, drawn_text
from polars_tadoc.engine.choose import choose
from polars_tadoc.kernels.documents import text_terms_cuda as text_terms
from polars_tadoc.kernels.primitives.primitives_cuda import radix_sort
from polars_tadoc.kernels.primitives.to_arrow_cpu import spread
from polars_tadoc.kernels.tokenize import number_words_cuda as text_words
from polars_tadoc.kernels.tokenize.number_words_cpu import Known
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.arrow_memory import binary_views
from polars_tadoc.traversal.text_source import prepare_text

WORDS = Tokenizer("words")
K1, B = 1.2, 0.75


def milliseconds(call: Callable[[], object], repeat: int) -> float:
    """Median time of a call, the device's work done."""
    import cupy

    taken = []
    for _ in range(repeat + 1):  # the first one is not counted
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        call()
        cupy.cuda.Device().synchronize()
        taken.append(1e3 * (time.perf_counter() - start))
    return statistics.median(taken[1:])


def event_milliseconds(call: Callable[[], object], repeat: int) -> float:
    """Median time on the device alone."""
    import cupy

    taken = []
    for _ in range(repeat + 1):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        call()
        end.record()
        end.synchronize()
        taken.append(cupy.cuda.get_elapsed_time(begin, end))
    return statistics.median(taken[1:])


def weigh(
    text: pl.Series, engine: str, mapping: str | None = None, dictionary: tadoc.Dictionary | None = None
) -> pa.Table:
    """Weigh as the paper does, from a series to a table."""
    chosen = choose(engine, 0)
    if mapping:
        kernels = SimpleNamespace(**vars(chosen.kernels))
        kernels.number_words = partial(text_words.number_words, mapping=mapping)
        chosen = replace(chosen, kernels=kernels)
    kernels = chosen.kernels
    source = prepare_text(text, WORDS, chosen, dictionary=dictionary)
    offsets, ids, counts = kernels.terms_by_document(source.rules, source.root_offsets, source.roots, "top_down")
    documents = len(source.rows)
    frequencies = kernels.to_host(kernels.document_frequencies(ids, len(source.words))).astype(np.float64)
    lengths = kernels.to_host(source.lengths).astype(np.float64)
    idf = np.log((documents + 0.5) / (frequencies + 0.5)) * (K1 + 1)
    norms = K1 * ((1 - B) + B * lengths / lengths.mean())
    weights = kernels.weigh_bm25(offsets, ids, counts, kernels.load_array(idf), kernels.load_array(norms), None)
    labels = spread(source.rows.astype(np.uint32), kernels.to_host(offsets))
    own_ids, own_weights = kernels.to_arrow([ids, weights])
    words = pa.DictionaryArray.from_arrays(own_ids, source.words.strings, safe=False)
    return pa.table({"id": labels, "word": words, "weight": own_weights})


def report(step: str, taken: float, moved: float, limit: float = 0) -> None:
    """Print a line: time, bytes that the step cannot do without, their rate."""
    print(f"  {step:34s} {taken:8.2f} ms  {moved / 1e6:8.1f} MB  {moved / taken / 1e6:8.1f} GB/s", end="")
    print(f"  {100 * moved / taken / 1e6 / limit:4.0f} % of {limit:.0f}" if limit else "")


def limits() -> tuple[float, float, float]:
    """GB/s of copies to the device, from it (pinned memory) and on it (bytes read and written)."""
    import cupy

    size = 256 << 20
    device, pinned = cupy.empty((2, size), np.uint8), cupy.cuda.alloc_pinned_memory(size)
    view = np.frombuffer(pinned, np.uint8, size)
    view[:] = 1
    there = event_milliseconds(lambda: device[0].set(view), 5)
    back = event_milliseconds(lambda: device[0].get(out=view), 5)
    within = event_milliseconds(lambda: cupy.copyto(device[1], device[0]), 5)
    return size / there / 1e6, size / back / 1e6, 2 * size / within / 1e6


def steps(text: pl.Series, dictionary: tadoc.Dictionary, repeat: int, bounds: tuple[float, float, float]) -> None:
    """Take each step of the device's way."""
    to_device, to_host, on_device = bounds
    chosen = choose("gpu", 0)
    kernels = chosen.kernels
    import cupy

    size = int(text.str.len_bytes().sum())
    addresses, lengths, views = binary_views(text)
    before = np.append(0, np.cumsum(lengths, dtype=np.int64))
    report("upload", milliseconds(lambda: text_words.upload_rows(addresses, before), repeat), size, to_device)
    taken = milliseconds(lambda: text_words.cut_words(text, WORDS), repeat)
    words = text_words.cut_words(text, WORDS)
    count, rows = len(words.starts), len(text)
    report("upload and cut", taken, size, to_device)
    offsets32 = before.astype(np.uint32)
    taken = milliseconds(lambda: text_words._cut_at_classes(words.text, offsets32, WORDS), repeat)
    report("cut", taken, size + 8.0 * count, on_device)
    del views
    found = {}
    for mapping, number in text_words._NUMBER.items():
        taken = milliseconds(lambda number=number: number(words.text, words.starts, words.stops), repeat)  # type: ignore[misc]
        report(f"number words: {mapping}", taken, size + 12.0 * count, on_device)
        found[mapping] = number(words.text, words.starts, words.stops)
    known = Known(dictionary.on(chosen), len(dictionary), Vocabulary)
    taken = milliseconds(lambda: text_words._number_known(words, known), repeat)
    report("number words: dictionary", taken, size + 12.0 * count, on_device)
    ids, vocabulary = found["hash"].ids, len(found["hash"].distinct)
    if not bool((found["sort"].ids == ids).all()) or not found["sort"].distinct.equals(found["hash"].distinct):
        raise SystemExit("the mappings differ")
    given = (vocabulary, words.offsets, ids)
    offsets, terms, counts = text_terms.terms_of_text(*given)
    moved = 4.0 * count + 12.0 * len(terms)
    report(
        "sort and count by document",
        event_milliseconds(lambda: text_terms.terms_of_text(*given), repeat),
        moved,
        on_device,
    )
    with patch.object(text_terms, "LIMITS", (0, 0, 0, 0)):
        taken = event_milliseconds(lambda: text_terms.terms_of_text(*given), repeat)
        report("the same by one radix sort", taken, moved, on_device)
    keys = ids.astype(np.uint64)
    taken = event_milliseconds(lambda: radix_sort(keys, bits=8), repeat)
    report("one pass of that sort (64-bit keys)", taken, 16.0 * count, on_device)
    taken = event_milliseconds(lambda: kernels.document_frequencies(terms, vocabulary), repeat)
    report("document frequencies", taken, 4.0 * len(terms), on_device)
    idf, norms = cupy.ones(vocabulary), cupy.ones(rows)
    bm25 = (offsets, terms, counts, idf, norms, None)
    report("weights", event_milliseconds(lambda: kernels.weigh_bm25(*bm25), repeat), 20.0 * len(terms), on_device)
    weights = kernels.weigh_bm25(*bm25)
    result = 12.0 * len(terms)
    report(
        "words and weights to the host",
        milliseconds(lambda: kernels.to_arrow([terms, weights]), repeat),
        result,
        to_host,
    )
    report("and one after another, kept", _kept(kernels, terms, weights, repeat), result, to_host)
    starts, numbers = offsets.get(), np.arange(rows, dtype=np.uint32)
    report("identifiers, on the host", milliseconds(lambda: spread(numbers, starts), repeat), 4.0 * len(terms))
    print(f"  {count:,} words, {vocabulary:,} distinct, {len(terms):,} terms of {rows:,} documents")


def _kept(kernels: Any, terms: Any, weights: Any, repeat: int) -> float:
    """Time of copies to the host whose memory is fresh each time: the results before are still there."""
    held: list[Any] = []
    return milliseconds(lambda: held.append(kernels.to_arrow([terms, weights])), repeat)


def whole(text: pl.Series, dictionary: tadoc.Dictionary, repeat: int, cores: int) -> None:
    """Take the calls as a whole, beside CPU cores."""
    size = int(text.str.len_bytes().sum())
    with tadoc.Config(threads=cores):
        expected = weigh(text, "cpu")
        start = time.perf_counter()
        weigh(text, "cpu")
        cpu = 1e3 * (time.perf_counter() - start)
    print(f"  whole, CPU, {cores} cores             {cpu:8.1f} ms  {size / cpu / 1e6:8.2f} GB/s")
    calls: dict[str, Callable[[], Any]] = {
        f"whole, {mapping}": lambda mapping=mapping: weigh(text, "gpu", mapping)
        for mapping in text_words._NUMBER  # type: ignore[misc]
    }
    calls["whole, dictionary"] = lambda: weigh(text, "gpu", dictionary=dictionary)
    calls["bm25_weights"] = lambda: tadoc.bm25_weights(text, engine="gpu")
    calls["bm25_weights, dictionary"] = lambda: tadoc.bm25_weights(text, dictionary=dictionary, engine="gpu")
    for name, call in calls.items():
        if name.startswith("whole") and not call().equals(expected):
            raise SystemExit(f"{name}: the engines differ")
        taken = milliseconds(call, repeat)
        print(f"  {name:34s} {taken:8.2f} ms  {size / taken / 1e6:8.2f} GB/s  {cpu / taken:6.1f} times {cores} cores")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vocabulary", type=Path, help="Parquet file with columns word and count")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[200])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2)
    args = parser.parse_args()
    import cupy

    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"machine: {corpora.machine()}; {device}, CuPy {cupy.__version__}")
    bounds = limits()
    print("GB/s to the device, from it, on it: " + ", ".join(f"{bound:.1f}" for bound in bounds))
    vocabulary = drawn_text.vocabulary(args.vocabulary)
    dictionary = tadoc.Dictionary.from_words(vocabulary["word"])
    for megabytes in args.megabytes:
        text = drawn_text.draw(vocabulary, megabytes)
        print(f"{megabytes} MB")
        steps(text, dictionary, args.repeat, bounds)
        whole(text, dictionary, args.repeat, args.cores)


if __name__ == "__main__":
    main()
