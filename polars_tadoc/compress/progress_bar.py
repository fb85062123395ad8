"""Progress bars, made only where one was asked for."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from tqdm import tqdm


class Bar(Protocol):
    """What tells of progress."""

    def update(self, rows: int) -> object:
        """Say that so many more rows are done."""

    def set_postfix_str(self, text: str) -> None:
        """Say what is being done."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> object: ...


class _NoBar:
    """Tells nothing.

    A disabled bar of tqdm has a ``__del__``, and an interrupt that comes within it is lost.
    """

    def update(self, rows: int) -> None:
        """Say nothing."""

    def set_postfix_str(self, text: str) -> None:
        """Say nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


def bar_of(rows: int, call: str, shown: bool) -> Bar:
    """Give a bar (tqdm) on standard error, or what stands for none."""
    if not shown:
        return _NoBar()
    bar: Bar = tqdm(total=rows, unit=" rows", desc=call)
    return bar
