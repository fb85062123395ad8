"""``pl.col("text").tadoc``: row-wise expressions, and counts by group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Unpack

import polars as pl
import polars.selectors as cs

from polars_tadoc.analytics import index_by_group
from polars_tadoc.analytics.by_group import GroupRequest, count_pairs, count_sequences, count_words, sort_words
from polars_tadoc.analytics.cleaning.minhash import MinHashRequest, minhash
from polars_tadoc.analytics.cleaning.options import NoveltyOptions, OverlapOptions, RepeatedShareOptions
from polars_tadoc.analytics.cleaning.overlap import SharedRequest, overlap_share, overlaps, passage_set_of
from polars_tadoc.analytics.cleaning.passage_set import PassageSet
from polars_tadoc.analytics.cleaning.shares import ShareRequest, novelty, repeated_share
from polars_tadoc.analytics.cleaning.signatures import MinHashOptions
from polars_tadoc.analytics.concordance import PositionsRequest, positions
from polars_tadoc.analytics.cooccurrence import CooccurrenceOptions, CooccurrenceRequest, cooccurrence
from polars_tadoc.analytics.info import SCHEMA as INFO_SCHEMA
from polars_tadoc.analytics.info import info, info_by_group
from polars_tadoc.analytics.inverted_index import InvertedIndexRequest, inverted_index
from polars_tadoc.analytics.ranked_inverted_index import RankedInvertedIndexRequest, ranked_inverted_index
from polars_tadoc.analytics.sequence_count import SequenceCountRequest, sequence_count
from polars_tadoc.analytics.sort import SortRequest, sort
from polars_tadoc.analytics.term_vector import TermVectorRequest, term_vector
from polars_tadoc.analytics.twig_filter import twig_filter
from polars_tadoc.analytics.twig_filter_rows import AS_STRUCT, TwigFilterRowsOptions, TwigFilterRowsRequest
from polars_tadoc.analytics.word_count import WordCountRequest, word_count
from polars_tadoc.compress.compress import Compression, CompressOptions, compress
from polars_tadoc.compress.decompress import decompress
from polars_tadoc.compress.recompress import Recompression, RecompressOptions, recompress
from polars_tadoc.rows.bm25 import BM25Options, BM25Request, bm25
from polars_tadoc.rows.content_hash import DTYPE as HASH_DTYPE
from polars_tadoc.rows.content_hash import content_hash
from polars_tadoc.rows.equals import EqualsRequest as Comparison
from polars_tadoc.rows.equals import WithLiteral, equals
from polars_tadoc.rows.expressions import by_row, elementwise
from polars_tadoc.rows.extract import extract, head, tail
from polars_tadoc.rows.patterns import PatternRequest, contains, count_matches, extract_all, find
from polars_tadoc.rows.phrases import PhraseOptions, PhraseRequest, contains_any, contains_phrase, count_phrase
from polars_tadoc.rows.token_count import token_count
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.io_source import at_work
from polars_tadoc.runtime.process.fork import require_threads
from polars_tadoc.traversal.options import CountOptions, RunOptions, TokenizerOption, TopOptions, tokenizer_of
from polars_tadoc.twig.twig_set import TwigSet

Integers = int | str | pl.Expr | pl.Series
"""An integer, or integers by row: a column's name, an expression or a series."""

COUNT = """Number of words; a negative number drops that many at the {}. An integer, the name of a column of
    integers, an expression or a series."""

LABEL = "Column, or expression, whose values label the rows; default: row numbers within the group."


class TadocExpr:
    """Grammar compression and analytics as expressions.

    Counts are aggregations: in ``group_by(...).agg``, ``over`` and the like, each group of rows gives one list of
    structs, and all groups are counted in one pass; in ``select`` all rows are one group. ``top`` and ``min_count``
    apply per group. ``explode`` and ``unnest`` convert the lists to a table. Indexes list rows by their number within
    the group, or by the label in another column (``id=``).

    Row-wise calls (``head``, ``count_phrase``, …) process all groups at once if the column is given by name, or as one
    row of each group: ``pl.col("text").first().tadoc.head(3)``. To select some rows of each group, call first, then
    filter: a call on ``pl.col("text").filter(...)`` or ``.head(2)`` runs once per group, which takes a millisecond or
    more (Polars moves ``first``, ``head`` and ``slice`` before the call, but not ``filter``).

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> df = pl.DataFrame({"text": ["to be", "or not"]}).with_columns(pl.col("text").tadoc.compress())
    >>> df.select(pl.col("text").tadoc.decompress()).to_series().to_list()
    ['to be', 'or not']

    """

    def __init__(self, expr: pl.Expr) -> None:
        require_threads()
        self._expr = expr

    @documented_by(compress)
    def compress(self, **options: Unpack[CompressOptions]) -> pl.Expr:
        """Compress a String column; result as for :func:`polars_tadoc.compress`.

        Polars passes each batch of a streaming plan, and each chunk of a column, separately: each gets a grammar of its
        own. If batches are small (after a filter, on many cores), use ``lf.tadoc.compress("text")`` or
        ``df.tadoc.compress("text")``, which gather them first.

        Returns
        -------
        Expr
            ``tadoc.DTYPE``, or the type of ``like`` or ``Config(column_type=)``; null for null rows.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be", "or not"]})
        >>> tadoc.is_tadoc(df.with_columns(pl.col("text").tadoc.compress()).schema["text"])
        True

        """
        how = Compression.from_arguments(**options)
        return elementwise(replace(how, cached=False).run, how.dtype, self._expr)

    @documented_by(recompress)
    def recompress(self, **options: Unpack[RecompressOptions]) -> pl.Expr:
        """Merge the grammars of a compressed column, which must fit in memory.

        Returns
        -------
        Expr
            The type of the column; null for null rows.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be", "or not"]}).tadoc.compress("text", rows_per_grammar=1)
        >>> df.with_columns(pl.col("text").tadoc.recompress()).tadoc.info()["grammars"].to_list()
        [1]

        """
        how = Recompression.from_arguments(**options)
        return self._expr.map_batches(at_work()(how.run), return_dtype=pl.self_dtype())

    @documented_by(decompress)
    def decompress(self) -> pl.Expr:
        """Return the text, byte for byte.

        Returns
        -------
        Expr
            ``String``; null for null rows.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be"]}).with_columns(pl.col("text").tadoc.compress())
        >>> df.with_columns(pl.col("text").tadoc.decompress())["text"].to_list()
        ['to be']

        """
        return elementwise(decompress, pl.String, self._expr)

    @documented_by(token_count)
    def token_count(self, **options: Unpack[TokenizerOption]) -> pl.Expr:
        """Count the words of each row.

        Returns
        -------
        Expr
            ``UInt64``; null for null rows.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be or not to be", None]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.token_count()).to_series().to_list()
        [6, None]

        """
        tokenizer_of(options)
        return elementwise(partial(token_count, **options), pl.UInt64, self._expr)

    @documented_by(content_hash)
    def content_hash(self) -> pl.Expr:
        """Hash the text of each row: a key for ``unique``, ``group_by`` and ``join``, equal for all forms of the text.

        Returns
        -------
        Expr
            ``UInt128``; null for null rows.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"row": [1, 2, 3], "text": ["to be", "or not", "to be"]}).tadoc.compress("text")
        >>> df.group_by(key=pl.col("text").tadoc.content_hash(), maintain_order=True).agg("row")["row"].to_list()
        [[1, 3], [2]]

        """
        return elementwise(content_hash, HASH_DTYPE, self._expr)

    @documented_by(
        equals, other="Text (a literal, as in Polars' ``eq``), an expression or a series, compressed or String."
    )
    def eq(self, other: str | pl.Expr | pl.Series, *, nulls_equal: bool = False) -> pl.Expr:
        """Tell which rows equal a text, or the text of another column.

        Returns
        -------
        Expr
            ``Boolean``; null if either side is, unless ``nulls_equal``.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be", "or not"], "other": ["to be", "or"]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.eq("or not"), other=pl.col("text").tadoc.eq(pl.col("other"))).rows()
        [(False, True), (True, False)]

        """
        how = Comparison("eq", nulls_equal)
        if isinstance(other, str):
            return elementwise(WithLiteral(how, other).run, pl.Boolean, self._expr)
        beside = pl.lit(how.required(other)) if isinstance(other, pl.Series) else how.required_expression(other)
        return elementwise(how.run, pl.Boolean, self._expr, beside)

    @documented_by(
        extract,
        offset="Number of the first word, from 0; negative numbers count from the row's end. An integer, the name\n"
        "    of a column of integers, an expression or a series.",
    )
    def extract(self, offset: Integers, length: Integers | None = None, **options: Unpack[TokenizerOption]) -> pl.Expr:
        """Return words of each row by their number, with the separators between them.

        The arguments have the meaning of those of ``str.slice``, for words instead of characters.

        Returns
        -------
        Expr
            ``String``, from the start of the first word to the end of the last; empty if there is no such word, null if
            the row or the offset is.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["To be, or not to be!", "To do."], "at": [-2, 0]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.extract("at", 2)).to_series().to_list()
        ['to be', 'To do']

        """
        arguments = {"offset": offset} if length is None else {"offset": offset, "length": length}
        return by_row(partial(extract, **options), self._expr, pl.String, **arguments)

    @documented_by(head, n=COUNT.format("end"))
    def head(self, n: Integers = 5, **options: Unpack[TokenizerOption]) -> pl.Expr:
        """Return the first words of each row, with the separators between them.

        Returns
        -------
        Expr
            ``String``, as for :meth:`extract`; null if the row or ``n`` is.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["To be, or not to be!", "To do."]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.head(3)).to_series().to_list()
        ['To be, or', 'To do']

        """
        return by_row(partial(head, **options), self._expr, pl.String, n=n)

    @documented_by(tail, n=COUNT.format("start"))
    def tail(self, n: Integers = 5, **options: Unpack[TokenizerOption]) -> pl.Expr:
        """Return the last words of each row, with the separators between them.

        Returns
        -------
        Expr
            ``String``, as for :meth:`extract`; null if the row or ``n`` is.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["To be, or not to be!", "To do."]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.tail(3)).to_series().to_list()
        ['not to be', 'To do']

        """
        return by_row(partial(tail, **options), self._expr, pl.String, n=n)

    @documented_by(contains)
    def contains(self, pattern: str, *, literal: bool = False, strict: bool = True) -> pl.Expr:
        """Tell which rows' text contains a match of a pattern, as ``str.contains``, without decompressing.

        Returns
        -------
        Expr
            ``Boolean``; null for null rows.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"row": [1, 2], "text": ["GET /a/b.html", "POST /a"]}).tadoc.compress("text")
        >>> df.filter(pl.col("text").tadoc.contains("/a/b", literal=True))["row"].to_list()
        [1]

        """
        return self._find(PatternRequest.of("contains", pattern, literal, strict))

    @documented_by(count_matches)
    def count_matches(self, pattern: str, *, literal: bool = False) -> pl.Expr:
        """Count the matches of a pattern in each row, as ``str.count_matches``.

        Returns
        -------
        Expr
            ``UInt32``; null for null rows.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["a.b.c", "a b", None]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.count_matches("[ab]")).to_series().to_list()
        [2, 2, None]

        """
        return self._find(PatternRequest.of("count_matches", pattern, literal, True))

    @documented_by(find)
    def find(self, pattern: str, *, literal: bool = False, strict: bool = True) -> pl.Expr:
        """Return where the first match of a pattern begins in each row, in bytes, as ``str.find``.

        Returns
        -------
        Expr
            ``UInt32``; null for null rows and rows without a match.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be", "be", "or not"]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.find("be", literal=True)).to_series().to_list()
        [3, 0, None]

        """
        return self._find(PatternRequest.of("find", pattern, literal, strict))

    @documented_by(extract_all)
    def extract_all(self, pattern: str) -> pl.Expr:
        """Return all matches of a regular expression in each row, as ``str.extract_all``.

        Returns
        -------
        Expr
            ``List(String)``; null for null rows.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["id=17, id=4", "none"]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.extract_all("[0-9]+")).to_series().to_list()
        [['17', '4'], []]

        """
        return self._find(PatternRequest.of("extract_all", pattern, False, True))

    @documented_by(count_phrase)
    def count_phrase(self, phrase: str, **options: Unpack[PhraseOptions]) -> pl.Expr:
        """Count how often each row contains a phrase: row-wise, null for null rows.

        Returns
        -------
        Expr
            ``UInt64``.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be, or not to be", "be", None]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.count_phrase("to be")).to_series().to_list()
        [2, 0, None]

        """
        return self._find(PhraseRequest.of_phrase("count_phrase", phrase, options))

    @documented_by(contains_phrase)
    def contains_phrase(self, phrase: str, **options: Unpack[PhraseOptions]) -> pl.Expr:
        """Tell which rows contain a phrase: row-wise, null for null rows.

        Returns
        -------
        Expr
            ``Boolean``.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"row": [1, 2], "text": ["to be", "or not"]}).tadoc.compress("text")
        >>> df.filter(pl.col("text").tadoc.contains_phrase("To be", lowercase=True))["row"].to_list()
        [1]

        """
        return self._find(PhraseRequest.of_phrase("contains_phrase", phrase, options))

    @documented_by(contains_any)
    def contains_any(self, phrases: Iterable[str], **options: Unpack[PhraseOptions]) -> pl.Expr:
        """Tell which rows contain at least one of several phrases: row-wise, null for null rows.

        Returns
        -------
        Expr
            ``Boolean``.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"row": [1, 2], "text": ["to be", "or not"]}).tadoc.compress("text")
        >>> df.filter(pl.col("text").tadoc.contains_any(["be or", "not"]))["row"].to_list()
        [2]

        """
        return self._find(PhraseRequest.of_phrases(phrases, options))

    def _find(self, request: PhraseRequest | PatternRequest) -> pl.Expr:
        return elementwise(request.run, request.dtype, self._expr)

    @documented_by(bm25)
    def bm25(self, query: str, **options: Unpack[BM25Options]) -> pl.Expr:
        """Score each row for a query with BM25: row-wise, null for null rows.

        Document frequencies are counted over the rows that Polars passes: all rows of a column in ``select``,
        ``with_columns``, ``filter`` and ``sort``, also in the streaming engine; the rows of each group in ``group_by``
        and ``over``. So a filter before the call changes scores, and one after it does not.

        Returns
        -------
        Expr
            ``Float32``: 0 if the row has none of the query's words.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"row": [1, 2], "text": ["to be", "to do or not to do"]}).tadoc.compress("text")
        >>> df.sort(pl.col("text").tadoc.bm25("do"), descending=True)["row"].to_list()
        [2, 1]

        """
        request = BM25Request.from_arguments(query, **options)
        # rows become one value per group, and all groups are passed at once
        scores = self._expr.implode().map_batches(
            request.run_lists, return_dtype=pl.List(pl.Float32), is_elementwise=True
        )
        return scores.explode(empty_as_null=False, keep_nulls=False)

    @documented_by(repeated_share)
    def repeated_share(self, **options: Unpack[RepeatedShareOptions]) -> pl.Expr:
        """Return the share of each row's words inside a repeated window.

        Windows are counted over the rows that Polars passes: all rows of a column in ``select``, ``with_columns``,
        ``filter`` and ``sort``, the rows of each group in ``group_by`` and ``over``.

        Returns
        -------
        Expr
            ``Float64``, from 0 to 1; null for rows without words.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"row": [1, 2], "text": ["to be or not to be", "to be or what"]}).tadoc.compress("text")
        >>> df.filter(pl.col("text").tadoc.repeated_share(length=3) > 0.5)["row"].to_list()
        [2]

        """
        return self._over_groups(ShareRequest.repeated(options))

    @documented_by(novelty)
    def novelty(self, **options: Unpack[NoveltyOptions]) -> pl.Expr:
        """Return the share of each row's words inside no window of an earlier row.

        Earlier rows are those that Polars passes before, as for :meth:`repeated_share`: with ``over``, those of the
        group, in the order of the frame.

        Returns
        -------
        Expr
            ``Float64``, from 0 to 1; null for rows without words.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"site": ["a", "b", "a"], "text": ["to be or not", "to be or what", "to be or that"]})
        >>> df.select(pl.col("text").tadoc.novelty(length=3).over("site")).to_series().to_list()
        [1.0, 1.0, 0.25]

        """
        return self._over_groups(ShareRequest.new(options))

    def _over_groups(self, request: ShareRequest) -> pl.Expr:
        # rows become one value per group, and all groups are passed at once
        shares = self._expr.implode().map_batches(
            request.run_lists, return_dtype=pl.List(pl.Float64), is_elementwise=True
        )
        return shares.explode(empty_as_null=False, keep_nulls=False)

    @documented_by(minhash)
    def minhash(self, **options: Unpack[MinHashOptions]) -> pl.Expr:
        """Return the MinHash signature of each row's set of n-grams of words: row-wise.

        Returns
        -------
        Expr
            ``Array(UInt32, permutations)``; null for null rows.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be or not", "to be, or not", "to do"]}).tadoc.compress("text")
        >>> df.unique(pl.col("text").tadoc.minhash(ngram=2)).height
        2

        """
        request = MinHashRequest.from_arguments(**options)
        return elementwise(request.run, request.dtype, self._expr)

    @documented_by(positions)
    def positions(self, phrase: str, **options: Unpack[PhraseOptions]) -> pl.Expr:
        """Return the first word of each occurrence of a phrase: row-wise.

        Returns
        -------
        Expr
            ``List(UInt32)``, ascending; null for null rows.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be or not to be", "be"]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.positions("to be")).to_series().to_list()
        [[0, 4], []]

        """
        return elementwise(PositionsRequest.of(phrase, options).by_row, pl.List(pl.UInt32), self._expr)

    @documented_by(overlap_share)
    def overlap_share(self, reference: pl.Series | PassageSet, **options: Unpack[OverlapOptions]) -> pl.Expr:
        """Return the share of each row's words inside windows that a reference has, too: row-wise.

        Returns
        -------
        Expr
            ``Float64``, from 0 to 1; null for rows without words.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"row": [1, 2], "text": ["how many eggs are there", "eggs"]}).tadoc.compress("text")
        >>> questions = tadoc.PassageSet(pl.Series(["Say: how many eggs"]), length=3)
        >>> df.select("row", pl.col("text").tadoc.overlap_share(questions)).rows()
        [(1, 0.6), (2, 0.0)]

        """
        return self._shared(SharedRequest("overlap_share", passage_set_of(reference, "overlap_share", options)))

    @documented_by(overlaps)
    def overlaps(self, reference: pl.Series | PassageSet, **options: Unpack[OverlapOptions]) -> pl.Expr:
        """Tell which rows have at least ``length`` adjacent words of a reference: row-wise.

        Returns
        -------
        Expr
            ``Boolean``; null for null rows.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"row": [1, 2], "text": ["how many eggs are there", "eggs"]})
        >>> questions = tadoc.PassageSet(pl.Series(["Say: how many eggs"]), length=3)
        >>> df.filter(~pl.col("text").tadoc.overlaps(questions))["row"].to_list()
        [2]

        """
        return self._shared(SharedRequest("overlaps", passage_set_of(reference, "overlaps", options)))

    def _shared(self, request: SharedRequest) -> pl.Expr:
        return elementwise(request.run, request.dtype, self._expr)

    @documented_by(twig_filter, as_struct=AS_STRUCT)
    def twig_filter(self, queries: Mapping[str, str] | TwigSet, **options: Unpack[TwigFilterRowsOptions]) -> pl.Expr:
        """Find the XPath queries that each row's XML document matches: row-wise, null for null rows.

        Elementwise: it streams, and processes all groups at once. Later changes of a :class:`TwigSet` have no effect on
        the expression. Errors number rows within one call by Polars; ``df.tadoc.twig_filter`` gives the row of the
        frame.

        Returns
        -------
        Expr
            ``List(String)``, names in the order of the set, or with ``as_struct=True`` a ``Struct`` of ``Boolean``
            fields.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"row": [1, 2], "xml": ["<a><b/><c/></a>", "<a><c/></a>"]})
        >>> twigs = pl.col("xml").tadoc.twig_filter({"both": "/a[b]/c", "any": "//c"})
        >>> df.with_columns(twigs).rows()
        [(1, ['both', 'any']), (2, ['any'])]
        >>> df.filter(twigs.list.contains("both"))["row"].to_list()
        [1]

        """
        request = TwigFilterRowsRequest.from_arguments(queries, **options)
        return elementwise(request.run_part, request.dtype, self._expr)

    @documented_by(word_count)
    def word_count(self, **options: Unpack[TopOptions]) -> pl.Expr:
        """Count the words of each group of rows: one list per group, or one for all rows.

        Returns
        -------
        Expr
            ``List(Struct{word: String, count: UInt64})``, by descending count, then word in code point order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"year": [1, 2, 1], "text": ["to be", "to do", "not to be"]}).tadoc.compress("text")
        >>> counts = df.group_by("year", maintain_order=True).agg(pl.col("text").tadoc.word_count(top=2))
        >>> counts.explode("text").unnest("text").rows()
        [(1, 'be', 2), (1, 'to', 2), (2, 'do', 1), (2, 'to', 1)]

        """
        return self._by_group(count_words("word_count", WordCountRequest.from_arguments(**options)))

    @documented_by(sort)
    def sort(self, **options: Unpack[CountOptions]) -> pl.Expr:
        """List the words of each group of rows in code point order: one list per group, or one for all rows.

        Returns
        -------
        Expr
            ``List(Struct{word: String, count: UInt64})``, by word in code point order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"year": [1, 1], "text": ["to be", "not to be"]}).tadoc.compress("text")
        >>> df.group_by("year").agg(pl.col("text").tadoc.sort()).explode("text").unnest("text").rows()
        [(1, 'be', 2), (1, 'not', 1), (1, 'to', 2)]

        """
        return self._by_group(sort_words(SortRequest.from_arguments(**options)))

    @documented_by(inverted_index, id=LABEL)
    def inverted_index(self, *, id: str | pl.Expr | None = None, **options: Unpack[CountOptions]) -> pl.Expr:
        """List the rows of each group that contain each word: one list per group, or one for all rows.

        Returns
        -------
        Expr
            ``List(Struct{word: String, documents: List})``, by word in code point order; ``documents`` are labels, or
            rows numbered within the group, in row order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"year": [1, 2, 1], "day": ["a", "b", "c"], "text": ["to be", "to do", "not to be"]})
        >>> df = df.tadoc.compress("text")
        >>> index = df.group_by("year", maintain_order=True).agg(pl.col("text").tadoc.inverted_index(id="day"))
        >>> index.explode("text").unnest("text").rows()[:2]
        [(1, 'be', ['a', 'c']), (1, 'not', ['c'])]

        """
        request = InvertedIndexRequest.from_arguments(**options)
        return self._index(index_by_group.InvertedIndex(request), id, index_by_group.index_dtype)

    @documented_by(ranked_inverted_index, id=LABEL)
    def ranked_inverted_index(self, *, id: str | pl.Expr | None = None, **options: Unpack[RunOptions]) -> pl.Expr:
        """List the rows of each group that contain each sequence of n words, by descending count.

        Returns
        -------
        Expr
            ``List(Struct{sequence: List(String), documents: List(Struct{id, count: UInt64})})``; by words in code point
            order, documents by descending count, then in row order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"year": [1, 1], "text": ["to be", "to be or not to be"]}).tadoc.compress("text")
        >>> index = df.group_by("year").agg(pl.col("text").tadoc.ranked_inverted_index(n=2, min_count=2))
        >>> index.explode("text").unnest("text").rows()
        [(1, ['to', 'be'], [{'id': 1, 'count': 2}, {'id': 0, 'count': 1}])]

        """
        request = RankedInvertedIndexRequest.from_arguments(**options)
        return self._index(index_by_group.RankedInvertedIndex(request), id, index_by_group.ranked_dtype)

    @documented_by(term_vector)
    def term_vector(self, **options: Unpack[TopOptions]) -> pl.Expr:
        """Count the words of each row: row-wise, null for null rows.

        Returns
        -------
        Expr
            ``List(Struct{word: String, count: UInt64})``, by descending count, then word in code point order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be or not to be", None]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.term_vector(top=1)).to_series().to_list()
        [[{'word': 'be', 'count': 2}], None]

        """
        request = TermVectorRequest.from_arguments(**options)
        how = count_words("term_vector", request)
        return elementwise(how.run_rows, how.dtype, self._expr)

    @documented_by(sequence_count)
    def sequence_count(self, **options: Unpack[RunOptions]) -> pl.Expr:
        """Count the sequences of n words in each group of rows: one list per group, or one for all rows.

        Returns
        -------
        Expr
            ``List(Struct{sequence: List(String), count: UInt64})``, by descending count, then in code point order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"year": [1, 1, 2], "text": ["to be", "not to be", "to do"]}).tadoc.compress("text")
        >>> counts = df.group_by("year", maintain_order=True).agg(pl.col("text").tadoc.sequence_count(n=2, top=1))
        >>> counts.explode("text").unnest("text").rows()
        [(1, ['to', 'be'], 2), (2, ['to', 'do'], 1)]

        """
        return self._by_group(count_sequences(SequenceCountRequest.from_arguments(**options)))

    @documented_by(cooccurrence)
    def cooccurrence(self, **options: Unpack[CooccurrenceOptions]) -> pl.Expr:
        """Count the pairs of words within a window in each group of rows, or in all rows.

        Returns
        -------
        Expr
            ``List(Struct{word: String, other: String, count: UInt64})``, by descending count, then both words in order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"year": [1, 1, 2], "text": ["to be", "be to", "to do"]}).tadoc.compress("text")
        >>> counts = df.group_by("year", maintain_order=True).agg(pl.col("text").tadoc.cooccurrence(window=1))
        >>> counts.explode("text").unnest("text").rows()
        [(1, 'be', 'to', 2), (2, 'do', 'to', 1)]

        """
        return self._by_group(count_pairs(CooccurrenceRequest.from_arguments(**options)))

    @documented_by(info)
    def info(self) -> pl.Expr:
        """Describe each group of rows, or all rows, in a struct; fields as the columns of :func:`polars_tadoc.info`.

        A grammar counts in each group that has rows of it.

        Returns
        -------
        Expr
            ``Struct`` with ``UInt64`` and ``Float64`` fields.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"year": [1, 2, 1], "text": ["to be", "to do", "not to be"]}).tadoc.compress("text")
        >>> described = df.group_by("year", maintain_order=True).agg(pl.col("text").tadoc.info()).unnest("text")
        >>> described.select("year", "rows", "words").rows()
        [(1, 2, 5), (2, 1, 2)]

        """
        return self._expr.implode().map_batches(
            at_work()(info_by_group), return_dtype=pl.Struct(INFO_SCHEMA), is_elementwise=True
        )

    def _index(
        self,
        how: index_by_group.InvertedIndex | index_by_group.RankedInvertedIndex,
        id: str | pl.Expr | None,
        dtype: Callable[[pl.Expr | None], pl.DataTypeExpr],
    ) -> pl.Expr:
        if id is None:
            return self._expr.implode().map_batches(how.run_lists, return_dtype=dtype(None), is_elementwise=True)
        if not isinstance(id, (str, pl.Expr)):
            raise TypeError(f"{how.analytic.name}: id is {type(id).__name__}, not an expression or a column's name")
        labels = cs.by_name(id).as_expr() if isinstance(id, str) else id
        rows = pl.struct(self._expr, labels.alias(index_by_group.LABEL))  # has the name of its first field
        return rows.implode().map_batches(how.run_labelled, return_dtype=dtype(labels), is_elementwise=True)

    def _by_group(self, how: GroupRequest) -> pl.Expr:
        # a group's rows become one value, and all groups are passed at once
        return self._expr.implode().map_batches(how.run_lists, return_dtype=how.dtype, is_elementwise=True)
