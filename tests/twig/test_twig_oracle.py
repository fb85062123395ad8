"""Every engine, text and compressed, against lxml on tens of thousands of pairs of query and document."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

import lxml.etree
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from benchmarks.twig_queries import Sample, Shape
from tests import ROOT, twig_oracle
from tests.twig_oracle import Maker

SHAPES = [Shape(5, 1, 0.1, 0.1), Shape(10, 3, 0.3, 0.3), Shape(15, 6, 0.5, 0.5), Shape(10, 3, 0.1, 0.3, values=0.3)]
FORMS = ["text", "compressed"]


def hold(
    documents: Sequence[str | None],
    queries: Mapping[str, str],
    namespaces: Mapping[str, str],
    engine: str,
    forms: Sequence[str] = FORMS,
) -> int:
    """Hold all queries over all documents to lxml; return how many pairs match."""
    expected = twig_oracle.matches(documents, queries, namespaces)
    text = pl.Series("xml", documents, pl.String)
    for form in forms:
        column = text if form == "text" else tadoc.compress(text, tokenizer="xml")
        got: list[list[str]] = [[] for _ in documents]
        table = tadoc.twig_filter(column, queries, namespaces=namespaces, engine=engine)
        for row, name in zip(table["id"].to_pylist(), table["query"].to_pylist(), strict=True):
            got[row].append(name)
        for document, own, wanted in zip(documents, got, expected, strict=True):
            if own != wanted:
                name = next(name for name in queries if (name in own) != (name in wanted))
                raise AssertionError(f"{form}: {queries[name]!r} matches {document!r} {name in wanted}, by lxml")
    return sum(map(len, expected))


def makes(chance: random.Random, documents: int, queries: int) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Make documents and queries, half of these drawn from the documents."""
    maker = Maker(chance)
    made = [maker.document() for _ in range(documents)]
    asked = [maker.query() for _ in range(queries // 2)]
    sample = Sample(made)
    shape = Shape(chance.choice([2, 4, 8, 20]), chance.choice([0, 1, 3]), 0.3, 0.4, values=0.4, near_misses=0.3)
    drawn = sample.draw(queries - len(asked), shape, chance.randrange(1 << 30))
    names = {f"m{number}": query for number, query in enumerate(asked)}
    return made, names | drawn.queries, twig_oracle.NAMESPACES | drawn.namespaces


@given(st.randoms(use_true_random=False), st.integers(1, 4), st.integers(2, 8))
def test_made_documents(engine: str, chance: random.Random, documents: int, queries: int) -> None:
    hold(*makes(chance, documents, queries), engine)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("queries", [1, 20, 200])
def test_many_made_documents(engine: str, seed: int, queries: int) -> None:
    chance = random.Random(1000 * queries + seed)
    documents, asked, namespaces = makes(chance, 100, queries)
    matched = hold([None, *documents, documents[0], None], asked, namespaces, engine)
    assert queries == 1 or 0.005 < matched / (len(documents) * queries) < 0.9


@pytest.mark.parametrize("form", FORMS)
def test_broken_documents(engine: str, form: str) -> None:
    """What is no XML gives null and nothing else changes."""
    chance = random.Random(1)
    maker = Maker(chance)
    documents = [maker.broken() for _ in range(1500)]
    queries = {f"q{number}": maker.query() for number in range(60)}
    expected: list[list[str] | None] = []
    for document in documents:
        try:
            expected += twig_oracle.matches([document], queries, twig_oracle.NAMESPACES)
        except lxml.etree.XMLSyntaxError:
            expected.append(None)
    text = pl.Series("xml", documents)
    column = text if form == "text" else tadoc.compress(text, tokenizer="xml")
    filtering = {"namespaces": twig_oracle.NAMESPACES, "on_error": "null", "engine": engine}
    got = column.tadoc.twig_filter(queries, **filtering).to_list()
    wrong = [pair for pair in zip(documents, got, expected, strict=True) if pair[1] != pair[2]]
    assert not wrong, wrong[0]
    assert 0.1 < got.count(None) / len(got) < 0.9


@pytest.mark.parametrize("size", [30, 70, 200])
def test_large_twigs(engine: str, size: int) -> None:
    """A twig that fills a word of a node set, and such that need several."""
    chance = random.Random(size)
    documents = []
    while len(documents) < 12:
        made = [Maker(chance).document() for _ in range(2 * size)]
        documents.append("".join(["<a>", *(each for each in made if each[1] not in "?!"), "</a>"]))
    sample = Sample(documents)
    drawn = sample.draw(24, Shape(size, size // 3, 0.1, 0.3, values=0.1, near_misses=0.6), seed=size)
    assert hold(documents, drawn.queries, drawn.namespaces, engine) > len(documents) // 5


@pytest.mark.parametrize(
    ("document", "matching", "other"),
    [
        # the branches of a twig meet in one element: each of two has but one of them
        ("<a><b><c/></b><b><d/></b></a>", ["/a[b/c][b/d]", "/a[.//c]//d"], ["/a/b[c]/d", "//b[c][d]", "/*/*[c]/d"]),
        # of two that are nested, the outer has both below, neither has both as children
        ("<a><b><c/><b><d/></b></b></a>", ["//b[.//c]//d", "//b[c]/b/d"], ["//b[c]/d", "/a/b/b[.//c]//d"]),
        # a branch that is found twice does not stand for another
        ("<a><b><c/><c/></b></a>", ["//b[c]/c"], ["//b[c][d]", "//b[c/d]", "//c[c]"]),
        # what is open when another element begins ends before it
        ("<a><b/><c><d/></c></a>", ["/a[b]/c/d"], ["/a/b/c", "/a/b//d", "//b[.//d]"]),
    ],
)
def test_branches_meet_in_one_element(engine: str, document: str, matching: list[str], other: list[str]) -> None:
    """As the twigs of figure 4 of Absalyamov et al., that filters of paths match when they should not."""
    names = {query: query for query in [*matching, *other]}
    assert hold([document], names, {}, engine) == len(matching)
    assert twig_oracle.matches([document], names) == [matching]


def test_sample_documents(engine: str) -> None:
    plays = pl.read_parquet(ROOT / "examples" / "data" / "xml" / "plays.parquet")
    documents = plays["text"].gather_every(3).to_list()
    sample = Sample(documents[::5])
    for shape in SHAPES:
        drawn = sample.draw(32, shape, seed=shape.nodes)
        assert hold(documents, drawn.queries, drawn.namespaces, engine) > len(documents) // 5


@pytest.mark.parametrize(
    ("name", "rows"), [("xml_acl_papers", 1500), ("xml_exoplanet", 150), ("multi_cldr_annotations", 2)]
)
def test_corpora(corpus: Callable[[str], pl.DataFrame], engine: str, name: str, rows: int) -> None:
    documents = corpus(name)["text"].sample(rows, seed=1).to_list()
    sample = Sample(documents[: max(2, rows // 5)])
    for shape in SHAPES:
        drawn = sample.draw(16, shape, seed=shape.nodes)
        assert hold(documents, drawn.queries, drawn.namespaces, engine) > len(documents) // 5


IN_SUBSET = ["A1", "A2", "A3", "A4", "B7", "FT01", "FT47", "FT58", "FT64", "FT65"]


def test_xpathmark(corpus: Callable[[str], pl.DataFrame], engine: str) -> None:
    """Those of XPathMark's queries that are twigs; all others are refused, and what XPath may not mean, too."""
    documents = dict(corpus("xml_documents").select("name", "text").rows())
    for target, asked in corpus("xml_xpathmark_queries").group_by("target"):
        document = documents[str(target[0])]
        queries = dict(asked.select("query_id", "xpath").rows())
        twigs = {name: query for name, query in queries.items() if name in IN_SUBSET}
        assert hold([document], twigs, {}, engine) == len(twigs)
        for name in queries.keys() - twigs.keys():
            with pytest.raises(tadoc.errors.InvalidTwigError):
                tadoc.TwigSet({name: queries[name]})
