from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.analytics.records import Layout, Records, merge_records
from polars_tadoc.kernels.cpu import packed_keys
from polars_tadoc.kernels.cpu.by_count import by_falling_count
from polars_tadoc.kernels.cpu.merge_words import merge_words
from polars_tadoc.kernels.cpu.packed_keys import KeyForm, merge_sorted, pack, repack, unpack
from polars_tadoc.spill import Spill, merging, runs, spill, words

LAYOUTS = {
    "word_count": Layout(("word",), 1, by_count=True),
    "sort": Layout(("word",), 1),
    "inverted_index": Layout(("word", "row"), 1, counted=False),
    "term_vector": Layout(("row", "word"), 1),
    "sequence_count": Layout(("word",) * 3, 3, by_count=True),
    "long_sequences": Layout(("word",) * 40, 40, by_count=True),
    "ranked_inverted_index": Layout((*("word",) * 2, "row"), 2),
    "long_ranked": Layout((*("word",) * 40, "row"), 40),
    "cooccurrence": Layout(("word", "word"), 2, by_count=True),
    "weights": Layout(("row", "word"), 1, documents=True),
    "twig_filter": Layout(("row", "query"), 1, counted=False),
    "postings": Layout(("word", "row"), 2),
}
WORDS = ["", "a", "\0", "a\0", "ab", "abcdefgh", "abcdefghi", "z", "é", "日本", "𝄞", "\U0010ffff", "\ue000", "x" * 300]


def records(layout: Layout, seed: int, size: int, vocabulary: Sequence[str], rows: range) -> Records:
    """Make records of random keys."""
    random.seed(seed)
    own = sorted(set(random.choices(vocabulary, k=len(vocabulary))) if vocabulary else [])
    most = {"word": range(len(own)), "row": rows, "query": range(5)}
    keys = set()
    if all(len(most[kind]) for kind in layout.columns):
        keys = {tuple(random.choice(most[kind]) for kind in layout.columns) for _ in range(size)}
    there = sorted({*random.sample(rows, len(rows) // 2), *(key[0] for key in keys)} if layout.documents else [])
    counts = [random.choice([1, 1, 1, 2, 2, 3, 5000, 1 << 40]) for _ in keys]
    return Records(
        pa.array(own, pa.large_string()),
        np.array(sorted(keys), np.uint32).reshape(len(keys), len(layout.columns)),
        np.array(counts, np.uint64) if layout.counted else None,
        np.array(there, np.uint32) if layout.documents else None,
        np.array([row % 7 + 1 for row in there], np.uint64) if layout.documents else None,
    )


def named(layout: Layout, part: Records) -> list[tuple[object, ...]]:
    """Keys with words for numbers, and counts."""
    own = part.words.to_pylist()
    counts = [None] * len(part) if part.counts is None else part.counts.tolist()
    return [
        (*(own[n] if kind == "word" else n for n, kind in zip(key, layout.columns, strict=True)), count)
        for key, count in zip(part.keys.tolist(), counts, strict=True)
    ]


def expected(layout: Layout, parts: Sequence[Records], min_count: int = 1, top: int | None = None) -> list[object]:
    """What spilling is to give."""
    rows = named(layout, merge_records(layout, parts))
    if layout.group == len(layout.columns):
        rows = [row for row in rows if row[-1] is None or row[-1] >= min_count]  # type: ignore[operator]
    return sorted(rows, key=lambda row: -row[-1])[:top] if layout.by_count else rows  # type: ignore[operator]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Small groups, few open runs, and a folder of its own."""
    monkeypatch.setattr(runs, "GROUP", 8)
    monkeypatch.setattr("polars_tadoc.spill.order.GROUP", 8)
    monkeypatch.setattr(words, "GROUP", 4)
    monkeypatch.setattr(words, "GROUP_BYTES", 40)
    monkeypatch.setattr(spill, "MOST_RUNS", 5)
    tadoc.Config.set(spill_folder=str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("room", [4_000, 40_000, 1 << 30])
def test_gives_what_merging_in_memory_gives(name: str, room: int, tiny: Path) -> None:
    layout = LAYOUTS[name]
    vocabulary = [*WORDS, *map(str, range(40))]
    parts = [records(layout, seed, 60, vocabulary, range(20 * seed, 20 * seed + 20)) for seed in range(12)]
    with Spill(layout, room) as spilled:
        for part in parts:
            spilled.add(part)
        assert list(tiny.iterdir()) or room > 4_000
        assert not list(tiny.iterdir()) or room < 1 << 30
        found = list(spilled.merged(batch=10))
    assert [row for part in found for row in named(layout, part)] == expected(layout, parts)
    assert list(tiny.iterdir()) == []
    if layout.documents:
        whole = merge_records(layout, parts)
        assert np.array_equal(np.concatenate([part.rows for part in found]), whole.rows)
        assert np.array_equal(np.concatenate([part.lengths for part in found]), whole.lengths)
        assert all(set(part.keys[:, 0]) <= set(part.rows.tolist()) for part in found)
    groups = [{tuple(key[: layout.group]) for key in named(layout, part)} for part in found]
    assert sum(map(len, groups)) == len(set().union(*groups))  # none is torn apart
