"""Input of commands: files, folders, patterns or standard input as a plan, and its column of text."""

from __future__ import annotations

import glob
import io
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from cyclopts import Parameter

import polars_tadoc as tadoc

Format = Literal["parquet", "csv", "tsv", "ndjson", "arrow", "text", "documents"]

FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".txt": "text",
    ".text": "text",
    ".log": "text",
    ".md": "text",
    ".xml": "documents",
}
"""Formats by the ends of names."""
COMPRESSED = (".gz", ".zst")
"""Ends of names that Polars decompresses."""
STANDARD = "/dev/-"
"""The argument "-", standard input or output, by a name that is not taken for an option."""


Source = Annotated[str, Parameter(help="Files, folders or patterns, or - for standard input.")]


class UsageError(ValueError):
    """A command was called in a wrong way; the message says what to write."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """How to read the input."""

    column: str | None = None
    """Column with the text; by default the compressed one, the only String column, or "text"."""
    format: Format | None = None
    """Format of the input; by default from the ends of names. "text": a row per line; "documents": a row per file."""
    where: str | None = None
    """Use only rows for which this SQL expression is true, such as "year > 2000"."""
    rows: int | None = None
    """Use only the first rows."""

    def scan(self, sources: Sequence[str]) -> tuple[pl.LazyFrame, str]:
        """Return a plan over the input, and the name of its column of text.

        Raises
        ------
        UsageError
            The sources, their format or the column are not clear.
        FileNotFoundError
            No file matches.

        """
        if not sources:
            raise UsageError("no input is named: give files, folders or patterns, or - for standard input")
        if STANDARD in sources:
            if len(sources) > 1:
                raise UsageError("- is standard input; give no other input beside it")
            lf = _scan_stdin(self.format)
        else:
            lf = _scan(*_files(sources, self.format))
        if self.where is not None:
            lf = lf.filter(self._condition(lf.collect_schema()))
        if self.rows is not None:
            lf = lf.head(self.rows)
        return lf, text_column(lf.collect_schema(), self.column)

    def _condition(self, schema: pl.Schema) -> pl.Expr:
        """Return ``--where`` as an expression."""
        condition = pl.sql_expr(str(self.where))
        if schema.to_frame(eager=False).select(condition).collect_schema().dtypes() != [pl.Boolean]:
            raise UsageError(
                f"--where {self.where}: this is no condition; write one in quotes: --where \"level = 'error'\""
            )
        return condition


def text_column(schema: pl.Schema, column: str | None) -> str:
    """Return the column of text: the named one, the compressed one, the only String column, or "text"."""
    if column is not None:
        require_column(schema, column)
        return column
    kinds = (tadoc.is_tadoc, lambda dtype: dtype == pl.String)
    for is_kind in kinds:
        names = [name for name, dtype in schema.items() if is_kind(dtype)]
        if len(names) == 1:
            return names[0]
        if "text" in names:
            return "text"
        if names:
            raise UsageError(f"name the column with --column: {' or '.join(names)}")
    raise UsageError(f"the input has no column of text; its columns are {', '.join(schema)}")


def require_column(schema: pl.Schema, column: str) -> None:
    """Raise ``UsageError`` if the input has no such column."""
    if column not in schema:
        raise UsageError(f'there is no column "{column}"; the columns are {", ".join(schema)}')


def _files(sources: Sequence[str], named: Format | None) -> tuple[list[Path], Format]:
    """List the files of sources, and return their common format."""
    found: list[Path] = []
    for source in sources:
        path = Path(source).expanduser()
        if path.is_dir():
            below = [file for file in sorted(path.rglob("*")) if file.is_file() and not _is_hidden(file, path)]
            found += [file for file in below if named is not None or format_of(file) is not None]
        elif path.exists():
            found.append(path)
        else:
            found += [Path(name) for name in sorted(glob.glob(str(path), recursive=True)) if Path(name).is_file()]
        if not found:
            kinds = ", ".join(FORMATS)
            raise FileNotFoundError(f"{source}: no file found" + (f" with one of {kinds}" if path.is_dir() else ""))
    if named is not None:
        return found, named
    formats = {format_of(file): file for file in found}
    if None in formats:
        raise UsageError(f"{formats[None]}: the name does not say the format; give it: --format text")
    if len(formats) > 1:
        shown = ", ".join(f"{file.name} is {kind}" for kind, file in formats.items())
        raise UsageError(f"the files have several formats ({shown}): use a pattern such as 'folder/**/*.csv'")
    (kind,) = formats
    assert kind is not None
    return found, kind


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def format_of(path: Path) -> Format | None:
    """Return the format that the end of a name says; None: no known one."""
    end = Path(path.stem).suffix if path.suffix.lower() in COMPRESSED else path.suffix
    return FORMATS.get(end.lower())


def _scan(files: list[Path], kind: Format) -> pl.LazyFrame:
    if kind == "parquet":
        lf = tadoc.scan_parquet(files)
        is_packed = any(tadoc.is_packed(dtype) for dtype in lf.collect_schema().values())
        return tadoc.scan_packed(files) if is_packed else lf
    if kind == "documents":
        names = [str(file) for file in files]
        return pl.LazyFrame({"file": names, "text": [file.read_text("utf-8") for file in files]})
    return _scan_source(files, kind)


def _scan_source(source: Any, kind: Format) -> pl.LazyFrame:
    """Scan files, or data in memory; names are only names, also data[1].csv."""
    if kind == "csv":
        return pl.scan_csv(source, glob=False)
    if kind == "tsv":
        return pl.scan_csv(source, separator="\t", glob=False)
    if kind == "ndjson":  # has no glob=
        return pl.scan_ndjson([glob.escape(str(file)) for file in source] if isinstance(source, list) else source)
    if kind == "arrow":
        return pl.scan_ipc(source, glob=False)
    return pl.scan_lines(source, name="text", glob=False)


def _scan_stdin(kind: Format | None) -> pl.LazyFrame:
    data = sys.stdin.buffer.read()
    if kind is None:
        kind = "parquet" if data.startswith(b"PAR1") else "ndjson" if re.match(rb"\s*\{", data) else "text"
    if kind == "documents":
        return pl.LazyFrame({"file": [STANDARD], "text": [data.decode("utf-8")]})
    if kind == "parquet":
        lf = tadoc.scan_parquet(io.BytesIO(data))
        is_packed = any(tadoc.is_packed(dtype) for dtype in lf.collect_schema().values())
        return tadoc.scan_packed(io.BytesIO(data)) if is_packed else lf
    return _scan_source(io.BytesIO(data), kind)
