"""Grammars of some bytes that stand for 10^9 words: every public call refuses them, or does not expand them."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.compress.decompress import WORDS_BY_SYMBOL
from polars_tadoc.errors import LimitExceededError
from tests.handmade import column, grammar

SECONDS = 40.0
"""Most processor time of a call, with what compiles its kernels on a machine without a cache."""


def bomb(bodies: list[list[int]], rows: int = 1, tokenizer: str = "words") -> pl.Series:
    words = ["a", "b"] if tokenizer == "words" else ["<a>", "</a>"]
    made = replace(grammar(words, bodies), tokenizer=tokenizer)
    return column(made, [[1 + len(bodies)]] * rows)


def doubling(levels: int) -> list[list[int]]:
    return [[0, 1], *([1 + level, 1 + level] for level in range(1, levels))]


def fibonacci(levels: int) -> list[list[int]]:
    return [[0, 1], [2, 0], *([level + 1, level] for level in range(2, levels))]


BOMBS = {
    "doubling rules": bomb(doubling(30)),
    "fibonacci rules": bomb(fibonacci(43)),
    "many rows": bomb(doubling(26), rows=16),
}
TEXT = pl.Series(["a b " * 20])


def lazily(call: str, **options: Any) -> Callable[[pl.Series], object]:
    def collect(bombs: pl.Series) -> object:
        frame = bombs.to_frame("text").lazy()
        return getattr(frame.tadoc, call)("text", memory_limit="500MB", **options).collect()

    return collect


REFUSED: dict[str, Callable[[pl.Series], object]] = {
    "decompress": tadoc.decompress,
    "recompress": tadoc.recompress,
    "extract": lambda bombs: tadoc.extract(bombs, 0),
    "extract_all": lambda bombs: tadoc.extract_all(bombs, "a b|b a|a a"),
    "positions": lambda bombs: tadoc.positions(bombs, "a b"),
    "concordance": lambda bombs: tadoc.concordance(bombs, "a b"),
    "collocations": tadoc.collocations,
    "repeats": tadoc.repeats,
    "drop_repeats": tadoc.drop_repeats,
    "repeated_share": tadoc.repeated_share,
    "novelty": tadoc.novelty,
    "overlap": lambda bombs: tadoc.overlap(bombs, TEXT),
    "overlaps": lambda bombs: tadoc.overlaps(TEXT, bombs),
    "overlap_share": lambda bombs: tadoc.overlap_share(bombs, TEXT),
    "PassageSet": tadoc.PassageSet,
    "near_duplicates": tadoc.near_duplicates,
    "duplicate_groups": tadoc.duplicate_groups,
    "minhash": tadoc.minhash,
    "snippets": lambda bombs: (index := tadoc.build_index(bombs)).snippets(index.search(["a"]), ["a"]),
    "decompress in a plan": lambda bombs: bombs.to_frame("text").lazy().tadoc.decompress("text").collect(),
    "recompress in a plan": lambda bombs: bombs.to_frame("text").lazy().tadoc.recompress("text").collect(),
    "repeats in a plan": lazily("repeats"),
    "near_duplicates in a plan": lazily("near_duplicates"),
}
"""Calls that read or write each word."""

ANSWERED: dict[str, Callable[[pl.Series], object]] = {
    "as_storage": tadoc.as_storage,
    "as_text": tadoc.as_text,
    "bm25": lambda bombs: tadoc.bm25(bombs, "a"),
    "bm25_weights": tadoc.bm25_weights,
    "build_index": lambda bombs: tadoc.build_index(bombs).search(["a", '"a b"']),
    "compress": lambda bombs: tadoc.compress(TEXT, like=bombs),
    "contains": lambda bombs: tadoc.contains(bombs, r"b\s+b"),
    "contains_any": lambda bombs: tadoc.contains_any(bombs, ["a b", "b b"]),
    "contains_phrase": lambda bombs: tadoc.contains_phrase(bombs, "b b"),
    "content_hash": tadoc.content_hash,
    "cooccurrence": tadoc.cooccurrence,
    "count_matches": lambda bombs: tadoc.count_matches(bombs, r"b\s+b"),
    "count_phrase": lambda bombs: tadoc.count_phrase(bombs, "a b"),
    "equals": lambda bombs: tadoc.equals(bombs, bombs),
    "explain": lambda bombs: tadoc.explain(bombs, "word_count"),
    "find": lambda bombs: tadoc.find(bombs, "b b"),
    "head": tadoc.head,
    "tail": tadoc.tail,
    "info": tadoc.info,
    "inverted_index": tadoc.inverted_index,
    "is_packed": lambda bombs: tadoc.is_packed(bombs.dtype),
    "is_tadoc": lambda bombs: tadoc.is_tadoc(bombs.dtype),
    "of": lambda bombs: tadoc.of(bombs),
    "ranked_inverted_index": tadoc.ranked_inverted_index,
    "sequence_count": tadoc.sequence_count,
    "sequence_count in a plan": lazily("sequence_count"),
    "sort": tadoc.sort,
    "term_vector": tadoc.term_vector,
    "tfidf": tadoc.tfidf,
    "to_csr": tadoc.to_csr,
    "token_count": tadoc.token_count,
    "word_count": tadoc.word_count,
    "pack": lambda bombs: bombs.to_frame("text").tadoc.pack("text"),
    "preview": lambda bombs: bombs.tadoc.preview(),
    "printing": repr,
}
"""Calls that read rules."""

NOT_OF_ROWS = {"calibrate", "load_index", "parquet_info", "scan_packed", "scan_parquet", "stop_words"}
OWN_TESTS = {"twig_filter"}


def test_every_public_call_is_listed() -> None:
    calls = {name for name in tadoc.__all__ if name.islower() and type(getattr(tadoc, name)).__name__ == "function"}
    assert calls <= REFUSED.keys() | ANSWERED.keys() | NOT_OF_ROWS | OWN_TESTS


@pytest.mark.parametrize("kind", BOMBS)
@pytest.mark.parametrize("call", REFUSED)
def test_what_expands_words_refuses(call: str, kind: str) -> None:
    began = time.process_time()
    with pytest.raises(LimitExceededError, match=r"symbols store them.*tadoc\.Config\(expansion_limit=…\)"):
        REFUSED[call](BOMBS[kind])
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("kind", BOMBS)
@pytest.mark.parametrize("call", ANSWERED)
def test_what_reads_rules_answers(call: str, kind: str) -> None:
    began = time.process_time()
    ANSWERED[call](BOMBS[kind])
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("call", ["write_packed", "sink_packed", "sink_parquet", "sink_index"])
def test_files_of_bombs_are_small(call: str, tmp_path: Path) -> None:
    frame = BOMBS["many rows"].to_frame("text")
    path = tmp_path / "written.parquet"
    if call == "write_packed":
        frame.tadoc.write_packed(path)
    elif call == "sink_index":
        frame.lazy().tadoc.sink_index(path, "text")
        assert tadoc.load_index(path).count("a") == 16
        return
    else:
        getattr(frame.lazy().tadoc, call)(path)
    assert path.stat().st_size < 100_000
    if call != "sink_parquet":
        with pytest.raises(LimitExceededError, match="symbols store them"):
            tadoc.scan_packed(path).tadoc.decompress("text").collect()


def test_twig_filter_refuses() -> None:
    for bodies in (doubling(30), [[0, 0], *([1 + k, 1 + k] for k in range(1, 30))]):
        began = time.process_time()
        found = tadoc.twig_filter(bomb(bodies, tokenizer="xml"), {"a": "//a"}, on_error="null")
        assert found.num_columns == 2
        assert time.process_time() - began < SECONDS


def test_a_raised_limit_lets_them_through(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("polars_tadoc.compress.decompress")
    monkeypatch.setattr(module, "FREE_WORDS", 1 << 10)
    monkeypatch.setattr(module, "WORDS_BY_SYMBOL", 1)
    rows, words = bomb(doubling(12), rows=4), 4 << 12
    with tadoc.Config(expansion_limit=32 * words - 1), pytest.raises(LimitExceededError, match="32 times their words"):
        tadoc.decompress(rows)
    with tadoc.Config(expansion_limit=32 * words):
        assert tadoc.decompress(rows).str.len_bytes().to_list() == [2 * (1 << 12) - 1] * 4
    with tadoc.Config(expansion_limit=1 << 9), pytest.raises(LimitExceededError, match="more than 512 words"):
        tadoc.decompress(rows)


def test_rows_of_natural_columns_are_far_below() -> None:
    """Thousands of equal versions of a long text: what repeats most in practice."""
    text = " ".join(f"word{k}" for k in range(10_000))
    versions = pl.Series([text] * 2_000).tadoc.compress()
    assert tadoc.decompress(versions.tail(1))[0] == text
    described = tadoc.info(versions)
    symbols = int(described["symbols"][0]) + 10_000
    assert int(described["words"][0]) / symbols < WORDS_BY_SYMBOL / 30
