"""One target under Atheris, in a process of its own: ``python -m tests.fuzz.drive TARGET [libFuzzer's arguments]``."""

from __future__ import annotations

import faulthandler
import shlex
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import atheris


def kernels() -> list[str]:
    """Names of modules of kernels, and of those they use: Numba compiles them, and takes no instrumented code."""
    spec = find_spec("polars_tadoc")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    package = Path(spec.submodule_search_locations[0])
    files = [*(package / "kernels").rglob("*.py"), *(package / "runtime").rglob("*.py")]
    return [".".join(("polars_tadoc", *path.relative_to(package).with_suffix("").parts)) for path in files]


def main(name: str, arguments: list[str]) -> None:
    """Fuzz until libFuzzer's arguments say that it is enough; it ends the process."""
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # says where it hangs, if it does
    with atheris.instrument_imports(include=["polars_tadoc"], exclude=kernels()):
        from tests.fuzz import corpus
        from tests.fuzz.targets import load

        target = load(name)
    for data in [*target.seeds, *corpus.read(name)]:
        target.run(data)  # kernels are compiled before anything has to be done in time
    again = shlex.join([sys.executable, "-m", "tests.fuzz.drive", name])  # libFuzzer's merging runs it anew, in a shell
    atheris.Setup([again, *arguments], target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
