"""Stop words of languages, and their names wherever stop words are taken."""

from __future__ import annotations

import inspect
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import polars_tadoc as tadoc
from polars_tadoc.model.stop_words import languages

TEXT = pl.Series("text", ["The disk is full", "A link is down", "the other disk"]).tadoc.compress()  # type: ignore[attr-defined]


@pytest.mark.parametrize("language", languages())
def test_lists(language: str) -> None:
    words = tadoc.stop_words(language)
    assert words == sorted(set(words))
    assert len(words) > 50
    assert all(word == word.lower() and word.split() == [word] for word in words)
    words.clear()  # it is the caller's
    assert tadoc.stop_words(language)


def test_a_name_is_its_list() -> None:
    english = tadoc.stop_words("english")
    assert {"the", "is", "a", "other"} <= set(english)
    for lowercase in (True, False):
        named, listed = ({"stopwords": own, "lowercase": lowercase} for own in ("english", english))
        assert tadoc.word_count(TEXT, **named).equals(tadoc.word_count(TEXT, **listed))
        assert tadoc.count_phrase(TEXT, "disk full", **named).equals(tadoc.count_phrase(TEXT, "disk full", **listed))
    index = tadoc.build_index(TEXT, stopwords="english", lowercase=True)
    assert index.search(["the disk", "is"])["id"].to_list() == [2, 0]
    assert index.count('"disk full"') == 1


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(ValueError, match='language=\'klingon\': use one of "danish", "dutch", "english"'):
        tadoc.stop_words("klingon")
    with pytest.raises(TypeError, match="language must be a string, not int"):
        tadoc.stop_words(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r'is one string; pass a list of words: \["the"\], or the name'):
        tadoc.word_count(TEXT, stopwords="the")


NEEDED: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(["bm25", "count_phrase", "contains_phrase", "concordance", "positions"], ("the disk",)),
    "contains_any": (["the disk", "link"],),
    **dict.fromkeys(["overlap", "overlap_share", "overlaps"], (pl.Series(["a disk is slow and a link is down"]),)),
}
"""Arguments after the column, where a call needs some."""

LENGTH, GRAM, PAIR = {"length": 2}, {"ngram": 1}, {"n": 2}
SMALL: dict[str, dict[str, int]] = {
    "repeats": LENGTH,
    "drop_repeats": LENGTH,
    "repeated_share": LENGTH,
    "novelty": LENGTH,
    "overlap": LENGTH,
    "overlap_share": LENGTH,
    "overlaps": LENGTH,
    "near_duplicates": GRAM,
    "duplicate_groups": GRAM,
    "minhash": GRAM,
    "sequence_count": PAIR,
    "ranked_inverted_index": PAIR,
    "collocations": {"min_count": 1},
}
EQUAL = ("overlaps", "novelty", "repeated_share", "duplicate_groups", "near_duplicates")
"""Calls with the same result without stop words."""

TAKING = [
    name
    for name in tadoc.__all__
    if inspect.isfunction(getattr(tadoc, name)) and "stopwords" in inspect.signature(getattr(tadoc, name)).parameters
]


def test_many_calls_take_stop_words() -> None:
    assert {"word_count", "count_phrase", "to_csr", "build_index", "collocations", "repeats", "minhash"} <= set(TAKING)


def _plain(made: Any) -> Any:
    """Return a result as Python values."""
    if isinstance(made, pa.Table):
        return made.to_pylist()
    if isinstance(made, pl.DataFrame):
        return made.rows()
    if isinstance(made, pl.Series):
        return (made.tadoc.decompress() if tadoc.is_tadoc(made.dtype) else made).to_list()  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("name", TAKING)
@pytest.mark.parametrize("compressed", [False, True])
def test_every_call_takes_the_name_of_a_language(name: str, compressed: bool) -> None:
    text = pl.Series("text", ["The disk is slow and the link is down", "a disk is slow", None, "the link is down"] * 2)
    column = text.tadoc.compress() if compressed else text
    options: dict[str, Any] = {"lowercase": True, **SMALL.get(name, {})}
    english = tadoc.stop_words("english")
    shown = []
    for words in ("english", english, []):
        made = getattr(tadoc, name)(column, *NEEDED.get(name, ()), stopwords=words, **options)
        if isinstance(made, tadoc.Index):
            made = made.search("the disk is slow", 9)
        if name == "to_csr":
            made = made[0].toarray().tolist(), made[1].to_list()
        shown.append(_plain(made))
    assert shown[0] == shown[1]
    assert shown[0] != shown[2] or name in EQUAL
    with pytest.raises(TypeError, match="is one string"):
        getattr(tadoc, name)(column, *NEEDED.get(name, ()), stopwords="the", **options)
