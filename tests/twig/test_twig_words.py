from __future__ import annotations

import random
import time
from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.kernels.twigs.arrays import CLOSE, DOUBTFUL, EMPTY, NOTHING, OPEN, SHUT, TEXT, Events, WordEvents
from polars_tadoc.kernels.twigs.reference import is_sound, twig_matches
from polars_tadoc.model.column import split
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.twig import words as stage
from polars_tadoc.twig.alphabet import Alphabet
from polars_tadoc.twig.events import parse_documents
from polars_tadoc.twig.plain_parser import DocumentError, parse_document
from polars_tadoc.twig.twig_set import TwigSet
from polars_tadoc.twig.words import Declarations, JudgedWords
from tests.xml_strategies import MARKUP, glued, near_xml

DEPTH = 50
NAMESPACES = {"p": "u", "q": "v"}
TWIGS = TwigSet(
    {
        "a": "//a[b]",
        "attribute": "//a[@c][.//b/@c='d']",
        "value": "//*[@c='v']/b",
        "namespace": "//p:a[@p:c='v']//q:b",
        "language": "//*[@xml:lang='en']",
        "root": "/a/a",
        "é": "/é//é",
    },
    namespaces=NAMESPACES,
)._compiled()
TEXTS = ["x", "y z", "y", "z", " ", "A", "xA", "&", "日本", "か\u3099", "word word ", "", ", ", "nowhere", "<a>", "]"]
TEXT_TWIGS = TwigSet(
    {str(i): f'//{"ab"[i % 2]}[text()="{text}"]' for i, text in enumerate(TEXTS)} | {"any": '//*[.//*/text()="x"]'}
)._compiled()


def vocabulary(words: Sequence[str]) -> pa.LargeStringArray:
    return pa.array(words, pa.large_string())


def expand(corpus: Corpus) -> list[list[int]]:
    grammar = corpus.grammar
    rules: list[list[int]] = []

    def words_of(symbols: Sequence[int]) -> list[int]:
        size = grammar.vocabulary_size
        return [w for s in symbols for w in ([s] if s < size else rules[s - size])]

    for rule in range(grammar.rule_count):
        first, stop = grammar.rule_offsets[rule : rule + 2]
        rules.append(words_of(grammar.symbols[first:stop].tolist()))
    bounds = zip(corpus.root_offsets[:-1], corpus.root_offsets[1:], strict=True)
    return [words_of(corpus.roots[first:stop].tolist()) for first, stop in bounds]


def events_of(rows: Sequence[str], alphabet: Alphabet) -> list[list[int] | None]:
    """Events of each row by its words; None for rows that are not sound."""
    found: list[list[int] | None] = [None] * len(rows)
    for corpus in split(tadoc.compress(pl.Series("xml", rows, pl.String), tokenizer="xml")):
        contexts, numbers = Declarations.of(corpus.grammar).contexts(corpus.root_offsets, corpus.roots)
        assert len(contexts) <= stage.MAX_CONTEXTS
        meanings = [JudgedWords.of(corpus.grammar.vocabulary, context).events(alphabet) for context in contexts]
        for row, number, document in zip(corpus.rows, numbers, expand(corpus), strict=True):
            words = meanings[number]
            if is_sound(document, words, DEPTH):
                found[row] = [s for w in document for s in words.symbols[words.offsets[w] : words.offsets[w + 1]]]
    return found


def parsed(rows: Sequence[str], alphabet: Alphabet) -> list[list[int] | None]:
    """Events of each row by a parser; None for rows that are not well-formed."""
    found: list[list[int] | None] = []
    for row in rows:
        try:
            found.append(parse_document(row.encode(), alphabet, DEPTH))
        except DocumentError:
            found.append(None)
    return found


def matches(documents: Sequence[Sequence[int]]) -> list[list[int]]:
    offsets = np.cumsum([0, *map(len, documents)])
    return twig_matches(TEXT_TWIGS.twigs, Events([s for document in documents for s in document], offsets, 0))


def check(rows: Sequence[str]) -> tuple[int, int]:
    """Compare with a parser; returns how many rows are sound, and how many well-formed."""
    got, expected = events_of(rows, TWIGS.alphabet), parsed(rows, TWIGS.alphabet)
    for row, own, right in zip(rows, got, expected, strict=True):
        assert own is None or own == right, row
    relaxed, exact = events_of(rows, TEXT_TWIGS.alphabet), parsed(rows, TEXT_TWIGS.alphabet)
    sound = [i for i in range(len(rows)) if relaxed[i] is not None]
    found, right_ = (matches([listed[i] or [] for i in sound]) for listed in (relaxed, exact))
    for i, own_, needed in zip(sound, found, right_, strict=True):
        assert set(own_) >= set(needed), rows[i]
    assert [own is None for own in relaxed] == [own is None for own in got]
    return len(sound), sum(right is not None for right in expected)


@given(st.lists(st.one_of(near_xml, glued), min_size=1, max_size=8))
def test_sound_rows_have_the_events_of_a_parser(rows: list[str]) -> None:
    check(rows)


@given(st.lists(near_xml, min_size=1, max_size=8), st.integers(1, 3))
def test_rows_of_rarer_namespaces_are_left_to_a_parser(rows: list[str], most: int) -> None:
    with patch.object(stage, "MAX_CONTEXTS", most):
        check(rows)


@given(st.lists(near_xml, min_size=1, max_size=8))
def test_words_that_stand_for_too_many_texts_are_left_to_a_parser(rows: list[str]) -> None:
    with patch.object(stage, "MAX_SPREAD", 3):
        got, expected = events_of(rows, TEXT_TWIGS.alphabet), parsed(rows, TEXT_TWIGS.alphabet)
        sound = [i for i in range(len(rows)) if got[i] is not None]
        found, right = (matches([listed[i] or [] for i in sound]) for listed in (got, expected))
        assert all(set(own) >= set(needed) for own, needed in zip(found, right, strict=True))


def document(chance: random.Random) -> str:
    """Elements in any order of pieces, of which some are left out, doubled or out of place."""
    pieces: list[str] = []
    opened: list[str] = []
    for _ in range(chance.randrange(1, 9)):
        step = chance.random()
        if step < 0.4 or not opened:
            name = chance.choice(["a", "b", "é", "p:a"])
            declared = chance.choice(["", "", "", " c='v'", " xml:lang='en'", " xmlns='v'"])
            if not pieces:
                declared = " xmlns:p='u' p:c='v'" if chance.random() < 0.6 else ""
            pieces.append(f"<{name}{declared}>")
            opened.append(name)
        elif step < 0.7 and (len(opened) > 1 or chance.random() < 0.05):
            pieces.append(f"</{opened.pop()}>")
        elif step < 0.97:
            pieces.append(chance.choice(["x", "y z", "&amp;", "<b/>", "<!-- c -->", "<![CDATA[x]]>", "&#65;", " "]))
        else:
            pieces.append(chance.choice(MARKUP))
    pieces += [f"</{name}>" for name in reversed(opened)]
    prolog = ["<?xml version='1.0'?>", "<!-- c -->", "<!DOCTYPE a>", "<?p?>", "\n", "x", "\ufeff"]
    pieces[:0] = [piece for piece in prolog if chance.random() < 0.15]
    pieces += [piece for piece in prolog if chance.random() < 0.05]
    if chance.random() < 0.1:
        at = chance.randrange(len(pieces))
        pieces.insert(chance.randrange(len(pieces)), pieces.pop(at))
    return "".join(pieces)


@pytest.mark.parametrize("seed", range(4))
def test_thousands_of_near_documents(seed: int) -> None:
    chance = random.Random(seed)
    sound, well_formed = check([document(chance) for _ in range(3000)])
    assert sound > 0.7 * well_formed > 500


SOUND = {
    "an XML declaration": "<?xml version='1.0'?><a/>",
    "of everything": '<?xml  version = "1.0"\nencoding="latin1" standalone=\'no\' ?>\n<a/>',
    "a byte order mark": "\ufeff<?xml version='1.0'?><a/>",
    "a document type": "<?xml version='1.0'?><!-- c --><!DOCTYPE a SYSTEM 'x>y.dtd'><!-- d --><a/>",
    "a public one": '<!DOCTYPE a PUBLIC "-//W3C//DTD XHTML 1.0//EN" "http://x/y.dtd" >\n<a/>',
    "a bare one": "<!DOCTYPE a><a/>",
    "an empty comment": "<a><!----></a>",
    "comments after the root": "<a/><!-- - - -->\n",
    "instructions": "<?p?><a><?xml-stylesheet x='>'?></a><?q y??>",
    "namespaces": "<p:a xmlns:p='u' p:c='1' c='2'><p:b/></p:a>",
    "references": "<a c='&lt;&#65;'>&amp;&#x1F600;</a>",
    "CDATA": "<a>x<![CDATA[<b>&]]>y]]</a>",
    "tags with space": "<a\n c = 'd' ><b /></a\t>",
    "DEL and others": "<a c='\x7f'>\x7f\x85\xa0\u2028\ufffd</a>",
}


@pytest.mark.parametrize("case", SOUND)
def test_sound(case: str) -> None:
    assert check([SOUND[case]]) == (1, 1)


NOT_WELL_FORMED = {
    "an XML declaration after space": " <?xml version='1.0'?><a/>",
    "after a comment": "<!-- c --><?xml version='1.0'?><a/>",
    "in an element": "<a><?xml version='1.0'?></a>",
    "behind the root": "<a/><?xml version='1.0'?>",
    "twice": "<?xml version='1.0'?><?xml version='1.0'?><a/>",
    "in capitals": "<?XML version='1.0'?><a/>",
    "without version": "<?xml encoding='UTF-8'?><a/>",
    "with an attribute": "<?xml version='1.0' a='b'?><a/>",
    "a byte order mark twice": "\ufeff\ufeff<a/>",
    "a byte order mark after space": " \ufeff<a/>",
    "a byte order mark behind": "<a/>\ufeff",
    "a document type twice": "<!DOCTYPE a><!DOCTYPE a><a/>",
    "behind the root ": "<a/><!DOCTYPE a>",
    "in an element ": "<a><!DOCTYPE a></a>",
    "without name": "<!DOCTYPE ><a/>",
    "without space": "<!DOCTYPEa><a/>",
    "with an empty public identifier only": "<!DOCTYPE a PUBLIC 'x'><a/>",
    "with a public identifier of other characters": "<!DOCTYPE a PUBLIC '{}' 'x'><a/>",
    "two dashes in a comment": "<a><!-- -- --></a>",
    "a dash before its end": "<a><!-- ---></a>",
    "a comment with a character that is forbidden": "<a><!-- \x01 --></a>",
    "a comment that is open": "<a><!-- </a>",
    "CDATA before the root": "<![CDATA[x]]><a/>",
    "CDATA behind the root": "<a/><![CDATA[x]]>",
    "CDATA with a forbidden character": "<a><![CDATA[\x00]]></a>",
    "a reference before the root": "&amp;<a/>",
    "a reference behind the root": "<a/>&#32;",
    "a character reference to none": "<a>&#0;</a>",
    "to a surrogate": "<a>&#xD800;</a>",
    "beyond Unicode": "<a>&#x110000;</a>",
    "beyond 64 bits": "<a>&#99999999999999999999;</a>",
    "to U+FFFE": "<a>&#xFFFE;</a>",
    "with a capital X": "<a>&#X41;</a>",
    "an entity": "<a>&e;</a>",
    "an entity in an attribute": "<a c='&e;'/>",
    "an ampersand": "<a>x & y</a>",
    "less": "<a>x < y</a>",
    "less in an attribute": "<a c='<'/>",
    "the end of CDATA": "<a>]]></a>",
    "text before the root": "x<a/>",
    "text behind the root": "<a/>x",
    "a forbidden character": "<a>\x08</a>",
    "U+FFFF": "<a>\uffff</a>",
    "one in an attribute": "<a c='\x08'/>",
    "an attribute twice": "<a c='1' c='2'/>",
    "twice by namespace": "<a xmlns:p='u' xmlns:q='u' p:c='1' q:c='2'/>",
    "an attribute without value": "<a c/>",
    "without quotes": "<a c=d/>",
    "without space before it": "<a c='1'd='2'/>",
    "a prefix that is not declared": "<p:a/>",
    "of an attribute": "<a p:c='1'/>",
    "declared later": "<a><p:b/><c xmlns:p='u'/></a>",
    "declared to be nothing": "<p:a xmlns:p=''/>",
    "two colons": "<a xmlns:p='u'><p:b:c/></a>",
    "a name that begins with a digit": "<1/>",
    "a name of wrong characters": "<a×b/>",
    "two roots": "<a/><b/>",
    "no root": "<!-- c -->",
    "nothing": "",
    "space": " ",
    "tags that do not match": "<a></b>",
    "other prefixes of one namespace": "<p:a xmlns:p='u' xmlns:q='u'></q:a>",
    "open tags": "<a><b></b>",
    "too many end tags": "<a></a></a>",
    "an end tag with an attribute": "<a></a c='d'>",
    "an end tag with space": "<a></ a>",
    "an end tag that is empty": "<a/></a/>",
    "an instruction without target": "<? p?><a/>",
    "of a wrong name": "<?1?><a/>",
    "with a colon": "<?p:q?><a/>",
    "with a forbidden character": "<?p \x01?><a/>",
    "a slash": "<a/ >",
    "two slashes": "<a//>",
}


@pytest.mark.parametrize("case", NOT_WELL_FORMED)
def test_not_well_formed(case: str) -> None:
    assert check([NOT_WELL_FORMED[case]]) == (0, 0)


LEFT_TO_THE_PARSER = {
    "an internal subset": "<!DOCTYPE a [<!ATTLIST a c CDATA 'v'>]><a/>",
    "an entity that may be declared": "<!DOCTYPE a SYSTEM 'x'><a>&e;</a>",
    "namespaces below the root": "<a><p:b xmlns:p='u'/></a>",
    "others below the root": "<a xmlns='u'><b xmlns=''/></a>",
}


@pytest.mark.parametrize("case", LEFT_TO_THE_PARSER)
def test_left_to_the_parser(case: str) -> None:
    assert check([LEFT_TO_THE_PARSER[case]]) == (0, 1)


def test_a_prefix_is_not_known_in_rows_that_do_not_declare_it() -> None:
    rows = ["<a xmlns:p='u'><p:b/></a>", "<a><p:b/></a>", "<p:b/>", "<a xmlns:p='v'><p:b/></a>", "<a/>", "", "x"]
    rows += ["<a xmlns:p='u' xmlns:q='v'><p:b/><q:b/></a>", "<a xmlns:p='u'><q:b/></a>"]
    assert check(rows * 3) == (12, 12)
    with patch.object(stage, "MAX_CONTEXTS", 1):
        check(rows)
    with patch.object(stage, "MAX_CONTEXTS", 2):
        check(rows)


def test_contexts() -> None:
    rows = ["<a xmlns='u'/>", "<b xmlns='u'>x</b>", "<!-- c --><a xmlns:p='u' xmlns='v'/>", "<a/>", "", "<a xmlns=''/>"]
    (corpus,) = split(tadoc.compress(pl.Series(rows), tokenizer="xml"))
    contexts, numbers = Declarations.of(corpus.grammar).contexts(corpus.root_offsets, corpus.roots)
    by_row = [contexts[number] for number in numbers]
    assert by_row[:4] == [{"": "u"}, {"": "u"}, {"p": "u", "": "v"}, {}]
    assert by_row[5] == {}
    assert len(contexts) == 3


def test_no_declarations_are_one_context() -> None:
    for rows in (["<a/>", "", "x"], [""], []):
        for corpus in split(tadoc.compress(pl.Series(rows, dtype=pl.String), tokenizer="xml")):
            contexts, numbers = Declarations.of(corpus.grammar).contexts(corpus.root_offsets, corpus.roots)
            assert (contexts, numbers.tolist()) == ([{}], [0] * len(rows))


def test_kinds_and_names() -> None:
    words = [
        "<a>",
        "</a >",
        "<a c='d'/>",
        "x",
        "&amp;",
        "&#65;",
        "<![CDATA[x]]>",
        "<!-- -->",
        "<",
        "]]>",
        "</b>",
        "<b>",
    ]
    got = JudgedWords.of(vocabulary(words), {}).events(TWIGS.alphabet)
    kinds = [OPEN, SHUT, EMPTY, TEXT, TEXT, TEXT, TEXT, NOTHING, DOUBTFUL, DOUBTFUL, SHUT, OPEN]
    assert got.kinds.tolist() == kinds
    assert got.names[0] == got.names[1] != got.names[10] == got.names[11]
    assert set(got.names[[2, 3, 4, 5, 6, 7, 8, 9]].tolist()) == {0}
    assert (got.kinds.dtype, got.names.dtype, got.offsets.dtype, got.symbols.dtype) == (
        np.uint8,
        np.uint32,
        np.uint32,
        np.uint32,
    )


def listed(got: WordEvents) -> list[list[int]]:
    return [part.tolist() for part in np.split(got.symbols, got.offsets[1:-1])]


def test_texts_stand_at_their_rarest_word() -> None:
    twigs = TwigSet(
        {"t": '//a[text()="to be, or not"]', "u": '//a[text()="to go"]', "v": '//a[text()=", "]'}
    )._compiled()
    texts, own = twigs.alphabet.texts, twigs.alphabet.elements["", "a"]
    words = ["<a>", "to", "be", "</a>", "or", "not", "<b>", "&#65;", "<a/>"]
    got = listed(JudgedWords.of(vocabulary(words), {}).events(twigs.alphabet))
    t, u, v = (texts[text] for text in ("to be, or not", "to go", ", "))
    assert got[0] == [own, v, CLOSE]
    assert got[1:6] == [[], [], [CLOSE], [], [t, CLOSE]]
    assert got[6][1:] == [v, CLOSE]
    assert sorted(got[7]) == [CLOSE] * 3 + sorted([t, u, v])
    assert got[8] == [own, CLOSE]


def test_judged_words_serve_any_twigs() -> None:
    words = vocabulary(["<a c='d' e='f'>", "</a>", "x", "<p:a p:c='v'/>"])
    judged = JudgedWords.of(words, NAMESPACES)
    for twigs in (TWIGS, TEXT_TWIGS, TwigSet()._compiled()):
        for own, other in zip(
            judged.events(twigs.alphabet), JudgedWords.of(words, NAMESPACES).events(twigs.alphabet), strict=True
        ):
            assert own.tolist() == other.tolist()
    assert judged.nbytes > 0


@given(
    st.lists(st.sampled_from([*MARKUP, "", "<a>b>", "<a", "<!-- x", "<a b='>", "<a></a>", "</r>", "<r>"]), unique=True)
)
def test_any_vocabulary(words: list[str]) -> None:
    """Dictionaries bring words that no row has."""
    got = JudgedWords.of(vocabulary(words), {"p": "u"}).events(TEXT_TWIGS.alphabet)
    assert len(got.kinds) == len(words)
    for word, kind in zip(words, got.kinds, strict=True):
        if kind in (OPEN, EMPTY):
            closed = word if kind == EMPTY else f"{word}</{word[1:-1].split()[0]}>"
            parse_document(f"<r xmlns:p='u'>{closed}</r>".encode(), TWIGS.alphabet, 9)


def test_slices_of_a_vocabulary() -> None:
    words = vocabulary(["zz", "<a>", "x", "</a>"])[1:]
    assert JudgedWords.of(words, {}).events(TWIGS.alphabet).kinds.tolist() == [OPEN, TEXT, SHUT]


@pytest.mark.parametrize(
    "tag", ["<a c='{}'>", "<a c={}>", "<a{} c='1' c='2'>", "<!-- {} -->", "<?p {}?>", "&e{};", "</a{}>"]
)
def test_many_words(tag: str) -> None:
    words = vocabulary([tag.format(i) for i in range(30_000)])
    begin = time.perf_counter()
    got = JudgedWords.of(words, {}).events(TEXT_TWIGS.alphabet)
    assert time.perf_counter() - begin < 10
    assert len(got.offsets) == 30_001


def test_matches_the_parser_of_columns() -> None:
    """The plain parser is what these tests compare with; columns are parsed by another."""
    rows = list(SOUND.values()) + list(NOT_WELL_FORMED.values())
    found = parse_documents(pl.Series(rows), TWIGS.alphabet, max_depth=DEPTH, max_bytes=1 << 20)
    expected = parsed(rows, TWIGS.alphabet)
    assert [row for row, _ in found.errors] == [i for i, own in enumerate(expected) if own is None]
