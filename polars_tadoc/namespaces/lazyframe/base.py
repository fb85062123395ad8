"""``lf.tadoc``: what all its calls share."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

import polars as pl

from polars_tadoc.analytics.cleaning.near_duplicates import (
    DuplicateGroupsRequest,
    NearDuplicatesOptions,
    NearDuplicatesRequest,
)
from polars_tadoc.analytics.cleaning.options import DropRepeatsOptions, OverlapOptions, RepeatsOptions
from polars_tadoc.analytics.concordance import ConcordanceRequest, PositionsRequest
from polars_tadoc.analytics.twig_filter import TwigFilterOptions, TwigFilterRequest
from polars_tadoc.execute.analytic import Analytic, asking_for_frames
from polars_tadoc.execute.columns import label_column, text_column
from polars_tadoc.execute.plan import WITHOUT_LIMIT, ask, read_columns
from polars_tadoc.namespaces import frame_options as given
from polars_tadoc.namespaces.accessors import Calls
from polars_tadoc.runtime.arguments import require_path
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.option_signature import Default
from polars_tadoc.runtime.process.fork import require_threads
from polars_tadoc.traversal.options import require_memory_limit

MEMORY_LIMIT = """Bytes, or a number with a unit ("2GB", "512MiB"): the plan runs batch by batch, and its data stays
    within this limit; Polars' and Python's own memory, about 0.4 GB, is extra. Partial results that do not fit are
    spilled to disk (``tadoc.Config(spill_folder=…)``), and the result is returned frame by frame. One grammar with its
    rows must fit, and one row of the result; otherwise raises ``LimitExceededError``. CuPy and a CUDA context count,
    about 400 MB: with ``engine="auto"``, a limit below 800 MB means the CPU."""

CHECKPOINT = """Local folder for partial results of finished partitions of a packed scan. The same call with the same
    folder continues after them, or returns their result; the folder stays until you delete it. Requires
    ``memory_limit``, and a scan that raises errors (``on_error="raise"``)."""

documented = partial(documented_by, memory_limit=MEMORY_LIMIT, checkpoint=CHECKPOINT)


class PlanOptions(TypedDict, total=False):
    """Memory limit of a plan, and its folder for partial results."""

    memory_limit: Annotated[int | str | None, Default(None)]
    checkpoint: Annotated[str | os.PathLike[str] | None, Default(None)]


class CountInPlans(given.CountInFrames, PlanOptions, total=False):
    """Options of calls in a lazy plan."""


class TopInPlans(given.TopInFrames, PlanOptions, total=False):
    """Options of calls in a lazy plan."""


class LengthsInPlans(given.LengthsInFrames, PlanOptions, total=False):
    """Options of calls on lazy frames."""


class RunInPlans(given.RunInFrames, PlanOptions, total=False):
    """Options of calls in a lazy plan."""


class CooccurrenceInPlans(given.CooccurrenceInFrames, PlanOptions, total=False):
    """Options of the call in a lazy plan."""


class BM25WeightsInPlans(given.BM25WeightsInFrames, PlanOptions, total=False):
    """Options of the call in a lazy plan."""


class TFIDFInPlans(given.TFIDFInFrames, PlanOptions, total=False):
    """Options of the call in a lazy plan."""


class RepeatsInPlans(RepeatsOptions, PlanOptions, total=False):
    """Options of the call in a lazy plan."""


class DropRepeatsInPlans(DropRepeatsOptions, PlanOptions, total=False):
    """Options of the call in a lazy plan."""


class OverlapInPlans(OverlapOptions, total=False):
    """Options of the call in a lazy plan."""

    memory_limit: Annotated[int | str | None, Default(None)]


class NearDuplicatesInPlans(NearDuplicatesOptions, total=False):
    """Options of the call in a lazy plan."""

    memory_limit: Annotated[int | str | None, Default(None)]


class TwigFilterInPlans(TwigFilterOptions, PlanOptions, total=False):
    """Options of the call in a lazy plan."""


def plan_options(options: Any, call: str) -> tuple[int | None, Path | None, Any]:
    """Return the memory limit, the folder of the checkpoint, and the other options.

    Raises
    ------
    TypeError, ValueError
        The limit is no number of bytes, or there is a checkpoint without a limit.

    """
    own = dict(options)
    limit, checkpoint = require_memory_limit(own.pop("memory_limit")), own.pop("checkpoint", None)
    if limit is not None and own.get("engine") == "gpu":
        raise ValueError(f'{call}: engine="gpu" holds the column in memory; leave out memory_limit, or the engine')
    if checkpoint is None:
        return limit, None, own
    if limit is None:
        raise ValueError(f"{call}: {WITHOUT_LIMIT}")
    return limit, require_path("checkpoint", checkpoint, call), own


class PlanBase(Calls):
    """Holds the data; parts of the accessor, by topic, build on it."""

    def __init__(self, lf: pl.LazyFrame) -> None:
        require_threads()
        self._lf = lf

    def _labelled(
        self,
        request: NearDuplicatesRequest | DuplicateGroupsRequest | PositionsRequest | ConcordanceRequest,
        column: str | None,
        id: str | None,
    ) -> pl.LazyFrame:
        lf, columns = self._lf, self._lf.collect_schema()
        name = text_column(columns, column, request.name)
        labels = None if id is None else label_column(columns, id, request.name)
        return read_columns(lf, request, name, labels, request.schema(None if labels is None else columns[labels]))

    def _plan(
        self, make: Callable[..., Analytic[Any, Any]], options: Any, column: str | None, id: str | None = None
    ) -> pl.LazyFrame:
        """Make a node of an analytic, from all options except those of :class:`PlanOptions`."""
        own = dict(options)
        memory_limit, checkpoint = own.pop("memory_limit"), own.pop("checkpoint")
        analytic = asking_for_frames(make, own)
        limit = require_memory_limit(memory_limit)
        lf = self._lf
        columns = lf.collect_schema()
        name = text_column(columns, column, analytic.name)
        if isinstance(analytic, TwigFilterRequest):
            analytic = replace(analytic, column=name)
        labels = None if id is None else label_column(columns, id, analytic.name)
        schema = analytic.columns(None if labels is None else columns[labels])
        folder = None if checkpoint is None else require_path("checkpoint", checkpoint, analytic.name)
        return ask(lf, analytic, name, labels, limit, schema, folder)
