"""``tadoc search``: ranked search with snippets, once or at a prompt."""

from __future__ import annotations

import secrets
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
from cyclopts import Parameter

import polars_tadoc as tadoc
from polars_tadoc.cli.reading import Reading, UsageError, require_column
from polars_tadoc.cli.running import Running
from polars_tadoc.cli.writing import Writing, console, printable, say

DEFAULTS = Reading(), Writing(), Running()
_MARK = secrets.token_hex(8)
BEFORE, AFTER = f"\x02{_MARK}", f"\x03{_MARK}"
"""Marks of matches in snippets for the terminal, which no text contains; its own control characters are replaced."""
PROMPT = "search> "


def search(
    source: str,
    *query: str,
    k: Annotated[int, Parameter(name=("--k", "-k"))] = 10,
    words: int = 30,
    mode: Literal["or", "and", "and_or"] = "or",
    lowercase: bool = True,
    id: str | None = None,
    metadata: list[str] | None = None,
    save: Path | None = None,
    reading: Reading = DEFAULTS[0],
    writing: Writing = DEFAULTS[1],
    running: Running = DEFAULTS[2],
) -> int:
    """Search documents by BM25, and show the best passage of each. Without a query: at a prompt.

    Queries may have "phrases", +must, -not, AND OR NOT, prefix*, fuzzy~1, a NEAR/5 b, and conditions on metadata
    (year:2023). The exit code is 1 if nothing is found.

    Parameters
    ----------
    source
        A file, folder or pattern, or - for standard input; or a saved index, which is not built again.
    query
        The query.
    k
        Number of documents.
    words
        Words in a passage; 0: no passages.
    mode
        "or": documents with any word of the query; "and": with all of them.
    lowercase
        Whether upper and lower case are equal.
    id
        Column that names the documents; by default row numbers.
    metadata
        Columns for conditions, such as year.
    save
        Keep the index in this folder, for further searches.

    Examples
    --------
    $ tadoc search speeches.parquet "new deal" --id speaker

    $ tadoc search speeches.parquet --save speeches.index --metadata year

    $ tadoc search speeches.index '"fellow citizens" year:[1900 TO 1950]'

    """
    if save is not None and save.exists():
        raise UsageError(f"{save} already exists; search it (tadoc search {save}), or give another folder to --save")
    index = _index(source, lowercase, id, metadata, reading)
    if save is not None:
        index.save(save)
        say(f"{save}: {index}")
    if query:
        return _answer(index, " ".join(query), k, words, mode, writing)
    if not sys.stdin.isatty():
        if save is not None:
            return 0
        raise UsageError("give a query; the prompt needs a terminal")
    say(f"{index}\nType a query, or Ctrl-D to leave.")
    return _prompt(index, k, words, mode, writing)


def _index(source: str, lowercase: bool, id: str | None, metadata: list[str] | None, reading: Reading) -> tadoc.Index:
    if (Path(source) / "header.json").is_file():
        return tadoc.load_index(source)
    lf, column = reading.scan([source])
    wanted = list(dict.fromkeys([*([id] if id else []), *(metadata or []), column]))
    for name in wanted:
        require_column(lf.collect_schema(), name)
    frame = lf.select(pl.col(name) for name in wanted).collect()
    if id is not None and frame[id].is_duplicated().any():
        say(f'values of "{id}" repeat: the passage shown is of the first document with the value')
    return tadoc.of(frame).build_index(column, id=id, lowercase=lowercase, metadata=metadata)


def _prompt(index: tadoc.Index, k: int, words: int, mode: str, writing: Writing) -> int:
    """Answer queries until the input ends."""
    with suppress(ImportError):
        import readline  # noqa: F401  # input() then has a history
    while True:
        try:
            query = input(PROMPT).strip()
        except EOFError:
            print()
            return 0
        if query:
            try:
                _answer(index, query, k, words, mode, writing)
            except (tadoc.errors.TadocError, ValueError) as error:
                say(f"tadoc: {error}")


def _answer(index: tadoc.Index, query: str, k: int, words: int, mode: str, writing: Writing) -> int:
    """Show the results of a query; 1 if there are none."""
    found = index.search(query, k, mode=mode)
    if not found.height:
        meant = index.did_you_mean(query)
        say("nothing found" + (f"; did you mean: {meant}" if meant else ""))
        return 1
    if not writing.is_table:
        shown = index.snippets(found, query, words=words) if words else found
        writing.write(shown.drop("query"))
        return 0
    marked = index.snippets(found, query, words=words, before=BEFORE, after=AFTER) if words else found
    _print(marked, index.count(query, mode="and" if mode == "and" else "or"))
    return 0


def _print(results: pl.DataFrame, count: int) -> None:
    """Print ranks, names, scores and passages with their matches in colour."""
    from rich.text import Text

    terminal = console()
    for row in results.iter_rows(named=True):
        line = Text().append(f"{row['rank']:>3}. ", "dim").append(printable(str(row["id"])), "bold")
        terminal.print(line.append(f"  {row['score']:.3f}", "dim"))
        if "snippet" in row:
            passage = Text("     ")
            for number, part in enumerate(" ".join(row["snippet"].split()).split(BEFORE)):
                match, _, rest = part.partition(AFTER) if number else ("", "", part)
                passage.append(printable(match), "bold green").append(printable(rest))
            terminal.print(passage)
    terminal.print(Text(f"{results.height:,} of {count:,} documents", "dim"))
