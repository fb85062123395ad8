"""Damages files of every kind that the package writes, and asks of them: the same answer, or an error by name.

::

    python -m tests.fuzz.mutations --kind packed --count 10000
    python -m tests.fuzz.mutations --count 100000 --seed 7

Each mutation is made of the kind, the seed and its number alone: ``--only NUMBER`` does one again. A process of its own
does them, so that a crash or a hang is found and named; the next one goes on behind it.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl

import polars_tadoc as tadoc
from tests.fuzz.mutation_kinds import (
    CHECKSUMMED,
    KINDS,
    READER,
    UNDETECTABLE,
    UNDETECTABLE_BY_PAGES,
    Files,
    lay,
    outcome,
    samples,
    small_runs,
)
from tests.fuzz.target import MAX_DECODED, MAX_WORDS, folder

MAX_SECONDS = 20
"""For one mutation."""

COUNTED_AT_A_TIME = 100
"""Mutations after which a process tells its counts."""

MAX_SHOWN = 10
"""Findings of a kind that are printed."""


def mutated(
    chance: random.Random, files: Files, others: Sequence[bytes], *, are_swapped: bool = True
) -> tuple[Files, str]:
    """Damage one file, or two; returns them all, and what was done.

    Parameters
    ----------
    chance
        Makes all choices.
    files
        Sound files.
    others
        Contents of files of the same kind, to splice in.
    are_swapped
        Whether one file may be put in another's place.

    """
    changed, said = dict(files), []
    for _ in range(chance.choice([1, 1, 1, 2])):
        name = chance.choice(sorted(changed))
        if len(files) > 1 and chance.random() < 0.04:
            if not are_swapped or chance.random() < 0.5:
                del changed[name]
                said.append(f"remove {name}")
                if not changed:
                    break
            else:
                other = chance.choice(sorted(files))
                changed[name] = files[other]
                said.append(f"{name} is {other}")
            continue
        data = bytearray(changed[name])
        if data[:1] == b"{" and chance.random() < 0.4:
            said.append(f"{name}: {_edit_json(chance, data)}")
        else:
            said.append(f"{name}: {_edit_bytes(chance, data, others)}")
        changed[name] = bytes(data)
    return changed, "; ".join(said)


def _edit_bytes(chance: random.Random, data: bytearray, others: Sequence[bytes]) -> str:
    size = len(data)
    # half of the places are in the last 2 kB, where Parquet and Arrow have their footers
    low = max(0, size - 2048) if chance.random() < 0.5 else 0
    at = chance.randrange(low, size) if size else 0
    length = min(chance.choice([1, 2, 3, 4, 8, 16, 64, 300]), size - at)
    kind = chance.randrange(11)
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
        other = chance.choice(others)
        start = chance.randrange(len(other)) if other else 0
        data[at : at + length] = other[start : start + length]
        return f"{length} of another file over {at}"
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
    chance = random.Random(f"{kind} {seed} {number}")
    sample = chance.randrange(len(samples(kind)))
    files, asked = samples(kind)[sample]
    others = [content for own, _ in samples(kind) for content in own.values()]
    changed, said = mutated(chance, files, others, are_swapped=KINDS[kind].are_swapped)
    return changed, sample, chance.randrange(len(asked)), said


def run(kind: str, seed: int, numbers: range) -> Counter[str]:
    """Do mutations in this process; what each comes to is printed, and counted."""
    known, path, found = KINDS[kind], folder() / "mutated", Counter[str]()
    limits = {"expansion_limit": MAX_WORDS, "payload_limit_bytes": MAX_DECODED, "host_cache_bytes": MAX_DECODED}
    with small_runs(), tadoc.Config(engine="cpu", threads=1, **limits), warnings.catch_warnings():
        warnings.simplefilter("error")
        samples(kind)
        for number in numbers:
            files, sample, question, said = mutation(kind, seed, number)
            lay(files, path)
            use, expected = samples(kind)[sample][1][question]
            print(f"begin {number}", flush=True)
            faulthandler.dump_traceback_later(MAX_SECONDS, exit=True, file=sys.__stderr__)
            start = time.monotonic()
            try:
                result = outcome(known, use, path, expected)
            except (Exception, pl.exceptions.PanicException) as error:
                result = f"unnamed {type(error).__name__}: {' '.join(str(error).split())[:200]}"
            faulthandler.cancel_dump_traceback_later()
            if files == samples(kind)[sample][0] and result != "same":
                result = f"sound files are {result}"
            if result == "other" and known.promise == CHECKSUMMED:
                result = "silently wrong"
            found[result if result in COUNTED else "finding"] += 1
            if result not in COUNTED:
                print(f"finding {number} {json.dumps([result, said, sample, question])}", flush=True)
            elif time.monotonic() - start > MAX_SECONDS / 2:
                print(f"finding {number} {json.dumps(['slow', said, sample, question])}", flush=True)
    return found


COUNTED = ("same", "refused", "other", UNDETECTABLE, UNDETECTABLE_BY_PAGES, READER)


def campaign(kind: str, count: int, seed: int, first: int = 0) -> tuple[Counter[str], list[str]]:
    """Do mutations in processes of their own; return how many came to what, and the findings."""
    found, findings, at, stop = Counter[str](), [], first, first + count
    quiet = {**os.environ, "RUST_BACKTRACE": "0"}  # Polars' panics are refusals here, and a trace takes a second
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


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.mutations")
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="all")
    parser.add_argument("--count", type=int, default=1_000, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutation")
    parser.add_argument("--only", type=int, help="do one mutation again, in this process")
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        first, stop = given.work
        for start in range(first, stop, COUNTED_AT_A_TIME):  # a process that ends has told of those before
            found = run(given.kind, given.seed, range(start, min(start + COUNTED_AT_A_TIME, stop)))
            print(f"counted {json.dumps(found)}", flush=True)
        return 0
    if given.only is not None:
        print(mutation(given.kind, given.seed, given.only)[1:])
        print(run(given.kind, given.seed, range(given.only, given.only + 1)))
        return 0
    failed = False
    for kind in KINDS if given.kind == "all" else [given.kind]:
        start = time.monotonic()
        counts, findings = campaign(kind, given.count, given.seed, given.first)
        told = ", ".join(f"{name} {number:,}" for name, number in sorted(counts.items()))
        print(f"{kind} ({KINDS[kind].promise}): {told}; {time.monotonic() - start:.0f} s", flush=True)
        for line in findings[:MAX_SHOWN]:
            print(f"  {line}", flush=True)
        failed |= bool(findings)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
