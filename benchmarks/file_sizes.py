"""Packed files by field beside Parquet of the text: ``python -m benchmarks.file_sizes``.

By corpus: Parquet files as Polars writes them, relative to the text at zstd 9: all texts under ``zstd -19 --long=27``
(with ``--long``; joined by line ends), the column row by row at zstd 9 and 19, the packed file, and the packed file
with ``effort="small"``. Then speeds in MB of text a second of this process' processor time (with ``--by-the-clock``: of
the clock), the best of the rounds: writing either file, reading either (Parquet to arrays, checked, without cached
grammars), the part of the latter that decodes symbols, and ``decompress`` of either file as a plan. Then by the clock,
on ``--threads`` threads (2): reading either file as a plan, to compressed rows, and ``decompress`` of either. Plans
find no grammar in a cache. ``--groups`` cuts the rows into so many grammars, each of which is a row group.
With ``--rows``, the column row by row instead, as Polars writes it by codec and level: its size over that of the packed
file with ``effort="small"``, over the text's Parquet, and MB of text a second of writing and of reading.
With ``--fields``, bytes of each field in both files, as a share of the text's Parquet; for symbols, words and gaps of
rows the zero-order entropy beside the bits that they take; and the packed rows by version.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.size import FAMILIES, LEVEL, parquet
from polars_tadoc.model.grammar_cache import grammars
from polars_tadoc.packed import coded
from polars_tadoc.packed.files import PackedFile
from polars_tadoc.packed.partition import NAMES, partition_at
from polars_tadoc.packed.unpack import payloads
from polars_tadoc.packed.write import EFFORTS, write_rows

HEADER = (
    "corpus | text MB | Parquet zstd 9, bytes | relative to it: zstd -19 --long | rows | rows at zstd 19 | "
    "packed | small | "
    "MB/s: write packed | write small | read packed | read small | decode symbols of small | "
    "decompress packed | decompress small | "
    "by the clock on {threads} threads: rows of packed | of small | decompress packed | small"
)


def file_of(rows: pl.DataFrame, effort: str) -> bytes:
    """Bytes of a packed file."""
    file = io.BytesIO()
    write_rows([rows[at : at + 1] for at in range(rows.height)], rows.schema, "text", file, effort)
    return file.getvalue()


def read(data: bytes) -> int:
    """Read a packed file to checked arrays; return its documents."""
    with PackedFile(Path("packed"), pa.py_buffer(data)) as file:
        column = [file.read(group, ["text"])["text"] for group in range(file.group_count)]
    partitions = [partition_at(one, row, cached=False) for one in column for row in range(len(one))]
    return sum(0 if partition is None else partition.document_count for partition in partitions)


def cells(packed: pl.Series) -> list[dict[str, Any]]:
    """The fields of each packed row."""
    return [{name: packed.struct.field(name)[row] for name in NAMES} for row in range(len(packed))]


def require_equal(rows: pl.Series, made: pl.Series) -> None:
    """Compare the fields of packed rows with those that coded rows decode to."""
    for plain, one in zip(cells(rows), cells(made), strict=True):
        back = coded.decoded(one) if one["version"] == coded.VERSION else one
        if not all(back[name].equals(plain[name]) for name in coded.CODED):
            raise SystemExit("coded rows differ from packed ones")


def fields(data: bytes) -> Counter[str]:
    """Compressed bytes of each field."""
    sizes: Counter[str] = Counter()
    metadata = pq.ParquetFile(pa.py_buffer(data)).metadata
    for group in range(metadata.num_row_groups):
        for at in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(at)
            sizes[chunk.path_in_schema.split(".")[1]] += chunk.total_compressed_size
    return sizes


def entropy(symbols: Any) -> float:
    """Zero-order entropy in bytes."""
    _, counts = np.unique(symbols, return_counts=True)
    return float((counts * np.log2(len(symbols) / counts)).sum() / 8) if len(symbols) else 0.0


def bits_of(data: Any) -> float:
    """Zero-order entropy in bits a value."""
    return 8 * entropy(data) / max(len(data), 1)


def made_of(rows: list[dict[str, Any]], name: str, empty: Any) -> Any:
    """All bytes of a field of strings."""
    data = empty.join(one for row in rows for one in row[name] if one is not None)
    return np.frombuffer(data.encode() if isinstance(data, str) else data, np.uint8)


def long_zstd(text: pl.Series) -> int | None:
    """Bytes of all texts under zstd 19 with a window of 128 MB; None without the command."""
    if shutil.which("zstd") is None:
        return None
    command = ["zstd", "-19", "--long=27", "-c", "-T1"]
    return len(subprocess.run(command, input="\n".join(text).encode(), capture_output=True, check=True).stdout)


def speeds(megabytes: float, repeat: int, clock: Callable[[], float], calls: list[Callable[[], object]]) -> list[str]:
    """Megabytes a second by call, which take turns."""
    taken: list[list[float]] = [[] for _ in calls]
    for _ in range(repeat):
        for call, own in zip(calls, taken, strict=True):
            start = clock()
            call()
            own.append(clock() - start)
    return [f"{megabytes / min(own):.0f}" for own in taken]


CODECS: list[tuple[Literal["zstd", "brotli"], int]] = [
    *(("zstd", level) for level in (3, LEVEL, 19)),
    *(("brotli", level) for level in (5, LEVEL, 11)),
]
"""How files row by row are compressed."""


def written(frame: pl.DataFrame, file: io.BytesIO, codec: Literal["zstd", "brotli"], level: int) -> None:
    """Write a frame to the start of a file."""
    file.seek(0)
    frame.write_parquet(file, compression=codec, compression_level=level)
    file.seek(0)


def measure_rows(text: pl.Series, repeat: int, clock: Callable[[], float]) -> list[str]:
    """Cells of one corpus' line of files row by row."""
    plain, _ = parquet(text.to_frame("text"))
    megabytes = int(text.str.len_bytes().sum()) / 1e6
    frame = tadoc.compress(text).to_frame("text")
    small = len(file_of(frame.tadoc.pack(), "small"))
    cells = [f"{megabytes:.1f}", f"{plain:,}", f"{small / plain:.3f}"]
    for codec, level in CODECS:
        file = io.BytesIO()
        calls: list[Callable[[], object]] = [
            partial(written, frame, file, codec, level),
            lambda file=file: pl.read_parquet(file),
        ]
        write_speed, load_speed = speeds(megabytes, repeat, clock, calls)
        if not pl.read_parquet(file).equals(frame):
            raise SystemExit("rows read differ from those written")
        size = len(file.getvalue())
        cells.append(f"{size / small:.3f} ({size / plain:.3f}), {write_speed}, {load_speed}")
    return [" | ".join(cells)]


def scanned(data: bytes) -> pl.LazyFrame:
    """Scan a packed file whose grammars are in no cache."""
    grammars.clear()
    payloads.clear()
    return tadoc.scan_packed(io.BytesIO(data))


def rows_of(data: bytes) -> pl.DataFrame:
    """Read a packed file to compressed rows."""
    return scanned(data).collect()


def text_of(data: bytes) -> pl.DataFrame:
    """Decompress a packed file."""
    return scanned(data).tadoc.decompress("text").collect()


def measure(text: pl.Series, given: argparse.Namespace) -> list[str]:
    """Cells of one corpus' line, then lines of its fields."""
    clock = time.perf_counter if given.by_the_clock else time.process_time
    repeat, by_field, with_long = given.repeat, given.fields, given.long
    plain, _ = parquet(text.to_frame("text"))
    megabytes = int(text.str.len_bytes().sum()) / 1e6
    cut = -(-len(text) // given.groups) if given.groups else None
    frame = tadoc.compress(text, rows_per_grammar=cut).to_frame("text")
    rows = frame.tadoc.pack()
    either = [file_of(rows, effort) for effort in EFFORTS]
    made = coded.coded(rows["text"])
    require_equal(rows["text"], made)
    decodable = [one for one in cells(made) if one["version"] == coded.VERSION]
    long = long_zstd(text) if with_long else None
    sizes = [long, *(parquet(frame, level)[0] for level in (LEVEL, 19)), *map(len, either)]
    line = [f"{megabytes:.1f}", f"{plain:,}", *("-" if size is None else f"{size / plain:.3f}" for size in sizes)]
    calls: list[Callable[[], object]] = [partial(file_of, rows, effort) for effort in EFFORTS]
    calls += [partial(read, file) for file in either]
    calls.append(lambda: [coded.decoded(one) for one in decodable])
    calls += [partial(text_of, file) for file in either]
    line += speeds(megabytes, repeat, clock, calls)
    with tadoc.Config(threads=given.threads):
        plans = [partial(call, file) for call in (rows_of, text_of) for file in either]
        line += speeds(megabytes, repeat, time.perf_counter, plans)
    lines = [" | ".join(line)]
    if by_field:
        before, after = map(fields, either)
        lines += [f"  {name} | {before[name] / plain:.4f} | {after[name] / plain:.4f}" for name in before]
        symbols = np.concatenate([one.grammar.symbols for one in tadoc.column.split(frame["text"])])
        roots = np.concatenate([one.roots for one in tadoc.column.split(frame["text"])])
        together = sum(after[name] for name in ("symbols", "roots", "rule_offsets"))
        apart = {"rules": symbols, "rows": roots, "rules and rows": np.concatenate([symbols, roots])}
        for name, values in apart.items():
            lines.append(f"  {name}: {len(values):,} symbols, zero-order entropy {bits_of(values):.2f} bits a symbol")
        lines.append(
            f"  coded, with the gaps within rules: {8 * together / max(len(symbols) + len(roots), 1):.2f} bits a symbol"
        )
        for name, empty in (("vocabulary", ""), ("gaps", b"")):
            data = made_of(cells(rows["text"]), name, empty)
            bits = (
                f"zero-order entropy {bits_of(data):.2f} bits a byte, {8 * after[name] / max(len(data), 1):.2f} coded"
            )
            lines.append(f"  {name}: {len(data):,} bytes, {bits}")
        lines.append(f"  versions: {dict(Counter(one['version'] for one in cells(made)))}")
    return lines


def main() -> None:
    """Print the table."""
    parser = corpora.arguments("packed files by field")
    parser.add_argument("--rows", action="store_true", help="files row by row, by codec and level")
    parser.add_argument("--fields", action="store_true", help="bytes by field")
    parser.add_argument("--long", action="store_true", help="also zstd -19 --long=27, which takes minutes")
    parser.add_argument("--by-the-clock", action="store_true", help="speeds by the clock, on all threads")
    parser.add_argument("--threads", type=int, default=2, help="threads of plans that are timed by the clock")
    parser.add_argument("--groups", type=int, help="number of grammars; by default as compress makes them")
    given = parser.parse_args()
    print(f"machine: {corpora.machine()}, PyArrow {pa.__version__}")
    if given.rows:
        print(
            "corpus | text MB | Parquet zstd 9, bytes | relative to it: small | then rows / small (relative), "
            "MB/s writing, MB/s reading: " + " | ".join(f"{codec} {level}" for codec, level in CODECS)
        )
    else:
        print(HEADER.format(threads=given.threads))
    names = given.corpora
    if not names and corpora.SHARED.is_dir():
        names = [str(path) for family in FAMILIES for path in sorted(Path(corpora.SHARED).glob(f"{family}_*.parquet"))]
    for one in corpora.names(names):
        name, text = corpora.load(one)
        if given.rows:
            clock = time.perf_counter if given.by_the_clock else time.process_time
            first, *others = measure_rows(text, given.repeat, clock)
        else:
            first, *others = measure(text, given)
        print("\n".join([f"{name} | {first}", *others]), flush=True)


if __name__ == "__main__":
    main()
