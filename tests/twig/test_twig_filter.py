"""Twig filtering by every call, of text and of compressed columns, against lxml's ``boolean()``."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.errors import (
    ColumnMissingError,
    InvalidTwigError,
    InvalidXmlError,
    NotCompressedError,
)
from polars_tadoc.execute import twig_documents, twig_matches, windows
from polars_tadoc.twig.words import Declarations, JudgedWords
from tests import twig_oracle
from tests.analytic_cases import LABELS
from tests.execute.test_memory_limit import in_batches
from tests.xml_strategies import glued, near_xml

Documents = Sequence[str | None]

TEI = "http://www.tei-c.org/ns/1.0"
NAMESPACES = {"t": TEI, "o": "urn:other"}

DOCUMENTS: list[str | None] = [
    "<a><b/><c/></a>",
    "<a><c x='1'/><c x='2'><b/></c></a>",
    None,
    "<a><b><c/></b></a>",
    '<?xml version="1.0" encoding="iso-8859-1"?>\n<a>é<b>grün &amp; rot</b><b>grün</b></a>',
    "<a><!-- <b/> --><?b <c/>?><![CDATA[<b/>]]></a>",
    "<a><b>one<!-- split -->two</b><b>on<![CDATA[e]]></b></a>",
    f'<TEI xmlns="{TEI}"><text xml:lang="de"><sp who="#a"><p>Ja.</p></sp></text></TEI>',
    f'<t:TEI xmlns:t="{TEI}"><t:text/><text/></t:TEI>',
    f'<a xmlns="{TEI}"><b xmlns="urn:other" xmlns:k="{TEI}" k:x="1"><c xmlns=""/></b></a>',
    '<!DOCTYPE a SYSTEM "a.dtd"><a><b x="1"/></a>',
    '<!DOCTYPE a [<!ATTLIST b x CDATA "preset">]><a><b/></a>',
    "<a>" * 30 + "<b/>" + "</a>" * 30,
    "<ящик цвет='синий'><кот/></ящик>",
    "<r><e1><x/></e1><e1><y/></e1></r>",  # no e1 has both
    "  <a >\n\t<b\n  x = '1&#50;'  ></b ><b>1&lt;2</b></a>  ",
]

QUERIES = {
    "root": "/a",
    "any": "//*",
    "child": "/a/b",
    "descendant": "/a//b",
    "both": "/a[b]/c",
    "nested": "/a[c[b]][.//c/@x='2']",
    "attribute": "//@x",
    "value": '//c[@x="1"]',
    "resolved": "//b[@x='12']",
    "text": '//b[text()="grün & rot"]',
    "text of two words": "//b[text()='1<2']",
    "split": "//b[text()='two']",
    "whole": "//b[text()='onetwo']",
    "joined": "//b[text()='one']",
    "no such word": "//b[text()='zebra']",
    "CDATA": "/a[text()='<b/>']",
    "punctuation": "//*[text()='.']",
    "TEI": "/t:TEI/t:text",
    "no namespace": "//text",
    "language": "//t:text[@xml:lang='de']//t:p[text()='Ja.']",
    "other": "/t:a/o:b[@t:x='1']/c",
    "preset": "//b[@x='preset']",
    "star": "/a/*/c",
    "deep": "/a/a//a/a/b",
    "Russian": "/ящик[@цвет='синий']/кот",
    "never joined from two": "/r/e1[x]/y",
}


def judged(documents: Documents, queries: Mapping[str, str], namespaces: Mapping[str, str] = {}) -> list[Any]:
    """What lxml says: the names that match each document, None for what is null."""
    found = twig_oracle.matches(documents, queries, namespaces)
    return [None if document is None else names for document, names in zip(documents, found, strict=True)]


EXPECTED = judged(DOCUMENTS, QUERIES, NAMESPACES)


def as_text(documents: Documents) -> pl.Series:
    return pl.Series("xml", documents, pl.String)


def as_compressed(documents: Documents) -> pl.Series:
    return as_text(documents).tadoc.compress(tokenizer="xml")


def as_several_grammars(documents: Documents) -> pl.Series:
    return as_text(documents).tadoc.compress(tokenizer="xml", rows_per_grammar=3)


def as_mixed_grammars(documents: Documents) -> pl.Series:
    """Rows of two grammars that alternate, with a row before and after them that is sliced off."""
    padded = pl.Series("xml", ["<before/>", *documents, "<after/>"], pl.String)
    even, odd = (padded.gather_every(2, k).tadoc.compress(tokenizer="xml") for k in (0, 1))
    both = pl.concat([even, odd])
    places = np.argsort(np.concatenate([np.arange(0, len(padded), 2), np.arange(1, len(padded), 2)]))
    return both.gather(places).slice(1, len(documents))


KINDS: dict[str, Callable[[Documents], pl.Series]] = {
    "text": as_text,
    "compressed": as_compressed,
    "several grammars": as_several_grammars,
    "mixed grammars": as_mixed_grammars,
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Callable[[Documents], pl.Series]:
    return KINDS[request.param]


Kind = Callable[[Documents], pl.Series]


def test_equals_lxml(engine: str, kind: Kind) -> None:
    found = kind(DOCUMENTS).tadoc.twig_filter(QUERIES, namespaces=NAMESPACES, engine=engine)
    assert found.dtype == pl.List(pl.String)
    assert found.name == "xml"
    assert found.to_list() == EXPECTED


def test_each_query_by_itself(engine: str, kind: Kind) -> None:
    column = kind(DOCUMENTS)
    for name, query in QUERIES.items():
        found = column.tadoc.twig_filter({name: query}, namespaces=NAMESPACES, engine=engine).to_list()
        assert found == [None if names is None else [name] * (name in names) for names in EXPECTED], name


def test_every_query_matches_somewhere() -> None:
    """But those that are there not to: what only looks as if it held must not match."""
    found = {name for names in EXPECTED if names for name in names}
    assert set(QUERIES) - found == {"no such word", "never joined from two", "whole", "punctuation"}


def test_by_row_as_a_struct(engine: str, kind: Kind) -> None:
    found = kind(DOCUMENTS).tadoc.twig_filter(QUERIES, namespaces=NAMESPACES, as_struct=True, engine=engine)
    assert found.dtype == pl.Struct(dict.fromkeys(QUERIES, pl.Boolean))
    expected = [None if names is None else {name: name in names for name in QUERIES} for names in EXPECTED]
    assert [None if row is None or set(row.values()) == {None} else row for row in found.to_list()] == expected
    assert found.is_null().to_list() == [names is None for names in EXPECTED]
    assert found.struct.field("both").to_list() == [None if names is None else "both" in names for names in EXPECTED]


def pairs(answers: Sequence[Sequence[str] | None], labels: Sequence[Any] | None = None) -> list[tuple[Any, str]]:
    labels = range(len(answers)) if labels is None else labels
    return [(label, name) for label, names in zip(labels, answers, strict=True) for name in names or ()]


@pytest.mark.parametrize("label", [None, *LABELS])
def test_every_call_for_a_table(engine: str, kind: Kind, label: str | None) -> None:
    frame = kind(DOCUMENTS).to_frame()
    named: dict[str, Any] = {}
    labels = None
    if label is not None:
        values = pl.concat([LABELS[label]] * 8).head(frame.height).alias("label")
        frame, labels, named = frame.with_columns(values), values.to_list(), {"id": "label"}
    options: dict[str, Any] = {"namespaces": NAMESPACES, "engine": engine}
    found = frame.tadoc.twig_filter("xml", QUERIES, **named, **options)
    assert found.schema == {"id": pl.UInt32 if label is None else frame.schema["label"], "query": pl.String}
    assert found.rows() == pairs(EXPECTED, labels)
    for memory_limit in (None, "1GB"):
        lazy = frame.lazy().tadoc.twig_filter("xml", QUERIES, **named, **options, memory_limit=memory_limit)
        assert lazy.collect_schema() == found.schema
        assert lazy.collect().equals(found)
        assert lazy.collect(engine="streaming").equals(found)
    values = {} if label is None else {"id": frame["label"]}
    table = tadoc.twig_filter(frame["xml"], QUERIES, **values, **options)
    assert table.schema.field("query").type == pa.dictionary(pa.uint32(), pa.large_string())
    assert pl.DataFrame(table).cast({"query": pl.String})["query"].to_list() == found["query"].to_list()
    assert len(table) == found.height


def test_every_call_by_row(engine: str, kind: Kind) -> None:
    frame = kind(DOCUMENTS).to_frame().with_columns(group=pl.int_range(pl.len()) % 3)
    twigs = pl.col("xml").tadoc.twig_filter(QUERIES, namespaces=NAMESPACES, engine=engine)
    assert frame.lazy().select(twigs).collect_schema() == {"xml": pl.List(pl.String)}
    assert frame.select(twigs)["xml"].to_list() == EXPECTED
    assert frame.lazy().select(twigs).collect(engine="streaming")["xml"].to_list() == EXPECTED
    assert frame.filter(twigs.list.contains("both")).height == sum("both" in (names or ()) for names in EXPECTED)
    grouped = frame.group_by("group", maintain_order=True).agg(twigs)
    assert grouped["xml"].to_list() == [EXPECTED[k::3] for k in range(3)]
    over = frame.select(twigs.list.len().max().over("group"))["xml"]
    assert over.to_list() == [max(len(names or ()) for names in EXPECTED[k % 3 :: 3]) for k in range(len(EXPECTED))]
    whole = pl.col("xml").tadoc.twig_filter(QUERIES, namespaces=NAMESPACES, as_struct=True, engine=engine)
    schema = frame.lazy().select(whole).unnest("xml").collect_schema()
    assert schema == dict.fromkeys(QUERIES, pl.Boolean)
    assert frame.filter(whole.struct.field("both")).height == sum("both" in (names or ()) for names in EXPECTED)
    assert frame.lazy().select(whole).collect(engine="streaming").equals(frame.select(whole))


@pytest.mark.parametrize("documents", [[], [None], [None] * 20])
def test_no_documents(engine: str, kind: Kind, documents: list[None]) -> None:
    column = kind(documents)
    frame = column.to_frame()
    assert column.tadoc.twig_filter(QUERIES, namespaces=NAMESPACES, engine=engine).to_list() == documents
    assert frame.tadoc.twig_filter("xml", {"a": "//a"}, engine=engine).schema == {"id": pl.UInt32, "query": pl.String}
    assert frame.lazy().tadoc.twig_filter("xml", {"a": "//a"}, memory_limit="1GB").collect().height == 0
    struct = column.tadoc.twig_filter({"a": "//a"}, as_struct=True, engine=engine)
    assert struct.is_null().to_list() == [True] * len(documents)


def test_no_queries(engine: str, kind: Kind) -> None:
    column = kind(DOCUMENTS)
    empty = [None if document is None else [] for document in DOCUMENTS]
    assert column.tadoc.twig_filter({}, engine=engine).to_list() == empty
    assert column.to_frame().tadoc.twig_filter("xml", {}, engine=engine).height == 0
    assert column.tadoc.twig_filter({}, as_struct=True, engine=engine).dtype == pl.Struct([])


def test_names_are_any_strings(engine: str, kind: Kind) -> None:
    names = ["", "xml", "^.*$", "наименование 💡", 'a "quoted" one', "*"]
    queries = dict.fromkeys(names, "/a/b")
    column = kind(DOCUMENTS)
    expected = [None if found is None else names * ("child" in found) for found in EXPECTED]
    assert column.tadoc.twig_filter(queries, engine=engine).to_list() == expected
    found = column.to_frame().select(pl.col("xml").tadoc.twig_filter(queries, as_struct=True, engine=engine))
    values = [None if row is None else row["^.*$"] for row in found["xml"].to_list()]
    assert values == [None if row is None else bool(row) for row in expected]
    table = column.to_frame().tadoc.twig_filter("xml", queries, engine=engine)
    assert table.rows() == pairs(expected)


def test_many_queries_on_few_rows_at_a_time(engine: str, kind: Kind) -> None:
    queries = {f"{number}": f"//e{number % 7}[@n='{number % 11}']" for number in range(300)}
    rows = [f"<r><e{k % 7} n='{k % 11}'/><e{(k + 3) % 7} n='1'/></r>" for k in range(90)]
    expected = judged(rows, queries)
    with patch.object(twig_matches, "CELLS", 1000):
        struct = kind(rows).tadoc.twig_filter(queries, as_struct=True, engine=engine)
    assert [[name for name, holds in row.items() if holds] for row in struct.to_list()] == expected
    assert kind(rows).tadoc.twig_filter(queries, engine=engine).to_list() == expected


def test_text_in_blocks(engine: str, kind: Kind) -> None:
    with patch.object(twig_documents, "TEXT_BYTES", 100):
        found = kind(DOCUMENTS).tadoc.twig_filter(QUERIES, namespaces=NAMESPACES, engine=engine)
    assert found.to_list() == EXPECTED


@given(
    cuts=st.lists(st.integers(0, len(DOCUMENTS)), max_size=5), streaming=st.booleans(), own=st.sampled_from([*KINDS])
)
def test_memory_limit(engine: str, cuts: list[int], streaming: bool, own: str) -> None:
    plan = in_batches(KINDS[own](DOCUMENTS).to_frame(), cuts)
    lazy = plan.tadoc.twig_filter("xml", QUERIES, namespaces=NAMESPACES, engine=engine, memory_limit="1GB")
    with patch.multiple(windows, ROWS_SHARE=1 << 62, TEXT_SHARE=1 << 62):
        found = lazy.collect(engine="streaming" if streaming else "in-memory")
    assert found.rows() == pairs(EXPECTED)


def test_rows_chosen_before(engine: str) -> None:
    frame = as_several_grammars(DOCUMENTS).to_frame().with_row_index()
    options: dict[str, Any] = {"namespaces": NAMESPACES, "engine": engine}
    chosen = {
        "slice": (frame.slice(4, 7), range(4, 11)),
        "filter": (frame.filter(pl.col("index") % 2 == 1), range(1, len(DOCUMENTS), 2)),
        "reverse": (frame.reverse(), reversed(range(len(DOCUMENTS)))),
        "concat": (pl.concat([frame, frame.head(3)]), [*range(len(DOCUMENTS)), 0, 1, 2]),
        "sample": (frame.sample(9, seed=1), frame.sample(9, seed=1)["index"]),
    }
    for rows, places in chosen.values():
        answers = [EXPECTED[place] for place in places]
        assert rows["xml"].tadoc.twig_filter(QUERIES, **options).to_list() == answers
        assert rows.tadoc.twig_filter("xml", QUERIES, **options).rows() == pairs(answers)


def test_packed_files(engine: str, tmp_path: Path) -> None:
    as_several_grammars(DOCUMENTS).to_frame().with_row_index().tadoc.write_packed(tmp_path / "a.parquet")
    plan = tadoc.scan_packed(tmp_path / "a.parquet")
    lazy = plan.tadoc.twig_filter("xml", QUERIES, namespaces=NAMESPACES, engine=engine, memory_limit="1GB")
    assert lazy.collect().rows() == pairs(EXPECTED)


def test_a_filter_pushed_into_a_source(engine: str, tmp_path: Path) -> None:
    as_compressed(DOCUMENTS).to_frame().tadoc.write_packed(tmp_path / "a.parquet")
    twigs = pl.col("xml").tadoc.twig_filter(QUERIES, namespaces=NAMESPACES, engine=engine)
    kept = tadoc.scan_packed(tmp_path / "a.parquet").filter(twigs.list.contains("child")).collect()
    expected = [doc for doc, names in zip(DOCUMENTS, EXPECTED, strict=True) if names and "child" in names]
    assert kept["xml"].tadoc.decompress().to_list() == expected


def test_an_expression_can_be_pickled() -> None:
    twigs = tadoc.TwigSet(QUERIES, namespaces=NAMESPACES)
    expression = pickle.loads(pickle.dumps(pl.col("xml").tadoc.twig_filter(twigs, engine="cpu")))
    assert as_text(DOCUMENTS).to_frame().select(expression)["xml"].to_list() == EXPECTED
    plan = as_text(DOCUMENTS).to_frame().lazy().select(expression)
    assert pl.LazyFrame.deserialize(BytesIO(plan.serialize())).collect()["xml"].to_list() == EXPECTED


WRONG = {
    "unclosed": ("<a><b></a>", "mismatched tag"),
    "empty": ("", "no element found"),
    "text only": ("plain", "syntax error"),
    "two roots": ("<a/><a/>", "junk after document element"),
    "undeclared prefix": ("<x:a/>", "unbound prefix"),
    "undeclared entity": ("<a>&b;</a>", "undefined entity"),
    "control": ("<a>\x01</a>", "not well-formed"),
    "attribute twice": ("<a b='1' b='2'/>", "duplicate attribute"),
    "less in a value": ("<a b='<'/>", "not well-formed"),
    "space before the declaration": (" <?xml version='1.0'?><a/>", "not at start"),
    "end of CDATA in text": ("<a>]]></a>", "not well-formed"),
    "billion laughs": ('<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]><a>&d;</a>', "entit"),
    "external": ('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', "entit"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_row_that_is_no_xml(engine: str, kind: Kind, name: str) -> None:
    wrong, why = WRONG[name]
    rows = ["<a/>", None, "<b/>", wrong, "<a><b/></a>"]
    column = kind(rows)
    twigs = {"a": "/a", "b": "//b"}
    with pytest.raises(InvalidXmlError, match=rf'^column "xml", row 3: .*{why}.*; on_error="null" skips'):
        column.to_frame().tadoc.twig_filter("xml", twigs, engine=engine)
    expected = [["a"], None, ["b"], None, ["a", "b"]]
    assert column.tadoc.twig_filter(twigs, on_error="null", engine=engine).to_list() == expected
    table = column.to_frame().tadoc.twig_filter("xml", twigs, on_error="null", engine=engine)
    assert table.rows() == pairs(expected)
    struct = column.tadoc.twig_filter(twigs, as_struct=True, on_error="null", engine=engine)
    assert struct.is_null().to_list() == [False, True, False, True, False]


def test_errors_name_the_row_of_the_frame(engine: str, kind: Kind) -> None:
    rows: list[str | None] = ["<a/>"] * 40
    rows[17], rows[20] = None, "<a>"
    column = kind(rows)
    found = r'^column "xml", row 20: .*no element found.*\(line 1, column 4\)'
    with patch.object(twig_documents, "TEXT_BYTES", 20), pytest.raises(InvalidXmlError, match=found):
        column.tadoc.twig_filter({"a": "/a"}, engine=engine)
    plan = in_batches(column.to_frame(), [7, 9, 22])
    with pytest.raises(InvalidXmlError, match=found):
        plan.tadoc.twig_filter("xml", {"a": "/a"}, engine=engine).collect()
    with (
        patch.multiple(windows, ROWS_SHARE=1 << 62, TEXT_SHARE=1 << 62),
        pytest.raises(InvalidXmlError, match=found),
    ):
        plan.tadoc.twig_filter("xml", {"a": "/a"}, engine=engine, memory_limit="1GB").collect()
    whole = column.rechunk().to_frame()
    with pytest.raises(InvalidXmlError, match=r"row 20: .*; row numbers count within the 40 rows that Polars passed"):
        whole.select(pl.col("xml").tadoc.twig_filter({"a": "/a"}, engine=engine))


def test_max_depth(engine: str, kind: Kind) -> None:
    rows = ["<a>" * depth + "</a>" * depth for depth in (1, 2, 3, 4, 5)]
    column = kind(rows)
    found = column.tadoc.twig_filter({"a": "//a"}, max_depth=3, on_error="null", engine=engine)
    assert found.to_list() == [["a"]] * 3 + [None] * 2
    with pytest.raises(InvalidXmlError, match=r'column "xml", row 3: .*max_depth=3'):
        column.tadoc.twig_filter({"a": "//a"}, max_depth=3, engine=engine)


def test_ten_thousand_levels(engine: str, kind: Kind) -> None:
    rows = ["<a>" * depth + "<b/>" + "</a>" * depth for depth in (9_998, 9_999, 10_000)]
    found = kind(rows).tadoc.twig_filter({"b": "/a/a//b", "c": "//c"}, on_error="null", engine=engine)
    assert found.to_list() == [["b"], ["b"], None]


def test_max_bytes(engine: str, kind: Kind) -> None:
    rows = ["<a>" + "x" * size + "</a>" for size in (0, 1, 2, 3, 50)]
    column = kind(rows)
    found = column.tadoc.twig_filter({"a": "/a"}, max_bytes=9, on_error="null", engine=engine)
    assert found.to_list() == [["a"]] * 3 + [None] * 2
    with pytest.raises(InvalidXmlError, match=r'column "xml", row 3: .*max_bytes=9'):
        column.tadoc.twig_filter({"a": "/a"}, max_bytes=9, engine=engine)


def test_max_bytes_counts_what_stood_between_words(engine: str, kind: Kind) -> None:
    rows = [f"<a>{' ' * spaces}x</a>" for spaces in range(40)]
    found = kind(rows).tadoc.twig_filter({"a": "/a"}, max_bytes=20, on_error="null", engine=engine)
    assert found.null_count() == sum(len(row) > 20 for row in rows)


def test_only_rows_that_need_it_are_decompressed(engine: str) -> None:
    rows = ["<a><b>one two</b></a>", "<a><b>one</b></a>", "<a><b>three</b></a>", "<a><c/>one</a>"] * 5
    column = as_compressed(rows)
    written: list[int] = []
    write = twig_documents.write_texts

    def counted(corpora: Any, *rest: Any) -> pl.Series:
        written.extend(corpus.document_count for corpus in corpora)
        return write(corpora, *rest)

    with patch.object(twig_documents, "write_texts", counted):
        assert (
            column.tadoc.twig_filter({"b": "/a/b", "c": "//c"}, engine=engine).to_list()
            == [["b"]] * 3 + [["c"]] + ([["b"]] * 3 + [["c"]]) * 4
        )
        assert written == []
        twigs = {"one": "//b[text()='one']", "four": "//b[text()='four']"}
        assert column.tadoc.twig_filter(twigs, engine=engine).to_list() == [[], ["one"], [], []] * 5
    assert sum(written) == 10


def test_texts_joined_by_spaces(engine: str) -> None:
    """What a column that was compressed without gaps gives back is what is filtered."""
    rows = ["<a><b>one, two</b></a>", "<a><b>one</b><c/></a>"]
    column = as_text(rows).tadoc.compress(tokenizer="xml", lossless=False)
    twigs = {"tight": "//b[text()='one']", "loose": "//b[text()=' one ']", "two": "//b[text()=' one two ']", "c": "//c"}
    expected = judged(column.tadoc.decompress().to_list(), twigs)
    assert column.tadoc.twig_filter(twigs, engine=engine).to_list() == expected == [["two"], ["loose", "c"]]


def test_words_are_looked_at_once(engine: str) -> None:
    rows = [f"<a><b{k % 3}/>{'<c/>' * (k < 9)}</a>" for k in range(30)]
    column = pl.concat([as_compressed(rows[:9]), as_compressed(rows[9:])])
    twigs = tadoc.TwigSet({"one": "//b1"})
    made: list[Any] = []
    judge, events, declare = JudgedWords.of, JudgedWords.events, Declarations.of

    def declarations(*arguments: Any) -> Any:
        made.append("declarations")
        return declare(*arguments)

    def judged_words(*arguments: Any) -> Any:
        made.append("words")
        return judge(*arguments)

    def word_events(*arguments: Any) -> Any:
        made.append("events")
        return events(*arguments)

    twig_documents._words.clear()
    with (
        patch.object(JudgedWords, "of", judged_words),
        patch.object(JudgedWords, "events", word_events),
        patch.object(Declarations, "of", declarations),
    ):
        for _ in range(3):
            column.tadoc.twig_filter(twigs, engine=engine)
        grammars = made.count("words")
        assert len(made) == 3 * grammars == 6
        twigs.add("two", "//b2")
        found = column.tadoc.twig_filter(twigs, engine=engine)
        assert (made.count("words"), made.count("events")) == (grammars, 2 * grammars)
    assert found.to_list() == judged(rows, {"one": "//b1", "two": "//b2"})
    with tadoc.Config(host_cache_bytes=0, device_cache_bytes=0):
        assert column.tadoc.twig_filter(twigs, engine=engine).to_list() == found.to_list()
        assert twig_documents._words.nbytes == 0


def test_a_set_that_changes(engine: str, kind: Kind) -> None:
    column = kind(DOCUMENTS)
    twigs = tadoc.TwigSet({"b": "//b"}, namespaces=NAMESPACES)
    plan = column.to_frame().lazy().tadoc.twig_filter("xml", twigs, engine=engine)
    by_row = pl.col("xml").tadoc.twig_filter(twigs, engine=engine)
    for name, query in QUERIES.items():
        twigs.add(name, query)
    twigs.remove("b")
    assert column.tadoc.twig_filter(twigs, engine=engine).to_list() == EXPECTED
    only_b = judged(DOCUMENTS, {"b": "//b"})
    assert plan.collect().rows() == pairs(only_b)  # as it was when the call was made
    assert column.to_frame().select(by_row)["xml"].to_list() == only_b
    for name in [*QUERIES][::2]:
        twigs.remove(name)
    kept = [None if names is None else [name for name in names if name in [*QUERIES][1::2]] for names in EXPECTED]
    assert column.tadoc.twig_filter(twigs, engine=engine).to_list() == kept


def test_calls_at_the_same_time(engine: str, kind: Kind) -> None:
    column = kind(DOCUMENTS * 5)
    twigs = tadoc.TwigSet(QUERIES, namespaces=NAMESPACES)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: column.tadoc.twig_filter(twigs, engine=engine).to_list(), range(12)))
    assert found == [EXPECTED * 5] * 12


@given(rows=st.lists(near_xml | glued | st.sampled_from(DOCUMENTS), min_size=1, max_size=12))
def test_compressed_as_text(engine: str, rows: list[str | None]) -> None:
    """Well-formed or not: the rules find out which rows a parser has to look at."""
    queries = {
        **QUERIES,
        "no prefix": "//a[@c='v'][.//b]",
        "prefix": "//o:a[@o:c='v']",
        "words": "//*[text()='y z']",
        "reference": "//*[text()='A']",
        "space": "//*[text()=' ']",
    }
    twigs = tadoc.TwigSet(queries, namespaces={**NAMESPACES, "o": "u"})
    expected = as_text(rows).tadoc.twig_filter(twigs, on_error="null", engine=engine)
    assert as_compressed(rows).tadoc.twig_filter(twigs, on_error="null", engine=engine).equals(expected)


SETS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "xml_exoplanet": (
        {
            "binary": "/system/binary/star/planet",
            "named": "/system//planet[name][mass]/radius",
            "errors": "//*[@errorplus][@errorminus]",
            "transit": "//planet[discoverymethod[text()='transit']]",
            "two names": "/system[declination]/star[name]//planet[.//name]/discoveryyear",
            "year": "//discoveryyear[text()='2016']",
            "list": "//list[text()='Confirmed planets']",
        },
        {},
    ),
    "xml_acl_papers": (
        {
            "titled": "/paper/title//fixed-case",
            "authors": "//author[first][last]/@id",
            "year": "//year[text()='2019']",
            "pages": "/paper[pages][doi]/url",
            "hash": "//url[@hash]",
            "none": "/paper/editor/author",
        },
        {},
    ),
    "xml_rusdracor": (
        {
            "speech": "/t:TEI//t:sp[t:speaker][t:p]",
            "stage": "//t:sp[.//t:stage]/t:l",
            "language": "/t:TEI[@xml:lang='ru']",
            "cast": "//t:castList/t:castItem[t:role]",
            "no namespace": "//sp",
        },
        {"t": TEI},
    ),
    "multi_cldr_annotations": (
        {
            "heart": "/ldml/annotations/annotation[@cp='❤'][@type='tts']",
            "version": "//version[@number]",
            "language": "/ldml/identity[language[@type='de']]",
            "tts": "//annotations[annotation[@type='tts']]/annotation",
            "text": "//annotation[text()='herz']",
            "none": "/ldml/dates",
        },
        {},
    ),
    "xml_documents": (
        {
            "items": "/site/regions/*/item[payment]//keyword",
            "bids": "//open_auction[bidder/personref/@person]/itemref",
            "cash": "//item[quantity[text()='1']]",
            "root": "/*",
        },
        {},
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_real_documents(engine: str, kind: Kind, name: str, corpus: Callable[[str], pl.DataFrame]) -> None:
    text = corpus(name)["text"]
    few = text.filter(text.str.len_bytes().cum_sum() <= 400_000)
    rows = (few if len(few) else text.gather(text.str.len_bytes().arg_sort().head(2))).to_list()[:150]
    queries, namespaces = SETS[name]
    found = kind(rows).tadoc.twig_filter(queries, namespaces=namespaces, engine=engine)
    assert found.to_list() == judged(rows, queries, namespaces)


def test_wrong_columns(engine: str) -> None:
    frame = pl.DataFrame({"xml": ["<a/>"], "year": [1]}).with_columns(words=pl.col("xml").tadoc.compress())
    for held in (frame, frame.lazy()):
        with pytest.raises(NotCompressedError, match=r'^twig_filter: column "year" is Int64, neither String nor'):
            held.tadoc.twig_filter("year", {"a": "/a"})
        with pytest.raises(ColumnMissingError, match=r'^twig_filter: there is no column "xm"; did you mean "xml"'):
            held.tadoc.twig_filter("xm", {"a": "/a"})
        with pytest.raises(TypeError, match="name the column by a string"):
            held.tadoc.twig_filter(pl.col("xml"), {"a": "/a"})
    cut = r'^twig_filter: column "words" \(.*\) has tokenizer "words", .*\.tadoc\.compress\(tokenizer="xml"\), or '
    with pytest.raises(TypeError, match=cut):
        frame.tadoc.twig_filter("words", {"a": "/a"}, engine=engine)
    with pytest.raises(TypeError, match=cut):
        frame["words"].tadoc.twig_filter({"a": "/a"}, engine=engine)
    with pytest.raises(TypeError, match=cut):
        frame.lazy().tadoc.twig_filter("words", {"a": "/a"}, engine=engine, memory_limit="1GB").collect()
    with pytest.raises(TypeError, match="twig_filter takes a Polars Series, not DataFrame"):
        tadoc.twig_filter(frame, {"a": "/a"})
    with pytest.raises(NotCompressedError, match="neither String nor"):
        frame.select(pl.col("year").tadoc.twig_filter({"a": "/a"}))


def test_the_column_comes_first(engine: str) -> None:
    queries = {"a": "/a"}
    frame = pl.DataFrame({"xml": ["<a/>"], "lists": [["<a/>"]], "fields": [{"xml": "<a/>"}]})
    small = frame.select(small=pl.col("xml").tadoc.compress(tokenizer="xml"))
    for held in (frame, frame.lazy()):
        for wrong in ((queries,), ("xml",), (queries, "xml"), (tadoc.TwigSet(queries),), ()):
            with pytest.raises(
                TypeError, match=r'^twig_filter: the column is missing .* twig_filter\("xml", queries\)'
            ):
                held.tadoc.twig_filter(*wrong)
        with pytest.raises(
            NotCompressedError, match=r'no TADOC column; name the column: twig_filter\("xml", queries\)'
        ):
            held.tadoc.twig_filter(queries=queries)
        for name, mended in (("lists", '.list.join(" ")'), ("fields", '.struct.field("…")')):
            with pytest.raises(NotCompressedError) as caught:
                held.tadoc.twig_filter(name, queries)
            assert str(caught.value).endswith(f'TADOC column; convert it to strings: pl.col("{name}"){mended}')
    assert small.tadoc.twig_filter(queries=queries, engine=engine).rows() == [(0, "a")]
    assert small.lazy().tadoc.twig_filter(queries=queries, engine=engine).collect().rows() == [(0, "a")]
    with pytest.raises(TypeError, match="not Series; the column comes first"):
        tadoc.twig_filter(queries, frame["xml"])
    for passed, advised in ((frame, 'df.tadoc.twig_filter("text", queries)'), (pl.col("xml"), ".twig_filter(queries)")):
        with pytest.raises(TypeError, match=re.escape(advised)):
            tadoc.twig_filter(passed, queries)


@pytest.mark.parametrize("queries", [["//a"], "//a", None, 3])
def test_queries_are_a_mapping_or_a_set(queries: Any) -> None:
    message = f"twig_filter: queries are a mapping of names to XPath, .*, or a TwigSet, not {type(queries).__name__}"
    for call in (
        lambda: tadoc.twig_filter(as_text(["<a/>"]), queries),
        lambda: as_text(["<a/>"]).tadoc.twig_filter(queries),
        lambda: pl.col("xml").tadoc.twig_filter(queries),
    ):
        with pytest.raises(TypeError, match=message):
            call()


def test_wrong_arguments() -> None:
    column = as_text(["<a/>"])
    twigs = tadoc.TwigSet({"a": "/a"})
    for wrong, error, message in (
        ({"on_error": "ignore"}, ValueError, 'on_error=\'ignore\': use "raise" or "null"'),
        ({"max_depth": 0}, ValueError, "max_depth=0 must be at least 1"),
        ({"max_depth": 1.5}, TypeError, "max_depth=1.5 must be an integer"),
        ({"max_bytes": 0}, ValueError, "max_bytes=0 must be at least 1"),
        ({"max_bytes": "1GB"}, TypeError, "must be an integer"),
        ({"engine": "abacus"}, ValueError, "engine='abacus'"),
        ({"namespaces": {"x": "urn:x"}}, TypeError, "namespaces= is for queries in a mapping; a TwigSet has its own"),
    ):
        for call in (column.tadoc.twig_filter, pl.col("xml").tadoc.twig_filter):
            with pytest.raises(error, match=message):
                call(twigs, **wrong)
        with pytest.raises(error, match=message):
            column.to_frame().lazy().tadoc.twig_filter("xml", twigs, **wrong)
    with pytest.raises(TypeError, match="twig_filter: as_struct=1 must be True or False"):
        column.tadoc.twig_filter(twigs, as_struct=1)
    with pytest.raises(ValueError, match="id has 2 labels for 1 row"):
        tadoc.twig_filter(column, twigs, id=pl.Series([1, 2]))
    with pytest.raises(InvalidTwigError):
        column.tadoc.twig_filter({"a": "a"})
    with pytest.raises(InvalidTwigError):
        pl.col("xml").tadoc.twig_filter({"a": "//p:a"})


def test_engines_agree() -> None:
    tadoc.testing.assert_engines_agree(
        lambda engine: (
            as_compressed(DOCUMENTS).to_frame().tadoc.twig_filter("xml", QUERIES, namespaces=NAMESPACES, engine=engine)
        )
    )
