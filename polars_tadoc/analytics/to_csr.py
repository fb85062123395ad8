"""Document-term matrix of counts or weights by row, for SciPy and scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, TypedDict, Unpack

import numpy as np
import polars as pl

from polars_tadoc.analytics.bm25_weights import bm25_weights
from polars_tadoc.analytics.ranked_inverted_index import RankedInvertedIndexRequest
from polars_tadoc.dictionary.dictionary import Dictionary
from polars_tadoc.engine.choose import CPU, finishing_engine
from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.errors import DeviceMemoryError
from polars_tadoc.execute.counting import Counting, TextOptions, of_dictionary
from polars_tadoc.execute.stages import Stages
from polars_tadoc.execute.terms import Terms
from polars_tadoc.execute.weights import weigh_in_batches
from polars_tadoc.kernels.host.records.sort_keys import sort_with
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.traverse.counts_cpu import map_counts
from polars_tadoc.model.arrow_results import sequence_series
from polars_tadoc.model.word_map import encode
from polars_tadoc.runtime.arguments import require_integer
from polars_tadoc.runtime.array_types import Float64, Int64
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.option_signature import Default, takes_options
from polars_tadoc.scoring.weighting import BM25, TFIDF, Weighting
from polars_tadoc.traversal.options import MAX_WORDS, MinCountOption, TraversalOptions, require_min_count

CSR = Any
"""``scipy.sparse.csr_array``; SciPy is imported on first use."""


class WeightsOption(TypedDict, total=False):
    """Contents of the matrix."""

    weights: Annotated[BM25 | TFIDF | None, Default(None)]


class RowLimitsOption(TypedDict, total=False):
    """How many rows a word may be in."""

    min_df: Annotated[int | float, Default(1)]
    max_df: Annotated[float, Default(1.0)]  # not "int | float": typing takes that for the type above, with 1 for 1.0


class NGramRangeOption(TypedDict, total=False):
    """Minimum and maximum number of words of a column of the matrix."""

    ngram_range: Annotated[tuple[int, int], Default((1, 1))]


class ToCSROptions(
    MinCountOption, NGramRangeOption, RowLimitsOption, WeightsOption, TextOptions, TraversalOptions, total=False
):
    """Options of :func:`to_csr`."""


@dataclass(frozen=True)
class ToCSRRequest:
    """The checked arguments of a call."""

    min_count: int
    ngram_range: tuple[int, int]
    min_df: int | float
    max_df: int | float
    weights: Weighting | None
    counting: Counting

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[ToCSROptions]) -> ToCSRRequest:
        """Check the arguments of :func:`to_csr`; errors as there."""
        weights = options["weights"]
        least = require_min_count(options["min_count"])
        if weights is not None and not isinstance(weights, (BM25, TFIDF)):
            given = f"{weights!r}"
            if weights in (BM25, TFIDF):
                given = f"the class; call it: tadoc.{weights.__name__}()"
            raise TypeError(f"to_csr: weights= takes tadoc.BM25(), tadoc.TFIDF() or None, not {given}")
        counting = Counting.of("to_csr", options)
        if counting.dictionary is not None and least > 1:
            raise ValueError(
                f"to_csr: min_count={least} drops columns, but dictionary= makes a column of each of its words; pass "
                "only one of them"
            )
        limits = (_require_rows("min_df", options["min_df"]), _require_rows("max_df", options["max_df"]))
        if counting.dictionary is not None and _drop(*limits):
            raise ValueError("to_csr: min_df= and max_df= drop columns, but dictionary= makes a column of each word")
        return cls(least, _require_range(options["ngram_range"]), *limits, weights, counting)

    @ends_on_interrupt
    def run(self, column: pl.Series) -> tuple[CSR, pl.Series]:
        """Count or weigh the words of each row."""
        sparse = _sparse()
        stages = Stages(self.counting)
        terms = stages.all(column) if self.ngram_range == (1, 1) else self._ngrams(column)
        if self.min_count > 1:
            terms = _frequent(terms.on_host(), self.min_count)
        if _drop(self.min_df, self.max_df):
            terms = _within(terms.on_host(), self._rows(self.min_df, column), self._rows(self.max_df, column))
        to_host = terms.engine.kernels.to_host
        values = to_host(terms.counts).view(np.int64) if self.weights is None else self._weigh(terms, stages.batches)
        # merged results are in host memory, wherever they are looked up
        engine = finishing_engine(self.counting.options.engine, terms.engine).name
        words, columns = _columns(terms, self.counting.dictionary, engine)
        index = np.int32 if max(len(values), len(column), len(words)) <= np.iinfo(np.int32).max else np.int64
        places = columns.astype(index)
        sizes = np.zeros(len(column), np.int64)
        sizes[terms.rows] = np.diff(to_host(terms.offsets))
        arrays = (values, places[to_host(terms.ids)], running_sum(sizes).astype(index))
        matrix = sparse.csr_array(arrays, shape=(len(column), len(words)))
        matrix.has_canonical_format = True  # words ascend in each row, without duplicates
        return matrix, words

    def _ngrams(self, column: pl.Series) -> Terms:
        """Count the n-grams of each row: words joined by a space, of equal ones together."""
        least, most = self.ngram_range
        options = replace(self.counting.options, tokenizer=self.counting.tokenizer)
        parts = [Stages(_NGrams(n, None, 1, options)).all(column) for n in range(least, most + 1)]
        image = encode(pl.concat([sequence_series(part.words, part.ids).list.join(" ") for part in parts]))
        owners = np.repeat(image.words.rank[image.ids], np.concatenate([np.diff(part.offsets) for part in parts]))
        rows = np.flatnonzero(column.is_not_null().to_numpy())
        documents = np.searchsorted(rows, np.concatenate([part.rows for part in parts])).astype(np.uint64)
        counts = np.concatenate([part.counts for part in parts])
        keys, counts = sort_with(documents << np.uint64(32) | owners, counts)
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.zeros(0, np.int64)
        if len(starts) < len(keys):  # words with a space in them
            keys, counts = keys[starts], np.add.reduceat(counts, starts)
        offsets = np.searchsorted(keys, np.arange(len(rows) + 1, dtype=np.uint64) << np.uint64(32))
        ids = image.words.by_rank[(keys & np.uint64(0xFFFFFFFF)).astype(np.int64)]
        terms = Terms(CPU, image.words, False, rows, offsets.astype(np.int64), ids, counts)
        return terms if self.counting.dictionary is None else of_dictionary(terms, self.counting.dictionary)

    @staticmethod
    def _rows(limit: int | float, column: pl.Series) -> float:
        """Return a limit as a number of rows; a float is a share of them."""
        return limit * len(column) if isinstance(limit, float) else limit

    def _weigh(self, terms: Terms, batches: DeviceBatches) -> Float64:
        assert self.weights is not None
        try:
            return self._weigh_all(terms, self.weights)
        except DeviceMemoryError:
            pass
        return weigh_in_batches(terms.on_host(), self.weights, None, batches)[2]

    def _weigh_all(self, terms: Terms, weights: Weighting) -> Float64:
        terms = self.counting.settle(terms)
        made: Float64 = terms.engine.kernels.to_host(terms.weigh(weights))
        return made


@dataclass(frozen=True)
class _NGrams(RankedInvertedIndexRequest):
    """Counts the sequences of n words of each row."""

    name: ClassVar[str] = "to_csr"


def _columns(terms: Terms, dictionary: Dictionary | None, engine: str) -> tuple[pl.Series, Int64]:
    """Return the columns' words (of a dictionary, or those that occur), and each occurring word's column by id."""
    columns = np.zeros(len(terms.words), np.int64)
    if dictionary is None:
        ids = terms.words.by_rank
        ids = ids[terms.frequencies[ids] > 0]
        columns[ids] = np.arange(len(ids))
        return terms.words.take(ids), columns
    occurring = np.flatnonzero(terms.frequencies)
    known = dictionary.ids(terms.words.series.gather(occurring), engine=engine)
    columns[occurring] = dictionary.vocabulary.rank[known.to_numpy()]
    return dictionary.vocabulary.series.gather(dictionary.vocabulary.by_rank), columns


def _frequent(terms: Terms, least: int) -> Terms:
    """Drop words with smaller counts over all rows; ``terms`` are in host memory."""
    return terms.only(map_counts(terms.counts, terms.ids, len(terms.words)) >= np.uint64(least))


def _within(terms: Terms, least: float, most: float) -> Terms:
    """Drop words that are in fewer or more rows; ``terms`` are in host memory."""
    if most < least:
        raise ValueError(f"to_csr: max_df= is {most:,.0f} rows here, less than the {least:,.0f} of min_df=")
    return terms.only((terms.frequencies >= least) & (terms.frequencies <= most))


def _drop(least: int | float, most: int | float) -> bool:
    """Tell whether ``min_df=`` and ``max_df=`` may drop words; 1 is one row, and 1.0 all rows."""
    return isinstance(least, float) or least > 1 or not isinstance(most, float) or most < 1


def _require_range(given: Any) -> tuple[int, int]:
    """Check ``ngram_range=``."""
    if isinstance(given, str) or not isinstance(given, Iterable) or len(ends := tuple(given)) != 2:
        raise TypeError(f"to_csr: ngram_range={given!r} is not a pair of integers, such as (1, 2)")
    least, most = (require_integer("ngram_range", end, 1, MAX_WORDS) for end in ends)
    if most < least:
        raise ValueError(f"to_csr: ngram_range=({least}, {most}): the first number is larger than the second")
    return least, most


def _require_rows(name: str, limit: Any) -> int | float:
    """Check ``min_df=`` or ``max_df=``: a number of rows, or a share of them as a float from 0 to 1."""
    if isinstance(limit, float):
        if not 0.0 <= limit <= 1.0:
            raise ValueError(f"to_csr: {name}={limit} is not a share of the rows, from 0.0 to 1.0")
        return limit
    return require_integer(name, limit, 0)


@documented_by(bm25_weights)
def to_csr(column: pl.Series, **options: Unpack[ToCSROptions]) -> tuple[CSR, pl.Series]:
    r"""Count or weigh each row's words in a sparse matrix for scikit-learn.

    Equals the matrix of scikit-learn's ``CountVectorizer`` with ``lowercase=False`` if both tokenize alike: its
    ``token_pattern`` must match runs of word characters; here, each Han or kana character is a word, and Polars' ``\w``
    differs from Python's (it includes combining marks, but not "½"). With ``weights=TFIDF()``, equals that
    of ``TfidfVectorizer``. Pass it to ``NMF`` or a classifier. Strings are made of the vocabulary only.

    With one ``dictionary``, matrices of several columns have equal columns, as training and test data must
    (scikit-learn's ``vocabulary=``). Document frequencies are counted within the column; to weigh other rows by those
    of training data, pass their counts to scikit-learn's ``TfidfTransformer``.

    Parameters
    ----------
    min_count
        Drop words with smaller counts over all rows; they still count to rows' lengths. Cannot be combined with
        ``dictionary``, whose words are the columns.
    ngram_range
        Minimum and maximum number of words of a column, as in scikit-learn: with ``(1, 2)`` single words, and pairs of
        adjacent words, joined by a space. Words that are dropped leave no gap. Lengths of rows are their n-grams then.
    min_df
        Drop words that fewer rows contain: a number of rows, or a share of all rows as a float, as in scikit-learn.
        They still count to rows' lengths for BM25. Cannot be combined with ``dictionary``.
    max_df
        Drop words that more rows contain, as ``min_df``.
    weights
        :class:`BM25` or :class:`TFIDF`, with their options; None for counts.
    dictionary
        Makes a column of each of its words, in code point order, whether they occur or not; words of rows are compared
        with them after ``normalize`` and lower-casing. Other words have no column: they count to rows' lengths for
        BM25, and are ignored for TF-IDF.

    Returns
    -------
    (scipy.sparse.csr_array, Series)
        The matrix: counts, int64, or weights, float64, shape (rows, words). It has one row per row of the column (empty
        for null rows) and one column per word that occurs, or per word of the dictionary, in code point order;
        canonical (indices ascend without duplicates). And the words of the columns, String.

    Raises
    ------
    ImportError
        SciPy is not installed.
    TypeError
        ``min_count`` is not an integer, ``ngram_range`` no pair of integers, ``min_df`` or ``max_df`` neither integer
        nor float, ``weights`` neither :class:`BM25` nor :class:`TFIDF`, ``dictionary`` not a :class:`Dictionary`,
        ``normalize`` not an expression, ``lowercase`` not a bool or ``stopwords`` not a list of strings; ``tokenizer``
        is not that of the compressed column.
    ValueError
        ``min_count`` above 1, ``min_df`` or ``max_df`` is combined with ``dictionary``; ``min_df`` or ``max_df`` is
        negative, or a float above 1, or ``max_df`` is less than ``min_df``; ``ngram_range`` does not ascend from 1 on;
        ``tokenizer``, ``strategy`` or ``engine`` is unknown, or ``normalize`` reads columns or does not give one String
        or null per word; a row of a String column is not UTF-8.

    Examples
    --------
    >>> column = pl.Series("text", ["to be or not to be", None, "to do"]).tadoc.compress()
    >>> counts, words = tadoc.to_csr(column)
    >>> words.to_list()
    ['be', 'do', 'not', 'or', 'to']
    >>> counts.toarray().tolist()
    [[2, 0, 1, 1, 2], [0, 0, 0, 0, 0], [0, 1, 0, 0, 1]]
    >>> counts, words = tadoc.to_csr(column, ngram_range=(1, 2), max_df=1)
    >>> words.to_list()
    ['be', 'be or', 'do', 'not', 'not to', 'or', 'or not', 'to be', 'to do']
    >>> dictionary = tadoc.Dictionary.from_words(pl.Series(["to", "be", "seen"]))
    >>> counts, words = tadoc.to_csr(column, dictionary=dictionary)
    >>> words.to_list(), counts.toarray().tolist()
    (['be', 'seen', 'to'], [[2, 0, 2], [0, 0, 0], [0, 0, 1]])

    """
    return ToCSRRequest.from_arguments(**options).run(column)


def _sparse() -> Any:
    try:
        from scipy import sparse
    except ImportError as error:
        raise ImportError("to_csr needs SciPy: pip install 'polars-tadoc[sklearn]'", name="scipy") from error
    return sparse
