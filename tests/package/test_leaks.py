"""Nothing outlives its last use: frames, grammars, the tables made of them. No test waits for ``gc.collect()``."""

from __future__ import annotations

import gc
import inspect
import json
import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.namespaces import TadocExpr, TadocFrame, TadocLazyFrame, TadocSeries
from tests.package.test_surfaces import methods

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "extract": (0, 2),
    "head": (2,),
    "tail": (2,),
    "count_phrase": ("a b",),
    "contains": ("a.b",),
    "count_matches": ("a b",),
    "find": ("b",),
    "extract_all": ("[ab]+",),
    "contains_phrase": ("a b",),
    "concordance": ("a b",),
    "positions": ("a b",),
    "contains_any": (["a b", "c"],),
    "bm25": ("a b",),
    "eq": ("a b",),
    "overlap": (pl.Series(["a b c"]),),
    "overlap_share": (pl.Series(["a b c"]),),
    "overlaps": (pl.Series(["a b c"]),),
}
"""Of calls on rows; calls on frames take the column's name."""
CALLS_ON_FRAMES = {(accessor, name) for accessor in (TadocFrame, TadocLazyFrame) for name in methods(accessor)}
CALLS_ON_ROWS = {(accessor, name) for accessor in (TadocSeries, TadocExpr) for name in methods(accessor)}
NOT_ON_THIS_COLUMN = {"unpack", "write_packed", "sink_packed", "twig_filter"}
"""Calls that want a packed column, a path or XML; see test_packed_rows_are_freed and test_rows_of_xml_are_freed."""


@pytest.fixture(autouse=True)
def _no_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def fresh() -> pl.DataFrame:
    return pl.DataFrame({"id": [1, 2, 3], "text": ["a b", "c", None], "plain": ["x", "y", "z"]}).tadoc.compress("text")


def named(cases: set[tuple[type, str]]) -> list[Any]:
    return [
        pytest.param(accessor, name, id=f"{accessor.__name__}.{name}")
        for accessor, name in sorted(cases, key=lambda case: (case[0].__name__, case[1]))
        if name not in NOT_ON_THIS_COLUMN
    ]


def call(held: Any, name: str, *arguments: Any) -> Any:
    if name == "to_csr":
        pytest.importorskip("scipy")
    method = getattr(held.tadoc, name)
    if "engine" in inspect.signature(method).parameters:
        return method(*arguments, engine="cpu")
    return method(*arguments)


@pytest.mark.parametrize(("accessor", "name"), named(CALLS_ON_FRAMES))
def test_a_frame_is_freed_after_each_call(
    accessor: type, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the calls that write write
    held: Any = fresh() if accessor is TadocFrame else fresh().lazy()
    before = (fresh().tadoc.build_index("text"),) if name == "append_to" else ()
    column = () if name == "preview" else ("plain" if name == "compress" else "text",)
    result = call(
        held, name, *before, *column, *(ARGUMENTS[name] if name in ("overlap", "concordance", "positions") else ())
    )
    if isinstance(result, pl.LazyFrame):
        result.collect()
    gone = weakref.ref(held)
    del held, result
    assert gone() is None


@pytest.mark.parametrize(("accessor", "name"), named(CALLS_ON_ROWS))
def test_a_series_or_an_expression_is_freed_after_each_call(accessor: type, name: str) -> None:
    frame = fresh()
    held: Any = (frame["plain" if name == "compress" else "text"],) if accessor is TadocSeries else None
    if held is None:
        held = (pl.col("plain" if name == "compress" else "text"),)
    result = call(held[0], name, *ARGUMENTS.get(name, ()))
    if isinstance(result, pl.Expr):
        frame.select(result)
    gone = weakref.ref(held[0])
    del held, result
    assert gone() is None


def test_packed_rows_are_freed(tmp_path: Any) -> None:
    frame, packed = fresh(), fresh().tadoc.pack("text")
    plan, lazy = frame.lazy(), packed.lazy()
    frame.tadoc.write_packed(tmp_path / "a.parquet", "text")
    plan.tadoc.sink_packed(tmp_path / "b.parquet", "text")
    assert packed.tadoc.unpack().height == lazy.tadoc.unpack().collect().height == 3
    gone = [weakref.ref(held) for held in (frame, packed, plan, lazy)]
    del frame, packed, plan, lazy
    assert [held() for held in gone] == [None] * 4


@pytest.mark.parametrize("compressed", [False, True])
def test_rows_of_xml_are_freed(compressed: bool) -> None:
    frame = pl.DataFrame({"xml": ["<a><b/></a>", None, "<a>text</a>"]})
    frame = frame.tadoc.compress("xml", tokenizer="xml") if compressed else frame
    twigs = tadoc.TwigSet({"b": "//b", "text": "/a[text()='text']"})
    plan, series, column, state = frame.lazy(), frame["xml"], pl.col("xml"), twigs._compiled()
    expression = column.tadoc.twig_filter(twigs)
    assert frame.tadoc.twig_filter("xml", twigs).rows() == [(0, "b"), (2, "text")]
    for limit in (None, "1GB"):
        assert plan.tadoc.twig_filter("xml", twigs, memory_limit=limit).collect().rows() == [(0, "b"), (2, "text")]
    assert series.tadoc.twig_filter(twigs).to_list() == [["b"], None, ["text"]]
    assert frame.select(expression)["xml"].to_list() == [["b"], None, ["text"]]
    with pytest.raises(tadoc.errors.InvalidXmlError):
        pl.DataFrame({"xml": ["<a>"]}).tadoc.twig_filter("xml", twigs)
    gone = [weakref.ref(held) for held in (frame, plan, series, column, state, twigs)]
    del frame, plan, series, column, state, twigs, expression
    assert [held() for held in gone] == [None] * 6


def test_an_unused_accessor_that_was_kept_keeps_only_its_own() -> None:
    frame = fresh()
    accessor = tadoc.of(frame)
    gone = weakref.ref(frame)
    del frame
    assert accessor.word_count("text").height == 3
    del accessor
    assert gone() is None


FAILURES: dict[str, Callable[[pl.DataFrame], Any]] = {
    "no such column": lambda df: df.tadoc.word_count("txt"),
    "another type": lambda df: df.tadoc.info("plain"),
    "a wrong argument": lambda df: df.tadoc.word_count("text", top=-1),
    "normalize that gives no strings": lambda df: df.tadoc.sequence_count(normalize=pl.element().str.len_bytes()),
    "normalize that fails": lambda df: df.tadoc.term_vector(normalize=pl.element().str.to_datetime("%Y")),
    "labels of another length": lambda df: tadoc.term_vector(df["text"], id=pl.Series([1])),
    "in a plan": lambda df: df.lazy().tadoc.word_count("text", normalize=pl.element().str.len_bytes()).collect(),
    "in an expression": lambda df: df.select(pl.col("text").tadoc.word_count(normalize=pl.element().str.len_bytes())),
    "beyond a limit": lambda df: _decompress_within(df, 0),
}


def _decompress_within(df: pl.DataFrame, limit: int) -> pl.DataFrame:
    with tadoc.Config(expansion_limit=limit):
        return df.tadoc.decompress("text")


@pytest.mark.parametrize("name", FAILURES)
def test_an_error_keeps_no_frame_alive(name: str) -> None:
    frame = fresh()
    try:
        FAILURES[name](frame)
    except Exception:  # its traceback holds the frame, and goes with it
        failed = True
    else:
        failed = False
    assert failed
    gone = weakref.ref(frame)
    del frame
    assert gone() is None


GRAMMARS = """
import gc, json, sys
import polars as pl
import polars_tadoc as tadoc
from pathlib import Path
gc.disable()
path = Path(sys.argv[1])

def fails(df):
    try:
        df.tadoc.word_count(normalize=pl.element().str.len_bytes())
    except ValueError:
        pass

def twice(df):
    counts = df.lazy().tadoc.word_count()
    return counts.join(counts, on="word").collect()

def pickled(df):
    import pickle
    return pickle.loads(pickle.dumps(df.rechunk()))

text = pl.col("text").tadoc
uses = {
    "nothing": lambda df: df,
    "word_count": lambda df: df.tadoc.word_count(),
    "explain": lambda df: tadoc.explain(df["text"], "term_vector"),
    "bottom up": lambda df: df.tadoc.term_vector(strategy="bottom_up"),
    "sequences": lambda df: df.tadoc.ranked_inverted_index(n=2, id="text"),
    "info": lambda df: df.tadoc.info(),
    "decompress": lambda df: df.tadoc.decompress(),
    "recompress": lambda df: df.tadoc.recompress(),
    "compress like": lambda df: tadoc.compress(pl.Series(["other"]), like=df["text"]),
    "expressions": lambda df: df.select(text.decompress(), words=text.term_vector(), first=text.head(1)),
    "a filter": lambda df: df.filter(text.contains_phrase("w x")),
    "groups": lambda df: df.group_by(pl.int_range(pl.len()) % 2).agg(text.word_count()),
    "a plan": lambda df: df.lazy().tadoc.inverted_index().collect(),
    "a plan that streams": lambda df: df.lazy().tadoc.word_count().collect(engine="streaming"),
    "a plan within limits": lambda df: df.lazy().tadoc.word_count(memory_limit="1GB").collect(),
    "a plan that uses one part twice": twice,
    "packing": lambda df: df.tadoc.pack("text").tadoc.unpack(),
    "a file": lambda df: (df.write_parquet(path), pl.scan_parquet(path).tadoc.word_count().collect()),
    "pickle": pickled,
    "Arrow": lambda df: pl.DataFrame(df.to_arrow()),
    "splitting": lambda df: tadoc.column.split(df["text"]),
    "an error": fails,
}
codes = {}
for name, use in uses.items():
    codes[name] = []
    for i in range(3):
        df = pl.DataFrame({"text": [f"w{i} {name} x{j % 7}" for j in range(10)]}).tadoc.compress("text")
        codes[name].append(df["text"].ext.storage().struct.field("grammar").to_physical()[0])
        use(df)
        del df
json.dump(codes, sys.stdout)
"""


@pytest.mark.slow
def test_a_grammar_is_dropped_with_its_last_row(tmp_path: Any) -> None:
    """Polars drops categories when no series of theirs is left; then the next one gets the number of the first."""
    # in a process of its own: here columns of other tests keep the categories alive
    done = subprocess.run(
        [sys.executable, "-c", GRAMMARS, str(tmp_path / "a.parquet")], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    kept = {name: codes for name, codes in json.loads(done.stdout).items() if any(codes)}
    assert kept == {}


LOOP = """
import json, sys
import psutil
import polars as pl
import polars_tadoc as tadoc
from polars_tadoc.model.grammar_cache import grammars
from polars_tadoc.kernels.traverse.kept_tables_cpu import kept

budget = 1 << 20
tadoc.Config.set(host_cache_bytes=budget, engine="cpu")
process, memory, largest, most, payloads = psutil.Process(), {}, 0, 0, 0
for i in range(1, 301):
    rows = [f"grammar {i} says: word{i}x{j % 97} and word{i}y{j % 31}, again word{i}x{7 * j % 97}" for j in range(100)]
    df = pl.DataFrame({"text": rows}).tadoc.compress("text")
    assert df.tadoc.word_count(normalize=pl.element().str.replace(r"\\d.*", ""), top=1).rows() == [("word", 300)]
    assert df.tadoc.term_vector(strategy="bottom_up")["count"].sum() == 800
    assert df.tadoc.sequence_count(n=2)["count"].sum() == 700
    assert df.lazy().tadoc.inverted_index().select(pl.col("documents").list.len().sum()).collect().item() <= 800
    assert df.tadoc.decompress()["text"][-1] == rows[-1]
    largest, most = max(largest, grammars.nbytes), max(most, kept.nbytes)
    payloads += len(df["text"].ext.storage().struct.field("grammar").head(1).cast(pl.String)[0])
    del df
    if i in (100, 300):
        memory[i] = process.memory_info().rss
json.dump({"grown": memory[300] - memory[100], "grammars": largest, "tables": most, "payloads": payloads}, sys.stdout)
"""


@pytest.mark.slow
def test_memory_stays_flat_over_three_hundred_grammars() -> None:
    pytest.importorskip("psutil")
    done = subprocess.run([sys.executable, "-c", LOOP], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert found["grown"] < 1 << 20, found  # 5 kB for each grammar
    assert 1 << 19 < found["grammars"] <= 1 << 20  # the caches were full, and kept to their budget
    assert 0 < found["tables"] <= 1 << 20


LARGE = """
import json, random, sys
import psutil
import polars as pl
import polars_tadoc as tadoc

tadoc.Config.set(host_cache_bytes=0, engine="cpu")
process, memory = psutil.Process(), []
for i in range(25):
    numbers = random.Random(i)
    rows = [numbers.randbytes(360).hex(" ", 6) for _ in range(3000)]
    df = pl.DataFrame({"text": rows}).tadoc.compress("text")
    size = len(df["text"].ext.storage().struct.field("grammar").head(1).cast(pl.String)[0])
    assert size > 1 << 20, size
    df.tadoc.word_count(top=1), df.tadoc.decompress()
    del df, rows
    memory.append(process.memory_info().rss)
json.dump([min(memory[-5:]) - min(memory[:5]), size], sys.stdout)
"""


@pytest.mark.slow
def test_large_payloads_are_freed() -> None:
    pytest.importorskip("psutil")
    # freed memory goes back to the system at once, whatever the allocator
    eager = {"MALLOC_ARENA_MAX": "1", "_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0"}
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, check=False, env=os.environ | eager)
    assert done.returncode == 0, done.stderr.decode()
    grown, size = json.loads(done.stdout)
    assert grown < 12 * size  # twenty of them came and went
