"""Helpers for tests of code that uses this package."""

from __future__ import annotations

from collections.abc import Callable

from polars_tadoc.engine.choose import engines_for


def engines() -> list[str]:
    """List the engines that can run here.

    Returns
    -------
    list of str
        "cpu", and "gpu" if a GPU can be used.

    Examples
    --------
    >>> from polars_tadoc.testing import engines
    >>> engines()[0]
    'cpu'

    """
    return [engine.name for engine in engines_for("auto") if engine.kernels.device_problem() is None]


def assert_engines_agree(call: Callable[[str], object]) -> None:
    """Run a call on every engine that can run here and assert equal results.

    Parameters
    ----------
    call
        Takes the engine's name. Results are compared by their method ``equals``, or by ``==`` if they have none.

    Raises
    ------
    AssertionError
        Results differ; the message shows both.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> column = pl.Series(["to be or not to be"]).tadoc.compress()
    >>> tadoc.testing.assert_engines_agree(lambda engine: tadoc.word_count(column, engine=engine))

    """
    first, *others = engines()
    expected = call(first)
    for engine in others:
        got = call(engine)
        same = expected.equals(got) if hasattr(expected, "equals") else expected == got
        assert same, f"{engine} gives\n{got}\nwhereas {first} gives\n{expected}"
