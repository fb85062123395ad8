"""``TadocVectorizer`` gives what scikit-learn's vectorizers give on the same tokens, on text and compressed columns."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils import estimator_checks

from polars_tadoc.sklearn import TadocVectorizer

TEXTS = ["The cat saw the dog", "a dog ran", "", "the Cat ran and ran"]
DOCUMENTS = st.lists(
    st.lists(st.sampled_from(["a", "b", "B", "to", "do", "seen"])).map(" ".join), min_size=1, max_size=8
)
COMMON = st.fixed_dictionaries(
    {
        "ngram_range": st.sampled_from([(1, 1), (1, 2), (2, 3)]),
        "min_df": st.sampled_from([1, 2, 0.3]),
        "max_df": st.sampled_from([1.0, 0.7, 3]),
        "max_features": st.sampled_from([None, 1, 3]),
        "lowercase": st.booleans(),
        "stop_words": st.sampled_from([None, ["to", "a"]]),
    }
)
WEIGHTS = st.fixed_dictionaries(
    {
        "norm": st.sampled_from(["l1", "l2", None]),
        "use_idf": st.booleans(),
        "smooth_idf": st.booleans(),
        "sublinear_tf": st.booleans(),
    }
)


def outcome(make: Any, documents: Any, others: Any) -> Any:
    """Features and both matrices, or the error of an empty vocabulary."""
    try:
        fitted = make.fit_transform(documents)
    except ValueError:
        return None
    return make.get_feature_names_out().tolist(), fitted.toarray(), make.transform(others).toarray()


@given(DOCUMENTS, DOCUMENTS, COMMON, st.none() | WEIGHTS, st.booleans())
def test_equals_scikit_learn(
    documents: list[str], others: list[str], common: dict[str, Any], weights: dict[str, Any] | None, compressed: bool
) -> None:
    kind: Any = CountVectorizer if weights is None else TfidfVectorizer
    expected = outcome(kind(token_pattern=r"\w+", **common, **(weights or {})), documents, others)
    own = TadocVectorizer(weights="count" if weights is None else "tfidf", **common, **(weights or {}))
    column = pl.Series("text", documents, pl.String)
    found = outcome(own, tadoc.compress(column) if compressed else documents, others)
    assert (found is None) == (expected is None)
    if expected is not None:
        assert found[0] == expected[0]
        for one, other in zip(found[1:], expected[1:], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        if weights is not None and weights["use_idf"]:
            assert own.idf_.shape == (len(found[0]),)


@pytest.mark.parametrize(
    "check",
    [
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_get_params_invariance",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
        "check_valid_tag_types",
    ],
)
def test_estimator_checks(check: str) -> None:
    """Those that give no numbers as input; ``check_estimator`` skips what takes strings."""
    getattr(estimator_checks, check)("TadocVectorizer", TadocVectorizer())


def test_the_conventions_of_estimators() -> None:
    made = TadocVectorizer(ngram_range=(1, 2))
    for call in (lambda: made.transform(TEXTS), made.get_feature_names_out, lambda: made.idf_):
        with pytest.raises(NotFittedError):
            call()
    assert made.fit(TEXTS) is made
    before = made.transform(TEXTS)
    for same in (pickle.loads(pickle.dumps(made)), made, clone(made).fit(iter(TEXTS))):
        assert (same.transform(np.array(TEXTS, object)) != before).nnz == 0
    assert made.vocabulary_["the cat"] == made.get_feature_names_out().tolist().index("the cat")
    assert made.transform(pl.Series([None, "zebra"])).nnz == 0


def test_in_a_pipeline() -> None:
    texts = pl.Series("text", TEXTS * 4).tadoc.compress()  # type: ignore[attr-defined]
    labels = np.array([0, 0, 1, 1] * 4)
    pipeline = make_pipeline(TadocVectorizer(), LogisticRegression())
    assert pipeline.fit(texts, labels).score(texts, labels) == 1.0
    search = GridSearchCV(pipeline, {"tadocvectorizer__ngram_range": [(1, 1), (1, 2)]}, cv=2)
    assert search.fit(TEXTS * 4, labels).best_score_ == 1.0
    sparse = make_pipeline(TadocVectorizer(ngram_range=(1, 2)), LinearSVC())  # it refuses indices of 64 bits
    assert sparse.fit(texts, labels).score(texts, labels) == 1.0


@pytest.mark.parametrize(
    ("options", "documents", "said"),
    [
        ({"weights": "bm25"}, TEXTS, 'use "tfidf" or "count"'),
        ({"ngram_range": (2, 1)}, TEXTS, "1 <= least <= most"),
        ({"min_df": 4}, TEXTS, "no word remains"),
        ({"min_df": 3, "max_df": 2}, TEXTS, "max_df corresponds to"),
        ({}, "one text", "Iterable over raw text documents expected"),
        ({}, [1, 2], "documents are strings, not int"),
    ],
)
def test_wrong_calls(options: dict[str, Any], documents: Any, said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        TadocVectorizer(**options).fit(documents)
