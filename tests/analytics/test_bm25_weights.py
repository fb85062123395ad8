"""BM25 weights of the words of each row, against plain Python over the words, bm25s and our own search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.analytics import bm25_weights
from polars_tadoc.dictionary import dictionary
from polars_tadoc.engine.choose import CPU, Engine
from polars_tadoc.engine.choose import choose as chosen
from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.execute import counting, windows
from polars_tadoc.execute.stages import Stages
from tests import handmade, oracle
from tests import weights_oracle as weighed
from tests.analytic_cases import COLUMN, LABELS, STRATEGIES, Case, cases, labels, strategies, tops, with_labels
from tests.bm25_oracle import KAMPHUIS, SCORINGS
from tests.kernels.tokenize.test_tokenize import foreign
from tests.strategies import columns
from tests.weights_oracle import ROW, SCHEMA

constants = st.fixed_dictionaries(
    {},
    optional={
        "scoring": st.sampled_from(SCORINGS),
        "k1": st.sampled_from([0, 0.1, 1.5, 2]),
        "b": st.sampled_from([0, 0.75, 1]),
        "delta": st.sampled_from([0, 0.5, 1]),
    },
)


@given(case=cases(), id_=labels, top=tops, given_=constants, strategy=strategies)
def test_compressed(
    engine: str, case: Case, id_: pl.Series | None, top: int | None, given_: dict[str, Any], strategy: str
) -> None:
    frame, named, values = with_labels(case, id_)
    got = frame.tadoc.bm25_weights("text", **named, top=top, strategy=strategy, engine=engine, **given_)
    assert got.schema == {**SCHEMA, "id": ROW if id_ is None else id_.dtype}
    weighed.close(got.rows(), weighed.bm25_weights(case.documents, values, top, **given_), top)


@given(case=cases(normalised=True), top=tops, strategy=strategies)
def test_normalised(engine: str, case: Case, top: int | None, strategy: str) -> None:
    got = case.column.tadoc.bm25_weights(top=top, strategy=strategy, engine=engine, **case.arguments)
    weighed.close(got.rows(), weighed.bm25_weights(case.documents, top=top), top)


@given(rows=columns, top=tops, given_=constants)
def test_text(engine: str, rows: list[str | None], top: int | None, given_: dict[str, Any]) -> None:
    text = pl.Series("text", rows, pl.String)
    got = text.tadoc.bm25_weights(top=top, engine=engine, **given_)
    assert got.schema == SCHEMA
    weighed.close(got.rows(), weighed.bm25_weights(oracle.tokenize(rows), top=top, **given_), top)


@given(case=cases(normalised=True), top=tops)
def test_text_gives_what_its_compressed_form_does(engine: str, case: Case, top: int | None) -> None:
    text = case.column.tadoc.decompress()
    got = text.tadoc.bm25_weights(top=top, engine=engine, **case.arguments)
    expected = case.column.tadoc.bm25_weights(top=top, engine=engine, **case.arguments)
    assert got.equals(expected)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_frames_agree_on_a_string_column(engine: str, strategy: str) -> None:
    """Which has to be named."""
    frame = COLUMN.tadoc.decompress().to_frame().with_columns(LABELS["strings"].head(len(COLUMN)).alias("name"))
    for own in ({}, {"top": 2, "scoring": "bm25l"}, {"id": "name", "top": 1}, {"id": "name", "lowercase": True}):
        given_: dict[str, Any] = {**own, "strategy": strategy, "engine": engine}
        expected = frame.tadoc.bm25_weights("text", **given_)
        lazy = frame.lazy().tadoc.bm25_weights("text", **given_)
        assert lazy.collect_schema() == expected.schema
        assert lazy.collect().equals(expected)
        assert lazy.collect(engine="streaming").equals(expected)


def test_the_sum_of_weights_is_the_score(engine: str) -> None:
    for scoring in ("lucene", "robertson", "atire", "wakatsuki"):
        weights = COLUMN.tadoc.bm25_weights(scoring=scoring, engine=engine)
        own = weights.filter(pl.col("word").is_in(["cat", "dog"])).group_by("id").agg(pl.col("weight").sum())
        scores = tadoc.bm25(COLUMN, "cat dog", scoring=scoring)
        for row, weight in own.rows():
            assert scores[row] == pytest.approx(weight, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_a_weight_is_the_score_of_a_query_of_one_word(engine: str, scoring: str) -> None:
    """With what a word adds to every document, for forms that have it."""
    index = tadoc.build_index(COLUMN)
    weights = COLUMN.tadoc.bm25_weights(scoring=scoring, engine=engine)
    for word in weights["word"].unique():
        found = index.search(word, 10, scoring=scoring).select("id", "score")
        own = weights.filter(word=word).join(found, on="id", how="full")
        assert own["weight"].to_list() == pytest.approx(own["score"].to_list(), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("scoring", KAMPHUIS)
def test_same_as_bm25s(engine: str, corpus: Callable[[str], pl.DataFrame], scoring: str) -> None:
    """What bm25s stores; under "bm25+" and "bm25l" without what a document gets that has not the word."""
    bm25s = pytest.importorskip("bm25s")
    text = corpus("ir_cranfield_docs")["text"]
    words = text.str.to_lowercase().str.extract_all(r"\w+").to_list()
    other = bm25s.BM25(method=scoring, dtype="float64")
    other.index(words, show_progress=False)
    stored, names = other.scores, {number: word for word, number in other.vocab_dict.items()}
    theirs = pl.DataFrame({"id": stored["indices"].astype(np.uint32), "theirs": stored["data"]}).with_columns(
        word=pl.Series([names[k] for k, n in enumerate(np.diff(stored["indptr"])) for _ in range(n)], dtype=pl.String)
    )
    column = tadoc.compress(text, rows_per_grammar=500)
    weights = column.tadoc.bm25_weights(scoring=scoring, lowercase=True, engine=engine)
    own = weights.cast({"id": pl.UInt32}).join(theirs, on=["id", "word"], how="left")
    assert own["theirs"].null_count() == 0
    both = own.with_columns(df=pl.len().over("word"))
    n, df = len(text), both["df"].to_numpy()
    base = {"bm25+": np.log((n + 1) / df) * 0.5, "bm25l": np.log((n + 1) / (df + 0.5)) * 2.5 * 0.5 / 2.0}.get(
        scoring, 0
    )
    np.testing.assert_allclose(both["weight"], both["theirs"] + base, rtol=1e-6, atol=1e-7)
    assert theirs.filter(pl.col("theirs") != 0).height <= own.height


def test_rows_stay_in_order_across_grammars(engine: str) -> None:
    texts = ["a b", "a", "c a"]
    mixed = pl.concat([tadoc.compress(pl.Series([text])) for text in texts])[[2, 0, 1, 2]]
    documents = [texts[k].split() for k in (2, 0, 1, 2)]
    weighed.close(mixed.tadoc.bm25_weights(engine=engine).rows(), weighed.bm25_weights(documents))


def test_ties_are_in_code_point_order(engine: str) -> None:
    words = ["é", "z", "a", "Z", "日", "𝒳", "\uffdc", "aa", "ab", "_", "1"]
    text = pl.Series([" ".join(words), " ".join(reversed(words))])
    for column in (tadoc.compress(text, rows_per_grammar=1), tadoc.compress(text), text):
        for top in (None, 3):
            assert column.tadoc.bm25_weights(top=top, engine=engine)["word"].to_list() == 2 * sorted(words)[:top]


def test_null_rows_are_no_documents(engine: str) -> None:
    with_nulls, without = pl.Series([None, "a b", None, "a"]), pl.Series(["a b", "a"])
    for compressed in (False, True):
        first, second = (s.tadoc.compress() if compressed else s for s in (with_nulls, without))
        got = first.tadoc.bm25_weights(engine=engine)
        assert got["id"].to_list() == [1, 1, 3]
        assert got["weight"].equals(second.tadoc.bm25_weights(engine=engine)["weight"])


def test_words_of_rows_that_are_gone_count_nothing(engine: str) -> None:
    """Even where no formula would have a value for a word without documents."""
    column = tadoc.compress(pl.Series(["x y z", "a b a"])).tail(1)
    for scoring in SCORINGS:
        got = column.tadoc.bm25_weights(scoring=scoring, engine=engine)
        weighed.close(
            got.with_columns(id=pl.lit(0, ROW)).rows(), weighed.bm25_weights([["a", "b", "a"]], scoring=scoring)
        )


@pytest.mark.slow
def test_counts_beyond_32_bits(engine: str) -> None:
    chain = [[0, 0], *([k + 3, k + 3] for k in range(32))]
    grammar = handmade.grammar(["a", "b", "c"], [*chain, [3 + 31, 1]])
    with tadoc.Config(expansion_limit=1 << 40):
        column = handmade.column(grammar, [[35, 35, 1], [36], None, [2]])
        for strategy in STRATEGIES:
            got = column.tadoc.bm25_weights(scoring="atire", strategy=strategy, engine=engine)
            assert got["id"].to_list() == [0, 0, 1, 1, 3]
            lengths, counts = (
                np.array([2.0**34 + 1, 2.0**32 + 1, 1.0]),
                np.array([2.0**34, 2.0**32]),
            )
            norms = 1.5 * (0.25 + 0.75 * lengths / lengths.mean())
            np.testing.assert_allclose(
                got.filter(word="a")["weight"], np.log(3 / 2) * 2.5 * counts / (counts + norms[:2]), rtol=1e-12
            )


def test_all_words_deleted(engine: str) -> None:
    for column in (COLUMN, COLUMN.tadoc.decompress()):
        got = column.tadoc.bm25_weights(stopwords=["the", "cat", "dog", "saw", "a"], engine=engine)
        assert got.schema == SCHEMA
        assert got.is_empty()


def test_a_top_beyond_64_bits(engine: str) -> None:
    got = COLUMN.tadoc.bm25_weights(top=10**30, engine=engine)
    assert got.sort("id", "word").equals(COLUMN.tadoc.bm25_weights(engine=engine))


def test_tokenizers(engine: str) -> None:
    text = pl.Series(["to-be or", "to-be"])
    for tokenizer in ("whitespace", "words"):
        compressed = tadoc.compress(text, tokenizer=tokenizer)
        got = text.tadoc.bm25_weights(tokenizer=tokenizer, engine=engine)
        assert got.equals(compressed.tadoc.bm25_weights(engine=engine))
        assert got.equals(compressed.tadoc.bm25_weights(tokenizer=tokenizer, engine=engine))
    assert text.tadoc.bm25_weights(tokenizer="whitespace")["word"].to_list() == ["or", "to-be", "to-be"]


def test_another_tokenizer_than_the_column_was_cut_by() -> None:
    message = r'bm25_weights: tokenizer= is for String columns; grammar \w+… was cut by "words", not "whitespace"'
    with pytest.raises(TypeError, match=message):
        COLUMN.tadoc.bm25_weights(tokenizer="whitespace")
    with pytest.raises(TypeError, match=message):
        COLUMN.to_frame().lazy().tadoc.bm25_weights(tokenizer="whitespace", memory_limit="1GB").collect()


def test_other_columns() -> None:
    numbers = pl.DataFrame({"year": [1]})
    for call in (lambda: tadoc.bm25_weights(numbers["year"]), lambda: numbers.tadoc.bm25_weights("year")):
        with pytest.raises(tadoc.errors.NotCompressedError, match='bm25_weights: column "year" is Int64'):
            call()
    plain = pl.DataFrame({"year": [1], "text": ["a"]})
    for frame in (plain, plain.lazy()):
        with pytest.raises(
            tadoc.errors.NotCompressedError, match=r'column: bm25_weights\("text"\); it may be String or c'
        ):
            frame.tadoc.bm25_weights()
        with pytest.raises(tadoc.errors.NotCompressedError, match="the frame has no TADOC column; compress one first"):
            frame.select("year").tadoc.bm25_weights()
    with pytest.raises(tadoc.errors.ColumnMissingError, match='did you mean "text"'):
        pl.DataFrame({"text": ["a"]}).lazy().tadoc.bm25_weights("txt")


@pytest.mark.parametrize("call", ["bm25_weights", "tfidf", "to_csr"])
def test_columns_that_a_cast_mends(call: str) -> None:
    for made in (
        pl.Series("kind", [1, 2]),
        pl.Series("kind", [None]),
    ):
        mended = r'neither String nor a TADOC column; cast it: pl\.col\("kind"\)\.cast\(pl\.String\)$'
        with pytest.raises(tadoc.errors.NotCompressedError, match=mended):
            getattr(tadoc, call)(made)
        with pytest.raises(tadoc.errors.NotCompressedError, match=mended):
            getattr(made.to_frame().tadoc, call)("kind")
        getattr(tadoc, call)(made.cast(pl.String))
    packed = COLUMN.to_frame("text").tadoc.pack()
    with pytest.raises(tadoc.errors.NotCompressedError, match=r'unpack the rows: df\.tadoc\.unpack\("text"\)'):
        getattr(tadoc, call)(packed["text"])
    getattr(packed.tadoc.unpack("text").tadoc, call)("text")


class TestDictionaries:
    """Only words of a dictionary have weights; the others count to lengths, or are as if not there."""

    @given(case=cases(normalised=True), data=st.data(), top=tops, strategy=strategies)
    def test_known_words(self, engine: str, case: Case, data: st.DataObject, top: int | None, strategy: str) -> None:
        there = sorted({word for words in case.documents if words for word in words if "\x00" not in word})
        known = data.draw(st.lists(st.sampled_from([*there, "zz", "the"]), unique=True))
        words = tadoc.Dictionary.from_words(pl.Series(known, dtype=pl.String))
        arguments = {"top": top, "strategy": strategy, "engine": engine, "dictionary": words, **case.arguments}
        for column in (case.column, case.column.tadoc.decompress()):
            got = column.tadoc.bm25_weights(scoring="wakatsuki", **arguments)
            expected = weighed.bm25_weights(case.documents, top=top, known=known, scoring="wakatsuki")
            assert got.schema == SCHEMA
            weighed.close(got.rows(), expected, top)
            weighed.close(
                column.tadoc.tfidf(**arguments).rows(), weighed.tfidf(case.documents, top=top, known=known), top
            )

    @pytest.mark.parametrize("compressed", [True, False])
    def test_in_plans(self, engine: str, compressed: bool) -> None:
        frame = (COLUMN if compressed else COLUMN.tadoc.decompress()).to_frame()
        words = tadoc.Dictionary.from_words(pl.Series(["cat", "saw", "bird"]))
        for call in ("bm25_weights", "tfidf"):
            expected = getattr(frame.tadoc, call)("text", dictionary=words, engine=engine)
            for limit in (None, "1GB"):
                lazy = getattr(frame.lazy().tadoc, call)("text", dictionary=words, engine=engine, memory_limit=limit)
                assert lazy.collect().equals(expected)
            assert set(expected["word"]) == {"cat", "saw"}

    @pytest.mark.parametrize("share", [0, 1 << 40])
    def test_a_column_compressed_with_it(self, engine: str, share: int) -> None:
        """Its words are told by where they stand, or looked up."""
        text = COLUMN.tadoc.decompress()
        words = tadoc.Dictionary.from_words(pl.Series(["cat", "saw", "bird"]))
        other = tadoc.Dictionary.from_words(pl.Series(["bird", "the", "saw", "zebra"]))
        column = tadoc.compress(text, dictionary=words)
        for given_ in ({}, {"dictionary": words}, {"dictionary": other}, {"lowercase": True, "top": 2}):
            expected = text.tadoc.bm25_weights(engine=engine, **given_)
            with patch.object(counting, "LOOKED_UP_SHARE", share):
                assert column.tadoc.bm25_weights(engine=engine, **given_).equals(expected)
        few, expected = column.head(1), text.head(1).tadoc.bm25_weights(dictionary=words, engine=engine)
        with patch.object(counting, "LOOKED_UP_SHARE", share):
            assert few.tadoc.bm25_weights(dictionary=words, engine=engine).equals(expected)

    @pytest.mark.parametrize("call", ["bm25_weights", "tfidf", "to_csr"])
    def test_words_are_looked_up_on_the_engine_asked_for(self, engine: str, call: str) -> None:
        """Whatever is set otherwise."""
        words = tadoc.Dictionary.from_words(pl.Series(["cat", "saw", "bird"]))
        asked = []

        def choose(name: str | None, *rest: int) -> Engine:
            asked.append(name)
            return chosen(name, *rest)

        with patch.object(dictionary, "choose", choose):
            for column in (COLUMN, COLUMN.tadoc.decompress()):
                getattr(column.tadoc, call)(dictionary=words, lowercase=True, engine=engine)
        assert set(asked) == {engine}


def test_several_grammars_are_weighed_on_the_engine_asked_for(engine: str) -> None:
    """Though they are put together in host memory."""
    parts = [tadoc.compress(pl.Series("text", rows)) for rows in (["a b", "c"], ["a a", None])]
    request = bm25_weights.BM25WeightsRequest.from_arguments(engine=engine)
    both = request.counting.settle(Stages(request.counting).all(pl.concat(parts)))
    assert both.engine.name == engine
    assert both.on_host().offsets.tolist() == [0, 2, 3, 4]
    moved = both.on(CPU).on(both.engine)
    assert moved.engine.kernels.to_host(moved.counts).tolist() == [1, 1, 1, 2]


class TestStreams:
    """A String column in a plan is answered batch by batch, too."""

    ROWS = pl.Series("text", [f"w{k % 5} the w{k % 3} cat {k}" if k % 7 else None for k in range(200)])

    @pytest.mark.parametrize("call", ["bm25_weights", "tfidf"])
    @pytest.mark.parametrize("waiting", [1, windows.TEXT_SHARE, 1 << 62])
    def test_text_in_so_much_memory(self, engine: str, call: str, waiting: int) -> None:
        frame = pl.DataFrame({"text": self.ROWS, "name": [f"row {k}" for k in range(200)]})
        plan = pl.concat([frame[start : start + 17].lazy() for start in range(0, 200, 17)])
        for arguments in ({}, {"id": "name", "top": 2}, {"lowercase": True, "stopwords": ["the"]}):
            expected = getattr(frame.tadoc, call)("text", **arguments, engine=engine)
            with patch.object(windows, "TEXT_SHARE", waiting):
                lazy = getattr(plan.tadoc, call)("text", **arguments, engine=engine, memory_limit="1GB")
                assert lazy.collect_schema() == expected.schema
                assert lazy.collect().equals(expected)

    def test_hardly_any_memory(self) -> None:
        lazy = self.ROWS.to_frame().lazy().tadoc.bm25_weights("text", memory_limit=1000)
        assert lazy.collect().equals(self.ROWS.to_frame().tadoc.bm25_weights("text"))

    def test_no_rows(self) -> None:
        lazy = self.ROWS.clear().to_frame().lazy().tadoc.bm25_weights("text", memory_limit="1GB")
        assert lazy.collect().schema == SCHEMA

    def test_text_in_several_blocks(self, engine: str) -> None:
        expected = self.ROWS.tadoc.bm25_weights(engine=engine, top=3)
        for most in (1, 40, 1000):
            with patch.object(counting, "TEXT_BYTES", most):
                got = self.ROWS.tadoc.bm25_weights(engine=engine, top=3)
            assert got.equals(expected)

    def test_what_is_not_utf8_is_found_in_any_block(self, engine: str) -> None:
        """And named by its row of the whole column."""
        text = foreign([b"fine"] * 100 + [b"\xff", b"z"], pa.large_string())
        for most in (1, 40, 1 << 30):
            with patch.object(counting, "TEXT_BYTES", most):
                for call in (tadoc.bm25_weights, tadoc.to_csr):
                    with pytest.raises(ValueError, match=r'column "body", row 100: not UTF-8 \('):
                        call(text, engine=engine)
            request = bm25_weights.BM25WeightsRequest.from_arguments(engine=engine)
            with pytest.raises(ValueError, match='column "body", row 107: not UTF-8'):
                list(request.text_partials(text, 7, DeviceBatches("bm25_weights", engine)))
