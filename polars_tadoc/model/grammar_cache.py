"""The cache of decoded grammars, keyed by content digest."""

from __future__ import annotations

from polars_tadoc.config import settings
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.runtime.cache import ByteLRU


class Grammars(ByteLRU[Grammar]):
    """Cache of decoded grammars; vocabularies get the key, by which merged ones are cached, too."""

    def put(self, key: str, value: Grammar) -> Grammar:
        """Store a grammar and return it."""
        value.words.key = key
        return super().put(key, value)


grammars = Grammars(lambda: settings().host_cache_bytes, lambda grammar: grammar.nbytes)
"""Decoded grammars in host memory."""
