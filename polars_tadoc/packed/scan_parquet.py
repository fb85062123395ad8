"""Scans Parquet files, whichever form of a compressed column each of them has."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from polars_tadoc.model.text_type import DTYPE, as_text, is_compressed
from polars_tadoc.runtime.documented import with_imports
from polars_tadoc.storage.files import File, LocalFile, OpenFile
from polars_tadoc.storage.find import Found, Source, find
from polars_tadoc.storage.object_store import Access

ACCESS = ("storage_options", "credential_provider", "decryption")
"""Options that configure how Polars opens a file."""

LISTING = ("glob", "hidden_file_prefix", "_expand_paths")
"""Options for listing files; the package lists files itself."""


@with_imports
def scan_parquet(source: Source, **options: Any) -> pl.LazyFrame:
    """Scan Parquet files, some with compressed columns as the bare struct and some as ``tadoc.Text``.

    Polars' own ``scan_parquet`` refuses to read the two together. This function reads the schema of every file first,
    makes one scan of consecutive files with the same form, and concatenates the scans in file order. Predicates and
    projections are pushed down to the files.

    Parameters
    ----------
    source
        A file, a folder (all ``*.parquet`` in it and below), a glob pattern, the address of one in an object store, an
        open binary file, or a list of these, as for :func:`scan_packed`. Files are read in the order of their names, or
        of the list.
    **options
        Options of ``pl.scan_parquet``. ``n_rows`` and ``row_index_name`` count over all files; ``schema`` may use
        either form.

    Returns
    -------
    LazyFrame
        The rows of all files; every compressed column has type ``tadoc.DTYPE``.

    Raises
    ------
    FileNotFoundError
        No file matches.
    TypeError
        The source has another type, or ``glob`` or ``hidden_file_prefix`` is given.
    ModuleNotFoundError
        An object store needs the package ``obstore``: ``pip install "polars-tadoc[cloud]"``.
    SchemaError
        The files' other columns differ; raised here or when they are read, depending on ``missing_columns``,
        ``extra_columns`` and ``cast_options``.

    Examples
    --------
    >>> df = pl.DataFrame({"day": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tadoc.as_storage(df).write_parquet(Path(folder) / "1.parquet")
    ...     df.write_parquet(Path(folder) / "2.parquet")
    ...     lf = tadoc.scan_parquet(folder)
    ...     lf.filter(pl.col("day") == 2).tadoc.decompress("text").collect().rows()
    [(2, 'to do'), (2, 'to do')]

    """
    for option in LISTING:
        if option in options:
            raise TypeError(f"scan_parquet: {option} is not supported; files are listed as by scan_packed: remove it")
    access = {option: options[option] for option in ACCESS if option in options}
    store = Access(options.get("storage_options"), options.get("credential_provider", "auto"))
    found = find(source, "scan_parquet", store)
    if options.get("hive_partitioning") is None:
        options["hive_partitioning"] = isinstance(source, str | os.PathLike) and all(one.below for one in found)
    schemas = [
        pl.scan_parquet(_named(one.file), glob=False, hive_partitioning=False, **access).collect_schema()
        for one in found
    ]
    runs = _file_runs(found, schemas)
    schema = options.pop("schema", None)
    if schema is None and len(runs) > 1:
        schema = schemas[0]  # the schema that Polars requires of all files of one scan
    last = {}
    if len(runs) > 1:
        last = {option: options.pop(option, None) for option in ("n_rows", "row_index_name", "row_index_offset")}
    scans = [run.scan(schema, options) for run in runs]
    lf = pl.concat(scans, how="vertical") if len(scans) > 1 else scans[0]
    if last.get("n_rows") is not None:
        lf = lf.head(last["n_rows"])
    if last.get("row_index_name") is not None:
        lf = lf.with_row_index(last["row_index_name"], last["row_index_offset"] or 0)
    return lf


@dataclass
class _FileRun:
    """Consecutive files whose compressed columns have the same types."""

    files: list[Found] = field(default_factory=list)
    types: dict[str, pl.DataType] = field(default_factory=dict)

    def scan(self, schema: Any, options: dict[str, Any]) -> pl.LazyFrame:
        if schema is not None:
            own = {
                name: self.types.get(name, DTYPE) if is_compressed(dtype) else dtype
                for name, dtype in dict(schema).items()
            }
            options = {**options, "schema": own}
        lf = pl.scan_parquet([_named(one.file) for one in self.files], glob=False, **options)
        above = self._keys_above() if options["hive_partitioning"] else set()
        return as_text(lf.drop(above & set(lf.collect_schema()) if above else []))

    def _keys_above(self) -> set[str]:
        """Hive keys above the named folder: Polars reads them from the whole path."""
        first = self.files[0]
        if not first.below:
            return set()
        parts = os.fspath(_named(first.file)).split("/")[:-1]
        keys = [part.partition("=")[0] for part in parts if "=" in part]
        return set(keys) - {part.partition("=")[0] for part in first.folders}


def _file_runs(found: list[Found], schemas: list[pl.Schema]) -> list[_FileRun]:
    runs = [_FileRun()]
    for one, schema in zip(found, schemas, strict=True):
        types = {name: dtype for name, dtype in schema.items() if is_compressed(dtype)}
        known = runs[-1].types
        if any(known.get(name, dtype) != dtype for name, dtype in types.items()):
            runs.append(_FileRun())
        runs[-1].files.append(one)
        runs[-1].types.update(types)
    return runs


def _named(file: File) -> Any:
    """Convert a file to a source that Polars accepts."""
    if isinstance(file, LocalFile):
        return file.path
    return file.opened if isinstance(file, OpenFile) else str(file)
