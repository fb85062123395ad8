"""Files that someone made to do harm: sizes and checksums are right, what they hold is not."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polars.plugins import register_plugin_function

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidGrammarError, InvalidIndexError, InvalidRecordsError, TadocError
from polars_tadoc.index.store.folder import HEADER, _header_text
from polars_tadoc.packed.files import PackedFile
from polars_tadoc.records import Checkpoint

# Saved indexes


def save(path: Path, **how: Any) -> Path:
    column = pl.Series("text", ["a b", "b c d", "a"]).tadoc.compress()
    index = tadoc.build_index(column, id=pl.Series(["x", "y", "z"]), metadata=pl.DataFrame({"year": [1, 2, 3]}), **how)
    index.delete("y").save(path)
    return path


def reseal(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the header of a saved index, and mend its checksum."""
    header = json.loads((path / HEADER).read_text())
    del header["crc32"]
    change(header)
    (path / HEADER).write_text(_header_text(header))


def replace_file(path: Path, name: str, content: bytes) -> None:
    """Replace a file of a saved index, and mend its size and checksum."""
    (path / name).write_bytes(content)
    reseal(path, lambda header: header["files"][name].update(bytes=len(content), crc32=zlib.crc32(content)))


def put(place: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Set what stands at a place in the header, or remove it."""

    def change(header: dict[str, Any]) -> None:
        *way, last = (int(step) if step.isdigit() else step for step in place.split("/"))
        part: Any = header
        for step in way:
            part = part[step]
        if value is MISSING:
            del part[last]
        else:
            part[last] = value

    return change


MISSING = object()
PLACES = [
    *("codec", "documents", "segments", "analyzer", "files", "segments/0", "segments/0/documents"),
    *("segments/0/deleted", "segments/0/arrays", "segments/0/arrays/0", "documents/rows", "documents/labelled"),
    *("documents/numbered", "documents/metadata", "documents/text", "analyzer/tokenizer", "analyzer/morphism"),
    *("analyzer/morphism/normalize", "analyzer/morphism/lowercase", "analyzer/morphism/stopwords"),
    *("analyzer/morphism/calls_python", "files/ids.arrow", "files/segment_0.lengths.npy"),
    *("files/segment_0.lengths.npy/bytes", "files/segment_0.lengths.npy/crc32", "files/segment_0.lengths.npy/length"),
    *("files/segment_0.lengths.npy/dtype", "files/ids.arrow/bytes", "files/ids.arrow/crc32"),
]


@pytest.mark.parametrize("place", PLACES)
def test_headers_that_say_something_else(place: str, tmp_path: Path) -> None:
    path = save(tmp_path / "index", lowercase=True, stopwords=["c"], normalize=pl.element().str.to_lowercase())
    text = (path / HEADER).read_text()
    for value in (MISSING, None, 7, -1, 1 << 70, 0.5, "a", "../a", [], [None], {}, {"a": 1}, True):
        (path / HEADER).write_text(text)
        reseal(path, put(place, value))
        needs_normalize = value is True and place.endswith("calls_python")
        try:
            tadoc.load_index(path)
        except ValueError as error:
            assert isinstance(error, InvalidIndexError) != needs_normalize  # noqa: PT017


def test_no_segment(tmp_path: Path) -> None:
    tadoc.build_index(pl.Series("text", [], pl.String).tadoc.compress()).save(tmp_path / "index")
    assert tadoc.load_index(tmp_path / "index").compact().search("a").is_empty()
    reseal(tmp_path / "index", put("segments", []))
    with pytest.raises(InvalidIndexError, match="it lists no segments"):
        tadoc.load_index(tmp_path / "index")


def written(rows: pl.Series) -> pl.Series:
    """Leave a trace of having been called."""
    Path("called").touch()
    return rows


CODE = {
    "map_elements": pl.element().map_elements(written, return_dtype=pl.String),
    "map_batches": pl.element().map_batches(written, return_dtype=pl.String),
    "rolling_map": pl.element().rolling_map(written, 1),
    "fold": pl.fold(pl.lit(""), lambda one, _: written(one), [pl.element()]),
    "name.map": pl.element().name.map(lambda name: str(written(pl.Series([name])))),
    "in an argument": pl.element().str.replace("a", pl.element().map_batches(written)),
    "in a condition": pl.when(pl.element().map_batches(written) == "a").then(pl.lit("b")),
    "in a literal's place": pl.element().replace_strict({"a": "b"}, default=pl.element().map_batches(written)),
    "a library": register_plugin_function(plugin_path=json.__file__, function_name="a", args=[pl.element()]),
    "over": pl.element().map_batches(written).over(pl.element()),
}


@pytest.mark.parametrize("name", CODE)
def test_code_in_a_header_is_never_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "index", lowercase=True)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    serialized = json.loads(CODE[name].meta.serialize(format="json"))
    reseal(path, put("analyzer/morphism/normalize", serialized))
    with pytest.raises(InvalidIndexError, match=r"cannot read the index's normalize: it has"):
        tadoc.load_index(path)
    assert not list(Path().iterdir())


PLAIN = {
    "text": pl.element().str.to_lowercase().str.strip_suffix("s").replace({"tail": "end", "a": None}),
    "strict": pl.element().replace_strict({"a": "b"}, default=pl.element()),
    "condition": pl.when(pl.element().str.len_chars() < 3).then(pl.element()).otherwise(pl.lit("long")),
    "list": pl.when(~pl.element().is_in(["b", "c"])).then(pl.element()),
    "joined": pl.concat_str(pl.element(), pl.lit("x")).alias("y"),
    "cast": pl.element().str.len_bytes().cast(pl.String) + "!",
    "coalesced": pl.coalesce(pl.lit(None, pl.String), pl.element()),
}


@pytest.mark.parametrize("name", PLAIN)
def test_expressions_without_code_are_saved(name: str, tmp_path: Path) -> None:
    column = pl.Series("text", ["a b tails", "b c d", "a"]).tadoc.compress()
    index = tadoc.build_index(column, normalize=PLAIN[name])
    index.save(tmp_path / "index")
    loaded = tadoc.load_index(tmp_path / "index")
    assert loaded.search(["a", "tails b", "c"]).equals(index.search(["a", "tails b", "c"]))


CODELESS = '{"Function": {"input": [], "function": {"StringExpr": "Uppercase"}}}'


def test_functions_without_arguments(tmp_path: Path) -> None:
    path = save(tmp_path / "index", normalize=pl.element().str.to_uppercase())
    reseal(path, put("analyzer/morphism/normalize", json.loads(CODELESS)))
    with pytest.raises(InvalidIndexError, match="cannot read the index's normalize"):
        tadoc.load_index(path)


def test_a_literal_that_is_no_table_is_not_read(tmp_path: Path) -> None:
    path = save(tmp_path / "index", normalize=pl.element().replace({"a": "b"}))
    saved = json.loads(pl.element().replace({"a": "b"}).meta.serialize(format="json"))  # as earlier releases have it
    reseal(path, put("analyzer/morphism/normalize", saved))
    at = saved["Function"]["input"][1]["Literal"]["Scalar"]["List"]
    for place in range(0, len(at), 7):
        changed = [*at[:place], at[place] ^ 0xFF, *at[place + 1 :]]
        reseal(path, put("analyzer/morphism/normalize/Function/input/1/Literal/Scalar/List", changed))
        try:
            tadoc.load_index(path).search("a")
        except InvalidIndexError:
            continue


def parquet(table: pa.Table, **how: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **how)
    return file.getvalue()


def ipc(table: pa.Table) -> bytes:
    file = io.BytesIO()
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


NOT_TEXT = pa.array([b"a", b"\xff", b"c", b"d"], pa.large_binary()).view(pa.large_string())
TABLES: dict[str, list[bytes]] = {
    "segment_0.terms.parquet": [
        parquet(pa.table({"terms": NOT_TEXT})),
        parquet(pa.table({"terms": ["a", "b", "d", "c"]})),
        parquet(pa.table({"terms": ["a", "b", "b", "c"]})),
        parquet(pa.table({"terms": ["a", "b", None, "c"]})),
        parquet(pa.table({"terms": [1, 2, 3, 4]})),
        parquet(pa.table({"terms": ["a", "b", "c", "d"], "others": ["a", "b", "c", "d"]})),
        parquet(pa.table({})),
        b"PAR1",
    ],
    "ids.arrow": [
        ipc(pa.table({"id": NOT_TEXT[:3]})),
        ipc(pa.table({"id": ["x", "y"]})),
        ipc(pa.table({"id": ["x", "y", "z"], "other": ["x", "y", "z"]})),
        ipc(pa.table({})),
        b"ARROW1",
    ],
    "metadata.arrow": [ipc(pa.table({"year": NOT_TEXT[:3]})), ipc(pa.table({"year": [1]})), b"ARROW1\0\0"],
    "text.parquet": [parquet(pa.table({"text": ["a", "b", "c"]})), parquet(pa.table({"text": []})), b"PAR1PAR1"],
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_something_else(name: str, tmp_path: Path) -> None:
    path = save(tmp_path / "index")
    for content in TABLES[name]:
        replace_file(path, name, content)
        with pytest.raises(InvalidIndexError, match="load_index"):
            tadoc.load_index(path, verify="all")
        with pytest.raises(InvalidIndexError, match="load_index"):
            use(tadoc.load_index(path))


def use(index: tadoc.Index) -> None:
    """Read each file of an index."""
    index.snippets(index.search("a b"), "a b")
    repr((index.metadata, index.stored.text))


@pytest.mark.slow
def test_damaged_tables_under_right_checksums(tmp_path: Path) -> None:
    path = save(tmp_path / "index")
    for name in TABLES:
        content = (path / name).read_bytes()
        for place in range(0, len(content), 11):
            replace_file(path, name, content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
            try:
                use(tadoc.load_index(path))
            except (InvalidIndexError, InvalidGrammarError):
                continue
        replace_file(path, name, content)


# Packed files


def write_packed(path: Path, **columns: pa.Array) -> None:
    """Write a packed row of two documents beside other columns."""
    packed = pl.DataFrame({"text": ["to be", "to do"]}).tadoc.compress("text").tadoc.pack("text")
    table = packed.to_arrow(compat_level=pl.CompatLevel.oldest())
    for name, values in columns.items():
        table = table.append_column(name, pa.LargeListArray.from_arrays(pa.array([0, 2], pa.int64()), values))
    pq.write_table(table, path, row_group_size=1)


def test_statistics_that_are_no_text(tmp_path: Path) -> None:
    write_packed(tmp_path / "packed.parquet", name=NOT_TEXT[:2])
    lf = tadoc.scan_packed(tmp_path / "packed.parquet").filter(pl.col("name") == "b")
    with pytest.raises(InvalidGrammarError, match="row group 0: the data is damaged"):
        lf.collect()


def test_names_of_columns_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "packed.parquet"
    write_packed(path, a_name_of_its_own=pa.array(["a", "b"]))
    content = path.read_bytes()
    path.write_bytes(content.replace(b"a_name_of_its_own", b"a_name\xf9of_its_own"))
    with pytest.raises(InvalidGrammarError, match=r"not a Parquet file, or damaged: .*utf-8"):
        tadoc.scan_packed(path)


@pytest.mark.slow
def test_damaged_footers(tmp_path: Path) -> None:
    """PyArrow would end the process at some of them: statistics of lengths that none can have, columns encrypted."""
    path = tmp_path / "packed.parquet"
    write_packed(path, name=pa.array(["a", "b"]))
    content = path.read_bytes()
    refused = 0
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for place in range(footer, content.rindex(b"ARROW:schema")):
        for value in (content[place] ^ 0x04, content[place] ^ 0x12):
            changed = pa.py_buffer(content[:place] + bytes([value]) + content[place + 1 :])
            try:
                with PackedFile(path, changed) as file:
                    file.statistics(pl.Schema({"name": pl.String}), ["name"] if "name" in file.schema else [])
                    file.read(0, list(file.schema))
            except TadocError:
                refused += 1
    assert refused > 1_000


# Checkpoints

MANIFESTS: dict[str, dict[str, Any]] = {
    "endless stretches": {"covered": [[0, 10**18]]},
    "many long stretches": {"covered": [[0, (1 << 22) - 2]] * 1_000},
    "stretches that fall": {"covered": [[3, 2]]},
    "stretches of text": {"covered": [["0", "1"]]},
    "no stretches": {"covered": [0, 1]},
    "a run of endless digits": {"runs": ["run-" + "9" * 5_000]},
    "a run elsewhere": {"runs": ["../run-000001"]},
    "runs by name": {"runs": {"run-000001": 1}},
    "another version": {"version": 2},
    "another kind of question": {"question": []},
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_of_checkpoints(name: str, tmp_path: Path) -> None:
    Checkpoint(tmp_path / "checkpoint", {"n": 3}, "word_count").close()
    path = tmp_path / "checkpoint" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **MANIFESTS[name]}))
    with pytest.raises(InvalidRecordsError, match=r"manifest\.json is damaged"):
        Checkpoint(tmp_path / "checkpoint", {"n": 3}, "word_count")
