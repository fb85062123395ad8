"""Runs of words and pairs of nearby words on the device, counted on the rules (G-TADOC, Zhang et al., ICDE 2021).

An owner (a rule's body or a document) holds the windows that span two or more of its children; the first and the
last words of rules tell their words, so that nothing is expanded. Top-down, windows are written as keys of packed
ranks with the weight of their owner, sorted and added up, as many at a time as device memory allows. Bottom-up, and
wherever documents matter, each distinct window gets a number and the rules are rewritten over those numbers: what
counts words then counts windows.
"""

from __future__ import annotations

from typing import Any

from polars_tadoc.kernels.sequences.derived_rules_cuda import derive_pairs as derive_pairs
from polars_tadoc.kernels.sequences.derived_rules_cuda import derive_sequences as derive_sequences
from polars_tadoc.kernels.sequences.window_counts_cuda import count_windows
from polars_tadoc.kernels.sequences.window_postings_cuda import list_windows
from polars_tadoc.kernels.sequences.windows_cuda import Kind
from polars_tadoc.kernels.traverse.rules import Rules


def sequence_counts(
    rules: Rules,
    root_offsets: Any,
    roots: Any,
    n: int,
    rank: Any,
    strategy: str,
    min_count: int = 1,
    top: int | None = None,
) -> tuple[Any, Any]:
    """Count the runs of n words.

    Parameters and result as of :func:`polars_tadoc.kernels.sequences.sequences_cpu.sequence_counts`, in cupy arrays.

    Raises
    ------
    EngineUnavailableError
        The device is out of memory or failed, or the windows are beyond its 32-bit numbers.

    """
    return count_windows(Kind("windows", n, n - 1), rules, root_offsets, roots, rank, strategy, min_count, top)


def pair_counts(
    rules: Rules,
    root_offsets: Any,
    roots: Any,
    window: int,
    rank: Any,
    strategy: str,
    min_count: int = 1,
    top: int | None = None,
) -> tuple[Any, Any]:
    """Count the pairs of words at most ``window`` words apart, the word of lower rank first.

    Parameters and errors as in :func:`sequence_counts`.

    Returns
    -------
    (cupy uint32[m, 2], cupy uint64[m])
        Words and counts, by count falling, equal ones by rank.

    """
    return count_windows(Kind("pairs", 2, window), rules, root_offsets, roots, rank, strategy, min_count, top)


def sequence_postings(
    rules: Rules,
    root_offsets: Any,
    roots: Any,
    n: int,
    rank: Any,
    strategy: str,
    min_count: int = 1,
    top: int | None = None,
) -> tuple[Any, Any, Any, Any]:
    """List the documents that hold each run of n words, by count falling, then ascending.

    Parameters and errors as in :func:`sequence_counts`; ``min_count`` is of all documents together, ``top`` of
    documents for each run.

    Returns
    -------
    (cupy uint32[m, n], cupy int64[m + 1], cupy uint32, cupy uint64)
        Words by rank, where each run's documents start, the documents, and how often each holds the run.

    """
    return list_windows(Kind("windows", n, n - 1), rules, root_offsets, roots, rank, strategy, min_count, top)
