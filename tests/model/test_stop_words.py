"""Stop words of languages, and their names wherever stop words are taken."""

from __future__ import annotations

import polars as pl
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
