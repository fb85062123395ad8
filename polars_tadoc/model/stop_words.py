"""Stop words of languages, from the Snowball project."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from polars_tadoc.runtime.option_signature import names_unknown_options


@names_unknown_options
def stop_words(language: str) -> list[str]:
    """Return the stop words of a language: words so frequent that they tell little of a text.

    They are the lists of the Snowball project (https://snowballstem.org), under its 3-clause BSD license. Calls that
    take ``stopwords=`` take the name of a language for its list.

    Parameters
    ----------
    language
        "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "indonesian", "irish", "italian",
        "norwegian", "portuguese", "russian", "sesotho", "spanish" or "swedish".

    Returns
    -------
    list of str
        The words in lower case, ascending.

    Raises
    ------
    TypeError
        ``language`` is not a string.
    ValueError
        There is no list for it.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> tadoc.stop_words("english")[:4]
    ['a', 'about', 'above', 'after']
    >>> column = pl.Series("text", ["The disk is full", "the link is down"]).tadoc.compress()
    >>> counted = column.tadoc.word_count(lowercase=True, stopwords=[*tadoc.stop_words("english"), "link"])
    >>> sorted(counted["word"])
    ['disk', 'full']

    """
    if not isinstance(language, str):
        raise TypeError(f"stop_words: language must be a string, not {type(language).__name__}")
    if language not in languages():
        known = '", "'.join(languages())
        raise ValueError(f'stop_words: language={language!r}: use one of "{known}"')
    return list(_lists()[language])


def languages() -> list[str]:
    """Return the names of the languages."""
    return [*_lists()]


@cache
def _lists() -> dict[str, list[str]]:
    known: dict[str, Any] = json.loads(files(__package__).joinpath("stop_words.json").read_text("utf-8"))
    return known["words"]  # type: ignore[no-any-return]
