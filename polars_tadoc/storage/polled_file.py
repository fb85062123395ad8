"""A file for writers in other languages: writing to it ends with ``KeyboardInterrupt`` if an interrupt came."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from polars_tadoc.runtime.interrupts import check


class PolledFile(io.BufferedWriter):
    """An existing file, written from its start.

    PyArrow writes a row group in one call, which may take seconds and does not look for interrupts; it calls ``write``
    for each page, which is a whole list of a packed column. In the main thread Python raises there by itself.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path, "wb"))

    def write(self, data: Any) -> int:
        """Write bytes, unless an interrupt has come."""
        check()
        return super().write(data)
