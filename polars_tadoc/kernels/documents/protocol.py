"""Functions that every engine supplies for counting terminals by document."""

from __future__ import annotations

from typing import Any, Protocol

from polars_tadoc.kernels.traverse.rules import Rules


class DocumentKernels(Protocol):
    """Results by document and by terminal; the first array is offsets."""

    def count_by_document(
        self,
        rules: Rules,
        root_offsets: Any,
        roots: Any,
        strategy: str,
        rank: Any,
        min_count: int = 1,
        top: int | None = None,
    ) -> tuple[Any, Any, Any]:
        """Count each document's terminals, by descending count, then rank: offsets, terminals, counts."""
        ...

    def terms_by_document(
        self, rules: Rules, root_offsets: Any, roots: Any, strategy: str, rank: Any = None
    ) -> tuple[Any, Any, Any]:
        """Count each document's distinct terminals, by rank: offsets, terminals, counts."""
        ...

    def count_by_terminal(
        self, rules: Rules, root_offsets: Any, roots: Any, strategy: str, counted: bool
    ) -> tuple[Any, Any, Any | None]:
        """List the documents that contain each terminal: offsets, documents, and counts if requested."""
        ...
