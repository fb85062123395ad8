"""Least-recently-used stores with a byte budget, keyed by content digest."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from polars_tadoc.config import settings

if TYPE_CHECKING:
    from polars_tadoc.grammar import Grammar

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
        self._lock = threading.RLock()  # what a finalizer discards may come while the same thread stores
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str) -> Value | None:
        """Return the value and mark it used, or None."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            self._trim()
            return found[0]

    def put(self, key: str, value: Value) -> Value:
        """Store a value (one larger than the whole budget is not kept) and return it."""
        size = self._size(value)
        with self._lock:
            if key in self._values:
                self.nbytes -= self._values.pop(key)[1]
            if size <= self._budget():
                self._values[key] = (value, size)
                self.nbytes += size
            self._trim()
        return value

    def _trim(self) -> None:
        while self.nbytes > self._budget():
            _, (_, freed) = self._values.popitem(last=False)
            self.nbytes -= freed

    def discard(self, key: str) -> None:
        """Forget a value, if it is there."""
        with self._lock:
            if key in self._values:
                self.nbytes -= self._values.pop(key)[1]

    def clear(self) -> None:
        """Forget every value."""
        with self._lock:
            self._values.clear()
            self.nbytes = 0


grammars: ByteLRU[Grammar] = ByteLRU(lambda: settings().host_cache_bytes, lambda grammar: grammar.nbytes)
"""Decoded grammars in host memory."""
