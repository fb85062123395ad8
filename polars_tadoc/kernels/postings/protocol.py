"""Functions that every engine supplies for reading coded postings."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.postings.coded import Postings, Queries


class ListCache(Protocol):
    """Postings of which only some lists are resident."""

    def bring(self, queries: Queries) -> Generator[tuple[Postings, Queries], None, None]:
        """Make the lists of queries resident, for as many queries at a time as fit."""
        ...

    def is_resident(self, lists: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
        """Return which lists are resident."""
        ...


class PostingKernels(Protocol):
    """Lists of documents by term, coded."""

    def load_postings(self, postings: Postings) -> Postings:
        """Make postings resident, whole."""
        ...

    def resident_postings(self, postings: Postings, budget: int) -> Postings | ListCache:
        """Make postings resident: all of them, or beyond a budget of bytes a cache of lists."""
        ...

    def decode_lists(self, postings: Postings, lists: Any) -> tuple[Any, Any, Any]:
        """Decode whole lists: offsets, documents, counts."""
        ...
