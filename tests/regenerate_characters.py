"""Writes ``polars_tadoc/compress/unicode_ranges.py`` from the Unicode tables of the installed Polars' regex engine.

Run it with ``python -m tests.regenerate_characters`` when Polars moves to a newer Unicode.
"""

from __future__ import annotations

import textwrap

import polars as pl

from tests import ROOT

SINGLE = r"[\p{Han}\p{Hiragana}\p{Katakana}\u{30FC}\u{FF70}&&\w&&\P{M}]"
CLASSES = {"WORD": r"\w", "SINGLE": SINGLE, "MARK": r"\p{M}"}


def matching(pattern: str) -> list[tuple[int, int]]:
    """Inclusive ranges of the code points that the pattern matches."""
    points = [p for p in range(0x110000) if not 0xD800 <= p <= 0xDFFF]
    hits = pl.Series([chr(p) for p in points]).str.contains(f"^{pattern}$")
    ranges: list[tuple[int, int]] = []
    for point in pl.Series(points).filter(hits):
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1] = (ranges[-1][0], point)
        else:
            ranges.append((point, point))
    return ranges


def source() -> str:
    """Text of the module."""
    lines = [
        '"""Unicode ranges, written by ``tests/regenerate_characters.py``: hexadecimal, inclusive, ascending."""\n'
    ]
    for name, pattern in CLASSES.items():
        ranges = " ".join(f"{a:x}-{b:x}" if a != b else f"{a:x}" for a, b in matching(pattern))
        lines.append(f'{name} = """\n' + textwrap.fill(ranges, 116, break_on_hyphens=False) + '\n"""\n')
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    target = ROOT / "polars_tadoc" / "kernels" / "tokenize" / "unicode_ranges.py"
    target.write_text(source())
