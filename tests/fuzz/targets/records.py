"""Records as they are sent between processes: what the Arrow stream holds edited, or its bytes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa

from polars_tadoc.records.packed_records import merge_records
from polars_tadoc.records.records import Layout, Records, decode, encode, split
from tests.fuzz.script import Script, edit_bytes, edit_numbers, edit_strings
from tests.fuzz.target import Refused, Target, may_refuse

LAYOUTS = [
    Layout(("word",), 1, by_count=True),
    Layout(("word", "row"), 1, counted=False),
    Layout(("word",) * 3, 3, by_count=True),
    Layout(("word", "word", "row"), 2),
    Layout(("row", "word"), 1, documents=True),
    Layout(("row", "query"), 1, counted=False),
]
WORDS = ["", "a", "ab", "b", "z" * 20, "é", "日本"]
PARTS = {"words": 0, "keys": 32, "counts": 64, "rows": 32, "lengths": 64}


def sample(layout: Layout, shift: int = 0) -> Records:
    """Sound records of a layout."""
    most = {"word": len(WORDS), "row": 5, "query": 3}
    numbers = [place + shift for place in range(12)]
    keys = sorted({tuple((number + at) % most[kind] for at, kind in enumerate(layout.columns)) for number in numbers})
    array = np.array(keys, np.uint32)
    rows = np.unique(array[:, 0]) if layout.documents else None
    return Records(
        pa.array(WORDS, pa.large_string()),
        array,
        np.arange(1, len(keys) + 1, dtype=np.uint64) if layout.counted else None,
        rows,
        None if rows is None else rows.astype(np.uint64) + np.uint64(1),
    )


def edited(script: Script, layout: Layout) -> bytes:
    """Make the bytes that a script asks for."""
    sound = encode(sample(layout))
    if script.number(3) == 0:
        data = bytearray(sound)
        while script.left > 8:
            edit_bytes(script, data)
        return bytes(data)
    with pa.ipc.open_stream(sound) as reader:
        schema, batch = reader.schema, reader.read_next_batch()
    cells: dict[str, Any] = {name: batch.column(place)[0].as_py() for place, name in enumerate(PARTS)}
    cells["words"] = [word.encode() for word in cells["words"]]
    for _ in range(script.number(3)):
        name = script.pick(list(PARTS))
        values = cells[name]
        if values is None or script.number(15) == 0:
            others = [b"a", b"b"] if name == "words" else [1, 2]
            cells[name] = others if values is None else None
        elif name == "words":
            edit_strings(script, values)
        else:
            edit_numbers(script, values, PARTS[name])
    kinds = dict(zip(PARTS, schema.types, strict=True))
    arrays = [
        pa.array([cells[name]], pa.large_list(pa.large_binary())).view(kinds[name])
        if name == "words"
        else pa.array([cells[name]], kinds[name])
        for name in PARTS
    ]
    if script.number(15) == 0:
        schema = schema.with_metadata({**(schema.metadata or {}), b"columns": str(script.number(5)).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for _ in range(script.pick([1, 1, 1, 0, 2])):
            writer.write_batch(pa.record_batch(arrays, schema=schema))
    return bytes(sink.getvalue())


def check(data: bytes) -> bool:
    """Decode records; what is accepted can be written, split and merged."""
    script = Script(data)
    layout = script.pick(LAYOUTS)
    try:
        with may_refuse():
            records = decode(layout, edited(script, layout))
    except Refused:
        return False
    assert decode(layout, encode(records)).keys.tolist() == records.keys.tolist()
    shards = split(layout, records, 3)
    assert sum(map(len, shards)) == len(records)
    _same(layout, merge_records(layout, shards), merge_records(layout, [records]))
    merge_records(layout, [records, sample(layout, 1)])
    return True


def _same(layout: Layout, one: Records, other: Records) -> None:
    """Hold two to the same records, whatever words they have besides."""
    assert _named(layout, one) == _named(layout, other)


def _named(layout: Layout, records: Records) -> list[tuple[Any, ...]]:
    words = records.words.to_pylist()
    counts = [None] * len(records) if records.counts is None else records.counts.tolist()
    return [
        (*(words[n] if kind == "word" else n for n, kind in zip(key, layout.columns, strict=True)), count)
        for key, count in zip(records.keys.tolist(), counts, strict=True)
    ]


def seeds() -> list[bytes]:
    """Each layout's sample as it is, and scripts of any choices."""
    chance = random.Random(7)
    sound = [bytes([number, 1, 0, 1]) for number in range(len(LAYOUTS))]
    return sound + [chance.randbytes(chance.choice([8, 20, 60])) for _ in range(40)]


TARGET = Target("records", check, seeds())
