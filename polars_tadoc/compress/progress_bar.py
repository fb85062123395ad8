"""Progress bars, made only on request."""

from __future__ import annotations

from typing import Any, Protocol, Self

from tqdm import tqdm


class Bar(Protocol):
    """A progress bar."""

    def update(self, rows: int) -> object:
        """Advance by a number of rows."""

    def set_postfix_str(self, text: str) -> None:
        """Show the current step."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: Any, error: Any, trace: Any) -> object: ...


class _NoBar:
    """A bar that shows nothing.

    A disabled bar of tqdm has a ``__del__``, and an interrupt that arrives within it is lost.
    """

    def update(self, rows: int) -> None:
        """Do nothing."""

    def set_postfix_str(self, text: str) -> None:
        """Do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def bar_of(rows: int, call: str, shown: bool) -> Bar:
    """Return a bar (tqdm) on standard error, or one that shows nothing."""
    if not shown:
        return _NoBar()
    bar: Bar = tqdm(total=rows, unit=" rows", desc=call)
    return bar
