"""How words are weighed: options, checked when they are made."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import polars_tadoc as tadoc
from polars_tadoc.scoring.bm25 import IDFS, Scoring
from polars_tadoc.scoring.weighting import BM25, TFIDF
from tests import bm25_oracle


def test_defaults() -> None:
    assert tadoc.BM25() == BM25("lucene", k1=1.5, b=0.75, delta=0.5)
    assert tadoc.TFIDF() == TFIDF(use_idf=True, smooth_idf=True, sublinear_tf=False, norm="l2")


@pytest.mark.parametrize("made", [BM25("bm25l", k1=0.9, b=0.4), TFIDF(norm=None, sublinear_tf=True)], ids=repr)
def test_values(made: BM25 | TFIDF) -> None:
    assert pickle.loads(pickle.dumps(made)) == made
    assert hash(made) == hash(type(made)(**vars(made)))
    assert made != type(made)()
    with pytest.raises(AttributeError, match="cannot assign"):
        made.norm = "l1"  # type: ignore[misc, union-attr]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"scoring": "bm25"}, ValueError, "BM25: scoring='bm25': use one of 'robertson', .*'wakatsuki'"),
        ({"scoring": ["lucene"]}, ValueError, "use one of"),
        ({"k1": -1}, ValueError, "k1=-1 must be from 0"),
        ({"k1": math.nan}, ValueError, "k1=nan"),
        ({"k1": "1"}, TypeError, "BM25: k1='1' must be a number"),
        ({"k1": True}, TypeError, "k1=True must be a number"),
        ({"b": 1.5}, ValueError, "b=1.5 must be from 0 to 1"),
        ({"delta": math.inf}, ValueError, "delta=inf"),
    ],
    ids=repr,
)
def test_wrong_bm25(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        BM25(**options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"norm": "l3"}, ValueError, 'TF-IDF: norm=\'l3\': use "l1", "l2" or None'),
        ({"norm": ["l2"]}, ValueError, 'use "l1", "l2" or None'),
        ({"norm": np.array(["l1", "l2"])}, ValueError, 'use "l1", "l2" or None'),
        ({"use_idf": 1}, TypeError, "use_idf=1 must be True or False"),
        ({"smooth_idf": None}, TypeError, "smooth_idf=None must be True or False"),
        ({"sublinear_tf": "yes"}, TypeError, "sublinear_tf='yes' must be True or False"),
    ],
    ids=repr,
)
def test_wrong_tfidf(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        TFIDF(**options)


@pytest.mark.parametrize("scoring", IDFS)
def test_weights_norms_and_bases_make_the_formula(scoring: str) -> None:
    """In float64, for all that is counted."""
    assert scoring in bm25_oracle.SCORINGS
    for k1, b, delta in [(1.5, 0.75, 0.5), (0, 0.75, 0.5), (2, 0, 0), (1, 1, 1), (0, 0, 0)]:
        form = Scoring(scoring, k1, b, delta)
        for documents, frequency in [(1, 1), (10, 1), (10, 10), (10**9, 3)]:
            weight, base = (float(made(documents, frequency)) for made in (form.weights, form.bases))
            assert form.has_base or base == 0
            for count, length in [(1, 1), (3, 5), (7, 200)]:
                norm = float(form.exact_norms([length], 20.0)[0])
                wanted = bm25_oracle.idf(scoring, documents, frequency) * bm25_oracle.part(
                    scoring, count, length, 20.0, k1, b, delta
                )
                assert weight * (count / (count + norm)) + base == pytest.approx(wanted, rel=1e-12)


def test_bases_keep_their_digits() -> None:
    form = BM25("bm25l", k1=1e6, b=0.0, delta=0.5).form
    base = float(form.bases(1000.0, [10.0])[0])
    assert base == pytest.approx(math.log(1001 / 10.5) * (1e6 + 1) * (0.5 / (1e6 + 0.5)), rel=1e-15)


def test_norms_of_searches_are_rounded() -> None:
    form = Scoring("wakatsuki", 1.2, 0.7, 0)
    exact, rounded = (made([3, 100], 7.0) for made in (form.exact_norms, form.norms))
    assert (exact.dtype, rounded.dtype) == (np.float64, np.float32)
    assert (exact.astype(np.float32) == rounded).all()
