"""Finds the root's start tag of each document of a grammar."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

UInt8 = npt.NDArray[np.uint8]
UInt32 = npt.NDArray[np.uint32]
Int64 = npt.NDArray[np.int64]


@nb.njit(nogil=True, cache=True)
def first_marked(marked: UInt8, rule_offsets: UInt32, symbols: UInt32, root_offsets: Int64, roots: UInt32) -> Int64:
    """Find each document's first word that is marked.

    Parameters
    ----------
    marked
        By word: not 0 for those sought.
    rule_offsets, symbols
        The rules' bodies; a body names words and lower rules only.
    root_offsets, roots
        The documents.

    Returns
    -------
    int64 array
        By document; -1 for one without such a word.

    """
    words = len(marked)
    firsts = np.full(words + len(rule_offsets) - 1, -1, np.int64)
    for word in range(words):
        if marked[word]:
            firsts[word] = word
    for rule in range(len(rule_offsets) - 1):
        for at in range(rule_offsets[rule], rule_offsets[rule + 1]):
            found = firsts[symbols[at]]
            if found >= 0:
                firsts[words + rule] = found
                break
    documents = np.full(len(root_offsets) - 1, -1, np.int64)
    for document in range(len(documents)):
        for at in range(root_offsets[document], root_offsets[document + 1]):
            found = firsts[roots[at]]
            if found >= 0:
                documents[document] = found
                break
    return documents
