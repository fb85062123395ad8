"""XPath: queries one a line, held to libxml2 wherever it can read them."""

from __future__ import annotations

import re

import lxml.etree
import polars as pl

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidTwigError
from polars_tadoc.twig.prefixes import XML
from polars_tadoc.twig.tokens import tokens_of
from polars_tadoc.twig.xpath import parse
from tests.fuzz.target import Target, folder
from tests.twig_oracle import NAMESPACES

DOCUMENTS = [
    "<a x='1'><b>v</b><b y='v'><c/>two words<a/></b></a>",
    "<p:a xmlns:p='urn:one' p:x='v'><b xmlns='urn:two/'><c>v</c></b>v</p:a>",
    "<c><a><b><a x='v' y='1'><b/></a></b></a>-</c>",
    "<b/>",
    "<text><and or='div'/><node mod='1'>1</node></text>",
]

TOKENS = (
    *("//", "/", "[", "]", "*", "@", "=", "'", '"', "text()", "text()='v'", ".//", "./", "//*", "[a]", "[@x='1']"),
    *("p:a", "q:b", "a", "b", "c", "x", "y", "xml:lang", "é-1", " ", "child::", "descendant::", "..", "|", " and "),
    *(" or ", "position()", "last()", "not(", "1", "!=", "<=", "$x", "::", ":", "node()", "comment()", "\t"),
)

PREFIXES = {**NAMESPACES, "xml": XML}

_COMPARABLE = re.compile(r"[ -~\n\t]*")
MAX_COMPARED = 1_000
"""Bytes of a query that libxml2 is given, too: it goes only so deep."""


def check(data: bytes) -> bool:
    """Read queries; what is accepted must mean what XPath says."""
    queries: dict[str, str] = {}
    for line in data.decode(errors="replace").split("\n"):
        try:
            twig = parse(line, PREFIXES, "name")
        except InvalidTwigError:
            continue
        assert len(twig.tests) == len(twig.parents) == len(twig.descendants)
        assert all(parent < node for node, parent in enumerate(twig.parents))
        spaced = " ".join(name or other for name, other in tokens_of(line))
        assert parse(spaced, PREFIXES) == twig, line
        queries[str(len(queries))] = line
    if not queries:
        return False
    twigs = tadoc.TwigSet(queries, namespaces=NAMESPACES)
    path = folder() / "twigs.json"
    twigs.save(path)
    assert tadoc.TwigSet.load(path) == twigs
    found = tadoc.twig_filter(pl.Series("xml", DOCUMENTS), twigs)
    matches = set(zip(found["id"].to_pylist(), found["query"].to_pylist(), strict=True))
    for name, query in queries.items():
        if not _COMPARABLE.fullmatch(query) or len(query) > MAX_COMPARED:
            continue
        expected = _matches(query)
        got = [(row, name) in matches for row in range(len(DOCUMENTS))]
        assert got == expected, f"{query!r}: {got}, by libxml2 {expected}"
    return True


def _matches(query: str) -> list[bool]:
    boolean = lxml.etree.XPath(f"boolean({query})", namespaces=NAMESPACES)
    return [bool(boolean(lxml.etree.fromstring(document).getroottree())) for document in DOCUMENTS]


def seeds() -> list[bytes]:
    """Queries of each kind."""
    queries = [
        *("//a[b]/c", "/a/@x", "//p:a[.//q:b]//c", "//*[@x='1'][text()='v']", '//b[@y="v"]/a', "/c//a[b/a[@y]]"),
        *("//a[./b/text()='v']", "//a[b", "a/b", "//", "//a/text()", "//a[b='1']", "//a | //b", "//a[1]", "//@x"),
        "/text/and[@or='div']\n//node[@mod]\n" + "//a" * 40,
        "//a" + "[b" * 30 + "]" * 30,
    ]
    return [query.encode() for query in queries]


TARGET = Target("xpath", check, seeds(), TOKENS, most_bytes=1 << 11)
