"""Parses the documents of a String column into events, with Expat, on all threads, without the interpreter."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.kernels.host.xml.xml_events import (
    CAPACITY,
    DEEPEST,
    ERROR_COLUMN,
    ERROR_LINE,
    EVENTS,
    HAS_ATTRIBUTES,
    LONGEST,
    MASK,
    MAX_OPENED,
    MAX_TEXT,
    NAMES,
    SKIPPED,
    STATE_SIZE,
    TEXT,
    TOO_DEEP,
    USED,
    WIDE,
    handlers,
    read_documents,
)
from polars_tadoc.kernels.host.xml.xml_names import ENTRY
from polars_tadoc.kernels.host.xml.xml_prolog import DEFAULTS, ENTITIES, FINE, check_prologs
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.twigs.arrays import CLOSE, Events
from polars_tadoc.model.blocks import cut_blocks
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import binary_views
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks
from polars_tadoc.twig.alphabet import Alphabet
from polars_tadoc.twig.expat import Expat, load_expat
from polars_tadoc.twig.plain_parser import (
    DEFAULTS_DECLARED,
    ENTITIES_DECLARED,
    DocumentError,
    parse_document,
    too_large,
)

Array = npt.NDArray[Any]

ROOM = 1 << 20
"""Initial capacity in events, and the step by which it grows."""

SMALLEST_CHUNK = 1 << 16
"""Fewer bytes per thread do not pay."""

LARGEST_CHUNK = 1 << 22
"""Bytes per task if a row is shorter: interrupts are polled between tasks."""

NO_MEMORY = 1
"""Expat's error code."""


class Parsed(NamedTuple):
    """The events of a column, and the rows without events because they are invalid documents."""

    events: Events
    errors: list[tuple[int, str]]
    """Row number to error message."""


class Documents(NamedTuple):
    """State of each row; arrays of equal length."""

    addresses: UInt64
    lengths: UInt32
    codes: UInt8
    """Input: 0 for rows to parse. Output: 0 for rows that were parsed."""
    lines: UInt64
    columns: UInt64
    counts: Int64
    """Events."""


class Piece(NamedTuple):
    """Events of some rows, as consecutive parts."""

    symbols: list[Array]
    deepest: int
    """Upper bound of the depth of all documents."""


def parse_documents(text: pl.Series, alphabet: Alphabet, *, max_depth: int, max_bytes: int) -> Parsed:
    """Parse each row as one document.

    Calls Expat's C functions directly where CPython exports them. Elsewhere parses the rows one by one through
    ``xml.parsers.expat``, about ten times slower.

    Parameters
    ----------
    text
        String column; a null row has no events and is not an error.
    alphabet
        Elements, attributes and texts that have a symbol.
    max_depth
        Maximum number of open elements.
    max_bytes
        Maximum bytes of a document.

    Returns
    -------
    Parsed
        The events (none for invalid rows) and the errors of invalid rows.

    """
    addresses, lengths, owner = binary_views(text)
    rows = len(addresses)
    lines, columns = np.zeros(rows, np.uint64), np.zeros(rows, np.uint64)
    documents = Documents(addresses, lengths, np.zeros(rows, np.uint8), lines, columns, np.zeros(rows, np.int64))
    documents.codes[lengths > max_bytes] = SKIPPED
    if text.null_count():
        documents.codes[text.is_null().to_numpy()] = SKIPPED
    check_prologs(addresses, lengths, documents.codes, lines, columns)
    dtype = np.dtype(np.uint16 if alphabet.symbol_count <= 1 << 16 else np.uint32)
    expat = load_expat()
    errors: dict[int, str] = {}
    if expat is None:
        pieces = [_parse_plainly(documents, text, alphabet, max_depth, dtype, errors)]
    else:
        pieces = _parse(expat, documents, alphabet, max_depth, dtype)
    del owner  # the bytes are no longer read
    for row in np.flatnonzero(documents.codes).tolist():
        if documents.codes[row] != SKIPPED or lengths[row] > max_bytes:  # neither skipped nor null
            errors[row] = _explain(documents, row, max_depth, max_bytes)
    offsets = running_sum(documents.counts)
    symbols = [part for piece in pieces for part in piece.symbols]
    joined = symbols[0] if len(symbols) == 1 else np.concatenate([np.zeros(0, dtype), *symbols])
    deepest = max((piece.deepest for piece in pieces), default=0)
    return Parsed(Events(joined, offsets, deepest), sorted(errors.items()))


def _parse(expat: Expat, documents: Documents, alphabet: Alphabet, max_depth: int, dtype: np.dtype[Any]) -> list[Piece]:
    names = alphabet.names()
    compiled = handlers()
    before = running_sum(np.where(documents.codes == FINE, documents.lengths, 0))

    def parse(rows: tuple[int, int]) -> Piece:
        start, stop = rows
        text = np.zeros(names.most_text + 1, np.uint8)
        state = np.zeros(STATE_SIZE, np.uint64)
        state[WIDE], state[MAX_OPENED] = dtype == np.uint32, max_depth
        state[NAMES], state[MASK] = names.table.ctypes.data, len(names.table) // ENTRY - 1
        state[HAS_ATTRIBUTES], state[LONGEST] = names.has_attributes, names.longest
        state[TEXT], state[MAX_TEXT] = text.ctypes.data, names.most_text
        state[ERROR_LINE], state[ERROR_COLUMN] = expat.line, expat.column
        symbols = []
        room = min(ROOM, int(before[stop] - before[start]))
        while start < stop:
            room = max(room, int(documents.lengths[start]))
            events = np.empty(room, dtype)
            state[EVENTS], state[CAPACITY], state[USED] = events.ctypes.data, room, 0
            first, start = start, read_documents(expat, compiled, state, documents, start, stop)
            symbols.append(events[: int(state[USED])])
            if start == first:
                room *= 2  # default values of attributes can give more events than the document has bytes
        return Piece(symbols, int(state[DEEPEST]))

    chunks = [
        (first + start, first + stop)
        for first, last in weighted_chunks(before, SMALLEST_CHUNK)
        for start, stop in cut_blocks(np.diff(before[first : last + 1]), last - first, LARGEST_CHUNK)
    ]
    return map_parallel(parse, chunks)


def _parse_plainly(
    documents: Documents,
    text: pl.Series,
    alphabet: Alphabet,
    max_depth: int,
    dtype: np.dtype[Any],
    errors: dict[int, str],
) -> Piece:
    symbols, deepest = [], 0
    for row in np.flatnonzero(documents.codes == FINE).tolist():
        try:
            events = np.array(parse_document(text[row].encode(), alphabet, max_depth), dtype)
        except DocumentError as error:
            errors[row] = str(error)
            continue
        symbols.append(events)
        documents.counts[row] = len(events)
        deepest = max(deepest, int(np.where(events == CLOSE, -1, 1).cumsum().max()))
    return Piece(symbols, deepest)


def _explain(documents: Documents, row: int, max_depth: int, max_bytes: int) -> str:
    code = int(documents.codes[row])
    if code == NO_MEMORY:
        raise MemoryError(f"not enough memory to parse row {row}")
    if code == SKIPPED:
        return too_large(int(documents.lengths[row]), max_bytes)
    place = int(documents.lines[row]), int(documents.columns[row])
    if code == TOO_DEEP:
        return str(DocumentError.too_deep(max_depth, *place))
    own = {ENTITIES: ENTITIES_DECLARED, DEFAULTS: DEFAULTS_DECLARED}
    return str(DocumentError.at(own[code], *place) if code in own else DocumentError.not_well_formed(code, *place))
