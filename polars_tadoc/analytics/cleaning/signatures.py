"""MinHash signatures of laid-out rows, by scheme."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from polars_tadoc.analytics.cleaning.laid_words import LaidWords
from polars_tadoc.analytics.cleaning.options import ReadingOptions
from polars_tadoc.kernels.host.near import signatures as kernels
from polars_tadoc.kernels.host.near.sha1 import LANES, SCRATCH, hash_words
from polars_tadoc.kernels.host.near.text_signatures import hash_texts, sign_text
from polars_tadoc.kernels.tokenize import characters
from polars_tadoc.kernels.tokenize.tokenize_cpu import BLOCK
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.runtime.arguments import require_integer
from polars_tadoc.runtime.array_types import UInt32, UInt64
from polars_tadoc.runtime.option_signature import Default
from polars_tadoc.runtime.parallel import even_chunks, map_parallel
from polars_tadoc.traversal.options import MAX_WORDS

SCHEMES = ("fast", "double", "datasketch", "datasketch-affine32")
DOUBLE = ("fast", "double")
"""Schemes of double hashing, which differ in the hash of a word."""

MOST_PERMUTATIONS = 1 << 16
ROW_HASHES = 1 << 11
"""Words of a row that are cut before they are signed."""

SignRows = Callable[[int, int, UInt32], None]


class SignatureOptions(ReadingOptions, total=False):
    """Options of a set of n-grams and of its signature."""

    permutations: Annotated[int, Default(128)]
    ngram: Annotated[int, Default(5)]
    seed: Annotated[int, Default(1)]


class MinHashOptions(SignatureOptions, total=False):
    """Options of :func:`polars_tadoc.minhash`."""

    scheme: Annotated[str, Default("fast")]


@dataclass(frozen=True)
class Scheme:
    """How an n-gram gets its values."""

    name: str
    permutations: int
    ngram: int
    seed: int

    @classmethod
    def of(cls, options: SignatureOptions, call: str, name: object = "double") -> Scheme:
        """Check the arguments; errors as for :func:`polars_tadoc.minhash`."""
        if not isinstance(name, str) or name not in SCHEMES:
            raise ValueError(f"{call}: scheme={name!r}: use one of {', '.join(SCHEMES)}")
        return cls(
            name,
            require_integer("permutations", options["permutations"], 1, MOST_PERMUTATIONS),
            require_integer("ngram", options["ngram"], 1, MAX_WORDS),
            require_integer("seed", options["seed"], 0, (1 << 32) - 1),
        )

    def signer(self, laid: LaidWords) -> SignRows:
        """Prepare the words of rows; return a function that signs those from one row to another.

        It takes these rows and the array of their signatures, and may be called by several threads at once.
        """
        return self._double(laid) if self.name in DOUBLE else self._affine(laid)

    def constants(self) -> tuple[UInt64, UInt64]:
        """Return the numbers of each permutation, uint64: ``a`` and ``b``; for :data:`DOUBLE`, ``a`` and the base.

        They are drawn by ``numpy.random.RandomState``, whose numbers stay the same in all versions of NumPy.
        """
        draw, one = np.random.RandomState(self.seed), np.uint64(1)
        if self.name == "datasketch":
            pairs = [
                (draw.randint(1, (1 << 61) - 1, dtype=np.uint64), draw.randint(0, (1 << 61) - 1, dtype=np.uint64))
                for _ in range(self.permutations)
            ]
            a, b = np.array(pairs, np.uint64).T
            return np.ascontiguousarray(a), np.ascontiguousarray(b)
        if self.name in DOUBLE:
            base = draw.randint(0, (1 << 64) - 1, 1, dtype=np.uint64) | one
            return draw.randint(0, 1 << 32, self.permutations, dtype=np.uint32).astype(np.uint64), base
        odd = draw.randint(0, 1 << 31, self.permutations, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
        return odd.astype(np.uint64), draw.randint(0, 1 << 32, self.permutations, dtype=np.uint32).astype(np.uint64)

    def signs_text(self, tokenizer: Tokenizer, morphism: Morphism | None) -> bool:
        """Tell whether :meth:`text_signer` signs rows that are cut by a tokenizer and normalised."""
        return self.name == "fast" and tokenizer.has_classes and morphism is None

    def text_signer(self, addresses: UInt64, lengths: UInt32, tokenizer: Tokenizer) -> SignRows:
        """Return a function that signs rows of text, as :meth:`signer`; their words are neither numbered nor kept."""
        classes, constants = characters.classes(tokenizer.name), self._of_double()
        room = min(self.ngram, int(lengths.max(initial=0))) + ROW_HASHES

        def sign(first: int, stop: int, found: UInt32) -> None:
            held, least = np.empty(kernels.TOGETHER, np.uint64), np.empty_like(constants[-1])
            rows, hashes = slice(first, stop), np.empty(room, np.uint64)
            fixed = classes, np.empty(BLOCK, np.uint8), self.ngram, *constants, hashes, held, least
            sign_text(addresses[rows], lengths[rows], *fixed, found)

        return sign

    def _of_double(self) -> tuple[np.uint64, np.uint64, UInt32]:
        """Return base and power of n-grams' polynomials; factors of permutations, up to a multiple of a vector."""
        factors, (base,) = self.constants()
        padded = np.zeros(-(-self.permutations // kernels.LANES) * kernels.LANES, np.uint32)
        padded[: self.permutations] = factors
        return base, np.uint64(pow(int(base), self.ngram, 1 << 64)), padded

    def _double(self, laid: LaidWords) -> SignRows:
        hashes = (word_hashes if self.name == "double" else fast_hashes)(laid.vocabulary)
        constants = self._of_double()

        def sign(first: int, stop: int, found: UInt32) -> None:
            held, least = np.empty(kernels.TOGETHER, np.uint64), np.empty_like(constants[-1])
            fixed = first, stop, self.ngram, hashes, *constants, held, least
            kernels.sign_double(laid.starts, laid.words, *fixed, found)

        return sign

    def _affine(self, laid: LaidWords) -> SignRows:
        constants, offsets, data = self.constants(), laid.vocabulary.offsets, laid.vocabulary.data

        def sign(first: int, stop: int, found: UInt32) -> None:
            room = kernels.longest_joined(laid.starts, laid.words, first, stop, offsets)
            kernels.sign_affine(
                laid.starts,
                laid.words,
                first,
                stop,
                self.ngram,
                offsets,
                data,
                self.name == "datasketch",
                *constants,
                np.empty(room, np.uint8),
                np.empty(int(laid.counts[first:stop].max(initial=0)) + 1, np.int64),
                np.empty(2 * LANES, np.int64),
                np.empty(SCRATCH, np.uint32),
                np.empty(LANES, np.uint64),
                found,
            )

        return sign


def word_hashes(words: Vocabulary) -> UInt64:
    """Return a hash of each word, uint64: the first eight bytes of its SHA-1."""
    found, offsets, data = np.empty(len(words), np.uint64), words.offsets, words.data

    def hash_some(chunk: tuple[int, int]) -> None:
        first, stop = chunk
        starts, lengths = np.empty((2, LANES), np.int64)
        hash_words(offsets, data, first, stop, starts, lengths, np.empty(SCRATCH, np.uint32), found[first:])

    map_parallel(hash_some, even_chunks(len(words), smallest=1 << 12))
    return found


def fast_hashes(words: Vocabulary) -> UInt64:
    """Return a hash of each word, uint64, for the scheme "fast"."""
    found, offsets, data = np.empty(len(words), np.uint64), words.offsets, words.data
    map_parallel(
        lambda some: hash_texts(offsets, data, *some, found[slice(*some)]), even_chunks(len(words), smallest=1 << 12)
    )
    return found
