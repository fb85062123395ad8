"""Explains which strategy an analytic chooses, and why."""

from __future__ import annotations

import inspect
from typing import Any

import polars as pl

from polars_tadoc.analytics import (
    bm25_weights,
    cooccurrence,
    inverted_index,
    ranked_inverted_index,
    sequence_count,
    sort,
    term_vector,
    tfidf,
    word_count,
)
from polars_tadoc.engine.choose import choose
from polars_tadoc.engine.machine_costs import described
from polars_tadoc.execute import weights
from polars_tadoc.model.column import require_series, split
from polars_tadoc.model.payload import short_name
from polars_tadoc.rows import patterns
from polars_tadoc.rows.patterns import PatternRequest
from polars_tadoc.runtime.documented import with_imports
from polars_tadoc.traversal.costs import COMPRESS_BYTE, EXPANDED_COSTS, TEXT_BYTE
from polars_tadoc.traversal.selector import FAMILIES, STRATEGIES, choose_strategy, is_settled, weigh
from polars_tadoc.traversal.source import Source, sources
from polars_tadoc.traversal.text_corpus import BYTES_A_WORD, require_text

REQUESTS: dict[str, Any] = {
    "word_count": word_count.WordCountRequest,
    "sort": sort.SortRequest,
    "inverted_index": inverted_index.InvertedIndexRequest,
    "term_vector": term_vector.TermVectorRequest,
    "sequence_count": sequence_count.SequenceCountRequest,
    "ranked_inverted_index": ranked_inverted_index.RankedInvertedIndexRequest,
    "cooccurrence": cooccurrence.CooccurrenceRequest,
    "bm25_weights": bm25_weights.BM25WeightsRequest,
    "tfidf": tfidf.TFIDFRequest,
}

PATTERN_CALLS: dict[str, Any] = {
    "contains": patterns.contains,
    "count_matches": patterns.count_matches,
    "find": patterns.find,
    "extract_all": patterns.extract_all,
}
"""Searches of rows, which have no strategies: their explanation searches, to tell how many rows it decompresses."""


@with_imports
def explain(column: pl.Series, analytic: str, **arguments: Any) -> str:
    """Explain which strategy an analytic would choose for each grammar, with both cost estimates and their inputs.

    Counts nothing. The estimates come from a cost model that was measured on one machine
    (:mod:`polars_tadoc.traversal.costs`); :func:`polars_tadoc.calibrate` fits it to this one, and observed times
    correct it. The last line says which costs are in force. Only the comparison of estimates is meaningful. Their
    inputs are described in :func:`polars_tadoc.traversal.selector.features_of`.

    Parameters
    ----------
    column
        Compressed column, or plain text: then the result says what counting it takes, and from which call on
        compressing it first would have been faster.
    analytic
        Name of the call: "word_count", "sort", "inverted_index", "term_vector", "sequence_count",
        "ranked_inverted_index", "cooccurrence", "bm25_weights" or "tfidf"; or "contains", "count_matches", "find" or
        "extract_all": then the result says by what automaton rows are searched, and how many are decompressed.
    **arguments
        Arguments of the call.

    Returns
    -------
    str
        Readable lines of text.

    Raises
    ------
    ValueError, TypeError
        The analytic is unknown, or it has no such argument.
    NotCompressedError, InvalidGrammarError, LimitExceededError, EngineUnavailableError
        As for the call itself.

    Examples
    --------
    >>> column = pl.Series("text", ["to be or not to be", "to be"]).tadoc.compress()
    >>> print(tadoc.explain(column, "term_vector", strategy="bottom_up", engine="cpu").split(":")[0])
    term_vector on cpu

    """
    if analytic not in REQUESTS | PATTERN_CALLS:
        raise ValueError(f"analytic={analytic!r} is unknown; use one of {', '.join(REQUESTS | PATTERN_CALLS)}")
    arguments.pop("id", None)  # labels do not matter
    asked = PATTERN_CALLS.get(analytic) or REQUESTS[analytic].from_arguments
    known = inspect.signature(asked).parameters
    require_series(column, "explain")
    unknown = [name for name in arguments if name not in known]
    if unknown:
        raise TypeError(f"{analytic} has no argument {unknown[0]!r}; its arguments are {', '.join(known)}")
    if analytic in PATTERN_CALLS:
        inspect.signature(PATTERN_CALLS[analytic]).bind(column, **arguments)
        named = {"literal": False, "strict": True, **arguments}
        return PatternRequest.of(analytic, named["pattern"], named["literal"], named["strict"]).explain(column)
    request = REQUESTS[analytic].from_arguments(**arguments)
    column = require_text(column, analytic)
    if column.dtype == pl.String:
        engine = choose(request.reading.engine, int(column.estimated_size()) // BYTES_A_WORD).name
        return _of_text(column, analytic, engine)
    if isinstance(request, weights.WeightsRequest):
        for corpus in split(column):
            request.counting.require_tokenizer(corpus)
    window = getattr(request, "window", 1)
    made = sources(column, analytic, request.reading, window)
    n = getattr(request, "n", window)
    lines = [_lines(source, analytic, n, request.options.strategy) for source in made]
    lines.append(described())
    return "\n".join(lines) if made else f"{analytic}: no rows, nothing to do"


def _of_text(text: pl.Series, analytic: str, engine: str) -> str:
    """Say what counting text takes, and from which call on compressing it first would have been faster."""
    size = int(text.str.len_bytes().sum())
    plain, packed = TEXT_BYTE[analytic]
    repays = 1 + int(COMPRESS_BYTE / (plain - packed))
    return (
        f"{analytic} on {engine}: counted as text, without rules and so without a strategy\n"
        f"  {len(text) - text.null_count():,} rows of {size:,} bytes: about {plain * size / 1e6:,.1f} ms of the CPU\n"
        f"  compressing would repay from call {repays} on: about {COMPRESS_BYTE * size / 1e6:,.1f} ms once, then "
        f"{packed * size / 1e6:,.1f} ms a call; less where nothing repeats"
    )


def _lines(source: Source, analytic: str, n: int, asked: str) -> str:
    choice, measured = weigh(source, analytic, n), source.statistics
    taken = choose_strategy(asked, source, analytic, n)
    why = "asked for" if asked != "auto" else "always" if is_settled(analytic) else "estimated to be faster"
    name = "a normalised vocabulary" if source.key is None else short_name(source.key)
    lines = [
        f"{analytic} on {source.engine.name}: {taken} ({why}), {name}",
        f"  documents: {measured.documents:,} of {measured.roots:,} symbols",
        f"  rules: {measured.rules:,} of {measured.symbols:,} symbols on {choice.features['levels']:,.0f} levels, "
        f"{measured.terminals:,} words",
    ]
    for strategy in STRATEGIES:
        parts = ", ".join(f"{name} {choice.features[name]:,.0f}" for name in choice.costs[strategy])
        lines.append(f"  {strategy}: {choice.milliseconds[strategy]:.2f} ms estimated from {parts}")
    if asked == "auto" and source.engine.keeps_rows and FAMILIES[analytic] in EXPANDED_COSTS:
        lines.append("  a column that stays on the GPU: the words themselves, expanded once, where that is faster")
    return "\n".join(lines)
