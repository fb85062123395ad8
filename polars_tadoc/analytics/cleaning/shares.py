"""How much of each row is repeated, or new."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Unpack

import numpy as np
import polars as pl

from polars_tadoc.analytics.cleaning.laid_words import LaidWords, lay_out
from polars_tadoc.analytics.cleaning.options import (
    NoveltyOptions,
    RepeatedShareOptions,
    reading_of,
    require_length,
)
from polars_tadoc.analytics.cleaning.repeats import repeats
from polars_tadoc.analytics.cleaning.windows import find_windows
from polars_tadoc.engine.progress import by_steps
from polars_tadoc.kernels.host.passages import runs as kernels
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.arrow_results import from_arrow, lists
from polars_tadoc.model.column import rows_of_lists
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.runtime.array_types import Int64
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.io_source import at_work


def share_of(of: Int64, words: Int64) -> pl.Series:
    """Divide numbers of words by those of the rows; null for rows without words."""
    shares = words / np.maximum(of, 1)
    return pl.select(pl.when(pl.Series(of > 0)).then(pl.Series(shares)).alias("share")).to_series()


@dataclass(frozen=True)
class ShareRequest:
    """The checked arguments of a call."""

    name: str
    kind: int
    length: int
    tokenizer: Tokenizer | None
    morphism: Morphism | None

    @classmethod
    def repeated(cls, options: RepeatedShareOptions) -> ShareRequest:
        """Check the arguments of :func:`repeated_share`; errors as there."""
        return cls("repeated_share", kernels.REPEATED, require_length(options["length"]), *reading_of(options))

    @classmethod
    def new(cls, options: NoveltyOptions) -> ShareRequest:
        """Check the arguments of :func:`novelty`; errors as there."""
        return cls("novelty", kernels.EARLIER_ROW, require_length(options["length"]), *reading_of(options))

    @ends_on_interrupt
    @by_steps
    def run(self, column: pl.Series) -> pl.Series:
        """Compute the share of each row of a column."""
        laid = lay_out(column, self.name, self.tokenizer, self.morphism)
        return share_of(laid.counts, self._words(laid)).alias(column.name)

    @at_work()
    @ends_on_interrupt
    def run_lists(self, imploded: pl.Series) -> pl.Series:
        """Compute the shares of each list of rows separately."""
        column, offsets = rows_of_lists(imploded)
        laid = lay_out(column, self.name, self.tokenizer, self.morphism)
        words = [self._words(_some(laid, a, b)) for a, b in pairwise(offsets.tolist())]
        shares = share_of(laid.counts, np.concatenate([np.zeros(0, np.int64), *words]))
        return from_arrow(imploded.name, lists(offsets, shares.to_arrow(compat_level=pl.CompatLevel.newest())))

    def _words(self, laid: LaidWords) -> Int64:
        covered = find_windows(laid, self.length).count_covered(self.kind)
        return laid.counts - covered if self.kind == kernels.EARLIER_ROW else covered


def _some(laid: LaidWords, first: int, stop: int) -> LaidWords:
    """Return some of the rows."""
    starts = laid.starts[first : stop + 1]
    words = laid.words[starts[0] : starts[-1]]
    return replace(laid, starts=starts - starts[0], words=words, valid=laid.valid[first:stop])


SHARE = """Float64 series
    From 0 to 1 by row: {} for rows shorter than ``length``, null for rows without words and null rows."""
"""The result of calls that return a share of each row's words, with that of short rows to fill in."""


@documented_by(repeats, returns=SHARE.format(0))
def repeated_share(column: pl.Series, **options: Unpack[RepeatedShareOptions]) -> pl.Series:
    """Return the share of each row's words inside a repeated window, as :func:`repeats` defines it.

    Words that normalisation drops do not count.

    Parameters
    ----------
    length
        Words of a window.

    Examples
    --------
    >>> text = pl.Series("text", ["to be or not to be", "to be or what", "to", None])
    >>> tadoc.repeated_share(text, length=3).to_list()
    [0.5, 0.75, 0.0, None]

    """
    return ShareRequest.repeated(options).run(column)


@documented_by(repeated_share, returns=SHARE.format(1))
def novelty(column: pl.Series, **options: Unpack[NoveltyOptions]) -> pl.Series:
    """Return the share of each row's words inside no window of an earlier row.

    A window is ``length`` words. Only earlier rows count, never the row itself.

    Examples
    --------
    >>> text = pl.Series("text", ["to be or not to be", "to be or what", "to", None])
    >>> tadoc.novelty(text, length=3).to_list()
    [1.0, 0.25, 1.0, None]

    """
    return ShareRequest.new(options).run(column)
