"""TF-IDF weights of the words of each row, against plain Python over the words and scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from tests import ROOT, oracle
from tests import weights_oracle as weighed
from tests.analytic_cases import COLUMN, NOTHING, Case, cases, labels, strategies, tops, with_labels
from tests.strategies import columns, columns_without_nulls
from tests.weights_oracle import ROW, SCHEMA

SAMPLES = sorted((ROOT / "examples" / "data").glob("*.parquet"))
OPTIONS: list[dict[str, Any]] = [
    {},
    {"smooth_idf": False, "sublinear_tf": True},
    {"norm": "l1"},
    {"use_idf": False, "norm": None},
    {"sublinear_tf": True, "norm": None, "smooth_idf": False},
]
options = st.fixed_dictionaries(
    {},
    optional={
        "use_idf": st.booleans(),
        "smooth_idf": st.booleans(),
        "sublinear_tf": st.booleans(),
        "norm": st.sampled_from(["l1", "l2", None]),
    },
)


@given(case=cases(), id_=labels, top=tops, given_=options, strategy=strategies)
def test_compressed(
    engine: str, case: Case, id_: pl.Series | None, top: int | None, given_: dict[str, Any], strategy: str
) -> None:
    frame, named, values = with_labels(case, id_)
    got = frame.tadoc.tfidf("text", **named, top=top, strategy=strategy, engine=engine, **given_)
    assert got.schema == {**SCHEMA, "id": ROW if id_ is None else id_.dtype}
    weighed.close(got.rows(), weighed.tfidf(case.documents, values, top, **given_), top)


@given(case=cases(normalised=True), top=tops, strategy=strategies)
def test_normalised(engine: str, case: Case, top: int | None, strategy: str) -> None:
    got = case.column.tadoc.tfidf(top=top, strategy=strategy, engine=engine, **case.arguments)
    weighed.close(got.rows(), weighed.tfidf(case.documents, top=top), top)
    text = case.column.tadoc.decompress()
    weighed.close(
        text.tadoc.tfidf(top=top, engine=engine, **case.arguments).rows(), weighed.tfidf(case.documents, top=top), top
    )


@given(rows=columns, top=tops, given_=options)
def test_text(engine: str, rows: list[str | None], top: int | None, given_: dict[str, Any]) -> None:
    got = pl.Series("text", rows, pl.String).tadoc.tfidf(top=top, engine=engine, **given_)
    assert got.schema == SCHEMA
    weighed.close(got.rows(), weighed.tfidf(oracle.tokenize(rows), top=top, **given_), top)


@pytest.mark.parametrize("rows", NOTHING, ids=repr)
def test_nothing_to_weigh(engine: str, rows: list[str | None]) -> None:
    text = pl.Series("text", rows, pl.String)
    for column in (tadoc.compress(text), text):
        for given_ in OPTIONS:
            got = column.tadoc.tfidf(engine=engine, **given_)
            assert got.schema == SCHEMA
            assert got.is_empty()


class TestMatrices:
    """``to_csr(weights=)``, against the table and scikit-learn."""

    @pytest.fixture(autouse=True)
    def _scipy(self) -> None:
        pytest.importorskip("scipy")

    @given(case=cases(normalised=True), least=st.integers(0, 3), given_=options, strategy=strategies)
    def test_weights_are_those_of_the_table(
        self, engine: str, case: Case, least: int, given_: dict[str, Any], strategy: str
    ) -> None:
        """Words that are too rare are as if not there for TF-IDF, and count to lengths for BM25."""
        counts, names = tadoc.to_csr(case.column, min_count=least, **case.arguments)
        kept = [words and [word for word in words if word in names.to_list()] for words in case.documents]
        for weights, expected in (
            (tadoc.TFIDF(**given_), weighed.tfidf(kept, **given_)),
            (tadoc.BM25("wakatsuki"), weighed.bm25_weights(case.documents, known=names.to_list(), scoring="wakatsuki")),
        ):
            for column in (case.column, case.column.tadoc.decompress()):
                matrix, words = tadoc.to_csr(
                    column, weights=weights, min_count=least, strategy=strategy, engine=engine, **case.arguments
                )
                assert words.equals(names)
                assert matrix.dtype == np.float64
                assert matrix.shape == counts.shape
                assert matrix.indices.tolist() == counts.indices.tolist()
                assert matrix.indptr.tolist() == counts.indptr.tolist()
                rows = np.repeat(np.arange(len(column)), np.diff(matrix.indptr)).tolist()
                got = zip(rows, words.gather(matrix.indices).to_list(), matrix.data.tolist(), strict=True)
                weighed.close(list(got), expected)

    @given(rows=columns_without_nulls, given_=options)
    def test_same_as_scikit_learn(self, engine: str, rows: list[str], given_: dict[str, Any]) -> None:
        text = pytest.importorskip("sklearn.feature_extraction.text")
        documents = oracle.tokenize(rows)
        if not any(documents):
            return
        other = text.TfidfVectorizer(analyzer=lambda words: words, **given_)
        expected = other.fit_transform(documents)
        for column in (pl.Series(rows, dtype=pl.String), tadoc.compress(pl.Series(rows, dtype=pl.String))):
            matrix, words = tadoc.to_csr(column, weights=tadoc.TFIDF(**given_), engine=engine)
            agree(matrix, words, expected, other)

    @pytest.mark.parametrize(
        ("name", "lowercase", "given_"),
        [("docs_tldr", False, OPTIONS[0]), ("docs_peps", True, OPTIONS[1]), ("docs_tldr", True, OPTIONS[2])],
    )
    def test_same_as_scikit_learn_on_a_corpus(
        self,
        engine: str,
        corpus: Callable[[str], pl.DataFrame],
        name: str,
        lowercase: bool,
        given_: dict[str, Any],
    ) -> None:
        """The words are ours, which only where a run of word characters holds Han or kana are others.

        All options, on small texts, are in the tests before.
        """
        text = pytest.importorskip("sklearn.feature_extraction.text")
        rows = corpus(name)["text"].gather_every(3)
        documents, column = oracle.tokenize(rows), tadoc.compress(rows)
        if lowercase:
            documents = pl.Series(documents).list.eval(pl.element().str.to_lowercase()).to_list()
        other = text.TfidfVectorizer(analyzer=lambda words: words, **given_)
        expected = other.fit_transform(documents)
        matrix, words = tadoc.to_csr(column, weights=tadoc.TFIDF(**given_), lowercase=lowercase, engine=engine)
        agree(matrix, words, expected, other)

    @pytest.mark.parametrize("lowercase", [False, True])
    def test_same_as_its_own_words(self, engine: str, lowercase: bool) -> None:
        """On texts where its pattern for words means what ours does."""
        text = pytest.importorskip("sklearn.feature_extraction.text")
        for path in SAMPLES:
            for rows in pl.read_parquet(path).select(pl.col(pl.String)).iter_columns():
                rows = rows.drop_nulls().str.replace_all(r"[^ -~\n]", " ")
                other = text.TfidfVectorizer(token_pattern=r"\w+", lowercase=lowercase)
                expected = other.fit_transform(rows.to_list())
                matrix, words = tadoc.to_csr(rows, weights=tadoc.TFIDF(), lowercase=lowercase, engine=engine)
                agree(matrix, words, expected, other)

    def test_wrong_weights(self) -> None:
        with pytest.raises(TypeError, match=r"or None, not the class; call it: tadoc.TFIDF\(\)$"):
            tadoc.to_csr(COLUMN, weights=tadoc.TFIDF)  # type: ignore[arg-type]
        for wrong in ("bm25", tadoc.BM25, 1.0, {"norm": "l2"}):
            with pytest.raises(
                TypeError, match=r"to_csr: weights= takes tadoc.BM25\(\), tadoc.TFIDF\(\) or None, not "
            ):
                tadoc.to_csr(COLUMN, weights=wrong)  # type: ignore[arg-type]


def agree(matrix: Any, words: pl.Series, expected: Any, other: Any) -> None:
    """The same words and the same matrix, to 1e-12; scikit-learn leaves the words of a row in the order they came."""
    expected.sort_indices()
    assert words.to_list() == other.get_feature_names_out().tolist()
    assert matrix.shape == expected.shape
    assert (matrix.indptr == expected.indptr).all()
    assert (matrix.indices == expected.indices).all()
    np.testing.assert_allclose(matrix.data, expected.data, rtol=1e-12, atol=0)
