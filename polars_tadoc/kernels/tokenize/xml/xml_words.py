"""Finds the words of XML: tags, comments and other markup as whole words, and the words of the text between them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.tokenize import characters
from polars_tadoc.kernels.tokenize.tokenize_cpu import Matches
from polars_tadoc.kernels.tokenize.xml import xml_words_cpu as kernels
from polars_tadoc.runtime.array_types import UInt32, UInt64
from polars_tadoc.runtime.parallel import map_parallel

CHUNK_BYTES = 1 << 20
"""Bytes of text per task."""

_BYTES_PER_WORD = 4
"""Estimate of the average length of a word; more room is allocated if needed."""


def xml_words(addresses: UInt64, lengths: UInt32, *, is_content: bool) -> Matches:
    """Cut rows, given by address and length, into the words of XML.

    Words are

    - a start tag or an empty element's tag with its attributes, an end tag, a comment, a CDATA section, a processing
      instruction, a document type declaration before the first tag, an XML declaration at the start of the row, and a
      reference such as ``&amp;``, each as one word;
    - in text, the words of the tokenizer "words";
    - malformed parts: ``<`` or ``&`` that begins none of these, ``]]>`` in text, a character that XML forbids, and
    outside
      of the root element any run of characters up to white space or a ``<``.

    Everything else is a gap.

    Parameters
    ----------
    addresses, lengths
        UTF-8 rows.
    is_content
        Whether rows are element content instead of documents.

    Returns
    -------
    Matches
        Start of each word in its row, its bytes, and the number of words up to the end of each row.

    """
    before = running_sum(lengths)
    edges = np.searchsorted(before, np.arange(0, int(before[-1]), CHUNK_BYTES)[1:])
    rows = np.unique(np.concatenate([[0], edges, [len(lengths)]])).tolist()
    ends = np.zeros(len(lengths), np.int64)
    classes = characters.classes("words")

    def cut(chunk: tuple[int, int]) -> list[tuple[UInt32, UInt32]]:
        row, last = chunk
        room = int(before[last] - before[row]) // _BYTES_PER_WORD + 1
        parts: list[tuple[UInt32, UInt32]] = []
        words = 0
        while row < last:
            starts, sizes = np.empty(room, np.uint32), np.empty(room, np.uint32)
            reached = kernels.cut_rows(addresses, lengths, row, last, is_content, classes, starts, sizes, ends)
            if reached == row:
                room *= 2
                continue
            own = int(ends[reached - 1])
            parts.append((starts[:own], sizes[:own]))
            ends[row:reached] += words
            words, row = words + own, reached
        return parts

    chunks = list(pairwise(rows))
    found = map_parallel(cut, chunks)
    words = 0
    for (first, last), parts in zip(chunks, found, strict=True):
        ends[first:last] += words
        words += sum(len(starts) for starts, _ in parts)
    starts, sizes, at = np.empty(words, np.uint32), np.empty(words, np.uint32), 0
    for own_starts, own_sizes in (part for parts in found for part in parts):  # polls for interrupts between parts
        starts[at : at + len(own_starts)], sizes[at : at + len(own_starts)] = own_starts, own_sizes
        at += len(own_starts)
    return Matches(starts, sizes, ends)
