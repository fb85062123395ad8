"""What an index knows of its documents besides their words."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, eq=False)
class Documents:
    """Documents in the order of their numbers, deleted ones too.

    Parameters
    ----------
    ids
        What each document is called; equal ones are allowed.
    labelled
        Whether a user gave the ids; else they are the numbers of rows, UInt32.
    rows
        Rows of all columns that were indexed, null ones too: where the numbers of further rows begin.
    metadata
        A row for each document, or None.
    text
        The compressed text of each document, or None where it is not kept.

    """

    ids: pl.Series
    labelled: bool
    rows: int
    metadata: pl.DataFrame | None = None
    text: pl.Series | None = None

    def __len__(self) -> int:
        return len(self.ids)
