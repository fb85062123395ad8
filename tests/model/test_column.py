"""How a column splits into corpora."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError
from polars_tadoc.model import payload
from polars_tadoc.model.column import split
from tests import handmade
from tests.handmade import cut

A = handmade.grammar(["a"])
B = handmade.grammar(["b", "b2"])
C = handmade.grammar(["c", "c2", "c3"])


@given(
    parts=st.lists(
        st.tuples(
            st.sampled_from([0, 1, 2]), st.lists(st.one_of(st.none(), st.lists(st.just(0), max_size=3)), max_size=4)
        ),
        max_size=6,
    )
)
def test_each_grammar_gets_its_rows(parts: list[tuple[int, list[list[int] | None]]]) -> None:
    series = [handmade.column((A, B, C)[g], rows) for g, rows in parts]
    column = pl.concat(series) if series else pl.Series("text", [], tadoc.DTYPE)
    flat = [(g, row) for g, rows in parts for row in rows]
    order = list(dict.fromkeys(g for g, row in flat if row is not None))
    corpora = split(column)
    assert [corpus.grammar.vocabulary_size - 1 for corpus in corpora] == order
    for g, corpus in zip(order, corpora, strict=True):
        expected = [(i, row) for i, (own, row) in enumerate(flat) if own == g and row is not None]
        assert corpus.rows.tolist() == [i for i, _ in expected]
        assert cut(corpus.roots, corpus.root_offsets) == [row for _, row in expected]
        assert corpus.document_count == len(expected) == len(corpus.gaps)
        assert corpus.root_offsets.dtype == corpus.rows.dtype == np.int64
        assert corpus.roots.dtype == np.uint32


def test_nothing_is_copied_where_rows_stand_together() -> None:
    column = tadoc.compress(pl.Series(["a b c", "d e", "f"]))
    whole, part = split(column)[0], split(column.slice(1, 2))[0]
    assert np.shares_memory(whole.roots, part.roots)
    assert part.root_offsets.tolist() == [0, 2, 3]


def test_slices_start_at_their_own_offsets() -> None:
    column = handmade.column(C, [[0, 1], [2], [], [1, 1, 1]])
    for start in range(4):
        for length in range(5 - start):
            corpora = split(column.slice(start, length))
            expected = [[0, 1], [2], [], [1, 1, 1]][start : start + length]
            assert [row for c in corpora for row in cut(c.roots, c.root_offsets)] == expected


def test_a_corpus_is_named_by_its_grammar() -> None:
    column = tadoc.compress(pl.Series(["a b"]))
    text = column.ext.storage().struct.field("grammar").cast(pl.String)[0]
    assert split(column)[0].key == payload.key(text) == f"{text[:54]}:{len(text)}"


def test_a_damaged_payload_is_not_taken_for_the_cached_one() -> None:
    column = tadoc.compress(pl.Series(["a b a b"]))
    fields = column.ext.storage().struct
    cut = fields.field("grammar").cast(pl.String)[0][:-4]
    damaged = fields.unnest().with_columns(pl.lit(cut, tadoc.STORAGE.fields[0].dtype).alias("grammar"))
    with pytest.raises(InvalidGrammarError, match="damaged"):
        damaged.to_struct("text").tadoc.word_count()


def test_a_cached_grammar_is_held_to_the_limit_of_now() -> None:
    column = handmade.column(handmade.grammar(["a"], [[0, 0], [1, 1]]), [[2]])
    assert column.tadoc.word_count().rows() == [("a", 4)]
    with tadoc.Config(expansion_limit=3), pytest.raises(LimitExceededError, match="rule 1 expands to more than 3"):
        column.tadoc.word_count()


def test_many_alternating_grammars() -> None:
    both = pl.concat([tadoc.compress(pl.Series([f"x{i} y" for i in range(3000)]), rows_per_grammar=1500)])
    mixed = both.gather([i // 2 + 1500 * (i % 2) for i in range(3000)])
    assert mixed.tadoc.decompress().to_list() == [f"x{i // 2 + 1500 * (i % 2)} y" for i in range(3000)]
    assert mixed.tadoc.word_count(top=1).rows() == [("y", 3000)]


@pytest.mark.parametrize("rows", [[[3]], [[0], [2, 0, 7]], [[0xFFFFFFFF]]])
def test_symbols_that_no_grammar_has(rows: list[list[int]]) -> None:
    with pytest.raises(
        tadoc.errors.InvalidGrammarError, match=f"has symbol {max(map(max, rows))}, but there are only 3"
    ):
        split(handmade.column(C, rows))


@pytest.mark.parametrize("rows", [[None, 0], [0, None], [None, None, 0]])
def test_what_null_rows_leave_behind_is_no_damage(rows: list[int | None]) -> None:
    """Polars puts null symbols under a null row where it gathers from a column of one row."""
    one = pl.Series("text", ["to be"]).tadoc.compress()
    assert tadoc.decompress(one.gather(rows)).to_list() == [None if row is None else "to be" for row in rows]
    grown = tadoc.compress(pl.Series("text", ["to be" if row == 0 else None for row in rows]), like=one)
    assert tadoc.decompress(grown).to_list() == [None if row is None else "to be" for row in rows]
