"""Interrupts and kills every call that writes or runs long at random moments, and looks at what is left.

``python -m tests.interrupts --moments 50`` prints a table: call, moments, how often the target was the old or the new
one, violations, how long after an interrupt it was told and the process had ended, and the processor time until then.
A process that has not ended in time shows the stacks of its threads. Each moment is a process of its own, forked from
one that has imported everything and loaded the machine code of the call, and has computed nothing. It reads its input,
makes a small call, says so and makes the call; the moment is drawn over the time that an undisturbed call took.
``--calls`` and ``--moments`` bound the run, ``--jobs`` makes several calls at once, each job in processes of its own
on cores of its own. With 16 cores: ``python -m tests.interrupts --moments 100 --jobs 14``. ``--corpus`` names the text.

What has to hold: the target is the old or the new one, whole; an interrupt is told as ``KeyboardInterrupt``, once and
within a second; no temporary file, spill folder or process is left over. After a kill the next call on the target
removes what was left.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib
import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

import polars_tadoc as tadoc
import polars_tadoc.distributed
from polars_tadoc.runtime.machine_code import signatures
from tests import ROOT

CORPORA = Path(os.environ.get("TADOC_CORPORA", ROOT.parent / "shared" / "corpora"))
CORPUS = "TADOC_CORPUS"
"""Variable of the environment that names the corpus, for the processes of a run."""

PREFERRED = ("docs_tldr", "docs_peps", "versioned_cockroach")
"""Corpora, in the order in which they are taken if none is named."""

CHARACTERS = 100_000_000
"""About the most characters of text of a call: rows of large corpora are longer."""

PLAYS = ROOT / "examples" / "data" / "xml" / "plays.parquet"

TOLD = 1.0
"""Seconds after an interrupt in which it is told, and in which its process has ended."""

ENDED = 30.0
"""Seconds after which a process is taken for one that hangs."""

LEFT = 5.0
"""Seconds that processes which belong to one that was killed have to notice it."""


def _kept(folder: Path, make: Callable[[int], pl.DataFrame], rows: int) -> pl.DataFrame:
    """Make a frame once, and read it in every later process."""
    path = folder / f"{make.__name__}-{rows}.arrow"
    if not path.exists():
        made = path.with_suffix(f".{os.getpid()}")  # other processes may make it, too
        make(rows).write_ipc(made)
        made.rename(path)
    return pl.read_ipc(path)


def corpus() -> Path:
    """Return the file of the corpus: the one named, one that is there, or the speeches of the examples."""
    if name := os.environ.get(CORPUS):
        return CORPORA / f"{name}.parquet"
    there = (CORPORA / f"{name}.parquet" for name in PREFERRED)
    return next((path for path in there if path.exists()), ROOT / "examples" / "data" / "speeches.parquet")


def texts(rows: int) -> pl.DataFrame:
    """Paragraphs of a corpus, with ids."""
    text = pl.read_parquet(corpus(), columns=["text"])["text"].str.split("\n\n").explode().drop_nulls()
    longest = max(100, CHARACTERS // rows)
    text = pl.concat([text] * (rows // len(text) + 1)).head(rows).str.head(longest)
    return pl.DataFrame({"id": pl.int_range(rows, eager=True), "text": text})


def compressed(rows: int) -> pl.DataFrame:
    """The same, compressed."""
    return texts(rows).tadoc.compress("text", rows_per_grammar=2000)


def _packed(path: Path, rows: int) -> Path:
    if not path.exists():
        compressed(rows).tadoc.write_packed(path)
    return path


def _told(frame: pl.DataFrame) -> Any:
    return frame.height, int(frame.hash_rows(seed=1).sum() or 0)


def _of_packed(path: Path) -> Any:
    return _told(tadoc.scan_packed(path).tadoc.decompress("text").collect())


def _of_parquet(path: Path) -> Any:
    frame = pl.read_parquet(path)
    return _told(frame.tadoc.decompress("text") if "text" in frame.columns else frame)


def _of_text(path: Path) -> Any:
    return _told(pl.read_parquet(path))


def _of_partitions(path: Path) -> Any:
    parts = sorted(path.rglob("*.parquet"))
    return len(parts), _told(tadoc.scan_parquet(path, hive_partitioning=True).tadoc.decompress("text").collect())


def _of_index(path: Path) -> Any:
    index = tadoc.load_index(path)
    return index.documents, _told(index.search(["command", "file", "the people"], k=50))


def _of_bytes(path: Path) -> Any:
    return path.read_bytes()


@dataclass(frozen=True)
class Kind:
    """A call.

    Parameters
    ----------
    prepare
        Makes its input, of so many rows, in a folder beside the target's.
    call
        Makes the call: what was prepared, the target.
    rows
        Rows of the new target; the old one has a tenth.
    read
        Says what the target holds; None where there is none.
    is_by_polars
        Whether Polars' own ``collect`` makes the call: it tells of the expression, and may tell an interrupt twice.

    """

    prepare: Callable[[Path, int], Any]
    call: Callable[[Any, Path], object]
    rows: int
    read: Callable[[Path], Any] | None = None
    is_by_polars: bool = False


def _lazy(folder: Path, rows: int) -> pl.LazyFrame:
    return _kept(folder, texts, rows).lazy().tadoc.compress("text", rows_per_grammar=1000)


def _scan(folder: Path, rows: int) -> pl.LazyFrame:
    return tadoc.scan_packed(_packed(folder / f"input-{rows}.parquet", rows))


def _index(folder: Path, rows: int) -> Any:
    df = _kept(folder, compressed, rows)
    return df.tadoc.build_index("text", id="id"), df


def _saved(folder: Path, rows: int) -> Path:
    path = folder / f"index-{rows}"
    if not path.exists():
        made = folder / f"index-{rows}.{os.getpid()}"
        _index(folder, rows)[0].save(made)
        with contextlib.suppress(OSError):  # another process was faster
            made.rename(path)
    return path


def _again(work: Callable[[], object], times: int) -> None:
    for _ in range(times):
        work()


def _append(made: Any, path: Path) -> None:
    index, df = made
    more = df.with_columns(pl.col("id") + len(df))
    index.append(more["text"], id=more["id"]).save(path, overwrite=True)


def _compact(made: Any, path: Path) -> None:
    index, df = made
    index.delete(df["id"].gather_every(2).to_list()).compact().save(path, overwrite=True)


def _searches(made: Any, _: Path) -> None:
    queries = pl.Series([f"{one} {other}" for one in ("how", "to", "the", "file", "list") for other in ("and", "or")])
    _again(lambda: made[0].search(queries), 1000)


def _searches_with_syntax(made: Any, _: Path) -> None:
    queries = pl.Series([f'("{one} the" OR fil*) AND -{one}' for one in ("how", "to", "the", "list")] * 50)
    _again(lambda: made[0].search(queries), 20)


def _twigs() -> tadoc.TwigSet:
    return tadoc.TwigSet({f"t{n}": f'//SPEECH[SPEAKER]//LINE[@n="{n}"]' for n in range(2000)})


def _plays(folder: Path, rows: int) -> Any:
    plays = pl.read_parquet(PLAYS)
    name = next(
        name for name, kind in plays.schema.items() if kind == pl.String and plays[name].str.starts_with("<").any()
    )
    text = pl.concat([plays[name]] * max(1, rows // len(plays))).alias("text")
    return text.to_frame().tadoc.compress("text", tokenizer="xml"), _twigs()


def _workers(made: Path, path: Path) -> None:
    with tadoc.distributed.Workers(cpus=2) as workers:
        workers.sequence_count(made, n=3).tadoc.sink_parquet(path)


def _times(frame: Callable[[Path, int], pl.DataFrame], work: Callable[[pl.DataFrame], object], rows: int) -> Kind:
    """A call in memory, several times over."""
    return Kind(frame, lambda df, _: _again(lambda: work(df), 4), rows)


def _sunk(frame: Callable[[Path, int], pl.LazyFrame], plan: Callable[[pl.LazyFrame], pl.LazyFrame], rows: int) -> Kind:
    """A plan, into a file."""
    return Kind(frame, lambda lf, path: plan(lf).tadoc.sink_parquet(path), rows, _of_parquet)


def _column(folder: Path, rows: int) -> pl.DataFrame:
    return _kept(folder, compressed, rows)


def _plain(folder: Path, rows: int) -> pl.DataFrame:
    return _kept(folder, texts, rows)


def _lazy_plain(folder: Path, rows: int) -> pl.LazyFrame:
    return _plain(folder, rows).lazy()


CALLS: dict[str, Kind] = {
    "compress": Kind(lambda f, n: _kept(f, texts, n), lambda df, _: df.tadoc.compress("text"), 200_000),
    "recompress": Kind(lambda f, n: _kept(f, compressed, n), lambda df, _: df.tadoc.recompress(), 200_000),
    "decompress": Kind(
        lambda f, n: _kept(f, compressed, n), lambda df, _: _again(lambda: df.tadoc.decompress("text"), 8), 200_000
    ),
    "sink_packed": Kind(_lazy, lambda lf, path: lf.tadoc.sink_packed(path), 60_000, _of_packed),
    "sink_index": Kind(_lazy, lambda lf, path: lf.tadoc.sink_index(path, overwrite=True), 60_000, _of_index),
    "sink_parquet": Kind(_lazy, lambda lf, path: lf.tadoc.sink_parquet(path), 100_000, _of_parquet),
    "sink_parquet(partition_by)": Kind(
        lambda f, n: _kept(f, texts, n).with_columns(part=pl.col("id") % 12),
        lambda df, path: df.lazy().tadoc.compress("text").tadoc.sink_parquet(path, partition_by="part"),
        60_000,
        _of_partitions,
    ),
    "write_packed": Kind(
        lambda f, n: _kept(f, compressed, n), lambda df, path: df.tadoc.write_packed(path), 400_000, _of_packed
    ),
    "build_index, save": Kind(
        lambda f, n: _kept(f, compressed, n),
        lambda df, path: df.tadoc.build_index("text", id="id").save(path, overwrite=True),
        250_000,
        _of_index,
    ),
    "append, save": Kind(_index, _append, 150_000, _of_index),
    "delete": Kind(_index, lambda made, _: _again(lambda: made[0].delete(made[1]["id"].gather_every(2)), 20), 50_000),
    "compact, save": Kind(_index, _compact, 200_000, _of_index),
    "load_index": Kind(_saved, lambda path, _: _again(lambda: tadoc.load_index(path), 40), 50_000),
    "search": Kind(_index, _searches, 50_000),
    "search(syntax)": Kind(_index, _searches_with_syntax, 50_000),
    "word_count(memory_limit)": Kind(
        _scan, lambda lf, path: lf.tadoc.word_count(memory_limit="300MB").tadoc.sink_parquet(path), 200_000, _of_parquet
    ),
    "sequence_count(checkpoint)": Kind(
        _scan,
        lambda lf, path: lf.tadoc.sequence_count(
            n=2, memory_limit="300MB", checkpoint=path.parent.with_name("checkpoint")
        ).tadoc.sink_parquet(path),
        60_000,
        _of_parquet,
    ),
    "sequence_count(n=5)": Kind(
        _scan,
        lambda lf, path: lf.tadoc.sequence_count(n=5, memory_limit="300MB").tadoc.sink_parquet(path),
        60_000,
        _of_parquet,
    ),
    "Dictionary.save": Kind(
        lambda f, n: _kept(f, texts, n),
        lambda df, path: tadoc.Dictionary.from_words(df["text"] + pl.Series(range(len(df))).cast(pl.String)).save(path),
        15_000,
        _of_bytes,
    ),
    "TwigSet.save": Kind(
        lambda f, n: tadoc.TwigSet({f"t{k}": f"//a{k}[b]/c" for k in range(n)}),
        lambda twigs, path: _again(lambda: twigs.save(path), 12),
        40_000,
        _of_bytes,
    ),
    "twig_filter": Kind(_plays, lambda made, _: _again(lambda: made[0].tadoc.twig_filter("text", made[1]), 100), 2000),
    "to_csr": Kind(lambda f, n: _kept(f, compressed, n), lambda df, _: tadoc.to_csr(df["text"]), 100_000),
    "content_hash": Kind(
        lambda f, n: _kept(f, compressed, n), lambda df, _: _again(lambda: tadoc.content_hash(df["text"]), 20), 100_000
    ),
    "equals": Kind(
        lambda f, n: _kept(f, compressed, n),
        lambda df, _: _again(lambda: tadoc.equals(df["text"], df["text"].shift(1)), 20),
        50_000,
    ),
    "extract": Kind(
        lambda f, n: _kept(f, compressed, n),
        lambda df, _: _again(lambda: (tadoc.tail(df["text"], 9), tadoc.extract(df["text"], 2, 9)), 10),
        100_000,
    ),
    "count_phrase": Kind(
        lambda f, n: _kept(f, compressed, n),
        lambda df, _: _again(lambda: tadoc.count_phrase(df["text"], "the file"), 20),
        100_000,
    ),
    "contains": Kind(
        lambda f, n: _kept(f, compressed, n),
        lambda df, _: _again(lambda: tadoc.contains(df["text"], "e f[a-z]*"), 20),
        100_000,
    ),
    "bm25": Kind(
        lambda f, n: _kept(f, compressed, n),
        lambda df, _: _again(lambda: tadoc.bm25(df["text"], "the file list"), 20),
        100_000,
    ),
    "compress(effort=fast)": _times(_plain, lambda df: df.tadoc.compress("text", effort="fast"), 100_000),
    "sink_packed(effort=small)": Kind(
        _lazy, lambda lf, path: lf.tadoc.sink_packed(path, effort="small"), 60_000, _of_packed
    ),
    "write_packed(effort=small)": Kind(
        _column, lambda df, path: df.tadoc.write_packed(path, effort="small"), 100_000, _of_packed
    ),
    "write_parquet": Kind(_column, lambda df, path: df.tadoc.write_parquet(path), 200_000, _of_parquet),
    "append_to, save": Kind(
        _index,
        lambda made, path: (
            made[1]
            .with_columns(pl.col("id") + len(made[1]))
            .tadoc.append_to(made[0], "text", id="id")
            .save(path, overwrite=True)
        ),
        100_000,
        _of_index,
    ),
    "info, pack, unpack": _times(
        _column, lambda df: (df.tadoc.info(), df.tadoc.pack("text").tadoc.unpack("text")), 200_000
    ),
    "term_vector": _times(_column, lambda df: df.tadoc.term_vector("text"), 100_000),
    "inverted_index": _times(_column, lambda df: df.tadoc.inverted_index("text"), 200_000),
    "sort": _times(_column, lambda df: df.tadoc.sort("text"), 400_000),
    "cooccurrence": _times(_column, lambda df: df.tadoc.cooccurrence("text", window=2), 50_000),
    "ranked_inverted_index": _times(_column, lambda df: df.tadoc.ranked_inverted_index("text"), 100_000),
    "tfidf, bm25_weights": _times(_column, lambda df: (df.tadoc.tfidf("text"), df.tadoc.bm25_weights("text")), 50_000),
    "repeats": _times(_column, lambda df: df.tadoc.repeats("text", length=10), 100_000),
    "drop_repeats": _times(_plain, lambda df: df.tadoc.drop_repeats("text", length=10), 100_000),
    "overlap, overlap_share, overlaps": _times(
        _column,
        lambda df: (
            df.tadoc.overlap("text", df["text"], length=10),
            df["text"].tadoc.overlap_share(df["text"], length=10),
            df["text"].tadoc.overlaps(df["text"], length=10),
        ),
        50_000,
    ),
    "near_duplicates": _times(_plain, lambda df: df.tadoc.near_duplicates("text", threshold=0.5), 50_000),
    "duplicate_groups": _times(_plain, lambda df: df.tadoc.duplicate_groups("text", threshold=0.5), 50_000),
    "positions, concordance": _times(
        _column, lambda df: (df.tadoc.positions("text", "error"), df.tadoc.concordance("text", "error")), 50_000
    ),
    "collocations": _times(_column, lambda df: df.tadoc.collocations("text", window=5, min_count=1), 50_000),
    "minhash": _times(_column, lambda df: df["text"].tadoc.minhash(scheme="datasketch"), 50_000),
    "repeated_share, novelty": Kind(
        _plain,
        lambda df, _: df.select(
            share=pl.col("text").tadoc.repeated_share(length=10), new=pl.col("text").tadoc.novelty(length=8)
        ),
        200_000,
        is_by_polars=True,
    ),
    "word_count of text": _times(_plain, lambda df: df.tadoc.word_count("text"), 400_000),
    "sequence_count of text": _times(_plain, lambda df: df.tadoc.sequence_count("text", n=3), 100_000),
    "inverted_index of text, sink": _sunk(
        _lazy_plain, lambda lf: lf.tadoc.inverted_index("text", memory_limit="300MB"), 100_000
    ),
    "sequence_count of text, sink": _sunk(
        _lazy_plain, lambda lf: lf.tadoc.sequence_count("text", n=3, memory_limit="300MB"), 60_000
    ),
    "cooccurrence of text, sink": _sunk(
        _lazy_plain, lambda lf: lf.tadoc.cooccurrence("text", window=2, memory_limit="300MB"), 30_000
    ),
    "ranked_inverted_index of text, sink": _sunk(
        _lazy_plain, lambda lf: lf.tadoc.ranked_inverted_index("text", memory_limit="300MB"), 60_000
    ),
    "repeats of text, sink": _sunk(
        _lazy_plain, lambda lf: lf.tadoc.repeats("text", length=10, memory_limit="300MB"), 60_000
    ),
    "near_duplicates of text, sink": _sunk(
        _lazy_plain, lambda lf: lf.tadoc.near_duplicates("text", threshold=0.5, memory_limit="300MB"), 50_000
    ),
    "duplicate_groups, sink": _sunk(
        _scan, lambda lf: lf.tadoc.duplicate_groups("text", threshold=0.5, memory_limit="300MB"), 50_000
    ),
    "drop_repeats, sink": Kind(
        _scan,
        lambda lf, path: lf.tadoc.drop_repeats(length=10, memory_limit="300MB").tadoc.sink_packed(path),
        60_000,
        _of_packed,
    ),
    "decompress, sink": Kind(
        _scan, lambda lf, path: lf.tadoc.decompress("text").tadoc.sink_parquet(path), 200_000, _of_text
    ),
    "recompress, sink": Kind(_scan, lambda lf, path: lf.tadoc.recompress().tadoc.sink_packed(path), 60_000, _of_packed),
    "Workers": Kind(lambda f, n: _packed(f / f"input-{n}.parquet", n), _workers, 60_000, _of_parquet),
}


def _loaded() -> dict[str, Any]:
    """Name the modules and the machine code that this process has loaded."""
    kernels = [(name, one) for name, found in signatures.kernels().items() for one in found]
    forms = []
    for name, one in kernels:
        for form in getattr(one, "overloads", ()):
            with contextlib.suppress(signatures.UnknownTypeError):
                forms.append((name, [signatures.encode(kind) for kind in form]))
    return {"modules": sorted(sys.modules), "kernels": forms}


def _load(loaded: dict[str, Any]) -> None:
    """Load the same, without running any of it."""
    for name in loaded["modules"]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    known = signatures.kernels()
    for name, form in loaded["kernels"]:
        for one in known[name]:
            with contextlib.suppress(Exception):  # of two kernels with one name, the other
                one.compile(tuple(signatures.decode(kind) for kind in form))


def child(name: str, folder: Path, rows: int) -> None:
    """Make a call; says when it begins, when an interrupt was told, and whether it was told again.

    Where ``old`` is there and empty, the old target is made first and put into it.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs this may have it ignored
    faulthandler.enable()
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # which it is again while the interpreter ends
    faulthandler.register(signal.SIGUSR1)
    kind, target = CALLS[name], folder / "targets" / "target"
    tadoc.Config.set(spill_folder=str(folder / "spill"))
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)  # of other rows
    kind.call(kind.prepare(folder / "inputs", 300), folder / "warm" / "target")
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    if (folder / "old").is_dir() and not list((folder / "old").iterdir()):
        kind.call(kind.prepare(folder / "inputs", max(300, rows // 10)), target)
        if kind.read is not None:
            target.rename(folder / "old" / "target")
        shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    made = kind.prepare(folder / "inputs", rows)
    is_told = False
    try:
        print("ready", flush=True)
        start = time.monotonic()
        try:
            kind.call(made, target)
            took = time.monotonic() - start
        except KeyboardInterrupt:
            print("told", time.monotonic(), flush=True)
            is_told = True
            raise
        finally:
            until = time.monotonic() + 0.05
            while time.monotonic() < until:  # of the same interrupt, Python may tell again
                pass
        print("done", took, flush=True)
        if not (folder / "loaded.json").exists():
            (folder / "loaded.json").write_text(json.dumps(_loaded()), "utf-8")
    except KeyboardInterrupt as error:
        if not is_told:  # it came before the call, or after it
            print("told", time.monotonic(), flush=True)
        before = error.__context__
        while before is not None:
            if isinstance(before, KeyboardInterrupt):
                print("twice", flush=True)
                break
            before = before.__context__
        raise


@dataclass
class Found:
    """What moments of a call showed."""

    moments: int = 0
    old: int = 0
    new: int = 0
    told: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    worked: list[float] = field(default_factory=list)
    """Seconds of processor time between an interrupt and the end: on a busy machine the others say little."""
    violations: list[str] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Add what other moments showed."""
        self.moments += other.moments
        self.old += other.old
        self.new += other.new
        self.told += other.told
        self.ended += other.ended
        self.worked += other.worked
        self.violations += other.violations


class Warm:
    """A process that has imported everything and runs nothing; a call's process is forked from it.

    What is forked goes on as any process of Python does: a call is made, told of and ended from there on, and the
    interpreter ends as it would have. Nothing is computed before the fork, so that no thread and no lock is missing.
    """

    def __init__(self) -> None:
        self._problems = tempfile.TemporaryFile("w+")  # noqa: SIM115 (lives as long as the process)
        command = [sys.executable, "-m", "tests.interrupts", "--warm"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._problems, text=True, cwd=ROOT
        )

    def start(self, name: str, folder: Path, rows: int) -> Child:
        """Start a call's process; returns when it is about to make the call."""
        assert self._process.stdin is not None
        print(json.dumps([name, str(folder), rows]), file=self._process.stdin, flush=True)
        started = self.line()
        if not started.startswith("pid "):
            raise RuntimeError(f"{name}: {self.problems()}")
        child = Child(self, int(started.split()[1]))
        if (said := self.line()) != "ready\n":
            raise RuntimeError(f"{name}: {said}{self.problems()}")
        return child

    def line(self) -> str:
        """Return what it, or the call's process, says next."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def problems(self) -> str:
        """Return what was written to the standard error since the last call, and forget it."""
        self._problems.seek(0)
        said = self._problems.read()
        self._problems.truncate(0)
        self._problems.seek(0)
        return said

    def close(self) -> None:
        """End it."""
        with self._problems, self._process:
            self._process.kill()


class Ended(NamedTuple):
    """How a call's process ended."""

    status: int
    at: float
    worked: float
    """Seconds of processor time of its whole life."""
    said: str
    problem: str


@dataclass
class Child:
    """A call's process."""

    warm: Warm
    pid: int

    @property
    def worked(self) -> float:
        """Its processor time so far, in seconds."""
        return time.clock_gettime((~self.pid << 3) | 2)  # Linux's clock of another process

    def show(self) -> None:
        """Let it write the stacks of its threads, if it has not ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGUSR1)

    def end(self, seconds: float, late: float) -> Ended | None:
        """Wait; returns how it ended. None: it was killed. After ``late`` seconds it shows what it still does."""
        said, is_killed = "", threading.Event()

        def kill() -> None:
            is_killed.set()
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGABRT)  # it writes the stacks of its threads
                time.sleep(1)
                os.killpg(self.pid, signal.SIGKILL)

        timers = threading.Timer(seconds, kill), threading.Timer(late, self.show)
        for timer in timers:
            timer.start()
        while not (line := self.warm.line()).startswith("ended "):
            if not line:
                raise RuntimeError(self.warm.problems())
            said += line
        for timer in timers:
            timer.cancel()
        status, at, worked = line.split()[1:]
        return None if is_killed.is_set() else Ended(int(status), float(at), float(worked), said, self.warm.problems())


def warm() -> None:
    """Fork a process for each line that comes, and say when it ended; a forked one returns, to make its call."""
    loaded = set()
    for line in sys.stdin:
        name, folder, rows = json.loads(line)
        if name not in loaded and (path := Path(folder) / "loaded.json").exists():
            loaded.add(name)
            _load(json.loads(path.read_text("utf-8")))
        if pid := os.fork():
            _, status, used = os.wait4(pid, 0)
            at, worked = time.monotonic(), used.ru_utime + used.ru_stime
            # a call's process that was killed in the middle of a line leaves it without an end
            print(f"\nended {os.waitstatus_to_exitcode(status)} {at} {worked}", flush=True)
            continue
        os.setsid()
        print("pid", os.getpid(), flush=True)
        child(name, Path(folder), rows)
        return


def _whole(warm: Warm, name: str, folder: Path, rows: int) -> float:
    """Make the call undisturbed; returns its seconds."""
    ended = warm.start(name, folder, rows).end(600, 600)
    if ended is None or "done " not in ended.said:
        raise RuntimeError(f"{name}: {ended}")
    return float(ended.said.split("done ")[1].split()[0])


def _left(folder: Path) -> list[str]:
    """Name what no call should leave."""
    beside = [path.name for path in (folder / "targets").iterdir() if path.name != "target"]
    return beside + [path.name for path in (folder / "spill").iterdir()]


def _shown(problem: str) -> str:
    """Cut what was written to the standard error: the stacks of a crash without the modules it lists."""
    stacks = problem.partition("Extension modules:")[0]
    return stacks if len(stacks) < 6000 else f"{stacks[:3000]}\n[…]\n{stacks[-3000:]}"


def _others(group: int) -> bool:
    """Tell whether processes of a group are alive, which have a while to notice that theirs is gone."""
    until = time.monotonic() + LEFT
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)
    return True


def _moment(
    warm: Warm, name: str, folder: Path, kept: Path, answers: list[Any], until: float, how: int, found: Found
) -> None:
    kind, target = CALLS[name], folder / "targets" / "target"
    for path in (target, folder / "checkpoint"):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    if kept.is_dir():
        shutil.copytree(kept, target)
    elif kept.exists():
        shutil.copy(kept, target)
    process = warm.start(name, folder, kind.rows)
    at = random.uniform(0, until)
    time.sleep(at)
    sent, worked = time.monotonic(), 0.0
    with contextlib.suppress(OSError):  # it was faster than the undisturbed call
        worked = process.worked
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, how)
    where = f"{name}, {signal.Signals(how).name} after {at:.3f} s"
    end = process.end(ENDED, TOLD)
    if end is None:
        found.violations.append(f"{where}: it had not ended after {ENDED} s: {warm.problems()}")
        return
    status, ended, all_worked, said, problem = end
    found.moments += 1
    if _others(process.pid):
        found.violations.append(f"{where}: processes are left")
    is_done = "done " in said
    if how == signal.SIGINT and not is_done:
        found.ended.append(ended - sent)
        found.worked.append(all_worked - worked)
        if ended - sent > TOLD:
            after = f"{ended - sent:.2f} s, {all_worked - worked:.2f} s of processor time"
            found.violations.append(f"{where}: its process ended after {after}; at {TOLD} s: {_shown(problem)}")
        lines = problem.strip().splitlines()
        own = "KeyboardInterrupt" in (lines if ended - sent > TOLD else lines[-1:])  # stacks may come later
        is_named = "\nKeyboardInterrupt: " in problem if kind.is_by_polars else own
        if "told " not in said or not is_named or status not in (-signal.SIGINT, 130):
            found.violations.append(f"{where}: it ended with {status}, {_shown(problem)}")
        else:
            told = float(said.split("told ")[1].split()[0]) - sent
            found.told.append(told)
            if told > TOLD:
                found.violations.append(f"{where}: it was told after {told:.2f} s")
        if ("twice" in said and not kind.is_by_polars) or "Exception ignored" in problem:
            found.violations.append(f"{where}: it was told twice, or dropped: {_shown(problem)}")
    if kind.read is not None:
        try:
            answer = kind.read(target)
        except Exception as error:
            found.violations.append(f"{where}: the target cannot be read: {error!r}")
        else:
            found.old += answer == answers[0]
            found.new += answer == answers[1]
            if answer not in answers:
                found.violations.append(f"{where}: the target is neither the old nor the new one")
    if how == signal.SIGKILL and _left(folder):
        _whole(warm, name, folder, 300)
    if left := _left(folder):
        found.violations.append(f"{where}: {', '.join(left)} left over")


def run(
    name: str,
    moments: int,
    hows: tuple[int, ...] = (signal.SIGINT, signal.SIGKILL),
    warm: Warm | None = None,
    within: float = float("inf"),
    inputs: Path | None = None,
    until: float = float("inf"),
) -> tuple[float, Found]:
    """Disturb a call at so many moments by each signal; returns its undisturbed seconds, and what was found.

    ``inputs`` is a folder where other runs may have prepared the same input. No moment begins after ``until``, in
    seconds of ``time.time``.
    """
    if warm is None:
        with contextlib.closing(Warm()) as own:
            return run(name, moments, hows, own, within, inputs, until)
    kind, found = CALLS[name], Found()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if inputs is None:
            (folder / "inputs").mkdir()
        else:
            (folder / "inputs").symlink_to(inputs)
        for below in ("targets", "spill", "warm", "old"):
            (folder / below).mkdir()
        target, kept = folder / "targets" / "target", folder / "kept" / "target"
        seconds = _whole(warm, name, folder, kind.rows)
        (folder / "old").rename(folder / "kept")
        answers = [] if kind.read is None else [kind.read(kept), kind.read(target)]
        if left := _left(folder):
            found.violations.append(f"{name}: {', '.join(left)} left over without an interrupt")
        for how in hows:
            for _ in range(moments):
                if time.time() > until:
                    break
                _moment(warm, name, folder, kept, answers, min(seconds, within), how, found)
    return seconds, found


MOMENTS_AT_ONCE = 25
"""Moments by signal that one job takes, of a call's."""


@dataclass(frozen=True)
class Plan:
    """What a run does."""

    moments: int
    jobs: int
    within: float = float("inf")
    hows: tuple[int, ...] = (signal.SIGINT, signal.SIGKILL)
    until: float = float("inf")
    """When no moment begins any more, in seconds of ``time.time``."""


def _apart(name: str, some: int, seed: int, plan: Plan, inputs: Path) -> tuple[float, Found]:
    """Disturb a call in a process of its own: the interpreter of a run is too busy to say when it sent a signal."""
    given = json.dumps([name, some, seed, plan.within, plan.hows, str(inputs), plan.until])
    command = [sys.executable, "-m", "tests.interrupts", "--part", given]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if ended.returncode:
        raise RuntimeError(f"{name}: {_shown(ended.stderr)}")
    seconds, found = json.loads(ended.stdout.splitlines()[-1])
    return seconds, Found(**found)


def part(given: str) -> None:
    """Do what :func:`_apart` asks for, and print what was found."""
    name, some, seed, within, hows, inputs, until = json.loads(given)
    random.seed(seed)
    seconds, found = run(name, some, tuple(hows), within=within, inputs=Path(inputs), until=until)
    print(json.dumps([seconds, asdict(found)]))


def run_all(names: list[str], plan: Plan) -> Iterator[tuple[str, float, Found | Exception]]:
    """Disturb calls, so many at once, each on cores of its own; gives what was found for each in their order."""
    cores: queue.SimpleQueue[set[int]] = queue.SimpleQueue()
    own = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    for job in range(plan.jobs):
        first, each = job * len(own) // plan.jobs, max(2, len(own) // plan.jobs)  # one core has no threads
        cores.put({own[(first + k) % len(own)] for k in range(each)} if own else set())

    def one(name: str, some: int, seed: int, inputs: Path) -> tuple[float, Found]:
        mine = cores.get()
        try:
            if time.time() > plan.until:
                return 0.0, Found()
            if mine:
                os.sched_setaffinity(0, mine)  # of this thread: its processes keep to them
            return _apart(name, some, seed, plan, inputs)
        finally:
            cores.put(mine)

    with tempfile.TemporaryDirectory() as inputs, ThreadPoolExecutor(plan.jobs) as pool:
        sizes = [min(MOMENTS_AT_ONCE, plan.moments - k) for k in range(0, plan.moments, MOMENTS_AT_ONCE)]
        parts = [
            (name, [pool.submit(one, name, size, random.getrandbits(32), Path(inputs)) for size in sizes])
            for name in names
        ]
        for name, tasks in parts:
            found, seconds = Found(), 0.0
            try:
                for task in tasks:
                    seconds, more = task.result()
                    found.add(more)
            except Exception as error:  # the others are run all the same
                yield name, seconds, error
            else:
                yield name, seconds, found


def _row(name: str, seconds: float, found: Found) -> str:
    """Return a line of the table: seconds, counts, and the longest times of an interrupt's way."""
    counts = f"{found.moments:7} {found.old:4} {found.new:4} {len(found.violations):5}"
    took = " ".join(f"{max(times, default=0):5.2f}" for times in (found.told, found.ended, found.worked))
    return f"{name:36} {seconds:5.1f} {counts} {took}"


def main() -> None:
    """Run as the command line says."""
    if sys.argv[1:2] == ["--warm"]:
        warm()
        return
    if sys.argv[1:2] == ["--part"]:
        part(sys.argv[2])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=50, help="by call and signal")
    parser.add_argument("--calls", nargs="*", default=list(CALLS), help="their names")
    parser.add_argument("--within", type=float, default=float("inf"), help="only in so many seconds of a call's first")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--jobs", "-j", type=int, default=1, help="calls at once; two cores or more for each are best")
    parser.add_argument("--corpus", help=f"its name in $TADOC_CORPORA; default: the first there of {PREFERRED}")
    parser.add_argument("--signals", nargs="*", default=["SIGINT", "SIGKILL"], help="their names")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no moment begins")
    parser.add_argument("--shown", type=int, default=3, help="violations shown of each call")
    options = parser.parse_args()
    random.seed(options.seed)
    if options.corpus:
        os.environ[CORPUS] = options.corpus
    if unknown := [name for name in options.calls if name not in CALLS]:
        parser.error(f"no such calls: {unknown}; there are {list(CALLS)}")
    if not corpus().exists():
        parser.error(f"no such corpus: {corpus()}")
    hows = tuple(int(signal.Signals[name]) for name in options.signals)
    plan = Plan(options.moments, options.jobs, options.within, hows, time.time() + options.seconds)
    begun, all_found, problems = time.monotonic(), Found(), 0
    print(f"{corpus().stem}, {options.moments} moments by call and signal, {options.jobs} at once")
    counts = f"{'moments':>7} {'old':>4} {'new':>4} {'wrong':>5}"
    print(f"{'call':36} {'took':>5} {counts} {'told':>5} {'ended':>5} {'work':>5}")
    for name, seconds, found in run_all(options.calls, plan):
        if isinstance(found, Exception):
            print(f"{name:36} {found!r}", flush=True)
            problems += 1
            continue
        print(_row(name, seconds, found), flush=True)
        for violation in found.violations[: options.shown]:
            print(f"    {violation}", flush=True)
        if len(found.violations) > options.shown:
            print(f"    and {len(found.violations) - options.shown} more; --shown {len(found.violations)}", flush=True)
        problems += len(found.violations)
        all_found.add(found)
    print(_row("all", time.monotonic() - begun, all_found))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
