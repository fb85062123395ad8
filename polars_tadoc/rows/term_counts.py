"""Counts of a few terms in documents, and document lengths, under a morphism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_tadoc.kernels.host.rows import extract as length_kernels
from polars_tadoc.kernels.host.rows import term_counts as kernels
from polars_tadoc.kernels.host.rows.phrases import Owners, find_rows
from polars_tadoc.kernels.host.rows.word_map import map_rules
from polars_tadoc.kernels.primitives.codes import DELETED
from polars_tadoc.kernels.traverse.results_cpu import load_rules
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.word_map import Morphism, images_with_parts
from polars_tadoc.rows.matching import Links
from polars_tadoc.rows.token_count import document_words
from polars_tadoc.runtime.array_types import Bools, Int64, UInt8, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

AT_ONCE = 16
"""Terms counted per pass."""


class TermCounts(NamedTuple):
    """The counts of terms in documents."""

    documents: Int64
    """int64, ascending."""
    terms: Int64
    """int64: number of the term."""
    counts: UInt32
    """uint32, at least 1; capped at 32 bits."""


@array_dataclass
class Terms:
    """The words of a corpus whose images are terms."""

    words: UInt32
    """uint32: distinct word ids."""
    terms: Int64
    """int64: the term of each word."""
    count: int
    """Number of terms."""
    kept: Bools | None
    """Bool by word id: whether it counts as a word; None if all do."""

    @classmethod
    def of(cls, corpus: Corpus, terms: Sequence[str], morphism: Morphism | None, has_parts: bool = False) -> Terms:
        """Find the words whose images are terms, or with parts whose images are: then each gets the first of these."""
        vocabulary = corpus.grammar.words
        images = vocabulary.series if morphism is None else morphism.images(vocabulary.series)
        wanted = pl.Series("term", terms, pl.String)
        words = images.is_in(wanted.implode()).arg_true()
        numbers = {term: number for number, term in enumerate(terms)}
        named = np.array([numbers[image] for image in images.gather(words).to_list()], np.int64)
        kept = images.is_not_null().to_numpy() if images.null_count() else None
        if has_parts:
            pairs = images_with_parts(vocabulary.series, morphism).filter(pl.col("image").is_in(wanted.implode()))
            pairs = pairs.unique("word", keep="first", maintain_order=True).sort("word")
            words, named = pairs["word"], np.array([numbers[image] for image in pairs["image"].to_list()], np.int64)
        return cls(words.to_numpy().astype(np.uint32), named, len(terms), kept)


def document_lengths(corpus: Corpus, terms: Terms) -> UInt64:
    """Return the number of words of each document that the morphism keeps, uint64."""
    if terms.kept is None:
        return document_words(corpus)
    lengths = kept_lengths(corpus, terms.kept)
    short = np.minimum(lengths, length_kernels.LONG).astype(np.uint8)
    words = np.empty(corpus.document_count, np.uint64)

    def count(rows: tuple[int, int]) -> None:
        first, stop = rows
        offsets = corpus.root_offsets[first : stop + 1]
        length_kernels.count_words(0, lengths, short, offsets, corpus.roots, words[first:stop])

    map_parallel(count, weighted_chunks(corpus.root_offsets))
    return words


def kept_lengths(corpus: Corpus, kept: Bools) -> UInt64:
    """Return the number of kept words in each symbol, uint64; ``kept`` is by word id."""
    rules = map_rules(load_rules(corpus.grammar), np.where(kept, 0, DELETED).astype(np.uint32), 1)
    return np.concatenate([kept.astype(np.uint64), rules.lengths])


def count_terms(corpus: Corpus, terms: Terms) -> TermCounts:
    """Count terms in documents; reads only rules and documents that contain one of their words."""
    parts: list[tuple[Int64, Int64, UInt64]] = []
    for first in range(0, terms.count, AT_ONCE):
        chosen = (terms.terms >= first) & (terms.terms < first + AT_ONCE)
        columns = min(AT_ONCE, terms.count - first)
        parts += [
            (rows, first + term, counts)
            for rows, term, counts in _count(corpus, terms.words[chosen], terms.terms[chosen] - first, columns)
        ]
    if not parts:
        return TermCounts(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint32))
    documents, numbers, counts = (np.concatenate(own) for own in zip(*parts, strict=True))
    if terms.count > AT_ONCE:
        order = np.argsort(documents, kind="stable")
        documents, numbers, counts = documents[order], numbers[order], counts[order]
    return TermCounts(documents, numbers, np.minimum(counts, 0xFFFFFFFF).astype(np.uint32))


def find_holders(corpus: Corpus, words: UInt32) -> tuple[Owners, UInt8, UInt32, UInt32]:
    """Find the symbols of a corpus that contain given words, reading no others.

    Returns
    -------
    (Owners, uint8 array, uint32 array, uint32 array)
        The rules that contain each symbol; by symbol whether it contains a word; those that do, words first, each
        before its owners; by symbol its position among them, if it has one.

    """
    rules = load_rules(corpus.grammar)
    owners = Links.of(rules, corpus.cache_key).owners
    size = rules.terminals + rules.rule_count
    touched, holders, places = np.zeros(size, np.uint8), np.empty(size, np.uint32), np.empty(size, np.uint32)
    pending = np.zeros(-(-rules.rule_count // 64), np.uint64)
    count = kernels.find_holders(rules.terminals, owners, words, pending, touched, holders, places)
    return owners, touched, holders[:count], places


def _count(corpus: Corpus, words: UInt32, columns: Int64, width: int) -> list[tuple[Int64, Int64, UInt64]]:
    """Return documents, terms and counts, by chunk of documents."""
    if len(words) == 0:
        return []
    owners, touched, holders, places = find_holders(corpus, words)
    terminals = corpus.grammar.vocabulary_size
    counts = np.zeros((len(holders), width), np.uint64)
    kernels.count_in_holders(terminals, owners, columns.astype(np.uint32), holders, places, counts)
    roots = corpus.roots

    def sum_rows(chunk: tuple[int, int]) -> tuple[Int64, Int64, UInt64]:
        first, stop = chunk
        offsets = corpus.root_offsets[first : stop + 1].view(np.uint64)
        pending = np.zeros(-(-(stop - first) // 64), np.uint64)
        find_rows(touched, offsets, roots, pending)
        found = int(kernels.count_bits(pending))
        rows, sums = np.empty(found, np.int64), np.zeros((found, width), np.uint64)
        kernels.count_in_rows(touched, places, counts, offsets, roots, pending, rows, sums)
        row, term = np.nonzero(sums)
        return first + rows[row], term, sums[row, term]

    return map_parallel(sum_rows, weighted_chunks(corpus.root_offsets))
