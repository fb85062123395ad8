"""Expands documents of a grammar to the events of their words."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cpu.jit import kernel
from polars_tadoc.kernels.rules import Rules
from polars_tadoc.kernels.twigs import WordEvents

UInt8 = npt.NDArray[np.uint8]
UInt32 = npt.NDArray[np.uint32]
Int64 = npt.NDArray[np.int64]

_MANY = np.int64(1 << 61)
_1 = np.uint64(1)


class XmlGrammar(NamedTuple):
    """Rules, the documents over them and what the words mean, in the types that kernels are compiled for."""

    terminals: int
    nesting: int
    """Bodies that may be open at once while a document is expanded."""
    rule_offsets: Any
    symbols: Any
    root_offsets: Any
    roots: Any
    words: WordEvents
    most_levels: int

    @classmethod
    def of(cls, rules: Rules, root_offsets: Int64, roots: UInt32, words: WordEvents, most_levels: int) -> XmlGrammar:
        """View the arrays."""
        views = map(_read_only, (rules.rule_offsets, rules.symbols, root_offsets, roots))
        rule_offsets, symbols, root_offsets, roots = views
        known = WordEvents(*(_read_only(array) for array in words))
        return cls(
            rules.terminals, len(rules.level_offsets), rule_offsets, symbols, root_offsets, roots, known, most_levels
        )


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def count_events(grammar: XmlGrammar, needed: UInt8, first: int, stop: int) -> Int64:
    """Count the events of documents; ``needed`` tells which symbols they reach."""
    terminals = grammar.terminals
    sizes = np.zeros(len(needed), np.int64)
    sizes[:terminals] = np.diff(grammar.words.offsets)
    _sum_sizes(grammar.rule_offsets, grammar.symbols, needed[terminals:], sizes, sizes[terminals:])
    documents = np.zeros(stop - first, np.int64)
    all_needed = np.ones(stop - first, np.uint8)
    _sum_sizes(grammar.root_offsets[first : stop + 1], grammar.roots, all_needed, sizes, documents)
    return documents


@kernel
def _sum_sizes(offsets: Any, symbols: Any, needed: Any, sizes: Any, sums: Any) -> None:
    for body in range(len(sums)):
        if needed[body]:
            total = np.int64(0)
            for i in range(np.uint64(offsets[body]), np.uint64(offsets[body + 1])):
                total = min(_MANY, total + sizes[symbols[i]])
            sums[body] = total


def expand_events(grammar: XmlGrammar, first: int, offsets: Int64, symbols: npt.NDArray[Any]) -> None:
    """Write the events of documents from ``first`` on to where they start; ones without room for any are left out."""
    open_bodies = np.empty((grammar.nesting, 2), np.int64)
    _expand(grammar, grammar.root_offsets[first:], offsets, open_bodies, symbols)


@kernel
def _expand(grammar: Any, root_offsets: Any, offsets: Any, open_bodies: Any, events: Any) -> None:
    """``open_bodies`` has the place of the next symbol and the end of each body that is open."""
    words, rules_from = grammar.words, np.uint64(grammar.terminals)
    for document in range(len(offsets) - 1):
        at = np.uint64(offsets[document])
        if offsets[document + 1] == offsets[document]:
            continue
        for i in range(np.uint64(root_offsets[document]), np.uint64(root_offsets[document + 1])):
            symbol = np.uint64(grammar.roots[i])
            level = 0
            while True:
                if symbol < rules_from:
                    for k in range(np.uint64(words.offsets[symbol]), np.uint64(words.offsets[symbol + _1])):
                        events[at] = words.symbols[k]
                        at += _1
                else:
                    rule = symbol - rules_from
                    open_bodies[level, 0], open_bodies[level, 1] = (
                        grammar.rule_offsets[rule],
                        grammar.rule_offsets[rule + _1],
                    )
                    level += 1
                while level > 0 and open_bodies[level - 1, 0] == open_bodies[level - 1, 1]:
                    level -= 1
                if level == 0:
                    break
                symbol = np.uint64(grammar.symbols[open_bodies[level - 1, 0]])
                open_bodies[level - 1, 0] += 1
