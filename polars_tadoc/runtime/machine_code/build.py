"""Compiles kernels before anybody waits for them, in several processes.

``python -m polars_tadoc warmup`` compiles all that is listed for this processor into the user's cache folder;
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
from pathlib import Path
from typing import Any

from numba import types

from polars_tadoc.runtime.machine_code import entries, folders, signatures, targets
from polars_tadoc.runtime.machine_code.cache import KernelCache

_CHILD = "polars_tadoc.runtime.machine_code.build"


def compile_listed(share: int, shares: int) -> int:
    """Compile one share of what is listed, as far as it is not there, and return how many specialisations failed."""
    from polars_tadoc.runtime.compiled import callback

    failed = 0
    listed = sorted(signatures.specialisations(), key=lambda one: one[0])
    for name, one, form in listed[share::shares]:
        try:
            arguments = tuple(signatures.decode(argument) for argument in form)
            if hasattr(one, "py_func"):
                one.compile(arguments)
            else:
                callback(types.void(*arguments), one)
        except Exception as error:  # another version of the kernel than was listed: what calls it compiles it
            failed += 1
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    return failed


def compile_all(processes: int, variables: dict[str, str]) -> None:
    """Compile all that is listed in so many processes with variables of the environment.

    Raises
    ------
    RuntimeError
        A process failed.

    """
    root = str(Path(__file__).parents[3])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, **variables, "PYTHONPATH": paths}
    commands = [[sys.executable, "-m", _CHILD, "--share", str(share), str(processes)] for share in range(processes)]
    running = [subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) for command in commands]
    codes = [one.wait() for one in running]
    if any(codes):
        raise RuntimeError(f"compiling kernels failed, exit codes {codes}: run {' '.join(commands[0])}")


def warm_up(processes: int) -> None:
    """Compile for this processor what is neither shipped nor in the user's cache folder."""
    started = time.perf_counter()
    compile_all(processes, {})
    print(f"kernels are compiled, in {folders.writable()}; took {time.perf_counter() - started:.0f} s")


def ship(levels: list[str], processes: int) -> None:
    """Compile for levels into the package."""
    for level in levels:
        started = time.perf_counter()
        target = folders.SHIPPED / level
        shutil.rmtree(target, ignore_errors=True)
        with tempfile.TemporaryDirectory() as work:
            compile_all(processes, {**targets.environment_of(level), "NUMBA_CACHE_DIR": work})
            made = Path(work) / folders.NAME / level
            target.mkdir(parents=True)
            for path in sorted(made.glob(f"*{entries.SUFFIX}")):
                shutil.copyfile(path, target / path.name)  # for everybody to read, as the package is
        files = list(target.iterdir())
        size = sum(path.stat().st_size for path in files)
        print(f"{level}: {len(files)} kernels, {size / 1e6:.1f} MB, {time.perf_counter() - started:.0f} s")

    (folders.SHIPPED / "TAG").write_text(f"cp{sys.version_info[0]}{sys.version_info[1]} none {_platform()}", "utf-8")


def _platform() -> str:
    """Return the platform tag of a wheel; on Linux any glibc that Numba itself runs on will do."""
    machine = platform.machine()
    return f"manylinux2014_{machine}" if sys.platform == "linux" else re.sub(r"[-.]", "_", sysconfig.get_platform())


def recorded() -> dict[str, list[list[Any]]]:
    """Return what the user's cache folders hold of the kernels as they are now, encoded."""
    known, found, left_out = signatures.kernels(), {}, Counter()  # type: ignore[var-annotated]
    for path in sorted(path for folder in folders.readable() for path in folder.glob(f"*/*{entries.SUFFIX}")):
        entry = entries.read(path)
        if entry is None or not entry.module.startswith("polars_tadoc."):
            continue
        name = f"{entry.module.rpartition('.')[2]}.{entry.qualname}"
        functions = [getattr(one, "py_func", one) for one in known.get(name, []) if not isinstance(one, type)]
        if not any(KernelCache(one, is_callback=entry.is_callback).is_current(path, entry) for one in functions):
            continue
        try:
            form = [signatures.encode(one) for one in entry.signature[0]]
        except signatures.UnknownTypeError as error:
            left_out[str(error)] += 1
            continue
        found.setdefault(name, []).append(form)
    for reason, times in left_out.items():
        print(f"left out {times}: {reason}")
    return found


def missing() -> list[str]:
    """Return what the user's cache folders hold and the list does not."""
    listed = signatures.read()
    return [
        f"{name} {json.dumps(form)}"
        for name, forms in recorded().items()
        for form in forms
        if form not in listed.get(name, [])
    ]


def main() -> int:
    """Build, record or check; return the exit status."""
    own = [targets.ARM] if platform.machine() in ("aarch64", "arm64") else list(targets.LEVELS)
    parser = argparse.ArgumentParser(prog=f"python -m {_CHILD}", description="Machine code of kernels for wheels")
    parser.add_argument("--levels", nargs="+", default=own, choices=[*targets.LEVELS, targets.ARM])
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--record", action="store_true", help="add what the cache folder holds to the list")
    parser.add_argument("--check", action="store_true", help="fail where the cache folder holds what isn't listed")
    parser.add_argument("--share", nargs=2, type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.share:
        compile_listed(*given.share)
    elif given.check:
        print(*missing(), sep="\n")
        return bool(missing())
    elif given.record:
        listed = signatures.read() if signatures.LIST.exists() else {}
        known = signatures.kernels()
        added = recorded()
        signatures.write(
            {name: listed.get(name, []) + added.get(name, []) for name in {*listed, *added} if name in known}
        )
        print(f"{sum(map(len, signatures.read().values()))} specialisations of {len(signatures.read())} kernels")
    else:
        ship(given.levels, given.processes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
