"""Document-term matrix: how often each word occurs in each row, or its weight, as SciPy and scikit-learn take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.analytics.bm25_weights import bm25_weights
from polars_tadoc.dictionary.dictionary import Dictionary
from polars_tadoc.engine.choose import finishing_engine
from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.errors import DeviceMemoryError
from polars_tadoc.execute.counting import Counting, TextOptions
from polars_tadoc.execute.stages import Stages
from polars_tadoc.execute.terms import Terms
from polars_tadoc.execute.weights import weigh_in_batches
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.traverse.counts_cpu import map_counts
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.option_signature import Default, takes_options
from polars_tadoc.scoring.weighting import BM25, TFIDF, Weighting
from polars_tadoc.traversal.options import MinCountOption, TraversalOptions, require_min_count

CSR = Any
"""``scipy.sparse.csr_array``: SciPy is imported when a matrix is asked for."""


class WeightsOption(TypedDict, total=False):
    """What is in the matrix."""

    weights: Annotated[BM25 | TFIDF | None, Default(None)]


class ToCSROptions(MinCountOption, WeightsOption, TextOptions, TraversalOptions, total=False):
    """Options of :func:`to_csr`."""


@dataclass(frozen=True)
class ToCSRRequest:
    """What is to be counted or weighed, checked when it is made."""

    min_count: int
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
                f"to_csr: min_count={least} leaves columns out, and with dictionary= each of its words is one; leave "
                "one of them out"
            )
        return cls(least, weights, counting)

    @ends_on_interrupt
    def run(self, column: pl.Series) -> tuple[CSR, pl.Series]:
        """Count the words of each row, or weigh them."""
        sparse = _sparse()
        stages = Stages(self.counting)
        terms = stages.all(column)
        if self.min_count > 1:
            terms = _frequent(terms.on_host(), self.min_count)
        to_host = terms.engine.kernels.to_host
        values = to_host(terms.counts).view(np.int64) if self.weights is None else self._weigh(terms, stages.batches)
        # what was merged is in host memory, wherever it is to be looked up
        engine = finishing_engine(self.counting.options.engine, terms.engine).name
        words, columns = _columns(terms, self.counting.dictionary, engine)
        index = np.int32 if max(len(values), len(column), len(words)) <= np.iinfo(np.int32).max else np.int64
        places = columns.astype(index)
        sizes = np.zeros(len(column), np.int64)
        sizes[terms.rows] = np.diff(to_host(terms.offsets))
        arrays = (values, places[to_host(terms.ids)], running_sum(sizes).astype(index))
        matrix = sparse.csr_array(arrays, shape=(len(column), len(words)))
        matrix.has_canonical_format = True  # words ascend in each row, each once
        return matrix, words

    def _weigh(self, terms: Terms, batches: DeviceBatches) -> npt.NDArray[np.float64]:
        assert self.weights is not None
        try:
            return self._weigh_all(terms, self.weights)
        except DeviceMemoryError:
            pass
        return weigh_in_batches(terms.on_host(), self.weights, None, batches)[2]

    def _weigh_all(self, terms: Terms, weights: Weighting) -> npt.NDArray[np.float64]:
        terms = self.counting.settle(terms)
        made: npt.NDArray[np.float64] = terms.engine.kernels.to_host(terms.weigh(weights))
        return made


def _columns(terms: Terms, dictionary: Dictionary | None, engine: str) -> tuple[pl.Series, npt.NDArray[np.int64]]:
    """Name the columns: all words of a dictionary or those that occur, and by id of a word that occurs its column."""
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
    """Leave out words that occur less often in all rows together; ``terms`` are in host memory."""
    return terms.only(map_counts(terms.counts, terms.ids, len(terms.words)) >= np.uint64(least))


@documented_by(bm25_weights)
def to_csr(column: pl.Series, **options: Unpack[ToCSROptions]) -> tuple[CSR, pl.Series]:
    r"""Count each row's words in a sparse matrix, as scikit-learn takes it, or weigh them.

    The same matrix as scikit-learn's ``CountVectorizer`` with ``lowercase=False`` gives for the text, where its
    ``token_pattern`` means runs of word characters (but Han and kana are words one by one here, and what Polars'
    ``\w`` takes is not always what Python's does: combining marks are in it, the half of "1½" is not);
    with ``weights=TFIDF()`` that of ``TfidfVectorizer``. It goes as it is into ``NMF`` or a classifier. Strings are
    made of the vocabulary only. With one ``dictionary`` matrices of several columns have equal columns, as those of
    training and of test data must: it is what scikit-learn calls ``vocabulary=``. Rows are weighed by how many of their
    own column hold a word; to weigh others as training data, give their counts to scikit-learn's ``TfidfTransformer``.

    Parameters
    ----------
    min_count
        Leave out words that occur less often in all rows together; they still count to rows' lengths. Not together
        with ``dictionary``, whose words are the columns.
    weights
        :class:`BM25` or :class:`TFIDF`, with their options; None for counts.
    dictionary
        Its words, all of them in code point order, are the columns, whether they occur or not; words of rows are
        compared with them after ``normalize`` and lower-casing. Others have no column: they count to rows' lengths for
        BM25, and are as if not there for TF-IDF.

    Returns
    -------
    (scipy.sparse.csr_array, Series)
        Counts, int64, or weights, float64, shape (rows, words): a row for each row of the column (empty where it is
        null), a column for each word that occurs or of the dictionary, in code point order; canonical (indices ascend,
        each once). And those words, String.

    Raises
    ------
    ImportError
        SciPy is not installed.
    TypeError
        ``min_count`` is no integer, ``weights`` neither :class:`BM25` nor :class:`TFIDF`, ``dictionary`` no
        :class:`Dictionary`, ``normalize`` no expression, ``lowercase`` no bool or ``stopwords`` no list of strings;
        ``tokenizer`` is not the one that a compressed column was cut by.
    ValueError
        ``min_count`` above 1 and ``dictionary`` are given together, there is no such ``tokenizer``, ``strategy`` or
        ``engine``, or ``normalize`` reads columns or gives anything but one String or null for each word; a row of a
        String column is not UTF-8.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> column = pl.Series("text", ["to be or not to be", None, "to do"]).tadoc.compress()
    >>> counts, words = tadoc.to_csr(column)
    >>> words.to_list()
    ['be', 'do', 'not', 'or', 'to']
    >>> counts.toarray().tolist()
    [[2, 0, 1, 1, 2], [0, 0, 0, 0, 0], [0, 1, 0, 0, 1]]
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
