"""Which engine takes which queries of a stream, and when: the policy alone, without clocks and threads.

After Ding et al., WWW 2009, section 9. A query is predicted to take so long on each engine. It belongs to the group
of the engine that is clearly faster, or to those that either may take. An engine without work takes from its own
group, then from "either", then what it can finish earlier than the engine whose group it is would. Inside a group the
earliest deadline goes first. A query that no engine can finish in time any more is handed back as missed. Where more
wait than a batch holds, a query that a full batch would make late is put off until nothing else waits: to hurry for it
would make batches small, and more of the others late.
The server (:mod:`polars_tadoc.index.serve.server`) and the simulation (``benchmarks/serving.py``) both run this.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

EITHER = "either"
"""The group of queries that no engine is clearly faster for."""

PUT_OFF = "put off"
"""The group of queries that are answered when nothing else waits."""

CLEARLY = 2.0
"""How many times faster an engine is that is clearly faster."""


@dataclass(frozen=True)
class Traits:
    """How one engine takes work."""

    threads: float = 1.0
    """How many queries of a batch it works on at the same time."""
    overhead: float = 0.0
    """Seconds that a batch costs, however many queries it is."""
    batch_seconds: float = 0.0
    """Several queries are taken at once while they are predicted to last no longer than this; 0: always one."""

    def lasts(self, total: float, longest: float) -> float:
        """Return the seconds of a batch: what its queries take one after another, and the longest of them."""
        return self.overhead + max(longest, total / self.threads)


@dataclass(frozen=True)
class Work(Generic[Key]):
    """What came of an engine's asking for work."""

    keys: list[Key]
    """Queries to answer now."""
    missed: list[Key]
    """Queries that no engine can answer before their deadline any more; nobody else hears of them."""
    stolen: int = 0
    """How many of the queries belong to another engine's group."""
    moved: int = 0
    """How many queries went into another engine's group, since this one cannot answer them in time."""
    seconds: float = 0.0
    """How long the queries are predicted to take."""


@dataclass
class _Query(Generic[Key]):
    key: Key
    deadline: float
    seconds: Mapping[str, float]
    group: str


@dataclass
class _Group:
    """Queries that wait, by number; heaps may name some that have gone."""

    by_deadline: list[tuple[float, int]] = field(default_factory=list)
    by_loss: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    """For each other engine: how many times longer it takes, the least first."""
    seconds: dict[str, float] = field(default_factory=dict)
    """What each engine would take for all, one after another."""
    size: int = 0


class Scheduler(Generic[Key]):
    """Queries that wait, and who takes which.

    Times are seconds on any clock that the caller passes; only differences matter.

    Parameters
    ----------
    engines
        By name of an engine how it takes work.

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
        self._only = next(iter(engines))
        self._waiting: dict[int, _Query[Key]] = {}
        self._groups = {name: _Group() for name in (*self._engines, EITHER, PUT_OFF)}
        self._by_latest_start: list[tuple[float, int]] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, key: Key, seconds: Mapping[str, float], deadline: float = math.inf) -> None:
        """Let a query wait.

        Parameters
        ----------
        key
            What :meth:`take` and :meth:`expire` return for it.
        seconds
            By engine how long it is predicted to take beside an engine's overhead; infinite where it cannot run.
        deadline
            When it must have been answered.

        Raises
        ------
        ValueError
            A time is not above 0, or no engine can run the query.

        """
        if not min(seconds[name] for name in self._engines) < math.inf or min(seconds.values()) <= 0:
            raise ValueError(f"predicted seconds {dict(seconds)} must be above 0, and below infinity for some engine")
        number = self._next
        self._next += 1
        query = _Query(key, deadline, {name: seconds[name] for name in self._engines}, EITHER)
        self._waiting[number] = query
        self._put(number, query, self._group_of(query))
        if deadline < math.inf:
            heapq.heappush(
                self._by_latest_start, (max(self._latest_start(query, name) for name in self._engines), number)
            )

    def take(self, engine: str, now: float) -> Work[Key]:
        """Give an engine that has no work something to do: no queries, if none is for it."""
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
        """Put off what a full batch would make late, where one waits."""
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
        """Take out the queries that no engine can answer before their deadline any more."""
        missed = []
        while self._by_latest_start and self._by_latest_start[0][0] < now:
            _, number = heapq.heappop(self._by_latest_start)
            if number in self._waiting:
                missed.append(self._remove(number).key)
        return missed

    def next_expiry(self) -> float:
        """Return until when :meth:`expire` has nothing to do."""
        while self._by_latest_start and self._by_latest_start[0][1] not in self._waiting:
            heapq.heappop(self._by_latest_start)
        return self._by_latest_start[0][0] if self._by_latest_start else math.inf

    def remove_all(self) -> list[Key]:
        """Take out every query that waits, in the order of their coming."""
        return [self._remove(number).key for number in sorted(self._waiting)]

    def _group_of(self, query: _Query[Key]) -> str:
        if len(self._engines) == 1:
            return self._only
        fastest, second = sorted(self._engines, key=lambda name: self._share(query, name))[:2]
        return EITHER if self._share(query, second) < CLEARLY * self._share(query, fastest) else fastest

    def _share(self, query: _Query[Key], engine: str) -> float:
        """Return what a query adds to a large batch."""
        return query.seconds[engine] / self._engines[engine].threads

    def _latest_start(self, query: _Query[Key], engine: str) -> float:
        return query.deadline - (self._engines[engine].overhead + query.seconds[engine])

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
            self._groups[query.group] = _Group()  # sums start anew, what the heaps still name is forgotten
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
        """Move what the engine cannot answer in time to the group of the one that can longest."""
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
        """Return the query of another group whose stealing loses least, if it is answered earlier so."""
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
