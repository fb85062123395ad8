"""XML: rows parted by FF bytes, as text and compressed, held to a parser in plain Python."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import polars as pl

import polars_tadoc as tadoc
from polars_tadoc.kernels.twigs.arrays import Events
from polars_tadoc.kernels.twigs.reference import twig_matches
from polars_tadoc.twig.plain_parser import DocumentError, parse_document
from tests import handmade
from tests.fuzz.target import Target
from tests.twig_oracle import Maker
from tests.xml_strategies import MARKUP

DEPTH = 50

TOKENS = (
    *(token for token in MARKUP if token.strip() and len(token) < 40),
    *("<!ATTLIST b c CDATA 'v'>", "<!ELEMENT a ANY>", "xmlns='u'", " xmlns:p='u'", "<!DOCTYPE a [", "%p;", "]]>"),
    *("encoding='UTF-16'", "\ufeff", "<a>", "</a>", "</b>", "c='v'", "&#x10FFFF;"),
)

QUERIES = {
    "b": "//b",
    "deep": "/a/b//a",
    "p:a": "//p:a[@p:c]",
    "attribute": "//*[@c='v']",
    "text": "//a[text()='x']",
    "both": "//a[b[text()='y, z']]/@c",
}


@cache
def twigs() -> tadoc.TwigSet:
    """Twigs over what rows are likely to hold."""
    return tadoc.TwigSet(QUERIES, namespaces={"p": "u"})


def check(data: bytes) -> bool:
    """Match rows in each form; all of them agree, and what is no document is refused in each."""
    rows = [part.decode(errors="ignore") for part in data.split(b"\xff")]
    expected = [_matches(row) for row in rows]
    text = pl.Series("xml", rows, pl.String)
    compressed = tadoc.compress(text, tokenizer="xml")
    assert tadoc.decompress(compressed).equals(text)
    for column in (text, compressed, _forged(rows)):
        found = column.tadoc.twig_filter(twigs(), max_depth=DEPTH, on_error="null").to_list()
        assert found == expected, f"{rows!r}: {found}, by the definition {expected}"
    words = tadoc.compress(text)
    assert tadoc.decompress(words).equals(text)
    return True


def _matches(row: str) -> list[str] | None:
    """Names of the twigs that match a row; None where it is no document."""
    compiled = twigs()._compiled()
    try:
        events = parse_document(row.encode(), compiled.alphabet, DEPTH)
    except DocumentError:
        return None
    (found,) = twig_matches(compiled.twigs, Events(events, [0, len(events)], DEPTH))
    return [compiled.names[twig] for twig in found]


def _forged(rows: list[str]) -> pl.Series:
    """The same rows, cut where no tokenizer cuts: before every "<" and at odd places."""
    cut = [_cut(row) for row in rows]
    words = sorted({word for row in cut for word in row})
    numbers = {word: number for number, word in enumerate(words)}
    grammar = replace(handmade.grammar(words, gaps=[""], predicted_gaps=[1] * len(words)), tokenizer="xml")
    return handmade.column(grammar, [[numbers[word] for word in row] for row in cut], [b""] * len(rows))


def _cut(row: str) -> list[str]:
    words, start = [], 0
    for at in range(1, len(row) + 1):
        if at == len(row) or row[at] == "<" or (at - start) % 7 == 6:
            words.append(row[start:at])
            start = at
    return words


def seeds() -> list[bytes]:
    """Documents of each kind, whole and broken."""
    maker = Maker(random.Random(5))
    made = [maker.document() for _ in range(25)] + [maker.broken() for _ in range(25)]
    whole = [
        "<!DOCTYPE a [<!ATTLIST b c CDATA 'v'>]><a><b/></a>",
        "<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>",
        "<a>" * 49 + "</a>" * 49,
        "<a>" * 60 + "</a>" * 60,
        "<a>x<b>y, z</b></a>\xff<p:a xmlns:p='u' p:c=''/>",
        "<a><![CDATA[x]]></a>",
        "<a>&#120;</a>",
    ]
    return [row.encode() for row in made] + [row.encode("latin1") for row in whole]


TARGET = Target("xml", check, seeds(), TOKENS, most_bytes=1 << 11)
