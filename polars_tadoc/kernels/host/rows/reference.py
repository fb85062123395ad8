"""Plain-Python definition of row-wise results, and of rows made from a range of another row's words."""

from __future__ import annotations

from collections.abc import Sequence

from polars_tadoc.kernels.traverse.reference import expand


def token_count(row: Sequence[int], vocabulary_size: int, rule_offsets: Sequence[int], symbols: Sequence[int]) -> int:
    """Count the words in a row's expansion.

    Examples
    --------
    >>> token_count([2, 0], 2, [0, 2], [0, 1])
    3

    """
    return sum(len(expand(symbol, vocabulary_size, rule_offsets, symbols)) for symbol in row)


def span(words: int, offset: int, length: int | None) -> tuple[int, int]:
    """Return the first word, and the one after the last, that ``str.slice`` would select.

    A negative offset counts from the end; words before the row's start count in the length. A negative length (only in
    ``head``) drops as many words at the end.

    Examples
    --------
    >>> span(6, -2, None), span(6, -8, 3), span(6, 4, 9), span(6, 9, 1), span(6, 0, -2)
    ((4, 6), (0, 1), (4, 6), (6, 6), (0, 4))

    """
    first = words + offset if offset < 0 else offset
    stop = words
    if length is not None:
        stop = first + length if length >= 0 else words + length
    first = min(max(first, 0), words)
    return first, max(first, min(stop, words))


def extract(words: Sequence[str], gaps: Sequence[str], offset: int, length: int | None) -> str:
    """Return words with the gaps between them, without the gaps around them.

    Parameters
    ----------
    words, gaps
        n words and the n + 1 gaps around them.
    offset, length
        As for :func:`span`.

    Examples
    --------
    >>> extract(["to", "be", "or"], ["", " ", ", ", "!"], 1, 2)
    'be, or'

    """
    first, stop = span(len(words), offset, length)
    return "".join((gaps[k] if k > first else "") + words[k] for k in range(first, stop))


def cover(
    row: Sequence[int], vocabulary_size: int, rule_offsets: Sequence[int], symbols: Sequence[int], first: int, stop: int
) -> list[int]:
    """List the minimum number of symbols that expand to words ``first`` to ``stop`` of a row.

    Examples
    --------
    >>> cover([3, 0], 2, [0, 2, 4], [0, 1, 2, 2], 1, 5)  # rule 2 expands to the words 0 1, rule 3 to 2 2
    [1, 2, 0]

    """
    taken: list[int] = []
    word = 0

    def visit(symbol: int) -> None:
        nonlocal word
        after = word + len(expand(symbol, vocabulary_size, rule_offsets, symbols))
        if word >= first and after <= stop:
            taken.append(symbol)
        elif after > first and word < stop:
            rule = symbol - vocabulary_size
            for child in symbols[rule_offsets[rule] : rule_offsets[rule + 1]]:
                visit(child)
        word = after

    for symbol in row:
        visit(symbol)
    return taken


_PRIME = (1 << 61) - 1
_BASES = (0x1A7F55739726180F, 0x0DB1D00784707708)


def content_hash(text: bytes) -> int:
    """Hash a text to 128 bits.

    Two polynomials modulo 2^61 - 1 with a leading digit 1 and the bytes as digits, followed by a bijective mix.

    Examples
    --------
    >>> hex(content_hash(b"to be or not to be"))
    '0xc0ff79cceba05d39ae282958cd392e48'

    """
    first, second = (_polynomial(text, base) for base in _BASES)
    low = _mixed(first)
    high = _mixed(second ^ low)
    return high << 64 | _mixed(low ^ high)


def _polynomial(text: bytes, base: int) -> int:
    value = 1
    for byte in text:
        value = (value * base + byte) % _PRIME
    return value


def _mixed(value: int) -> int:
    mask = (1 << 64) - 1
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & mask
    value = (value ^ value >> 27) * 0x94D049BB133111EB & mask
    return value ^ value >> 31
