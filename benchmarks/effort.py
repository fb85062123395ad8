"""What each ``effort`` of ``compress`` costs and gives: ``python -m benchmarks.effort``.

A line per effort and corpus, the efforts in turn. Compressing in MB of text a second of processor time, and the growth
of resident memory over the text, in a process of its own. Then, over the default's: processor time, bytes of the column
in memory (``info``), symbols, the Parquet file at zstd 9, ``write_packed``, ``write_packed(effort="small")``, and the
processor times of ``word_count`` and of trigrams. Times are the best of ``--repeat`` rounds. ``rules`` is ``no`` where
none were made. ``--samples`` prints symbols and rules per word, in the sample of "auto" and of all rows, instead.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.compress import PeakMemory, output_of
from polars_tadoc.compress.compress import EFFORTS
from polars_tadoc.kernels.repair import compress_cpu
from polars_tadoc.kernels.repair.compressed import METHODS
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize

FILES: dict[str, dict[str, Any]] = {"parquet": {}, "packed": {}, "packed small": {"effort": "small"}}
SHOWN = ("compress", "bytes", "symbols", *FILES, "words", "trigrams")


def sizes(column: pl.Series) -> dict[str, float]:
    """Sizes of a column in memory and in files."""
    info = tadoc.info(column).row(0, named=True)
    found: dict[str, float] = {name: info[name] for name in ("bytes", "symbols", "rules")}
    frame = column.alias("text").to_frame()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.parquet"
        for kind, options in FILES.items():
            if kind == "parquet":
                frame.write_parquet(path, compression_level=9)
            else:
                tadoc.of(frame).write_packed(path, **options)
            found[kind] = path.stat().st_size
    return found


def measure(given: str, repeat: int) -> dict[str, dict[str, float]]:
    """Measure all efforts on one corpus, in turn."""
    _, text = corpora.load(given)
    size = int(text.str.len_bytes().sum())
    seconds: dict[str, dict[str, list[float]]] = {effort: {} for effort in EFFORTS}
    found: dict[str, dict[str, float]] = {}

    def timed(effort: str, call: str, run: Callable[[], Any]) -> Any:
        start = time.process_time()
        made = run()
        seconds[effort].setdefault(call, []).append(time.process_time() - start)
        return made

    sample = tadoc.compress(text.head(max(1, len(text) // 50)), effort="auto")
    tadoc.word_count(sample), tadoc.sequence_count(sample, n=3)  # compiles, or loads what was compiled
    for _ in range(repeat):
        for effort in EFFORTS:
            made = timed(effort, "compress", lambda e=effort: tadoc.compress(text, effort=e))
            timed(effort, "words", lambda c=made: tadoc.word_count(c))
            timed(effort, "trigrams", lambda c=made: tadoc.sequence_count(c, n=3))
            if effort not in found:
                found[effort] = sizes(made)
    for effort in EFFORTS:
        found[effort] |= {call: min(own) for call, own in seconds[effort].items()}
        found[effort]["MB/s"] = size / 1e6 / found[effort]["compress"]
        found[effort]["memory"] = json.loads(child(given, effort))
    return found


def child(given: str, effort: str) -> str:
    """Run this module in a new process for the memory of one effort."""
    command = [sys.executable, "-m", "benchmarks.effort", given, "--memory", effort]
    return output_of(command)


def growth(given: str, effort: str) -> float:
    """Growth of resident memory while a corpus is compressed, over its text."""
    _, text = corpora.load(given)
    sample = text.head(max(1, int((text.str.len_bytes().cum_sum() < 1 << 20).sum())))
    tadoc.compress(sample, effort=effort)
    with PeakMemory() as memory:
        tadoc.compress(text, effort=effort)
    return (memory.most - memory.before) / int(text.str.len_bytes().sum())


def print_samples(given: str) -> None:
    """Print symbols and rules per word of the sample, and of all rows."""
    name, text = corpora.load(given)
    tokens = tokenize(text, Tokenizer("words"), lossless=False)
    size = len(tokens.vocabulary)
    own = []
    for sequence in (compress_cpu.sample_of(tokens.sequence), tokens.sequence.copy()):
        rows = int(np.count_nonzero(sequence == SEPARATOR))
        words = len(sequence) - rows
        rules = compress_cpu.build_rules(sequence, size, rows, method=METHODS[0], on_round=lambda number, alive: None)
        own.append((len(rules.symbols) + len(rules.roots) + len(rules.rule_offsets) - 1) / words)
    print(f"{name:28}{own[0]:8.3f}{own[1]:8.3f}", flush=True)


def run() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--memory", choices=EFFORTS, help=argparse.SUPPRESS)
    parser.add_argument("--samples", action="store_true", help="print how well the sample of auto tells")
    args = parser.parse_args()
    if args.samples:
        for given in corpora.names(args.corpora):
            print_samples(given)
        return
    if args.memory:
        print(json.dumps(growth(args.corpora[0], args.memory)))
        return
    print(f"machine: {corpora.machine()}")
    print(f"{'corpus':22}{'effort':>9}{'MB/s':>7}{'memory':>8}" + "".join(f"{kind:>14}" for kind in SHOWN) + "  rules")
    for given in corpora.names(args.corpora):
        found = measure(given, args.repeat)
        for effort, own in found.items():
            print(f"{Path(given).stem[:21]:22}{effort:>9}{own['MB/s']:7.1f}{own['memory']:8.2f}", end="")
            print("".join(f"{own[kind] / found['default'][kind]:14.3f}" for kind in SHOWN), end="")
            print("  yes" if own["rules"] else "  no", flush=True)


def main() -> None:
    with tadoc.Config(engine="cpu"):  # processor time is of the CPU
        run()


if __name__ == "__main__":
    main()
