"""The documents of an index: their ids and data, and lookups by id."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.compress.decompress import decompress
from polars_tadoc.index.store.stored_text import StoredText
from polars_tadoc.model.text_type import is_tadoc
from polars_tadoc.rows.content_hash import content_hash
from polars_tadoc.runtime.array_types import Bools, Int64, array_dataclass
from polars_tadoc.runtime.cached_property import cached_property

MAX_NAMED = 3
"""Maximum unknown ids, and similar ids, in a message."""

_NUMBERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32, pl.Float64)

MAX_COMPARED = 2_000
"""Maximum ids that are compared with an unknown one for similarity."""


@array_dataclass
class Documents:
    """Documents in document order, including deleted ones."""

    ids: pl.Series
    """Id of each document; duplicates are allowed."""
    labelled: bool
    """Whether the user gave the ids; otherwise they are row numbers, UInt32."""
    rows: int
    """Rows of all indexed columns, including null rows; further rows are numbered from here."""
    metadata: pl.DataFrame | None = None
    """One row per document, or None."""
    stored_text: StoredText | None = None
    """Compressed text of each document, as storage, or None if the index does not keep it."""

    def __len__(self) -> int:
        return len(self.ids)

    def __reduce__(self) -> tuple[Any, ...]:
        return Documents, (self.ids, self.labelled, self.rows, self.metadata, self.stored_text)

    @cached_property
    def id_numbers(self) -> npt.NDArray[Any] | None:
        """The ids as an array that shares their memory; None unless all are numbers of a NumPy type."""
        if self.ids.null_count() or self.ids.dtype not in _NUMBERS:
            return None
        return self.ids.to_numpy()

    @property
    def text(self) -> pl.Series | None:
        """The compressed text of each document, read on first access; None if the index does not keep it."""
        return None if self.stored_text is None else self.stored_text.column


def find(stored: Documents, live: Bools | None, ids: Any, call: str) -> tuple[Int64, Int64]:
    """Find the documents with the given ids.

    Integers of any width are compared by value and strings with strings; other values are cast to the ids' type.

    Parameters
    ----------
    stored
        The documents of the index.
    live
        Whether each of them is live; None if all are.
    ids
        One id, or a series, Arrow array or list of ids.
    call
        The call's name, for messages.

    Returns
    -------
    (int64 array, int64 array)
        Pairs of a position in ``ids`` and the number of a document with that id, ascending.

    Raises
    ------
    TypeError
        The ids have another type than the index's.
    ValueError
        No document has one of the ids; the message suggests similar ones.

    """
    given = _as_ids(ids, stored.ids.dtype, call)
    asked = given.cast(stored.ids.dtype, strict=False).to_frame("id").with_row_index("asked")
    asked = asked.filter(asked["id"].is_not_null() | given.is_null())  # the other values do not fit the type
    known = stored.ids.to_frame("id").with_row_index("document")
    if live is not None:
        known = known.filter(pl.Series(live))
    pairs = asked.join(known, on="id", nulls_equal=True, maintain_order="left_right")
    if pairs["asked"].n_unique() < len(given):
        named = np.zeros(len(given), np.bool_)
        named[pairs["asked"].to_numpy()] = True
        left = stored.ids if live is None else stored.ids.filter(pl.Series(live))
        raise ValueError(_unknown(given.filter(pl.Series(~named)).unique(maintain_order=True), left, call))
    return pairs["asked"].cast(pl.Int64).to_numpy(), pairs["document"].cast(pl.Int64).to_numpy()


def held(stored: Documents, live: Bools | None, ids: pl.Series) -> Int64:
    """Return the live documents with one of the given ids, ascending.

    The ids have the type of the index's ids. Null never matches. Compressed ids are compared as texts.
    """
    known = _comparable(stored.ids).to_frame("id").with_row_index("document")
    if live is not None:
        known = known.filter(pl.Series(live))
    asked = _comparable(ids).to_frame("id")
    found = known.join(asked, on="id", how="semi", maintain_order="left")
    return found["document"].cast(pl.Int64).to_numpy()


def _comparable(ids: pl.Series) -> pl.Series:
    return content_hash(ids) if is_tadoc(ids.dtype) else ids


def _as_ids(given: Any, dtype: pl.DataType, call: str) -> pl.Series:
    """Convert ids to a series that can be cast to the type of the index's ids."""
    if isinstance(given, (pl.DataFrame, pl.LazyFrame)):
        raise TypeError(f'{call}: ids are values, a series or a list of them, not a frame; pass df["id"]')
    if isinstance(given, (pl.Series, pa.Array, pa.ChunkedArray)):
        values = pl.Series("id", given)
        if not _fits(values, dtype):
            raise TypeError(f"{call}: the index's ids are {dtype}, these are {values.dtype}; cast them")
        return values
    many = isinstance(given, Iterable) and not isinstance(given, (str, bytes, dict))
    listed = list(given) if many else [given]  # this also copies NumPy's numbers
    made = _from_list(listed, dtype)
    if made is None or not _fits(made, dtype):
        shown = f"{listed[0]!r} is not one" if len(listed) == 1 else f"not all of {reprlib.repr(listed)} are"
        raise TypeError(f"{call}: the index's ids are {dtype}; {shown}")
    return made


def _from_list(values: list[Any], dtype: pl.DataType) -> pl.Series | None:
    """Make a series from integers of any width or values of the index's type; None if impossible."""
    if dtype.is_integer() and any(isinstance(one, (bool, np.bool_)) for one in values):
        return None
    try:
        return pl.Series("id", values, None if dtype.is_integer() else dtype)
    except (TypeError, OverflowError, UnicodeEncodeError, pl.exceptions.PolarsError):
        return None


def _fits(values: pl.Series, dtype: pl.DataType) -> bool:
    """Tell whether values may be ids of a type."""
    if values.null_count() == len(values):
        return True
    if dtype.is_integer():
        return values.dtype.is_integer()
    if dtype == pl.String:
        return values.dtype in (pl.String, pl.Categorical, pl.Enum)
    try:
        values.cast(dtype)
    except pl.exceptions.PolarsError:
        return False
    return True


def named(ids: pl.Series) -> str:
    """Format a few distinct ids for messages."""
    distinct = _comparable(ids).to_frame("id").with_row_index("place").unique("id", keep="first", maintain_order=True)
    shown = ids.gather(distinct["place"].head(MAX_NAMED))
    few = (decompress(shown) if is_tadoc(ids.dtype) else shown).to_list()
    more = f" and {len(distinct) - MAX_NAMED:,} more" if len(distinct) > MAX_NAMED else ""
    return ", ".join(map(repr, few)) + more


def _unknown(ids: pl.Series, known: pl.Series, call: str) -> str:
    near = _near(known, ids[0])
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    return f"{call}: the index has no document with id {named(ids)}{hint}"


def _near(ids: pl.Series, asked: Any) -> list[Any]:
    """Return a few ids similar to an unknown one."""
    if asked is None or not len(ids):
        return []
    if ids.dtype.is_integer():
        wide = ids.cast(pl.Int128, strict=False)
        below, above = wide.filter(wide < asked).max(), wide.filter(wide > asked).min()
        return [near for near in (below, above) if near is not None]
    if ids.dtype != pl.String:
        return []
    frame = ids.drop_nulls().unique().to_frame("id").with_columns(length=pl.col("id").str.len_chars())
    like = frame.filter(
        (pl.col("length").cast(pl.Int64) - len(asked)).abs() <= 3,
        pl.col("id").str.starts_with(asked[:2]) | pl.col("id").str.ends_with(asked[-2:]),
    )
    closest = like["id"].sort().head(MAX_COMPARED).to_list() or frame["id"].sort().head(MAX_COMPARED).to_list()
    return difflib.get_close_matches(asked, closest, n=MAX_NAMED, cutoff=0.5)
