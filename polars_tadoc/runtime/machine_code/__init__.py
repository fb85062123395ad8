"""Machine code of kernels, cached between processes by the kernels' content, and shipped with wheels.

:mod:`content` computes a kernel's key, :mod:`targets` names processors, :mod:`folders` finds the cache folders,
:mod:`entries` defines the format of their files, and :mod:`cache` connects them to Numba.
"""
