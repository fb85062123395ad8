"""Several grammars as one: an engine then traverses, sorts and adds up all rows at once, and nothing is merged.

The rules of all grammars are level by level over the words of all, each word once. Numbering them takes as long as a
few merges, so only the grammars of columns that are kept (:mod:`polars_tadoc.model.kept_columns`) are joined, once:
joined rules are kept by the grammars' digests, joined rows by the identity of theirs, under the budgets of the caches.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np

from polars_tadoc.config import settings
from polars_tadoc.execute.row_order import in_row_order
from polars_tadoc.kernels.host.records.merge_counts import renumber
from polars_tadoc.kernels.primitives.lists import gather_lists, running_sum
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.model.vocabulary import unify
from polars_tadoc.runtime.array_types import Int64, UInt32, array_dataclass
from polars_tadoc.runtime.arrow_arrays import strings
from polars_tadoc.runtime.cache import ByteLRU

MAX_SYMBOLS = 1 << 31
"""Grammars with as many symbols together, or words and rules, stay apart: kernels number them in 32 bits."""

SYMBOL_BYTES = 16
"""Bytes that a symbol of a joined grammar takes with everything made for it, about, on the host or on a device."""


@array_dataclass
class Joined:
    """One grammar made of several.

    Parameters
    ----------
    grammar
        Words and rules of all; no gaps.
    maps
        uint32 by grammar and symbol: the symbol of the joined grammar.

    """

    grammar: Grammar
    maps: list[UInt32]

    @property
    def nbytes(self) -> int:
        """Bytes of the grammar and the maps."""
        return self.grammar.nbytes + sum(own.nbytes for own in self.maps)


_grammars: ByteLRU[Joined] = ByteLRU(lambda: settings().host_cache_bytes, lambda one: one.nbytes)
"""Joined grammars, by the keys of those that they were made of."""

_corpora: ByteLRU[Corpus] = ByteLRU(
    lambda: settings().host_cache_bytes, lambda one: one.rows.nbytes + one.root_offsets.nbytes + one.roots.nbytes
)
"""Joined rows, by the identities of those that they were made of."""


def joined(corpora: Sequence[Corpus], budget: int) -> Sequence[Corpus]:
    """Return several kept corpora as one; others, and very large ones, as they are.

    Documents are in the order of their rows. ``budget`` is the size of the engine's cache in bytes, where joined
    grammars are to stay.
    """
    keys = [one.identity for one in corpora if one.identity is not None]
    if len(corpora) < 2 or len(keys) < len(corpora) or not _may_join([one.grammar for one in corpora], budget):
        return corpora
    key = " ".join(keys)
    found = _corpora.get(key)
    if found is None:
        name = f"({' '.join(one.key for one in corpora)})"
        made = _grammars.get(name)
        if made is None:
            made = _grammars.put(name, join_grammars([one.grammar for one in corpora]))
        found = _corpora.put(key, _join_rows(corpora, name, made, key))
        weakref.finalize(corpora[0], _corpora.discard, key).atexit = False
    return [found]


def _may_join(grammars: Sequence[Grammar], budget: int) -> bool:
    symbols = sum(len(one.symbols) for one in grammars)
    numbers = sum(one.vocabulary_size + one.rule_count for one in grammars)
    fits = SYMBOL_BYTES * (symbols + numbers) <= budget
    return fits and max(symbols, numbers) < MAX_SYMBOLS and len({one.tokenizer for one in grammars}) == 1


def join_grammars(grammars: Sequence[Grammar]) -> Joined:
    """Number the words and rules of several grammars together.

    Words are in the order of their first appearance. Rules of a level are in the order of the grammars.
    """
    words, word_maps = unify([one.words for one in grammars])
    levels = max(one.level_count for one in grammars)
    sizes = np.zeros((levels, len(grammars)), np.int64)
    for k, one in enumerate(grammars):
        sizes[: one.level_count, k] = np.diff(one.level_offsets)
    starts = running_sum(sizes.reshape(-1))
    firsts = starts[:-1].reshape(sizes.shape)
    rule_maps = [
        np.arange(one.rule_count)
        + np.repeat(firsts[: one.level_count, k] - one.level_offsets[:-1], sizes[: one.level_count, k])
        for k, one in enumerate(grammars)
    ]
    maps = [
        np.concatenate([own, (rules + len(words)).astype(np.uint32)])
        for own, rules in zip(word_maps, rule_maps, strict=True)
    ]
    places: Int64 = np.concatenate(rule_maps)
    order = np.empty(len(places), np.int64)
    order[places] = np.arange(len(places))
    bodies = running_sum(np.concatenate([np.diff(one.rule_offsets) for one in grammars]))
    offsets, symbols = gather_lists(bodies, renumber([one.symbols for one in grammars], maps), order)
    no_gaps = strings([])
    made = Grammar(
        words.strings,
        offsets.astype(np.uint32),
        symbols.astype(np.uint32, copy=False),
        starts[:: len(grammars)].astype(np.uint32),
        no_gaps,
        np.zeros(0, np.uint32),
        grammars[0].tokenizer,
    )
    lengths = np.concatenate([one.expansion_lengths for one in grammars])[order]
    made.__dict__.update(words=words, expansion_lengths=lengths)  # known: nothing need be checked or ordered again
    return Joined(made, maps)


def _join_rows(corpora: Sequence[Corpus], name: str, made: Joined, identity: str) -> Corpus:
    symbols = renumber([one.roots for one in corpora], made.maps)
    rows, offsets, roots = in_row_order(
        [one.rows for one in corpora], [one.root_offsets for one in corpora], (np.uint32, [symbols])
    )
    return Corpus(name, made.grammar, rows, offsets, roots, corpora[0].gaps, identity)
