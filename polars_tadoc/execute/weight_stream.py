"""Weighs the words of more rows than memory holds, in two passes.

Windows of rows are counted once, because a plan need not return the same rows twice. The counts are kept in a spill, in
memory or on disk. The first pass over them counts the rows of each word; the second pass weighs the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import polars as pl

from polars_tadoc.errors import LimitExceededError
from polars_tadoc.execute.document_frequencies import FREQUENCIES, FrequencyTable, document_frequencies
from polars_tadoc.execute.labels import KeptLabels
from polars_tadoc.execute.splits import working_bytes
from polars_tadoc.execute.stages import Stages
from polars_tadoc.execute.terms import Terms, Totals
from polars_tadoc.execute.weights import WeightsRequest
from polars_tadoc.execute.windows import Window, in_parts
from polars_tadoc.records import Checkpoint, Spill, SpillFolder
from polars_tadoc.records.records import Records, own_words
from polars_tadoc.runtime.arrow_arrays import lent
from polars_tadoc.runtime.free_memory import GROWN_SHARE, give_back_memory

WAITING_SHARE = 8
"""Maximum share of :func:`.splits.working_bytes` for counts in memory."""

SPILL_SHARE = 4
"""The same for words that are not merged yet."""

TABLE_SHARE = 4
"""The same for words in several rows, with their numbers of rows."""

BATCH = 1 << 20
"""Counts weighed at a time if they are kept by row."""


def stream_weights(
    windows: Iterable[Window],
    request: WeightsRequest,
    labels: str | None,
    limit: int,
    checkpoint: Checkpoint | None = None,
) -> Iterator[pl.DataFrame]:
    """Weigh words; parameters and errors as for :func:`polars_tadoc.execute.stream.stream_result`."""
    stages, room = Stages(request), working_bytes(limit)
    with ExitStack() as stack:
        kept = stack.enter_context(KeptLabels(labels, request.name, room))
        folder = stack.enter_context(SpillFolder(request.name))
        totals = stack.enter_context(_AllRows(request.name, folder, room))
        counts = stack.enter_context(Spill(request.layout, room // WAITING_SHARE, request.name, checkpoint))
        for partition, window in enumerate(windows, start=-1):  # the first window has no partition
            kept.keep(window.frame)
            if partition not in counts.covered:
                for part in in_parts(window, limit) if window.documents else ():
                    counted = stages.find_together(part.documents, part.first)
                    counts.add(request.transport.records(counted))
                if partition >= 0:
                    counts.finish(partition)
        for records in counts.merged(batch=BATCH):
            totals.add(records)
        totals.settle()
        yield request.framed(request.finish(request.merge([]), kept.all(), stages.batches))
        for records in counts.merged(batch=BATCH):
            terms = totals.given_to(_own_terms(request, records))
            yield request.framed(request.finish(terms, kept.all(), stages.batches))
            del records, terms
            give_back_memory(limit // GROWN_SHARE)


def _own_terms(request: WeightsRequest, records: Records) -> Terms:
    """Convert the records of some rows to terms, with only their own words, in code point order."""
    words, keys = own_words(request.layout.are_words, records.words, records.keys)
    return request.transport.part(replace(records, words=words, keys=keys, shared=None))


class _AllRows:
    """Totals over all rows: collected first, then attached to parts of the rows.

    Parameters
    ----------
    call
        Prefix of messages.
    folder
        Folder for words that do not fit in memory.
    room
        Bytes of the limit that threads do not take.

    """

    def __init__(self, call: str, folder: SpillFolder, room: int) -> None:
        self._call = call
        self._spill = Spill(FREQUENCIES, room // SPILL_SHARE, call)
        self._table = FrequencyTable(folder, room // TABLE_SHARE)
        self._documents = self._words = 0

    def add(self, terms: Records) -> None:
        """Add rows to the counts of rows per word."""
        assert terms.rows is not None
        assert terms.lengths is not None
        self._documents += len(terms.rows)
        self._words += int(terms.lengths.sum())
        if self._words >= 1 << 63:
            raise LimitExceededError(f"{self._call}: the rows contain more words than 64 bits can count")
        self._spill.add(document_frequencies(terms))

    def settle(self) -> None:
        """Finish adding rows."""
        for records in self._spill.merged(min_count=2):
            assert records.counts is not None
            self._table.append(records.words.take(lent(records.keys[:, 0])), records.counts)

    def given_to(self, terms: Terms) -> Terms:
        """Return some of the added rows with the totals."""
        return replace(terms, known_totals=Totals(self._documents, self._words, self._table.look_up(terms.words)))

    def __enter__(self) -> _AllRows:
        self._spill.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._spill.__exit__(*error)
