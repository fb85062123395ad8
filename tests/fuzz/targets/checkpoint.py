"""Folders of checkpoints, and the runs in them: the manifest edited as JSON, runs as arrays or bytes."""

from __future__ import annotations

import io
import json
import random
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from polars_tadoc.records import Checkpoint, Spill
from polars_tadoc.records.checkpoint import manifest_text
from polars_tadoc.records.records import Layout
from tests.fuzz.script import Script, edit_bytes, edit_json, edit_numbers, edit_strings
from tests.fuzz.target import Refused, Target, folder, may_refuse
from tests.fuzz.targets import records

QUESTION = {"call": "word_count", "options": {"n": 3}, "files": [["a.parquet", 7, 8, 2]]}
MANIFEST = "manifest.json"
LAYOUTS: list[Layout] = [records.LAYOUTS[0], records.LAYOUTS[2], records.LAYOUTS[3], records.LAYOUTS[4]]
Files = dict[str, bytes]


@cache
def sample(number: int) -> Files:
    """The files of a checkpoint of two runs."""
    path, layout = folder() / "sample", LAYOUTS[number]
    shutil.rmtree(path, ignore_errors=True)
    for partition in range(2):
        checkpoint = Checkpoint(path, QUESTION, "word_count")
        with Spill(layout, 1 << 20, "word_count", checkpoint) as spill:
            spill.add(records.sample(layout, partition))
            spill.finish(partition)
            for _ in spill.merged():
                pass
    return {file.name: file.read_bytes() for file in sorted(path.iterdir()) if file.is_file()}


def edited(script: Script, number: int) -> Files:
    """Make the files that a script asks for."""
    files = dict(sample(number))
    sound = set(files)
    for _ in range(script.number(3)):
        name = script.pick(list(files))
        kind = script.number(7)
        if kind == 0:
            del files[name]
            if not files:
                return files
        elif kind == 1:
            to = script.pick([*files, f"run-{script.number(12):06}.keys.parquet", "other"])
            files[to] = files[name]
            if name not in sound:
                sound.discard(to)
        elif kind == 2 or name not in sound:
            data = bytearray(files[name])
            edit_bytes(script, data)
            files[name] = bytes(data)
            sound.discard(name)
        elif not files[name].startswith(b"PAR1"):
            files[name] = _edited_manifest(script, files[name])
        else:
            files[name] = _edited_run(script, files[name])
            sound.discard(name)
    return files


def _edited_manifest(script: Script, content: bytes) -> bytes:
    """Edit the JSON; mostly under a checksum that is right again, so that what is behind it is reached."""
    said = edit_json(script, json.loads(content))
    sealed = isinstance(said, dict) and script.number(3) > 0
    return (manifest_text(said) if sealed else json.dumps(said)).encode("utf-8", "replace")


def _edited_run(script: Script, content: bytes) -> bytes:
    table = pq.read_table(pa.BufferReader(content))
    columns: dict[str, Any] = {}
    chosen = script.number(max(table.num_columns - 1, 0))
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        if place != chosen:
            columns[name] = column
        elif pa.types.is_integer(column.type):
            values = [value % (1 << 64) for value in column.to_pylist()]
            edit_numbers(script, values, 64)
            signed = [value - (1 << 64) if value >= 1 << 63 else value for value in values]
            columns[name] = pa.array(signed, pa.int64())
        else:
            strings = [value.encode() for value in column.to_pylist()]
            edit_strings(script, strings)
            columns[name] = pa.array(strings, pa.large_binary()).view(pa.large_string())
    shortest = min(map(len, columns.values()))
    metadata = dict(table.schema.metadata or {})
    if script.number(7) == 0 and b"tadoc.bits" in metadata:
        bits = bytearray(metadata[b"tadoc.bits"])
        edit_bytes(script, bits)
        metadata[b"tadoc.bits"] = bytes(bits).decode(errors="replace").encode()
    cut = {name: column.slice(0, shortest) for name, column in columns.items()}
    changed = pa.table(cut).replace_schema_metadata(metadata)
    file = io.BytesIO()
    pq.write_table(changed, file, row_group_size=script.pick([1 << 16, 3]), use_dictionary=False, write_statistics=True)
    return file.getvalue()


def check(data: bytes) -> bool:
    """Open a checkpoint, and give what it holds."""
    script = Script(data)
    number = script.number(len(LAYOUTS) - 1)
    path = folder() / "checkpoint"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, content in edited(script, number).items():
        (path / name).write_bytes(content)
    try:
        with may_refuse():
            _use(path, LAYOUTS[number], script)
    except Refused:
        return False
    except FileNotFoundError:  # a run that the manifest names
        return False
    except ValueError as error:
        if "is not a checkpoint: it has" in str(error) or "was made for another question" in str(error):
            return False
        raise
    return True


def _use(path: Path, layout: Layout, script: Script) -> None:
    room = script.pick([1 << 20, 1 << 16])
    checkpoint = Checkpoint(path, QUESTION, "word_count")
    try:
        with Spill(layout, room, "word_count", checkpoint) as spill:
            assert all(partition >= 0 for partition in spill.covered)
            spill.add(records.sample(layout, 2))
            spill.finish(2)
            for part in spill.merged(top=script.pick([None, 3])):
                part.words.validate(full=True)
                for column, kind in enumerate(layout.columns):
                    assert kind != "word" or not len(part) or int(part.keys[:, column].max()) < len(part.words)
    finally:
        checkpoint.close()


def seeds() -> list[bytes]:
    """Samples as they are, and scripts of any choices."""
    chance = random.Random(8)
    sound = [bytes([number, 0, room, top]) for number in range(len(LAYOUTS)) for room in (0, 1) for top in (0, 1)]
    return sound + [chance.randbytes(chance.choice([8, 20, 60])) for _ in range(60)]


TARGET = Target("checkpoint", check, seeds())
