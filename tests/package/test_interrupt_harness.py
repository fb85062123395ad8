"""The harness of interrupts, bounded; ``python -m tests.interrupts --moments 50`` is the whole of it."""

from __future__ import annotations

import os
import random
import signal
from dataclasses import replace

import pytest

from tests import interrupts


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_an_interrupt_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "sink_packed"
    random.seed(os.getpid())
    kind = interrupts.CALLS[name]
    monkeypatch.setitem(interrupts.CALLS, name, replace(kind, rows=4000))
    for bound in ("TOLD", "ENDED", "LEFT"):
        monkeypatch.setattr(interrupts, bound, 120.0)  # other tests run beside this one
    _, found = interrupts.run(name, 1, (signal.SIGINT, signal.SIGKILL))
    assert found.violations == []
    assert found.old + found.new == found.moments == 2
