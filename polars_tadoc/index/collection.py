"""A collection of documents with their postings: the input of searches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.index.documents import Documents
from polars_tadoc.index.fields import Fields, first_word
from polars_tadoc.index.query.analyzer import Analyzer
from polars_tadoc.index.segment import Segment
from polars_tadoc.runtime.cached_property import cached_property


@dataclass(frozen=True, eq=False, repr=False)
class Collection:
    """Segments of postings, data of their documents, and the analyzer of queries."""

    segments: tuple[Segment, ...]
    analyzer: Analyzer
    stored: Documents
    codec: str
    """Name of the codec of its postings."""
    fields: Fields | None = None
    """Its text columns with their weights; None if there is one."""
    prepared: dict[Any, Any] = field(default_factory=dict, init=False)
    """Cache of searches (:mod:`polars_tadoc.index.query.prepared`)."""
    short_ways: dict[Any, Any] = field(default_factory=dict, init=False)
    """By request, what single queries read (:mod:`polars_tadoc.index.query.one`)."""
    texts: dict[int, Any] = field(default_factory=dict, init=False)
    """By segment, the text in which phrases are counted (:mod:`polars_tadoc.index.query.segment_text`)."""

    @cached_property
    def documents(self) -> int:
        """Number of documents."""
        return sum(segment.live_count for segment in self.segments)

    @cached_property
    def average_length(self) -> float:
        """Average number of words of a document; 0 without documents."""
        return sum(segment.live_words for segment in self.segments) / max(self.documents, 1)

    @cached_property
    def terms(self) -> int:
        """Number of distinct words in documents."""
        words = [
            own.terms.series.filter(pl.Series(own.live_frequencies > 0))[field_terms(self, own, live=True) :]
            for own in self.segments
        ]
        return len(words[0]) if len(words) == 1 else pl.concat(words).n_unique() if words else 0

    @cached_property
    def postings(self) -> int:
        """Number of postings: pairs of a document and a word in it."""
        return sum(int(own.live_frequencies[field_terms(self, own) :].sum(dtype="uint64")) for own in self.segments)

    @cached_property
    def nbytes(self) -> int:
        """Bytes of postings, words and lengths; not of ids, metadata and text, which are shared with frames."""
        return sum(segment.nbytes for segment in self.segments)

    @property
    def ids(self) -> pl.Series:
        """Ids of the documents, in document order."""
        return self.stored.ids if self.live is None else self.stored.ids.filter(pl.Series(self.live))

    @property
    def metadata(self) -> pl.DataFrame | None:
        """Metadata of the documents, one row each, in document order; None without metadata."""
        metadata = self.stored.metadata
        return metadata if metadata is None or self.live is None else metadata.filter(pl.Series(self.live))

    @cached_property
    def live(self) -> npt.NDArray[np.bool_] | None:
        """Whether each stored document is live (not deleted); None if all are."""
        if all(segment.live is None for segment in self.segments):
            return None
        return np.concatenate(
            [np.ones(segment.size, np.bool_) if segment.live is None else segment.live for segment in self.segments]
        )


def field_terms(index: Collection, segment: Segment, live: bool = False) -> int:
    """Return the number of terms of single fields, which are a segment's first ones; or of those that are ``live``."""
    count = 0 if index.fields is None else first_word(segment)
    return int(np.count_nonzero(segment.live_frequencies[:count])) if live else count
