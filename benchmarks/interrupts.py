"""How long Ctrl-C takes: from SIGINT to KeyboardInterrupt in every long call, at moments drawn at random.

``python -m benchmarks.interrupts FILE.parquet … --megabytes 446 --jobs 8`` reads the column ``text`` of the files
(plain, compressed or packed) as one, or that of every file of the corpora folder. Where ``--megabytes`` asks for more,
near copies of the rows follow: each copy of a row has a word of its own. Inputs (a compressed column, a packed file, an
index, XML) are made once, in ``--inputs``, and used again if they are there.

Each call runs in a process of its own: once whole, then interrupted by another process at ``--moments`` moments, then
interrupted once more where nothing catches it. The table has, for each call, the seconds of the whole call, the
interrupts that came while it ran, the median and the worst time to ``KeyboardInterrupt``, whether each interrupt was
told once, the CPU seconds that the process spent in the half second after (threads that were left behind), and how long
after the last interrupt the process was gone. ``--jobs`` runs so many calls at once, each on cores of its own.

Exits with 1 if an interrupt took more than a second, or was not told once.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import queue
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora

TOLD = 1.0
"""Seconds in which an interrupt has to be told."""

SETTLE = 0.5
"""Seconds of wall time in which CPU time must not grow afterwards."""

HANGS = 300.0
"""Seconds after an interrupt in which a call has to end."""

PLAYS = corpora.SAMPLES / "xml" / "plays.parquet"

MAKE = "inputs"
"""What makes inputs, in place of a call."""

TEXT, COLUMN, PACKED, INDEX, XML, WORDS = "text", "column", "packed", "index", "xml", "words"


def _index_and_more(folder: Path) -> tuple[tadoc.Index, pl.DataFrame, Path]:
    """Return an index of all documents, as many more, and where the index is."""
    df = pl.read_parquet(folder / COLUMN)
    return tadoc.load_index(folder / INDEX), df.with_columns(pl.col("id") + df.height), folder / INDEX


READ: dict[str, Callable[[Path], Any]] = {
    TEXT: lambda folder: pl.read_parquet(folder / TEXT),
    COLUMN: lambda folder: pl.read_parquet(folder / COLUMN),
    PACKED: lambda folder: folder / PACKED,
    INDEX: _index_and_more,
    XML: lambda folder: pl.read_parquet(folder / XML),
    WORDS: lambda folder: pl.read_parquet(folder / WORDS)["word"],
}
"""Reads an input from the folder of inputs."""


def _scan(path: Path) -> pl.LazyFrame:
    return tadoc.scan_packed(path)


def _twigs() -> tadoc.TwigSet:
    named = ["title", "author", "name", "LINE", "SPEECH", "planet", "star", "p", "speaker", "annotation"]
    return tadoc.TwigSet(
        {f"{a}/{b}/{n}": f"//{a}[.//{b}]//*[@n='{n}']" for a in named for b in named for n in range(9)}
    )


def _workers(path: Path, to: Path) -> None:
    with tadoc.distributed.Workers(cpus=2) as workers:
        workers.sequence_count(path, n=3).tadoc.sink_parquet(to / "counts.parquet")


Call = Callable[[Any, Path], object]

CALLS: dict[str, tuple[str, Call]] = {
    "compress": (TEXT, lambda df, to: tadoc.compress(df["text"])),
    "compress(xml)": (TEXT, lambda df, to: tadoc.compress(df["text"], tokenizer="xml")),
    "compress(sequitur)": (TEXT, lambda df, to: tadoc.compress(df["text"], method="sequitur")),
    "compress(like)": (
        TEXT,
        lambda df, to: tadoc.compress(df["text"], like=tadoc.compress(df["text"].head(1000))),
    ),
    "compress, collect": (TEXT, lambda df, to: df.lazy().tadoc.compress("text").collect()),
    "compress, sink_packed": (
        TEXT,
        lambda df, to: df.lazy().tadoc.compress("text").tadoc.sink_packed(to / "p.parquet"),
    ),
    "compress, sink_parquet": (
        TEXT,
        lambda df, to: df.lazy().tadoc.compress("text").tadoc.sink_parquet(to / "p.parquet"),
    ),
    "compress, sink_parquet(partition_by)": (
        TEXT,
        lambda df, to: df.lazy().tadoc.compress("text").tadoc.sink_parquet(to / "parts", partition_by="part"),
    ),
    "compress, sink_index": (
        TEXT,
        lambda df, to: df.lazy().tadoc.compress("text").tadoc.sink_index(to / "index", column="text", id="id"),
    ),
    "tfidf of text": (TEXT, lambda df, to: tadoc.tfidf(df["text"], top=5)),
    "to_csr of text": (TEXT, lambda df, to: tadoc.to_csr(df["text"])),
    "content_hash of text": (TEXT, lambda df, to: tadoc.content_hash(df["text"])),
    "decompress": (COLUMN, lambda df, to: tadoc.decompress(df["text"])),
    "recompress": (COLUMN, lambda df, to: tadoc.recompress(df["text"])),
    "pack": (COLUMN, lambda df, to: df.tadoc.pack("text")),
    "write_packed": (COLUMN, lambda df, to: df.tadoc.write_packed(to / "p.parquet")),
    "write_parquet(partition_by)": (
        COLUMN,
        lambda df, to: df.tadoc.write_parquet(to / "parts", partition_by="part"),
    ),
    "word_count": (COLUMN, lambda df, to: df.tadoc.word_count("text")),
    "sort": (COLUMN, lambda df, to: df.tadoc.sort("text")),
    "sequence_count(n=3)": (COLUMN, lambda df, to: df.tadoc.sequence_count("text", n=3, min_count=2)),
    "inverted_index": (COLUMN, lambda df, to: df.tadoc.inverted_index("text")),
    "term_vector": (COLUMN, lambda df, to: df.tadoc.term_vector("text")),
    "ranked_inverted_index(n=2)": (COLUMN, lambda df, to: df.tadoc.ranked_inverted_index("text", n=2)),
    "cooccurrence": (COLUMN, lambda df, to: df.tadoc.cooccurrence("text", window=3, min_count=5)),
    "tfidf": (COLUMN, lambda df, to: df.tadoc.tfidf("text", top=5)),
    "bm25_weights": (COLUMN, lambda df, to: df.tadoc.bm25_weights("text", top=5)),
    "to_csr": (COLUMN, lambda df, to: df.tadoc.to_csr("text")),
    "to_csr(weights)": (COLUMN, lambda df, to: df.tadoc.to_csr("text", weights=tadoc.TFIDF())),
    "info": (COLUMN, lambda df, to: df.tadoc.info("text")),
    "word_count by group": (
        COLUMN,
        lambda df, to: df.group_by("part").agg(pl.col("text").tadoc.word_count(top=9)),
    ),
    "token_count": (COLUMN, lambda df, to: tadoc.token_count(df["text"])),
    "content_hash": (COLUMN, lambda df, to: tadoc.content_hash(df["text"])),
    "equals": (COLUMN, lambda df, to: tadoc.equals(df["text"], df["text"].shift(1))),
    "eq of text": (
        COLUMN,
        lambda df, to: tadoc.equals(df["text"], tadoc.decompress(df["text"])),
    ),
    "extract": (COLUMN, lambda df, to: tadoc.extract(df["text"], 2, 200)),
    "tail": (COLUMN, lambda df, to: tadoc.tail(df["text"], 100)),
    "contains_phrase": (COLUMN, lambda df, to: df.select(pl.col("text").tadoc.contains_phrase("of the"))),
    "contains_any": (COLUMN, lambda df, to: tadoc.contains_any(df["text"], ["of the", "in", "error"])),
    "count_phrase(lowercase)": (COLUMN, lambda df, to: tadoc.count_phrase(df["text"], "of the", lowercase=True)),
    "bm25": (COLUMN, lambda df, to: tadoc.bm25(df["text"], "the error of a cluster")),
    "build_index": (COLUMN, lambda df, to: df.tadoc.build_index("text", id="id")),
    "build_index, save": (COLUMN, lambda df, to: df.tadoc.build_index("text", id="id").save(to / "index")),
    "unpack": (PACKED, lambda path, to: tadoc.scan_packed(path).collect()),
    "scan_packed, decompress": (PACKED, lambda path, to: tadoc.scan_packed(path).tadoc.decompress("text").collect()),
    "parquet_info": (PACKED, lambda path, to: tadoc.parquet_info(path.with_name(COLUMN))),
    "packed word_count(memory_limit)": (
        PACKED,
        lambda path, to: _scan(path).tadoc.word_count("text", memory_limit="1GB").collect(),
    ),
    "packed sequence_count(n=5, memory_limit)": (
        PACKED,
        lambda path, to: _scan(path).tadoc.sequence_count("text", n=5, memory_limit="1GB").collect(),
    ),
    "packed sequence_count(checkpoint)": (
        PACKED,
        lambda path, to: (
            _scan(path)
            .tadoc.sequence_count("text", n=2, memory_limit="1GB", checkpoint=to / "checkpoint")
            .tadoc.sink_parquet(to / "counts.parquet")
        ),
    ),
    "packed ranked, sink_parquet": (
        PACKED,
        lambda path, to: (
            _scan(path)
            .tadoc.ranked_inverted_index("text", n=2, memory_limit="1GB")
            .tadoc.sink_parquet(to / "ranked.parquet")
        ),
    ),
    "Workers": (PACKED, _workers),
    "load_index": (INDEX, lambda made, to: tadoc.load_index(made[2])),
    "search": (
        INDEX,
        lambda made, to: made[0].search(["the of error", "cluster node", "how to list a file in it"] * 200),
    ),
    "search(phrase)": (INDEX, lambda made, to: made[0].search(['"of the"', '"in a"', '"a new"'] * 20)),
    "snippets": (
        INDEX,
        lambda made, to: made[0].snippets(made[0].search(["the of error"], k=20_000), ["the of error"]),
    ),
    "append": (INDEX, lambda made, to: made[0].append(made[1]["text"], id=made[1]["id"])),
    "append(upsert)": (
        INDEX,
        lambda made, to: made[0].append(made[1]["text"], id=made[1]["id"] - made[1].height // 2, upsert=True),
    ),
    "delete": (INDEX, lambda made, to: made[0].delete(made[0].ids.gather_every(2))),
    "compact": (INDEX, lambda made, to: made[0].delete(made[0].ids.gather_every(2)).compact()),
    "compact, save": (
        INDEX,
        lambda made, to: made[0].delete(made[0].ids.gather_every(2)).compact().save(to / "index"),
    ),
    "twig_filter": (XML, lambda df, to: df.tadoc.twig_filter("text", _twigs())),
    "TwigSet": (XML, lambda df, to: _twigs()),
    "Dictionary.from_words": (WORDS, lambda words, to: tadoc.Dictionary.from_words(words)),
    "Dictionary.save": (WORDS, lambda words, to: tadoc.Dictionary.from_words(words).save(to / "words")),
    "Dictionary.save(long words)": (
        WORDS,
        lambda words, to: tadoc.Dictionary.from_words(words.head(100_000).repeat_by(40).list.join("-")).save(
            to / "words"
        ),
    ),
}


def _texts(names: list[str]) -> pl.Series:
    """Read columns ``text`` as one; without names, of every file of the corpora folder."""
    paths = [Path(name) if name.endswith(".parquet") else corpora.SHARED / f"{name}.parquet" for name in names]
    if not names:
        paths = [
            path for path in sorted(corpora.SHARED.glob("*.parquet")) if not path.stem.endswith(("queries", "qrels"))
        ]
    found = []
    for path in paths:
        kind = pl.read_parquet_schema(path).get("text")
        if kind == tadoc.PACKED_DTYPE:
            found.append(tadoc.scan_packed(path).tadoc.decompress("text").select("text").collect()["text"])
        elif kind is not None:
            text = pl.read_parquet(path, columns=["text"])["text"]
            found.append(text if text.dtype == pl.String else tadoc.decompress(text))
    return pl.concat(found).rechunk()


def _grown(text: pl.Series, size: int) -> pl.Series:
    """Add near copies of all rows until there are so many bytes: the first gap of each copy holds a new word."""
    grown, have = [text], int(text.str.len_bytes().sum())
    each, copy = have, 0
    while have < size:
        copy += 1
        more = text.head(max(1, int(len(text) * min(1.0, (size - have) / each))))
        frame = pl.DataFrame({"text": more, "word": pl.Series("word", [f" {copy}x{k} " for k in range(len(more))])})
        cut = pl.col("text").str.split_exact(" ", 1).struct
        head = cut.field("field_0")
        rest = pl.col("text").str.slice(head.str.len_chars() + 1)
        near = frame.select(pl.concat_str(head, "word", rest).alias("text"))["text"]
        grown.append(near)
        have += int(near.str.len_bytes().sum())
    return pl.concat(grown).rechunk()


def _make(inputs: Path, names: list[str], size: int) -> None:
    """Make inputs that are not there yet."""

    @contextmanager
    def made(name: str) -> Iterator[Path | None]:
        if (inputs / name).exists():
            yield None
            return
        start = time.monotonic()
        yield inputs / f"{name}.new"
        (inputs / f"{name}.new").rename(inputs / name)
        print(f"# made {name} in {time.monotonic() - start:.1f} s", flush=True)

    with made(TEXT) as path:
        if path is not None:
            text = _grown(_texts(names), size)
            df = text.alias("text").to_frame().with_row_index("id").with_columns(part=pl.col("id") % 24)
            df.write_parquet(path)
    with made(COLUMN) as path:
        if path is not None:
            pl.read_parquet(inputs / TEXT).tadoc.compress("text").write_parquet(path)
    with made(PACKED) as path:
        if path is not None:
            pl.read_parquet(inputs / COLUMN).tadoc.write_packed(path)
    with made(INDEX) as path:
        if path is not None:
            pl.read_parquet(inputs / COLUMN).tadoc.build_index("text", id="id").save(path)
    with made(WORDS) as path:
        if path is not None:
            pl.read_parquet(inputs / COLUMN).tadoc.word_count("text").select("word").write_parquet(path)
    with made(XML) as path:
        if path is not None:
            xml = pl.scan_parquet(inputs / TEXT).filter(pl.col("text").str.starts_with("<")).select("text").collect()
            if not xml.height:
                plays = pl.read_parquet(PLAYS).select(pl.col(pl.String))
                xml = next(one for one in plays if one.str.starts_with("<").any()).alias("text").to_frame()
            xml.tadoc.compress("text", tokenizer="xml").write_parquet(path)


def _say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def _make_calls(name: str, inputs: Path, moments: int) -> None:
    """Make a call once, then so many times to be interrupted; says when each begins and how it ends."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs this may have it ignored
    kind, call = CALLS[name]
    given = READ[kind](inputs)
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        call(given, Path(folder))
        _say(took=time.monotonic() - start)
    for _ in range(moments):
        gc.collect()
        told, is_done, at, took = 0, False, 0.0, 0.0
        with tempfile.TemporaryDirectory() as folder:
            try:
                try:
                    _say(begins=True)
                    start = time.monotonic()
                    call(given, Path(folder))
                    took, is_done = time.monotonic() - start, True
                    time.sleep(HANGS)  # the interrupt comes now
                except KeyboardInterrupt:
                    at = time.monotonic()
                    told += 1
                until = time.monotonic() + 0.05
                while time.monotonic() < until:  # of the same interrupt, Python may tell again
                    pass
            except KeyboardInterrupt:
                told += 1 + (not at)  # the second one came right behind the first
                at = at or time.monotonic()
            before = time.process_time()
            time.sleep(SETTLE)
            _say(at=at, told=told, is_done=is_done, took=took, left=time.process_time() - before)
    with tempfile.TemporaryDirectory() as folder:
        _say(begins=True)
        call(given, Path(folder))
        time.sleep(HANGS)


@dataclass
class Found:
    """What interrupts of a call showed."""

    took: float = 0.0
    waited: list[float] = field(default_factory=list)
    told: list[int] = field(default_factory=list)
    left: float = 0.0
    gone: float = 0.0
    problem: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether the call kept what is promised."""
        return not self.problem and max(self.waited, default=0.0) <= TOLD and set(self.told) <= {1}

    def row(self, name: str) -> str:
        """Return the call's row of the table."""
        waited = self.waited or [0.0]
        once = "yes" if set(self.told) <= {1} else f"{sum(one != 1 for one in self.told)} not"
        return (
            f"{name:42} {self.took:7.2f} {len(self.waited):7} {statistics.median(waited):7.2f} {max(waited):7.2f} "
            f"{once:>6} {self.left:9.2f} {self.gone:6.2f}{'' if self.is_kept else '  !'}"
        )


def _line(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("the process ended")
    return dict(json.loads(line))


def measure(name: str, inputs: Path, moments: int, most: float, engine: str) -> Found:
    """Interrupt a call at moments within the time that it takes, or within ``most`` seconds."""
    found, draw = Found(), random.Random(name)
    command = [sys.executable, "-m", "benchmarks.interrupts", "--engine", engine, "--run", name]
    command += ["--inputs", str(inputs), "--moments", str(moments)]
    with tempfile.TemporaryFile("w+") as problems:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=problems, text=True)
        try:
            found.took = _line(process)["took"]
            for moment in range(moments + 1):
                _line(process)
                # one moment in each of equal parts of the call's time
                share = (moment + draw.random()) / (moments + 1)
                time.sleep(share * min(found.took, most) * 0.95)
                sent = time.monotonic()
                process.send_signal(signal.SIGINT)
                if moment < moments:
                    said = _line(process)
                    found.told.append(said["told"])
                    found.left = max(found.left, said["left"])
                    if said["is_done"]:  # the first time, it compiled kernels
                        found.took = min(found.took, said["took"])
                    else:
                        found.waited.append(said["at"] - sent)
            process.wait(HANGS)
            found.gone = time.monotonic() - sent
        except Exception as error:
            process.kill()
            process.wait()
            problems.seek(0)
            found.problem = f"{error!r}: {problems.read()[-1500:]}"
    return found


def _cores(jobs: int) -> queue.SimpleQueue[set[int]]:
    """Divide the cores among jobs."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    each = max(1, len(cores) // jobs)
    shared: queue.SimpleQueue[set[int]] = queue.SimpleQueue()
    for job in range(jobs):
        first = job * each % max(1, len(cores))
        shared.put(set(cores[first : first + each]))
    return shared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", help="Parquet files with a column text, or names in the corpora folder")
    parser.add_argument("--megabytes", type=int, default=0, help="add near copies of rows up to this size")
    parser.add_argument("--moments", type=int, default=8)
    parser.add_argument("--most", type=float, default=60, help="seconds from a call's begin within which moments lie")
    parser.add_argument("--call", action="append", help="only calls whose name holds this")
    parser.add_argument("--jobs", "-j", type=int, default=1, help="calls that run at once")
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--inputs", type=Path, help="folder of inputs; those that are there are not made again")
    parser.add_argument("--run", metavar="CALL", help=argparse.SUPPRESS)
    given = parser.parse_args()
    tadoc.Config.set(engine=given.engine)
    if given.run == MAKE:  # in a process of its own, whose memory is free again
        _make(given.inputs, given.corpora, given.megabytes * 10**6)
        return
    if given.run:
        _make_calls(given.run, given.inputs, given.moments)
        return
    print(corpora.machine(), flush=True)
    wanted = [name for name in CALLS if not given.call or any(part in name for part in given.call)]
    with tempfile.TemporaryDirectory() as temporary:
        inputs = given.inputs or Path(temporary)
        inputs.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable,
            "-m",
            "benchmarks.interrupts",
            *given.corpora,
            "--run",
            MAKE,
            "--inputs",
            str(inputs),
        ]
        subprocess.run([*command, "--megabytes", str(given.megabytes), "--engine", given.engine], check=True)
        size = pl.scan_parquet(inputs / TEXT).select(pl.col("text").str.len_bytes().sum(), pl.len()).collect().row(0)
        print(f"{size[0] / 1e6:.0f} MB, {size[1]:,} rows, engine={given.engine}, {given.jobs} at once")
        print(
            f"{'call':42} {'whole s':>7} {'moments':>7} {'median':>7} {'worst':>7} "
            f"{'once':>6} {'CPU after':>9} {'gone':>6}"
        )
        shared = _cores(given.jobs)

        def run(name: str) -> bool:
            cores = shared.get()
            if cores:
                os.sched_setaffinity(0, cores)  # of this thread: its processes keep to them
            found = measure(name, inputs, given.moments, given.most, given.engine)
            shared.put(cores)
            print(found.row(name) + (f"\n    {found.problem}" if found.problem else ""), flush=True)
            return found.is_kept

        with ThreadPoolExecutor(given.jobs) as pool:
            kept = list(pool.map(run, wanted))
    sys.exit(not all(kept))


if __name__ == "__main__":
    main()
