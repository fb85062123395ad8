"""Rounds inside lines or paragraphs that repeat, against their plain definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.kernels.repair import batch_repair, equal_rows_cpu, reference
from polars_tadoc.kernels.repair.lines import lines_cpu, repeated_lines
from polars_tadoc.kernels.tokenize import reference as tokenize_reference
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize
from polars_tadoc.runtime.parallel import even_chunks, weighted_chunks
from tests.handmade import SEPARATOR, flatten, mark_ends, unflatten
from tests.strategies import columns_without_nulls, rows_of_lines

Rows = list[list[int]]


@pytest.fixture
def tiny_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut everywhere, so that lines are on seams between threads."""
    monkeypatch.setattr(repeated_lines, "UNITS_PER_TASK", 1)
    monkeypatch.setattr(repeated_lines, "even_chunks", lambda size, smallest=1: even_chunks(size, 1))
    monkeypatch.setattr(repeated_lines, "weighted_chunks", lambda weights: weighted_chunks(weights, 1))
    monkeypatch.setattr(batch_repair, "POSITIONS_PER_TASK", 1)


@pytest.fixture(params=["decided", "always", "lines"])
def decision(request: pytest.FixtureRequest) -> Iterator[str]:
    """Decide by the rows, or always make rules inside paragraphs or lines, or lines, first."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "decided":
            patch.setattr(repeated_lines, "is_worthwhile", lambda *numbers: True)
        if request.param == "lines":
            patch.setattr(lines_cpu, "PARAGRAPH_MARK", lines_cpu.LINE_MARK)
        yield request.param


def expected(
    rows: Rows, ends: Rows, vocabulary_size: int, decision: str, share: tuple[int, int]
) -> tuple[list[tuple[int, int]], Rows]:
    with pytest.MonkeyPatch.context() as patch:
        if decision != "decided" and any(end for own in ends for end in own):
            least = 1 if decision == "lines" or not any(end > 1 for own in ends for end in own) else 2
            forced = [reference.split_row(row, own, least) for row, own in zip(rows, ends, strict=True)]
            patch.setattr(reference, "repeated_units", lambda rows, ends: forced)
        return reference.batch_repair(rows, vocabulary_size, *share, ends)


def build(
    rows: Rows, ends: Rows, vocabulary_size: int, threads: int, share: tuple[int, int] = (1, 2)
) -> tuple[list[tuple[int, int]], Rows]:
    with tadoc.Config(threads=threads):
        rules = batch_repair.build(
            mark_ends(flatten(rows), ends), vocabulary_size, lambda number, alive: None, *share, has_marks=True
        )
    return list(zip(rules.left.tolist(), rules.right.tolist(), strict=True)), unflatten(rules.sequence)


@pytest.mark.usefixtures("tiny_chunks")
@pytest.mark.parametrize("threads", [1, 2, 5, 16])
@given(given_rows=rows_of_lines(), share=st.sampled_from([(1, 2), (7, 8)]))
def test_matches_reference(
    decision: str, threads: int, given_rows: tuple[Rows, Rows, int], share: tuple[int, int]
) -> None:
    rows, ends, size = given_rows
    for least in (-1.0, batch_repair.MIN_SAVED):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batch_repair, "MIN_SAVED", least)
            assert build(rows, ends, size, threads, share) == expected(rows, ends, size, decision, share)


def versions(random: np.random.Generator, edits: int, blank: int) -> tuple[Rows, Rows]:
    """Rows of 40 lines of eight words; each row has some other lines than the row before, and equals one in five."""
    lines = [random.integers(0, 500, 8).tolist() for _ in range(40)]
    rows, ends = [], []
    for row in range(12):
        if row % 5 != 4:
            for k in random.integers(0, len(lines), edits):
                lines[k] = random.integers(0, 500, 8).tolist()
        rows.append([word for line in lines for word in line])
        ends.append([0 if k % 8 else 2 if k // 8 % blank == 0 else 1 for k in range(1, len(rows[-1]))])
    return rows, ends


@pytest.mark.parametrize(("edits", "blank", "repeats"), [(2, 4, True), (2, 1, True), (2, 100, True), (60, 4, False)])
def test_decides_by_repeated_lines(edits: int, blank: int, repeats: bool) -> None:
    rows, ends = versions(np.random.default_rng(3), edits, blank)
    marked = mark_ends(flatten(rows), ends)
    units = repeated_lines._Units.repeated_in(marked, repeated_lines.row_starts(marked))
    definition = reference.repeated_units(rows, ends)
    assert (definition is not None) == repeats
    assert (units is None) == (definition is None)
    if units is not None and definition is not None:
        assert len(units.stops) == sum(map(len, definition))
    for threads in (1, 2, 16):
        assert build(rows, ends, 500, threads) == reference.batch_repair(rows, 500, ends=ends)
    if not repeats:
        assert build(rows, ends, 500, 2) == reference.batch_repair(rows, 500)


def test_a_sample_of_all_lines() -> None:
    """The sample has room for twice the lines that are expected, and takes more where one line repeats."""
    line = next(line for k in range(1000) if reference.hash_line(line := [k, 1, 2, 3]) >> 61 == 0)
    rows, ends = [line * 50, line * 3], [[0, 0, 0, 1] * 49 + [0, 0, 0], [0, 0, 0, 1] * 2 + [0, 0, 0]]
    marked = mark_ends(flatten(rows), ends)
    units = repeated_lines._Units.repeated_in(marked, repeated_lines.row_starts(marked))
    assert units is not None
    assert len(units.stops) == 53
    assert build(rows, ends, 1000, 2) == reference.batch_repair(rows, 1000, ends=ends)


def test_marks_are_cleared_where_lines_do_not_repeat() -> None:
    rows, ends = versions(np.random.default_rng(3), 60, 4)
    marked = mark_ends(flatten(rows), ends)
    assert repeated_lines._Units.repeated_in(marked, repeated_lines.row_starts(marked)) is None
    assert np.array_equal(marked, flatten(rows))


@pytest.mark.usefixtures("tiny_chunks")
def test_lines_with_equal_hashes_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    hash_units = lines_cpu.hash_units

    def hash_equally(*given: Any) -> None:
        hash_units(*given)
        given[-2].fill(7)

    monkeypatch.setattr(lines_cpu, "hash_units", hash_equally)
    monkeypatch.setattr(repeated_lines, "is_worthwhile", lambda *numbers: True)
    rows, ends = [[0, 1, 0, 2, 0, 1, 0, 2], [0, 1, 2, 0, 1]], [[0, 1, 0, 1, 0, 1, 0], [0, 0, 1, 0]]
    assert build(rows, ends, 3, 2) == expected(rows, ends, 3, "lines", (1, 2))


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 700)), max_size=400),
    st.booleans(),
    st.integers(1, 4),
)
def test_weights_of_equal_lines_sum_to_their_number(
    lines: list[tuple[int, int]], in_weighted_rows: bool, parts: int
) -> None:
    """A row's weight is one that a class has; the lines' weights sum to those of their rows."""
    numbers = [number for number, _ in lines]
    weights = [w if w <= 128 else 256 << (w // 256) for _, w in lines]
    row_classes = np.array([w - 1 if w <= 128 else 119 + w.bit_length() for w in weights], np.uint8)
    for weight, class_ in zip(weights, row_classes.tolist(), strict=True):
        assert int(equal_rows_cpu.weight_of(class_)) == weight
    if not in_weighted_rows:
        weights, row_classes = [1] * len(lines), row_classes[:0]
    hashes = np.array([number * 0x9E3779B97F4A7C15 % (1 << 64) for number in numbers], np.uint64)
    first, classes = np.full(len(lines), -1, np.int64), np.empty(len(lines), np.uint8)
    left = np.zeros(len(lines), np.int64)
    for part in range(parts):
        lines_cpu.list_first(hashes, part, parts, first)
    assert first.tolist() == [numbers.index(number) for number in numbers]
    for part in range(parts):
        lines_cpu.classify(hashes, row_classes, part, parts, first, left, classes)
    for number in set(numbers):
        own = classes[np.array(numbers) == number]
        assert own[0] != equal_rows_cpu.DROPPED
        kept = own[own != equal_rows_cpu.DROPPED]
        all_weights = [w for w, n in zip(weights, numbers, strict=True) if n == number]
        assert sum(int(equal_rows_cpu.weight_of(int(c))) for c in kept) == sum(all_weights)


@given(texts=columns_without_nulls.filter(len), name=st.sampled_from(["words", "whitespace", "code", "xml"]))
def test_marks_line_ends_of_text(texts: list[str], name: str) -> None:
    tokenizer = Tokenizer.named(name)
    text = pl.Series([line.replace(" ", "\n") if k % 2 else line + "\n\n" + line for k, line in enumerate(texts)])
    tokens = tokenize(text, tokenizer)
    expected: npt.NDArray[np.uint32] = tokens.sequence.copy()
    if name in ("words", "whitespace"):
        at = 0
        for row in text:
            words, gaps = tokenize_reference.tokenize(row, name)
            for k, gap in enumerate(gaps[1:-1]):
                expected[at + k] |= np.uint32([0, 1 << 31, 3 << 30][min(gap.count("\n"), 2)])
            at += len(words) + 1
    marked = tokens.sequence.copy()
    gaps = repeated_lines.Gaps(tokens.gap_vocabulary, tokens.gap_offsets, tokens.gap_data)
    any_marks = repeated_lines.mark_lines(marked, repeated_lines.row_starts(marked), len(tokens.vocabulary), gaps)
    assert any_marks or np.array_equal(marked, tokens.sequence)
    words = marked != SEPARATOR
    assert np.array_equal(marked[words] & np.uint32(lines_cpu.WORD), tokens.sequence[words])
    if name in ("words", "whitespace"):
        assert np.array_equal(marked, expected)


def test_vocabularies_that_need_the_bits_have_no_lines() -> None:
    tokens = tokenize(pl.Series(["a b\nc d\ne f"]), Tokenizer("words"))
    assert repeated_lines.marks_of(tokens.gap_vocabulary, lines_cpu.WORD - 1).any()
    assert len(repeated_lines.marks_of(tokens.gap_vocabulary, lines_cpu.WORD)) == 0


@pytest.mark.parametrize("effort", ["default", "small"])
def test_versions_of_texts(effort: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are equal on any number of threads, and merged ones equal those of the text."""
    text = pl.read_parquet("examples/data/peps.parquet")["text"].head(20)
    text = pl.concat([f"Version {version}\n\n" + text for version in range(4)]).alias("text")
    split, splits = repeated_lines.RepeatedLines.split, list[bool]()

    def spied(*given: Any) -> Any:
        splits.append((made := split(*given)) is not None)
        return made

    monkeypatch.setattr(repeated_lines.RepeatedLines, "split", spied)
    columns = []
    for threads in (1, 2, 16):
        with tadoc.Config(threads=threads, engine="cpu"):
            columns.append(tadoc.compress(text, effort=effort).ext.storage())
    assert splits == [True] * 3
    assert all(column.equals(columns[0]) for column in columns)
    assert tadoc.decompress(tadoc.compress(text)).equals(text)
    parts = pl.concat([tadoc.compress(text.slice(at, 30)) for at in (0, 30, 60)])
    merged = tadoc.recompress(parts, engine="cpu").ext.storage()
    if effort == "default":
        assert merged.struct.field("symbols").equals(columns[0].struct.field("symbols"))
        assert merged.struct.field("gaps").equals(columns[0].struct.field("gaps"))
