"""What stays on a device between calls: the second call on a column transfers nothing to it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.engine.choose import GPU
from polars_tadoc.engine.cuda import device_problem

pytestmark = pytest.mark.skipif(device_problem() is not None, reason=str(device_problem()))

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("word_count", {}),
    ("word_count", {"top": 2}),
    ("sort", {}),
    ("inverted_index", {}),
    ("term_vector", {"top": 2}),
    ("sequence_count", {"n": 3}),
    ("ranked_inverted_index", {"n": 3}),
    ("cooccurrence", {}),
]


@contextmanager
def uploads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Collect the bytes of arrays that are copied to the device within a ``with`` block."""
    import cupy

    sizes: list[int] = []
    for name in ("asarray", "array"):
        own = getattr(cupy, name)

        def copying(given: Any, *args: Any, own: Any = own, **options: Any) -> Any:
            if isinstance(given, np.ndarray):
                sizes.append(given.nbytes)
            return own(given, *args, **options)

        monkeypatch.setattr(cupy, name, copying)
    yield sizes
    monkeypatch.undo()


def frame(grammars: int, rows: int = 40) -> pl.DataFrame:
    random = np.random.default_rng(grammars)
    texts = [" ".join(f"w{int(number)}" for number in 30 ** random.random(60)) for _ in range(grammars * rows)]
    parts = [pl.DataFrame({"text": texts[k * rows : (k + 1) * rows]}).tadoc.compress("text") for k in range(grammars)]  # type: ignore[attr-defined]
    return pl.concat(parts)


@pytest.mark.parametrize("grammars", [1, 3])
@pytest.mark.parametrize(("call", "options"), CALLS)
def test_the_second_call_uploads_nothing(
    call: str, options: dict[str, Any], grammars: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    df = frame(grammars)
    with uploads(monkeypatch) as first:
        made = getattr(df.tadoc, call)("text", engine="gpu", **options)
    assert sum(first) > 0
    with uploads(monkeypatch) as second:
        again = getattr(df.tadoc, call)("text", engine="gpu", **options)
    assert made.equals(again)
    assert made.equals(getattr(df.tadoc, call)("text", engine="cpu", **options))
    assert sum(second) < 256  # nothing that grows with rows, rules or words


def test_rows_leave_the_device_with_their_frame() -> None:
    gc.collect()
    df = frame(2)
    before = GPU.resident.nbytes  # type: ignore[union-attr]
    df.tadoc.inverted_index("text", engine="gpu")  # type: ignore[attr-defined]
    held = GPU.resident.nbytes  # type: ignore[union-attr]
    assert held > before
    del df
    gc.collect()
    assert GPU.resident.nbytes < held  # type: ignore[union-attr]


def test_a_filtered_frame_is_another_column() -> None:
    df = frame(2)
    for share in (df, df.filter(pl.int_range(pl.len()) % 3 == 0), df[5:]):
        for _ in range(2):
            tadoc.testing.assert_engines_agree(lambda engine: tadoc.word_count(share["text"], engine=engine))  # noqa: B023
