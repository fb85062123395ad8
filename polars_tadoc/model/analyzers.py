"""Named analyzers: maps of words that a search index applies, and saves by name."""

from __future__ import annotations

import difflib
import re
import threading
from collections.abc import Sequence
from typing import Any, Final

import polars as pl

FOLDED: Final = "folded"
CJK: Final = "cjk"

LANGUAGES: Final = (
    *("arabic", "armenian", "basque", "catalan", "czech", "danish", "dutch", "english", "esperanto", "estonian"),
    *("finnish", "french", "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian"),
    *("nepali", "norwegian", "persian", "polish", "portuguese", "romanian", "russian", "serbian", "sesotho"),
    *("spanish", "swedish", "tamil", "turkish", "yiddish"),
)
"""Languages whose words PyStemmer reduces to stems."""

NAMES: Final = (FOLDED, CJK, *LANGUAGES)

_ACCENTS: Final = r"[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
"""The blocks of combining marks that no script needs: vowel signs of Hebrew, Arabic or Indic scripts stay."""

_LETTERS: Final = {
    "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D",
    "ð": "d", "Ð": "D", "þ": "th", "Þ": "TH", "ł": "l", "Ł": "L", "ħ": "h", "Ħ": "H", "ŧ": "t", "Ŧ": "T",
    "ŋ": "n", "Ŋ": "N", "ı": "i", "ς": "σ",
}  # fmt: skip
"""Letters that Unicode does not decompose, as in Lucene's ``ASCIIFoldingFilter``; and the final sigma."""


def require_analyzer(name: object, what: str = "analyzer") -> str | None:
    """Check the name of an analyzer.

    Raises
    ------
    TypeError
        It is not a string.
    ValueError
        There is no such analyzer.

    """
    if name is None:
        return None
    if not isinstance(name, str):
        raise TypeError(f'{what} is {type(name).__name__}, not a name such as "english"')
    if name not in NAMES:
        near = difflib.get_close_matches(name, NAMES, 1)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        raise ValueError(f'{what}={name!r}: use "{FOLDED}", "{CJK}" or a language ("{", ".join(LANGUAGES)}"){hint}')
    return name


def is_language(name: str | None) -> bool:
    """Tell whether an analyzer makes stems."""
    return name in LANGUAGES


def folded(words: pl.Series, name: str | None) -> pl.Series:
    """Fold the characters of words: of "folded" also accents, of "cjk" only forms of compatibility, such as width."""
    if name == CJK:
        return words.str.normalize("NFKC")
    if name != FOLDED:
        return words
    bare = words.str.normalize("NFKD").str.replace_all(_ACCENTS, "")
    return bare.str.replace_many(list(_LETTERS), list(_LETTERS.values())).str.normalize("NFC")


def stemmer_version() -> str:
    """Return PyStemmer's version."""
    return str(_module("english").version())


def require_stemmer(language: str) -> None:
    """Raise ``ModuleNotFoundError`` without PyStemmer, ``ValueError`` if it lacks the language."""
    if language not in _module(language).algorithms():
        raise ValueError(
            f'analyzer="{language}": PyStemmer {stemmer_version()} does not have this language; install a newer one: '
            'pip install -U "polars-tadoc[analyzers]"'
        )


def stems(words: Sequence[str | None], language: str) -> list[str | None]:
    """Reduce words to stems; null stays.

    Examples
    --------
    >>> from polars_tadoc.model.analyzers import stems
    >>> stems(["connections", None, "running"], "english")
    ['connect', None, 'run']

    """
    stemmer = _stemmers.made.get(language)
    if stemmer is None:
        require_stemmer(language)
        stemmer = _stemmers.made[language] = _module(language).Stemmer(language, 0)
    found = stemmer.stemWords([word or "" for word in words])
    return [own or None for own in found]


def parts_of(word: str) -> list[str]:
    """Return the parts of a word of code: between marks and at changes of case; those of one character are no parts.

    Examples
    --------
    >>> from polars_tadoc.model.analyzers import parts_of
    >>> parts_of("http.getHTTPResponse2"), parts_of("foo_bar"), parts_of("C++"), parts_of("plain")
    (['http', 'getHTTPResponse2', 'get', 'HTTP', 'Response2'], ['foo', 'bar'], [], [])

    """
    found: dict[str, None] = {}
    for piece in _MARKS_IN_CODE.split(word):
        found[piece] = None
        first = 0
        for at in range(1, len(piece)):
            follows = piece[at + 1 : at + 2].islower()
            if piece[at].isupper() and (not piece[at - 1].isupper() or follows):
                found[piece[first:at]] = None
                first = at
        found[piece[first:]] = None
    return [part for part in found if len(part) > 1 and part != word]


_MARKS_IN_CODE = re.compile(r"[._+#]+")


class _Stemmers(threading.local):
    """Stemmers of a thread: two threads must not share one."""

    def __init__(self) -> None:
        self.made: dict[str, Any] = {}


_stemmers = _Stemmers()


def _module(language: str) -> Any:
    try:
        import Stemmer
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'analyzer="{language}" needs the package PyStemmer; install it: pip install "polars-tadoc[analyzers]"'
        ) from error
    return Stemmer
