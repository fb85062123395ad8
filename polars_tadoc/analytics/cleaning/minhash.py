"""MinHash signatures by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.cleaning.laid_words import lay_out
from polars_tadoc.analytics.cleaning.options import reading_of
from polars_tadoc.analytics.cleaning.repeats import repeats
from polars_tadoc.analytics.cleaning.signatures import MinHashOptions, Scheme
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.records.labelled_results import from_arrow
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.option_signature import takes_options
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks


@dataclass(frozen=True)
class MinHashRequest:
    """The checked arguments of a call."""

    scheme: Scheme
    tokenizer: Tokenizer | None
    morphism: Morphism | None

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[MinHashOptions]) -> MinHashRequest:
        """Check the arguments; errors as for :func:`minhash`."""
        return cls(Scheme.of(options, "minhash", options["scheme"]), *reading_of(options))

    @property
    def dtype(self) -> pl.DataType:
        """Return the type of the result."""
        return pl.Array(pl.UInt32, self.scheme.permutations)

    @ends_on_interrupt
    def run(self, column: pl.Series) -> pl.Series:
        """Sign each row of a column."""
        laid = lay_out(column, "minhash", self.tokenizer, self.morphism)
        sign, size, rows = self.scheme.signer(laid), self.scheme.permutations, len(laid.valid)
        buffer, flat = allocate(rows * size, np.uint32)
        found = flat.reshape(rows, size)
        map_parallel(lambda own: sign(*own, found[slice(*own)]), weighted_chunks(laid.starts, 1 << 12))
        values: Any = pa.UInt32Array.from_buffers(pa.uint32(), len(flat), [None, buffer])
        mask = None if laid.valid.all() else pa.array(~laid.valid)
        return from_arrow(column.name, pa.FixedSizeListArray.from_arrays(values, size, mask=mask)).cast(self.dtype)


@documented_by(repeats)
def minhash(column: pl.Series, **options: Unpack[MinHashOptions]) -> pl.Series:
    """Return the MinHash signature of each row's set of n-grams of words.

    The share of equal values of two signatures estimates the Jaccard similarity of the two sets (A. Broder, *On the
    resemblance and containment of documents*, 1997), with a standard error of at most 0.5 / sqrt(permutations).
    Signatures depend only on the row's words, the options and ``seed``: they may be stored and compared with those of
    other columns. They are no protection against texts that are made to look alike.

    - "double": each word is hashed once per vocabulary (first eight bytes of its SHA-1), an n-gram by a polynomial of
      its words' hashes modulo 2^64, mixed by MurmurHash3's last step. Its lower half plus ``a[k]`` times its upper
      half, modulo 2^32, is its value in permutation ``k`` (double hashing: A. Kirsch and M. Mitzenmacher, *Less
      hashing, same performance*, 2006).
    - "datasketch": equal bit for bit to ``datasketch.MinHash(permutations, seed, scheme="legacy")``, which before
      version 2 was the only scheme, updated with each n-gram's words joined by one space, as UTF-8: SHA-1's first four
      bytes, and ``(a * h + b) % (2**61 - 1)``.
    - "datasketch-affine32": likewise, equal to ``scheme="affine32"``, the default of datasketch 2.

    Parameters
    ----------
    permutations
        Values of a signature, 1 to 65,536.
    ngram
        Words of an n-gram; a row with fewer words is one n-gram.
    seed
        Chooses the permutations, 0 to 4,294,967,295.
    scheme
        "double", "datasketch" or "datasketch-affine32".

    Returns
    -------
    Array(UInt32) series
        ``permutations`` values by row; all are 4,294,967,295 for rows without words; null for null rows.

    Raises
    ------
    TypeError
        ``permutations``, ``ngram`` or ``seed`` is not an integer, ``normalize`` not an expression, ``lowercase`` not a
        bool or ``stopwords`` not a list of strings.
    ValueError
        ``permutations``, ``ngram`` or ``seed`` is out of range, ``scheme`` is unknown, or ``normalize`` reads columns
        or does not give one String or null per word.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> text = pl.Series("text", ["to be or not to be", "to be, or not to be!", "that is the question", None])
    >>> one, same, other, null = tadoc.minhash(text, permutations=4, ngram=2)
    >>> one.equals(same), one.equals(other), null
    (True, False, None)
    >>> tadoc.minhash(text, permutations=3, ngram=2, scheme="datasketch").to_list()[0]
    [51128894, 2635174766, 1651918912]

    """
    return MinHashRequest.from_arguments(**options).run(column)
