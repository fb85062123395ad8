"""Sets of twigs: what is added and removed, in whatever order, leaves the arrays of the twigs that are there."""

from __future__ import annotations

import copy
import ctypes
import json
import pickle
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lxml.etree
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from polars_tadoc.engine.choose import CPU
from polars_tadoc.errors import InvalidTwigError, InvalidTwigSetError, TwigMissingError
from polars_tadoc.kernels.host.xml.xml_names import ENTRY
from polars_tadoc.kernels.twigs.arrays import CLOSE, NO_ENTRY, NO_NODE, OTHER, Events, Twigs
from polars_tadoc.kernels.twigs.reference import twig_matches
from polars_tadoc.twig.alphabet import FIRST_SYMBOL, Alphabet
from polars_tadoc.twig.compiled import CompiledTwigs
from polars_tadoc.twig.name_table import Names
from polars_tadoc.twig.twig import NO_PARENT, Twig
from polars_tadoc.twig.twig_set import TwigSet
from polars_tadoc.twig.xpath import parse

NAMESPACES = {"p": "urn:p"}

Tree = tuple[bool, tuple[Any, ...], frozenset[Any]]


def nodes_in(words: Any) -> set[int]:
    """Return the nodes whose bits are set."""
    bits = np.unpackbits(np.atleast_1d(words).astype("<u8").view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits).tolist())


def own_nodes(twigs: Twigs, symbol: int) -> set[int]:
    """Return the nodes that a symbol's entries list; it has one entry a word."""
    nodes: set[int] = set()
    words: set[int] = set()
    entry = int(twigs.heads[symbol])
    while entry != NO_ENTRY:
        word = int(twigs.entry_words[entry])
        assert word not in words
        assert twigs.entry_bits[entry] != 0
        words.add(word)
        nodes |= {64 * word + bit for bit in nodes_in(twigs.entry_bits[entry])}
        entry = int(twigs.entry_next[entry])
    return nodes


def tree_of(twig: Twig) -> Tree:
    """Return a twig as nested tuples, from its definition."""
    children: list[set[Tree]] = [set() for _ in twig.tests]
    for node in range(len(twig) - 1, -1, -1):
        tree = (twig.descendants[node], tuple(twig.tests[node]), frozenset(children[node]))
        if twig.parents[node] == NO_PARENT:
            return tree
        children[twig.parents[node]].add(tree)
    raise AssertionError("a twig has a root")


def trees_in(compiled: CompiledTwigs) -> dict[str, Tree]:
    """Return the twigs by name as nested tuples, from the arrays alone."""
    twigs, tests = compiled.twigs, asked_by_symbol(compiled.alphabet)
    asked: dict[int, tuple[Any, ...]] = {}
    for symbol, test in tests.items():
        for node in own_nodes(twigs, symbol):
            assert node not in asked, "a node has one name test"
            asked[node] = test
    descendants, leaves = nodes_in(twigs.descendants), nodes_in(twigs.leaves)

    def tree(node: int) -> Tree:
        return node in descendants, asked[node], frozenset(map(tree, children_in(twigs, leaves, node)))

    return {name: tree(int(root)) for name, root in zip(compiled.names, twigs.roots, strict=True)}


def children_in(twigs: Twigs, leaves: set[int], node: int) -> list[int]:
    """Return a node's children, as the arrays define them."""
    children = [] if node in leaves else [node + 1]
    while children and (following := int(twigs.siblings[children[-1]])) != NO_NODE:
        children.append(following)
    return children


def asked_by_symbol(alphabet: Alphabet) -> dict[int, tuple[Any, ...]]:
    tests: dict[int, tuple[Any, ...]] = {OTHER: ("any", "", "", None)}
    tests |= {symbol: ("element", *name, None) for name, symbol in alphabet.elements.items()}
    tests |= {symbol: ("attribute", *name, None) for name, symbol in alphabet.attributes.items()}
    tests |= {symbol: ("attribute", *name) for name, symbol in alphabet.attribute_values.items()}
    tests |= {symbol: ("text", "", "", text) for text, symbol in alphabet.texts.items()}
    return tests


def check(twig_set: TwigSet, expected: Mapping[str, str]) -> None:
    """Hold a set to the queries that it should have."""
    compiled = twig_set._compiled()
    twigs, alphabet = compiled.twigs, compiled.alphabet
    parsed = {name: parse(query, twig_set.namespaces, name) for name, query in expected.items()}
    assert dict(twig_set) == dict(expected)
    assert compiled.names == tuple(expected)
    assert trees_in(compiled) == {name: tree_of(twig) for name, twig in parsed.items()}
    assert compiled.text_twigs.tolist() == [any(one.kind == "text" for one in twig.tests) for twig in parsed.values()]
    check_names(alphabet)
    if twig_set._unused:  # nobody asks for them any more, but they are there
        assert 2 * len(twig_set._unused) <= len(twig_set._planted)
        twig_set.add("of its own", "//of/its[own]")
        twig_set.remove("of its own")
        compiled = twig_set._compiled()
        assert trees_in(compiled) == {name: tree_of(twig) for name, twig in parsed.items()}
        twigs, alphabet = compiled.twigs, compiled.alphabet
        check_names(alphabet)
    check_arrays(twigs, alphabet)
    check_places(twigs, list(parsed.values()))


def check_names(alphabet: Alphabet) -> None:
    """Hold the kernels' table of names to one made anew."""
    names = alphabet.names()
    again = Alphabet(
        alphabet.elements, alphabet.attributes, alphabet.attribute_values, alphabet.texts, alphabet.symbol_count
    ).names()
    assert names.has_attributes == again.has_attributes == bool(alphabet.attributes or alphabet.attribute_values)
    assert names.most_text >= again.most_text
    assert names_in(names) == names_in(again)


def names_in(names: Names) -> dict[int, bytes]:
    """Return what a table has by symbol."""
    entries = names.table.reshape(-1, ENTRY).tolist()
    return {meaning & 0xFFFFFFFF: ctypes.string_at(key) for key, _, _, meaning in entries if meaning & 0xFFFFFFFF}


def check_arrays(twigs: Twigs, alphabet: Alphabet) -> None:
    """What kernels rely on, beyond the trees."""
    dtypes = [array.dtype for array in twigs[1:]]
    expected = ["uint32", "uint8", "uint32", "uint64", "uint32", "uint64", "uint64", "uint64", "uint32", "uint32"]
    assert dtypes == expected
    assert [len(array) for array in twigs[6:9]] == [twigs.words] * 3
    assert len(twigs.siblings) == 64 * twigs.words >= 64
    tests = asked_by_symbol(alphabet)
    assert len(tests) == 1 + sum(map(len, (alphabet.elements, alphabet.attributes, alphabet.attribute_values))) + len(
        alphabet.texts
    )
    assert all(OTHER <= symbol < alphabet.symbol_count == len(twigs.heads) for symbol in tests)
    used: set[int] = set()
    for symbol in range(len(twigs.heads)):
        own = own_nodes(twigs, symbol)
        assert bool(own) == (symbol in tests) or symbol == OTHER, "symbols are those that twigs ask for"
        assert twigs.elements[symbol] == (symbol in tests and tests[symbol][0] in ("element", "any"))
        used |= own
    leaves, descendants, branches = map(nodes_in, twigs[6:9])
    assert leaves | descendants | branches <= used, "bits of removed twigs are cleared"
    assert not leaves & branches
    assert branches == {node for node in used if len(children_in(twigs, leaves, node)) > 1}
    assert {int(node) for node in np.flatnonzero(twigs.siblings)} <= used


def check_places(twigs: Twigs, parsed: list[Twig]) -> None:
    """No twig straddles, and twigs that are equal share their nodes, no others."""
    ranges: dict[int, Twig] = {}
    for root, twig in zip(twigs.roots.tolist(), parsed, strict=True):
        assert ranges.setdefault(root, twig) == twig
        last = root + len(twig) - 1
        if len(twig) <= 32:
            assert root // 32 == last // 32
        else:
            assert root % 64 == 0
        assert last < 64 * twigs.words
    assert len(ranges) == len(set(parsed))
    previous = -1
    for root, twig in sorted(ranges.items(), key=lambda item: item[0]):
        assert root > previous
        previous = root + len(twig) - 1


NAMES = st.sampled_from(["a", "b", "c", "p:d", "*"])
VALUES = st.sampled_from(["v", "w", ""])
LEAVES = st.one_of(
    st.sampled_from(["@a", "@p:b"]),
    VALUES.map(lambda value: f"@a='{value}'"),
    VALUES.map(lambda value: f"text()='{value}'"),
)
SLASHES = st.sampled_from(["/", "//"])


def paths(predicates: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    steps = st.tuples(NAMES, st.lists(predicates, max_size=2)).map(lambda step: step[0] + "".join(step[1]))
    return st.tuples(steps, st.lists(st.tuples(SLASHES, steps).map("".join), max_size=2)).map(
        lambda path: path[0] + "".join(path[1])
    )


PREDICATES = st.recursive(
    LEAVES.map(lambda leaf: f"[{leaf}]"),
    lambda inner: st.tuples(st.sampled_from(["", ".//"]), paths(inner)).map(lambda path: f"[{path[0]}{path[1]}]"),
    max_leaves=5,
)
QUERIES = st.tuples(SLASHES, paths(PREDICATES)).map("".join)
LONG_QUERIES = st.sampled_from([31, 32, 33, 63, 64, 65, 130]).map(
    lambda size: "//a" + "".join(f"[@n='{number}']" for number in range(size // 2)) + "/b" * (size - 1 - size // 2)
)


class Changes(RuleBasedStateMachine):
    """A set under changes, beside a dict of what it should hold."""

    @initialize()
    def start(self) -> None:
        self.set = TwigSet(namespaces=NAMESPACES)
        self.expected: dict[str, str] = {}

    @rule(number=st.integers(0, 30), query=QUERIES | LONG_QUERIES)
    def put(self, number: int, query: str) -> None:
        name = f"q{number}"
        if name in self.expected:
            with pytest.raises(ValueError, match="has a twig"):
                self.set.add(name, query)
            self.set.update({name: query})
        else:
            self.set.add(name, query)
        self.expected[name] = query

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if self.expected:
            name = data.draw(st.sampled_from(sorted(self.expected)))
            self.set.remove(name)
            del self.expected[name]

    @rule()
    def look(self) -> None:
        check(self.set, self.expected)

    @invariant()
    def names(self) -> None:
        if hasattr(self, "set"):
            assert list(self.set) == list(self.expected)

    def teardown(self) -> None:
        if hasattr(self, "set"):
            check(self.set, self.expected)
            for name in self.expected:
                self.set.remove(name)
            check(self.set, {})
            compiled = self.set._compiled()
            assert (compiled.twigs.words, compiled.twigs.heads.sum()) == (1, 0)


TestChanges = Changes.TestCase
TestChanges.settings = settings(max_examples=settings().max_examples // 4)  # of fifty changes each


@st.composite
def documents(draw: st.DrawFn, depth: int = 3) -> str:
    name = draw(st.sampled_from(["a", "b", "c", "d", "p:d", "p:a"]))
    attributes = draw(st.sampled_from(["", " a='v'", " a='w'", " b='v'", " p:b='v'", " a='' p:a='v'"]))
    content = "".join(draw(st.lists(documents(depth - 1) | VALUES, max_size=3))) if depth else draw(VALUES)
    return f"<{name}{attributes}>{content}</{name}>"


def events_of(document: lxml.etree._Element, alphabet: Alphabet) -> list[int]:
    """Return the events of a document, as defined."""
    events: list[int] = []

    def name_of(name: str) -> tuple[str, str]:
        found = lxml.etree.QName(name)
        return found.namespace or "", found.localname

    def walk(element: lxml.etree._Element) -> None:
        events.append(alphabet.elements.get(name_of(element.tag), OTHER))
        for name, value in element.attrib.items():
            for symbol in (
                alphabet.attributes.get(name_of(name)),
                alphabet.attribute_values.get((*name_of(name), value)),
            ):
                events.extend([] if symbol is None else [symbol, CLOSE])
        texts = [element.text] + [child.tail for child in element]
        for text, child in zip(texts, [*element, None], strict=True):
            if text and text in alphabet.texts:
                events.extend([alphabet.texts[text], CLOSE])
            if child is not None:
                walk(child)
        events.append(CLOSE)

    walk(document)
    return events


@given(st.lists(QUERIES, min_size=1, max_size=8), st.lists(QUERIES, max_size=8), st.lists(documents(), max_size=4))
def test_answers_are_those_of_xpath(queries: list[str], removed: list[str], xml: list[str]) -> None:
    twig_set = TwigSet({f"r{place}": query for place, query in enumerate(removed)}, namespaces=NAMESPACES)
    twig_set.update({f"q{place}": query for place, query in enumerate(queries)})
    for name in [name for name in twig_set if name[0] == "r"]:
        twig_set.remove(name)
    compiled = twig_set._compiled()
    parsed = [lxml.etree.fromstring(f"<top xmlns:p='urn:p'>{document}</top>") for document in xml]
    events = [events_of(document, compiled.alphabet) for document in parsed]
    offsets = np.cumsum([0, *map(len, events)])
    symbols = np.array([symbol for document in events for symbol in document], np.uint32)
    matches = twig_matches(compiled.twigs, Events(symbols, offsets, 10))
    asked = [lxml.etree.XPath(f"boolean({query})", namespaces=NAMESPACES) for query in queries]
    assert matches == [[place for place, ask in enumerate(asked) if ask(document)] for document in parsed]


def test_equal_queries_share_their_nodes() -> None:
    twigs = TwigSet({"one": "//a[b]/c", "two": "//a[c]/b", "three": "//a[b][c]", "four": "//a[.//b][c]"})
    roots = twigs._compiled().twigs.roots
    assert roots[0] == roots[1] == roots[2] != roots[3]
    twigs.remove("one")
    twigs.remove("three")
    check(twigs, {"two": "//a[c]/b", "four": "//a[.//b][c]"})


def test_places_of_removed_twigs_are_used_again() -> None:
    sizes = [5, 31, 32, 33, 64, 65, 130, 1, 17]
    queries = {f"q{size}": "//a" + "/b" * (size - 1) for size in sizes}
    twigs = TwigSet(queries)
    words, symbols = twigs._compiled().twigs.words, twigs._compiled().alphabet.symbol_count
    for _ in range(20):
        for name in sorted(queries):
            twigs.remove(name)
            twigs.add(name, queries[name])
    check(twigs, {name: queries[name] for name in sorted(queries)})
    assert twigs._compiled().twigs.words <= words + 1
    assert twigs._compiled().alphabet.symbol_count == symbols


def test_twigs_that_are_left_move_together() -> None:
    twigs = TwigSet({f"q{number}": f"//a[@n='{number}']/b/c/d/e/f/g" for number in range(1000)})
    words = twigs._compiled().twigs.words
    kept = {f"q{number}": twigs[f"q{number}"] for number in range(0, 1000, 20)}
    for name in twigs:
        if name not in kept:
            twigs.remove(name)
    check(twigs, kept)
    assert twigs._compiled().twigs.words < words / 10
    twigs.add("more", "//a[@n='1']//new")
    check(twigs, {**kept, "more": "//a[@n='1']//new"})


def test_an_empty_set() -> None:
    check(TwigSet(), {})
    assert repr(TwigSet()) == "TwigSet of 0 twigs"
    assert not TwigSet()
    assert TwigSet() == TwigSet({})
    assert TwigSet()._compiled().alphabet.symbol_count == FIRST_SYMBOL


def test_a_very_large_twig() -> None:
    size = 20_000
    queries = {"deep": "//a" + "/b" * size, "wide": "//a" + "".join(f"[c/@n='{number}']" for number in range(size))}
    twigs = TwigSet(queries)
    arrays = twigs._compiled().twigs
    assert len(children_in(arrays, set(), int(arrays.roots[1]))) == size
    twigs.remove("deep")
    twigs.update({"wide": "/a"})
    check(twigs, {"wide": "/a"})


def test_it_is_a_mapping() -> None:
    queries = {"b": "//b", "a": "/a[@x = 'v']", "": "//c"}
    twigs = TwigSet(queries)
    assert isinstance(twigs, Mapping)
    assert list(twigs) == list(queries)
    assert dict(twigs.items()) == queries
    assert (len(twigs), "b" in twigs, "c" in twigs, 3 in twigs) == (3, True, False, False)
    assert (twigs.get("b"), twigs.get("c"), twigs.get("c", 1)) == ("//b", None, 1)
    twigs.update({"a": "//other", "d": "//d"})
    assert list(twigs.items()) == [("b", "//b"), ("a", "//other"), ("", "//c"), ("d", "//d")]
    with pytest.raises(TypeError, match="unhashable"):
        hash(twigs)


def test_equality() -> None:
    twigs = TwigSet({"x": "//a[b][c]", "y": "//p:a"}, namespaces=NAMESPACES)
    assert twigs == TwigSet({"y": "//q:a", "x": "// a[c]/b"}, namespaces={"q": "urn:p", "r": "urn:r"})
    assert twigs != TwigSet({"y": "//p:a", "x": "//a[c]//b"}, namespaces=NAMESPACES)
    assert twigs != TwigSet({"x": "//a[b][c]", "z": "//p:a"}, namespaces=NAMESPACES)
    assert twigs != dict(twigs)


def test_what_it_shows() -> None:
    twigs = TwigSet({"one": "//a"})
    assert repr(twigs) == "TwigSet of 1 twig\n  one: //a"
    twigs.update({f"q{number}": "/a" * 60 for number in range(2000)})
    lines = repr(twigs).split("\n")
    assert lines[0] == "TwigSet of 2,001 twigs"
    assert lines[-1] == "  … and 1,993 more"
    assert max(map(len, lines)) < 120


def test_a_refused_query_leaves_the_set_as_it_was() -> None:
    twigs = TwigSet({"one": "//a"})
    with pytest.raises(InvalidTwigError, match=r'query "three", character 5: a position test cannot be used'):
        twigs.update({"two": "//b", "one": "//c", "three": "//a[1]"})
    with pytest.raises(InvalidTwigError, match=r'query "two", character 3: the prefix "p" is not declared'):
        twigs.add("two", "//p:a")
    with pytest.raises(
        ValueError, match=r'the set has a twig "one" already, //a; .*update\(\{name: query\}\) replaces'
    ):
        twigs.add("one", "//b")
    check(twigs, {"one": "//a"})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: TwigSet(["//a"]), TypeError, "queries must be a mapping of names to XPath queries, not list"),
        (lambda: TwigSet("//a"), TypeError, "queries must be a mapping"),
        (lambda: TwigSet({1: "//a"}), TypeError, "the name 1 must be a string"),
        (lambda: TwigSet({"a": None}), TypeError, 'the query of "a" is None'),
        (lambda: TwigSet({"\ud800": "//a"}), ValueError, "is not text"),
        (lambda: TwigSet({"a": "//a[@b='\ud800']"}), ValueError, "is not text"),
        (lambda: TwigSet().add("a", b"//a"), TypeError, r'TwigSet.add: the query of "a" is b'),
        (lambda: TwigSet().update([("a", "//a")]), TypeError, r"TwigSet.update: queries must be a mapping"),
        (lambda: TwigSet(namespaces=["p"]), TypeError, "must be a mapping of prefixes to namespaces"),
        (lambda: TwigSet(namespaces={"p": 1}), TypeError, "prefixes and namespaces are strings"),
        (lambda: TwigSet(namespaces={1: "u"}), TypeError, "prefixes and namespaces are strings"),
        (lambda: TwigSet(namespaces={None: "u"}), ValueError, "a name without a prefix has no namespace; give it"),
        (lambda: TwigSet(namespaces={"": "u"}), ValueError, "a name without a prefix has no namespace; give it"),
        (lambda: TwigSet(namespaces={"p:q": "u"}), ValueError, "is not a name that XML allows"),
        (lambda: TwigSet(namespaces={"p": ""}), ValueError, "is empty"),
        (lambda: TwigSet(namespaces={"xml": "u"}), ValueError, "XML reserves the prefixes xml and xmlns"),
        (
            lambda: TwigSet(namespaces={"xmlns": "http://www.w3.org/2000/xmlns/"}),
            ValueError,
            "XML reserves the prefixes",
        ),
        (lambda: TwigSet({"title": "//a", "x": "//b"}).remove("titel"), TwigMissingError, 'did you mean "title"?'),
        (
            lambda: TwigSet({"title": "//a"})["zzz"],
            TwigMissingError,
            "the set has no twig 'zzz'; the set has \"title\"",
        ),
        (lambda: TwigSet().remove("a"), TwigMissingError, "TwigSet.remove: .*; the set is empty"),
    ],
)
def test_wrong_arguments(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_errors_name_the_call() -> None:
    rows = pl.Series(["<a/>"])
    with pytest.raises(TypeError, match=r'^twig_filter: the query of "q" is 5'):
        rows.tadoc.twig_filter({"q": 5})
    with pytest.raises(ValueError, match=r'^twig_filter: the namespace of the prefix "p" is empty'):
        rows.tadoc.twig_filter({"q": "//a"}, namespaces={"p": ""})


def test_namespaces_of_another_set() -> None:
    twigs = TwigSet({"a": "//p:a"}, namespaces=NAMESPACES)
    assert TwigSet(twigs) == twigs
    assert TwigSet(twigs).namespaces == twigs.namespaces
    assert TwigSet(twigs, namespaces={"q": "urn:q", **NAMESPACES}) == twigs
    with pytest.raises(ValueError, match='TwigSet: the prefix "p" is "urn:p" in the set given and "urn:q" here'):
        TwigSet(twigs, namespaces={"p": "urn:q"})
    other = TwigSet({"b": "//b"}, namespaces={"q": "urn:q"})
    with pytest.raises(ValueError, match=r'TwigSet.update: .* prefix "p" for "urn:p", which is not declared here'):
        other.update(twigs)
    check(other, {"b": "//b"})
    twigs.update(TwigSet({"b": "//b"}))
    check(twigs, {"a": "//p:a", "b": "//b"})


def test_the_prefix_xml_is_known() -> None:
    assert TwigSet({"a": "//a/@xml:lang"}).namespaces == {"xml": "http://www.w3.org/XML/1998/namespace"}
    TwigSet(namespaces={"xml": "http://www.w3.org/XML/1998/namespace"})


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda twigs: pickle.loads(pickle.dumps(twigs))])
def test_copies_are_their_own(copied: Any) -> None:
    twigs = TwigSet({"a": "//p:a", "b": "//b[text()='v']"}, namespaces=NAMESPACES)
    twigs._compiled().matcher(CPU)
    other = copied(twigs)
    assert other == twigs
    assert (list(other.items()), other.namespaces) == (list(twigs.items()), twigs.namespaces)
    other.remove("a")
    check(twigs, {"a": "//p:a", "b": "//b[text()='v']"})
    check(other, {"b": "//b[text()='v']"})


def test_what_filters_read_stays_as_it_was() -> None:
    twigs = TwigSet({"a": "//a", "b": "//b"})
    first = twigs._compiled()
    matcher = first.matcher(CPU)
    assert twigs._compiled() is first
    assert twigs._compiled().matcher(CPU) is matcher
    trees = trees_in(first)
    twigs.remove("a")
    twigs.add("c", "//c//d[e]")
    second = twigs._compiled()
    assert second is not first
    assert second.matcher(CPU) is not matcher
    assert second.alphabet.version != first.alphabet.version
    assert (first.names, trees_in(first)) == (("a", "b"), trees)
    loaded = pickle.loads(pickle.dumps(first))
    assert (loaded.names, trees_in(loaded)) == (first.names, trees)
    assert loaded.alphabet.version != first.alphabet.version


def test_save_and_load(tmp_path: Path) -> None:
    queries = {"ü/\n": "//p:a[text()='é\"']", "b": "//b", "": "//a"}
    twigs = TwigSet(queries, namespaces=NAMESPACES)
    path = tmp_path / "twigs.json"
    path.write_text("old")
    twigs.save(path)
    loaded = TwigSet.load(str(path))
    assert loaded == twigs
    assert (list(loaded.items()), loaded.namespaces) == (list(queries.items()), twigs.namespaces)
    assert list(tmp_path.iterdir()) == [path]
    assert json.loads(path.read_text(encoding="utf-8"))["queries"] == queries
    with pytest.raises(FileNotFoundError, match=r"TwigSet.save: folder .* does not exist"):
        twigs.save(tmp_path / "none" / "twigs.json")


def saved(**changes: Any) -> str:
    contents = {"format": "polars_tadoc twigs", "version": 1, "namespaces": {}, "queries": {"a": "//a"}, **changes}
    return json.dumps({key: value for key, value in contents.items() if value is not None})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is damaged: it is not JSON"),
        (saved()[:-9], "is damaged: it is not JSON"),
        ("[" * 100_000, "is damaged: its JSON is nested too deeply"),
        ("\udcff", "is damaged: it is not UTF-8"),
        ("[]", "is not a file of saved twigs"),
        ("{}", "is not a file of saved twigs"),
        (saved(format="other"), "is not a file of saved twigs"),
        (saved(version=2), "has format version 2, this polars_tadoc reads version 1"),
        (saved(version=None), "has format version None"),
        (saved(queries=None), 'has no object "queries"'),
        (saved(queries=["//a"]), 'has no object "queries"'),
        (saved(queries={"a": 1}), '"a" in its "queries" is not a string'),
        (saved(namespaces={"p": None}), '"p" in its "namespaces" is not a string'),
        (saved(namespaces={"": "u"}), "cannot be used: .* without a prefix"),
        (saved(queries={"b": "//a[1]"}), 'cannot be used: query "b", character 5: a position test'),
        (saved(queries={"b": "//a[@b='\ud800']"}), "is not text"),
        (saved().replace('{"a": "//a"}', '{"a": "//a", "a": "//b"}'), 'it names "a" twice'),
    ],
)
def test_damaged_files(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "twigs.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InvalidTwigSetError, match=message) as caught:
        TwigSet.load(path)
    assert str(path) in str(caught.value)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"):
        TwigSet.load(tmp_path / "none.json")
    with pytest.raises(InvalidTwigSetError, match="is a folder"):
        TwigSet.load(tmp_path)


def test_changes_from_several_threads() -> None:
    twigs = TwigSet()
    problems: list[BaseException] = []

    def change(part: int) -> None:
        try:
            for number in range(200):
                twigs.add(f"{part}/{number}", f"//a[@n='{number}'][b/c]//d")
                if number % 2:
                    twigs.remove(f"{part}/{number}")
        except BaseException as problem:
            problems.append(problem)

    def look() -> None:
        try:
            for _ in range(30):
                compiled = twigs._compiled()
                assert len(compiled.twigs.roots) == len(compiled.names) == len(trees_in(compiled))
                assert repr(twigs).startswith("TwigSet of ")
                assert pickle.loads(pickle.dumps(twigs)).namespaces == twigs.namespaces
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=change, args=(part,)) for part in range(4)] + [threading.Thread(target=look)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    expected = {name: f"//a[@n='{name.split('/')[1]}'][b/c]//d" for name in twigs}
    assert len(expected) == 400
    check(twigs, expected)


def test_changes_cost_what_they_change() -> None:
    """The arrays of a set are touched only where the twig is, however many there are."""
    twigs = TwigSet({f"q{number}": f"//a[@n='{number}']/b[c]//d" for number in range(3000)})
    before = twigs._compiled().twigs
    twigs.remove("q17")
    twigs.add("new", "//new//a")
    after = twigs._compiled().twigs
    for name in ("leaves", "descendants", "branches"):
        assert np.count_nonzero(getattr(before, name) != getattr(after, name)[: before.words]) <= 2
    assert np.count_nonzero(before.siblings != after.siblings[: len(before.siblings)]) <= 8
    assert NO_NODE == 0


def test_changes_take_as_long_in_large_sets() -> None:
    """Fifty times the twigs; a change in proportion to them would take fifty times as long."""

    def cost(count: int) -> float:
        twigs = TwigSet({f"q{number}": query(number) for number in range(count)})
        best = float("inf")
        for attempt in range(5):
            twigs._compiled().alphabet.names()
            before = time.thread_time()
            for number in range(20):
                twigs.add(f"new {attempt} {number}", query(count + 20 * attempt + number))
                twigs.remove(f"q{20 * attempt + number}")
            best = min(best, time.thread_time() - before)
        return best

    def query(number: int) -> str:
        return f"//a[@n='{number}'][text()='t{number}']/b{number}"

    cost(200)
    assert cost(10_000) < 5 * cost(200)


def test_the_first_call_writes_what_has_changed() -> None:
    """The names of all twigs are looked up in a table that is not made anew."""
    twigs = TwigSet({f"q{number}": f"//a[@n='{number}']" for number in range(1000)})
    before = twigs._compiled().alphabet.names()
    address = before.table.ctypes.data
    entries = before.table.reshape(-1, ENTRY).copy()
    del before
    twigs.add("new", "//b[@n='0']")
    twigs.remove("q17")
    after = twigs._compiled().alphabet.names()
    assert after.table.ctypes.data == address
    assert np.count_nonzero((after.table.reshape(-1, ENTRY) != entries).any(axis=1)) == 2
    check(twigs, {name: twigs[name] for name in twigs})


def test_what_was_learnt_is_kept_where_twigs_are_only_removed() -> None:
    twigs = TwigSet({f"q{number}": f"//a[b{number}]" for number in range(9)})
    first = twigs._compiled()
    matcher = first.matcher(CPU)
    twigs.remove("q3")
    twigs.add("as q5", "//a[./b5]")
    twigs.remove("q1")
    twigs.add("as q1", "//a[b1]")
    second = twigs._compiled()
    assert second.alphabet is first.alphabet
    assert second.matcher(CPU).idle is matcher.idle
    symbols = [first.alphabet.elements["", name] for name in ("a", "b1")] + [CLOSE, CLOSE]
    for one in (first, second):
        _, matches = one.matcher(CPU).match(Events(np.array(symbols, np.uint16), np.array([0, 4]), 2))
        assert [one.names[place] for place in matches] == [{id(first): "q1", id(second): "as q1"}[id(one)]]
    check(twigs, {name: twigs[name] for name in twigs})
    assert twigs._compiled().alphabet is not first.alphabet


def test_sets_in_use_are_copied_before_they_change() -> None:
    queries = {"a": "//a[@x='v']", "b": "//b[text()='t']/@y", "c": "//c"}
    twigs = TwigSet(queries)
    used = []
    for number in range(200):
        used.append((twigs._compiled(), dict(twigs)))
        if number % 3:
            used[-1][0].alphabet.names()
        twigs.add(f"{number}", f"//n{number}[@x='{number}'][@x{number}]")
        if number % 2:
            twigs.remove(f"{number - 1}")
    twigs.update({"a": "//d", "b": "//d", "c": "//d"})
    for compiled, expected in used:
        assert trees_in(compiled) == {name: tree_of(parse(query, {})) for name, query in expected.items()}
        check_names(compiled.alphabet)
