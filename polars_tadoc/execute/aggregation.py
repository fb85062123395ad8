"""Counting by partial results: one per corpus, with an associative merge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import polars as pl

from polars_tadoc.engine.choose import GPU_REPAYS_AT, Engine, choose
from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.errors import NotCompressedError
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.traversal.options import Options


class Partial(Protocol):
    """Result for some of the rows."""

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays and words."""


Part = TypeVar("Part", bound=Partial)


class Aggregation(ABC, Generic[Part]):
    """A count. Partial results merge in any grouping, in the order of the rows."""

    name: ClassVar[str]
    """The call, for messages."""
    gpu_repays_at: ClassVar[float] = GPU_REPAYS_AT
    """Minimum number of symbols for which ``engine="auto"`` chooses a GPU."""
    takes_text: ClassVar[bool] = False
    """Whether it counts String columns itself, by ``text_partials``; others get their words as corpora."""
    joins_grammars_on: ClassVar[tuple[str, ...]] = ()
    """Engines on which several grammars are read as one (:mod:`polars_tadoc.execute.joined_grammars`)."""
    options: Options

    def choose_engine(self, symbols: int) -> Engine:
        """Choose the engine by the number of symbols; raises ``EngineUnavailableError``."""
        return choose(self.options.engine, symbols, self.gpu_repays_at)

    @property
    def pairs_per_word(self) -> int:
        """Maximum number of counts that one word adds to."""
        return 1

    def without_limits(self) -> Self:
        """Return a copy without ``top`` and ``min_count``: a word rare in each part may be frequent in all."""
        without: Any = {"top": None, "min_count": 1} if hasattr(self, "top") else {"min_count": 1}
        return replace(self, **without)  # type: ignore[type-var]

    @abstractmethod
    def partial(self, corpus: Corpus, engine: Engine) -> Part:
        """Count in one corpus whose counts fit 64 bits; documents have the numbers of their rows."""

    def text_partials(self, text: pl.Series, first: int, batches: DeviceBatches) -> Iterator[Part]:
        """Count in a String column, block by block; ``first`` is the number of its first row."""
        raise NotCompressedError.for_column(text.name, text.dtype, self.name)

    def text_part(self, text: pl.Series, tokenizer: Tokenizer, engine: Engine) -> Part | None:
        """Count in a String column without holding its words on the CPU; None where that is not possible."""
        return None

    def on_host(self, part: Part) -> Part:
        """Return a partial result in host memory, copied if necessary."""
        return part

    @abstractmethod
    def merge(self, partials: Sequence[Part]) -> Part:
        """Merge partial results that were made without limits, then apply the limits."""
