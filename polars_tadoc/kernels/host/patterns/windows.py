"""Matches a literal only around the words that it must hold: its rarest word, and as many words as it has around it."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.patterns.match import (
    FOUND,
    REST,
    Automaton,
    Text,
    length_of,
    next_gap,
    run_gap,
    run_word,
)
from polars_tadoc.kernels.host.rows.expand import OK
from polars_tadoc.runtime.addresses import load_u8, trailing_zeros
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, kernel, polled_njit

_NONE = 1 << 61


@kernel
def find_partial_words(offsets: Int64, data_at: int, part: UInt8, at_end: bool, words: UInt32) -> int:
    """List the words that begin with some bytes, or end with them; return their number."""
    found, size = 0, len(part)
    for word in range(len(offsets) - 1):
        first, stop = offsets[word], offsets[word + 1]
        if stop - first < size:
            continue
        start = nb.uint64(data_at) + nb.uint64(stop - size if at_end else first)
        same = True
        for i in range(size):
            if load_u8(start + nb.uint64(i)) != part[i]:
                same = False
                break
        if same:
            words[found] = word
            found += 1
    return found


@inner
def _next_anchor(depth: int, word: int, place: Int64, stop: Int64, flags: UInt8, text: Text, roots: UInt32) -> Any:
    """Return the next flagged word's number in its row (``_NONE``: there is none), the depth and the words read."""
    while depth >= 0:
        at = place[depth]
        if at == stop[depth]:
            depth -= 1
            continue
        place[depth] = at + 1
        symbol = nb.int64(roots[at]) if depth == 0 else nb.int64(text.symbols[at])
        if flags[symbol] == 0:
            word += length_of(symbol, text)
        elif symbol < text.vocabulary_size:
            return word, depth, word + 1
        else:
            depth += 1
            place[depth] = nb.int64(text.rule_offsets[symbol - text.vocabulary_size])
            stop[depth] = nb.int64(text.rule_offsets[symbol - text.vocabulary_size + 1])
    return nb.int64(_NONE), depth, word


@polled_njit
def match_windows(
    text: Text,
    automaton: Automaton,
    flags: UInt8,
    before: int,
    after: int,
    levels: int,
    root_offsets: Int64,
    roots: UInt32,
    gap_addresses: UInt64,
    gap_sizes: UInt32,
    pending: UInt64,
    counts: UInt64,
) -> Any:
    """Count the matches in documents, or tell whether there is one, reading only the windows around flagged words.

    Parameters
    ----------
    text, automaton
        Words, gaps, rules and the literal, of which every match holds a flagged word.
    flags
        uint8 by symbol: whether it contains such a word.
    before, after
        Words to read before a flagged word, and after it.
    levels
        Levels of rules.
    root_offsets, roots, gap_addresses, gap_sizes
        The documents' symbols and gaps.
    pending
        Bitmap of the documents to read.
    counts
        Output by document that is read.

    Returns
    -------
    (error, document)
        The first error in a document's gaps.

    """
    began = interrupts()
    size, codes = text.vocabulary_size, len(text.gap_offsets)
    place, stop = np.empty(levels + 1, np.int64), np.empty(levels + 1, np.int64)
    ahead, ahead_stop = np.empty(levels + 1, np.int64), np.empty(levels + 1, np.int64)
    first = np.empty(levels + 1, np.int64)
    for block in range(len(pending)):
        bits = pending[block]
        while bits != 0:
            row = (block << 6) + trailing_zeros(bits)
            bits &= bits - nb.uint64(1)
            place[0] = first[0] = ahead[0] = root_offsets[row]
            stop[0] = ahead_stop[0] = root_offsets[row + 1]
            anchor, ahead_depth, ahead_word = _next_anchor(0, 0, ahead, ahead_stop, flags, text, roots)
            wrong, special, special_code, address, left = next_gap(-1, gap_addresses[row], gap_sizes[row], codes)
            word, depth, reads, low, high = nb.int64(0), 0, 0, nb.int64(0), nb.int64(-1)
            state, count = nb.uint64(REST), nb.uint64(0)
            while depth >= 0 and wrong == OK and state != FOUND:
                if reads & 0xFFFF == 0 and interrupts() != began:
                    return OK, row
                reads += 1
                if word > high:
                    if anchor == _NONE:
                        break
                    state = nb.uint64(REST)
                    low, high = anchor - before, anchor + after
                    while anchor != _NONE and anchor - before <= high + 1:
                        high = anchor + after
                        anchor, ahead_depth, ahead_word = _next_anchor(
                            ahead_depth, ahead_word, ahead, ahead_stop, flags, text, roots
                        )
                at = place[depth]
                if at == stop[depth]:
                    depth -= 1
                    continue
                place[depth] = at + 1
                symbol = nb.int64(roots[at]) if depth == 0 else nb.int64(text.symbols[at])
                length = length_of(symbol, text)
                if word + length <= low:
                    word += length
                    continue
                follows = at > first[depth]
                if follows or depth == 0:  # the gap before a rule is read before the rule's first symbol
                    while special < word and wrong == OK:
                        wrong, special, special_code, address, left = next_gap(special, address, left, codes)
                    if special == word or follows:
                        code = special_code
                        if special != word:
                            code = nb.int64(text.leading_gaps[symbol] if depth == 0 else text.predicted_gaps[size + at])
                        if word >= low:
                            state, more = run_gap(code, state, text, automaton)
                            count += more
                            if state == FOUND:
                                break
                if symbol < size:
                    state, more = run_word(symbol, state, text, automaton)
                    count += more
                    word += 1
                    continue
                depth += 1
                place[depth] = first[depth] = nb.int64(text.rule_offsets[symbol - size])
                stop[depth] = nb.int64(text.rule_offsets[symbol - size + 1])
            while special < word and wrong == OK and depth < 0:
                wrong, special, special_code, address, left = next_gap(special, address, left, codes)
            if wrong != OK:
                return wrong, row
            if special == word and depth < 0 and state != FOUND:  # after the last word
                state, more = run_gap(special_code, state, text, automaton)
                count += more
            counts[row] = nb.uint64(1) if state == FOUND else count
    return OK, 0
