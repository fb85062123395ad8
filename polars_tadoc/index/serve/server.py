"""Answers a stream of queries on CPU and GPU at the same time: threads around the scheduler.

After Ding et al., WWW 2009, section 9.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from polars_tadoc.config import own_threads, thread_count
from polars_tadoc.engine.choose import Engine, require_engine, runnable
from polars_tadoc.errors import DeadlineMissedError
from polars_tadoc.index.collection import Collection
from polars_tadoc.index.query.batches import join, select
from polars_tadoc.index.query.costs import BATCH_SECONDS, CROWDING, overhead_of, predict
from polars_tadoc.index.query.filter import allowed_by_segment
from polars_tadoc.index.query.find import find
from polars_tadoc.index.query.plan import Plan, plan
from polars_tadoc.index.query.prepared import missing_bytes
from polars_tadoc.index.query.request import FilterLike, Request, as_texts
from polars_tadoc.index.query.results import as_frame
from polars_tadoc.index.serve.scheduler import Scheduler, Traits
from polars_tadoc.index.serve.team import Team
from polars_tadoc.runtime.documented import with_imports

LATENCIES = 100_000
"""Latencies kept for statistics, those of the last answers."""


@with_imports
@dataclass(frozen=True)
class ServerStatistics:
    """Statistics of a server.

    Examples
    --------
    >>> index = tadoc.build_index(pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress())
    >>> with index.serve(engine="cpu") as server:
    ...     futures = [server.submit(query) for query in ["to be", "to do"]]
    >>> statistics = server.statistics()
    >>> statistics.answered, statistics.late, statistics.waiting
    ({'cpu': 2}, 0, 0)

    """

    answered: dict[str, int]
    """Answered queries by engine."""
    stolen: dict[str, int]
    """Answered queries that were predicted to be clearly faster on another, busy engine."""
    late: int
    """Queries answered after their deadline."""
    missed: int
    """Queries dropped because no engine could answer them in time."""
    failed: int
    """Queries that ended with another error."""
    waiting: int
    """Queries that no engine has taken yet."""
    latency: dict[str, float]
    """Seconds from ``submit`` to the result: ``p50``, ``p95``, ``p99`` and ``max`` of the last 100,000 answers."""


_WARM_UP = 64  # words searched before the first query
_log = logging.getLogger(__name__)
_FIRST = pl.Series("query", [0], pl.UInt32)
_TICK = 1e-4  # seconds added to a thread's sleep beyond the earliest expiry
_MAX_ADMITTED = 512  # queries tokenized at once: ``submit`` blocks meanwhile
_PATIENCE = 0.005  # seconds after which another engine's thread tokenizes queries
_SAMPLED, _TRIES = 32, 2  # queries by which engines are measured at the start, and how often
_MOST_OFF = 16.0  # times that predictions are taken to be off at most
_BETWEEN_WEIGHINGS = 16  # batches of queries that one engine takes until both are weighed again
_SPARE = 2  # cores for client threads and the GPU's thread, if a GPU serves beside the CPU


class _Answer(Future[pl.DataFrame]):
    """Slices its rows from its batch's frame when the result is requested, so that the next batch is not delayed."""

    rows = (0, 0)
    """First row and number of rows."""

    def result(self, timeout: float | None = None) -> pl.DataFrame:
        return super().result(timeout).slice(*self.rows)


@dataclass(eq=False, slots=True)
class _Request:
    query: str
    future: _Answer
    submitted: float
    deadline: float
    batch: Plan | None = None
    """The plan of the query and of those that arrived with it."""
    number: int = 0
    """Number of the query in that plan."""


@with_imports
class Server:
    """A running server for queries to one index; made by :meth:`polars_tadoc.index.index.Index.serve`.

    Thread-safe. One thread of the server takes waiting queries in batches, which all CPU threads search; a second
    thread does the same for a GPU.

    Examples
    --------
    >>> index = tadoc.build_index(pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress())
    >>> with index.serve(k=1, deadline=10.0) as server:
    ...     future = server.submit("do")
    ...     future.result().get_column("id").to_list()
    [1]

    """

    def __init__(
        self, index: Collection, request: Request, deadline: float | None, filter: FilterLike, engine: str | None
    ) -> None:
        self._index, self._request = index, request
        self._deadline = _seconds(deadline)
        self._allowed = allowed_by_segment(index, filter, "serve")
        self._engines = _engines(require_engine(engine))
        self._cpu_threads = thread_count()
        traits = {name: self._traits(name) for name in self._engines}
        self._scheduler: Scheduler[_Request] = Scheduler(traits)
        self._team = Team({name: own.threads for name, own in traits.items()})
        self._active = tuple(self._engines)  # engines for which the next queries' times are predicted
        self._admissions = 0
        self._speeds = dict.fromkeys(self._engines, 1.0)  # observed by predicted seconds, by engine
        self._lock = threading.Lock()
        self._idle = {name: threading.Condition(self._lock) for name in self._engines}
        self._inbox: list[_Request] = []  # submitted, but not tokenized; a batch costs little more than one query
        self._admitting = 0  # number of threads that tokenize queries
        self._is_closed = False
        self._answered, self._stolen = (
            Counter(dict.fromkeys(self._engines, 0)),
            Counter(dict.fromkeys(self._engines, 0)),
        )
        self._late = self._missed = self._failed = 0
        self._latencies: deque[float] = deque(maxlen=LATENCIES)
        for name in self._engines:
            self._prepare(name)
        if len(self._engines) > 1:
            sample = self._weigh(_sample(self._index), "plain")
            self._team.weigh(_sums(self._predict(sample, list(self._engines))), sample.size)
        self._threads = [
            threading.Thread(target=self._work, args=(name,), name=f"tadoc-serve-{name}", daemon=True)
            for name in self._engines
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, query: str) -> Future[pl.DataFrame]:
        """Submit a query; returns at once.

        Parameters
        ----------
        query
            One query, as for :meth:`polars_tadoc.index.index.Index.search`.

        Returns
        -------
        concurrent.futures.Future
            Its result is the frame that :meth:`~polars_tadoc.index.index.Index.search` returns for this query alone.
            Its exception is ``DeadlineMissedError`` if no engine could answer in time, otherwise the error of the
            search. It can be cancelled until an engine takes the query.

        Raises
        ------
        RuntimeError
            The server is closed.

        """
        future = _Answer()
        submitted = time.monotonic()
        with self._lock:
            if self._is_closed:
                raise RuntimeError("serve: the server is closed; start another one with index.serve()")
            if isinstance(query, str):
                self._inbox.append(_Request(query, future, submitted, submitted + self._deadline))
                is_old = self._team.is_helped and submitted - self._inbox[0].submitted > _PATIENCE
                self._wake(self._engines if is_old else (self._team.leader,))
                return future
            self._failed += 1
        future.set_exception(TypeError(f"submit: a query is a string, not {type(query).__name__}"))
        return future

    def statistics(self) -> ServerStatistics:
        """Return the statistics so far.

        Returns
        -------
        ServerStatistics
            Numbers of queries by outcome, and latencies in seconds.

        Examples
        --------
        >>> index = tadoc.build_index(pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress())
        >>> with index.serve(engine="cpu") as server:
        ...     found = server.submit("do").result()
        >>> server.statistics().answered
        {'cpu': 1}

        """
        with self._lock:
            latencies = np.array(self._latencies)
            counts = (self._late, self._missed, self._failed, len(self._scheduler) + len(self._inbox))
            answered, stolen = dict(self._answered), dict(self._stolen)
        shares = {"p50": 50, "p95": 95, "p99": 99, "max": 100}
        latency = {
            name: float(np.percentile(latencies, share)) if len(latencies) else math.nan
            for name, share in shares.items()
        }
        return ServerStatistics(answered, stolen, *counts, latency)

    def close(self, cancel: bool = False) -> None:
        """Stop accepting queries, and wait for those already submitted.

        A future's callback may close its server; then the call does not wait for the thread that runs the callback.

        Parameters
        ----------
        cancel
            Cancel queries that no engine has taken yet.

        Examples
        --------
        >>> index = tadoc.build_index(pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress())
        >>> server = index.serve(engine="cpu")
        >>> future = server.submit("do")
        >>> server.close()
        >>> future.result().get_column("id").to_list()
        [1]

        """
        with self._lock:
            self._is_closed = True
            waiting = self._scheduler.remove_all() + self._inbox if cancel else []
            self._inbox = [] if cancel else self._inbox
            self._wake(self._engines)
        for request in waiting:
            request.future.cancel()
        for thread in self._threads:
            if thread is not threading.current_thread():  # a future's callback runs on one of them
                thread.join()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close(cancel=error is not None)

    def _weigh(self, queries: list[str], syntax: str | None = None) -> Plan:
        request = self._request
        texts, syntax = as_texts(queries, "submit"), request.syntax if syntax is None else syntax
        return plan(self._index, texts, request.scoring, "submit", request.mode, syntax)

    def _traits(self, name: str) -> Traits:
        """Return the properties of an engine: one thread takes a batch; the CPU searches it with all threads."""
        threads = self._engines[name].threads(self._cpu_threads)
        return Traits(threads / CROWDING if threads > 1 else 1.0, overhead_of(name), BATCH_SECONDS[name])

    def _predict(self, batch: Plan, names: Sequence[str]) -> list[dict[str, float]]:
        """Predict the seconds of each query on each engine."""
        frequencies = batch.frequencies[batch.items]
        predicted = []
        for name in names:
            engine = self._engines[name]
            missing = np.zeros(len(batch.items))
            for segment, numbers in zip(self._index.segments, batch.numbers, strict=True):
                missing += missing_bytes(segment, numbers[batch.items], engine)
            moved = np.bincount(batch.owners, missing, batch.size).astype(np.float64, copy=False)
            own = predict(
                name, self._request.mode, batch.offsets, frequencies, self._index.documents, self._request.k, moved
            )
            predicted.append((self._speeds[name] * own).tolist())
        return [dict(zip(names, seconds, strict=True)) for seconds in zip(*predicted, strict=True)]

    def _prepare(self, name: str) -> None:
        """Load what searches read, compile the kernels, and measure an engine, before the first query."""
        engine = self._engines[name]
        for segment in self._index.segments:
            self._find(engine, self._weigh(segment.terms.series.head(_WARM_UP).to_list(), "plain"))
        if len(self._engines) > 1 and (queries := _sample(self._index)):
            batch = self._weigh(queries, "plain")
            own = [seconds[name] for seconds in self._predict(batch, [name])]
            taken = min(self._timed(engine, batch) for _ in range(_TRIES))
            self._correct(name, self._traits(name).lasts(sum(own), max(own)), taken, 1.0)

    def _timed(self, engine: Engine, batch: Plan) -> float:
        start = time.monotonic()
        self._find(engine, batch)
        return time.monotonic() - start

    def _correct(self, name: str, predicted: float, taken: float, share: float = 0.1) -> None:
        """Correct an engine's predictions by the seconds of a batch; those of an overhead tell nothing."""
        overhead = overhead_of(name)
        if predicted > 2 * overhead:
            ratio = max(taken - overhead, 0.0) / (predicted - overhead)
            self._speeds[name] *= min(max(ratio, 1 / _MOST_OFF), _MOST_OFF) ** share

    def _find(self, engine: Engine, batch: Plan) -> pl.DataFrame:
        threads = max(1, self._cpu_threads - _SPARE) if self._team.is_helped else self._cpu_threads
        with own_threads(threads):
            found = find(self._index, batch, self._request, self._allowed, engine)
        return as_frame(self._index.stored, found)

    def _wake(self, names: Iterable[str]) -> None:
        """Wake idle engines; requires the lock."""
        for name in names:
            self._idle[name].notify()

    def _arrived(self, name: str, now: float) -> list[_Request]:
        """Take queries for an engine's thread to tokenize; requires the lock.

        One engine does this at once, the others only if queries wait long: a batch costs little more than one query.
        """
        team = self._team
        is_due = self._inbox and (
            name == team.leader or self._is_closed or (team.is_helped and now - self._inbox[0].submitted > _PATIENCE)
        )
        arrived = self._inbox[:_MAX_ADMITTED] if is_due else []
        self._inbox = self._inbox[len(arrived) :]
        self._admitting += bool(arrived)
        return arrived

    def _work(self, name: str) -> None:
        while True:
            with self._lock:
                now = time.monotonic()
                arrived = self._arrived(name, now)
                if not arrived:
                    work = self._scheduler.take(name, now)
                    if work.moved:
                        self._wake(self._engines)
                    if not work.keys and not work.missed:
                        if self._is_closed and not self._admitting and not len(self._scheduler):
                            self._wake(self._engines)
                            return
                        expiry = self._scheduler.next_expiry()
                        self._idle[name].wait(None if expiry == math.inf else max(0.0, expiry - now) + _TICK)
                        continue
            if arrived:
                self._admit(arrived)
                continue
            for request in work.missed:
                self._give_up(request)
            running = [request for request in work.keys if request.future.set_running_or_notify_cancel()]
            if running:
                self._answer(name, running, work.stolen, work.seconds)

    def _admit(self, requests: list[_Request]) -> None:
        """Tokenize queries, predict their times, and add them to the scheduler."""
        ready = self._cut(requests)
        with self._lock:
            self._admissions += 1
            self._team.weigh(_sums([seconds for _, seconds in ready]), len(ready))
            active = self._team.active(time.monotonic(), sum(self._answered.values()), len(self._scheduler))
            for request, seconds in ready:
                own = {name: taken for name, taken in seconds.items() if name in active}
                self._scheduler.add(request, own or seconds, request.deadline)
            awake = {*active, *self._active}
            self._active = tuple(self._engines) if self._admissions % _BETWEEN_WEIGHINGS == 0 else active
            self._admitting -= 1
            self._wake(awake)

    def _cut(self, requests: list[_Request]) -> list[tuple[_Request, dict[str, float]]]:
        """Tokenize queries together, or one by one if that fails, so that an invalid query affects no other."""
        try:
            batch = self._weigh([request.query for request in requests])
            predicted = self._predict(batch, self._active)
        except BaseException as error:  # Polars' panics, too
            if len(requests) > 1:
                return [ready for request in requests for ready in self._cut([request])]
            self._fail(requests[0], error)
            return []
        for number, request in enumerate(requests):
            request.batch, request.number = batch, number
        return list(zip(requests, predicted, strict=True))

    def _fail(self, request: _Request, error: BaseException) -> None:
        with self._lock:
            self._failed += 1
        if request.future.running() or request.future.set_running_or_notify_cancel():
            _settle(request.future.set_exception, error)

    def _give_up(self, request: _Request) -> None:
        with self._lock:
            self._missed += 1
        if request.future.set_running_or_notify_cancel():
            waited = time.monotonic() - request.submitted
            error = DeadlineMissedError(
                f"serve: after {waited:.3f} s of waiting no engine could answer the query within its deadline of "
                f"{self._deadline:g} s; raise deadline=, or submit fewer queries at a time"
            )
            _settle(request.future.set_exception, error)

    def _answer(self, name: str, requests: list[_Request], stolen: int, predicted: float) -> None:
        by_batch: dict[int, list[_Request]] = {}
        for request in requests:
            by_batch.setdefault(id(request.batch), []).append(request)
        requests = [request for own in by_batch.values() for request in own]
        began = time.monotonic()
        try:
            parts = [select(own[0].batch, [one.number for one in own]) for own in by_batch.values() if own[0].batch]
            results = self._find(self._engines[name], join(self._index, parts))
        except BaseException as error:
            if len(requests) == 1:
                self._fail(requests[0], error)
                return
            for request in requests:
                self._answer(name, [request], 0, 0.0)
            return
        ends = np.searchsorted(results["query"].to_numpy(), np.arange(len(requests) + 1)).tolist()
        if len(requests) > 1:  # numbers each query from 0; with_columns would take half a millisecond
            results.replace_column(0, _FIRST.new_from_index(0, len(results)))
        now = time.monotonic()
        with self._lock:
            self._correct(name, predicted, now - began)
            self._answered[name] += len(requests)
            self._stolen[name] += stolen
            self._late += sum(request.deadline < now for request in requests)
            self._latencies.extend(now - request.submitted for request in requests)
        for request, (start, stop) in zip(requests, pairwise(ends), strict=True):
            request.future.rows = start, stop - start
            _settle(request.future.set_result, results)


def _settle(settle: Callable[[Any], None], outcome: Any) -> None:
    """Give a query its outcome; a callback that raises ``SystemExit`` or panics does not end the server's thread."""
    try:
        settle(outcome)
    except BaseException:
        _log.exception("serve: a callback of a query raised an exception")


def _sample(index: Collection) -> list[str]:
    """Return queries of two words, which are drawn by the number of documents that contain them."""
    words: list[str] = []
    for segment in index.segments:
        ends = np.cumsum(segment.postings.frequencies, dtype=np.int64)
        if len(ends):
            drawn = np.random.default_rng(len(words)).integers(0, ends[-1], 2 * _SAMPLED)
            words += segment.terms.series.gather(np.searchsorted(ends, drawn, side="right")).to_list()
    return [f"{first} {second}" for first, second in zip(words[::2], words[1::2], strict=False)]


def _sums(predicted: list[dict[str, float]]) -> dict[str, float]:
    return {name: math.fsum(own[name] for own in predicted) for name in (predicted[0] if predicted else ())}


MAX_SECONDS = 1e18
"""Longer deadlines are none."""


def _seconds(deadline: float | None) -> float:
    if deadline is None:
        return math.inf
    if not isinstance(deadline, (int, float, np.integer, np.floating)) or isinstance(deadline, bool):
        raise TypeError(f"deadline={deadline!r} must be a number of seconds, or None")
    if not deadline > 0:
        raise ValueError(f"deadline={deadline!r} must be above 0 seconds")
    return float(deadline) if deadline < MAX_SECONDS else math.inf


def _engines(asked: str) -> dict[str, Engine]:
    return {engine.name: engine for engine in runnable(asked)}
