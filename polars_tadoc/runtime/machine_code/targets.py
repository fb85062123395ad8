"""The processors that machine code runs on: this very one, or all from a level upwards."""

from __future__ import annotations

import hashlib
import sys
from typing import Any

import llvmlite.binding as llvm
import numba as nb
import numpy as np
from numba import config

_V2 = frozenset(["cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"])
_V3 = _V2 | frozenset(["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"])
_V4 = _V3 | frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])
LEVELS = {"x86-64-v4": _V4, "x86-64-v3": _V3, "x86-64-v2": _V2}
"""Levels of the x86-64 psABI, highest first, with LLVM's names of their features."""
ARM = "aarch64"
"""The only level of ARM processors: the features of all 64-bit ones."""

_OPTIONS = ("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT", "EXTEND_VARIABLE_LIFETIMES")
"""Numba's settings that change the machine code."""


def environment_of(level: str) -> dict[str, str]:
    """Return environment variables with which a new process compiles for a level."""
    processor, features = ("generic", "+neon") if level == ARM else (level, "+64bit")
    return {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": features, "NUMBA_DISABLE_INTEL_SVML": "1"}


def targets_of(described: tuple[str, str, str]) -> tuple[str, list[str]]:
    """Return the name of this process's target, and of the levels that run here, best first.

    Takes Numba's own description: triple, processor, features.
    """
    triple, processor, features = described
    is_arm = triple.startswith(("aarch64", "arm64"))
    for level in (ARM,) if is_arm else LEVELS:
        own = environment_of(level)
        if (processor, features) == (own["NUMBA_CPU_NAME"], own["NUMBA_CPU_FEATURES"]):
            return level, [level]
    uses_svml = getattr(config, "USING_SVML", False)
    exact = hashlib.sha256(repr((triple, processor, features, uses_svml)).encode()).hexdigest()[:12]
    has = {feature[1:] for feature in features.split(",") if feature.startswith("+")}
    if is_arm:  # emulators and some containers hide what the processor has: all of 64 bits on Linux and macOS have NEON
        return f"{processor}-{exact}", [] if "-neon" in features.split(",") else [ARM]
    return f"{processor}-{exact}", [level for level, needs in LEVELS.items() if needs <= has]


def compile_for_arm() -> None:
    """Compile for ARM processors in this process, which may be unable to run the code."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.get_process_triple = lambda: "aarch64-unknown-linux-gnu"


def compiler() -> str:
    """Describe the compiler, without the processor; Numba's patch releases change neither files nor calls."""
    options = {name: str(getattr(config, name, None)) for name in _OPTIONS}
    versions = [".".join(version.split(".")[:2]) for version in (nb.__version__, _llvmlite())]
    python = (sys.implementation.name, *sys.version_info[:2], getattr(sys, "abiflags", ""))
    machine = llvm.get_process_triple().partition("-")[0]
    return repr((versions, python, np.__version__.split(".")[0], sys.platform, machine, options))


def _llvmlite() -> str:
    import llvmlite

    version: Any = llvmlite.__version__
    return str(version)
