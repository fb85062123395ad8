"""Data-parallel kernels: plain-Python references, the CPU family (Numba) and the GPU family (CUDA through CuPy).

``engine.cpu`` and ``engine.cuda`` list the same functions over their own arrays (NumPy, CuPy);
an analytic is written once over that interface and never asks which family it got.
"""
