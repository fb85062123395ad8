"""Folders of saved indexes: arrays, tables and the header edited under right checksums, or the bytes of any file."""

from __future__ import annotations

import io
import json
import random
import shutil
import zlib
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import polars_tadoc as tadoc
from polars_tadoc.index.store.folder import HEADER, _header_text
from tests.fuzz.script import Script, edit_bytes, edit_json, edit_numbers, edit_strings
from tests.fuzz.target import Refused, Target, folder, may_refuse

TEXTS = [" ".join(["a"] * (row % 4) + [f"w{row % 7}", "b c"] + ["d"] * (row % 3)) for row in range(150)]
WRITABLE = ("|u1", "<u2", "<u4", "<u8", "<i8")
Files = dict[str, bytes]


@cache
def samples() -> list[Files]:
    """The files of small indexes: both codecs, one segment or two, with and without what may be left out."""
    text = pl.Series("text", TEXTS).tadoc.compress()
    years = pl.DataFrame({"year": [row % 9 for row in range(len(TEXTS))]})
    labels = pl.Series([f"d{row}" for row in range(len(TEXTS))])
    full = tadoc.build_index(text[:130], id=labels[:130], metadata=years[:130], codec="pfordelta")
    full = full.append(text[130:], id=labels[130:], metadata=years[130:]).delete(["d3", "d140"])
    lower = tadoc.build_index(text[:20], codec="rice", lowercase=True, stopwords=["b"], store=False)
    kept = tadoc.build_index(text[:3], codec="rice", normalize=pl.element().str.to_uppercase())
    found = []
    for number, index in enumerate((full, lower, kept)):
        path = folder() / f"sample-{number}"
        index.save(path)
        found.append({file.name: file.read_bytes() for file in sorted(path.iterdir())})
        shutil.rmtree(path)
    return found


def edited(script: Script) -> Files:
    """Make the files that a script asks for."""
    files = dict(script.pick(samples()))
    header = json.loads(files[HEADER])
    header.pop("crc32")
    seals = script.number(15) > 0
    sound = set(files)
    for _ in range(script.number(3)):
        name = script.pick([HEADER, HEADER, *header["files"]])
        if name == HEADER:
            changed = edit_json(script, header)
            if isinstance(changed, dict) and isinstance(changed.get("files"), dict) and changed["files"]:
                header = changed
            continue
        if name not in files:
            continue
        known = header["files"][name]
        files[name] = _edited_file(script, name, files[name], known if name in sound else None)
        sound.discard(name)
        if seals and isinstance(known, dict):
            header["files"] = {
                **header["files"],
                name: {**known, "bytes": len(files[name]), "crc32": zlib.crc32(files[name])},
            }
    text = bytearray(_header_text(header), "utf-8")
    if script.number(15) == 15:
        edit_bytes(script, text)
    return {**files, HEADER: bytes(text)}


def _edited_file(script: Script, name: str, content: bytes, known: Any) -> bytes:
    """Edit what a file holds, or its bytes: these where it was edited before, or the header says nothing of it."""
    if script.number(3) == 0 or not isinstance(known, dict):
        data = bytearray(content)
        edit_bytes(script, data)
        return bytes(data)
    if name.endswith(".npy"):
        return _edited_array(script, content, known)
    table = pq.read_table(pa.BufferReader(content)) if name.endswith(".parquet") else pl.read_ipc(content).to_arrow()
    at = script.number(table.num_columns - 1)
    column = table.column(at)
    values = column.to_pylist()
    if pa.types.is_large_string(column.type):
        strings = [value.encode() for value in values]
        edit_strings(script, strings)
        changed = pa.array(strings, pa.large_binary()).view(pa.large_string())
    elif pa.types.is_integer(column.type):
        numbers = [value % (1 << 32) for value in values]
        edit_numbers(script, numbers, 32)
        changed = pa.array(numbers, pa.int64())
    else:
        changed = column.combine_chunks().take(pa.array([script.number(len(values) - 1) for _ in values[1:]]))
    if len(changed) != len(values) or script.number(1):
        table = pa.table({table.column_names[at]: changed})
    else:
        table = table.set_column(at, table.column_names[at], changed)
    file = io.BytesIO()
    if name.endswith(".parquet"):
        pq.write_table(table, file)
    else:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    return file.getvalue()


def _edited_array(script: Script, content: bytes, known: dict[str, Any]) -> bytes:
    dtype = np.dtype(known["dtype"]) if known.get("dtype") in WRITABLE else np.dtype("|u1")
    start = len(content) - len(content) // dtype.itemsize * dtype.itemsize
    start = max(start, 128)
    numbers = np.frombuffer(content[start:], dtype).tolist() if (len(content) - start) % dtype.itemsize == 0 else []
    bits = 8 * dtype.itemsize
    numbers = [number % (1 << bits) for number in numbers]
    edit_numbers(script, numbers, bits)
    file = io.BytesIO()
    unsigned = np.array(numbers, f"<u{dtype.itemsize}" if dtype.itemsize > 1 else "|u1")
    np.save(file, unsigned.view(dtype))
    if script.number(7):
        known["length"] = len(numbers)
    return file.getvalue()


def check(data: bytes) -> bool:
    """Load an index, ask it, change it, and save it."""
    script = Script(data)
    files = edited(script)
    path = folder() / "index"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, content in files.items():
        (path / name).write_bytes(content)
    try:
        with may_refuse():
            index = tadoc.load_index(path, verify=(False, True, "all")[script.number(2)], mmap=bool(script.number(1)))
    except Refused:
        return False
    except ValueError as error:
        if "pass the same expression, load_index(path, normalize=…)" in str(error):
            return False
        raise
    for kind in {script.number(4) for _ in range(2)}:
        try:
            with may_refuse():
                _use(index, kind)
        except Refused:
            continue
    return True


def _use(index: tadoc.Index, kind: int) -> None:
    if kind == 0:
        found = index.search(["a", "b c", "w3 w3 d", "zz", None], 20)
        assert found["id"].dtype == index.ids.dtype
        assert found["score"].is_finite().all()
    elif kind == 1:
        index.search(["a b"], 500, mode="and", scoring="bm25+")
        if index.metadata is not None and index.metadata.schema.get("year") == pl.Int64:
            index.search("a", filter=pl.col("year") > 2)
    elif kind == 2:
        deleted = index.delete(index.ids[:1])
        assert deleted.documents <= index.documents
        deleted.search("a")
    elif kind == 3:
        again = folder() / "again"
        index.compact().save(again, overwrite=True)
        assert tadoc.load_index(again).documents == index.documents
    else:
        repr(index)
        if index.stored.text is not None:
            index.snippets(index.search("a b", 3), "a b")


def seeds() -> list[bytes]:
    """The samples as they are, and scripts of any choices."""
    chance = random.Random(3)
    sound = [bytes([number, 1, 0, 0, 1, 1, *uses]) for number in range(3) for uses in ((0, 1), (2, 3), (4, 4))]
    return sound + [chance.randbytes(chance.choice([8, 20, 60])) for _ in range(60)]


TARGET = Target("index_folder", check, seeds())
