"""Twig filter: the XPath queries that each row's document matches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated, Any, ClassVar, Self, Unpack

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.engine.choose import Engine, EngineOption
from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.engine.progress import BATCHES, bar_of
from polars_tadoc.errors import InvalidXmlError
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.execute.transport import Transport
from polars_tadoc.execute.twig_documents import Answer, Filtering, WrongRow
from polars_tadoc.execute.twig_matches import MatchedRows, Matches
from polars_tadoc.execute.twig_matches import schema as schema
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.model.column import call_of, split
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.payload import short_name
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.records.packed_records import sort_records
from polars_tadoc.records.records import Layout, Records, runs_of_equal
from polars_tadoc.runtime.arguments import require_integer
from polars_tadoc.runtime.documented import with_imports
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.option_signature import Default, ProgressOption, takes_options
from polars_tadoc.traversal.options import MAX_COUNT, Options
from polars_tadoc.traversal.text_corpus import require_text
from polars_tadoc.twig.twig_set import TwigSet

MAX_DEPTH = 10_000
"""Default maximum of open elements."""

MAX_BYTES = 1 << 30
"""Default maximum bytes of a document."""


class TwigFilterOnWorkers(ProgressOption, total=False):
    """Options of :func:`twig_filter` where workers settle the engine."""

    namespaces: Annotated[Mapping[str, str] | None, Default(None)]
    on_error: Annotated[str, Default("raise")]
    max_depth: Annotated[int, Default(MAX_DEPTH)]
    max_bytes: Annotated[int, Default(MAX_BYTES)]


class TwigFilterOptions(TwigFilterOnWorkers, EngineOption, total=False):
    """Options of :func:`twig_filter`."""


class MatchTransport(Transport[Matches]):
    """A row, and the place of a query that it matches in their set."""

    def records(self, part: Matches) -> Records:
        """Return row and query of each match; rows without matches are not in the result."""
        rows = np.repeat(part.rows.astype(np.uint32), np.diff(part.offsets))
        words = Vocabulary(pa.nulls(0, pa.large_string()))
        return sort_records(self.layout, words, np.stack([rows, part.twigs], axis=1))

    def part(self, records: Records) -> Matches:
        """List the queries of each row."""
        rows, offsets = runs_of_equal(records.keys[:, 0])
        return Matches(rows.astype(np.int64), offsets, records.keys[:, 1].copy())


@dataclass(frozen=True)
class TwigFilterRequest(Analytic[Matches, MatchedRows]):
    """The checked arguments of a call."""

    name: ClassVar[str] = "twig_filter"
    schema = staticmethod(schema)
    transport = MatchTransport(Layout(("row", "query"), 1, counted=False))
    reads_gaps: ClassVar[bool] = True
    takes_text: ClassVar[bool] = True
    gpu_repays_at: ClassVar[float] = math.inf
    """Never: for text, most of the work is parsing, which runs on the CPU, and compressed columns take only
    milliseconds there (``benchmarks/twigs.py``, ``benchmarks/gpu_twig_rules.py``)."""

    filtering: Filtering
    raises: bool
    """Whether an invalid document raises an error."""
    options: Options
    column: str = ""
    """The column's name, for messages."""

    @classmethod
    @takes_options
    def from_arguments(cls, queries: Mapping[str, str] | TwigSet, **options: Unpack[TwigFilterOptions]) -> Self:
        """Check the arguments of :func:`twig_filter`; errors as there."""
        on_error = options["on_error"]
        if on_error not in ("raise", "null"):
            raise ValueError(f'{cls.name}: on_error={on_error!r}: use "raise" or "null"')
        shared = Options.from_arguments(engine=options["engine"])
        depth = require_integer("max_depth", options["max_depth"], 1, MAX_COUNT)
        size = require_integer("max_bytes", options["max_bytes"], 1, MAX_COUNT)
        filtering = Filtering(_twig_set(queries, options["namespaces"])._compiled(), depth, size)
        return cls(filtering, on_error == "raise", shared)

    @classmethod
    def of_frame(
        cls, column: object, queries: Mapping[str, str] | TwigSet | None, **options: Unpack[TwigFilterOptions]
    ) -> Self:
        """Check the arguments of a frame's call, which includes the column; errors as for :func:`twig_filter`."""
        return cls.from_arguments(cls.required(column, queries), **options)

    @classmethod
    def required(cls, column: object, queries: Mapping[str, str] | TwigSet | None) -> Mapping[str, str] | TwigSet:
        """Return the queries of a frame's call; raise ``TypeError`` if the column is missing."""
        if queries is None or isinstance(column, Mapping | TwigSet):
            raise TypeError(
                f"{cls.name}: the column is missing before the queries; write {call_of(cls.name, 'xml')}, or, "
                f"if one column is compressed, {cls.name}(queries=queries)"
            )
        return queries

    @property
    def names(self) -> Sequence[str]:
        """Names of the queries, in the order of the set."""
        return self.filtering.twigs.names

    def run(self, column: pl.Series, id: pl.Series | None = None, owner: object = None) -> MatchedRows:
        """Match the rows of a String or compressed column, and keep nothing; errors as for :func:`twig_filter`."""
        column = require_text(column, self.name)
        return self.result(self.matches(column), Labels.of(column, id, self.name))

    @ends_on_interrupt
    def matches(self, column: pl.Series) -> Matches:
        """Match each row; errors as for :func:`twig_filter`."""
        column = require_text(column, self.name)
        named = replace(self, column=column.name)
        if column.dtype == pl.String:
            with bar_of(len(column), self.name, by=BATCHES):
                return named.merge(list(named.text_partials(column, 0, DeviceBatches(self.name, self.options.engine))))
        corpora = split(column)
        for corpus in corpora:
            named.require_tokenizer(corpus)
        engine = self.choose_engine(sum(corpus.symbol_count for corpus in corpora))
        batches = DeviceBatches(self.name, self.options.engine)

        def match(corpus: Corpus, engine: Engine) -> list[Answer]:
            return list(self.filtering.match_corpus(corpus, engine))

        parts = [part for corpus in corpora for part in batches.parts(corpus, engine, match, match)]
        return named._joined(chain.from_iterable(parts))

    def without_limits(self) -> Self:
        """There are no limits that merging would have to apply."""
        return self

    def partial(self, corpus: Corpus, engine: Engine) -> Matches:
        """Match the documents of one corpus."""
        self.require_tokenizer(corpus)
        return self._joined(self.filtering.match_corpus(corpus, engine))

    def text_partials(self, text: pl.Series, first: int, batches: DeviceBatches) -> Iterator[Matches]:
        """Match the rows of a String column, block by block; ``first`` is the number of its first row."""

        def match(start: int, stop: int, engine: Engine) -> list[Answer]:
            rows = text if stop - start == len(text) else text[start:stop]
            number = first + start
            return [
                (replace(matches, rows=matches.rows + number), [WrongRow(number + row, why) for row, why in wrong])
                for matches, wrong in self.filtering.match_text(rows, engine)
            ]

        before = running_sum(text.str.len_bytes().fill_null(0).cast(pl.Int64).to_numpy())
        for answers in batches.each(self.choose_engine(len(text)), before, match, "bytes"):
            yield self._joined(answers)

    def _joined(self, answers: Iterable[Answer]) -> Matches:
        """Concatenate answers; raise ``InvalidXmlError`` for the first invalid row, if errors are raised."""
        parts = list(answers)
        wrong = [row for _, rows in parts for row in rows]
        if self.raises and wrong:
            raise InvalidXmlError.for_row(self.column, *min(wrong))
        return self.merge([matches for matches, _ in parts])

    def require_tokenizer(self, corpus: Corpus) -> None:
        """Raise ``TypeError`` unless a corpus was tokenized into tags."""
        own = corpus.grammar.tokenizer
        if own != "xml":
            column = f'pl.col("{self.column}").tadoc.decompress()'
            raise TypeError(
                f'{self.name}: column "{self.column}" ({short_name(corpus.key)}) has tokenizer "{own}", which splits '
                f'tags; compress it again: {column}.tadoc.compress(tokenizer="xml"), or filter the text: '
                f"{column}.tadoc.twig_filter(…)"
            )

    def merge(self, partials: Sequence[Matches]) -> Matches:
        """Put the documents of several corpora in row order."""
        return Matches.merged(partials)

    @property
    def asked(self) -> dict[str, Any]:
        """Arguments on which the records depend."""
        return {**super().asked, "column": self.column, "raises": self.raises, **self.filtering.described}

    def result(self, total: Matches, labels: Labels) -> MatchedRows:
        """Replace rows by labels."""
        return MatchedRows(labels, self.names, total)


def _twig_set(queries: object, namespaces: Mapping[str, str] | None) -> TwigSet:
    if isinstance(queries, TwigSet):
        if namespaces is not None:
            raise TypeError(f"{TwigFilterRequest.name}: namespaces= is for queries in a mapping; a TwigSet has its own")
        return queries
    if not isinstance(queries, Mapping):
        raise TypeError(
            f'{TwigFilterRequest.name}: queries are a mapping of names to XPath, {{"name": "//a[b]"}}, or a TwigSet, '
            f"not {type(queries).__name__}{'; the column comes first' if isinstance(queries, pl.Series) else ''}"
        )
    return TwigSet._for_call(queries, namespaces, TwigFilterRequest.name)


@with_imports
@takes_options
def twig_filter(
    column: pl.Series,
    queries: Mapping[str, str] | TwigSet,
    *,
    id: pl.Series | None = None,
    **options: Unpack[TwigFilterOptions],
) -> pa.Table:
    """Find the XPath queries that each row's XML document matches, all in one pass.

    A document matches a query if XPath's ``boolean()`` of it is true: if at least one node is found. Queries are twigs:
    paths of ``/`` and ``//`` over names, ``*`` and ``@name``, with predicates that are again such paths,
    ``[.//name/@id]``, and may end in ``@name="value"`` or ``text()="value"``. Twigs are matched from the leaves up
    (Gottlob, Koch and Pichler, VLDB 2002), all together by one automaton on a CPU (Gupta and Suciu, SIGMOD 2003), or by
    stacks of 64 nodes per thread on a GPU (after Absalyamov, Moussalli, Tsotras and Najjar, ADMS 2013).

    Parameters
    ----------
    column
        String column of XML documents, or one compressed with ``tokenizer="xml"``: then each rule is read once, however
        often it occurs, and only rows that may not be well-formed, or may match a query with ``text()``, are
        decompressed.
    queries
        Names and XPath queries, or a :class:`TwigSet`, which caches its compiled form; later changes have no effect.
    id
        Labels of the rows, one for each; default: row numbers.
    namespaces
        Maps prefixes to URIs, for names in queries like ``x:name``; a name without a prefix is in no namespace.
    on_error
        "raise", or "null": a row that is not well-formed XML, or exceeds a limit, matches nothing, like a null row.
    max_depth
        Maximum number of open elements in a document.
    max_bytes
        Maximum bytes of a document.

    Returns
    -------
    pyarrow.Table
        ``id`` (the labels' type, or uint32), ``query: dictionary<large_string>``: one row per match, in row order, each
        row's queries in the order of the set.

    Raises
    ------
    InvalidTwigError
        A query is not a supported twig; the message shows the position and the reason.
    InvalidXmlError
        A row is not well-formed XML, declares entities, or exceeds a limit; the message names row, line and column.
    NotCompressedError
        The series is neither a compressed column nor a String one.
    InvalidGrammarError, LimitExceededError
        A payload or a row of a compressed column is damaged or too large.
    EngineUnavailableError
        ``engine="gpu"`` cannot run here.
    TypeError
        A compressed column has another tokenizer than "xml"; ``queries`` is neither a mapping of strings nor a
        :class:`TwigSet`, or a set is combined with ``namespaces=``; ``max_depth`` or ``max_bytes`` is not an integer;
        ``id`` is not a series, or of a type that results cannot hold.
    ValueError
        ``on_error`` or ``engine`` is unknown, ``max_depth`` or ``max_bytes`` is below 1, or ``id`` has another length
        than the column.

    Examples
    --------
    >>> column = pl.Series("xml", ["<a><b/><c/></a>", "<a><c x='1'/></a>"])
    >>> tadoc.twig_filter(column, {"both": "/a[b]/c", "one": "//c[@x='1']"}).to_pylist()
    [{'id': 0, 'query': 'both'}, {'id': 1, 'query': 'one'}]

    """
    request = TwigFilterRequest.from_arguments(queries, **options)
    return request.run(column, id).to_arrow()
