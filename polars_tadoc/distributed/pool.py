"""Several workers that share tasks: each takes the next one, and what a lost worker was at is done by another."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from polars_tadoc.config import Settings
from polars_tadoc.distributed.process import WorkerGoneError, WorkerProcess
from polars_tadoc.errors import WorkerLostError
from polars_tadoc.runtime.interrupts import check
from polars_tadoc.runtime.writer_thread import NOTICED

MAX_TRIES = 3
"""So many workers may be lost over one task before it is given up."""

FINISH = -1
"""Stands for no task: what was kept is to be handed over."""

SHORTLY = 0.5
"""Seconds after which those that wait look whether a worker was lost that nobody asked anything of."""


@dataclass(frozen=True)
class Task:
    """Something that any worker can do.

    Parameters
    ----------
    name
        What it is about, for messages.
    arguments
        What the stage's function is called with.

    """

    name: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Kept:
    """What a worker hands over after it has kept the results of several tasks.

    Parameters
    ----------
    tasks
        Their numbers.
    value
        What came of all of them.

    """

    tasks: frozenset[int]
    value: Any


@dataclass(eq=False)
class _Stage:
    """Tasks on their way; all that changes does so under the condition."""

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
    """By process: tasks of which it keeps what it found."""
    lost_ones: set[WorkerProcess] = field(default_factory=set)
    """Processes whose tasks were left to others: what they have answered before does not count any more."""
    busy: Counter[int] = field(default_factory=Counter)
    """By worker: calls that it is at."""
    done: set[int] = field(default_factory=set)
    error: BaseException | None = None
    stopped: bool = False

    @property
    def over(self) -> bool:
        """Whether there is nothing more to do."""
        return self.stopped or self.error is not None or len(self.done) == len(self.tasks)

    def take(self, place: int, current: Callable[[], WorkerProcess]) -> int | None:
        """Wait for something that a worker can do; None where there will be nothing."""
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
                self.changed.wait(SHORTLY)  # a worker may be lost, and leave its tasks to this one
        return None

    def answered(self, place: int, one: WorkerProcess, number: int, answer: Any) -> None:
        """Note what came of a task."""
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
        """Note what a task raised."""
        with self.changed:
            self.busy[place] -= 1
            self.error = self.error or error
            self.changed.notify_all()

    def lost(self, place: int, one: WorkerProcess, number: int, how: str) -> None:
        """Leave what a lost process was at, and what it had kept, to all."""
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
        blamed = number if number in again else max(again)  # it may have been any of those that were kept
        self.tries[blamed] = self.tries.get(blamed, 0) + 1
        if self.tries[blamed] == MAX_TRIES:
            self.error = self.error or WorkerLostError(
                f"{self.call}: {MAX_TRIES} workers were lost over {self.tasks[blamed].name}, the last one because "
                f"{how}; where memory ran out, take fewer workers, or smaller partitions: compress(rows_per_grammar=…)"
            )
        self.left.extendleft(sorted(again, reverse=True))


class Pool:
    """Workers that are started when it is made, and end when it is closed.

    Parameters
    ----------
    environments
        By worker: its name and the variables that it has beside those of this process.
    settings
        What they work with.
    slots
        Tasks that each is at, at the same time: one reads or writes while the other computes.

    Raises
    ------
    EngineUnavailableError
        A worker's GPU cannot be used.
    WorkerLostError
        A worker did not start.

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
        except WorkerGoneError as gone:
            self.close()
            raise WorkerLostError(f"Workers: a worker could not be started: {gone}") from None
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._environments)

    def close(self) -> None:
        """Let all workers end."""
        with self._starting:
            self._closed = True
        with ThreadPoolExecutor(max(1, len(self._workers))) as threads:
            list(threads.map(WorkerProcess.close, self._workers.values()))

    def abandon(self) -> None:
        """End all workers at once, without waiting: nobody can ask them any more."""
        for one in self._workers.values():
            one.abandon()

    def require_open(self, call: str) -> None:
        """Raise ``ValueError`` where the workers were closed."""
        if self._closed:
            raise ValueError(f"{call}: the workers are closed; make others, or call within the with block")

    def run(
        self, call: str, function: Callable[..., Any], tasks: Sequence[Task], finish: Callable[[], Any] | None = None
    ) -> list[Any]:
        """Have all tasks done.

        Parameters
        ----------
        call
            For messages.
        function
            A function of a module, called with each task's arguments in some worker. It may return ``Kept`` for the
            tasks whose results the worker has kept so far, or None to keep this one's; if there is ``finish``.
        tasks
            The tasks.
        finish
            Called in each worker that has kept something when no tasks are left; it returns ``Kept``.

        Returns
        -------
        list
            The results in the order of the tasks; with ``finish``, what was handed over, in any order.

        Raises
        ------
        ValueError
            The workers were closed.
        WorkerLostError
            Workers were lost over one task again and again.
        Exception
            What a task raised; those that had begun are ended first.

        """
        with self._running:  # what a worker keeps is of one call
            self.require_open(call)
            return self._run(_Stage(call, tasks, function, finish, left=deque(range(len(tasks)))))

    def _run(self, stage: _Stage) -> list[Any]:
        threads = [
            threading.Thread(target=self._serve, args=(place, stage), name=f"tadoc {stage.call}", daemon=True)
            for _ in range(self._slots)
            for place in self._workers  # the first tasks go to as many workers as there are
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(NOTICED)
                    check()
        except BaseException:  # an interrupt: what workers are at is of no use any more
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
        """Give a worker; in place of one that is gone, another is started."""
        with self._starting:
            if self._closed:
                raise ValueError("the workers were closed while they were at work")
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
