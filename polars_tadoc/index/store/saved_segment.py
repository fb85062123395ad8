"""A segment of a saved index: words and postings are decoded when a search first needs them."""

from __future__ import annotations

from collections.abc import Callable

from polars_tadoc.index.segment import Segment, read_only_parts
from polars_tadoc.kernels.postings.coded import Postings
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.runtime.cached_property import cached_property


class SavedSegment(Segment):
    """A segment of open, verified files.

    Decoded words and postings take two to four times the memory of their files; a loaded index that is not searched
    does not hold them.

    Parameters
    ----------
    decode_terms, decode_postings
        Decode the content of the files.
    lengths, deleted
        As for :class:`Segment`.

    """

    def __init__(
        self,
        decode_terms: Callable[[], Vocabulary],
        decode_postings: Callable[[], Postings],
        lengths: UInt32,
        deleted: UInt32 | None,
    ) -> None:
        self.__dict__.update(_decode_terms=decode_terms, _decode_postings=decode_postings)
        self.__dict__.update(lengths=read_only_parts(lengths), deleted=read_only_parts(deleted))

    @cached_property
    def terms(self) -> Vocabulary:
        """The distinct words of the documents."""
        terms: Vocabulary = self.__dict__["_decode_terms"]()
        return terms

    @cached_property
    def postings(self) -> Postings:
        """Documents and counts of each word."""
        postings: Postings = read_only_parts(self.__dict__["_decode_postings"]())
        return postings

    def with_deleted(self, deleted: UInt32) -> Segment:
        """Return the segment with another deletion bitmap; both share one decoding."""
        made = SavedSegment(lambda: self.terms, lambda: self.postings, self.lengths, deleted)
        kept = ("key", "terms", "postings", "sought")
        made.__dict__.update({name: self.__dict__[name] for name in kept if name in self.__dict__})
        made.__dict__["key"] = self.key
        return made
