"""Words in code point order, with their counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.word_count import SCHEMA as SCHEMA
from polars_tadoc.analytics.word_count import CountsWords, Selection, WordCounts, word_count
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.traversal.options import CountOptions, CountRequest


@dataclass(frozen=True)
class SortRequest(CountRequest, CountsWords):
    """The checked arguments of a call."""

    name: ClassVar[str] = "sort"
    schema = SCHEMA

    @property
    def limits(self) -> tuple[int, int | None]:
        """The limits of the call."""
        return self.min_count, None

    def result(self, total: WordCounts, labels: Labels) -> Selection:
        """Sort the words."""
        counts, ids = total.engine.kernels.to_host(total.counts), total.words.by_rank
        counts = counts[ids]
        kept = counts >= np.uint64(self.min_count)
        return Selection(total.words, ids[kept], counts[kept])


@documented_by(word_count)
def sort(column: pl.Series, **options: Unpack[CountOptions]) -> pa.Table:
    """List the words in code point order with their counts (G-TADOC's sort, Zhang et al., ICDE 2021).

    Returns
    -------
    pyarrow.Table
        ``word: dictionary<large_string>``, ``count: uint64``; by word in code point order.

    Raises
    ------
    TypeError
        ``min_count`` is not an integer, ``normalize`` not an expression, ``lowercase`` not a bool or ``stopwords`` not
        a list of strings.
    ValueError
        ``strategy`` or ``engine`` is unknown, or ``normalize`` reads columns or does not give one String or null per
        word.

    Examples
    --------
    >>> column = pl.Series("text", ["to be or not to be"]).tadoc.compress()
    >>> tadoc.sort(column).to_pylist()[:2]
    [{'word': 'be', 'count': 2}, {'word': 'not', 'count': 1}]

    """
    return SortRequest.from_arguments(**options).run(column).to_arrow()
