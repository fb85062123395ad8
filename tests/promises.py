"""Sentences of the documentation, as the table of promises names them."""

from __future__ import annotations

import re

from tests import ROOT

DOCS = ROOT / "docs"


def sentences(page: str, section: str | None = None) -> list[str]:
    """Return the sentences of a page or of one section; a row of a table and a heading's text are one each.

    Code is left out, and what stands in several lines is in one.
    """
    text = re.sub(r"```.*?```", "", (DOCS / f"{page}.md").read_text("utf-8"), flags=re.DOTALL)
    if section is not None:
        text = re.split(rf"^## {re.escape(section)}$", text, maxsplit=1, flags=re.MULTILINE)[1]
        text = re.split(r"^## ", text, maxsplit=1, flags=re.MULTILINE)[0]
    found: list[str] = []
    for block in re.split(r"\n\s*\n|\n(?=- |\| )", text):
        if block.startswith("|"):
            found += [row for row in block.splitlines() if not re.fullmatch(r"[| -]+", row)]
        elif not block.startswith("#"):
            words = " ".join(block.removeprefix("- ").split())
            found += [one for one in re.split(r"(?<=[A-Za-z0-9)`*][.:]) (?=[A-Z`(])", words) if one]
    return [one.strip() for one in found]
