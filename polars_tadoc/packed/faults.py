"""Handles files and partitions of a packed scan that cannot be read."""

from __future__ import annotations

import errno
import os
import warnings
from typing import Literal, get_args

from polars_tadoc.errors import SkippedPartitionWarning
from polars_tadoc.packed.files import RowGroup
from polars_tadoc.runtime.arrow_memory import not_of_the_file
from polars_tadoc.storage.files import File

OnError = Literal["raise", "skip"]

NOT_THE_FILE_S = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR}
"""Errors of the process, not of the file (too many open files, out of memory): the next file would fail too."""


class Faults:
    """Raises the error of an unreadable file or partition with its name, or warns and continues.

    Parameters
    ----------
    on_error
        ``"raise"`` or ``"skip"``.

    Raises
    ------
    ValueError
        ``on_error`` is neither.

    """

    def __init__(self, on_error: OnError) -> None:
        if on_error not in get_args(OnError):
            raise ValueError(f'scan_packed: on_error={on_error!r}: use "raise" or "skip"')
        self.skips = on_error == "skip"
        """Whether unreadable files and partitions are skipped."""

    def of_file(self, file: File, error: Exception) -> None:
        """Handle an error of a file as a whole."""
        if isinstance(error, FileNotFoundError):
            error = FileNotFoundError(errno.ENOENT, "the file is gone")
        self._handle(str(file), error)

    def of_row_group(self, place: RowGroup, error: Exception) -> None:
        """Handle an error of a row group."""
        self._handle(place.place, error)

    def _handle(self, place: str, error: Exception) -> None:
        number = getattr(error, "errno", None)
        if number in NOT_THE_FILE_S or (number is None and not_of_the_file(error)):
            raise error
        why = str(error).removeprefix(place).lstrip(":, ").rstrip(".")
        if isinstance(error, OSError) and number is not None:
            why = error.strerror or os.strerror(number)
        if self.skips:
            said = f'scan_packed: {place}: {why}; skipped (on_error="skip")'
            warnings.warn(said, SkippedPartitionWarning, stacklevel=2)
            return
        why = f'scan_packed: {place}: {why}; on_error="skip" skips it'
        if isinstance(error, OSError) and number is not None:
            raise OSError(number, why) from error  # OSError picks the subclass of the number
        raise type(error)(why) from error
