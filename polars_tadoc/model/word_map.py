"""Maps of words to words or to nothing, applied to a vocabulary instead of to text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from hashlib import blake2b
from typing import Annotated, Any, TypedDict

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.kernels.host.rows.query_words import NOT_ALONE
from polars_tadoc.kernels.primitives.codes import DELETED
from polars_tadoc.model.analyzers import folded, is_language, parts_of, require_analyzer, require_stemmer, stems
from polars_tadoc.model.stop_words import languages, stop_words
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.arguments import require_text
from polars_tadoc.runtime.array_types import UInt32, array_dataclass
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.runtime.option_signature import Default


class MorphismOptions(TypedDict, total=False):
    """Which words are taken for equal, and which are left out."""

    normalize: Annotated[pl.Expr | None, Default(None)]
    lowercase: Annotated[bool, Default(False)]
    stopwords: Annotated[Iterable[str] | None, Default(None)]


class NormalizeError(ValueError):
    """``normalize`` fails on a word; :func:`naming_normalize` adds the call and the column."""

    call = column = ""

    def __str__(self) -> str:
        at = f'column "{self.column}": ' if self.column else ""
        return f"{self.call}: {at}{self.args[0]}" if self.call else str(self.args[0])


@contextmanager
def naming_normalize(call: str, column: str = "") -> Iterator[None]:
    """Name the call, and the column if there is one, in errors of ``normalize`` that lack them."""
    try:
        yield
    except NormalizeError as error:
        error.call, error.column = error.call or call, error.column or column
        raise


@array_dataclass
class Image:
    """A vocabulary after a morphism."""

    words: Vocabulary
    """The distinct images."""
    ids: UInt32
    """uint32 by word id: the image's id, or ``DELETED``."""


@array_dataclass
class Morphism:
    """A normalisation of words: ``normalize``, then lower-casing, then stop words."""

    normalize: pl.Expr | None = None
    """Expression over ``pl.element()`` that gives a String per word; null or an empty string deletes the word."""
    lowercase: bool = False
    """Whether to lower-case words and stop words."""
    stopwords: frozenset[str] = frozenset()
    """Words to delete, in their normalised form."""
    evaluate: Callable[[pl.Series], pl.Series] | None = None
    """Applies ``normalize`` to a series of words, if Polars alone should not: for expressions from a file."""
    analyzer: str | None = None
    """Name of an analyzer: it folds words before they are lower-cased, or makes stems after stop words are dropped."""

    def __eq__(self, other: object) -> bool:
        """Compare; expressions are equal if they are one object, because their ``==`` makes an expression."""
        return isinstance(other, Morphism) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[int, bool, frozenset[str], str | None]:
        return id(self.normalize), self.lowercase, self.stopwords, self.analyzer

    @property
    def described(self) -> dict[str, Any]:
        """The options as JSON values: equal for equal arguments, in other processes, too."""
        normalize = None
        if self.normalize is not None:
            normalize = f"{self.normalize} {blake2b(self.normalize.meta.serialize(), digest_size=16).hexdigest()}"
        named = {} if self.analyzer is None else {"analyzer": self.analyzer}
        return {"normalize": normalize, "lowercase": self.lowercase, "stopwords": sorted(self.stopwords)} | named

    @property
    def is_of_characters(self) -> bool:
        """Whether each character of an ASCII word has its own image, or words are dropped."""
        return self.normalize is None and not is_language(self.analyzer)

    @classmethod
    def of(cls, options: MorphismOptions) -> Morphism | None:
        """Make a morphism of the options of a call, which may have more; None if they change nothing.

        Raises
        ------
        TypeError
            ``normalize`` is not an expression, ``lowercase`` not a bool, or ``stopwords`` neither a list of strings nor
            the name of a language.
        ValueError
            ``normalize`` reads columns instead of ``pl.element()``, the analyzer is unknown, or it makes stems and
            ``lowercase`` is False.
        ModuleNotFoundError
            The analyzer makes stems, and PyStemmer is missing.

        """
        normalize, lowercase, stopwords = options["normalize"], options["lowercase"], options["stopwords"]
        named: Any = options
        analyzer = require_analyzer(named.get("analyzer"))
        if normalize is not None and not isinstance(normalize, pl.Expr):
            raise TypeError(
                f"normalize is {type(normalize).__name__}, not a Polars expression over one word such as "
                "pl.element().str.to_lowercase()"
            )
        if normalize is not None and (normalize.meta.root_names() or normalize.meta.has_multiple_outputs()):
            columns = ", ".join(f'"{name}"' for name in dict.fromkeys(normalize.meta.root_names()))
            columns = columns or "several columns"
            raise ValueError(
                f"normalize reads {columns} of a frame, but it gets one word at a time; write pl.element() for the "
                "word, such as pl.element().str.to_lowercase()"
            )
        if not isinstance(lowercase, bool):
            raise TypeError(f"lowercase={lowercase!r} must be True or False")
        if isinstance(stopwords, str):
            if stopwords not in languages():
                known = '", "'.join(languages())
                raise TypeError(
                    f'stopwords={stopwords!r} is one string; pass a list of words: ["{stopwords}"], or the name of a '
                    f'language: "{known}"'
                )
            stopwords = stop_words(stopwords)
        if isinstance(stopwords, pl.DataFrame):
            raise TypeError('stopwords is a DataFrame, not a list of words; pass a column of it: frame["word"]')
        if stopwords is not None and not isinstance(stopwords, Iterable):
            raise TypeError(f"stopwords={stopwords!r} is not a list of words")
        words = frozenset(() if stopwords is None else stopwords)
        if not all(isinstance(word, str) for word in words):
            raise TypeError("stopwords: every element must be a string")
        for word in words:
            require_text(word, f"stopwords: {word!r}")
        if is_language(analyzer) and analyzer is not None:
            if not lowercase:
                raise ValueError(f'analyzer="{analyzer}" lower-cases words: omit lowercase=False')
            require_stemmer(analyzer)
            if stopwords is None and analyzer in languages():
                words = frozenset(stop_words(analyzer))
        if normalize is None and not lowercase and stopwords is None and analyzer is None:
            return None
        return cls(normalize, lowercase, words, analyzer=analyzer)

    def apply(self, words: pl.Series) -> Image:
        """Map each word of a String series.

        Raises
        ------
        ValueError
            ``normalize`` does not give one String per word, or fails on a word.

        Examples
        --------
        >>> import polars as pl
        >>> from polars_tadoc.model.word_map import Morphism
        >>> image = Morphism(lowercase=True, stopwords=frozenset(["the"])).apply(pl.Series(["The", "Cat", "cat"]))
        >>> image.words.strings.to_pylist(), image.ids.tolist()
        (['cat'], [4294967295, 0, 0])

        """
        return encode(self.images(words))

    def images(self, words: pl.Series) -> pl.Series:
        """Map each word to its image as a string, null if deleted; errors as for :meth:`apply`."""
        images = self.spellings(words)
        deleted = self.deleted
        if len(images) <= FEW:  # one Polars call takes as long as all words of a query
            kept = [None if word in deleted else word for word in images.to_list()]
            return pl.Series("word", self._stemmed(kept), pl.String)
        gone = images.is_in(pl.Series(sorted(deleted), dtype=pl.String).implode())
        images = images.zip_with(~gone, _NOTHING).alias("word")
        return pl.Series("word", self._stemmed(images.to_list()), pl.String) if is_language(self.analyzer) else images

    def spellings(self, words: pl.Series) -> pl.Series:
        """Map words without dropping stop words or making stems; errors as for :meth:`apply`."""
        images = words
        if self.normalize is not None:
            images = self._normalized(words, self.normalize)
            if len(images) != len(words) or images.dtype not in (pl.String, pl.Null):
                raise NormalizeError(
                    f"normalize gives {len(images)} values of type {images.dtype} for {len(words)} words; "
                    "it must give one String (or null) per word"
                )
            images = images.cast(pl.String)
        return self._folded(images)

    def _folded(self, words: pl.Series) -> pl.Series:
        words = folded(words, self.analyzer)
        return folded(words.str.to_lowercase(), self.analyzer) if self.lowercase else words

    def few_images(self, words: list[str]) -> list[str | None]:
        """Map a few words as :meth:`images` does, without Polars where they are only lower-cased: calls take longer."""
        if self._needs_polars(words):
            by_polars: list[str | None] = self.images(pl.Series("word", words, pl.String)).to_list()
            return by_polars
        deleted = self.deleted
        return self._stemmed([None if image in deleted else image for image in self._few_lowered(words)])

    def few_spellings(self, words: list[str]) -> list[str | None]:
        """Map a few words as :meth:`spellings` does."""
        if self._needs_polars(words):
            by_polars: list[str | None] = self.spellings(pl.Series("word", words, pl.String)).to_list()
            return by_polars
        return [*self._few_lowered(words)]

    def _needs_polars(self, words: list[str]) -> bool:
        if self.normalize is not None or (self.lowercase and any("Σ" in word for word in words)):  # ς ends a word
            return True
        return self.analyzer is not None and not (is_language(self.analyzer) or all(map(str.isascii, words)))

    def _few_lowered(self, words: list[str]) -> list[str]:
        table = _lower_case() if self.lowercase else {}
        return [word.translate(table) for word in words]

    def _stemmed(self, words: list[str | None]) -> list[str | None]:
        return stems(words, self.analyzer) if self.analyzer is not None and is_language(self.analyzer) else words

    def _normalized(self, words: pl.Series, normalize: pl.Expr) -> pl.Series:
        try:
            return _evaluated(words, normalize) if self.evaluate is None else self.evaluate(words)
        except pl.exceptions.PolarsError as error:
            word = _failing(words, self.evaluate or partial(_evaluated, normalize=normalize))
            if word is None:
                raise
            said = str(error).split("\n")[0].strip()  # the rest is the plan
            raise NormalizeError(
                f"normalize fails on the word {word[:_LONGEST_SHOWN]!r}: {said}; make it give null for words "
                "without an image, as .cast(…, strict=False) does"
            ) from error

    @cached_property
    def deleted(self) -> frozenset[str]:
        """The empty string and the stop words, in the form in which they are compared."""
        return frozenset(["", *self._folded(pl.Series(sorted(self.stopwords), dtype=pl.String)).to_list()])


@cache
def _lower_case() -> dict[int, str]:
    """Return what Polars makes of each character that it lower-cases: Python's Unicode may be of another version."""
    characters = [chr(code) for code in range(0x20, MAX_CASED) if not 0xD800 <= code < 0xE000]
    images = pl.Series(["\n".join(characters)]).str.to_lowercase().item().split("\n")
    return {ord(own): image for own, image in zip(characters, images, strict=True) if own != image}


@cache
def lower_case_table() -> UInt32:
    """Return the same by code point, for :func:`polars_tadoc.kernels.host.rows.query_words.lower_words`."""
    table = np.arange(MAX_CASED, dtype=np.uint32)
    for code, image in _lower_case().items():
        is_alone = len(image) == 1 and len(image.encode()) == len(chr(code).encode()) and code != ord("Σ")
        table[code] = ord(image) if is_alone else NOT_ALONE
    return table


MAX_CASED = 0x20000
"""Beyond are ideographs, tags and characters for private use, which have no case."""

FEW = 256
"""Maximum number of words looked up one by one."""

_NOTHING = pl.Series([None], dtype=pl.String)


_LONGEST_SHOWN = 60
"""Characters of a word shown in messages."""


def _evaluated(words: pl.Series, normalize: pl.Expr) -> pl.Series:
    return words.implode().list.eval(normalize).explode(empty_as_null=False)


def _failing(words: pl.Series, evaluate: Callable[[pl.Series], pl.Series]) -> str | None:
    """Find by bisection a word on which an expression fails; None if it fails on no single word."""
    while len(words) > 1:
        half = words.head(len(words) // 2)
        words = half if _fails(half, evaluate) else words.slice(len(half))
    return words.item() if len(words) and _fails(words, evaluate) else None


def _fails(words: pl.Series, evaluate: Callable[[pl.Series], pl.Series]) -> bool:
    try:
        evaluate(words)
    except pl.exceptions.PolarsError:
        return True
    return False


def images_with_parts(words: pl.Series, morphism: Morphism | None) -> pl.DataFrame:
    """Return the distinct images of each word and of its parts (:func:`polars_tadoc.model.analyzers.parts_of`).

    Returns
    -------
    DataFrame
        ``word: Int64`` (a place in ``words``), ``image: String``. A word that is dropped has no parts.

    """
    images = words if morphism is None else morphism.images(words)
    parts = pl.Series([parts_of(word) for word in words.to_list()], dtype=pl.List(pl.String))
    own = pl.DataFrame({"word": np.arange(len(words)), "image": images, "part": parts}).filter(
        pl.col("image").is_not_null()
    )
    more = own.select("word", image="part").explode("image").drop_nulls()
    if morphism is not None and len(more):
        more = more.with_columns(image=morphism.images(more["image"])).drop_nulls()
    return pl.concat([own.select("word", "image"), more]).unique(maintain_order=True)


def encode(images: pl.Series) -> Image:
    """Number the distinct images of words, given as strings or null."""
    encoded: Any = images.to_arrow().dictionary_encode()
    ids = pl.Series(encoded.indices).cast(pl.UInt32).fill_null(DELETED).to_numpy()
    return Image(Vocabulary(encoded.dictionary.cast(pa.large_string())), ids)
