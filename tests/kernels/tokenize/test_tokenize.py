from __future__ import annotations

import re
import sys
import tracemalloc
import unicodedata
from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.kernels.repair import reference as repair_reference
from polars_tadoc.kernels.tokenize import characters, unicode_ranges
from polars_tadoc.kernels.tokenize import reference as tokenize_reference
from polars_tadoc.kernels.tokenize import tokenize_cpu as kernels
from polars_tadoc.kernels.tokenize import tokenizer as stage
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, Tokens, tokenize
from tests import regenerate_characters
from tests.handmade import unflatten
from tests.strategies import columns, columns_without_nulls, texts

ASSIGNED = [chr(p) for p in range(sys.maxunicode + 1) if unicodedata.category(chr(p)) not in ("Cn", "Cs")]
PATTERNS = [
    (r"[a-z]+", 0),
    (r"[A-Z]+", re.IGNORECASE),
    (r"^.", re.MULTILINE),
    (r"a.b", re.DOTALL),
    (r"(a|b)(c?)", 0),
    (r"\S*", 0),
    (r"é+|日", 0),
    (r"\bthe\b", 0),
    (r"[^,\n]+", re.I | re.M | re.S),
    # matches of nothing stand between words without being any
    (r"a*", 0),
    (r"\b", 0),
    (r"$", re.MULTILINE),
    (r"", 0),
]


def cut(
    texts: Sequence[str | None], tokenizer: str | re.Pattern[str], threads: int = 1
) -> tuple[Tokens, list[list[str]], list[list[str]]]:
    """Run the stage; returns what it gave, and each row's words and gaps."""
    with tadoc.Config(threads=threads):
        tokens = tokenize(pl.Series(texts, dtype=pl.String), Tokenizer.from_argument(tokenizer))
    vocabulary, gap_vocabulary = tokens.vocabulary.to_pylist(), tokens.gap_vocabulary.to_pylist()
    ids = unflatten(tokens.sequence)
    data = tokens.gap_data.tobytes()
    offsets = tokens.gap_offsets.tolist()
    gaps = [
        repair_reference.decode_gaps(data[first:stop], len(row), gap_vocabulary)
        for row, first, stop in zip(ids, offsets[:-1], offsets[1:], strict=True)
    ]
    return tokens, [[vocabulary[i] for i in row] for row in ids], gaps


def interleaved(words: list[str], gaps: list[str]) -> str:
    return gaps[0] + "".join(word + gap for word, gap in zip(words, gaps[1:], strict=True))


def without_unassigned(rows: list[str | None]) -> list[str | None]:
    """Replace code points that this Python's tables do not know yet: to Polars' they may be letters."""
    return [row and "".join(c if unicodedata.category(c) != "Cn" else "?" for c in row) for row in rows]


@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
@given(rows=columns)
def test_matches_reference(tokenizer: str, rows: list[str | None]) -> None:
    rows = without_unassigned(rows)
    _, words, gaps = cut(rows, tokenizer)
    assert list(zip(words, gaps, strict=True)) == [tokenize_reference.tokenize(row or "", tokenizer) for row in rows]


@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
@pytest.mark.parametrize("piece_bytes", [16, 50])
@given(rows=columns)
def test_rows_in_pieces_match_reference(tokenizer: str, piece_bytes: int, rows: list[str | None]) -> None:
    rows = without_unassigned(rows)
    with patch.object(stage, "PIECE_BYTES", piece_bytes):
        _, words, gaps = cut(rows, tokenizer, threads=2)
    assert list(zip(words, gaps, strict=True)) == [tokenize_reference.tokenize(row or "", tokenizer) for row in rows]


@pytest.mark.parametrize("length", [1, 60, 61, 62, 63, 64, 65, 127, 128, 129, 192])
@pytest.mark.parametrize("character", ["a", "é", "日", "𝒳", " ", "\u3000", "."])
@pytest.mark.parametrize("tail", ["", "a", " b", "日", "か\u3099", "\u3099"])
def test_blocks_of_64_bytes_join(length: int, character: str, tail: str) -> None:
    rows: list[str | None] = [prefix + character * length + tail for prefix in ("", "x", "xy", "é ")]
    for tokenizer in ("words", "whitespace"):
        _, words, gaps = cut(list(rows), tokenizer)
        assert list(zip(words, gaps, strict=True)) == [
            tokenize_reference.tokenize(row or "", tokenizer) for row in rows
        ]


@given(rows=columns)
def test_words_interleave_with_gaps_to_the_text(rows: list[str | None]) -> None:
    _, words, gaps = cut(rows, "words")
    assert [interleaved(w, g) for w, g in zip(words, gaps, strict=True)] == [row or "" for row in rows]


@given(rows=columns)
def test_whitespace_is_str_split(rows: list[str | None]) -> None:
    _, words, _ = cut(rows, "whitespace")
    assert words == [(row or "").split() for row in rows]


@given(rows=columns)
def test_words_are_the_runs_of_polars_where_no_character_stands_alone(rows: list[str | None]) -> None:
    rows = [row and "".join(c for c in row if not tokenize_reference.is_single(c)) for row in rows]
    expected = pl.Series(rows, dtype=pl.String).fill_null("").str.extract_all(r"\w+").to_list()
    single = pl.Series(rows, dtype=pl.String).str.contains(regenerate_characters.SINGLE).fill_null(False).to_list()
    _, words, _ = cut(rows, "words")
    for row_words, row_expected, has_single in zip(words, expected, single, strict=True):
        assert has_single or row_words == row_expected


@pytest.mark.parametrize(("pattern", "flags"), PATTERNS)
@given(rows=columns_without_nulls)
def test_regex_matches_are_the_words(pattern: str, flags: int, rows: list[str]) -> None:
    compiled = re.compile(pattern, flags)
    for folded in "\u0130\u017f\u212a":  # letters that only one of the two engines folds to ASCII
        rows = [row.replace(folded, "") for row in rows]
    _, words, gaps = cut(rows, compiled)
    # \S and \b are the engine's own: Python counts U+001C to U+001F as space and marks as no letters
    if "\\" not in pattern:
        assert words == [tokenize_reference.tokenize(row, compiled)[0] for row in rows]
    else:
        found = pl.Series(rows, dtype=pl.String).str.extract_all(pattern).to_list()
        assert words == [[word for word in row if word] for row in found]
    assert [interleaved(w, g) for w, g in zip(words, gaps, strict=True)] == rows


@pytest.mark.parametrize("pattern", [r"[a-z]+", r"[A-Z]+", r"a b"])
def test_regex_flags(pattern: str) -> None:
    text = "ab AB a\nb a b ÉÀ"
    for flags in (0, re.I, re.M, re.S, re.I | re.S | re.M, re.A, re.A | re.I):
        compiled = re.compile(pattern, flags)
        assert cut([text], compiled)[1] == [tokenize_reference.tokenize(text, compiled)[0]], compiled


def test_refuses_verbose_regex() -> None:
    with pytest.raises(ValueError, match=r"without re\.VERBOSE"):
        tadoc.compress(pl.Series(["a"]), tokenizer=re.compile("[ a-z]+  # letters", re.VERBOSE))


def test_ascii_regex_with_negated_class() -> None:
    with pytest.raises(ValueError, match="cannot run"):
        cut(["a b é"], re.compile(r"[^ ]+", re.ASCII))


def test_regex_gaps_are_what_stood_between_the_matches() -> None:
    _, words, gaps = cut(["cathedral cat"], re.compile(r"\bcat\b"))
    assert (words, gaps) == ([["cat"]], [["cathedral ", ""]])


@pytest.mark.parametrize("pattern", [r"a(?=b)", r"(?<!a)b", r"(a)\1", r"(?P<x>a)(?P=x)"])
def test_refuses_what_the_regex_engine_has_not(pattern: str) -> None:
    with pytest.raises(ValueError, match="no look-around, no back-references"):
        tadoc.compress(pl.Series(["a"]), tokenizer=re.compile(pattern))


def test_refuses_regex_over_bytes() -> None:
    with pytest.raises(TypeError, match="compile it from a str"):
        tadoc.compress(pl.Series(["a"]), tokenizer=re.compile(b"a"))  # type: ignore[arg-type]


@pytest.mark.parametrize("tokenizer", ["word", "[a-z]+", 3])
def test_refuses_unknown_tokenizer(tokenizer: object) -> None:
    with pytest.raises(ValueError, match=r'use "words", "whitespace", "xml", "code" or a compiled regex'):
        tadoc.compress(pl.Series(["a"]), tokenizer=tokenizer)  # type: ignore[arg-type]


@given(rows=columns)
def test_vocabulary_by_falling_frequency_then_code_point(rows: list[str | None]) -> None:
    tokens, words, _ = cut(rows, "words")
    counts: dict[str, int] = {}
    for word in (word for row in words for word in row):
        counts[word] = counts.get(word, 0) + 1
    assert tokens.vocabulary.to_pylist() == sorted(counts, key=lambda word: (-counts[word], word))


def test_threads_do_not_show() -> None:
    rows = [f"row {i % 97}, of {i % 13} parts: 日本 {'x' * (i % 31)}\n" * (i % 5) for i in range(6000)]
    one, two, three = (cut(rows, "words", threads)[0] for threads in (1, 2, 3))
    for other in (two, three):
        assert other.vocabulary.equals(one.vocabulary)
        assert other.gap_vocabulary.equals(one.gap_vocabulary)
        assert other.sequence.tolist() == one.sequence.tolist()
        assert other.gap_data.tobytes() == one.gap_data.tobytes()
        assert other.gap_offsets.tolist() == one.gap_offsets.tolist()


def test_threads_do_not_show_with_a_regex() -> None:
    rows = [f"row {i % 97}, of {i % 13} parts " * (i % 5) for i in range(6000)]
    one, two = (cut(rows, re.compile("[a-z]+"), threads) for threads in (1, 2))
    assert one[1:] == two[1:]
    assert one[1] == [re.findall("[a-z]+", row) for row in rows]


@pytest.mark.parametrize("lossless", [True, False])
def test_a_long_row_is_shared_among_threads(lossless: bool) -> None:
    row = "".join(f"entry {i % 97}: {'か' * (i % 3)} {i * i % 1013};{' ' * (i % 7)}" for i in range(6000))
    text = pl.Series(["before", row, None, row[:70_000], "after"])
    results = []
    for threads, piece_bytes in ((1, 1 << 30), (1, 1 << 12), (2, 1 << 12), (3, 1 << 10)):
        with tadoc.Config(threads=threads), patch.object(stage, "PIECE_BYTES", piece_bytes):
            results.append(tokenize(text, Tokenizer("words"), lossless=lossless))
    for other in results[1:]:
        assert other.vocabulary.equals(results[0].vocabulary)
        assert other.gap_vocabulary.equals(results[0].gap_vocabulary)
        assert other.sequence.tolist() == results[0].sequence.tolist()
        assert other.gap_data.tobytes() == results[0].gap_data.tobytes()
        assert other.gap_offsets.tolist() == results[0].gap_offsets.tolist()


def test_an_error_in_one_piece_ends_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(stage, "PIECE_BYTES", 16)
    monkeypatch.setattr(stage, "scan", fail)
    with tadoc.Config(threads=2), pytest.raises(MemoryError, match="no room"):
        tokenize(pl.Series(["some words"] * 100), Tokenizer("words"))


def test_words_that_differ_late_or_only_in_length() -> None:
    stems = ["", "a" * 7, "b" * 8, "c" * 15, "d" * 16, "e" * 17, "f" * 40]
    words = [stem + end for stem in stems for end in ("x", "y", "x\0", "x\0\0", "xy", "é")]
    tokens, rows, _ = cut([" ".join(words), " ".join(reversed(words))], "whitespace")
    assert rows == [words, words[::-1]]
    assert tokens.vocabulary.to_pylist() == sorted(words)


def test_gap_ids_and_distances_of_all_sizes() -> None:
    gaps = ["." * i for i in range(2, 400)] + [f"{'-' * (i % 150)}{'+' * (i // 150)}!" for i in range(20_000)]
    rows = ["".join(f"w{gap}" for gap in gaps), "w " * 200 + "w." + "w " * 20_000 + "w.w" * 3]
    _, words, found = cut(rows, "words")
    assert [interleaved(w, g) for w, g in zip(words, found, strict=True)] == rows


def test_many_distinct_words_grow_the_tables() -> None:
    row = " ".join(f"w{i}" for i in range(20_000)) + "".join(f"x{'.' * i}" for i in range(1, 1200))
    tokens, words, gaps = cut([row, row], "words")
    assert interleaved(words[1], gaps[1]) == row
    assert len(tokens.vocabulary) == len(set(words[0]))


@pytest.mark.parametrize("tokenizer", ["words", "whitespace", re.compile("[a-z0-9]+")])
@pytest.mark.parametrize("threads", [1, 2])
def test_tables_grow_within_rows_and_at_their_ends(tokenizer: str | re.Pattern[str], threads: int) -> None:
    parts = [f"w{i * i}" + (" " if i % 37 else "," * (i % 97) + " ") for i in range(6000)]
    rows = ["".join(parts[i : i + size]) for size in (1, 180, 3000) for i in range(0, 6000, size)]
    with patch.object(stage, "PIECE_BYTES", 1 << 13):
        _, words, gaps = cut(rows, tokenizer, threads)
    assert list(zip(words, gaps, strict=True)) == [tokenize_reference.tokenize(row, tokenizer) for row in rows]
    assert sum(tadoc.word_count(pl.Series(rows), tokenizer=tokenizer)["count"].to_pylist()) == sum(map(len, words))


@given(text=texts)
def test_long_and_short_buffers(text: str) -> None:
    """Strings of up to 12 bytes stand in Polars' views, longer ones outside: both, and slices of both."""
    series = pl.Series(["skipped", text, text * 3, None, "x" + text]).slice(1)
    tokens = tokenize(series.rechunk(), Tokenizer("words"))
    vocabulary = tokens.vocabulary.to_pylist()
    rows = [[vocabulary[i] for i in row] for row in unflatten(tokens.sequence)]
    assert rows == cut([text, text * 3, None, "x" + text], "words")[1]


def test_chunks_and_slices() -> None:
    rows = [f"row {i}, of many" if i % 3 else None for i in range(400)]
    whole = pl.Series(rows)
    parts = pl.concat([whole.slice(i, 7) for i in range(0, 400, 7)], rechunk=False)
    assert parts.n_chunks() > 1
    for text in (parts, parts.slice(13, 300), pl.concat([whole, whole])[100:500].rechunk().slice(1)):
        expected = [tokenize_reference.tokenize(row or "", "words")[0] for row in text.to_list()]
        tokens = tokenize(text, Tokenizer("words"))
        vocabulary = tokens.vocabulary.to_pylist()
        assert [[vocabulary[i] for i in row] for row in unflatten(tokens.sequence)] == expected


def foreign(rows: list[bytes], kind: pa.DataType) -> pl.Series:
    """Strings as another library hands them over, which Polars does not check."""
    return pl.Series(
        "body", pl.from_arrow(pa.Array.from_buffers(kind, len(rows), pa.array(rows, twin(kind)).buffers()))
    )


def twin(kind: pa.DataType) -> pa.DataType:
    return {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}[kind]


@pytest.mark.parametrize("row", [0, 7, 39])
def test_names_the_row_that_is_not_utf8_where_threads_check(row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "CHECKED_BYTES", 16)
    rows = ["für 日本".encode()] * 40
    rows[row] = b"long enough to lie outside \x80"
    with tadoc.Config(threads=5):
        stage.require_utf8(foreign(rows[:row] + rows[row + 1 :], pa.string()))
        with pytest.raises(ValueError, match=rf'column "body", row {row}: not UTF-8 \('):
            stage.require_utf8(foreign(rows, pa.string()))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
@pytest.mark.parametrize("tokenizer", ["words", "whitespace", re.compile("[a-z]+")])
@pytest.mark.parametrize(
    "bad", [b"x\xed\xa0\x80y", b"\xff", b"\xc0\xaf", b"\xe6\x97", b"long enough to lie outside \x80"]
)
def test_refuses_what_is_not_utf8(bad: bytes, tokenizer: str | re.Pattern[str], kind: pa.DataType) -> None:
    with pytest.raises(ValueError, match=r'column "body", row 2: not UTF-8 \('):
        tokenize(foreign([b"fine", "für 日本".encode(), bad, b"z"], kind), Tokenizer.from_argument(tokenizer))
    with pytest.raises(ValueError, match=r'column "body", row 2: not UTF-8 \('):
        tadoc.compress(foreign([b"fine", b"", bad, b"z"], kind), tokenizer=tokenizer, rows_per_grammar=1)
    fine = tokenize(foreign([b"fine", "für 日本".encode()], kind), Tokenizer.from_argument(tokenizer))
    assert len(fine.vocabulary) > 1


BAD_INPUTS: dict[str, list[str] | list[None] | list[str | None]] = {
    "a long row": ["The quick brown fox, having jumped (twice), lay down.\n" * 40_000],
    "a long row without a gap": ["a" * 3_000_000],
    "a long row of Han": ["日本語" * 200_000],
    "empty rows": [""] * 100_000,
    "nulls": [None] * 100_000,
    "one word many times in one row": ["a " * 1_000_000],
    "one word many times in many rows": ["a a a a a a a a a a "] * 50_000,
    "distinct words": [" ".join(f"w{i}" for i in range(100_000))],
    "distinct words with one beginning": [" ".join(f"a_long_beginning_of_all_words_{i}" for i in range(20_000))],
    "distinct gaps": ["a".join(str(i) for i in range(50_000)).translate(str.maketrans("0123456789", "!#$%&()*+,"))],
    "long words": [" ".join(c * 500_000 for c in "abcab")],
    "NUL bytes": ["a\0b \0 c\0\0, " * 1000, "\0", "\0" * 100_000],
    "gaps only": [" \t,;. \n" * 10] * 20_000,
    "one gap": [" " * 3_000_000],
    "rows of one byte": ["a", " ", "b", "."] * 25_000,
    "nulls in between": ["a b", None, "", "日本, か", None] * 10_000,
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_inputs(case: str) -> None:
    text = pl.Series(list(BAD_INPUTS[case]), dtype=pl.String)
    for lossless in (True, False):
        tokens = tokenize(text, Tokenizer("words"), lossless=lossless)
        words = pl.Series(pl.from_arrow(tokens.vocabulary))
        rows = np.flatnonzero(tokens.sequence == np.uint32(kernels.SEPARATOR))
        assert len(rows) == len(text)
        counts = text.str.count_matches(r"[\p{Han}\p{Hiragana}]|[\w--\p{Han}--\p{Hiragana}]+").fill_null(0)
        assert np.diff(rows, prepend=-1).tolist() == (counts + 1).to_list()
        assert words.n_unique() == len(words)
    assert tadoc.decompress(tadoc.compress(text)).equals(text, null_equal=True)


def test_memory_stays_within_twice_the_text() -> None:
    rows = [
        f"[{i / 997:12.6f}] usb {i % 7}-{i % 5}.{i % 3}: new device, id={i % 251:04x}:{i % 89:04x}"
        for i in range(10**6)
    ]
    text = pl.Series(rows)
    size = int(text.str.len_bytes().sum())
    with tadoc.Config(threads=2):
        tokenize(text, Tokenizer("words"))
        tracemalloc.start()
        try:
            tokenize(text, Tokenizer("words"))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 2 * size + (64 << 20)  # what a piece may need for both threads, touched or not


def test_lossy_keeps_no_gaps() -> None:
    tokens = tokenize(pl.Series(["a,  b", "c"]), Tokenizer("words"), lossless=False)
    assert (len(tokens.gap_vocabulary), tokens.gap_data.tolist(), tokens.gap_offsets.tolist()) == (0, [], [0, 0, 0])


class TestCharacters:
    @staticmethod
    def members(ranges: str) -> set[int]:
        spans = (item.partition("-") for item in ranges.split())
        return {p for first, _, last in spans for p in range(int(first, 16), int(last or first, 16) + 1)}

    def test_word_characters_are_those_of_uts_18(self) -> None:
        got = self.members(unicode_ranges.WORD)
        assert [c for c in ASSIGNED if (ord(c) in got) != tokenize_reference.is_word_character(c)] == []

    def test_word_characters_are_those_of_polars(self) -> None:
        # one long row per class: a column of a million rows would take a second each
        matched = pl.Series(["".join(ASSIGNED)]).str.replace_all(r"\W", "")[0]
        got = self.members(unicode_ranges.WORD)
        assert [ord(c) for c in ASSIGNED if ord(c) in got] == [ord(c) for c in matched]

    def test_marks(self) -> None:
        got = self.members(unicode_ranges.MARK)
        assert [c for c in ASSIGNED if (ord(c) in got) != tokenize_reference.is_mark(c)] == []

    def test_singles(self) -> None:
        got = self.members(unicode_ranges.SINGLE)
        assert [
            (hex(ord(c)), unicodedata.name(c)) for c in ASSIGNED if (ord(c) in got) != tokenize_reference.is_single(c)
        ] == []

    def test_white_space_is_that_of_python(self) -> None:
        got = self.members(characters.WHITESPACE)
        assert [c for c in map(chr, range(sys.maxunicode + 1)) if (ord(c) in got) != c.isspace()] == []

    def test_checked_in_ranges_are_the_generated_ones(self) -> None:
        namespace: dict[str, str] = {}
        exec(regenerate_characters.source(), namespace)
        known = {ord(c) for c in ASSIGNED}  # a newer Polars may know characters that these tables do not
        for name in regenerate_characters.CLASSES:
            assert self.members(namespace[name]) & known == self.members(getattr(unicode_ranges, name)) & known

    @pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
    def test_every_character(self, tokenizer: str) -> None:
        rows = ["".join(ASSIGNED[i : i + 64]) for i in range(0, len(ASSIGNED), 64)]
        _, words, gaps = cut(rows, tokenizer)
        assert list(zip(words, gaps, strict=True)) == [tokenize_reference.tokenize(row, tokenizer) for row in rows]


@given(st.lists(st.sampled_from(["日", "\u3099", "\ufe0f", "a", "\u200d", " ", "ー"]), max_size=8).map("".join))
def test_marks_follow_the_single_before_them(text: str) -> None:
    expected = re.findall("[日ー][\u3099\ufe0f]*|[\u3099\ufe0fa\u200d]+", text)
    assert cut([text], "words")[1] == [expected]
