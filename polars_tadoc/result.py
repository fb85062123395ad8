"""From an analytic's Arrow table to the frame that Polars users expect."""

from __future__ import annotations

from typing import cast

import polars as pl
import pyarrow as pa


def to_frame(table: pa.Table) -> pl.DataFrame:
    """Turn a table into a frame; dictionary-encoded words become String, gathered once."""
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        array = column.combine_chunks()
        if pa.types.is_dictionary(array.type):
            words = cast(pl.Series, pl.from_arrow(array.dictionary))
            columns.append(words.gather(cast(pl.Series, pl.from_arrow(array.indices))).alias(name))
        else:
            columns.append(cast(pl.Series, pl.from_arrow(array)).alias(name))
    return pl.DataFrame(columns)
