"""Where phrases occur, and the words around them, against plain Python."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import near_oracle, oracle
from tests.analytic_cases import COLUMN, LABELS
from tests.analytics.cleaning.test_repeats import IMAGES, columns, documents_of, forms


def between(text: str, words: list[str], first: int, stop: int) -> str:
    """The text from one word to before another."""
    spans, at = [], 0
    for word in words:
        start = text.index(word, at)
        at = start + len(word)
        spans.append((start, at))
    own = spans[max(first, 0) : stop]
    return text[own[0][0] : own[-1][1]] if own else ""


@given(
    columns(),
    st.lists(st.sampled_from(["a", "b", "the", "The", "cat", "日"]), min_size=1, max_size=4),
    st.integers(0, 3),
    st.sampled_from(list(IMAGES)),
)
def test_occurrences(rows: list[str | None], words: list[str], window: int, name: str) -> None:
    arguments, image = IMAGES[name]
    wanted = [to for word in words if (to := image(word))]
    of = [near_oracle.occurrences(document, wanted) for document in documents_of(rows, image)]
    expected = [(row, *place) for row, places in enumerate(of) for place in places]
    shown = []
    for row, offset, length in expected:
        text, own = rows[row] or "", oracle.tokenize(rows)[row] or []
        edges = ((offset - window, offset), (offset, offset + length), (offset + length, offset + length + window))
        shown.append((row, offset, *(between(text, own, *edge) for edge in edges)))
    phrase = " ".join(words)
    for column in forms(rows):
        found = column.tadoc.positions(phrase, **arguments)
        assert found.rows() == expected
        assert found.schema == {"id": pl.UInt32, "offset": pl.UInt32, "length": pl.UInt32}
        lines = column.tadoc.concordance(phrase, window=window, **arguments)
        assert lines.rows() == shown
        assert lines.schema == {"id": pl.UInt32, "offset": pl.UInt32} | dict.fromkeys(
            ("left", "match", "right"), pl.String
        )
        frame = column.to_frame("text")
        lists = frame.select(pl.col("text").tadoc.positions(phrase, **arguments)).to_series()
        assert lists.to_list() == [
            None if row is None else [offset for offset, _ in own] for row, own in zip(rows, of, strict=True)
        ]
    lazy = frame.lazy()
    assert lazy.tadoc.positions("text", phrase, **arguments).collect().equals(found)
    assert lazy.tadoc.concordance("text", phrase, window=window, **arguments).collect().equals(lines)


def test_grammars_of_several_tokenizers() -> None:
    """The phrase is cut as each row is."""
    text = pl.Series("text", ["x-y x-y", "say x-y"])
    column = pl.concat([text.tadoc.compress(tokenizer=name) for name in ("whitespace", "words", "whitespace")])
    found = [(0, 0, 1), (0, 1, 1), (1, 1, 1), (2, 0, 2), (2, 2, 2), (3, 1, 2), (4, 0, 1), (4, 1, 1), (5, 1, 1)]
    assert column.tadoc.positions("x-y").rows() == found
    left = ["", "x-y", "say", "", "y", "say", "", "x-y", "say"]
    assert column.tadoc.concordance("x-y", window=1)["left"].to_list() == left


def test_many_occurrences_in_one_row() -> None:
    """The row is read once for all of them."""
    text = pl.Series("text", ["a b " * 20_000])
    for column in (text, text.tadoc.compress()):
        found = column.tadoc.concordance("b a", window=1)
        assert found.height == 19_999
        assert found.row(19_998) == (0, 39_997, "a", "b a", "b")
        assert column.tadoc.positions("a b " * 9_999)["offset"].to_list() == list(range(0, 20_003, 2))


@pytest.mark.parametrize("labels", LABELS)
def test_labels(labels: str) -> None:
    ids, text = LABELS[labels], pl.Series("text", ["a b"] * 10)
    frame = pl.DataFrame({"label": ids, "text": text})
    for call in ("positions", "concordance"):
        got = getattr(text.tadoc, call)("a", id=ids)
        assert got["id"].equals(ids.alias("id"))
        lazy = getattr(frame.lazy().tadoc, call)("text", "a", id="label")
        assert lazy.collect_schema() == got.schema
        assert lazy.collect().equals(got)


@pytest.mark.parametrize("call", ["positions", "concordance"])
def test_arguments(call: str) -> None:
    cases: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        ("", {}, ValueError, f"{call}: phrase has no word: it is empty"),
        ("...", {}, ValueError, f"{call}: the phrase '...' has no word"),
        (None, {}, TypeError, f"{call}: phrase must be a string, not NoneType"),
        ("a", {"lowercase": 1}, TypeError, "lowercase=1"),
    ]
    for phrase, arguments, error, message in cases:
        with pytest.raises(error, match=message):
            getattr(COLUMN.tadoc, call)(phrase, **arguments)
    if call == "concordance":
        with pytest.raises(ValueError, match="window=-1 must be at least 0"):
            COLUMN.tadoc.concordance("a", window=-1)
