from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.kernels.host.records import packed_keys
from polars_tadoc.kernels.host.records.by_count import by_falling_count
from polars_tadoc.kernels.host.records.merge_words import merge_words
from polars_tadoc.kernels.host.records.packed_keys import KeyForm, merge_sorted, pack, repack, unpack
from polars_tadoc.records import Spill, SpillFolder, spill
from polars_tadoc.records import count_order as order
from polars_tadoc.records import run_merge as merging
from polars_tadoc.records import word_runs as words
from polars_tadoc.records.packed_records import merge_records
from polars_tadoc.records.records import Layout, Records

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
    monkeypatch.setattr(merging, "MIN_GROUP", 8)
    monkeypatch.setattr(order, "GROUP", 8)
    monkeypatch.setattr(words, "GROUP", 4)
    monkeypatch.setattr(words, "GROUP_BYTES", 40)
    monkeypatch.setattr(spill, "MAX_RUNS", 5)
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


@pytest.mark.parametrize("name", ["word_count", "sequence_count", "long_sequences", "cooccurrence", "sort", "postings"])
@pytest.mark.parametrize("top", [None, 0, 1, 37, 10_000])
@pytest.mark.parametrize("room", [4_000, 1 << 30])
def test_applies_limits(name: str, top: int | None, room: int, tiny: Path) -> None:
    layout = LAYOUTS[name]
    parts = [records(layout, seed, 80, WORDS, range(20)) for seed in range(12)]
    with Spill(layout, room) as spilled:
        for part in parts:
            spilled.add(part)
        found = list(spilled.merged(min_count=3, top=top, batch=10))
    assert [row for part in found for row in named(layout, part)] == expected(layout, parts, 3, top)


@pytest.mark.parametrize("name", LAYOUTS)
def test_holds_nothing_at_all(name: str, tiny: Path) -> None:
    layout = LAYOUTS[name]
    with Spill(layout, 1 << 20) as spilled:
        assert list(spilled.merged()) == []
    empty = records(layout, 0, 0, [], range(4))
    with Spill(layout, 10) as spilled:
        for _ in range(3 if not layout.documents else 1):
            spilled.add(empty)
        found = list(spilled.merged())
    assert sum(map(len, found)) == 0
    if layout.documents:
        assert found[0].rows is not None
        assert found[0].rows.tolist() == empty.rows.tolist()  # type: ignore[union-attr]


@settings(max_examples=25)
@given(st.data())
def test_any_records_come_back(data: st.DataObject) -> None:
    layout = data.draw(st.sampled_from(list(LAYOUTS.values())))
    parts = [
        records(layout, seed, data.draw(st.integers(0, 40)), WORDS, range(10 * place, 10 * place + 10))
        for place, seed in enumerate(data.draw(st.lists(st.integers(0, 1 << 30), max_size=6)))
    ]
    min_count, top = data.draw(st.sampled_from([1, 2, 5001])), data.draw(st.sampled_from([None, 3]))
    with Spill(layout, data.draw(st.integers(1, 20_000))) as spilled:
        for part in parts:
            spilled.add(part)
        found = list(spilled.merged(min_count, top, data.draw(st.integers(1, 100))))
    assert [row for part in found for row in named(layout, part)] == expected(layout, parts, min_count, top)


def test_a_group_larger_than_memory_is_named(tiny: Path) -> None:
    layout = LAYOUTS["ranked_inverted_index"]
    part = Records(
        pa.array(["a", "b"], pa.large_string()),
        np.array([[0, 1, row] for row in range(2_000)], np.uint32),
        np.ones(2_000, np.uint64),
    )
    with Spill(layout, 4_000, "ranked_inverted_index") as spilled:
        spilled.add(part)
        with pytest.raises(tadoc.errors.LimitExceededError, match=r"ranked_inverted_index: .* raise memory_limit"):
            list(spilled.merged())


def test_words_are_shared_while_they_fit(tiny: Path) -> None:
    layout = LAYOUTS["word_count"]
    parts = [records(layout, seed, 400, [f"{seed}:{n}" for n in range(400)], range(1)) for seed in range(12)]
    for room, shared in [(8_000, False), (400_000, True)]:
        with Spill(layout, room) as spilled:
            for part in parts:
                spilled.add(part)
            found = list(spilled.merged(batch=100))
        assert [row for part in found for row in named(layout, part)] == expected(layout, parts)
        assert len(found) > 1
        assert all((part.words is found[0].words) == shared for part in found[1:])
        assert all((part.vocabulary is found[0].vocabulary) == shared for part in found[1:])


def test_runs_are_written_again_where_their_numbers_of_words_do_not_fit(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, again = LAYOUTS["cooccurrence"], []
    monkeypatch.setattr(merging, "WORDS_SHARE", 1000)
    rewritten = merging.Merging._rewritten
    monkeypatch.setattr(merging.Merging, "_rewritten", lambda *given: again.append(given) or rewritten(*given))
    parts = [records(layout, seed, 200, [f"{n % 7}{seed}:{n}" for n in range(50)], range(1)) for seed in range(4)]
    with Spill(layout, 8_000) as spilled:
        for part in parts:
            spilled.add(part)
        found = list(spilled.merged())
    assert again
    assert [row for part in found for row in named(layout, part)] == expected(layout, parts)


@pytest.mark.parametrize("name", ["word_count", "cooccurrence", "long_sequences", "sort"])
def test_many_runs_that_begin_alike_are_no_large_group(name: str, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "MAX_RUNS", 64)
    layout = LAYOUTS[name]
    parts = [records(layout, 0, 300, WORDS[:12], range(1)) for _ in range(40)]
    with Spill(layout, 1) as spilled:
        for part in parts:
            spilled.add(part)
        found = list(spilled.merged())
    assert [row for part in found for row in named(layout, part)] == expected(layout, parts)


def test_a_folder_that_nobody_closed_goes_with_what_made_it(tmp_path: Path) -> None:
    folder = SpillFolder("word_count", tmp_path)
    assert folder.path.is_dir()
    del folder
    gc.collect()
    assert list(tmp_path.iterdir()) == []


# ---- what is below


@given(st.lists(st.lists(st.integers(1, 32), min_size=1, max_size=9), min_size=2, max_size=2), st.randoms())
def test_packing_keeps_numbers_and_their_order(bits: list[list[int]], rng: random.Random) -> None:
    one, other = bits
    other = [rng.randint(own, 32) for own in one]  # the form to be repacked in
    keys = sorted({tuple(rng.randrange(1 << own) for own in one) for _ in range(50)})
    numbers = np.array(keys, np.uint32)
    packed = np.empty((KeyForm(tuple(one)).limbs, len(keys)), np.uint64)
    pack(numbers, KeyForm(tuple(one)), [False] * len(one), None, packed)
    assert (unpack(packed, KeyForm(tuple(one))) == numbers).all()
    assert list(zip(*packed.tolist(), strict=True)) == sorted(zip(*packed.tolist(), strict=True))
    assert int(packed.max()) < 1 << packed_keys.LIMB_BITS
    wider = np.empty((KeyForm(tuple(other)).limbs, len(keys)), np.uint64)
    assert repack(packed, KeyForm(tuple(one)), KeyForm(tuple(other)), [False] * len(one), None, wider)
    assert (unpack(wider, KeyForm(tuple(other))) == numbers).all()


def test_repacking_tells_unknown_words() -> None:
    keys = np.array([[0, 1, 2]], np.uint64)
    form, out = KeyForm((4,)), np.empty((1, 3), np.uint64)
    assert repack(keys, form, form, [True], np.array([5, 6, 7], np.uint32), out)
    assert out.tolist() == [[5, 6, 7]]
    assert not repack(keys, form, form, [True], np.array([5, 6], np.uint32), out)


@pytest.mark.parametrize("limbs", [1, 2, 3])
@pytest.mark.parametrize("stretches", [0, 1, 2, 3, 5, 8])
@pytest.mark.parametrize("counted", [True, False])
def test_merge_sorted(limbs: int, stretches: int, counted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_keys, "SLICE", 64)
    rng = random.Random(f"{limbs} {stretches}")
    total: dict[tuple[int, ...], int] = {}
    parts = []
    for size in [rng.choice([0, 1, 500]) for _ in range(stretches)] + [63]:
        keys = sorted({tuple(rng.randrange(30 if limb else 60) for limb in range(limbs)) for _ in range(size)})
        counts = [rng.randrange(1 << 62) for _ in keys]
        parts.append((np.array(keys, np.uint64).reshape(-1, limbs).T.copy(), np.array(counts, np.uint64)))
        for key, count in zip(keys, counts, strict=True):
            total[key] = (total.get(key, 0) + count) % (1 << 64)
    keys, counts = merge_sorted([(own, own_counts if counted else None) for own, own_counts in parts])
    assert list(zip(*keys.tolist(), strict=True)) == sorted(total)
    assert counts is None if not counted else counts.tolist() == [total[key] for key in sorted(total)]


@given(st.lists(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=20)), unique=True), min_size=1, max_size=5))
def test_merge_words(parts: list[list[str]]) -> None:
    arrays = [pa.array(["a slice", *sorted(part)], pa.large_string()).slice(1) for part in parts]
    words, maps = merge_words(arrays)
    assert words.to_pylist() == sorted(set().union(*parts))
    for own, part in zip(maps, arrays, strict=True):
        numbers = np.arange(len(part)) if own is None else own
        assert words.take(pa.array(numbers)).to_pylist() == part.to_pylist()


@given(
    st.lists(st.one_of(st.integers(1, 5), st.integers(4090, 4100), st.integers(1, (1 << 63) - 1))), st.integers(1, 2)
)
def test_by_falling_count(counts: list[int], limbs: int) -> None:
    keys = np.arange(limbs * len(counts), dtype=np.uint64).reshape(limbs, len(counts))
    made, each, offsets = by_falling_count(keys, np.array(counts, np.uint64))
    order = sorted(range(len(counts)), key=lambda place: -counts[place])
    assert made.tolist() == keys[:, order].tolist()
    assert np.repeat(each, np.diff(offsets)).tolist() == sorted(counts, reverse=True)
    assert len(each) == len(set(counts))


@settings(max_examples=20)
@given(
    stretches=st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=40), min_size=1, max_size=12),
    batch=st.integers(1, 50),
)
def test_of_files_by_count_one_is_in_memory_at_a_time(stretches: list[list[int]], batch: int) -> None:
    form, first, expected = KeyForm((16,)), 0, []
    read, alive = order._Run.read, []

    def counted(self: order._Run, *place: Any) -> Any:
        assert sum(one() is not None for one in alive) <= 1  # the one before, until this one takes its name
        found = np.array(read(self, *place))
        alive.append(weakref.ref(found))
        return found

    with SpillFolder("test") as folder, patch.object(order._Run, "read", counted):
        by_count = order.ByCount(form, None, 1, folder)
        for counts in stretches:
            keys = np.arange(first, first + len(counts), dtype=np.uint64)[None]
            by_count.add(keys, np.array(counts, np.uint64))
            expected += zip(counts, keys[0].tolist(), strict=True)
            first += len(counts)
        found = [
            (int(n), int(key)) for keys, ns in by_count._read(batch, None) for n, key in zip(ns, keys[0], strict=True)
        ]
    assert found == sorted(expected, key=lambda one: (-one[0], one[1]))
    assert alive
