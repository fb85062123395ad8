"""Word counts of files of text larger than memory, under a limit: ``python -m benchmarks.text_files --gigabytes 20``.

A file of the corpora is written once and scanned as often as the size needs: Polars reads, decodes and passes on every
byte. Measures time, the processor time of all threads, and the peak of resident memory above that before the call. The
counts are compared with those of one file, times the number of files.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import polars as pl

import polars_tadoc  # noqa: F401 - registers the namespace
from benchmarks import corpora

KINDS = {"parquet": (pl.DataFrame.write_parquet, pl.scan_parquet), "csv": (pl.DataFrame.write_csv, pl.scan_csv)}


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--memory-limit", default="2GB", help='"none": no limit')
    parser.add_argument("--kind", choices=KINDS, default="parquet")
    args = parser.parse_args()
    print(f"machine: {corpora.machine()}; limit {args.memory_limit}, {args.kind}")
    write, scan = KINDS[args.kind]
    limit = {} if args.memory_limit == "none" else {"memory_limit": args.memory_limit}
    with tempfile.TemporaryDirectory() as folder:
        path, size = Path(folder) / f"text.{args.kind}", 0
        frames = [corpora.load(name)[1].to_frame("text") for name in corpora.names(args.corpora)]
        frame = pl.concat(frames).filter(pl.col("text").is_not_null())
        size = frame["text"].str.len_bytes().sum()
        write(frame, path)
        expected = frame.tadoc.word_count("text")
        del frame, frames
        files = max(1, round(args.gigabytes * 1e9 / size))
        plan = scan([path] * files)  # type: ignore[operator]
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        before, start, worked = status("VmRSS"), time.perf_counter(), time.process_time()
        found = plan.tadoc.word_count("text", **limit).collect()
        took, worked = time.perf_counter() - start, time.process_time() - worked
        peak = status("VmHWM") - before
        if not found.equals(expected.with_columns(pl.col("count") * files)):
            raise SystemExit("other counts than of one file")
    megabytes, result = files * size / 1e6, found.estimated_size() / 1e6
    print(f"{files} files, {megabytes:,.0f} MB of text, {len(found):,} words, result {result:.0f} MB")
    print(f"{took:.1f} s, {megabytes / took:.0f} MB/s")
    print(f"{worked:.1f} s of processor time, {megabytes / worked:.0f} MB/s on one core")
    print(f"peak {peak / 1e6:.0f} MB above the {before / 1e6:.0f} MB before the call")


def status(field: str) -> float:
    """Bytes of a field of Linux' status of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(float(line.split()[1]) for line in lines if line.startswith(field))


if __name__ == "__main__":
    main()
