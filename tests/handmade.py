"""Grammars, payloads and columns put together by hand, well-formed or not."""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import polars_tadoc as tadoc
from polars_tadoc.model import payload
from polars_tadoc.model.grammar import ARROW_TYPE

SEPARATOR = 0xFFFFFFFF


def words(count: int) -> list[str]:
    return [f"w{i}" for i in range(count)]


def grammar(
    vocabulary: Sequence[str],
    bodies: Sequence[Sequence[int]] = (),
    level_offsets: Sequence[int] | None = None,
    gaps: Sequence[str] = (),
    predicted_gaps: Sequence[int] | None = None,
) -> tadoc.Grammar:
    """A grammar; without levels each rule has its own, without predictions every gap is expected to be a space."""
    keys = len(vocabulary) + sum(len(body) for body in bodies)
    return tadoc.Grammar(
        vocabulary=pa.array(vocabulary, pa.large_string()),
        rule_offsets=np.cumsum([0, *(len(body) for body in bodies)]).astype(np.uint32),
        symbols=np.array([s for body in bodies for s in body], np.uint32),
        level_offsets=np.array(range(len(bodies) + 1) if level_offsets is None else level_offsets, np.uint32),
        gap_vocabulary=pa.array(gaps, pa.large_string()),
        predicted_gaps=np.array([0] * keys if predicted_gaps is None else predicted_gaps, np.uint32),
        tokenizer="words",
    )


def column(
    grammar: tadoc.Grammar | str,
    rows: Sequence[Sequence[int | None] | None],
    gaps: Sequence[bytes | None] | None = None,
) -> pl.Series:
    """A column over one grammar (or a ready payload)."""
    encoded = grammar if isinstance(grammar, str) else payload.encode(grammar)
    fields = [
        pl.Series("grammar", [encoded] * len(rows), tadoc.STORAGE.fields[0].dtype),
        pl.Series("symbols", rows, pl.List(pl.UInt32)),
        pl.Series("gaps", gaps or [None] * len(rows), pl.Binary),
    ]
    return tadoc.as_text(pl.DataFrame(fields).to_struct("text"))


def struct(**changes: Any) -> pa.StructArray:
    """The Arrow form of a small valid grammar (words a and b; rule 2 = a b, rule 3 = 2 2) with fields changed."""
    cell: dict[str, Any] = {
        "vocabulary": ["a", "b"],
        "rule_offsets": [0, 2, 4],
        "symbols": [0, 1, 2, 2],
        "level_offsets": [0, 1, 2],
        "gap_vocabulary": [", "],
        "predicted_gaps": [0, 1, 0, 0, 0, 1],
        "tokenizer": "words",
        "version": 2,
    }
    return pa.array([{**cell, **changes}], ARROW_TYPE)


def stream(**changes: Any) -> bytes:
    """A frame before zstd, section by section, of the grammar of :func:`struct`, with sections or counts changed."""

    def planes(numbers: Sequence[int]) -> bytes:
        return b"".join(bytes(number >> shift & 0xFF for number in numbers) for shift in (0, 8, 16, 24))

    sections: dict[str, Any] = {
        "tokenizer": b"words",
        "shared_words": [0, 0],
        "word_lengths": [1, 1],
        "word_bytes": b"ab",
        "shared_gaps": [0],
        "gap_lengths": [2],
        "gap_bytes": b", ",
        "levels": [1, 1],
        "rules": [2, 2],
        "first_symbols": [0, 4],  # 0, then 2 more
        "other_symbols": [1, 2],
        "word_gaps": [0, 1],
        "body_gaps": [1, 2],  # 0 where 1 is expected; 1 where 0 is
        **changes,
    }
    counts = {
        "words": len(sections["word_lengths"]),
        "word_bytes": len(sections["word_bytes"]),
        "gaps": len(sections["gap_lengths"]),
        "gap_bytes": len(sections["gap_bytes"]),
        "tokenizer": len(sections["tokenizer"]),
        "levels": len(sections["levels"]),
        "rules": len(sections["rules"]),
        "symbols": len(sections["first_symbols"]) + len(sections["other_symbols"]),
        **sections.pop("counts", {}),
    }
    return b"".join(
        [
            *(count.to_bytes(8, "little") for count in counts.values()),
            *(
                part if isinstance(part, bytes) else bytes(part) if name.startswith("shared") else planes(part)
                for name, part in sections.items()
            ),
        ]
    )


def seal(frame: bytes, size: int | None = None) -> str:
    """A payload of any bytes, under a digest that is right."""
    packed = pa.Codec("zstd").compress(frame, asbytes=True)
    digest = hashlib.blake2b(packed, digest_size=16).hexdigest()
    size = len(frame) if size is None else size
    return f"TADOC2{size:016x}{digest}" + binascii.b2a_base64(packed, newline=False).decode()


def flatten(rows: Sequence[Sequence[int]]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    return np.array([s for row in rows for s in (*row, SEPARATOR)], np.uint32)


def mark_ends(
    sequence: np.ndarray[Any, np.dtype[np.uint32]], ends: Sequence[Sequence[int]]
) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Mark the words of flattened rows before line ends, whose numbers between words are given, as kernels do."""
    marks = np.array([0, 1 << 31, 3 << 30], np.uint32)
    at = 0
    for own, row in zip(ends, unflatten(sequence), strict=True):
        for k, end in enumerate(own):
            sequence[at + k] |= marks[min(end, 2)]
        at += len(row) + 1
    return sequence


def unflatten(sequence: np.ndarray[Any, np.dtype[np.uint32]]) -> list[list[int]]:
    rows: list[list[int]] = [[]]
    for symbol in sequence.tolist():
        if symbol == SEPARATOR:
            rows.append([])
        else:
            rows[-1].append(symbol)
    assert not rows[-1], "the sequence does not end with a separator"
    return rows[:-1]


def cut(values: Any, offsets: Any) -> list[list[int]]:
    """Lists of a values array under offsets."""
    return [values[a:b].tolist() for a, b in pairwise(offsets)]
