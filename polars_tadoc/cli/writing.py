"""Output of commands: tables for people, CSV for pipes, files by the ends of their names."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import polars as pl
import polars.selectors as cs
from cyclopts import Parameter

from polars_tadoc.cli.reading import STANDARD, UsageError, format_of
from polars_tadoc.storage.atomic_write import atomic_file_late
from polars_tadoc.storage.atomic_write import target as file_to_replace

if TYPE_CHECKING:
    from rich.console import Console

Shape = Literal["table", "csv", "tsv", "ndjson", "text"]


class Writer(Protocol):
    """Writes rows to a path or an open file."""

    def __call__(self, lf: pl.LazyFrame, target: Any) -> object:
        """Write the rows of a plan."""


def _write_text(lf: pl.LazyFrame, target: Any) -> None:
    names = [name for name, dtype in lf.collect_schema().items() if dtype == pl.String]
    if not names:
        raise UsageError("a text file takes a column of text, and there is none")
    # quotes and separators that no line contains: lines are written as they are
    lf.select(cs.by_name("text" if "text" in names else names[-1])).sink_csv(
        target, include_header=False, quote_style="never"
    )


WRITERS: dict[str, Writer] = {
    "csv": lambda lf, target: flat(lf).sink_csv(target),
    "tsv": lambda lf, target: flat(lf).sink_csv(target, separator="\t"),
    "ndjson": lambda lf, target: lf.sink_ndjson(target),
    "parquet": lambda lf, target: lf.sink_parquet(target),
    "arrow": lambda lf, target: lf.sink_ipc(target),
    "text": _write_text,
}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Writing:
    """Where results go."""

    output: Annotated[Path | None, Parameter(alias="-o")] = None
    """Write the result to this file, in the format that its name says: .csv, .tsv, .ndjson, .parquet, .arrow."""
    shape: Shape | None = None
    """Shape of the result on standard output; by default a table in a terminal, and CSV in a pipe."""

    @property
    def is_table(self) -> bool:
        """Whether a table for people is shown."""
        return self.output is None and (self.shape or ("table" if sys.stdout.isatty() else "csv")) == "table"

    def write(self, frame: pl.DataFrame, title: str = "") -> None:
        """Show a frame, or write it to the file."""
        if self.output is not None:
            write(frame.lazy(), str(self.output))
        elif self.is_table:
            show(frame, title)
        else:
            write(frame.lazy(), STANDARD, self.shape)


def write(lf: pl.LazyFrame, target: str, shape: Shape | None = None, column: str | None = None) -> None:
    """Write the rows of a plan to a file, or with "-" to standard output; of text files, only the named column.

    Raises
    ------
    UsageError
        The name says no format that can be written.

    """
    is_standard = target == STANDARD
    kind = ("csv" if shape in (None, "table") else shape) if is_standard else format_of(Path(target))
    if kind not in WRITERS:
        raise UsageError(f"{target}: the output's name must end in .parquet, .csv, .tsv, .ndjson, .arrow or .txt")
    if kind == "text" and column is not None:
        lf = lf.select(column)
    if is_standard:
        sys.stdout.flush()
        WRITERS[kind](lf, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    elif "://" in target or Path(target).is_fifo():
        WRITERS[kind](lf, target)
    else:
        write_whole(WRITERS[kind], lf, target)


def write_whole(writer: Writer, lf: pl.LazyFrame, target: str) -> None:
    """Write a file that replaces an existing one when it is complete; after an error or Ctrl-C the old one stays."""
    with atomic_file_late(file_to_replace(Path(target), "write"), "write") as temporary:
        writer(lf, temporary)


def flat(lf: pl.LazyFrame) -> pl.LazyFrame:
    """Join lists of words by spaces: a CSV file has no lists."""
    words = [name for name, dtype in lf.collect_schema().items() if dtype == pl.List(pl.String)]
    return lf.with_columns(cs.by_name(words).list.join(" ")) if words else lf


def printable(text: str) -> str:
    """Replace control characters, which could steer the terminal."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", "\N{REPLACEMENT CHARACTER}", text)


def console(stderr: bool = False) -> Console:
    """Return the terminal."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=False)


def show(frame: pl.DataFrame, title: str = "") -> None:
    """Print a frame as a table; one wide row as names with values."""
    from rich.table import Table
    from rich.text import Text

    flattened = flat(frame.lazy()).collect()
    if frame.height == 1 and frame.width > 4:
        values = [[name, _cell(value)] for name, value in flattened.row(0, named=True).items() if value is not None]
        columns, numeric = ["name", "value"], [False, True]
    else:
        values = [[_cell(value) for value in row] for row in flattened.iter_rows()]
        columns, numeric = flattened.columns, [dtype.is_numeric() for dtype in flattened.dtypes]
    table = Table(title=title or None, box=None, header_style="bold", pad_edge=False)
    for name, is_number in zip(columns, numeric, strict=True):
        table.add_column(Text(printable(name)), justify="right" if is_number else "left", overflow="fold")
    for row in values:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


def _cell(value: object) -> str:
    """Write a value for people."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return printable(" ".join(str(value).split()))


def say(text: str) -> None:
    """Print a line for people on standard error; names of files and columns may come from anyone."""
    print(printable(text), file=sys.stderr)
