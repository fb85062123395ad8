"""Draws the factors of the table in ``docs/speed.md`` as ``docs/speed.svg``: ``python -m benchmarks.speed_chart``.

The table's figures are printed by ``benchmarks.analytics``.
"""

from __future__ import annotations

import math
import re
from html import escape
from pathlib import Path

from benchmarks.line_chart import COLOURS, STYLE

DOCS = Path(__file__).parents[1] / "docs"
LEFT, WIDTH, BAR, ROOM, MOST = 150, 560, 13, 16, 100
TICKS = (1, 2, 5, 10, 20, 50, 100)


def factors(text: str) -> tuple[list[str], dict[str, list[float]]]:
    """Return the corpora, and how many times as fast each call is on each of them."""
    (heads,) = re.findall(r"^\| \| (.*) \|$", text, re.MULTILINE)
    rows = re.findall(r"^\| ([a-z ]+) \| (.* ×) \|$", text, re.MULTILINE)
    return heads.split(" | "), {call: [float(one) for one in re.findall(r"([\d.]+) ×", cells)] for call, cells in rows}


def draw(corpora: list[str], calls: dict[str, list[float]]) -> str:
    """Draw a bar for each call and corpus, over a logarithmic axis."""

    def across(factor: float) -> float:
        return LEFT + WIDTH * math.log(factor) / math.log(MOST)

    group = BAR * len(corpora) + ROOM
    top, bottom = 52, 52 + group * len(calls)
    parts = ['<text class="head" x="10" y="20">Times as fast as the faster of Polars and DuckDB (1: equal)</text>']
    for number, corpus in enumerate(corpora):
        x = 10 + 190 * number
        parts.append(f'<rect x="{x}" y="30" width="10" height="10" fill="{COLOURS[number]}"/>')
        parts.append(f'<text x="{x + 15}" y="40">{escape(corpus)}</text>')
    for tick in TICKS:
        x = across(tick)
        parts.append(f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{top}" y2="{bottom}" stroke="#d9dce3"/>')
        parts.append(f'<text x="{x:.0f}" y="{bottom + 16}" text-anchor="middle">{tick}</text>')
    for row, (call, values) in enumerate(calls.items()):
        y = top + ROOM / 2 + group * row
        parts.append(f'<text x="{LEFT - 8}" y="{y + group / 2 - 4:.0f}" text-anchor="end">{escape(call)}</text>')
        for number, factor in enumerate(values):
            at, width = y + BAR * number, across(factor) - LEFT
            parts.append(f'<rect x="{LEFT}" y="{at}" width="{width:.0f}" height="{BAR - 2}" fill="{COLOURS[number]}"/>')
            parts.append(f'<text x="{LEFT + width + 4:.0f}" y="{at + BAR - 3}" font-size="11">{factor:g}</text>')
    size = f'viewBox="0 0 780 {bottom + 26}" role="img"'
    back = '<rect width="100%" height="100%" fill="#fff"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style>{back}'
    return f"{head}{''.join(parts)}</svg>\n"


if __name__ == "__main__":
    (DOCS / "speed.svg").write_text(draw(*factors((DOCS / "speed.md").read_text("utf-8"))), "utf-8")
