"""Document-term matrix: how often each word occurs in each row, as SciPy and scikit-learn take it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.kernels.cpu.lists import gather_lists
from polars_tadoc.traversal.options import CountOptions
from polars_tadoc.traversal.selector import choose_strategy
from polars_tadoc.traversal.source import Source, sources
from polars_tadoc.vocabulary import Vocabulary, unify

Int64 = npt.NDArray[np.int64]
CSR = Any
"""``scipy.sparse.csr_array``: SciPy is imported when a matrix is asked for."""


@dataclass(frozen=True)
class Request(CountOptions):
    """What is to be counted, checked when it is made."""

    def run(self, column: pl.Series) -> tuple[CSR, pl.Series]:
        """Count the words of each row."""
        sparse = _sparse()
        made = sources(column, "to_csr", self.options)
        words, maps = _one_vocabulary(made)
        ids = words.by_rank
        ids = ids[_totals(made, maps, len(words))[ids] >= self.min_count]
        places = np.full(len(words), -1, np.int64)
        places[ids] = np.arange(len(ids))
        parts = [self._count(source, places[own], sparse) for source, own in zip(made, maps, strict=True)]
        offsets, columns, counts = _by_row(made, parts, len(column))
        index = np.int32 if max(len(counts), len(column), len(ids)) <= np.iinfo(np.int32).max else np.int64
        arrays = (counts, columns.astype(index, copy=False), offsets.astype(index))
        matrix = sparse.csr_array(arrays, shape=(len(column), len(ids)))
        matrix.has_canonical_format = True  # words ascend in each row, each once
        return matrix, words.series.gather(ids)

    def _count(self, source: Source, places: Int64, sparse: Any) -> CSR:
        """Count one corpus' words by document; ``places``: each one's column, below 0 for none."""
        kernels = source.engine.kernels
        strategy = choose_strategy(self.options.strategy, source, "inverted_index")
        offsets, documents, counts = (
            kernels.to_host(array)
            for array in kernels.count_by_terminal(
                source.rules, source.root_offsets, source.roots, strategy, counted=True
            )
        )
        kept = np.flatnonzero(places >= 0)
        kept = kept[np.argsort(places[kept])]
        # postings in the order of the columns: transposing them sorts each document's words in one pass
        starts, documents = gather_lists(offsets, documents, kept)
        _, counts = gather_lists(offsets, counts.view(np.int64), kept)
        counted = sparse.csc_array((counts, documents, starts), shape=(len(source.rows), len(kept))).tocsr()
        counted.indices = places[kept].astype(counted.indices.dtype)[counted.indices]
        return counted


def to_csr(
    column: pl.Series,
    *,
    min_count: int = 1,
    normalize: pl.Expr | None = None,
    lowercase: bool = False,
    stopwords: Iterable[str] | None = None,
    strategy: str = "auto",
    engine: str | None = None,
) -> tuple[CSR, pl.Series]:
    """Count each row's words in a sparse matrix, as scikit-learn takes it.

    The same matrix as scikit-learn's ``CountVectorizer`` with ``lowercase=False`` gives for the text, where its
    ``token_pattern`` means runs of word characters (and there are no Han or kana, which are words one by one here). It
    goes as it is into ``TfidfTransformer``, ``NMF`` or a classifier. Strings are made of the vocabulary only.

    Parameters
    ----------
    column
        Compressed column; each row is a document.
    min_count
        Leave out words that occur less often in all rows together.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String; null or an empty one leaves it out;
        it runs over the vocabulary, once.
    lowercase
        Lower-case words (after ``normalize``), and the stop words with them.
    stopwords
        Words to leave out, compared after ``normalize`` and lower-casing.
    strategy
        "auto", "top_down" or "bottom_up": which way the rules are traversed; the result is the same.
    engine
        "auto", "cpu" or "gpu"; by default what ``tadoc.Config`` says.

    Returns
    -------
    (scipy.sparse.csr_array, Series)
        Counts, int64, shape (rows, words): a row for each row of the column (empty where it is null), a column for
        each word that occurs, in code point order; canonical (indices ascend, each once). And those words, String.

    Raises
    ------
    ImportError
        SciPy is not installed.
    NotCompressedError
        The series is not a compressed column.
    InvalidGrammarError, LimitExceededError
        A payload or a row is damaged or too large.
    EngineUnavailableError
        ``engine="gpu"`` cannot run here.
    TypeError
        ``min_count`` is no integer, ``normalize`` no expression or ``stopwords`` no list of strings.
    ValueError
        There is no such ``strategy`` or ``engine``, or ``normalize`` reads columns or gives anything but one String
        or null for each word.

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

    """
    return Request.from_arguments(
        min_count=min_count,
        normalize=normalize,
        lowercase=lowercase,
        stopwords=stopwords,
        strategy=strategy,
        engine=engine,
    ).run(column)


def _sparse() -> Any:
    try:
        from scipy import sparse
    except ImportError as error:
        raise ImportError("to_csr needs SciPy: pip install 'polars-tadoc[sklearn]'", name="scipy") from error
    return sparse


def _one_vocabulary(made: Sequence[Source]) -> tuple[Vocabulary, list[npt.NDArray[np.uint32]]]:
    if len(made) == 1:
        return made[0].words, [np.arange(len(made[0].words), dtype=np.uint32)]
    return unify([source.words for source in made])


def _totals(made: Sequence[Source], maps: Sequence[npt.NDArray[np.uint32]], width: int) -> npt.NDArray[np.uint64]:
    """How often each word of the common vocabulary occurs."""
    totals = np.zeros(width, np.uint64)
    for source, own in zip(made, maps, strict=True):
        kernels = source.engine.kernels
        totals[own] += kernels.to_host(kernels.terminal_counts(source.rules, source.roots, "top_down"))
    return totals


def _by_row(made: Sequence[Source], parts: Sequence[CSR], height: int) -> tuple[Int64, npt.NDArray[Any], Int64]:
    """Put the documents of several corpora into the order of their rows: offsets, columns, counts."""
    sizes = np.zeros(height + 1, np.int64)
    for source, part in zip(made, parts, strict=True):
        sizes[source.rows + 1] = np.diff(part.indptr)
    offsets = np.cumsum(sizes)
    if len(parts) == 1:
        return offsets, parts[0].indices, parts[0].data
    rows = np.concatenate([np.zeros(0, np.int64), *(source.rows for source in made)])
    columns = np.concatenate([np.zeros(0, np.int32), *(part.indices for part in parts)])
    counts = np.concatenate([np.zeros(0, np.int64), *(part.data for part in parts)])
    if (rows[1:] < rows[:-1]).any():
        starts = np.append(0, np.cumsum(np.concatenate([np.diff(part.indptr) for part in parts])))
        order = np.argsort(rows)
        (_, columns), (_, counts) = gather_lists(starts, columns, order), gather_lists(starts, counts, order)
    return offsets, columns, counts
