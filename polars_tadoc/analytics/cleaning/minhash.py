"""MinHash signatures by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.cleaning.laid_words import lay_out
from polars_tadoc.analytics.cleaning.options import reading_of
from polars_tadoc.analytics.cleaning.repeats import repeats
from polars_tadoc.analytics.cleaning.signatures import MinHashOptions, Scheme
from polars_tadoc.engine.progress import by_steps
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, require_utf8
from polars_tadoc.model.arrow_results import from_arrow
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.runtime.arrow_memory import allocate, binary_views
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.option_signature import takes_options
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks
from polars_tadoc.traversal.text_corpus import WORDS, require_text


@dataclass(frozen=True)
class MinHashRequest:
    """The checked arguments of a call."""

    name: ClassVar[str] = "minhash"
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
    @by_steps
    def run(self, column: pl.Series) -> pl.Series:
        """Sign each row of a column."""
        column, scheme, tokenizer = require_text(column, self.name), self.scheme, self.tokenizer or WORDS
        owner: object = None
        if column.dtype == pl.String and scheme.signs_text(tokenizer, self.morphism):
            require_utf8(column)
            addresses, lengths, owner = binary_views(column)
            sign, valid = scheme.text_signer(addresses, lengths, tokenizer), column.is_not_null().to_numpy()
            chunks = weighted_chunks(running_sum(lengths), 1 << 14)
        else:
            laid = lay_out(column, self.name, self.tokenizer, self.morphism)
            sign, valid, chunks = scheme.signer(laid), laid.valid, weighted_chunks(laid.starts, 1 << 12)
        size, rows = scheme.permutations, len(valid)
        buffer, flat = allocate(rows * size, np.uint32)
        found = flat.reshape(rows, size)
        map_parallel(lambda own: sign(*own, found[slice(*own)]), chunks)
        del owner  # addresses point into it until here
        values: Any = pa.UInt32Array.from_buffers(pa.uint32(), len(flat), [None, buffer])
        mask = None if valid.all() else pa.array(~valid)
        return from_arrow(column.name, pa.FixedSizeListArray.from_arrays(values, size, mask=mask)).cast(self.dtype)


@documented_by(repeats)
def minhash(column: pl.Series, **options: Unpack[MinHashOptions]) -> pl.Series:
    """Return the MinHash signature of each row's set of n-grams of words.

    The share of equal values of two signatures estimates the Jaccard similarity of the two sets (A. Broder, *On the
    resemblance and containment of documents*, 1997), with a standard error of at most 0.5 / sqrt(permutations).
    Signatures depend only on the row's words, the options and ``seed``: they may be stored and compared with those of
    other columns. They are no protection against texts that are made to look alike.

    - "fast": a word's hash is its length times 0x9E3779B97F4A7C15 modulo 2^64; then, for each eight bytes of it (the
      lowest first, the last ones filled up with zeros), it is xored with these, multiplied by that number, and xored
      with its own upper half. An n-gram's hash is a polynomial of its words' hashes modulo 2^64, mixed by MurmurHash3's
      last step. Its lower half plus ``a[k]`` times its upper half, modulo 2^32, is its value in permutation ``k``
      (double hashing: A. Kirsch and M. Mitzenmacher, *Less hashing, same performance*, 2006). Plain text is signed
      while it is cut, unless it is normalised.
    - "double": likewise, with the first eight bytes of a word's SHA-1 as its hash.
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
        "fast", "double", "datasketch" or "datasketch-affine32".

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
    >>> text = pl.Series("text", ["to be or not to be", "to be, or not to be!", "that is the question", None])
    >>> one, same, other, null = tadoc.minhash(text, permutations=4, ngram=2)
    >>> one.equals(same), one.equals(other), null
    (True, False, None)
    >>> tadoc.minhash(text, permutations=3, ngram=2, scheme="datasketch").to_list()[0]
    [51128894, 2635174766, 1651918912]

    """
    return MinHashRequest.from_arguments(**options).run(column)
