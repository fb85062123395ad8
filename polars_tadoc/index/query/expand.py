"""Words of an index that match a pattern, or are spelled like a word."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from polars_tadoc.index.collection import Collection, field_terms
from polars_tadoc.index.segment import Segment
from polars_tadoc.kernels.host.rows.spelling import LONG, SHORT, find_alike, table_size
from polars_tadoc.model.word_map import naming_normalize
from polars_tadoc.runtime.arguments import require_integer, require_text
from polars_tadoc.runtime.array_types import Int64
from polars_tadoc.runtime.documented import with_imports

MAX_WORDS = 50
"""Maximum words that replace a pattern or a misspelled word (Lucene's number)."""

LONGEST = 1_000
"""Characters of a word that is looked up by its spelling."""


@with_imports
def matching(index: Collection, pattern: str, most: int = MAX_WORDS) -> list[tuple[str, int]]:
    """Return the most frequent words that match a pattern with ``*`` and ``?``, and their document frequencies.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> from polars_tadoc.index.query.expand import matching
    >>> index = tadoc.build_index(pl.Series("text", ["compute computer", "computer", "commute"]).tadoc.compress())
    >>> matching(index, "comp*"), matching(index, "com?ute")
    ([('computer', 2), ('compute', 1)], [('commute', 1), ('compute', 1)])

    """
    return [(word, count) for word, _, count in _best([_match(index, one, pattern) for one in index.segments], most)]


def alike(index: Collection, word: str, edits: int | None, most: int = MAX_WORDS) -> list[tuple[str, int, int]]:
    """Return the words within some edits of a word, with their edits and document frequencies.

    The order is by edits, then by descending document frequency, then by word. ``edits=None`` allows as many as suit
    the word's length.
    """
    if len(word) > LONGEST:
        return []
    if edits is None:
        edits = 0 if len(word) < SHORT else 1 if len(word) < LONG else 2
    return _best([_spell(index, one, word, edits) for one in index.segments], most)


def _best(found: list[tuple[Segment, Int64, Int64]], most: int) -> list[tuple[str, int, int]]:
    """Join the words of segments, given by number and edits, and choose the first ones."""
    edits_of: dict[str, int] = {}
    counts: dict[str, int] = {}
    for segment, numbers, edits in found:
        held = segment.live_frequencies[numbers] > 0  # else words of deleted documents take places
        numbers, edits = numbers[held], edits[held]
        frequencies = segment.live_frequencies[numbers]
        if len(found) == 1 and len(numbers) > 2 * most:  # the others can't be chosen: equal ones are kept
            least = np.sort(edits * (1 << 33) - frequencies)[most]
            numbers, edits = (own[edits * (1 << 33) - frequencies <= least] for own in (numbers, edits))
            frequencies = segment.live_frequencies[numbers]
        words = segment.terms.series.gather(numbers).to_list()
        for word, edit, count in zip(words, edits.tolist(), frequencies.tolist(), strict=True):
            edits_of[word], counts[word] = edit, counts.get(word, 0) + count
    rows = sorted((edit, -counts[word], word) for word, edit in edits_of.items())
    return [(word, edit, -count) for edit, count, word in rows[:most]]


def _match(index: Collection, segment: Segment, pattern: str) -> tuple[Segment, Int64, Int64]:
    literal = re.split(r"[*?]", pattern, maxsplit=1)[0]
    first, stop = _beginning(segment, literal.encode())
    first = max(first, field_terms(index, segment))
    numbers = np.arange(first, stop)
    if pattern != f"{literal}*":
        own = segment.terms.series.slice(first, stop - first)
        numbers = numbers[own.str.contains(_regex(pattern)).to_numpy()]
    return segment, numbers, np.zeros(len(numbers), np.int64)


def _beginning(segment: Segment, start: bytes) -> tuple[int, int]:
    """Return the range of terms that begin with some bytes."""
    offsets, data = segment.terms.offsets, segment.terms.data

    def cut(number: int) -> bytes:
        return data[offsets[number] : min(offsets[number + 1], offsets[number] + len(start))].tobytes()

    terms = range(len(segment.terms))
    return bisect_left(terms, start, key=cut), bisect_right(terms, start, key=cut)


@lru_cache(maxsize=256)
def _regex(pattern: str) -> str:
    parts = re.split(r"([*?])", pattern)
    return "(?s)^" + "".join({"*": ".*", "?": "."}.get(part, re.escape(part)) for part in parts) + "$"


def _spell(index: Collection, segment: Segment, word: str, edits: int) -> tuple[Segment, Int64, Int64]:
    terms, first = segment.terms, field_terms(index, segment)
    room = np.empty((2, len(terms)), np.int64)
    points = np.array([ord(character) for character in word], np.uint32)
    table = np.empty(table_size(len(word)), np.int64)
    count = find_alike(terms.offsets, terms.data, *segment.spelled, points, edits, table, room[0], room[1])
    numbers, distances = room[:, :count]
    kept = numbers >= first
    return segment, numbers[kept], distances[kept]


def image_of(index: Collection, pattern: str) -> str:
    """Return a pattern as the index's words are: the text between its wildcards is normalised."""
    morphism = index.analyzer.morphism
    if morphism is None:
        return pattern
    parts = re.split(r"([*?]+)", pattern)
    images = [morphism.few_spellings([part])[0] if part.strip("*?") else part for part in parts]
    own = [part.lower() if morphism.lowercase else part for part in parts]  # of words without an image
    return "".join(part if image is None else image for image, part in zip(images, own, strict=True))


def suggest(index: Collection, beginning: object, k: Any) -> pl.DataFrame:
    """Answer :meth:`polars_tadoc.index.index.Index.suggest`."""
    text, most = _text(beginning, "suggest", "beginning"), require_integer("k", k, 0)
    with naming_normalize("suggest"):
        literal = image_of(index, text)
    ranges = [(one, *_beginning(one, literal.encode())) for one in index.segments]
    numbers = [(one, np.arange(max(first, field_terms(index, one)), stop)) for one, first, stop in ranges]
    found = _best([(one, own, np.zeros(len(own), np.int64)) for one, own in numbers], most)
    rows = [(word, count) for word, _, count in found]
    return pl.DataFrame(rows, {"word": pl.String, "document_frequency": pl.UInt32}, orient="row")


def did_you_mean(index: Collection, query: object) -> str | None:
    """Answer :meth:`polars_tadoc.index.index.Index.did_you_mean`."""
    text = _text(query, "did_you_mean", "query")
    written = list(dict.fromkeys(_WORD.findall(text)))
    with naming_normalize("did_you_mean"):
        analyzed = index.analyzer.analyze(pl.Series("query", written, pl.String))
    totals = np.zeros(analyzed.distinct, np.int64)
    for segment in index.segments:
        analyzed.find(segment, totals)
    strings, offsets = analyzed.strings(), analyzed.offsets
    better: dict[str, str] = {}
    for place, word in enumerate(written):
        own = analyzed.words[offsets[place] : offsets[place + 1]]
        if len(own) == 1 and not totals[own[0]] and (found := alike(index, strings[own[0]], None, 1)):
            better[word] = found[0][0]
    return _WORD.sub(lambda match: better.get(match[0], match[0]), text) if better else None


def _text(given: object, call: str, name: str) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{call}: {name} must be a string, not {type(given).__name__}")
    require_text(given, f"{call}: {name}")
    return given


_WORD = re.compile(r"\w+")
