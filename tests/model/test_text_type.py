"""The column as an extension type: what keeps it, what refuses it, and the struct under it."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

import polars_tadoc as tadoc
from polars_tadoc.errors import NotCompressedError
from polars_tadoc.model.text_type import NAME
from polars_tadoc.runtime.machine_code.cache import COMPILING
from tests import ROOT

TEXT = ["to be, or not to be", None, "to do is to be", "", "do be do be do", "to be, or not to be"]
PLAIN = pl.DataFrame({"id": range(6), "half": [0, 1] * 3, "text": TEXT})
FRAME = PLAIN.tadoc.compress("text", rows_per_grammar=4)
OLD = ROOT / "tests" / "data" / "struct_columns"
"""Written by the last release before ``tadoc.Text``."""
OLD_TEXT = ["to be, or not to be", None, "", "to do is to be", "do be do be do", "Unicode: héé 日本"]

TYPE = pl.col("text")
CARRIED: dict[str, tuple[Any, Any]] = {
    "filter": (lambda lf: lf.filter(pl.col("id") > 1), None),
    "sort": (lambda lf: lf.sort("id", descending=True), None),
    "join": (lambda lf: lf.join(lf.select("id"), on="id", how="left"), None),
    "join that leaves nulls": (
        lambda lf: lf.select("id").join(lf.filter(pl.col("id") > 3), on="id", how="left"),
        None,
    ),
    "concat": (lambda lf: pl.concat([lf, lf]), None),
    "diagonal concat": (lambda lf: pl.concat([lf, lf.select("id")], how="diagonal"), None),
    "agg and explode": (
        lambda lf: lf.group_by("half", maintain_order=True).agg("id", "text").explode("id", "text"),
        None,
    ),
    "first by group": (lambda lf: lf.group_by("half", maintain_order=True).agg(pl.col("text").first()), None),
    "over": (lambda lf: lf.with_columns(pl.col("text").first().over("half")), None),
    "when and then": (lambda lf: lf.with_columns(pl.when(pl.col("id") > 2).then("text")), None),
    "when, then and otherwise": (
        lambda lf: lf.with_columns(pl.when(pl.col("id") > 2).then("text").otherwise(pl.col("text").shift(1))),
        None,
    ),
    "shift": (lambda lf: lf.with_columns(pl.col("text").shift(2)), None),
    "reverse": (lambda lf: lf.with_columns(pl.col("text").reverse()), None),
    "forward fill": (lambda lf: lf.with_columns(pl.col("text").forward_fill()), None),
    "slice": (lambda lf: lf.slice(1, 3), None),
    "sort by": (lambda lf: lf.with_columns(pl.col("text").sort_by("half")), None),
    "gather": (lambda lf: lf.select(pl.col("text").gather([5, 0, 1])), None),
    "a null literal": (lambda lf: lf.with_columns(pl.lit(None, tadoc.DTYPE).alias("text")), None),
    "coalesce with itself": (lambda lf: lf.with_columns(pl.coalesce(pl.col("text").shift(1), "text")), None),
    "fill null by itself": (lambda lf: lf.with_columns(pl.col("text").fill_null(pl.col("text").shift(1))), None),
    "a struct around it": (
        lambda lf: lf.select("id", pl.struct("half", "text").alias("s")).unnest("s"),
        None,
    ),
    "a list of it": (lambda lf: lf.select(pl.col("text").implode()).explode("text"), None),
    "unique by another column": (lambda lf: lf.unique("half", keep="first", maintain_order=True), None),
}


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("name", CARRIED)
def test_operations_keep_the_type(name: str, engine: Any) -> None:
    change = CARRIED[name][0]
    if name == "a null literal":
        expected = PLAIN.with_columns(pl.lit(None, pl.String).alias("text"))
    else:
        expected = change(PLAIN.lazy()).collect(engine=engine)
    plan = change(FRAME.lazy())
    assert plan.collect_schema()["text"] == tadoc.DTYPE
    got = plan.collect(engine=engine)
    assert got.schema["text"] == tadoc.DTYPE
    assert got.tadoc.decompress("text").equals(expected)


def test_pivot_keeps_the_type() -> None:
    wide = FRAME.with_columns(row=pl.col("id") // 2).pivot(on="half", index="row", values="text")
    assert wide.schema["0"] == wide.schema["1"] == tadoc.DTYPE
    assert wide.tadoc.decompress("0")["0"].to_list() == TEXT[::2]


WRITTEN: dict[str, tuple[Any, Any]] = {
    "Parquet": (lambda df, file: df.write_parquet(file), pl.read_parquet),
    "sink_parquet": (lambda df, file: df.lazy().sink_parquet(file), lambda file: pl.scan_parquet(file).collect()),
    "IPC": (lambda df, file: df.write_ipc(file), pl.read_ipc),
    "IPC stream": (lambda df, file: df.write_ipc_stream(file), pl.read_ipc_stream),
    "pickle": (lambda df, file: file.write_bytes(pickle.dumps(df)), lambda file: pickle.loads(file.read_bytes())),
    "serialize": (lambda df, file: df.serialize(file), pl.DataFrame.deserialize),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_files_keep_the_type(how: str, tmp_path: Path) -> None:
    write, read = WRITTEN[how]
    write(FRAME, tmp_path / "a")
    back = read(tmp_path / "a")
    assert back.schema["text"] == tadoc.DTYPE
    assert back.tadoc.decompress("text").equals(PLAIN)
    wrapped = FRAME.select(pl.struct("id", "text").alias("s"), pl.concat_list("text").alias("l"))
    write(wrapped, tmp_path / "b")
    assert read(tmp_path / "b").schema == {
        "s": pl.Struct({"id": pl.Int64, "text": tadoc.DTYPE}),
        "l": pl.List(tadoc.DTYPE),
    }


WITHOUT_THE_PACKAGE = """
import pickle, sys
import polars as pl
folder = sys.argv[1]
frames = [pl.read_parquet(folder + "/a.parquet"), pl.read_ipc(folder + "/a.arrow"),
          pickle.load(open(folder + "/a.pickle", "rb"))]
assert "polars_tadoc" not in sys.modules
for frame in frames:
    dtype = frame.schema["text"]
    assert type(dtype) is pl.Extension and dtype.ext_name() == "polars_tadoc.text", dtype
early = frames[0]
import polars_tadoc as tadoc
assert tadoc.is_tadoc(dtype), dtype
assert tadoc.is_tadoc(early.schema["text"])
for frame in frames:
    print(frame.tadoc.decompress("text")["text"].to_list())
    print(frame.tadoc.word_count("text", top=1).rows())
    print(frame.lazy().tadoc.word_count("text", top=1).collect().rows())
    print(frame.lazy().tadoc.word_count("text", top=1, memory_limit="1GB").collect().rows())
late = pl.read_parquet(folder + "/a.parquet")
print(pl.concat([tadoc.as_text(early), late]).tadoc.recompress().tadoc.info()["grammars"].to_list())
print(pl.concat([tadoc.as_text(early.lazy()), late.lazy()]).collect().schema["text"] == tadoc.DTYPE)
"""


@pytest.mark.slow
def test_a_process_without_the_package_reads_an_extension(tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "a.parquet")
    FRAME.write_ipc(tmp_path / "a.arrow")
    (tmp_path / "a.pickle").write_bytes(pickle.dumps(FRAME))
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_PACKAGE, str(tmp_path)], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    counts = str(FRAME.tadoc.word_count("text", top=1).rows())
    assert done.stdout.splitlines() == [str(TEXT), counts, counts, counts] * 3 + ["[1]", "True"]
    assert not done.stderr.replace(COMPILING, "")


def test_other_readers_see_the_struct(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    FRAME.write_parquet(path)
    read = pq.read_table(path).column("text").combine_chunks()
    assert [field.name for field in read.type] == ["grammar", "symbols", "gaps"]
    duckdb = pytest.importorskip("duckdb")
    kinds = duckdb.sql(f"select text from '{path}'").types
    assert str(kinds[0]).startswith("STRUCT(grammar VARCHAR, symbols UINTEGER[], gaps BLOB")


# what raises


REFUSED: dict[str, Any] = {
    '== "text"': lambda df: df.filter(pl.col("text") == "to be"),
    '!= "text"': lambda df: df.filter(pl.col("text") != "to be"),
    'is_in(["text"])': lambda df: df.filter(pl.col("text").is_in(["to be"])),
    'fill_null("")': lambda df: df.with_columns(pl.col("text").fill_null("")),
    "coalesce with a String": lambda df: df.select(pl.coalesce("text", pl.lit(""))),
    "when/otherwise with a String": lambda df: df.select(pl.when(pl.col("id") > 1).then("text").otherwise(pl.lit(""))),
    'shift(1, fill_value="")': lambda df: df.select(pl.col("text").shift(1, fill_value="")),
    "pl.format": lambda df: df.select(pl.format("{}!", "text")),
    "pl.concat_str": lambda df: df.select(pl.concat_str("id", "text")),
    '+ "text"': lambda df: df.select(pl.col("text") + "!"),
    "cast(pl.String)": lambda df: df.select(pl.col("text").cast(pl.String)),
    "cast to another type": lambda df: df.select(pl.col("text").cast(tadoc.STORAGE)),
    "str": lambda df: df.select(pl.col("text").str.to_lowercase()),
    "replace": lambda df: df.select(pl.col("text").replace("a", "b")),
    "< of two columns": lambda df: df.select(pl.col("text") < pl.col("text").reverse()),
    "min, max": lambda df: df.select(pl.col("text").min()),
    "struct.field": lambda df: df.select(pl.col("text").struct.field("grammar")),
    "unnest": lambda df: df.unnest("text"),
    "write_csv": lambda df: df.write_csv(),
    "concat with text": lambda df: pl.concat([df, PLAIN], how="vertical_relaxed"),
    "concat with the struct": lambda df: pl.concat([df, tadoc.as_storage(df)], how="vertical_relaxed"),
    "pivot by it": lambda df: df.pivot(on="text", index="id", values="half"),
    "join with text": lambda df: df.join(PLAIN, on="text"),
    "list.contains": lambda df: df.group_by("half").agg("text").filter(pl.col("text").list.contains("to be")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_polars_refuses(name: str) -> None:
    with pytest.raises(pl.exceptions.PolarsError):
        REFUSED[name](FRAME)


def test_a_series_refuses_to_be_compared_with_text() -> None:
    with pytest.raises(NotImplementedError, match=r"Text\(\) does not have eq operator"):
        FRAME["text"] == "to be"  # noqa: B015


# the type


def test_what_a_compressed_column_is() -> None:
    assert tadoc.DTYPE == tadoc.Text() == tadoc.Text
    assert tadoc.Text() != tadoc.STORAGE
    assert len({tadoc.Text(), tadoc.DTYPE, FRAME.schema["text"]}) == 1
    assert repr(tadoc.Text()) == "Text()"
    for dtype in (tadoc.DTYPE, tadoc.Text, tadoc.STORAGE, pl.Extension(NAME, tadoc.STORAGE)):
        assert tadoc.is_tadoc(dtype), dtype
    for dtype in (
        pl.Extension(NAME, pl.String()),
        pl.Extension(NAME, pl.Struct({"grammar": pl.String, "symbols": pl.List(pl.UInt32), "gaps": pl.Binary})),
        pl.Extension("other.text", tadoc.STORAGE),
        pl.Extension(NAME, tadoc.STORAGE, "metadata"),
        pl.List(tadoc.DTYPE),
    ):
        assert not tadoc.is_tadoc(dtype), dtype


def test_a_file_that_claims_the_name_over_something_else(tmp_path: Path) -> None:
    frame = pl.DataFrame({"text": ["a"]}).select(pl.col("text").ext.to(pl.Extension(NAME, pl.String())))
    frame.write_parquet(tmp_path / "a.parquet")
    read = pl.read_parquet(tmp_path / "a.parquet")
    assert not tadoc.is_tadoc(read.schema["text"])
    assert read.schema["text"] != tadoc.Text()
    with pytest.raises(NotCompressedError, match="word_count: column"):
        read.tadoc.word_count("text")
    with pytest.raises(NotCompressedError, match="as_text: column"):
        tadoc.as_text(read["text"])


@pytest.mark.slow
def test_no_warning_where_polars_warns_of_what_is_unstable() -> None:
    code = (
        "import warnings; warnings.simplefilter('error')\n"
        "import polars as pl\n"
        "import polars_tadoc as tadoc\n"
        "old = pl.DataFrame({'text': [None]}, schema={'text': tadoc.STORAGE})\n"
        "assert tadoc.as_text(old).schema['text'] == tadoc.Text\n"
        "assert tadoc.as_text(old['text']).dtype == tadoc.Text\n"
        "assert tadoc.as_storage(tadoc.as_text(old.lazy())).collect().schema['text'] == tadoc.STORAGE\n"
        "assert tadoc.as_storage(tadoc.as_text(old['text'])).dtype == tadoc.STORAGE\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "POLARS_WARN_UNSTABLE": "1"},
    )
    assert done.returncode == 0, done.stderr


# both forms


def frames() -> dict[str, pl.DataFrame]:
    return {"text": FRAME, "struct": tadoc.as_storage(FRAME)}


GIVING: dict[str, Any] = {
    "recompress": lambda df: df.tadoc.recompress("text"),
    "recompress of a series": lambda df: df.with_columns(df["text"].tadoc.recompress()),
    "recompress(tail=True)": lambda df: df.tadoc.recompress("text", tail=True),
    "recompress in a plan": lambda df: df.lazy().tadoc.recompress("text"),
    "recompress as an expression": lambda df: df.lazy().with_columns(pl.col("text").tadoc.recompress()),
    "compress(like=)": lambda df: PLAIN.tadoc.compress("text", like=df["text"]),
    "compress(like=) in a plan": lambda df: PLAIN.lazy().tadoc.compress("text", like=df["text"]),
    "compress(like=) as an expression": lambda df: PLAIN.lazy().with_columns(
        pl.col("text").tadoc.compress(like=df["text"])
    ),
    "compress(like=) of no rows": lambda df: PLAIN.clear().tadoc.compress("text", like=df["text"]),
}


@pytest.mark.parametrize("form", ["text", "struct"])
@pytest.mark.parametrize("name", GIVING)
def test_calls_return_the_form_they_were_given(name: str, form: str) -> None:
    df = frames()[form]
    made = GIVING[name](df)
    assert made.collect_schema()["text"] == df.schema["text"]
    got = made.lazy().collect()
    assert got.schema["text"] == df.schema["text"]
    assert pl.concat([df, got]).height == df.height + got.height
    assert got.tadoc.decompress("text").equals(PLAIN.head(got.height))


@pytest.mark.parametrize("form", ["text", "struct"])
def test_config_says_which_form_new_columns_have(form: Any, tmp_path: Path) -> None:
    dtype = frames()[form].schema["text"]
    FRAME.tadoc.write_packed(tmp_path / "a.parquet")
    with tadoc.Config(column_type=form):
        made = [
            PLAIN.tadoc.compress("text"),
            PLAIN.lazy().tadoc.compress("text"),
            PLAIN.lazy().select("id", "half", pl.col("text").tadoc.compress()),
            PLAIN.clear().tadoc.compress("text"),
            FRAME.tadoc.pack().tadoc.unpack(),
            FRAME.lazy().tadoc.pack().tadoc.unpack(),
            tadoc.scan_packed(tmp_path / "a.parquet"),
        ]
    for frame in made:  # plans keep what was set when they were made
        assert frame.collect_schema()["text"] == dtype
        got = frame.lazy().collect()
        assert got.schema["text"] == dtype
        assert got.tadoc.decompress("text").equals(PLAIN.head(got.height))
    with pytest.raises(ValueError, match='column_type="list" is not one of text, struct'):
        tadoc.Config(column_type="list")


ANSWERS: dict[str, Any] = {
    "word_count": lambda lf: lf.tadoc.word_count("text"),
    "word_count within a limit": lambda lf: lf.tadoc.word_count("text", memory_limit="1GB"),
    "inverted_index": lambda lf: lf.tadoc.inverted_index("text", id="id"),
    "tfidf": lambda lf: lf.tadoc.tfidf("text", id="id"),
    "tfidf within a limit": lambda lf: lf.tadoc.tfidf("text", id="id", memory_limit="1GB"),
    "pack and unpack": lambda lf: lf.tadoc.pack("text").tadoc.unpack("text").tadoc.decompress("text"),
    "head": lambda lf: lf.select(pl.col("text").tadoc.head(2)),
    "by group": lambda lf: lf.group_by("half", maintain_order=True).agg(pl.col("text").tadoc.word_count()),
    "over": lambda lf: lf.select(pl.col("text").tadoc.count_phrase("to be").over("half")),
    "bm25": lambda lf: lf.select(pl.col("text").tadoc.bm25("be")),
    "content_hash": lambda lf: lf.select(pl.col("text").tadoc.content_hash()),
    "eq": lambda lf: lf.select(pl.col("text").tadoc.eq("to be, or not to be")),
    "info": lambda lf: lf.tadoc.info("text").drop("bytes", "ratio"),
    "the only column": lambda lf: lf.tadoc.decompress(),
    "in lists": lambda lf: lf.select(pl.col("text").implode()).select(
        pl.col("text").list.eval(pl.element().tadoc.token_count())
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_both_forms_give_the_same_answers(name: str) -> None:
    text, struct = (ANSWERS[name](frame.lazy()).collect() for frame in frames().values())
    assert text.equals(struct)
    assert text.height


def test_text_and_struct_are_compared() -> None:
    assert tadoc.equals(FRAME["text"], tadoc.as_storage(FRAME["text"])).to_list() == [
        None if text is None else True for text in TEXT
    ]


def test_indexes_take_both_forms(tmp_path: Path) -> None:
    text, struct = (frame.tadoc.build_index("text", id="id") for frame in frames().values())
    assert text.search("to be").equals(struct.search("to be"))
    text.save(tmp_path / "index")
    assert pl.read_parquet_schema(tmp_path / "index" / "text.parquet") == {"text": tadoc.STORAGE}
    loaded = tadoc.load_index(tmp_path / "index")
    for frame in frames().values():
        grown = frame.with_columns(pl.col("id") + 100).tadoc.append_to(loaded, "text", id="id")
        assert grown.search("to be", k=20).height == 2 * text.search("to be", k=20).height
    FRAME.lazy().tadoc.sink_index(tmp_path / "sunk", "text", id="id")
    assert pl.read_parquet_schema(tmp_path / "sunk" / "text.parquet") == {"text": tadoc.STORAGE}


# as_text and as_storage


def test_there_and_back_copies_nothing() -> None:
    struct = tadoc.as_storage(FRAME["text"])
    again = tadoc.as_text(struct)
    assert struct.dtype == tadoc.STORAGE
    assert again.dtype == tadoc.DTYPE
    addresses = {
        column.ext.storage().struct.field("symbols").list.explode().to_arrow().buffers()[1].address
        for column in (FRAME["text"].head(1), struct.head(1), again.head(1))
    }
    assert len(addresses) == 1


@pytest.mark.parametrize("call", [tadoc.as_text, tadoc.as_storage])
def test_frames_of_any_columns(call: Any) -> None:
    wanted = {tadoc.as_text: tadoc.DTYPE, tadoc.as_storage: tadoc.STORAGE}[call]
    mixed = FRAME.with_columns(tadoc.as_storage(FRAME["text"]).alias("^.*$"))
    for frame in (mixed, mixed.lazy()):
        made = call(frame)
        assert type(made) is type(frame)
        assert made.collect_schema() == {"id": pl.Int64, "half": pl.Int64, "text": wanted, "^.*$": wanted}
        assert made.lazy().collect().tadoc.decompress("^.*$")["^.*$"].to_list() == TEXT
    assert call(PLAIN).equals(PLAIN)
    assert call(FRAME.clear()).schema["text"] == wanted


def test_what_is_no_column() -> None:
    with pytest.raises(NotCompressedError, match='as_text: column "text" is String'):
        tadoc.as_text(PLAIN["text"])
    with pytest.raises(TypeError, match="as_storage takes a Series, a DataFrame or a LazyFrame, not list"):
        tadoc.as_storage([1])  # type: ignore[type-var]


def test_structs_whose_types_were_lost() -> None:
    lost = tadoc.as_storage(FRAME).with_columns(
        pl.struct(
            pl.col("text").struct.field("grammar").cast(pl.String), pl.col("text").struct.field("symbols", "gaps")
        ).alias("text")
    )
    assert not tadoc.is_tadoc(lost.schema["text"])
    assert tadoc.as_text(lost).tadoc.decompress("text").equals(PLAIN)
    assert tadoc.as_text(lost["text"]).tadoc.decompress().equals(PLAIN["text"])


# columns and files of the release before


OLD_FRAMES: dict[str, Any] = {
    "Parquet": lambda: pl.read_parquet(OLD / "text.parquet"),
    "a Parquet scan": lambda: pl.scan_parquet(OLD / "text.parquet").collect(),
    "IPC": lambda: pl.read_ipc(OLD / "text.arrow"),
    "IPC stream": lambda: pl.read_ipc_stream(OLD / "text.stream.arrow"),
    "a pickled frame": lambda: pickle.loads((OLD / "frame.pickle").read_bytes()),
    "a pickled series": lambda: pl.DataFrame(
        [pl.Series("id", range(6)), pickle.loads((OLD / "text.pickle").read_bytes())]
    ),
    "packed rows": lambda: tadoc.scan_packed(OLD / "packed.parquet").collect(),
}


@pytest.mark.parametrize("name", OLD_FRAMES)
def test_what_older_releases_wrote(name: str) -> None:
    frame = OLD_FRAMES[name]()
    assert frame.schema["text"] == (tadoc.DTYPE if name == "packed rows" else tadoc.STORAGE)
    frame = frame.with_columns(pl.col("id").cast(pl.Int64))
    plain = pl.DataFrame({"id": range(6), "text": OLD_TEXT})
    assert frame.tadoc.decompress("text").equals(plain)
    assert frame.tadoc.word_count("text").equals(plain.tadoc.compress("text").tadoc.word_count("text"))
    new = plain.tadoc.compress("text")
    assert pl.concat([tadoc.as_text(frame), new]).tadoc.decompress("text").equals(pl.concat([plain, plain]))
    assert pl.concat([tadoc.as_text(frame.lazy()), new.lazy()]).collect().schema["text"] == tadoc.DTYPE


def test_an_index_that_an_older_release_saved() -> None:
    index = tadoc.load_index(OLD / "index")
    assert sorted(index.search("to be")["id"].to_list()) == [0, 3, 4]
    new = PLAIN.with_columns(pl.col("id") + 10).tadoc.compress("text").drop_nulls("text")
    grown = new.tadoc.append_to(index, "text", id="id")
    assert sorted(grown.search('"to be, or not"', k=9)["id"].to_list()) == [0, 10, 15]


@pytest.mark.slow
def test_no_class_of_polars_is_patched() -> None:
    """Only the namespaces are there, as Polars' own calls register them."""
    code = (
        "import polars as pl\n"
        "kinds = pl.DataFrame, pl.Series, pl.LazyFrame, pl.Expr, pl.BaseExtension, pl.DataType, pl.Config\n"
        "before = [dict(vars(kind)) for kind in kinds]\n"
        "import polars_tadoc\n"
        "for kind, was in zip(kinds, before):\n"
        "    now = dict(vars(kind))\n"
        "    changed = {name for name in {**was, **now} if was.get(name) is not now.get(name)}\n"
        "    assert changed <= {'tadoc', '_accessors'}, (kind, changed)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr


def test_nothing_is_said_when_frames_are_written_and_read() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        file = io.BytesIO()
        FRAME.write_parquet(file)
        file.seek(0)
        assert pl.read_parquet(file).schema["text"] == tadoc.DTYPE


@pytest.mark.parametrize("call", ["inverted_index", "ranked_inverted_index", "term_vector"])
@pytest.mark.parametrize("form", [tadoc.as_text, tadoc.as_storage])
def test_compressed_columns_as_labels(call: str, form: Any) -> None:
    df = form(pl.DataFrame({"text": ["to be or", "to do", None]}).tadoc.compress("text"))
    n = {"n": 1} if call == "ranked_inverted_index" else {}
    found = getattr(df.tadoc, call)("text", id="text", **n)
    lazy = getattr(df.lazy().tadoc, call)("text", id="text", **n)
    assert lazy.collect_schema() == lazy.collect().schema == found.schema
    exploded = found if call == "term_vector" else found.explode("documents")
    labels = exploded["id" if call == "term_vector" else "documents"]
    if call == "ranked_inverted_index":
        labels = labels.struct.field("id")
    assert set(labels.tadoc.decompress().to_list()) == {"to be or", "to do"}


@pytest.mark.parametrize(
    "foreign",
    [
        {"grammar": 1, "symbols": [1], "gaps": b""},
        {"grammar": "a", "symbols": 1, "gaps": b""},
        {"grammar": "a", "symbols": ["b"], "gaps": b""},
        {"grammar": "a", "symbols": [1], "gaps": 1.5},
        {"grammar": "a", "symbols": [-1], "gaps": b""},
    ],
)
def test_a_foreign_struct_with_the_same_fields(foreign: dict[str, Any], tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1], "text": [foreign]})
    for convert in (tadoc.as_text, tadoc.as_storage):
        with pytest.raises(NotCompressedError, match=rf'{convert.__name__}: column "text" is .* other contents'):
            convert(frame["text"])
    frame.write_parquet(tmp_path / "a.parquet")
    if foreign["symbols"] != [-1]:
        assert tadoc.as_text(frame).equals(frame)
        assert tadoc.scan_parquet(tmp_path).collect().equals(frame)
    else:
        with pytest.raises(NotCompressedError, match="other contents"):
            tadoc.as_text(frame)
