"""Copies a grammar's rules to the device."""

from __future__ import annotations

from polars_tadoc.kernels.primitives.load_cuda import load_array
from polars_tadoc.kernels.traverse.rules import GrammarArrays, Rules
from polars_tadoc.runtime.device import device_errors


def load_rules(grammar: GrammarArrays) -> Rules:
    """Copy a checked grammar's rules to the device for traversals; levels are not fused."""
    with device_errors(f"loading {grammar.rule_count:,} rules"):
        return Rules.of(grammar).loaded(load_array)
