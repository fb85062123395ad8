"""Matches twigs against documents of a grammar on the device: writes the documents' events there, and matches them.

Rules are measured lowest first: number of events, and effect on the open elements, which tells which documents may be
well-formed. Then each event of these descends to its word independently, so that long and short documents are written
at the same speed. Matching of tags' names is checked on the events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from polars_tadoc.config import settings
from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan, expand
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.traverse.tables_cuda import device_levels
from polars_tadoc.kernels.twigs.arrays import Events, WordEvents
from polars_tadoc.runtime.array_types import Int64, array_dataclass
from polars_tadoc.runtime.device import device_errors, launch_each, launch_resident

MatchEvents = Callable[[Events], tuple[Any, Any]]

EXPANDED = 1 << 24
"""Events written at a time; a longer document is written whole."""

_THREADS = 256
_WARPS = _THREADS // 32
_MAX_EVENTS = (1 << 31) - 2  # cap in twig_rules.cu, minus one
_MAX_LEVELS = 1 << 28
_MAX_KEPT = 12 << 20
"""Maximum bytes of device memory cached with rules."""


def load_word_events(words: WordEvents) -> WordEvents:
    """Copy the events of words, NumPy arrays, to the device."""
    with device_errors(f"copying {words.nbytes:,} bytes"):
        import cupy

        return WordEvents(*(cupy.asarray(np.ascontiguousarray(array)) for array in words))


def match_rules(
    match: MatchEvents, wide: bool, rules: Rules, root_offsets: Any, roots: Any, words: WordEvents, most_levels: int
) -> tuple[Any, Any, Any]:
    """Return the twigs that match each document of a grammar.

    Parameters and result as for :func:`polars_tadoc.kernels.twigs.twig_rules_cpu.match_rules`, as cupy arrays.
    """
    documents = len(root_offsets) - 1
    with device_errors(f"reading {documents:,} documents of {rules.rule_count:,} rules"):
        import cupy

        grammar = _measured(rules, words)
        states, sizes = cupy.empty(documents, np.uint8), cupy.zeros(len(roots), np.uint32)
        highest = cupy.zeros(1, np.uint64)
        launch_each(
            *("twig_rules", "measure_documents", 32 * documents, root_offsets, documents, roots, grammar.runs),
            *(grammar.sizes, min(most_levels, _MAX_LEVELS), min(settings().expansion_limit, _MAX_EVENTS)),
            *(sizes, states, highest),
        )
        everything = _Documents(root_offsets, 0, roots, sizes, states, highest)
        starts, lists = [], []
        for part, layout in _parts(everything):
            offsets, twigs = match(_write(rules, grammar, part, layout, wide))
            starts.append(offsets)
            lists.append(twigs)
        if len(lists) == 1:
            return starts[0], lists[0], states
        lengths = cupy.concatenate([cupy.diff(offsets) for offsets in starts])
        return exclusive_scan(lengths), cupy.concatenate(lists), states


@array_dataclass
class _Grammar:
    """Measurements of rules and words."""

    words: WordEvents
    runs: Any
    """cupy uint32[terminals + rules, 4]: a symbol's effect on the open elements."""
    sizes: Any
    """cupy uint32[terminals + rules]: number of events."""
    before: Any
    """cupy uint32 by symbol of the bodies: number of events of the rule before it."""
    event_names: Any
    """cupy uint32 by event of the words: the name of a tag if it opens or closes its element, otherwise 0."""

    @property
    def nbytes(self) -> int:
        """Bytes of the measurements, and of the words."""
        made = (self.runs, self.sizes, self.before, self.event_names)
        return self.words.nbytes + sum(int(array.nbytes) for array in made)


_grammars: WeakKeyDictionary[Rules, _Grammar] = WeakKeyDictionary()
"""By rules: measurements with the word events matched last."""


def _measured(rules: Rules, words: WordEvents) -> _Grammar:
    kept = _grammars.get(rules)
    if kept is not None and kept.words.kinds is words.kinds and kept.words.symbols is words.symbols:
        return kept
    grammar = _measure(rules, words)
    if grammar.nbytes <= _MAX_KEPT:
        _grammars[rules] = grammar
    return grammar


def _measure(rules: Rules, words: WordEvents) -> _Grammar:
    import cupy

    terminals, count = rules.terminals, rules.rule_count
    runs, sizes = cupy.empty((terminals + count, 4), np.uint32), cupy.empty(terminals + count, np.uint32)
    before, names = cupy.empty(len(rules.symbols), np.uint32), cupy.empty(len(words.symbols), np.uint32)
    launch_each(
        "twig_rules", "measure_words", terminals, terminals, words.kinds, words.names, words.offsets, runs, sizes, names
    )
    if count:
        levels = rules.level_offsets
        widest = int(np.diff(levels).max(initial=1))
        launch_resident(
            *("twig_rules", "measure_rules", -(-widest // _WARPS), _THREADS, device_levels(rules), len(levels) - 1),
            *(rules.rule_offsets, rules.symbols, terminals, runs, sizes, before, cupy.zeros(1, np.uint32)),
            cooperative=True,
        )
    return _Grammar(words, runs, sizes, before, names)


@array_dataclass
class _Documents:
    """Consecutive documents."""

    root_offsets: Any
    """cupy int64, documents + 1."""
    first: int
    """Start of ``roots`` and ``sizes`` in the numbering of ``root_offsets``."""
    roots: Any
    sizes: Any
    """cupy uint32: number of events of each symbol, 0 in unsound documents."""
    states: Any
    highest: Any
    """cupy uint64[1]: the maximum of levels."""


@array_dataclass
class _Layout:
    """Positions of the documents' events."""

    starts: Any
    """cupy int64, symbols + 1: offsets of the events of each symbol."""
    offsets: Any
    """cupy int64, documents + 1."""
    events: int
    levels: int


def _lay_out(documents: _Documents) -> _Layout:
    import cupy

    count = len(documents.root_offsets) - 1
    starts, offsets = exclusive_scan(documents.sizes), cupy.empty(count + 2, np.int64)
    launch_each(
        *("twig_rules", "place_documents", count + 1, documents.root_offsets, count, documents.first, starts),
        *(documents.highest, offsets),
    )
    events, levels = offsets[-2:].get().tolist()  # synchronize!
    return _Layout(starts, offsets[:-1], events, levels)


def _parts(documents: _Documents) -> Iterator[tuple[_Documents, _Layout]]:
    """Split documents into parts whose events are written at a time."""
    whole = _lay_out(documents)
    if whole.events <= EXPANDED:
        yield documents, whole
        return
    offsets, roots = whole.offsets.get(), documents.root_offsets.get()  # synchronize!
    for first, stop in _stretches(offsets):
        symbols = slice(int(roots[first]), int(roots[stop]))
        part = _Documents(
            documents.root_offsets[first : stop + 1],
            symbols.start,
            documents.roots[symbols],
            documents.sizes[symbols],
            documents.states[first:stop],
            documents.highest,
        )
        yield part, _lay_out(part)


def _stretches(offsets: Int64) -> Iterator[tuple[int, int]]:
    first = 0
    while first < len(offsets) - 1:
        stop = max(first + 1, int(np.searchsorted(offsets, offsets[first] + EXPANDED, "right")) - 1)
        yield first, stop
        first = stop


def _write(rules: Rules, grammar: _Grammar, documents: _Documents, layout: _Layout, wide: bool) -> Events:
    """Write the events of documents; documents with mismatched tags are dropped."""
    import cupy

    count, symbol = len(documents.root_offsets) - 1, np.uint32 if wide else np.uint16
    defines = (f"-DSYMBOL=u{32 if wide else 16}",)
    while True:
        symbols, names = cupy.empty(layout.events, symbol), cupy.empty(layout.events, np.uint32)
        if not layout.events:
            break
        owners = expand(layout.starts, layout.events)
        launch_each(
            *("twig_rules", "write_events", layout.events, owners, layout.events, layout.starts, documents.roots),
            *(rules.terminals, rules.rule_offsets, rules.symbols, grammar.before, grammar.words.offsets),
            *(grammar.words.symbols, grammar.event_names, symbols, names),
            defines=defines,
        )
        opened, wrong = cupy.empty(layout.events // 2, np.uint32), cupy.zeros(1, np.uint32)
        checked = (symbols, names, layout.offsets, count, opened, documents.states, wrong)
        launch_each("twig_rules", "check_names", 32 * count, *checked, defines=defines)
        if not int(wrong[0]):  # synchronize!
            break
        given = (documents.root_offsets, count, documents.first, documents.states, documents.sizes)
        launch_each("twig_rules", "leave_out", 32 * count, *given)
        layout = _lay_out(documents)
    return Events(symbols, layout.offsets, layout.levels + 1)  # attributes and texts open a level
