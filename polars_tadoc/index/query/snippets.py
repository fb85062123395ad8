"""Snippets of results: the passage of each document that matches the query best, with its words marked.

Positions of words are computed on the grammar: rules without a query word are skipped by their length. Only the
passages are decompressed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.compress.decompress import Allowance, document_sizes, write_texts
from polars_tadoc.errors import ColumnMissingError, LimitExceededError
from polars_tadoc.index.collection import Collection
from polars_tadoc.index.documents import find
from polars_tadoc.index.query.plan import Plan, plan
from polars_tadoc.index.query.request import QueriesLike, as_texts, require_syntax
from polars_tadoc.kernels.host.rows import snippets as kernels
from polars_tadoc.kernels.traverse.results_cpu import load_rules
from polars_tadoc.model.arrow_results import from_arrow
from polars_tadoc.model.column import split
from polars_tadoc.model.corpus import Corpus, require_countable
from polars_tadoc.rows.cut import cut_words
from polars_tadoc.rows.term_counts import Terms, find_holders, kept_lengths
from polars_tadoc.rows.token_count import document_words
from polars_tadoc.runtime.arguments import require_integer, require_text
from polars_tadoc.runtime.array_types import Int64, UInt8
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks
from polars_tadoc.scoring.bm25 import Scoring

MAX_WORDS = 1_000
"""Maximum words of a snippet."""

QUERIES = 256
"""Queries whose words are searched at once."""

CUT = "…"
"""Marks omitted text."""

SCORING = Scoring("lucene", 1.5, 0.75, 0.5)
"""Scoring for the weights of words."""


@dataclass(frozen=True, eq=False)
class _Intervals:
    """Passages of rows, and the byte ranges to mark, by row."""

    cut: Corpus
    """The passages as rows of their grammar, each with the number of its result."""
    cut_before: UInt8
    cut_after: UInt8
    """``cut_before``, ``cut_after``: uint8: whether the row has text before or after the passage."""
    run_rows: Int64
    run_starts: Int64
    run_stops: Int64
    """``run_rows``, ``run_starts``, ``run_stops``: int64 by range: its result, and byte positions in the passage."""


@ends_on_interrupt
def snippets(
    index: Collection,
    results: pl.DataFrame,
    queries: QueriesLike | None,
    words: int,
    before: str,
    after: str,
    syntax: str,
    field: str | None = None,
) -> pl.DataFrame:
    """Answer :meth:`polars_tadoc.index.index.Index.snippets`."""
    if not isinstance(results, pl.DataFrame):
        mend = "collect it first" if isinstance(results, pl.LazyFrame) else "pass the result of search()"
        raise TypeError(f"snippets: results must be a DataFrame, not {type(results).__name__}; {mend}")
    if queries is None:
        raise TypeError("snippets: queries are missing; pass those that were searched for: snippets(results, queries)")
    size = require_integer("words", words, 1, MAX_WORDS)
    for name, mark in {"before": before, "after": after}.items():
        if not isinstance(mark, str):
            raise TypeError(f"snippets: {name} must be a string, not {type(mark).__name__}")
        require_text(mark, f"snippets: {name}")
    given = as_texts(queries, "snippets")
    require_syntax(syntax)
    texts = pl.Series("query", [given]) if isinstance(given, str) else given
    if index.stored.stored_text is None:
        raise ValueError("snippets: this index does not have the text; build it with store=True")
    owners = _queries(results, texts)
    documents = _texts(index, _documents(index, results), field)
    order = np.argsort(owners, kind="stable")
    parts: list[_Intervals] = []
    asked = np.unique(owners)
    for first in range(0, len(asked), QUERIES):
        distinct = asked[first : first + QUERIES]
        start, stop = np.searchsorted(owners[order], [distinct[0], distinct[-1] + 1])
        own = order[start:stop]
        parts += _find(
            index, texts.gather(distinct), own, np.searchsorted(distinct, owners[own]), documents[own], size, syntax
        )
    return results.with_columns(_write(parts, len(results), before, after))


def _texts(index: Collection, documents: Int64, field: str | None) -> Int64:
    """Return the number of each document's text in a field."""
    names = () if index.fields is None else index.fields.names
    if field is not None and field not in names:
        known = f"; it has {', '.join(names)}" if names else " but one column of text"
        raise ValueError(f"snippets: field={field!r}: the index has no such field{known}")
    return documents * len(names) + names.index(field or names[-1]) if names else documents


def _queries(results: pl.DataFrame, texts: pl.Series) -> Int64:
    """Return the number of each result's query."""
    if "query" not in results.columns:
        raise ColumnMissingError.for_name("query", results.columns, "snippets: results")
    numbers = results["query"]
    if not numbers.dtype.is_integer() and len(numbers):
        raise TypeError(f'snippets: column "query" of the results must be integers, not {numbers.dtype}')
    wrong = numbers.filter(numbers.is_null() | (numbers < 0) | (numbers >= len(texts)))
    if len(wrong):
        raise ValueError(
            f"snippets: a result is of query {wrong[0]}, of {len(texts):,} queries; pass the queries of the search"
        )
    return numbers.cast(pl.Int64).to_numpy()


def _documents(index: Collection, results: pl.DataFrame) -> Int64:
    """Return the number of each result's document; of several with the same id, the first."""
    if "id" not in results.columns:
        raise ColumnMissingError.for_name("id", results.columns, "snippets: results")
    places, documents = find(index.stored, index.live, results["id"], "snippets")
    return documents[np.unique(places, return_index=True)[1]]


def _find(
    index: Collection, texts: pl.Series, rows: Int64, queries: Int64, documents: Int64, size: int, syntax: str
) -> list[_Intervals]:
    """Find the passages of results, given their numbers, queries and documents.

    Raises
    ------
    LimitExceededError
        The documents have more words than ``Config(expansion_limit=)``, or their matches do not fit in memory.

    """
    stored = index.stored.text
    assert stored is not None
    words, sought = _sought(plan(index, texts, SCORING, "snippets", syntax=syntax))
    distinct, stands = np.unique(documents, return_inverse=True)
    corpora = split(stored.gather(distinct))
    require_countable(corpora)
    parts, allowance = [], Allowance("snippets", corpora)
    for corpus in corpora:
        allowance.take(corpus.known_word_total, 0)
        local = np.full(len(distinct), -1, np.int64)
        local[corpus.rows] = np.arange(corpus.document_count)
        own = local[stands] >= 0
        terms = Terms.of(corpus, words, index.analyzer.morphism, index.analyzer.tokenizer.has_parts)
        try:
            parts.append(_in_corpus(corpus, terms, sought, rows[own], local[stands[own]], queries[own], size))
        except MemoryError as error:
            raise LimitExceededError("snippets: the matches do not fit in memory; pass fewer results") from error
    return parts


def _sought(planned: Plan) -> tuple[list[str], kernels.Sought]:
    """Number the words of queries and phrases, and weigh them."""
    names = planned.names()
    words = list(dict.fromkeys(word for name in names for word in name.words))
    number_of = {word: number for number, word in enumerate(words)}
    worth = (planned.weights.astype(np.float64) * (1 << 20)).astype(np.int64) + 1  # integers, so that sums are exact
    is_phrase = np.array([name.is_phrase for name in names], np.bool_)[planned.items]
    cut = [[number_of[word] for word in name.words] for name in names]
    weights = np.full((planned.size, len(words)), -1, np.int64)
    for is_own, value in (
        (is_phrase, np.zeros_like(worth)),
        (~is_phrase, worth),
    ):  # words of phrases alone weigh nothing
        owners, items = planned.owners[is_own], planned.items[is_own]
        sizes = np.array([len(cut[item]) for item in items.tolist()], np.int64)
        flat = np.array([word for item in items.tolist() for word in cut[item]], np.int64)
        weights[np.repeat(owners, sizes), flat] = np.repeat(value[is_own], sizes)
        if is_own is is_phrase:
            phrases = kernels.Sought(
                weights,
                np.searchsorted(owners, np.arange(planned.size + 1)),
                worth[is_phrase],
                np.append(0, np.cumsum(sizes)),
                flat,
            )
    return words, phrases


def _in_corpus(
    corpus: Corpus, terms: Terms, sought: kernels.Sought, rows: Int64, documents: Int64, queries: Int64, size: int
) -> _Intervals:
    found = _occurrences(corpus, terms, sought, documents, queries)
    lengths = document_words(corpus).astype(np.int64)[documents]
    firsts, marks = np.empty(len(rows), np.int64), np.zeros(len(found.places), np.uint8)

    def choose(chunk: tuple[int, int]) -> None:
        own = slice(*chunk)
        part = found._replace(offsets=found.offsets[chunk[0] : chunk[1] + 1])
        kernels.choose_windows(part, sought, queries[own], lengths[own], size, firsts[own], marks)

    map_parallel(choose, weighted_chunks(found.offsets))
    stops = np.minimum(firsts + size, lengths)
    marked = np.flatnonzero(marks)
    begins = np.flatnonzero(marks[marked] == kernels.BEGINS)
    first, last = marked[begins], marked[np.append(begins[1:], len(marked)) - 1] if len(begins) else marked[:0]
    owners = np.searchsorted(found.offsets, first, side="right") - 1
    ends = _bytes_before(corpus, documents[owners], firsts[owners], found.places[first], found.places[last])
    starts = ends[:, 0] - np.diff(corpus.grammar.words.offsets)[found.terminals[first]]
    return _Intervals(
        cut_words(corpus, rows, documents, firsts, stops),
        (firsts > 0).astype(np.uint8),
        (stops < lengths).astype(np.uint8),
        rows[owners],
        starts,
        ends[:, 1],
    )


def _occurrences(
    corpus: Corpus, terms: Terms, sought: kernels.Sought, documents: Int64, queries: Int64
) -> kernels.Occurrences:
    rules = load_rules(corpus.grammar)
    _, touched, _, _ = find_holders(corpus, terms.words)
    names = np.empty(rules.terminals, np.int64)
    names[terms.words] = terms.terms
    lengths = np.concatenate([np.ones(rules.terminals, np.uint64), rules.lengths])
    kept = lengths if terms.kept is None else kept_lengths(corpus, terms.kept)

    chunks = weighted_chunks(np.append(0, np.cumsum(np.diff(corpus.root_offsets)[documents])))

    sizes = np.zeros(len(documents), np.int64)

    def find(write: bool, found: kernels.Occurrences, chunk: tuple[int, int]) -> None:
        own = slice(*chunk)
        kernels.find_occurrences(
            rules.terminals,
            rules.rule_offsets,
            rules.symbols,
            len(rules.level_offsets),
            lengths,
            kept,
            touched,
            names,
            corpus.root_offsets,
            corpus.roots,
            documents[own],
            queries[own],
            sought.weights,
            sizes[own],
            write,
            found._replace(offsets=found.offsets[own]),
        )

    none = np.zeros(0, np.int64)
    nothing = kernels.Occurrences(none, none, none, none, np.zeros(0, np.uint32))
    map_parallel(partial(find, False, nothing), chunks)
    offsets = np.append(0, np.cumsum(sizes))
    total = int(offsets[-1])
    places, kept_places, words = (np.empty(total, np.int64) for _ in range(3))
    found = kernels.Occurrences(offsets, places, kept_places, words, np.empty(total, np.uint32))
    map_parallel(partial(find, True, found), chunks)
    return found


def _bytes_before(corpus: Corpus, documents: Int64, firsts: Int64, run_firsts: Int64, run_lasts: Int64) -> Int64:
    """Return the bytes from the passage's start to the ends of each range's first and last word: int64[ranges, 2]."""
    count = len(documents)
    stops = np.stack([run_firsts + 1, run_lasts + 1], axis=1).reshape(-1)
    cut = cut_words(corpus, np.arange(2 * count), np.repeat(documents, 2), np.repeat(firsts, 2), stops)
    return document_sizes(cut, Allowance("snippets")).bytes.reshape(-1, 2)


def _write(parts: list[_Intervals], rows: int, before: str, after: str) -> pl.Series:
    """Render the passages with their marks."""
    if rows == 0:
        return pl.Series("snippet", [], pl.String)
    texts: Any = write_texts([part.cut for part in parts], "snippet", rows, "snippets").rechunk()
    array = texts.to_arrow(compat_level=pl.CompatLevel.oldest())
    text_offsets = np.frombuffer(array.buffers()[1], np.int64, rows + 1, 8 * array.offset)
    data = array.buffers()[2]
    text = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    flags = np.zeros((2, rows), np.uint8)
    for part in parts:
        flags[:, part.cut.rows] = part.cut_before, part.cut_after
    owners, starts, stops = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("run_rows", "run_starts", "run_stops")
    )
    order = np.argsort(owners, kind="stable")
    marks = [np.frombuffer(mark.encode(), np.uint8) for mark in (before, after, CUT)]
    total = int(text_offsets[-1] - text_offsets[0]) + len(owners) * (len(marks[0]) + len(marks[1]))
    total += int(flags.sum()) * len(marks[2])
    offset_buffer, offsets = allocate(rows + 1, np.int64)
    buffer, written = allocate(total, np.uint8)
    offsets[0] = 0
    run_offsets = np.searchsorted(owners[order], np.arange(rows + 1))
    kernels.write_marked(text_offsets, text, run_offsets, starts[order], stops[order], *flags, *marks, offsets, written)
    return from_arrow("snippet", pa.LargeStringArray.from_buffers(rows, offset_buffer, buffer))
