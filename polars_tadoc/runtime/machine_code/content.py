"""The content key of a kernel: a hash of its bytecode, and of that of everything that it depends on.

Numba decides by a file's time and size whether machine code is current, and ignores other files that a kernel calls.
This key is equal for equal content, wherever and whenever it was written. It covers

- the bytecode of the kernel's module and of all modules of kernels that it imports, directly or not: types, intrinsics
  and everything else made by importing a module;
- bytecode, defaults, options, and values of globals and closures, of the kernel and of each function that it reaches by
  name: differences between processes with the same source (a number from the environment), and modules without one.

Comments, docstrings and line numbers are not part of it, except with Numba's debugging information, which has lines.
"""

from __future__ import annotations

import dis
import hashlib
import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import pairwise
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from numba import config, types
from numba.core.dispatcher import Dispatcher

ROOTS = ("polars_tadoc.kernels", "polars_tadoc.runtime")
"""Folders of kernel modules and the modules that they are made with."""
CACHING = ("polars_tadoc.runtime.machine_code", "polars_tadoc.runtime.compiled")
"""Modules that cache machine code, and so are not part of it."""

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>[\w.]+)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n#]*)"
    r"|import[ \t]+(?P<modules>[^\n#]*))",
    re.MULTILINE,
)
_SIMPLE = (type(None), bool, int, float, complex, str, bytes, np.generic)


class UnknownContentError(Exception):
    """A closure holds a value that has no key."""


def content_of(function: FunctionType) -> str:
    """Return the key of a function that is to be compiled.

    Raises
    ------
    UnknownContentError
        A closure holds a value that has no key; the machine code cannot be cached.

    """
    parts, modules = set(), set()
    left, reached = [function], {function}
    while left:
        part = _part_of(left.pop())
        parts.add(part.key)
        modules.add(part.module)
        left += part.functions - reached
        reached |= part.functions
    sources = {name: source for module in modules for name, source in sources_of(module).items()}
    own = f"{function.__module__}.{function.__qualname__}"
    return _hash(own, _part_of(function).key, *sorted(parts), *(f"{name}={sources[name]}" for name in sorted(sources)))


def named_in(function: FunctionType) -> set[str]:
    """Return the names that a function uses, and those of the functions that it reaches."""
    used = {name for one in _nested(function.__code__) for name in (*one.co_names, *one.co_freevars)}
    with suppress(UnknownContentError):
        used |= {one.__name__ for one in _part_of(function).functions}
    return used


class _Part(NamedTuple):
    key: str
    module: str
    functions: frozenset[FunctionType]


@cache
def _part_of(function: FunctionType) -> _Part:
    """Return the key of a function itself, and the functions that it reaches by name."""
    code = function.__code__
    found: list[FunctionType] = []
    names = {name for one in _nested(code) for name in one.co_names}
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    values = [f"{function.__module__}.{function.__qualname__}", _key_of_code(code)]
    for name, given in (("defaults", function.__defaults__), ("named defaults", function.__kwdefaults__)):
        key = _key_of(tuple(given.items()) if isinstance(given, dict) else given, found)
        if key is None and "<locals>" in function.__qualname__:  # else the module's bytecode decides them
            raise UnknownContentError(f"{function.__qualname__}: unknown {name}")
        values.append(f"{name}={key}")
    known = sorted(names & function.__globals__.keys())
    values += [f"{name}={_key_of(function.__globals__[name], found)}" for name in known]
    for name in sorted(cells):
        key = _key_of(cells[name].cell_contents, found)
        if key is None:
            raise UnknownContentError(f"{function.__qualname__}: {name} is {type(cells[name].cell_contents).__name__}")
        values.append(f"{name}={key}")
    return _Part(_hash(*values), function.__module__, frozenset(found))


def _key_of(value: Any, functions: list[FunctionType]) -> str | None:
    """Return the key of a value, None if it has none; functions in it are listed for their own keys."""
    if isinstance(value, _SIMPLE):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return f"{value.dtype.descr} {value.shape} {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, tuple | frozenset):
        keys = [_key_of(one, functions) for one in value]
        ordered = keys if isinstance(value, tuple) else sorted(str(key) for key in keys)
        return None if None in keys else f"{type(value).__name__} {ordered}"
    options = ""
    if not isinstance(value, Dispatcher | FunctionType | type):
        value = getattr(value, "__wrapped__", value)  # a kernel that ends on interrupts
    if isinstance(value, Dispatcher):
        options, value = repr(sorted(value.targetoptions.items(), key=repr)), value.py_func
    elif isinstance(getattr(value, "_defn", None), FunctionType):  # an intrinsic
        value = value._defn
    if isinstance(value, FunctionType):
        if _is_followed(value.__module__):
            functions.append(value)
        return f"function {value.__module__}.{value.__qualname__} {options}"
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, types.Type | np.dtype):
        return repr(value)
    if isinstance(value, type | BuiltinFunctionType | np.ufunc):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}"
    return None


_OTHERS = ("numba", "numpy", "llvmlite")
"""Packages whose versions are part of every key."""


def _is_followed(module: str | None) -> bool:
    name = module or ""
    top = name.partition(".")[0]
    own = top == "__main__" or not (top in _OTHERS or top in sys.stdlib_module_names)
    return own and not name.startswith(CACHING)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _key_of_code(code: CodeType) -> str:
    """Return a key of bytecode that leaves out file names, docstrings and lines."""
    left_out = _for_readers(code)
    constants = [_key_of_constant(None if k in left_out else one) for k, one in enumerate(code.co_consts)]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    numbers = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & ~_HAS_DOCSTRING)
    lines = (code.co_firstlineno, code.co_linetable) if config.DEBUGINFO_DEFAULT else ()
    bytecode = (code.co_code.hex(), code.co_exceptiontable.hex())
    return _hash(code.co_name, *bytecode, repr(constants), repr(names), repr(numbers), repr(lines))


def _key_of_constant(value: Any) -> str:
    if isinstance(value, CodeType):
        return _key_of_code(value)
    if isinstance(value, tuple | frozenset):
        keys = [_key_of_constant(one) for one in value]
        return f"{type(value).__name__} {keys if isinstance(value, tuple) else sorted(keys)}"
    if isinstance(value, slice):
        return f"slice {_key_of_constant((value.start, value.stop, value.step))}"
    if isinstance(value, _SIMPLE) or value is Ellipsis:
        return f"{type(value).__name__} {value!r}"
    raise UnknownContentError(f"a constant is {type(value).__name__}")


_HAS_DOCSTRING = 0x4000000
"""A flag of functions since Python 3.13."""
_TAKES_CONSTANT = frozenset(dis.hasconst)
_LOAD, _STORE = dis.opmap["LOAD_CONST"], dis.opmap["STORE_NAME"]
_STORED = ("__doc__", "__firstlineno__", "__static_attributes__")
"""Names that bodies of modules and classes store for readers of the code."""


def _for_readers(code: CodeType) -> set[int]:
    """Return the places of constants that only readers need: docstrings, lines of classes.

    A function's docstring is a first constant that no instruction takes. Others are taken once, to be stored. Arguments
    above 255 are counted by their last byte: constants may then be kept, and none is left out that another instruction
    takes.
    """
    instructions = list(zip(code.co_code[::2], code.co_code[1::2], strict=True))
    taken = Counter(place for operation, place in instructions if operation in _TAKES_CONSTANT)
    found = {0} - taken.keys()
    names = {code.co_names.index(name) for name in _STORED if name in code.co_names}
    for (load, place), (store, name) in pairwise(instructions) if names else ():
        if load == _LOAD and store == _STORE and name in names and taken[place] == 1:
            found.add(place)
    return found


@cache
def sources_of(module: str) -> dict[str, str]:
    """Return a hash of the code of a module, and of each kernel module of the package that it imports, by name.

    A module without a source, as in frozen applications, has no hash: then only bytecode is compared.
    """
    found: dict[str, str] = {}
    left = [module]
    while left:
        name = left.pop()
        read = _read(name)
        if name not in found and read is not None and not name.startswith(CACHING):
            found[name] = read.hash
            left += [one for one in imports_of(name) if _belongs(one, module)]
    return found


def _belongs(imported: str, module: str) -> bool:
    roots = ROOTS if module.startswith("polars_tadoc.") else (*ROOTS, module.partition(".")[0])
    return any(imported == root or imported.startswith(f"{root}.") for root in roots)


class _Source(NamedTuple):
    text: str
    hash: str
    is_package: bool


_READS_SOURCES = re.compile(r"__doc__|\binspect\b|linecache|getsource|lineno")


@cache
def _read(name: str) -> _Source | None:
    """Return the source of a module, and a hash of its bytecode; read once, when its kernels are first decorated.

    The hash covers also the text of a module that may take values from docstrings or lines.
    """
    try:
        spec = importlib.util.find_spec(name)
        text, code = spec.loader.get_source(name), spec.loader.get_code(name)  # type: ignore[union-attr]
    except (ImportError, ValueError, AttributeError, OSError):  # no such module, made by hand, or run by `python -c`
        return None
    if spec is None or text is None or code is None:  # a frozen application
        return None
    try:
        key = _hash(_key_of_code(code), text if _READS_SOURCES.search(text) else "")
    except UnknownContentError:  # a tool changed the bytecode, as for fuzzing
        key = _hash(text)
    return _Source(text, key, spec.submodule_search_locations is not None)


@cache
def imports_of(name: str) -> frozenset[str]:
    """Return the names of modules that a module imports, anywhere in it."""
    source, found = _read(name), set()
    for match in _IMPORT.finditer(source.text if source else ""):
        if match["modules"]:
            found |= {one.split(" as ")[0].strip() for one in match["modules"].split(",")}
            continue
        module, names = match["module"], re.sub(r"#[^\n]*", "", match["names"].strip("()"))
        if module.startswith("."):
            within = name if source and source.is_package else name.rpartition(".")[0]
            module = importlib.util.resolve_name(module, within)
        parent = _read(module) if _belongs(module, name) else None
        listed = [one.split(" as ")[0].strip() for one in names.split(",") if one.strip()]
        if parent is None or not parent.is_package:
            found.add(module)
        else:  # a package's own names, or its modules
            found |= {f"{module}.{one}" if _read(f"{module}.{one}") else module for one in listed}
    return frozenset(found)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
