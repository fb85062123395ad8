"""Options that analytics share, and their checks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal, Self, TypedDict, Unpack, get_args

from polars_tadoc.engine.choose import EngineOption, require_engine
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.word_map import Morphism, MorphismOptions
from polars_tadoc.runtime.arguments import require_integer
from polars_tadoc.runtime.option_signature import Default, ProgressOption, takes_options

MAX_COUNT = (1 << 63) - 1
"""Upper bound of all counts (see :func:`polars_tadoc.model.corpus.require_countable`)."""
MAX_WORDS = (1 << 32) - 1
"""Longest sequence; the ids of one sequence of this length take 16 GiB."""

UNITS = {"": 1, "b": 1} | {
    f"{prefix}{end}": base**power
    for power, prefix in enumerate("kmgt", start=1)
    for end, base in (("", 1000), ("b", 1000), ("ib", 1024))
}
"""Bytes by unit, in lower case."""

StrategyName = Literal["auto", "top_down", "bottom_up"]
WordForm = Literal["string", "categorical"]


class TopOption(TypedDict, total=False):
    """Number of results."""

    top: Annotated[int | None, Default(None)]


class MinCountOption(TypedDict, total=False):
    """Minimum count of results."""

    min_count: Annotated[int, Default(1)]


class RunOption(TypedDict, total=False):
    """Length of sequences."""

    n: Annotated[int, Default(3)]


class StrategyOption(TypedDict, total=False):
    """Traversal strategy."""

    strategy: Annotated[str, Default("auto")]


class WordFormOption(TypedDict, total=False):
    """How frames hold words."""

    words: Annotated[WordForm, Default("string")]


class WordOptions(MorphismOptions, StrategyOption, ProgressOption, total=False):
    """Normalisation of words, traversal strategy, and progress bars."""


class TokenizerOption(TypedDict, total=False):
    """Tokenizer of plain text."""

    tokenizer: Annotated[str | re.Pattern[str] | None, Default(None)]


def tokenizer_of(options: TokenizerOption) -> Tokenizer | None:
    """Return the tokenizer that the options of a call name; None: none is named. Raises ``ValueError``."""
    tokenizer = options.get("tokenizer")
    return None if tokenizer is None else Tokenizer.from_argument(tokenizer)


class TraversalOptions(WordOptions, EngineOption, total=False):
    """Options of all analytics on words."""


@dataclass(frozen=True)
class Options:
    """Options of an analytic on words, checked."""

    morphism: Morphism | None
    strategy: str
    engine: str | None
    tokenizer: Tokenizer | None = None
    """Tokenizer of plain text; None: words."""
    words: WordForm = "string"
    """How frames hold words."""

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[TraversalOptions]) -> Options:
        """Check the arguments; raises as the analytics do."""
        return cls.of(options)

    @classmethod
    def of(cls, options: TraversalOptions) -> Options:
        """Take and check these options of a call, which may have more; raises as the analytics do."""
        require_engine(options["engine"])
        require_strategy(options["strategy"])
        named: Any = options
        return cls(Morphism.of(options), options["strategy"], options["engine"], tokenizer_of(named))


class CountOnWorkers(MinCountOption, WordOptions, total=False):
    """Options of :class:`CountRequest` where workers settle the engine."""


class CountOptions(CountOnWorkers, TokenizerOption, EngineOption, total=False):
    """Options of :class:`CountRequest`."""


@dataclass(frozen=True)
class CountRequest:
    """Checked arguments of calls whose only options are :class:`CountOptions`."""

    min_count: int
    options: Options

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[CountOptions]) -> Self:
        """Check the arguments; raises as the analytics do."""
        return cls(require_min_count(options["min_count"]), Options.of(options))


class TopOnWorkers(TopOption, CountOnWorkers, total=False):
    """Options of :class:`TopRequest` where workers settle the engine."""


class TopOptions(TopOnWorkers, TokenizerOption, EngineOption, total=False):
    """Options of :class:`TopRequest`."""


@dataclass(frozen=True)
class TopRequest:
    """Checked arguments of calls whose only options are :class:`TopOptions`."""

    top: int | None
    min_count: int
    options: Options

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[TopOptions]) -> Self:
        """Check the arguments; raises as the analytics do."""
        return cls(require_top(options["top"]), require_min_count(options["min_count"]), Options.of(options))


class RunOnWorkers(RunOption, TopOnWorkers, total=False):
    """Options of :class:`RunRequest` where workers settle the engine."""


class RunOptions(RunOnWorkers, TokenizerOption, EngineOption, total=False):
    """Options of :class:`RunRequest`."""


class LengthsOption(TypedDict, total=False):
    """Length of sequences, or several."""

    n: Annotated[int | Iterable[int], Default(3)]


class LengthsOnWorkers(LengthsOption, TopOnWorkers, total=False):
    """Options of :class:`LengthsOptions` where workers settle the engine."""


class LengthsOptions(LengthsOnWorkers, TokenizerOption, EngineOption, total=False):
    """Options of calls for sequences of one length or several."""


@dataclass(frozen=True)
class RunRequest:
    """Checked arguments of calls whose only options are :class:`RunOptions`."""

    n: int
    top: int | None
    min_count: int
    options: Options

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[RunOptions]) -> Self:
        """Check the arguments; raises as the analytics do."""
        n, top = require_integer("n", options["n"], 1, MAX_WORDS), require_top(options["top"])
        return cls(n, top, require_min_count(options["min_count"]), Options.of(options))


def require_strategy(strategy: str) -> None:
    """Raise ``ValueError`` for an unknown strategy."""
    if strategy not in get_args(StrategyName):
        raise ValueError(f'strategy={strategy!r}: use "auto", "top_down" or "bottom_up"')


def require_word_form(words: str) -> None:
    """Raise ``ValueError`` for an unknown form of words."""
    if words not in get_args(WordForm):
        raise ValueError(f'words={words!r}: use "string" or "categorical"')


def require_top(top: object) -> int | None:
    """Check ``top=`` and return it as kernels take it; raises as :func:`require_integer`."""
    return None if top is None else min(require_integer("top", top, 0), MAX_COUNT)


def require_min_count(min_count: object, least: int | None = None) -> int:
    """Check ``min_count=`` and return it as kernels take it, at least 1: results only have words that occur."""
    return min(max(require_integer("min_count", min_count, least), 1), MAX_COUNT)


def require_memory_limit(limit: object) -> int | None:
    """Return ``memory_limit=`` in bytes: an integer, or a number with a unit as in "2GB", "1.5 gb", "2G" or "512MiB".

    Raises
    ------
    TypeError
        Neither an integer nor a string.
    ValueError
        Below 1, above 63 bits, or a string that is not a number with a unit.

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
