"""A notebook: cells run in order in IPython's shell; what is displayed is short, and never a grammar."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.trials.corpora import manuals

CELLS = [
    "import polars as pl\nimport polars_tadoc as tadoc",
    "df = pl.read_parquet(FILE).tadoc.compress('text')\ndf.head(3)",
    "df['text'].head(3)",
    "df",
    "df.tadoc.word_count('text', top=5)",
    "df.filter(pl.col('text').tadoc.contains_phrase('of the')).select('page', 'text')",
    "index = df.tadoc.build_index('text')\nindex",
    "index.snippets(index.search('the time', k=3), 'the time')",
    "df.with_columns(first=pl.col('text').tadoc.head(5)).select('page', 'first')",
    "total = df.select(pl.col('text').tadoc.token_count().sum()).item()\ntotal",
]

SHELL = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell = InteractiveShell.instance()
cells = json.loads(sys.argv[1])
shell.user_ns["FILE"] = sys.argv[2]
shown = []
for cell in cells:
    with capture_output() as captured:
        result = shell.run_cell(cell)
    if not result.success:
        raise SystemExit(f"{cell}: {result.error_before_exec or result.error_in_exec}")
    kinds = {} if result.result is None else shell.display_formatter.format(result.result)[0]
    shown.append({"printed": captured.stdout, **kinds})
print(json.dumps(shown))
"""


def run(folder: Path, size: str) -> None:
    """Run the cells in a process of their own; what they show is looked at here."""
    pages = manuals(size).head(3000)
    pages.write_parquet(folder / "pages.parquet")
    command = [sys.executable, "-c", SHELL, json.dumps(CELLS), str(folder / "pages.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    shown = json.loads(done.stdout.splitlines()[-1])
    assert len(shown) == len(CELLS)
    for cell, kinds in zip(CELLS, shown, strict=True):
        for kind, text in kinds.items():
            assert len(text) < 20_000, (cell, kind, len(text))
    assert "text/html" in shown[1]
    first = " ".join(pages["text"][0].split()[:2])
    assert first.split()[0].strip("-#<>=:") in shown[1]["text/html"] or first.split()[1] in shown[1]["text/html"]
    import re

    assert int(shown[-1]["text/plain"]) == sum(
        len(re.findall(r"\w+", text)) for text in pages["text"] if text.isascii()
    ) or any(not text.isascii() for text in pages["text"])
