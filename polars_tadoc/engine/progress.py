"""Progress of calls on standard error: one bar per call, made only on request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, Self, TypeVar

from polars_tadoc.config import settings

Item = TypeVar("Item")

ROUND_SHARE = 6
"""A round of making rules advances a bar by this part of the remaining rows: the number of rounds is unknown."""


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


class _ShownBar:
    """A bar of tqdm; within another call's bar it shows nothing, and within one of the same call it advances that."""

    def __init__(self, rows: int | None, call: str, follows: bool) -> None:
        self.call, self.follows, self._rows, self._done = call, follows, rows, 0
        self._bar: Any = None

    def update(self, rows: int) -> None:
        """Advance by a number of rows; several threads may."""
        if self._bar is not None:
            with _lock:
                self._done += rows
                self._bar.update(rows)

    def set_postfix_str(self, text: str) -> None:
        """Show the current step."""
        if self._bar is not None:
            self._bar.set_postfix_str(text)

    def __enter__(self) -> Self:
        global _active
        from tqdm.auto import tqdm  # takes longer to import than a short call

        with _lock:
            if _active is None:
                _active = self
                self._bar = tqdm(total=self._rows, unit=" rows", desc=self.call)
            elif _active.call == self.call and not _active.follows:
                self._bar = _active
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        global _active
        if _active is self:
            if kind is None and self._rows is not None and self._done < self._rows:
                self.update(self._rows - self._done)  # null rows
            self._bar.close()
            _active = None


_lock = threading.RLock()
_active: _ShownBar | None = None


def bar_of(rows: int | None, call: str, shown: bool | None = None, *, follows: bool = False) -> Bar:
    """Return a bar on standard error, or one that shows nothing.

    Parameters
    ----------
    rows
        Number of rows; None: unknown, so that only done rows and their rate are shown.
    call
        Name of the call.
    shown
        Whether to show it; None: as ``Config(progress=)`` says.
    follows
        Whether :func:`advance` moves it.

    """
    return _ShownBar(rows, call, follows) if (settings().progress if shown is None else shown) else _NoBar()


def advance(call: str, rows: int) -> None:
    """Advance the shown bar if it is of this call and follows."""
    bar = _active
    if bar is not None and bar.follows and bar.call == call:
        bar.update(rows)


def counted(items: Iterable[Item], call: str, rows: Callable[[Item], int]) -> Iterator[Item]:
    """Yield items, and show how many rows of them are done."""
    with bar_of(None, call) as bar:
        for item in items:
            done = rows(item)
            yield item
            del item
            bar.update(done)


class BlockProgress:
    """Progress within a block of rows whose rules are made in rounds."""

    def __init__(self, bar: Bar, rows: int) -> None:
        self._bar, self._left = bar, rows

    def round(self, number: int, pairs: int) -> None:
        """Show a round, and advance by a part of the remaining rows."""
        done = self._left // ROUND_SHARE
        self._left -= done
        self._bar.update(done)
        self._bar.set_postfix_str(f"round {number + 1}: {pairs:,} pairs")

    def finish(self) -> None:
        """Advance to the end of the block."""
        self._bar.update(self._left)
        self._left = 0
