"""Efforts other than the default give the same texts and the same results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.kernels.repair import compressed
from tests.strategies import columns

TEXTS = pl.Series("text", ["to be, or not to be", None, "", "not\tto be  or", "to be, or not to be"] * 7)
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("word_count", {}),
    ("word_count", {"lowercase": True, "top": 2}),
    ("sort", {}),
    ("sequence_count", {"n": 2}),
    ("sequence_count", {"n": 4}),
    ("inverted_index", {}),
    ("term_vector", {}),
    ("ranked_inverted_index", {"n": 2}),
    ("cooccurrence", {"window": 2}),
    ("tfidf", {}),
    ("bm25_weights", {}),
]


def symbols_of(column: pl.Series) -> int:
    return int(tadoc.info(column)["symbols"][0])


@pytest.mark.parametrize("effort", ["fast", "small", "auto"])
@given(texts=columns, tokenizer=st.sampled_from(["words", "whitespace", "xml"]), lossless=st.booleans())
def test_texts_are_the_same(effort: str, texts: list[str | None], tokenizer: str, lossless: bool) -> None:
    text = pl.Series("text", texts, pl.String)
    made = tadoc.compress(text, effort=effort, tokenizer=tokenizer, lossless=lossless)
    default = tadoc.compress(text, tokenizer=tokenizer, lossless=lossless)
    assert tadoc.decompress(made).equals(tadoc.decompress(default))
    if effort == "fast":
        assert all(len(corpus.grammar.rule_offsets) == 1 for corpus in tadoc.column.split(made))


@pytest.mark.parametrize("effort", ["fast", "small"])
@pytest.mark.parametrize(("call", "options"), CALLS)
@given(texts=columns)
def test_results_are_the_same(
    call: str, options: dict[str, Any], effort: str, engine: str, texts: list[str | None]
) -> None:
    text = pl.Series("text", texts, pl.String)
    analytic = getattr(tadoc, call)
    made, default = (
        analytic(tadoc.compress(text, effort=own), engine=engine, **options) for own in (effort, "default")
    )
    assert made.equals(default)


@pytest.mark.parametrize("effort", ["fast", "small", "auto"])
def test_any_number_of_threads_gives_the_same_column(effort: str) -> None:
    made = []
    for threads in (1, 2, 16):
        with tadoc.Config(threads=threads):
            made.append(tadoc.compress(TEXTS, effort=effort).ext.storage())
    for other in made[1:]:
        assert other.equals(made[0])


@pytest.mark.parametrize("effort", ["fast", "small", "auto"])
@given(texts=columns)
def test_engines_make_the_same_column(engine: str, effort: str, texts: list[str | None]) -> None:
    text = pl.Series("text", texts, pl.String)
    on_cpu = tadoc.compress(text, effort=effort, engine="cpu").ext.storage()
    assert tadoc.compress(text, effort=effort, engine=engine).ext.storage().equals(on_cpu)


def test_default_is_what_it_was() -> None:
    expected = tadoc.compress(TEXTS).ext.storage()
    assert tadoc.compress(TEXTS, effort="default").ext.storage().equals(expected)
    assert symbols_of(tadoc.compress(TEXTS, effort="fast")) == 6 * 14 + 4 * 7


@pytest.mark.parametrize("name", ["peps", "speeches"])
def test_small_has_fewer_symbols(name: str) -> None:
    text = pl.read_parquet(f"examples/data/{name}.parquet")["text"]
    assert symbols_of(tadoc.compress(text, effort="small")) < 0.994 * symbols_of(tadoc.compress(text))


@pytest.mark.parametrize("name", ["peps", "speeches"])
def test_small_files_of_small_columns_are_smaller(name: str, tmp_path: Path) -> None:
    text = pl.read_parquet(f"examples/data/{name}.parquet").select("text")
    sizes = {}
    for effort in ("default", "small"):
        made = text.tadoc.compress("text", effort=effort)
        made.tadoc.write_packed(tmp_path / effort, effort="small")
        sizes[effort] = (tmp_path / effort).stat().st_size
        read = tadoc.scan_packed(tmp_path / effort).collect()
        assert read["text"].ext.storage().equals(made["text"].ext.storage())
    assert sizes["small"] < 0.992 * sizes["default"]


def test_auto_takes_rules_where_they_pay() -> None:
    repeated = pl.Series("text", ["the same words again and again"] * 50)
    assert tadoc.compress(repeated, effort="auto").ext.storage().equals(tadoc.compress(repeated).ext.storage())
    different = pl.Series("text", [f"{7 * k} {7 * k + 1} {k % 3}" for k in range(300)])
    auto = tadoc.compress(different, effort="auto")
    assert auto.ext.storage().equals(tadoc.compress(different, effort="fast").ext.storage())
    assert tadoc.info(auto)["rules"].to_list() == [0]
    both = tadoc.compress(pl.concat([different, repeated]), effort="auto", rows_per_grammar=300)
    assert tadoc.info(both[:300])["rules"][0] == 0 < tadoc.info(both[300:])["rules"][0]
    assert tadoc.info(both).select("grammars", "words_only").row(0) == (2, 1)


def test_a_long_sequence_is_sampled_throughout(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compressed.sample_windows(100) == [(0, 100)]
    size = 10 * compressed.WINDOWS * compressed.WINDOW_WORDS + 3
    windows = compressed.sample_windows(size)
    assert sum(stop - start for start, stop in windows) == compressed.WINDOWS * compressed.WINDOW_WORDS
    assert windows[0][0] == 0
    assert size - windows[-1][1] < size / compressed.WINDOWS
    monkeypatch.setattr(compressed, "WINDOWS", 4)
    monkeypatch.setattr(compressed, "WINDOW_WORDS", 50)
    # nothing repeats near the start only
    text = pl.Series("text", [str(k) for k in range(100)] + ["to be or not to be"] * 300)
    assert tadoc.info(tadoc.compress(text, effort="auto"))["rules"][0] > 0


@pytest.mark.parametrize("effort", ["fast", "small", "auto"])
def test_every_call_has_it(effort: str, tmp_path: Path) -> None:
    expected = tadoc.compress(TEXTS, effort=effort).ext.storage()
    frame = TEXTS.to_frame()
    made = [
        TEXTS.tadoc.compress(effort=effort),
        frame.tadoc.compress("text", effort=effort)["text"],
        frame.select(pl.col("text").tadoc.compress(effort=effort))["text"],
        frame.lazy().tadoc.compress("text", effort=effort).collect()["text"],
    ]
    for column in made:
        assert column.ext.storage().equals(expected)
    path = tmp_path / "packed.parquet"
    frame.tadoc.compress("text", effort=effort).tadoc.write_packed(path)
    assert tadoc.decompress(tadoc.scan_packed(path).collect()["text"]).equals(TEXTS)


@pytest.mark.parametrize("effort", ["fast", "small", "auto"])
def test_a_dictionary_numbers_its_words(effort: str) -> None:
    words = tadoc.Dictionary.from_words(pl.Series(["be", "or", "unused"]))
    made = tadoc.compress(TEXTS, effort=effort, dictionary=words)
    assert tadoc.decompress(made).equals(TEXTS)
    assert tadoc.sort(made).to_pylist() == tadoc.sort(tadoc.compress(TEXTS)).to_pylist()


@pytest.mark.parametrize("effort", ["fast", "small", "auto"])
def test_it_is_appended_and_merged(effort: str) -> None:
    first = tadoc.compress(TEXTS, effort=effort)
    more = tadoc.compress(TEXTS, like=first, effort=effort)
    both = pl.concat([first, more])
    assert tadoc.decompress(both).equals(pl.concat([TEXTS, TEXTS]))
    merged = tadoc.recompress(both)
    assert tadoc.decompress(merged).equals(pl.concat([TEXTS, TEXTS]))
    assert merged.ext.storage().equals(tadoc.compress(pl.concat([TEXTS, TEXTS])).ext.storage())


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match='effort=\'best\': use "default", "fast", "small" or "auto"'):
        tadoc.compress(TEXTS, effort="best")
    for effort in ("fast", "small", "auto"):
        with pytest.raises(ValueError, match=f"method='sequitur': effort=\"{effort}\" settles how rules are made"):
            tadoc.compress(TEXTS, effort=effort, method="sequitur")
