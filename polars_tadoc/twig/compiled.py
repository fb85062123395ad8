"""An immutable snapshot of a set of twigs, which a filter call reads."""

from __future__ import annotations

import threading
from typing import Any

from polars_tadoc.engine.choose import CPU, Engine
from polars_tadoc.kernels.twigs.arrays import Twigs
from polars_tadoc.runtime.array_types import Bools, UInt32
from polars_tadoc.twig.alphabet import Alphabet


class CompiledTwigs:
    """Twigs compiled together; immutable.

    Parameters
    ----------
    alphabet
        Names and values that the twigs use.
    twigs
        NumPy arrays of the twigs; ``roots`` is in the order of ``names``.
    names
        Name of each twig.
    text_twigs
        bool per name: one of the twig's nodes compares a text.

    """

    def __init__(self, alphabet: Alphabet, twigs: Twigs, names: tuple[str, ...], text_twigs: Bools) -> None:
        self.alphabet = alphabet
        self.twigs = twigs
        self.names = names
        self.text_twigs = text_twigs
        self._matchers: dict[str, Any] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the matchers: each process makes its own."""
        return CompiledTwigs, (self.alphabet, self.twigs, self.names, self.text_twigs)

    def asking(self, names: tuple[str, ...], roots: UInt32, text_twigs: Bools) -> CompiledTwigs:
        """Return a set with other roots in the same forest; it keeps the reductions cached on the CPU."""
        other = CompiledTwigs(self.alphabet, self.twigs._replace(roots=roots), names, text_twigs)
        with self._lock:
            learnt = self._matchers.get(CPU.place)
        if learnt is not None:
            other._matchers[CPU.place] = learnt.asking(roots)
        return other

    def matcher(self, engine: Engine) -> Any:
        """Return the matcher of these twigs for an engine; the first call makes it."""
        place = engine.place
        with self._lock:
            found = self._matchers.get(place)
            if found is None:
                found = self._matchers[place] = engine.kernels.TwigMatcher(self.twigs)
            return found
