r"""Document-term matrices against scikit-learn: ``python -m benchmarks.to_csr``.

``tadoc.to_csr`` on the compressed column in memory against ``CountVectorizer.fit_transform`` on a list of the strings,
with the same words (``token_pattern=r"\w+"``, no lower-casing). Texts with Han, kana, combining marks or fractions,
which Python and Unicode cut otherwise, are left out; then both give the same matrix, which is checked first.
"""

from __future__ import annotations

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.side_by_side import median_ms, ratio, times

CUT_OTHERWISE = r"[\p{Han}\p{Hiragana}\p{Katakana}\u30fc\p{M}\p{No}\p{So}\u200c\u200d]"


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    args = parser.parse_args()
    print(f"machine: {corpora.machine()}; engine cpu")
    tadoc.Config.set(engine="cpu")
    print(
        f"{'corpus':22}{'MB':>7}{'rows':>8}{'words':>9}{'counts':>10}{'ours ms':>10}{'sklearn ms':>12}{'x faster':>10}"
    )
    for given in corpora.names(args.corpora):
        name, text = corpora.load(given)
        text = text.filter(~text.str.contains(CUT_OTHERWISE))
        rows, column = text.to_list(), tadoc.compress(text)

        def vectorize(rows: list[str] = rows) -> tuple[object, list[str]]:
            vectorizer = CountVectorizer(token_pattern=r"\w+", lowercase=False)
            return vectorizer.fit_transform(rows), vectorizer.get_feature_names_out().tolist()

        matrix, words = tadoc.to_csr(column)
        theirs, names = vectorize()
        theirs.sort_indices()
        arrays = ("indptr", "indices", "data")
        if words.to_list() != names or not all(np.array_equal(getattr(matrix, a), getattr(theirs, a)) for a in arrays):
            raise SystemExit(f"{name}: scikit-learn has another matrix")
        taken = times({"ours": lambda column=column: tadoc.to_csr(column), "sklearn": vectorize}, args.repeat)
        print(f"{name:22}{text.str.len_bytes().sum() / 1e6:7.1f}{len(text):8}{len(words):9}{matrix.nnz:10}", end="")
        print(f"{median_ms(taken, 'ours'):10.1f}{median_ms(taken, 'sklearn'):12.0f}", end="")
        print(f"{ratio(taken, 'sklearn', 'ours'):10.0f}", flush=True)


if __name__ == "__main__":
    main()
