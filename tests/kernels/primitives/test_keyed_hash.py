"""Keys that were made to share a place in a hash table, by its public arithmetic of before, do not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from polars_tadoc.kernels.host.sequences import hash_counts
from polars_tadoc.kernels.primitives.keyed_hash import keyed, keyed_more
from polars_tadoc.kernels.repair import pairs_cpu
from polars_tadoc.kernels.tokenize import tokenize_cpu
from polars_tadoc.runtime.jit import kernel

K1, K2, K3 = (np.uint64(k) for k in (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xC2B2AE3D27D4EB4F))
_32 = np.uint64(32)
MANY = 300


@kernel
def _hash_all(numbers: object, hashes: object) -> None:
    for k in range(len(numbers)):  # type: ignore[arg-type]
        hashes[k, 0] = keyed(numbers[k, 0], numbers[k, 1], 16)  # type: ignore[index]
        hashes[k, 1] = keyed_more(numbers[k, 0], numbers[k, 1])  # type: ignore[index]


@pytest.mark.parametrize("varied", [0, 1])
@pytest.mark.parametrize("shift", [0, 30])
def test_numbers_that_differ_in_few_bits_are_spread(varied: int, shift: int) -> None:
    numbers = np.zeros((256, 2), np.uint64)
    numbers[:, varied] = np.arange(256, dtype=np.uint64) << np.uint64(shift)
    hashes = np.empty_like(numbers)
    _hash_all(numbers, hashes)
    for some in (hashes[:, 0] & np.uint64(0xFFFFF), hashes[:, 0] >> np.uint64(44), hashes[:, 1]):
        assert len(np.unique(some)) > 200


def test_words_that_shared_a_slot_do_not() -> None:
    pick = np.random.default_rng(1)
    high = pick.integers(0x21, 0x7F, (1 << 21, 8)).astype(np.uint8).view(np.uint64).ravel()
    of_length = np.uint64(16 * int(K3) % (1 << 64))
    low = np.uint64(0x6162636465666768) ^ (high * K1) ^ of_length
    is_text = ((low.view(np.uint8).reshape(-1, 8) > 0x20) & (low.view(np.uint8).reshape(-1, 8) < 0x7F)).all(axis=1)
    low, high = low[is_text], high[is_text]
    assert len(low) > MANY
    assert len(np.unique((low ^ (high * K1) ^ of_length) * K2)) == 1
    places = [tokenize_cpu.hash_of(a, b, 16) >> 44 for a, b in zip(low[:MANY], high[:MANY], strict=True)]
    assert len(set(places)) > 0.9 * MANY
    words = [(a.tobytes() + b.tobytes()).decode() for a, b in zip(low[:MANY], high[:MANY], strict=True)]
    column = pl.Series("text", [" ".join(words)]).tadoc.compress(tokenizer="whitespace")
    assert column.tadoc.decompress().to_list() == [" ".join(words)]


def test_long_words_that_had_one_hash_do_not() -> None:
    def state(h: np.uint64, part: int) -> np.uint64:
        h = (h ^ np.uint64(part)) * K2
        return h ^ (h >> _32)

    with np.errstate(over="ignore"):
        start = np.uint64(32) * K1
        wanted = state(start, 0) ^ np.uint64(7)
        made = [[part, int(state(start, part) ^ wanted), 5, 6] for part in range(50)]
    words = [np.array(word, np.uint64) for word in made]
    keys = [tokenize_cpu.key_of(word.ctypes.data, 32) for word in words]
    assert len({low for low, _ in keys}) == len(words)
    assert {high for _, high in keys} == {6}


def test_sequences_that_shared_a_slot_do_not() -> None:
    hashes = np.arange(MANY, dtype=np.uint64) + (np.uint64(5) << np.uint64(40))  # one bucket, one slot
    keys = hashes * np.uint64(pow(int(K2), -1, 1 << 64))
    keys = (keys ^ (keys >> _32)) * np.uint64(pow(int(K1), -1, 1 << 64))
    found = [hash_counts.hashed(key) for key in keys]
    assert len({h >> 44 for h in found}) > 0.9 * MANY
    assert [hash_counts._unhashed(np.uint64(h)) for h in found] == keys.tolist()


def test_pairs_that_shared_a_slot_do_not() -> None:
    keys = (np.arange(MANY, dtype=np.uint64) + (np.uint64(5) << _32)) * np.uint64(pow(int(K2), -1, 1 << 64))
    assert len(np.unique((keys * K2) >> _32)) == 1
    assert len({pairs_cpu.slot_of(key, (1 << 24) - 1) for key in keys}) > 0.9 * MANY
