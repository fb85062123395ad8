"""Positions of one bits, by LLVM's compression of lanes and one by one, as for the LLVM of Numba 0.61."""

from __future__ import annotations

import numpy as np
import pytest

from polars_tadoc.kernels.postings import unary_cpu
from polars_tadoc.runtime.compiled import njit

WORDS = [0, 1, 1 << 63, (1 << 64) - 1, 0x8000_0001_0010_0002, 0xAAAA_AAAA_AAAA_AAAA]


@pytest.mark.parametrize("compresses", [unary_cpu._COMPRESSES, False])
@pytest.mark.parametrize("before", [0, 7, 2**32 - 1])
def test_positions_of_one_bits(compresses: bool, before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unary_cpu, "_COMPRESSES", compresses)
    store_ones = unary_cpu.store_ones

    @njit
    def stored(word: int, before: int, target: int) -> None:
        store_ones(np.uint64(word), np.uint32(before), np.uint64(target))

    for word in WORDS:
        found = np.full(64, 99, np.uint32)
        stored(np.uint64(word), np.uint32(before), np.uint64(found.ctypes.data))
        ones = [k for k in range(64) if word >> k & 1]
        expected = [(before + k) % 2**32 for k in ones] + [before] * (64 - len(ones))
        assert found.tolist() == expected
