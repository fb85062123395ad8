"""Matches twigs against events on the device.

``bits`` (``twigs.cu``) keeps 64 query nodes in a word, one or two words per lane, and reads elements in the order of
their end tags; ``nodes`` (``twig_nodes.cu``) is the paper's: one thread per query node, which reads every event. On
1,000 documents of 25 kB, the first was 3 times as fast for 32 queries of 10 nodes, 20 times for 256 and 60 times for
2,048 (H100, ``python -m benchmarks.gpu_twigs``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from polars_tadoc.kernels.primitives.upload_cuda import upload_rows
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.twigs.arrays import OTHER, Events, Twigs, WordEvents
from polars_tadoc.kernels.twigs.twig_rules_cuda import match_rules
from polars_tadoc.kernels.twigs.twig_tables_cuda import (
    Layout,
    Nodes,
    lay_out,
    lay_out_in_preorder,
    list_nodes,
    make_tables,
)
from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.runtime.device import device_attribute, device_errors, launch

TWIG_KERNELS = ("bits", "nodes")
"""The first is the default."""

_THREADS = 128  # of twigs.cu
_WARPS = _THREADS // 32
_CHUNK_OF_TWIGS = 1024  # of list_matches in twigs.cu
_NODE_WARPS, _CHUNK = 8, 1024  # of twig_nodes.cu
_MAX_SYMBOLS = 1 << 24  # of twig_nodes.cu
_DESCENDANT, _ROOT, _ANY = 1 << 29, 1 << 30, 1 << 31  # of twig_nodes.cu
_PARENT_BIT = 24

_WIDE = 128
"""From this many words on, a lane has two: then a document's elements are read half as often."""
_LEVELS = 16
"""Maximum sets of a warp's stack in shared memory."""
_NODE_LEVELS = 64
"""Maximum bytes of a thread's stack in shared memory."""
_MAX_SPILLED = 1 << 28
"""Bytes for the deeper levels of all running blocks; with many levels, fewer blocks run."""
_MAX_FOUND = 1 << 30
"""Bytes of the node sets and of the matches of documents that are matched together."""
_MAX_SPARE = 1 << 24
"""Unused bytes that a result may keep allocated; results with more are copied."""
_UPLOADED = 1 << 23
"""From this many bytes on, several threads copy events."""

_ARRAYS = (
    *("rows", "row_starts", "row_columns", "elements", "descendants", "highest", "lowest", "sides", "owners"),
    *("places", "siblings"),
)


class Elements(NamedTuple):
    """Documents as elements in the order of their end tags (see ``twig_elements.cu``)."""

    elements: Any
    """cupy uint32; each document's elements start at half the offset of its events."""
    counts: Any
    """cupy uint32 by document."""
    levels: int
    """Maximum number of node sets on a stack."""


def load_events(events: Events) -> Events:
    """Copy events, NumPy arrays, to the device."""
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
    """Twigs prepared for matching on the device; thread-safe.

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
        The kernel is unknown, or cannot handle this many symbols.

    """

    def __init__(self, twigs: Twigs, kernel: str = TWIG_KERNELS[0]) -> None:
        if kernel not in TWIG_KERNELS:
            raise ValueError(f"kernel={kernel!r}: use {' or '.join(map(repr, TWIG_KERNELS))}")
        if kernel == "nodes" and len(twigs.heads) > _MAX_SYMBOLS:
            raise ValueError(f"kernel='nodes' takes at most {_MAX_SYMBOLS:,} symbols; use kernel='bits'")
        self._by_nodes = kernel == "nodes"
        with device_errors(f"loading {len(twigs.roots):,} twigs"):
            import cupy

            nodes = list_nodes(twigs)
            layout = lay_out_in_preorder(nodes, 32) if self._by_nodes else lay_out(nodes)
            self._words_of_lane = 2 if layout.words >= _WIDE else 1
            column = 32 * self._words_of_lane
            self._columns = -(-layout.words // column)  # of twigs that fit in a word
            arrays = make_tables(twigs, nodes, layout, column)
            self._words = len(arrays["descendants"])
            self._arrays = {name: cupy.asarray(array) for name, array in arrays.items()}
            numbers = (self._words // column, len(arrays["row_columns"]))
            struct = np.array([*(self._arrays[name].data.ptr for name in _ARRAYS), *numbers], np.uint64)
            self._struct = struct.view(f"V{struct.nbytes}").reshape(())  # Twigs of twigs.cuh
            self._roots = cupy.asarray(layout.found[twigs.roots].astype(np.uint32))
            self._widest = int(np.diff(layout.large, axis=1).max(initial=0))
            self._large = cupy.asarray(layout.large.astype(np.uint32))
            if self._by_nodes:
                self._personalities, self._children = map(cupy.asarray, _personalities(nodes, layout))

    def match(self, events: Events) -> tuple[Any, Any]:
        """Return the twigs that match each document.

        Parameters
        ----------
        events
            From :func:`load_events`.

        Returns
        -------
        (cupy int64[documents + 1], cupy uint32)
            Offsets of each document's twigs, and the twigs, ascending.

        """
        documents, twigs = len(events.offsets) - 1, len(self._roots)
        with device_errors(f"matching {twigs:,} twigs against {documents:,} documents"):
            import cupy

            if not documents or not twigs:
                return cupy.zeros(documents + 1, np.int64), cupy.empty(0, np.uint32)
            elements = order_elements(events) if not self._by_nodes or len(self._large) else None
            most = max(1, _MAX_FOUND // (8 * self._words + 4 * twigs))
            parts = [self._match_part(events, elements, at, at + most) for at in range(0, documents, most)]
            if len(parts) == 1:
                return parts[0]
            ends = np.cumsum([len(matches) for _, matches in parts]).tolist()
            offsets = [offsets[1:] + before for (offsets, _), before in zip(parts, [0, *ends], strict=False)]
            return (
                cupy.concatenate([cupy.zeros(1, np.int64), *offsets]),
                cupy.concatenate([matches for _, matches in parts]),
            )

    def _match_part(self, events: Events, elements: Elements | None, first: int, stop: int) -> tuple[Any, Any]:
        """Match some of the documents."""
        import cupy

        events = events._replace(offsets=events.offsets[first : stop + 1])
        documents = len(events.offsets) - 1
        found = cupy.empty(documents * self._words, np.uint64)
        if self._by_nodes and self._columns:
            self._match_nodes(events, found)
        if elements is not None:
            elements = elements._replace(counts=elements.counts[first:stop])
            if not self._by_nodes and self._columns:
                self._match_words(events, elements, found)
            if len(self._large):
                self._match_large(events, elements, found)
        twigs = len(self._roots)
        chunks = -(-twigs // _CHUNK_OF_TWIGS)
        blocks = -(-documents * chunks // _WARPS)
        tiles, offsets = cupy.empty(blocks + 1, np.uint64), cupy.empty(documents + 1, np.int64)
        tiles.data.memset_async(0xFF, 8 * (blocks + 1))
        matches = cupy.empty(documents * twigs, np.uint32)
        given = (found, documents, self._words, self._roots, twigs, chunks, tiles, offsets, matches)
        self._launch("list_matches", blocks, *given)
        listed = matches[: int(offsets[-1])]  # synchronize!
        return offsets, listed.copy() if matches.nbytes > _MAX_SPARE else listed

    def match_rules(
        self, rules: Rules, root_offsets: Any, roots: Any, words: WordEvents, most_levels: int
    ) -> tuple[Any, Any, Any]:
        """Return the twigs that match each document of a grammar; see :func:`.twig_rules.match_rules`."""
        wide = len(self._arrays["elements"]) > 1 << 16
        return match_rules(self.match, wide, rules, root_offsets, roots, words, most_levels)

    def _match_words(self, events: Events, elements: Elements, found: Any) -> None:
        documents, column = len(events.offsets) - 1, 32 * self._words_of_lane
        near = min(elements.levels, _LEVELS)
        far = elements.levels - near
        blocks = -(-documents * self._columns // _WARPS)
        blocks, spilled = _spilling(blocks, _WARPS * far * column * 8)
        self._launch(
            *("match_words", blocks, self._struct, elements.elements, events.offsets, elements.counts, documents),
            *(self._columns, near, far, spilled.view(np.uint64), found),
            shared=_WARPS * near * column * 8,
        )

    def _match_large(self, events: Events, elements: Elements, found: Any) -> None:
        documents, large = len(events.offsets) - 1, len(self._large)
        blocks = min(documents * large, 4 * device_attribute("MultiProcessorCount"))
        blocks, scratch = _spilling(blocks, (2 + elements.levels) * self._widest * 8)
        self._launch(
            *("match_large", blocks, self._struct, elements.elements, events.offsets, elements.counts, documents),
            *(self._large, large, self._widest, elements.levels, scratch.view(np.uint64), found),
        )

    def _launch(self, kernel: str, blocks: int, *arguments: Any, shared: int = 0) -> None:
        defines = (f"-DWORDS={self._words_of_lane}u",)
        launch("twigs", kernel, blocks, _THREADS, *arguments, defines=defines, shared=shared)

    def _match_nodes(self, events: Events, found: Any) -> None:
        documents, warps = len(events.offsets) - 1, len(self._personalities) // 32
        near = min(events.depth, _NODE_LEVELS)
        far = events.depth - near
        blocks, spilled = _spilling(documents * -(-warps // _NODE_WARPS), 32 * _NODE_WARPS * far)
        launch(
            *("twig_nodes", "match_nodes", blocks, 32 * _NODE_WARPS, self._personalities, self._children, warps),
            *(self._arrays["elements"], events.symbols, events.offsets, documents, near, far, spilled),
            *(found.view(np.uint32), 2 * self._words),
            defines=_symbols(events),
            shared=4 * _CHUNK + 32 * _NODE_WARPS * near,
        )


def order_elements(events: Events) -> Elements:
    """Convert events on the device to elements in the order of end tags; the host only waits for deep documents."""
    import cupy

    documents, elements = len(events.offsets) - 1, len(events.symbols) // 2
    opened, ordered = cupy.empty(elements, np.uint32), cupy.empty(elements, np.uint32)
    counts = cupy.empty(documents, np.uint32)
    most = cupy.zeros(1, np.uint32) if events.depth > _LEVELS else None
    launch(
        *("twig_elements", "order_elements", -(-documents // _WARPS), _THREADS, events.symbols, events.offsets),
        *(documents, opened, ordered, counts, most),
        defines=_symbols(events),
    )
    return Elements(ordered, counts, events.depth if most is None else int(most[0]))  # synchronize!


def _symbols(events: Events) -> tuple[str]:
    return (f"-DSYMBOL=u{8 * events.symbols.dtype.itemsize}",)


def _spilling(blocks: int, size: int) -> tuple[int, Any]:
    """Return how many blocks may run if each needs ``size`` bytes of global memory, and that memory."""
    import cupy

    blocks = min(blocks, max(1, _MAX_SPILLED // max(1, size)))
    return blocks, cupy.empty(blocks * size, np.uint8)


def _personalities(nodes: Nodes, layout: Layout) -> tuple[UInt32, UInt32]:
    """Return each node's personality and the lanes of its children (see ``twig_nodes.cu``)."""
    fitting = nodes.used[layout.fitting]
    at = layout.found[fitting]
    personalities, children = np.zeros((2, 64 * layout.words), np.uint32)
    symbols = nodes.symbols[fitting]
    personalities[at] = np.where(symbols == OTHER, _ANY, symbols) | _ROOT
    personalities[at] |= np.where(nodes.descendants[fitting], np.uint32(_DESCENDANT), np.uint32(0))
    below, parents = layout.found[layout.children.nodes], layout.found[layout.children.parents]
    personalities[below] ^= (_ROOT | parents % 32 << _PARENT_BIT).astype(np.uint32)
    np.bitwise_or.at(children, parents, np.uint32(1) << (below % 32).astype(np.uint32))
    return personalities, children
