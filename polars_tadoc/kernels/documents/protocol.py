"""What every engine supplies to count terminals by document."""

from __future__ import annotations

from typing import Any, Protocol

from polars_tadoc.kernels.traverse.rules import Rules


class DocumentKernels(Protocol):
    """Results by document and by terminal; each gives offsets first."""

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
        """Count each document's terminals, by count falling, then by rank: offsets, terminals, counts."""
        ...

    def terms_by_document(
        self, rules: Rules, root_offsets: Any, roots: Any, strategy: str, rank: Any = None
    ) -> tuple[Any, Any, Any]:
        """Count each document's terminals, each once, by rank: offsets, terminals, counts."""
        ...

    def count_by_terminal(
        self, rules: Rules, root_offsets: Any, roots: Any, strategy: str, counted: bool
    ) -> tuple[Any, Any, Any | None]:
        """List the documents that hold each terminal: offsets, documents, and counts where asked for."""
        ...
