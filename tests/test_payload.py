"""Payloads: round trips, and refusal of everything else."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc import payload
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError, TadocError
from polars_tadoc.grammar import ARROW_TYPE
from tests import handmade
from tests.strategies import columns
from tests.test_grammar import assert_same


@cache
def real() -> str:
    """A payload of ordinary text."""
    rows = ["the cat sat on the mat, the cat sat on the mat"] * 5 + ["日本 x\ny", "the cat"]
    return str(tadoc.compress(pl.Series(rows)).struct.field("grammar").cast(pl.String)[0])


@cache
def frame() -> bytes:
    return handmade.frame_of(payload.decode(real()).to_arrow())


def outcome(text: str) -> tadoc.Grammar | None:
    """Decode and use a payload; None where it is refused. Anything but a TadocError fails the test."""
    try:
        grammar = payload.decode(text)
        symbols = range(min(50, grammar.vocabulary_size + grammar.rule_count))
        column = handmade.column(text, [[symbol] for symbol in symbols], [b"\x00\x00"] * len(symbols))
        for call in (tadoc.decompress, tadoc.word_count, tadoc.info):
            call(column)  # type: ignore[operator]
    except TadocError:
        return None
    return grammar


@given(rows=columns)
def test_round_trip(rows: list[str | None]) -> None:
    for corpus in tadoc.column.split(tadoc.compress(pl.Series(rows, dtype=pl.String))):
        encoded = payload.encode(corpus.grammar)
        decoded = payload.decode(encoded)
        assert_same(decoded, corpus.grammar)
        assert payload.encode(decoded) == encoded
        assert payload.key(encoded) == f"{encoded[: payload.HEADER_LENGTH]}:{len(encoded)}"
        assert corpus.key == payload.key(encoded)


def test_equal_grammars_have_equal_payloads() -> None:
    rows = [f"line {i % 7} of {i % 3}, the end" for i in range(500)]
    one, two = (tadoc.compress(pl.Series(r)).struct.field("grammar").cast(pl.String) for r in (rows, list(rows)))
    assert one.unique().to_list() == two.unique().to_list()
    assert payload.encode(payload.decode(one[0])) == one[0]


def test_a_grammar_without_words() -> None:
    encoded = payload.encode(handmade.grammar([]))
    assert payload.decode(encoded).vocabulary_size == 0


HEADER = payload.HEADER_LENGTH
REFUSED: dict[str, list[Callable[[str], str]]] = {
    "does not start with TADOC": [lambda p: "", lambda p: "junk", lambda p: "tadoc" + p[5:], lambda p: " " + p],
    "payload format '9', this release reads '2'": [lambda p: p[:5] + "9" + p[6:]],
    "payload format ''": [lambda p: p[:5]],
    "the payload is damaged": [
        lambda p: p[:6],
        lambda p: p[:30],
        lambda p: p[:HEADER],
        lambda p: p[:-1],
        lambda p: p[:-4],
        lambda p: p + "AAAA",
        lambda p: p[:6] + "not hexadecimal!" + p[22:],
        lambda p: p[:22] + "0" * 32 + p[HEADER:],
        lambda p: p[: HEADER + 8] + ("B" if p[HEADER + 8] == "A" else "A") + p[HEADER + 9 :],
        lambda p: p[: HEADER + 8] + "é" + p[HEADER + 9 :],
        lambda p: p[: HEADER + 8] + "\n" + p[HEADER + 9 :],
    ],
    "": [  # any message: zstd's own
        lambda p: p[:6] + "0" * 16 + p[22:],
        lambda p: p[:6] + "-" + "0" * 14 + "1" + p[22:],
        lambda p: p[:6] + f"{int(p[6:22], 16) - 1:016x}" + p[22:],
        lambda p: p[:6] + f"{int(p[6:22], 16) + 1:016x}" + p[22:],
    ],
}


@pytest.mark.parametrize(("message", "change"), [(m, c) for m, cases in REFUSED.items() for c in cases])
def test_says_what_is_wrong(message: str, change: Callable[[str], str]) -> None:
    with pytest.raises(InvalidGrammarError, match=f"^grammar.*{message}"):
        payload.decode(change(real()))


@pytest.mark.parametrize("size", [lambda p: "+" + p[7:22], lambda p: " " + p[7:22], lambda p: "0x" + p[8:22]])
def test_one_grammar_has_one_header(size: Callable[[str], str]) -> None:
    with pytest.raises(InvalidGrammarError):
        payload.decode(real()[:6] + size(real()) + real()[22:])


@pytest.mark.parametrize("size", [(4 << 30) + 1, 1 << 60, (1 << 64) - 1])
def test_declared_size_over_the_limit(size: int) -> None:
    with pytest.raises(LimitExceededError, match=f"declares {size:,} bytes.*payload_limit_bytes"):
        payload.decode(real()[:6] + f"{size:016x}" + real()[22:])


def test_payload_limit_is_a_setting() -> None:
    with tadoc.Config(payload_limit_bytes=100), pytest.raises(LimitExceededError, match="the limit is 100"):
        payload.decode(real())


def test_a_bomb_costs_no_more_than_it_declares() -> None:
    bomb = handmade.seal(bytes(1 << 24), size=1000)
    assert len(bomb) < 5000
    with pytest.raises(InvalidGrammarError):
        payload.decode(bomb)


@given(st.text(max_size=200))
def test_any_text_is_refused(text: str) -> None:
    assert outcome(text) is None
    assert outcome("TADOC2" + text) is None


@given(
    kind=st.sampled_from(["flip", "cut", "insert", "swap"]),
    place=st.integers(0, 4000),
    other=st.integers(0, 4000),
    character=st.sampled_from("0123456789abcdefABZ+/= \n\x00é"),
)
def test_altered_payload_never_shows_another_grammar(kind: str, place: int, other: int, character: str) -> None:
    text = real()
    place, other = place % len(text), other % len(text)
    low, high = sorted((place, other))
    altered = {
        "flip": text[:place] + character + text[place + 1 :],
        "cut": text[:low] + text[high:],
        "insert": text[:place] + character + text[place:],
        "swap": text[:low] + text[high] + text[low + 1 : high] + text[low] + text[high + 1 :] if low < high else text,
    }[kind]
    assume(altered != text)
    got = outcome(altered)
    if got is not None:  # base64 leaves the last digit some bits that say nothing
        assert_same(got, payload.decode(text))


@given(place=st.integers(6, 21), character=st.sampled_from("0123456789abcdef+-_ x\x00é"))
def test_altered_size_never_shows_another_grammar(place: int, character: str) -> None:
    text = real()
    got = outcome(text[:place] + character + text[place + 1 :])
    if got is not None:
        assert_same(got, payload.decode(text))


@given(
    edits=st.lists(
        st.tuples(
            st.sampled_from(["set", "flip", "cut", "insert", "word"]),
            st.integers(0, 1 << 14),
            st.sampled_from([0, 1, 2, 4, 8, 127, 128, 255]),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_altered_arrow_under_a_right_digest(edits: list[tuple[str, int, int]]) -> None:
    """What a digest cannot catch: someone sealed broken Arrow data. It is refused, or it is a valid grammar."""
    data = bytearray(frame())
    for kind, place, value in edits:
        place %= max(len(data), 1)
        if kind == "set":
            data[place : place + 1] = bytes([value])
        elif kind == "flip" and data:
            data[place] ^= 1 << value % 8
        elif kind == "cut":
            del data[place : place + value]
        elif kind == "insert":
            data[place:place] = bytes(value)
        else:
            data[place : place + 4] = (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", bytes(4))[value % 3]
    outcome(handmade.seal(bytes(data)))


@given(
    field=st.sampled_from(["rule_offsets", "symbols", "level_offsets"]),
    values=st.lists(st.one_of(st.integers(0, 6), st.sampled_from([0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])), max_size=6),
    levels=st.lists(st.integers(0, 3), max_size=4),
)
def test_any_arrays_under_a_right_digest(field: str, values: list[int], levels: list[int]) -> None:
    outcome(handmade.seal(handmade.frame_of(handmade.struct(**{"level_offsets": levels, field: values}))))


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 99},
        {"symbols": [0, 1, 2, 9]},
        {"symbols": [3, 1, 2, 2]},
        {"level_offsets": [0, 2]},
        {"rule_offsets": [0, 5, 4]},
        {"vocabulary": ["a", None]},
        {"symbols": None},
    ],
)
def test_message_names_the_grammar(changes: dict[str, Any]) -> None:
    text = handmade.seal(handmade.frame_of(handmade.struct(**changes)))
    with pytest.raises(InvalidGrammarError, match=f"^grammar {text[22:34]}…: "):
        payload.decode(text)
    with pytest.raises(InvalidGrammarError, match=text[22:34]):
        tadoc.word_count(handmade.column(text, [[0]]))


def test_other_streams_under_a_right_digest() -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema(list(ARROW_TYPE))):
        pass  # a schema and no batch
    for data in (b"", b"\xff\xff\xff\xff\x00\x00\x00\x00", sink.getvalue().to_pybytes(), frame()[:-300], frame()[:200]):
        assert outcome(handmade.seal(data)) is None


def test_ragged_buffer_under_a_right_digest() -> None:
    words = handmade.struct().field("vocabulary")[0].values
    offsets = pa.py_buffer(words.buffers()[1].to_pybytes()[:24] + b"\x00" * 4)
    ragged = pa.LargeStringArray.from_buffers(2, offsets, words.buffers()[2])
    cell = pa.LargeListArray.from_arrays(pa.array([0, 2], pa.int64()), ragged)
    array = pa.StructArray.from_arrays([cell, *handmade.struct().flatten()[1:]], fields=list(ARROW_TYPE))
    assert tadoc.Grammar.from_arrow(array).words.offsets.tolist() == [0, 1, 2]


def stream_of(array: pa.StructArray, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, pa.schema(list(ARROW_TYPE)), options=options) as writer:
        writer.write_batch(pa.RecordBatch.from_struct_array(array))
    return bytes(sink.getvalue().to_pybytes())


def test_buffers_that_unfold_inside_the_stream() -> None:
    """Arrow's own compression would decode to more than the payload declares."""
    array = handmade.struct()
    assert payload.decode(handmade.seal(stream_of(array))).tokenizer
    with pytest.raises(InvalidGrammarError, match="compressed buffers"):
        payload.decode(handmade.seal(stream_of(array, "zstd")))


def test_bytes_that_belong_to_nothing() -> None:
    with pytest.raises(InvalidGrammarError, match="belong to nothing"):
        payload.decode(handmade.seal(stream_of(handmade.struct()) + bytes(1 << 20)))
