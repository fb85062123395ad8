"""The scheduling policy of a server: which engine takes which queries and when, without clocks or threads.

After Ding et al., WWW 2009, section 9. Each query has a predicted time per engine. It belongs to the group of an engine
that is clearly faster, or to the group "either". An idle engine takes from its own group, then from "either", then
steals what it can finish earlier than the group's own engine would. Within a group, the earliest deadline goes first. A
query that no engine can finish in time is returned as missed. If more queries wait than fit in a batch, a query that a
full batch would make late is postponed until nothing else waits: hurrying for it would make batches small, and more of
the others late. The server (:mod:`polars_tadoc.index.serve.server`) and the simulation (``benchmarks/serving.py``) both
use this module.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

EITHER = "either"
"""Group of queries for which no engine is clearly faster."""

PUT_OFF = "put off"
"""Group of queries that run when nothing else waits."""

CLEARLY = 2.0
"""Minimum ratio of times for an engine to be clearly faster."""


@dataclass(frozen=True)
class Traits:
    """Properties of an engine."""

    threads: float = 1.0
    """Queries of a batch that run at the same time."""
    overhead: float = 0.0
    """Fixed seconds per batch."""
    batch_seconds: float = 0.0
    """Maximum predicted seconds of a batch with several queries; 0: one query per batch."""

    def lasts(self, total: float, longest: float) -> float:
        """Return the seconds of a batch, from the sum and the maximum of its queries' times."""
        return self.overhead + max(longest, total / self.threads)


@dataclass(frozen=True)
class Work(Generic[Key]):
    """Queries assigned to an engine."""

    keys: list[Key]
    """Queries to answer now."""
    missed: list[Key]
    """Queries that no engine can answer before their deadline any more; the caller must report them."""
    stolen: int = 0
    """Number of these queries that belong to another engine's group."""
    moved: int = 0
    """Number of queries moved to another engine's group because this one cannot answer them in time."""
    seconds: float = 0.0
    """Predicted seconds of the queries."""


@dataclass
class _Query(Generic[Key]):
    key: Key
    deadline: float
    seconds: Mapping[str, float]
    group: str


@dataclass
class _Group:
    """Waiting queries, by number; heaps may contain numbers of queries that are gone."""

    by_deadline: list[tuple[float, int]] = field(default_factory=list)
    by_loss: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    """For each other engine: a heap of ratios of its time to this one's."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Sum of each engine's times for all queries."""
    size: int = 0


class Scheduler(Generic[Key]):
    """Waiting queries, and their assignment to engines.

    Times are seconds on any clock of the caller; only differences matter.

    Parameters
    ----------
    engines
        Properties of each engine, by name.

    Examples
    --------
    >>> scheduler = Scheduler({"cpu": Traits(threads=2), "gpu": Traits(overhead=0.001, batch_seconds=0.01)})
    >>> for number, (cpu, gpu) in enumerate([(0.02, 0.001), (0.0001, 0.001), (0.03, 0.001)]):
    ...     scheduler.add(number, {"cpu": cpu, "gpu": gpu}, deadline=0.5)
    >>> scheduler.take("gpu", now=0.0).keys
    [0, 2]
    >>> scheduler.take("cpu", now=0.0).keys
    [1]

    """

    def __init__(self, engines: Mapping[str, Traits]) -> None:
        self._engines = dict(engines)
        self._waiting: dict[int, _Query[Key]] = {}
        self._groups = {name: _Group() for name in (*self._engines, EITHER, PUT_OFF)}
        self._by_latest_start: list[tuple[float, int]] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, key: Key, seconds: Mapping[str, float], deadline: float = math.inf) -> None:
        """Add a waiting query.

        Parameters
        ----------
        key
            Identifies the query in results of :meth:`take` and :meth:`expire`.
        seconds
            Predicted time by engine, without its overhead; an engine that is left out, or with an infinite time, does
            not run it.
        deadline
            Time by which it must be answered.

        Raises
        ------
        ValueError
            A time is not positive, or no engine can run the query.

        """
        seconds = {name: own for name, own in seconds.items() if name in self._engines}
        if not 0 < min(seconds.values()) < math.inf:
            raise ValueError(f"predicted seconds {dict(seconds)} must be positive, and finite for at least one engine")
        number = self._next
        self._next += 1
        query = _Query(key, deadline, seconds, EITHER)
        self._waiting[number] = query
        self._put(number, query, self._group_of(query))
        if deadline < math.inf:
            heapq.heappush(self._by_latest_start, (max(self._latest_start(query, name) for name in seconds), number))

    def take(self, engine: str, now: float) -> Work[Key]:
        """Assign queries to an idle engine; none if no query suits it."""
        missed = self.expire(now)
        traits = self._engines[engine]
        moved = sum(self._give_up_late(group, engine, now) for group in (engine, EITHER))
        self._put_off(engine, now)
        keys: list[Key] = []
        stolen, total, longest, lasts, deadline = 0, 0.0, 0.0, traits.overhead, math.inf
        while not keys or traits.batch_seconds:
            number = self._next_for(engine, len(keys) == stolen, total, longest, now)
            if number is None:
                break
            query = self._waiting[number]
            own = query.seconds[engine]
            lasts_then, deadline = traits.lasts(total + own, max(longest, own)), min(deadline, query.deadline)
            is_long = lasts_then > max(lasts, traits.overhead + traits.batch_seconds)
            if keys and (is_long or deadline - lasts_then < now):
                break
            self._remove(number)
            keys.append(query.key)
            stolen += query.group not in (engine, EITHER, PUT_OFF)
            total, longest, lasts = total + own, max(longest, own), lasts_then
        return Work(keys, missed, stolen, moved, lasts if keys else 0.0)

    def _next_for(self, engine: str, may_steal: bool, total: float, longest: float, now: float) -> int | None:
        """Return the query that an engine takes next."""
        for group in (engine, EITHER):
            number = self._earliest(group)
            if number is not None:
                return number
        number = self._least_loss(engine, total, longest, now) if may_steal else None
        if number is None:
            number = self._earliest(PUT_OFF)
            if number is not None and self._latest_start(self._waiting[number], engine) < now:
                return None  # another engine may still be in time
        return number

    def _put_off(self, engine: str, now: float) -> None:
        """Postpone queries that a full batch would make late, if a full batch waits."""
        traits = self._engines[engine]
        groups = (self._groups[engine], self._groups[EITHER])
        total = sum(group.seconds.get(engine, 0.0) for group in groups)
        if not 0 < traits.batch_seconds <= total / traits.threads:
            return
        for group in (engine, EITHER):
            while (number := self._earliest(group)) is not None:
                query = self._waiting[number]
                if query.deadline - traits.overhead - traits.batch_seconds >= now:
                    break
                self._leave(query)
                self._put(number, query, PUT_OFF)

    def expire(self, now: float) -> list[Key]:
        """Remove and return the queries that no engine can answer before their deadline any more."""
        missed = []
        while self._by_latest_start and self._by_latest_start[0][0] < now:
            _, number = heapq.heappop(self._by_latest_start)
            if number in self._waiting:
                missed.append(self._remove(number).key)
        return missed

    def next_expiry(self) -> float:
        """Return the time before which :meth:`expire` has nothing to do."""
        while self._by_latest_start and self._by_latest_start[0][1] not in self._waiting:
            heapq.heappop(self._by_latest_start)
        return self._by_latest_start[0][0] if self._by_latest_start else math.inf

    def remove_all(self) -> list[Key]:
        """Remove and return all waiting queries, in order of arrival."""
        return [self._remove(number).key for number in sorted(self._waiting)]

    def _group_of(self, query: _Query[Key]) -> str:
        if len(query.seconds) == 1:
            return next(iter(query.seconds))
        fastest, second = sorted(self._engines, key=lambda name: self._share(query, name))[:2]
        return EITHER if self._share(query, second) < CLEARLY * self._share(query, fastest) else fastest

    def _share(self, query: _Query[Key], engine: str) -> float:
        """Return the time that a query adds to a large batch."""
        return query.seconds.get(engine, math.inf) / self._engines[engine].threads

    def _latest_start(self, query: _Query[Key], engine: str) -> float:
        return query.deadline - (self._engines[engine].overhead + query.seconds.get(engine, math.inf))

    def _put(self, number: int, query: _Query[Key], group: str) -> None:
        query.group = group
        heaps = self._groups[group]
        heapq.heappush(heaps.by_deadline, (query.deadline, number))
        heaps.size += 1
        for name, seconds in query.seconds.items():
            if seconds < math.inf:
                heaps.seconds[name] = heaps.seconds.get(name, 0.0) + seconds
                if name != group and group in self._engines:
                    loss = self._share(query, name) / self._share(query, group)
                    heapq.heappush(heaps.by_loss.setdefault(name, []), (loss, number))

    def _leave(self, query: _Query[Key]) -> None:
        heaps = self._groups[query.group]
        heaps.size -= 1
        if not heaps.size:
            self._groups[query.group] = _Group()  # resets the sums, and drops stale numbers in heaps
            return
        for name, seconds in query.seconds.items():
            if seconds < math.inf:
                heaps.seconds[name] -= seconds

    def _remove(self, number: int) -> _Query[Key]:
        query = self._waiting.pop(number)
        self._leave(query)
        return query

    def _is_in(self, number: int, group: str) -> bool:
        return number in self._waiting and self._waiting[number].group == group

    def _earliest(self, group: str) -> int | None:
        """Return the query of a group with the earliest deadline."""
        heap = self._groups[group].by_deadline
        while heap and not self._is_in(heap[0][1], group):
            heapq.heappop(heap)
        return heap[0][1] if heap else None

    def _give_up_late(self, group: str, engine: str, now: float) -> int:
        """Move queries that the engine cannot answer in time to the group of the engine with the most time left."""
        moved = 0
        while True:
            number = self._earliest(group)
            if number is None or self._latest_start(self._waiting[number], engine) >= now:
                return moved
            query = self._waiting[number]
            self._leave(query)
            self._put(number, query, max(self._engines, key=lambda name: self._latest_start(query, name)))
            moved += 1

    def _least_loss(self, thief: str, total: float, longest: float, now: float) -> int | None:
        """Return the query of another group that costs least to steal, if it is then answered earlier."""
        best: tuple[float, int] | None = None
        for owner, traits in self._engines.items():
            heaps = self._groups[owner]
            heap = heaps.by_loss.get(thief, [])
            while heap and not self._can_steal(heap[0][1], owner, thief, now):
                heapq.heappop(heap)
            if heap and (best is None or heap[0] < best):
                own = self._waiting[heap[0][1]].seconds[thief]
                ends = self._engines[thief].lasts(total + own, max(longest, own))
                if ends < traits.overhead + heaps.seconds[owner] / traits.threads:
                    best = heap[0]
        return None if best is None else best[1]

    def _can_steal(self, number: int, owner: str, thief: str, now: float) -> bool:
        return self._is_in(number, owner) and self._latest_start(self._waiting[number], thief) >= now
