"""Columns kept by the identity of their memory: found again while their owner lives, never mistaken for others."""

from __future__ import annotations

import gc

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from polars_tadoc.engine.choose import CPU, Engine
from polars_tadoc.model import kept_columns
from polars_tadoc.model.column import split
from polars_tadoc.model.kept_columns import split_and_keep
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.traversal.source import resident_rows

TEXTS = ["to be or not to be", None, "", "be or be or be or"]


def compressed(texts: list[str | None]) -> pl.DataFrame:
    return pl.DataFrame({"text": pl.Series(texts, dtype=pl.String)}).tadoc.compress("text")  # type: ignore[attr-defined,no-any-return]


def same(kept: list[tadoc.column.Corpus], column: pl.Series) -> bool:
    return all(
        one.key == other.key
        and np.array_equal(one.rows, other.rows)
        and np.array_equal(one.root_offsets, other.root_offsets)
        and np.array_equal(one.roots, other.roots)
        for one, other in zip(kept, split(column), strict=True)
    )


def test_the_second_call_finds_the_same_corpora() -> None:
    df = compressed(TEXTS)
    first = split_and_keep(df["text"], df)
    assert same(first, df["text"])
    assert all(one is other for one, other in zip(first, split_and_keep(df["text"], df), strict=True))


def test_slices_chunks_and_filters_are_other_columns() -> None:
    df = compressed(TEXTS * 3)
    parts = [
        df,
        df[1:],
        df[:-1],
        df.filter(pl.int_range(pl.len()) % 2 == 0),
        pl.concat([df, df]),
        pl.concat([df, df[2:]]),
    ]
    kept = [split_and_keep(part["text"], part) for part in parts]
    for part, own in zip(parts, kept, strict=True):
        assert same(own, part["text"])
        assert same(split_and_keep(part["text"], part), part["text"])
    names = [one.identity for own in kept for one in own]
    assert len(set(names)) == len(names)


def test_a_column_is_dropped_with_its_owner() -> None:
    gc.collect()
    before = len(kept_columns.columns)
    df = compressed(TEXTS)
    split_and_keep(df["text"], df)
    assert len(kept_columns.columns) == before + 1
    del df
    gc.collect()
    assert len(kept_columns.columns) == before


def test_new_rows_at_an_old_address_are_not_mistaken() -> None:
    for k in range(50):  # memory of the frame before is used again
        df = compressed([f"a{k} b{k} a{k}", f"b{k}"])
        assert df.tadoc.word_count("text").rows() == [(f"a{k}", 2), (f"b{k}", 2)]  # type: ignore[attr-defined]


def test_a_frame_changed_in_place_is_read_anew() -> None:
    df = compressed(["to be"])
    assert df.tadoc.word_count("text")["word"].to_list() == ["be", "to"]  # type: ignore[attr-defined]
    df.replace_column(0, compressed(["or not"])["text"])
    assert df.tadoc.word_count("text")["word"].to_list() == ["not", "or"]  # type: ignore[attr-defined]


def test_nothing_is_kept_beyond_the_budget() -> None:
    df = compressed(TEXTS)
    with tadoc.Config(host_cache_bytes=0):
        split_and_keep(df["text"], df)
        assert len(kept_columns.columns) == 0


class Counting(Engine):
    """The CPU with a cache, as a device has."""

    @property
    def place(self) -> str:
        return "counting:0"


def test_rows_are_loaded_once_and_dropped_with_their_column() -> None:
    resident: ByteLRU[object] = ByteLRU(lambda: 1 << 20, lambda value: int(value.nbytes))  # type: ignore[attr-defined]
    engine = Counting(CPU.kernels, resident)
    df = compressed(TEXTS)
    (corpus,) = split_and_keep(df["text"], df)
    rows = resident_rows(corpus, engine)
    (again,) = split_and_keep(df["text"], df)
    assert resident_rows(again, engine) is rows
    assert resident.nbytes == corpus.roots.nbytes + corpus.root_offsets.nbytes
    part = corpus.some(0, 1)
    assert resident_rows(part, engine) is not rows
    del df, corpus, again, part
    gc.collect()
    assert len(resident) == 0


def test_rows_beyond_the_budget_are_loaded_for_each_call() -> None:
    engine = Counting(CPU.kernels, ByteLRU(lambda: 1, lambda value: int(value.nbytes)))  # type: ignore[attr-defined]
    df = compressed(TEXTS)
    (corpus,) = split_and_keep(df["text"], df)
    assert resident_rows(corpus, engine) is not resident_rows(corpus, engine)
