"""Tells PyInstaller what frozen applications need of this package; an entry point names this module."""

from pathlib import Path


def hook_dirs() -> list[str]:
    """Return the folder of the hook."""
    return [str(Path(__file__).parent)]
