"""Drops everything irrelevant to twigs from a grammar, and then duplicate words and rules.

Most words of XML are text that no twig compares, and many tags differ in attributes only. A rule without tags is
dropped, a rule with a single remaining symbol is replaced by it, and rules with equal bodies are merged. The pruned
grammar is small and cached between calls (:mod:`.twig_kept`); documents are pruned in one pass over their symbols.

Plain text only matters outside of the root element, before the first tag or after the last one: each symbol has flags
for text at both ends.
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
"""Probes for duplicates: half of the slots are free, so more are hardly ever needed."""

TAG, BEFORE, AFTER = 1, 2, 4
"""A symbol has a tag; text before the first tag, or any text if it has no tag; text after the last tag, or any."""

_KEY = np.uint64(secrets.randbits(64))
_1, _32, _ODD = (np.uint64(number) for number in (1, 32, 0x9E3779B97F4A7C15))


class PrunedGrammar(NamedTuple):
    """A pruned grammar. Symbol 0 is an irrelevant word; bodies do not contain it."""

    terminals: int
    nesting: int
    """Maximum number of open bodies while a document is expanded."""
    rule_offsets: Int64
    symbols: UInt32
    words: WordEvents
    numbers: UInt32
    """By symbol of the whole grammar: its symbol in this one; 0 if it was dropped."""
    ends: UInt8
    """By symbol of the whole grammar: ``TAG``, ``BEFORE``, ``AFTER``."""


class Documents(NamedTuple):
    """Pruned documents."""

    offsets: Int64
    symbols: UInt32
    outside: UInt8
    """By document: whether there is text outside of its root."""


def prune(rules: Rules, words: WordEvents) -> PrunedGrammar:
    """Prune a grammar."""
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
    """Number the relevant words from 1 on; equal ones get the same number. Returns one more than the highest number."""
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
    """Write the remaining rules, numbered from ``left`` on; return their number."""
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
    """Return the flags of two concatenated parts."""
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
    """Prune documents."""
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
