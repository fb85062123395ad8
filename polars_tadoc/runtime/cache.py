"""Least-recently-used stores with a byte budget."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Value = TypeVar("Value")


class ByteLRU(Generic[Value]):
    """Keeps values by key until their bytes pass the budget; then the least recently used go.

    Parameters
    ----------
    budget
        Called for the budget in bytes at each insertion.
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
        """Store a value (one larger than the whole budget is not kept) and return it."""
        size = self._size(value)
        with self._changing() as gone:
            self._take(key, gone)
            if size <= self._budget():
                self._values[key] = (value, size)
                self.nbytes += size
        return value

    def discard(self, key: str) -> None:
        """Forget a value, if it is there: now, or with the next call where another thread is at the values.

        Finalizers may call it at any time, also in a thread that is at the values itself, or holds locks of others.
        """
        gone: list[object] = []
        self._discarded.append(key)
        if self._lock.acquire(blocking=False):
            try:
                self._settle(gone)
            finally:
                self._lock.release()

    def clear(self) -> None:
        """Forget every value."""
        with self._changing() as gone:
            gone += self._values.values()
            self._values.clear()
            self.nbytes = 0

    @contextmanager
    def _changing(self) -> Iterator[list[object]]:
        """Hold the lock; what is to go is put into a list, and goes when the lock is free: it may wait for others."""
        gone: list[object] = []
        with self._lock:
            self._take_discarded(gone)  # and nothing that is put now
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
