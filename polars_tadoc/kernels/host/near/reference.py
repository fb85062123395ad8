"""MinHash signatures in plain Python."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

PRIME = (1 << 61) - 1
ALL_32, ALL_64 = (1 << 32) - 1, (1 << 64) - 1


def ngrams(words: Sequence[str], size: int) -> list[tuple[str, ...]]:
    """Return the n-grams of a row; a row with fewer words is one, a row without words has none."""
    if not words:
        return []
    size = min(size, len(words))
    return [tuple(words[at : at + size]) for at in range(len(words) - size + 1)]


def hash_sha1(word: bytes) -> int:
    """Hash a word by the first eight bytes of its SHA-1."""
    return int.from_bytes(hashlib.sha1(word).digest()[:8], "big")


def hash_fast(word: bytes) -> int:
    """Hash a word's length, then eight bytes after another, each xored, multiplied, and its upper half xored."""
    h = len(word) * 0x9E3779B97F4A7C15 & ALL_64
    for at in range(0, len(word), 8):
        h = (h ^ int.from_bytes(word[at : at + 8], "little")) * 0x9E3779B97F4A7C15 & ALL_64
        h ^= h >> 32
    return h


def sign_double(
    words: Sequence[str], size: int, base: int, factors: Sequence[int], hash_word: Callable[[bytes], int]
) -> list[int]:
    """Sign a row by double hashing."""
    found = [ALL_32] * len(factors)
    for ngram in ngrams(words, size):
        h = 0
        for word in ngram:
            h = (h * base + hash_word(word.encode())) & ALL_64
        h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & ALL_64
        h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & ALL_64
        h ^= h >> 33
        x, y = h & ALL_32, h >> 32
        found = [min(least, (x + a * y) & ALL_32) for least, a in zip(found, factors, strict=True)]
    return found


def sign_affine(words: Sequence[str], size: int, is_prime: bool, a: Sequence[int], b: Sequence[int]) -> list[int]:
    """Sign a row as datasketch does: its scheme "legacy" if values are taken modulo a prime, or "affine32"."""
    found = [ALL_32] * len(a)
    for ngram in ngrams(words, size):
        x = int.from_bytes(hashlib.sha1(" ".join(ngram).encode()).digest()[:4], "little")
        if not is_prime:
            x = (x ^ x >> 16) * 0x85EBCA6B & ALL_32
            x = (x ^ x >> 13) * 0xC2B2AE35 & ALL_32
            x ^= x >> 16
        for k in range(len(a)):
            value = (x * a[k] + b[k]) & ALL_64
            found[k] = min(found[k], (value % PRIME if is_prime else value) & ALL_32)
    return found
