"""``lf.tadoc``: the same analytics as nodes of a lazy plan."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypedDict, Unpack

import polars as pl
import polars.selectors as cs

from polars_tadoc.analytics.bm25_weights import BM25WeightsRequest
from polars_tadoc.analytics.cleaning import limited
from polars_tadoc.analytics.cleaning.drop_repeats import DropRepeatsRequest
from polars_tadoc.analytics.cleaning.limited import LimitedPlan
from polars_tadoc.analytics.cleaning.near_duplicates import (
    DuplicateGroupsRequest,
    NearDuplicatesOptions,
    NearDuplicatesRequest,
)
from polars_tadoc.analytics.cleaning.options import DropRepeatsOptions, OverlapOptions, RepeatsOptions
from polars_tadoc.analytics.cleaning.overlap import OverlapRequest
from polars_tadoc.analytics.cleaning.overlap import schema as overlap_schema
from polars_tadoc.analytics.cleaning.passage_set import PassageSet
from polars_tadoc.analytics.cleaning.repeats import RepeatsRequest
from polars_tadoc.analytics.cleaning.repeats import schema as repeats_schema
from polars_tadoc.analytics.collocations import SCHEMA as COLLOCATIONS_SCHEMA
from polars_tadoc.analytics.collocations import CollocationsOptions, CollocationsRequest
from polars_tadoc.analytics.concordance import ConcordanceOptions, ConcordanceRequest, PositionsRequest
from polars_tadoc.analytics.cooccurrence import CooccurrenceRequest
from polars_tadoc.analytics.info import SCHEMA as INFO_SCHEMA
from polars_tadoc.analytics.info import InfoRequest
from polars_tadoc.analytics.inverted_index import InvertedIndexRequest
from polars_tadoc.analytics.ranked_inverted_index import RankedInvertedIndexRequest
from polars_tadoc.analytics.sequence_count import SequenceCountRequest
from polars_tadoc.analytics.sort import SortRequest
from polars_tadoc.analytics.term_vector import TermVectorRequest
from polars_tadoc.analytics.tfidf import TFIDFRequest
from polars_tadoc.analytics.twig_filter import TwigFilterOptions, TwigFilterRequest
from polars_tadoc.analytics.word_count import WordCountRequest
from polars_tadoc.compress.compress import Compression, CompressOptions, compress
from polars_tadoc.compress.recompress import RecompressOptions, recompress
from polars_tadoc.compress.stream import compress_stream
from polars_tadoc.engine.host_memory import share_out, telling_share
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
from polars_tadoc.execute.limited import row_groups
from polars_tadoc.execute.partitioned_sink import (
    HELD_BYTES,
    MAX_PARTITIONS,
    partition_keys,
    partition_target,
    sink_partitions,
)
from polars_tadoc.execute.plan import WITHOUT_LIMIT, ask, checkpointed_question, read_columns
from polars_tadoc.execute.windows import windows_of
from polars_tadoc.index.codecs import require_codec
from polars_tadoc.index.construct.build import IndexColumnOptions, build_index, require_phrases
from polars_tadoc.index.construct.sink import sink_index
from polars_tadoc.index.construct.sink_documents import DocumentsWriter
from polars_tadoc.index.store.place import index_folder
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.namespaces.dataframe import TadocFrame
from polars_tadoc.namespaces.expr import TadocExpr
from polars_tadoc.namespaces.frame_options import (
    BM25WeightsInFrames,
    CooccurrenceInFrames,
    CountInFrames,
    RunInFrames,
    TFIDFInFrames,
    TopInFrames,
)
from polars_tadoc.packed.pack import pack_stream, packed_schema
from polars_tadoc.packed.plan import pack_plan, unpack_plan
from polars_tadoc.packed.pushdown import most_partitions
from polars_tadoc.packed.write import write_packed
from polars_tadoc.records import Checkpoint
from polars_tadoc.rows.phrases import PhraseOptions
from polars_tadoc.runtime.arguments import require_bool, require_integer, require_path
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.io_source import at_work, batches
from polars_tadoc.runtime.option_signature import Default
from polars_tadoc.runtime.process.fork import require_threads
from polars_tadoc.runtime.process.writer_thread import apart
from polars_tadoc.storage.addresses import Address, require_utf8
from polars_tadoc.storage.find import one_file
from polars_tadoc.storage.object_store import Access
from polars_tadoc.storage.writing import writable_place, writing
from polars_tadoc.traversal.options import Options, require_memory_limit
from polars_tadoc.twig.twig_set import TwigSet

MEMORY_LIMIT = """Bytes, or a number with a unit ("2GB", "512MiB"): the plan runs batch by batch, and its data stays
    within this limit; Polars' and Python's own memory, about 0.4 GB, is extra. Partial results that do not fit are
    spilled to disk (``tadoc.Config(spill_folder=…)``), and the result is returned frame by frame. One grammar with its
    rows must fit, and one row of the result; otherwise raises ``LimitExceededError``. CuPy and a CUDA context count,
    about 400 MB: with ``engine="auto"``, a limit below 800 MB means the CPU."""


CHECKPOINT = """Local folder for partial results of finished partitions of a packed scan. The same call with the same
    folder continues after them, or returns their result; the folder stays until you delete it. Requires
    ``memory_limit``, and a scan that raises errors (``on_error="raise"``)."""


_documented = partial(documented_by, memory_limit=MEMORY_LIMIT, checkpoint=CHECKPOINT)


class PlanOptions(TypedDict, total=False):
    """Memory limit of a plan, and its folder for partial results."""

    memory_limit: Annotated[int | str | None, Default(None)]
    checkpoint: Annotated[str | os.PathLike[str] | None, Default(None)]


class CountInPlans(CountInFrames, PlanOptions, total=False):
    """Options of calls in a lazy plan."""


class TopInPlans(TopInFrames, PlanOptions, total=False):
    """Options of calls in a lazy plan."""


class RunInPlans(RunInFrames, PlanOptions, total=False):
    """Options of calls in a lazy plan."""


class CooccurrenceInPlans(CooccurrenceInFrames, PlanOptions, total=False):
    """Options of the call in a lazy plan."""


class BM25WeightsInPlans(BM25WeightsInFrames, PlanOptions, total=False):
    """Options of the call in a lazy plan."""


class TFIDFInPlans(TFIDFInFrames, PlanOptions, total=False):
    """Options of the call in a lazy plan."""


class RepeatsInPlans(RepeatsOptions, PlanOptions, total=False):
    """Options of the call in a lazy plan."""


class DropRepeatsInPlans(DropRepeatsOptions, PlanOptions, total=False):
    """Options of the call in a lazy plan."""


class OverlapInPlans(OverlapOptions, total=False):
    """Options of the call in a lazy plan."""

    memory_limit: Annotated[int | str | None, Default(None)]


class TwigFilterInPlans(TwigFilterOptions, PlanOptions, total=False):
    """Options of the call in a lazy plan."""


class TadocLazyFrame:
    """Grammar compression and analytics in a lazy plan: schemas are static, nothing runs before ``collect``.

    Each call resolves the plan's schema, so a wrong column raises immediately.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> lf = pl.LazyFrame({"year": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text")
    >>> lf.filter(pl.col("year") == 2).tadoc.word_count("text").collect().rows()
    [('do', 1), ('to', 1)]

    """

    def __init__(self, lf: pl.LazyFrame) -> None:
        require_threads()
        self._lf = lf

    @documented_by(compress)
    def compress(self, column: str | Sequence[str], **options: Unpack[CompressOptions]) -> pl.LazyFrame:
        """Replace String columns by their compressed form.

        The plan runs in Polars' streaming engine and is compressed block by block, so that
        ``pl.scan_parquet("big.parquet").tadoc.compress("text").tadoc.sink_parquet("big.tadoc.parquet")`` needs memory
        for a few blocks only.

        Parameters
        ----------
        column
            Name of the column, or a list of names.

        Returns
        -------
        LazyFrame
            The plan with the columns as ``tadoc.DTYPE``, or in the type of ``like`` or ``Config(column_type=)``.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["to be", "to do"]}).tadoc.compress("text")
        >>> tadoc.is_tadoc(lf.collect_schema()["text"])
        True

        """
        lf = self._lf
        schema = lf.collect_schema()
        how = Compression.from_arguments(**options)
        for name in each_column(column, lambda name: string_column(schema, name, "compress")):
            lf = compress_stream(lf, lf.collect_schema(), name, how)
        return lf

    @documented_by(recompress)
    def recompress(self, column: str | None = None, **options: Unpack[RecompressOptions]) -> pl.LazyFrame:
        """Merge the grammars of a compressed column (optional if there is only one).

        Holds all rows of the column in memory, compressed.

        Returns
        -------
        LazyFrame
            The plan with the same rows; the type of the column does not change.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.concat([pl.LazyFrame({"text": [text]}).tadoc.compress("text") for text in ("to be", "to do")])
        >>> lf.tadoc.recompress().tadoc.info().collect()["grammars"].to_list()
        [1]

        """
        name = compressed_column(self._lf.collect_schema(), column, "recompress")
        return self._lf.with_columns(TadocExpr(cs.by_name(name).as_expr()).recompress(**options))

    @documented_by(TadocFrame.decompress)
    def decompress(self, column: str | Sequence[str] | None = None) -> pl.LazyFrame:
        """Replace compressed columns (optional if there is only one) by their text.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.LazyFrame({"text": ["to be"]}).tadoc.compress("text").tadoc.decompress().collect().rows()
        [('to be',)]

        """
        schema = self._lf.collect_schema()
        names = each_column(column, lambda name: compressed_column(schema, name, "decompress"))
        return self._lf.with_columns(TadocExpr(cs.by_name(*names).as_expr()).decompress())

    @documented_by(TadocFrame.pack)
    def pack(self, column: str | None = None) -> pl.LazyFrame:
        """Pack each run of consecutive rows that share a grammar into one row; see ``df.tadoc.pack``.

        The plan's rows are streamed: memory holds one run at a time.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"year": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text")
        >>> lf.tadoc.pack().collect().shape
        (1, 2)

        """
        lf = self._lf
        schema = lf.collect_schema()
        return pack_plan(lf, schema, compressed_column(schema, column, "pack"))

    @documented_by(TadocFrame.unpack)
    def unpack(self, column: str | None = None) -> pl.LazyFrame:
        """Return the original rows of packed rows, in order; see ``df.tadoc.unpack``.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"year": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text").tadoc.pack()
        >>> lf.tadoc.unpack().filter(pl.col("year") == 2).tadoc.decompress().collect().rows()
        [(2, 'to do')]

        """
        lf = self._lf
        schema = lf.collect_schema()
        return unpack_plan(lf, schema, packed_column(schema, column, "unpack"))

    @documented_by(TadocFrame.write_packed)
    @apart
    def sink_packed(
        self,
        path: str | os.PathLike[str] | BinaryIO,
        column: str | None = None,
        *,
        effort: str = "default",
        storage_options: Mapping[str, Any] | None = None,
        credential_provider: Any = "auto",
    ) -> None:
        """Run the plan and write its rows to a packed Parquet file, for :func:`polars_tadoc.scan_packed`.

        Memory holds one run of rows that share a grammar at a time, which becomes one row group. So
        ``pl.scan_parquet("big.parquet").tadoc.compress("text").tadoc.sink_packed("big.tadoc.parquet")`` needs memory
        for a few blocks only.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["to be", "to do"]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lf.tadoc.compress("text").tadoc.sink_packed(Path(folder) / "texts.parquet")
        ...     tadoc.scan_packed(folder).tadoc.word_count(top=1).collect().rows()
        [('to', 2)]

        """
        lf = self._lf
        schema = lf.collect_schema()
        name = compressed_column(schema, column, "sink_packed")
        access = Access(storage_options, credential_provider)
        place = writable_place(path, "sink_packed", access)
        rows = pack_stream(batches(lf), name, passing=True)
        write_packed(rows, packed_schema(schema, name), name, place, "sink_packed", access, effort)

    @apart
    def sink_parquet(
        self,
        path: str | os.PathLike[str] | BinaryIO,
        *,
        partition_by: str | Sequence[str] | None = None,
        max_partitions: int = MAX_PARTITIONS,
        memory_limit: int | str = HELD_BYTES,
        storage_options: Mapping[str, Any] | None = None,
        credential_provider: Any = "auto",
        **options: Any,
    ) -> None:
        """Run the plan and write its result to a Parquet file, atomically.

        Like Polars' ``sink_parquet`` in its streaming engine, but the file appears only when it is complete, and
        replaces an existing one then. So a result larger than memory can be written by a call that may be interrupted,
        and the plan may read the file that it replaces.

        Parameters
        ----------
        path
            The file. Until it is complete it is ``.NAME.….tmp`` beside it, which is removed on an error; the next write
            of the same file removes leftovers of killed processes. With ``partition_by``, a folder. Without it, also
            the address of an object, which appears when it is uploaded completely, or an open binary file.
        partition_by
            Key columns, outermost first: each combination of their values gets a file of its own in folders named after
            them, ``system=sshd/``, as read by Hive, Polars and DuckDB. The grammars of each file are made of its rows
            only, as if each partition had been compressed separately; Polars' own ``partition_by`` repeats all grammars
            in each file. The whole folder is replaced atomically; an existing folder is replaced only if it contains
            nothing but files that this call writes for the same keys.
        max_partitions
            Maximum number of partitions.
        memory_limit
            Maximum bytes of compressed rows in memory while they are grouped by partition, or a number with a unit
            ("2GB"); more rows are spilled to disk, beside the folder. Compressing one row group is extra.
        storage_options
            Access to the object store, as for :func:`polars_tadoc.scan_packed`.
        credential_provider
            As for :func:`polars_tadoc.scan_packed`.
        **options
            Those of Polars' ``sink_parquet``, except ``lazy``, ``mkdir`` and ``optimizations``. If a call in the plan
            has a small ``memory_limit=`` and Polars has many threads, ``row_group_size`` is derived from both, because
            Polars encodes row groups in all threads at once.

        Raises
        ------
        DiskFullError
            The disk is full; the message names the folder.
        OSError
            The path is a folder or a device, or its folder does not exist; raised before any row is read.
        TypeError
            An option is unknown, the path is not a path, or a key column's type cannot be a folder name.
        ValueError
            The path is an address with an unknown scheme, or with ``partition_by`` any address; or there are more than
            ``max_partitions``.
        FileExistsError
            With ``partition_by``: the folder exists and contains other files.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be", "to do"]}).tadoc.compress("text")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     df.tadoc.write_packed(Path(folder) / "texts.parquet")
        ...     words = tadoc.scan_packed(Path(folder) / "texts.parquet").tadoc.word_count(memory_limit="1GB")
        ...     words.tadoc.sink_parquet(Path(folder) / "words.parquet")
        ...     pl.read_parquet(Path(folder) / "words.parquet").row(0)
        ('to', 2)

        """
        call = "sink_parquet"
        for option in ("lazy", "mkdir", "optimizations"):
            if option in options:
                raise TypeError(f"{call}: {option}= is for Polars' sink_parquet; remove it")
        access = Access(storage_options, credential_provider)
        if partition_by is not None:
            schema = self._lf.collect_schema()
            keys = partition_keys(schema, partition_by, call)
            folder = one_file(path, call, access)
            if isinstance(folder, Address):
                raise ValueError(
                    f"{call}: {folder}: object stores cannot replace a folder atomically; write the partitions to a "
                    "local folder, and copy that"
                )
            require_utf8(folder, call)
            place = partition_target(folder, keys, call)
            most = require_integer("max_partitions", max_partitions, 1)
            limit = require_memory_limit(memory_limit) or HELD_BYTES
            sink_partitions(self._lf, schema, keys, place, call, most=most, limit=limit, options=options)
            return
        elsewhere = "; partition_by= takes key columns, and Polars' own lf.sink_parquet has more kinds of targets"
        place_of_file = writable_place(path, call, access, elsewhere)
        with writing(place_of_file, call, access, late=True) as temporary:
            self._lf.sink_parquet(temporary, **{"engine": "streaming", **row_groups(self._lf), **options})

    @_documented(TadocFrame.word_count)
    def word_count(self, column: str | None = None, **options: Unpack[TopInPlans]) -> pl.LazyFrame:
        """Count the words of a compressed column; only that column is read.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["the cat", "the dog"]}).tadoc.compress("text")
        >>> lf.tadoc.word_count(top=1).collect().rows()
        [('the', 2)]

        """
        return self._plan(WordCountRequest.from_arguments, options, column)

    @_documented(TadocFrame.sort)
    def sort(self, column: str | None = None, **options: Unpack[CountInPlans]) -> pl.LazyFrame:
        """List the words of a compressed column in code point order; only that column is read.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["to be", "not to be"]}).tadoc.compress("text")
        >>> lf.tadoc.sort("text").collect().rows()
        [('be', 2), ('not', 1), ('to', 2)]

        """
        return self._plan(SortRequest.from_arguments, options, column)

    @_documented(TadocFrame.inverted_index)
    def inverted_index(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[CountInPlans]
    ) -> pl.LazyFrame:
        """List the rows that contain each word of a compressed column; only that column and ``id`` are read.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"day": ["mon", "tue"], "text": ["to be", "to do"]}).tadoc.compress("text")
        >>> lf.tadoc.inverted_index("text", id="day").collect().rows()
        [('be', ['mon']), ('do', ['tue']), ('to', ['mon', 'tue'])]

        """
        return self._plan(InvertedIndexRequest.from_arguments, options, column, id)

    @_documented(TadocFrame.term_vector)
    def term_vector(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[TopInPlans]
    ) -> pl.LazyFrame:
        """Count the words of each row of a compressed column; only that column and ``id`` are read.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"day": ["mon", "tue"], "text": ["to be or not to be", "to do"]}).tadoc.compress("text")
        >>> lf.tadoc.term_vector("text", id="day", top=1).collect().rows()
        [('mon', 'be', 2), ('tue', 'do', 1)]

        """
        return self._plan(TermVectorRequest.from_arguments, options, column, id)

    @_documented(TadocFrame.bm25_weights)
    def bm25_weights(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[BM25WeightsInPlans]
    ) -> pl.LazyFrame:
        """Weigh each row's words by BM25, of a compressed column or a String one; only it and ``id`` are read.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"day": ["mon", "tue"], "text": ["to be or not to be", "to do"]}).tadoc.compress("text")
        >>> lf.tadoc.bm25_weights("text", id="day", top=1).select("id", "word").collect().rows()
        [('mon', 'be'), ('tue', 'do')]

        """
        return self._plan(BM25WeightsRequest.from_arguments, options, column, id)

    @_documented(TadocFrame.tfidf)
    def tfidf(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[TFIDFInPlans]
    ) -> pl.LazyFrame:
        """Weigh each row's words by TF-IDF, of a compressed column or a String one; only it and ``id`` are read.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"day": ["mon", "tue"], "text": ["to be or not to be", "to do"]}).tadoc.compress("text")
        >>> lf.tadoc.tfidf("text", id="day", top=1).select("id", "word").collect().rows()
        [('mon', 'be'), ('tue', 'do')]

        """
        return self._plan(TFIDFRequest.from_arguments, options, column, id)

    @_documented(TadocFrame.twig_filter)
    def twig_filter(
        self,
        column: str | None = None,
        queries: Mapping[str, str] | TwigSet | None = None,
        *,
        id: str | None = None,
        **options: Unpack[TwigFilterInPlans],
    ) -> pl.LazyFrame:
        """Find the XPath queries that each row's XML document matches; only it and ``id`` are read.

        The column is optional if there is only one compressed column: ``twig_filter(queries=…)``. Later changes of a
        :class:`TwigSet` have no effect on the plan.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"name": ["x", "y"], "xml": ["<a><b/><c/></a>", "<a><c/></a>"]})
        >>> lf.tadoc.twig_filter("xml", {"both": "/a[b]/c", "any": "//c"}, id="name").collect().rows()
        [('x', 'both'), ('x', 'any'), ('y', 'any')]

        """
        required = TwigFilterRequest.required(column, queries)
        return self._plan(partial(TwigFilterRequest.from_arguments, required), options, column, id)

    @_documented(TadocFrame.sequence_count)
    def sequence_count(self, column: str | None = None, **options: Unpack[RunInPlans]) -> pl.LazyFrame:
        """Count the sequences of n words in a compressed column; only that column is read.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["to be or not to be", "to do"]}).tadoc.compress("text")
        >>> lf.tadoc.sequence_count("text", n=2, top=2).collect().rows()
        [(['to', 'be'], 2), (['be', 'or'], 1)]

        """
        return self._plan(SequenceCountRequest.from_arguments, options, column)

    @_documented(TadocFrame.ranked_inverted_index)
    def ranked_inverted_index(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[RunInPlans]
    ) -> pl.LazyFrame:
        """List the rows that contain each sequence of n words of a compressed column, by descending count.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"day": ["mon", "tue"], "text": ["to be", "to be or not to be"]}).tadoc.compress("text")
        >>> lf.tadoc.ranked_inverted_index("text", id="day", n=2, min_count=2).collect().rows()
        [(['to', 'be'], [{'id': 'tue', 'count': 2}, {'id': 'mon', 'count': 1}])]

        """
        return self._plan(RankedInvertedIndexRequest.from_arguments, options, column, id)

    @_documented(TadocFrame.cooccurrence)
    def cooccurrence(self, column: str | None = None, **options: Unpack[CooccurrenceInPlans]) -> pl.LazyFrame:
        """Count the pairs of words within a window in a compressed column; only that column is read.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["to be or not to be"]}).tadoc.compress("text")
        >>> lf.tadoc.cooccurrence("text", window=1, top=1).collect().rows()
        [('be', 'to', 2)]

        """
        return self._plan(CooccurrenceRequest.from_arguments, options, column)

    @_documented(TadocFrame.repeats)
    def repeats(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[RepeatsInPlans]
    ) -> pl.LazyFrame:
        """Find passages of at least ``length`` words that occur more than once; only the column and ``id`` are read.

        Without ``memory_limit``, the column is held in memory while the plan runs. With it, the numbers of the words
        are written to disk; the distinct words must fit.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["to be or not to be", "whether to be or not"]})
        >>> lf.tadoc.repeats("text", length=3).collect().rows()
        [(0, 0, 4, 2, True), (1, 1, 4, 2, False)]

        """
        lf, call = self._lf, "repeats"
        limit, folder, own = _plan_options(options, call)
        request = RepeatsRequest.from_arguments(**own)
        columns = lf.collect_schema()
        name = text_column(columns, column, call)
        labels = None if id is None else label_column(columns, id, call)
        schema = repeats_schema(None if labels is None else columns[labels])
        if limit is None:
            return read_columns(lf, request, name, labels, schema)
        return limited.repeats(request, LimitedPlan(lf, name, labels, limit, folder), schema)

    @documented_by(TadocFrame.near_duplicates)
    def near_duplicates(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[NearDuplicatesOptions]
    ) -> pl.LazyFrame:
        """Find pairs of rows whose sets of n-grams are similar; only the column and ``id`` are read.

        Without ``memory_limit``, the column is held in memory while the plan runs. With it, the numbers of the words
        are written to disk; the distinct words must fit.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["to be or not to be", "to be or not to be that"]})
        >>> lf.tadoc.near_duplicates("text", ngram=2).collect().rows()
        [(0, 1, 0.8)]

        """
        return self._labelled(NearDuplicatesRequest.from_arguments(**options), column, id)

    @documented_by(TadocFrame.duplicate_groups)
    def duplicate_groups(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[NearDuplicatesOptions]
    ) -> pl.LazyFrame:
        """Group rows that are copies or near duplicates; only the column and ``id`` are read.

        Without ``memory_limit``, the column is held in memory while the plan runs. With it, the numbers of the words
        are written to disk; the distinct words must fit.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["to be or not to be", "to be or not to be that"]})
        >>> lf.tadoc.duplicate_groups("text", ngram=2).collect().rows()
        [(0, 0, True), (1, 0, False)]

        """
        return self._labelled(DuplicateGroupsRequest.from_arguments(**options), column, id)

    @documented_by(TadocFrame.collocations)
    def collocations(self, column: str | None = None, **options: Unpack[CollocationsOptions]) -> pl.LazyFrame:
        """Score pairs of words of a compressed column or text; only the column is read.

        The column is held in memory while the plan runs.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["New York is big", "is New York on", "is it on"]})
        >>> lf.tadoc.collocations("text", min_count=2).collect().rows()
        [('New', 'York', 2, 1.0)]

        """
        request = CollocationsRequest.from_arguments(**options)
        name = text_column(self._lf.collect_schema(), column, request.name)
        return read_columns(self._lf, request, name, None, COLLOCATIONS_SCHEMA)

    @documented_by(TadocFrame.positions)
    def positions(
        self,
        column: str | None = None,
        phrase: str | None = None,
        *,
        id: str | None = None,
        **options: Unpack[PhraseOptions],
    ) -> pl.LazyFrame:
        """Find where a phrase occurs in a compressed column or text; only the column and ``id`` are read.

        The column is held in memory while the plan runs.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["to be or not to be", "be"]})
        >>> lf.tadoc.positions("text", "to be").collect().rows()
        [(0, 0, 2), (0, 4, 2)]

        """
        return self._labelled(PositionsRequest.of(phrase, options), column, id)

    @documented_by(TadocFrame.concordance)
    def concordance(
        self,
        column: str | None = None,
        phrase: str | None = None,
        *,
        id: str | None = None,
        **options: Unpack[ConcordanceOptions],
    ) -> pl.LazyFrame:
        """Show a phrase in context, each occurrence with the words around it; only the column and ``id`` are read.

        The column is held in memory while the plan runs.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["To be, or not to be!", "be"]})
        >>> lf.tadoc.concordance("text", "not", window=2).collect().rows()
        [(0, 3, 'be, or', 'not', 'to be')]

        """
        return self._labelled(ConcordanceRequest.of(phrase, **options), column, id)

    def _labelled(
        self,
        request: NearDuplicatesRequest | DuplicateGroupsRequest | PositionsRequest | ConcordanceRequest,
        column: str | None,
        id: str | None,
    ) -> pl.LazyFrame:
        lf, columns = self._lf, self._lf.collect_schema()
        name = text_column(columns, column, request.name)
        labels = None if id is None else label_column(columns, id, request.name)
        return read_columns(lf, request, name, labels, request.schema(None if labels is None else columns[labels]))

    @_documented(TadocFrame.drop_repeats)
    def drop_repeats(self, column: str | None = None, **options: Unpack[DropRepeatsInPlans]) -> pl.LazyFrame:
        """Drop repeated passages from a compressed column or text, or rows that repeat others.

        Without ``memory_limit``, the column is held in memory while the plan runs. With it, the plan runs twice, and
        must give the same rows both times.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["Use cookies? Yes. Leeks.", "Use cookies? Yes. Sow."]})
        >>> lf.tadoc.drop_repeats("text", length=3).collect().rows()
        [('Use cookies? Yes. Leeks.',), ('Sow.',)]

        """
        lf, call = self._lf, "drop_repeats"
        limit, folder, own = _plan_options(options, call)
        request, schema = DropRepeatsRequest.from_arguments(**own), lf.collect_schema()
        name = text_column(schema, column, call)
        if limit is not None:
            return limited.drop_repeats(request, LimitedPlan(lf, name, None, limit, folder), schema)
        rows = cs.by_name(name).as_expr()
        if request.unit == "row":
            return lf.filter(rows.map_batches(at_work()(request.kept_rows), return_dtype=pl.Boolean))
        return lf.with_columns(rows.map_batches(at_work()(request.cut), return_dtype=pl.self_dtype()))

    @_documented(TadocFrame.overlap)
    def overlap(
        self,
        column: str | None = None,
        reference: pl.Series | PassageSet | None = None,
        *,
        id: str | None = None,
        reference_id: pl.Series | None = None,
        **options: Unpack[OverlapInPlans],
    ) -> pl.LazyFrame:
        """Find passages of a compressed column or text that occur in a reference; only the column and ``id`` are read.

        The reference is read now and stays in memory. So does the column while the plan runs, unless there is a
        ``memory_limit``.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["how many eggs are in a dozen", "eggs"]})
        >>> lf.tadoc.overlap("text", pl.Series(["Say: how many eggs"]), length=3).collect().rows()
        [(0, 0, 3, 0, 1)]

        """
        lf, call = self._lf, "overlap"
        limit, _, own = _plan_options(options, call)
        request = OverlapRequest.of(reference, reference_id, own)
        columns = lf.collect_schema()
        name = text_column(columns, column, call)
        labels = None if id is None else label_column(columns, id, call)
        types = (None if labels is None else columns[labels]), (None if reference_id is None else reference_id.dtype)
        schema = overlap_schema(*types)
        if limit is None:
            return read_columns(lf, request, name, labels, schema)
        return limited.overlap(request, LimitedPlan(lf, name, labels, limit), schema)

    @documented_by(TadocFrame.info)
    def info(self, column: str | None = None) -> pl.LazyFrame:
        """Describe a compressed column in one row; columns as for :func:`polars_tadoc.info`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["to be"]}).tadoc.compress("text")
        >>> lf.tadoc.info().select("rows", "words").collect().row(0)
        (1, 2)

        """
        lf = self._lf
        name = compressed_column(lf.collect_schema(), column, "info")
        return read_columns(lf, InfoRequest(), name, None, INFO_SCHEMA)

    @documented_by(
        build_index,
        id="Name of a column with the ids of documents; default: row numbers. Several documents may share an id:\n"
        "    deleting it deletes all of them.",
        metadata="Names of columns for filters.",
        store="Whether to write the compressed text with the index, for phrases and snippets; a loaded index holds\n"
        "    it in memory.",
        memory_limit="""Bytes, or a number with a unit ("2GB", "512MiB"): documents are indexed batch by batch, and
    merged word by word. Postings that do not fit are spilled to disk (``tadoc.Config(spill_folder=…)``), and the new
    index is written to a hidden folder beside the target. One grammar with its rows must fit; Polars' prefetched data
    is extra.""",
        checkpoint="""Local folder for postings of finished partitions of a packed scan. The same call with the same
    folder continues after them; the folder stays until you delete it. Requires a scan that raises errors
    (``on_error="raise"``).""",
        path="The folder to create, or its address in an object store (``s3://bucket/index``).",
        overwrite="Whether to replace a saved index of that name. Processes that have loaded it keep the old one.",
        storage_options="Access to the object store, as for :func:`polars_tadoc.scan_packed`.",
        credential_provider="As for :func:`polars_tadoc.scan_packed`.",
    )
    @apart
    def sink_index(
        self,
        path: str | os.PathLike[str],
        column: str | None = None,
        *,
        id: str | None = None,
        memory_limit: int | str = "1GB",
        checkpoint: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        storage_options: Mapping[str, Any] | None = None,
        credential_provider: Any = "auto",
        **options: Unpack[IndexColumnOptions],
    ) -> None:
        """Run the plan and save a search index of its rows as a folder, for :func:`polars_tadoc.load_index`.

        The column is compressed or plain text, which is compressed only to be stored. Saves the index of
        :func:`polars_tadoc.build_index` in the format of :meth:`polars_tadoc.Index.save`, for more
        documents than memory holds. The folder appears only when it is complete.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"year": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     df.tadoc.write_packed(Path(folder) / "texts.parquet")
        ...     tadoc.scan_packed(folder).tadoc.sink_index(Path(folder) / "index", id="year")
        ...     tadoc.load_index(Path(folder) / "index").search("do")["id"].to_list()
        [2]

        """
        lf, call = self._lf, "sink_index"
        schema = lf.collect_schema()
        name = text_column(schema, column, call)
        how, metadata, store = require_codec(options["codec"]), options["metadata"], options["store"]
        counting = Options.of(options)
        require_bool("store", store, call)
        require_phrases(counting.morphism, store, call)
        require_bool("overwrite", overwrite, call)
        access = Access(storage_options, credential_provider)
        place = one_file(path, call, access)
        require_utf8(str(place), call)
        limit = require_memory_limit(memory_limit)
        if limit is None:
            raise TypeError(f'{call}: memory_limit=None: give bytes, or a number with a unit such as "2GB"')
        labels = None if id is None else label_column(schema, id, call)
        listed = None if metadata is None else metadata_columns(list(schema), metadata, call)
        documents = DocumentsWriter(labels, listed or None, store, schema)
        own_engine, room = share_out(options["engine"], limit, call)
        counting = replace(counting, engine=own_engine)
        windows, kept = windows_of(lf, name, documents.columns, room, gaps=store), None
        if checkpoint is not None:
            path_of_checkpoint = require_path("checkpoint", checkpoint, call)
            question = checkpointed_question(lf, name, documents.columns, call)
            asked = {"call": call, **(counting.morphism or Morphism()).described, **question.asked}
            kept = Checkpoint(path_of_checkpoint, asked, call, most_partitions(asked))
        with telling_share(limit, room), index_folder(place, overwrite, call, access) as (folder, replaces):
            sink_index(windows, folder, replaces, documents, counting, how, room, kept)

    def _plan(
        self, make: Callable[..., Analytic[Any, Any]], options: Any, column: str | None, id: str | None = None
    ) -> pl.LazyFrame:
        """Make a node of an analytic, from all options except those of :class:`PlanOptions`."""
        own = dict(options)
        memory_limit, checkpoint = own.pop("memory_limit"), own.pop("checkpoint")
        analytic = asking_for_frames(make, own)
        limit = require_memory_limit(memory_limit)
        lf = self._lf
        columns = lf.collect_schema()
        name = text_column(columns, column, analytic.name)
        if isinstance(analytic, TwigFilterRequest):
            analytic = replace(analytic, column=name)
        labels = None if id is None else label_column(columns, id, analytic.name)
        schema = analytic.columns(None if labels is None else columns[labels])
        folder = None if checkpoint is None else require_path("checkpoint", checkpoint, analytic.name)
        return ask(lf, analytic, name, labels, limit, schema, folder)


def _plan_options(options: Any, call: str) -> tuple[int | None, Path | None, Any]:
    """Return the memory limit, the folder of the checkpoint, and the other options.

    Raises
    ------
    TypeError, ValueError
        The limit is no number of bytes, or there is a checkpoint without a limit.

    """
    own = dict(options)
    limit, checkpoint = require_memory_limit(own.pop("memory_limit")), own.pop("checkpoint", None)
    if checkpoint is None:
        return limit, None, own
    if limit is None:
        raise ValueError(f"{call}: {WITHOUT_LIMIT}")
    return limit, require_path("checkpoint", checkpoint, call), own
