"""Payloads: round trips, and refusal of everything else."""

from __future__ import annotations

import binascii
from collections.abc import Callable
from functools import cache
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError, TadocError
from polars_tadoc.model import payload
from tests import handmade
from tests.model.test_grammar import assert_same
from tests.strategies import columns, grammars


@cache
def real() -> str:
    """A payload of ordinary text."""
    rows = ["the cat sat on the mat, the cat sat on the mat"] * 5 + ["日本 x\ny", "the cat"]
    return str(tadoc.compress(pl.Series(rows)).ext.storage().struct.field("grammar").cast(pl.String)[0])


@cache
def frame() -> bytes:
    return b"".join(payload.pack(payload.decode(real())))


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


@pytest.mark.parametrize("piece", [50, 1000, 1 << 16])
def test_pieces_and_threads_and_parts_do_not_change_a_payload(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for coding in ("STRINGS", "NUMBERS"):
        monkeypatch.setattr(payload, coding, getattr(payload, coding)._replace(piece=piece))
    monkeypatch.setattr(payload, "BLOCK", piece // 50)
    texts = pl.Series([f"word{i % 97} and {chr(97 + i % 26)}x{i},\t{i % 5}" for i in range(1000)])
    (corpus,) = tadoc.column.split(tadoc.compress(texts))
    grammar = corpus.grammar
    encoded = set()
    for threads in (1, 2, 7):
        with tadoc.Config(threads=threads):
            encoded.add(payload.encode(grammar))
            rules = (grammar.rule_offsets, grammar.symbols)
            joined = payload.JoinedParts(grammar.tokenizer)
            words = payload.encode_words(grammar.vocabulary, grammar.gap_vocabulary)
            joined.add_words(words, *rules, grammar.level_offsets)
            compress_rules = joined.place(payload.pack_rules(*rules, grammar.level_offsets))
            joined.place(payload.pack_gaps(grammar.predicted_gaps, grammar.vocabulary_size, *rules))()
            compress_rules()
            encoded.add(str(joined.text(), "ascii"))
    (only,) = encoded
    frame = binascii.a2b_base64(only[payload.HEADER_LENGTH :], strict_mode=True)
    assert only[payload.HEADER_LENGTH :] == binascii.b2a_base64(frame, newline=False).decode()
    assert_same(payload.decode(only), grammar)


def test_equal_grammars_have_equal_payloads() -> None:
    rows = [f"line {i % 7} of {i % 3}, the end" for i in range(500)]
    one, two = (
        tadoc.compress(pl.Series(r)).ext.storage().struct.field("grammar").cast(pl.String) for r in (rows, list(rows))
    )
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
def test_altered_bytes_under_a_right_digest(edits: list[tuple[str, int, int]]) -> None:
    """What a digest cannot catch: someone sealed broken data. It is refused, or it is a valid grammar."""
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


NUMBERS = ["word_lengths", "gap_lengths", "levels", "rules", "first_symbols", "other_symbols", "word_gaps", "body_gaps"]


@given(
    field=st.sampled_from(NUMBERS),
    values=st.lists(st.one_of(st.integers(0, 6), st.sampled_from([0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])), max_size=6),
    levels=st.lists(st.integers(0, 3), max_size=4),
)
def test_any_numbers_under_a_right_digest(field: str, values: list[int], levels: list[int]) -> None:
    outcome(handmade.seal(handmade.stream(**{"levels": levels, field: values})))


@given(
    words=st.lists(st.tuples(st.integers(0, 255), st.integers(0, 300)), max_size=4),
    word_bytes=st.binary(max_size=12),
)
def test_any_front_coded_words(words: list[tuple[int, int]], word_bytes: bytes) -> None:
    shared, lengths = [a for a, _ in words], [b for _, b in words]
    got = outcome(
        handmade.seal(
            handmade.stream(
                shared_words=shared,
                word_lengths=lengths,
                word_bytes=word_bytes,
                **{"word_gaps": [0] * len(words), "levels": [], "rules": [], "first_symbols": [], "other_symbols": []},
                body_gaps=[],
            )
        )
    )
    if got is not None:
        assert [len(word.encode()) for word in got.vocabulary.to_pylist()] == lengths


def test_reads_the_format_as_it_is_defined() -> None:
    grammar = payload.decode(handmade.seal(handmade.stream()))
    assert_same(grammar, tadoc.Grammar.from_arrow(handmade.struct()))
    assert b"".join(payload.pack(grammar)) == handmade.stream()


@given(made=grammars(), gaps=st.lists(st.text(max_size=4), unique=True, max_size=4), data=st.data())
def test_round_trip_of_any_grammar(made: Any, gaps: list[str], data: st.DataObject) -> None:
    vocabulary_size, bodies, level_offsets, _ = made
    words = data.draw(
        st.lists(st.text(min_size=1, max_size=6), unique=True, min_size=vocabulary_size, max_size=vocabulary_size)
    )
    codes = st.integers(0, len(gaps))
    predicted = [
        *data.draw(st.lists(codes, min_size=vocabulary_size, max_size=vocabulary_size)),
        *(data.draw(codes) if place else 0 for body in bodies for place in range(len(body))),
    ]
    grammar = handmade.grammar(words, bodies, level_offsets, gaps, predicted)
    assert_same(payload.decode(payload.encode(grammar)), grammar)


def test_long_words_with_long_common_beginnings() -> None:
    words = ["x" * length for length in (254, 255, 256, 257, 600)] + ["x" * 600 + "é"]
    assert payload.decode(payload.encode(handmade.grammar(words))).vocabulary.to_pylist() == words


WRONG: dict[str, list[dict[str, Any]]] = {
    "counts do not match its bytes": [
        {"counts": {"words": 3}},
        {"counts": {"words": 1}},
        {"counts": {"rules": 5}},
        {"counts": {"words": (1 << 64) - 1}},
        {"counts": {"symbols": 1 << 62, "rules": 1 << 62}},
        {"tokenizer": b"words", "counts": {"tokenizer": 4}},
        {"shared_words": [0, 0, 0]},
    ],
    "rules' lengths do not match their symbols": [
        {"rules": [2, 3]},
        {"rules": [4, 0]},
        {"rules": [0, 4]},
        {"rules": [0xFFFFFFFF, 5]},
    ],
    "a front-coded word shares more bytes than the previous word has": [
        {"shared_words": [1, 0]},
        {"shared_words": [0, 2]},
        {"shared_words": [0, 1]},
        {"word_lengths": [1, 2]},
        {"word_lengths": [3, 0]},
        {"gap_lengths": [1]},
    ],
    "not UTF-8": [{"tokenizer": b"\xff"}],
    "[iI]nvalid UTF8": [{"word_bytes": b"a\xff"}, {"gap_bytes": b"\xe9,"}],
    "the vocabulary holds a word twice": [{"word_bytes": b"aa"}],
    "is neither a word nor a rule": [{"other_symbols": [1, 9]}, {"other_symbols": [1, 0xFFFFFFFF]}],
    "not on a lower level": [{"first_symbols": [4, 0]}, {"levels": [2]}],
    "level_offsets does not ascend": [{"levels": []}, {"levels": [1, 0, 1]}, {"levels": [0xFFFFFFFF, 3]}],
    "has fewer than two symbols": [{"rules": [1, 3]}],
    "predicted_gaps has a code that gap_vocabulary lacks": [{"word_gaps": [0, 2]}, {"body_gaps": [1, 0xFFFFFFFF]}],
}


@pytest.mark.parametrize(("message", "changes"), [(m, c) for m, cases in WRONG.items() for c in cases])
def test_message_names_the_grammar(message: str, changes: dict[str, Any]) -> None:
    text = handmade.seal(handmade.stream(**changes))
    with pytest.raises(InvalidGrammarError, match=f"^grammar {text[22:34]}…: .*{message}"):
        payload.decode(text)
    with pytest.raises(InvalidGrammarError, match=text[22:34]):
        tadoc.word_count(handmade.column(text, [[0]]))


def test_other_streams_under_a_right_digest() -> None:
    for data in (b"", bytes(8), bytes(63), frame()[:-300], frame()[:200], frame() + bytes(1), frame() + bytes(1 << 20)):
        assert outcome(handmade.seal(data)) is None


def test_words_that_unfold_into_more_than_the_limit() -> None:
    count = 2000
    text = handmade.seal(
        handmade.stream(
            shared_words=[0] + [255] * (count - 1),
            word_lengths=[256 + i for i in range(count)],
            word_bytes=bytes(256) + b"".join(bytes(1 + i) for i in range(1, count)),
            **{"word_gaps": [0] * count, "levels": [], "rules": [], "first_symbols": [], "other_symbols": []},
            body_gaps=[],
        )
    )
    assert payload.decode(text).vocabulary_size == count
    size = int(text[6:22], 16)
    with tadoc.Config(payload_limit_bytes=size), pytest.raises(LimitExceededError, match="decode to"):
        payload.decode(text)
