"""Progress of calls on standard error: one bar per call, made only on request."""

from __future__ import annotations

import threading
from _thread import allocate_lock
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, Self, TypeVar

import polars as pl

from polars_tadoc.config import shows_progress
from polars_tadoc.runtime.parallel import notice
from polars_tadoc.runtime.process.threads import Task

Item = TypeVar("Item")
Made = TypeVar("Made")
Arguments = ParamSpec("Arguments")

ROWS: Final = "rows"
BATCHES: Final = "batches"
STEPS: Final = "steps"

AROUND = 0.1
"""Share of a bar for work before batches of rows, and for work after them."""

STEP_SHARE = 12
"""A step of work whose number of steps is unknown advances a bar by this part of the current stage's rest."""

REDRAWN = 0.5
"""Seconds after which an idle bar is drawn again, so that its elapsed time advances."""

CUT_SHARE = 0.3
"""Share of a block's rows for cutting its text, before rounds of making rules."""

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
    """A bar of tqdm.

    Within another call's bar it shows nothing, but advances that one's stage; if that one's rows are unknown, or within
    one of the same call, it advances that.
    """

    def __init__(self, rows: int | None, call: str, by: str) -> None:
        self.call, self.by, self.rows = call, by, rows
        self.thread = 0
        self.stage: tuple[float, float] | None = None
        self._until = 0.0
        if rows is not None and by != ROWS:
            self._begin(0.0, (AROUND if by == BATCHES else 1) * rows)
        self._counted: dict[str, int] = {}
        self._at, self._shown = 0.0, 0
        self._bar: Any = None
        self._open = allocate_lock()
        self._open.acquire()
        self._outer: _ShownBar | None = None
        self._around: tuple[_ShownBar, float] | None = None

    def update(self, rows: int, call: str | None = None) -> None:
        """Count rows of a call, this one's by default, as done; several threads may."""
        name = call or self.call
        if self._outer is not None:
            self._outer.update(rows, name)
        elif self._around is not None:
            bar, start = self._around
            with _lock:
                self._at += rows
                bar.follow(start, self._at / max(self.rows or 0, 1))
        elif self._bar is not None:
            with _lock:  # what one call has read, another may count again when it writes
                self._counted[name] = done = self._counted.get(name, 0) + rows
                self._move(done if self.by != BATCHES else self._place(done))

    def _place(self, done: int) -> float:
        """Return where a bar is after batches of some rows; work before and after them takes the rest."""
        return AROUND * (self.rows or 0) + (1 - 2 * AROUND) * done

    def _move(self, rows: float) -> None:
        """Advance to a number of rows, never back."""
        self._at = max(self._at, rows if self.rows is None else min(rows, self.rows))
        if (more := int(self._at) - self._shown) > 0:
            self._shown += more
            self._bar.update(more)

    def finish_batches(self) -> None:
        """Let further steps advance the bar to its end after the last batch."""
        if self.rows is not None and self._counted[self.call] >= self.rows:
            self._begin((1 - AROUND) * self.rows, self.rows)

    def follow(self, start: float, share: float) -> None:
        """Advance from where the bar was to the last told share of its stage, by a share of that; requires the lock."""
        if self.stage is not None and self._bar is not None:
            self._move(start + min(share, 1) * max(self._until - start, 0))

    def _begin(self, low: float, high: float) -> None:
        """Begin a stage from some rows to others."""
        self.stage, self._until = (low, float(high)), high

    def notice(self, done: float | None, until: float) -> None:
        """Advance to a share of the current stage; or by a part of the rest up to the last told share of it."""
        if self.stage is None or self._bar is None:
            if done is not None and self._bar is not None:  # of work after some rows are read
                self._bar.set_postfix_str(f"{done:.0%}")
            return
        low, high = self.stage
        with _lock:
            if done is None:
                self._move(self._at + max(self._until - self._at, 0) / STEP_SHARE)
            else:
                self._until = low + until * (high - low)
                self._move(low + done * (high - low))

    @contextmanager
    def part(self, share: float | None, rows: int = 0) -> Iterator[None]:
        """Make a stage of a share of the current one's rest, or of some rows that are counted next."""
        before, until = self.stage, self._until
        if share is None:
            done = self._counted.get(self.call, 0)
            self._begin(self._place(done), self._place(done + rows))
        elif before is not None:
            self._begin(self._at, self._at + share * (before[1] - self._at))
        try:
            yield
            if share is not None:
                self.notice(1, 1)
        finally:
            self.stage, self._until = before, until

    def set_postfix_str(self, text: str) -> None:
        """Show the current step."""
        bar = self if self._outer is None else self._outer
        if bar._bar is not None:
            bar._bar.set_postfix_str(text)

    def __enter__(self) -> Self:
        global _active
        from tqdm.auto import tqdm  # takes longer to import than a short call

        with _lock:
            if _active is None:
                try:
                    self._bar = tqdm(total=self.rows, unit=" rows", desc=self.call, miniters=1)
                    _active, self.thread = self, threading.get_ident()
                    Task(self._redraw).start()
                except BaseException:  # an interrupt: nothing else would close the bar
                    self._close()
                    raise
            elif (_active.call == self.call and _active.by == ROWS) or _active.rows is None:
                self._outer = _active
            elif self.by == ROWS and _active.thread == threading.get_ident():
                self._around = _active, _active._at
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        global _active
        if _active is self:
            if kind is None and self.rows is not None:
                with _lock:
                    self._move(self.rows)  # null rows
            self._close()

    def _close(self) -> None:
        global _active
        self._open.release()
        with _lock:
            if self._bar is not None:
                self._bar.close()
        _active = None

    def _redraw(self) -> None:
        """Draw the bar again and again until it is closed."""
        while not self._open.acquire(timeout=REDRAWN):
            with _lock:
                if self._open.locked():
                    self._bar.refresh()


_lock = threading.RLock()
_active: _ShownBar | None = None


def bar_of(rows: int | None, call: str, shown: bool | None = None, *, by: str = ROWS) -> Bar:
    """Return a bar on standard error, or one that shows nothing.

    Parameters
    ----------
    rows
        Number of rows; None: unknown, so that only done rows and their rate are shown.
    call
        Name of the call.
    shown
        Whether to show it; None: as the call or ``Config(progress=)`` says.
    by
        What moves it: ``ROWS`` that its caller counts; ``BATCHES``, of which :func:`batch` tells; or ``STEPS`` of the
        call's work, of which the pool of threads tells.

    """
    if shown is None:
        outer = _active
        shown = shows_progress() or (outer is not None and outer.rows is None)
    return _ShownBar(rows, call, by) if shown else _NoBar()


def bar_over(column: object, call: str, by: str = STEPS) -> Bar:
    """Return the bar of the rows of a column or frame; the call says later what is wrong with anything else."""
    return bar_of(len(column) if isinstance(column, pl.Series | pl.DataFrame) else 0, call, by=by)


def is_bar_shown() -> bool:
    """Tell whether a call of this process shows a bar now."""
    return _active is not None


def _own_bar() -> _ShownBar | None:
    """Return the shown bar, if this thread's call has made it."""
    bar = _active
    return bar if bar is not None and bar.thread == threading.get_ident() else None


def _notice(done: float | None, until: float) -> None:
    if _active is None:
        return
    if (block := _blocks.get(threading.get_ident())) is not None:
        block.step()
    elif (bar := _own_bar()) is not None:
        bar.notice(done, until)


notice[0] = _notice


def show(step: str) -> None:
    """Show a step of this thread's call beside its bar."""
    if _active is not None and (bar := _own_bar()) is not None:
        bar.set_postfix_str(step)


@contextmanager
def batch(call: str, rows: int, is_done: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Advance the shown bar by a batch of rows, and within it by its steps, if the bar is of this call."""
    bar = _active
    if bar is None or bar.by != BATCHES or bar.call != call:
        yield
        return
    with bar.part(None, rows):
        yield
    if is_done():
        bar.update(rows)
        bar.finish_batches()


@contextmanager
def part(share: float) -> Iterator[None]:
    """Let steps of a part of this thread's call advance its bar by a share of the current stage's rest."""
    bar = _own_bar()
    if bar is None:
        yield
        return
    with bar.part(share):
        yield


def part_beside(rows: int) -> AbstractContextManager[None]:
    """Let steps of work on other rows than the bar's advance it by their share of all rows."""
    bar = _own_bar()
    return part(0 if bar is None else rows / max(rows + (bar.rows or 0), 1))


def by_steps(work: Callable[Concatenate[Any, pl.Series, Arguments], Made]) -> Callable[..., Made]:
    """Show a bar of the rows of a request's method on a column; the request has the name of its call."""

    @wraps(work)
    def shown(request: Any, column: pl.Series, *arguments: Arguments.args, **named: Arguments.kwargs) -> Made:
        with bar_over(column, getattr(request, "name", "") or request.call):
            return work(request, column, *arguments, **named)

    return shown


def counted(items: Iterable[Item], call: str, rows: Callable[[Item], int], *, are_read: bool = False) -> Iterator[Item]:
    """Yield items, and show how many rows of them are done; or, where that is said, are read."""
    with bar_of(None, call) as bar:
        for item in items:
            done = rows(item)
            bar.update(done if are_read else 0)
            yield item
            del item
            bar.update(0 if are_read else done)


class BlockProgress:
    """Progress within a block of rows: steps of cutting its text, then rounds of making its rules.

    As a context manager it takes the steps that its thread's work tells, and advances to the end of the block.
    """

    def __init__(self, bar: Bar, rows: int) -> None:
        self._bar, self._left, self._cut = bar, rows, int(CUT_SHARE * rows)

    def step(self) -> None:
        """Advance by a part of the rows for cutting text; not at all in rounds."""
        self._advance(done := self._cut // STEP_SHARE)
        self._cut -= done

    def round(self, number: int, pairs: int) -> None:
        """Show a round, and advance by a part of the remaining rows."""
        self._cut = 0
        self._advance(self._left // ROUND_SHARE)
        self._bar.set_postfix_str(f"round {number + 1}: {pairs:,} pairs")

    def _advance(self, rows: int) -> None:
        self._left -= rows
        self._bar.update(rows)

    def __enter__(self) -> Self:
        if not isinstance(self._bar, _NoBar):
            _blocks[threading.get_ident()] = self
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        _blocks.pop(threading.get_ident(), None)
        if kind is None:
            self._advance(self._left)


_blocks: dict[int, BlockProgress] = {}
"""By thread, the block that it works on."""
