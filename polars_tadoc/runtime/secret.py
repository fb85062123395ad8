"""Random numbers of this process, for kernels: no text can be made whose words collide in their hash tables.

Places in hash tables may depend on them; results, files and everything else that others see must not.
"""

from __future__ import annotations

import secrets
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_NUMBERS = 2
_drawn = np.array([secrets.randbits(64) | 1 for _ in range(_NUMBERS)], np.uint64)

llvm.add_symbol("tadoc_secrets", _drawn.ctypes.data)  # compiled code finds it by name, also code from the cache


def _loads(number: int) -> Any:
    def load(typing_context: Any) -> Any:
        """Return an odd number of 64 bits."""

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            module, name, i32 = builder.module, "tadoc_secrets", ir.IntType(32)
            if name not in module.globals:
                ir.GlobalVariable(module, ir.ArrayType(ir.IntType(64), _NUMBERS), name).global_constant = True
            return builder.load(builder.gep(module.globals[name], [i32(0), i32(number)], inbounds=True))

        return types.uint64(), generate

    return intrinsic(load)


first_secret, second_secret = (_loads(number) for number in range(_NUMBERS))
