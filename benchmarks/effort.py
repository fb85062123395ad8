"""What ``compress(effort="fast")`` costs and gives beside the default: ``python -m benchmarks.effort``.

Compressing, Parquet files at zstd 9, ``word_count`` and trigrams, the two contenders in turn; ratios of medians, fast
over default.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import polars_tadoc as tadoc
from benchmarks import corpora

EFFORTS = ("default", "fast")


def main() -> None:
    args = corpora.arguments(__doc__ or "").parse_args()
    print(f"machine: {corpora.machine()}")
    print(f"{'corpus':24}{'MB/s':>8}{'fast':>8}{'compress':>10}{'file':>8}{'words':>8}{'trigrams':>10}")
    for given in corpora.names(args.corpora):
        name, text = corpora.load(given)
        seconds: dict[str, dict[str, list[float]]] = {effort: {} for effort in EFFORTS}
        files: dict[str, int] = {}

        def timed(effort: str, call: str, run: Callable[[], Any], taken: dict[str, dict[str, list[float]]]) -> Any:
            start = time.perf_counter()
            made = run()
            taken[effort].setdefault(call, []).append(time.perf_counter() - start)
            return made

        for _ in range(args.repeat):
            for effort in EFFORTS:
                column = timed(effort, "compress", lambda e=effort, t=text: tadoc.compress(t, effort=e), seconds)
                timed(effort, "words", lambda c=column: tadoc.word_count(c), seconds)
                timed(effort, "trigrams", lambda c=column: tadoc.sequence_count(c, n=3), seconds)
                if effort not in files:
                    with tempfile.TemporaryDirectory() as folder:
                        path = Path(folder) / "file.parquet"
                        column.to_frame().write_parquet(path, compression_level=9)
                        files[effort] = path.stat().st_size
        default, fast = ({call: median(own) for call, own in seconds[effort].items()} for effort in EFFORTS)
        size = int(text.str.len_bytes().sum()) / 1e6
        print(f"{name[:23]:24}{size / default['compress']:8.1f}{size / fast['compress']:8.1f}", end="")
        print(f"{fast['compress'] / default['compress']:10.2f}{files['fast'] / files['default']:8.2f}", end="")
        print(f"{fast['words'] / default['words']:8.2f}{fast['trigrams'] / default['trigrams']:10.2f}", flush=True)


if __name__ == "__main__":
    main()
