"""Codecs of postings: what is decoded is what was encoded, from memory and from a file's arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from polars_tadoc.engine.cpu import decode_lists
from polars_tadoc.errors import InvalidIndexError, LimitExceededError
from polars_tadoc.index.codecs import CODECS, Codec, numbers, pfordelta, require_codec
from polars_tadoc.index.codecs.numbers import pack_numbers, unpack_numbers
from polars_tadoc.kernels.postings.coded import BLOCK, PFORDELTA, RICE, SPARE_BYTES, Postings, Stream
from polars_tadoc.kernels.search import reference as reference_search

Lists = list[tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]]
MAX_DOCUMENTS = (1 << 32) - 2
BOUNDARIES = (1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 17)

codecs = st.sampled_from(list(CODECS.values()))


def a_list(size: int, density: float, outliers: float, seed: int) -> tuple[Any, Any]:
    """Return documents of geometric gaps, some of them huge, and counts."""
    random = np.random.default_rng(seed)
    gaps = random.geometric(density, size) * np.where(random.random(size) < outliers, 1 << 20, 1)
    gaps[0] -= 1
    documents = np.cumsum(gaps)
    counts = random.geometric(0.6, size) * np.where(random.random(size) < outliers, 1 << 18, 1)
    return documents[documents < MAX_DOCUMENTS].astype(np.uint32), counts[documents < MAX_DOCUMENTS].astype(np.uint32)


some_lists = st.lists(
    st.builds(
        a_list,
        st.sampled_from(BOUNDARIES),
        st.sampled_from([1.0, 0.9, 0.3, 0.01, 1e-5]),
        st.sampled_from([0.0, 0.02, 0.5]),
        st.integers(0, 1000),
    ),
    max_size=6,
).map(lambda lists: [one for one in lists if len(one[0])])


def joined(lists: Lists) -> tuple[Any, Any, Any, int]:
    """Return offsets, documents, counts and how many documents there are."""
    offsets = np.cumsum([0] + [len(documents) for documents, _ in lists])
    nothing = np.zeros(0, np.uint32)
    documents = np.concatenate([nothing, *(documents for documents, _ in lists)])
    counts = np.concatenate([nothing, *(counts for _, counts in lists)])
    return offsets, documents, counts, int(documents.max(initial=0)) + 1


def coded(codec: Codec, lists: Lists) -> Postings:
    return codec.encode(*joined(lists))


def everything(postings: Postings) -> Any:
    return np.arange(len(postings.frequencies), dtype=np.uint32)


EXTREMES: Lists = [
    (np.array([0, MAX_DOCUMENTS - 1], np.uint32), np.array([1, (1 << 32) - 1], np.uint32)),
    (np.array([MAX_DOCUMENTS - 1], np.uint32), np.array([(1 << 32) - 1], np.uint32)),
    (np.arange(BLOCK + 1, dtype=np.uint32), np.full(BLOCK + 1, (1 << 32) - 1, np.uint32)),
]


@given(codecs, some_lists)
@example(CODECS["pfordelta"], EXTREMES)
@example(CODECS["rice"], EXTREMES)
def test_lists_come_back(codec: Codec, lists: Lists) -> None:
    postings = coded(codec, lists)
    offsets, documents, counts = codec.decode(postings, everything(postings))
    assert [o.tolist() for o in (offsets, documents, counts)] == [o.tolist() for o in joined(lists)[:3]]
    for number, (its_documents, its_counts) in enumerate(lists):
        assert reference_search.decode_list(postings, number) == (its_documents.tolist(), its_counts.tolist())


@given(codecs, some_lists, st.data())
def test_some_lists_in_any_order(codec: Codec, lists: Lists, data: st.DataObject) -> None:
    postings = coded(codec, lists)
    chosen = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=8) if lists else st.just([]))
    offsets, documents, counts = decode_lists(postings, np.array(chosen, np.uint32))
    assert offsets.tolist() == np.cumsum([0] + [len(lists[number][0]) for number in chosen]).tolist()
    for k, number in enumerate(chosen):
        assert documents[offsets[k] : offsets[k + 1]].tolist() == lists[number][0].tolist()
        assert counts[offsets[k] : offsets[k + 1]].tolist() == lists[number][1].tolist()


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize("density", [1.0, 0.5, 0.01, 0.0001])
def test_long_lists_on_several_threads(codec: Codec, density: float) -> None:
    lists = [a_list(1 << 16, density, 0.01 if density == 0.5 else 0, seed) for seed in range(3)]
    postings = coded(codec, lists)
    _, documents, counts = codec.decode(postings, everything(postings))
    assert np.array_equal(documents, np.concatenate([documents for documents, _ in lists]))
    assert np.array_equal(counts, np.concatenate([counts for _, counts in lists]))


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_many_short_lists_share_bytes(codec: Codec) -> None:
    lists = [a_list(1 + seed % 3, 0.1, 0.01, seed) for seed in range(60_000)]
    postings = coded(codec, lists)
    _, documents, counts = codec.decode(postings, everything(postings))
    assert np.array_equal(documents, joined(lists)[1])
    assert np.array_equal(counts, joined(lists)[2])


@given(codecs, some_lists.filter(len), st.data())
def test_single_counts(codec: Codec, lists: Lists, data: st.DataObject) -> None:
    postings = coded(codec, lists)
    number = data.draw(st.integers(0, len(lists) - 1))
    place = data.draw(st.integers(0, len(lists[number][0]) - 1))
    assert codec.count(postings, number, place) == lists[number][1][place]
    for wrong in ((number, len(lists[number][0])), (number, -1), (len(lists), 0), (-1, 0)):
        with pytest.raises(IndexError, match="has no posting"):
            codec.count(postings, *wrong)


def by_hand(codec: int, values: list[int], width: int) -> Stream:
    """Code one list at any width, in plain Python."""
    bits = "".join(format(value, "b").zfill(64)[::-1][:width] for value in values)
    highs = [value >> width for value in values]
    blocks = [highs[at : at + BLOCK] for at in range(0, len(highs), BLOCK)]
    is_rice = codec == RICE
    unary = ["".join("0" * high + "1" for high in block) for block in blocks] if is_rice else []
    return Stream(
        np.array([width], np.uint8),
        _bytes(bits),
        np.array([0, (len(bits) + 7) // 8]),
        np.zeros(1, np.int64) if is_rice else np.cumsum([0] + [np.count_nonzero(block) for block in blocks]),
        np.array([] if is_rice else [k for block in blocks for k, high in enumerate(block) if high], np.uint8),
        np.array([] if is_rice else [high for high in highs if high], np.uint32),
        _bytes("".join(unary) if is_rice else ""),
        np.cumsum([0] + [len(one) for one in unary]) if is_rice else np.zeros(1, np.int64),
    )


def _bytes(bits: str) -> Any:
    packed = np.packbits(np.array([int(bit) for bit in bits], np.uint8), bitorder="little")
    return np.concatenate([packed, np.zeros(-len(packed) % 8 + SPARE_BYTES, np.uint8)])


@given(
    codecs, st.integers(0, 32), st.sampled_from(BOUNDARIES), st.sampled_from([0, 3, 200, 1 << 16]), st.integers(0, 99)
)
def test_any_width_is_decoded(codec: Codec, width: int, size: int, spread: int, seed: int) -> None:
    """Widths that no encoder would choose too: all values exceptions, no high parts, unary numbers of many words."""
    random = np.random.default_rng(seed)
    most = min((1 << 32) - 2, (spread << width) + (1 << width) - 1 if codec.number == RICE else (1 << 32) - 2)
    values = [int(value) for value in random.integers(0, most, size, endpoint=True)]
    if codec.number == RICE and spread > 200:  # millions of bits take a plain encoder long: one of them is enough
        values = [value if k == size // 2 else value & ((1 << width) - 1) for k, value in enumerate(values)]
    blocks = -(-size // BLOCK)
    gaps = by_hand(codec.number, [0] * size, 0)
    postings = Postings(
        codec.number,
        size,
        np.array([size], np.uint32),
        np.array([0, blocks]),
        np.arange(blocks, dtype=np.uint32) * BLOCK,
        gaps,
        by_hand(codec.number, values, width),
    )
    _, documents, counts = codec.decode(postings, everything(postings))
    assert documents.tolist() == list(range(size))
    assert counts.tolist() == [value + 1 for value in values]
    assert [codec.count(postings, 0, place) for place in range(size)] == counts.tolist()


def test_a_list_of_one_posting_has_no_low_bits_for_its_gap() -> None:
    for codec in CODECS.values():
        assert coded(codec, [(np.array([70_000], np.uint32), np.array([1], np.uint32))]).gaps.widths.tolist() == [0]


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_the_width_chosen_is_the_best(codec: Codec) -> None:
    documents, counts = a_list(3000, 0.01, 0.02, 1)
    postings = coded(codec, [(documents, counts)])
    values = np.diff(documents, prepend=0).astype(np.int64) - 1
    values[::BLOCK] = 0

    def bits(width: int) -> int:
        highs = values >> width
        if codec.number == RICE:
            return int(len(values) * (width + 1) + highs.sum())
        lengths = np.array([int(high).bit_length() for high in highs])
        return int(len(values) * width + (lengths + 8)[lengths > 0].sum())

    assert bits(int(postings.gaps.widths[0])) == min(bits(width) for width in range(33))


def test_a_count_of_more_than_32_bits_is_refused() -> None:
    with pytest.raises(LimitExceededError, match="4,294,967,295 times; split this document"):
        require_codec("rice").encode(np.array([0, 1]), np.zeros(1, np.uint32), np.array([1 << 32], np.uint64), 1)


def test_an_unknown_codec_lists_those_there_are() -> None:
    with pytest.raises(ValueError, match="codec='zip': use 'pfordelta' or 'rice'"):
        require_codec("zip")
    assert [require_codec(name).name for name in ("pfordelta", "rice")] == ["pfordelta", "rice"]
    assert [require_codec(name).number for name in ("pfordelta", "rice")] == [PFORDELTA, RICE]
    assert {codec.block_size for codec in CODECS.values()} == {BLOCK}


def _assert_same(one: Any, other: Any) -> None:
    for field, (a, b) in enumerate(zip(one, other, strict=True)):
        if isinstance(a, tuple):
            _assert_same(a, b)
        elif isinstance(a, int):
            assert a == b
        else:
            assert a.dtype == b.dtype, field
            assert np.array_equal(a, b), field


@given(codecs, some_lists)
@example(CODECS["pfordelta"], EXTREMES)
@example(CODECS["rice"], EXTREMES)
@example(CODECS["rice"], [])
def test_a_files_arrays_give_the_same_postings(codec: Codec, lists: Lists) -> None:
    postings = coded(codec, lists)
    parts = codec.pack(postings)
    assert {array.ndim for array in parts.values()} == {1}
    with by_kernels():
        _assert_same(postings, codec.unpack(parts, postings.documents, len(lists)))
    unpacked = codec.unpack(parts, postings.documents, len(lists))
    _assert_same(postings, unpacked)
    assert unpacked.gaps.low is parts["gaps.low"]  # a mapped file stays one


@given(
    st.lists(st.one_of(st.integers(0, 3), st.integers(0, 1 << 20), st.integers(0, (1 << 56) - 1)), max_size=300),
    st.integers(1, 40),
)
@example([0] * 10_000, 1)
@example([1 << 55] + [0] * 5_000, 3)
def test_packed_numbers_come_back(given: list[int], times: int) -> None:
    array = np.array(given * times, np.uint64)
    packed = pack_numbers(array)
    assert np.array_equal(unpack_numbers(packed, len(array)), array)
    with by_kernels():
        assert np.array_equal(unpack_numbers(packed, len(array)), array)
    for data, size in ((packed[:-1], len(array)), (packed, len(array) + 64), (packed.astype(np.int8), len(array))):
        with pytest.raises(InvalidIndexError):
            unpack_numbers(data, size)


@contextmanager
def by_kernels() -> Iterator[None]:
    """Let kernels read few numbers, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbers, "MANY", 0)
        patch.setattr(pfordelta, "MANY", 0)
        yield


def test_packed_numbers_are_small() -> None:
    random = np.random.default_rng(1)
    skewed = (random.random(10_000) < 0.02) * random.integers(0, 1 << 16, 10_000)
    assert len(pack_numbers(skewed.astype(np.uint64))) < 10_000 // 8 + 200 * 4 + 50
    assert len(pack_numbers(np.arange(1 << 10, dtype=np.uint64))) <= 10 * 1024 // 8 + 17


def _damages(parts: dict[str, Any], random: np.random.Generator) -> Any:
    """Yield what is left of the arrays after one damage each."""
    for name, array in parts.items():
        yield {other: kept for other, kept in parts.items() if other != name}
        yield parts | {name: array[:-1]}
        yield parts | {name: np.append(array, array[-1:])}
        yield parts | {name: array.astype(np.float64)}
        yield parts | {name: array.reshape(1, -1)}
        yield parts | {name: np.zeros(0, array.dtype)}
        for _ in range(30):
            flipped = array.copy()
            flipped.view(np.uint8)[random.integers(0, flipped.nbytes)] ^= np.uint8(1 << random.integers(0, 8))
            yield parts | {name: flipped}
        for fill in (0, 255, 170):
            yield parts | {name: np.full_like(array, fill) if array.itemsize == 1 else array * 0 + fill}


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize("reading", [nullcontext, by_kernels])
def test_damaged_arrays_are_refused_or_harmless(codec: Codec, reading: Any) -> None:
    lists = [a_list(size, 0.05, 0.05, size) for size in BOUNDARIES]
    lists += [a_list(3, 0.001, 0, seed) for seed in range(50)]
    postings = coded(codec, lists)
    refused = 0
    for parts in _damages(codec.pack(postings), np.random.default_rng(1)):
        try:
            with reading():
                damaged = codec.unpack(parts, postings.documents, len(lists))
        except InvalidIndexError:
            refused += 1
            continue
        offsets, documents, counts = codec.decode(damaged, everything(damaged))
        assert len(documents) == len(counts) == offsets[-1]
        assert documents.max() < postings.documents
        codec.count(damaged, 0, 0)
    assert refused > 6 * len(codec.pack(postings))


def test_sizes_that_do_not_fit_are_refused() -> None:
    codec = require_codec("pfordelta")
    postings = coded(codec, [a_list(500, 0.05, 0.02, 1), a_list(1, 0.5, 0, 2)])
    parts = codec.pack(postings)
    for documents, lists in ((400, 2), (postings.documents, 1), (postings.documents, 3), (postings.documents, 1 << 50)):
        with pytest.raises(InvalidIndexError):
            codec.unpack(parts, documents, lists)
