"""Compressed columns between Polars and other libraries: what arrives whole, what arrives as plain types, what cannot.

See test_persistence.py for Polars' own files. ``docs/interchange.md`` says the same in words.
"""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import polars_tadoc as tadoc
from polars_tadoc.analytics import (
    cooccurrence,
    inverted_index,
    ranked_inverted_index,
    sequence_count,
    sort,
    term_vector,
    to_csr,
    word_count,
)
from polars_tadoc.model.column import split

ROWS = [*(f"line {i % 7} of {i % 3}:\tthe end,日本" for i in range(500)), None, "", "\r\n x\x00", "é" * 50]
PLAIN = pl.DataFrame({"text": ROWS}).with_row_index("id")


@pytest.fixture(params=[1 << 20, 100], ids=["one grammar", "many grammars"])
def frame(request: pytest.FixtureRequest) -> pl.DataFrame:
    return PLAIN.tadoc.compress("text", rows_per_grammar=request.param)


@pytest.fixture(scope="module")
def heavy() -> pl.DataFrame:
    """2,000 rows of a grammar of more than a megabyte: written once per row it would take 3 GB."""
    numbers = np.random.default_rng(0).integers(0, 1 << 48, (2000, 120))
    text = pl.Series("text", [" ".join(f"{number:012x}" for number in row) for row in numbers.tolist()])
    heavy = tadoc.compress(text).to_frame().with_row_index("id")
    assert payload_size(heavy) > 1 << 20
    return heavy


def payload_size(frame: pl.DataFrame) -> int:
    return sum(map(len, frame["text"].ext.storage().struct.field("grammar").unique().drop_nulls().cast(pl.String)))


def once(frame: pl.DataFrame) -> int:
    """Bytes of the rows, and of the grammars once."""
    return int(frame.estimated_size()) + payload_size(frame)


def whole(arrived: Any, plain: pl.DataFrame = PLAIN, dtype: pl.DataType = tadoc.DTYPE) -> None:
    """It is a compressed column again, without a cast, and holds the same text."""
    arrived = arrived if isinstance(arrived, pl.DataFrame) else pl.DataFrame(arrived)
    assert arrived.schema["text"] == dtype
    assert tadoc.as_text(arrived).schema["text"] == tadoc.DTYPE
    assert arrived.tadoc.decompress("text").equals(plain)


def untagged(arrived: pl.DataFrame, plain: pl.DataFrame = PLAIN) -> None:
    """It is a struct of plain types; the error of a call names the call that makes it a compressed column again."""
    assert not tadoc.is_tadoc(arrived.schema["text"])
    with pytest.raises(tadoc.errors.NotCompressedError, match=r"tadoc\.as_text\(df\)"):
        arrived.tadoc.word_count("text")
    whole(tadoc.as_text(arrived), plain)


# pickle

REQUESTS = [
    word_count.WordCountRequest,
    sort.SortRequest,
    inverted_index.InvertedIndexRequest,
    term_vector.TermVectorRequest,
    sequence_count.SequenceCountRequest,
    ranked_inverted_index.RankedInvertedIndexRequest,
    cooccurrence.CooccurrenceRequest,
    to_csr.ToCSRRequest,
]


@pytest.mark.parametrize("kind", REQUESTS)
def test_requests_are_pickled(frame: pl.DataFrame, kind: Any) -> None:
    request = kind.from_arguments(
        min_count=2, lowercase=True, stopwords=["of"], normalize=pl.element().str.replace("line", "row")
    )
    back = pickle.loads(pickle.dumps(request))
    if kind is to_csr.ToCSRRequest:
        pytest.importorskip("scipy")
        (counts, words), (expected, same) = back.run(frame["text"]), request.run(frame["text"])
        assert words.equals(same)
        assert (counts != expected).nnz == 0
    else:
        assert back.frame(frame["text"]).equals(request.frame(frame["text"]))
        assert not back.frame(frame["text"]).is_empty()


def test_what_a_column_is_made_of_is_pickled(frame: pl.DataFrame) -> None:
    for corpus in split(frame["text"]):
        back = pickle.loads(pickle.dumps(corpus))
        assert back.word_total() == corpus.word_total()
        assert back.grammar.vocabulary.equals(corpus.grammar.vocabulary)
        assert np.array_equal(back.roots, corpus.roots)
    assert pickle.loads(pickle.dumps(tadoc.DTYPE)) == tadoc.DTYPE
    assert pickle.loads(pickle.dumps(frame.rechunk().tadoc)).word_count().equals(frame.tadoc.word_count())
    error = tadoc.errors.ColumnMissingError.for_name("txt", ["text"], "word_count")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_series_are_pickled(frame: pl.DataFrame) -> None:
    whole(pickle.loads(pickle.dumps(frame["text"].rechunk())).to_frame().with_row_index("id"))


PLANS: dict[str, Any] = {
    "filtered": lambda lf: lf.filter(pl.col("id") > 7).tadoc.word_count("text"),
    "labelled": lambda lf: lf.tadoc.inverted_index("text", id="id"),
    "within a memory limit": lambda lf: lf.tadoc.word_count("text", memory_limit="1GB"),
    "decompressed": lambda lf: lf.tadoc.decompress("text"),
    "by group": lambda lf: lf.group_by(pl.col("id") % 3).agg(pl.col("text").tadoc.word_count(top=2)).sort("id"),
}


@pytest.mark.parametrize("name", PLANS)
def test_plans_are_pickled(frame: pl.DataFrame, name: str, tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle", reason="Polars needs it to pickle Python functions")
    frame.write_parquet(tmp_path / "a.parquet")
    for lf in (frame.rechunk().lazy(), pl.scan_parquet(tmp_path / "a.parquet")):
        plan = PLANS[name](lf)
        assert pickle.loads(pickle.dumps(plan)).collect().equals(plan.collect())


def test_expressions_are_pickled(frame: pl.DataFrame) -> None:
    pytest.importorskip("cloudpickle", reason="Polars needs it to pickle Python functions")
    text = pl.col("text").tadoc
    for expr in (text.decompress(), text.term_vector(), text.word_count(normalize=pl.element().str.head(1))):
        assert frame.select(pickle.loads(pickle.dumps(expr))).equals(frame.select(expr))


FRESH = """
import pickle, sys
import polars_tadoc
request, column = pickle.load(sys.stdin.buffer)
pickle.dump(request.run(column).to_frame().rows(), sys.stdout.buffer)
"""


@pytest.mark.slow
def test_a_fresh_process_answers_a_pickled_request(frame: pl.DataFrame) -> None:
    request = sequence_count.SequenceCountRequest.from_arguments(n=2, top=5, lowercase=True)
    sent = pickle.dumps((request, frame["text"].rechunk()))
    done = subprocess.run([sys.executable, "-W", "error", "-c", FRESH], input=sent, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert pickle.loads(done.stdout) == frame["text"].tadoc.sequence_count(n=2, top=5, lowercase=True).rows()


# Arrow in memory


def test_arrow_arrays_keep_the_grammar_once(frame: pl.DataFrame, heavy: pl.DataFrame) -> None:
    table = frame.to_arrow()
    assert pa.types.is_dictionary(table.schema.field("text").type.field("grammar").type)
    whole(table)
    whole(pl.from_arrow(table))
    whole(pl.from_arrow(table.slice(0, 10)), PLAIN.head(10))
    array = frame["text"].to_arrow()
    whole(pl.Series("text", array).to_frame().with_row_index("id"), dtype=tadoc.STORAGE)
    assert heavy.to_arrow().nbytes < 2 * once(heavy)


def test_oldest_types_of_arrow(frame: pl.DataFrame) -> None:
    whole(frame.to_arrow(compat_level=pl.CompatLevel.oldest()))


def test_capsules_there_and_back(frame: pl.DataFrame) -> None:
    chunked = pa.chunked_array(frame["text"])  # Series.__arrow_c_stream__
    assert pa.types.is_dictionary(chunked.type.field("grammar").type)
    whole(pl.Series("text", chunked).to_frame().with_row_index("id"), dtype=tadoc.STORAGE)
    whole(pl.DataFrame(pa.table(frame)))  # DataFrame.__arrow_c_stream__
    reader = pa.RecordBatchReader.from_stream(frame)
    whole(pl.DataFrame(reader))


def test_capsules_by_nanoarrow(frame: pl.DataFrame) -> None:
    nanoarrow = pytest.importorskip("nanoarrow")
    whole(pl.DataFrame(nanoarrow.ArrayStream(frame)))


def test_capsules_share_the_payload(heavy: pl.DataFrame) -> None:
    before = pa.total_allocated_bytes()
    table = pa.table(heavy)
    assert pa.total_allocated_bytes() - before < payload_size(heavy)  # the buffers are Polars' own
    assert table.num_rows == len(heavy)


# Arrow's files


def test_ipc_by_pyarrow(frame: pl.DataFrame, tmp_path: Path) -> None:
    table, path = frame.to_arrow(), tmp_path / "a.arrow"
    for make, read, open_ in (
        (pa.ipc.new_file, pl.read_ipc, pa.ipc.open_file),
        (pa.ipc.new_stream, pl.read_ipc_stream, pa.ipc.open_stream),
    ):
        with make(str(path), table.schema) as writer:
            writer.write_table(table)
        whole(read(path))
        whole(open_(path.read_bytes()).read_all())
    pa.feather.write_feather(table, str(path))
    whole(pl.read_ipc(path))


def test_ipc_by_polars_for_pyarrow(frame: pl.DataFrame) -> None:
    for write, open_ in ((frame.write_ipc, pa.ipc.open_file), (frame.write_ipc_stream, pa.ipc.open_stream)):
        file = io.BytesIO()
        write(file)
        whole(open_(file.getvalue()).read_all())


@pytest.mark.parametrize("row_group_size", [None, 64])
def test_parquet_by_pyarrow(frame: pl.DataFrame, tmp_path: Path, row_group_size: int | None) -> None:
    ours, theirs = tmp_path / "ours.parquet", tmp_path / "theirs.parquet"
    frame.write_parquet(ours, row_group_size=row_group_size)
    read = pq.read_table(ours)
    assert pa.types.is_dictionary(read.schema.field("text").type.field("grammar").type)
    whole(read)
    whole(pa.dataset.dataset(ours).to_table())
    whole(pa.dataset.dataset(ours).to_table(filter=pa.dataset.field("id") < 9), PLAIN.head(9))
    for table in (frame.to_arrow(), read):
        pq.write_table(table, theirs, row_group_size=row_group_size)
        whole(pl.read_parquet(theirs))
        kept = pl.scan_parquet(theirs).filter(pl.col("id") < 9).tadoc.decompress("text").collect()
        assert kept.equals(PLAIN.head(9))
    with pytest.raises(pa.ArrowNotImplementedError):  # a dictionary of string views: df.to_arrow() gives another
        pq.write_table(pa.table(frame), theirs)
    frame.write_parquet(theirs, use_pyarrow=True)
    whole(pl.read_parquet(theirs), dtype=tadoc.STORAGE)


@pytest.mark.parametrize("how", ["at once", "in chunks", "by batch"])
def test_pyarrow_writes_a_large_grammar_a_few_times_at_most(heavy: pl.DataFrame, tmp_path: Path, how: str) -> None:
    """pyarrow gives up a dictionary of more than a megabyte; it must not write a copy for each row instead."""
    path, table = tmp_path / "a.parquet", heavy.to_arrow()
    if how == "at once":
        pq.write_table(table, path)
    elif how == "in chunks":
        pq.write_table(pa.concat_tables([table.slice(at, 100) for at in range(0, 2000, 100)]), path)
    else:
        with pq.ParquetWriter(path, table.schema) as writer:
            for batch in table.to_batches(max_chunksize=500):
                writer.write_batch(batch)  # a row group each
    copies = pq.read_metadata(path).num_row_groups
    rows = len(heavy) * 122 * 4
    assert path.stat().st_size < 3 * copies * payload_size(heavy) + 2 * rows
    whole(pl.read_parquet(path), heavy.tadoc.decompress("text"))


# DuckDB


@pytest.fixture
def duckdb() -> Any:
    return pytest.importorskip("duckdb")


def test_duckdb_reads_frames_tables_and_files(duckdb: Any, frame: pl.DataFrame, tmp_path: Path) -> None:
    path, arrow = tmp_path / "a.parquet", frame.to_arrow()
    frame.write_parquet(path)
    grammars = frame["text"].ext.storage().struct.field("grammar").drop_nulls().n_unique()
    symbols = int(frame["text"].ext.storage().struct.field("symbols").list.len().sum())
    for source in ("frame", "arrow", f"'{path}'"):
        query = (
            f"select count(*), count(text.symbols), count(distinct text.grammar), sum(len(text.symbols)) from {source}"
        )
        assert duckdb.sql(query).fetchall() == [(len(ROWS), len(ROWS) - 1, grammars, symbols)]
    assert arrow.num_rows == len(ROWS)


def test_duckdb_hands_rows_back_without_the_tag(duckdb: Any, frame: pl.DataFrame, tmp_path: Path) -> None:
    frame.write_parquet(tmp_path / "a.parquet")
    untagged(duckdb.sql("select * from frame").pl())
    untagged(pl.DataFrame(duckdb.sql("select * from frame").to_arrow_table()))
    untagged(duckdb.sql(f"select * from '{tmp_path}/a.parquet' where id < 20").pl(), PLAIN.head(20))
    duckdb.sql(f"copy (select * from frame) to '{tmp_path}/b.parquet' (format parquet)")
    untagged(pl.read_parquet(tmp_path / "b.parquet"))


def test_duckdb_keeps_grammars_once_as_an_enum(duckdb: Any, heavy: pl.DataFrame, tmp_path: Path) -> None:
    """DuckDB copies a string for each row it hands out; a value of an enum is a number."""
    path = tmp_path / "a.parquet"
    heavy.write_parquet(path)
    connection = duckdb.connect()
    connection.execute(f"create type grammar as enum (select distinct text.grammar from '{path}')")
    table = connection.sql(
        f"""select id, struct_pack(grammar := text.grammar::grammar, symbols := text.symbols, gaps := text.gaps) as text
            from '{path}' order by id"""
    ).to_arrow_table()
    assert table.nbytes < 2 * once(heavy)
    untagged(pl.DataFrame(table), heavy.tadoc.decompress("text"))


def test_duckdb_chooses_rows_and_polars_counts_them(duckdb: Any, frame: pl.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    frame.write_parquet(path)
    chosen = duckdb.sql(f"select id from '{path}' where id % 10 = 3").pl()
    counts = pl.scan_parquet(path).join(chosen.lazy(), on="id", how="semi").tadoc.word_count("text").collect()
    assert counts.equals(frame.filter(pl.col("id") % 10 == 3).tadoc.word_count("text"))


# pandas


def test_pandas_with_arrow_types(frame: pl.DataFrame, heavy: pl.DataFrame, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame.write_parquet(tmp_path / "a.parquet")
    read = pandas.read_parquet(tmp_path / "a.parquet", dtype_backend="pyarrow")
    whole(pl.from_pandas(read), dtype=tadoc.STORAGE)
    whole(pl.from_pandas(frame.to_pandas(use_pyarrow_extension_array=True)), dtype=tadoc.STORAGE)
    whole(pl.from_pandas(read[read["id"] < 9]), PLAIN.head(9), dtype=tadoc.STORAGE)
    read.to_parquet(tmp_path / "b.parquet")
    whole(pl.read_parquet(tmp_path / "b.parquet"), dtype=tadoc.STORAGE)
    assert heavy.to_pandas(use_pyarrow_extension_array=True).memory_usage(deep=True).sum() < 2 * once(heavy)


def test_pandas_with_objects_copies_the_grammar_for_each_row(frame: pl.DataFrame, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    few = frame.head(20)
    few.write_parquet(tmp_path / "a.parquet")
    for copied in (few.to_pandas(), pandas.read_parquet(tmp_path / "a.parquet")):
        assert copied["text"][0]["grammar"].startswith("TADOC")
        back = pl.from_pandas(copied)
        assert isinstance(back.schema["text"], pl.Struct)
        assert not tadoc.is_tadoc(back.schema["text"])
    assert few.tadoc.decompress("text").to_pandas()["text"].tolist() == ROWS[:20]
    assert pandas.read_parquet(tmp_path / "a.parquet", columns=["id"])["id"].tolist() == list(range(20))


# Python objects and text formats


def test_python_objects_copy_the_grammar_for_each_row(frame: pl.DataFrame) -> None:
    few = frame.head(20)
    for row in (few.rows()[0][1], few.to_dicts()[0]["text"], few.row(0, named=True)["text"], few["text"][0]):
        assert row["grammar"].startswith("TADOC")
    assert few.tadoc.decompress("text")["text"].to_list() == ROWS[:20]  # the way that copies nothing
    assert next(few.tadoc.decompress("text").iter_rows()) == (0, ROWS[0])


def test_printing_a_frame_shows_the_start_of_the_grammar_only(heavy: pl.DataFrame) -> None:
    assert len(repr(heavy)) < 10_000  # not so a series: Polars cuts what it shows of frames only


def test_text_formats_refuse(frame: pl.DataFrame) -> None:
    with pytest.raises(pl.exceptions.ComputeError, match=r"ext\[tadoc\] cannot be written to CSV"):
        frame.write_csv()
    for write in (frame.write_json, frame.write_ndjson):
        with pytest.raises(BaseException, match=r"Binary|panic|not"):  # Polars' PanicException is no Exception
            write()
    assert frame.tadoc.decompress("text").head(1).write_csv() == 'id,text\n0,"line 0 of 0:\tthe end,日本"\n'


# what costs a copy of the grammar for each row, and what does not


CHEAP: dict[str, Any] = {
    "filter": lambda df: df.filter(pl.col("id") % 2 == 0),
    "sort by another column": lambda df: df.sort("id", descending=True),
    "join on another column": lambda df: df.join(df.select("id"), on="id"),
    "group_by another column": lambda df: df.group_by(pl.col("id") % 7).agg(pl.col("text")),
    "unique by another column": lambda df: df.unique(subset="id"),
    "concat": lambda df: pl.concat([df, df], rechunk=True),
    "first over": lambda df: df.with_columns(pl.col("text").first().over(pl.col("id") % 7)),
    "fill": lambda df: df.with_columns(pl.col("text").fill_null(strategy="forward")),
    "sample": lambda df: df.sample(500, seed=0),
    "unnest": lambda df: tadoc.as_storage(df).unnest("text"),
    "pickle": lambda df: pickle.loads(pickle.dumps(df.rechunk())),
}


@pytest.mark.parametrize("name", CHEAP)
def test_carrying_a_column_along_copies_no_grammar(heavy: pl.DataFrame, name: str) -> None:
    result = CHEAP[name](heavy)
    assert result.estimated_size() < 3 * once(heavy)
