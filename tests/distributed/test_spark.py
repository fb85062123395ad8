"""Spark with two workers on this machine: its tables are those of one process, also where a worker is killed."""

from __future__ import annotations

import doctest
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.near_copies import NearCopies
from polars_tadoc.distributed import spark, spark_plans
from polars_tadoc.errors import ColumnMissingError
from tests.package.test_doc_code import code, run
from tests.spark_cases import cases, rows
from tests.spark_session import spark_session

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # py4j leaves its sockets to the garbage collector
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]
CASES = cases(pa.int64())
COMPRESSED = ["inverted_index", "ranked_inverted_index", "term_vector", "tfidf"]
"""Beside those of which workers are killed."""
XML = ["<r><a><b/></a></r>", "<r><a/></r>", "<r>", None, "<a/>", "<r><b/></r>"]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with spark_session(tmp_path_factory.mktemp("spark")) as started:
        yield started


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    """Near copies of the beginnings of texts, in no order, some null."""
    text = pl.read_parquet(corpora.SAMPLES / "peps.parquet")["text"].str.head(1500)
    copies = NearCopies(text)
    column = pl.concat([*(copies.copy(number) for number in range(3)), pl.Series("text", [None, "", "..."])])
    ids = pl.Series("id", [7 * place % len(column) for place in range(len(column))])
    return pl.DataFrame([ids, column])


def spark_frame(session: Any, frame: pl.DataFrame, partitions: int = 4) -> Any:
    return session.createDataFrame(frame.to_arrow(compat_level=pl.CompatLevel.oldest())).repartition(partitions)


@pytest.fixture(scope="module")
def compressed(session: Any, frame: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Compressed at ingest, kept as Parquet."""
    path = str(tmp_path_factory.mktemp("ingest") / "compressed")
    spark.compress(spark_frame(session, frame), "text").write.parquet(path)
    return session.read.parquet(path)


def ask(df: Any, name: str) -> list[dict[str, Any]]:
    case = CASES[name]
    labels = {"id": "id"} if case.labelled else {}
    made = getattr(spark, case.name)(df, "text", **case.arguments, **labels)
    assert made.columns == case.schema.names
    return [row.asDict(recursive=True) for row in made.collect()]


@pytest.mark.parametrize("name", COMPRESSED)
def test_tables_of_a_compressed_column_are_equal(compressed: Any, frame: pl.DataFrame, name: str) -> None:
    assert rows(ask(compressed, name)) == rows(CASES[name].expected(frame))


@pytest.mark.parametrize("name", ["word_count", "inverted_index"])
def test_tables_of_text_are_equal(session: Any, frame: pl.DataFrame, name: str) -> None:
    assert rows(ask(spark_frame(session, frame), name)) == rows(CASES[name].expected(frame))


def test_sequences_of_several_lengths(session: Any, frame: pl.DataFrame) -> None:
    df = spark_frame(session, frame)
    made = spark.sequence_count(df, "text", n=iter([3, 1]), top=4)
    assert made.columns == ["n", "sequence", "count"]
    wanted = pl.DataFrame(tadoc.sequence_count(frame["text"], n=[3, 1], top=4))
    assert [(row.n, row.sequence, row["count"]) for row in made.collect()] == wanted.rows()


def test_twigs_are_matched_in_text_and_compressed(session: Any) -> None:
    frame = pl.DataFrame({"id": range(12), "text": XML * 2})
    text = spark_frame(session, frame)
    expected = rows(CASES["twig_filter"].expected(frame))
    assert expected
    assert rows(ask(text, "twig_filter")) == expected
    assert rows(ask(spark.compress(text, "text", tokenizer="xml"), "twig_filter")) == expected


def test_passages_of_a_compressed_column(compressed: Any, frame: pl.DataFrame) -> None:
    """Of text: the documented examples."""
    [path] = {os.path.dirname(file.removeprefix("file://")) for file in compressed.inputFiles()}
    left = spark.drop_repeats(compressed, "text", id="id")
    left.write.parquet(f"{path}/../left")
    ordered = frame.sort("id")
    read = spark.unpack(pl.scan_parquet(f"{path}/../left/*.parquet"), "text").tadoc.decompress().collect()  # type: ignore[attr-defined]
    assert read.sort("id").equals(ordered.tadoc.drop_repeats("text"))  # type: ignore[attr-defined]
    assert read["text"].str.len_bytes().sum() < frame["text"].str.len_bytes().sum()


def test_the_best_are_in_order(compressed: Any, frame: pl.DataFrame) -> None:
    column = tadoc.compress(frame["text"])
    best = spark.word_count(compressed, "text", top=20).collect()
    assert [tuple(row) for row in best] == tadoc.word_count(column, top=20).to_pandas().to_records(index=False).tolist()
    pairs = spark.cooccurrence(compressed, "text", top=5, min_count=3).collect()
    assert [row.asDict() for row in pairs] == tadoc.cooccurrence(column, top=5, min_count=3).to_pylist()
    words = [row.word for row in spark.sort(compressed, "text").collect()]
    assert words == tadoc.sort(column)["word"].to_pylist()


def test_rows_come_back_in_polars(compressed: Any, frame: pl.DataFrame) -> None:
    [path] = {os.path.dirname(file.removeprefix("file://")) for file in compressed.inputFiles()}
    unpacked = spark.unpack(pl.scan_parquet(f"{path}/*.parquet"), "text").tadoc.decompress().collect()
    assert unpacked.sort("id").equals(frame.sort("id"))


@pytest.mark.parametrize("name", ["word_count", "bm25_weights"])
def test_a_frame_without_rows_has_none(session: Any, frame: pl.DataFrame, name: str) -> None:
    empty = spark_frame(session, frame).filter("id < 0")
    assert ask(empty, name) == []
    assert spark.compress(empty, "text").collect() == []


@pytest.fixture
def kill_once(tmp_path: Path) -> Any:
    """Kills the worker that first comes by a place; the task is tried again by another one."""

    def at(place: str) -> None:
        from pyspark import TaskContext

        try:
            (tmp_path / place).touch(exist_ok=False)
        except FileExistsError:
            return
        assert TaskContext.get().attemptNumber() == 0
        os.kill(os.getpid(), signal.SIGKILL)

    at.killed = lambda: sorted(path.name for path in tmp_path.iterdir())  # type: ignore[attr-defined]
    return at


@pytest.mark.parametrize("name", ["sequence_count", "bm25_weights"])
def test_a_killed_worker_changes_nothing(
    session: Any, compressed: Any, frame: pl.DataFrame, name: str, kill_once: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = spark_plans.Asked
    stages = {"sequence_count": ["find", "merge"], "bm25_weights": ["find_terms", "count_documents", "weigh"]}[name]

    class Killed(tasks):  # type: ignore[misc, valid-type]
        """Has each stage's first worker killed when it has done its work, but for handing it over."""

    for stage in stages:

        def task(self: Any, found: Any, stage: str = stage) -> Any:
            made = getattr(tasks, stage)(self, found)
            made = made if isinstance(made, pa.Table) else list(made)
            kill_once(stage)
            return made

        setattr(Killed, stage, task)
    monkeypatch.setattr(spark_plans, "Asked", Killed)
    assert rows(ask(compressed, name)) == rows(CASES[name].expected(frame))
    assert kill_once.killed() == sorted(stages)


def test_arguments_are_checked_before_anything_runs(session: Any, compressed: Any) -> None:
    df = session.createDataFrame([(1, "to be", [1])], "id int, text string, tags array<int>")
    with pytest.raises(ColumnMissingError, match='word_count: there is no column "txt"; did you mean "text"'):
        spark.word_count(df, "txt")
    with pytest.raises(TypeError, match='word_count: column "id" is int, not string or cells'):
        spark.word_count(df, "id")
    with pytest.raises(TypeError, match='compress: column "id" is int, not string; cast it first'):
        spark.compress(df, "id")
    with pytest.raises(TypeError, match="column name is Column, not a string"):
        spark.word_count(df, df["text"])
    with pytest.raises(TypeError, match="word_count takes a Spark DataFrame, not DataFrame"):
        spark.word_count(pl.DataFrame({"text": ["to be"]}), "text")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match='id is column "tags" of type array<int>; ids must be strings'):
        spark.term_vector(df, "text", id="tags")
    with pytest.raises(TypeError, match="tokenizer= is for columns of text"):
        spark.word_count(compressed, "text", tokenizer="words")
    with pytest.raises(TypeError, match='id is column "text" of type binary; beside a compressed'):
        spark.term_vector(compressed, "text", id="text")
    with pytest.raises(ValueError, match="tokenizer='lines'"):
        spark.word_count(df, "text", tokenizer="lines")
    with pytest.raises(TypeError, match="the column is missing before the queries"):
        spark.twig_filter(df, {"a": "//a"}, "text", id="id")  # type: ignore[arg-type]


def test_names_of_columns_are_no_paths(session: Any) -> None:
    df = session.createDataFrame([(1, "to be")], "`id.of` int, `the.text` string")
    assert spark.inverted_index(df, "the.text", id="id.of").count() == 2
    made = spark.compress(df, "the.text")
    assert spark.inverted_index(made, "the.text", id="id.of").count() == 2


def test_the_documented_programs(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pages = [("https://docs.a", "to be or not to be"), ("https://b", "to do")]
    session.createDataFrame(pages, "url string, text string").write.parquet(str(tmp_path / "pages"))
    blocks = [block.replace("s3a://lake", str(tmp_path)) for block in code("distributed")[:3]]
    names = run(blocks[:2], {"session": session})
    assert session.read.parquet(str(tmp_path / "index")).count() == 5
    run(blocks[2:], names)
    assert sorted(names["lf"].tadoc.decompress("text").collect().rows()) == sorted(pages)


def test_examples_run(session: Any) -> None:
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    found = [test for test in finder.find(spark, extraglobs={"session": session}) if test.examples]
    assert {test.name.rpartition(".")[2] for test in found} == {*spark.__all__, "spark"} - {"unpack"}
    for test in found:
        runner.run(test)
    assert runner.failures == 0
