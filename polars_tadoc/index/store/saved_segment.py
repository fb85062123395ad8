"""A segment of a saved index: words, postings and lengths are read when a search first needs them."""

from __future__ import annotations

from collections.abc import Callable

from polars_tadoc.index.segment import Segment, read_only_parts
from polars_tadoc.kernels.postings.coded import Postings
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.runtime.free_memory import give_back_memory


class SavedSegment(Segment):
    """A segment of open files.

    Decoded words and postings take two to four times the memory of their files; a loaded index that is not searched
    does not hold them.

    Parameters
    ----------
    size
        Number of documents.
    decode_terms, decode_postings, read_lengths
        Check and decode the content of the files; postings from the number of terms.
    deleted
        As for :class:`Segment`.

    """

    def __init__(
        self,
        size: int,
        decode_terms: Callable[[], Vocabulary],
        decode_postings: Callable[[int], Postings],
        read_lengths: Callable[[], UInt32],
        deleted: UInt32 | None,
    ) -> None:
        self.__dict__.update(_size=size, _decode_terms=decode_terms, _decode_postings=decode_postings)
        self.__dict__.update(_read_lengths=read_lengths, deleted=read_only_parts(deleted))

    @property
    def size(self) -> int:
        """Number of documents, including deleted ones."""
        return int(self.__dict__["_size"])

    @cached_property
    def lengths(self) -> UInt32:
        """uint32 by document: number of words."""
        lengths: UInt32 = read_only_parts(self.__dict__["_read_lengths"]())
        return lengths

    @cached_property
    def terms(self) -> Vocabulary:
        """The distinct words of the documents."""
        terms: Vocabulary = self.__dict__["_decode_terms"]()
        return terms

    @cached_property
    def postings(self) -> Postings:
        """Documents and counts of each word."""
        postings: Postings = read_only_parts(self.__dict__["_decode_postings"](len(self.terms)))
        return postings

    def check(self) -> None:
        """Read and check all files, without keeping what they hold: a search decodes them again."""
        given = self.__dict__
        count = len(given["_decode_terms"]())
        give_back_memory()  # Arrow keeps what reading the words took, which is more than the postings will take
        given["_decode_postings"](count)
        given["_read_lengths"]()

    def with_deleted(self, deleted: UInt32) -> Segment:
        """Return the segment with another deletion bitmap; both share one decoding."""
        made = SavedSegment(self.size, lambda: self.terms, lambda _: self.postings, lambda: self.lengths, deleted)
        kept = ("key", "terms", "postings", "lengths", "sought", "spelled", "bitmaps")
        made.__dict__.update({name: self.__dict__[name] for name in kept if name in self.__dict__})
        made.__dict__["key"] = self.key
        return made
