"""Machine code of kernels, kept between processes by what the kernels are made of and shipped with wheels.

:mod:`content` gives a kernel's key, :mod:`targets` the processors that code runs on, :mod:`folders` the folders that
hold it, :mod:`entries` the format of its files, and :mod:`cache` joins them for Numba.
"""
