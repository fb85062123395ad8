"""Words become a matrix, the matrix a classifier."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import SGDClassifier

import polars_tadoc as tadoc
from tests.trials.corpora import labelled


def run(folder: Path, size: str) -> None:
    """Train on counts from grammars; scikit-learn's own vectorizer gives the same matrix and the same accuracy."""
    rows = labelled(size)
    rows.tadoc.compress("text", tokenizer="whitespace").write_parquet(folder / "rows.parquet")
    stored = pl.read_parquet(folder / "rows.parquet")
    counts, vocabulary = stored.tadoc.to_csr("text", min_count=2)
    vectorizer = CountVectorizer(tokenizer=str.split, lowercase=False, token_pattern=None)
    theirs = vectorizer.fit_transform(rows["text"].to_list())
    often = np.asarray(theirs.sum(axis=0)).ravel() >= 2
    names = vectorizer.get_feature_names_out()[often]
    assert vocabulary.to_list() == sorted(names)
    order = np.argsort(names.astype(str))
    assert (counts != theirs[:, often][:, order]).nnz == 0

    train = np.arange(rows.height) % 3 != 0
    target = rows["class"].to_numpy()
    model = SGDClassifier(random_state=0).fit(counts[train], target[train])
    same = SGDClassifier(random_state=0).fit(theirs[:, often][:, order][train], target[train])
    accuracy = model.score(counts[~train], target[~train])
    assert accuracy == same.score(theirs[:, often][:, order][~train], target[~train])
    assert accuracy > 0.5

    dictionary = tadoc.Dictionary.from_words(vocabulary)
    dictionary.save(folder / "words.dictionary")
    known = tadoc.Dictionary.load(folder / "words.dictionary")
    later = tadoc.compress(rows["text"].head(50), tokenizer="whitespace")
    again, _ = tadoc.to_csr(later, dictionary=known)
    assert (model.predict(again) == model.predict(counts[:50])).all()
