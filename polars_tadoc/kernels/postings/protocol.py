"""What every engine supplies to read coded postings."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.postings.coded import Postings, Queries


class ListCache(Protocol):
    """Postings of which only some lists are resident at a time."""

    def bring(self, queries: Queries) -> Generator[tuple[Postings, Queries], None, None]:
        """Make the lists of queries resident, for as many queries at a time as there is room."""
        ...

    def is_resident(self, lists: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
        """Tell which lists are resident."""
        ...


class PostingKernels(Protocol):
    """Lists of documents by term, coded."""

    def load_postings(self, postings: Postings) -> Postings:
        """Make postings resident, whole."""
        ...

    def resident_postings(self, postings: Postings, budget: int) -> Postings | ListCache:
        """Make postings resident: whole, or where they are beyond a budget of bytes, the lists that are read."""
        ...

    def decode_lists(self, postings: Postings, lists: Any) -> tuple[Any, Any, Any]:
        """Decode whole lists: offsets, documents, counts."""
        ...
