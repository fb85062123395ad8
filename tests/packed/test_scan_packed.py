"""Files of packed rows: written whole or not at all, read no further than a plan needs."""

from __future__ import annotations

import datetime as dt
import operator
import os
import sys
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import polars_tadoc as tadoc
from polars_tadoc.errors import ColumnMissingError, InvalidGrammarError, LimitExceededError, NotPackedError
from polars_tadoc.packed.files import PackedFile
from polars_tadoc.packed.row_group_pruning import RowGroupPruning, _Column
from polars_tadoc.packed.unpack import Documents
from tests.packed_cases import VALUES, every_column, frames

ROWS, PARTITION = 60, 8
FRAME = every_column(ROWS, PARTITION)


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "every.parquet"
    FRAME.tadoc.write_packed(path)
    return path


def spoil(path: Path, groups: list[int], keep: tuple[str, ...] = ()) -> None:
    """Overwrite all data pages of row groups, but of some columns: whoever reads them fails."""
    metadata = pq.ParquetFile(path).metadata
    data = bytearray(path.read_bytes())
    for group in groups:
        for place in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(place)
            if chunk.path_in_schema.split(".")[0] not in keep:
                start = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
                data[start : start + chunk.total_compressed_size] = b"\xaa" * chunk.total_compressed_size
    path.write_bytes(data)


@given(frames())
def test_round_trip(tmp_path: Path, frame: pl.DataFrame) -> None:
    path = tmp_path / "a.parquet"
    frame.tadoc.write_packed(path)
    lf = tadoc.scan_packed(path)
    assert lf.collect_schema() == frame.schema
    assert_frame_equal(lf.collect(), frame)
    assert_frame_equal(lf.collect(engine="streaming"), frame)
    frame.lazy().tadoc.sink_packed(path)
    assert_frame_equal(tadoc.scan_packed(path).collect(), frame)


def test_every_type(path: Path) -> None:
    assert pq.ParquetFile(path).num_row_groups == 8
    for engine in ("in-memory", "streaming"):
        assert_frame_equal(tadoc.scan_packed(path).collect(engine=engine), FRAME)  # type: ignore[arg-type]
    assert_frame_equal(pl.read_parquet(path).tadoc.unpack(), FRAME)  # Polars' own reader
    assert_frame_equal(pl.scan_parquet(path).tadoc.unpack().collect(), FRAME)


def test_polars_writes_packed_files_too(tmp_path: Path) -> None:
    packed = FRAME.tadoc.pack()
    packed.write_parquet(tmp_path / "a.parquet", row_group_size=3)
    lf = tadoc.scan_packed(tmp_path / "a.parquet")
    assert_frame_equal(lf.collect(), FRAME)
    assert_frame_equal(
        lf.filter(pl.col("number") >= 30).select("number", "text").collect(),
        FRAME.filter(pl.col("number") >= 30).select("number", "text"),
    )
    assert_frame_equal(lf.head(20).collect(), FRAME.head(20))


@pytest.mark.parametrize("name", [*VALUES, "number"])
def test_one_column(path: Path, name: str) -> None:
    lf = tadoc.scan_packed(path)
    expected = FRAME.select(FRAME[name])
    assert_frame_equal(lf.select(pl.nth(FRAME.columns.index(name))).collect(), expected)


def test_analytics(path: Path, engine: str) -> None:
    lf = tadoc.scan_packed(path)
    assert_frame_equal(lf.tadoc.word_count(engine=engine).collect(), FRAME.tadoc.word_count())
    some = pl.col("number") % 3 == 1
    assert_frame_equal(
        lf.filter(some).tadoc.inverted_index("text", id="number").collect(),
        FRAME.filter(some).tadoc.inverted_index("text", id="number"),
    )


def test_files_folders_patterns_and_lists(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for i, folder in enumerate((".", ".", "sub")):
        FRAME.slice(20 * i, 20).tadoc.write_packed(tmp_path / folder / f"{i}.parquet")
    (tmp_path / "notes.txt").write_text("not read")
    expected = FRAME.select("number")
    for source in (
        tmp_path,
        str(tmp_path / "**" / "*.parquet"),
        [tmp_path / "0.parquet", str(tmp_path / "1.parquet"), tmp_path / "sub"],
    ):
        assert_frame_equal(tadoc.scan_packed(source).select("number").collect(), expected)
    reverse = tadoc.scan_packed([tmp_path / "1.parquet", tmp_path / "0.parquet"])
    assert reverse.select("number").collect()["number"].to_list() == [*range(20, 40), *range(20)]
    for nothing in (tmp_path / "x.parquet", tmp_path / "*.csv", [tmp_path, tmp_path / "no"]):
        with pytest.raises(FileNotFoundError, match=": no Parquet file found"):
            tadoc.scan_packed(nothing)
    with pytest.raises(FileNotFoundError):
        tadoc.scan_packed([])


def test_files_that_are_something_else(tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(
        NotPackedError,
        match=r'rows.parquet: 0 packed columns, expected one.*scan_parquet\("rows.parquet"\)\.tadoc.*sink_packed',
    ):
        tadoc.scan_packed(tmp_path / "rows.parquet")
    (tmp_path / "text.parquet").write_text("no Parquet at all")
    with pytest.raises(InvalidGrammarError, match=r"text.parquet: not a Parquet file"):
        tadoc.scan_packed(tmp_path / "text.parquet")
    FRAME.tadoc.pack().with_columns(number=1).write_parquet(tmp_path / "number.parquet")
    with pytest.raises(NotPackedError, match='column "number" is Int32; columns beside a packed one must be lists'):
        tadoc.scan_packed(tmp_path / "number.parquet")
    FRAME.select("number", "text").tadoc.write_packed(tmp_path / "a.parquet")
    other = FRAME.select("text", pl.col("number").cast(pl.Int64), "flag")
    other.tadoc.write_packed(tmp_path / "b.parquet")
    other.select("text").tadoc.write_packed(tmp_path / "c.parquet")
    first = "in the first file"
    flag = rf'"flag" is List\(Boolean\), {first} not there'
    for name, said in (
        ("b", rf'"number" is List\(Int64\), {first} List\(Int32\); {flag}; scan them separately$'),
        ("c", rf'"number" is not there, {first} List\(Int32\); scan them separately$'),
    ):
        lf = tadoc.scan_packed([tmp_path / "a.parquet", tmp_path / f"{name}.parquet"])
        with pytest.raises(
            pl.exceptions.SchemaError, match=rf"{name}\.parquet: columns differ from those of .*a\.parquet: {said}"
        ):
            lf.collect()


def test_files_with_columns_in_another_order(tmp_path: Path) -> None:
    FRAME.select("number", "text", "flag").tadoc.write_packed(tmp_path / "a.parquet")
    FRAME.select("text", "flag", "number").tadoc.write_packed(tmp_path / "b.parquet")
    expected = pl.concat([FRAME.select("number", "text", "flag")] * 2)
    lf = tadoc.scan_packed(tmp_path)
    assert_frame_equal(lf.collect(), expected)
    assert_frame_equal(lf.filter(pl.col("number") > 40).collect(), expected.filter(pl.col("number") > 40))


def test_sources_that_name_no_files(tmp_path: Path) -> None:
    for source in (None, 3, b"a.parquet", [None], [b"a.parquet"]):
        with pytest.raises(
            TypeError, match=r"scan_packed: source is .*; give a file's path, a folder, a glob pattern, an address"
        ):
            tadoc.scan_packed(source)  # type: ignore[arg-type]
    for address in ("ftp://bucket/a.parquet", ["hf://a.org/a.parquet"]):
        with pytest.raises(ValueError, match=": unknown scheme"):
            tadoc.scan_packed(address)
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(FileNotFoundError):
        tadoc.scan_packed(tmp_path)
    FRAME.select("number", "text").tadoc.write_packed(tmp_path / "folder.parquet" / "a.parquet")
    for found in (tmp_path, tmp_path / "folder.parquet", tmp_path / "**" / "*.parquet"):
        assert tadoc.scan_packed(found).select("number").collect().height == ROWS


def test_what_calls_leave_in_a_folder_is_no_part_of_it(tmp_path: Path) -> None:
    """A checkpoint, a saved index, and what a killed call was writing."""
    (tmp_path / "year").mkdir()
    FRAME.select("number", "text").tadoc.write_packed(tmp_path / "year" / "a.parquet")
    FRAME.tadoc.build_index("text").save(tmp_path / "year" / "index")
    (tmp_path / ".packed.1f.tmp").mkdir()
    FRAME.select("number", "text").tadoc.write_packed(tmp_path / ".packed.1f.tmp" / "b.parquet")
    for _ in range(2):
        counts = tadoc.scan_packed(tmp_path).tadoc.word_count("text", memory_limit="1GB", checkpoint=tmp_path / "kept")
        assert counts.collect().equals(FRAME.tadoc.word_count("text"))
    (tmp_path / "year" / "manifest.json").write_text('{"version": "of something else"}')
    assert tadoc.scan_packed(tmp_path).select("number").collect().height == ROWS


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_truncated_files_are_named(path: Path, tmp_path: Path, kept: float) -> None:
    data = path.read_bytes()
    (tmp_path / "cut.parquet").write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(InvalidGrammarError, match=r"cut\.parquet: not a Parquet file"):
        tadoc.scan_packed(tmp_path)


def test_a_file_that_vanishes_is_said_to(tmp_path: Path) -> None:
    FRAME.select("number", "text").tadoc.write_packed(tmp_path / "a.parquet")
    lf = tadoc.scan_packed(tmp_path)
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"a\.parquet"):
        lf.collect()


def test_flipped_bytes_are_errors_or_change_nothing(path: Path, tmp_path: Path) -> None:
    data, names = bytearray(path.read_bytes()), ["number", "text", "name"]
    other = tmp_path / "flipped.parquet"
    for place in range(4, len(data), len(data) // 60):
        data[place] ^= 0x10
        other.write_bytes(data)
        data[place] ^= 0x10
        try:
            found = tadoc.scan_packed(other).select(names).tadoc.decompress().collect()
        except (tadoc.errors.TadocError, pl.exceptions.PolarsError, OSError):
            continue
        assert found.width == 3  # Parquet has no digest over data: values may differ, nothing crashes


def test_pages_of_an_unknown_type_are_damage(tmp_path: Path) -> None:
    """Arrow skips them: a column of conditions had no rows then, and all documents passed."""
    path = tmp_path / "a.parquet"
    FRAME.select("number", "text").tadoc.write_packed(path)
    metadata, data = pq.ParquetFile(path).metadata, bytearray(path.read_bytes())
    names = [metadata.schema.column(place).path for place in range(metadata.num_columns)]
    for name in ("number.", "text.valid."):
        (place,) = [place for place, own in enumerate(names) if own.startswith(name)]
        start = metadata.row_group(0).column(place).data_page_offset
        assert data[start : start + 2] == b"\x15\x00"  # a field of Thrift: the page's type
        data[start + 1] = 16
    path.write_bytes(data)
    lf, odd = tadoc.scan_packed(path), pl.col("number") % 8 == 100 % 8
    for plan in (lf.filter(odd).select("text"), lf.filter(odd).select("number"), lf.select(pl.len()), lf):
        with pytest.raises(InvalidGrammarError, match="row group 0: the data is damaged"):
            plan.collect()
    with pytest.raises(InvalidGrammarError, match="have 0 rows, the footer has 1"), PackedFile(path) as file:
        file.document_counts(0)


def test_only_the_columns_asked_for_are_read(path: Path, tmp_path: Path) -> None:
    spoilt = tmp_path / "spoilt.parquet"
    spoilt.write_bytes(path.read_bytes())
    spoil(spoilt, list(range(8)), keep=("number", "name", "nothing"))
    lf = tadoc.scan_packed(spoilt)
    assert_frame_equal(lf.select("number").collect(), FRAME.select("number"))
    assert_frame_equal(lf.select("name", "number").collect(), FRAME.select("name", "number"))
    assert lf.select(pl.len()).collect().item() == ROWS  # Polars asks for the column of the smallest type
    assert lf.filter(pl.col("name") == "a").select("number").collect().height > 0
    assert lf.filter(pl.col("number") < 0).collect().shape == (0, FRAME.width)  # no row passed: the rest is not read
    for damaged in (["text"], ["number", "day"]):
        with pytest.raises(InvalidGrammarError, match=r"spoilt.parquet, row group 0: the data is damaged"):
            lf.select(damaged).collect()


def test_rows_are_filtered_before_other_columns_are_read(path: Path, tmp_path: Path) -> None:
    spoilt = tmp_path / "spoilt.parquet"
    spoilt.write_bytes(path.read_bytes())
    spoil(spoilt, [0, 1, 2, 4, 5, 6, 7], keep=("number",))
    lf = tadoc.scan_packed(spoilt)
    odd = pl.col("number") % 8 == 100 % 8  # no statistics tell
    assert_frame_equal(
        lf.filter(odd, pl.col("number") // 8 == 3).collect(), FRAME.filter(odd, pl.col("number") // 8 == 3)
    )


def test_partitions_are_skipped_by_statistics(path: Path, tmp_path: Path) -> None:
    spoilt = tmp_path / "spoilt.parquet"
    spoilt.write_bytes(path.read_bytes())
    spoil(spoilt, [0, 1, 5, 6, 7])  # 24 is null, and so packed with the rows before it: partition 2 holds it
    lf = tadoc.scan_packed(spoilt)
    number = pl.col("number")
    for predicate in (
        number.is_between(24, 39),
        (number >= 25) & (number < 30),
        number.is_in([24, 38, 1000]),
        number == 25,
        (number == 25) | (number == 39),
        (number > 23) & (pl.col("text").is_not_null()) & (number <= 39),
        (number > 23) & (number * 2 < 70) & (number < 40),
    ):
        assert_frame_equal(lf.filter(predicate).collect(), FRAME.filter(predicate))
    for predicate in (number > 38, number.is_in([24, 45]), number * 2 == 60):
        with pytest.raises(InvalidGrammarError, match="the data is damaged"):
            lf.filter(predicate).collect()


def test_no_row_group_beyond_the_limit_is_read(path: Path, tmp_path: Path) -> None:
    spoilt = tmp_path / "spoilt.parquet"
    spoilt.write_bytes(path.read_bytes())
    spoil(spoilt, [2, 3, 4, 5, 6, 7])
    lf = tadoc.scan_packed([spoilt, path])
    assert_frame_equal(lf.head(16).collect(), FRAME.head(16))
    assert_frame_equal(lf.head(11).collect(), FRAME.head(11))
    few = pl.col("number") % 5 == 0
    assert_frame_equal(lf.head(11).filter(few).collect(), FRAME.head(11).filter(few))
    assert_frame_equal(lf.head(11).filter(pl.col("number") > 8).collect(), FRAME.head(11).filter(pl.col("number") > 8))
    assert lf.head(0).collect().equals(FRAME.head(0))
    with pytest.raises(InvalidGrammarError):
        lf.head(17).collect()


def test_filters_that_look_at_the_compressed_column(path: Path) -> None:
    lf = tadoc.scan_packed(path)
    for predicate in (
        pl.col("text").is_null(),
        pl.col("text").ext.storage().struct.field("symbols").list.len() > 2,
        pl.col("text").is_null() & (pl.col("number") > 20),
        pl.col("text").is_null() | (pl.col("number") > 50),
    ):
        assert_frame_equal(lf.filter(predicate).collect(), FRAME.filter(predicate))
        assert_frame_equal(lf.filter(predicate).select("flag").collect(), FRAME.filter(predicate).select("flag"))


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_filters_with_calls_on_rows(path: Path, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)  # what Polars hands to a source it has to pickle
    lf, text = tadoc.scan_packed(path), pl.col("text").tadoc  # type: ignore[attr-defined]
    for predicate in (
        text.token_count() > 3,
        text.decompress().str.contains("2"),
        (text.extract(pl.col("number") % 3, 1) == "row") & (pl.col("number") > 9),
        text.head(2).str.ends_with("7"),
        text.term_vector().list.len() > 3,
    ):
        plan = lf.filter(predicate)
        assert "FILTER" not in plan.explain(), "the source filters"
        assert_frame_equal(plan.collect(engine=engine), FRAME.filter(predicate))


COMPARED = ["small", "large", "float", "flag", "name", "day", "time", "span", "price", "number"]


def literal(name: str, value: Any) -> pl.Expr:
    return pl.lit(FRAME[name].filter(FRAME[name].is_not_null()).sample(1, seed=value).item(), FRAME.schema[name])


@st.composite
def predicates(draw: st.DrawFn, depth: int = 2) -> pl.Expr:
    """Conditions of all shapes, those that statistics decide and others."""
    if depth and draw(st.booleans()):
        left, right = draw(predicates(depth - 1)), draw(predicates(depth - 1))
        return draw(st.sampled_from([left & right, left | right, ~left, left.is_null(), left != right]))
    name = draw(st.sampled_from(COMPARED))
    column, seed = pl.col(name), st.integers(0, 30)
    low, high = literal(name, draw(seed)), literal(name, draw(seed))
    choices = [
        *(column > low, column >= low, column < low, column <= low, column == low, column != low),
        *(low > column, low >= column, low < column, low <= column, low == column, low != column),
        *(column.eq_missing(low), column.ne_missing(low), column.is_null(), column.is_not_null()),
        *(column.is_between(low, high, closed=closed) for closed in ("both", "left", "right", "none")),  # type: ignore[arg-type]
    ]
    if name in ("small", "large", "name", "number", "float"):
        values = FRAME[name].sample(draw(st.integers(0, 3)), seed=draw(seed)).to_list()
        choices += [column.is_in(values), column.is_in(values, nulls_equal=True)]
    if name == "flag":
        choices += [column, ~column]
    if name == "float":
        choices += [column > float("nan"), column == float("nan"), column.is_nan(), column < float("inf")]
    if name in ("small", "number"):
        choices += [
            column + pl.lit(1, FRAME.schema[name]) > low,
            column > 3.5,
            column.cast(pl.Int64) > 300,
            column != 3,
        ]
    return draw(st.sampled_from(choices))


@given(predicates())
def test_filters_give_what_polars_gives(path: Path, predicate: pl.Expr) -> None:
    names = ["name", "number", "text"]
    expected = FRAME.filter(predicate)
    assert_frame_equal(tadoc.scan_packed(path).filter(predicate).collect(), expected)
    few = tadoc.scan_packed(path).filter(predicate).select(names).collect(engine="streaming")
    assert_frame_equal(few, expected.select(names))


def skipped(path: Path, predicate: pl.Expr) -> list[int]:
    """Row groups that statistics rule out."""
    with PackedFile(path) as file:
        schema = tadoc.scan_packed(path).collect_schema()
        skipping = RowGroupPruning(predicate, schema)
        found = skipping.skippable(file.statistics(schema, skipping.columns))
        return [] if found is None else found.fill_null(False).arg_true().to_list()


def test_what_statistics_rule_out(tmp_path: Path) -> None:
    nan, long = float("nan"), "z" * 5000
    frame = pl.DataFrame(
        {
            "text": [f"{i // 2}" for i in range(8)],
            "i": pl.Series([1, 2, 3, 4, None, None, 5, None], dtype=pl.Int8),
            "f": [1.0, nan, 3.0, 4.0, nan, nan, None, None],
            "s": ["a", "b", "c", long, "y", "z", None, "zz"],
            "b": [True, True, False, False, True, False, None, None],
            "d": [dt.date(2020 + i, 1, 1) for i in range(8)],
        }
    ).tadoc.compress("text", rows_per_grammar=2)
    path = tmp_path / "a.parquet"
    frame.tadoc.write_packed(path)
    i, f, s, b, d = (pl.col(name) for name in "ifsbd")
    for predicate, expected in (
        (i > 2, [0, 2]),
        (i >= 2, [2]),
        (i < 3, [1, 2, 3]),
        (i == 5, [0, 1, 2]),
        (i != 5, [2, 3]),
        (pl.lit(2, pl.Int8) < i, [0, 2]),
        (i.is_null(), [0, 1]),
        (i.is_not_null(), [2]),
        (i + 1 > 100, []),  # arithmetic may overflow
        (i > 3.5, [0, 2]),
        (i.is_in(pl.Series([2, 4], dtype=pl.Int8)), [2, 3]),
        (i.is_in(pl.Series([2, None], dtype=pl.Int8)), []),
        (f > 10, [3]),  # NaN is above all numbers
        (f >= 10, [3]),
        (f < 1, [0, 1, 3]),
        (f == nan, [3]),
        (f != nan, [3]),
        (s > "m", [0]),  # too long a string is in no statistics
        (s >= "zz", [0, 2]),
        (s == "x", [0, 2, 3]),
        (s.is_in(["b", "x"]), [2, 3]),
        (b, [1, 3]),
        (~b, [0, 3]),
        (d >= dt.date(2024, 1, 1), [0, 1]),
        (d.is_between(dt.date(2021, 6, 1), dt.date(2022, 1, 1), closed="left"), [0, 1, 2, 3]),
        (d.is_between(dt.date(2021, 6, 1), dt.date(2022, 1, 1)), [0, 2, 3]),
        ((i > 2) & (s > "m"), [0, 2]),
        ((i > 2) | (s > "m"), [0]),
        ((i > 2) | (i + 1 > 0), []),
        (pl.col("text").is_null() | (i > 2), []),
    ):
        assert skipped(path, predicate) == expected, predicate
        assert_frame_equal(tadoc.scan_packed(path).filter(predicate).collect(), frame.filter(predicate))


def test_arithmetic_that_overflows_skips_nothing(tmp_path: Path) -> None:
    frame = pl.DataFrame({"text": ["a", "b"], "a": pl.Series([126, 127], dtype=pl.Int8)}).tadoc.compress("text")
    frame.tadoc.write_packed(tmp_path / "a.parquet")
    found = tadoc.scan_packed(tmp_path).filter(pl.col("a") + pl.lit(1, pl.Int8) > 3).collect()
    assert found["a"].to_list() == [126]


def test_a_stream_becomes_a_file_partition_by_partition(tmp_path: Path) -> None:
    plain = pl.DataFrame({"text": [f"row {i} of {i % 9}" for i in range(1000)]}).with_row_index("i")
    plain.write_parquet(tmp_path / "plain.parquet", row_group_size=70)
    pl.scan_parquet(tmp_path / "plain.parquet").tadoc.compress("text", rows_per_grammar=300).tadoc.sink_packed(
        tmp_path / "a.parquet"
    )
    file = pq.ParquetFile(tmp_path / "a.parquet")
    assert [file.read_row_group(group)["i"][0].as_py()[0] for group in range(4)] == [0, 300, 600, 900]
    assert tadoc.scan_packed(tmp_path / "a.parquet").tadoc.decompress().collect().equals(plain)


def test_batches_of_one_grammar_are_one_partition(tmp_path: Path) -> None:
    frame = pl.DataFrame({"text": [f"row {i}" for i in range(900)]}).tadoc.compress("text")
    frame.write_parquet(tmp_path / "rows.parquet", row_group_size=100)
    pl.scan_parquet(tmp_path / "rows.parquet").tadoc.sink_packed(tmp_path / "a.parquet")
    assert pq.ParquetFile(tmp_path / "a.parquet").num_row_groups == 1
    assert_frame_equal(tadoc.scan_packed(tmp_path / "a.parquet").collect(), frame)


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    replace = os.replace

    def observed(written: Path, final: Path) -> None:
        assert final == path
        assert pq.ParquetFile(written).num_row_groups > 0, "it is complete under another name"
        assert written.suffix == ".tmp", "no scan of the folder takes it for a file"
        replace(written, final)

    monkeypatch.setattr(os, "replace", observed)

    def fails(_: Any, __: Any, ___: Any, ____: Any) -> Iterator[pl.DataFrame]:
        yield FRAME.select("number", "text")
        raise RuntimeError("the source failed")

    plan = pl.io.plugins.register_io_source(fails, schema=FRAME.select("number", "text").schema)
    with pytest.raises((RuntimeError, pl.exceptions.ComputeError), match="the source failed"):
        plan.tadoc.sink_packed(path)
    assert list(tmp_path.iterdir()) == []
    FRAME.select("text").tadoc.write_packed(path)
    before = path.read_bytes()
    with tadoc.Config(payload_limit_bytes=1), pytest.raises(LimitExceededError):
        pl.concat([FRAME, FRAME]).select("text").tadoc.write_packed(path)
    assert path.read_bytes() == before
    FRAME.select("number", "text").tadoc.write_packed(path)  # one that is there is replaced
    assert tadoc.scan_packed(path).collect_schema().names() == ["number", "text"]
    assert [found.name for found in tmp_path.iterdir()] == ["a.parquet"]


def test_errors_come_before_a_file_does(tmp_path: Path) -> None:
    frame = FRAME.select("number", "text")
    wide = frame.with_columns(pl.struct(pl.col("number").cast(pl.Int128)).alias("wide"))
    for either in (wide.tadoc.write_packed, wide.lazy().tadoc.sink_packed):
        with pytest.raises(TypeError, match=r'column "wide" is .*Int128.*; Parquet has no 128-bit integers'):
            either(tmp_path / "a.parquet")
    for either in (frame.tadoc.write_packed, frame.lazy().tadoc.sink_packed):
        with pytest.raises(ColumnMissingError, match=r"(write|sink)_packed: .*did you mean"):
            either(tmp_path / "a.parquet", "txt")
    assert list(tmp_path.iterdir()) == []


def test_duckdb_reads_the_lists(path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.sql(f"select sum(len(text.valid)), sum(len(number)), min(text.tokenizer) from '{path}'").fetchall()
    assert found == [(ROWS, ROWS, "words")]
    words = duckdb.sql(f"select distinct unnest(text.vocabulary) from '{path}'").fetchall()
    assert {word for (word,) in words} == set(FRAME.tadoc.word_count()["word"])
    roots = duckdb.sql(f"select text.roots, text.document_offsets, text.rule_offsets from '{path}'").fetchall()
    packed = FRAME.tadoc.pack()["text"].struct
    assert [list(map(list, row)) for row in roots] == [
        list(row)
        for row in zip(
            *(packed.field(name).to_list() for name in ("roots", "document_offsets", "rule_offsets")), strict=True
        )
    ]


HOUR = 3600
UNITS = [
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.duration("s"), pa.duration("ms"), pa.duration("us"), pa.duration("ns")),
    *(pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us"), pa.timestamp("ns", "Asia/Tokyo")),
]


@pytest.fixture(scope="module")
def four_rows(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two packed grammars of two rows."""
    path = tmp_path_factory.mktemp("packed") / "text.parquet"
    pl.DataFrame({"text": list("abcd")}).tadoc.compress("text", rows_per_grammar=2).tadoc.write_packed(path)
    return pq.read_table(path)


@pytest.mark.parametrize("kind", UNITS, ids=str)
@pytest.mark.parametrize("stored", [{}, {"store_schema": False}, {"version": "2.4"}], ids=str)
def test_times_in_the_units_of_other_writers(tmp_path: Path, four_rows: Any, kind: Any, stored: dict[str, Any]) -> None:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
    ticks = pa.array([HOUR * hour * per_second for hour in range(1, 5)], pa.int32() if kind.bit_width == 32 else None)
    times = pa.ListArray.from_arrays([0, 2, 4], ticks.cast(kind))
    table = four_rows.append_column("t", times)
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1, **stored)
    lf = tadoc.scan_packed(tmp_path / "a.parquet")
    frame = lf.collect()
    for value in frame["t"]:
        for predicate in (pl.col("t") >= value, pl.col("t") < value, pl.col("t") == value, pl.col("t").is_in([value])):
            assert_frame_equal(lf.filter(predicate).collect(), frame.filter(predicate))


def no_rows(_: Any, __: Any, ___: Any, ____: Any) -> Iterator[pl.DataFrame]:
    raise AssertionError("rows were asked for")
    yield


def test_a_target_that_cannot_be_is_refused_before_any_work(tmp_path: Path) -> None:
    frame = FRAME.select("number", "text")
    plan = pl.io.plugins.register_io_source(no_rows, schema=frame.schema)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "to folder").symlink_to(tmp_path / "folder")
    for name, error, message in (
        ("folder", IsADirectoryError, "folder is a folder; give the path of a file in it"),
        ("to folder", IsADirectoryError, "folder is a folder; give the path of a file in it"),
        ("pipe", OSError, "pipe is not a regular file"),
        ("no/a.parquet", FileNotFoundError, r"folder .*no does not exist"),
    ):
        for call in (plan.tadoc.sink_packed, frame.tadoc.write_packed):
            with pytest.raises(error, match=message):
                call(tmp_path / name)
    assert {found.name for found in tmp_path.rglob("*")} == {"pipe", "folder", "to folder"}


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        (pl.PartitionBy("folder", key="number"), TypeError, r"path is PartitionBy, not a path: .*Polars' own"),
        (b"a.parquet", TypeError, "path is bytes, not a path"),
        ("ftp://bucket/a.parquet", ValueError, r'path="ftp://bucket/a.parquet": unknown scheme'),
    ],
)
def test_sink_parquet_names_what_is_no_path(path: Any, error: type[Exception], message: str) -> None:
    plan = pl.io.plugins.register_io_source(no_rows, schema={"number": pl.Int64})
    with pytest.raises(error, match=f"^sink_parquet: {message}"):
        plan.tadoc.sink_parquet(path)


def test_a_plan_may_replace_what_it_reads(tmp_path: Path) -> None:
    frame = pl.DataFrame({"number": range(1000)})
    frame.write_parquet(tmp_path / "a.parquet")
    pl.scan_parquet(tmp_path / "a.parquet").filter(pl.col("number") % 3 == 0).tadoc.sink_parquet(tmp_path / "a.parquet")
    assert_frame_equal(pl.read_parquet(tmp_path / "a.parquet"), frame.filter(pl.col("number") % 3 == 0))
    assert [found.name for found in tmp_path.iterdir()] == ["a.parquet"]


def test_home_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    frame = FRAME.select("number", "text")
    frame.tadoc.write_packed("~/a.parquet")
    frame.lazy().tadoc.sink_packed("~/b.parquet")
    assert [found.name for found in sorted(tmp_path.iterdir())] == ["a.parquet", "b.parquet"]
    assert_frame_equal(tadoc.scan_packed("~/b.parquet").collect(), frame)


def test_links_and_modes_are_kept(tmp_path: Path) -> None:
    frame = FRAME.select("number", "text")
    frame.head(3).tadoc.write_packed(tmp_path / "a.parquet")
    (tmp_path / "a.parquet").chmod(0o640)
    (tmp_path / "link.parquet").symlink_to("a.parquet")
    frame.tadoc.write_packed(tmp_path / "link.parquet")
    assert (tmp_path / "link.parquet").is_symlink()
    assert (tmp_path / "a.parquet").stat().st_mode & 0o777 == 0o640
    assert_frame_equal(tadoc.scan_packed(tmp_path / "a.parquet").collect(), frame)
    (tmp_path / "new.parquet").symlink_to("b.parquet")  # to a file that is not there yet
    frame.tadoc.write_packed(tmp_path / "new.parquet")
    assert_frame_equal(tadoc.scan_packed(tmp_path / "b.parquet").collect(), frame)


def test_columns_named_like_fields_of_the_packed_one(tmp_path: Path) -> None:
    names = ["text.gaps", "text.vocabulary", "text.symbols", "text.valid", "text.roots", "text.", "text"]
    columns: list[Any] = [range(60), ["x"] * 60, list(range(60)), [1.5] * 60, [f"{i}" for i in range(60)], [True] * 60]
    frame = pl.DataFrame(dict(zip(names, [*columns, FRAME["text"]], strict=True)))
    frame.tadoc.write_packed(tmp_path / "a.parquet", "text")
    lf = tadoc.scan_packed(tmp_path)
    assert_frame_equal(lf.collect(), frame)
    for name in names:
        assert_frame_equal(lf.select(pl.col(name)).collect(), frame.select(name))
    assert_frame_equal(lf.filter(pl.col("text.gaps") > 40).collect(), frame.filter(pl.col("text.gaps") > 40))


def test_long_conditions(path: Path) -> None:
    number = pl.col("number")
    lf = tadoc.scan_packed(path)
    unequal = reduce(operator.and_, [number != value for value in range(50, 650)])
    either = reduce(operator.or_, [number == value for value in range(1000, 1600)])
    nested = number > 50
    for value in range(500):
        nested = (nested & (number != value + 1000)) | (number == value + 2000)
    for predicate, same, groups in (
        (unequal & (number > 40), (number > 40) & ~number.is_between(50, 649), 5),
        (either | (number > 40), (number > 40) | number.is_between(1000, 1599), 5),
        (nested, ((number > 50) & ~number.is_between(1000, 1499)) | number.is_between(2000, 2499), 0),
    ):
        assert len(skipped(path, predicate)) == groups
        assert_frame_equal(lf.filter(predicate).collect(), FRAME.filter(same))


def test_a_list_is_prepared_once_and_tested_for_several_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in range(3):
        FRAME.select("number", "text").slice(20 * place, 20).tadoc.write_packed(tmp_path / f"{place}.parquet")
    lists, tests = [], []
    none_in, gathered = _Column.none_in, Documents._gathered

    def counted(self: _Column, literal: pl.Expr) -> pl.Expr | None:
        lists.append(literal)
        return none_in(self, literal)

    def observed(self: Documents, reads: Any, fault: Any) -> Iterator[Any]:
        for some in gathered(self, reads, fault):
            tests.append(len(some))
            yield some

    monkeypatch.setattr(_Column, "none_in", counted)
    monkeypatch.setattr(Documents, "_gathered", observed)
    values = [*range(15), *range(45, 2000)]
    assert tadoc.scan_packed(tmp_path).filter(pl.col("number").is_in(values)).collect()["number"].to_list() == [
        *range(15),
        *range(45, 60),
    ]
    assert (len(lists), tests) == (1, [5])  # one of six is skipped
    open_files = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert not [name for name in open_files if name.startswith(str(tmp_path))]


def test_no_file_is_opened_beyond_the_limit(tmp_path: Path) -> None:
    for place in range(3):
        FRAME.select("number", "text").slice(20 * place, 20).tadoc.write_packed(tmp_path / f"{place}.parquet")
    lf = tadoc.scan_packed(tmp_path)
    (tmp_path / "1.parquet").unlink()
    few = pl.col("number") % 2 == 1
    assert lf.head(20).collect().height == 20
    assert lf.head(20).filter(few).collect().height == 10
    with pytest.raises(FileNotFoundError):
        lf.head(21).filter(few).collect()


def test_polars_says_what_is_wrong_with_a_condition(path: Path) -> None:
    for predicate in (pl.col("number") == "3", pl.col("number").is_between("1", pl.lit("3")), pl.col("name") > 3):
        with pytest.raises(pl.exceptions.PolarsError) as found:
            tadoc.scan_packed(path).filter(predicate).collect()
        assert "bound" not in str(found.value)


@pytest.mark.parametrize("error", [pa.ArrowMemoryError("malloc failed"), TimeoutError("time limit")])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_errors_of_the_system_are_not_damage(
    error: Exception, on_error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of memory, or a time limit, skips no rows."""
    pl.DataFrame({"text": ["a b"] * 50}).tadoc.compress("text").tadoc.write_packed(tmp_path / "a.parquet")

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", fail)
    with pytest.raises((type(error), pl.exceptions.ComputeError), match=str(error)) as told:
        tadoc.scan_packed(tmp_path / "a.parquet", on_error=on_error).tadoc.decompress("text").collect()
    assert "damaged" not in str(told.value)
