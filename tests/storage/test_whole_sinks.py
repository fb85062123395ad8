"""What is written under a final name was read to the end, and an interrupt anywhere is an error everywhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import polars as pl
import pytest
import tqdm.auto

import polars_tadoc as tadoc
from polars_tadoc.runtime.io_source import batches, register
from polars_tadoc.runtime.process.interpreter_exit import running
from polars_tadoc.runtime.process.writer_thread import apart

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")

START = """
import gc, os, signal, sys, threading, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs this may have it ignored
import polars as pl
import polars_tadoc as tadoc
from polars_tadoc.runtime.process.writer_thread import apart
from polars_tadoc.runtime.io_source import batches, register

folder = Path(sys.argv[1])
frames = [pl.DataFrame({"text": [f"w{n} w{k % 70} and so on" for k in range(400)]}) for n in range(40)]

def text(*_, at=None):
    for n, frame in enumerate(frames):
        if n == at:
            os.kill(os.getpid(), signal.SIGINT)
        yield frame

def plan(at):
    lf = register(lambda *_: text(at=at), {"text": pl.String}, "text")
    return lf.tadoc.compress("text", rows_per_grammar=500)

SINKS = {
    "sink_packed": lambda lf: lf.tadoc.sink_packed(folder / "sink_packed"),
    "sink_index": lambda lf: lf.tadoc.sink_index(folder / "sink_index", overwrite=True),
    "sink_parquet": lambda lf: lf.tadoc.sink_parquet(folder / "sink_parquet"),
}
ROWS = {
    "sink_packed": lambda: tadoc.scan_packed(folder / "sink_packed").select(pl.len()).collect().item(),
    "sink_index": lambda: tadoc.load_index(folder / "sink_index").documents,
    "sink_parquet": lambda: pl.read_parquet(folder / "sink_parquet").height,
}

def interrupted(work):
    told = 0
    try:
        try:
            work()
        except KeyboardInterrupt:
            told += 1
        for _ in range(100):
            time.sleep(0.001)
    except KeyboardInterrupt:
        told += 1
    assert told == 1, told
"""


def run(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a script that begins with ``START``."""
    command = [sys.executable, "-c", START + dedent(code), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.slow
@pytest.mark.parametrize("handler", ["polars", "own"])
def test_an_interrupt_leaves_the_old_file_or_none_and_is_told_once(tmp_path: Path, handler: str) -> None:
    """Notebooks set Python's handler before each cell, and Polars' goes."""
    folder = tmp_path / "targets"
    folder.mkdir()
    done = run(
        """
        if sys.argv[2] == "own":
            signal.signal(signal.SIGINT, signal.default_int_handler)
        few = pl.LazyFrame({"text": ["a b", "b c"]}).tadoc.compress("text")
        for name, sink in SINKS.items():
            for at in (0, 7, 39):
                interrupted(lambda: sink(plan(at)))
                assert not list(folder.iterdir()), list(folder.iterdir())
            sink(few)
            interrupted(lambda: sink(plan(20)))
            assert ROWS[name]() == 2
            sink(plan(None))
            assert ROWS[name]() == 16_000
            assert [path.name for path in folder.iterdir()] == [name]
            os.rename(folder / name, folder.with_name(name))
        """,
        folder,
        handler,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("sink", ["sink_index", "partition_by"])
def test_an_interrupt_while_the_new_one_takes_its_name(tmp_path: Path, sink: str) -> None:
    """It comes before and after each step: the target is the old one or the new one, and nothing else is left."""
    folder = tmp_path / "targets"
    folder.mkdir()
    done = run(
        """
        from polars_tadoc.storage import atomic_write
        target, moments, at = folder / "target", 0, None

        def moment():
            global moments
            if moments == at:  # this thread notices it at once, the main one soon
                signal.pthread_kill(threading.get_ident(), signal.SIGINT)
            moments += 1

        def stepped(function):
            def call(*arguments, **named):
                moment()
                try:
                    return function(*arguments, **named)
                finally:
                    moment()
            return call

        for place, name in ((os, "replace"), (os, "rename"), (os, "rmdir"), (os, "fsync"), (atomic_write, "check"),
                            (atomic_write, "remove"), (atomic_write, "set_mode"), (atomic_write, "take_over")):
            setattr(place, name, stepped(getattr(place, name)))

        def texts(rows):
            return pl.LazyFrame({"text": ["a b"] * rows, "k": [rows] * rows}).tadoc.compress("text")

        WRITE = {
            "sink_index": lambda rows: texts(rows).tadoc.sink_index(target, overwrite=True),
            "partition_by": lambda rows: texts(rows).tadoc.sink_parquet(target, partition_by="k"),
        }
        write = WRITE[sys.argv[2]]

        def rows():
            if sys.argv[2] == "sink_index":
                return tadoc.load_index(target, verify=True).documents
            return pl.read_parquet(target).height

        write(2)
        moments = 0
        write(2)
        last, found = moments, []
        for disturbed in range(last):
            at = None
            write(2)
            moments, at = 0, disturbed
            interrupted(lambda: write(3))
            at = None
            found.append(rows())
            assert os.listdir(folder) == ["target"], os.listdir(folder)
        assert found == sorted(found) and set(found) == {2, 3}, found
        """,
        folder,
        sink,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_an_interrupt_that_something_swallows_is_told(tmp_path: Path) -> None:
    """A ``__del__`` drops what is raised in it: nothing is raised in the thread that runs the call."""
    done = run(
        """
        reached = []

        class Slow:
            def __del__(self):
                reached.append(1)
                for _ in range(2000):
                    time.sleep(0.0001)

        def rows(*_):
            for n, frame in enumerate(frames):
                if n == 3:
                    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
                    Slow()
                yield frame

        lf = register(rows, {"text": pl.String}, "rows").tadoc.compress("text", rows_per_grammar=500)
        interrupted(lambda: lf.tadoc.sink_packed(folder / "packed"))
        assert reached
        assert not list(folder.iterdir())
        """,
        tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_query_that_is_aborted_has_not_ended() -> None:
    """Polars' ``collect_batches`` ends then as after the last row."""
    done = run(
        """
        got, problem = 0, []

        def read():
            global got
            try:
                for frame in batches(lf):
                    got += frame.height
            except BaseException as error:
                problem.append(error)

        lf = register(lambda *_: text(at=10), {"text": pl.String}, "text")
        reader = threading.Thread(target=read)
        interrupted(lambda: (reader.start(), time.sleep(2), reader.join()))
        reader.join()
        assert problem and got < 16_000, (problem, got)
        """,
        ".",
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_handler_of_the_program_that_raises_nothing_stops_nothing(tmp_path: Path) -> None:
    done = run(
        """
        seen = []
        signal.signal(signal.SIGINT, lambda *_: seen.append(1))
        for name, sink in SINKS.items():
            sink(plan(20))
            assert ROWS[name]() == 16_000
        assert seen == [1, 1, 1]
        """,
        tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_an_event_loop_decides_what_the_first_interrupt_does(tmp_path: Path) -> None:
    """``asyncio.run`` cancels its task at the next await: the call that blocks the loop ends before."""
    done = run(
        """
        import asyncio

        async def main():
            SINKS["sink_packed"](plan(20))
            assert ROWS["sink_packed"]() == 16_000
            await asyncio.sleep(60)

        interrupted(lambda: asyncio.run(main()))
        """,
        tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_calls_that_write_run_apart_from_the_main_thread_only() -> None:
    where = apart(threading.get_ident)
    assert where() != threading.get_ident()
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(where() == threading.get_ident()))
    thread.start()
    thread.join()
    assert found == [True]

    @apart
    def fails(threads: int) -> None:
        raise ValueError(f"{threads}")

    with pytest.raises(ValueError, match=r"^3$"):
        fails(3)


def test_a_plan_is_read_to_its_end_or_raises() -> None:
    made: list[int] = []

    def rows(*_: object) -> Iterator[pl.DataFrame]:
        for n in range(20):
            made.append(n)
            if n == 12 and fails:
                raise OSError("the disk is gone")
            yield pl.DataFrame({"a": [n]})

    fails = False
    lf = register(rows, {"a": pl.Int64}, "rows")
    inner = register(lambda *_: batches(lf), {"a": pl.Int64}, "inner")
    assert pl.concat(batches(inner))["a"].to_list() == list(range(20))
    fails = True
    with pytest.raises(OSError, match="the disk is gone"):
        list(batches(inner))
    fails = False
    made.clear()
    reader = batches(lf)
    assert next(reader)["a"].to_list() == [0]
    reader.close()  # type: ignore[attr-defined]  # a generator
    for query in list(running._queries):
        assert query.wait(60)
    assert len(made) < 20


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="this system has no alarms")
@pytest.mark.parametrize("sink", ["sink_packed", "sink_index", "sink_parquet"])
def test_a_time_limit_of_the_program_leaves_the_old_target(sink: str, tmp_path: Path) -> None:
    made, others = [], []

    def ring(*_: object) -> None:
        raise TimeoutError("too long")

    def rows(*_: object) -> Iterator[pl.DataFrame]:
        for k in range(2000):
            if k == 5:
                os.kill(os.getpid(), signal.SIGALRM)
            time.sleep(0.005)
            made.append(k)
            yield pl.DataFrame({"text": ["to be", "or not"] * 50})

    def other() -> None:
        frame = pl.LazyFrame({"text": ["a b"] * 5000}).tadoc.compress("text", rows_per_grammar=20)
        frame.tadoc.sink_packed(tmp_path / "other")
        others.append("done")

    lf = register(rows, {"text": pl.String}, "rows").tadoc.compress("text", rows_per_grammar=50)
    before = signal.signal(signal.SIGALRM, ring)
    beside = threading.Thread(target=other)
    try:
        beside.start()
        with pytest.raises(TimeoutError, match="too long"):
            getattr(lf.tadoc, sink)(tmp_path / "new")
    finally:
        signal.signal(signal.SIGALRM, before)
        beside.join()
    assert len(made) < 2000
    assert others == ["done"]
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_no_bar_is_made_where_none_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    class Made(tqdm.auto.tqdm):  # type: ignore[misc, type-arg]
        def __init__(self, **options: object) -> None:
            made.append(str(options["desc"]))
            super().__init__(**options, disable=True)

    monkeypatch.setattr("tqdm.auto.tqdm", Made)
    column = tadoc.compress(pl.Series("text", ["a b", "b c"]))
    tadoc.recompress(column)
    assert made == []
    tadoc.recompress(tadoc.compress(pl.Series("text", ["a b", "b c"]), progress=True), progress=True)
    assert made == ["compress", "recompress"]


@pytest.mark.slow
def test_an_interrupt_ends_the_writing_of_a_row_group(tmp_path: Path) -> None:
    """PyArrow writes one in a call of seconds; it ends where the next column is written."""
    done = run(
        """
        import random
        from polars_tadoc.storage.polled_file import PolledFile
        words = random.Random(1).choices([f"w{k}" for k in range(50_000)], k=2_000_000)
        df = pl.DataFrame({"text": [" ".join(words[k : k + 1000]) for k in range(0, len(words), 1000)]})
        df, (write, written) = df.tadoc.compress("text"), (PolledFile.write, [])

        def writing(file, data):
            size = write(file, data)
            written.append(len(data))
            if len(data) > 10_000 and not sent and is_to_be_interrupted:
                sent.append(os.kill(os.getpid(), signal.SIGINT))
                time.sleep(0.2)
            return size

        PolledFile.write, sent, is_to_be_interrupted = writing, [], False
        df.tadoc.write_packed(folder / "packed")
        whole, is_to_be_interrupted = sum(written), True
        old = (folder / "packed").read_bytes()
        written.clear()
        interrupted(lambda: df.tadoc.write_packed(folder / "packed"))
        assert sent and sum(written) < whole / 2, (sum(written), whole)
        assert (folder / "packed").read_bytes() == old and os.listdir(folder) == ["packed"]
        """,
        tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")


SAVE = """
from polars_tadoc.storage import atomic_write
if sys.argv[3] == "two renames":
    atomic_write.exchange = lambda one, other: False
index = pl.DataFrame({"text": ["a b", "b c"]}).tadoc.compress("text").tadoc.build_index("text")
index.save(folder / "index")
new = index.append(pl.Series("text", ["a c"]).tadoc.compress())
rename = os.replace
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["exchange", "two renames"])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_index_is_replaced_as_a_whole(tmp_path: Path, how: signal.Signals, way: str) -> None:
    """Nothing is raised between the renames of the old folder and of the new one; the next call mends a kill."""
    done = run(
        SAVE
        + """
def interrupting(source, to):
    rename(source, to)
    if str(to).endswith(".old"):
        os.kill(os.getpid(), int(sys.argv[2]))
        time.sleep(0.2)

os.replace = interrupting
interrupted(lambda: new.save(folder / "index", overwrite=True))
os.replace = rename
""",
        tmp_path,
        str(how.value),
        way,
    )
    if how == signal.SIGKILL:
        assert done.returncode == -signal.SIGKILL
        if way == "exchange":
            assert tadoc.load_index(tmp_path / "index").documents == 2  # the path has an index at any time
        index = pl.DataFrame({"text": ["a c"]}).tadoc.compress("text").tadoc.build_index("text")
        index.save(tmp_path / "index", overwrite=True)
    else:
        assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    assert tadoc.load_index(tmp_path / "index").documents == (1 if how == signal.SIGKILL else 3)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["exchange", "two renames"])
@pytest.mark.parametrize("moment", ["before", "renamed", "after"])
def test_a_second_interrupt_leaves_nothing_half_done(tmp_path: Path, moment: str, way: str) -> None:
    """The main thread waits for the call no more, and the process ends: the index is the old or the new one."""
    done = run(
        SAVE
        + """
sent = []

def twice():
    while len(sent) < 2:
        sent.append(os.kill(os.getpid(), signal.SIGINT))
        time.sleep(0.25)  # the main thread notices each

def interrupting(source, to):
    if sys.argv[2] == "before" and str(to).endswith(".old"):
        twice()
    rename(source, to)
    if sys.argv[2] == "renamed" and str(to).endswith(".old"):
        twice()

def discarding(*arguments):
    twice()
    return discard(*arguments)

os.replace, discard = interrupting, atomic_write._discard
if sys.argv[2] == "after":
    atomic_write._discard = discarding
new.save(folder / "index", overwrite=True)
""",
        tmp_path,
        moment,
        way,
    )
    assert done.stderr.rstrip().endswith("KeyboardInterrupt"), done.stderr
    assert done.returncode in (-signal.SIGINT, 130)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    assert tadoc.load_index(tmp_path / "index").documents == 3


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_busy_disk_does_not_hold_up_an_interrupt(tmp_path: Path, at: int) -> None:
    """Flushing one file takes long; the interrupt comes at the first, the second or the fourth of an index."""
    done = run(
        """
        target, at, told = folder / "index", int(sys.argv[2]), None
        index = pl.DataFrame({"text": ["a b", "b c"]}).tadoc.compress("text").tadoc.build_index("text")
        index.save(target)
        before = sorted((file.name, file.read_bytes()) for file in target.iterdir())
        flushed, fsync, sent = 0, os.fsync, None

        def slow(descriptor):
            global flushed, sent
            flushed += 1
            if flushed == at + 1:
                sent = time.monotonic()
                os.kill(os.getpid(), signal.SIGINT)
                never.acquire(timeout=60)
            fsync(descriptor)

        os.fsync, never = slow, threading.Lock()
        never.acquire()
        try:
            index.delete(0).compact().save(target, overwrite=True)
        except KeyboardInterrupt:
            told = time.monotonic()
        assert told - sent < 10, told - sent  # other tests run beside this one
        assert flushed == at + 1
        assert before == sorted((file.name, file.read_bytes()) for file in target.iterdir())
        assert [path.name for path in folder.iterdir()] == ["index"]
        """,
        tmp_path,
        str(at),
    )
    assert (done.returncode, done.stderr) == (0, "")
