"""Processor seconds that each kernel takes to compile, and which are compiled for several types.

``python -m benchmarks.compile_times [NAME ...]``: everything listed (or kernels whose names contain one of these), in
one process with an empty cache. Time of the kernels that a kernel calls counts as theirs, where they come first.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from typing import Any

from benchmarks import corpora


def table(names: list[str]) -> None:
    """Compile and print the table; in a process with an empty cache."""
    from numba.core import event

    from polars_tadoc.runtime.machine_code import signatures

    spent: dict[str, dict[str, float]] = defaultdict(dict)
    within: list[tuple[float, float]] = []  # start, seconds of what was compiled meanwhile

    class Clock(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            within.append((time.process_time(), 0.0))

        def on_end(self, event: Any) -> None:
            started, nested = within.pop()
            took = time.process_time() - started
            if within:
                within[-1] = (within[-1][0], within[-1][1] + took)
            function = event.data["dispatcher"].py_func
            name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
            spent[name][", ".join(map(str, event.data["args"]))] = took - nested

    with event.install_listener("numba:compile", Clock()):
        for name, kernel, form in signatures.specialisations():
            if not hasattr(kernel, "py_func") or not (not names or any(one in name for one in names)):
                continue
            try:
                kernel.compile(tuple(signatures.decode(one) for one in form))
            except Exception as error:  # the kernel has changed since it was listed
                print(f"{name} cannot be compiled: {type(error).__name__}")
    everything = sum(sum(kinds.values()) for kinds in spent.values())
    several = [kinds for kinds in spent.values() if len(kinds) > 1]
    print(
        f"{sum(map(len, spent.values()))} specialisations of {len(spent)} kernels, {everything:.0f} s; "
        f"{len(several)} kernels have several, {sum(map(len, several)) - len(several)} too many"
    )
    print("\nseconds  types  kernel")
    for name, kinds in sorted(spent.items(), key=lambda item: -sum(item[1].values())):
        print(f"{sum(kinds.values()):7.2f} {len(kinds):6}  {name}")
    print("\ncompiled for several types: arguments that differ")
    for name, kinds in sorted(spent.items(), key=lambda item: -sum(item[1].values())):
        if len(kinds) > 1:
            columns = zip(*(kind.split(", ") for kind in kinds), strict=False)
            differ = {" | ".join(dict.fromkeys(column)) for column in columns if len(set(column)) > 1}
            print(f"{name}: {'; '.join(sorted(differ))}")


def main() -> None:
    if os.environ.get("COMPILE_TIMES"):
        table(sys.argv[1:])
        return
    print(f"machine: {corpora.machine()}")
    with tempfile.TemporaryDirectory() as cache:
        given = {**os.environ, "COMPILE_TIMES": "1", "NUMBA_CACHE_DIR": cache, "NUMBA_CPU_FEATURES": "+64bit"}
        given["NUMBA_CPU_NAME"] = "x86-64"  # a target that nobody ships
        command = [sys.executable, "-m", "benchmarks.compile_times", *sys.argv[1:]]
        subprocess.run(command, check=True, env=given, cwd=corpora.ROOT, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
