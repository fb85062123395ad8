"""Finds the declarations of the root's start tag in each document of a grammar."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.jit import kernel


def first_in_rules(of_words: Int64, rule_offsets: UInt32, symbols: UInt32) -> Int64:
    """Return the value of the first word with a value in each rule.

    Parameters
    ----------
    of_words
        By word: its value; -1 for words to skip.
    rule_offsets, symbols
        The rules' bodies; a body refers to words and lower rules only.

    Returns
    -------
    int64 array
        By word and rule; -1 if there is no such word.

    """
    firsts = np.full(len(of_words) + len(rule_offsets) - 1, -1, np.int64)
    firsts[: len(of_words)] = of_words
    _find(firsts, rule_offsets, symbols, firsts[len(of_words) :])
    return firsts


def first_in_documents(firsts: Int64, root_offsets: Int64, roots: UInt32) -> Int64:
    """Like :func:`first_in_rules`, for documents, from its result."""
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
