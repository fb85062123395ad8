"""Inputs that break things, at full size: ``python -m benchmarks.bad_input``.

Each case is tokenized, compressed and decompressed in a process of its own under a time limit. Peak memory is
the growth of resident memory over what it was with the text made and the kernels compiled.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import polars as pl
import pyarrow as pa

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.compress import PeakMemory, resident_bytes
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize

SENTENCE = "The quick brown fox, having jumped over the lazy dog (twice), lay down.\n"


def _numbered_words(count: int) -> str:
    return " ".join(np.char.mod("w%d", np.arange(count)).tolist())


def _distinct_gaps(count: int) -> str:
    punctuation = str.maketrans("0123456789", "!#$%&()*+,")
    return "a".join(np.char.mod("%d", np.arange(count)).tolist()).translate(punctuation)


def _foreign(rows: list[bytes]) -> pl.Series:
    """Strings as other libraries hand them over: Polars does not check them."""
    offsets = np.cumsum([0, *map(len, rows)])
    array = pa.LargeStringArray.from_buffers(
        len(rows), pa.py_buffer(offsets.astype(np.int64).tobytes()), pa.py_buffer(b"".join(rows))
    )
    return pl.Series(pl.from_arrow(array))


def _many_chunks() -> pl.Series:
    rows = pl.Series([SENTENCE, None, "", "日本語のテキスト。", "x" * 40] * 10)
    return pl.concat([rows.slice(i % 7, 30) for i in range(30_000)], rechunk=False)


CASES: dict[str, Callable[[], pl.Series]] = {
    "one row of 1 GB": lambda: pl.Series([SENTENCE * (10**9 // len(SENTENCE))]),
    "one row of 1 GB without a gap": lambda: pl.Series(["a" * 10**9]),
    "one row of 300 MB of Han": lambda: pl.Series(["日本語" * (10**8 // 3)]),
    "10^7 empty rows": lambda: pl.repeat("", 10**7, eager=True),
    "10^7 rows, all null": lambda: pl.Series([None], dtype=pl.String).new_from_index(0, 10**7),
    "one word 10^8 times in one row": lambda: pl.Series(["a " * 10**8]),
    "one word 10^8 times in 10^6 rows": lambda: pl.repeat("a " * 100, 10**6, eager=True),
    "10^7 distinct words": lambda: pl.Series([_numbered_words(10**7)]),
    "10^6 distinct gaps": lambda: pl.Series([_distinct_gaps(10**6)]),
    "20 words of 10 MB": lambda: pl.Series([" ".join(chr(ord("a") + i) * 10**7 for i in range(20))]),
    "NUL bytes in words and gaps": lambda: pl.Series(["a\0b \0 c\0\0, " * 10**6] * 4),
    "10^6 rows that are gaps only": lambda: pl.repeat(" \t,;. \n" * 10, 10**6, eager=True),
    "one row of 100 MB that is one gap": lambda: pl.Series([" " * 10**8]),
    "10^6 rows of one byte": lambda: pl.Series(["a", " ", "b", "."] * 250_000),
    "mixed nulls, 30,000 Arrow chunks and slices": _many_chunks,
    "lone surrogates from outside": lambda: _foreign([b"fine"] * 10**6 + [b"a\xed\xa0\x80b"]),
    "bytes that are no UTF-8 from outside": lambda: _foreign(
        [b"fine"] * 10**6 + [b"\xff\xfe\x00 long enough to lie outside"]
    ),
}


def _settle() -> None:
    """Wait until the allocators have given back what making the text took: it would hide growth."""
    before = -1
    for _ in range(30):
        now = resident_bytes()
        if now == before:
            return
        before = now
        time.sleep(0.5)


def measure(name: str, tokenizer: str) -> dict[str, float | str]:
    """Run one case in this process."""
    tadoc.decompress(tadoc.compress(pl.Series([SENTENCE * 3, "日本 "]), tokenizer=tokenizer))  # compile first
    text = CASES[name]()
    size = int(text.str.len_bytes().sum() or 0)
    _settle()
    result: dict[str, float | str] = {"MB": size / 1e6}
    with PeakMemory() as memory:
        start = time.perf_counter()
        try:
            tokenize(text, Tokenizer.from_argument(tokenizer))
        except ValueError as error:
            return {"error": str(error)}
        result["tokenize s"] = time.perf_counter() - start
    result["tokenize peak MB"] = (memory.most - memory.before) / 1e6
    _settle()
    with PeakMemory() as memory:
        start = time.perf_counter()
        column = tadoc.compress(text, tokenizer=tokenizer)
        result["compress s"] = time.perf_counter() - start
    result["compress peak MB"] = (memory.most - memory.before) / 1e6
    start = time.perf_counter()
    try:
        with tadoc.Config(expansion_limit=1 << 40):
            same = tadoc.decompress(column).equals(text, null_equal=True)
    except (tadoc.errors.TadocError, pl.exceptions.PolarsError) as error:
        return result | {"error": str(error)}
    result["decompress s"] = time.perf_counter() - start
    return result if same else result | {"error": "THE DECOMPRESSED TEXT DIFFERS"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"parts of names of cases (default: all of {', '.join(CASES)})")
    parser.add_argument("--tokenizer", default="words", choices=["words", "whitespace"])
    parser.add_argument("--limit", type=float, default=600.0, help="seconds that a case may take")
    parser.add_argument("--memory", type=float, default=16.0, help="GB of address space that a case may have")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(measure(args.child, args.tokenizer)))
        return
    print(f"machine: {corpora.machine()}")
    columns = ["MB", "tokenize s", "tokenize peak MB", "compress s", "compress peak MB", "decompress s"]
    print(f"{'case':46}" + "".join(f"{key:>18}" for key in columns))
    space = int(args.memory * (1 << 30))
    for name in CASES:
        if args.cases and not any(part in name for part in args.cases):
            continue
        command = [sys.executable, "-m", "benchmarks.bad_input", "--child", name, "--tokenizer", args.tokenizer]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                cwd=corpora.ROOT,
                timeout=args.limit,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (space, space)),
            )
        except subprocess.TimeoutExpired:
            print(f"{name:46} NOT DONE in {args.limit:.0f} s", flush=True)
            continue
        if done.returncode:
            print(f"{name:46} FAILED ({done.returncode}): {done.stderr.strip().splitlines()[-1:]}", flush=True)
            continue
        row = json.loads(done.stdout)
        print(
            f"{name:46}"
            + "".join(f"{row[key]:18.2f}" if key in row else f"{'-':>18}" for key in columns)
            + f"  {row.get('error', '')}",
            flush=True,
        )


if __name__ == "__main__":
    main()
