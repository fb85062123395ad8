"""Indexes of code: names are kept whole, and their parts are found at the same position."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.index.query import segment_text
from polars_tadoc.kernels.search.reference import decode_list
from polars_tadoc.kernels.tokenize.tokenizer import CODE

TOKENS = [
    "fooBar",
    "foo_bar",
    "foo",
    "Bar",
    "bar.foo",
    "C++",
    "C",
    "c#",
    "getHTTPBar2",
    "a.b.c",
    "HTTP",
    "x",
    "count++",
    "the",
]
TEXT = st.lists(st.sampled_from(TOKENS), max_size=10).map(" ".join)


def positions(text: str, stopwords: frozenset[str], lowercase: bool) -> list[set[str]]:
    """The terms of each word that is not dropped."""
    found = []
    for word in re.findall(CODE, text):
        terms = {word}
        for piece in re.split(r"[._+#]+", word):
            cut = re.split(r"(?<=[^A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", piece)
            terms |= {part for part in (piece, *cut) if len(part) > 1}
        images = {one: one.lower() if lowercase else one for one in terms}
        if images[word] not in stopwords:
            found.append({image for image in images.values() if image not in stopwords})
    return found


@given(data=st.data(), texts=st.lists(TEXT, min_size=1, max_size=6), lowercase=st.booleans(), few=st.booleans())
def test_any_code(engine: str, data: Any, texts: list[str], lowercase: bool, few: bool) -> None:
    stopwords = frozenset(["the", "foo"]) if data.draw(st.booleans()) else frozenset()
    cut = data.draw(st.integers(0, len(texts)))
    column = pl.Series("text", texts)
    first = tadoc.compress(column[:cut], tokenizer="code") if data.draw(st.booleans()) and cut else column[:cut]
    given = {} if first.dtype == tadoc.Text() else {"tokenizer": "code"}
    index = tadoc.build_index(first, lowercase=lowercase, stopwords=stopwords, engine=engine, **given)
    index = index.append(column[cut:]).compact()
    documents = [positions(text, stopwords, lowercase) for text in texts]
    assert index.segments[0].lengths.tolist() == list(map(len, documents))
    (segment,) = index.segments
    wanted: dict[str, dict[int, int]] = {}
    for row, own in enumerate(documents):
        for term, count in Counter(term for position in own for term in position).items():
            wanted.setdefault(term, {})[row] = count
    assert wanted == {
        word: dict(zip(*decode_list(segment.postings, number), strict=True))
        for number, word in enumerate(segment.terms.series)
    }
    phrase = data.draw(
        st.lists(st.sampled_from(["foo", "bar", "FOO", "http", "C++", "fooBar", "the"]), min_size=2, max_size=4)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_text, "FEW_WORDS", 1 << 18 if few else 0)
        found = index.search(f'"{" ".join(phrase)}"', len(texts), engine=engine)["id"].sort().to_list()
    asked = [word.lower() if lowercase else word for word in phrase]
    asked = [word for word in asked if word not in stopwords]
    matching = [
        row
        for row, own in enumerate(documents)
        if asked
        and any(all(w in p for w, p in zip(asked, own[at:], strict=False)) for at in range(len(own) - len(asked) + 1))
    ]
    assert found == matching


def test_names_are_kept_and_parts_are_found(tmp_path: Path) -> None:
    texts = ["std::vector in C++", "plain C", "self.fooBar = foo_bar(a.b.c) ok", "i++ and count++"]
    index = tadoc.build_index(pl.Series("text", texts), tokenizer="code")
    for query, ids in {
        "C++": [0], "c": [1], "fooBar": [2], "bar": [2], "a.b.c": [2], "count": [3], "i": [], "self.foobar": [2],
        '"foo foo_bar a.b.c"': [2], "std::vector": [0], "foo*": [2],
    }.items():  # fmt: skip
        assert index.search(query)["id"].to_list() == ids, query
    assert index.snippets(index.search("bar"), "bar")["snippet"].to_list() == [
        "**self.fooBar** = **foo_bar**(a.b.c) ok"
    ]
    index.save(tmp_path / "index")
    pl.LazyFrame({"text": texts}).tadoc.sink_index(tmp_path / "sunk", "text", tokenizer="code")
    for name in ("index", "sunk"):
        assert tadoc.load_index(tmp_path / name).search("bar").equals(index.search("bar"))
    column = tadoc.compress(pl.Series("text", texts))
    with pytest.raises(TypeError, match='"words"'):
        tadoc.build_index(column, tokenizer="code")
    with pytest.raises(ValueError, match='was cut by tokenizer "words", the index\'s texts by "code"'):
        index.append(column)


def test_text_comes_back() -> None:
    texts = pl.Series("text", ["a.b.c  +=C++;\n", "", None, "x#y ..z. ++"])
    column = texts.tadoc.compress(tokenizer="code")
    assert column.tadoc.decompress().to_list() == texts.to_list()
    words = Counter(word for text in texts.drop_nulls() for word in re.findall(CODE, text))
    assert dict(column.tadoc.word_count().select("word", "count").rows()) == words
