"""Ctrl-C: seen by kernels while they run, told once, and nothing computes on."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

START = """
import os, signal, threading, time
import numba as nb
import numpy as np
import polars as pl
import polars_tadoc as tadoc
from polars_tadoc.kernels.cpu.interrupts import count, interrupts, interruptible, polled
from polars_tadoc.kernels.cpu.parallel import map_parallel

@polled
@nb.njit(nogil=True)
def spin(numbers, first):
    before, x = interrupts(), nb.uint64(1)
    for i in range(numbers):
        if i & 0xFFFF == 0 and interrupts() != before:
            break
        x = x * nb.uint64(6364136223846793005) + nb.uint64(i)
    return x

spin(1, 0)

def interrupt(after=0.2):
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()
    return time.monotonic() + after

def times_told(work):
    told, sent = 0, interrupt()
    try:
        try:
            work()
        except KeyboardInterrupt:
            told += 1
            assert time.monotonic() - sent < 1
        for _ in range(100):
            time.sleep(0.001)
    except KeyboardInterrupt:
        told += 1
    before = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - before < 0.15
    return told

LONG = 10**12
"""


def run(code: str) -> None:
    """Run a script that begins with ``START``."""
    subprocess.run([sys.executable, "-c", START + dedent(code)], check=True, timeout=60)


@pytest.mark.parametrize(
    "work",
    [
        "spin(LONG, 0)",
        "map_parallel(lambda k: spin(LONG, k), range(5))",
        "pl.select(pl.lit(LONG).map_batches(lambda s: spin(s[0], 0), return_dtype=pl.UInt64))",
    ],
)
def test_a_kernel_ends(work: str) -> None:
    run(f"""
    with tadoc.Config(threads=2):
        assert times_told(lambda: {work}) == 1
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as notebooks do before each cell
        time.sleep(0.1)
        assert times_told(lambda: {work}) == 1
        assert len(map_parallel(lambda k: spin(10, k), range(5))) == 5
    """)


def test_what_was_swallowed_or_made_another_error_of_is_told_once() -> None:
    run("""
    def swallowed():
        with interruptible():
            try:
                spin(LONG, 0)
            except KeyboardInterrupt:
                pass

    def other():
        with interruptible():
            try:
                spin(LONG, 0)
            except KeyboardInterrupt:
                raise ValueError("cut short") from None

    assert times_told(swallowed) == 1
    assert times_told(other) == 1
    """)


def test_a_handler_of_the_program_decides() -> None:
    run("""
    seen = []
    spin(1, 0)
    signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    sent, whole = interrupt(), spin(3 * 10**8, 0)
    while time.monotonic() < sent:
        time.sleep(0.01)
    time.sleep(0.1)
    assert seen == [1] and count() == 0
    assert whole == spin(3 * 10**8, 0)

    def stop(*_):
        raise SystemExit(7)

    signal.signal(signal.SIGINT, stop)
    sent = interrupt()
    try:
        map_parallel(lambda k: spin(LONG, k), range(5))  # the main thread waits: the handler runs, and cancels
    except SystemExit as error:
        assert error.code == 7 and time.monotonic() - sent < 1
    else:
        raise AssertionError
    """)


def test_a_forked_process_is_interrupted_by_itself() -> None:
    run("""
    spin(1, 0)
    child = os.fork()
    if child == 0:
        told = times_told(lambda: spin(LONG, 0))
        os._exit(told)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert count() == 0
    """)
