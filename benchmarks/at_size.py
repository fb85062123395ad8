r"""All public calls at the size that users have, results as frames: ``python -m benchmarks.at_size``.

The text is that of ``TEXTS``, all shared corpora as one column of several grammars (446 MB), or of the corpora named;
rows with Han or kana are left out, whose words Polars' ``\w+`` cuts otherwise. Each number of threads and each engine
has a process of its own (``POLARS_MAX_THREADS``, ``NUMBA_NUM_THREADS``, ``Config(threads=)``). Each call runs once to
warm up, then ``--repeat`` times, of which the fastest is printed, in milliseconds; ``--processor-time`` measures the
processor time of all threads instead, for machines that others share. Several numbers of threads also give one table of
frames by threads, with how many times faster most threads are than the fewest. Polars' queries are those of
``benchmarks.analytics``, in its cheapest form ("loose": no order, words as categories), on the streaming engine, timed
once after one run to warm up; ``times`` is Polars' time over that of the frame. ``text`` is the same call on plain
text. ``benchmarks.analytics`` compares the results themselves, and DuckDB's.

Examples
--------
::

    python -m benchmarks.at_size --threads 2 16
    python -m benchmarks.at_size --threads 1 2 4 8 16 --no-peers --forms frame
    python -m benchmarks.at_size prose_books docs_peps --threads 16 --engines cpu gpu --no-peers

"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora, side_by_side

TEXTS = [
    "docs_peps",
    "docs_tldr",
    "ir_cisi_docs",
    "ir_cranfield_docs",
    "ir_vaswani_docs",
    "logs_dmesg",
    "logs_elastic",
    "logs_loghub2k",
    "multi_cldr_annotations",
    "multi_react",
    "prose_books",
    "prose_speeches",
    "qa_gsm8k_train",
    "versioned_cockroach",
    "versioned_longhorn",
    "versioned_powershell",
    "versioned_reactnative",
    "wiki_enwiki_markup",
    "wiki_wikitext2",
    "xml_acl_papers",
    "xml_documents",
    "xml_exoplanet",
    "xml_rusdracor",
]
"""Corpora whose column ``text`` is read, in this order."""

HAN = r"[\p{Han}\p{Hiragana}\p{Katakana}\u30fc]"
TOPS = ("word_count", "term_vector", "sequence_count", "ranked_inverted_index", "cooccurrence")
ANALYTICS = (*TOPS[:1], "sort", "inverted_index", *TOPS[1:])
FORMS = ["frame", "categorical", "text", "table", "top"]
Call = Callable[[], object]
Times = dict[str, dict[tuple[str, str], float]]
"""By call, then engine and form of the result: milliseconds."""


def calls(plain: pl.DataFrame, packed: pl.DataFrame, folder: Path) -> Iterator[tuple[str, str, Call]]:
    """Give each public call: its name, the form of its result, and what runs it."""
    for name in ANALYTICS:
        yield name, "frame", lambda name=name: getattr(packed.tadoc, name)("text")  # type: ignore[misc]
        yield name, "categorical", lambda name=name: getattr(packed.tadoc, name)("text", words="categorical")  # type: ignore[misc]
        yield name, "text", lambda name=name: getattr(plain.tadoc, name)("text")  # type: ignore[misc]
        yield name, "table", lambda name=name: getattr(tadoc, name)(packed["text"])  # type: ignore[misc]
        if name in TOPS:
            yield name, "top", lambda name=name: getattr(packed.tadoc, name)("text", top=20)  # type: ignore[misc]
    yield "tfidf", "frame", lambda: packed.tadoc.tfidf("text")
    yield "bm25_weights", "frame", lambda: packed.tadoc.bm25_weights("text")
    yield "compress", "frame", lambda: plain.tadoc.compress("text")
    yield "decompress", "frame", lambda: packed.tadoc.decompress("text")
    yield "write_packed", "frame", lambda: packed.tadoc.write_packed(folder / "packed.parquet")
    yield "build_index", "frame", lambda: packed.tadoc.build_index("text")
    index = packed.tadoc.build_index("text")
    words = packed.tadoc.word_count("text", top=2000)["word"].to_list()
    queries = [f"{one} {other}" for one, other in zip(words[::2], words[1::2], strict=True)]
    yield "search, 1,000 queries", "frame", lambda: index.search(queries, k=10)


def polars_calls(plain: pl.DataFrame) -> Iterator[tuple[str, Call]]:
    """Give the analytics as Polars' cheapest queries."""
    from benchmarks.analytics import ANALYTICS as QUERIES  # DuckDB, too, which a machine with a GPU need not have

    for name, query in QUERIES.items():
        yield name, lambda query=query: query.polars(plain.lazy()).collect(engine="streaming")  # type: ignore[misc]


def fastest_ms(call: Call, repeat: int) -> float:
    """Time of a call's fastest run after one to warm up."""
    return 1e3 * min(side_by_side.times({"": call}, repeat)[""])


def measure(folder: Path, engine: str, given: argparse.Namespace) -> None:
    """Time the calls in this process; print a JSON line for each."""
    (threads,), repeat, only = given.threads, given.repeat, given.calls
    tadoc.Config.set(engine="cpu" if engine == "polars" else engine, threads=threads)
    if given.processor_time:
        side_by_side.clock = time.process_time
    plain = pl.read_parquet(folder / "plain.parquet").with_row_index("id")
    if engine == "polars":
        for name, call in polars_calls(plain):
            if not only or name in only:
                print(json.dumps([name, "frame", fastest_ms(call, 1)]), flush=True)
        return
    packed = tadoc.scan_packed(folder / "column.parquet").collect()
    for name, form, call in calls(plain.select("text"), packed, folder):
        if form in given.forms and (not only or name.split(",")[0] in only):
            print(json.dumps([name, form, fastest_ms(call, repeat)]), flush=True)


def main() -> None:
    """Print a table for each number of threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", default=TEXTS, help="names of shared corpora (default: all)")
    parser.add_argument("--threads", type=int, nargs="+", default=[os.cpu_count() or 1])
    parser.add_argument("--engines", nargs="+", default=["cpu"], choices=["cpu", "gpu", "auto"])
    parser.add_argument("--calls", nargs="*", default=[], help="only these")
    parser.add_argument("--forms", nargs="+", default=FORMS, choices=FORMS, help="these forms of results")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--copies", type=int, default=1, help="so many copies of the text, one after another")
    parser.add_argument("--no-peers", action="store_true", help="without Polars")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measure(Path(given.measure[0]), given.measure[1], given)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = pl.concat([corpora.load(corpus)[1].drop_nulls() for corpus in given.corpora] * given.copies)
        plain = text.to_frame("text").filter(~pl.col("text").str.contains(HAN)).rechunk()
        plain.write_parquet(folder / "plain.parquet", compression="lz4")
        column = plain.tadoc.compress("text")
        column.tadoc.write_packed(folder / "column.parquet")
        size, grammars = plain["text"].str.len_bytes().sum() / 1e6, column.tadoc.info("text")["grammars"].item()
        measured = "processor time" if given.processor_time else "time"
        print(f"{corpora.machine()}; {size:,.1f} MB, {len(plain):,} rows, {grammars} grammars; {measured}")
        engines = [*given.engines, *([] if given.no_peers else ["polars"])]
        found = {threads: table(folder, threads, engines, given) for threads in given.threads}
        if len(found) > 1 and "frame" in given.forms:
            for engine in given.engines:
                by_threads(found, engine)


def table(folder: Path, threads: int, engines: list[str], given: argparse.Namespace) -> Times:
    """Print the table for a number of threads."""
    found: Times = {}
    environment = {**os.environ, "POLARS_MAX_THREADS": str(threads), "NUMBA_NUM_THREADS": str(threads)}
    for engine in engines:
        own = [sys.executable, "-m", "benchmarks.at_size", "--measure", str(folder), engine]
        options = ["--threads", str(threads), "--repeat", str(given.repeat), "--calls", *given.calls]
        options += ["--forms", *given.forms, *["--processor-time"] * given.processor_time]
        done = subprocess.run([*own, *options], env=environment, stdout=subprocess.PIPE, text=True, check=False)
        for line in done.stdout.splitlines():
            call, form, ms = json.loads(line)
            found.setdefault(call, {})[engine, form] = ms
        if done.returncode:
            print(f"{engine} ended with {done.returncode}")
    own = [engine for engine in engines if engine != "polars"]
    columns = [(engine, form) for engine in own for form in given.forms]
    heads = [*(f"{engine} {form} ms" for engine, form in columns), "Polars ms", "times"]
    print(f"\n{threads} threads\n\n| call | {' | '.join(heads)} |\n| --- |{' --: |' * len(heads)}")
    for call, times in found.items():
        cells = [f"{times[column]:,.1f}" if column in times else "" for column in columns]
        peer, best = times.get(("polars", "frame")), min((times.get((one, "frame"), 0.0) for one in own), default=0.0)
        cells += [f"{peer:,.0f}", f"{peer / best:.1f}" if best else ""] if peer else ["", ""]
        print(f"| {call} | {' | '.join(cells)} |", flush=True)
    return found


def by_threads(found: dict[int, Times], engine: str) -> None:
    """Print an engine's frames by numbers of threads."""
    print(f"\n{engine}, frames, ms by threads\n\n| call | {' | '.join(map(str, found))} | times |")
    print(f"| --- |{' --: |' * (len(found) + 1)}")
    fewest, most = min(found), max(found)
    for call, times in found[fewest].items():
        own = {threads: found[threads].get(call, {}).get((engine, "frame")) for threads in found}
        cells = ["" if ms is None else f"{ms:,.1f}" for ms in own.values()]
        first, last = times.get((engine, "frame")), own[most]
        print(f"| {call} | {' | '.join(cells)} | {f'{first / last:.1f}' if first and last else ''} |")


if __name__ == "__main__":
    main()
