"""Draws lines over logarithmic axes as SVG, in the manner of the other figures of the documentation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

Line = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 560, 50, 350
COLOURS = ["#4c5fd7", "#8a93d8", "#d7734c", "#e0a98f", "#3f8f6b", "#5a6272"]
STYLE = "text { font: 13px system-ui, sans-serif; fill: #1f2430 } .head { font-weight: 600; font-size: 14px }"


def draw(title: str, across: str, up: str, lines: Mapping[str, Line], marks: Mapping[str, float] | None = None) -> str:
    """Draw lines; each mark is a place on the first axis of the line of that name, drawn as a ring.

    Examples
    --------
    >>> draw("Speed", "queries", "MB/s", {"ours": [(32, 100), (64, 50)]}).count("<polyline")
    1

    """
    points = [point for line in lines.values() for point in line]
    x = _axis([point[0] for point in points], LEFT, RIGHT)
    y = _axis([point[1] for point in points], BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">',
        f'<style>{STYLE}</style><rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#f8f9fd"/>',
        f'<text x="20" y="26" class="head">{escape(title)}</text>',
        f'<text x="{(LEFT + RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(across)}</text>',
        f'<text x="{LEFT - 8}" y="{TOP - 8}" text-anchor="end">{escape(up)}</text>',
    ]
    for value in sorted({point[0] for point in points}):
        parts.append(_grid(x(value), TOP, x(value), BOTTOM))
        parts.append(f'<text x="{x(value):.1f}" y="{BOTTOM + 18}" text-anchor="middle">{value:,.0f}</text>')
    lowest, highest = (round(math.log10(end(point[1] for point in points))) for end in (min, max))
    for power in range(lowest - 1, highest + 2):
        if TOP <= y(10.0**power) <= BOTTOM:
            parts.append(_grid(LEFT, y(10.0**power), RIGHT, y(10.0**power)))
            parts.append(f'<text x="{LEFT - 8}" y="{y(10.0**power) + 4:.1f}" text-anchor="end">{10.0**power:,g}</text>')
    ends = _apart({name: y(line[-1][1]) for name, line in lines.items()})
    for (name, line), colour in zip(lines.items(), COLOURS, strict=False):
        places = " ".join(f"{x(across):.1f},{y(up):.1f}" for across, up in line)
        parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="2.5" fill="{colour}"/>' for a, b in line]
        if marks and name in marks:
            a, b = next(point for point in line if point[0] == marks[name])
            parts.append(f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="7" fill="none" stroke="{colour}"/>')
        parts.append(f'<text x="{RIGHT + 10}" y="{ends[name] + 4:.1f}" style="fill: {colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _axis(values: Sequence[float], start: float, stop: float):  # type: ignore[no-untyped-def]
    low, high = math.log(min(values)), math.log(max(values))
    return lambda value: start + (stop - start) * (math.log(value) - low) / (high - low or 1)


def _grid(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1:.1f} {y1:.1f} L{x2:.1f} {y2:.1f}" stroke="#dfe4f5"/>'


def _apart(places: Mapping[str, float]) -> dict[str, float]:
    """Move labels up until none covers another, so that none meets the numbers below the first axis."""
    moved: dict[str, float] = {}
    last = math.inf
    for name, place in sorted(places.items(), key=lambda item: -item[1]):
        last = moved[name] = min(place, last - 16)
    return moved
