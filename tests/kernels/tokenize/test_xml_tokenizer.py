from __future__ import annotations

import time
from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.kernels.tokenize import reference
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize
from polars_tadoc.kernels.tokenize.xml import xml_words as stage
from tests.analytics.test_text_weights import triples
from tests.handmade import unflatten
from tests.kernels.tokenize.test_tokenize import cut, interleaved, without_unassigned
from tests.strategies import texts
from tests.xml_strategies import glued, near_xml

rows = st.lists(st.one_of(st.none(), glued, near_xml, texts), max_size=6)


def words(text: str) -> list[str]:
    return cut([text], "xml")[1][0]


@given(rows)
def test_matches_reference(rows: list[str | None]) -> None:
    rows = without_unassigned(rows)
    _, words, gaps = cut(rows, "xml")
    assert list(zip(words, gaps, strict=True)) == [reference.tokenize(row or "", "xml") for row in rows]


@given(rows)
def test_words_interleave_with_gaps_to_the_text(rows: list[str | None]) -> None:
    _, words, gaps = cut(rows, "xml")
    assert [interleaved(w, g) for w, g in zip(words, gaps, strict=True)] == [row or "" for row in rows]


@given(rows, st.integers(1, 3))
def test_compresses_without_loss(rows: list[str | None], rows_per_grammar: int) -> None:
    text = pl.Series("xml", rows, pl.String)
    column = tadoc.compress(text, tokenizer="xml", rows_per_grammar=rows_per_grammar)
    assert tadoc.decompress(column).equals(text, null_equal=True)
    known = {} if text.drop_nulls().len() else {"tokenizer": "xml"}  # of no row there is no grammar that knows it
    longer = tadoc.compress(text, like=column, **known)
    assert tadoc.decompress(longer).equals(text, null_equal=True)


@given(rows)
def test_chunks_do_not_show(rows: list[str | None]) -> None:
    expected = cut(rows, "xml")[1:]
    with patch.object(stage, "CHUNK_BYTES", 20):
        assert cut(rows, "xml", threads=2)[1:] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a>to be, or</a>", ["<a>", "to", "be", "or", "</a>"]),
        ("<a b='>' c=\"/>\"/>", ["<a b='>' c=\"/>\"/>"]),
        ("<p><b>x</b ></p\n>", ["<p>", "<b>", "x", "</b >", "</p\n>"]),
        ("<a>AT&amp;T &#38; &#x26; &nbsp;</a>", ["<a>", "AT", "&amp;", "T", "&#38;", "&#x26;", "&nbsp;", "</a>"]),
        ("<a>1 < 2 & 3; &; &#; & b;</a>", ["<a>", "1", "<", "2", "&", "3", "&", "&", "&", "b", "</a>"]),
        ("<a><!-- x > y --> <![CDATA[<b>]]></a>", ["<a>", "<!-- x > y -->", "<![CDATA[<b>]]>", "</a>"]),
        ("<a>]] ]]]> ]]></a>", ["<a>", "]]>", "]]>", "</a>"]),
        ("<a>\x00\x0b\ufffe \uffff\ufffd</a>", ["<a>", "\x00", "\x0b", "\ufffe", "\uffff", "</a>"]),
        ("<a/>, & x<b/>\ty", ["<a/>", ",", "&", "x", "<b/>", "y"]),
        ("</a></a>x, y<a>x, y", ["</a>", "</a>", "x,", "y", "<a>", "x", "y"]),
        ("<?p a?><a><?p a?></a>", ["<?p a?>", "<a>", "<?p a?>", "</a>"]),
        ("<?xml?><?xml-p?><a/>", ["<?xml?>", "<?xml-p?>", "<a/>"]),
        ("<!DOCTYPE a><a/>", ["<!DOCTYPE a>", "<a/>"]),
        (
            "<!DOCTYPE a SYSTEM '>' [<!-- ']> --><!ENTITY e \"]>\"><?p ]>?>] ><a/>",
            ["<!DOCTYPE a SYSTEM '>' [<!-- ']> --><!ENTITY e \"]>\"><?p ]>?>] >", "<a/>"],
        ),
        ("<日本>日本</日本>", ["<日本>", "日", "本", "</日本>"]),
        ("", []),
        (" \n", []),
        ("\ufeff <a/>", ["<a/>"]),
        (" \ufeff<a>\ufeff</a>", ["\ufeff", "<a>", "</a>"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "<a",
        "<a b='>",
        '<a b="<"></a>',
        "<!-- a",
        "<!-->",
        "<!--->",
        "<![CDATA[a]>",
        "<?p >",
        "<?",
        "</a",
        "<1>",
        "< a>",
    ],
)
def test_what_begins_nothing_is_a_word_of_one_character(text: str) -> None:
    assert words(text)[0] == "<"
    assert words(f"<e>{text}")[1] == "<"


@pytest.mark.parametrize("before", [" ", "<a/>", "<a>", "<!-- x -->", "<?p?>", "\ufeff ", "x"])
@pytest.mark.parametrize("declaration", ["<?xml version='1.0'?>", "<?XmL?>", "<?xml?>", "<?xml\n?>"])
def test_an_xml_declaration_is_a_word_only_where_the_row_begins(before: str, declaration: str) -> None:
    assert words(f"{declaration}<a/>") == [declaration, "<a/>"]
    assert words(f"\ufeff{declaration}<a/>") == [declaration, "<a/>"]
    assert declaration not in words(f"{before}{declaration}<a/>")
    assert "<" in words(f"{before}{declaration}<a/>")


@pytest.mark.parametrize("before", ["<a>", "<a/>", "<!DOCTYPE b>", "<a></a>", "<a", "<!DOCTYPE [>"])
def test_a_document_type_is_a_word_only_once_and_before_tags(before: str) -> None:
    doctype = "<!DOCTYPE a>"
    assert doctype in words(f" x <?p?><!-- -->{doctype}")
    assert doctype not in words(f"{before}{doctype}")


UNCLOSED = [
    "<!--",
    "<![CDATA[",
    "<?p",
    "<!DOCTYPE a [",
    "<!DOCTYPE '",
    "<a '",
    "<a",
    "&a",
    "</",
    "]]",
    "<a>&",
    "<",
    "<?xml",
]


@pytest.mark.parametrize("unit", UNCLOSED)
def test_time_is_linear(unit: str) -> None:
    text = pl.Series([unit * (4_000_000 // len(unit))])
    tokenize(pl.Series(["<a/>"]), Tokenizer("xml"))
    begin = time.perf_counter()
    tokenize(text, Tokenizer("xml"), lossless=False)
    assert time.perf_counter() - begin < 5  # a search from each place to the end would take hours


def test_more_words_than_there_is_room_for() -> None:
    rows = ["<a>", "<" * 1000, "&" * 70, None, "<a>" + "&<" * 100_000, "x"]
    with patch.object(stage, "CHUNK_BYTES", 1 << 30):
        assert [len(row) for row in cut(rows, "xml")[1]] == [1, 1000, 1, 0, 200_001, 1]


def test_threads_do_not_show() -> None:
    rows = [f"<r id='{i % 97}'><v>{i % 13} of</v>&amp; 日本{' x' * (i % 31)}</r>\n" * (i % 5) for i in range(6000)]
    one, two = (cut(rows, "xml", threads) for threads in (1, 2))
    assert one[1:] == two[1:]
    assert one[0].vocabulary.equals(two[0].vocabulary)


@settings(max_examples=15)
@given(rows)
def test_text_has_the_weights_of_the_compressed_column(engine: str, rows: list[str | None]) -> None:
    text = pl.Series("xml", rows, pl.String)
    column = tadoc.compress(text, tokenizer="xml")
    plain = triples(tadoc.bm25_weights(text, tokenizer="xml", engine=engine))
    assert plain == triples(tadoc.bm25_weights(column, engine=engine))


def test_rows_are_separated() -> None:
    tokens = tokenize(pl.Series(["<a>x", "y</a>"]), Tokenizer("xml"))
    assert [len(row) for row in unflatten(tokens.sequence)] == [2, 2]
    assert len(tokens.vocabulary) == 4


@pytest.mark.parametrize("rows", [[], [None], [""], [None, "", "<a/>"]])
def test_few_rows(rows: Sequence[str | None]) -> None:
    text = pl.Series("xml", rows, pl.String)
    tokens = tokenize(text, Tokenizer("xml"))
    assert np.count_nonzero(tokens.sequence == 0xFFFFFFFF) == len(rows)
    assert tadoc.decompress(tadoc.compress(text, tokenizer="xml")).equals(text, null_equal=True)
