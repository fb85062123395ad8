"""How kernels that allocate nothing are compiled."""

from __future__ import annotations

import numba as nb

kernel = nb.njit(nogil=True, cache=True, _nrt=False)
"""Compiles a function that allocates nothing: it takes arrays without counting references, a third of the time."""

inner = nb.njit(nogil=True, cache=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""The same for functions that only kernels call: they compile sooner."""
