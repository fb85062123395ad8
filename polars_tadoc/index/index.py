"""The public index: segments of postings, documents with ids and metadata, and the analyzer of queries."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from polars_tadoc.engine.progress import STEPS, bar_of, bar_over
from polars_tadoc.index.construct import change
from polars_tadoc.index.searches import IndexSearches
from polars_tadoc.index.store import storage
from polars_tadoc.index.store.place import index_folder
from polars_tadoc.runtime.arguments import require_bool
from polars_tadoc.runtime.documented import with_imports
from polars_tadoc.runtime.option_signature import takes_progress
from polars_tadoc.runtime.process.writer_thread import apart
from polars_tadoc.storage.find import one_file
from polars_tadoc.storage.object_store import Access


@with_imports
@dataclass(frozen=True, eq=False, repr=False)
class Index(IndexSearches):
    """A search index, made by :func:`polars_tadoc.build_index`; it never changes.

    The public interface is the methods and the attributes ``documents``, ``terms``, ``postings``, ``nbytes``, ``ids``,
    ``metadata`` and ``codec``. All other attributes may change in any release.

    Examples
    --------
    >>> df = pl.DataFrame({"name": ["ham", "list"], "text": ["to be or not to be", "to do"]}).tadoc.compress("text")
    >>> index = df.tadoc.build_index("text", id="name")
    >>> index
    Index of 2 documents, 5 terms, 6 postings, 629 bytes (pfordelta)
    >>> index.search("be").get_column("id").to_list()
    ['ham']

    """

    def __reduce__(self) -> tuple[Any, ...]:
        return Index, (self.segments, self.analyzer, self.stored, self.codec, self.fields)

    def __repr__(self) -> str:
        return (
            f"Index of {self.documents:,} documents, {self.terms:,} terms, {self.postings:,} postings, "
            f"{self.nbytes:,} bytes ({self.codec})"
        )

    @takes_progress
    def append(
        self,
        column: pl.Series | pl.DataFrame,
        *,
        id: pl.Series | None = None,
        metadata: pl.DataFrame | None = None,
        upsert: bool = False,
        strategy: str = "auto",
        engine: str | None = None,
        progress: bool | None = None,
    ) -> Index:
        """Return an index with more documents; this one does not change, and both share common parts.

        For a frame, ``df.tadoc.append_to(index, "text", id="name")`` does the same.

        Searches return the same results and scores as on an index built of all documents at once. New documents are a
        segment of their own, and every search reads all segments. If the new segment is at least as large as the last
        one, the two are merged, so a million appended documents are in about twenty segments at most. Call
        :meth:`compact` when searches matter more than further appends.

        Parameters
        ----------
        column
            Compressed column, cut by the same tokenizer as the index's; an index without documents takes any. Or plain
            text (String, Categorical or Enum), which the index's tokenizer cuts; an index that stores text compresses
            it. Each row that is not null is a document. For an index of several columns, a frame with these columns.
        id
            Ids of the new documents, of the type of the index's ids, if it has ids; otherwise documents get row numbers
            that continue the index's. Several new documents may have the same id, as in
            :func:`polars_tadoc.build_index`; an id that the index already has raises, unless ``upsert`` is set. Null
            ids never match.
        metadata
            One row per row of the column, with the columns of the index's metadata, if it has any.
        upsert
            Replace documents in one step: all documents of the index with the id of a row are deleted, and all new ones
            added. A row with null text only deletes the documents with its id.
        strategy, engine
            As for :func:`polars_tadoc.build_index`.

        Returns
        -------
        Index
            The new index.

        Raises
        ------
        NotCompressedError
            The series is neither text nor a compressed column.
        InvalidGrammarError, LimitExceededError, EngineUnavailableError
            As for :func:`polars_tadoc.build_index`.
        ColumnMissingError
            The metadata lacks a column of the index's metadata.
        TypeError
            ``column`` is not a series; ``id`` is missing, or given although the index has no ids; or ``id`` or a
            metadata column has another type than the index's.
        ValueError
            The index has documents with some of the ids (the message lists a few) and ``upsert`` is not set, or
            ``upsert`` is set and the index has no ids. The length of ``id`` or ``metadata`` differs from the column's,
            metadata is missing or given although the index has none, or the column was cut by another tokenizer.

        Examples
        --------
        >>> text = pl.Series("text", ["to be or not to be", "to do is to be"]).tadoc.compress()
        >>> index = tadoc.build_index(text)
        >>> more = index.append(pl.Series("text", ["do be do be do"]).tadoc.compress(like=text))
        >>> index.documents, more.documents, more.search("do", k=1)["id"].item()
        (2, 3, 2)
        >>> index = tadoc.build_index(text, id=pl.Series(["ham", "list"]))
        >>> new = index.append(text.tail(1), id=pl.Series(["ham"]), upsert=True)
        >>> new.ids.to_list(), new.search("not").height
        (['list', 'ham'], 0)

        """
        with bar_over(column, "append"):
            return self._changed(change.append(self._content, column, id, metadata, upsert, strategy, engine))

    def delete(self, ids: Any) -> Index:
        """Return an index without some documents; this one does not change, and both share postings.

        Documents are only marked as deleted until :meth:`compact`, or an :meth:`append` that merges their segment.
        Searches ignore them, also in statistics: scores are those of an index without them.

        Parameters
        ----------
        ids
            One id, or a series, Arrow array or list of ids; all documents with these ids are deleted. Every id must
            exist; keep those that do with ``ids.filter(ids.is_in(index.ids.implode()))``. Or a Polars expression over
            the index's metadata, true for documents to delete.

        Returns
        -------
        Index
            The index without them.

        Raises
        ------
        TypeError
            The ids have another type than the index's, or the expression is not Boolean.
        ValueError
            No document has one of the ids (the message suggests similar ones), or the expression cannot be computed,
            for example because the index has no metadata.
        ColumnMissingError
            The expression names a column that the metadata does not have.

        Examples
        --------
        >>> df = pl.DataFrame({"year": [1602, 1964], "text": ["to be or not to be", "do be do be do"]})
        >>> index = df.tadoc.compress("text").tadoc.build_index("text", metadata=["year"])
        >>> index.delete(pl.col("year") < 1900).search("be").get_column("id").to_list()
        [1]
        >>> index.delete([0, 1]).documents
        0

        """
        return self._changed(change.delete(self._content, ids))

    @takes_progress
    def compact(self, *, progress: bool | None = None) -> Index:
        """Return an index of the same documents in one segment, without deleted ones.

        The result equals, array for array, that of :func:`polars_tadoc.build_index` on these documents, but is computed
        from the postings: faster, and without the text. Peak memory beside both indexes is 8 bytes per posting.

        Returns
        -------
        Index
            The new index; this one if there is nothing to do.

        Raises
        ------
        InvalidIndexError
            Postings of an index loaded with ``verify=False`` are damaged.

        Examples
        --------
        >>> index = tadoc.build_index(pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress())
        >>> index.delete(0).nbytes > index.delete(0).compact().nbytes
        True

        """
        with bar_of(self.documents, "compact", by=STEPS):
            return self._changed(change.compact(self._content))

    @apart
    def save(
        self,
        path: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        storage_options: Mapping[str, Any] | None = None,
        credential_provider: Any = "auto",
    ) -> None:
        """Write the index as a folder of plain files, which :func:`polars_tadoc.load_index` reads.

        ``header.json`` lists each file with its size and checksum. Arrays are NumPy files (.npy), ids and metadata
        Arrow files (.arrow), words and the compressed text Parquet files. The write is atomic: the folder gets its name
        when it is complete. Deleted documents are written, too; :meth:`compact` removes them first.

        Parameters
        ----------
        path
            The folder to create, or its address in an object store (``s3://bucket/index``). There the header is written
            last, so an incomplete upload is never an index.
        overwrite
            Replace a saved index at ``path``. Processes that have it loaded keep using the old one.

        Raises
        ------
        FileExistsError
            The path exists; with ``overwrite``, a folder that contains anything but a saved index.
        FileNotFoundError
            The parent folder does not exist.
        TypeError
            Ids or metadata hold Python objects, ``path`` is not a path, or ``overwrite`` not a bool.
        ValueError
            ``path`` is an address of an unknown kind, or, with ``overwrite``, an address with an index: object stores
            cannot replace a folder atomically. Or the index was built with a ``normalize=`` that uses an operation that
            cannot be saved. (Python functions are left out instead; see :func:`polars_tadoc.load_index`.)
        OSError
            The object store cannot be reached.

        Examples
        --------
        >>> index = tadoc.build_index(pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     index.save(f"{folder}/index")
        ...     print(tadoc.load_index(f"{folder}/index"))
        Index of 2 documents, 5 terms, 6 postings, 629 bytes (pfordelta)

        """
        require_bool("overwrite", overwrite, "save")
        access = Access(storage_options, credential_provider)
        with index_folder(one_file(path, "save", access), overwrite, "save", access) as (folder, replaces):
            parts = storage.Parts(self.segments, self.analyzer, self.stored, self.codec, self.fields)
            storage.write(parts, folder, replaces)

    @property
    def _content(self) -> change.Content:
        return change.Content(self.segments, self.stored, self.analyzer, self.fields)

    def _changed(self, content: change.Content) -> Index:
        return replace(self, segments=content.segments, stored=content.stored, analyzer=content.analyzer)
