"""Addresses of the Expat functions inside CPython, for kernels that call them without the interpreter.

CPython exports them to other parsers in the capsule ``pyexpat.expat_CAPI`` (``Include/pyexpat.h``). Its struct only
ever gains fields at the end.
"""

from __future__ import annotations

import ctypes
import secrets
from functools import cache
from typing import NamedTuple
from xml.parsers import expat

import numpy as np

CAPSULE = b"pyexpat.expat_CAPI"
MAGIC = b"pyexpat.expat_CAPI 1.1"

ENCODING = ctypes.create_string_buffer(b"UTF-8")
SEPARATOR = "\f"
"""Separator of namespace and local name; XML does not allow this character."""
_SEPARATOR = ctypes.create_string_buffer(SEPARATOR.encode())

_FUNCTIONS = (
    "ErrorString",
    "GetErrorCode",
    "GetErrorColumnNumber",
    "GetErrorLineNumber",
    "Parse",
    "ParserCreate_MM",
    "ParserFree",
    "SetCharacterDataHandler",
    "SetCommentHandler",
    "SetDefaultHandlerExpand",
    "SetElementHandler",
    "SetNamespaceDeclHandler",
    "SetProcessingInstructionHandler",
    "SetUnknownEncodingHandler",
    "SetUserData",
    "SetStartDoctypeDeclHandler",
    "SetEncoding",
    "DefaultUnknownEncodingHandler",
    "SetHashSalt",
)


class _Offered(ctypes.Structure):
    _fields_ = (
        ("magic", ctypes.c_char_p),
        ("size", ctypes.c_int),
        ("version", ctypes.c_int * 3),
        *((name, ctypes.c_void_p) for name in _FUNCTIONS),
    )


class Expat(NamedTuple):
    """Addresses of Expat's functions and of their arguments."""

    create: np.uint64
    free: np.uint64
    parse: np.uint64
    error_code: np.uint64
    line: np.uint64
    column: np.uint64
    set_salt: np.uint64
    set_user_data: np.uint64
    set_elements: np.uint64
    set_text: np.uint64
    set_default: np.uint64

    encoding: np.uint64
    separator: np.uint64
    salt: np.uint64
    """Salt of Expat's hash tables; random, so that documents cannot be crafted to make all names collide."""


@cache
def load_expat() -> Expat | None:
    """Return Expat's functions, or None if this Python does not export them."""
    capsule = getattr(expat, "expat_CAPI", None)
    if capsule is None:
        return None
    pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_in.restype, pointer_in.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    offered = _Offered.from_address(pointer_in(capsule, CAPSULE))
    if offered.magic != MAGIC or offered.size < ctypes.sizeof(_Offered):
        return None
    functions = (
        "ParserCreate_MM",
        "ParserFree",
        "Parse",
        "GetErrorCode",
        "GetErrorLineNumber",
        "GetErrorColumnNumber",
        "SetHashSalt",
        "SetUserData",
        "SetElementHandler",
        "SetCharacterDataHandler",
        "SetDefaultHandlerExpand",
    )
    addresses = [getattr(offered, name) for name in functions]
    if not all(addresses):
        return None
    given = (
        ctypes.addressof(ENCODING),
        ctypes.addressof(_SEPARATOR),
        secrets.randbits(8 * ctypes.sizeof(ctypes.c_ulong)),
    )
    return Expat._make(np.uint64(word) for word in (*addresses, *given))
