"""A key that is the same for equal texts in any form, and what compares texts themselves."""

from __future__ import annotations

import pickle
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_series_equal

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError, NotCompressedError, TadocError
from polars_tadoc.kernels.host.rows.reference import content_hash as defined
from polars_tadoc.kernels.repair import reference
from polars_tadoc.rows import equals as equals_module
from tests import handmade
from tests.strategies import columns, grammars

FIXED = {
    "": 0x83EC686C1600460AE1EB599EBA2844E0,
    "\x00": 0x82D92850693BFFA733FB976653DB412D,
    "a": 0x2AB3E9737FB8702681E21C78E22543B1,
    "to be or not to be": 0xC0FF79CCEBA05D39AE282958CD392E48,
    "straße": 0x7F3289B288A03D6D68AE3C1F36BBA749,
    "to be, or not to be: that is the question.\n" * 50: 0xAD6C8242D2DE69B8DFDD00C91D418322,
}
"""What every version gives."""


def keys(rows: list[str | None]) -> pl.Series:
    return pl.Series("text", [None if row is None else defined(row.encode()) for row in rows], dtype=pl.UInt128)


def test_stays_what_it_is() -> None:
    text = pl.Series("text", list(FIXED))
    for column in (text, text.tadoc.compress(), text.tadoc.compress(tokenizer="whitespace", rows_per_grammar=1)):
        assert tadoc.content_hash(column).to_list() == list(FIXED.values())
    assert [defined(row.encode()) for row in FIXED] == list(FIXED.values())


@given(
    rows=columns,
    tokenizer=st.sampled_from(["words", "whitespace", "xml", re.compile("[a-z]+|,")]),
    lossless=st.booleans(),
    method=st.sampled_from(["batch_repair", "sequitur"]),
    rows_per_grammar=st.sampled_from([1, 3, 1 << 20]),
    threads=st.sampled_from([1, 2]),
)
def test_hashes_what_decompress_gives(
    rows: list[str | None],
    tokenizer: str | re.Pattern[str],
    lossless: bool,
    method: str,
    rows_per_grammar: int,
    threads: int,
) -> None:
    text = pl.Series("text", rows, dtype=pl.String)
    column = tadoc.compress(
        text, tokenizer=tokenizer, lossless=lossless, method=method, rows_per_grammar=rows_per_grammar
    )
    back = tadoc.decompress(column)
    with tadoc.Config(threads=threads):
        assert_series_equal(tadoc.content_hash(column), keys(back.to_list()))
        assert_series_equal(tadoc.content_hash(back), keys(back.to_list()))


@given(grammar=grammars(), data=st.data())
def test_any_grammar_and_any_gaps(
    grammar: tuple[int, list[list[int]], list[int], list[list[int]]], data: st.DataObject
) -> None:
    size, bodies, levels, rows = grammar
    gap_vocabulary = ["", ", ", "é" * 200]
    places = size + sum(len(body) for body in bodies)
    codes = st.integers(0, len(gap_vocabulary))
    predicted_gaps = data.draw(st.lists(codes, min_size=places, max_size=places))
    made = handmade.grammar(handmade.words(size), bodies, levels, gap_vocabulary, predicted_gaps)
    streams = []
    for row in rows:
        row_keys = reference.gap_keys(row, size, made.rule_offsets.tolist(), made.symbols.tolist())
        between = [predicted_gaps[key] for key in row_keys]
        own = [0, *between, 0] if row else [0]
        for place in data.draw(st.lists(st.integers(0, len(own) - 1), max_size=4)):
            own[place] = data.draw(codes)
        streams.append(reference.encode_predicted_gaps(own, between))
    column = handmade.column(made, rows, streams)
    assert_series_equal(tadoc.content_hash(column), keys(tadoc.decompress(column).to_list()))


@pytest.mark.parametrize("every", [0, 1, 2, 3, 7, 50])
def test_rows_longer_than_what_is_listed_at_once(every: int) -> None:
    draw = random.Random(every)
    phrases = [" ".join(draw.choices(["to", "be", "or", "not"], k=draw.choice([1, 2, 5, 300]))) for _ in range(40)]
    rows = []
    for count in (1, 255, 256, 257, 513, 3000):
        words = " ".join(draw.choice(phrases) for _ in range(count)).split(" ")[: 8 * count]
        gaps = [draw.choice([", ", "\n", "  "]) if every and draw.randrange(every) == 0 else " " for _ in words]
        rows.append("".join(word + gap for word, gap in zip(words, gaps, strict=True)))
    column = pl.Series("text", rows).tadoc.compress()
    assert_series_equal(tadoc.content_hash(column), keys(rows))


@given(gaps=st.binary(max_size=12), symbols=st.lists(st.integers(0, 3), max_size=4))
def test_any_gap_stream_is_read_as_decompress_does(gaps: bytes, symbols: list[int]) -> None:
    grammar = handmade.grammar(["a", "b"], [[0, 1], [2, 2]], gaps=[", ", "é"], predicted_gaps=[0, 1, 0, 2, 0, 1])
    column = handmade.column(grammar, [[0], symbols], [b"", gaps])
    try:
        expected: Any = keys(tadoc.decompress(column).to_list())
    except InvalidGrammarError:
        with pytest.raises(InvalidGrammarError, match=r"row 1: its gaps .*: the data is damaged"):
            tadoc.content_hash(column)
        return
    assert_series_equal(tadoc.content_hash(column), expected)


TEXT = [
    *("to be, or not to be", None, "", " ", "the  cat\r\nsat", "日本語 テキスト", "a" * 300, "x\x00y", "to be"),
    *(f"line {i % 5}: the cat sat on the mat, part {i % 7}" for i in range(60)),
    *("to be", "to be ", " to be", "\x00", "\x00\x00", "\x00" * 64, "\x00" * 256, "a" * 256, "a" * 257, None),
]


@pytest.fixture(scope="module", params=["one grammar", "many grammars", "other tokenizers"])
def forms(request: pytest.FixtureRequest) -> tuple[pl.Series, pl.Series]:
    text = pl.Series("text", TEXT)
    if request.param == "one grammar":
        return text, text.tadoc.compress()
    if request.param == "many grammars":
        return text, text.tadoc.compress(rows_per_grammar=7)
    parts = [
        text[:30].tadoc.compress(tokenizer="whitespace", method="sequitur"),
        text[30:50].tadoc.compress(tokenizer="xml"),
        text[50:].tadoc.compress(dictionary=tadoc.Dictionary.from_words(pl.Series(["cat", "mat"]))),
    ]
    return text, pl.concat(parts)


ROWS_OF: dict[str, Callable[[pl.Series], pl.Series]] = {
    "as they are": lambda s: s,
    "filtered": lambda s: s.filter(pl.int_range(len(s), eager=True) % 3 == 0),
    "none": lambda s: s.head(0),
    "nulls only": lambda s: s.filter(s.is_null()),
    "sliced": lambda s: s[11:37],
    "concatenated": lambda s: pl.concat([s[40:], s[:20], s[5:9]], rechunk=False),
    "reversed": lambda s: s.reverse(),
    "gathered": lambda s: s.gather([3, 3, 3, 20, 0]),
}


@pytest.mark.parametrize("rows_of", ROWS_OF)
def test_of_any_rows(forms: tuple[pl.Series, pl.Series], rows_of: str) -> None:
    text, column = (ROWS_OF[rows_of](form) for form in forms)
    assert_series_equal(tadoc.content_hash(column), keys(text.to_list()))
    assert_series_equal(tadoc.content_hash(text), keys(text.to_list()))
    assert_series_equal(column.tadoc.content_hash(), text.tadoc.content_hash())


def test_recompressed_appended_and_packed(forms: tuple[pl.Series, pl.Series], tmp_path: Path) -> None:
    text, column = forms
    expected = tadoc.content_hash(text)
    assert_series_equal(tadoc.content_hash(tadoc.recompress(column)), expected)
    like = tadoc.compress(text, like=column.head(30))
    assert_series_equal(tadoc.content_hash(like), expected)
    column.to_frame().tadoc.write_packed(tmp_path / "packed.parquet")
    scanned = tadoc.scan_packed(tmp_path / "packed.parquet").select(pl.col("text").tadoc.content_hash())
    assert_series_equal(scanned.collect().to_series(), expected)


KEYS = pl.DataFrame({"v": range(len(TEXT)), "text": TEXT}).with_columns(pl.col("text").tadoc.content_hash())
CARRIED: dict[str, Callable[[pl.LazyFrame], pl.LazyFrame]] = {
    "group_by": lambda lf: lf.group_by("text").agg(pl.col("v").sort()).sort("v"),
    "unique": lambda lf: lf.unique("text", keep="first", maintain_order=True),
    "n_unique": lambda lf: lf.select(pl.col("text").n_unique()),
    "join": lambda lf: lf.join(lf, on="text").select("v", "v_right").sort("v", "v_right"),
    "join nulls": lambda lf: lf.join(lf, on="text", nulls_equal=True).select("v", "v_right").sort("v", "v_right"),
    "anti": lambda lf: lf.join(lf.filter(pl.col("v") % 2 == 0), on="text", how="anti").select("v").sort("v"),
    "over": lambda lf: lf.select(pl.col("v").sum().over("text")),
    "is_duplicated": lambda lf: lf.filter(pl.col("text").is_duplicated()).select("v"),
    "value_counts": lambda lf: lf.select(pl.col("text").value_counts().struct.field("count").sort()),
}


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("way", CARRIED)
def test_polars_carries_the_key_as_it_does_text(way: str, engine: Any) -> None:
    text = pl.LazyFrame({"v": range(len(TEXT)), "text": TEXT})
    by_key, by_text = (CARRIED[way](lf).collect(engine=engine) for lf in (KEYS.lazy(), text))
    assert_frame_equal(by_key.drop("text", strict=way == "unique"), by_text.drop("text", strict=way == "unique"))


def test_polars_sorts_and_stores_the_key(tmp_path: Path) -> None:
    whole = sorted(key for key in KEYS["text"].to_list() if key is not None)
    assert KEYS["text"].drop_nulls().sort().to_list() == whole
    assert (
        KEYS.lazy().sort("text", nulls_last=True).collect(engine="streaming")["text"].to_list()[: len(whole)] == whole
    )
    key = pl.lit(KEYS["text"][0], pl.UInt128)
    for name in ("parquet", "ipc"):
        path = tmp_path / name
        getattr(KEYS, f"write_{name}")(path)
        assert_frame_equal(getattr(pl, f"read_{name}")(path), KEYS)
        getattr(KEYS.lazy(), f"sink_{name}")(path)
        found = getattr(pl, f"scan_{name}")(path).filter(pl.col("text") == key).collect(engine="streaming")
        assert found["v"].to_list() == [0]
    assert_frame_equal(pickle.loads(pickle.dumps(KEYS)), KEYS)
    assert KEYS.select(pl.col("text").cast(pl.String)).to_arrow().num_rows == len(TEXT)


FRAME = pl.DataFrame({"group": [1, 2, 1, 2, 3], "text": ["a b c d e", "b c", "c d e f", None, "b c"]})
CONTEXTS: dict[str, Callable[[pl.LazyFrame, pl.Expr], pl.LazyFrame]] = {
    "select": lambda lf, e: lf.select(e, "group"),
    "with_columns": lambda lf, e: lf.with_columns(e),
    "filter": lambda lf, e: lf.filter(e > (1 << 120)).select("group"),
    "agg": lambda lf, e: lf.group_by("group", maintain_order=True).agg(e),
    "count in agg": lambda lf, e: lf.group_by("group", maintain_order=True).agg(e.n_unique()),
    "by": lambda lf, e: lf.group_by(e, maintain_order=True).agg("group"),
    "over": lambda lf, e: lf.select(e.over("group"), pl.len().over(e)),
    "when": lambda lf, e: lf.select(pl.when(pl.col("group") > 1).then(e)),
    "sort": lambda lf, e: lf.sort(e, "group").select("group"),
    "unique": lambda lf, e: lf.select(e.unique(maintain_order=True)),
}


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("rows_per_grammar", [2, 100])
def test_in_every_context(context: str, engine: Any, rows_per_grammar: int) -> None:
    run_in = CONTEXTS[context]
    compressed = FRAME.tadoc.compress("text", rows_per_grammar=rows_per_grammar).lazy()
    got = run_in(compressed, pl.col("text").tadoc.content_hash())
    hashed = FRAME.lazy().with_columns(keys(FRAME["text"].to_list()))
    wanted = run_in(hashed, pl.col("text"))
    assert got.collect_schema() == wanted.collect_schema() or context == "with_columns"
    assert_frame_equal(got.collect(engine=engine), wanted.collect(engine=engine))
    plain = run_in(FRAME.lazy(), pl.col("text").tadoc.content_hash())
    assert_frame_equal(plain.collect(engine=engine), wanted.collect(engine=engine))


def test_joins_compressed_rows_with_text() -> None:
    compressed = FRAME.tadoc.compress("text").with_columns(key=pl.col("text").tadoc.content_hash())
    plain = FRAME.with_columns(key=pl.col("text").tadoc.content_hash())
    pairs = compressed.join(plain, on="key").select("group", "group_right").rows()
    assert sorted(pairs) == [(1, 1), (1, 1), (2, 2), (2, 3), (3, 2), (3, 3)]


def test_a_plan_with_it_can_be_pickled() -> None:
    exprs = [pl.col("text").tadoc.content_hash(), pl.col("text").tadoc.eq("b c").alias("eq")]
    exprs.append(pl.col("text").tadoc.eq(pl.col("text"), nulls_equal=True).alias("itself"))
    assert_frame_equal(FRAME.select(pickle.loads(pickle.dumps(exprs))), FRAME.select(exprs))


def test_another_type() -> None:
    with pytest.raises(NotCompressedError, match='content_hash: column "n" is Int64, neither String nor a TADOC'):
        tadoc.content_hash(pl.Series("n", [1]))
    with pytest.raises(NotCompressedError, match=r'equals: column "l" is List\(String\), neither .*\.list\.join'):
        tadoc.equals(pl.Series("a", ["a"]), pl.Series("l", [["a"]]))
    with pytest.raises(TypeError, match=r"content_hash takes a Polars Series, not Expr"):
        tadoc.content_hash(pl.col("text"))  # type: ignore[arg-type]


def test_more_words_than_64_bits_count() -> None:
    with tadoc.Config(expansion_limit=1 << 56):
        column = handmade.column(handmade.grammar(["a"], [[k, k] for k in range(56)]), [[56] * 100, [0], [3]])
        assert tadoc.content_hash(column)[2] == defined(b"a a a a a a a a")
        with pytest.raises(LimitExceededError, match="more words than 64 bits can count"):
            tadoc.content_hash(pl.concat([column, column]))


@given(a=columns, b=columns, rows_per_grammar=st.sampled_from([1, 100]), data=st.data())
def test_equals_compares_text(
    a: list[str | None], b: list[str | None], rows_per_grammar: int, data: st.DataObject
) -> None:
    count = min(len(a), len(b))
    rows = [(x, data.draw(st.sampled_from([x, y]))) for x, y in zip(a[:count], b[:count], strict=True)]
    left, right = (pl.Series("text", [row[k] for row in rows], dtype=pl.String) for k in range(2))
    expected = pl.Series("text", [None if None in (x, y) else x == y for x, y in rows], dtype=pl.Boolean)
    missing = pl.Series("text", [x == y for x, y in rows], dtype=pl.Boolean)
    both = pl.concat([left, right]).tadoc.compress(rows_per_grammar=rows_per_grammar)
    one, other = both[:count], both[count:]
    for x, y in ((one, other), (one, right), (left, other), (left, right.tadoc.compress(tokenizer="whitespace"))):
        assert_series_equal(tadoc.equals(x, y), expected)
        assert_series_equal(tadoc.equals(x, y, nulls_equal=True), missing)
    assert_series_equal(tadoc.equals(left, right), expected)


@given(rows=columns, data=st.data())
def test_eq_with_a_literal(rows: list[str | None], data: st.DataObject) -> None:
    literal = data.draw(st.sampled_from([*(row for row in rows if row is not None), "", "a b"]))
    text = pl.Series("text", rows, dtype=pl.String)
    for column in (text, text.tadoc.compress(), text.tadoc.compress(tokenizer="whitespace", rows_per_grammar=2)):
        assert_series_equal(column.tadoc.eq(literal), text.eq(literal))
        assert_series_equal(column.tadoc.eq(literal, nulls_equal=True), text.eq_missing(literal))
        frame = column.to_frame()
        assert_series_equal(frame.select(pl.col("text").tadoc.eq(literal)).to_series(), text.eq(literal))
        assert_series_equal(frame.select(pl.col("text").tadoc.eq(pl.lit(literal))).to_series(), text.eq(literal))


def test_equal_hashes_are_not_taken_for_equal_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_for_all(column: pl.Series) -> pl.Series:
        return pl.select(pl.when(column.is_not_null()).then(pl.lit(1, pl.UInt128))).to_series()

    monkeypatch.setattr(equals_module, "content_hash", one_for_all)
    monkeypatch.setattr(equals_module, "WORDS_COMPARED", 20)
    text, other = pl.Series("text", TEXT), pl.Series("text", TEXT[1:] + TEXT[:1])
    expected = text == other
    for a, b in ((text.tadoc.compress(), other), (text.tadoc.compress(), other.tadoc.compress(rows_per_grammar=9))):
        assert_series_equal(tadoc.equals(a, b), expected)
    both = pl.concat([text, other]).tadoc.compress()
    assert_series_equal(tadoc.equals(both[: len(text)], both[len(text) :]), expected)
    assert_series_equal(text.tadoc.compress().tadoc.eq("to be"), text == "to be")


def test_rows_alike_are_equal_without_their_text() -> None:
    with tadoc.Config(expansion_limit=1 << 47):
        column = handmade.column(handmade.grammar(["a"], [[k, k] for k in range(40)]), [[40], [40], [39, 39], [39]])
        assert tadoc.equals(column[:1], column[[0, 1, 3]]).to_list() == [True, True, False]
        with pytest.raises(TadocError, match="a String has less than"):  # told apart by their text alone
            tadoc.equals(column[:1], column[2:3])


def test_equals_says_what_it_takes() -> None:
    a = pl.Series("a", ["x", "y"])
    with pytest.raises(ValueError, match=r"equals: series must have as many rows .* got a has 2, b has 3"):
        tadoc.equals(a, pl.Series("b", ["x"] * 3))
    with pytest.raises(TypeError, match="equals: nulls_equal=1 must be True or False"):
        tadoc.equals(a, a, nulls_equal=1)  # type: ignore[arg-type]
    for other in (5, None):
        with pytest.raises(TypeError, match="eq compares with text, an expression or a Series, not"):
            pl.col("a").tadoc.eq(other)  # type: ignore[attr-defined]
        with pytest.raises(TypeError, match="eq compares with text, an expression or a Series, not"):
            a.tadoc.eq(other)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name", ["logs_loghub2k", "docs_tldr", "versioned_reactnative", "multi_react", "prose_speeches", "xml_rusdracor"]
)
def test_corpora(name: str, corpus: Callable[[str], pl.DataFrame]) -> None:
    text = corpus(name)["text"]
    lines = text.str.split("\n").explode().unique()
    assert tadoc.content_hash(lines).n_unique() == len(lines)
    head = text.head(2000)
    assert tadoc.content_hash(head.tadoc.compress()).equals(tadoc.content_hash(head))
    assert tadoc.content_hash(text).n_unique() == text.n_unique()
