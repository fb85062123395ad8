"""Least-recently-used caches with a byte budget."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Value = TypeVar("Value")


class ByteLRU(Generic[Value]):
    """Caches values by key; when their bytes exceed the budget, drops the least recently used.

    Parameters
    ----------
    budget
        Returns the budget in bytes; called at each insertion.
    size
        Bytes of a value.

    Examples
    --------
    >>> store = ByteLRU(lambda: 10, len)
    >>> store.put("a", "12345"), store.put("b", "1234567")
    ('12345', '1234567')
    >>> store.get("a") is None, store.get("b"), store.nbytes
    (True, '1234567', 7)

    """

    def __init__(self, budget: Callable[[], int], size: Callable[[Value], int]) -> None:
        self._budget, self._size = budget, size
        self._values: OrderedDict[str, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()
        self._discarded: deque[str] = deque()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str) -> Value | None:
        """Return the value and mark it used, or None."""
        with self._changing():
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: str, value: Value) -> Value:
        """Store a value (unless it is larger than the whole budget) and return it."""
        size = self._size(value)
        with self._changing() as gone:
            self._take(key, gone)
            if size <= self._budget():
                self._values[key] = (value, size)
                self.nbytes += size
        return value

    def discard(self, key: str) -> None:
        """Drop a value, if it is cached: now, or in the next call if another thread is changing the cache.

        Finalizers may call it at any time, also in a thread that is changing the cache, or holds other locks.
        """
        gone: list[object] = []
        self._discarded.append(key)
        if self._lock.acquire(blocking=False):
            try:
                self._settle(gone)
            finally:
                self._lock.release()

    def clear(self) -> None:
        """Drop every value."""
        with self._changing() as gone:
            gone += self._values.values()
            self._values.clear()
            self.nbytes = 0

    @contextmanager
    def _changing(self) -> Iterator[list[object]]:
        """Hold the lock; dropped values go into a list, freed after the lock, because that may wait for others."""
        gone: list[object] = []
        with self._lock:
            self._take_discarded(gone)  # but not values added now
            yield gone
            self._settle(gone)

    def _take_discarded(self, gone: list[object]) -> None:
        while self._discarded:
            self._take(self._discarded.popleft(), gone)

    def _settle(self, gone: list[object]) -> None:
        self._take_discarded(gone)
        while self.nbytes > self._budget():
            self._take(next(iter(self._values)), gone)

    def _take(self, key: str, gone: list[object]) -> None:
        if key in self._values:
            value, size = self._values.pop(key)
            self.nbytes -= size
            gone.append(value)
