"""Compiles kernels ahead of use, in several processes.

``python -m polars_tadoc warmup`` compiles all listed kernels for this processor into the user's cache folder;
``python -m polars_tadoc.runtime.machine_code.build`` does it for levels of processors, into the package, for wheels.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import FunctionType
from typing import Any

from numba import types

from polars_tadoc.runtime.compiled import callback, compiled_for
from polars_tadoc.runtime.machine_code import entries, folders, signatures, targets
from polars_tadoc.runtime.machine_code.cache import KernelCache
from polars_tadoc.runtime.machine_code.entries import Entry

_WORK = Path(__file__).parents[3] / "build" / "machine_code"
"""Cache of builds: the next one compiles only changes."""
_CHILD = "polars_tadoc.runtime.machine_code.build"


def compile_listed(share: int, shares: int, path: Path | None = None) -> int:
    """Compile one share of a list, except cached entries, and return the number of failed specialisations."""
    failed = 0
    listed = [one for one in signatures.specialisations(path) if not signatures.is_inner(one[1])]
    for name, one, form in sorted(listed, key=lambda one: one[0])[share::shares]:
        try:
            arguments = tuple(signatures.decode(argument) for argument in form)
            if hasattr(one, "py_func"):
                one.compile(arguments)
            else:
                callback(types.void(*arguments), one)
        except Exception as error:  # the kernel differs from the listed one: its callers compile it
            failed += 1
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    return failed


def compile_all(processes: int, variables: dict[str, str], *options: str) -> None:
    """Compile everything listed in ``processes`` processes, with environment variables and options of this module.

    Raises
    ------
    RuntimeError
        A process failed.

    """
    root = str(Path(__file__).parents[3])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, **variables, "PYTHONPATH": paths}
    command = [sys.executable, "-m", _CHILD, *options, "--share"]
    commands = [[*command, str(share), str(processes)] for share in range(processes)]
    running = [subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) for command in commands]
    codes = [one.wait() for one in running]
    if any(codes):
        raise RuntimeError(f"compiling kernels failed, exit codes {codes}: run {' '.join(commands[0])}")


def warm_up(processes: int, only_demo: bool = False) -> None:
    """Compile for this processor the kernels that are neither shipped nor cached: all, or only those of the demo."""
    started = time.perf_counter()
    compile_all(processes, {}, *(["--demo"] if only_demo else []))
    print(f"kernels are compiled, in {folders.writable()}; took {time.perf_counter() - started:.0f} s")


def ship(levels: list[str], processes: int) -> None:
    """Compile for levels into the package, replacing its machine code."""
    shutil.rmtree(folders.SHIPPED, ignore_errors=True)
    for level in levels:
        started = time.perf_counter()
        options = []
        if level == targets.ARM:
            targets.compile_for_arm()  # the key of its entries
            options = ["--arm"]
        target = folders.SHIPPED / level
        target.mkdir(parents=True)
        compile_all(processes, {**targets.environment_of(level), "NUMBA_CACHE_DIR": str(_WORK)}, *options)
        for path in (_WORK / folders.NAME / level).glob(f"*{entries.SUFFIX}"):
            _copy(path, target / path.name)
        files = list(target.iterdir())
        size = sum(path.stat().st_size for path in files)
        print(f"{level}: {len(files)} kernels, {size / 1e6:.1f} MB, {time.perf_counter() - started:.0f} s")
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    (folders.SHIPPED / "TAG").write_text(f"{python} none {_platform(levels)}", "utf-8")


def _copy(path: Path, target: Path) -> None:
    """Copy an entry, readable for all like the package; inner kernels are part of their callers."""
    entry = entries.read(path)
    kernels = _kernels_of(path, entry) if entry else []
    if entry and kernels and not any(map(signatures.is_inner, kernels)):
        is_called = entry.qualname.rpartition(".")[2] in signatures.called()
        entries.write(target, entry if is_called and not entry.is_callback else entries.unlinked(entry))


def _kernels_of(path: Path, entry: Entry) -> list[Any]:
    """Return the current kernels of an entry."""
    known = signatures.kernels().get(f"{entry.module.rpartition('.')[2]}.{entry.qualname}", [])
    functions = [(one, getattr(one, "py_func", one)) for one in known]  # intrinsics are none
    functions = [(one, function) for one, function in functions if isinstance(function, FunctionType)]
    is_callback = entry.is_callback
    return [
        one for one, function in functions if KernelCache(function, is_callback=is_callback).is_current(path, entry)
    ]


def _platform(levels: list[str]) -> str:
    """Return the platform tag of a wheel; on Linux, any glibc supported by Numba."""
    if sys.platform != "linux":
        return re.sub(r"[-.]", "_", sysconfig.get_platform())
    return f"manylinux2014_{'aarch64' if levels == [targets.ARM] else 'x86_64'}"


def recorded(within: Iterable[Path]) -> dict[str, list[list[Any]]]:
    """Return the cached specialisations of the current kernels, encoded."""
    found, left_out = {}, Counter()  # type: ignore[var-annotated]
    for path in sorted(path for folder in within for path in folder.glob(f"*/*{entries.SUFFIX}")):
        entry = entries.read(path)
        if entry is None or not entry.module.startswith("polars_tadoc."):
            continue
        kernels = _kernels_of(path, entry)
        if not kernels or any(map(signatures.is_inner, kernels)):
            continue
        try:
            form = [signatures.encode(compiled_for(one)) for one in entry.signature[0]]
        except signatures.UnknownTypeError as error:
            left_out[str(error)] += 1
            continue
        found.setdefault(f"{entry.module.rpartition('.')[2]}.{entry.qualname}", []).append(form)
    for reason, times in left_out.items():
        print(f"left out {times}: {reason}")
    return found


def missing() -> list[str]:
    """Return cached specialisations that the list lacks."""
    listed = signatures.read()
    return [
        f"{name} {json.dumps(form)}"
        for name, forms in recorded(folders.readable()).items()
        for form in forms
        if form not in listed.get(name, [])
    ]


def record_demo(demo: str) -> None:
    """Run the demo with an empty cache, and list what it compiles."""
    with tempfile.TemporaryDirectory() as work:
        target = {"NUMBA_CACHE_DIR": work, "NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "+64bit"}
        subprocess.run([sys.executable, demo], check=True, env={**os.environ, **target}, stdout=subprocess.DEVNULL)
        signatures.write(recorded([Path(work) / folders.NAME]), signatures.DEMO)


def main() -> int:
    """Build, record or check; return the exit status."""
    own = [targets.ARM] if platform.machine() in ("aarch64", "arm64") else list(targets.LEVELS)
    parser = argparse.ArgumentParser(prog=f"python -m {_CHILD}", description="Machine code of kernels for wheels")
    parser.add_argument("--levels", nargs="+", default=own, choices=[*targets.LEVELS, targets.ARM])
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--record", action="store_true", help="add what the cache folder holds to the list")
    parser.add_argument("--check", action="store_true", help="fail if the cache folder has entries that are not listed")
    parser.add_argument("--share", nargs=2, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--record-demo", metavar="PROGRAM", help="list what a program compiles, for `warmup --demo`")
    parser.add_argument("--demo", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--arm", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if targets.ARM in given.levels and len(given.levels) > 1:
        parser.error(f"{targets.ARM} needs a wheel of its own")
    if given.arm:
        targets.compile_for_arm()
    if given.share:
        share, shares = given.share
        compile_listed(share, shares, signatures.DEMO if given.demo else None)
    elif given.record_demo:
        record_demo(given.record_demo)
    elif given.check:
        print(*missing(), sep="\n")
        return bool(missing())
    elif given.record:
        listed = signatures.read() if signatures.LIST.exists() else {}
        kept = {name: [form for form in forms if signatures.fits(name, form)] for name, forms in listed.items()}
        added = recorded(folders.readable())
        found = {name: kept.get(name, []) + added.get(name, []) for name in {*kept, *added}}
        signatures.write({name: forms for name, forms in found.items() if forms})
        print(f"{sum(map(len, signatures.read().values()))} specialisations of {len(signatures.read())} kernels")
    else:
        ship(given.levels, given.processes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
