"""Derived rules: their terminals are ids of windows, their bodies consist of own windows and children.

Indices are unsigned in kernels: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numba as nb
import numpy as np

from polars_tadoc.errors import LimitExceededError
from polars_tadoc.kernels.keys.key_forms_cpu import Numbered, words_of
from polars_tadoc.kernels.keys.key_numbers_cpu import dense_ids
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.sequences.bodies_cpu import Bodies, require_room
from polars_tadoc.kernels.sequences.owned_windows_cpu import OwnedWindows, Pieces, Windows
from polars_tadoc.kernels.sequences.windows_cpu import FlatWindows
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32
from polars_tadoc.runtime.jit import kernel
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks
from polars_tadoc.runtime.scratch import scratch

_1 = np.uint64(1)


@kernel
def _write_derived(
    terminals: int,
    symbols: UInt32,
    long: Bools,
    spans: UInt32,
    reach: int,
    ids: UInt32,
    derived_terminals: int,
    starts: Int64,
    firsts: Int64,
    stops: Int64,
    places: Int64,
    derived_offsets: Int64,
    first: int,
    stop: int,
    derived: UInt32,
) -> None:
    """Write bodies of own ids and of children that contain ids themselves, in the order in which windows start."""
    rules_from, rules_to = nb.uint64(terminals), nb.uint64(derived_terminals)
    for piece in range(nb.uint64(first), nb.uint64(stop)):
        out = nb.uint64(derived_offsets[piece])
        if out == nb.uint64(derived_offsets[piece + _1]):
            continue
        at = nb.uint64(places[piece])
        missing = nb.uint64(reach)
        for i in range(nb.uint64(starts[piece]), nb.uint64(firsts[piece])):
            missing -= min(missing, nb.uint64(spans[max(nb.uint64(symbols[i]) + _1, rules_from) - rules_from]))
        for i in range(nb.uint64(firsts[piece]), nb.uint64(stops[piece])):
            symbol = nb.uint64(symbols[i])
            span = nb.uint64(spans[max(symbol + _1, rules_from) - rules_from])
            own = span - min(missing, span)
            for k in range(own):
                derived[out + k] = ids[at + k]
            out += own
            at += own
            missing -= span - own
            if symbol >= rules_from and long[symbol - rules_from]:
                derived[out] = rules_to + (symbol - rules_from)
                out += _1
        for i in range(at, nb.uint64(places[piece + _1])):
            derived[out] = ids[i]
            out += _1


@kernel
def _count_children(
    symbols: UInt32, terminals: int, long: Bools, firsts: Int64, stops: Int64, first: int, stop: int, sizes: Int64
) -> None:
    """Add the children that contain ids themselves to the sizes of derived bodies."""
    rules_from = nb.uint64(terminals)
    for piece in range(nb.uint64(first), nb.uint64(stop)):
        for i in range(nb.uint64(firsts[piece]), nb.uint64(stops[piece])):
            symbol = nb.uint64(symbols[i])
            sizes[piece] += symbol >= rules_from and long[symbol - rules_from]


@dataclass(frozen=True)
class Derived:
    """Rules and documents over window ids, which are in the order of windows, and the words of each id."""

    bodies: Bodies
    form: Numbered

    @classmethod
    def by(cls, windows: Windows, bodies: Bodies) -> Derived:
        """Give each distinct window an id, and replace words by own windows."""
        owned, rules = OwnedWindows.by(windows, bodies), bodies.rules
        require_room(owned.total, "the sequences or pairs that span symbols")
        ids, distinct = dense_ids(owned.keys())
        if isinstance(windows, FlatWindows):
            counts, places = owned.documents.counts, owned.documents.owners
            plain = replace(rules, terminals=len(distinct))
            flat = Bodies(plain, running_sum(counts)[places], ids, bodies.weights)
            return cls(flat, Numbered(distinct, windows.form))
        lengths = windows.lengths(rules.lengths)
        lengths[bodies.weights == 0] = 0
        if len(distinct) + rules.rule_count >= 1 << 32:
            raise LimitExceededError("more distinct sequences and rules than 32-bit symbols can number")
        derive = _Derivation(rules.terminals, windows, lengths > 0, len(distinct))
        rule_bodies = derive(owned.rules, ids[: owned.of_rules], ~derive.long)
        derived = Rules(len(distinct), *rule_bodies, rules.level_offsets, lengths)
        documents = derive(owned.documents, ids[owned.of_rules :])
        return cls(Bodies(derived, *documents, bodies.weights), Numbered(distinct, windows.form))

    def parts(self, rank: UInt32 | None) -> tuple[Rules, Int64, UInt32, UInt32]:
        """Return the rules, the documents' offsets and symbols, and the words by id."""
        bodies = self.bodies
        return bodies.rules, bodies.root_offsets, bodies.roots, words_of(self.form.distinct, self.form.form, rank)


@dataclass(frozen=True)
class _Derivation:
    """Writes derived bodies."""

    terminals: int
    windows: Windows
    long: Bools
    distinct: int

    def __call__(self, pieces: Pieces, ids: UInt32, unused: Bools | None = None) -> tuple[Int64, UInt32]:
        """Return offsets and symbols; bodies of ``unused`` owners are empty."""
        _, firsts, stops = pieces.bounds
        sizes = pieces.counts.copy()
        map_parallel(
            lambda chunk: _count_children(pieces.symbols, self.terminals, self.long, firsts, stops, *chunk, sizes),
            weighted_chunks(running_sum(stops - firsts)),
        )
        if unused is not None:
            sizes[np.repeat(unused, np.diff(pieces.owners))] = 0
        offsets = running_sum(sizes)
        derived = scratch(offsets[-1], np.uint32)
        spans, reach = self.windows.spans, self.windows.reach
        read = (self.terminals, pieces.symbols, self.long, spans, reach, ids, self.distinct, *pieces.bounds)
        places = running_sum(pieces.counts)
        map_parallel(lambda chunk: _write_derived(*read, places, offsets, *chunk, derived), weighted_chunks(offsets))
        return offsets[pieces.owners], derived
