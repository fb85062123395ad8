"""Keeps what is left of grammars from one call to the next, and of documents that come again."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, finalize

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polars_tadoc.cache import ByteLRU
from polars_tadoc.config import settings
from polars_tadoc.kernels.cpu.twig_folding import fold
from polars_tadoc.kernels.cpu.twig_pruning import Documents, PrunedGrammar, prune, prune_documents
from polars_tadoc.kernels.rules import Rules
from polars_tadoc.kernels.twigs import WordEvents

UInt32 = npt.NDArray[np.uint32]
Int64 = npt.NDArray[np.int64]


@dataclass
class Kept:
    """What is known of rules with the words they were matched with last, and of the documents matched last."""

    words: WordEvents
    grammar: PrunedGrammar
    root_offsets: Int64 = field(default_factory=lambda: np.zeros(1, np.int64))
    roots: UInt32 = field(default_factory=lambda: np.zeros(0, np.uint32))
    folded: tuple[PrunedGrammar, Documents] | None = None
    """The documents with neighbours paired, and the grammar with these pairs."""

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays hold, but for the words."""
        arrays: list[Any] = [*self.grammar[2:4], *self.grammar[5:], self.root_offsets, self.roots]
        if self.folded is not None:
            arrays += [*self.folded[0][2:4], *self.folded[1]]
        return sum(int(array.nbytes) for array in arrays)


kept: ByteLRU[Kept] = ByteLRU(lambda: settings().host_cache_bytes // 4, lambda one: one.nbytes)

_numbers = itertools.count()
_keys: WeakKeyDictionary[Rules, str] = WeakKeyDictionary()
_lock = threading.Lock()


def load(rules: Rules, root_offsets: Int64, roots: UInt32, words: WordEvents) -> tuple[PrunedGrammar, Documents | None]:
    """Return what is left of a grammar, and of its documents if they are the same as in the last call.

    Those are folded then, which costs more than to read them once as they are.
    """
    key = _key(rules)
    known = kept.get(key)
    if known is None or known.words.kinds is not words.kinds or known.words.symbols is not words.symbols:
        known = kept.put(key, Kept(words, prune(rules, words)))
    if not _are_equal(root_offsets, known.root_offsets) or not _are_equal(roots, known.roots):
        if roots.nbytes + root_offsets.nbytes <= settings().host_cache_bytes // 8:
            kept.put(key, Kept(known.words, known.grammar, root_offsets.copy(), roots.copy()))
        return known.grammar, None
    if known.folded is None:
        folded = _fold(known.grammar, prune_documents(known.grammar, root_offsets, roots))
        known = kept.put(key, Kept(known.words, known.grammar, known.root_offsets, known.roots, folded))
        return folded
    return known.folded


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
    return bool(pa.py_buffer(one).equals(pa.py_buffer(other)))  # NumPy would make an array of answers
