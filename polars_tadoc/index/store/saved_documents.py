"""The documents of a saved index: ids and metadata are read when they are first needed."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from polars_tadoc.index.documents import Documents
from polars_tadoc.index.store.stored_text import StoredText
from polars_tadoc.runtime.cached_property import cached_property


class SavedDocuments(Documents):
    """Documents of open files.

    Parameters
    ----------
    size
        Number of documents.
    read_ids, read_metadata
        Read and check the ids and the metadata, if there are any.
    labelled, rows, stored_text
        As for :class:`Documents`.

    """

    def __init__(
        self,
        size: int,
        read_ids: Callable[[], pl.Series],
        labelled: bool,
        rows: int,
        read_metadata: Callable[[], pl.DataFrame] | None,
        stored_text: StoredText | None,
    ) -> None:
        self.__dict__.update(_size=size, _read_ids=read_ids, _read_metadata=read_metadata)
        self.__dict__.update(labelled=labelled, rows=rows, stored_text=stored_text)

    def __len__(self) -> int:
        return int(self.__dict__["_size"])

    @cached_property
    def ids(self) -> pl.Series:
        """Id of each document."""
        ids: pl.Series = self.__dict__["_read_ids"]()
        return ids

    @cached_property
    def metadata(self) -> pl.DataFrame | None:
        """One row per document, or None."""
        read: Callable[[], pl.DataFrame] | None = self.__dict__["_read_metadata"]
        return None if read is None else read()
