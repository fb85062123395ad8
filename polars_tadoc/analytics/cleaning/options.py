"""Options of calls about passages."""

from __future__ import annotations

from typing import Annotated, TypedDict

from polars_tadoc.engine.choose import EngineOption
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.word_map import Morphism, MorphismOptions
from polars_tadoc.runtime.arguments import require_integer
from polars_tadoc.runtime.option_signature import Default, ProgressOption
from polars_tadoc.traversal.options import MAX_WORDS, TokenizerOption, tokenizer_of


class ReadingOptions(MorphismOptions, TokenizerOption, ProgressOption, total=False):
    """How words are cut and normalised, and whether a progress bar is shown."""


class PassageLength(TypedDict, total=False):
    """Least length of a passage that is long enough to be copied rather than written twice."""

    length: Annotated[int, Default(50)]


class Copies(TypedDict, total=False):
    """How often a window occurs that is repeated."""

    min_count: Annotated[int, Default(2)]


class RepeatedShareOptions(PassageLength, ReadingOptions, total=False):
    """Options of :func:`polars_tadoc.repeated_share`."""


class DropRepeatsOnWorkers(PassageLength, ReadingOptions, total=False):
    """Options of :func:`polars_tadoc.drop_repeats` without the engine."""

    keep: Annotated[str, Default("first")]
    unit: Annotated[str, Default("passage")]
    share: Annotated[float, Default(1.0)]


class DropRepeatsOptions(DropRepeatsOnWorkers, EngineOption, total=False):
    """Options of :func:`polars_tadoc.drop_repeats`."""


class NewLength(TypedDict, total=False):
    """Words of a window that tells new text from old."""

    length: Annotated[int, Default(8)]


class NoveltyOptions(NewLength, ReadingOptions, total=False):
    """Options of :func:`polars_tadoc.novelty`."""


class PassageSetOptions(ReadingOptions, total=False):
    """Options of :class:`polars_tadoc.PassageSet`."""

    length: Annotated[int, Default(13)]


class OverlapOnWorkers(ReadingOptions, total=False):
    """Options of :func:`polars_tadoc.overlap` without the engine."""

    length: Annotated[int | None, Default(None)]


class OverlapOptions(OverlapOnWorkers, EngineOption, total=False):
    """Options of :func:`polars_tadoc.overlap`."""


class RepeatsOnWorkers(PassageLength, Copies, ReadingOptions, total=False):
    """Options of :func:`polars_tadoc.repeats` without the engine."""


class RepeatsOptions(RepeatsOnWorkers, EngineOption, total=False):
    """Options of :func:`polars_tadoc.repeats`."""


def require_length(length: object) -> int:
    """Check ``length=``; raises as :func:`require_integer`."""
    return require_integer("length", length, 1, MAX_WORDS)


def reading_of(options: ReadingOptions) -> tuple[Tokenizer | None, Morphism | None]:
    """Return tokenizer and normalisation, checked."""
    return tokenizer_of(options), Morphism.of(options)
