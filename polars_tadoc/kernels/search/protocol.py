"""What every engine supplies to find the best documents for queries."""

from __future__ import annotations

from typing import Any, Protocol

from polars_tadoc.kernels.postings.coded import Lists, Postings, Queries


class SearchKernels(Protocol):
    """Ranked search in coded postings."""

    READS_BOUNDS: bool
    """Whether :meth:`search` is faster with bounds; a GPU decodes a block faster than it asks whether it must."""

    def block_bounds(self, postings: Postings, norms: Any) -> Any:
        """Return what a posting of each block adds at most to a score, for a weight of 1: float32 by block."""

    def search(
        self,
        postings: Postings,
        norms: Any,
        bounds: Any,
        queries: Queries,
        k: int,
        require_all: bool,
        allowed: Any = None,
        extra: Lists | None = None,
    ) -> tuple[Any, Any, Any]:
        """Find the k best documents for each query: how many were found, documents, scores."""
        ...
