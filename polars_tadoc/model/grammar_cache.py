"""The cache of decoded grammars, keyed by content digest."""

from __future__ import annotations

from polars_tadoc.config import settings
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.runtime.cache import ByteLRU

grammars: ByteLRU[Grammar] = ByteLRU(lambda: settings().host_cache_bytes, lambda grammar: grammar.nbytes)
"""Decoded grammars in host memory."""
