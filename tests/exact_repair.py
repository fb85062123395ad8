"""Exact RePair (Larsson and Moffat, 1999) in plain Python: what batch RePair's grammar size is held to."""

from __future__ import annotations

import heapq
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.repair.batch_repair import BinaryRules
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR

Pair = tuple[int, int]

_GONE = -1


def build(sequence: npt.NDArray[np.uint32], vocabulary_size: int) -> BinaryRules:
    """Replace the most frequent pair by a rule until no pair occurs twice.

    Occurrences do not overlap and are taken from the left; of equally frequent pairs the one with the
    smaller left, then the smaller right symbol comes first. Pairs never cross a row's end.

    A pair of old symbols never gains occurrences, and a pair with a new symbol gets all of its occurrences
    when that symbol is made. So each pair's places are listed once, and what the heap claims of a pair was
    true at some time and is at least what is true now: a pair that comes up with less goes back.
    """
    symbols: list[int] = sequence.tolist()
    before = list(range(-1, len(symbols) - 1))
    after = list(range(1, len(symbols) + 1))
    places: dict[Pair, list[int]] = {}
    for i, pair in enumerate(pairwise(symbols)):
        if SEPARATOR not in pair:
            places.setdefault(pair, []).append(i)
    places = {pair: listed for pair, listed in places.items() if len(listed) > 1}
    counts = {pair: len(listed) for pair, listed in places.items()}  # occurrences, overlapping ones too
    heap = [(-count, pair) for pair, count in counts.items()]
    heapq.heapify(heap)
    rules: list[Pair] = []
    while heap:
        claimed, pair = heapq.heappop(heap)
        if counts[pair] < -claimed:
            if counts[pair] > 1:
                heapq.heappush(heap, (-counts[pair], pair))
            else:
                del places[pair], counts[pair]
            continue
        left, right = pair
        found = [i for i in places.pop(pair) if symbols[i] == left and symbols[after[i]] == right]
        if left == right:
            found = _without_overlaps(found, after)
            if len(found) < -claimed:
                places[pair] = found
                heapq.heappush(heap, (-len(found), pair))
                continue
        del counts[pair]
        if len(found) < 2:
            continue
        rule = vocabulary_size + len(rules)
        rules.append(pair)
        for i in found:
            second = after[i]
            for lost in ((symbols[before[i]], left), (right, symbols[after[second]])):
                if lost in counts:
                    counts[lost] -= 1
            symbols[i], symbols[second] = rule, _GONE
            after[i] = third = after[second]
            before[third] = i
        for new, listed in _new_pairs(rule, found, symbols, before, after).items():
            if len(listed) > 1:
                places[new] = listed
                counts[new] = len(listed)
                heapq.heappush(heap, (-len(listed), new))
    left_right = np.array(rules, np.uint32).reshape(-1, 2)
    return BinaryRules(
        left_right[:, 0].copy(), left_right[:, 1].copy(), np.array([s for s in symbols if s != _GONE], np.uint32)
    )


def _without_overlaps(found: list[int], after: list[int]) -> list[int]:
    """Of places where one symbol follows itself, those that a scan from the left takes."""
    taken: list[int] = []
    blocked = -1
    for i in found:
        if i != blocked:
            taken.append(i)
            blocked = after[i]
    return taken


def _new_pairs(
    rule: int, found: list[int], symbols: list[int], before: list[int], after: list[int]
) -> dict[Pair, list[int]]:
    """Places of each pair that holds the new rule, ascending."""
    places: dict[Pair, list[int]] = {}
    for i in found:
        previous = before[i]
        if previous >= 0:
            symbol = symbols[previous]
            if symbol not in (SEPARATOR, rule):  # a pair of two new symbols is listed by the first
                places.setdefault((symbol, rule), []).append(previous)
        symbol = symbols[after[i]]
        if symbol != SEPARATOR:
            places.setdefault((rule, symbol), []).append(i)
    return places
