"""Partitions in folders named ``key=value``: written with grammars of their own, read, and described."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_tadoc as tadoc
from polars_tadoc.errors import ColumnMissingError, NotPackedError, RepeatedGrammarsWarning

KEYS: dict[str, list[Any]] = {
    "text": ["a b", "ü/é", "x=y", "100%", None, "", "a:b", "..", "1", 'q"u#?[]{}~&+\\', "a\nb", "^$"],
    "number": [1, None, -3],
    "flag": [True, None, False],
    "date": [dt.date(2024, 1, 2), None],
    "time": [dt.datetime(2024, 1, 2, 3, 4, 5, 6), dt.datetime(2024, 1, 2), None],
}


def lines(rows: int, seed: int = 0) -> list[str]:
    return [f"connection {(i * 7 + seed) % 97} from host-{i % 13} closed after {i % 29} s" for i in range(rows)]


@pytest.mark.parametrize("kind", KEYS)
def test_keys_are_those_that_polars_writes_and_reads(tmp_path: Path, kind: str) -> None:
    values = KEYS[kind]
    df = pl.DataFrame({"k": values * 3, "row": range(3 * len(values)), "text": lines(3 * len(values))})
    df.write_parquet(tmp_path / "polars", partition_by="k", mkdir=True)
    compressed = df.tadoc.compress("text")
    compressed.tadoc.write_parquet(tmp_path / "ours", partition_by="k")
    names = {kind: {one.name for one in (tmp_path / kind).iterdir()} for kind in ("polars", "ours")}
    assert names["ours"] == names["polars"]
    back = pl.scan_parquet(tmp_path / "ours").collect().sort("row")
    assert_frame_equal(back.tadoc.decompress("text").select(df.columns), df)


def test_two_keys_and_rows_in_their_order(tmp_path: Path) -> None:
    df = pl.DataFrame({"b": [1, 2] * 300, "text": lines(600), "a": ["x", "y", "z"] * 200, "row": range(600)})
    df.lazy().tadoc.compress("text", rows_per_grammar=100).tadoc.sink_parquet(tmp_path / "out", partition_by=["a", "b"])
    found = sorted(file.relative_to(tmp_path / "out").as_posix() for file in (tmp_path / "out").rglob("*.parquet"))
    assert found == [f"a={a}/b={b}/00000000.parquet" for a in "xyz" for b in (1, 2)]
    for a in "xyz":
        for b in (1, 2):
            part = pl.read_parquet(tmp_path / f"out/a={a}/b={b}/00000000.parquet", hive_partitioning=False)
            assert_frame_equal(part.tadoc.decompress("text"), df.filter(a=a, b=b))
            assert tadoc.info(part["text"])["grammars"].to_list() == [1]
    assert not [one for one in tmp_path.rglob("*") if one.name.startswith(".")]


@pytest.mark.parametrize("limit", [1, 20_000, "1GB"])
def test_rows_that_wait_on_the_disk(tmp_path: Path, limit: int | str) -> None:
    df = pl.DataFrame(
        {"key": [i % 7 if i % 11 else None for i in range(3000)], "text": lines(3000), "row": range(3000)}
    )
    parts = [df.slice(at, 500).lazy().tadoc.compress("text") for at in range(0, 3000, 500)]
    pl.concat(parts).tadoc.sink_parquet(tmp_path / "out", partition_by="key", memory_limit=limit)
    back = pl.scan_parquet(tmp_path / "out").collect()
    assert back["key"].n_unique() == 8
    for _, part in back.group_by("key"):
        assert part["row"].is_sorted()
    assert_frame_equal(back.sort("row").tadoc.decompress("text").select(df.columns), df)
    assert len(list((tmp_path / "out").rglob("*"))) == 16


def test_a_partition_of_several_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polars_tadoc.execute.partitioned_sink.ROWS_PER_GRAMMAR", 300)
    df = pl.DataFrame({"key": [1] * 1000 + [2] * 50, "text": lines(1050), "row": range(1050)})
    df.tadoc.compress("text").tadoc.write_parquet(tmp_path / "out", partition_by="key")
    info = tadoc.parquet_info(tmp_path / "out/key=1").to_dicts()[0]
    assert (info["row_groups"], info["grammars"], info["copies"]) == (4, 4, 4)
    assert_frame_equal(pl.read_parquet(tmp_path / "out").sort("row").tadoc.decompress().select(df.columns), df)


def test_partitions_weigh_what_they_would_alone(tmp_path: Path, corpus: Callable[[str], pl.DataFrame]) -> None:
    df = corpus("versioned_reactnative").select("version", "text")
    alone = plain = 0
    for number, part in enumerate(df.partition_by("version")):
        part.tadoc.compress("text").write_parquet(tmp_path / f"{number}.parquet", row_group_size=250_000)
        alone += (tmp_path / f"{number}.parquet").stat().st_size
        part.write_parquet(tmp_path / "plain.parquet")
        plain += (tmp_path / "plain.parquet").stat().st_size
    df.lazy().tadoc.compress("text").tadoc.sink_parquet(tmp_path / "out", partition_by="version")
    ours = sum(file.stat().st_size for file in (tmp_path / "out").rglob("*.parquet"))
    assert ours <= 1.1 * alone
    assert ours < plain


def test_many_small_grammars_are_said(tmp_path: Path) -> None:
    rows = [f"w{(i * i) % 30011} v{(i * 31) % 7919} u{i % 97} t{(i * 17) % 4001}" for i in range(20_000)]
    df = pl.DataFrame({"key": [i % 33 for i in range(20_000)], "text": rows})
    compressed = df.tadoc.compress("text")
    compressed.write_parquet(tmp_path / "cut", partition_by="key", mkdir=True)
    compressed.tadoc.write_parquet(tmp_path / "ours", partition_by="key")
    for path in (tmp_path / "cut", tmp_path / "cut/*/*.parquet", sorted((tmp_path / "cut").rglob("*.parquet"))):
        with pytest.warns(RepeatedGrammarsWarning, match=r"33 times in 33 row groups of 33 files.*partition_by="):
            found = tadoc.parquet_info(path).to_dicts()[0]
        assert (found["files"], found["rows"], found["grammars"], found["copies"]) == (33, 20_000, 1, 33)
        assert "sink_parquet(folder, partition_by=…)" in found["advice"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepeatedGrammarsWarning)
        ours, cut = (tadoc.parquet_info(tmp_path / name).to_dicts()[0] for name in ("ours", "cut"))
    assert ours["copies"] == ours["grammars"] == 33
    assert ours["bytes"] < cut["bytes"] / 3


def test_sixty_files_of_fifty_rows_are_said(tmp_path: Path) -> None:
    rows = [
        f"w{(i * i) % 30011:x}alpha v{(i * 31) % 7919:x}beta u{i % 97:x} t{(i * 17) % 4001:x}" * 6 for i in range(3000)
    ]
    for number in range(60):
        part = pl.DataFrame({"text": rows[50 * number : 50 * number + 50]}).tadoc.compress("text")
        part.write_parquet(tmp_path / f"{number}.parquet")
    with pytest.warns(RepeatedGrammarsWarning, match=r"60 grammars of .* for 3,000 rows.*in 60 files.*recompress"):
        assert "recompress" in tadoc.parquet_info(tmp_path)["advice"][0]
    with pytest.warns(RepeatedGrammarsWarning, match=r"info: 60 grammars .* for 3,000 rows.*recompress"):
        tadoc.info(pl.read_parquet(tmp_path)["text"])


@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        ("none", ColumnMissingError, 'there is no column "none"'),
        ([], ValueError, "must name one column or more"),
        (["key", "key"], ValueError, "must name one column or more, each once"),
        (3, TypeError, "must be a column's name"),
        ("text", TypeError, 'column "text" is .*; keys are'),
        ("list", TypeError, 'column "list" is List'),
        ("float", TypeError, 'column "float" is Float64'),
        ("row", ValueError, r'partition_by="row" gives more than 1,024 partitions; .*max_partitions'),
        ("null", ValueError, 'column "null" has the value "__HIVE_DEFAULT_PARTITION__"'),
        ("long", ValueError, "folder name of 305 characters"),
    ],
)
def test_keys_that_are_refused(tmp_path: Path, keys: Any, error: type[Exception], message: str) -> None:
    df = pl.DataFrame({"row": range(1100), "text": ["a b"] * 1100}).tadoc.compress("text")
    df = df.with_columns(
        key=1,
        list=[1],
        float=1.0,
        null=pl.lit("__HIVE_DEFAULT_PARTITION__"),
        long=pl.lit("x" * 300),
    )
    with pytest.raises(error, match=f"^sink_parquet: .*{message}"):
        df.tadoc.write_parquet(tmp_path / "out", partition_by=keys)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_folder_of_these_partitions_stays(tmp_path: Path) -> None:
    df = pl.DataFrame({"key": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("keep")
    (tmp_path / "file").write_text("keep")
    for name in ("mine", "file"):
        with pytest.raises(FileExistsError, match=f"sink_parquet: .*{name}"):
            df.tadoc.write_parquet(tmp_path / name, partition_by="key")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        df.tadoc.write_parquet(tmp_path / "none/out", partition_by="key")
    df.tadoc.write_parquet(tmp_path / "out", partition_by="key")
    df.filter(pl.col("key") == 2).tadoc.write_parquet(tmp_path / "out", partition_by="key")
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["key=2"]
    assert (tmp_path / "mine/notes.txt").read_text() == (tmp_path / "file").read_text() == "keep"


def test_a_plan_that_fails_leaves_the_old_folder(tmp_path: Path) -> None:
    df = pl.DataFrame({"key": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text")
    df.tadoc.write_parquet(tmp_path / "out", partition_by="key")

    def fails(frame: pl.DataFrame) -> pl.DataFrame:
        raise RuntimeError("half way")

    plan = pl.concat([df.lazy(), df.lazy().map_batches(fails)])
    with pytest.raises(Exception, match="half way"):
        plan.tadoc.sink_parquet(tmp_path / "out", partition_by="key")
    assert_frame_equal(pl.read_parquet(tmp_path / "out").tadoc.decompress(), df.tadoc.decompress())
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Packed files in folders of a system and a day, several partitions each."""
    folder = tmp_path_factory.mktemp("packed")
    for system in ("sshd", "cron", None):
        for day in (1, 2):
            place = folder / f"system={system or '__HIVE_DEFAULT_PARTITION__'}/day=2024-01-0{day}"
            place.mkdir(parents=True)
            rows = 40 * day
            df = pl.DataFrame({"number": range(rows), "text": lines(rows, day)})
            df.tadoc.compress("text", rows_per_grammar=30).tadoc.write_packed(place / "a.parquet")
    return folder


def expected() -> pl.DataFrame:
    frames = []
    for system in (None, "cron", "sshd"):
        for day in (1, 2):
            frame = pl.DataFrame({"number": range(40 * day), "text": lines(40 * day, day)})
            frames.append(frame.with_columns(system=pl.lit(system, pl.String), day=dt.date(2024, 1, day)))
    return pl.concat(frames)


PREDICATES = {
    "one": pl.col("system") == "sshd",
    "null": pl.col("system").is_null(),
    "text of it": pl.col("system").str.starts_with("c"),
    "day": pl.col("day") > dt.date(2024, 1, 1),
    "both": (pl.col("system") == "cron") & (pl.col("number") < 5),
    "either": (pl.col("system") == "cron") | (pl.col("number") == 71),
    "none": pl.col("system") == "kernel",
    "all columns": (pl.col("system") == "sshd") & (pl.col("day") == dt.date(2024, 1, 2)) & (pl.col("number") > 60),
}


@pytest.mark.parametrize("case", PREDICATES)
def test_folders_give_columns_that_prune(packed: Path, case: str) -> None:
    lf = tadoc.scan_packed(packed)
    assert lf.collect_schema()["day"] == pl.Date
    wanted = expected().filter(PREDICATES[case])
    assert_frame_equal(lf.filter(PREDICATES[case]).tadoc.decompress("text").collect(), wanted)
    for names in (["system"], ["day", "number"], ["number"]):
        assert_frame_equal(lf.filter(PREDICATES[case]).select(names).collect(), wanted.select(names))
    assert lf.filter(PREDICATES[case]).select(pl.len()).collect().item() == wanted.height


@pytest.mark.parametrize("count", [0, 1, 55, 1000])
def test_the_first_rows_of_folders(packed: Path, count: int) -> None:
    lf = tadoc.scan_packed(packed)
    assert_frame_equal(lf.head(count).tadoc.decompress("text").collect(), expected().head(count))
    found = lf.head(count).filter(pl.col("system") == "cron").select("number", "system").collect()
    assert_frame_equal(found, expected().head(count).filter(pl.col("system") == "cron").select("number", "system"))


def test_files_that_a_predicate_rules_out_are_not_opened(packed: Path, tmp_path: Path) -> None:
    import shutil

    folder = shutil.copytree(packed, tmp_path / "copy")
    for file in folder.rglob("system=sshd/**/*.parquet"):
        file.write_bytes(b"damaged")
    lf = tadoc.scan_packed(folder)
    found = lf.filter(pl.col("system") == "cron").tadoc.decompress("text").collect()
    assert_frame_equal(found, expected().filter(pl.col("system") == "cron"))
    with pytest.raises(tadoc.errors.InvalidGrammarError, match="system=sshd"):
        lf.collect()


def test_analytics_over_folders(packed: Path, tmp_path: Path) -> None:
    lf = tadoc.scan_packed(packed).filter(pl.col("system") == "sshd")
    frame = expected().filter(pl.col("system") == "sshd").tadoc.compress("text")
    wanted = frame.tadoc.word_count("text")
    assert_frame_equal(lf.tadoc.word_count("text").collect(), wanted)
    assert_frame_equal(lf.tadoc.word_count("text", memory_limit="100MB").collect(), wanted)
    kept = lf.tadoc.word_count("text", memory_limit="100MB", checkpoint=tmp_path / "kept")
    assert_frame_equal(kept.collect(), wanted)
    assert_frame_equal(kept.collect(), wanted)
    other = tadoc.scan_packed(packed).filter(pl.col("system") == "cron")
    with pytest.raises(Exception, match="checkpoint"):
        other.tadoc.word_count("text", memory_limit="100MB", checkpoint=tmp_path / "kept").collect()
    by_day = lf.tadoc.term_vector("text", id="day", memory_limit="100MB").collect()
    assert set(by_day["id"]) == {dt.date(2024, 1, 1), dt.date(2024, 1, 2)}


def test_how_folders_are_read_is_as_polars_has_it(packed: Path, tmp_path: Path) -> None:
    assert tadoc.scan_packed(packed, hive_partitioning=False).collect_schema().names() == ["number", "text"]
    assert tadoc.scan_packed(packed / "**/*.parquet").collect_schema().names() == ["number", "text"]
    named = tadoc.scan_packed(packed / "system=sshd/day=2024-01-01/a.parquet", hive_partitioning=True)
    assert named.select("system", "day").head(1).collect().rows() == [("sshd", dt.date(2024, 1, 1))]
    assert tadoc.scan_packed(packed, try_parse_hive_dates=False).collect_schema()["day"] == pl.String
    with pytest.raises(ValueError, match=r'folder "day=2024-01-01": not a valid Datetime'):
        tadoc.scan_packed(packed, hive_schema={"day": pl.Datetime("us")})
    assert tadoc.scan_packed(packed, hive_schema={"day": pl.String}).collect_schema()["day"] == pl.String


def test_folders_that_do_not_fit(packed: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='hive_schema has "year"; the folder names have only "system", "day"'):
        tadoc.scan_packed(packed, hive_schema={"year": pl.Int64})
    with pytest.raises(TypeError, match="hive_partitioning=1 must be True or False"):
        tadoc.scan_packed(packed, hive_partitioning=1)  # type: ignore[arg-type]
    df = pl.DataFrame({"text": ["to be"]}).tadoc.compress("text")
    for place in ("a=1", "b=1"):
        (tmp_path / place).mkdir()
        df.tadoc.write_packed(tmp_path / place / "x.parquet")
    with pytest.raises(
        ValueError, match=r'folder "b=1" has keys "b", the first file has "a"; .*hive_partitioning=False'
    ):
        tadoc.scan_packed(tmp_path)
    (tmp_path / "text=1").mkdir()
    df.tadoc.write_packed(tmp_path / "text=1/x.parquet")
    with pytest.raises(ValueError, match='folder names have the key "text", the packed column'):
        tadoc.scan_packed(tmp_path / "text=1/x.parquet", hive_partitioning=True)
    df.write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(NotPackedError):
        tadoc.scan_packed(tmp_path / "rows.parquet")


def test_a_column_of_files_and_folders_has_the_folders_values(tmp_path: Path) -> None:
    for key in (1, 2):
        (tmp_path / f"key={key}").mkdir()
        df = pl.DataFrame({"key": pl.Series([9, 9], dtype=pl.Int8), "text": ["to be", "to do"]}).tadoc.compress("text")
        df.tadoc.write_packed(tmp_path / f"key={key}/a.parquet")
    lf = tadoc.scan_packed(tmp_path)
    assert lf.collect_schema() == {"key": pl.Int8, "text": tadoc.DTYPE}
    assert lf.select("key").collect().to_series().to_list() == [1, 1, 2, 2]
    assert lf.filter((pl.col("key") == 2) | (pl.col("key") == 9)).collect().height == 2


@pytest.mark.parametrize("key", [".k", "..", "a/b", "k=v", "", "^k$", "*", "a%2Fb", "[a]", "é", "k\n"])
def test_names_of_keys(tmp_path: Path, key: str) -> None:
    frame = pl.DataFrame({key: ["x", ".y", None], "text": ["to be", "to do", "or not"]})
    for _ in range(2):
        frame.tadoc.compress("text").lazy().tadoc.sink_parquet(tmp_path / "out", partition_by=key)
        for scanned in (tadoc.scan_parquet(tmp_path / "out"), tadoc.as_text(pl.scan_parquet(tmp_path / "out"))):
            found = scanned.collect().tadoc.decompress("text")
            rows = zip(found.get_column(key), found.get_column("text"), strict=True)
            assert sorted(map(str, rows)) == sorted(map(str, frame.rows()))


def test_keys_beyond_int64_stay_apart(tmp_path: Path) -> None:
    keys = (9999999999999999998, 9999999999999999999, 7)
    for key in keys:
        (tmp_path / f"user={key}").mkdir()
        pl.DataFrame({"text": [f"w{key}"]}).tadoc.compress("text").tadoc.write_packed(
            tmp_path / f"user={key}" / "a.parquet"
        )
    scan = tadoc.scan_packed(tmp_path)
    for key in keys:
        assert scan.filter(pl.col("user") == key).tadoc.word_count("text").collect()["word"].to_list() == [f"w{key}"]


def test_infinite_keys_are_text(tmp_path: Path) -> None:
    for key in ("inf", "nan"):
        (tmp_path / f"kind={key}").mkdir()
        pl.DataFrame({"text": ["a"]}).tadoc.compress("text").tadoc.write_packed(tmp_path / f"kind={key}" / "a.parquet")
    assert tadoc.scan_packed(tmp_path).collect_schema()["kind"] == pl.String
