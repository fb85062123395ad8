"""Grammars that stand too often, in a column or in a file: measured, and warned of with the call that mends it."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import polars_tadoc as tadoc
from polars_tadoc.errors import RepeatedGrammarsWarning


def texts(rows: int, words: int, seed: int = 0) -> pl.Series:
    """Rows of words out of many, so that grammars are large."""
    numbers = np.random.default_rng(seed).integers(0, 30_000, (rows, words))
    return pl.Series("text", [" ".join(f"w{number:x}" for number in row) for row in numbers.tolist()])


@pytest.fixture(scope="module")
def large() -> pl.DataFrame:
    """A grammar of half a megabyte."""
    return tadoc.compress(texts(4000, 60)).to_frame().with_row_index("id")


def field_sizes(path: Path) -> tuple[int, int]:
    """Compressed bytes of the field ``grammar`` and of the whole column, and how often a dictionary is stored."""
    metadata = pq.read_metadata(path)
    chunks = [metadata.row_group(g).column(i) for g in range(metadata.num_row_groups) for i in range(1, 4)]
    grammar = sum(chunk.total_compressed_size for chunk in chunks if chunk.path_in_schema == "text.grammar")
    return grammar, sum(chunk.total_compressed_size for chunk in chunks)


@pytest.mark.parametrize("row_group_size", [None, 4000, 1500, 100])
def test_a_file_is_described(large: pl.DataFrame, tmp_path: Path, row_group_size: int | None) -> None:
    path = tmp_path / "a.parquet"
    large.write_parquet(path, row_group_size=row_group_size)
    groups = -(-4000 // (row_group_size or 4000))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        row = tadoc.parquet_info(path).to_dicts()[0]
    grammar, column = field_sizes(path)
    advice = row.pop("advice")
    assert row == {
        "files": 1,
        "rows": 4000,
        "row_groups": groups,
        "grammars": 1,
        "copies": groups,
        "grammar_bytes": grammar,
        "bytes": column,
    }
    told = [str(warning.message) for warning in caught]
    if row_group_size == 100:
        assert [warning.category for warning in caught] == [RepeatedGrammarsWarning]
        assert "1 grammars are stored 40 times in 40 row groups" in told[0]
        assert "row_group_size" in told[0]
        assert told == [f"{path}: {advice}"]
    else:
        assert told == []
        assert advice is None


def test_mixed_rows_of_a_file_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    column = tadoc.compress(
        pl.Series("text", [f"row {i} of {i % 7}" for i in range(300)] + [None]), rows_per_grammar=100
    )
    column.gather(list(range(0, 301, 3)) + list(range(1, 301, 3)) + list(range(2, 301, 3))).to_frame().write_parquet(
        path, row_group_size=50
    )
    row = tadoc.parquet_info(path, "text").to_dicts()[0]
    assert (row["rows"], row["grammars"]) == (301, 3)
    assert row["copies"] > row["row_groups"] > 3


def test_rows_without_a_grammar(tmp_path: Path) -> None:
    for rows in ([], [None], [None, None]):
        tadoc.compress(pl.Series("text", rows, pl.String)).to_frame().write_parquet(tmp_path / "a.parquet")
        row = tadoc.parquet_info(tmp_path / "a.parquet").to_dicts()[0]
        assert (row["rows"], row["grammars"], row["copies"]) == (len(rows), 0, 0)


def test_what_is_no_such_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"text": ["plain"]}).write_parquet(path)
    with pytest.raises(tadoc.errors.NotCompressedError, match="parquet_info: the frame has no TADOC column"):
        tadoc.parquet_info(path)
    with pytest.raises(tadoc.errors.NotCompressedError, match='parquet_info: column "text" is String'):
        tadoc.parquet_info(path, "text")
    with pytest.raises(tadoc.errors.ColumnMissingError, match='did you mean "text"'):
        tadoc.parquet_info(path, "txt")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(tadoc.errors.InvalidGrammarError, match=r"a\.parquet: not a Parquet file, or damaged"):
        tadoc.parquet_info(path)


def test_files_at_defaults_hold_few_copies(tmp_path: Path) -> None:
    frame = pl.DataFrame({"text": [f"line {i % 50} of w{i % 977}" for i in range(600_000)]})
    frame.tadoc.compress("text").write_parquet(tmp_path / "eager.parquet")
    frame.lazy().tadoc.compress("text").sink_parquet(tmp_path / "lazy.parquet")
    eager, lazy = (tadoc.parquet_info(tmp_path / f"{kind}.parquet").to_dicts()[0] for kind in ("eager", "lazy"))
    assert eager["grammars"] == 3
    assert eager["copies"] <= 3 * eager["grammars"]
    assert lazy["copies"] == lazy["grammars"] == lazy["row_groups"] == 6
    frame.tadoc.compress("text").write_parquet(tmp_path / "told.parquet", row_group_size=250_000)
    assert tadoc.parquet_info(tmp_path / "told.parquet")["copies"].to_list() == [3]


def test_many_grammars_for_few_rows_are_warned_of() -> None:
    parts = pl.concat([tadoc.compress(texts(8, 900, seed)) for seed in range(40)])
    with pytest.warns(RepeatedGrammarsWarning, match=r"40 grammars of \d.* MB for 320 rows.*recompress") as caught:
        before = tadoc.info(parts).to_dicts()[0]
    assert caught[0].filename == __file__
    with warnings.catch_warnings(record=True) as quiet:
        warnings.simplefilter("always")
        after = tadoc.info(tadoc.recompress(parts)).to_dicts()[0]
    assert quiet == []
    assert after["grammars"] == 1
    assert after["grammar_bytes"] < before["grammar_bytes"] / 2
    assert after["text_bytes"] == before["text_bytes"]


def test_rows_far_apart_are_warned_of() -> None:
    rows = texts(6000, 70)
    column = tadoc.compress(pl.concat([rows, rows]))  # each row a rule
    scattered = column.gather(np.arange(700_000) % 6000)
    with pytest.warns(RepeatedGrammarsWarning, match=r"1 grammars.*repeats them 6 times.*recompress"):
        tadoc.info(scattered)


@pytest.mark.parametrize("rows_per_grammar", [250_000, 1000])
def test_ordinary_columns_are_not_warned_of(large: pl.DataFrame, rows_per_grammar: int) -> None:
    tadoc.info(large["text"])
    tadoc.info(large["text"].head(1))  # one grammar for one row: there is nothing to merge
    tadoc.info(tadoc.compress(pl.Series([f"a b c {i}" for i in range(5000)]), rows_per_grammar=rows_per_grammar))


def test_bytes_of_grammars_are_part_of_the_bytes(large: pl.DataFrame) -> None:
    row = tadoc.info(large["text"]).to_dicts()[0]
    none = tadoc.info(large["text"].clear()).to_dicts()[0]
    assert 100_000 < row["grammar_bytes"] < row["bytes"]
    assert none["grammar_bytes"] == none["bytes"] == 0


def test_other_columns_are_not_counted(tmp_path: Path) -> None:
    df = pl.DataFrame({"text": ["to be", "or not", "to be"]}).tadoc.compress("text")
    df.write_parquet(tmp_path / "alone.parquet")
    alone = tadoc.parquet_info(tmp_path / "alone.parquet").to_dicts()[0]
    others = {
        "map": pl.Series([[{"key": "a", "value": [1]}]] * 3),
        "text.note": pl.Series(["a long note " * 99, "another", ""]),
        "text.grammar": pl.Series(["not of the column", "b", "c"]),
        "categories": pl.Series(["a", "b", None], dtype=pl.Categorical),
    }
    before = pl.DataFrame(others).with_columns(pl.col("text.note").alias("text.symbols"))
    for name, frame in {"before": before.hstack(df), "after": df.hstack(before)}.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
        assert tadoc.parquet_info(tmp_path / f"{name}.parquet").to_dicts() == [alone]
        assert tadoc.parquet_info(tmp_path / f"{name}.parquet", "text").to_dicts() == [alone]


def test_one_file_is_described(tmp_path: Path) -> None:
    df = pl.DataFrame({"text": ["to be"]}).tadoc.compress("text")
    df.write_parquet(tmp_path / "a.parquet")
    assert tadoc.parquet_info(str(tmp_path / "a.parquet")).height == 1
    for path in (tmp_path, tmp_path / "*.parquet", str(tmp_path), [tmp_path / "a.parquet"]):
        assert tadoc.parquet_info(path)["files"].to_list() == [1]
    for path in (tmp_path / "none.parquet", tmp_path / "none*.parquet"):
        with pytest.raises(FileNotFoundError, match=r"parquet_info: .*: no Parquet file found"):
            tadoc.parquet_info(path)
    with pytest.raises(TypeError, match=r"parquet_info: source is DataFrame; give a file's path, a folder,"):
        tadoc.parquet_info(df)  # type: ignore[arg-type]
