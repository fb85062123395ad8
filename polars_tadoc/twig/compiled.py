"""A set of twigs as it was at one time: what a call of the filter reads."""

from __future__ import annotations

import threading
from typing import Any

from polars_tadoc.engine.choose import CPU, Engine
from polars_tadoc.kernels.twigs.arrays import Twigs
from polars_tadoc.runtime.array_types import Bools, UInt32
from polars_tadoc.twig.alphabet import Alphabet


class CompiledTwigs:
    """Twigs compiled together; nothing of it changes.

    Parameters
    ----------
    alphabet
        Names and values that they ask for.
    twigs
        Their arrays (NumPy's); ``roots`` by place.
    names
        By place.
    text_twigs
        bool by place: one of the nodes asks for a text.

    """

    def __init__(self, alphabet: Alphabet, twigs: Twigs, names: tuple[str, ...], text_twigs: Bools) -> None:
        self.alphabet = alphabet
        self.twigs = twigs
        self.names = names
        self.text_twigs = text_twigs
        self._matchers: dict[str, Any] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the matchers behind: they are made where they are used."""
        return CompiledTwigs, (self.alphabet, self.twigs, self.names, self.text_twigs)

    def asking(self, names: tuple[str, ...], roots: UInt32, text_twigs: Bools) -> CompiledTwigs:
        """Return others of the same twigs, by their roots, with what was learnt of them on the CPU."""
        other = CompiledTwigs(self.alphabet, self.twigs._replace(roots=roots), names, text_twigs)
        with self._lock:
            learnt = self._matchers.get(CPU.place)
        if learnt is not None:
            other._matchers[CPU.place] = learnt.asking(roots)
        return other

    def matcher(self, engine: Engine) -> Any:
        """Return what matches these twigs where an engine runs; made by the first call."""
        place = engine.place
        with self._lock:
            found = self._matchers.get(place)
            if found is None:
                found = self._matchers[place] = engine.kernels.TwigMatcher(self.twigs)
            return found
