"""Document-term matrices, against ``collections.Counter`` by row and scikit-learn's own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polars_tadoc as tadoc
from tests import ROOT, handmade, oracle
from tests.analytic_cases import COLUMN, NOTHING, STRATEGIES, Case, cases, least, strategies
from tests.strategies import columns_without_nulls

sparse = pytest.importorskip("scipy.sparse")
SAMPLES = sorted((ROOT / "examples" / "data").glob("*.parquet"))


def well_formed(matrix: Any, words: pl.Series, height: int) -> None:
    assert isinstance(matrix, sparse.csr_array)
    assert matrix.shape == (height, len(words))
    assert matrix.dtype == np.int64
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    assert words.dtype == pl.String
    assert words.name == "word"
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        assert (np.diff(matrix.indices[start:stop]) > 0).all()
    assert (matrix.data > 0).all()
    assert sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), matrix.shape).has_canonical_format


def counted(documents: list[list[str] | None], min_count: int) -> tuple[list[list[int]], list[str]]:
    counts = [Counter(words or []) for words in documents]
    total = sum(counts, Counter())
    words = sorted(word for word, count in total.items() if count >= min_count)
    return [[own[word] for word in words] for own in counts], words


@given(case=cases(normalised=True), min_count=least, strategy=strategies)
def test_to_csr(engine: str, case: Case, min_count: int, strategy: str) -> None:
    matrix, words = tadoc.to_csr(case.column, min_count=min_count, strategy=strategy, engine=engine, **case.arguments)
    well_formed(matrix, words, len(case.documents))
    assert (matrix.toarray().tolist(), words.to_list()) == counted(case.documents, min_count)


@given(
    case=cases(), low=st.one_of(st.integers(0, 3), st.floats(0, 0.5)), high=st.one_of(st.integers(3, 9), st.just(0.7))
)
def test_rows_that_contain_a_word(engine: str, case: Case, low: float, high: float) -> None:
    """``min_df`` and ``max_df`` are scikit-learn's: rows if integers, shares of the rows if floats."""
    rows = len(case.documents)
    least, most = (limit * rows if isinstance(limit, float) else limit for limit in (low, high))
    if most < least:
        with pytest.raises(ValueError, match="less than"):
            tadoc.to_csr(case.column, min_df=low, max_df=high, engine=engine)
        return
    for weights in (None, tadoc.TFIDF()):
        matrix, words = tadoc.to_csr(case.column, min_df=low, max_df=high, weights=weights, engine=engine)
        whole, every = tadoc.to_csr(case.column, engine=engine)
        found = (whole > 0).sum(axis=0) if len(every) else np.zeros(0)
        kept = np.flatnonzero((least <= found) & (found <= most))
        assert words.to_list() == every.gather(kept).to_list()
        if weights is None:
            assert matrix.toarray().tolist() == whole.toarray()[:, kept].tolist()


def test_rows_that_contain_a_word_against_scikit_learn(engine: str) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    text = ["disk error", "disk check ok", "link error retry", "disk"]
    for low, high in ((2, 1.0), (0.5, 3), (1, 0.5), (0.26, 0.75), (1, 1), (0.75, 1.0)):
        peer = TfidfVectorizer(token_pattern=r"\w+", min_df=low, max_df=high)
        expected = peer.fit_transform(text).toarray()
        matrix, words = tadoc.to_csr(pl.Series(text), weights=tadoc.TFIDF(), min_df=low, max_df=high, engine=engine)
        assert words.to_list() == peer.get_feature_names_out().tolist()
        np.testing.assert_allclose(matrix.toarray(), expected)
    assert tadoc.to_csr(pl.Series(text), min_df=1.0, engine=engine)[1].is_empty()
    assert tadoc.to_csr(pl.Series([*text[:2], "disk"]), min_df=1.0, engine=engine)[1].to_list() == ["disk"]


def ngrams_of(words: list[str] | None, least: int, most: int) -> Counter[str]:
    """The definition: n-grams of a row, words joined by a space."""
    own = words or []
    return Counter(" ".join(own[at : at + n]) for n in range(least, most + 1) for at in range(len(own) - n + 1))


@given(
    case=cases(normalised=True),
    ends=st.tuples(st.integers(1, 4), st.integers(0, 3)),
    min_count=least,
    low=st.integers(0, 2),
    high=st.sampled_from([1.0, 0.7, 3, 1]),
    strategy=strategies,
)
def test_ngrams(
    engine: str, case: Case, ends: tuple[int, int], min_count: int, low: int, high: float, strategy: str
) -> None:
    first, last = ends[0], sum(ends)
    counts = [ngrams_of(words, first, last) for words in case.documents]
    most = high * len(counts) if isinstance(high, float) else high
    most = max(most, low) if high == 1.0 and low < 2 and isinstance(high, float) else most  # the defaults, on no rows
    total = sum(counts, Counter())
    kept = {gram for gram, count in total.items() if count >= min_count}
    kept = {gram for gram in kept if low <= sum(gram in own for own in counts) <= most}
    for column in (case.column, case.column.tadoc.decompress()):
        arguments = {"min_count": min_count, "strategy": strategy, "engine": engine, **case.arguments}
        limits: dict[str, Any] = {"min_df": low, "max_df": high}
        if most < low:
            with pytest.raises(ValueError, match="less than"):
                tadoc.to_csr(column, ngram_range=(first, last), **limits, **arguments)
            continue
        matrix, words = tadoc.to_csr(column, ngram_range=(first, last), **limits, **arguments)
        well_formed(matrix, words, len(counts))
        assert words.to_list() == sorted(kept)
        assert matrix.toarray().tolist() == [[own[gram] for gram in sorted(kept)] for own in counts]


@given(rows=columns_without_nulls, ends=st.sampled_from([(1, 1), (1, 2), (2, 2), (1, 3)]))
@settings(max_examples=20)
def test_weights_of_ngrams_are_scikit_learns(engine: str, rows: list[str], ends: tuple[int, int]) -> None:
    sklearn = pytest.importorskip("sklearn.feature_extraction.text")
    documents = oracle.tokenize(rows)
    text, known = (
        pl.Series("text", rows, pl.String),
        sorted({*sum((ngrams_of(own, *ends) for own in documents), Counter()), "a b"}),
    )
    same = {"tokenizer": list, "preprocessor": list, "token_pattern": None, "lowercase": False}
    if not rows:
        return
    peer = sklearn.TfidfVectorizer(ngram_range=ends, vocabulary=known, **same)
    expected = peer.fit_transform(documents).toarray()
    dictionary = tadoc.Dictionary.from_words(pl.Series(known))
    for column in (text, text.tadoc.compress()):
        options: dict[str, Any] = {"weights": tadoc.TFIDF(), "ngram_range": ends, "engine": engine}
        matrix, words = tadoc.to_csr(column, dictionary=dictionary, **options)
        assert words.to_list() == known
        assert np.allclose(matrix.toarray(), expected, rtol=1e-12, atol=0)


def test_ngrams_of_words_with_spaces_are_added() -> None:
    column = pl.Series("text", ["a b,a,b", "c"]).tadoc.compress(tokenizer=re.compile("[^,]+"))
    matrix, words = tadoc.to_csr(column, ngram_range=(1, 2))
    assert dict(zip(words, matrix.toarray()[0].tolist(), strict=True)) == {"a": 1, "a b": 2, "a b a": 1, "b": 1, "c": 0}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_calls_agree(engine: str, strategy: str) -> None:
    arguments: dict[str, Any] = {"lowercase": True, "min_count": 2, "strategy": strategy, "engine": engine}
    frame = COLUMN.to_frame("text")
    matrix, words = tadoc.to_csr(COLUMN, **arguments)
    for other, own in (
        frame.tadoc.to_csr("text", **arguments),
        frame.tadoc.to_csr(**arguments),
        COLUMN.tadoc.to_csr(**arguments),
    ):
        assert own.equals(words)
        assert (other != matrix).nnz == 0


def test_rows_of_several_grammars_stay_in_order(engine: str) -> None:
    mixed = pl.concat([tadoc.compress(pl.Series([text])) for text in ("a b", "a", "c a")])[[2, 0, 1, 2]]
    matrix, words = mixed.tadoc.to_csr(engine=engine)
    assert words.to_list() == ["a", "b", "c"]
    assert matrix.toarray().tolist() == [[1, 0, 1], [1, 1, 0], [1, 0, 0], [1, 0, 1]]


def test_words_of_rows_that_are_gone_are_no_columns(engine: str) -> None:
    column = tadoc.compress(pl.Series(["a b", "c", None, "a a"])).filter(pl.Series([False, True, True, True]))
    matrix, words = column.tadoc.to_csr(engine=engine)
    assert words.to_list() == ["a", "c"]
    assert matrix.toarray().tolist() == [[0, 1], [0, 0], [2, 0]]


@pytest.mark.parametrize("rows", NOTHING, ids=repr)
def test_nothing_to_count(engine: str, rows: list[str | None]) -> None:
    matrix, words = tadoc.to_csr(tadoc.compress(pl.Series("text", rows, pl.String)), engine=engine)
    well_formed(matrix, words, len(rows))
    assert matrix.shape == (len(rows), 0)
    matrix, words = tadoc.to_csr(COLUMN, min_count=10**30, engine=engine)
    assert (matrix.shape, words.to_list()) == ((len(COLUMN), 0), [])


def test_counts_beyond_32_bits(engine: str) -> None:
    chain = [[0, 0], *([k + 3, k + 3] for k in range(32))]
    grammar = handmade.grammar(["a", "b", "c"], [*chain, [3 + 31, 1]])
    with tadoc.Config(expansion_limit=1 << 40):
        column = handmade.column(grammar, [[35, 35, 1], [36], None, [2]])
        for strategy in STRATEGIES:
            matrix, words = column.tadoc.to_csr(strategy=strategy, engine=engine)
            assert words.to_list() == ["a", "b", "c"]
            assert matrix.toarray().tolist() == [[2 << 33, 1, 0], [1 << 32, 1, 0], [0, 0, 0], [0, 0, 1]]


WORDS = ["zebra", "the", "b", "a", "日", "Ünd", "42"]
"""Of a dictionary: some occur, some do not."""


@given(case=cases(normalised=True), strategy=strategies)
def test_words_of_a_dictionary_are_the_columns(engine: str, case: Case, strategy: str) -> None:
    """All of them, in code point order, whether they occur or not."""
    dictionary, known = tadoc.Dictionary.from_words(pl.Series(WORDS)), sorted(WORDS)
    for column in (case.column, case.column.tadoc.decompress()):
        arguments = {"dictionary": dictionary, "strategy": strategy, "engine": engine, **case.arguments}
        matrix, words = tadoc.to_csr(column, **arguments)
        well_formed(matrix, words, len(case.documents))
        assert words.to_list() == known
        assert matrix.toarray().tolist() == [[(own or []).count(word) for word in known] for own in case.documents]


@given(train=columns_without_nulls, test=columns_without_nulls, lowercase=st.booleans())
@settings(max_examples=20)
def test_dictionary_gives_what_scikit_learns_vocabulary_does(
    engine: str, train: list[str], test: list[str], lowercase: bool
) -> None:
    """Columns of training and of test data are the same ones."""
    sklearn = pytest.importorskip("sklearn.feature_extraction.text")
    dictionary = tadoc.Dictionary.from_words(pl.Series(WORDS))
    for rows in filter(None, (train, test)):
        documents = [[word.lower() if lowercase else word for word in row] for row in oracle.tokenize(rows)]
        text = pl.Series("text", rows, pl.String)
        for weights, other in (
            (None, sklearn.CountVectorizer(analyzer=list, vocabulary=sorted(WORDS), lowercase=False)),
            (tadoc.TFIDF(), sklearn.TfidfVectorizer(analyzer=list, vocabulary=sorted(WORDS), lowercase=False)),
        ):
            expected = other.fit_transform(documents)
            for column in (text, tadoc.compress(text), tadoc.compress(text, dictionary=dictionary)):
                matrix, words = column.tadoc.to_csr(
                    dictionary=dictionary, weights=weights, lowercase=lowercase, engine=engine
                )
                assert words.to_list() == other.get_feature_names_out().tolist()
                assert matrix.shape == expected.shape
                assert np.allclose(matrix.toarray(), expected.toarray(), rtol=1e-12, atol=0)


def test_dictionary_and_min_count_are_not_taken_together() -> None:
    """One fixes the columns, the other leaves some out."""
    dictionary = tadoc.Dictionary.from_words(pl.Series(WORDS))
    with pytest.raises(ValueError, match="to_csr: min_count=2 drops columns"):
        COLUMN.tadoc.to_csr(dictionary=dictionary, min_count=2)
    _, words = COLUMN.to_frame("text").tadoc.to_csr("text", dictionary=dictionary, min_count=1)
    assert words.to_list() == sorted(WORDS)
    with pytest.raises(TypeError, match=r"to_csr: dictionary= takes a tadoc\.Dictionary, not list"):
        COLUMN.tadoc.to_csr(dictionary=WORDS)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"min_count": 1.5}, TypeError, "min_count=1.5 must be an integer"),
        ({"min_df": 1.5}, ValueError, "min_df=1.5 is not a share of the rows"),
        ({"max_df": -1}, ValueError, "max_df=-1"),
        ({"max_df": "1"}, TypeError, "max_df='1' must be an integer"),
        ({"min_df": 3, "max_df": 2}, ValueError, "max_df= is 2 rows here, less than the 3 of min_df="),
        ({"max_df": 0.5, "dictionary": tadoc.Dictionary.from_words(pl.Series(["a"]))}, ValueError, "dictionary="),
        ({"ngram_range": 2}, TypeError, r"ngram_range=2 is not a pair of integers, such as \(1, 2\)"),
        ({"ngram_range": (1, 2, 3)}, TypeError, "not a pair"),
        ({"ngram_range": (1, 2.5)}, TypeError, "ngram_range=2.5 must be an integer"),
        ({"ngram_range": (2, 1)}, ValueError, "the first number is larger"),
        ({"ngram_range": (0, 1)}, ValueError, "ngram_range=0 must be at least 1"),
        ({"ngram_range": (1, 2), "tokenizer": "xml"}, TypeError, "^to_csr: tokenizer= is for String columns"),
        ({"strategy": "sideways"}, ValueError, "sideways"),
        ({"stopwords": "the"}, TypeError, "one string"),
        ({"normalize": pl.col("a")}, ValueError, "one word at a time"),
    ],
    ids=lambda value: ", ".join(value) if isinstance(value, dict) else None,
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tadoc.to_csr(COLUMN, **arguments)
    with pytest.raises(tadoc.errors.NotCompressedError, match="to_csr: column"):
        tadoc.to_csr(pl.Series("text", [1]))


WITHOUT = """
import sys
sys.modules["scipy"] = None
import polars as pl
import polars_tadoc as tadoc
try:
    pl.Series(["a"]).tadoc.compress().tadoc.to_csr()
except ImportError as error:
    assert "polars-tadoc[sklearn]" in str(error), error
else:
    raise SystemExit("no error")
"""


@pytest.mark.slow
def test_without_scipy_the_error_names_the_extra() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def same_as_scikit_learn(text: pl.Series, column: pl.Series, engine: str) -> None:
    sklearn = pytest.importorskip("sklearn.feature_extraction.text")
    vectorizer = sklearn.CountVectorizer(token_pattern=r"\w+", lowercase=False)
    theirs = vectorizer.fit_transform(text.to_list())
    matrix, words = column.tadoc.to_csr(engine=engine)
    assert words.to_list() == vectorizer.get_feature_names_out().tolist()
    assert matrix.dtype == theirs.dtype
    assert matrix.shape == theirs.shape
    theirs.sort_indices()
    for name in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(matrix, name), getattr(theirs, name)), name


def where_words_agree(text: pl.Series) -> pl.Series:
    """Rows that Python's and Unicode's word characters cut alike: not those with Han, kana, marks or fractions."""
    same = [re.findall(r"\w+", row) == words for row, words in zip(text, oracle.tokenize(text), strict=True)]
    assert sum(same) > 0.7 * len(text)
    return text.filter(pl.Series(same))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("rows_per_grammar", [250_000, 17])
def test_samples_against_scikit_learn(engine: str, path: Path, rows_per_grammar: int) -> None:
    text = where_words_agree(pl.read_parquet(path)["text"])
    same_as_scikit_learn(text, tadoc.compress(text, rows_per_grammar=rows_per_grammar), engine)


@pytest.mark.parametrize("name", ["logs_elastic", "versioned_reactnative", "ir_cranfield_docs"])
def test_corpora_against_scikit_learn(engine: str, corpus: Callable[[str], pl.DataFrame], name: str) -> None:
    text = where_words_agree(corpus(name)["text"])
    same_as_scikit_learn(text, tadoc.compress(text), engine)


def test_scikit_learn_takes_it() -> None:
    decomposition = pytest.importorskip("sklearn.decomposition")
    text = pytest.importorskip("sklearn.feature_extraction.text")
    speeches = pl.read_parquet(SAMPLES[-1]).tadoc.compress("text")
    counts, words = speeches.tadoc.to_csr("text", lowercase=True, min_count=50)
    weights = text.TfidfTransformer().fit_transform(counts)
    assert weights.shape == counts.shape
    assert np.allclose(np.sqrt((weights.multiply(weights)).sum(axis=1)), 1)
    topics = decomposition.NMF(n_components=3, init="nndsvd", max_iter=2000, random_state=0).fit(weights)
    assert topics.components_.shape == (3, len(words))
    assert (topics.components_.sum(axis=1) > 0).all()
