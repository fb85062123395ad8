"""Merging grammars: the result is what compressing the decompressed text would give."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.compress import compress as module
from polars_tadoc.compress.recompress import tail_start
from polars_tadoc.kernels.host.grammars import append as kernels
from polars_tadoc.kernels.repair import reference
from tests import handmade, strategies


def stored(column: pl.Series) -> list[tuple[str, list[int], bytes] | None]:
    """Payload, symbols and gaps of each row."""
    fields = column.ext.storage().struct.unnest().with_columns(pl.col("grammar").cast(pl.String))
    return [row if valid else None for row, valid in zip(fields.rows(), column.is_not_null(), strict=True)]


def assert_as_compressed_anew(column: pl.Series, **options: object) -> None:
    lossless = options.pop("lossless", True)
    tokenizer = options.pop("tokenizer", "words")
    expected = tadoc.compress(tadoc.decompress(column), tokenizer=tokenizer, lossless=lossless, **options)
    got = tadoc.recompress(column, **options)
    assert got.dtype == tadoc.DTYPE
    assert got.name == column.name
    assert stored(got) == stored(expected)


@given(
    parts=st.lists(st.tuples(strategies.columns, st.integers(1, 5)), max_size=4),
    tokenizer=st.sampled_from(["words", "whitespace", re.compile("[a-z]+")]),
    data=st.data(),
)
def test_equals_compressing_the_text(
    parts: list[tuple[list[str | None], int]], tokenizer: object, data: st.DataObject
) -> None:
    compressed = [
        tadoc.compress(pl.Series("t", rows, pl.String), tokenizer=tokenizer, rows_per_grammar=per)
        for rows, per in parts
    ]
    column = pl.concat([pl.Series("t", [], tadoc.DTYPE), *compressed])
    per = data.draw(st.integers(1, 20))
    assert_as_compressed_anew(column, tokenizer=tokenizer, rows_per_grammar=per)
    taken = data.draw(st.lists(st.integers(0, max(0, len(column) - 1)), max_size=20 if len(column) else 0))
    assert_as_compressed_anew(column.gather(taken), tokenizer=tokenizer, rows_per_grammar=per)


@given(st.lists(strategies.columns, max_size=3))
def test_without_gaps(parts: list[list[str | None]]) -> None:
    compressed = [tadoc.compress(pl.Series("t", rows, pl.String), lossless=False) for rows in parts]
    column = pl.concat([pl.Series("t", [], tadoc.DTYPE), *compressed])
    lossless = column.null_count() == len(column)
    assert_as_compressed_anew(column, lossless=lossless)


def test_rows_with_and_without_gaps() -> None:
    column = pl.concat([tadoc.compress(pl.Series(["a,  b"]), lossless=lossless) for lossless in (True, False)])
    assert_as_compressed_anew(column)
    assert tadoc.decompress(tadoc.recompress(column)).to_list() == ["a,  b", "a b"]


def test_tokenizers_keep_grammars_of_their_own() -> None:
    rows = pl.Series("t", ["a-b c-d", None, "a-b a-b", ""])
    words, spaces = tadoc.compress(rows), tadoc.compress(rows, tokenizer="whitespace")
    column = pl.concat([words, spaces, words.head(1), spaces.head(1)])
    merged = tadoc.recompress(column)
    assert tadoc.decompress(merged).equals(tadoc.decompress(column))
    assert [(c.grammar.tokenizer, c.rows.tolist()) for c in tadoc.column.split(merged)] == [
        ("words", [0, 2, 3, 8]),
        ("whitespace", [4, 6, 7, 9]),
    ]


def test_drops_words_and_rules_that_no_row_uses() -> None:
    column = tadoc.compress(pl.Series(["a b c d"] * 9 + ["e f"]))
    info = tadoc.recompress(column.tail(1)).tadoc.info().row(0, named=True)
    assert (info["vocabulary"], info["rules"], info["words"]) == (2, 0, 2)


def test_sequitur_and_batch_repair_change_into_each_other() -> None:
    pytest.importorskip("polars_tadoc.kernels.repair.sequitur_cpu")
    text = pl.Series("t", ["a b c d a b c d", "a b c d"] * 9)
    for before, after in (("batch_repair", "sequitur"), ("sequitur", "batch_repair")):
        column = tadoc.compress(text, method=before)
        assert stored(tadoc.recompress(column, method=after)) == stored(tadoc.compress(text, method=after))


@pytest.mark.parametrize("effort", ["fast", "small", "auto"])
@given(parts=st.lists(strategies.columns, min_size=1, max_size=3))
def test_efforts_are_those_of_compressing(effort: str, parts: list[list[str | None]]) -> None:
    for before in ("default", "fast"):
        column = pl.concat([tadoc.compress(pl.Series("t", rows, pl.String), effort=before) for rows in parts])
        assert_as_compressed_anew(column, effort=effort)


def test_the_effort_is_not_taken_from_the_column() -> None:
    column = tadoc.compress(pl.Series("t", ["to be or not to be"] * 9), effort="fast")
    frame = column.to_frame()
    assert tadoc.recompress(column).tadoc.info()["words_only"].item() == 0
    for again in (
        frame.tadoc.recompress("t", effort="fast"),
        frame.lazy().tadoc.recompress("t", effort="fast").collect(),
        frame.select(pl.col("t").tadoc.recompress(effort="fast")),
    ):
        assert again.tadoc.info()["words_only"].item() == 1
    with pytest.raises(ValueError, match='effort="small" settles how rules are made; pass only one'):
        tadoc.recompress(column, effort="small", method="sequitur")
    with pytest.raises(ValueError, match='effort=\'best\': use "default", "fast", "small" or "auto"'):
        tadoc.recompress(column, effort="best")


def test_blocks_end_at_a_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    column = tadoc.compress(pl.Series(["aaaa", "bbbb", None, "more than ten bytes", "", "dd", "123456"]))
    monkeypatch.setattr(module, "BYTES_PER_GRAMMAR", 10)
    assert_as_compressed_anew(column)


@pytest.mark.parametrize("rows", [[], [None], [None, None], ["", None], ["", ""]])
def test_no_words(rows: list[str | None]) -> None:
    assert_as_compressed_anew(tadoc.compress(pl.Series("t", rows, pl.String)))


def test_namespaces_agree() -> None:
    df = pl.DataFrame({"text": ["a b a b", None, "b a"]}).tadoc.compress("text", rows_per_grammar=1)
    expected = stored(tadoc.recompress(df["text"]))
    assert stored(df["text"].tadoc.recompress()) == expected
    assert stored(df.tadoc.recompress()["text"]) == expected
    assert stored(df.lazy().tadoc.recompress("text").collect()["text"]) == expected
    assert stored(df.select(pl.col("text").tadoc.recompress())["text"]) == expected


def test_errors() -> None:
    with pytest.raises(tadoc.errors.NotCompressedError, match="recompress"):
        tadoc.recompress(pl.Series("t", ["a"]))
    column = tadoc.compress(pl.Series(["a"]))
    with pytest.raises(ValueError, match="method='magic'"):
        tadoc.recompress(column, method="magic")
    with pytest.raises(ValueError, match="rows_per_grammar=0"):
        tadoc.recompress(column, rows_per_grammar=0)
    with pytest.raises(ValueError, match="engine='abacus'"):
        tadoc.recompress(column, engine="abacus")
    damaged = handmade.column(handmade.grammar(["a", "b"]), [[0, 9]])
    with pytest.raises(tadoc.errors.InvalidGrammarError):
        tadoc.recompress(damaged)


def test_a_payload_that_unfolds_is_refused() -> None:
    bodies = [[0, 0], *([i, i] for i in range(1, 40))]
    with pytest.raises(tadoc.errors.LimitExceededError):
        tadoc.recompress(handmade.column(handmade.grammar(["a"], bodies), [[40]]))


def test_grammars_that_together_stand_for_too_much() -> None:
    rules = [handmade.grammar([word], [[k, k] for k in range(8)]) for word in "abcde"]
    column = pl.concat([handmade.column(grammar, [[8]]) for grammar in rules])  # 5 times 256 words
    with tadoc.Config(expansion_limit=1280):
        assert tadoc.decompress(tadoc.recompress(column)).equals(tadoc.decompress(column))
    with tadoc.Config(expansion_limit=1279):
        with pytest.raises(tadoc.errors.LimitExceededError, match="recompress: the rows expand to more than 1,279"):
            tadoc.recompress(column)
        assert len(tadoc.recompress(column.head(4))) == 4


def test_a_row_beyond_32_bit_positions_is_refused_before_memory_is_taken() -> None:
    column = handmade.column(handmade.grammar(["a"], [[k, k] for k in range(45)]), [[45]])
    with (
        tadoc.Config(expansion_limit=1 << 52),
        pytest.raises(tadoc.errors.LimitExceededError, match="have 35,184,372,088,832 words"),
    ):
        tadoc.recompress(column)


def test_blocks_end_at_a_number_of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = [[0, 0], [1, 1], [2, 2]]
    grammar = handmade.grammar([""], bodies, gaps=[""], predicted_gaps=[1] * 7)  # 8 words of no bytes
    column = handmade.column(grammar, [[3], [3, 0], [2], [0]], [b""] * 4)
    monkeypatch.setattr(module, "BYTES_PER_GRAMMAR", 10)
    merged = tadoc.recompress(column)
    assert tadoc.decompress(merged).to_list() == [""] * 4
    assert [corpus.rows.tolist() for corpus in tadoc.column.split(merged)] == [[0], [1], [2, 3]]


NO_MEMORY = """
import resource
import polars_tadoc as tadoc
from tests import handmade

tadoc.recompress(tadoc.compress(handmade.pl.Series(["a b a b", "a b"]), rows_per_grammar=1))  # all code is there
column = handmade.column(handmade.grammar(["a"], [[k, k] for k in range(30)]), [[30]], [b""])
with open("/proc/self/statm") as pages:
    used = int(pages.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (3 << 30), used + (3 << 30)))
tadoc.Config.set(expansion_limit=1 << 35)
try:
    tadoc.recompress(column)
except tadoc.errors.LimitExceededError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits on address space are Linux'")
def test_too_little_memory_is_an_error_of_ours() -> None:
    done = subprocess.run([sys.executable, "-c", NO_MEMORY], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (
        "recompress: the words do not fit in memory; use fewer rows at a time\n",
        "",
    )


@given(strategies.grammars())
def test_expand_rows(example: tuple[int, list[list[int]], list[int], list[list[int]]]) -> None:
    size, bodies, levels, rows = example
    grammar = handmade.grammar(handmade.words(size), bodies, levels)
    ids = np.arange(size, dtype=np.uint32)[::-1].copy()
    expected = reference.expand_rows(size, bodies, rows, ids.tolist())
    starts = np.cumsum([0, *(len(row) for row in expected)])
    sequence = np.full(int(starts[-1]), 0xFFFFFFFF, np.uint32)
    kernels.expand_rows(
        size,
        grammar.rule_offsets,
        grammar.symbols,
        grammar.level_count,
        grammar.expansion_lengths,
        ids,
        np.cumsum([0, *(len(row) for row in rows)]),
        np.array([s for row in rows for s in row], np.uint32),
        starts[:-1],
        sequence,
    )
    assert handmade.cut(sequence, starts) == expected


@pytest.mark.parametrize("name", ["logs_dmesg", "docs_peps", "multi_cldr_annotations", "versioned_reactnative"])
def test_corpora(name: str, corpus: Callable[[str], pl.DataFrame]) -> None:
    text = corpus(name)["text"].head(4000)
    text = text.filter(text.str.len_bytes().cum_sum() < 2_000_000)
    size = max(1, len(text) // 7)
    parts = [tadoc.compress(text.slice(at, size)) for at in range(0, len(text), size)]
    column = pl.concat(parts[::-1])
    assert_as_compressed_anew(column)
    assert_as_compressed_anew(column.gather_every(3))


def test_tail_keeps_grammars_few(corpus: Callable[[str], pl.DataFrame]) -> None:
    text = corpus("logs_elastic")["text"].slice(0, 1280)
    column = pl.Series("text", [], tadoc.DTYPE)
    most = 0
    for at in range(0, len(text), 20):
        column = pl.concat([column, tadoc.compress(text.slice(at, 20), like=column, tokenizer="words")])
        before = column
        column = tadoc.recompress(column, tail=True)
        assert column.name == "text"
        most = max(most, len(tadoc.column.split(column)))
        kept = tail_start(before, 250_000)
        assert stored(column.head(kept)) == stored(before.head(kept))
    assert most <= 7  # log2(64) + 1
    assert tadoc.decompress(column).equals(text)


@pytest.mark.parametrize(
    ("sizes", "merged"),
    [
        ([], 0),
        ([5], 0),
        ([5, 4], 0),
        ([5, 5], 10),
        ([9, 4, 2, 1], 0),
        ([9, 4, 2, 1, 1], 8),
        ([8, 4, 2, 1, 1], 16),
        ([60, 30, 30], 60),
        ([1, 90, 90], 0),
    ],
)
def test_tail_start(sizes: list[int], merged: int) -> None:
    parts = [tadoc.compress(pl.Series([f"w{i}"] * size)) for i, size in enumerate(sizes)]
    column = pl.concat([pl.Series([], dtype=tadoc.DTYPE), *parts])
    assert len(column) - tail_start(column, 100) == merged


def test_tail_of_rows_without_grammar() -> None:
    for rows in ([], [None], [None, None]):
        column = pl.Series("t", rows, tadoc.DTYPE)
        assert tadoc.recompress(column, tail=True).equals(column)


def test_tail_is_a_bool() -> None:
    with pytest.raises(TypeError, match="tail='no' must be True or False"):
        tadoc.recompress(tadoc.compress(pl.Series(["a"])), tail="no")  # type: ignore[arg-type]
