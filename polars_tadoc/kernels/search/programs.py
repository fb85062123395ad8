"""Programs: what a query with syntax means, in numbers, for its words and phrases in the order of the text.

A program is int64: its form, and how many words, entries and operations follow; a kind and an argument by word; a word
and a slot by entry; the operations. Operations work on a stack of sets of documents, and cut down the set of documents
that the query finds. An entry is a word that adds to scores, where the document is in the entry's slot, or anywhere
(slot -1).
"""

from __future__ import annotations

from typing import Final

REQUIRES_ANY: Final = 0
REQUIRES_ALL: Final = 1
TREE: Final = 2
"""Forms: documents in any list, in all lists, or as the operations say, which all forms have."""

WORD: Final = 0
"""One word."""
ANY_WORD: Final = 1
"""A word; any of them if the text is cut into several."""
PHRASE: Final = 2
"""Consecutive words; the argument is the slop."""
PREFIX: Final = 3
"""The most frequent words that begin with the text."""
FUZZY: Final = 4
"""The most frequent words that are spelled like the text; the argument is the edits, -1 by the text's length."""

ALL_WORDS: Final = 5
"""A word; all of them if the text is cut into several: only where the rest of the program needs them all."""

PUSH: Final = 0
"""Push the documents of the word that is the argument."""
AND: Final = 1
OR: Final = 2
"""Replace the two last sets by the documents in both, or in any."""
NOT: Final = 3
"""Replace the last set by all other documents."""
POP: Final = 4
"""Drop the last set."""
SAVE: Final = 5
"""Write the last set to the slot that is the argument."""
MASK: Final = 6
"""Cut down a slot to the last set."""
NARROW: Final = 7
"""Cut down the found documents to the last set, and drop it."""

ARGUMENT_BITS: Final = 3
"""Bits of an operation below its argument."""

MAX_DEPTH: Final = 12
MAX_SLOTS: Final = 8
"""Maximum sets on the stack, and slots."""
