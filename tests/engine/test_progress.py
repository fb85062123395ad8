"""Bars: one per call, on request only, from nothing to all rows, and moving in between."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.engine.progress import STEPS, BlockProgress, bar_of, part

TEXTS = [f"a b c {number % 7}" for number in range(40)] + [None]
FRAME = pl.DataFrame({"text": TEXTS})
COLUMN = FRAME.tadoc.compress("text", rows_per_grammar=10)


def parts_of_a_file(folder: Path) -> pl.LazyFrame:
    COLUMN.tadoc.write_packed(folder / "texts.parquet", progress=False)
    return tadoc.scan_packed(folder / "texts.parquet")


CALLS: dict[str, Callable[[Path], object]] = {
    "compress": lambda _: FRAME.lazy().tadoc.compress("text", rows_per_grammar=10).collect(),
    "word_count": lambda _: COLUMN.tadoc.word_count(),
    "sequence_count": lambda folder: parts_of_a_file(folder).tadoc.sequence_count(memory_limit="1GB").collect(),
    "sink_index": lambda folder: parts_of_a_file(folder).tadoc.sink_index(folder / "index"),
}


@pytest.mark.parametrize("call", CALLS)
def test_one_bar_ends_with_all_rows(call: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = tmp_path / "again"
    again.mkdir()
    CALLS[call](tmp_path)
    assert "rows" not in capsys.readouterr().err
    with tadoc.Config(progress=True):
        CALLS[call](again)
    shown = capsys.readouterr().err
    assert set(re.findall(r"([a-z_]+): ", shown)) - {"round"} == {call}
    last = shown.rstrip().rpartition("\r")[2]
    assert re.search(r"41/41|41 rows", last), last


class Recorder:
    """Stands for tqdm, and keeps how bars move."""

    made: ClassVar[list[Recorder]] = []

    def __init__(self, total: int | None = None, *, desc: str, **_: Any) -> None:
        self.total, self.call, self.moves, self.is_closed = total, desc, list[int](), False
        self.redrawn = 0
        self.made.append(self)

    def update(self, rows: int) -> None:
        self.moves.append(rows)

    def set_postfix_str(self, text: str) -> None: ...

    def refresh(self) -> None:
        self.redrawn += 1

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Recorder]:
    Recorder.made.clear()
    monkeypatch.setattr("tqdm.auto.tqdm", Recorder)
    return Recorder.made


WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota"]
LONG = pl.Series("text", [" ".join(WORDS[(row + k * k) % 9] for k in range(20)) for row in range(400)])
PACKED = LONG.tadoc.compress(rows_per_grammar=100)
INDEX = LONG.head(9).tadoc.build_index()
MORE = LONG.tadoc.build_index().append(LONG.head(9)).delete(list(range(9)))
PASSAGES = tadoc.PassageSet(LONG.head(9), length=5)

SERIES: list[tuple[str, tuple[Any, ...]]] = [
    *((call, ()) for call in ("word_count", "sort", "inverted_index", "term_vector", "sequence_count", "cooccurrence")),
    *((call, ()) for call in ("ranked_inverted_index", "tfidf", "bm25_weights", "to_csr", "build_index")),
    *((call, ()) for call in ("repeats", "drop_repeats", "near_duplicates", "duplicate_groups", "minhash")),
    *((call, ()) for call in ("repeated_share", "novelty", "collocations", "content_hash")),
    *((call, (PASSAGES,)) for call in ("overlap", "overlap_share")),
    ("overlaps", (LONG.head(9),)),
    *((call, ("beta gamma",)) for call in ("positions", "concordance", "count_phrase", "contains_phrase", "bm25")),
]


@pytest.mark.parametrize("form", ["text", "compressed"])
@pytest.mark.parametrize(("call", "given"), SERIES, ids=[call for call, _ in SERIES])
def test_a_call_moves_its_bar_before_its_end(
    call: str, given: tuple[Any, ...], form: str, bars: list[Recorder]
) -> None:
    made = getattr((LONG if form == "text" else PACKED).tadoc, call)
    made(*given)
    assert bars == []
    if form == "text":
        made(*given, progress=True)
    else:
        with tadoc.Config(progress=True):
            made(*given)
    assert [(one.call, one.total, sum(one.moves), one.is_closed) for one in bars] == [(call, 400, 400, True)]
    assert all(rows > 0 for rows in bars[0].moves)
    assert len(bars[0].moves) > 1 or call == "content_hash"


PLANS: dict[str, Callable[[pl.LazyFrame, dict[str, Any]], pl.LazyFrame]] = {
    "word_count": lambda lf, shown: lf.tadoc.word_count(**shown),
    "sequence_count": lambda lf, shown: lf.tadoc.sequence_count(memory_limit="1GB", **shown),
    "repeats": lambda lf, shown: lf.tadoc.repeats(length=5, **shown),
    "tfidf": lambda lf, shown: lf.tadoc.tfidf(memory_limit="1GB", **shown),
    "repeats ": lambda lf, shown: lf.tadoc.repeats(length=5, memory_limit="1GB", **shown),
    "overlap": lambda lf, shown: lf.tadoc.overlap("text", PASSAGES, memory_limit="1GB", **shown),
    "drop_repeats": lambda lf, shown: lf.tadoc.drop_repeats(length=5, **shown),
    "drop_repeats  ": lambda lf, shown: lf.tadoc.drop_repeats(length=5, unit="row", **shown),
    "drop_repeats ": lambda lf, shown: lf.tadoc.drop_repeats(length=5, unit="row", memory_limit="1GB", **shown),
    "near_duplicates": lambda lf, shown: lf.tadoc.near_duplicates(memory_limit="1GB", **shown),
    "duplicate_groups": lambda lf, shown: lf.tadoc.duplicate_groups(memory_limit="1GB", **shown),
    "recompress": lambda lf, shown: lf.tadoc.recompress(**shown),
    "compress": lambda lf, shown: lf.tadoc.decompress().tadoc.compress("text", rows_per_grammar=90, **shown),
}


@pytest.mark.parametrize("call", PLANS)
def test_a_plan_shows_what_its_call_asked_for(call: str, bars: list[Recorder]) -> None:
    lf = PACKED.to_frame("text").lazy()
    PLANS[call](lf, {}).collect()
    assert bars == []
    asked = PLANS[call](lf, {"progress": True})
    assert bars == []
    asked.collect()
    assert [one.call for one in bars] == [call.strip()]
    assert sum(bars[0].moves) == 400 * (2 if call == "drop_repeats " else 1)  # which reads twice
    assert bars[0].is_closed
    bars.clear()
    with tadoc.Config(progress=True):
        PLANS[call](lf, {"progress": False}).collect()
    assert bars == []


SINKS: dict[str, Callable[[Path], object]] = {
    "write_packed": lambda path: PACKED.to_frame("text").tadoc.write_packed(path, progress=True),
    "sink_packed": lambda path: LONG.to_frame().lazy().tadoc.compress("text").tadoc.sink_packed(path, progress=True),
    "sink_parquet": lambda path: LONG.to_frame().lazy().tadoc.compress("text").tadoc.sink_parquet(path, progress=True),
    "sink_index": lambda path: PACKED.to_frame("text").lazy().tadoc.sink_index(path, progress=True),
    "decompress": lambda _: PACKED.to_frame("text").tadoc.decompress(progress=True),
    "compress": lambda _: LONG.tadoc.compress(progress=True),
    "recompress": lambda _: PACKED.tadoc.recompress(progress=True),
    "append": lambda _: LONG.to_frame().tadoc.append_to(INDEX, "text", progress=True),
    "compact": lambda _: MORE.compact(progress=True),
    "overlap": lambda _: LONG.to_frame().tadoc.overlap("text", LONG.head(9), length=5, progress=True),
}


@pytest.mark.parametrize("call", SINKS)
def test_one_bar_of_all_rows(call: str, tmp_path: Path, bars: list[Recorder]) -> None:
    SINKS[call](tmp_path / "target")
    assert [(one.call, sum(one.moves), one.is_closed) for one in bars] == [(call, 400, True)]


def test_expressions_have_no_bar_of_their_own(bars: list[Recorder]) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'progress'"):
        pl.col("text").tadoc.word_count(progress=True)
    with tadoc.Config(progress=True):
        PACKED.to_frame("text").select(pl.col("text").tadoc.decompress(), hash=pl.col("text").tadoc.content_hash())
    assert bars == []


def test_an_argument_precedes_the_setting(capsys: pytest.CaptureFixture[str]) -> None:
    with tadoc.Config(progress=True):
        tadoc.compress(FRAME["text"], progress=False)
    assert capsys.readouterr().err == ""


class Counter:
    """A bar that adds."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def update(self, rows: int) -> None:
        self.rows.append(rows)

    def set_postfix_str(self, text: str) -> None:
        assert "round" in text

    def __enter__(self) -> Counter:
        return self

    def __exit__(self, *_: Any) -> None: ...


def test_rounds_advance_within_a_block() -> None:
    bar = Counter()
    with BlockProgress(bar, 1000) as block:
        for _ in range(20):
            block.step()
        assert 200 < sum(bar.rows) < 300
        for number in range(20):
            block.round(number, 5)
        assert 700 < (made := sum(bar.rows)) < 1000
        block.step()  # of a round
        assert sum(bar.rows) == made
    assert sum(bar.rows) == 1000


def test_threads_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        with bar_of(100, "outer", True) as bar:
            with bar_of(9, "inner", True) as inner:
                inner.update(9)  # shows nothing
            workers = [threading.Thread(target=bar.update, args=(7,)) for _ in range(8)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    shown = capsys.readouterr().err
    assert "inner" not in shown
    assert "56/100" in shown
    with bar_of(3, "next", True):
        pass
    assert "3/3" in capsys.readouterr().err


def test_a_call_within_another_advances_its_stage(bars: list[Recorder]) -> None:
    with bar_of(1000, "outer", True, by=STEPS), part(0.5), bar_of(8, "inner", True) as inner:
        inner.update(4)
        assert [bar.moves for bar in bars] == [[250]]
        inner.update(4)
    assert [(bar.call, bar.moves) for bar in bars] == [("outer", [250, 250, 500])]


def test_the_argument_is_a_bool() -> None:
    with pytest.raises(TypeError, match="progress=1 must be True or False"):
        LONG.tadoc.repeats(progress=1)


def test_what_is_no_series_is_told_before_its_rows_are_counted() -> None:
    for call in (tadoc.word_count, tadoc.repeats, tadoc.content_hash):
        with pytest.raises(TypeError, match=f"{call.__name__} takes a Polars Series, not NoneType"):
            call(None)


def test_the_setting_is_a_bool() -> None:
    with pytest.raises(ValueError, match="progress=1 must be True or False"):
        tadoc.Config(progress=1)


def test_a_bar_that_nothing_moves_is_drawn_again_until_it_is_closed(bars: list[Recorder]) -> None:
    with bar_of(10, "count", True):
        time.sleep(1.3)
    (bar,) = bars
    assert bar.redrawn in (1, 2)
    assert bar.is_closed
    time.sleep(0.7)
    assert bar.redrawn in (1, 2)


def test_an_interrupt_while_a_bar_is_made_leaves_none(bars: list[Recorder], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("tqdm.auto.tqdm", interrupted)
        with pytest.raises(KeyboardInterrupt), bar_of(10, "count", True):
            pass
    with bar_of(10, "count", True) as bar:
        bar.update(10)
    assert [bar.call for bar in bars] == ["count"]
