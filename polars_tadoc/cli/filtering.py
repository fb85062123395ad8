"""``tadoc twigs``."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc
from polars_tadoc.cli.reading import Reading, UsageError
from polars_tadoc.cli.running import Running
from polars_tadoc.cli.writing import Writing, say

DEFAULTS = Reading(), Writing(), Running()


def twigs(
    source: str,
    *queries: str,
    queries_file: Path | None = None,
    id: str | None = None,
    namespace: list[str] | None = None,
    skip_invalid: bool = False,
    reading: Reading = DEFAULTS[0],
    writing: Writing = DEFAULTS[1],
    running: Running = DEFAULTS[2],
) -> int:
    """List the XPath queries that each document matches. The exit code is 1 if none matches.

    Parameters
    ----------
    source
        A file, folder or pattern, or - for standard input. A file *.xml is one document.
    queries
        XPath queries, each as XPATH or NAME=XPATH.
    queries_file
        File with further queries, one per line.
    id
        Column that names the documents; by default the file, or row numbers.
    namespace
        Namespace as PREFIX=URI, for queries with prefixes.
    skip_invalid
        Skip documents that are not well-formed XML, instead of ending.

    Examples
    --------
    $ tadoc twigs plays.parquet 'Nina=//t:sp[@who="#nina"]' --namespace t=http://www.tei-c.org/ns/1.0

    $ tadoc twigs 'notes/*.xml' --queries-file subscriptions.txt > matches.csv

    """
    lines = [] if queries_file is None else queries_file.read_text("utf-8").splitlines()
    given = [line.strip() for line in [*queries, *lines] if line.strip()]
    if not given:
        raise UsageError("give a query, such as //title, or --queries-file")
    named = dict(_named(query) for query in given)
    if len(named) < len(given):
        raise UsageError("two queries have the same name")
    prefixes = dict(one.split("=", 1) for one in namespace or [])
    lf, column = reading.scan([source])
    label = id or ("file" if column == "text" and lf.collect_schema().names() == ["file", "text"] else None)
    on_error = "null" if skip_invalid else "raise"
    plan = tadoc.of(lf).twig_filter(column, named, id=label, namespaces=prefixes or None, on_error=on_error)
    try:
        found = plan.collect()
    except tadoc.errors.InvalidXmlError as error:
        raise UsageError(_of_document(str(error), lf, label)) from error
    if not found.height:
        say("no query matches")
        return 1
    writing.write(found)
    return 0


def _of_document(message: str, lf: pl.LazyFrame, label: str | None) -> str:
    """Return the message about a document with its name, and with the option of the command line."""
    what = message.partition("; on_error=")[0]
    row = re.search(r"row (\d+): ", what)
    if label is not None and row is not None:
        what = f"{lf.select(label).slice(int(row[1]), 1).collect().item()}: {what[row.end() :]}"
    return f"{what}; --skip-invalid skips such documents"


def _named(query: str) -> tuple[str, str]:
    """Return the name and the XPath of a query: NAME=XPATH, or the XPath itself."""
    name, sign, path = query.partition("=")
    is_named = sign and name and not name.startswith(("/", ".", "(")) and path.lstrip().startswith(("/", "."))
    return (name.strip(), path.strip()) if is_named else (query, query)
