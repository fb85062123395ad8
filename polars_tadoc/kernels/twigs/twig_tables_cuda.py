"""Layout of twigs in the node sets of the device, and the tables of its kernels; computed on the host.

A node has the bit at which it is found. The bits of a node's children are adjacent, below the bit of their parent, so
that one
addition tells for all nodes whether all their children are found: it carries through where every bit is set (see
``close``
in ``twigs.cuh``). The lowest child may have children itself; another child with children, a *side*, has its bit before
these, and is copied next to its siblings when they are tested. Such a chain of nodes and their children is a *run*::

    a[b][c[d][e]][f[g]]     first run: a | b f c | d e;  second run: f | g     bits, from the highest down

Twigs that do not fit in a word have words of their own, in preorder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.twigs.arrays import NO_ENTRY, NO_NODE, OTHER, Twigs
from polars_tadoc.runtime.array_types import Bools, Int64, UInt64

WORD = 64


class Children(NamedTuple):
    """Parent-child relations in twigs that fit in a word."""

    nodes: Int64
    parents: Int64
    ranks: Int64
    """Rank of each among its parent's children."""


@dataclass(frozen=True)
class Nodes:
    """The nodes of twigs, by number; nodes of removed twigs are left out."""

    symbols: Int64
    """Symbol of a node's test, or ``OTHER``; 0 for unused nodes."""
    used: Int64
    """Ascending."""
    leaves: Bools
    descendants: Bools
    siblings: Int64
    twigs: Int64
    """By used node: number of its twig."""
    roots: Int64
    """By twig."""
    sizes: Int64
    """Nodes, by twig."""


class Layout(NamedTuple):
    """Bits of the nodes."""

    found: Int64
    """By node: its bit."""
    places: Int64
    """By node: the bit next to its siblings'; differs from its own for sides only."""
    words: int
    """Words of twigs that fit in a word."""
    large: Int64
    """First word of each larger twig, and the word after its last one; shape (twigs, 2)."""
    all_words: int
    fitting: Bools
    """By used node: whether its twig fits in a word."""
    children: Children


def list_nodes(twigs: Twigs) -> Nodes:
    """List the nodes of twigs."""
    size = WORD * twigs.words
    symbols = np.zeros(size, np.int64)
    owners = _name_entries(twigs)
    entries = np.flatnonzero(owners)
    bits = np.unpackbits(twigs.entry_bits[entries].view(np.uint8), bitorder="little").reshape(-1, WORD)
    entry, bit = np.nonzero(bits)
    symbols[WORD * twigs.entry_words[entries[entry]].astype(np.int64) + bit] = owners[entries[entry]]
    used = np.flatnonzero(symbols)
    leaves, descendants = _flags(twigs.leaves[: twigs.words]), _flags(twigs.descendants[: twigs.words])
    siblings = twigs.siblings[:size].astype(np.int64)
    below = np.zeros(size + 1, bool)
    below[used[~leaves[used]] + 1] = True
    below[siblings[used]] = True  # node 0, meaning no sibling, is a root
    below[0] = False
    roots = used[~below[used]]
    owner = np.searchsorted(roots, used, side="right") - 1
    return Nodes(symbols, used, leaves, descendants, siblings, owner, roots, np.bincount(owner, minlength=len(roots)))


def lay_out(nodes: Nodes) -> Layout:
    """Lay twigs out in runs, in words of 64 bits."""
    children = _children(nodes, WORD)
    size = len(nodes.symbols)
    counts = np.bincount(children.parents, minlength=size)
    lowest = np.full(size, -1)  # the child with which a run continues
    inner = ~nodes.leaves[children.nodes]
    # the last assignment wins: ranks descend
    lowest[children.parents[inner][::-1]] = children.nodes[inner][::-1]
    is_lowest = lowest[children.parents] == children.nodes
    lowest_rank = np.full(size, size)
    lowest_rank[children.parents[is_lowest]] = children.ranks[is_lowest]
    places = children.ranks - (children.ranks > lowest_rank[children.parents])
    places = np.where(is_lowest, counts[children.parents] - 1, places)

    sides = children.nodes[inner & ~is_lowest]
    twig_of = np.full(size, -1)
    twig_of[nodes.used] = nodes.twigs
    sizes = nodes.sizes + np.bincount(twig_of[sides], minlength=len(nodes.roots))
    heads = np.sort(np.concatenate([nodes.roots, sides]))
    # of a node with children: its run, and the start of its children there
    run_of, start = np.full(size, -1), np.zeros(size, np.int64)
    run_of[heads], start[heads] = heads, 1
    index = np.zeros(size, np.int64)  # position in the run of its parent
    parents = nodes.roots
    order = np.argsort(children.parents, kind="stable")
    firsts = np.searchsorted(children.parents[order], np.arange(size + 1))
    while len(parents):  # level by level
        level = order[_ranges(firsts[parents], firsts[parents + 1])]
        node, parent = children.nodes[level], children.parents[level]
        index[node] = start[parent] + places[level]
        on = is_lowest[level]
        run_of[node[on]], start[node[on]] = run_of[parent[on]], start[parent[on]] + counts[parent[on]]
        parents = node[~nodes.leaves[node]]

    lengths = np.zeros(size, np.int64)
    lengths[heads] = 1
    np.add.at(lengths, run_of[children.parents], 1)
    before = np.cumsum(lengths[heads]) - lengths[heads]
    offset = np.zeros(size, np.int64)  # of each run in its twig; the root's is the first
    first_runs = np.searchsorted(heads, nodes.roots)
    offset[heads] = before - before[first_runs[twig_of[heads]]]

    fits = sizes <= WORD
    bases, words = _pack(np.where(fits, sizes, 0), WORD)
    large, all_words = _large(nodes.sizes, fits, words)
    tops = bases + sizes - 1
    among = np.zeros(size, np.int64)
    small = children.nodes
    among[small] = tops[twig_of[small]] - offset[run_of[children.parents]] - index[small]
    among[nodes.roots] = tops
    found = among.copy()
    found[sides] = tops[twig_of[sides]] - offset[sides]
    _place_large(nodes, fits, large, found, among)
    return Layout(found, among, words, large, all_words, fits[nodes.twigs], _of(children, fits, twig_of))


def lay_out_in_preorder(nodes: Nodes, width: int) -> Layout:
    """Lay twigs out in preorder, in parts of ``width`` bits, a divisor of 64."""
    fits = nodes.sizes <= width
    bases, parts = _pack(np.where(fits, nodes.sizes, 0), width)
    words = -(-parts * width // WORD)
    large, all_words = _large(nodes.sizes, fits, words)
    found = np.zeros(len(nodes.symbols), np.int64)
    found[nodes.used] = nodes.used - nodes.roots[nodes.twigs] + bases[nodes.twigs]
    twig_of = np.full(len(nodes.symbols), -1)
    twig_of[nodes.used] = nodes.twigs
    places = found.copy()
    _place_large(nodes, fits, large, found, places)
    children = _of(_children(nodes, width), fits, twig_of)
    return Layout(found, places, words, large, all_words, fits[nodes.twigs], children)


def make_tables(twigs: Twigs, nodes: Nodes, layout: Layout, column: int) -> dict[str, npt.NDArray[Any]]:
    """Make the arrays of Twigs in ``twigs.cuh`` for columns of ``column`` words; larger twigs follow the others."""
    columns = -(-layout.all_words // column)
    used, found, among = nodes.used, layout.found, layout.places
    leaf, bits = nodes.leaves[used], found[used]
    words = bits // WORD
    keys = nodes.symbols[used] * columns + words // column
    row_keys = np.unique(np.concatenate([OTHER * columns + np.arange(columns), keys]))
    row_columns = row_keys % columns
    rows = np.zeros((len(row_keys) + 1, 2, column), np.uint64)
    np.bitwise_or.at(rows, (np.searchsorted(row_keys, keys), 1 - leaf, words % column), _bit(bits))
    own = np.flatnonzero(twigs.elements[row_keys // columns])
    own = own[own >= columns]  # the first rows apply to any element
    rows[own] |= rows[row_columns[own]]

    def mask(bits: Int64) -> UInt64:
        words = np.zeros(columns * column, np.uint64)
        np.bitwise_or.at(words, bits // WORD, _bit(bits))
        return words

    children = layout.children
    ends = np.full((2, len(nodes.symbols)), -1)  # by parent: lowest and highest bit of its children
    ends[0, children.parents] = layout.all_words * WORD
    np.minimum.at(ends[0], children.parents, among[children.nodes])
    np.maximum.at(ends[1], children.parents, among[children.nodes])
    parents = np.unique(children.parents)
    aside = found[children.nodes] != among[children.nodes]
    sides, places = children.nodes[aside], np.zeros((columns, WORD, column), np.uint8)
    words, bits = found[sides] // WORD, found[sides] % WORD
    places[words // column, bits, words % column] = among[sides] % WORD
    siblings = np.zeros(WORD * layout.all_words, np.uint32)
    others = used[~layout.fitting]
    others = others[nodes.siblings[others] != NO_NODE]
    siblings[found[others]] = found[nodes.siblings[others]]
    return {
        "rows": rows,
        "row_starts": np.searchsorted(row_keys, np.arange(len(twigs.heads) + 1) * columns).astype(np.uint32),
        "row_columns": row_columns.astype(np.uint32),
        "elements": np.ascontiguousarray(twigs.elements, np.uint8),
        "descendants": mask(found[used[nodes.descendants[used]]]),
        "highest": mask(ends[1, parents]),
        "lowest": mask(ends[0, parents]),
        "sides": mask(found[sides]),
        "owners": mask(found[children.parents[aside]]),
        "places": places,
        "siblings": siblings,
    }


def _name_entries(twigs: Twigs) -> Int64:
    """Return the symbol of each entry, 0 for unused entries."""
    symbols = np.zeros(len(twigs.entry_next), np.int64)
    entries, owners = twigs.heads, np.arange(len(twigs.heads))
    while len(entries):
        more = entries != NO_ENTRY
        entries, owners = entries[more], owners[more]
        symbols[entries] = owners
        entries = twigs.entry_next[entries]
    return symbols


def _flags(words: UInt64) -> Bools:
    return np.unpackbits(words.view(np.uint8), bitorder="little").view(bool)


def _bit(bits: Int64) -> UInt64:
    return np.uint64(1) << (bits % WORD).astype(np.uint64)


def _children(nodes: Nodes, most: int) -> Children:
    """List the children in twigs of at most ``most`` nodes, by rank."""
    parents = nodes.used[(nodes.sizes <= most)[nodes.twigs]]
    parents = parents[~nodes.leaves[parents]]
    children, found, rank = parents + 1, [], 0
    while len(parents):
        found.append((children, parents, np.full(len(parents), rank)))
        children, rank = nodes.siblings[children], rank + 1
        more = children != NO_NODE
        children, parents = children[more], parents[more]
    if not found:
        return Children(*(np.zeros(0, np.int64) for _ in range(3)))
    return Children(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _of(children: Children, fits: Bools, twig_of: Int64) -> Children:
    chosen = fits[twig_of[children.nodes]]
    return Children(*(array[chosen] for array in children))


def _ranges(starts: Int64, stops: Int64) -> Int64:
    """Concatenate ranges."""
    lengths = stops - starts
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(stops - ends, lengths)


def _pack(sizes: Int64, width: int) -> tuple[Int64, int]:
    """Return each twig's first bit, in order, with none across a multiple of the width; and the number of parts."""
    bases, at = [], 0
    for size in sizes.tolist():
        if at % width + size > width:
            at += width - at % width
        bases.append(at)
        at += size
    return np.array(bases, np.int64), -(-at // width)


def _large(sizes: Int64, fits: Bools, words: int) -> tuple[Int64, int]:
    """Give the larger twigs words of their own."""
    ends = words + np.cumsum(-(-sizes[~fits] // WORD))
    return np.stack([ends + sizes[~fits] // -WORD, ends], axis=1), int(ends[-1]) if len(ends) else words


def _place_large(nodes: Nodes, fits: Bools, large: Int64, found: Int64, places: Int64) -> None:
    bases = np.zeros(len(fits), np.int64)
    bases[~fits] = WORD * large[:, 0]
    others = ~fits[nodes.twigs]
    node, twig = nodes.used[others], nodes.twigs[others]
    found[node] = places[node] = bases[twig] + node - nodes.roots[twig]
