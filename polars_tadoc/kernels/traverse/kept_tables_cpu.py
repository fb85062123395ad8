"""Caches rules' tables between calls, under a byte budget, for the lifetime of the rules."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary, finalize

from polars_tadoc.config import settings
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.traverse.tables_cpu import Tables, build_tables, plan_tables
from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.runtime.cache import ByteLRU

kept: ByteLRU[Tables] = ByteLRU(lambda: settings().host_cache_bytes, lambda tables: tables.nbytes)
"""Cache of tables; they are independent of rows."""

_numbers = itertools.count()
_entries: WeakKeyDictionary[Rules, _Entry] = WeakKeyDictionary()
_lock = threading.Lock()


@dataclass
class _Entry:
    """Cache entry of rules, by strategy: bytes of all tables, and bytes built for single calls so far."""

    number: int = field(default_factory=lambda: next(_numbers))
    nbytes: dict[str, int] = field(default_factory=dict)
    spent: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def key(self, strategy: str) -> str:
        return f"{self.number} {strategy}"


def _forget(number: int) -> None:
    for strategy in ("top_down", "bottom_up"):
        kept.discard(f"{number} {strategy}")


def _entry(rules: Rules) -> _Entry:
    with _lock:
        entry = _entries.get(rules)
        if entry is None:
            entry = _entries[rules] = _Entry()
            finalize(rules, _forget, entry.number)
        return entry


def load_tables(rules: Rules, roots: UInt32, strategy: str) -> Tables:
    """Return tables of at least the rules that the roots reach.

    All rules' tables are built once and cached. If they exceed the budget, or the roots reach far fewer rules, only the
    reached ones are built, and not cached; once half of the total bytes was built in this way, all are built and
    cached.

    Parameters
    ----------
    rules, roots, strategy
        As for :func:`polars_tadoc.kernels.traverse.tables_cpu.plan_tables`.

    """
    entry = _entry(rules)
    with entry.lock:
        tables = kept.get(entry.key(strategy))
        if tables is not None:
            return tables
        plan = None
        if strategy not in entry.nbytes:
            plan = plan_tables(rules, None, strategy)
            entry.nbytes[strategy] = plan.nbytes
        whole, spent = entry.nbytes[strategy], entry.spent.get(strategy, 0)
        affordable = whole <= settings().host_cache_bytes
        if not affordable or len(roots) < rules.rule_count:
            reached = plan_tables(rules, roots, strategy)
            if not affordable or spent + reached.nbytes < whole // 2:
                entry.spent[strategy] = spent + reached.nbytes
                return build_tables(rules, reached)
        return kept.put(entry.key(strategy), build_tables(rules, plan or plan_tables(rules, None, strategy)))
