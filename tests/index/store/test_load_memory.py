"""Memory that loading an index takes, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import polars_tadoc as tadoc

LOAD = """
import sys
from pathlib import Path
import polars_tadoc as tadoc

def status(name):
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return 1024 * int(line.split()[1])

small = tadoc.load_index(sys.argv[1], verify="all")  # brings the code into memory that any load needs
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
index = tadoc.load_index(sys.argv[2], verify="all")  # which also reads what a search would
peak = status("VmHWM") - before
print(peak, len(index.search("w7", k=3)))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells a peak and lets it begin anew")
def test_loading_takes_at_most_one_and_a_half_times_the_files(tmp_path: Path) -> None:
    """At its peak, and where text is not asked for; libraries apart."""
    words = np.char.add("w", np.random.default_rng(5).integers(0, 30_000, (100_000, 24)).astype(str))
    text = pl.Series("text", [" ".join(row) for row in words.tolist()])
    for name, rows in (("small", text.head(2)), ("large", text)):
        tadoc.build_index(rows.tadoc.compress()).save(tmp_path / name)
    size = sum(path.stat().st_size for path in (tmp_path / "large").iterdir())
    assert size > 9_000_000
    command = [sys.executable, "-c", LOAD, str(tmp_path / "small"), str(tmp_path / "large")]
    for _ in range(2):  # the first may compile
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    peak, found = map(int, done.stdout.split())
    assert found == 3
    assert peak <= 1.5 * size, f"{peak / size:.2f} times {size:,} bytes"
