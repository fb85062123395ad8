"""Calls on a device with less memory than they take at once: the same answers, and a warning."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.engine import cuda
from polars_tadoc.engine.choose import GPU
from polars_tadoc.errors import DeviceMemoryError, DeviceMemoryWarning
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.kernels.documents import document_keys_cuda as document_keys
from polars_tadoc.kernels.keys import key_ranges_cuda as key_ranges
from polars_tadoc.runtime import device
from polars_tadoc.runtime.device_memory import shares_host_memory

pytestmark = pytest.mark.skipif(cuda.device_problem() is not None, reason=str(cuda.device_problem()))

MANAGED = 3
"""CUDA's number of managed memory."""

CALLS: dict[str, Callable[[pl.Series, str], Any]] = {
    "word_count": lambda column, engine: tadoc.word_count(column, engine=engine),
    "bottom-up": lambda column, engine: tadoc.word_count(column, strategy="bottom_up", engine=engine),
    "sort": lambda column, engine: tadoc.sort(column, min_count=2, engine=engine),
    "inverted_index": lambda column, engine: tadoc.inverted_index(column, engine=engine),
    "term_vector": lambda column, engine: tadoc.term_vector(column, top=50, engine=engine),
    "sequence_count": lambda column, engine: tadoc.sequence_count(column, n=3, top=1000, engine=engine),
    "ranked_inverted_index": lambda column, engine: tadoc.ranked_inverted_index(column, n=2, engine=engine),
    "cooccurrence": lambda column, engine: tadoc.cooccurrence(column, window=3, top=1000, engine=engine),
    "bm25_weights": lambda column, engine: tadoc.bm25_weights(column, engine=engine),
    "tfidf": lambda column, engine: tadoc.tfidf(column, top=20, norm=None, engine=engine),
    "grouped words": lambda column, engine: (
        pl.DataFrame({"t": column}).group_by(pl.lit(1)).agg(pl.col("t").tadoc.word_count(engine=engine))
    ),
}


@cache
def text() -> pl.Series:
    """Rows of random words, the frequent ones far more often: the rows take more than the rules."""
    random = np.random.default_rng(0)
    words = np.array([f"w{number}" for number in range(20_000)])
    picks = (20_000 ** random.random((1_500, 1_000))).astype(np.int64) - 1
    return pl.Series("text", [" ".join(row) for row in words[picks]])


@cache
def column() -> pl.Series:
    return tadoc.compress(text(), lossless=False, engine="gpu")


@cache
def expected(call: str) -> pl.DataFrame:
    return pl.DataFrame(CALLS[call](column(), "cpu"))


@contextmanager
def room(nbytes: int) -> Iterator[None]:
    """Leave so many bytes of the device's memory."""
    import cupy

    pool = cupy.get_default_memory_pool()
    GPU.release()
    pool.set_limit(size=pool.used_bytes() + nbytes)
    try:
        yield
    finally:
        pool.set_limit(size=0)
        GPU.release()


def peak_of(work: Callable[[], object]) -> int:
    """Return the bytes that a call takes from an empty device."""
    import cupy

    pool = cupy.get_default_memory_pool()
    work()  # compiles
    GPU.release()
    before = int(pool.total_bytes())
    work()
    return int(pool.total_bytes()) - before


@pytest.fixture(autouse=True)
def _pool_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Arrays that other tests hold would keep the large blocks, of which they are parts, in the pool."""
    import cupy

    GPU.release()
    pool, others = cupy.cuda.MemoryPool(), cupy.cuda.get_allocator()
    monkeypatch.setattr(cupy, "get_default_memory_pool", lambda: pool)
    cupy.cuda.set_allocator(pool.malloc)
    column()  # made here first, it would lack memory, too
    yield
    GPU.release()
    cupy.cuda.set_allocator(others)


@pytest.fixture(autouse=True)
def _little_scratch_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scratch memory of a fixed size would be most of what such small columns take."""
    monkeypatch.setattr(device, "WORK_SHARE", 1 << 60)
    monkeypatch.setattr(document_keys, "SCRATCH", 1 << 20)
    monkeypatch.setattr(key_ranges, "WORKING_MEMORY", 1 << 20)
    monkeypatch.setattr(key_ranges, "MIN_MEMORY", 1 << 20)


def answer(call: str, nbytes: int) -> tuple[pl.DataFrame | None, list[type]]:
    """Answer with so many bytes of the device's memory, if they are enough; and tell what is said."""
    with room(nbytes), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            return pl.DataFrame(CALLS[call](column(), "gpu")), [warning.category for warning in said]
        except DeviceMemoryError:  # the grammar alone takes as much
            return None, []


OF_ANY_MEMORY = {"cooccurrence"}
"""Calls whose kernels go range by range over the keys, in what is free: they did with 0.3 of what they take else."""


@pytest.mark.parametrize("call", CALLS)
def test_answers_are_the_same(call: str) -> None:
    peak = peak_of(lambda: CALLS[call](column(), "gpu"))
    said = []
    for share in (0.7, 0.5, 0.3):
        got, warned = answer(call, int(peak * share))
        assert got is None or got.equals(expected(call)), share
        said.append(None if got is None else len(warned))
        assert set(warned) <= {DeviceMemoryWarning}
    print(f"{call}: {peak:,} bytes; warnings with 0.7, 0.5 and 0.3 of it: {said} (None: no room for the grammar)")
    assert 1 in said or call in OF_ANY_MEMORY
    assert set(said) <= {None, 0, 1}


def test_a_full_device_is_named_or_left_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Analytic, "gpu_repays_at", 0)
    with room(1 << 16), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeviceMemoryWarning)
        with pytest.raises(DeviceMemoryError, match=r'word_count: engine="gpu": .*Out of memory allocating .*one row'):
            tadoc.word_count(column(), engine="gpu")
    with room(1 << 16), pytest.warns(DeviceMemoryWarning, match="on the CPU") as caught:
        assert pl.DataFrame(tadoc.word_count(column(), engine="auto")).equals(expected("word_count"))
    assert len(caught) == 1


def test_nothing_stays_when_memory_lacked() -> None:
    import cupy

    pool = cupy.get_default_memory_pool()
    GPU.release()
    before = pool.used_bytes()
    with room(1 << 16), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeviceMemoryWarning)
        with pytest.raises(DeviceMemoryError):
            tadoc.term_vector(column(), engine="gpu")
        gc.collect()
        assert pool.used_bytes() == before
    assert pl.DataFrame(tadoc.term_vector(column(), top=50, engine="gpu")).equals(expected("term_vector"))


def test_what_is_resident_makes_room() -> None:
    """Grammars of earlier calls take the memory: they go, and nothing is said."""
    import cupy

    peak = peak_of(lambda: CALLS["word_count"](column(), "gpu"))
    with room(int(1.2 * peak)), warnings.catch_warnings():
        warnings.simplefilter("error")
        GPU.keep("another grammar", lambda: cupy.zeros(peak // 2, np.uint8))
        assert pl.DataFrame(CALLS["word_count"](column(), "gpu")).equals(expected("word_count"))
        assert GPU.peek("another grammar") is None


@pytest.mark.parametrize(("call", "how"), [("bm25_weights", {}), ("tfidf", {"norm": None})])
def test_text(call: str, how: dict[str, Any]) -> None:
    def run(engine: str) -> Any:
        return getattr(tadoc, call)(text(), top=5, engine=engine, **how)

    peak = peak_of(lambda: run("gpu"))
    with room(peak // 2), pytest.warns(DeviceMemoryWarning, match=f"{call}: .* bytes at once, which run in batches"):
        got = pl.DataFrame(run("gpu"))
    assert got.equals(pl.DataFrame(run("cpu")))


def test_text_that_is_too_large_to_be_cut_there() -> None:
    def run(engine: str) -> pl.DataFrame:
        return pl.DataFrame(tadoc.inverted_index(text(), engine=engine))

    peak = peak_of(lambda: run("gpu"))
    with room(peak // 4), pytest.warns(DeviceMemoryWarning, match="cutting text into words, which run on the CPU"):
        got = run("gpu")
    assert got.equals(run("cpu"))


@pytest.mark.parametrize("lossless", [True, False])
def test_compress(lossless: bool) -> None:
    def run() -> pl.Series:
        return tadoc.compress(text(), lossless=lossless, engine="gpu")

    peak = peak_of(run)
    with room(peak // 2), pytest.warns(DeviceMemoryWarning, match=r"compress: .* bytes at once, which run in batches"):
        made = run()
    assert made.ext.storage().struct.field("grammar").n_unique() > 1
    plain = text() if lossless else tadoc.decompress(column())
    assert tadoc.decompress(made).equals(plain)


def test_streams() -> None:
    frame = pl.DataFrame({"text": column()})
    plan, expected = frame.lazy(), frame.tadoc.sequence_count("text", n=3, top=1000, engine="cpu")
    peak = peak_of(lambda: CALLS["sequence_count"](column(), "gpu"))
    with room(peak // 2), pytest.warns(DeviceMemoryWarning, match="sequence_count: .* in batches") as caught:
        got = plan.tadoc.sequence_count("text", n=3, top=1000, engine="gpu", memory_limit="4GB").collect()
    assert got.equals(expected)
    assert len(caught) == 1


@pytest.mark.filterwarnings("ignore::polars_tadoc.errors.DeviceMemoryWarning")
def test_threads_share_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Analytic, "gpu_repays_at", 0)
    names = ["word_count", "inverted_index", "term_vector", "sequence_count"]
    peak = max(peak_of(lambda name=name: CALLS[name](column(), "gpu")) for name in names)  # type: ignore[misc]
    for name in names:
        expected(name)
    wrong: list[str] = []

    def work(first: int) -> None:
        for turn in range(4):
            name = names[(first + turn) % len(names)]
            try:
                if not pl.DataFrame(CALLS[name](column(), "auto")).equals(expected(name)):
                    wrong.append(name)
            except Exception as error:  # a thread's error would be lost
                wrong.append(f"{name}: {error!r}")

    with room(peak):
        threads = [threading.Thread(target=work, args=(first,)) for first in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_unified_memory() -> None:
    import cupy

    def kind(array: Any) -> int:
        return int(cupy.cuda.runtime.pointerGetAttributes(array.data.ptr).type)

    small = np.arange(10)
    with tadoc.Config(device_memory="unified"):
        assert kind(cuda.load_array(small)) == MANAGED
        GPU.release()
        for call in ("word_count", "term_vector", "sequence_count", "bm25_weights"):
            assert pl.DataFrame(CALLS[call](column(), "gpu")).equals(expected(call))
    GPU.release()
    with tadoc.Config(device_memory="device"):
        assert kind(cuda.load_array(small)) != MANAGED
    assert (kind(cuda.load_array(small)) == MANAGED) == shares_host_memory(0)


def test_all_of_a_result_in_the_order_of_counts() -> None:
    """Words selected by a sort of their own, not of Thrust, which ignores that memory lacks."""
    got = tadoc.word_count(column(), min_count=3, engine="gpu")
    assert pl.DataFrame(got).equals(pl.DataFrame(tadoc.word_count(column(), min_count=3, engine="cpu")))
