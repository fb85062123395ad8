"""What every engine supplies to match twigs."""

from __future__ import annotations

from typing import Any, Protocol

from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.twigs.arrays import Events, Twigs, WordEvents


class Matcher(Protocol):
    """Twigs made ready for matching."""

    def match(self, events: Events) -> tuple[Any, Any]:
        """Find the twigs that each document of resident events matches: offsets, twigs."""
        ...

    def match_rules(
        self, rules: Rules, root_offsets: Any, roots: Any, words: WordEvents, most_levels: int
    ) -> tuple[Any, Any, Any]:
        """Find the twigs that documents of resident rules match: offsets, twigs, and a state by document."""
        ...


class TwigKernels(Protocol):
    """Twig patterns matched against events, or against rules whose words are events."""

    def TwigMatcher(self, twigs: Twigs) -> Matcher:  # noqa: N802  (a class of each engine)
        """Make twigs ready for matching."""
        ...

    def load_events(self, events: Events) -> Events:
        """Make events resident."""
        ...

    def load_word_events(self, words: WordEvents) -> WordEvents:
        """Make what the words of a grammar mean for twigs resident."""
        ...
