"""``df.tadoc``: analytics over the rows of a frame."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Unpack

import polars as pl

from polars_tadoc.analytics import to_csr as to_csr_analytic
from polars_tadoc.analytics.bm25_weights import BM25WeightsRequest, bm25_weights
from polars_tadoc.analytics.cleaning.drop_repeats import DropRepeatsRequest, drop_repeats
from polars_tadoc.analytics.cleaning.near_duplicates import (
    DuplicateGroupsRequest,
    NearDuplicatesOptions,
    NearDuplicatesRequest,
    duplicate_groups,
    near_duplicates,
)
from polars_tadoc.analytics.cleaning.options import DropRepeatsOptions, OverlapOptions, RepeatsOptions
from polars_tadoc.analytics.cleaning.overlap import OverlapRequest, overlap
from polars_tadoc.analytics.cleaning.passage_set import PassageSet
from polars_tadoc.analytics.cleaning.repeats import RepeatsRequest, repeats
from polars_tadoc.analytics.collocations import CollocationsOptions, CollocationsRequest, collocations
from polars_tadoc.analytics.concordance import (
    ConcordanceOptions,
    ConcordanceRequest,
    PositionsRequest,
    concordance,
    positions,
)
from polars_tadoc.analytics.cooccurrence import CooccurrenceRequest, cooccurrence
from polars_tadoc.analytics.info import info
from polars_tadoc.analytics.inverted_index import InvertedIndexRequest, inverted_index
from polars_tadoc.analytics.ranked_inverted_index import RankedInvertedIndexRequest, ranked_inverted_index
from polars_tadoc.analytics.sequence_count import SequenceCountRequest, sequence_count
from polars_tadoc.analytics.sort import SortRequest, sort
from polars_tadoc.analytics.term_vector import TermVectorRequest, term_vector
from polars_tadoc.analytics.tfidf import TFIDFRequest, tfidf
from polars_tadoc.analytics.twig_filter import TwigFilterOptions, TwigFilterRequest, twig_filter
from polars_tadoc.analytics.word_count import WordCountRequest, word_count
from polars_tadoc.compress.compress import CompressOptions, compress
from polars_tadoc.compress.decompress import decompress
from polars_tadoc.compress.recompress import RecompressOptions, recompress
from polars_tadoc.errors import ColumnMissingError
from polars_tadoc.execute.analytic import Analytic, asking_for_frames
from polars_tadoc.execute.columns import (
    compressed_column,
    each_column,
    label_column,
    metadata_columns,
    packed_column,
    string_column,
    text_column,
)
from polars_tadoc.index.construct.build import IndexColumnOptions, build_index
from polars_tadoc.index.index import Index
from polars_tadoc.namespaces.frame_options import (
    WORD_FORM,
    BM25WeightsInFrames,
    CooccurrenceInFrames,
    CountInFrames,
    RunInFrames,
    TFIDFInFrames,
    TopInFrames,
)
from polars_tadoc.packed.pack import pack, pack_stream, packed_schema
from polars_tadoc.packed.unpack import unpack
from polars_tadoc.packed.write import write_packed
from polars_tadoc.rows.phrases import PhraseOptions
from polars_tadoc.rows.preview import ROWS, WORDS, preview
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.process.fork import require_threads
from polars_tadoc.runtime.process.writer_thread import apart
from polars_tadoc.storage.object_store import Access
from polars_tadoc.storage.writing import writable_place
from polars_tadoc.twig.twig_set import TwigSet

LABELS = "Name of a column of the frame whose values label the rows; default: row numbers."


class TadocFrame:
    """Grammar compression and analytics on a frame.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> df = pl.DataFrame({"year": [1, 2], "text": ["to be or not", "to do"]}).tadoc.compress("text")
    >>> df.filter(pl.col("year") > 1).tadoc.word_count("text").rows()
    [('do', 1), ('to', 1)]

    """

    def __init__(self, df: pl.DataFrame) -> None:
        require_threads()
        self._df = df

    def _column(self, call: str, column: str | None) -> pl.Series:
        df = self._df
        return df[compressed_column(df.schema, column, call)]

    def _text(self, call: str, column: str | None) -> pl.Series:
        df = self._df
        return df[text_column(df.schema, column, call)]

    def _labels(self, call: str, id: str | None) -> pl.Series | None:
        df = self._df
        return None if id is None else df[label_column(df.schema, id, call)]

    def _answer(self, request: Analytic[Any, Any], column: str | None, id: str | None = None) -> pl.DataFrame:
        return request.frame(self._text(request.name, column), self._labels(request.name, id), self._df)

    @documented_by(compress)
    def compress(self, column: str | Sequence[str], **options: Unpack[CompressOptions]) -> pl.DataFrame:
        """Replace String columns by their compressed form.

        A misspelt column raises ``ColumnMissingError`` with the nearest names.

        Parameters
        ----------
        column
            Name of the column, or a list of names.

        Returns
        -------
        DataFrame
            The frame with the columns as ``tadoc.DTYPE``, or in the type of ``like`` or ``Config(column_type=)``.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be", "to do"]}).tadoc.compress("text")
        >>> tadoc.is_tadoc(df.schema["text"])
        True

        """
        df = self._df
        names = each_column(column, lambda name: string_column(df.schema, name, "compress"))
        return df.with_columns(compress(df[name], **options) for name in names)

    @documented_by(recompress)
    def recompress(self, column: str | None = None, **options: Unpack[RecompressOptions]) -> pl.DataFrame:
        """Merge the grammars of a compressed column (optional if there is only one).

        Returns
        -------
        DataFrame
            The frame with the same rows; the type of the column does not change.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.concat([pl.DataFrame({"text": [text]}).tadoc.compress("text") for text in ("to be", "to do")])
        >>> df.tadoc.recompress().tadoc.info()["grammars"].to_list()
        [1]

        """
        return self._df.with_columns(recompress(self._column("recompress", column), **options))

    @documented_by(decompress)
    def decompress(self, column: str | Sequence[str] | None = None) -> pl.DataFrame:
        """Replace compressed columns (optional if there is only one) by their text.

        Parameters
        ----------
        column
            Name of the compressed column, or a list of names; optional if there is only one.

        Returns
        -------
        DataFrame
            The frame with the columns as String.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.DataFrame({"text": ["to be"]}).tadoc.compress("text").tadoc.decompress().rows()
        [('to be',)]

        """
        df = self._df
        names = each_column(column, lambda name: compressed_column(df.schema, name, "decompress"))
        return df.with_columns(decompress(df[name]) for name in names)

    def preview(self, rows: int = ROWS, words: int = WORDS) -> pl.DataFrame:
        """Return the first rows, with the first words of each instead of every compressed column, for printing.

        Polars prints the whole grammar in each row of a compressed column; print the preview instead.

        Parameters
        ----------
        rows
            Number of rows.
        words
            Words per row.

        Returns
        -------
        DataFrame
            Compressed columns as String, other columns unchanged.

        Raises
        ------
        TypeError, ValueError
            ``rows`` or ``words`` is not an integer, or negative.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"day": [1, 2], "text": ["to be, or not to be", "to do"]}).tadoc.compress("text")
        >>> df.tadoc.preview(words=3).rows()
        [(1, 'to be, or'), (2, 'to do')]

        """
        return preview(self._df, rows, words)

    def pack(self, column: str | None = None) -> pl.DataFrame:
        """Pack each run of consecutive rows that share a grammar into one row, as ``implode`` makes lists of rows.

        A packed row is self-contained: it holds the grammar as plain lists beside the rows' own symbols, and needs no
        decoding. Rows keep their order, so a grammar that occurs again after another one is packed again. Null rows are
        packed with the rows before them. A run too large for one cell (2^29 values, or 2^31 bytes of strings) becomes
        several rows.

        Parameters
        ----------
        column
            The compressed column; optional if there is only one.

        Returns
        -------
        DataFrame
            The column with type ``tadoc.PACKED_DTYPE``, every other one as lists with one value per document.

        Raises
        ------
        ColumnMissingError, NotCompressedError
            The frame lacks the column, or it is not compressed.
        LimitExceededError
            A single row has more values than a cell holds; or grammars alternate from row to row, so that their
            copies would exceed ``Config(payload_limit_bytes=)``: merge them with ``recompress``.
        InvalidGrammarError
            A payload or a row is damaged.
        TypeError
            A column has Python objects, which lists cannot hold.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"year": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text")
        >>> packed = df.tadoc.pack("text")
        >>> packed.height, packed["year"].to_list(), packed["text"].struct.field("vocabulary").to_list()
        (1, [[1, 2]], [['to', 'be', 'do']])

        """
        df = self._df
        return pack(df, compressed_column(df.schema, column, "pack"))

    def unpack(self, column: str | None = None) -> pl.DataFrame:
        """Return the original rows of packed rows, in order, as ``explode`` does with lists.

        Parameters
        ----------
        column
            The packed column; optional if there is only one.

        Returns
        -------
        DataFrame
            The original frame, before :meth:`pack`.

        Raises
        ------
        ColumnMissingError, NotPackedError
            The frame lacks the column, it is not packed, or another column is not a list.
        InvalidGrammarError
            A packed row is damaged: an invalid grammar, descending offsets, lists of unequal lengths.
        LimitExceededError
            A rule expands to more words than ``Config(expansion_limit=)``.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"year": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text")
        >>> df.tadoc.pack().tadoc.unpack().equals(df)
        True

        """
        df = self._df
        return unpack(df, packed_column(df.schema, column, "unpack"))

    @apart
    def write_packed(
        self,
        path: str | os.PathLike[str] | BinaryIO,
        column: str | None = None,
        *,
        effort: str = "default",
        storage_options: Mapping[str, Any] | None = None,
        credential_provider: Any = "auto",
    ) -> None:
        """Write a Parquet file of packed rows, one row group each, for :func:`polars_tadoc.scan_packed`.

        Parameters
        ----------
        path
            The file, written atomically: it replaces an existing one when it is complete. Until then it is
            ``.NAME.….tmp`` beside it, which a killed process leaves behind and which you may delete. Or the address of
            an object (``s3://bucket/texts.parquet``), which appears when it is uploaded completely, or an open binary
            file.
        column
            The compressed column; optional if there is only one.
        effort
            ``"default"``, or ``"small"``: entropy-coded, for files that are rarely read. These are 9 to 27 % smaller,
            are written at 3 to 80 MB of text a second, and read at a third to two thirds of the speed.
        storage_options
            Access to the object store, as for :func:`polars_tadoc.scan_packed`.
        credential_provider
            As for :func:`polars_tadoc.scan_packed`.

        Raises
        ------
        ColumnMissingError, NotCompressedError, LimitExceededError, InvalidGrammarError
            As for :meth:`pack`.
        TypeError
            A column has a type that Parquet lacks (Python objects, 128-bit integers), or ``path`` is not a path.
        ValueError
            ``path`` is an address with an unknown scheme, or ``effort`` is unknown.
        ModuleNotFoundError
            An object store needs the package ``obstore``: ``pip install "polars-tadoc[cloud]"``.
        OSError
            The path is a folder or a device, or its folder does not exist, raised before any row is read; an object
            store cannot be reached.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"year": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     df.tadoc.write_packed(Path(folder) / "texts.parquet")
        ...     tadoc.scan_packed(folder).collect().equals(df)
        True

        """
        df = self._df
        name = compressed_column(df.schema, column, "write_packed")
        access = Access(storage_options, credential_provider)
        place = writable_place(path, "write_packed", access)
        rows = pack_stream([df], name)
        write_packed(rows, packed_schema(df.schema, name), name, place, "write_packed", access, effort)

    def write_parquet(
        self,
        path: str | os.PathLike[str] | BinaryIO,
        *,
        partition_by: str | Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        """Write a Parquet file, or a folder of partitions, atomically.

        Parameters
        ----------
        path
            The file; with ``partition_by``, the folder.
        partition_by
            Key columns: each combination of their values gets a file of its own, ``system=sshd/00000000.parquet``,
            with grammars made of its rows only.
        **options
            As for ``lf.tadoc.sink_parquet``.

        Raises
        ------
        DiskFullError, OSError, TypeError, ValueError, FileExistsError
            As for ``lf.tadoc.sink_parquet``.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"system": ["sshd", "cron"], "text": ["to be", "to do"]}).tadoc.compress("text")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     df.tadoc.write_parquet(Path(folder) / "logs", partition_by="system")
        ...     print(sorted(file.parent.name for file in Path(folder).rglob("*.parquet")))
        ['system=cron', 'system=sshd']

        """
        self._df.lazy().tadoc.sink_parquet(path, partition_by=partition_by, **options)  # type: ignore[attr-defined]

    @documented_by(word_count, words=WORD_FORM)
    def word_count(self, column: str | None = None, **options: Unpack[TopInFrames]) -> pl.DataFrame:
        """Count the words of a compressed column (optional if there is only one).

        Returns
        -------
        DataFrame
            ``word: String, count: UInt64``, by descending count, then word in code point order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["the cat", "the dog"]}).tadoc.compress("text")
        >>> df.tadoc.word_count("text", stopwords=["the"]).rows()
        [('cat', 1), ('dog', 1)]

        """
        return self._answer(asking_for_frames(WordCountRequest.from_arguments, options), column)

    @documented_by(sort, words=WORD_FORM)
    def sort(self, column: str | None = None, **options: Unpack[CountInFrames]) -> pl.DataFrame:
        """List the words of a compressed column (optional if there is only one) in code point order.

        Returns
        -------
        DataFrame
            ``word: String, count: UInt64``, by word in code point order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be", "not to be"]}).tadoc.compress("text")
        >>> df.tadoc.sort("text").rows()
        [('be', 2), ('not', 1), ('to', 2)]

        """
        return self._answer(asking_for_frames(SortRequest.from_arguments, options), column)

    @documented_by(inverted_index, id=LABELS, words=WORD_FORM)
    def inverted_index(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[CountInFrames]
    ) -> pl.DataFrame:
        """List the rows that contain each word of a compressed column (optional if there is only one).

        Returns
        -------
        DataFrame
            ``word: String, documents: List`` of labels or row numbers, in row order; by word in code point order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"day": ["mon", "tue"], "text": ["to be", "to do"]}).tadoc.compress("text")
        >>> df.tadoc.inverted_index("text", id="day").rows()
        [('be', ['mon']), ('do', ['tue']), ('to', ['mon', 'tue'])]

        """
        return self._answer(asking_for_frames(InvertedIndexRequest.from_arguments, options), column, id)

    @documented_by(
        build_index,
        id="Name of a column of the frame with the ids of documents; default: row numbers.",
        metadata="Names of columns of the frame that filters may use.",
    )
    def build_index(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[IndexColumnOptions]
    ) -> Index:
        """Build a search index of a column, text or compressed (optional if there is only one compressed).

        A misspelt column raises ``ColumnMissingError`` with the nearest names.

        Returns
        -------
        Index
            The index, in memory; :meth:`polars_tadoc.Index.save` writes it.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"year": [1, 2, 3], "text": ["to be", "to do", "do be"]}).tadoc.compress("text")
        >>> index = df.tadoc.build_index("text", id="year", metadata=["year"])
        >>> index.search("do", filter=pl.col("year") > 2)["id"].to_list()
        [3]

        """
        call, names = "build_index", options["metadata"]
        listed = [] if names is None else metadata_columns(self._df.columns, names, call)
        own: Any = {**options, "metadata": self._df[listed] if listed else None}
        return build_index(self._text(call, column), id=self._labels(call, id), **own)

    def append_to(
        self,
        index: Index,
        column: str | None = None,
        *,
        id: str | None = None,
        upsert: bool = False,
        strategy: str = "auto",
        engine: str | None = None,
    ) -> Index:
        """Return an index with the documents of this frame appended, as :meth:`polars_tadoc.Index.append`.

        Parameters
        ----------
        index
            The index, which does not change.
        column
            Compressed column (optional if there is only one), with the index's tokenizer; or a column of plain text.
        id
            Name of the column with the ids of the new documents, if the index has ids. An id that the index has already
            raises, unless ``upsert`` is set; several rows may have one id.
        upsert
            Whether to replace the documents of the index whose ids the frame has, in the same step. A row with null
            text deletes the documents of its id.
        strategy
            "auto", "top_down" or "bottom_up": direction in which the rules are traversed; the index is the same.
        engine
            "auto", "cpu" or "gpu": where words are counted; by default the engine of ``tadoc.Config``.

        Returns
        -------
        Index
            The new index. Its metadata are the frame's columns of the same names.

        Raises
        ------
        TypeError
            ``index`` is not an index, or as for :meth:`polars_tadoc.Index.append`.
        ColumnMissingError
            The frame lacks the column, or a metadata column of the index.
        ValueError
            The index has documents with some of the ids (the message names some) and ``upsert`` is not set, or as for
            :meth:`polars_tadoc.Index.append`.
        NotCompressedError, InvalidGrammarError, LimitExceededError, EngineUnavailableError
            As for :meth:`polars_tadoc.Index.append`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"year": [1, 2, 3], "text": ["to be", "to do", "do be"]}).tadoc.compress("text")
        >>> index = df.head(2).tadoc.build_index("text", id="year", metadata=["year"])
        >>> df.tail(1).tadoc.append_to(index, "text", id="year").search("do", filter=pl.col("year") > 2)["id"].to_list()
        [3]
        >>> df.tadoc.append_to(index, "text", id="year", upsert=True).ids.to_list()
        [1, 2, 3]

        """
        if not isinstance(index, Index):
            raise TypeError(f"append_to: index is {type(index).__name__}, not an Index; build_index makes one")
        texts, ids, known = self._text("append_to", column), self._labels("append_to", id), index.stored.metadata
        for name in () if known is None else known.columns:
            if name not in self._df.columns:
                raise ColumnMissingError.for_name(name, self._df.columns, "append_to: the index's metadata")
        metadata = None if known is None else self._df.select(known.columns)
        return index.append(texts, id=ids, metadata=metadata, upsert=upsert, strategy=strategy, engine=engine)

    @documented_by(term_vector, id=LABELS, words=WORD_FORM)
    def term_vector(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[TopInFrames]
    ) -> pl.DataFrame:
        """Count the words of each row of a compressed column (optional if there is only one).

        Returns
        -------
        DataFrame
            ``id, word: String, count: UInt64``; in row order, each row's words by descending count, then word.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"day": ["mon", "tue"], "text": ["to be or not to be", "to do"]}).tadoc.compress("text")
        >>> df.tadoc.term_vector("text", id="day", top=1).rows()
        [('mon', 'be', 2), ('tue', 'do', 1)]

        """
        return self._answer(asking_for_frames(TermVectorRequest.from_arguments, options), column, id)

    @documented_by(bm25_weights, id=LABELS, words=WORD_FORM)
    def bm25_weights(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[BM25WeightsInFrames]
    ) -> pl.DataFrame:
        """Weigh each row's words by BM25, compressed or String (optional if only one is compressed).

        Returns
        -------
        DataFrame
            ``id, word: String, weight: Float64``; in row order, each row's words in code point order, with
            ``top`` by descending weight.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"day": ["mon", "tue"], "text": ["to be or not to be", "to do"]}).tadoc.compress("text")
        >>> df.tadoc.bm25_weights("text", id="day", top=1).with_columns(pl.col("weight").round(4)).rows()
        [('mon', 'be', 0.3412), ('tue', 'do', 0.3578)]

        """
        return self._answer(asking_for_frames(BM25WeightsRequest.from_arguments, options), column, id)

    @documented_by(tfidf, id=LABELS, words=WORD_FORM)
    def tfidf(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[TFIDFInFrames]
    ) -> pl.DataFrame:
        """Weigh each row's words by TF-IDF, compressed or String (optional if only one is compressed).

        Returns
        -------
        DataFrame
            ``id, word: String, weight: Float64``; in row order, each row's words in code point order, with
            ``top`` by descending weight.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"day": ["mon", "tue"], "text": ["to be or not to be", "to do"]}).tadoc.compress("text")
        >>> df.tadoc.tfidf("text", id="day", top=1).with_columns(pl.col("weight").round(4)).rows()
        [('mon', 'be', 0.706), ('tue', 'do', 0.8148)]

        """
        return self._answer(asking_for_frames(TFIDFRequest.from_arguments, options), column, id)

    @documented_by(twig_filter, id=LABELS)
    def twig_filter(
        self,
        column: str | None = None,
        queries: Mapping[str, str] | TwigSet | None = None,
        *,
        id: str | None = None,
        **options: Unpack[TwigFilterOptions],
    ) -> pl.DataFrame:
        """Find the XPath queries that each row's XML document matches, compressed or String.

        The column is optional if there is only one compressed column: ``twig_filter(queries=…)``.

        Returns
        -------
        DataFrame
            ``id, query: String``, one row per match; in row order, each row's queries in the order of
            the set.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"name": ["x", "y"], "xml": ["<a><b/><c/></a>", "<a><c/></a>"]})
        >>> df.tadoc.twig_filter("xml", {"both": "/a[b]/c", "any": "//c"}, id="name").rows()
        [('x', 'both'), ('x', 'any'), ('y', 'any')]

        """
        return self._answer(TwigFilterRequest.of_frame(column, queries, **options), column, id)

    @documented_by(to_csr_analytic.to_csr)
    def to_csr(
        self, column: str | None = None, **options: Unpack[to_csr_analytic.ToCSROptions]
    ) -> tuple[to_csr_analytic.CSR, pl.Series]:
        """Count each row's words in a sparse matrix, for scikit-learn, or weigh them.

        Returns
        -------
        (scipy.sparse.csr_array, Series)
            Counts, int64, or weights, float64, shape (rows, words): one column per word that occurs, or per word of the
            dictionary, in code point order; and these words.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be", "to do, to be"]}).tadoc.compress("text")
        >>> counts, words = df.tadoc.to_csr("text", stopwords=["be"])
        >>> words.to_list(), counts.toarray().tolist()
        (['do', 'to'], [[0, 1], [1, 2]])

        """
        return to_csr_analytic.to_csr(self._text("to_csr", column), **options)

    @documented_by(sequence_count, words=WORD_FORM)
    def sequence_count(self, column: str | None = None, **options: Unpack[RunInFrames]) -> pl.DataFrame:
        """Count the sequences of n words in a compressed column (optional if there is only one).

        Returns
        -------
        DataFrame
            ``sequence: List(String), count: UInt64``, by descending count, then in code point order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be or not to be", "to do"]}).tadoc.compress("text")
        >>> df.tadoc.sequence_count("text", n=2, top=2).rows()
        [(['to', 'be'], 2), (['be', 'or'], 1)]

        """
        return self._answer(asking_for_frames(SequenceCountRequest.from_arguments, options), column)

    @documented_by(ranked_inverted_index, id=LABELS, words=WORD_FORM)
    def ranked_inverted_index(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[RunInFrames]
    ) -> pl.DataFrame:
        """List the rows that contain each sequence of n words of a compressed column, by descending count.

        Returns
        -------
        DataFrame
            ``sequence: List(String), documents: List(Struct{id, count: UInt64})``; by words in code point order,
            documents by descending count, then in row order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"day": ["mon", "tue"], "text": ["to be", "to be or not to be"]}).tadoc.compress("text")
        >>> df.tadoc.ranked_inverted_index("text", id="day", n=2, min_count=2).rows()
        [(['to', 'be'], [{'id': 'tue', 'count': 2}, {'id': 'mon', 'count': 1}])]

        """
        return self._answer(asking_for_frames(RankedInvertedIndexRequest.from_arguments, options), column, id)

    @documented_by(cooccurrence, words=WORD_FORM)
    def cooccurrence(self, column: str | None = None, **options: Unpack[CooccurrenceInFrames]) -> pl.DataFrame:
        """Count the pairs of words within a window in a compressed column.

        Returns
        -------
        DataFrame
            ``word: String, other: String, count: UInt64``, by descending count, then in code point order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be or not to be"]}).tadoc.compress("text")
        >>> df.tadoc.cooccurrence("text", window=1, top=1).rows()
        [('be', 'to', 2)]

        """
        return self._answer(asking_for_frames(CooccurrenceRequest.from_arguments, options), column)

    @documented_by(repeats, id=LABELS)
    def repeats(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[RepeatsOptions]
    ) -> pl.DataFrame:
        """Find passages of at least ``length`` words that occur more than once, in a compressed column or text.

        Returns
        -------
        DataFrame
            ``id, offset: UInt32, length: UInt32, copies: UInt64, first: Boolean``, in row order: the passage's first
            word and its number of words, the largest count of its windows, and whether all of them are first
            occurrences.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"page": ["a", "b"], "text": ["to be or not to be", "whether to be or not"]})
        >>> df.tadoc.repeats("text", id="page", length=3).rows()
        [('a', 0, 4, 2, True), ('b', 1, 4, 2, False)]

        """
        call = "repeats"
        request = RepeatsRequest.from_arguments(**options)
        return request.frame(self._text(call, column), self._labels(call, id))

    @documented_by(near_duplicates, id=LABELS)
    def near_duplicates(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[NearDuplicatesOptions]
    ) -> pl.DataFrame:
        """Find pairs of rows whose sets of n-grams of words are similar, in a compressed column or text.

        Returns
        -------
        DataFrame
            ``id, other, similarity: Float64``, the earlier row first, in order of both.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"page": ["a", "b"], "text": ["to be or not to be", "to be or not to be that"]})
        >>> df.tadoc.near_duplicates("text", id="page", ngram=2).rows()
        [('a', 'b', 0.8)]

        """
        call = "near_duplicates"
        request: NearDuplicatesRequest = NearDuplicatesRequest.from_arguments(**options)
        return request.frame(self._text(call, column), self._labels(call, id))

    @documented_by(duplicate_groups, id=LABELS)
    def duplicate_groups(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[NearDuplicatesOptions]
    ) -> pl.DataFrame:
        """Group rows that are copies or near duplicates, directly or through others, in a compressed column or text.

        Returns
        -------
        DataFrame
            ``id, group, keep: Boolean``, all rows in row order: the label of the group's first row, and whether the
            row is that one.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"page": ["a", "b"], "text": ["to be or not to be", "to be or not to be that"]})
        >>> groups = df.tadoc.duplicate_groups("text", id="page", ngram=2)
        >>> groups.rows()
        [('a', 'a', True), ('b', 'a', False)]
        >>> df.filter(groups["keep"])["page"].to_list()
        ['a']

        """
        call = "duplicate_groups"
        request: DuplicateGroupsRequest = DuplicateGroupsRequest.from_arguments(**options)
        return request.frame(self._text(call, column), self._labels(call, id))

    @documented_by(drop_repeats)
    def drop_repeats(self, column: str | None = None, **options: Unpack[DropRepeatsOptions]) -> pl.DataFrame:
        """Drop repeated passages from a compressed column or text, or rows that repeat others.

        Returns
        -------
        DataFrame
            The frame with the column in its form, without the passages; with ``unit="row"``, without the rows.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"page": ["a", "b"], "text": ["Use cookies? Yes. Leeks.", "Use cookies? Yes. Sow."]})
        >>> df.tadoc.drop_repeats("text", length=3).rows()
        [('a', 'Use cookies? Yes. Leeks.'), ('b', 'Sow.')]
        >>> df.tadoc.drop_repeats("text", length=3, unit="row", share=0.7)["page"].to_list()
        ['a']

        """
        request, text = DropRepeatsRequest.from_arguments(**options), self._text("drop_repeats", column)
        if request.unit == "row":
            return self._df.filter(request.kept_rows(text))
        return self._df.with_columns(request.cut(text))

    @documented_by(overlap, id=LABELS)
    def overlap(
        self,
        column: str | None = None,
        reference: pl.Series | PassageSet | None = None,
        *,
        id: str | None = None,
        reference_id: pl.Series | None = None,
        **options: Unpack[OverlapOptions],
    ) -> pl.DataFrame:
        """Find passages of a compressed column or text that occur in a reference, too.

        The column is optional if there is only one compressed column: ``overlap(reference=…)``.

        Returns
        -------
        DataFrame
            ``id, offset: UInt32, length: UInt32, reference, reference_offset: UInt32``, in row order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"page": ["a", "b"], "text": ["how many eggs are in a dozen", "eggs"]})
        >>> df.tadoc.overlap("text", pl.Series(["Say: how many eggs"]), id="page", length=3).rows()
        [('a', 0, 3, 0, 1)]

        """
        request, call = OverlapRequest.of(reference, reference_id, options), "overlap"
        return request.frame(self._text(call, column), self._labels(call, id))

    @documented_by(collocations)
    def collocations(self, column: str | None = None, **options: Unpack[CollocationsOptions]) -> pl.DataFrame:
        """Score pairs of words of a compressed column or text by how much more often they occur than by chance.

        Returns
        -------
        DataFrame
            ``word, other: String, count: UInt64, score: Float64``, by descending score, then in code point order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["New York is big", "is New York on", "is it on"]})
        >>> df.tadoc.collocations("text", min_count=2).rows()
        [('New', 'York', 2, 1.0)]

        """
        return CollocationsRequest.from_arguments(**options).frame(self._text("collocations", column))

    @documented_by(positions, id=LABELS)
    def positions(
        self,
        column: str | None = None,
        phrase: str | None = None,
        *,
        id: str | None = None,
        **options: Unpack[PhraseOptions],
    ) -> pl.DataFrame:
        """Find where a phrase occurs in a compressed column or text.

        The column is optional if there is only one compressed column: ``positions(phrase=…)``.

        Returns
        -------
        DataFrame
            ``id, offset: UInt32, length: UInt32``, in row order: the occurrence's first word and its number of words.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"page": ["a", "b"], "text": ["to be or not to be", "be"]}).tadoc.compress("text")
        >>> df.tadoc.positions("text", "to be", id="page").rows()
        [('a', 0, 2), ('a', 4, 2)]

        """
        request = PositionsRequest.of(phrase, options)
        return request.frame(self._text(request.name, column), self._labels(request.name, id))

    @documented_by(concordance, id=LABELS)
    def concordance(
        self,
        column: str | None = None,
        phrase: str | None = None,
        *,
        id: str | None = None,
        **options: Unpack[ConcordanceOptions],
    ) -> pl.DataFrame:
        """Show a phrase in context: each occurrence in a compressed column or text, with the words around it.

        The column is optional if there is only one compressed column: ``concordance(phrase=…)``.

        Returns
        -------
        DataFrame
            ``id, offset: UInt32, left, match, right: String``, in row order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"page": ["a", "b"], "text": ["To be, or not to be!", "be"]}).tadoc.compress("text")
        >>> df.tadoc.concordance("text", "not", id="page", window=2).rows()
        [('a', 3, 'be, or', 'not', 'to be')]

        """
        request = ConcordanceRequest.of(phrase, **options)
        return request.frame(self._text(request.name, column), self._labels(request.name, id))

    @documented_by(info)
    def info(self, column: str | None = None) -> pl.DataFrame:
        """Describe a compressed column in one row; columns as for :func:`polars_tadoc.info`.

        Parameters
        ----------
        column
            Name of the compressed column; optional if there is only one.

        Returns
        -------
        DataFrame
            One row; UInt64 and Float64 columns as described there.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.DataFrame({"text": ["to be"]}).tadoc.compress("text").tadoc.info().select("rows", "words").row(0)
        (1, 2)

        """
        return pl.DataFrame(info(self._column("info", column)))
