"""Parquet files of packed rows: their fields edited before they are written, or their bytes afterwards."""

from __future__ import annotations

import io
import random
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import polars_tadoc as tadoc
from tests.fuzz import packed
from tests.fuzz.columns import hold
from tests.fuzz.script import Script, edit_bytes
from tests.fuzz.target import Refused, Target, folder, may_refuse

QUESTIONS: list[Any] = [
    lambda lf: lf,
    lambda lf: lf.filter(pl.col("year") > 3),
    lambda lf: lf.filter(pl.col("name") == "n5"),
    lambda lf: lf.head(3),
    lambda lf: lf.select("year", "name"),
    lambda lf: lf.select(pl.len()),
    lambda lf: lf.tadoc.word_count("text"),
    lambda lf: lf.tadoc.sequence_count("text", n=2, memory_limit="1GB"),
    lambda lf: lf.tadoc.term_vector("text", id="name"),
    lambda lf: lf.filter(pl.col("year").is_null()).tadoc.inverted_index("text"),
    lambda lf: lf.filter(pl.col("text").tadoc.contains_phrase("the cat")),
]


def written(script: Script) -> bytes:
    """Write the file that a script asks for."""
    are_bytes_edited = bool(script.number(1))
    table = packed.edited(script, are_texts=False)
    file = io.BytesIO()
    pq.write_table(
        table,
        file,
        row_group_size=script.pick([1, 2, 100]),
        compression=script.pick(["none", "zstd", "snappy"]),
        use_dictionary=bool(script.number(1)),
        data_page_version=script.pick(["1.0", "2.0"]),
        write_statistics=bool(script.number(1)),
        store_schema=bool(script.number(1)),
    )
    data = bytearray(file.getvalue())
    while are_bytes_edited and script.left > 8:
        if script.number(1):
            tail = bytearray(data[-(1 << 12) :])  # most of what is parsed stands there
            edit_bytes(script, tail)
            data[-(1 << 12) :] = tail
        else:
            edit_bytes(script, data)
    return bytes(data)


def check(data: bytes) -> bool:
    """Scan a file, and ask it something."""
    script = Script(data)
    path = folder() / "packed.parquet"
    path.write_bytes(written(script))
    try:
        with may_refuse():
            lf = tadoc.scan_packed(path)
            answer = script.pick(QUESTIONS)(lf).collect()
    except Refused:
        return False
    for column in answer.iter_columns():
        if column.dtype == tadoc.DTYPE:
            hold(column, script)
        elif column.dtype == pl.String:
            strings: pa.Array = column.to_arrow(compat_level=pl.CompatLevel.oldest())
            strings.validate(full=True)
    return True


def seeds() -> list[bytes]:
    """Sound files, and scripts of any choices."""
    chance = random.Random(2)
    sound = [bytes([0, 0, a, b, c, c, d, d, question]) for question in range(len(QUESTIONS)) for a, b, c, d in _WAYS]
    return sound + [chance.randbytes(chance.choice([12, 30, 80])) for _ in range(60)]


_WAYS = [(0, 0, 0, 0), (1, 1, 1, 1)]


TARGET = Target("packed_files", check, seeds())
