"""Makes runs of any number of words keys of 64 bits."""

from __future__ import annotations

from polars_tadoc.kernels.keys.key_forms_cpu import Form, Ranks, Spread
from polars_tadoc.kernels.sequences.bodies_cpu import Bodies
from polars_tadoc.kernels.sequences.derived_rules_cpu import Derived
from polars_tadoc.kernels.sequences.expanded_documents_cpu import expand_documents
from polars_tadoc.kernels.sequences.owned_windows_cpu import Windows
from polars_tadoc.kernels.sequences.rule_ends_cpu import SIZE, rank_bits
from polars_tadoc.kernels.sequences.windows_cpu import FlatWindows, PackedWindows, SpreadWindows
from polars_tadoc.runtime.array_types import UInt32


def sequence_windows(bodies: Bodies, rank: UInt32 | None, n: int) -> tuple[Windows, Bodies]:
    """Make runs of n words keys of 64 bits (iterated pairing).

    Where the words' ranks do not fit, runs of fewer words become the terminals, and two or three of these, which may
    overlap, tell the words of a run.
    """
    bits = rank_bits(bodies.rules.terminals)
    if n > 1 and n * bits <= 64 and (n - 1) * bits <= SIZE:
        return PackedWindows.of(bodies.rules, rank, n), bodies
    expanded = expand_documents(bodies, rank, n) if n > 1 else None
    if expanded is not None:
        bodies, rank = expanded, None
    terminal: Form = Ranks(1, bits)
    parts = 3
    while Spread.of(terminal, n).width > 64:
        words = max(min(-(-n // parts), 64 // terminal.width * terminal.words), terminal.words + 1)
        if terminal.words == 1 and expanded is None:
            derived = Derived.by(*sequence_windows(bodies, rank, words))
        else:
            derived = Derived.by(_windows(bodies, None, words, terminal), bodies)
        bodies, terminal, parts = derived.bodies, derived.form, 2
    return _windows(bodies, rank if terminal.words == 1 else None, n, terminal), bodies


def _windows(bodies: Bodies, rank: UInt32 | None, n: int, terminal: Form) -> Windows:
    if bodies.rules.rule_count == 0 and rank is None:
        return FlatWindows.of(n, terminal)
    return SpreadWindows.of(bodies.rules, rank, n, terminal)
