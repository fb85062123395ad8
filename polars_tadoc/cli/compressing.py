"""``tadoc compress``, ``decompress`` and ``info``."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path
from typing import Literal

import polars as pl

import polars_tadoc as tadoc
from polars_tadoc.cli.reading import STANDARD, Reading, Source, UsageError
from polars_tadoc.cli.running import Running
from polars_tadoc.cli.writing import Shape, Writing, say, write

DEFAULTS = Reading(), Writing(), Running()


def compress(
    *paths: str,
    packed: bool = False,
    effort: Literal["default", "fast", "small", "auto"] = "default",
    tokenizer: str = "words",
    rows_per_grammar: int | None = None,
    reading: Reading = DEFAULTS[0],
    running: Running = DEFAULTS[2],
) -> None:
    """Compress a column of text, and write a Parquet file.

    Other columns are kept. The file is an ordinary Parquet file, which Polars and all commands read.

    Parameters
    ----------
    paths
        Input files, folders or patterns, or - for standard input; and last the Parquet file to write, or - for standard
        output.
    packed
        Write the packed form: self-contained partitions, for reading a few documents out of many.
    effort
        "fast" makes no rules; "small" takes longer for a smaller column, and for packed files that are smaller and
        slower to read; "auto" makes rules where they pay in a sample: words_only of tadoc info counts grammars without.
    tokenizer
        "words", "whitespace", "xml", "code" or a regular expression.
    rows_per_grammar
        Rows that share words and rules; by default 100,000, and 1,000,000 with --packed --effort small.

    Examples
    --------
    $ tadoc compress speeches.csv speeches.tadoc.parquet

    $ tadoc compress logs/*.log logs.tadoc.parquet --packed

    $ zcat access.log.gz | tadoc compress - access.tadoc.parquet

    """
    if len(paths) < 2:
        raise UsageError("give the input and the output: tadoc compress IN OUT.parquet")
    *sources, target = paths
    if target != STANDARD and Path(target).suffix not in (".parquet", ".pq"):
        raise UsageError(f"{target}: a compressed column is written to a Parquet file, such as {target}.parquet")
    started = time.perf_counter()
    lf, column = reading.scan(sources)
    if tadoc.is_tadoc(lf.collect_schema()[column]):
        raise UsageError(f'column "{column}" is compressed already')
    if packed and effort == "small":
        rows_per_grammar = rows_per_grammar or 1_000_000
    lf = lf.tadoc.compress(  # type: ignore[attr-defined]
        column, tokenizer=tokenizer, effort=effort, rows_per_grammar=rows_per_grammar
    )
    place = io.BytesIO() if target == STANDARD else Path(target).expanduser()
    if packed:
        tadoc.of(lf).sink_packed(place, column, effort="small" if effort == "small" else "default")
    else:
        tadoc.of(lf).sink_parquet(place)
    if isinstance(place, io.BytesIO):
        sys.stdout.buffer.write(place.getbuffer())
        sys.stdout.buffer.flush()
    else:
        seconds = time.perf_counter() - started
        before = sum(Path(source).stat().st_size for source in sources if Path(source).is_file())
        shown = f", {place.stat().st_size / before:.1%} of the input" if before else ""
        say(f"{target}: {place.stat().st_size:,} bytes{shown}, {seconds:.1f} s")


def decompress(
    *paths: str,
    shape: Shape | None = None,
    reading: Reading = DEFAULTS[0],
    running: Running = DEFAULTS[2],
) -> None:
    """Write the text of a compressed file, byte for byte, with its other columns.

    Parameters
    ----------
    paths
        Input files, folders or patterns, or - for standard input; and last the file to write, in the format that its
        name says (.parquet, .csv, .tsv, .ndjson, .arrow, .txt), or - for standard output.
    shape
        Shape on standard output: "csv" (default), "tsv", "ndjson" or "text": only the column with the text.

    Examples
    --------
    $ tadoc decompress speeches.tadoc.parquet speeches.csv

    $ tadoc decompress logs.tadoc.parquet - --shape text | grep error

    """
    if len(paths) < 2:
        raise UsageError("give the input and the output: tadoc decompress IN.parquet OUT")
    *sources, target = paths
    lf, column = reading.scan(sources)
    write(tadoc.of(lf).decompress(column), target, shape, column)


def info(
    *sources: Source,
    reading: Reading = DEFAULTS[0],
    writing: Writing = DEFAULTS[1],
    running: Running = DEFAULTS[2],
) -> None:
    """Describe a column of text: rows, words, rules, sizes.

    Examples
    --------
    $ tadoc info speeches.tadoc.parquet

    """
    lf, column = reading.scan(sources)
    schema = lf.collect_schema()
    if tadoc.is_tadoc(schema[column]):
        found = tadoc.of(lf).info(column).collect()
    else:
        text = pl.col(column)
        size = text.str.len_bytes().sum().alias("text_bytes")
        found = lf.select(pl.len().alias("rows"), text.null_count().alias("nulls"), size).collect()
        say(f'column "{column}" is not compressed: tadoc compress IN OUT.parquet compresses it')
    stored = sum(Path(source).stat().st_size for source in sources if Path(source).is_file())
    more = [pl.lit(column).alias("column"), pl.lit(len(schema), pl.UInt32).alias("columns")]
    files = [pl.lit(stored, pl.UInt64).alias("file_bytes")] if stored else []
    writing.write(found.select(*more, pl.all(), *files))
