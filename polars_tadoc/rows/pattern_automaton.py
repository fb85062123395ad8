"""Automata of patterns, over classes of characters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polars_tadoc.kernels.host.patterns.match import FOUND, REST
from polars_tadoc.runtime.array_types import UInt8, UInt16

MAX_STEPS = 1 << 20
"""Maximum size of the table of steps: states by classes."""


@dataclass(frozen=True, eq=False)
class PatternAutomaton:
    """A deterministic automaton; state ``FOUND`` is absorbing and unused where matches are counted."""

    classes: UInt8
    """Class by code point; code points beyond its end are of class 0."""
    steps: UInt16
    """Next state, by state and class."""
    hits: UInt8
    """Matches completed, likewise."""
    start: int
    """State before the text."""
    at_end: UInt8
    """By state: matches completed by the end of the text."""

    @property
    def width(self) -> int:
        """Number of classes."""
        return int(self.steps.shape[1])


def literal_automaton(literal: str, counts: bool) -> PatternAutomaton | None:
    """Build the automaton that finds a string (Knuth, Morris and Pratt, 1977); None if it would be too large.

    Parameters
    ----------
    literal
        At least one character.
    counts
        Whether to count the matches, which do not overlap; otherwise the first one ends in ``FOUND``.

    """
    distinct = sorted(set(literal))
    width = len(distinct) + 1
    if width > 255 or len(literal) * width > MAX_STEPS or len(literal) >= 60_000:
        return None
    numbers = {character: 1 + k for k, character in enumerate(distinct)}
    classes = np.zeros(max(ord(distinct[-1]), 127) + 1, np.uint8)
    for character, number in numbers.items():
        classes[ord(character)] = number
    size = len(literal) + 1  # state k + 1 has read k characters; FOUND is in the place of the first, after REST
    steps = np.full((size, width), REST, np.uint16)
    hits = np.zeros((size, width), np.uint8)
    steps[FOUND] = FOUND
    fallen = REST
    for place, character in enumerate(literal):
        own = REST if place == 0 else place + 1
        if place:
            steps[own] = steps[fallen]
        number = numbers[character]
        if place:
            fallen = int(steps[fallen, number])
        steps[own, number] = place + 2
    if counts:
        steps[own, number], hits[own, number] = REST, 1
    else:
        steps[own, number] = FOUND
    return PatternAutomaton(classes, steps, hits, REST, np.zeros(size, np.uint8))
