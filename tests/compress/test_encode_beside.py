"""Grammars encoded on the host beside a device's work: the same columns, errors passed on, no thread left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.compress import encode_beside
from polars_tadoc.compress.compress import Compression
from polars_tadoc.engine.choose import CPU, Engine
from polars_tadoc.errors import DeviceMemoryError
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.runtime.process.threads import Task

ROWS = [f"row {i} of {i % 7} rows, row {i // 3}" if i % 5 else None for i in range(1000)]
TEXT = pl.Series("text", ROWS)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """The CPU's kernels as those of a device."""
    engine = Engine(CPU.kernels, ByteLRU(int, lambda _: 0))
    monkeypatch.setattr(Compression, "engine_for", lambda self, size: engine)
    return engine


def fields(column: pl.Series) -> list[pl.Series]:
    stored = column.ext.storage().struct
    return [stored.field("grammar").cast(pl.String), stored.field("symbols"), stored.field("gaps")]


def assert_same(one: pl.Series, other: pl.Series) -> None:
    for mine, theirs in zip(fields(one), fields(other), strict=True):
        assert mine.equals(theirs)


RUNNING: list[Task[None]] = []


@pytest.fixture(autouse=True)
def _running(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Note the threads of encodings."""

    class NotedTask(Task[Any]):
        def __init__(self, function: Callable[[], Any]) -> None:
            super().__init__(function)
            RUNNING.append(self)

    monkeypatch.setattr(encode_beside, "Task", NotedTask)
    yield
    RUNNING.clear()


def are_running() -> bool:
    """Tell whether the thread of an encoding works; one that was stopped before its start may just be ending."""
    time.sleep(0.01)
    return any(task.has_begun and not task.has_ended for task in RUNNING)


@pytest.mark.parametrize("rows_per_grammar", [1000, 700, 300, 125, 40])
@pytest.mark.parametrize("lossless", [True, False])
def test_columns_are_the_same_at_any_number_of_blocks(rows_per_grammar: int, lossless: bool, device: Engine) -> None:
    options: Any = {"rows_per_grammar": rows_per_grammar, "lossless": lossless}
    made = tadoc.compress(TEXT, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compression, "engine_for", lambda self, size: CPU)
        expected = tadoc.compress(TEXT, **options)
    assert_same(made, expected)
    assert not are_running()


@pytest.mark.parametrize("values", [[], [None], [""], ["", "a"], ["one word"] * 3])
def test_columns_of_few_rows_are_the_same(values: list[str | None], device: Engine) -> None:
    text = pl.Series("text", values, pl.String)
    made = tadoc.compress(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compression, "engine_for", lambda self, size: CPU)
        assert_same(made, tadoc.compress(text))


@pytest.mark.parametrize("part", ["encode_words", "pack_rules", "pack_gaps"])
@pytest.mark.parametrize("error", [MemoryError("no memory"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_an_error_of_the_encoding_ends_the_call(
    part: str, error: BaseException, device: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    original: Callable[..., Any] = getattr(encode_beside, part)

    def fail(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise error
        return original(*arguments)

    monkeypatch.setattr(encode_beside, part, fail)
    with pytest.raises(type(error)):
        tadoc.compress(TEXT, rows_per_grammar=100)
    assert not are_running()
    assert len(calls) < 10
    monkeypatch.setattr(encode_beside, part, original)
    assert tadoc.decompress(tadoc.compress(TEXT, rows_per_grammar=100)).equals(TEXT)


def test_an_interrupt_ends_the_call_and_its_threads(device: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []
    original = encode_beside.encode_words

    def interrupted(*parts: Any) -> Any:
        calls.append(time.monotonic())
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
        return original(*parts)

    monkeypatch.setattr(encode_beside, "encode_words", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tadoc.compress(TEXT, rows_per_grammar=10)
    assert not are_running()
    assert time.monotonic() - calls[1] < 5
    assert len(calls) < 10


def test_an_error_of_the_device_ends_the_encoding(device: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    original = CPU.kernels.compress_rows

    def fail(*arguments: Any, on_rules: Callable[..., None], **options: Any) -> Any:
        def failing(*parts: Any) -> None:
            begun.append(1)
            if len(begun) == 3:
                raise RuntimeError("the device is gone")
            on_rules(*parts)

        return original(*arguments, on_rules=failing, **options)

    monkeypatch.setattr(CPU.kernels, "compress_rows", fail)
    with pytest.raises(RuntimeError, match="the device is gone"):
        tadoc.compress(TEXT, rows_per_grammar=100)
    assert not are_running()
    assert len(begun) < 10


def loaded_blocks(monkeypatch: pytest.MonkeyPatch, load: Callable[[pl.Series], object]) -> list[object]:
    """Let a device load blocks; returns what compressing gets of each, None where it loads the rows itself."""
    original, got = CPU.kernels.compress_rows, []

    def compress_rows(*arguments: Any, loaded: Callable[[], object], **options: Any) -> Any:
        got.append(loaded())
        return original(*arguments, **options)

    monkeypatch.setattr(CPU.kernels, "loading", lambda rows: lambda: load(rows))
    monkeypatch.setattr(CPU.kernels, "compress_rows", compress_rows)
    return got


def test_the_next_block_is_loaded_while_rules_are_made(device: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    got = loaded_blocks(monkeypatch, lambda rows: rows.to_list())
    tadoc.compress(TEXT, rows_per_grammar=300)
    assert got == [None, ROWS[300:600], ROWS[600:900], ROWS[900:]]


def test_a_block_that_lacks_memory_beside_another_is_loaded_later(
    device: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(rows: pl.Series) -> object:
        raise DeviceMemoryError("the device is out of memory")

    expected = tadoc.compress(TEXT, rows_per_grammar=300)
    got = loaded_blocks(monkeypatch, load)
    assert_same(tadoc.compress(TEXT, rows_per_grammar=300), expected)
    assert got == [None] * 4


def test_an_error_of_loading_ends_the_call(device: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(rows: pl.Series) -> object:
        raise RuntimeError("the device is gone")

    got = loaded_blocks(monkeypatch, load)
    with pytest.raises(RuntimeError, match="the device is gone"):
        tadoc.compress(TEXT, rows_per_grammar=300)
    assert got == [None]
    assert not are_running()


def test_a_loaded_block_gives_way_to_rows_without_memory(device: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    original, tried = CPU.kernels.compress_rows, []

    def compress_rows(rows: pl.Series, *arguments: Any, loaded: Callable[[], object], **options: Any) -> Any:
        made = original(rows, *arguments, **options)
        tried.append((len(rows), loaded()))
        if tried == [(300, None)]:
            raise DeviceMemoryError("the device is out of memory")
        return made

    expected = tadoc.compress(TEXT, rows_per_grammar=300)
    monkeypatch.setattr(CPU.kernels, "loading", lambda rows: lambda: len(rows))
    monkeypatch.setattr(CPU.kernels, "compress_rows", compress_rows)
    assert_same(tadoc.compress(TEXT, rows_per_grammar=300), expected)
    assert tried == [(300, None), (300, None), (300, None), (300, 300), (100, 100)]
    assert not are_running()
