"""Caches pruned grammars between calls, and pruned documents that are matched repeatedly."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary, finalize

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polars_tadoc.config import settings
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.twigs.arrays import WordEvents
from polars_tadoc.kernels.twigs.twig_folding_cpu import fold
from polars_tadoc.kernels.twigs.twig_pruning_cpu import Documents, PrunedGrammar, prune, prune_documents
from polars_tadoc.runtime.array_types import Int64, UInt32, array_dataclass
from polars_tadoc.runtime.cache import ByteLRU

MAX_WORDS = 16
"""Cached word events per grammar: for different sets of namespaces, or of twigs."""

FOLDED_AT = 3
"""Calls with the same documents before these are folded; folding costs what a few calls gain by it."""


@array_dataclass
class Kept:
    """Cache entry of rules with word events, and of the last matched documents."""

    words: WordEvents
    grammar: PrunedGrammar
    root_offsets: Int64
    roots: UInt32
    calls: int
    """Number of consecutive calls with these documents."""
    left: tuple[PrunedGrammar, Documents | None]
    """The pruned documents, and the pruned grammar, later with folded pairs."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, without the words."""
        arrays: list[Any] = [*self.grammar[2:4], *self.grammar[5:], self.root_offsets, self.roots]
        if self.left[1] is not None:
            arrays += [*self.left[0][2:4], *self.left[1]]
        return sum(int(array.nbytes) for array in arrays)

    def is_of(self, words: WordEvents) -> bool:
        """Tell whether the entry belongs to these words."""
        return self.words.kinds is words.kinds and self.words.symbols is words.symbols

    def has(self, root_offsets: Int64, roots: UInt32) -> bool:
        """Tell whether these are the last matched documents."""
        return _are_equal(root_offsets, self.root_offsets) and _are_equal(roots, self.roots)

    def called_again(self) -> Kept:
        """Count another call with the same documents."""
        grammar, documents = self.left
        if documents is None:
            documents = prune_documents(grammar, self.root_offsets, self.roots)
            documents = documents._replace(symbols=documents.symbols[: documents.offsets[-1]].copy())
        left = _fold(grammar, documents) if self.calls == FOLDED_AT else (grammar, documents)
        return replace(self, calls=self.calls + 1, left=left)


kept: ByteLRU[tuple[Kept, ...]] = ByteLRU(
    lambda: settings().host_cache_bytes // 4, lambda entries: sum(one.nbytes for one in entries)
)
"""By rules: an entry per word events, the most recently used last."""

_numbers = itertools.count()
_keys: WeakKeyDictionary[Rules, str] = WeakKeyDictionary()
_lock = threading.Lock()


def load(rules: Rules, root_offsets: Int64, roots: UInt32, words: WordEvents) -> tuple[PrunedGrammar, Documents | None]:
    """Return the pruned grammar, and its pruned documents if they are the same as in the last call.

    Documents that were matched often enough are folded.
    """
    key = _key(rules)
    entries = kept.get(key) or ()
    known = next((one for one in entries if one.is_of(words)), None)
    if known is None or not known.has(root_offsets, roots):
        grammar = prune(rules, words) if known is None else known.grammar
        if roots.nbytes + root_offsets.nbytes > settings().host_cache_bytes // 8:
            root_offsets, roots = root_offsets[:1], roots[:0]  # for other documents, nothing is cached
        now = Kept(words, grammar, root_offsets.copy(), roots.copy(), 1, (grammar, None))
    elif known.calls <= FOLDED_AT:
        now = known.called_again()
    else:
        return known.left
    kept.put(key, (*(one for one in entries if one is not known), now)[-MAX_WORDS:])
    return now.left


def _fold(grammar: PrunedGrammar, documents: Documents) -> tuple[PrunedGrammar, Documents]:
    rules = len(grammar.rule_offsets) - 1
    pairs, offsets, symbols = fold(grammar.terminals + rules, documents.offsets, documents.symbols)
    pair_offsets = grammar.rule_offsets[-1] + np.arange(2, len(pairs) + 2, 2)
    larger = grammar._replace(
        nesting=grammar.nesting + len(pairs) // 2,
        rule_offsets=np.concatenate([grammar.rule_offsets, pair_offsets]),
        symbols=np.concatenate([grammar.symbols, pairs]),
    )
    return larger, Documents(offsets, symbols, documents.outside)


def _key(rules: Rules) -> str:
    with _lock:
        key = _keys.get(rules)
        if key is None:
            key = _keys[rules] = str(next(_numbers))
            finalize(rules, kept.discard, key)
        return key


def _are_equal(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return bool(pa.py_buffer(one).equals(pa.py_buffer(other)))  # NumPy would make an array of comparisons
