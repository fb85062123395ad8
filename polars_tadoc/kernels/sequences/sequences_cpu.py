"""Sequences and pairs of words on rules: total counts, counts by document, and rules over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from polars_tadoc.kernels.keys.beginnings_cpu import Beginnings, count_beginnings
from polars_tadoc.kernels.keys.key_forms_cpu import Form, Ranks, Spread, words_of
from polars_tadoc.kernels.keys.key_order_cpu import Counted, in_result_order
from polars_tadoc.kernels.sequences.bodies_cpu import Bodies, end_documents, longest_document
from polars_tadoc.kernels.sequences.derived_rules_cpu import Derived
from polars_tadoc.kernels.sequences.expanded_documents_cpu import expand_documents
from polars_tadoc.kernels.sequences.owned_windows_cpu import OwnedWindows, Windows
from polars_tadoc.kernels.sequences.protocol import Limits
from polars_tadoc.kernels.sequences.rule_ends_cpu import SIZE, rank_bits
from polars_tadoc.kernels.sequences.windows_cpu import FlatWindows, PackedWindows, SpreadWindows
from polars_tadoc.kernels.sequences.word_pairs_cpu import PairWindows
from polars_tadoc.kernels.traverse.results_cpu import rank_by_terminal, terminal_counts
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64


def sequence_counts(
    rules: Rules,
    root_offsets: Int64,
    roots: UInt32,
    n: int,
    rank: UInt32 | None,
    strategy: str,
    **limits: Unpack[Limits],
) -> tuple[UInt32, UInt64]:
    """Count the sequences of n words.

    Parameters
    ----------
    rules
        The bodies of rules over words.
    root_offsets, roots
        int64, documents + 1, and uint32: the documents' symbols.
    n
        Words per sequence, at least 1.
    rank
        uint32 by word: its rank, distinct; None if words are numbered by rank.
    strategy
        "top_down": own windows are weighted by their rules' occurrences; "bottom_up": they are the terminals of derived
        rules.
    **limits
        Minimum count; maximum number of sequences.

    Returns
    -------
    (uint32 array, uint64 array)
        The words of each sequence, sequences x n, and its count; by descending count, then the words' ranks.

    """
    bodies = Bodies.of(rules, root_offsets, roots)
    if n > longest_document(bodies, n):
        return np.zeros((0, n), np.uint32), np.zeros(0, np.uint64)
    if n == 1:
        counts = terminal_counts(rules, roots, strategy)
        keys = np.arange(rules.terminals, dtype=np.uint64) if rank is None else rank.astype(np.uint64)
        return _chosen(Counted.of(keys, counts), Ranks(1, rank_bits(rules.terminals)), rank, **limits)
    windows, bodies = _sequence_windows(bodies, rank, n)
    return _window_counts(windows, bodies, rank, strategy, **limits)


def sequence_counts_of_lengths(
    rules: Rules,
    root_offsets: Int64,
    roots: UInt32,
    lengths: Sequence[int],
    rank: UInt32 | None,
    strategy: str,
    min_count: int = 1,
    top: int | None = None,
) -> list[tuple[UInt32, UInt64]]:
    """Count the sequences of several lengths in one pass: the shorter ones begin the longest ones.

    A terminal that ends each document, as often as needed, makes a longest sequence of the last words, too.

    Parameters
    ----------
    lengths
        Words per sequence, each at least 1.
    min_count, top
        For each length.
    rules, root_offsets, roots, rank, strategy
        As for :func:`sequence_counts`.

    Returns
    -------
    list of (uint32 array, uint64 array)
        For each length, as of :func:`sequence_counts`.

    """
    bodies = Bodies.of(rules, root_offsets, roots)
    most = min(max(lengths), longest_document(bodies, max(lengths)))
    ended = None if len(lengths) == 1 or most < 2 else end_documents(rules, root_offsets, roots, most - 1)
    if ended is None:
        given = rules, root_offsets, roots
        return [sequence_counts(*given, n, rank, strategy, min_count=min_count, top=top) for n in lengths]
    end = rules.terminals
    rank = None if rank is None else np.append(rank, np.uint32(end))
    windows, bodies = _sequence_windows(Bodies.of(*ended), rank, most)
    if strategy == "bottom_up":
        derived = Derived.by(windows, bodies)
        keys, counts = derived.form.distinct, terminal_counts(derived.bodies.rules, derived.bodies.roots, strategy)
    else:
        keys, counts = OwnedWindows.by(windows, bodies).in_key_order(bodies.weights)
    bits = rank_bits(end + 1)
    return count_beginnings(keys, windows.form, counts, Beginnings(rank, end, bits, min_count, top), lengths)


def pair_counts(
    rules: Rules,
    root_offsets: Int64,
    roots: UInt32,
    window: int,
    rank: UInt32 | None,
    strategy: str,
    **limits: Unpack[Limits],
) -> tuple[UInt32, UInt64]:
    """Count the pairs of words at most ``window`` words apart.

    Parameters
    ----------
    window
        Maximum distance of two words, at least 1.
    rules, root_offsets, roots, rank, strategy, **limits
        As for :func:`sequence_counts`.

    Returns
    -------
    (uint32 array, uint64 array)
        The words of each pair, pairs x 2, the one of lower rank first, and its count; by descending count, then the
        words' ranks.

    """
    bodies = Bodies.of(rules, root_offsets, roots)
    return _window_counts(PairWindows.of(bodies, rank, window), bodies, rank, strategy, **limits)


def sequence_postings(
    rules: Rules,
    root_offsets: Int64,
    roots: UInt32,
    n: int,
    rank: UInt32 | None,
    strategy: str,
    **limits: Unpack[Limits],
) -> tuple[UInt32, Int64, UInt32, UInt64]:
    """List the documents that contain each sequence of n words.

    Parameters
    ----------
    **limits
        Minimum count over all documents; maximum number of documents per sequence.
    rules, root_offsets, roots, n, rank, strategy
        As for :func:`sequence_counts`.

    Returns
    -------
    (uint32 array, int64 array, uint32 array, uint64 array)
        The words of each sequence, sequences x n, in the order of their ranks; offsets of its documents, sequences + 1;
        the documents, by descending count, then ascending; their counts.

    """
    bodies = Bodies.of(rules, root_offsets, roots)
    if n > longest_document(bodies, n):
        return np.zeros((0, n), np.uint32), np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.uint64)
    derived = Derived.by(*_sequence_windows(bodies, rank, n))
    bodies = derived.bodies
    kept, offsets, documents, counts = rank_by_terminal(
        bodies.rules, bodies.root_offsets, bodies.roots, strategy, **limits
    )
    distinct = derived.form.distinct if kept is None else derived.form.distinct[kept]
    return words_of(distinct, derived.form.form, rank), offsets, documents, counts


def derive_sequences(
    rules: Rules, root_offsets: Int64, roots: UInt32, n: int, rank: UInt32 | None
) -> tuple[Rules, Int64, UInt32, UInt32]:
    """Convert the rules and documents of words to those of sequences of n words.

    Parameters
    ----------
    rules, root_offsets, roots, n, rank
        As for :func:`sequence_counts`.

    Returns
    -------
    (Rules, int64 array, uint32 array, uint32 array)
        Rules whose terminals are the distinct sequences, numbered in the order of their words' ranks; the documents'
        symbols; the words of each sequence, sequences x n. No sequence spans two documents.

    """
    bodies = Bodies.of(rules, root_offsets, roots)
    n = min(n, longest_document(bodies, n) + 1)  # there are no longer sequences
    return Derived.by(*_sequence_windows(bodies, rank, n)).parts(rank)


def derive_pairs(
    rules: Rules, root_offsets: Int64, roots: UInt32, window: int, rank: UInt32 | None
) -> tuple[Rules, Int64, UInt32, UInt32]:
    """Convert the rules and documents of words to those of pairs of words.

    Parameters
    ----------
    rules, root_offsets, roots, window, rank
        As for :func:`pair_counts`.

    Returns
    -------
    (Rules, int64 array, uint32 array, uint32 array)
        As for :func:`derive_sequences`, for pairs, the word of lower rank first.

    """
    bodies = Bodies.of(rules, root_offsets, roots)
    return Derived.by(PairWindows.of(bodies, rank, window), bodies).parts(rank)


def _window_counts(
    windows: Windows, bodies: Bodies, rank: UInt32 | None, strategy: str, min_count: int = 1, top: int | None = None
) -> tuple[UInt32, UInt64]:
    if strategy == "bottom_up":
        derived = Derived.by(windows, bodies)
        totals = terminal_counts(derived.bodies.rules, derived.bodies.roots, strategy)
        return _chosen(Counted.of(derived.form.distinct, totals), windows.form, rank, min_count, top)
    keys, counts = OwnedWindows.by(windows, bodies).in_result_order(bodies.weights, min_count, top)
    return words_of(keys, windows.form, rank), counts


def _chosen(
    counted: Counted, form: Form, rank: UInt32 | None, min_count: int = 1, top: int | None = None
) -> tuple[UInt32, UInt64]:
    keys, counts = in_result_order(counted, min_count, top)
    return words_of(keys, form, rank), counts


def _sequence_windows(bodies: Bodies, rank: UInt32 | None, n: int) -> tuple[Windows, Bodies]:
    """Represent sequences of n words by 64-bit keys (iterated pairing).

    If the words' ranks do not fit, shorter sequences become the terminals, and two or three of these, possibly
    overlapping, represent a sequence.
    """
    bits = rank_bits(bodies.rules.terminals)
    if n > 1 and n * bits <= 64 and (n - 1) * bits <= SIZE:
        return PackedWindows.of(bodies.rules, rank, n), bodies
    expanded = expand_documents(bodies, rank, n) if n > 1 else None
    if expanded is not None:
        bodies, rank = expanded, None
    terminal: Form = Ranks(1, bits)
    parts = 3
    while Spread.of(terminal, n).width > 64:
        words = max(min(-(-n // parts), 64 // terminal.width * terminal.words), terminal.words + 1)
        if terminal.words == 1 and expanded is None:
            derived = Derived.by(*_sequence_windows(bodies, rank, words))
        else:
            derived = Derived.by(_window_kind(bodies, None, words, terminal), bodies)
        bodies, terminal, parts = derived.bodies, derived.form, 2
    return _window_kind(bodies, rank if terminal.words == 1 else None, n, terminal), bodies


def _window_kind(bodies: Bodies, rank: UInt32 | None, n: int, terminal: Form) -> Windows:
    if bodies.rules.rule_count == 0 and rank is None:
        return FlatWindows.of(n, terminal)
    return SpreadWindows.of(bodies.rules, rank, n, terminal)
