"""Plain-Python definition of cutting text into words; CPU and GPU kernels must return the same results.

Written for reading, not for speed: lists, dicts and big integers, no NumPy. Tests compare every fast kernel with these
functions on generated inputs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from polars_tadoc.kernels.tokenize.xml.xml_reference import xml_spans

# characters of Other_Alphabetic besides marks: circled, squared and parenthesised Latin letters
_LETTER_SYMBOLS = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
_JOIN_CONTROL = "\u200c\u200d"
_IDEOGRAPHIC = re.compile(
    "CJK UNIFIED|CJK COMPATIBILITY IDEOGRAPH|IDEOGRAPHIC ITERATION|IDEOGRAPHIC NUMBER|HANGZHOU NUMERAL"
    "|VERTICAL IDEOGRAPHIC|OLD CHINESE|(HALFWIDTH )?KATAKANA|HIRAGANA|HENTAIGANA"
)
_KANA_OF_NO_SCRIPT = "\uff9e\uff9f"  # halfwidth sound marks have script Common


def is_word_character(character: str) -> bool:
    r"""Tell whether ``\w`` of UTS #18 matches a character: alphabetic, mark, digit, connector or join control."""
    category = unicodedata.category(character)
    if category[0] in "LM" or category in ("Nd", "Nl", "Pc"):
        return True
    return character in _JOIN_CONTROL or any(a <= ord(character) <= b for a, b in _LETTER_SYMBOLS)


def is_mark(character: str) -> bool:
    r"""Tell whether ``\p{M}`` matches a character."""
    return unicodedata.category(character)[0] == "M"


def is_single(character: str) -> bool:
    """Tell whether a character is a word of its own: Han or kana, a word character, not a mark."""
    name = unicodedata.name(character, "")
    return (
        is_word_character(character)
        and not is_mark(character)
        and _IDEOGRAPHIC.match(name) is not None
        and character not in _KANA_OF_NO_SCRIPT
    )


def tokenize(text: str, tokenizer: str | re.Pattern[str]) -> tuple[list[str], list[str]]:
    """Split a text into n words and the n + 1 gaps around them.

    Parameters
    ----------
    text
        One row.
    tokenizer
        "words", "whitespace" (``str.split()``), "xml" or a regex whose nonempty matches are the words.

    Examples
    --------
    >>> tokenize("to be,  not 日本", "words")
    (['to', 'be', 'not', '日', '本'], ['', ' ', ',  ', ' ', '', ''])

    """
    words, gaps, end = [], [], 0
    for start, stop in _spans(text, tokenizer):
        gaps.append(text[end:start])
        words.append(text[start:stop])
        end = stop
    return words, [*gaps, text[end:]]


def _spans(text: str, tokenizer: str | re.Pattern[str]) -> Iterator[tuple[int, int]]:
    if isinstance(tokenizer, re.Pattern):
        yield from (match.span() for match in tokenizer.finditer(text) if match[0])
        return
    if tokenizer == "xml":
        for start, stop, is_text in xml_spans(text, is_content=False):
            own = _spans(text[start:stop], "words") if is_text else [(0, stop - start)]
            yield from ((start + first, start + last) for first, last in own)
        return
    at = 0
    while at < len(text):
        start = at
        if tokenizer == "whitespace":
            while at < len(text) and not text[at].isspace():
                at += 1
        elif is_single(text[at]):
            at += 1
            while at < len(text) and is_mark(text[at]):
                at += 1
        else:
            while at < len(text) and is_word_character(text[at]) and not is_single(text[at]):
                at += 1
        if at > start:
            yield start, at
        else:
            at += 1
