"""The user's folder for caches between processes."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from numba.misc.appdirs import AppDirs


def cache_folder(name: str) -> Path | None:
    """Return the user's folder of this name; None if it is unknown. It may not exist.

    A relative one (``XDG_CACHE_HOME`` is empty, or the home unknown) is ignored, as the XDG Base Directory
    Specification says: else the owner of the working folder could fill the cache.
    """
    with suppress(RuntimeError):  # the home folder is unknown
        for place in (AppDirs(appname=name, appauthor=False).user_cache_dir, os.path.expanduser(f"~/.cache/{name}")):
            if os.path.isabs(place):
                return Path(place)
    return None
