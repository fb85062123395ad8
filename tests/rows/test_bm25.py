"""Scores by row, against plain Python over each row's words."""

from __future__ import annotations

import math
import pickle
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.errors import NotCompressedError
from polars_tadoc.model.word_map import Morphism
from tests import handmade, oracle, strategies
from tests.analytic_cases import COLUMN, NOTHING, Case, cases

SCORINGS = ["robertson", "lucene", "atire", "bm25+", "bm25l", "wakatsuki"]
Rows = Sequence[Sequence[str] | None]


def expected(
    documents: Rows,
    query: Sequence[str],
    scoring: str = "lucene",
    k1: float = 1.5,
    b: float = 0.75,
    delta: float = 0.5,
) -> list[float | None]:
    """The formulas of Kamphuis et al. (ECIR 2020), table 1, and of Wakatsuki et al., as they stand there."""
    counted = [Counter(words) for words in documents if words is not None]
    n = len(counted)
    average = sum(own.total() for own in counted) / n if n else 0
    frequencies = {term: sum(term in own for own in counted) for term in query}
    scores: list[float | None] = []
    for words in documents:
        if words is None:
            scores.append(None)
            continue
        own = Counter(words)
        score, length = 0.0, 1 - b + b * len(words) / average if average else 1
        for term in query:
            if frequencies[term]:
                score += one_term(scoring, n, frequencies[term], own[term], length, k1, delta)
        scores.append(score if any(own[term] for term in query) else 0.0)
    return scores


def one_term(scoring: str, n: int, df: int, tf: int, length: float, k1: float, delta: float) -> float:
    match scoring:
        case "robertson":
            return max(0, math.log((n - df + 0.5) / (df + 0.5))) * tf / (k1 * length + tf)
        case "lucene":
            return math.log(1 + (n - df + 0.5) / (df + 0.5)) * tf / (k1 * length + tf)
        case "atire":
            return math.log(n / df) * tf * (k1 + 1) / (k1 * length + tf)
        case "wakatsuki":
            return math.log((n + 0.5) / (df + 0.5)) * (k1 + 1) * tf / (k1 * length + tf)
        case "bm25+":
            return math.log((n + 1) / df) * (delta + tf * (k1 + 1) / (k1 * length + tf))
    share = tf / length
    return math.log((n + 1) / (df + 0.5)) * (k1 + 1) * (share + delta) / (k1 + share + delta)


def agree(got: pl.Series, wanted: Sequence[float | None]) -> None:
    assert got.dtype == pl.Float32
    assert got.is_null().to_list() == [score is None for score in wanted]
    assert got.drop_nulls().to_list() == pytest.approx([s for s in wanted if s is not None], rel=1e-5, abs=1e-6)


def drawn_query(data: st.DataObject, documents: Rows) -> list[str]:
    vocabulary = sorted({"zz", "a", *(word for words in documents if words for word in words)})
    return data.draw(st.lists(st.sampled_from(vocabulary), max_size=20))


@given(case=cases(normalised=True), data=st.data(), scoring=st.sampled_from(SCORINGS))
def test_columns(case: Case, data: Any, scoring: str) -> None:
    arguments = {"k1": data.draw(st.sampled_from([0.1, 1.5, 2])), "b": data.draw(st.sampled_from([0, 0.75, 0.9]))}
    arguments["delta"] = data.draw(st.sampled_from([0, 0.5]))
    query = drawn_query(data, case.documents)
    if oracle.tokenize([" ".join(query)]) != [query]:  # a normalised word may be two
        return
    morphism = Morphism.of({"normalize": None, "lowercase": False, "stopwords": None, **case.arguments})
    terms = query if morphism is None else morphism.images(pl.Series(query, dtype=pl.String)).drop_nulls().to_list()
    got = tadoc.bm25(case.column, " ".join(query), scoring=scoring, **arguments, **case.arguments)
    agree(got, expected(case.documents, terms, scoring, **arguments))
    assert got.name == case.column.name


@given(made=strategies.grammars(), data=st.data(), scoring=st.sampled_from(SCORINGS))
def test_handmade_grammars(made: Any, data: Any, scoring: str) -> None:
    size, bodies, level_offsets, rows = made
    grammar = handmade.grammar(handmade.words(size), bodies, level_offsets)
    column = handmade.column(grammar, rows) if rows else handmade.column(grammar, [[0]]).head(0)
    documents = [text.split() for text in tadoc.decompress(column)]
    query = drawn_query(data, documents)
    agree(tadoc.bm25(column, " ".join(query), scoring=scoring), expected(documents, query, scoring))
    stopped = data.draw(st.sampled_from(["w0", "w1"]))
    left = [[word for word in words if word != stopped] for words in documents]
    agree(
        tadoc.bm25(column, " ".join(query), scoring=scoring, stopwords=[stopped]),
        expected(left, [word for word in query if word != stopped], scoring),
    )


@pytest.mark.parametrize("rows", NOTHING)
@pytest.mark.parametrize("query", ["", "a", " . ", "a b"])
def test_columns_without_a_word(rows: list[str | None], query: str) -> None:
    scores = tadoc.bm25(tadoc.compress(pl.Series("text", rows, pl.String)), query)
    assert scores.to_list() == [None if row is None else 0.0 for row in rows]


@pytest.mark.parametrize("count", [16, 17, 32, 33, 64, 65, 200])
def test_many_terms_are_summed_in_the_same_order(count: int) -> None:
    """Terms of a query are counted some at a time; scores are the same as of one with all terms and no others."""
    words = [f"w{i}" for i in range(count)]
    rows = [" ".join(words[i :: 1 + i % 7]) for i in range(50)]
    column = tadoc.compress(pl.Series("text", rows), rows_per_grammar=20)
    documents = [row.split() for row in rows]
    got = tadoc.bm25(column, " ".join(words))
    agree(got, expected(documents, words))
    together = tadoc.compress(pl.Series("text", rows))
    assert tadoc.bm25(together, " ".join(reversed(words))).equals(got)


def test_ten_thousand_terms() -> None:
    words = [f"w{i}" for i in range(10_000)]
    rows = [" ".join(words), "w1 w2", "x"]
    scores = tadoc.bm25(tadoc.compress(pl.Series(rows)), " ".join(words))
    assert scores[0] > scores[1] > scores[2] == 0


TEXTS = ["a b", "b c", None, "c c a", "", "a", "b a b", "d"]
GROUPS = [1, 2, 1, 1, 2, 2, 1, 3]
FRAME = pl.DataFrame({"row": range(8), "group": GROUPS, "plain": TEXTS}).with_columns(
    text=tadoc.compress(pl.Series("text", TEXTS), rows_per_grammar=3)
)
WORDS = [None if text is None else text.split() for text in TEXTS]
SCORE = pl.col("text").tadoc.bm25("a c", scoring="bm25+")


def by_group() -> dict[int, list[float | None]]:
    return {
        group: expected([WORDS[i] for i in range(8) if GROUPS[i] == group], ["a", "c"], "bm25+") for group in (1, 2, 3)
    }


def of_all() -> list[float | None]:
    return expected(WORDS, ["a", "c"], "bm25+")


ENGINES: list[Any] = ["in-memory", "streaming"]


@pytest.mark.parametrize("how", ENGINES)
def test_plans_score_whole_columns(how: Any) -> None:
    lazy, wanted = FRAME.lazy(), of_all()
    agree(lazy.select(SCORE).collect(engine=how)["text"], wanted)
    after = lazy.with_columns(score=SCORE).filter(pl.col("group") == 2).collect(engine=how)
    agree(after["score"], [wanted[i] for i in range(8) if GROUPS[i] == 2])
    agree(lazy.with_columns(score=SCORE).slice(3, 2).collect(engine=how)["score"], wanted[3:5])
    found = lazy.filter(SCORE > 0).filter(pl.col("group") == 1).select("row").collect(engine=how)
    assert found["row"].to_list() == [0, 3, 6]
    order = sorted((i for i in range(8) if wanted[i] is not None), key=lambda i: -wanted[i])  # type: ignore[operator]
    best = lazy.sort(SCORE, descending=True, nulls_last=True, maintain_order=True).select("row").collect(engine=how)
    assert best["row"].to_list() == [*order, 2]
    twice = pl.concat([lazy, lazy]).with_columns(score=SCORE).collect(engine=how)
    agree(twice["score"], expected(WORDS * 2, ["a", "c"], "bm25+"))


@pytest.mark.parametrize("how", ENGINES)
def test_groups_are_scored_among_themselves(how: Any) -> None:
    lazy, wanted = FRAME.lazy(), by_group()
    counted = lazy.group_by("group").agg(SCORE).sort("group").collect(engine=how)
    for group, scores in zip(counted["group"], counted["text"], strict=True):
        agree(scores, wanted[group])
    over = lazy.with_columns(score=SCORE.over("group")).collect(engine=how)
    left = {group: iter(scores) for group, scores in wanted.items()}
    agree(over["score"], [next(left[group]) for group in GROUPS])
    best = lazy.group_by("group").agg(pl.col("row").get(SCORE.arg_max()))  # sort_by(…).first() is wrong in Polars 2.1
    assert dict(best.collect(engine=how).rows()) == {1: 3, 2: 5, 3: 7}
    highest = lazy.group_by("group").agg(SCORE.max()).sort("group").collect(engine=how)
    agree(highest["text"], [max(s for s in wanted[g] if s is not None) for g in (1, 2, 3)])


@pytest.mark.parametrize("how", ENGINES)
def test_streaming_hands_over_all_rows_of_many_batches(how: Any, tmp_path: Any) -> None:
    texts = [f"w{i % 7} w{i % 3} {'x ' * (i % 5)}" for i in range(20_000)]
    column = tadoc.compress(pl.Series("text", texts), rows_per_grammar=3_000)
    path = tmp_path / "rows.parquet"
    column.to_frame().write_parquet(path, row_group_size=1_000)
    wanted = tadoc.bm25(column, "w1 w2 x")
    agree(wanted.head(200), expected([text.split() for text in texts], ["w1", "w2", "x"])[:200])
    score = pl.col("text").tadoc.bm25("w1 w2 x")
    assert pl.scan_parquet(path).select(score).collect(engine=how)["text"].equals(wanted)
    assert pl.scan_parquet(path).filter(score > 0).select(pl.len()).collect(engine=how).item() == (wanted > 0).sum()


def test_groups_score_as_alone() -> None:
    """More groups times terms than are counted in one table; each is to the bit what it is by itself."""
    terms = " ".join(f"w{i}" for i in range(70))
    texts = [f"w{i % 70} w{i * i % 70} w{i % 11}" for i in range(60_000)]
    frame = pl.DataFrame({"group": [i // 3 for i in range(60_000)], "text": texts}).tadoc.compress("text")
    score = pl.col("text").tadoc.bm25(terms, scoring="bm25+")
    scored = frame.with_columns(score=score.over("group"))
    for group in (0, 77, 19_999):
        own = frame.filter(pl.col("group") == group)["text"]
        assert scored.filter(pl.col("group") == group)["score"].equals(tadoc.bm25(own, terms, scoring="bm25+"))


def test_empty_frames_and_groups() -> None:
    empty = FRAME.head(0)
    assert empty.with_columns(score=SCORE)["score"].to_list() == []
    assert empty.filter(SCORE > 0).is_empty()
    assert empty.group_by("group").agg(SCORE).schema["text"] == pl.List(pl.Float32)
    assert empty.with_columns(score=SCORE.over("group")).schema["score"] == pl.Float32
    agree(FRAME.head(1).select(SCORE)["text"], expected(WORDS[:1], ["a", "c"], "bm25+"))


def test_a_plan_can_be_sent_on() -> None:
    sent = pickle.loads(pickle.dumps(FRAME.lazy().select(SCORE)))
    agree(sent.collect()["text"], of_all())


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="query must be a string, not list"):
        tadoc.bm25(COLUMN, ["cat"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="query is not text: surrogates"):
        tadoc.bm25(COLUMN, "\ud800")
    with pytest.raises(ValueError, match="scoring='tfidf': use one of 'robertson', 'lucene'"):
        pl.col("text").tadoc.bm25("cat", scoring="tfidf")
    with pytest.raises(ValueError, match="b=2 must be from 0 to 1"):
        pl.col("text").tadoc.bm25("cat", b=2)
    with pytest.raises(TypeError, match="k1='x' must be a number"):
        COLUMN.tadoc.bm25("cat", k1="x")
    with pytest.raises(TypeError, match="pass a list of words"):
        COLUMN.tadoc.bm25("cat", stopwords="the")
    with pytest.raises(NotCompressedError, match='bm25: column "a" is Int64'):
        tadoc.bm25(pl.Series("a", [1]), "x")
    with pytest.raises(NotCompressedError, match='bm25: column "plain" is UInt32'):
        FRAME.select(pl.col("plain").str.len_bytes().tadoc.bm25("a"))


def test_rows_cut_by_different_tokenizers() -> None:
    column = pl.concat([COLUMN, tadoc.compress(pl.Series("text", ["a-b"]), tokenizer=re.compile(r"\S+"))])
    with pytest.raises(ValueError, match=r"different tokenizers \(words, regex:"):
        tadoc.bm25(column, "cat")


@given(case=cases(normalised=True), data=st.data(), scoring=st.sampled_from(SCORINGS))
def test_scores_are_those_of_an_index(case: Case, data: Any, scoring: str) -> None:
    """Bit for bit."""
    query = " ".join(drawn_query(data, case.documents))
    found = tadoc.build_index(case.column, **case.arguments).search(query, k=100, scoring=scoring)
    scores = tadoc.bm25(case.column, query, scoring=scoring, **case.arguments)
    wanted = dict(found.select("id", "score").rows())
    assert scores.to_list() == [
        None if words is None else wanted.get(row, 0.0) for row, words in enumerate(case.documents)
    ]


@pytest.mark.parametrize("scoring", SCORINGS)
def test_scores_of_a_corpus_are_those_of_an_index(corpus: Any, scoring: str) -> None:
    column = tadoc.compress(corpus("ir_vaswani_docs")["text"])
    queries = corpus("ir_vaswani_queries")["text"].gather_every(5).to_list()
    found = tadoc.build_index(column, lowercase=True).search(queries, k=len(column), scoring=scoring)
    for number, query in enumerate(queries):
        own = found.filter(pl.col("query") == number)
        scores = tadoc.bm25(column, query, scoring=scoring, lowercase=True)
        assert scores.gather(own["id"]).equals(own["score"])
        assert (scores != 0).sum() <= own.height
