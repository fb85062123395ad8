"""Finds what the root's start tag of each document of a grammar declares."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.jit import kernel


def first_in_rules(of_words: Int64, rule_offsets: UInt32, symbols: UInt32) -> Int64:
    """Find what the first word in each rule has.

    Parameters
    ----------
    of_words
        By word: what it has; -1 for words that are passed over.
    rule_offsets, symbols
        The rules' bodies; a body names words and lower rules only.

    Returns
    -------
    int64 array
        By word and rule; -1 where there is no such word.

    """
    firsts = np.full(len(of_words) + len(rule_offsets) - 1, -1, np.int64)
    firsts[: len(of_words)] = of_words
    _find(firsts, rule_offsets, symbols, firsts[len(of_words) :])
    return firsts


def first_in_documents(firsts: Int64, root_offsets: Int64, roots: UInt32) -> Int64:
    """Find the same for documents, given what :func:`first_in_rules` found."""
    found = np.full(len(root_offsets) - 1, -1, np.int64)
    _find(firsts, root_offsets, roots, found)
    return found


@kernel
def _find(firsts: Any, offsets: Any, symbols: Any, found: Any) -> None:
    for body in range(len(found)):
        for at in range(offsets[body], offsets[body + 1]):
            if firsts[symbols[at]] >= 0:
                found[body] = firsts[symbols[at]]
                break
