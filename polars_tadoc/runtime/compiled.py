"""Compiles kernels: all kernels pass through here to Numba, so that all machine code is cached in the same way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numba as nb
from numba import types
from numba.core.ccallback import CFunc
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import OmittedArg
from numba.core.registry import CPUDispatcher

from polars_tadoc.runtime.machine_code.cache import KernelCache
from polars_tadoc.runtime.process.threads import undivided

_inserting = threading.Lock()


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """Numba's dispatcher, with one machine code for readonly and writable arrays, whose layouts in memory are equal.

    Most inputs are Arrow's memory, which is readonly, but some are computed. Numba looks up the machine code of the
    types of arguments in C, and calls :meth:`_compile_for_args` for new ones; only then readonly arrays cost something.
    Tests check that no kernel writes to a readonly array (``tests/written_parameters.py``).
    """

    def _compile_for_args(self, *args: Any, **named: Any) -> Any:
        given = tuple(
            types.Omitted(one.value) if isinstance(one, OmittedArg) else self.typeof_pyval(one) for one in args
        )
        form = tuple(map(compiled_for, given))
        if form == given:
            return super()._compile_for_args(*args, **named)
        self._compilation_chain_init_hook()
        entry_point = self.compile(form)
        with _inserting:  # if two threads enter one form, Numba takes its entries for ambiguous, and finds neither
            forms = self.__dict__.setdefault("_readonly_forms", set())  # unreferenced types lose their codes
            if given not in forms:
                self._insert([one._code for one in given], entry_point)
                forms.add(given)
        return entry_point

    def compile(self, sig: Any) -> Any:
        """Compile for types of arguments, or load the machine code.

        An interrupt between two steps of LLVM's Python binding leaves a module that is freed twice: the next kernel, or
        the interpreter's end, crashes.
        """
        return _undivided(partial(super().compile, sig))

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the type of a call in a kernel; constants share one compiled form: LLVM inlines small callees."""
        named = {name: compiled_for(one) for name, one in kws.items()}
        return super().get_call_template([*map(compiled_for, args)], named)


def compiled_for(kind: Any) -> Any:
    """Return the type that machine code is compiled for: writable arrays, no constants."""
    if isinstance(kind, types.BaseTuple):
        return types.BaseTuple.from_types([compiled_for(one) for one in kind], getattr(kind, "instance_class", None))
    return kind.copy(readonly=False) if isinstance(kind, types.Array) and not kind.mutable else types.unliteral(kind)


def njit(function: Any = None, **options: Any) -> Any:
    """Compile a function on its first call, like ``numba.njit(nogil=True)``, and cache its machine code."""
    if function is None:
        return partial(njit, **options)
    dispatcher: Any = nb.njit(**{"nogil": True, **options})(function)
    dispatcher.__class__ = Kernel
    dispatcher._cache = KernelCache(function)
    return dispatcher


def callback(signature: Any, function: Callable[..., None]) -> Any:
    """Compile a function for a signature, like ``numba.cfunc``, and cache its machine code."""
    made: Any = CFunc(function, (signature.args, signature.return_type), locals={}, options={})
    made._cache = KernelCache(function, is_callback=True)  # type: ignore[arg-type]
    _undivided(made.compile)
    return made


def _undivided(function: Callable[[], Any]) -> Any:
    """Run a function that an interrupt must not divide, unless this thread is compiling already."""
    return function() if global_compiler_lock.is_locked() else undivided(function)
