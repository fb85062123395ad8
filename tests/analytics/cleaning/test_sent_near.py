"""Near duplicates of rows that several processes hold: the functions that workers call, in one process."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.analytics.cleaning.laid_words import lay_out
from polars_tadoc.analytics.cleaning.near_duplicates import DuplicateGroupsRequest, NearDuplicatesRequest
from polars_tadoc.analytics.cleaning.sent_near import SignedRows, compare, components_of, edges_of
from polars_tadoc.records.labelled_results import Labels

WORDS = st.sampled_from(["a", "b", "c", "d"])
ROWS = st.lists(st.one_of(st.none(), st.lists(WORDS, max_size=7).map(" ".join)), min_size=1, max_size=14)
SHARDS = 3


def through_processes(request: Any, text: pl.Series, ids: pl.Series | None, edges: list[int]) -> pl.DataFrame:
    """What workers do, with the rows cut at some places."""
    parts = []
    for first, stop in zip([0, *edges], [*edges, len(text)], strict=True):
        laid = lay_out(text[first:stop], request.name, request.tokenizer, request.morphism)
        labels = Labels(None if ids is None else ids[first:stop], first)
        parts.append((SignedRows.of(request, laid, first), labels, first, stop))
    listed = [list(own.keys(SHARDS)) for own, *_ in parts]
    joined = [edges_of(*map(np.concatenate, zip(*shard, strict=True))) for shard in zip(*listed, strict=True)]
    rows, roots = components_of(joined)
    sent, asked = [], []
    for own, labels, first, stop in parts:
        a, b = np.searchsorted(rows, [first, stop])
        asked.append(rows[a:b])
        sent.append(list(own.sent(rows[a:b], roots[a:b] % np.uint32(SHARDS), labels, SHARDS)))
    found = [compare(request, pickle.loads(pickle.dumps(shard)))[0] for shard in zip(*sent, strict=True)]
    made = []
    for (own, labels, first, stop), some in zip(parts, asked, strict=True):
        of = [one.filter((pl.col("row") >= first) & (pl.col("row") < stop)) for one in found]
        made.append(own.finish(some, of, labels))
    return pl.concat(made)


@pytest.mark.parametrize("request_type", [NearDuplicatesRequest, DuplicateGroupsRequest])
@given(rows=ROWS, data=st.data(), threshold=st.sampled_from([0.3, 0.8, 1.0]), labelled=st.booleans())
def test_results_are_those_of_one_process(
    request_type: Any, rows: list[str | None], data: st.DataObject, threshold: float, labelled: bool
) -> None:
    edges = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    text, ids = pl.Series("text", rows, dtype=pl.String), pl.Series("id", [f"r{row}" for row in range(len(rows))])
    request = request_type.from_arguments(ngram=2, threshold=threshold, permutations=16)
    labels = ids if labelled else None
    assert through_processes(request, text, labels, edges).equals(request.frame(text, labels))
