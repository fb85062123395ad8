"""Which engines serve a stream of queries: the policy alone, without clocks and threads.

Two engines at work share Python's interpreter and the processor's cores, so both may answer fewer queries than the
better one alone. That one leads: the engine that would take less time for the queries of late. The other helps only
while queries queue, and only as long as more are answered with its help than without: that is measured in turns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

QUEUED = 0.05
"""Seconds of the leader's work that wait when another engine is asked for help."""

WINDOW = 0.2
"""Seconds of each measurement."""

GAIN = 1.03
"""How many times more queries must be answered for the help to go on."""

HELPED = 20
"""Windows with help until the leader is measured alone again."""

FIRST_ALONE, MAX_ALONE = 4, 256
"""Windows alone before a try, at first and at most: four times as many after each one that failed."""

SETTLING = 0.1
"""Seconds after a change that are not measured, at most: what waited is answered as before."""

CLEARLY = 1.1
"""How many times less time an engine takes that takes over the lead."""

_FADING = 0.98  # weight of earlier observations after a batch of queries


class Team:
    """The engines of a server.

    Parameters
    ----------
    threads
        By engine: number of queries of a batch that it works on at the same time.

    Examples
    --------
    >>> team = Team({"cpu": 8.0, "gpu": 1.0})
    >>> team.weigh({"cpu": 0.8, "gpu": 0.02})
    >>> team.leader, team.active(now=0.0, answered=0, waiting=3)
    ('gpu', ('gpu',))

    """

    def __init__(self, threads: Mapping[str, float]) -> None:
        self._threads = dict(threads)
        self._loads = dict.fromkeys(threads, 0.0)
        self._weighed = 0.0
        self.leader = next(iter(threads))
        self.is_helped = False
        self._start, self._answered, self._alone = math.nan, 0, 0.0
        self._windows, self._until_try = 0, FIRST_ALONE

    def weigh(self, seconds: Mapping[str, float], queries: int = 1) -> None:
        """Take note of the predicted seconds of some queries by engine; the leader may change.

        Queries that are not predicted for all engines tell nothing.
        """
        if len(seconds) < len(self._threads):
            return
        self._weighed = _FADING * self._weighed + queries
        for name, own in seconds.items():
            self._loads[name] = _FADING * self._loads[name] + own / self._threads[name]
        best = min(self._loads, key=lambda name: self._loads[name])
        if CLEARLY * self._loads[best] < self._loads[self.leader]:
            self.leader, self._until_try = best, FIRST_ALONE
            self._switch(False)

    def active(self, now: float, answered: int, waiting: int) -> tuple[str, ...]:
        """Return the engines that take new queries.

        Parameters
        ----------
        now
            Seconds on any clock.
        answered, waiting
            Number of queries answered so far, and of those that wait.

        """
        if len(self._threads) == 1:
            return (self.leader,)
        queued = waiting * self._loads[self.leader] / max(self._weighed, 1.0)
        if queued < QUEUED:
            self._switch(False)
        elif math.isnan(self._start):
            self._start, self._answered = now + min(queued, SETTLING), -1
        elif now >= self._start and self._answered < 0:
            self._start, self._answered = now, answered
        elif now - self._start >= WINDOW:
            self._close_window((answered - self._answered) / (now - self._start))
            if not math.isnan(self._start):
                self._start, self._answered = now, answered
        return tuple(self._threads) if self.is_helped else (self.leader,)

    def _close_window(self, rate: float) -> None:
        self._windows += 1
        if not self.is_helped:
            self._alone = rate
            if self._windows >= self._until_try:
                self._switch(True)
        elif rate < GAIN * self._alone:
            self._until_try = min(4 * self._until_try, MAX_ALONE)
            self._switch(False)
        elif self._windows >= HELPED:
            self._until_try = 1  # the next try is likely to succeed, too
            self._switch(False)

    def _switch(self, is_helped: bool) -> None:
        self.is_helped, self._start, self._windows = is_helped, math.nan, 0
