"""A segment: the postings of documents that were indexed together. Immutable; deletion marks documents."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from polars_tadoc.config import settings
from polars_tadoc.kernels.host.rows.query_words import fill_keys
from polars_tadoc.kernels.host.rows.spelling import LENGTHS, sign_words
from polars_tadoc.kernels.postings import live_postings
from polars_tadoc.kernels.postings.coded import Postings, Stream
from polars_tadoc.kernels.search.blocks_cpu import Bitmaps
from polars_tadoc.kernels.search.count_cpu import bitmaps_of
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.array_types import UInt32, array_dataclass
from polars_tadoc.runtime.cached_property import cached_property

_keys = itertools.count()

MARKED_SHARE, MIN_MARKED = 32, 2048
"""Lists of at least this share of a segment's documents, and of at least this many, have a bitmap."""

BITMAPS_SHARE = 8
"""Bitmaps take at most the host's cache budget divided by this."""


class SoughtTerms(NamedTuple):
    """Ascending terms in the form for lookups (:func:`.query_words.find_terms`)."""

    offsets: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]
    keys: npt.NDArray[np.uint64]
    """The first eight bytes of each term as a number."""


def sought_terms(terms: Vocabulary) -> SoughtTerms:
    """Return terms in the form for lookups."""
    offsets, data = read_only_parts(terms.offsets), read_only_parts(terms.data)
    keys = np.empty(len(terms), np.uint64)
    fill_keys(offsets, data, keys)
    return SoughtTerms(offsets, data, keys)


class SpelledTerms(NamedTuple):
    """Terms by their number of characters, for :func:`.spelling.find_alike`."""

    starts: npt.NDArray[np.int64]
    order: npt.NDArray[np.uint32]
    signatures: npt.NDArray[np.uint64]
    heads: npt.NDArray[np.uint64]
    tails: npt.NDArray[np.uint64]
    places: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, terms: Vocabulary) -> SpelledTerms:
        """Sort terms by length."""
        size = len(terms)
        starts, order = np.empty(LENGTHS + 2, np.int64), np.empty(size, np.uint32)
        signatures, heads, tails = np.empty((3, size), np.uint64)
        room = np.empty(size, np.uint8), np.empty(size, np.uint64)
        sign_words(terms.offsets, terms.data, *room, starts, order, signatures, heads, tails)
        lengths = np.repeat(np.arange(LENGTHS + 1, dtype=np.uint8), np.diff(starts))
        places = np.argsort(tails, kind="stable").astype(np.uint32)
        places = places[np.argsort(lengths[places], kind="stable")]
        return cls(*map(read_only_parts, (starts, order, signatures, heads, tails[places], places)))


@array_dataclass
class Segment:
    """Postings of some documents, numbered from 0.

    Arrays are read-only: saved indexes are memory-mapped, and kernels are compiled for one form.
    """

    terms: Vocabulary
    """Words of the documents, ascending by UTF-8 bytes; list t of the postings belongs to word t."""
    postings: Postings
    """Documents and counts of each word; in host memory."""
    lengths: UInt32
    """uint32 by document: number of words."""
    deleted: UInt32 | None = None
    """Deletion bitmap, uint32, lowest bit first; None if no document is deleted."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "postings", read_only_parts(self.postings))
        for name in ("lengths", "deleted"):
            object.__setattr__(self, name, read_only_parts(getattr(self, name)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Segment, (self.terms, self.postings, self.lengths, self.deleted)  # a key is unique to this process

    @cached_property
    def key(self) -> str:
        """Key of the postings in caches of this process, independent of deletions."""
        return f"segment:{next(_keys)}"

    @property
    def size(self) -> int:
        """Number of documents, including deleted ones."""
        return len(self.lengths)

    @cached_property
    def live(self) -> npt.NDArray[np.bool_] | None:
        """Whether each document is live; None if all are."""
        if self.deleted is None:
            return None
        marks = np.unpackbits(self.deleted.view(np.uint8), count=self.size, bitorder="little")
        return np.logical_not(marks)

    @cached_property
    def live_count(self) -> int:
        """Number of live documents."""
        return self.size if self.live is None else int(np.count_nonzero(self.live))

    @cached_property
    def live_words(self) -> int:
        """Number of words in live documents."""
        lengths = self.lengths if self.live is None else self.lengths[self.live]
        return int(lengths.sum(dtype=np.uint64))

    @cached_property
    def live_frequencies(self) -> UInt32:
        """uint32 by term: number of live documents that contain it."""
        if self.live is None:
            return self.postings.frequencies  # type: ignore[no-any-return]
        numbers = np.where(self.live, np.uint32(0), live_postings.DELETED)
        return live_postings.live_frequencies(self.postings, numbers)

    @cached_property
    def sought(self) -> SoughtTerms:
        """The terms in the form for lookups."""
        return sought_terms(self.terms)

    @cached_property
    def spelled(self) -> SpelledTerms:
        """The terms by length, for words that are spelled alike."""
        return SpelledTerms.of(self.terms)

    @cached_property
    def bitmaps(self) -> Bitmaps:
        """Bitmaps of the longest lists: at most four bytes a posting, and an eighth of the host's cache budget."""
        most = settings().host_cache_bytes // BITMAPS_SHARE // max(self.size >> 3, 1)
        return bitmaps_of(self.postings, max(self.size // MARKED_SHARE, MIN_MARKED), most)

    @cached_property
    def posting_count(self) -> int:
        """Number of postings, including those of deleted documents."""
        return int(self.postings.frequencies.sum(dtype=np.uint64))

    @cached_property
    def nbytes(self) -> int:
        """Bytes of the postings, words, lengths and the deletion bitmap."""
        strings = self.terms.strings
        marks = 0 if self.deleted is None else self.deleted.nbytes
        return _nbytes(self.postings) + int(strings.nbytes) + self.lengths.nbytes + marks

    def with_deleted(self, deleted: UInt32) -> Segment:
        """Return the segment with another deletion bitmap; caches of the postings stay valid."""
        made = Segment(self.terms, self.postings, self.lengths, deleted)
        made.__dict__.update({name: getattr(self, name) for name in ("key", "sought")})
        made.__dict__.update({name: self.__dict__[name] for name in ("spelled", "bitmaps") if name in self.__dict__})
        return made


def read_only_parts(value: Any) -> Any:
    """Return views of the same arrays that cannot be written to."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    if isinstance(value, (Postings, Stream)):
        return type(value)(*map(read_only_parts, value))
    return value


def _nbytes(postings: Postings | Stream) -> int:
    parts = (_nbytes(part) if isinstance(part, Stream) else getattr(part, "nbytes", 0) for part in postings)
    return sum(parts)
