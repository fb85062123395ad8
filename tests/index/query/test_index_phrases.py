"""Phrases in queries, against plain Python over each document's words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.index.query import segment_text
from polars_tadoc.kernels.host.rows.phrases_reference import count_phrase
from polars_tadoc.model.word_map import Morphism
from tests import oracle
from tests.analytic_cases import Case, cases
from tests.rows.test_bm25 import one_term

SCORINGS = ["robertson", "lucene", "atire", "bm25+", "bm25l", "wakatsuki"]


def expected(
    documents: Sequence[Sequence[str] | None],
    units: Sequence[tuple[str, ...]],
    mode: str = "or",
    scoring: str = "lucene",
) -> dict[int, float]:
    """Score by row: phrases are words like others."""
    rows = [row for row, words in enumerate(documents) if words is not None]
    texts = [words for words in documents if words is not None]
    counts = {unit: count_phrase(texts, unit) for unit in units}
    average = sum(map(len, texts)) / max(len(texts), 1)
    found = {}
    for place, row in enumerate(rows):
        held = [unit for unit in units if counts[unit][place]]
        if held and (mode == "or" or len(held) == len(units)):
            length = 0.25 + 0.75 * len(texts[place]) / average
            known = [(unit, df) for unit in units if (df := sum(count > 0 for count in counts[unit]))]
            found[row] = sum(
                one_term(scoring, len(rows), df, counts[unit][place], length, 1.5, 0.5) for unit, df in known
            )
    return found


def check(index: tadoc.Index, query: str, wanted: dict[int, float], **arguments: Any) -> None:
    found = index.search(query, k=1_000, **arguments)
    assert dict(found.select("id", "score").rows()) == pytest.approx(wanted, rel=1e-5, abs=1e-6)
    assert found["score"].to_list() == sorted(found["score"].to_list(), reverse=True)


@given(case=cases(normalised=True), data=st.data(), mode=st.sampled_from(["or", "and"]))
def test_columns(case: Case, data: Any, mode: str, engine: str) -> None:
    scoring = data.draw(st.sampled_from(SCORINGS))
    vocabulary = sorted({"zz", "a", *(word for words in case.documents if words for word in words)})
    unit = st.lists(st.sampled_from(vocabulary), min_size=1, max_size=3)
    there = [words for words in case.documents if words]
    if there:
        cut = st.builds(lambda words, i, n: list(words[i % len(words) :][:n]), st.sampled_from(there),
                        st.integers(0, 99), st.integers(1, 4))  # fmt: skip
        unit = st.one_of(unit, cut)
    units = data.draw(st.lists(unit, max_size=4))
    if any(oracle.tokenize([" ".join(words)]) != [words] for words in units):  # a normalised word may be two
        return
    query = " ".join(f'"{" ".join(words)}"' if len(words) > 1 or data.draw(st.booleans()) else words[0]
                     for words in units)  # fmt: skip
    morphism = Morphism.of({"normalize": None, "lowercase": False, "stopwords": None, **case.arguments})
    image = lambda word: word if morphism is None else morphism.images(pl.Series([word]))[0]  # noqa: E731
    images = [tuple(own for word in words if (own := image(word)) is not None) for words in units]
    index = tadoc.build_index(case.column, **{"lowercase": False, **case.arguments})
    wanted = expected(case.documents, [own for own in images if own], mode, scoring)
    check(index, query, wanted, mode=mode, scoring=scoring, engine=engine)


WAYS = {
    "in flat text": {},
    "word by word": {"FLAT_SHARE": 1 << 60},
    "by rules": {"FLAT_SHARE": 1 << 60, "FEW_WORDS": 0},
    "many threads": {"FEW_ROWS": 1},
    "not kept": {"KEPT_SHARE": 1 << 60},
}


@pytest.fixture(params=WAYS, autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each way in which candidates are read gives the same."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in WAYS[request.param].items():
            patched.setattr(segment_text, name, value)
        INDEX.texts.clear()
        INDEX.short_ways.clear()
        yield request.param
    INDEX.texts.clear()
    INDEX.short_ways.clear()


TEXTS = ["out of memory", "memory is out of order", None, "the out-of memory, out of memory killer", "Out of memory"]
INDEX = tadoc.build_index(tadoc.compress(pl.Series("text", TEXTS), rows_per_grammar=2), lowercase=False)


def ids(index: tadoc.Index, query: str, **arguments: Any) -> list[int]:
    return sorted(index.search(query, **arguments)["id"].to_list())


def test_text_is_kept(way: str) -> None:
    ids(INDEX, '"out of memory"')
    kept = [text for text in INDEX.texts.values() if text is not None]
    assert bool(kept) == (way != "not kept")


def test_phrases_and_words() -> None:
    assert ids(INDEX, '"out of memory"') == [0, 3]
    assert ids(INDEX, '"out of memory" killer', mode="and") == [3]
    assert ids(INDEX, '"out of memory" order') == [0, 1, 3]
    assert ids(INDEX, '"out of" "of order"', mode="and") == [1]
    assert ids(INDEX, '"memory out"') == [3]
    assert ids(INDEX, '"out zz"', mode="and") == ids(INDEX, '"order of"') == []
    assert ids(INDEX, 'killer"out of memory"order') == [0, 1, 3]


def test_a_phrase_of_one_word_is_the_word_and_one_of_none_is_nothing() -> None:
    assert INDEX.search('"memory"').equals(INDEX.search("memory"))
    assert INDEX.search('out "memory" ""').equals(INDEX.search("memory out"))
    assert INDEX.search('"" " - "').height == 0
    assert ids(INDEX, '" " killer', mode="and") == [3]
    assert INDEX.search('"out of" "out of"')["score"][0] == 2 * INDEX.search('"out of"')["score"][0]


def test_batches_cut_each_query_by_itself() -> None:
    queries = ['"out of memory"', "memory", None, 'killer "of order"', '"of order"', ""]
    batch = INDEX.search(queries)
    for number, query in enumerate(queries):
        alone = INDEX.search([query])
        assert batch.filter(pl.col("query") == number).drop("query").equals(alone.drop("query"))


def test_stop_words_between() -> None:
    index = tadoc.build_index(tadoc.compress(pl.Series(TEXTS)), lowercase=True, stopwords=["of", "the"])
    assert ids(index, '"out memory"') == ids(index, '"OUT of the Memory"') == [0, 3, 4]
    assert index.search('"of" "of the" killer', mode="and")["id"].to_list() == [3]


def test_after_append_and_delete_phrases_count_as_in_a_new_index() -> None:
    first = tadoc.compress(pl.Series("text", [text for text in TEXTS if text is not None]))
    more = tadoc.compress(pl.Series("text", ["no memory", "out of memory", "order of memory out of"]))
    changed = tadoc.build_index(first).append(more).delete([0, 4])
    rows = pl.concat([first, more])
    kept = [1, 2, 3, 5, 6]
    new = tadoc.build_index(rows.gather(kept), id=pl.Series(kept, dtype=changed.ids.dtype))
    queries = ['"out of memory"', '"out of" memory', '"memory out"', 'order "of memory"', "out"]
    for mode in ("or", "and"):
        assert changed.search(queries, mode=mode).equals(new.search(queries, mode=mode))
        assert changed.compact().search(queries, mode=mode).equals(new.search(queries, mode=mode))


def test_many_phrases_at_once() -> None:
    texts = [f"w{i % 13} w{i % 7} w{i % 5} w{i % 3}" for i in range(500)]
    index = tadoc.build_index(tadoc.compress(pl.Series(texts), rows_per_grammar=100))
    documents = [text.split() for text in texts]
    phrases = [(f"w{i % 13}", f"w{i % 7}") for i in range(91)]
    found = index.search([f'"{" ".join(phrase)}"' for phrase in phrases], k=500)
    for number, phrase in enumerate(phrases):
        own = found.filter(pl.col("query") == number)
        assert dict(own.select("id", "score").rows()) == pytest.approx(expected(documents, [phrase]), rel=1e-5)


def test_matches_overlap_and_words_that_are_left_out_do_not_part() -> None:
    texts = ["a a a a", "a b a b a", "b a", "x y x y x"]
    column = tadoc.compress(pl.Series(["a the a a the the a", *texts[1:]]))
    index = tadoc.build_index(column, stopwords=["the"])
    documents = [text.split() for text in texts]
    for phrase in [("a", "a"), ("a", "b", "a"), ("a", "a", "a"), ("b", "a"), ("x", "y", "x")]:
        check(index, f'"{" ".join(phrase)}"', expected(documents, [phrase]))


def test_what_is_wrong_is_said() -> None:
    assert ids(INDEX, 'killer "out of') == ids(INDEX, "killer out of")
    assert ids(INDEX, '"out of" "' + "b " * 500) == ids(INDEX, '"out of" b')
    without = tadoc.build_index(tadoc.compress(pl.Series(TEXTS)), store=False)
    with pytest.raises(ValueError, match=r"phrase 'out of' needs the text.*build it with store=True"):
        without.search('"out of"')
    assert ids(without, '"memory"') == [0, 1, 3, 4]
