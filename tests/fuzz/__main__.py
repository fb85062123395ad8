"""Runs targets, each in a process of its own with bounds on its memory and the time for an input.

Examples
--------
::

    python -m tests.fuzz xpath --seconds 60
    python -m tests.fuzz all --seconds 3600 --work /tmp/fuzz
    python -m tests.fuzz xpath --replay /tmp/fuzz/findings/xpath-crash-5f1d
    python -m tests.fuzz mutations --count 100000 --jobs 16

"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from tests.fuzz import corpus, mutations
from tests.fuzz.targets import NAMES, load

MAX_MEGABYTES = 2_500
MAX_SECONDS = 20
"""For one input: of memory the process may have, of time it may take."""

STARTING = 900
"""Seconds in which a process is ready: kernels may have to be compiled, with checks of bounds."""

MERGING = 1_200
"""Seconds in which inputs that reach the same must have been left out."""

MAX_KEPT = 60
"""Inputs of a target that are kept in the tree."""

_STATUS = re.compile(r"#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)/\S+ .*rss: (\d+)Mb")


@dataclass(frozen=True)
class Outcome:
    """What a process did: executions, coverage (edges, features), inputs kept, MB of memory, and its findings."""

    executions: int
    coverage: int
    features: int
    kept: int
    megabytes: int
    findings: tuple[Path, ...]
    output: str


def fuzz(name: str, seconds: float, work: Path, *, checks_bounds: bool = False, seed: int = 0) -> Outcome:
    """Run a target for a time; what it finds lies in ``work / "findings"``, what it learns in ``work / "corpus"``.

    Parameters
    ----------
    name
        The target.
    seconds
        For fuzzing; starting is extra.
    work
        Folder for the corpus, which is gone on with if it is there, and the findings.
    checks_bounds
        Compile the kernels with checks of every index.
    seed
        Of the fuzzer's choices; 0 for any.

    """
    findings, kept = work / "findings", work / "corpus" / name
    findings.mkdir(parents=True, exist_ok=True)
    target = load(name)
    corpus.unpack([*target.seeds, *corpus.read(name)], kept)
    before = set(findings.iterdir())
    environment = dict(os.environ)
    if checks_bounds:
        environment |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(work / "bounds-checked")}
    arguments = [
        f"-max_total_time={max(1, int(seconds))}",
        f"-max_len={target.most_bytes}",
        f"-rss_limit_mb={MAX_MEGABYTES}",
        f"-timeout={MAX_SECONDS}",
        f"-report_slow_units={MAX_SECONDS}",
        f"-artifact_prefix={findings / name}-",
        f"-seed={seed}",
        "-print_final_stats=1",
    ]
    if target.tokens:
        tokens = work / f"{name}.tokens"
        tokens.write_text("".join(f'"{_escaped(token)}"\n' for token in target.tokens), encoding="ascii")
        arguments.append(f"-dict={tokens}")
    # from a shell: Linux counts the memory of who forks as the peak of what is started, which libFuzzer limits
    command = ["/bin/sh", "-c", '"$@"; exit $?', "sh"]
    command += [sys.executable, "-m", "tests.fuzz.drive", name, *arguments, str(kept)]
    output, code = _run(command, environment, seconds + STARTING)
    new = tuple(sorted(set(findings.iterdir()) - before))
    if code and not new:
        unsaved = findings / f"{name}-output-{time.time_ns()}"
        unsaved.write_text(output, encoding="utf-8")
        new = (unsaved,)
    done = re.findall(r"stat::number_of_executed_units:\s*(\d+)", output)
    status = [[int(number) for number in found] for found in _STATUS.findall(output)]
    executions, coverage, features, count, memory = status[-1] if status else (0, 0, 0, 0, 0)
    return Outcome(int(done[-1]) if done else executions, coverage, features, count, memory, new, output)


def keep(name: str, work: Path) -> int:
    """Write into the tree's corpus what of a work folder's reaches most, in few and short inputs; return how many."""
    known = corpus.read(name)
    with tempfile.TemporaryDirectory() as folder:
        corpus.unpack([*load(name).seeds, *known], Path(folder))
        before = set(Path(folder).iterdir())
        command = [sys.executable, "-m", "tests.fuzz.drive", name, "-merge=1", folder, str(work / "corpus" / name)]
        _run(command, dict(os.environ), MERGING)
        found = sorted((path.read_bytes() for path in set(Path(folder).iterdir()) - before), key=len)
    corpus.add(name, found[: max(0, MAX_KEPT - len(known))])
    return len(corpus.read(name))


def in_turn(names: Sequence[str], seconds: float, work: Path, slice_seconds: float) -> int:
    """Run targets in turn until the time is over, printing a line for each round; return the number of findings.

    Every fourth round of a target checks the kernels' bounds. A round that ends with a finding is followed by the next.
    """
    end = time.monotonic() + seconds
    executions = dict.fromkeys(names, 0)
    found = 0
    for name, checks_bounds in _rounds(names):
        left = end - time.monotonic()
        if left < 1:
            break
        outcome = fuzz(name, min(left, slice_seconds), work, checks_bounds=checks_bounds)
        executions[name] += outcome.executions
        found += len(outcome.findings)
        print(
            f"{time.strftime('%H:%M:%S')} {name:13}{' bounds' if checks_bounds else '':7} "
            f"executions {outcome.executions:>8,} (in all {executions[name]:>10,})  coverage {outcome.coverage:>6,} "
            f"features {outcome.features:>6,}  corpus {outcome.kept:>5,}  {outcome.megabytes:>5,} MB  "
            f"findings {len(outcome.findings)}",
            flush=True,
        )
        if outcome.findings:
            print(_explained(outcome), flush=True)
    print(f"executions in all {sum(executions.values()):,}; findings {found}", flush=True)
    return found


def _rounds(names: Sequence[str]) -> Iterator[tuple[str, bool]]:
    for number in cycle(range(4)):
        yield from ((name, number == 3) for name in names)


def _run(command: list[str], environment: dict[str, str], limit: float) -> tuple[str, int]:
    """Run a process; return what it printed and its exit code."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGUSR1)  # for its threads' tracebacks
                time.sleep(1)
                process.kill()
                process.wait()
        file.seek(0)
        return file.read(), code


def _explained(outcome: Outcome) -> str:
    """The end of what a process printed that found something, and where its input is."""
    lines = [line for line in outcome.output.splitlines() if not line.startswith("#")]
    return "\n".join([f"  {path}" for path in outcome.findings] + [f"  | {line}" for line in lines[-40:]])


def _escaped(token: str) -> str:
    plain = set(range(32, 127)) - set(b'"\\')
    return "".join(chr(byte) if byte in plain else f"\\x{byte:02x}" for byte in token.encode())


def main() -> int:
    """Run from the command line."""
    if sys.argv[1:2] == ["mutations"]:
        return mutations.main(sys.argv[2:])
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Fuzz with Atheris; `mutations` damages files instead, without it."
    )
    parser.add_argument("target", choices=[*NAMES, "all"])
    parser.add_argument("--seconds", type=float, default=60, help="in all")
    parser.add_argument("--slice", type=float, default=60, help="of one target at a time")
    parser.add_argument("--work", type=Path, help="folder of what is learnt and found; a temporary one by default")
    parser.add_argument("--replay", type=Path, nargs="+", help="run these inputs and nothing else")
    parser.add_argument("--keep", action="store_true", help="put what the work folder has learnt into the tree")
    given = parser.parse_args()
    if given.replay:
        for path in given.replay:
            load(given.target).run(path.read_bytes())
        return 0
    names = NAMES if given.target == "all" else (given.target,)
    if given.keep:
        for name in names:
            print(f"{name}: {keep(name, given.work)} inputs are kept")
        return 0
    work = given.work or Path(tempfile.mkdtemp(prefix="tadoc-fuzz-"))
    work.mkdir(parents=True, exist_ok=True)
    print(f"what is learnt and found lies in {work}", flush=True)
    return min(in_turn(names, given.seconds, work, given.slice), 1)


if __name__ == "__main__":
    sys.exit(main())
