"""Leaves out of a grammar what says nothing to twigs, and then all but one of each that are equal.

Most words of XML are text that no twig asks for, and many tags differ in attributes alone. A rule without tags goes,
one of a single symbol left is that symbol, and rules of equal bodies are one. What is left of a grammar is small and
is kept from one call to the next (:mod:`.twig_kept`); of documents, it is found in one pass over their symbols.

Text outside of the root element, the one thing that plain text has a say in, stands before the first tag or behind the
last one: of each symbol is known what it has there.
"""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

import numpy as np

from polars_tadoc.kernels.primitives.lists import gather_lists
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.twigs.arrays import NOTHING, TEXT, WordEvents
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32
from polars_tadoc.runtime.jit import inner, kernel

PROBES = 32
"""Places looked at for what is equal: half of all are free, so more are hardly ever needed."""

TAG, BEFORE, AFTER = 1, 2, 4
"""A symbol has a tag; text before the first one, or any without a tag; text behind the last one, or any."""

_KEY = np.uint64(secrets.randbits(64))
_1, _32, _ODD = (np.uint64(number) for number in (1, 32, 0x9E3779B97F4A7C15))


class PrunedGrammar(NamedTuple):
    """What is left of a grammar. Symbol 0 is a word that says nothing: bodies do not name it."""

    terminals: int
    nesting: int
    """Bodies that may be open at once while a document is expanded."""
    rule_offsets: Int64
    symbols: UInt32
    words: WordEvents
    numbers: UInt32
    """By symbol of the whole grammar: what is left of it, a symbol of this one; 0 is nothing."""
    ends: UInt8
    """By symbol of the whole grammar: ``TAG``, ``BEFORE``, ``AFTER``."""


class Documents(NamedTuple):
    """What is left of documents."""

    offsets: Int64
    symbols: UInt32
    outside: UInt8
    """By document: whether text stands outside of it."""


def prune(rules: Rules, words: WordEvents) -> PrunedGrammar:
    """Find what is left of a grammar."""
    terminals, count = rules.terminals, rules.rule_count
    numbers, ends = np.zeros(terminals + count, np.uint32), np.zeros(terminals + count, np.uint8)
    members = np.empty(terminals + 1, np.int64)
    left = _number_words(words, _KEY, np.zeros(2 << terminals.bit_length(), np.uint32), numbers, ends, members)
    own = members[1:left]
    offsets, events = gather_lists(words.offsets.astype(np.int64), words.symbols, own)
    kept = WordEvents(
        np.concatenate([[np.uint8(NOTHING)], words.kinds[own]]),
        np.concatenate([[np.uint32(0)], words.names[own]]),
        np.concatenate([[0], offsets]).astype(np.uint32),
        events,
    )
    rule_offsets, symbols = np.zeros(count + 1, np.int64), np.empty(len(rules.symbols), np.uint32)
    bodies = rules.rule_offsets, rules.symbols
    slots = np.zeros(2 << count.bit_length(), np.uint32)
    made = _number_rules(terminals, *bodies, _KEY, left, slots, numbers, ends, rule_offsets, symbols)
    nesting = len(rules.level_offsets)
    return PrunedGrammar(
        left, nesting, rule_offsets[: made + 1].copy(), symbols[: rule_offsets[made]].copy(), kept, numbers, ends
    )


@kernel
def _number_words(words: Any, key: Any, slots: Any, numbers: Any, ends: Any, members: Any) -> Any:
    """Number the words that say something, from 1 on; equal ones have one number. Returns one more than there are."""
    count = 1
    mask = np.uint64(len(slots) - 1)
    for word in range(np.uint64(len(words.kinds))):
        kind = words.kinds[word]
        if kind != NOTHING:
            ends[word] = BEFORE | AFTER if kind == TEXT else TAG
        first, stop = np.uint64(words.offsets[word]), np.uint64(words.offsets[word + _1])
        if kind == NOTHING or (kind == TEXT and first == stop):
            continue
        mixed = (key ^ np.uint64(words.names[word]) << _32 ^ np.uint64(kind)) * _ODD
        mixed = _hash(mixed, words.symbols, first, stop)
        found = count
        for _ in range(PROBES):
            known = slots[mixed & mask]
            if known == 0:
                slots[mixed & mask] = count
                break
            other = np.uint64(members[known])
            start = np.uint64(words.offsets[other])
            if (
                words.kinds[other] == kind
                and words.names[other] == words.names[word]
                and np.uint64(words.offsets[other + _1]) - start == stop - first
                and _are_equal(words.symbols, start, first, stop)
            ):
                found = known
                break
            mixed += _1
        numbers[word] = found
        if found == count:
            members[count] = word
            count += 1
    return count


@kernel
def _number_rules(
    terminals: Any,
    rule_offsets: Any,
    symbols: Any,
    key: Any,
    left: Any,
    slots: Any,
    numbers: Any,
    ends: Any,
    left_offsets: Any,
    left_symbols: Any,
) -> Any:
    """Write what is left of rules, which are numbered from ``left`` on; returns how many there are."""
    count = 0
    mask = np.uint64(len(slots) - 1)
    begin = np.uint64(0)
    for rule in range(np.uint64(len(rule_offsets) - 1)):
        end = begin
        own = np.uint8(0)
        for i in range(np.uint64(rule_offsets[rule]), np.uint64(rule_offsets[rule + _1])):
            number, there = numbers[symbols[i]], ends[symbols[i]]
            left_symbols[end] = number
            end += np.uint64(number != 0)
            own = _joined(own, there)
        ends[np.uint64(terminals) + rule] = own
        if end <= begin + _1:
            if end > begin:
                numbers[np.uint64(terminals) + rule] = left_symbols[begin]
            continue
        mixed = _hash(key, left_symbols, begin, end)
        found = count
        for _ in range(PROBES):
            known = slots[mixed & mask]
            if known == 0:
                slots[mixed & mask] = count + 1
                break
            start, stop = np.uint64(left_offsets[known - 1]), np.uint64(left_offsets[known])
            if stop - start == end - begin and _are_equal(left_symbols, start, begin, end):
                found = known - 1
                break
            mixed += _1
        numbers[np.uint64(terminals) + rule] = left + found
        if found == count:
            count += 1
            left_offsets[count] = end
            begin = end
    return count


@inner
def _joined(first: Any, second: Any) -> Any:
    """Return the ends of what stands one behind the other."""
    before = first | (second if first & TAG == 0 else 0)
    after = second | (first if second & TAG == 0 else 0)
    return np.uint8((first | second) & TAG | before & BEFORE | after & AFTER)


@inner
def _hash(mixed: Any, symbols: Any, first: Any, stop: Any) -> Any:
    for i in range(first, stop):
        mixed = (mixed ^ np.uint64(symbols[i])) * _ODD
        mixed ^= mixed >> _32
    return mixed


@inner
def _are_equal(symbols: Any, other: Any, first: Any, stop: Any) -> Any:
    i = np.uint64(0)
    while i < stop - first and symbols[other + i] == symbols[first + i]:
        i += _1
    return i == stop - first


def prune_documents(grammar: PrunedGrammar, root_offsets: Int64, roots: UInt32) -> Documents:
    """Find what is left of documents."""
    count = len(root_offsets) - 1
    room = np.empty(int(root_offsets[-1] - root_offsets[0]), np.uint32)
    documents = Documents(np.empty(count + 1, np.int64), room, np.empty(count, np.uint8))
    _prune_documents(grammar.numbers, grammar.ends, root_offsets, roots, *documents)
    return documents


@kernel
def _prune_documents(
    numbers: Any, ends: Any, root_offsets: Any, roots: Any, offsets: Any, symbols: Any, outside: Any
) -> None:
    at = np.uint64(0)
    for document in range(len(offsets) - 1):
        first, stop = np.uint64(root_offsets[document]), np.uint64(root_offsets[document + 1])
        offsets[document] = at
        for i in range(first, stop):
            number = numbers[roots[i]]
            symbols[at] = number
            at += np.uint64(number != 0)
        text = 0
        for i in range(first, stop):
            there = ends[roots[i]]
            text |= there & BEFORE
            if there & TAG:
                break
        for i in range(stop - first):
            there = ends[roots[stop - _1 - np.uint64(i)]]
            text |= there & AFTER
            if there & TAG:
                break
        outside[document] = text != 0
    offsets[len(offsets) - 1] = at
