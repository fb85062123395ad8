"""Files of some kilobytes that stand for gigabytes: refused before they are decoded, by a limit that can be raised."""

from __future__ import annotations

import contextlib
import io
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidIndexError, LimitExceededError, SkippedPartitionWarning
from polars_tadoc.index.store.folder import HEADER, _header_text
from polars_tadoc.kernels.host.grammars import parquet_pages as kernels
from polars_tadoc.untrusted import arrow_sizes
from polars_tadoc.untrusted.parquet_sizes import decompressed_bytes
from polars_tadoc.untrusted.thrift import MalformedError

FRAME = pl.DataFrame({"number": range(9), "text": [f"row {row} of nine" for row in range(9)]}).tadoc.compress("text")
RAISE_IT = r"if the data is trusted, raise it: tadoc\.Config\(payload_limit_bytes=…\)"


def sizes(path: Path, limit: int = 1 << 60) -> list[int]:
    """What each leaf of each row group is said to decode to."""
    source = pa.OSFile(str(path))
    file = pq.ParquetFile(source)
    groups, leaves = range(file.num_row_groups), range(file.metadata.num_columns)
    return [decompressed_bytes(source, file, group, [leaf], limit) for group in groups for leaf in leaves]


def flat_bytes(array: Any) -> int:
    """Bytes of a column's values: of strings themselves and, 4 each, of where they begin."""
    while isinstance(array, pa.ListArray | pa.LargeListArray):
        array = array.flatten()
    if pa.types.is_boolean(array.type):
        return len(array)
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        return 4 * len(array) + sum(len(one.as_buffer()) for one in array if one.is_valid)
    return len(array) * array.type.bit_width // 8


KINDS: dict[str, Any] = {
    "string": (pa.string(), st.text("ab日", max_size=40)),
    "binary": (pa.binary(), st.binary(max_size=40)),
    "int32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "int64": (pa.int64(), st.integers(0, 5)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "bool": (pa.bool_(), st.booleans()),
}
ENCODINGS = {
    "string": ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", None],
    "binary": ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", None],
    "int32": ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT", None],
    "int64": ["PLAIN", "DELTA_BINARY_PACKED", None],
    "double": ["PLAIN", "BYTE_STREAM_SPLIT", None],
    "bool": ["PLAIN", "RLE"],
}
"""None is a dictionary."""


@given(st.data())
def test_no_column_unfolds_into_more_than_is_said(tmp_path: Path, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    dtype, one = KINDS[kind]
    values = data.draw(st.lists(st.none() | st.lists(st.none() | one, max_size=8), max_size=12))
    values = values * data.draw(st.sampled_from([1, 40]))
    encoding = data.draw(st.sampled_from(ENCODINGS[kind]))
    table = pa.table({"a": pa.array(values, pa.list_(dtype))})
    pq.write_table(
        table,
        tmp_path / "a.parquet",
        use_dictionary=encoding is None,
        column_encoding=None if encoding is None else {"a.list.element": encoding},
        compression=data.draw(st.sampled_from(["zstd", "snappy", "gzip", "brotli", "lz4", "none"])),
        data_page_version=data.draw(st.sampled_from(["1.0", "2.0"])),
        data_page_size=data.draw(st.sampled_from([64, 1 << 20])),
        write_batch_size=data.draw(st.sampled_from([3, 1000])),
        row_group_size=max(len(values), 1),
    )
    read = pq.read_table(tmp_path / "a.parquet").column("a").combine_chunks()
    held = flat_bytes(read)
    for said in sizes(tmp_path / "a.parquet"):
        assert said >= held
    for said in sizes(tmp_path / "a.parquet", held - 1):
        assert said > held - 1  # where the limit is near, lengths are added up
    generous = 2 * held + 40 * max(len(read.flatten()), 1) + 2000
    for said in sizes(tmp_path / "a.parquet", generous):
        assert said <= generous  # nor is a sound file refused where there is twice the room


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", None])
def test_columns_that_unfold_into_little_together_are_within_the_limit(tmp_path: Path, encoding: str | None) -> None:
    """The bound that is easy to tell is far too high for each of them; one alone must not take up the limit."""
    words = [f"{number:06d}" for number in range(3_000)] * (1 if encoding else 9)
    table = pa.table({"a": words, "b": words[::-1]})
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=encoding is None, column_encoding=encoding)
    held = sum(flat_bytes(column.combine_chunks()) for column in table.columns)
    source = pa.OSFile(str(tmp_path / "a.parquet"))
    file = pq.ParquetFile(source)
    easy = max(sizes(tmp_path / "a.parquet"))
    assert easy > 10 * held
    for limit in (2 * held, easy - 1, easy, easy + 1, 3 * easy):
        assert held <= decompressed_bytes(source, file, 0, [0, 1], limit) <= limit
    assert decompressed_bytes(source, file, 0, [0, 1], held - 1) >= held


@given(st.lists(st.text("ab", max_size=300).map(str.encode), max_size=300), st.booleans())
def test_lengths_of_strings_are_added_up(tmp_path: Path, words: list[bytes], in_order: bool) -> None:
    words = sorted(words) if in_order else words
    for use_dictionary in (True, False):
        pq.write_table(
            pa.table({"a": pa.array(words, pa.binary())}),
            tmp_path / "a.parquet",
            use_dictionary=use_dictionary,
            column_encoding=None if use_dictionary else {"a": "DELTA_BYTE_ARRAY"},
            store_schema=False,
        )
        total = sum(map(len, words))
        for said in sizes(tmp_path / "a.parquet", total + 4 * len(words) - 1):
            assert said > total + 4 * len(words) - 1
        if total > 30_000:
            for said in sizes(tmp_path / "a.parquet", 2 * total):
                assert total < said <= 2 * total


@given(st.binary(max_size=80), st.integers(0, 1 << 31))
def test_kernels_end_on_any_bytes(data: bytes, most: int) -> None:
    page = np.frombuffer(data, np.uint8)
    lengths = np.arange(5, dtype=np.int64)
    assert kernels.delta_total(page, min(most, 1 << 20)) >= -1
    assert kernels.dictionary_total(page, lengths, most) >= -1
    if kernels.plain_lengths(page, lengths):
        assert lengths.sum() + 20 <= len(data)


def write_bomb(path: Path, bomb: Any) -> None:
    """Write a packed file with a column beside it of one cell of so many values."""
    packed = FRAME.tadoc.pack().to_arrow(compat_level=pl.CompatLevel.oldest())
    lists = pa.ListArray.from_arrays(pa.array([0, len(bomb)], pa.int32()), bomb)
    with pq.ParquetWriter(
        path, packed.schema.append(pa.field("bomb", lists.type)), compression="zstd", store_schema=False
    ) as writer:
        writer.write_table(packed.append_column("bomb", lists), row_group_size=1)


def long_words(count: int) -> Any:
    """The same word of a megabyte, so many times."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array(["w" * (1 << 20)]))


BOMBS: dict[str, Any] = {
    "a word of a megabyte, 50,000 times": lambda: long_words(50_000),
    "a number, four million times": lambda: pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(1 << 22, np.int8)), pa.array([7], pa.int64())
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_stands_for_much(tmp_path: Path, name: str) -> None:
    path = tmp_path / "b.parquet"
    write_bomb(path, BOMBS[name]())
    assert path.stat().st_size < 1 << 20
    with tadoc.Config(payload_limit_bytes=30 << 20):
        with pytest.raises(LimitExceededError, match=rf"b\.parquet, row group 0: claims .*bytes.*{RAISE_IT}"):
            tadoc.scan_packed(path).select("bomb").collect()
        assert tadoc.scan_packed(path).tadoc.word_count("text").collect().height == 12  # the bomb is not read


LINES = 20_000
"""Rows that share a value of a quarter of a megabyte: 5 GB, were each to have a copy."""


def shared_value(dictionary: pa.DataType, nested: str) -> Any:
    """One long value, for each of many rows, as a dictionary."""
    long = pa.array([b"w" * (1 << 18)], pa.binary()).cast(dictionary)
    shared = pa.DictionaryArray.from_arrays(pa.array(np.zeros(LINES, np.int32)), long)
    if nested == "struct":
        return pa.StructArray.from_arrays([shared], ["grammar"])
    return pa.ListArray.from_arrays(pa.array([0, 5, LINES], pa.int32()), shared) if nested == "list" else shared


@pytest.mark.parametrize("nested", ["column", "struct", "list"])
@pytest.mark.parametrize("dictionary", [pa.string(), pa.large_string(), pa.binary()], ids=str)
def test_a_value_is_counted_as_often_as_it_is_read(tmp_path: Path, dictionary: pa.DataType, nested: str) -> None:
    """Arrow keeps one copy for a dictionary, and a string for each row of a plain column: the schema says which."""
    table = pa.table({"a": shared_value(dictionary, nested)})
    for is_dictionary in (True, False):
        pq.write_table(table, tmp_path / "a.parquet", compression="zstd", store_schema=is_dictionary)
        (said,) = sizes(tmp_path / "a.parquet", 1 << 30)
        if is_dictionary:
            read = pq.ParquetFile(tmp_path / "a.parquet").read_row_group(0)
            assert read.nbytes <= said + 8 * LINES < 2 * read.nbytes
        else:
            assert said > 1 << 30


def test_a_dictionary_whose_pages_share_beginnings_is_counted_in_full(tmp_path: Path) -> None:
    """The schema says dictionary, the pages are front-coded: no reader of Arrow's takes that; it is not let through."""
    words = pa.array(["w" * (1 << 16) + f"{number:05}" for number in range(500)])
    pq.write_table(pa.table({"a": words}), tmp_path / "plain.parquet", use_dictionary=False, column_encoding="PLAIN")
    pq.write_table(
        pa.table({"a": words.dictionary_encode()}),
        tmp_path / "a.parquet",
        use_dictionary=False,
        column_encoding="DELTA_BYTE_ARRAY",
    )
    assert (tmp_path / "a.parquet").stat().st_size < 1 << 20
    for name in ("plain", "a"):
        (said,) = sizes(tmp_path / f"{name}.parquet", 1 << 20)
        assert said > 1 << 20


def test_a_bomb_among_sound_files(tmp_path: Path) -> None:
    FRAME.with_columns(bomb=pl.lit("sound")).tadoc.write_packed(tmp_path / "a.parquet")
    write_bomb(tmp_path / "b.parquet", long_words(50_000))
    with pytest.warns(SkippedPartitionWarning, match=r"b\.parquet, row group 0: claims"):
        assert tadoc.scan_packed(tmp_path, on_error="skip").select("bomb").collect().height == 9


def test_the_limit_can_be_raised(tmp_path: Path) -> None:
    write_bomb(tmp_path / "a.parquet", long_words(9))
    lf = tadoc.scan_packed(tmp_path)
    with tadoc.Config(payload_limit_bytes=9 << 20), pytest.raises(LimitExceededError, match=RAISE_IT):
        lf.collect()
    with tadoc.Config(payload_limit_bytes=11 << 20):  # the dictionary is one more
        assert lf.collect()["bomb"].str.len_bytes().sum() == 9 << 20


@pytest.mark.slow
def test_a_vocabulary_of_words_that_share_their_beginnings(tmp_path: Path) -> None:
    """Front coding: a megabyte that each of the words shares with the one before."""
    words = pl.Series(["w" * (1 << 20) + f"{number:05}" for number in range(64)])
    frame = pl.DataFrame({"text": words}).tadoc.compress("text")
    frame.tadoc.write_packed(tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 1 << 20
    with tadoc.Config(payload_limit_bytes=60 << 20), pytest.raises(LimitExceededError, match=RAISE_IT):
        tadoc.scan_packed(tmp_path).tadoc.word_count("text").collect()
    assert tadoc.scan_packed(tmp_path).tadoc.word_count("text").collect().height == 64


def replaced(folder: Path, name: str, content: bytes) -> None:
    """Put another file into a saved index, under a right checksum."""
    header = json.loads((folder / HEADER).read_text())
    header.pop("crc32")
    header["files"][name] = {"bytes": len(content), "crc32": zlib.crc32(content)}
    (folder / name).write_bytes(content)
    (folder / HEADER).write_text(_header_text(header))


@pytest.mark.parametrize("name", ["ids.arrow", "metadata.arrow", "segment_0.terms.parquet"])
def test_a_saved_index_that_stands_for_much(tmp_path: Path, name: str) -> None:
    folder, much = tmp_path / "index", 8 << 20
    frame = FRAME.with_columns(number=pl.col("number") + 1)
    frame.tadoc.build_index("text", id="number", metadata=["number"]).save(folder)
    file = io.BytesIO()
    if name.endswith(".arrow"):
        pl.DataFrame({"id": np.zeros(much // 8, np.int64)}).write_ipc(file, compression="zstd")
    else:
        strings = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1 << 12, np.int32)), pa.array(["w" * (1 << 12)]))
        pq.write_table(pa.table({"terms": strings}), file, store_schema=False)
    content = file.getvalue()
    assert len(content) < 1 << 16
    replaced(folder, name, content)
    said = rf"^load_index: {folder / name} claims to decode to at least .* bytes, the limit is 8,388,607; {RAISE_IT}$"
    for verify in (True, "all"):
        with tadoc.Config(payload_limit_bytes=much - 1), pytest.raises(LimitExceededError, match=said):
            tadoc.load_index(folder, verify=verify).search("a", filter=pl.col("number") > 0)  # type: ignore[arg-type]
        with pytest.raises(InvalidIndexError):  # it is read then, and is another number of documents, or words
            tadoc.load_index(folder, verify=verify).search("a", filter=pl.col("number") > 0)  # type: ignore[arg-type]


def lines(rows: int) -> pl.DataFrame:
    """Rows of one grammar, whose payload is long for so few words."""
    texts = [f"host{row % 97} session {row * 7919 % 3001} opened for user u{row % 311}" for row in range(rows)]
    return pl.DataFrame({"number": range(rows), "text": texts}).tadoc.compress("text")


@pytest.mark.slow
def test_a_saved_index_of_many_rows_with_one_grammar(tmp_path: Path) -> None:
    """The grammar, once for each row, would be more than the limit."""
    frame = lines(20_000)
    index = frame.tadoc.build_index("text", id="number")
    index.save(tmp_path / "saved")
    frame.lazy().tadoc.sink_index(tmp_path / "sunk", "text", id="number")
    query = '"user u17"'
    for name in ("saved", "sunk"):
        content = (tmp_path / name / "text.parquet").read_bytes()
        copies = 20_000 * len(frame["text"].ext.storage().struct.field("grammar").cast(pl.String)[0])
        with tadoc.Config(payload_limit_bytes=8 << 20):
            assert copies > 6 * (8 << 20)
            loaded = tadoc.load_index(tmp_path / name)
            found = loaded.search(query)
            assert found.equals(index.search(query))
            assert loaded.snippets(found, query).equals(index.snippets(found, query))
        assert len(content) < 1 << 20


def test_a_text_that_stands_for_much(tmp_path: Path) -> None:
    """Its grammars as strings of their own, one a row: refused when it is checked, or first read."""
    frame = lines(20_000)
    frame.tadoc.build_index("text").save(tmp_path / "index")
    plain = frame.select(pl.col("text").ext.storage().struct.with_fields(pl.field("grammar").cast(pl.String)))
    file = io.BytesIO()
    pq.write_table(plain.to_arrow(), file, store_schema=False)
    assert len(file.getvalue()) < 2 << 20
    replaced(tmp_path / "index", "text.parquet", file.getvalue())
    said = rf"text\.parquet claims to decode to at least .* bytes, the limit is 8,388,608; {RAISE_IT}$"
    with tadoc.Config(payload_limit_bytes=8 << 20), pytest.raises(LimitExceededError, match=said):
        tadoc.load_index(tmp_path / "index", verify="all")
    with tadoc.Config(payload_limit_bytes=8 << 20), pytest.raises(LimitExceededError, match=said):
        tadoc.load_index(tmp_path / "index").search('"user u17"')


def test_parquet_info_of_a_grammar_that_stands_for_much(tmp_path: Path) -> None:
    payload = (
        pl.DataFrame({"text": ["a"]})
        .tadoc.compress("text")["text"]
        .ext.storage()
        .struct.field("grammar")
        .cast(pl.String)[0]
    )
    long = pl.Series([payload + "A" * (16 << 20)], dtype=pl.Categorical(pl.Categories("grammar", "polars_tadoc")))
    others = {"symbols": pl.Series([[0]], dtype=pl.List(pl.UInt32)), "gaps": pl.Series([b""])}
    pl.DataFrame({"grammar": long, **others}).select(text=pl.struct(pl.all())).write_parquet(tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 1 << 16
    with (
        tadoc.Config(payload_limit_bytes=8 << 20),
        pytest.raises(LimitExceededError, match=f"parquet_info.*{RAISE_IT}"),
    ):
        tadoc.parquet_info(tmp_path / "a.parquet")


@pytest.mark.parametrize("how", ["scan_packed", "parquet_info", "checkpoint", "spilled runs", "plain Parquet"])
def test_other_readers_take_many_rows_with_one_grammar(tmp_path: Path, how: str) -> None:
    frame = lines(20_000)
    expected = frame.tadoc.word_count("text")
    limit: dict[str, Any] = {"memory_limit": "20MB"} if how == "spilled runs" else {}
    if how == "checkpoint":
        limit = {"memory_limit": "300MB", "checkpoint": tmp_path / "checkpoint"}
    path = tmp_path / "a.parquet"
    with tadoc.Config(payload_limit_bytes=8 << 20):
        if how in ("parquet_info", "plain Parquet"):
            frame.write_parquet(path)
        else:
            other = pl.col("number").map_elements(lambda number: f"kind {number % 3}", pl.String).cast(pl.Categorical)
            frame.with_columns(kind=other).tadoc.write_packed(path)
        if how == "parquet_info":
            assert tadoc.parquet_info(path)["grammars"].to_list() == [1]
            return
        source = pl.scan_parquet(path) if how == "plain Parquet" else tadoc.scan_packed(path)
        assert source.tadoc.word_count("text", **limit).collect().equals(expected)
        if how == "checkpoint":  # goes on from what is there
            assert source.tadoc.word_count("text", **limit).collect().equals(expected)
        assert source.collect()["number"].to_list() == list(range(20_000))


@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 255))
def test_arrow_files_of_any_bytes(data: bytes, place: int, value: int) -> None:
    file = io.BytesIO()
    pl.DataFrame({"a": ["x"] * 9, "b": range(9)}).write_ipc(file, compression="zstd")
    altered = bytearray(file.getvalue())
    altered[-place % len(altered)] = value
    for content in (data, b"ARROW1" + data + b"ARROW1", bytes(altered)):
        with contextlib.suppress(pa.ArrowException, OSError):
            assert arrow_sizes.decompressed_bytes(content) >= 0


def test_arrow_files_say_what_they_unfold_into() -> None:
    frame = pl.DataFrame({"a": range(5000), "s": ["x" * 50] * 5000, "c": pl.Series(["q"] * 5000, dtype=pl.Categorical)})
    for compression in ("zstd", "lz4", "uncompressed"):
        file = io.BytesIO()
        frame.write_ipc(file, compression=compression)  # type: ignore[arg-type]
        said = arrow_sizes.decompressed_bytes(file.getvalue())
        assert said == pa.ipc.open_file(file.getvalue()).read_all().nbytes


@given(st.data())
def test_headers_of_any_bytes(tmp_path: Path, data: st.DataObject) -> None:
    """Where pages begin there may be anything: an error, or a size."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": ["x" * 10, "y"] * 20}), path, use_dictionary=data.draw(st.booleans()))
    content = bytearray(path.read_bytes())
    for place in data.draw(st.lists(st.integers(4, 60), min_size=1, max_size=6)):
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        for said in sizes(path, data.draw(st.integers(0, 2000))):
            assert said >= 0
    except MalformedError:
        pass
