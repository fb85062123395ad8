"""A pool of workers that share tasks: each takes the next one; tasks of a lost worker are done by others."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from polars_tadoc.config import Settings
from polars_tadoc.distributed.process import WorkerGoneError, WorkerProcess
from polars_tadoc.engine.progress import part
from polars_tadoc.errors import WorkerLostError
from polars_tadoc.runtime.interrupts import check
from polars_tadoc.runtime.parallel import tell
from polars_tadoc.runtime.process.threads import NOTICED

MAX_TRIES = 3
"""Maximum worker losses per task."""

STAGE_SHARE = 0.7
"""Share of the rest of a call's bar for its next stage."""

FINISH = -1
"""Not a task: asks a worker to hand over its kept results."""

SHORTLY = 0.5
"""Seconds between checks for lost workers while waiting."""


@dataclass(frozen=True)
class Task:
    """A unit of work for any worker."""

    name: str
    """Its name in messages."""
    arguments: tuple[Any, ...]
    """Arguments of the stage's function."""


@dataclass(frozen=True)
class Kept:
    """A worker's merged results of several tasks."""

    tasks: frozenset[int]
    """Their numbers."""
    value: Any
    """The results of all of them."""


@dataclass(eq=False)
class _Stage:
    """Running tasks; all changes happen under the condition."""

    call: str
    tasks: Sequence[Task]
    function: Callable[..., Any]
    finish: Callable[[], Any] | None
    changed: threading.Condition = field(default_factory=threading.Condition)
    left: deque[int] = field(default_factory=deque)
    tries: dict[int, int] = field(default_factory=dict)
    results: dict[int, Any] = field(default_factory=dict)
    handed_over: list[Any] = field(default_factory=list)
    kept: dict[WorkerProcess, set[int]] = field(default_factory=dict)
    """By process: tasks whose results it keeps."""
    lost_ones: set[WorkerProcess] = field(default_factory=set)
    """Processes whose tasks were given to others: their earlier results no longer count."""
    busy: Counter[int] = field(default_factory=Counter)
    """By worker: its running calls."""
    done: set[int] = field(default_factory=set)
    error: BaseException | None = None
    stopped: bool = False

    @property
    def over(self) -> bool:
        """Whether all is done."""
        return self.stopped or self.error is not None or len(self.done) == len(self.tasks)

    def take(self, place: int, current: Callable[[], WorkerProcess]) -> int | None:
        """Wait for a task that a worker can do; None if there will be none."""
        with self.changed:
            while not self.over:
                for other in [other for other in self.kept if not other.alive]:
                    self._leave(other, None, "it ended")
                if self.left:
                    self.busy[place] += 1
                    return self.left.popleft()
                if self.kept.get(current()) and not self.busy[place]:
                    self.busy[place] += 1
                    return FINISH
                self.changed.wait(SHORTLY)  # a worker may be lost, and its tasks become free
        return None

    def answered(self, place: int, one: WorkerProcess, number: int, answer: Any) -> None:
        """Record the result of a task."""
        with self.changed:
            self.busy[place] -= 1
            if self.finish is None:
                self.results[number] = answer
                self.done.add(number)
            elif one in self.lost_ones:
                if number != FINISH and number not in self.done:
                    self.left.appendleft(number)
            else:
                kept = self.kept.setdefault(one, set())
                kept |= {number} - {FINISH}
                if answer is not None:
                    self.handed_over.append(answer.value)
                    self.done |= answer.tasks
                    kept -= answer.tasks
            self.changed.notify_all()

    def failed(self, place: int, error: BaseException) -> None:
        """Record the error of a task."""
        with self.changed:
            self.busy[place] -= 1
            self.error = self.error or error
            self.changed.notify_all()

    def lost(self, place: int, one: WorkerProcess, number: int, how: str) -> None:
        """Free the task of a lost process, and the tasks whose results it kept."""
        with self.changed:
            self.busy[place] -= 1
            self._leave(one, number, how)
            self.changed.notify_all()

    def _leave(self, one: WorkerProcess, number: int | None, how: str) -> None:
        self.lost_ones.add(one)
        again = self.kept.pop(one, set())
        if number not in (None, FINISH):
            again.add(number)
        again -= self.done
        if not again:
            return
        blamed = number if number in again else max(again)  # it may have been any of those whose results were kept
        self.tries[blamed] = self.tries.get(blamed, 0) + 1
        if self.tries[blamed] == MAX_TRIES:
            self.error = self.error or WorkerLostError(
                f"{self.call}: {MAX_TRIES} workers were lost over {self.tasks[blamed].name}, the last one because "
                f"{how}; if memory ran out, use fewer workers, or smaller partitions: compress(rows_per_grammar=…)"
            )
        self.left.extendleft(sorted(again, reverse=True))


class Pool:
    """Workers, started by the constructor and ended by :meth:`close`.

    Parameters
    ----------
    environments
        By worker: its name, and environment variables in addition to those of this process.
    settings
        The settings of the workers.
    slots
        Concurrent tasks per worker: one reads or writes while the other computes.

    Raises
    ------
    EngineUnavailableError
        A worker's GPU cannot be used.
    WorkerLostError
        A worker could not be started.

    """

    def __init__(self, environments: Mapping[str, Mapping[str, str]], settings: Settings, slots: int) -> None:
        self._environments, self._settings, self._slots = environments, settings, slots
        self._starting, self._running = threading.Lock(), threading.Lock()
        self._closed = False
        self._workers: dict[int, WorkerProcess] = {}
        try:
            for place, name in enumerate(environments):
                self._workers[place] = self._start(name)
            for one in self._workers.values():
                one.wait_until_ready()
        except BaseException as error:
            self.abandon()  # they have nothing to finish, and would first import everything
            self.close()
            if isinstance(error, WorkerGoneError):
                raise WorkerLostError(f"Workers: a worker could not be started: {error}") from None
            raise

    def __len__(self) -> int:
        return len(self._environments)

    def close(self) -> None:
        """End all workers."""
        with self._starting:
            self._closed = True
        with ThreadPoolExecutor(max(1, len(self._workers))) as threads:
            list(threads.map(WorkerProcess.close, self._workers.values()))

    def abandon(self) -> None:
        """End all workers at once, without waiting: the pool is no longer used."""
        for one in self._workers.values():
            one.abandon()

    def require_open(self, call: str) -> None:
        """Raise ``ValueError`` if the workers are closed."""
        if self._closed:
            raise ValueError(f"{call}: the workers are closed; make new ones, or call within the with block")

    def run(
        self, call: str, function: Callable[..., Any], tasks: Sequence[Task], finish: Callable[[], Any] | None = None
    ) -> list[Any]:
        """Run all tasks.

        Parameters
        ----------
        call
            Name of the call, for messages.
        function
            A module-level function, called with each task's arguments in some worker. If there is ``finish``, it may
            return ``Kept`` for the tasks whose results the worker has kept so far, or None to keep this one's.
        tasks
            The tasks.
        finish
            Called in each worker with kept results when no tasks are left; returns ``Kept``.

        Returns
        -------
        list
            The results in the order of the tasks; with ``finish``, the values handed over, in any order.

        Raises
        ------
        ValueError
            The workers are closed.
        WorkerLostError
            Workers were lost repeatedly over one task.
        Exception
            The error of a task; running tasks are ended first.

        """
        with self._running, part(STAGE_SHARE):  # a worker keeps results of one call at a time
            self.require_open(call)
            return self._run(_Stage(call, tasks, function, finish, left=deque(range(len(tasks)))))

    def _run(self, stage: _Stage) -> list[Any]:
        threads = [
            threading.Thread(target=self._serve, args=(place, stage), name=f"tadoc {stage.call}", daemon=True)
            for _ in range(self._slots)
            for place in self._workers  # one task for each worker first
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(NOTICED)
                    check()
                    tell(len(stage.done) / max(len(stage.tasks), 1), 1)
        except BaseException:  # an interrupt: running tasks are useless
            with stage.changed:
                stage.stopped = True
                stage.changed.notify_all()
                abandoned = [self._workers[place] for place, calls in stage.busy.items() if calls]
            for one in abandoned:
                one.kill()
            raise
        if stage.error is not None:
            raise stage.error
        return stage.handed_over if stage.finish else [stage.results[place] for place in range(len(stage.tasks))]

    def _start(self, name: str) -> WorkerProcess:
        return WorkerProcess(name, self._environments[name], self._settings, self._slots)

    def _alive(self, place: int) -> WorkerProcess:
        """Return a worker; starts a new one if it is lost."""
        with self._starting:
            if self._closed:
                raise ValueError("the workers were closed while they were running")
            if not self._workers[place].alive:
                self._workers[place] = self._start(self._workers[place].name)
            return self._workers[place]

    def _serve(self, place: int, stage: _Stage) -> None:
        """Keep one of a worker's slots busy."""
        while (number := stage.take(place, lambda: self._workers[place])) is not None:
            one = self._workers[place]
            try:
                if number != FINISH:
                    one = self._alive(place)
                one.wait_until_ready()
                if number == FINISH:
                    assert stage.finish is not None
                    answer = one.call(stage.finish)
                else:
                    answer = one.call(stage.function, *stage.tasks[number].arguments)
            except WorkerGoneError as gone:
                stage.lost(place, one, number, str(gone))
            except BaseException as error:
                stage.failed(place, error)
            else:
                stage.answered(place, one, number, answer)
