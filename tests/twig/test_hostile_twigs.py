"""Twigs against documents and payloads that are made to cost much, or to be what no tokenizer gives."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.compress.decompress import Allowance, Sizes
from polars_tadoc.errors import InvalidXmlError
from polars_tadoc.execute import twig_documents
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.twig import tags as stage
from polars_tadoc.twig.tags import parse_tags
from tests.handmade import column, grammar


def compressed(*documents: str) -> pl.Series:
    return tadoc.compress(pl.Series("xml", documents), tokenizer="xml")


@pytest.mark.parametrize("most", [1 << 14, 1 << 20])
def test_a_long_namespace_is_held_once(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "MAX_DECLARING", most)
    uri = "u" * 200_000
    inside = "".join(f"<b{number} c{number}=''/>" for number in range(500))
    column = compressed(f"<a xmlns='{uri}'>{inside}</a>")
    twigs = tadoc.TwigSet({"a": "/p:a/p:b7/@c7", "b": "/a", "c": "//p:b7/@p:c7"}, namespaces={"p": uri})
    tadoc.twig_filter(compressed("<a xmlns='u'><b/></a>", "<a>"), twigs, on_error="null")  # kernels are compiled now
    tracemalloc.start()
    try:
        found = tadoc.twig_filter(column, twigs)
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()
    assert found["query"].to_pylist() == ["a"]


def test_attributes_in_a_long_namespace_are_left_to_a_parser() -> None:
    attributes = "".join(f" p:c{number}=''" for number in range(1_000))
    tag = f"<a xmlns:p='{'u' * 10_000}'{attributes}>".encode()
    assert parse_tags([tag, b"<b>"], {}).sound.tolist() == [False, True]


def test_names_by_namespace() -> None:
    namespaces = {"p": "0", "q": "u", "r": "u", "xml": "http://www.w3.org/XML/1998/namespace"}
    read = parse_tags(
        [
            *(b"<p:a>", b"<q:a>", b"<r:a xmlns:r='u'>", b"<q:a q:c='' r:c=''>", b"<q:a xmlns:r='u' q:c='' r:c=''>"),
            *(b"<a xmlns='0'>", b"<a>", b"<xml:a xml:lang=''>", b"<s:a>", b"<a xmlns='v'>", b"<a xmlns='1'>"),
        ],
        namespaces,
    )
    assert read.sound.tolist() == [True, True, True, False, False, True, True, True, False, True, True]
    names = {number: name for name, number in read.names.items()}
    zero, one = (read.stand_ins[uri] for uri in ("0", "u"))
    xml = namespaces["xml"]
    wanted = [f"{zero}\fa", f"{one}\fa", f"{one}\fa", f"{zero}\fa", "a", f"{xml}\fa", "", ""]
    assert [names[number] for number in read.elements.tolist()] == wanted
    assert sorted(read.declarations) == [2, 3, 6, 7]


TWIGS = tadoc.TwigSet(
    {"b": "//b", "p:b": "/p:a/p:b", "value": "//*[@c='1']", "text": "//a[text()='xyz']"}, namespaces={"p": "u"}
)


def test_long_names_are_not_read_to_their_end() -> None:
    uri = "u" * 1_000_000
    rows = pl.Series([f"<a xmlns='{uri}'>{'<b/>' * 20_000}</a>", "<a xmlns='u'><b/></a>"])
    start = time.perf_counter()
    assert rows.tadoc.twig_filter(TWIGS).to_list() == [[], ["p:b"]]
    assert time.perf_counter() - start < 8  # with the kernels' compilation; 12 s if each name is read


def test_long_default_values_are_not_read_to_their_end() -> None:
    value = "u" * 100_000
    rows = pl.Series(
        [f"<!DOCTYPE a [<!ATTLIST b c CDATA '{value}'>]><a>{'<b/>' * elements}</a>" for elements in (9, 15_000)]
    )
    assert rows.tadoc.twig_filter(TWIGS, on_error="null").to_list() == [["b"], None]
    with pytest.raises(InvalidXmlError, match="row 1: the DOCTYPE expands to default values"):
        rows.tadoc.twig_filter(TWIGS)


@pytest.mark.parametrize("length", [0, 1, 2, 7, 8, 9, 15, 16, 17, 40])
def test_names_about_as_long_as_those_named(length: int) -> None:
    name = "n" * max(length, 1)
    twigs = tadoc.TwigSet({"e": f"//{name}", "a": f"//@{name}", "v": f"//*[@c='{name}']"})
    documents = [
        f"<a><{longer} {longer}='' c='{longer}'/></a>" for longer in (name, f"{name}n", f"{name}nnnnnnnn", "m")
    ]
    assert pl.Series(documents).tadoc.twig_filter(twigs).to_list() == [["e", "a", "v"], [], [], []]


def forged(words: list[str], rows: list[list[int]], bodies: Sequence[Sequence[int]] = (), **gaps: Any) -> pl.Series:
    """A column that no tokenizer cut."""
    return column(replace(grammar(words, bodies, **gaps), tokenizer="xml"), rows)


def test_many_rows_are_measured_together(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    measure = twig_documents.document_sizes

    def counted(corpus: Corpus, allowance: Allowance) -> Sizes:
        calls.append(corpus.document_count)
        return measure(corpus, allowance)

    monkeypatch.setattr(twig_documents, "document_sizes", counted)
    rows = compressed(*(f"<a>{'<b/>' * (number % 3)}</a>" for number in range(3_000)))
    found = rows.tadoc.twig_filter(TWIGS, max_bytes=12, on_error="null").to_list()
    assert found == [[], ["b"], None] * 1_000
    assert calls == [1_000]


def test_a_row_of_too_many_words_is_wrong_by_itself() -> None:
    twigs = {"text": "//a[text()=' xyz ']"}
    doubled = [[2, 2], *([3 + level, 3 + level] for level in range(30))]
    rows = forged(["<a>", "</a>", "xyz"], [[0, 2, 1], [0, 33, 33, 1], [0, 1]], doubled)
    assert rows.tadoc.twig_filter(twigs, max_bytes=1 << 62, on_error="null").to_list() == [["text"], None, []]
    assert rows.tadoc.twig_filter(twigs, on_error="null").to_list() == [["text"], None, []]
    with pytest.raises(InvalidXmlError, match="row 1: decompressing it gives more than 2,147"):
        rows.tadoc.twig_filter(twigs, max_bytes=1 << 62)
    with pytest.raises(InvalidXmlError, match="row 1: it has 17,179,869,192 bytes, more than max_bytes=1,073,741,824"):
        rows.tadoc.twig_filter(twigs)


@pytest.mark.parametrize(
    "words",
    [
        ["<a>", "x<b/>", "</a>"],
        ["<a>", "x", "&#98;<b/>", "</a>"],
        ["<a>", "<![CDATA[]]><b/><![CDATA[]]>", "</a>"],
        ["<a>", "<?p?><b/><?p?>", "</a>"],
        ["<a>", "<!----><b/><!---->", "</a>"],
        ["<a>", "x\x01", "</a>"],
        ["<a>", "x]]", ">", "</a>"],
        ["<a>", "x]]>", "</a>"],
        ["<a>", "", "</a>"],
        ["<a>", "b </a>"],
        ["<a><b/></a>"],
        ["<!DOCTYPE a>", "<a>", "b", "</a>"],
        ["<?xml version='1.0'?>", "<a/>"],
    ],
)
def test_words_that_no_tokenizer_gives(words: list[str]) -> None:
    rows = forged(words, [list(range(len(words)))], gaps=[""], predicted_gaps=[1] * len(words))
    written = pl.Series(["".join(words)])
    assert rows.tadoc.decompress().to_list() == written.to_list()
    found = rows.tadoc.twig_filter(TWIGS, on_error="null").to_list()
    assert found == written.tadoc.twig_filter(TWIGS, on_error="null").to_list()


@pytest.mark.parametrize(
    "gap", ["<b/>", "&lt;", "&", "x", "xyz", "]]>", "\x01", " \ufffe", "<", ", ", "", "]] >", "\ufeff"]
)
def test_gaps_that_no_tokenizer_leaves(gap: str) -> None:
    rows = forged(["<a>", "</a>"], [[0, 1]], gaps=[gap], predicted_gaps=[0, 1])
    written = pl.Series([f"<a>{gap}</a>"])
    assert rows.tadoc.decompress().to_list() == written.to_list()
    found = rows.tadoc.twig_filter(TWIGS, on_error="null").to_list()
    assert found == written.tadoc.twig_filter(TWIGS, on_error="null").to_list()
