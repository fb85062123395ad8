"""Limits of results of sequences and pairs."""

from __future__ import annotations

from typing import TypedDict


class Limits(TypedDict, total=False):
    """Which sequences or documents a result has; by default all."""

    min_count: int
    """Minimum count over all documents."""
    top: int | None
    """Maximum number of sequences, or of documents per sequence."""
