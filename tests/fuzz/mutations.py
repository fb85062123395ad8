"""Damages files of every kind that the package writes, and asks of them: the same answer, or an error by name.

::

    python -m tests.fuzz mutations --kind packed --count 10000
    python -m tests.fuzz mutations --count 100000 --jobs 16 --seed 7

Each mutation is made of the kind, the seed and its number alone: ``--only NUMBER`` does one again. A process of its own
does them, so that a crash or a hang is found and named; the next one goes on behind it.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import polars as pl

import polars_tadoc as tadoc
from tests.fuzz.mutation_kind import CHECKSUMMED, PICKLED, Files
from tests.fuzz.mutation_kinds import (
    KINDS,
    READER,
    UNDETECTABLE,
    UNDETECTABLE_BY_PAGES,
    lay,
    outcome,
    samples,
    small_runs,
)
from tests.fuzz.target import MAX_DECODED, MAX_WORDS, folder

MAX_SECONDS = 20
"""For one mutation."""

MAX_MEGABYTES = 300
"""That a mutation may take more than any before it: limits of targets are far below."""

COUNTED_AT_A_TIME = 100
"""Mutations after which a process tells its counts."""

MAX_SHOWN = 10
"""Findings of a kind that are printed."""


def mutated(
    chance: random.Random,
    files: Files,
    others: Sequence[Files],
    *,
    are_swapped: bool = True,
    are_removed: bool = True,
) -> tuple[Files, str]:
    """Damage one file, or two; returns them all, and what was done.

    Parameters
    ----------
    chance
        Makes all choices.
    files
        Sound files.
    others
        Files of the same kind, to splice in, or to put in the place of those of the same name.
    are_swapped, are_removed
        Whether one file may be put in another's place, or removed.

    """
    changed, said = dict(files), []
    for _ in range(chance.choice([1, 1, 1, 2])):
        name = chance.choice(sorted(changed))
        if len(files) > 1 and chance.random() < 0.06 and (are_swapped or are_removed):
            kind = chance.randrange(3)
            if are_removed and (kind == 0 or not are_swapped):
                del changed[name]
                said.append(f"remove {name}")
                if not changed:
                    break
            elif kind == 1:
                other = chance.choice(sorted(files))
                changed[name], changed[other] = files[other], changed.get(name, files[name])
                said.append(f"swap {name} and {other}")
            else:
                number = chance.randrange(len(others))
                changed[name] = others[number].get(name, files.get(name, b""))
                said.append(f"{name} is that of sample {number}")
            continue
        data = bytearray(changed[name])
        if data[:1] == b"{" and chance.random() < 0.5:
            said.append(f"{name}: {_edit_json(chance, data)}")
        else:
            other_files = chance.choice(others)
            said.append(f"{name}: {_edit_bytes(chance, data, other_files[chance.choice(sorted(other_files))])}")
        changed[name] = bytes(data)
    return changed, "; ".join(said)


def _edit_bytes(chance: random.Random, data: bytearray, other: bytes) -> str:
    size = len(data)
    # half of the places are in the last 2 kB, where Parquet and Arrow have their footers
    low = max(0, size - 2048) if chance.random() < 0.5 else 0
    at = chance.randrange(low, size) if size else 0
    length = min(chance.choice([1, 2, 3, 4, 8, 16, 64, 300]), size - at)
    kind = chance.randrange(14)
    if kind <= 2 and size:
        bit = chance.randrange(8)
        data[at] ^= 1 << bit
        return f"flip bit {bit} of byte {at}"
    if kind <= 4 and size:
        data[at] = chance.randrange(256)
        return f"byte {at} becomes {data[at]}"
    if kind == 5:
        del data[at:]
        return f"cut at {at}"
    if kind == 6:
        del data[at : at + length]
        return f"remove {length} at {at}"
    if kind == 7:
        to = chance.randrange(size + 1)
        data[to:to] = data[at : at + length]
        return f"{length} at {at} again at {to}"
    if kind == 8:
        to = chance.randrange(size + 1)
        data[to : to + length] = data[at : at + length]
        return f"{length} at {at} over {to}"
    if kind == 9:
        start = chance.randrange(len(other)) if other else 0
        data[at : at + length] = other[start : start + length]
        return f"{length} of another file over {at}"
    if kind == 10:
        more = chance.choice([b"\0" * length, bytes(data[at : at + length]), bytes(data[-length:]), bytes(data)])
        data += more
        return f"{len(more)} bytes more"
    if kind == 11:
        width, order = chance.choice([2, 4, 8]), chance.choice(["little", "little", "big"])
        number = int.from_bytes(data[at : at + width], order)  # type: ignore[arg-type]
        step = chance.choice([1, -1, 64, -64, 1 << 16, 1 << 31, -(1 << 31), 1 << 62, -number, -number - 1])
        data[at : at + width] = ((number + step) % (1 << 8 * width)).to_bytes(width, order)  # type: ignore[arg-type]
        return f"the number of {width} bytes at {at} plus {step}"
    if kind == 12:
        first, length = at - at % 64, 64 * chance.randrange(1, 65)
        to = chance.randrange(size + 1)
        data[to:to] = data[first : first + length]
        return f"section of {length} at {first} again at {to}"
    filler = chance.choice([b"\0", b"\xff", bytes([chance.randrange(256)])])
    data[at : at + length] = filler * length
    return f"{length} times {filler!r} at {at}"


def _edit_json(chance: random.Random, data: bytearray) -> str:
    """Change one value, or name, of a file of JSON; its checksum stays."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return "it is no JSON any more"
    way, part = [], tree
    while isinstance(part, dict | list) and part and (not way or chance.random() < 0.8):
        keys = sorted(part) if isinstance(part, dict) else range(len(part))
        way.append(chance.choice(keys))
        part = part[way[-1]]
    if not way:
        return "it is empty"
    parent = tree
    for step in way[:-1]:
        parent = parent[step]
    last = way[-1]
    if isinstance(parent, dict) and chance.random() < 0.15:
        parent[f"{last}x"] = parent.pop(last)
    elif chance.random() < 0.1:
        del parent[last]
    else:
        parent[last] = _other_value(chance, part)
    indent = 1 if b"\n" in data[:-1] else None
    data[:] = (json.dumps(tree, indent=indent) + "\n" * data.endswith(b"\n")).encode()
    return f"at {way} {json.dumps(parent.get(last) if isinstance(parent, dict) else None)[:60]}"


def _other_value(chance: random.Random, value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return chance.choice([True, False, None, 1, "a"])
    if isinstance(value, int) and chance.random() < 0.7:
        return value + chance.choice([1, -1, 2, 64, -64, 1 << 32, -(1 << 63), 1 << 64])
    if isinstance(value, str) and value and chance.random() < 0.7:
        at = chance.randrange(len(value))
        return value[:at] + chance.choice(["", "x", "0", "é", "\0"]) + value[at + 1 :]
    return chance.choice([None, True, 0, 1, -1, 0.5, 1e300, "", "a", [], {}, [value], {"a": value}, 1 << 70])


def mutation(kind: str, seed: int, number: int) -> tuple[Files, int, int, str]:
    """Return the files of a mutation, which sample and which question it is of, and what was done."""
    known, chance = KINDS[kind], random.Random(f"{kind} {seed} {number}")
    sample = chance.randrange(len(samples(kind)))
    files, asked = samples(kind)[sample]
    others = [own for own, _ in samples(kind)]
    changed, said = mutated(chance, files, others, are_swapped=known.are_swapped, are_removed=known.are_removed)
    return known.close(changed, files), sample, chance.randrange(len(asked)), said


def run(kind: str, seed: int, numbers: range) -> Counter[str]:
    """Do mutations in this process; what each comes to is printed, and counted."""
    known, path, found = KINDS[kind], folder() / "mutated", Counter[str]()
    limits = {"expansion_limit": MAX_WORDS, "payload_limit_bytes": MAX_DECODED, "host_cache_bytes": MAX_DECODED}
    with small_runs(), tadoc.Config(engine="cpu", threads=1, **limits), warnings.catch_warnings():
        warnings.simplefilter("error")
        sound = [known.close(files, files) for files, _ in samples(kind)]
        laid: Files = {}
        for number in numbers:
            files, sample, question, said = mutation(kind, seed, number)
            lay(files, path, None if known.is_written else laid)
            laid = files
            use, expected = samples(kind)[sample][1][question]
            print(f"begin {number}", flush=True)
            faulthandler.dump_traceback_later(MAX_SECONDS, exit=True, file=sys.__stderr__)
            start, memory = time.monotonic(), _peak_megabytes()
            try:
                result = outcome(known, use, path, expected)
            except (Exception, pl.exceptions.PanicException) as error:
                result = f"unnamed {type(error).__name__}: {' '.join(str(error).split())[:200]}"
            faulthandler.cancel_dump_traceback_later()
            if files == sound[sample] and result not in ("same", expected):
                result = f"sound files are {result}"
            if result == "other" and known.promise == CHECKSUMMED:
                result = "silently wrong"
            if (more := _peak_megabytes() - memory) > MAX_MEGABYTES and known.promise != PICKLED:
                result = f"{result}, with {more} MB more"
            if time.monotonic() - start > MAX_SECONDS / 2:
                result = f"{result}, slowly"
            found[result if result in COUNTED else "finding"] += 1
            if result not in COUNTED:
                print(f"finding {number} {json.dumps([result, said, sample, question])}", flush=True)
    return found


def _peak_megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


COUNTED = ("same", "refused", "other", UNDETECTABLE, UNDETECTABLE_BY_PAGES, READER)


QUIET = {"RUST_BACKTRACE": "0", "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Polars' panics are refusals here, and a trace takes a second; processes have a core each."""


def campaign(kind: str, count: int, seed: int, first: int = 0) -> tuple[Counter[str], list[str]]:
    """Do mutations in processes of their own; return how many came to what, and the findings."""
    found, findings, at, stop = Counter[str](), [], first, first + count
    quiet = {**os.environ, **QUIET}
    while at < stop:
        begun = at
        command = [sys.executable, "-m", "tests.fuzz.mutations", "--kind", kind, "--seed", str(seed)]
        command += ["--work", str(at), str(stop)]
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=quiet) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    what, _, rest = line.rstrip().partition(" ")
                    if what == "begin":
                        at = int(rest) + 1
                    elif what == "finding":
                        findings.append(f"{kind} {rest}")
                    elif what == "counted":
                        found.update(json.loads(rest))
                code = process.wait()
            errors.seek(0)
            said = errors.read()[-3_000:]
        if code:
            findings.append(f"{kind} {at - 1} ended the process, or took over {MAX_SECONDS} s (code {code}): {said}")
            found["finding"] += 1
            if at == begun:  # nor would the next one get any further
                break
    return found, findings


PART = 5_000
"""Mutations of a process: each takes some seconds to start."""


def campaigns(
    kinds: Sequence[str],
    count: int,
    seed: int,
    first: int,
    jobs: int,
    seconds_left: float = float("inf"),
    size: int = PART,
) -> bool:
    """Do mutations of kinds in several processes at once, and print a line for each kind; tell if all is well.

    Each process does ``size`` mutations. None is begun after ``seconds_left``.
    """
    start = time.monotonic()
    parts = [(kind, at) for at in range(first, first + count, size) for kind in kinds]
    left = Counter(kind for kind, _ in parts)
    counts = {kind: Counter[str]() for kind in kinds}
    seconds = dict.fromkeys(kinds, 0.0)
    found = 0

    def work(part: tuple[str, int]) -> tuple[str, Counter[str], list[str], float]:
        begun = time.monotonic()
        if begun > start + seconds_left:
            return part[0], Counter(), [], 0.0
        own, findings = campaign(part[0], min(size, first + count - part[1]), seed, part[1])
        return part[0], own, findings, time.monotonic() - begun

    with ThreadPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(work, part) for part in parts]):
            kind, own, findings, taken = done.result()
            counts[kind] += own
            seconds[kind] += taken
            found += len(findings)
            left[kind] -= 1
            for line in findings[:MAX_SHOWN]:
                print(f"  {line}", flush=True)
            if not left[kind]:
                told = ", ".join(f"{name} {number:,}" for name, number in sorted(counts[kind].items()))
                print(f"{kind} ({KINDS[kind].promise}): {told}; {seconds[kind]:.0f} s of a core", flush=True)
    total = sum(sum(own.values()) for own in counts.values())
    taken = time.monotonic() - start
    print(f"{total:,} mutations of {len(kinds)} kinds; findings {found}; {taken:.0f} s, jobs {jobs}", flush=True)
    return not found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz mutations")
    parser.add_argument("--kind", choices=[*KINDS, "all"], nargs="+", default=["all"])
    parser.add_argument("--count", type=int, default=1_000, help="of each kind")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no more are begun")
    parser.add_argument("--part", type=int, default=PART, help="mutations of a process; small ones end in time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutation")
    parser.add_argument("--only", type=int, help="do one mutation again, in this process")
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    kinds = list(KINDS) if "all" in given.kind else given.kind
    if given.work:
        first, stop = given.work
        for start in range(first, stop, COUNTED_AT_A_TIME):  # a process that ends has told of those before
            found = run(kinds[0], given.seed, range(start, min(start + COUNTED_AT_A_TIME, stop)))
            print(f"counted {json.dumps(found)}", flush=True)
        return 0
    if given.only is not None:
        print(mutation(kinds[0], given.seed, given.only)[1:])
        print(run(kinds[0], given.seed, range(given.only, given.only + 1)))
        return 0
    return int(not campaigns(kinds, given.count, given.seed, given.first, given.jobs, given.seconds, given.part))


if __name__ == "__main__":
    sys.exit(main())
