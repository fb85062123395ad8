"""Finds occurrences of query words in rows, and the best passage; symbols without query words are skipped."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.jit import inner, kernel

OUTSIDE, BEGINS, GOES_ON = 0, 1, 2
"""Mark of an occurrence: none, first word of a range, further word of a range."""


class Occurrences(NamedTuple):
    """Occurrences of query words in rows, ordered by row and position; row k's start at ``offsets[k]``."""

    offsets: Int64
    places: Int64
    """Number of the word in its row."""
    kept_places: Int64
    """Number of the word among those that are not ignored."""
    words: Int64
    """Number of the query word."""
    terminals: UInt32


class Sought(NamedTuple):
    """Words and phrases of queries."""

    weights: Int64
    """Queries x words: weight of a word; 0 if it occurs in phrases only, negative if not in the query."""
    phrase_offsets: Int64
    """Queries + 1: offsets of each query's phrases."""
    phrase_weights: Int64
    word_offsets: Int64
    """Phrases + 1: offsets of each phrase's words."""
    phrase_words: Int64


@njit
def find_occurrences(
    terminals: int,
    rule_offsets: Int64,
    symbols: UInt32,
    levels: int,
    lengths: UInt64,
    kept_lengths: UInt64,
    touched: UInt8,
    names: Int64,
    root_offsets: Int64,
    roots: UInt32,
    documents: Int64,
    queries: Int64,
    weights: Int64,
    sizes: Int64,
    write: bool,
    found: Occurrences,
) -> None:
    """Count occurrences by row, or ``write`` them at ``found.offsets``.

    Parameters
    ----------
    terminals, rule_offsets, symbols, levels
        The rules.
    lengths, kept_lengths
        uint64 by symbol: number of words, and of those not ignored.
    touched
        uint8 by symbol: whether it contains a word of any query.
    names
        int64 by terminal: number of the query word; only read for touched terminals.
    root_offsets, roots
        The documents' symbols.
    documents, queries
        int64 by row.
    weights
        As :class:`Sought`.
    sizes
        int64 by row, output: number of occurrences.
    write, found
        Whether to write, and the target.

    """
    position = np.empty(levels + 1, np.int64)
    end = np.empty(levels + 1, np.int64)
    # unpacked here, because access in the loop would update reference counts
    offsets, places, kept_places, words, word_terminals = found
    for row in range(len(documents)):
        query = queries[row]
        place = kept = nb.int64(0)
        first = offsets[row] if write else nb.int64(0)
        at = first
        depth = 0
        position[0], end[0] = root_offsets[documents[row]], root_offsets[documents[row] + 1]
        while depth >= 0:
            if position[depth] == end[depth]:
                depth -= 1
                continue
            inside = position[depth]
            position[depth] = inside + 1
            symbol = nb.int64(roots[inside]) if depth == 0 else nb.int64(symbols[inside])
            if touched[symbol] and symbol >= terminals:
                depth += 1
                position[depth] = rule_offsets[symbol - terminals]
                end[depth] = rule_offsets[symbol - terminals + 1]
                continue
            if touched[symbol] and weights[query, names[symbol]] >= 0:
                if write:
                    places[at], kept_places[at] = place, kept
                    words[at], word_terminals[at] = names[symbol], symbol
                at += 1
            place += nb.int64(lengths[symbol])
            kept += nb.int64(kept_lengths[symbol])
        sizes[row] = at - first


@inner
def _phrase_end(words: Int64, kept_places: Int64, at: int, stop: int, phrase_words: Int64, first: int, end: int) -> Any:
    """Return the occurrence at which a phrase ends that begins at ``at``; -1 if none begins there."""
    if words[at] != phrase_words[first] or at + end - first > stop:
        return nb.int64(-1)
    for i in range(1, end - first):
        if words[at + i] != phrase_words[first + i] or kept_places[at + i] != kept_places[at] + i:
            return nb.int64(-1)
    return at + end - first - 1


@njit
def choose_windows(
    found: Occurrences, sought: Sought, queries: Int64, row_words: Int64, size: int, firsts: Int64, marks: UInt8
) -> None:
    """Choose the passage of ``size`` words of each row with the highest total weight of distinct words and phrases.

    Ties: the one with more occurrences, then the first. The passage is centred on its occurrences.

    Parameters
    ----------
    found, sought
        Occurrences, and query words.
    queries, row_words
        int64 by row: its query, and its number of words.
    size
        Words per passage.
    firsts
        Output: first word by row.
    marks
        uint8 by occurrence, initially zero; set inside the passage.

    """
    offsets, places, kept_places, words, _ = found
    weights, phrase_offsets, phrase_weights, word_offsets, phrase_words = sought
    word_seen = np.zeros(weights.shape[1], np.int64)
    phrase_seen = np.zeros(len(phrase_weights), np.int64)
    stamp = nb.int64(0)
    for row in range(len(queries)):
        query = queries[row]
        begin, stop = offsets[row], offsets[row + 1]
        best = most = best_first = nb.int64(0)
        best_last = nb.int64(-1)
        for i in range(begin, stop):
            stamp += 1
            worth = occurrences = nb.int64(0)
            limit, last = places[i] + size, places[i] - 1
            j = i
            while j < stop and places[j] < limit:
                word = words[j]
                if weights[query, word] > 0:
                    occurrences += 1
                    last = max(last, places[j])
                    if word_seen[word] != stamp:
                        word_seen[word] = stamp
                        worth += weights[query, word]
                for phrase in range(phrase_offsets[query], phrase_offsets[query + 1]):
                    first_word, end_word = word_offsets[phrase], word_offsets[phrase + 1]
                    end = _phrase_end(words, kept_places, j, stop, phrase_words, first_word, end_word)
                    if end >= 0 and places[end] < limit:
                        occurrences += 1
                        last = max(last, places[end])
                        if phrase_seen[phrase] != stamp:
                            phrase_seen[phrase] = stamp
                            worth += phrase_weights[phrase]
                j += 1
            if worth > best or (worth == best and occurrences > most):
                best, most, best_first, best_last = worth, occurrences, places[i], last
        first = best_first - (size - (best_last - best_first + 1)) // 2
        first = max(nb.int64(0), min(first, row_words[row] - size))
        firsts[row] = first
        for i in range(begin, stop):
            if places[i] < first or places[i] >= first + size:
                continue
            if weights[query, words[i]] > 0 and marks[i] == OUTSIDE:
                marks[i] = BEGINS
            for phrase in range(phrase_offsets[query], phrase_offsets[query + 1]):
                first_word, end_word = word_offsets[phrase], word_offsets[phrase + 1]
                end = _phrase_end(words, kept_places, i, stop, phrase_words, first_word, end_word)
                if end >= 0 and places[end] < first + size:
                    marks[i] = max(marks[i], nb.uint8(BEGINS))
                    for k in range(i + 1, end + 1):
                        marks[k] = GOES_ON


@kernel
def write_marked(
    text_offsets: Int64,
    text: UInt8,
    run_offsets: Int64,
    run_starts: Int64,
    run_stops: Int64,
    cut_before: UInt8,
    cut_after: UInt8,
    before: UInt8,
    after: UInt8,
    cut: UInt8,
    offsets: Int64,
    written: UInt8,
) -> None:
    """Write texts with ``before`` and ``after`` around ranges of bytes, and ``cut`` at flagged ends."""
    at = nb.int64(0)
    for row in range(len(offsets) - 1):
        start = text_offsets[row]
        if cut_before[row]:
            at = _write(cut, 0, len(cut), written, at)
        done = nb.int64(0)
        for run in range(run_offsets[row], run_offsets[row + 1]):
            at = _write(text, start + done, start + run_starts[run], written, at)
            at = _write(before, 0, len(before), written, at)
            at = _write(text, start + run_starts[run], start + run_stops[run], written, at)
            at = _write(after, 0, len(after), written, at)
            done = run_stops[run]
        at = _write(text, start + done, text_offsets[row + 1], written, at)
        if cut_after[row]:
            at = _write(cut, 0, len(cut), written, at)
        offsets[row + 1] = at


@inner
def _write(source: UInt8, start: int, stop: int, written: UInt8, at: int) -> Any:
    for i in range(start, stop):
        written[at + i - start] = source[i]
    return at + stop - start
