"""The arguments that analytics share, checked when a request is made."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal, Self, TypedDict, Unpack, get_args

from polars_tadoc.engine.choose import EngineOption, require_engine
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.word_map import Morphism, MorphismOptions
from polars_tadoc.runtime.arguments import require_integer
from polars_tadoc.runtime.option_signature import Default, takes_options

MAX_COUNT = (1 << 63) - 1
"""No count is above it (see :func:`polars_tadoc.model.corpus.require_countable`)."""
MAX_WORDS = (1 << 32) - 1
"""Longest sequence: its words' ids alone would fill 16 GiB."""

UNITS = {"": 1, "b": 1} | {
    f"{prefix}{end}": base**power
    for power, prefix in enumerate("kmgt", start=1)
    for end, base in (("", 1000), ("b", 1000), ("ib", 1024))
}
"""Bytes by unit, in small letters."""

StrategyName = Literal["auto", "top_down", "bottom_up"]


class TopOption(TypedDict, total=False):
    """How many are kept."""

    top: Annotated[int | None, Default(None)]


class MinCountOption(TypedDict, total=False):
    """What is left out as too rare."""

    min_count: Annotated[int, Default(1)]


class RunOption(TypedDict, total=False):
    """How long runs of words are."""

    n: Annotated[int, Default(3)]


class StrategyOption(TypedDict, total=False):
    """Which way rules are traversed."""

    strategy: Annotated[str, Default("auto")]


class WordOptions(MorphismOptions, StrategyOption, total=False):
    """Which words count, and which way rules are traversed."""


class TokenizerOption(TypedDict, total=False):
    """How plain text is cut into words."""

    tokenizer: Annotated[str | re.Pattern[str] | None, Default(None)]


class TraversalOptions(WordOptions, EngineOption, total=False):
    """What all analytics on words take."""


@dataclass(frozen=True)
class Options:
    """Which words, which way, where."""

    morphism: Morphism | None
    strategy: str
    engine: str | None
    tokenizer: Tokenizer | None = None
    """Cuts plain text; None: into words."""

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[TraversalOptions]) -> Options:
        """Check the arguments; errors as the analytics'."""
        return cls.of(options)

    @classmethod
    def of(cls, options: TraversalOptions) -> Options:
        """Check the options of a call, which may have more; errors as the analytics'."""
        require_engine(options["engine"])
        require_strategy(options["strategy"])
        tokenizer: Any = options.get("tokenizer")
        own = None if tokenizer is None else Tokenizer.from_argument(tokenizer)
        return cls(Morphism.of(options), options["strategy"], options["engine"], own)


class CountOptions(MinCountOption, WordOptions, TokenizerOption, EngineOption, total=False):
    """Options of :class:`CountRequest`."""


@dataclass(frozen=True)
class CountRequest:
    """What calls ask that take :class:`CountOptions` alone."""

    min_count: int
    options: Options

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[CountOptions]) -> Self:
        """Check the arguments; errors as the analytics'."""
        return cls(require_min_count(options["min_count"]), Options.of(options))


class TopOptions(TopOption, CountOptions, total=False):
    """Options of :class:`TopRequest`."""


@dataclass(frozen=True)
class TopRequest:
    """Arguments of calls that take :class:`TopOptions` alone, checked."""

    top: int | None
    min_count: int
    options: Options

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[TopOptions]) -> Self:
        """Check the arguments; errors as the analytics'."""
        return cls(require_top(options["top"]), require_min_count(options["min_count"]), Options.of(options))


class RunOptions(RunOption, TopOptions, total=False):
    """Options of :class:`RunRequest`."""


@dataclass(frozen=True)
class RunRequest:
    """Arguments of calls that take :class:`RunOptions` alone, checked."""

    n: int
    top: int | None
    min_count: int
    options: Options

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[RunOptions]) -> Self:
        """Check the arguments; errors as the analytics'."""
        n, top = require_integer("n", options["n"], 1, MAX_WORDS), require_top(options["top"])
        return cls(n, top, require_min_count(options["min_count"]), Options.of(options))


def require_strategy(strategy: str) -> None:
    """Raise ``ValueError`` unless there is such a strategy."""
    if strategy not in get_args(StrategyName):
        raise ValueError(f'strategy={strategy!r}: use "auto", "top_down" or "bottom_up"')


def require_top(top: object) -> int | None:
    """Return ``top=``, checked, as kernels take it; errors as :func:`require_integer`'s."""
    return None if top is None else min(require_integer("top", top, 0), MAX_COUNT)


def require_min_count(min_count: object) -> int:
    """Return ``min_count=`` as kernels take it: what occurs never is in no result."""
    return min(max(require_integer("min_count", min_count), 1), MAX_COUNT)


def require_memory_limit(limit: object) -> int | None:
    """Return ``memory_limit=`` in bytes: an integer, or a number with a unit as in "2GB", "1.5 gb", "2G" or "512MiB".

    Raises
    ------
    TypeError
        It is neither an integer nor a string.
    ValueError
        It is below 1 or beyond 63 bits, or the string is no number with a unit.

    """
    if limit is None:
        return None
    if not isinstance(limit, str):
        return require_integer("memory_limit", limit, 1, MAX_COUNT)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", limit)
    if found is None or found[2].lower() not in UNITS:
        raise ValueError(f'memory_limit="{limit}": write bytes as an integer, or with a unit, as "2GB" or "512MiB"')
    size = int(Fraction(found[1]) * UNITS[found[2].lower()])
    return require_integer("memory_limit", size, 1, MAX_COUNT)
