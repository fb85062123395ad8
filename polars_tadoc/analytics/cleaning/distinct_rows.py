"""The distinct rows of a column, their sets of n-grams, and runs of rows whose signatures agree in a band."""

from __future__ import annotations

import secrets
from dataclasses import replace

import numpy as np

from polars_tadoc.analytics.cleaning.laid_words import LaidWords
from polars_tadoc.analytics.cleaning.signatures import Scheme
from polars_tadoc.analytics.cleaning.windows import find_windows
from polars_tadoc.kernels.host.near import pairs, rows
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

FOUND = 0.99
"""Least probability that a pair is proposed whose similarity is the threshold."""

SIGNED = 1 << 12
"""Rows of which a thread holds signatures at once."""


def bands_of(threshold: float, permutations: int) -> tuple[int, int]:
    """Return the number of bands, and the values of each: as many as let :data:`FOUND` of the pairs be proposed.

    A pair of similarity s agrees in a band of r values with probability s^r (J. Leskovec, A. Rajaraman and
    J. D. Ullman, *Mining of massive datasets*, section 3.4).
    """
    best = 1
    for values in range(1, permutations + 1):
        if 1 - (1 - threshold**values) ** (permutations // values) >= FOUND:
            best = values
    return permutations // best, best


def random_key() -> np.uint64:
    """Return a random odd number."""
    return np.uint64(secrets.randbits(64) | 1)


def first_rows(laid: LaidWords) -> UInt32:
    """Return the first row with the words of each row, uint32; ``NONE`` for rows without words."""
    starts, words, count = laid.starts, laid.words, len(laid.valid)
    hashes, found, key = np.empty(count, np.uint64), np.empty(count, np.uint32), random_key()
    map_parallel(lambda own: rows.hash_rows(starts, words, *own, key, hashes), weighted_chunks(starts))
    rows.group_rows(starts, words, hashes, np.zeros(1 << count.bit_length(), np.uint32), found)
    return found


@array_dataclass
class Sets:
    """Distinct rows with at least one n-gram of full length, as sets of n-grams."""

    laid: LaidWords
    """The words of these rows."""
    rows: Int64
    """int64: their numbers, ascending."""
    ngram: int
    """Words of an n-gram."""
    ngrams: UInt32
    """uint32 by place: the distinct n-grams of each row, from its start on."""
    sizes: Int64
    """int64 by row: their number."""

    @classmethod
    def of(cls, laid: LaidWords, firsts: UInt32, ngram: int) -> Sets:
        """List the n-grams of the first row of each text; shorter rows have copies at most."""
        own = np.flatnonzero((firsts == np.arange(len(firsts))) & (laid.counts >= ngram))
        starts = running_sum(laid.counts[own] + 1)
        words = np.empty(starts[-1], np.uint32)
        map_parallel(
            lambda some: rows.copy_rows(laid.starts, laid.words, own, *some, starts, words), weighted_chunks(starts)
        )
        distinct = replace(laid, starts=starts, words=words, valid=np.ones(len(own), np.bool_), places=None)
        first, key = find_windows(distinct, ngram).first, random_key()
        ngrams, sizes = np.empty(starts[-1], np.uint32), np.empty(len(own), np.int64)

        def list_some(some: tuple[int, int]) -> None:
            a, b = some
            table = empty_table(int(np.diff(starts[a : b + 1]).max(initial=0)))
            rows.list_ngrams(starts, first, a, b, ngram, key, table, ngrams, sizes)

        map_parallel(list_some, weighted_chunks(starts))
        return cls(distinct, own, ngram, ngrams, sizes)

    def keys(self, scheme: Scheme, bands: int, values: int) -> UInt64:
        """Return the key of each band of each row's signature, uint64, rows by bands."""
        sign, keys = scheme.signer(self.laid), np.empty((len(self.rows), bands), np.uint64)

        def key_some(some: tuple[int, int]) -> None:
            held = np.empty((min(SIGNED, some[1] - some[0]), scheme.permutations), np.uint32)
            for a in range(*some, SIGNED):
                b = min(a + SIGNED, some[1])
                sign(a, b, held[: b - a])
                pairs.band_keys(held[: b - a], bands, values, keys[a:b])

        map_parallel(key_some, weighted_chunks(self.laid.starts, 1 << 12))
        return keys

    @property
    def table_size(self) -> int:
        """The most n-grams of a row."""
        return int(self.sizes.max(initial=0))


def empty_table(members: int) -> UInt64:
    """Make a table for sets of up to some number of members."""
    return np.zeros(1 << (2 * members).bit_length(), np.uint64)


def runs_of(keys: UInt64) -> tuple[UInt32, Int64]:
    """Sort rows by the upper half of their key; return them, uint32, and the end of each one's run, int64.

    Rows that are alone are left out.
    """
    high = np.uint64(0xFFFFFFFF) << np.uint64(32)
    sorted_keys = (keys & high) | np.arange(len(keys), dtype=np.uint64)
    sorted_keys.sort()
    sorted_high = sorted_keys >> np.uint64(32)
    is_first = np.append(True, sorted_high[1:] != sorted_high[:-1])[: len(keys)]
    lengths = np.diff(np.append(np.flatnonzero(is_first), len(keys)))
    of = np.repeat(lengths, lengths)
    order = sorted_keys[of > 1].astype(np.uint32)
    lengths = lengths[lengths > 1]
    return order, np.repeat(np.cumsum(lengths), lengths)
