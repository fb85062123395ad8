"""Sequences and pairs of words on the device, counted on the rules (G-TADOC, Zhang et al., ICDE 2021).

An owner (a rule's body or a document) owns the windows that span two or more of its children; the first and the last
words of rules give their words, so that nothing is expanded. Top-down, windows are written as keys of packed ranks with
the weight of their owner, sorted and summed, as many at a time as device memory allows. Bottom-up, and for all results
by document, each distinct window gets a number and the rules are rewritten over those numbers: kernels that count words
then count windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from polars_tadoc.kernels.sequences.derived_rules_cuda import derive_pairs as derive_pairs
from polars_tadoc.kernels.sequences.derived_rules_cuda import derive_sequences as derive_sequences
from polars_tadoc.kernels.sequences.protocol import Limits
from polars_tadoc.kernels.sequences.window_counts_cuda import count_windows
from polars_tadoc.kernels.sequences.window_postings_cuda import list_windows
from polars_tadoc.kernels.sequences.windows_cuda import Kind
from polars_tadoc.kernels.traverse.rules import Rules


def sequence_counts(
    rules: Rules, root_offsets: Any, roots: Any, n: int, rank: Any, strategy: str, **limits: Unpack[Limits]
) -> tuple[Any, Any]:
    """Count the sequences of n words.

    Parameters and result as for :func:`polars_tadoc.kernels.sequences.sequences_cpu.sequence_counts`, as cupy arrays.

    Raises
    ------
    EngineUnavailableError
        The device is out of memory or failed, or the windows exceed its 32-bit numbers.

    """
    return count_windows(Kind("windows", n, n - 1), rules, root_offsets, roots, rank, strategy, limits)


def sequence_counts_of_lengths(
    rules: Rules,
    root_offsets: Any,
    roots: Any,
    lengths: Sequence[int],
    rank: Any,
    strategy: str,
    min_count: int = 1,
    top: int | None = None,
) -> list[tuple[Any, Any]]:
    """Count the sequences of several lengths, each by itself, on the same rows.

    Parameters and result as for :func:`polars_tadoc.kernels.sequences.sequences_cpu.sequence_counts_of_lengths`, as
    cupy arrays; errors as for :func:`sequence_counts`.
    """
    given = rules, root_offsets, roots
    return [sequence_counts(*given, n, rank, strategy, min_count=min_count, top=top) for n in lengths]


def pair_counts(
    rules: Rules, root_offsets: Any, roots: Any, window: int, rank: Any, strategy: str, **limits: Unpack[Limits]
) -> tuple[Any, Any]:
    """Count the pairs of words at most ``window`` words apart, the word of lower rank first.

    Parameters and errors as for :func:`sequence_counts`.

    Returns
    -------
    (cupy uint32[m, 2], cupy uint64[m])
        Words and counts, by descending count, then rank.

    """
    return count_windows(Kind("pairs", 2, window), rules, root_offsets, roots, rank, strategy, limits)


def sequence_postings(
    rules: Rules, root_offsets: Any, roots: Any, n: int, rank: Any, strategy: str, **limits: Unpack[Limits]
) -> tuple[Any, Any, Any, Any]:
    """List the documents that contain each sequence of n words, by descending count, then ascending.

    Parameters and errors as for :func:`sequence_counts`; ``min_count`` refers to all documents together, ``top`` to the
    documents of each sequence.

    Returns
    -------
    (cupy uint32[m, n], cupy int64[m + 1], cupy uint32, cupy uint64)
        Words by rank, offsets of each sequence's documents, the documents, and their counts.

    """
    return list_windows(Kind("windows", n, n - 1), rules, root_offsets, roots, rank, strategy, limits)
