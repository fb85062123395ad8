"""Coded postings, the input of search kernels: the same arrays on every engine.

The documents that contain a term are a list, ascending, in blocks of ``BLOCK``. Each block has a skip head, its first
document; gaps follow. Gaps and counts are stored separately, each as a :class:`Stream`: the low bits of all values, at
one width per list, so that any value can be read on its own, and the high parts of the few that need more bits. High
parts are exceptions (PForDelta) or unary (Rice). After Ding et al., WWW 2009, section 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

BLOCK = 128
"""Postings per skip head."""

SPARE_BYTES = 64
"""Spare bytes after the last value, so that kernels may read 64 at a time."""

PFORDELTA, RICE = 0, 1
"""Codings of high parts."""


class Stream(NamedTuple):
    """One coded number per posting.

    Value i of list t is ``low | high << widths[t]``. Its low part is the ``widths[t]`` bits from bit ``8 *
    low_offsets[t] + i * widths[t]`` of ``low`` (bit k of byte j is bit 8 j + k). Nonzero high parts:

    - PForDelta: exception e of block q, ``exception_offsets[q] <= e < exception_offsets[q + 1]``, has position
      ``exception_places[e]`` in the block, ascending; its high part is ``exception_highs[e]``, at least 1.
    - Rice: from bit ``unary_offsets[q]`` of ``unary``, each value of block q is that many zero bits, then a one bit.
    """

    widths: Any
    """uint8 by list, at most 32."""
    low: Any
    """uint8, with ``SPARE_BYTES`` after the used part; the total is a multiple of 8."""
    low_offsets: Any
    """int64, lists + 1: byte offset of each list; lists start at whole bytes."""
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
    """Number of documents, at most 2^32 - 2."""
    frequencies: Any
    """uint32 by list: number of documents (document frequency), at least 1."""
    block_offsets: Any
    """int64, lists + 1."""
    heads: Any
    """uint32 by block: its first document."""
    gaps: Stream
    counts: Stream


class Postings(_Postings):
    """Lists of documents, by term.

    Block q of list t has the global number ``block_offsets[t] + q``; it has postings ``BLOCK * q`` and on of the list.
    The gap of a block's first posting is coded as 0; other gaps are the difference to the previous document, minus 1.
    Counts are coded minus 1.
    """

    addresses: Any = None
    """Cache of :func:`polars_tadoc.kernels.postings.decode_cpu.addresses_of`, for this process only."""

    def __getstate__(self) -> None:
        return None


class Lists(NamedTuple):
    """Uncoded lists in addition to the coded ones: list ``len(frequencies) + i`` of a query is number i of these.

    Made for one batch of queries, for example with the documents that contain a phrase.
    """

    offsets: Any
    """int64, lists + 1."""
    documents: Any
    """uint32, ascending within each list."""
    counts: Any
    """uint32, at least 1."""


class Queries(NamedTuple):
    """A batch of queries, as lists to read.

    A query's lists are distinct and sorted by number of documents, then list number. Scores are summed in this order,
    in float32, without fused operations: every engine returns the same bits.
    """

    offsets: Any
    """int64, queries + 1."""
    lists: Any
    """uint32: numbers of lists."""
    weights: Any
    """float32, at least 0: maximum contribution of a posting of the list to a document's score."""
