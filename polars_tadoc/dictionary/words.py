"""Words as one buffer of bytes, for kernels; checks the words of a new dictionary."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from polars_tadoc.model.column import require_string
from polars_tadoc.model.text_type import is_tadoc
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.plain_name import plain

SHOWN = 5
"""Maximum rows named in a message."""


def as_strings(words: object, call: str) -> pl.Series:
    """Return a series of strings or categories as strings.

    Raises
    ------
    TypeError
        The argument is not a series, or has another type.

    """
    if not isinstance(words, pl.Series):
        raise TypeError(f'{call} takes a Polars Series of words, not {type(words).__name__}; pass df["word"]')
    if is_tadoc(words.dtype):
        mend = 'take its words: column.tadoc.word_count()["word"]'
        raise TypeError(f'{call}: column "{words.name}" is compressed text; {mend}')
    if words.dtype not in (pl.Categorical, pl.Enum, pl.Null):
        require_string(words.name, words.dtype, call)
    return plain(words).cast(pl.String)


def sorted_words(text: pl.Series) -> Vocabulary:
    """Check the words of a dictionary, and sort them by their UTF-8 bytes unless they are sorted.

    Raises
    ------
    ValueError
        A word is null, empty, has NUL, is not UTF-8 or is a duplicate; the message names the word and its rows.

    """
    _refuse(text, text.is_null(), "{rows} {are} null; drop nulls: words.drop_nulls()")
    _refuse(text, text.str.len_bytes() == 0, '{rows} {are} empty; drop empty words: words.filter(words != "")')
    _refuse(text, text.str.contains("\0", literal=True), "{word!r} in {rows} contains NUL; remove it")
    given = Vocabulary.copied(text)
    try:
        given.strings.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ValueError(f"Dictionary.from_words: {error}; correct the words at their source") from None
    if given.ascending.all():
        return given
    ordered = Vocabulary.copied(text.sort())
    repeated = int(ordered.ascending.argmin())
    if not ordered.ascending[repeated]:
        same = text == ordered.strings[repeated].as_py()
        _refuse(text, same, "{word!r} is in {rows}; keep one of each word: words.unique()")
    return ordered


def _refuse(words: pl.Series, wrong: pl.Series, message: str) -> None:
    """Raise ``ValueError`` if some words are wrong; the message is formatted with the first word and all their rows."""
    rows = wrong.arg_true().to_list()
    if rows:
        shown = ", ".join(f"{row:,}" for row in rows[:SHOWN]) + (", …" if len(rows) > SHOWN else "")
        one = len(rows) == 1
        said = {"rows": f"row {shown}" if one else f"rows {shown}", "are": "is" if one else "are"}
        raise ValueError("Dictionary.from_words: " + message.format(word=words[rows[0]], **said))
