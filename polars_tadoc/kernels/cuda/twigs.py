"""Matching twigs against events on the device.

``bits`` (``twigs.cu``) keeps 64 query nodes in a word, one or two words in a lane, and reads elements in the order of
their end tags; ``nodes`` (``twig_nodes.cu``) is the paper's: one query node in a thread, which reads every event.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cuda.device import device_attribute, device_errors, get_kernel
from polars_tadoc.kernels.cuda.primitives import exclusive_scan
from polars_tadoc.kernels.cuda.twig_rules import match_rules
from polars_tadoc.kernels.cuda.upload import upload_rows
from polars_tadoc.kernels.rules import Rules
from polars_tadoc.kernels.twigs import NO_ENTRY, NO_NODE, OTHER, Events, Twigs, WordEvents

TWIG_KERNELS = ("bits", "nodes")
"""The first is the default."""

_THREADS = 128  # of twigs.cu
_WARPS = _THREADS // 32
_NODE_WARPS, _CHUNK = 8, 1024  # of twig_nodes.cu
_MOST_SYMBOLS = 1 << 24  # of twig_nodes.cu
_DESCENDANT, _ROOT, _ANY = 1 << 29, 1 << 30, 1 << 31  # of twig_nodes.cu
_PARENT_BIT = 24

_WIDE = 128
"""Words from which a lane takes two."""
_LEVELS = 16
"""Sets that a warp's stack holds in shared memory, at most."""
_NODE_LEVELS = 64
"""Bytes that a thread's stack holds in shared memory, at most."""
_MOST_SPILLED = 1 << 28
"""Bytes of the deeper levels of all that run at the same time; fewer run where levels are many."""
_UPLOADED = 1 << 20
"""Bytes from which several threads copy events."""

_ARRAYS = ("rows", "row_starts", "row_columns", "elements", "descendants", "branches", "needs", "siblings")
_STRUCT = np.dtype([(field, np.uint64) for field in (*_ARRAYS, "columns", "row_count")])  # Twigs of twigs.cuh


class Elements(NamedTuple):
    """Documents as elements in the order of their end tags (see ``twig_elements.cu``)."""

    elements: Any
    """cupy uint32; each document's begin at half of where its events begin."""
    counts: Any
    """cupy uint32 by document."""
    levels: int
    """Node sets that wait on a stack at most."""


def load_events(events: Events) -> Events:
    """Copy events to the device.

    Parameters
    ----------
    events
        NumPy arrays.

    Returns
    -------
    Events
        cupy arrays.

    Raises
    ------
    EngineUnavailableError
        The device is out of memory or failed.

    """
    symbols = np.ascontiguousarray(events.symbols)
    with device_errors(f"copying {len(symbols):,} events"):
        import cupy

        if symbols.nbytes < _UPLOADED:
            copied = cupy.asarray(symbols)
        else:
            address = np.array([symbols.ctypes.data], np.uint64)
            copied = upload_rows(address, np.array([0, symbols.nbytes], np.int64))
            copied = copied[: symbols.nbytes].view(symbols.dtype)
        return Events(copied, cupy.asarray(events.offsets), events.depth)


class TwigMatcher:
    """Twigs made ready for matching on the device; calls may come from several threads at once.

    Parameters
    ----------
    twigs
        NumPy arrays.
    kernel
        One of :data:`TWIG_KERNELS`.

    Raises
    ------
    EngineUnavailableError
        The device is out of memory or failed.
    ValueError
        There is no such kernel, or it cannot take so many symbols.

    """

    def __init__(self, twigs: Twigs, kernel: str = TWIG_KERNELS[0]) -> None:
        if kernel not in TWIG_KERNELS:
            raise ValueError(f"kernel={kernel!r}: use {' or '.join(map(repr, TWIG_KERNELS))}")
        if kernel == "nodes" and len(twigs.heads) > _MOST_SYMBOLS:
            raise ValueError(f"kernel='nodes' takes at most {_MOST_SYMBOLS:,} symbols; use kernel='bits'")
        self._by_nodes = kernel == "nodes"
        self._words_of_lane = 2 if twigs.words >= _WIDE and not self._by_nodes else 1
        with device_errors(f"loading {len(twigs.roots):,} twigs"):
            import cupy

            named = _name_entries(twigs)
            used = _used(twigs, named)
            groups = _groups(twigs, used, 32 if self._by_nodes else 64)
            arrays = _tables(twigs, named, used, 32 * self._words_of_lane)
            self._columns = len(arrays["descendants"]) // (32 * self._words_of_lane)
            self._words = len(arrays["descendants"])
            self._arrays = {name: cupy.asarray(array) for name, array in arrays.items()}
            numbers = (self._columns, len(arrays["row_columns"]))
            self._struct = np.array((*(self._arrays[name].data.ptr for name in _ARRAYS), *numbers), _STRUCT)
            self._roots = cupy.asarray(np.ascontiguousarray(twigs.roots, np.uint32))
            self._widest = int(np.diff(groups, axis=1).max(initial=0))
            self._groups = cupy.asarray(groups.astype(np.uint32))
            if self._by_nodes:
                self._personalities, self._children = map(cupy.asarray, _personalities(twigs, named, used, self._words))

    def match(self, events: Events) -> tuple[Any, Any]:
        """Find the twigs that match each document.

        Parameters
        ----------
        events
            From :func:`load_events`.

        Returns
        -------
        (cupy int64[documents + 1], cupy uint32)
            Where each document's begin, and the twigs, ascending.

        Raises
        ------
        EngineUnavailableError
            The device is out of memory or failed.

        """
        documents, twigs = len(events.offsets) - 1, len(self._roots)
        with device_errors(f"matching {twigs:,} twigs against {documents:,} documents"):
            import cupy

            if not documents or not twigs:
                return cupy.zeros(documents + 1, np.int64), cupy.empty(0, np.uint32)
            found = cupy.empty(documents * self._words, np.uint64)
            if self._by_nodes:
                self._match_nodes(events, found)
            if not self._by_nodes or len(self._groups):
                elements = order_elements(events)
                if not self._by_nodes:
                    self._match_words(events, elements, found)
                if len(self._groups):
                    self._match_large(events, elements, found)
            given = (found, np.uint64(documents), np.uint64(self._words), self._roots, np.uint64(twigs))
            counts = cupy.empty(documents, np.uint32)
            blocks = -(-documents // _WARPS)
            self._launch("count_matches", blocks, 0, *given, counts)
            offsets = exclusive_scan(counts)
            matches = cupy.empty(int(offsets[-1]), np.uint32)  # synchronize!
            if len(matches):
                self._launch("write_matches", blocks, 0, *given, offsets, matches)
            return offsets, matches

    def match_rules(
        self, rules: Rules, root_offsets: Any, roots: Any, words: WordEvents, most_levels: int
    ) -> tuple[Any, Any, Any]:
        """Find the twigs that match each document of a grammar; see :func:`.twig_rules.match_rules`."""
        wide = len(self._arrays["elements"]) > 1 << 16
        return match_rules(self.match, wide, rules, root_offsets, roots, words, most_levels)

    def _match_words(self, events: Events, elements: Elements, found: Any) -> None:
        documents, column = len(events.offsets) - 1, 32 * self._words_of_lane
        near = min(elements.levels, _LEVELS)
        far = elements.levels - near
        blocks = -(-documents * self._columns // _WARPS)
        blocks, spilled = _spilling(blocks, _WARPS * far * column * 8)
        self._launch(
            *("match_words", blocks, _WARPS * near * column * 8),
            *(self._struct, elements.elements, events.offsets, elements.counts, np.uint64(documents)),
            *(np.uint32(near), np.uint64(far), spilled.view(np.uint64), found),
        )

    def _match_large(self, events: Events, elements: Elements, found: Any) -> None:
        documents, groups = len(events.offsets) - 1, len(self._groups)
        blocks = min(documents * groups, 4 * device_attribute("MultiProcessorCount"))
        blocks, scratch = _spilling(blocks, (2 + elements.levels) * self._widest * 8)
        self._launch(
            *("match_large", blocks, 0),
            *(self._struct, elements.elements, events.offsets, elements.counts, np.uint64(documents)),
            *(self._groups, np.uint64(groups), np.uint64(self._widest), np.uint64(elements.levels)),
            *(scratch.view(np.uint64), found),
        )

    def _launch(self, kernel: str, blocks: int, shared: int, *arguments: Any) -> None:
        defines = (f"-DWORDS={self._words_of_lane}u",)
        get_kernel("twigs", kernel, defines)((blocks,), (_THREADS,), arguments, shared_mem=shared)

    def _match_nodes(self, events: Events, found: Any) -> None:
        documents, warps = len(events.offsets) - 1, 2 * self._words
        near = min(events.depth, _NODE_LEVELS)
        far = events.depth - near
        blocks, spilled = _spilling(documents * -(-warps // _NODE_WARPS), 32 * _NODE_WARPS * far)
        get_kernel("twig_nodes", "match_nodes", _symbols(events))(
            (blocks,),
            (32 * _NODE_WARPS,),
            (
                *(self._personalities, self._children, np.uint32(warps), self._arrays["elements"], events.symbols),
                *(events.offsets, np.uint64(documents), np.uint32(near), np.uint64(far), spilled),
                found.view(np.uint32),
            ),
            shared_mem=4 * _CHUNK + 32 * _NODE_WARPS * near,
        )


def order_elements(events: Events) -> Elements:
    """Turn events on the device into elements in the order of their end tags; the host waits for deep ones only."""
    import cupy

    documents, elements = len(events.offsets) - 1, len(events.symbols) // 2
    scratch, ordered = cupy.empty((2, elements), np.uint32)
    counts, most = cupy.empty(documents, np.uint32), cupy.zeros(1, np.uint32)
    get_kernel("twig_elements", "order_elements", _symbols(events))(
        (-(-documents // _WARPS),),
        (_THREADS,),
        (events.symbols, events.offsets, np.uint64(documents), scratch, ordered, counts, most),
    )
    levels = events.depth if events.depth <= _LEVELS else int(most[0])  # synchronize!
    return Elements(ordered, counts, levels)


def _symbols(events: Events) -> tuple[str]:
    return (f"-DSYMBOL=u{8 * events.symbols.dtype.itemsize}",)


def _spilling(blocks: int, size: int) -> tuple[int, Any]:
    """Return how many blocks may run if each needs so many bytes of global memory, and that memory."""
    import cupy

    blocks = min(blocks, max(1, _MOST_SPILLED // max(1, size)))
    return blocks, cupy.empty(blocks * size, np.uint8)


# Tables of twigs, on the host.


def _name_entries(twigs: Twigs) -> npt.NDArray[np.int64]:
    """Return the symbol of each entry, 0 of entries that are not used."""
    symbols = np.zeros(len(twigs.entry_next), np.int64)
    entries, owners = twigs.heads, np.arange(len(twigs.heads))
    while len(entries):
        more = entries != NO_ENTRY
        entries, owners = entries[more], owners[more]
        symbols[entries] = owners
        entries = twigs.entry_next[entries]
    return symbols


def _used(twigs: Twigs, named: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return the nodes that pass some name test, by word: removed twigs' are left out."""
    used = np.zeros(twigs.words, np.uint64)
    entries = np.flatnonzero(named)
    np.bitwise_or.at(used, twigs.entry_words[entries], twigs.entry_bits[entries])
    return used


def _nodes(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the numbers of the bits that are set."""
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))


def _groups(twigs: Twigs, used: npt.NDArray[np.uint64], width: int) -> npt.NDArray[np.int64]:
    """Return ranges of words in which twigs lie that have nodes in several parts of so many nodes."""
    inner = _nodes(used & ~twigs.leaves[: twigs.words])
    children = _nodes(used)
    following = twigs.siblings[children].astype(np.int64)
    children, following = children[following != NO_NODE], following[following != NO_NODE]
    ends = np.zeros(64 // width * twigs.words + 1, np.int64)
    for first, last in ((inner, inner + 1), (children, following)):
        np.add.at(ends, first // width, 1)
        np.add.at(ends, np.minimum(last // width, len(ends) - 1), -1)
    tied = np.flatnonzero(np.cumsum(ends[:-1]))  # parts that belong to the part before the next
    words = np.zeros(twigs.words + 1, np.int64)
    np.add.at(words, tied * width // 64, 1)
    np.add.at(words, (tied + 1) * width // 64 + 1, -1)
    covered = np.concatenate([[0], np.cumsum(words[:-1]) > 0, [0]])
    edges = np.diff(covered.astype(np.int8))
    return np.stack([np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)], axis=1)


def _tables(
    twigs: Twigs, named: npt.NDArray[np.int64], used: npt.NDArray[np.uint64], column: int
) -> dict[str, npt.NDArray[Any]]:
    """Make the arrays of Twigs in ``twigs.cuh``, with so many words in a column."""
    columns = max(1, -(-twigs.words // column))
    entries = np.flatnonzero(named)
    words = twigs.entry_words[entries].astype(np.int64)
    keys = named[entries] * columns + words // column
    row_keys = np.unique(np.concatenate([OTHER * columns + np.arange(columns), keys]))
    row_columns = row_keys % columns
    rows = np.zeros((len(row_keys) + 1, 2, column), np.uint64)
    places, leaves = np.searchsorted(row_keys, keys), twigs.leaves[words]
    rows[places, 0, words % column] = twigs.entry_bits[entries] & leaves
    rows[places, 1, words % column] = twigs.entry_bits[entries] & ~leaves
    own = np.flatnonzero(twigs.elements[row_keys // columns])
    own = own[own >= columns]  # the first rows are any element's
    rows[own] |= rows[row_columns[own]]

    padded = np.zeros((3, columns * column), np.uint64)
    padded[0, : twigs.words] = twigs.descendants[: twigs.words]
    padded[1, : twigs.words] = twigs.branches[: twigs.words] & used
    needs = np.zeros(64 * columns * column, np.uint64)
    nodes = _nodes(padded[1])
    children = nodes + 1
    while len(nodes):
        near = children // 64 == nodes // 64  # others are match_large's
        needs[nodes[near]] |= np.uint64(1) << (children[near] % 64).astype(np.uint64)
        children = twigs.siblings[children].astype(np.int64)
        nodes, children = nodes[children != NO_NODE], children[children != NO_NODE]
    symbols = np.arange(len(twigs.heads) + 1)
    return {
        "rows": rows,
        "row_starts": np.searchsorted(row_keys, symbols * columns).astype(np.uint32),
        "row_columns": row_columns.astype(np.uint32),
        "elements": np.ascontiguousarray(twigs.elements, np.uint8),
        "descendants": padded[0],
        "branches": padded[1],
        "needs": np.ascontiguousarray(needs.reshape(columns, column, 64).transpose(0, 2, 1)),
        "siblings": np.ascontiguousarray(twigs.siblings, np.uint32),
    }


def _personalities(
    twigs: Twigs, named: npt.NDArray[np.int64], used: npt.NDArray[np.uint64], words: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Return each node's personality and the lanes of its children (see ``twig_nodes.cu``)."""
    entries = np.flatnonzero(named)
    bits = np.unpackbits(twigs.entry_bits[entries].view(np.uint8), bitorder="little")
    tested, node = np.nonzero(bits.reshape(-1, 64))
    symbols = np.zeros(64 * words, np.uint32)
    symbols[64 * twigs.entry_words[entries[tested]].astype(np.int64) + node] = named[entries[tested]]
    descends = np.zeros(64 * words, bool)
    descends[_nodes(twigs.descendants[: twigs.words] & used)] = True
    parents = np.full(64 * words, -1, np.int64)
    children = np.zeros(64 * words, np.uint32)
    nodes = _nodes(used & ~twigs.leaves[: twigs.words])
    below = nodes + 1
    while len(nodes):
        near = below // 32 == nodes // 32  # others are match_large's
        parents[below[near]] = nodes[near]
        children[nodes[near]] |= np.uint32(1) << (below[near] % 32).astype(np.uint32)
        below = twigs.siblings[below].astype(np.int64)
        nodes, below = nodes[below != NO_NODE], below[below != NO_NODE]
    personalities = np.where(symbols == OTHER, np.uint32(_ANY), symbols)
    personalities |= np.where(parents < 0, np.uint32(_ROOT), (parents % 32 << _PARENT_BIT).astype(np.uint32))
    personalities |= np.where(descends, np.uint32(_DESCENDANT), np.uint32(0))
    return personalities.astype(np.uint32), children
