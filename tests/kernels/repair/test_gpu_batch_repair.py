from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.engine.cuda import device_problem
from polars_tadoc.errors import EngineUnavailableError
from polars_tadoc.kernels.repair import batch_repair as on_host
from polars_tadoc.kernels.repair import batch_repair_cuda as batch_repair
from polars_tadoc.kernels.repair import reference
from polars_tadoc.kernels.repair.lines import repeated_lines, repeated_lines_cuda
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize
from tests.handmade import SEPARATOR, flatten, mark_ends, unflatten
from tests.kernels.repair.test_repeated_lines import versions
from tests.strategies import rows_of_lines, sequences

pytestmark = pytest.mark.skipif(device_problem() is not None, reason=str(device_problem()))

UInt32 = npt.NDArray[np.uint32]

DESIGNS = [
    batch_repair.Design(),
    batch_repair.Design(sieved=0, late=0),
    batch_repair.Design(sieved=100, sieved_entries=0.0, entries=0.0, late=0),  # tables that are too small at first
    batch_repair.Design(late=1 << 30),
    batch_repair.Design(late=1 << 30, late_rounds=3),
]


@pytest.fixture(params=DESIGNS, ids=["default", "sieved", "tiny tables", "late", "late by three"])
def design(request: pytest.FixtureRequest) -> Iterator[batch_repair.Design]:
    before = batch_repair.design
    batch_repair.design = request.param
    yield request.param
    batch_repair.design = before


def build(sequence: UInt32, vocabulary_size: int, part: int = 1, whole: int = 2) -> batch_repair.DeviceRules:
    import cupy

    return batch_repair.build(cupy.asarray(sequence), vocabulary_size, lambda number, alive: None, part, whole)


def check(sequence: UInt32, vocabulary_size: int, part: int = 1, whole: int = 2) -> int:
    """Compare with the host's rules; returns how many there are."""
    rules = build(sequence, vocabulary_size, part, whole)
    got = rules.to_host()
    expected = on_host.build(sequence.copy(), vocabulary_size, lambda number, alive: None, part, whole)
    for field in ("left", "right", "sequence"):
        here, there = getattr(got, field), getattr(expected, field)
        assert here.dtype == there.dtype
        assert np.array_equal(here, there), field
    first_rules = rules.round_offsets.get().astype(np.int64)
    assert first_rules[0] == 0
    assert first_rules[-1] == len(got.left)
    # a round's rules name words and rules of earlier rounds
    names = np.maximum(got.left, got.right).astype(np.int64)
    for first, stop in pairwise(first_rules):
        assert stop > first
        assert names[first:stop].max() < vocabulary_size + first
    return len(got.left)


def text_like(random: np.random.Generator, size: int, words: int, rows: int) -> UInt32:
    sequence = (random.zipf(1.3, size) - 1).clip(max=words - 1).astype(np.uint32)
    sequence[random.integers(0, size, rows)] = SEPARATOR
    sequence[-1] = SEPARATOR
    return sequence


@pytest.mark.usefixtures("design")
@given(given_rows=sequences())
def test_matches_reference(given_rows: tuple[list[list[int]], int]) -> None:
    rows, vocabulary_size = given_rows
    got = build(flatten(rows), vocabulary_size).to_host()
    pairs = list(zip(got.left.tolist(), got.right.tolist(), strict=True))
    assert (pairs, unflatten(got.sequence)) == reference.batch_repair(rows, vocabulary_size)


@pytest.mark.usefixtures("design")
@pytest.mark.parametrize("always", [False, True])
@given(given_rows=rows_of_lines())
def test_lines_match_reference(always: bool, given_rows: tuple[list[list[int]], list[list[int]], int]) -> None:
    """With rounds inside lines or paragraphs first where they repeat, or always."""
    import cupy

    rows, ends, vocabulary_size = given_rows
    marked = mark_ends(flatten(rows), ends)
    with pytest.MonkeyPatch.context() as patch:
        if always:
            patch.setattr(repeated_lines, "is_worthwhile", lambda *numbers: True)
            patch.setattr(repeated_lines_cuda, "is_worthwhile", lambda *numbers: True)
        got = batch_repair.build(cupy.asarray(marked), vocabulary_size, has_marks=True).to_host()
        expected = on_host.build(marked.copy(), vocabulary_size, has_marks=True)
    for field in ("left", "right", "sequence"):
        assert np.array_equal(getattr(got, field), getattr(expected, field)), field
    if not always:
        pairs = list(zip(got.left.tolist(), got.right.tolist(), strict=True))
        assert (pairs, unflatten(got.sequence)) == reference.batch_repair(rows, vocabulary_size, ends=ends)


@pytest.mark.parametrize("edits", [1, 3, 20, 60])
def test_lines_repeat_as_on_the_host(edits: int) -> None:
    import cupy

    rows, ends = versions(np.random.default_rng(edits), edits, 4)
    marked = mark_ends(flatten(rows), ends)
    split = repeated_lines_cuda.split_lines(cupy.asarray(marked))
    definition = reference.repeated_units(rows, ends)
    assert (split is None) == (definition is None)
    if split is not None and definition is not None:
        assert unflatten(split.sequence.get()) == [unit for row in definition for unit in row]
        assert unflatten(split.join(split.sequence).get()) == rows


@pytest.mark.parametrize("longest", [3, 40, 5000])
def test_lines_are_measured_as_on_the_host(longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal rows, empty rows, and lines that are longer than a block of threads."""
    import cupy

    random = np.random.default_rng(longest)
    lines = [random.integers(0, 30, size).tolist() for size in random.integers(1, longest + 1, 30)]
    rows, ends = list[list[int]](), list[list[int]]()
    for many in random.integers(0, 40, 20):
        own = [lines[k] for k in random.integers(0, len(lines), many)]
        rows.append([word for line in own for word in line])
        ends.append([end for line in own for end in [int(random.integers(1, 3)), *[0] * (len(line) - 1)]][1:])
    marked = mark_ends(flatten(rows + rows[:5]), ends + ends[:5])
    taken: dict[str, list[list[int]]] = {"host": [], "device": []}

    def measure(engine: str, *numbers: int) -> bool:
        taken[engine].append(list(map(int, numbers)))
        return False

    monkeypatch.setattr(repeated_lines, "is_worthwhile", partial(measure, "host"))
    monkeypatch.setattr(repeated_lines_cuda, "is_worthwhile", partial(measure, "device"))
    on_device = cupy.asarray(marked)
    assert repeated_lines_cuda.split_lines(on_device) is None
    assert repeated_lines._Units.repeated_in(marked, repeated_lines.row_starts(marked)) is None
    assert np.array_equal(on_device.get(), marked)
    assert taken["device"] == taken["host"]
    assert len(taken["host"]) == 2


@pytest.mark.usefixtures("design")
@pytest.mark.parametrize("tile", [1, 2, 3])
@pytest.mark.parametrize("off", [-33, -32, -31, -2, -1, 0, 1, 2, 31, 32, 33])
def test_sizes_around_a_tile(tile: int, off: int) -> None:
    size = tile * batch_repair.TILE + off
    random = np.random.default_rng(size)
    check(text_like(random, size, 50, 3), 50)
    run = np.zeros(size, np.uint32)
    run[-1] = SEPARATOR
    check(run, 1)
    run[size // 2] = SEPARATOR
    check(run, 1)


@pytest.mark.usefixtures("design")
@given(
    cuts=st.lists(st.integers(0, 3 * batch_repair.TILE), max_size=8), others=st.lists(st.integers(0, 6000), max_size=4)
)
def test_runs_across_tiles(cuts: list[int], others: list[int]) -> None:
    sequence = np.zeros(3 * batch_repair.TILE + 1, np.uint32)
    sequence[others] = 1
    sequence[[*cuts, -1]] = SEPARATOR
    check(sequence, 2)


@pytest.mark.usefixtures("design")
@pytest.mark.parametrize("seed", range(3))
def test_many_tiles(seed: int) -> None:
    random = np.random.default_rng(seed)
    sequence = text_like(random, 300_000, 20_000, 2_000)
    assert check(sequence, 20_000) > 1000
    assert check(sequence, 20_000, 7, 8) > 1000
    document = text_like(random, 30_000, 20_000, 50)
    assert check(np.concatenate([document, sequence, document, document]), 20_000) > 1000


def test_rounds_are_told_as_on_the_host_in_every_design(monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    random, told = np.random.default_rng(4), []
    sequence = np.tile(text_like(random, 5_000, 2_000, 1)[:-1], 10)  # a text that repeats takes more rounds
    sequence[random.integers(0, len(sequence), 20)] = SEPARATOR
    sequence[-1] = SEPARATOR
    for one in DESIGNS:
        monkeypatch.setattr(batch_repair, "design", one)
        told.append(list[tuple[int, int]]())
        batch_repair.build(cupy.asarray(sequence), 2_000, lambda *round_: told[-1].append(round_))
    expected = list[tuple[int, int]]()
    on_host.build(sequence, 2_000, lambda *round_: expected.append(round_))
    assert [number for number, _ in expected] == list(range(len(expected)))
    assert len(expected) > 20
    assert all(one == expected for one in told)


def test_a_long_run_of_one_word() -> None:
    sequence = np.zeros(10_000_000, np.uint32)
    sequence[-1] = SEPARATOR
    # 9,999,999 = 0b100110001001011001111111: a rule for each power of two that occurs twice
    assert check(sequence, 1) == 22


def test_runs_of_two_words_in_turn() -> None:
    sequence = np.repeat(np.arange(400, dtype=np.uint32) % 2, np.arange(400) * 37 % 9001 + 1).astype(np.uint32)
    check(np.append(sequence, np.uint32(SEPARATOR)), 2)


def test_fibonacci_words() -> None:
    shorter, longer = [0], [0, 1]
    while len(longer) < 1_000_000:
        shorter, longer = longer, longer + shorter
    check(np.array([*longer, SEPARATOR], np.uint32), 2)


def test_all_distinct() -> None:
    sequence = np.arange(3_000_001, dtype=np.uint32)
    sequence[-1] = SEPARATOR
    assert check(sequence, 3_000_000) == 0


def test_duplicated_documents() -> None:
    random = np.random.default_rng(5)
    document = random.integers(0, 1 << 20, 1 << 18).astype(np.uint32)
    document[-1] = SEPARATOR
    assert check(np.tile(document, 2), 1 << 20) > 1 << 17
    check(np.tile(document, 9), 1 << 20)


@pytest.mark.usefixtures("design")
@pytest.mark.parametrize("rows", [[], [[]], [[], []], [[0]], [[0], [0]], [[0, 1]], [[i % 5] for i in range(5000)]])
def test_without_rules(rows: list[list[int]]) -> None:
    assert check(flatten(rows), 5) == 0


def test_most_pairs_occur_twice() -> None:
    """The most entries that a table can need."""
    random = np.random.default_rng(11)
    sequence = random.integers(0, 1000, 1_000_000).astype(np.uint32)
    sequence[-1] = SEPARATOR
    assert check(sequence, 1000) > 100_000


def test_words_beyond_31_bits_are_refused() -> None:
    with pytest.raises(EngineUnavailableError, match="31-bit symbols"):
        build(flatten([[0, 0]]), (1 << 31) - 2)


@pytest.mark.usefixtures("design")
@pytest.mark.parametrize("name", ["multi_react", "docs_peps", "logs_dmesg"])
def test_real_corpora(corpus: Callable[[str], pl.DataFrame], name: str) -> None:
    tokens = tokenize(corpus(name)["text"].rechunk(), Tokenizer("words"))
    assert check(tokens.sequence, len(tokens.vocabulary)) > 1000
