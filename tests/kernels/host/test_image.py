"""Maps of words applied to rules and rows, against expanding first and mapping then."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.engine import cpu
from polars_tadoc.kernels.host.rows.word_map import map_roots, map_rules
from polars_tadoc.kernels.primitives.codes import DELETED
from polars_tadoc.kernels.traverse.analytics_reference import expand_documents
from tests import handmade
from tests.strategies import grammars


@given(made=grammars(), data=st.data())
def test_mapped_rows(made: Any, data: st.DataObject) -> None:
    vocabulary_size, bodies, level_offsets, rows = made
    rules = cpu.load_rules(handmade.grammar(handmade.words(vocabulary_size), bodies, level_offsets))
    size = data.draw(st.integers(1, 4))
    targets = st.one_of(st.integers(0, size - 1), st.just(DELETED))
    image = data.draw(st.lists(targets, min_size=vocabulary_size, max_size=vocabulary_size))
    root_offsets = np.cumsum([0, *(len(row) for row in rows)])
    roots = np.array([symbol for row in rows for symbol in row], np.uint32)

    mapped = map_rules(rules, np.array(image, np.uint32), size)
    offsets, symbols = map_roots(rules, root_offsets, roots, np.array(image, np.uint32), mapped)

    def expanded(source: Any, offsets: Any, roots: Any) -> list[list[int]]:
        arrays = (source.rule_offsets, source.symbols, offsets, roots)
        return expand_documents(source.terminals, *(array.tolist() for array in arrays))

    def of_image(row: list[int]) -> list[int]:
        return [image[word] for word in row if image[word] != DELETED]

    plain = expanded(rules, root_offsets, roots)
    assert expanded(mapped, offsets, symbols) == [of_image(row) for row in plain]
    every = np.arange(rules.rule_count, dtype=np.uint32)
    alone = np.arange(rules.rule_count + 1)
    lengths = [len(row) for row in expanded(mapped, alone, every + size)]
    assert mapped.lengths.tolist() == lengths
    assert (mapped.lengths[symbols[symbols >= size] - size] > 0).all(), "a row names what stands for nothing"
