"""Files that vanish, are damaged or replaced, disks that are full: an error that says so, or others go on."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError, SkippedPartitionWarning

ROWS, PARTITION = 24, 4
FRAME = pl.DataFrame(
    {
        "number": range(ROWS),
        "name": [f"n{row}" for row in range(ROWS)],
        "text": [None if row % 7 == 3 else f"row {row} of {row % 5} and more" for row in range(ROWS)],
    }
).tadoc.compress("text", rows_per_grammar=PARTITION)
number = pl.col("number")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files of two partitions each."""
    path = tmp_path / "packed"
    path.mkdir()
    for place in range(3):
        FRAME.slice(8 * place, 8).tadoc.write_packed(path / f"{place}.parquet")
    return path


def spoil(path: Path, groups: list[int], keep: tuple[str, ...] = ()) -> None:
    """Overwrite the pages of row groups, but of some columns."""
    metadata = pq.ParquetFile(path).metadata
    data = bytearray(path.read_bytes())
    for group in groups:
        for place in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(place)
            if chunk.path_in_schema.split(".")[0] not in keep:
                start = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
                data[start : start + chunk.total_compressed_size] = b"\xaa" * chunk.total_compressed_size
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-50])


def alter(path: Path) -> None:
    """Have a packed row name a word that is not there: sound Parquet, but no sound grammar."""
    packed = pl.read_parquet(path)
    fields = {field.name: pl.col("text").struct.field(field.name) for field in tadoc.PACKED_DTYPE.fields}
    first = pl.int_range(pl.len()) == 0
    fields["roots"] = pl.when(first).then(fields["roots"].list.eval(pl.element() + 10**6)).otherwise(fields["roots"])
    packed.with_columns(pl.struct(**fields).alias("text")).write_parquet(path, row_group_size=1)


FAULTS: dict[str, tuple[Callable[[Path], object], list[int], type[Exception], str]] = {
    "gone": (Path.unlink, list(range(8, 16)), FileNotFoundError, r"1\.parquet: the file is gone"),
    "cut": (cut, list(range(8, 16)), InvalidGrammarError, r"1\.parquet: not a Parquet file, or damaged"),
    "empty": (lambda path: path.write_bytes(b""), list(range(8, 16)), InvalidGrammarError, r"1\.parquet: not a"),
    "spoilt": (lambda path: spoil(path, [0]), list(range(8, 12)), InvalidGrammarError, r"1\.parquet, row group 0: the"),
    "altered": (alter, list(range(8, 12)), InvalidGrammarError, r"1\.parquet, row group 0: .*a document has symbol"),
}
"""What is done to the second file, the rows that cannot be read then, the error and the place it names."""

CALLS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda lf: lf.tadoc.decompress("text"),
    "rows that pass": lambda lf: lf.filter(number % 3 == 1).tadoc.decompress("text"),
    "a condition on the text": lambda lf: lf.filter(pl.col("text").tadoc.contains_phrase("of 1")).select("number"),
    "word_count": lambda lf: lf.tadoc.word_count("text"),
    "inverted_index": lambda lf: lf.tadoc.inverted_index("text"),
    "labels": lambda lf: lf.filter(number > 2).tadoc.term_vector("text", id="name"),
    "bm25_weights": lambda lf: lf.tadoc.bm25_weights("text"),
}
LIMITED: dict[str, Callable[[Any], Any]] = {
    "word_count": lambda lf: lf.tadoc.word_count("text", memory_limit="1GB"),
    "sequence_count": lambda lf: lf.tadoc.sequence_count("text", n=2, memory_limit="1GB"),
    "inverted_index": lambda lf: lf.tadoc.inverted_index("text", id="name", memory_limit="1GB"),
}


def frame_of(found: Any) -> pl.DataFrame:
    return found.collect() if isinstance(found, pl.LazyFrame) else found


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("call", CALLS)
def test_a_fault_is_raised_or_skipped(folder: Path, fault: str, call: str) -> None:
    harm, rows, error, place = FAULTS[fault]
    lf, skipping = tadoc.scan_packed(folder), tadoc.scan_packed(folder, on_error="skip")
    harm(folder / "1.parquet")
    with pytest.raises(error, match=rf'{place}.*; on_error="skip" skips it$'):
        CALLS[call](lf).collect()
    with pytest.warns(SkippedPartitionWarning, match=rf'{place}.*; skipped \(on_error="skip"\)$'):
        found = CALLS[call](skipping).collect()
    expected = FRAME.filter(~number.is_in(rows)).lazy()  # rows are numbered without those
    assert_frame_equal(found, CALLS[call](expected).collect())


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("call", LIMITED)
def test_in_limited_memory(folder: Path, fault: str, call: str) -> None:
    harm, rows, error, place = FAULTS[fault]
    lf, skipping = tadoc.scan_packed(folder), tadoc.scan_packed(folder, on_error="skip")
    harm(folder / "1.parquet")
    with pytest.raises(error, match=place):
        LIMITED[call](lf).collect()
    with pytest.warns(SkippedPartitionWarning, match=place):
        found = LIMITED[call](skipping).collect()
    assert_frame_equal(found, LIMITED[call](FRAME.filter(~number.is_in(rows)).lazy()).collect())


def test_each_partition_is_warned_of_once(folder: Path) -> None:
    spoil(folder / "0.parquet", [1])
    spoil(folder / "2.parquet", [0, 1])
    (folder / "1.parquet").write_bytes(b"no Parquet")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = tadoc.scan_packed(folder, on_error="skip").select("number").collect()
    assert rows["number"].to_list() == [0, 1, 2, 3]
    named = [str(one.message).removeprefix(f"scan_packed: {folder}/").split(":")[0] for one in caught]
    assert named == ["0.parquet, row group 1", "1.parquet", "2.parquet, row group 0", "2.parquet, row group 1"]


def test_what_is_not_read_does_no_harm(folder: Path) -> None:
    spoil(folder / "1.parquet", [0, 1], keep=("number", "name"))
    (folder / "2.parquet").unlink()
    files = [folder / "0.parquet", folder / "1.parquet"]
    assert tadoc.scan_packed(files, on_error="skip").select("name").collect().height == 16
    assert tadoc.scan_packed(files).filter(number < 8).tadoc.word_count("text").collect().height > 0
    assert tadoc.scan_packed(files, on_error="skip").head(8).tadoc.decompress("text").collect().height == 8


def test_a_limit_counts_the_rows_that_are_there(folder: Path) -> None:
    spoil(folder / "0.parquet", [1])
    lf = tadoc.scan_packed(folder, on_error="skip").head(6)
    for plan, expected in ((lf, [0, 1, 2, 3, 8, 9]), (lf.filter(number != 3), [0, 1, 2, 8, 9])):
        with pytest.warns(SkippedPartitionWarning, match="row group 1"):
            assert plan.select("number").collect()["number"].to_list() == expected


def test_the_first_file_that_can_be_read_names_the_columns(folder: Path) -> None:
    cut(folder / "0.parquet")
    with pytest.raises(InvalidGrammarError, match=r'0\.parquet: not a Parquet file.*on_error="skip"'):
        tadoc.scan_packed(folder)
    with pytest.warns(SkippedPartitionWarning, match=r"0\.parquet"):
        lf = tadoc.scan_packed(folder, on_error="skip")
    with pytest.warns(SkippedPartitionWarning, match=r"0\.parquet"):
        assert_frame_equal(lf.collect(), FRAME.slice(8))
    cut(folder / "1.parquet")
    cut(folder / "2.parquet")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(InvalidGrammarError, match=r"2\.parquet: not a Parquet file"):
            tadoc.scan_packed(folder, on_error="skip")
    assert len(caught) == 2


def test_files_of_another_kind_are_no_faults(folder: Path) -> None:
    FRAME.write_parquet(folder / "1.parquet")
    with pytest.raises(tadoc.errors.NotPackedError, match=r"1\.parquet: 0 packed columns, expected one"):
        tadoc.scan_packed(folder, on_error="skip").collect()
    FRAME.select("text").tadoc.write_packed(folder / "1.parquet")
    with pytest.raises(pl.exceptions.SchemaError, match=r"1\.parquet: columns differ from those of"):
        tadoc.scan_packed(folder, on_error="skip").collect()


def test_what_on_error_may_be(folder: Path) -> None:
    for value in ("null", "", None, True):
        with pytest.raises(ValueError, match=f'^scan_packed: on_error={value!r}: use "raise" or "skip"$'):
            tadoc.scan_packed(folder, on_error=value)  # type: ignore[arg-type]


def test_errors_of_conditions_are_no_faults(folder: Path) -> None:
    lf = tadoc.scan_packed(folder, on_error="skip").filter(pl.col("text").tadoc.decompress().str.contains("row"))
    with tadoc.Config(expansion_limit=8), pytest.raises(LimitExceededError):
        lf.select("number").collect()


def test_a_file_replaced_after_the_scan(folder: Path) -> None:
    lf = tadoc.scan_packed(folder)
    FRAME.head(2).tadoc.write_packed(folder / "1.parquet")  # of the same columns: what is there is read
    expected = pl.concat([FRAME.head(8), FRAME.head(2), FRAME.tail(8)])
    assert_frame_equal(lf.collect(), expected)
    FRAME.select("text").tadoc.write_packed(folder / "0.parquet")
    with pytest.raises(pl.exceptions.SchemaError, match=r"0\.parquet: replaced by a file with other columns; scan"):
        lf.collect()


def test_a_file_replaced_while_it_is_read(folder: Path) -> None:
    """Who has begun to read goes on in the old file."""
    scan = tadoc.scan_packed(folder / "0.parquet")
    batches = scan.collect_batches(maintain_order=True)
    first = next(iter(batches))
    FRAME.tail(2).tadoc.write_packed(folder / "0.parquet")
    rows = pl.concat([first, *batches])
    assert rows["number"].to_list() in (list(range(8)), [22, 23])


@pytest.mark.slow
def test_too_many_open_files_are_no_fault_of_a_file(folder: Path) -> None:
    script = """
import resource, sys
import polars_tadoc as tadoc
lf = tadoc.scan_packed(sys.argv[1], on_error="skip")
lf.collect()
held = []
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
try:
    while True:
        held.append(open(sys.argv[1] + "/0.parquet"))
except OSError:
    pass
try:
    lf.collect()
except OSError as error:
    print(error.errno)
"""
    done = run(script, str(folder))
    assert done.stdout.split() == ["24"], done.stderr


def run(script: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, **options)
