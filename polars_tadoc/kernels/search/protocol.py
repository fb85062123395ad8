"""Functions that every engine supplies for searches."""

from __future__ import annotations

from typing import Any, Protocol

from polars_tadoc.kernels.postings.coded import Lists, Postings, Queries


class SearchKernels(Protocol):
    """Ranked search in coded postings."""

    READS_BOUNDS: bool
    """Whether :meth:`search` is faster with bounds; a GPU decodes a block faster than it tests a bound."""

    def block_bounds(self, postings: Postings, norms: Any) -> Any:
        """Return the maximum contribution of a posting of each block to a score, for weight 1: float32 by block."""

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
        """Return the k best documents of each query: number of results, documents, scores."""
        ...
