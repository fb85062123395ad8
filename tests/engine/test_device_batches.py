"""Batches for a device with little memory, on a device that is made up: the CPU's kernels, and so many symbols."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.analytics import bm25_weights, by_group
from polars_tadoc.engine import choose as choose_module
from polars_tadoc.engine import cpu, device_batches
from polars_tadoc.engine.choose import CPU, Engine
from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.errors import DeviceMemoryError, DeviceMemoryWarning
from polars_tadoc.execute import aggregation, counting
from polars_tadoc.execute.stages import Stages
from polars_tadoc.index.construct import collect
from polars_tadoc.model.column import split
from polars_tadoc.runtime.cache import ByteLRU
from tests.analytic_cases import Case, cases

MEND = 'the GPU has too little memory .* for .*, which run {where}; use fewer rows at a time, or engine="cpu"'


@dataclass
class TightKernels:
    """The CPU's kernels on a device that holds so many symbols of rows."""

    most: int
    name: str = "cpu"
    released: int = 0
    has_room_for_rules: bool = True

    def __getattr__(self, name: str) -> Any:
        return getattr(cpu, name)

    def load_symbols(self, symbols: Any) -> Any:
        self.require(len(symbols))
        return cpu.load_symbols(symbols)

    def load_rules(self, grammar: Any) -> Any:
        self.require(0 if self.has_room_for_rules else self.most + 1)
        return cpu.load_rules(grammar)

    def load_grammar(self, grammar: Any) -> Any:
        self.require(0 if self.has_room_for_rules else self.most + 1)
        return cpu.load_grammar(grammar)

    def weigh_bm25(self, offsets: Any, ids: Any, *others: Any) -> Any:
        self.require(len(ids))
        return cpu.weigh_bm25(offsets, ids, *others)

    def weigh_tfidf(self, offsets: Any, ids: Any, *others: Any, **how: Any) -> Any:
        self.require(len(ids))
        return cpu.weigh_tfidf(offsets, ids, *others, **how)

    def select(self, counts: Any, *others: Any) -> Any:
        self.require(len(counts))
        return cpu.select(counts, *others)

    def require(self, size: int) -> None:
        if size > self.most:
            raise DeviceMemoryError(f"out of memory: {size} symbols, {self.most} fit")

    def release_memory(self) -> None:
        self.released += 1


class TightEngine(Engine):
    """A device without CUDA."""

    def guarded(self, action: str) -> AbstractContextManager[None]:
        return nullcontext()

    @property
    def place(self) -> str:
        return "tight"


def tight_engine(most: int) -> TightEngine:
    kernels: Any = TightKernels(most)
    return TightEngine(kernels, ByteLRU(lambda: 1 << 40, lambda value: 1))


@contextmanager
def chosen(engine: Engine) -> Iterator[None]:
    """Have calls choose an engine; what they ask for by name need not be there."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (aggregation, by_group, counting, collect):
            patch.setattr(module, "choose", lambda *_: engine)
        patch.setattr(device_batches, "require_engine", lambda asked: asked or "auto")
        for module in (choose_module, device_batches):
            patch.setattr(module, "GPU", engine)
        yield


@dataclass
class Device:
    """A device that holds rows of so much size at a time, and what it was asked to work on."""

    most: int
    before: Any
    worked: list[tuple[int, int]] = field(default_factory=list)
    on_cpu: list[tuple[int, int]] = field(default_factory=list)

    def work(self, first: int, stop: int, engine: Engine) -> tuple[int, int]:
        if engine is CPU:
            self.on_cpu.append((first, stop))
        elif self.before[stop] - self.before[first] > self.most:
            raise DeviceMemoryError(f"{self.most} fit")
        self.worked.append((first, stop))
        return first, stop


def stretches(
    sizes: list[int], most: int, batches: DeviceBatches | None = None
) -> tuple[list[tuple[int, int]], Device]:
    before = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    device = Device(most, before)
    batches = batches or DeviceBatches("a call", "auto")
    return list(batches.each(tight_engine(0), before, device.work)), device


@given(sizes=st.lists(st.integers(0, 9), max_size=30), most=st.integers(0, 60))
def test_intervals_that_fit(sizes: list[int], most: int) -> None:
    """All rows in their order, each once; on the device as long as single rows fit, and said exactly where needed."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found, device = stretches(sizes, most)
    assert [first for first, _ in found] == [0, *(stop for _, stop in found[:-1])]
    assert found[-1][1] == len(sizes)
    for first, stop in found:
        assert (first, stop) in device.on_cpu or sum(sizes[first:stop]) <= most
    assert bool(device.on_cpu) == (max(sizes, default=0) > most)
    if device.on_cpu:  # from the first row that does not fit, all in one go
        assert device.on_cpu == [(next(row for row, size in enumerate(sizes) if size > most), len(sizes))]
    assert [warning.category for warning in said] == [DeviceMemoryWarning] * (sum(sizes) > most)


def test_warning() -> None:
    with pytest.warns(DeviceMemoryWarning, match=r"a call: " + MEND.format(where="in batches of at most 15")) as caught:
        stretches([10] * 6, 20)
    assert "for 6 rows of 60 symbols at once" in str(caught[0].message)
    with pytest.warns(DeviceMemoryWarning, match=MEND.format(where="on the CPU, with the 2 rows after it")) as caught:
        stretches([30, 1, 1], 20)
    assert "for one row of 30 symbols and everything read with it" in str(caught[0].message)


@pytest.mark.filterwarnings("ignore::polars_tadoc.errors.DeviceMemoryWarning")
def test_one_row_too_large_is_an_error_where_a_gpu_was_asked_for() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_batches, "require_engine", lambda asked: asked)
        batches = DeviceBatches("a call", "gpu")
    expected = r'a call: engine="gpu": .*too little memory \(20 fit\) for one row of 30 symbols'
    with pytest.raises(DeviceMemoryError, match=expected):
        stretches([1, 30, 1], 20, batches)


def test_the_next_rows_begin_with_what_fitted() -> None:
    """Only the first of equal partitions is tried whole; now and then more is tried again."""
    batches = DeviceBatches("a call", "auto")
    with pytest.warns(DeviceMemoryWarning) as caught:
        first, _ = stretches([1] * 64, 20, batches)
    assert max(stop - start for start, stop in first) == 16
    for _ in range(5):
        again, _ = stretches([1] * 64, 20, batches)
        assert all(stop - start <= 16 for start, stop in again)
    assert len(caught) == 1
    for _ in range(3):
        grown, _ = stretches([1] * 64, 1000, batches)
    assert grown == [(0, 64)]


def test_what_is_resident_is_given_up_first() -> None:
    engine = tight_engine(100)
    engine.keep("a grammar", lambda: "kept")
    assert engine.peek("a grammar") == "kept"

    def work(first: int, stop: int, engine: Engine) -> int:
        if engine.peek("a grammar"):
            raise DeviceMemoryError("full")
        return stop

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an emptied cache changes no answer: nothing to be said
        assert list(DeviceBatches("a call", None).each(engine, np.array([0, 9]), work)) == [1]
    assert engine.kernels.released == 1


def test_memory_is_given_back_when_nothing_holds_it_any_more() -> None:
    """An error's traceback holds the arrays of what failed: they must be gone before memory is given back."""

    class Array:
        pass

    arrays: list[weakref.ref[Array]] = []
    engine = tight_engine(0)
    alive: list[int] = []
    kernels: Any = engine.kernels
    kernels.release_memory = lambda: alive.append(sum(array() is not None for array in arrays))

    def work(first: int, stop: int, engine: Engine) -> int:
        array = Array()
        arrays.append(weakref.ref(array))
        if stop - first > 1:
            try:
                raise MemoryError("no room")
            except MemoryError as error:
                raise DeviceMemoryError("full") from error
        return stop

    with pytest.warns(DeviceMemoryWarning, match="no room"):
        assert list(DeviceBatches("a call", None).each(engine, np.arange(5), work)) == [1, 2, 3, 4]
    assert alive == [0, 0, 0]  # all rows twice, then half of them


CALLS: dict[str, Callable[[pl.Series, dict[str, Any]], Any]] = {
    "word_count": lambda column, how: tadoc.word_count(column, top=5, min_count=2, **how),
    "sort": lambda column, how: tadoc.sort(column, min_count=2, **how),
    "inverted_index": lambda column, how: tadoc.inverted_index(column, min_count=2, **how),
    "term_vector": lambda column, how: tadoc.term_vector(column, top=2, **how),
    "sequence_count": lambda column, how: tadoc.sequence_count(column, n=2, top=4, min_count=2, **how),
    "ranked_inverted_index": lambda column, how: tadoc.ranked_inverted_index(column, n=2, top=4, **how),
    "cooccurrence": lambda column, how: tadoc.cooccurrence(column, window=3, min_count=2, **how),
    "bm25_weights": lambda column, how: tadoc.bm25_weights(column, **how),
    "tfidf": lambda column, how: tadoc.tfidf(column, top=2, **how),
    "grouped words": lambda column, how: (
        pl.DataFrame({"t": column}).group_by(pl.lit(1)).agg(pl.col("t").tadoc.word_count(top=3, **how))
    ),
}


@pytest.mark.filterwarnings("ignore::polars_tadoc.errors.DeviceMemoryWarning")
@pytest.mark.parametrize("call", CALLS)
@given(case=cases(), most=st.integers(0, 12))
def test_answers_are_the_same(call: str, case: Case, most: int) -> None:
    expected = pl.DataFrame(CALLS[call](case.column, case.arguments))
    with chosen(tight_engine(most)):
        assert pl.DataFrame(CALLS[call](case.column, case.arguments)).equals(expected)


@pytest.mark.parametrize("call", CALLS)
def test_a_grammar_too_large_goes_to_the_cpu(call: str) -> None:
    column = tadoc.compress(pl.Series("text", ["a b a b a b", "a b a b c", "c a b"]))
    engine: Any = tight_engine(100)
    engine.kernels.has_room_for_rules = False
    expected = pl.DataFrame(CALLS[call](column, {}))
    with chosen(engine), pytest.warns(DeviceMemoryWarning, match=r"on the CPU, with the 2 rows after it") as caught:
        assert pl.DataFrame(CALLS[call](column, {})).equals(expected)
    assert len(caught) == 1


def test_text_is_cut_into_smaller_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of a String column, whose words are counted in pieces."""
    text = pl.Series("text", ["a b c", None, "", "b b d e", "a", "c d d e f g"])
    expected = tadoc.bm25_weights(text)
    engine: Any = tight_engine(1 << 40)
    prepare = counting.prepare_text

    def tight(rows: pl.Series, *others: Any) -> Any:
        engine.kernels.require(10 * int(rows.str.len_bytes().sum() > 8) << 40)
        return prepare(rows, *others)

    monkeypatch.setattr(
        counting,
        "prepare_text",
        lambda rows, tokenizer, on, *o: (tight if on is engine else prepare)(rows, tokenizer, on, *o),
    )
    with chosen(engine), pytest.warns(DeviceMemoryWarning, match=r"bm25_weights: .*of 24 bytes at once") as caught:
        assert tadoc.bm25_weights(text).equals(expected)
    assert len(caught) == 1


@pytest.mark.parametrize("call", ["word_count", "bm25_weights"])
def test_the_last_step_may_lack_memory_too(call: str) -> None:
    """Rows fit, and what was found in them does not: said once, with or without the rows."""
    column = tadoc.compress(pl.Series("text", ["a b c d e f g h"] * 3))  # each row is one symbol
    expected = pl.DataFrame(CALLS[call](column, {}))
    for most, said in ((4, "all results" if call == "word_count" else "to be weighed"), (2, "symbols at once")):
        with chosen(tight_engine(most)), pytest.warns(DeviceMemoryWarning, match=f"{call}: .*{said}") as caught:
            assert pl.DataFrame(CALLS[call](column, {})).equals(expected)
        assert len(caught) == 1


def test_twigs_and_indexes() -> None:
    rows = ["<a><b/>x</a>", "<a><b><c/></b></a>", None, "<c>x x</c>", "<a>y</a>"] * 3
    queries = {"b": "//a/b", "c": "//c"}
    column = tadoc.compress(pl.Series("text", rows), tokenizer="xml")
    expected = pl.DataFrame(tadoc.twig_filter(column, queries))
    found = tadoc.build_index(column).search("x", k=9)
    with chosen(tight_engine(4)):
        with pytest.warns(DeviceMemoryWarning, match=r"twig_filter: .* in batches"):
            got = pl.DataFrame(tadoc.twig_filter(column, queries))
        with pytest.warns(DeviceMemoryWarning, match=r"build_index: .* in batches"):
            index = tadoc.build_index(column)
    assert got.equals(expected)
    assert index.search("x", k=9).equals(found)


def test_streams_say_it_once() -> None:
    column = tadoc.compress(pl.Series("text", ["a b a b a b", "a b a b c", "c a b", "d"] * 8), rows_per_grammar=4)
    plan = pl.DataFrame({"text": column}).lazy()
    expected = plan.tadoc.word_count("text").collect()
    with chosen(tight_engine(6)), pytest.warns(DeviceMemoryWarning, match=r"word_count: .*in batches") as caught:
        got = plan.tadoc.word_count("text", memory_limit="1GB").collect()
    assert got.equals(expected)
    assert len(caught) == 1


@pytest.mark.parametrize("compressed", [False, True])
def test_a_window_of_rows_is_left_in_host_memory(compressed: bool) -> None:
    """Counts of windows wait there, or on the disk, until all rows were read."""
    column = pl.Series("text", ["to be or not", None, "to be"])
    column = column.tadoc.compress() if compressed else column
    request = bm25_weights.BM25WeightsRequest.from_arguments()
    with chosen(tight_engine(1 << 40)):
        part = Stages(request).find_together(split(column) if compressed else [column], 0)
    assert part.engine is CPU
    assert part.counts.tolist() == [1, 1, 1, 1, 1, 1]
