"""Parses many documents per call with Expat, without the interpreter, and keeps the events that twigs use.

The handlers are compiled functions that Expat calls. They share an array of 64-bit words, whose positions are named
here. A handler cannot stop the parser (CPython does not export that function). Therefore a handler that has reached a
limit does nothing any more, and documents are passed to the parser in pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from polars_tadoc.kernels.host.xml.xml_names import ATTRIBUTES, ELEMENTS, TEXTS, VALUES, find_name
from polars_tadoc.kernels.twigs.arrays import CLOSE, OTHER
from polars_tadoc.runtime.addresses import copy_bytes, load_u8, load_u64, store_u8, store_u16, store_u32, store_u64
from polars_tadoc.runtime.array_types import UInt64
from polars_tadoc.runtime.jit import address_of, inner, kernel

PIECE_BYTES = 8 << 20
"""Bytes passed to the parser at once. Open elements cost Expat about 50 times their bytes, which bounds the work on
elements beyond the limit. Expat before 2.6 rescans a long comment once per piece."""

TOO_DEEP, FULL, SKIPPED = 242, 243, 255
"""Error codes of documents, besides Expat's and the prolog's: too many open elements; no room for events; skipped."""

(
    STOPPED,  # 0, or why handlers do nothing any more
    EVENTS,  # address of the events
    WIDE,  # whether an event has 32 or 16 bits
    USED,  # events so far
    CAPACITY,
    OPENED,  # open elements
    MAX_OPENED,  # their maximum
    DEEPEST,  # maximum depth so far, including attributes and texts
    NAMES,  # address of the table
    MASK,  # mask of its slots
    LONGEST,  # bytes of its longest key
    HAS_ATTRIBUTES,  # whether any attribute has a symbol
    TEXT,  # address of the text so far
    TEXT_LENGTH,  # its bytes, capped at one more than the maximum
    MAX_TEXT,  # bytes of the longest text with a symbol, 0 without
    PARSER,
    ERROR_LINE,  # function
    ERROR_COLUMN,  # function
    LINE,  # position where handlers stopped
    COLUMN,
    STATE_SIZE,
) = range(21)

_LOW = np.uint64(0xFFFFFFFF)
_0, _1, _2, _3, _8, _16, _32 = (np.uint64(number) for number in (0, 1, 2, 3, 8, 16, 32))
_VALUES, _PIECE, _TOO_DEEP, _FULL = (np.uint64(number) for number in (VALUES, PIECE_BYTES, TOO_DEEP, FULL))


@intrinsic
def _ask(typing_context: Any, address: Any, *arguments: Any) -> Any:
    """Call the C function at an address with integers or addresses; bits above those of its result are undefined."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        given = [builder.extract_value(values[1], k) for k in range(len(own))]
        function = ir.FunctionType(ir.IntType(64), [ir.IntType(64)] * len(own)).as_pointer()
        return builder.call(builder.inttoptr(values[0], function), given)

    own = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], types.BaseTuple) else arguments
    return types.uint64(types.uint64, types.StarArgTuple.from_types(own)), generate


@inner
def _get(state: Any, place: Any) -> Any:
    return load_u64(state + np.uint64(8 * place))


@inner
def _set(state: Any, place: Any, value: Any) -> None:
    store_u64(state + np.uint64(8 * place), value)


@inner
def _stop(state: Any, why: Any) -> None:
    _set(state, STOPPED, why)
    parser = _get(state, PARSER)
    _set(state, LINE, _ask(_get(state, ERROR_LINE), parser) & _LOW)
    _set(state, COLUMN, (_ask(_get(state, ERROR_COLUMN), parser) & _LOW) + _1)


@inner
def _append(state: Any, symbol: Any) -> None:
    used = _get(state, USED)
    if used == _get(state, CAPACITY):
        _set(state, STOPPED, _FULL)
    elif _get(state, WIDE) != _0:
        store_u32(_get(state, EVENTS) + (used << _2), np.uint32(symbol))
        _set(state, USED, used + _1)
    else:
        store_u16(_get(state, EVENTS) + (used << _1), np.uint16(symbol))
        _set(state, USED, used + _1)


@inner
def _append_leaf(state: Any, symbol: Any) -> None:
    if symbol != _0:
        _append(state, symbol)
        _append(state, np.uint64(CLOSE))
        level = _get(state, OPENED) + _1
        if level > _get(state, DEEPEST):
            _set(state, DEEPEST, level)


@inner
def _find(state: Any, scope: Any, text: Any) -> Any:
    return find_name(_get(state, NAMES), _get(state, MASK), _get(state, LONGEST), scope, text)


@inner
def _end_text(state: Any) -> None:
    length = _get(state, TEXT_LENGTH)
    if length != _0:
        _set(state, TEXT_LENGTH, _0)
        if length <= _get(state, MAX_TEXT):
            text = _get(state, TEXT)
            store_u8(text + length, np.uint8(0))
            _append_leaf(state, _find(state, np.uint64(TEXTS), text) & _LOW)


@inner
def _append_attributes(state: Any, attributes: Any) -> None:
    name = load_u64(attributes)
    while name != _0:
        meaning = _find(state, np.uint64(ATTRIBUTES), name)
        _append_leaf(state, meaning & _LOW)
        number = meaning >> _32
        if number != _0:
            value = load_u64(attributes + _8)
            _append_leaf(state, _find(state, _VALUES + number, value) & _LOW)
        attributes += _16
        name = load_u64(attributes)


def _on_start(state: Any, name: Any, attributes: Any) -> None:
    if _get(state, STOPPED) == _0:
        _end_text(state)
        opened = _get(state, OPENED) + _1
        if opened > _get(state, MAX_OPENED):
            _stop(state, _TOO_DEEP)
        else:
            _set(state, OPENED, opened)
            if opened > _get(state, DEEPEST):
                _set(state, DEEPEST, opened)
            symbol = _find(state, np.uint64(ELEMENTS), name) & _LOW
            _append(state, symbol if symbol != _0 else np.uint64(OTHER))
            if _get(state, HAS_ATTRIBUTES) != _0:
                _append_attributes(state, attributes)


def _on_end(state: Any, name: Any) -> None:
    if _get(state, STOPPED) == _0:
        _end_text(state)
        _set(state, OPENED, _get(state, OPENED) - _1)
        _append(state, np.uint64(CLOSE))


def _on_text(state: Any, text: Any, length: Any) -> None:
    length &= _LOW  # a C int
    so_far, most = _get(state, TEXT_LENGTH), _get(state, MAX_TEXT)
    if so_far <= most:
        if length > most - so_far:
            _set(state, TEXT_LENGTH, most + _1)
        else:
            copy_bytes(_get(state, TEXT) + so_far, text, length)
            _set(state, TEXT_LENGTH, so_far + length)


def _on_other(state: Any, markup: Any, length: Any) -> None:
    """End a text at a comment, an instruction, or a reference to an unknown entity, but not at CDATA."""
    length &= _LOW
    if _get(state, STOPPED) == _0 and length >= _3:
        first, second = load_u8(markup), load_u8(markup + _1)
        if first == 0x26 or (first == 0x3C and (second == 0x3F or load_u8(markup + _2) == 0x2D)):
            _end_text(state)


def handlers() -> Sequence[np.uint64]:
    """Compile the handlers; return their addresses."""
    compiled = (_on_start, 3), (_on_end, 2), (_on_text, 3), (_on_other, 3)
    return tuple(address_of(handler, arguments) for handler, arguments in compiled)


@kernel
def read_documents(expat: Any, handlers: Any, state: UInt64, documents: Any, start: int, stop: int) -> int:
    """Append the events of documents; return the first document without room, or ``stop``.

    ``documents`` has addresses, lengths, codes, lines, columns and numbers of events by row. Documents with a code are
    skipped. A document that cannot be parsed gets a code and a position (from 1), and no events.
    """
    for row in range(start, stop):
        if documents.codes[row] == 0:
            begun = state[USED]
            # the maximum for a document without default values
            if state[CAPACITY] - begun < np.uint64(documents.lengths[row]):
                return row
            code = _read(expat, handlers, state, documents.addresses[row], np.uint64(documents.lengths[row]))
            if code != _0:
                state[USED] = begun
                if code == _FULL:
                    return row
                documents.codes[row] = code
                documents.lines[row] = state[LINE]
                documents.columns[row] = state[COLUMN]
            documents.counts[row] = state[USED] - begun
    return stop


@inner
def _read(expat: Any, handlers: Any, state: Any, address: Any, length: Any) -> Any:
    """Parse a document; return 0 or an error code."""
    parser = _ask(expat.create, expat.encoding, _0, expat.separator)
    if parser == _0:
        return _1  # Expat's code for out of memory
    shared = np.uint64(state.ctypes.data)
    state[PARSER] = parser
    state[STOPPED] = state[OPENED] = state[TEXT_LENGTH] = _0
    _ask(expat.set_salt, parser, expat.salt)
    _ask(expat.set_user_data, parser, shared)
    _ask(expat.set_elements, parser, handlers[0], handlers[1])
    if state[MAX_TEXT] != _0:
        _ask(expat.set_text, parser, handlers[2])
        _ask(expat.set_default, parser, handlers[3])
    going = True
    while going and length > _PIECE:
        going = _ask(expat.parse, parser, address, _PIECE, _0) & _LOW == _1 and state[STOPPED] == _0
        address += _PIECE
        length -= _PIECE
    if going:
        going = _ask(expat.parse, parser, address, length, _1) & _LOW == _1
    code = state[STOPPED]
    if not going and code == _0:
        code = _ask(expat.error_code, parser) & _LOW
        state[LINE] = _ask(expat.line, parser) & _LOW
        state[COLUMN] = (_ask(expat.column, parser) & _LOW) + _1
    _ask(expat.free, parser)
    return code
