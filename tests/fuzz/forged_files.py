"""Files whose checksums are computed again behind damage: what is behind the checksums must bear it, too."""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from polars_tadoc.dictionary import file as container
from polars_tadoc.index.store import folder as store
from polars_tadoc.model import payload
from polars_tadoc.records.checkpoint import MANIFEST, manifest_text
from tests import handmade
from tests.fuzz.mutation_kind import Files, Use

HEADER, ARRAY = "header.json", ".npy"
Samples = list[tuple[Files, list[Use]]]


def _parsed(data: bytes | None) -> dict[str, Any] | None:
    try:
        found = json.loads(data or b"")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


# Payloads


def opened_payloads(samples: Samples) -> Samples:
    """Return the streams within payloads."""
    return [
        ({"": b"".join(part.tobytes() for part in payload.pack(payload.decode(files[""].decode())))}, uses)
        for files, uses in samples
    ]


def close_payload(files: Files, _before: Files) -> Files:
    """Make a payload of a stream."""
    return {"": handmade.seal(files[""]).encode()} if files else {}


# Saved indexes


def close_index(files: Files, before: Files) -> Files:
    """Tell the header of the files that were changed."""
    header = _parsed(files.get(store.HEADER))
    if header is None:
        return files
    header.pop("crc32", None)
    known, made = header.get("files"), dict(files)
    for name, about in known.items() if isinstance(known, dict) else ():
        if name not in files or not isinstance(about, dict) or files[name] == before.get(name):
            continue
        if name.endswith(ARRAY):
            made[name] = _array(files[name], about)
        about |= {"bytes": len(made[name]), "crc32": zlib.crc32(made[name])}
    made[store.HEADER] = store._header_text(header).encode()
    return made


def _array(data: bytes, about: dict[str, Any]) -> bytes:
    """Make the start of an array's file fit its size."""
    if about.get("dtype") not in store._DTYPES:
        return data
    dtype = np.dtype(about["dtype"])
    start = len(store._array_header(dtype, 1))
    about["length"] = max(0, len(data) - start) // dtype.itemsize
    return store._array_header(dtype, about["length"]) + data[start : start + about["length"] * dtype.itemsize]


# Files of arrays: dictionaries, sets of passages


def opened_arrays(samples: Samples) -> Samples:
    """Return the header and the arrays of files, each as a file of its own."""
    return [(_opened_arrays(files[""]), uses) for files, uses in samples]


def _opened_arrays(data: bytes) -> Files:
    magic, version, _, size = container._START.unpack(data[: container._START.size])
    header = json.loads(data[container._START.size : size])
    sizes = [np.dtype(one["dtype"]).itemsize * one["length"] for one in header["arrays"]]
    edges = pairwise(accumulate((own + -own % container.ALIGNMENT for own in sizes), initial=size))
    made = {HEADER: json.dumps(header).encode(), "start": struct.pack("<8sI", magic, version)}
    for one, own, (first, _) in zip(header["arrays"], sizes, edges, strict=True):
        made[one["name"] + ARRAY] = data[first : first + own]
    return made


def close_arrays(files: Files, before: Files) -> Files:
    """Put a file together: lengths and checksums of arrays are those of what was changed."""
    text, body = files.get(HEADER, b""), b""
    header = _parsed(text)
    listed = header.get("arrays") if header else None
    for one in listed if isinstance(listed, list) else ():
        name = f"{one.get('name')}{ARRAY}" if isinstance(one, dict) else ""
        data = files.get(name, b"")
        if isinstance(one, dict) and data != before.get(name) and one.get("dtype") in container._DTYPES:
            one["length"] = len(data) // np.dtype(one["dtype"]).itemsize
            data = data[: one["length"] * np.dtype(one["dtype"]).itemsize]
        data += bytes(-len(data) % container.ALIGNMENT)
        if isinstance(one, dict):
            one["crc32"] = zlib.crc32(data)
        body += data
    if header is not None:
        text = json.dumps(header).encode()
    text += b" " * (-(container._START.size + len(text)) % container.ALIGNMENT)
    magic, version = struct.unpack("<8sI", files.get("start", b"")[:12].ljust(12, b"\0"))
    size = container._START.size + len(text)
    start = container._START.pack(magic, version, container._checksum(version, size, text), size)
    return {"": start + text + body}


# Parquet without checksums


WAYS: list[dict[str, Any]] = [
    {"compression": "none", "use_dictionary": False},
    {"compression": "zstd", "data_page_version": "2.0"},
    {"compression": "none", "data_page_version": "2.0", "use_dictionary": False, "column_encoding": "delta"},
]
"""How files are written again: such that damage is in values, in references to a dictionary, in differences."""


def rewritten(content: bytes, rows: int, way: dict[str, Any]) -> bytes:
    """Write a Parquet file again without any checksum."""
    table = pq.read_table(pa.BufferReader(content))
    options = dict(way)
    if options.pop("column_encoding", None):
        file = pq.ParquetFile(pa.BufferReader(content))
        leaves = [file.schema.column(leaf) for leaf in range(len(file.schema))]
        encodings = {"INT32": "DELTA_BINARY_PACKED", "INT64": "DELTA_BINARY_PACKED", "BYTE_ARRAY": "DELTA_BYTE_ARRAY"}
        categories = {one.name for one in table.schema if "dictionary" in str(one.type)}  # Arrow reads no differences
        known = {
            leaf.path: encodings[leaf.physical_type]
            for leaf in leaves
            if leaf.physical_type in encodings and leaf.path.split(".")[0] not in categories
        }
        options["column_encoding"] = known
    made = io.BytesIO()
    pq.write_table(table, made, row_group_size=rows, **options)
    return made.getvalue()


def without_checksums(samples: Samples, rows: int) -> Samples:
    """Write Parquet files again, in each of the ways."""
    return [
        ({name: rewritten(data, rows, way) if data[:4] == b"PAR1" else data for name, data in files.items()}, uses)
        for files, uses in samples
        for way in WAYS
    ]


def close_checkpoint(files: Files, before: Files) -> Files:
    """Tell the manifest of the files that were changed."""
    said = _parsed(files.get(MANIFEST))
    if said is None:
        return files
    runs = said.get("runs")
    for run in runs.values() if isinstance(runs, dict) else ():
        for name in run if isinstance(run, dict) else ():
            if name in files and files[name] != before.get(name):
                run[name] = [len(files[name]), zlib.crc32(files[name])]
    return {**files, MANIFEST: manifest_text(said).encode("utf-8", "replace")}


def closed(samples: Samples, close: Callable[[Files, Files], Files]) -> Samples:
    """Close samples that were written again."""
    return [(close(files, {}), uses) for files, uses in samples]
