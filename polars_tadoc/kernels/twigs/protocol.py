"""Functions that every engine supplies for matching twigs."""

from __future__ import annotations

from typing import Any, Protocol

from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.twigs.arrays import Events, Twigs, WordEvents


class Matcher(Protocol):
    """Twigs prepared for matching."""

    def match(self, events: Events) -> tuple[Any, Any]:
        """Return the twigs that match each document of resident events: offsets, twigs."""
        ...

    def match_rules(
        self, rules: Rules, root_offsets: Any, roots: Any, words: WordEvents, most_levels: int
    ) -> tuple[Any, Any, Any]:
        """Return the twigs that match documents of resident rules: offsets, twigs, and a state per document."""
        ...


class TwigKernels(Protocol):
    """Twig patterns matched against events, or against rules whose words are events."""

    def TwigMatcher(self, twigs: Twigs) -> Matcher:  # noqa: N802  (a class of each engine)
        """Prepare twigs for matching."""
        ...

    def load_events(self, events: Events) -> Events:
        """Make events resident."""
        ...

    def load_word_events(self, words: WordEvents) -> WordEvents:
        """Make the events of a grammar's words resident."""
        ...
