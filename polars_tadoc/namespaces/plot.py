"""Charts of results, ``tadoc.plot``: each is one call on a frame, and returns an Altair chart (extra ``plot``)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from polars_tadoc.model.column import require_tadoc, split
from polars_tadoc.runtime.documented import with_imports

if TYPE_CHECKING:
    import altair as alt

    from polars_tadoc.model.grammar import Grammar

__all__ = ["dispersion", "explanation", "keyness", "phrase_trend", "rules", "words_over_time", "zipf"]

MAX_MARKS = 2_000
"""Maximum marks of a chart: more are not distinguishable, and make it slow."""
SHOWN_WORDS = 12
"""Maximum words of a rule that are shown."""


DRAWN = {
    "words_over_time": "a frame with words, counts and times, as by group of word_count",
    "phrase_trend": "a frame with counts by row, as of count_phrase",
    "keyness": "two frames with words and counts, as of word_count",
    "dispersion": "the frame of positions or concordance",
    "zipf": "the frame of word_count",
    "explanation": "the frame of Index.explain",
}
"""The contents of each chart, for messages."""


@with_imports
def words_over_time(counts: pl.DataFrame, time: str, *, top: int = 8) -> alt.Chart:
    """Draw how often the most frequent words occur over time.

    Parameters
    ----------
    counts
        Counts by time, as of ``group_by(time).agg(text.word_count()).explode("text").unnest("text")``: columns
        ``time``, ``word`` and ``count``.
    time
        Column with the time.
    top
        Number of words: those with the highest total count.

    Returns
    -------
    altair.Chart
        A line per word; a word that is missing at a time counts 0.

    Raises
    ------
    ImportError
        Altair is not installed.
    ValueError
        A column is missing.

    Examples
    --------
    >>> df = pl.DataFrame({"year": [1, 1, 2], "text": ["war and peace", "war", "peace"]})
    >>> words = df.group_by("year").agg(pl.col("text").tadoc.word_count()).explode("text").unnest("text")
    >>> tadoc.plot.words_over_time(words, "year", top=2).to_dict()["mark"]["type"]
    'line'

    """
    altair = _altair("words_over_time", counts, time, "word", "count")
    totals = counts.group_by("word").agg(pl.col("count").sum()).sort(["count", "word"], descending=[True, False])
    words = totals["word"].head(top)
    grid = counts.select(pl.col(time).unique()).join(words.to_frame(), how="cross")
    sums = counts.group_by(time, "word").agg(pl.col("count").sum())
    shown = grid.join(sums, on=[time, "word"], how="left").with_columns(pl.col("count").fill_null(0)).sort("word", time)
    colour = altair.Color("word:N", sort=words.to_list(), title=None)
    return _lines(altair, shown, time, "count", colour)


@with_imports
def phrase_trend(frame: pl.DataFrame, time: str, group: str | None = None, value: str = "count") -> alt.Chart:
    """Draw how often a phrase occurs over time, in all rows or by group.

    Parameters
    ----------
    frame
        Counts by row, as of ``df.with_columns(count=pl.col("text").tadoc.count_phrase("new deal"))``; they are added by
        time and group.
    time
        Column with the time.
    group
        Column with the group; default: all rows are one group.
    value
        Column with the counts.

    Returns
    -------
    altair.Chart
        A line per group.

    Raises
    ------
    ImportError, ValueError
        As :func:`words_over_time`.

    Examples
    --------
    >>> df = pl.DataFrame({"year": [1, 2], "party": ["a", "b"], "count": [3, 4]})
    >>> tadoc.plot.phrase_trend(df, "year", "party").to_dict()["encoding"]["color"]["field"]
    'party'

    """
    groups = [] if group is None else [group]
    altair = _altair("phrase_trend", frame, time, *groups, value)
    shown = frame.group_by(time, *groups).agg(pl.col(value).sum()).sort(*groups, time)
    colour = altair.Undefined if group is None else altair.Color(f"{_plain(group)}:N", title=group)
    return _lines(altair, shown, time, value, colour)


@with_imports
def keyness(first: pl.DataFrame, second: pl.DataFrame, names: tuple[str, str], *, top: int = 12) -> alt.Chart:
    """Draw the words that set two groups of texts apart, by their log-likelihood ratio.

    A word's keyness is Dunning's G² of its count in both groups (T. Dunning, *Accurate methods for the statistics of
    surprise and coincidence*, 1993), negative if it is more frequent in the second.

    Parameters
    ----------
    first, second
        Counts of all words of each group, as of ``word_count``: columns ``word`` and ``count``.
    names
        Names of the groups.
    top
        Words of each group.

    Returns
    -------
    altair.Chart
        Bars to the right for the first group, to the left for the second.

    Raises
    ------
    ImportError, ValueError
        As :func:`words_over_time`; ``ValueError`` also if a group has no words.

    Examples
    --------
    >>> first, second = pl.Series(["tax tax war"]).tadoc.word_count(), pl.Series(["war war sea"]).tadoc.word_count()
    >>> chart = tadoc.plot.keyness(first, second, ("spring", "autumn"), top=1)
    >>> [row["word"] for row in chart.data.to_dicts()]
    ['tax', 'sea']

    """
    if isinstance(names, str) or len(names) != 2:
        raise ValueError(f'plot.keyness: names={names!r}: give the names of both groups, such as ("before", "after")')
    _altair("keyness", first, "word", "count")
    altair = _altair("keyness", second, "word", "count")
    totals = [int(frame["count"].sum()) for frame in (first, second)]
    if not all(totals):
        raise ValueError("keyness: a group has no words")
    counts = [
        frame.select("word", pl.col("count").cast(pl.Float64).alias(name))
        for frame, name in ((first, "a"), (second, "b"))
    ]
    joined = counts[0].join(counts[1], on="word", how="full", coalesce=True).fill_null(0.0)
    share = (pl.col("a") + pl.col("b")) / sum(totals)
    parts = [
        pl.when(pl.col(name) > 0).then(pl.col(name) * (pl.col(name) / (share * total)).log()).otherwise(0.0)
        for name, total in zip("ab", totals, strict=True)
    ]
    sign = pl.when(pl.col("a") / totals[0] >= pl.col("b") / totals[1]).then(1.0).otherwise(-1.0)
    scored = joined.with_columns(keyness=2 * (parts[0] + parts[1]) * sign).sort(
        ["keyness", "word"], descending=[True, False]
    )
    likely, unlikely = scored.filter(pl.col("keyness") > 0).head(top), scored.filter(pl.col("keyness") < 0).tail(top)
    group = pl.when(pl.col("keyness") > 0).then(pl.lit(names[0])).otherwise(pl.lit(names[1]))
    shown = pl.concat([likely, unlikely]).select("word", "keyness", "a", "b", group=group)
    bars = altair.Chart(shown).mark_bar()
    chart: alt.Chart = bars.encode(
        x=altair.X("keyness:Q", title="keyness (G², signed)"),
        y=altair.Y("word:N", sort=shown["word"].to_list(), title=None),
        color=altair.Color("group:N", sort=list(names), title=None),
        tooltip=["word:N", "keyness:Q", altair.Tooltip("a:Q", title=names[0]), altair.Tooltip("b:Q", title=names[1])],
    )
    return chart


@with_imports
def dispersion(positions: pl.DataFrame, *, rows: int = 40) -> alt.Chart:
    """Draw where a word or phrase occurs in each document.

    Parameters
    ----------
    positions
        Result of ``positions`` or ``concordance``: columns ``id`` and ``offset``, in words. Of more than 2,000
        occurrences, every n-th is drawn.
    rows
        Maximum number of documents: the first with an occurrence.

    Returns
    -------
    altair.Chart
        A tick per occurrence, a line per document.

    Raises
    ------
    ImportError, ValueError
        As :func:`words_over_time`.

    Examples
    --------
    >>> found = pl.Series(["to be or not to be", "not to do"]).tadoc.positions("to")
    >>> tadoc.plot.dispersion(found).data.rows()
    [('0', 0), ('0', 4), ('1', 1)]

    """
    altair = _altair("dispersion", positions, "id", "offset")
    documents = positions["id"].unique(maintain_order=True).head(rows)
    found = positions.filter(pl.col("id").is_in(documents.implode()))
    shown = found.gather_every(max(1, math.ceil(found.height / MAX_MARKS))).select(
        pl.col("id").cast(pl.String), "offset"
    )
    chart: alt.Chart = (
        altair.Chart(shown)
        .mark_tick(thickness=1.5)
        .encode(
            x=altair.X("offset:Q", title="words from the start"),
            y=altair.Y("id:N", sort=[str(name) for name in documents.to_list()], title=None),
            tooltip=["id:N", "offset:Q"],
        )
    )
    return chart


@with_imports
def zipf(counts: pl.DataFrame) -> alt.Chart:
    """Draw the count of each word by its rank, on logarithmic scales (Zipf's law is a line).

    Parameters
    ----------
    counts
        Result of ``word_count``: columns ``word`` and ``count``. Of many words, ranks evenly spaced on the scale are
        drawn.

    Returns
    -------
    altair.Chart
        A point per word.

    Raises
    ------
    ImportError, ValueError
        As :func:`words_over_time`.

    Examples
    --------
    >>> tadoc.plot.zipf(pl.Series(["a b a c a b"]).tadoc.word_count()).data.rows()
    [(1, 'a', 3), (2, 'b', 2), (3, 'c', 1)]

    """
    altair = _altair("zipf", counts, "word", "count")
    ranked = (
        counts.select("word", "count").sort("count", descending=True, maintain_order=True).with_row_index("rank", 1)
    )
    ranks = np.unique(np.geomspace(1, max(1, ranked.height), MAX_MARKS // 4).round().astype(np.int64))
    shown = ranked[ranks - 1] if ranked.height else ranked
    scale = altair.Scale(type="log")
    chart: alt.Chart = (
        altair.Chart(shown)
        .mark_point(size=12)
        .encode(
            x=altair.X("rank:Q", scale=scale),
            y=altair.Y("count:Q", scale=scale),
            tooltip=["rank:Q", "word:N", "count:Q"],
        )
    )
    return chart


@with_imports
def rules(column: pl.Series, *, top: int = 20) -> alt.Chart:
    """Draw what compresses a column: the rules that save most bytes of text.

    A rule that is used ``n`` times, in rows and in other rules, saves ``n - 1`` copies of its text, whose words are
    joined by one space here. Rules with equal first words and length, such as those of several grammars, are
    added.

    Parameters
    ----------
    column
        Compressed column.
    top
        Number of rules.

    Returns
    -------
    altair.Chart
        A bar per rule.

    Raises
    ------
    ImportError
        Altair is not installed.
    NotCompressedError
        The column is not compressed.
    InvalidGrammarError
        A payload or a row is damaged.

    Examples
    --------
    >>> column = pl.Series(["to be or not", "to be or not", "to be or not to be"]).tadoc.compress()
    >>> tadoc.plot.rules(column).data.rows()
    [('to be or not', 3, 24)]

    """
    altair = _altair("rules", pl.DataFrame())
    texts: dict[str, list[int]] = {}
    for corpus in split(require_tadoc(column, "plot.rules")):
        grammar = corpus.grammar
        size = grammar.vocabulary_size
        uses = np.bincount(np.concatenate([corpus.roots, grammar.symbols]), minlength=size + grammar.rule_count)[size:]
        bytes_by_symbol = _text_bytes(grammar)
        saved = np.maximum(uses - 1, 0) * bytes_by_symbol[size:]
        for rule in np.argsort(-saved, kind="stable")[: top * 2]:
            words = int(grammar.expansion_lengths[rule])
            text = " ".join(_words(grammar, int(rule) + size)) + (
                f" … ({words:,} words)" if words > SHOWN_WORDS else ""
            )
            found = texts.setdefault(text, [0, 0])
            found[0] += int(uses[rule])
            found[1] += int(saved[rule])
    rows = sorted(((text, uses, saved) for text, (uses, saved) in texts.items()), key=lambda row: (-row[2], row[0]))[
        :top
    ]
    shown = pl.DataFrame(rows, {"text": pl.String, "uses": pl.Int64, "saved": pl.Int64}, orient="row")
    return _bars(altair, shown, "saved", "text", "bytes saved", ["text:N", "uses:Q", "saved:Q"])


@with_imports
def explanation(explained: pl.DataFrame) -> alt.Chart:
    """Draw what each word of a query adds to a document's score.

    Parameters
    ----------
    explained
        Result of ``index.explain``.

    Returns
    -------
    altair.Chart
        A bar per word or phrase.

    Raises
    ------
    ImportError, ValueError
        As :func:`words_over_time`.

    Examples
    --------
    >>> index = tadoc.build_index(pl.Series(["to be or not to be", "to do", "do be do"]))
    >>> tadoc.plot.explanation(index.explain("do not", 0)).data["word"].to_list()
    ['not', 'do']

    """
    altair = _altair("explanation", explained, "word", "count", "document_frequency", "score")
    rest = pl.col("word").fill_null("(every result)")
    shown = explained.select(rest, "count", "document_frequency", "score").sort("score", descending=True)
    return _bars(altair, shown, "score", "word", "score", ["word:N", "count:Q", "document_frequency:Q", "score:Q"])


def _altair(call: str, frame: pl.DataFrame, *columns: str) -> Any:
    """Import Altair, and check that a frame has some columns."""
    try:
        import altair
    except ImportError as error:
        raise ImportError(f"plot.{call} needs Altair: pip install 'polars-tadoc[plot]'", name="altair") from error
    if not isinstance(frame, pl.DataFrame):
        raise TypeError(f"plot.{call} takes {DRAWN[call]}, not {type(frame).__name__}")
    if missing := [name for name in columns if name not in frame.columns]:
        has = ", ".join(frame.columns)
        raise ValueError(f'plot.{call} takes {DRAWN[call]}; the frame has no column "{missing[0]}"; it has {has}')
    return altair


def _plain(name: str) -> str:
    """Return a column's name as Vega-Lite takes it: dots, brackets and colons have meanings."""
    return "".join(f"\\{sign}" if sign in ".[]:\\" else sign for sign in name)


def _lines(altair: Any, shown: pl.DataFrame, time: str, value: str, colour: Any) -> alt.Chart:
    """Draw a line per colour over time."""
    is_date = shown.schema[time].is_temporal()
    kind = "T" if is_date else "Q" if shown.schema[time].is_numeric() else "O"
    axis = altair.Axis() if is_date else altair.Axis(format="d") if kind == "Q" else altair.Axis(labelAngle=0)
    x = altair.X(
        f"{_plain(time)}:{kind}",
        title=time,
        axis=axis,
        scale=altair.Scale(zero=False) if kind == "Q" else altair.Undefined,
    )
    chart: alt.Chart = (
        altair.Chart(shown)
        .mark_line(point=True)
        .encode(x=x, y=altair.Y(f"{_plain(value)}:Q", title=value), color=colour)
    )
    return chart


def _bars(altair: Any, shown: pl.DataFrame, value: str, name: str, title: str, tooltip: list[str]) -> alt.Chart:
    """Draw horizontal bars in the frame's order."""
    y = altair.Y(f"{name}:N", sort=shown[name].to_list(), title=None, axis=altair.Axis(labelLimit=320))
    chart: alt.Chart = (
        altair.Chart(shown).mark_bar().encode(x=altair.X(f"{value}:Q", title=title), y=y, tooltip=tooltip)
    )
    return chart


def _text_bytes(grammar: Grammar) -> Any:
    """Return the bytes of each symbol's text, with a space between words: int64."""
    found = np.zeros(grammar.vocabulary_size + grammar.rule_count, np.int64)
    words = pl.Series(grammar.vocabulary).str.len_bytes()
    found[: grammar.vocabulary_size] = words.to_numpy()
    for first, stop in zip(grammar.level_offsets[:-1].tolist(), grammar.level_offsets[1:].tolist(), strict=True):
        starts = grammar.rule_offsets[first : stop + 1].astype(np.int64)  # bodies of a level use lower levels only
        parts = found[grammar.symbols[starts[0] : starts[-1]]]
        sums = np.add.reduceat(parts, starts[:-1] - starts[0]) if len(parts) else parts
        found[grammar.vocabulary_size + first : grammar.vocabulary_size + stop] = sums + np.diff(starts) - 1
    return found


def _words(grammar: Grammar, symbol: int) -> list[str]:
    """Return the first words of a symbol."""
    size, waiting = grammar.vocabulary_size, [symbol]
    words: list[str] = []
    while waiting and len(words) < SHOWN_WORDS:
        one = waiting.pop()
        if one < size:
            words.append(str(grammar.vocabulary[one]))
        else:
            body = grammar.symbols[grammar.rule_offsets[one - size] : grammar.rule_offsets[one - size + 1]]
            waiting += [int(part) for part in body[::-1]]
    return words
