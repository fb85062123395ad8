"""What a kind of file is, the frame that samples are made of, and how they are written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import polars_tadoc as tadoc
from tests.fuzz.target import folder

Files = dict[str, bytes]
Use = Callable[[Path], Any]
"""Reads files in a folder and computes; what it returns is compared."""

CHECKSUMMED = "checksummed"
"""Gives what it gave before, or an error of this package."""
EDITED = "edited by hand"
"""A text: gives what it says, as a plain reader has it, or an error of this package."""
PLAIN = "plain Parquet"
"""Grammars have checksums, rows have none of ours: gives what it gave before, what any reader reads, or an error."""
UNVERIFIED = "verify=False"
"""May give other results, or an error of this package."""
FORGED = "forged"
"""Checksums are right for what was changed: gives anything, or an error of this package, in little memory and time."""
PICKLED = "pickled"
"""Gives anything, or any exception: pickles are only for data that is trusted, and undamaged."""

MAY_DIFFER = (UNVERIFIED, FORGED, PICKLED)


@dataclass(frozen=True)
class Kind:
    """One kind of file.

    Parameters
    ----------
    name
        As it is called on the command line.
    promise
        One of the above.
    samples
        Makes sound files, and the questions that are asked of each sample.
    refusals
        Errors that refuse it, but for the package's own.
    are_swapped, are_removed
        Whether one file may be put in another's place, or removed: no file tells which others a folder has.
    is_written
        Whether questions write into the folder, so that all of it is laid anew for each.
    close
        Makes the files of what was changed: takes that, and what was there before. Computes checksums.
    judge
        Says what another answer than before comes to: takes the path, the question and the answer.

    """

    name: str
    promise: str
    samples: Callable[[], list[tuple[Files, list[Use]]]]
    refusals: tuple[type[BaseException], ...] = ()
    are_swapped: bool = True
    are_removed: bool = True
    is_written: bool = False
    close: Callable[[Files, Files], Files] = lambda changed, before: changed
    judge: Callable[[Path, Use, Any], str] = lambda path, use, found: "other"


TEXTS: list[str | None] = [
    *(
        "the cat sat on the mat, the cat sat",
        "a cat; the mat!",
        None,
        "",
        "日本 x\ny the cat",
        "the mat the mat the mat",
    ),
    *(f"{'the cat ' * (row % 4)}w{row % 5} sat on, the mat{'.' * (row % 3)}" for row in range(24)),
]


def frame() -> pl.DataFrame:
    """Rows of several grammars beside columns of some types."""
    text = tadoc.compress(pl.Series("text", TEXTS, pl.String), rows_per_grammar=12)
    rows = range(len(TEXTS))
    return pl.DataFrame(
        {
            "name": [f"n{row}" for row in rows],
            "year": pl.Series([row % 9 if row % 4 else None for row in rows], dtype=pl.Int64),
            "kind": pl.Series(["x" if row % 2 else "y" for row in rows], dtype=pl.Categorical),
            "text": text,
        }
    )


def written(write: Callable[[Path], Any]) -> Files:
    """Return the files that are written to a path, by their path below it (``""`` for a file itself)."""
    path = folder() / "written"
    write(path)
    if path.is_file():
        files = {"": path.read_bytes()}
        path.unlink()
        return files
    files = {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}
    shutil.rmtree(path)
    return files


def text_of(column: pl.Series) -> Any:
    return tadoc.decompress(column).to_list()


def rows_of(found: Any) -> Any:
    frame = found if isinstance(found, pl.DataFrame) else pl.from_arrow(found)
    assert isinstance(frame, pl.DataFrame)
    return frame.rows()
