"""Counts a few terms in each document; only symbols that contain one of them are visited.

Symbols are mapped to the rules that contain them (:class:`~polars_tadoc.kernels.host.rows.phrases.Owners`), which leads
from the terms to all symbols that contain one. Counts are propagated in the same direction, once per rule, and summed
in the documents that contain these symbols.
"""

from __future__ import annotations

from typing import Any

import numba as nb

from polars_tadoc.kernels.host.rows.phrases import Owners
from polars_tadoc.runtime.addresses import count_ones, trailing_zeros
from polars_tadoc.runtime.array_types import Float32, Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.jit import inner, kernel


@kernel
def find_holders(
    terminals: int, owners: Owners, words: UInt32, pending: UInt64, touched: UInt8, holders: UInt32, places: UInt32
) -> Any:
    """Find the symbols that contain words.

    Parameters
    ----------
    terminals
        Number of terminals.
    owners
        The rules that contain each symbol.
    words
        Distinct terminals.
    pending
        Bitmap of rules, initially zero; zero again afterwards.
    touched
        uint8 by symbol, initially zero: set to 1 if a symbol contains one of the words.
    holders
        Room for all symbols: the symbols found, words first, each before the rules that contain it.
    places
        By symbol found: its position in ``holders``.

    Returns
    -------
    int
        Number of symbols found.

    """
    size = nb.uint64(0)
    one = nb.uint64(1)
    for i in range(len(words)):
        size = _hold(nb.uint64(words[i]), size, owners, pending, touched, holders, places)
    for block in range(len(pending)):
        while pending[block] != 0:  # only higher rules contain a rule: their bits come later
            bits = pending[block]
            pending[block] = bits & (bits - one)
            rule = (nb.uint64(block) << nb.uint64(6)) + nb.uint64(trailing_zeros(bits))
            size = _hold(nb.uint64(terminals) + rule, size, owners, pending, touched, holders, places)
    return size


@inner
def _hold(
    symbol: int, size: int, owners: Owners, pending: UInt64, touched: UInt8, holders: UInt32, places: UInt32
) -> Any:
    touched[symbol] = 1
    holders[size] = symbol
    places[symbol] = size
    for i in range(owners.offsets[symbol], owners.offsets[symbol + nb.uint64(1)]):
        rule = nb.uint64(owners.rules[i])
        pending[rule >> nb.uint64(6)] |= nb.uint64(1) << (rule & nb.uint64(63))
    return size + nb.uint64(1)


@kernel
def count_in_holders(
    terminals: int, owners: Owners, columns: UInt32, holders: UInt32, places: UInt32, counts: UInt64
) -> None:
    """Count terms in the symbols that contain them: ``counts``, symbols x terms, is initially zero.

    ``columns`` gives the term of each word; ``holders`` and ``places`` are outputs of :func:`find_holders`.
    """
    for i in range(len(columns)):
        counts[i, columns[i]] = 1
    for place in range(len(holders)):
        symbol = nb.uint64(holders[place])
        for i in range(owners.offsets[symbol], owners.offsets[symbol + nb.uint64(1)]):
            owner = places[nb.uint64(terminals) + nb.uint64(owners.rules[i])]
            for term in range(counts.shape[1]):
                counts[owner, term] += counts[place, term]


@kernel
def count_bits(bits: UInt64) -> Any:
    """Count the bits set."""
    total = nb.uint64(0)
    for block in range(len(bits)):
        total += nb.uint64(count_ones(bits[block]))
    return total


@kernel
def count_in_rows(
    touched: UInt8,
    places: UInt32,
    counts: UInt64,
    root_offsets: UInt64,
    roots: UInt32,
    pending: UInt64,
    rows: Int64,
    row_counts: UInt64,
) -> None:
    """Sum the counts of the symbols of each document whose bit is set; ``row_counts`` is initially zero."""
    one = nb.uint64(1)
    place = nb.uint64(0)
    for block in range(len(pending)):
        bits = pending[block]
        while bits != 0:
            row = (nb.uint64(block) << nb.uint64(6)) + nb.uint64(trailing_zeros(bits))
            bits &= bits - one
            rows[place] = row
            for i in range(root_offsets[row], root_offsets[row + one]):
                symbol = nb.uint64(roots[i])
                if touched[symbol]:
                    holder = places[symbol]
                    for term in range(counts.shape[1]):
                        row_counts[place, term] += counts[holder, term]
            place += one


@kernel
def score_rows(
    rows: Int64,
    frequencies: Int64,
    terms: Int64,
    counts: UInt32,
    weights: Float32,
    norms: Float32,
    bases: Float32,
    scores: Float32,
) -> None:
    """Score rows by the postings of a query's terms.

    Parameters
    ----------
    rows
        Row of each posting; a row's postings are adjacent.
    frequencies, terms
        Document frequency of each posting's term in the scored rows, and the term: a row's postings are summed in this
        order. Both are reordered, as are counts and weights.
    counts, weights
        Count of the term in the row, and the term's weight.
    norms, bases
        By row: constant in the denominator, and constant added to the score.
    scores
        Output by row with at least one posting.

    """
    start = 0
    while start < len(rows):
        row = rows[start]
        stop = start + 1
        while stop < len(rows) and rows[stop] == row:
            at = stop
            while at > start and (
                frequencies[at] < frequencies[at - 1]
                or (frequencies[at] == frequencies[at - 1] and terms[at] < terms[at - 1])
            ):
                frequencies[at], frequencies[at - 1] = frequencies[at - 1], frequencies[at]
                terms[at], terms[at - 1] = terms[at - 1], terms[at]
                counts[at], counts[at - 1] = counts[at - 1], counts[at]
                weights[at], weights[at - 1] = weights[at - 1], weights[at]
                at -= 1
            stop += 1
        norm = norms[row]
        count = nb.float32(counts[start])
        score = weights[start] * (count / (count + norm))
        for i in range(start + 1, stop):
            count = nb.float32(counts[i])
            score += weights[i] * (count / (count + norm))
        scores[row] = score + bases[row]
        start = stop
