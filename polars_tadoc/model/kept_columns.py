"""Columns that calls have split, kept by the identity of their memory, so that the next call splits nothing.

A kept column holds its Arrow arrays: their memory is neither freed nor changed, so an equal address means equal rows.
It is dropped with the object it was read from (the caller's frame or series), or by the budget.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import count
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.config import settings
from polars_tadoc.model.column import require_tadoc, split
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.cache import ByteLRU

_NO_GAPS = pl.Series("gaps", [], pl.Binary)
_numbers = count()


@array_dataclass
class Kept:
    """A column's corpora, without gaps, and the arrays whose memory names them."""

    corpora: Sequence[Corpus]
    held: list[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of memory that would be free without it."""
        arrays = sum(one.rows.nbytes + one.root_offsets.nbytes + one.roots.nbytes for one in self.corpora)
        return arrays + sum(one.grammar.nbytes for one in self.corpora) + 1024


columns: ByteLRU[Kept] = ByteLRU(lambda: settings().host_cache_bytes, lambda kept: kept.nbytes)
"""Kept columns, by the addresses of their buffers."""


def split_and_keep(column: pl.Series, owner: object) -> list[Corpus]:
    """Split a compressed column as :func:`polars_tadoc.model.column.split`, and keep the corpora while the owner lives.

    Corpora have no gaps; their ``identity`` names their rows in caches.

    Parameters
    ----------
    column
        Compressed column.
    owner
        The object that callers hold: the frame or series that the column was read from.

    Raises
    ------
    InvalidGrammarError, LimitExceededError
        A payload is damaged, a row has a symbol that its grammar lacks, or a rule exceeds the current limit.

    """
    grammar, symbols, _ = require_tadoc(column, "split").struct.unnest()
    held: list[Any] = [part.to_arrow() for part in [*grammar.to_physical().get_chunks(), *symbols.get_chunks()]]
    key = " ".join(place(array) for array in held)
    kept = columns.get(key)
    if kept is not None:
        for corpus in kept.corpora:
            corpus.grammar.require_within_limit()
        return list(kept.corpora)
    named = [replace(one, gaps=_NO_GAPS, identity=f"rows{next(_numbers)}") for one in split(column)]
    columns.put(key, Kept(named, held))
    weakref.finalize(owner, columns.discard, key).atexit = False
    return named


def place(array: Any) -> str:
    """Name the memory of an Arrow array, which is equal while the memory is held; of nulls, which are which.

    Polars copies bitmaps of nulls that begin inside a byte, in each call.
    """
    validity, *others = array.buffers()
    addresses = [0 if buffer is None else buffer.address for buffer in others]
    inside = place(array.values) if isinstance(array, pa.LargeListArray) else ""
    if array.null_count:
        first, stop = array.offset, array.offset + len(array)
        bits = np.unpackbits(np.frombuffer(validity, np.uint8)[first // 8 : -(-stop // 8)], bitorder="little")
        inside += blake2b(np.packbits(bits[first % 8 :][: len(array)]).tobytes(), digest_size=16).hexdigest()
    return f"{array.offset}+{len(array)}@{','.join(map(hex, addresses))}{inside}"
