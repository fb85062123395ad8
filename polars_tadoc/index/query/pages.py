"""Pages of results, in other orders than by score, and counts over all hits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import polars as pl

from polars_tadoc.errors import ColumnMissingError
from polars_tadoc.index.collection import Collection
from polars_tadoc.index.query.plan import Plan
from polars_tadoc.index.query.rank import Found
from polars_tadoc.index.query.request import Request
from polars_tadoc.index.query.results import as_frame
from polars_tadoc.kernels.postings.decode_cpu import decode_lists
from polars_tadoc.model.text_type import is_tadoc
from polars_tadoc.runtime.arguments import require_bool, require_integer
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32
from polars_tadoc.traversal.options import MAX_COUNT

Facets = dict[str, pl.DataFrame]


@dataclass(frozen=True)
class Page:
    """Results of a search beside the best documents, or in their place."""

    offset: int
    total: bool
    sort: tuple[str, ...]
    descending: tuple[bool, ...]
    group_by: str | None
    facets: tuple[str, ...] | None

    @classmethod
    def of(
        cls,
        index: Collection,
        mode: str,
        offset: object,
        total: object,
        sort: object,
        descending: object,
        group_by: object,
        facets: object,
    ) -> Page:
        """Check the arguments.

        Raises
        ------
        TypeError
            An argument has the wrong type, or a column is compressed text.
        ValueError
            ``offset`` is negative, ``descending`` does not fit ``sort``, the index has no metadata, or the mode is
            "and_or", which has no hits of its own.
        ColumnMissingError
            The metadata does not have a column.

        """
        first = min(require_integer("offset", offset, 0), MAX_COUNT)
        require_bool("total", total, "search")
        names = _names(index, "sort", sort) or ()
        ways = (descending,) * len(names) if isinstance(descending, bool) else descending
        if not isinstance(ways, Sequence) or not all(isinstance(way, bool) for way in ways):
            raise TypeError(
                f"search: descending={descending!r} must be True or False, or one of them for each of sort="
            )
        if len(ways) != len(names) or (descending is True and not names):
            raise ValueError(f"search: descending= has {len(ways)} values for {len(names)} columns of sort=")
        if group_by is not None and not isinstance(group_by, str):
            raise TypeError(f"search: group_by is {type(group_by).__name__}, not the name of a column")
        group, kinds = _names(index, "group_by", group_by), _names(index, "facets", facets)
        if mode == "and_or" and (total or names or group or facets is not None):
            raise ValueError('search: total=, sort=, group_by= and facets= count all hits of mode "and" or "or"')
        return cls(first, bool(total), names, tuple(ways), group[0] if group else None, kinds)

    @property
    def wants_all(self) -> bool:
        """Whether all hits must be found with their scores."""
        return bool(self.sort) or self.group_by is not None

    @property
    def counts_hits(self) -> bool:
        """Whether all hits must be found."""
        return self.total or self.facets is not None


def _names(index: Collection, name: str, given: object) -> tuple[str, ...] | None:
    """Return names of metadata columns; None if none are given."""
    if given is None:
        return None
    names = [given] if isinstance(given, str) else [*given] if isinstance(given, Iterable) else [None]
    if not all(isinstance(own, str) for own in names):
        raise TypeError(f"search: {name} must name columns of the metadata, not {given!r}")
    metadata = index.stored.metadata
    if metadata is None:
        raise ValueError(
            f'search: {name}="{names[0] if names else ""}" is a column of the metadata, but the index has none; build '
            'it with build_index("text", metadata=["year"])'
        )
    for own in names:
        if own not in metadata.columns:
            raise ColumnMissingError.for_name(str(own), metadata.columns, f"search: {name}")
        if is_tadoc(metadata.schema[str(own)]):
            raise TypeError(f'search: {name}: column "{own}" is compressed text, whose values are not compared')
    return tuple(map(str, names))


@lru_cache(maxsize=64)
def with_k(request: Request, k: int) -> Request:
    """Return a request for another number of results; the same one each time."""
    return replace(request, k=k)


def hits_of(index: Collection, planned: Plan, is_all: bool, allowed: list[UInt32 | None]) -> tuple[Int64, Int64]:
    """Find all documents that match each query.

    Returns
    -------
    (int64 array, int64 array)
        The query of each hit, ascending, and its document, ascending within the query.

    """
    required = planned.required(is_all)
    ways = np.full(planned.size, is_all) if required is None else required
    owners, documents, start = [_NONE], [_NONE], 0
    for number, segment in enumerate(index.segments):
        for query, found in _in_segment(index, planned, ways, number, allowed[number]):
            owners.append(np.full(len(found), query))
            documents.append(found + start)
        start += segment.size
    queries, numbers = np.concatenate(owners), np.concatenate(documents)
    order = np.argsort(queries, kind="stable")
    return queries[order], numbers[order]


def _in_segment(
    index: Collection, planned: Plan, ways: Bools, number: int, allowed: UInt32 | None
) -> Iterator[tuple[int, Int64]]:
    segment, extra = index.segments[number], planned.extra[number]
    first = len(segment.terms)
    mask = None
    if allowed is not None:
        mask = np.unpackbits(allowed.view(np.uint8), count=segment.size, bitorder="little").view(np.bool_)
    for way in (True, False):
        queries = planned.queries(number, way, ways == way)
        for query in np.flatnonzero(np.diff(queries.offsets)).tolist():
            lists = queries.lists[queries.offsets[query] : queries.offsets[query + 1]]
            parts = [decode_lists(segment.postings, lists[lists < first])[1]]
            for own in (lists[lists >= first] - first).tolist():
                assert extra is not None
                parts.append(extra.documents[extra.offsets[own] : extra.offsets[own + 1]])
            counts = np.bincount(np.concatenate(parts), minlength=segment.size)
            matches = counts == len(lists) if way else counts > 0
            yield query, np.flatnonzero(matches if mask is None else matches & mask)


def paged(index: Collection, found: Found, page: Page, k: int, totals: Int64 | None) -> pl.DataFrame:
    """Cut a page of results.

    Parameters
    ----------
    index
        The index.
    found
        The best results: all of them if the page wants all, else at least as many as the page's end.
    page, k
        The page, and its size.
    totals
        By query, the number of hits, if the page counts them.

    """
    metadata, owners = index.stored.metadata, np.repeat(np.arange(len(found.counts)), found.counts)
    documents = found.documents.astype(np.int64)
    frame = pl.DataFrame({"query": owners, "document": documents, "score": found.scores})
    if page.sort:
        assert metadata is not None
        keys = [metadata[name].gather(documents).alias(f"key {place}") for place, name in enumerate(page.sort)]
        order = [False, *page.descending, True, False]
        by = ["query", *(key.name for key in keys), "score", "document"]
        frame = frame.with_columns(keys).sort(by, descending=order, nulls_last=True, maintain_order=True)
    if page.group_by is not None:
        assert metadata is not None
        frame = frame.with_columns(group=metadata[page.group_by].gather(frame["document"]))
        frame = frame.group_by("query", "group", maintain_order=True).agg(
            pl.col("document", "score").first(), hits=pl.len()
        )
        frame = frame.sort("query", maintain_order=True)
    frame = frame.with_columns(rank=pl.int_range(1, pl.len() + 1).over("query"))
    frame = frame.filter(pl.col("rank") > page.offset, pl.col("rank") <= min(page.offset + k, MAX_COUNT))
    counts = np.bincount(frame["query"].to_numpy(), minlength=len(found.counts))
    cut = Found(counts, frame["document"].to_numpy(), frame["score"].to_numpy())
    result = as_frame(index.stored, cut).with_columns(frame["rank"].cast(pl.UInt32))
    if page.group_by is not None:
        result = result.with_columns(frame["group"], frame["hits"].cast(pl.UInt32))
    if page.total:
        assert totals is not None
        result = result.with_columns(total=pl.Series(totals[frame["query"].to_numpy()], dtype=pl.UInt32))
    return result


def facets_of(index: Collection, names: Sequence[str], hits: tuple[Int64, Int64]) -> Facets:
    """Count the hits of each query by the values of metadata columns."""
    metadata = index.stored.metadata
    assert metadata is not None or not names
    owners, made = pl.Series("query", hits[0], pl.UInt32), {}
    for name in names:
        values = metadata[name].gather(hits[1]).alias("value")  # type: ignore[index]
        counted = pl.DataFrame([owners, values]).group_by("query", "value").agg(count=pl.len().cast(pl.UInt32))
        made[name] = counted.sort("query", "count", "value", descending=[False, True, False], nulls_last=True)
    return made


_NONE: Int64 = np.zeros(0, np.int64)
