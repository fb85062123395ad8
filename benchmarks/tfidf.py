r"""TF-IDF matrices against scikit-learn: ``python -m benchmarks.tfidf``.

``tadoc.to_csr(column, weights=tadoc.TFIDF())`` on the compressed column in memory, and on the String column, against
``TfidfVectorizer.fit_transform`` on a list of the strings, with the same words (``token_pattern=r"\w+"``, no
lower-casing). Texts with Han, kana, combining marks or fractions, which Python and Unicode cut otherwise, are left out;
then the matrices are the same to 1e-12, which is checked first.
"""

from __future__ import annotations

import argparse

import numpy as np
import polars as pl
from sklearn.feature_extraction.text import TfidfVectorizer

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.side_by_side import Contenders, median_ms, ratio, times
from benchmarks.to_csr import CUT_OTHERWISE

CORPORA = ["docs_peps", "docs_tldr", "prose_books"]


def contenders(text: pl.Series) -> Contenders:
    """What runs on one corpus; ours by the names of columns."""
    rows, column = text.to_list(), tadoc.compress(text)

    def vectorize() -> tuple[object, list[str]]:
        vectorizer = TfidfVectorizer(token_pattern=r"\w+", lowercase=False)
        return vectorizer.fit_transform(rows), vectorizer.get_feature_names_out().tolist()

    made: Contenders = {}
    for engine in tadoc.testing.engines():
        for kind, given in {"compressed": column, "text": text}.items():
            made[f"{engine}, {kind}"] = lambda given=given, engine=engine: tadoc.to_csr(
                given, weights=tadoc.TFIDF(), engine=engine
            )
    return made | {"scikit-learn": vectorize}


def check(name: str, ours: Contenders, theirs: object) -> int:
    """Hold our matrices to scikit-learn's; returns how many weights there are."""
    matrix, names = theirs  # type: ignore[misc]
    matrix.sort_indices()
    for contender, run in ours.items():
        own, words = run()  # type: ignore[misc]
        same = all(np.array_equal(getattr(own, part), getattr(matrix, part)) for part in ("indptr", "indices"))
        if words.to_list() != names or not same or not np.allclose(own.data, matrix.data, rtol=1e-12, atol=0):
            raise SystemExit(f"{name}: {contender}: scikit-learn has another matrix")
    return int(matrix.nnz)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", default=CORPORA, help="Parquet files or names, as of other benchmarks")
    parser.add_argument("--repeat", type=int, default=7, help="rounds; each runs every contender once")
    args = parser.parse_args()
    print(f"machine: {corpora.machine()}; engines: {', '.join(tadoc.testing.engines())}")
    for given in args.corpora:
        name, text = corpora.load(given)
        text = text.filter(~text.str.contains(CUT_OTHERWISE))
        made = contenders(text)
        ours = {contender: run for contender, run in made.items() if contender != "scikit-learn"}
        count = check(name, ours, made["scikit-learn"]())
        taken = times(made, args.repeat)
        print(f"{name}, {text.str.len_bytes().sum() / 1e6:.1f} MB, {len(text):,} rows, {count:,} weights")
        for contender in made:
            print(f"  {contender:20}{median_ms(taken, contender):9.1f} ms", end="")
            print(f"{ratio(taken, 'scikit-learn', contender):9.1f} x faster than scikit-learn", flush=True)


if __name__ == "__main__":
    main()
