"""Makes columns of results, in Arrow and in Polars; strings are only made in the requested form."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.kernels.host.records.merge_counts import renumber
from polars_tadoc.kernels.primitives.to_arrow_cpu import to_arrow as in_arrow
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.arrow_arrays import lent, view
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.parallel import even_chunks, map_parallel


def to_arrow(array: npt.NDArray[Any]) -> pa.Array:
    """Return numbers in Arrow's memory (see :mod:`polars_tadoc.runtime.arrow_memory`), copied if they are elsewhere."""
    return in_arrow([array])[0]


def dictionary(words: Vocabulary, ids: UInt32 | pa.Array) -> pa.DictionaryArray:
    """Dictionary-encode words; a few words get a dictionary of just these."""
    strings = words.strings
    if 2 * len(ids) < len(words):
        own, places = np.unique(view(ids) if isinstance(ids, pa.Array) else ids, return_inverse=True)
        ids, strings = places.astype(np.uint32), strings.take(lent(own))
    array = ids if isinstance(ids, pa.Array) else to_arrow(ids)
    return pa.DictionaryArray.from_arrays(array, strings, safe=False)  # checking the ids would read all of them again


def lists(offsets: Int64, values: pa.Array) -> pa.LargeListArray:
    """Make a list array from values and offsets."""
    return pa.LargeListArray.from_buffers(
        pa.large_list(values.type), len(offsets) - 1, [None, to_arrow(offsets).buffers()[1]], children=[values]
    )


def sequence_lists(words: Vocabulary, sequences: UInt32) -> pa.LargeListArray:
    """Make a list of dictionary-encoded words from each row of word ids."""
    count, n = sequences.shape
    return lists(_every(n, count + 1), dictionary(words, sequences.reshape(-1)))


def word_series(words: Vocabulary, ids: UInt32, form: str) -> pl.Series:
    """Make a series of words from their ids, as strings or categories."""
    if form == "string":
        return words.take(ids)
    numbers = _category_numbers(words, ids)
    if numbers is None:
        return from_arrow("word", dictionary(words, ids))
    return from_arrow("word", numbers).cat.to(pl.Categorical)


def sequence_series(words: Vocabulary, sequences: UInt32, form: str = "string") -> pl.Series:
    """Make a list of words from each row of word ids, as strings or categories."""
    count, n = sequences.shape
    offsets, ids = _every(n, count + 1), sequences.reshape(-1)
    if form == "string":
        return from_arrow("sequence", lists(offsets, words.views(ids)))
    numbers = _category_numbers(words, ids)
    if numbers is None:
        return from_arrow("sequence", lists(offsets, dictionary(words, ids)))
    return from_arrow("sequence", lists(offsets, numbers)).list.eval(pl.element().cat.to(pl.Categorical))


def _category_numbers(words: Vocabulary, ids: UInt32) -> pa.Array | None:
    """Return the numbers by which Polars knows words; None if a few words are faster given as strings."""
    if 2 * len(ids) < len(words) and "categories" not in words.__dict__:
        return None
    return to_arrow(renumber([ids], [words.categories[1]]))


def with_categories(schema: pl.Schema) -> pl.Schema:
    """Return the columns of a result whose words are categories."""
    held = {"word": pl.Categorical(), "other": pl.Categorical(), "sequence": pl.List(pl.Categorical())}
    return pl.Schema({name: held.get(name, dtype) for name, dtype in schema.items()})


def _every(step: int, count: int) -> Int64:
    """Return the first multiples of a step, int64, in Arrow's memory."""
    made: Int64 = allocate(count, np.int64)[1]

    def fill(chunk: tuple[int, int]) -> None:
        np.multiply(np.arange(*chunk, dtype=np.int64), step, out=made[slice(*chunk)])

    map_parallel(fill, even_chunks(count, each=4))
    return made


def numbers(name: str, array: npt.NDArray[Any]) -> pl.Series:
    """Make a series of an array of numbers, copied by several threads unless it is in Arrow's memory."""
    return from_arrow(name, to_arrow(array))


def from_arrow(name: str, array: pa.Array) -> pl.Series:
    """Make a series from an Arrow array in Arrow's own memory."""
    return cast(pl.Series, pl.from_arrow(array)).alias(name)
