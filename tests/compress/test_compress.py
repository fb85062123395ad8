"""What compress builds: types, grammars per rows, payloads, progress."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from hypothesis import given

import polars_tadoc as tadoc
from polars_tadoc.compress import compress as module
from polars_tadoc.engine import cpu
from polars_tadoc.engine.choose import Engine
from polars_tadoc.kernels.repair.compressed import Compressed
from polars_tadoc.model import payload
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.runtime.machine_code.cache import COMPILING
from tests.handmade import cut
from tests.strategies import columns


def grammars(column: pl.Series) -> list[str]:
    return (
        column.ext.storage().struct.field("grammar").cast(pl.String).unique(maintain_order=True).drop_nulls().to_list()
    )


def test_type_and_name() -> None:
    column = tadoc.compress(pl.Series("abstract", ["a b", None]))
    assert column.name == "abstract"
    assert column.dtype == tadoc.DTYPE
    assert tadoc.is_tadoc(column.dtype)
    assert column.is_null().to_list() == [False, True]


def test_is_tadoc_is_exact() -> None:
    fields = {field.name: field.dtype for field in tadoc.STORAGE.fields}
    for dtype in (
        pl.String,
        pl.String(),
        pl.Struct({}),
        pl.Struct({**fields, "grammar": pl.Categorical()}),
        pl.Struct({**fields, "grammar": pl.Categorical(pl.Categories("grammar", "other", pl.UInt32))}),
        pl.Struct({**fields, "symbols": pl.List(pl.UInt64)}),
        pl.Struct({**fields, "more": pl.Int8}),
        pl.Struct(dict(reversed(fields.items()))),
        pl.List(tadoc.DTYPE),
        "text",
        None,
    ):
        assert not tadoc.is_tadoc(dtype), dtype
    assert tadoc.is_tadoc(pl.Struct(fields))


def test_is_tadoc_of_a_class() -> None:
    assert not tadoc.is_tadoc(pl.Struct)


@pytest.mark.parametrize(("rows_per_grammar", "count"), [(1, 10), (3, 4), (9, 2), (10, 1), (11, 1), (1 << 40, 1)])
def test_rows_per_grammar(rows_per_grammar: int, count: int) -> None:
    column = tadoc.compress(pl.Series([f"row{i}" for i in range(10)]), rows_per_grammar=rows_per_grammar)
    assert len(grammars(column)) == count
    assert next(corpus.document_count for corpus in tadoc.column.split(column)) == min(rows_per_grammar, 10)


def test_a_grammar_ends_at_a_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BYTES_PER_GRAMMAR", 10)
    rows = ["aaaa", "bbbb", "cccc", "a row of more than ten bytes", None, "", "dd", "123456", "7"]
    column = tadoc.compress(pl.Series(rows))
    assert [corpus.document_count for corpus in tadoc.column.split(column)] == [2, 1, 1, 4]
    assert tadoc.decompress(column).to_list() == rows


def test_equal_rows_share_a_grammar() -> None:
    column = pl.concat([tadoc.compress(pl.Series(["a b", "c"])) for _ in range(3)])
    assert len(grammars(column)) == 1
    assert len(tadoc.column.split(column)) == 1


def test_grammar_is_smaller_than_the_text() -> None:
    rows = [f"Jan {i % 28} host kernel: usb 1-1.{i % 4}: new high-speed device number {i}" for i in range(2000)]
    info = tadoc.info(tadoc.compress(pl.Series(rows))).to_dicts()[0]
    assert info["symbols"] < info["words"] / 2
    assert info["rules"] > 10
    assert info["ratio"] > 1.2


def test_symbols_are_word_ids_and_rules() -> None:
    column = tadoc.compress(pl.Series(["a b c d"] * 20))
    corpus = tadoc.column.split(column)[0]
    assert cut(corpus.grammar.symbols, corpus.grammar.rule_offsets) == [[0, 1, 2, 3]]
    assert cut(corpus.roots, corpus.root_offsets) == [[4]] * 20
    assert corpus.grammar.tokenizer == "words"
    assert (corpus.word_total(), corpus.symbol_count) == (80, 24)


def test_method() -> None:
    with pytest.raises(ValueError, match='method=\'sequitor\': use "batch_repair" or "sequitur"'):
        tadoc.compress(pl.Series(["a"]), method="sequitor")


def test_engine() -> None:
    with pytest.raises(ValueError, match="engine='abacus'"):
        tadoc.compress(pl.Series(["a"]), engine="abacus")
    if tadoc.testing.engines() == ["cpu"]:
        with pytest.raises(tadoc.errors.EngineUnavailableError, match='engine="gpu"'):
            tadoc.compress(pl.Series(["a"]), engine="gpu")
    for engine in ("auto", "cpu"):
        assert tadoc.decompress(tadoc.compress(pl.Series(["a b"]), engine=engine)).to_list() == ["a b"]


@pytest.mark.parametrize("rows_per_grammar", [0, -3])
def test_rows_per_grammar_must_be_positive(rows_per_grammar: int) -> None:
    with pytest.raises(ValueError, match=r"rows_per_grammar=.* must be an integer of at least 1"):
        tadoc.compress(pl.Series(["a"]), rows_per_grammar=rows_per_grammar)


def test_arguments_are_checked_for_an_empty_series_too() -> None:
    with pytest.raises(ValueError, match="tokenizer"):
        tadoc.compress(pl.Series([], dtype=pl.String), tokenizer="nonsense")


@pytest.mark.parametrize(
    ("series", "message"),
    [
        (pl.Series("n", [1, 2]), 'column "n" is Int64, not String'),
        (pl.Series("n", [None]), 'column "n" is Null, not String'),
        (pl.Series("n", [b"a"]), 'column "n" is Binary, not String'),
        (pl.Series("n", ["a"], pl.Categorical), 'column "n" is Categorical, not String'),
        (pl.Series("n", ["a"]).tadoc.compress(), 'column "n" is compressed already'),
    ],
)
def test_only_strings(series: pl.Series, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        tadoc.compress(series)
    with pytest.raises(TypeError, match=message):
        series.to_frame().tadoc.compress("n")
    with pytest.raises(TypeError, match=message):
        series.to_frame().lazy().tadoc.compress("n")
    with pytest.raises(TypeError, match=message):
        series.to_frame().select(pl.col("n").tadoc.compress())


def test_progress_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    tadoc.compress(pl.Series(["a b a b a b"] * 9), progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "compress" in shown.err
    assert "9/9" in shown.err
    tadoc.compress(pl.Series(["a b"]))
    assert capsys.readouterr().err.replace(COMPILING, "") == ""


def test_grammars_are_cached_as_they_are_made() -> None:
    tadoc.compress(pl.Series([f"words of this test only {i}" for i in range(5)]))
    from polars_tadoc.model.grammar_cache import grammars as cache

    column = tadoc.compress(pl.Series([f"words of this test only {i}" for i in range(5)]))
    key = payload.key(str(column.ext.storage().struct.field("grammar").cast(pl.String)[0]))
    assert cache.get(key) is tadoc.column.split(column)[0].grammar


@given(values=columns)
def test_what_a_device_makes_is_stored_as_what_the_cpu_makes(values: list[str | None]) -> None:
    """The way through a device, where there is none: its kernels are stood in for by the CPU's."""
    text = pl.Series("text", values, pl.String)
    expected = tadoc.compress(text, engine="cpu")
    compressed: list[int] = []

    def stand_in(text: pl.Series, *arguments: Any, **options: Any) -> Compressed:
        compressed.append(len(text))
        return cpu.compress_rows(text, *arguments, **options)

    kernels: Any = SimpleNamespace(**{**vars(cpu), "compress_rows": stand_in})
    device = Engine(kernels, ByteLRU(lambda: 1 << 20, lambda value: 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.Compression, "engine_for", lambda *_: device)
        made = tadoc.compress(text)
    assert sum(compressed) == len(values)
    for field in ("symbols", "gaps"):
        assert made.ext.storage().struct.field(field).equals(expected.ext.storage().struct.field(field))
    assert tadoc.decompress(made).equals(text)
