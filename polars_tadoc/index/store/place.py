"""The folder that an index is written to: the target itself, or a temporary one for an upload."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from polars_tadoc.index.store.folder import HEADER
from polars_tadoc.storage.addresses import Address
from polars_tadoc.storage.object_store import Access
from polars_tadoc.storage.writing import require_no_folder, scratch_folder, upload_folder


@contextmanager
def index_folder(place: Path | Address, overwrite: bool, call: str, access: Access) -> Iterator[tuple[Path, bool]]:
    """Yield the folder to save an index to, and whether it may replace one; finally move or upload it to its target.

    Raises
    ------
    FileExistsError, ValueError
        The object store's target exists; checked before anything is written.
    OSError
        The store cannot be reached.

    """
    if isinstance(place, Path):
        yield place, overwrite
        return
    require_no_folder(place, HEADER, overwrite, call, access)
    with scratch_folder(call) as scratch:
        yield scratch / "index", False
        upload_folder(scratch / "index", place, HEADER, overwrite, call, access)
