"""Coded postings: what the kernels of search read, the same arrays on every engine.

The documents that hold a term are a list, ascending, in blocks of ``BLOCK``. Each block has a skip head, its first
document; what follows are gaps. Gaps and counts stand apart, each as a :class:`Stream`: the low bits of all values,
the same width for a whole list, so that any value can be read by itself, and the high parts of the few that need
more. High parts are exceptions (PForDelta) or unary (Rice). After Ding et al., WWW 2009, section 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

BLOCK = 128
"""Postings with one skip head."""

SPARE_BYTES = 64
"""Bytes beyond the last value, so that kernels may read 64 at a time."""

PFORDELTA, RICE = 0, 1
"""How high parts are coded."""


class Stream(NamedTuple):
    """One number for each posting, coded.

    Value i of list t is ``low | high << widths[t]``. Its low part are the ``widths[t]`` bits from bit ``8 *
    low_offsets[t] + i * widths[t]`` of ``low`` (bit k of byte j is bit 8 j + k). High parts that are not zero:

    - PForDelta: exception e of block q, ``exception_offsets[q] <= e < exception_offsets[q + 1]``, stands at place
      ``exception_places[e]`` of the block, ascending; its high part is ``exception_highs[e]``, at least 1.
    - Rice: from bit ``unary_offsets[q]`` of ``unary``, each value of block q has so many zero bits, then a one bit.
    """

    widths: Any
    """uint8 by list, at most 32."""
    low: Any
    """uint8, with ``SPARE_BYTES`` beyond what is used, a multiple of 8 in all."""
    low_offsets: Any
    """int64, lists + 1: byte where each list starts, each rounded up to a whole byte."""
    exception_offsets: Any
    """int64, blocks + 1; one element for Rice."""
    exception_places: Any
    """uint8 by exception."""
    exception_highs: Any
    """uint32 by exception."""
    unary: Any
    """uint8, as ``low``; ``SPARE_BYTES`` only for PForDelta."""
    unary_offsets: Any
    """int64, blocks + 1, in bits; one element for PForDelta."""


class _Postings(NamedTuple):
    codec: int
    """``PFORDELTA`` or ``RICE``."""
    documents: int
    """How many there are; each number is below, at most 2^32 - 2."""
    frequencies: Any
    """uint32 by list: how many documents it has, its document frequency, at least 1."""
    block_offsets: Any
    """int64, lists + 1."""
    heads: Any
    """uint32 by block: its first document."""
    gaps: Stream
    counts: Stream


class Postings(_Postings):
    """Lists of documents, by term.

    Block q of list t is number ``block_offsets[t] + q`` of all; it holds postings ``BLOCK * q`` and on of the list.
    The gap of a block's first posting is coded as 0; each other one's is its document less the one before, less 1.
    Counts are coded less 1.
    """

    addresses: Any = None
    """Kept by :func:`polars_tadoc.kernels.postings.decode_cpu.addresses_of`, in this process only."""

    def __getstate__(self) -> None:
        return None


class Lists(NamedTuple):
    """Plain lists beside the coded ones: list ``len(frequencies) + i`` of a query is number i of these.

    Made for one batch of queries, such as the documents that hold a phrase.
    """

    offsets: Any
    """int64, lists + 1."""
    documents: Any
    """uint32, ascending within each list."""
    counts: Any
    """uint32, at least 1."""


class Queries(NamedTuple):
    """A batch of queries, as lists to be read.

    A query's lists stand from the shortest to the longest (fewest documents first, equal ones by number), each once.
    Scores are summed in this order, in float32, without fused operations: every engine gives the same bits.
    """

    offsets: Any
    """int64, queries + 1."""
    lists: Any
    """uint32: numbers of lists."""
    weights: Any
    """float32, at least 0: what a posting of the list adds at most to a document's score."""
