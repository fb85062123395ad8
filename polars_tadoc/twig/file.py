"""The file of a saved set of twigs: JSON, readable by people and easy to diff.

``{"format": "polars_tadoc twigs", "version": 1, "namespaces": {prefix: namespace}, "queries": {name: XPath}}``
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polars_tadoc.errors import InvalidTwigSetError
from polars_tadoc.runtime.regular_file import naming_file, read_json_text
from polars_tadoc.storage.atomic_write import atomic_file, target

FORMAT = "polars_tadoc twigs"
VERSION = 1


def write(path: Path, queries: Mapping[str, str], namespaces: Mapping[str, str]) -> None:
    """Write a file atomically. Raises what ``atomic_write.target`` raises."""
    contents = {"format": FORMAT, "version": VERSION, "namespaces": dict(namespaces), "queries": dict(queries)}
    text = json.dumps(contents, ensure_ascii=False, indent=1)
    with atomic_file(target(path, "TwigSet.save"), "TwigSet.save") as temporary:
        temporary.write_text(text + "\n", encoding="utf-8", newline="\n")


def read(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the queries and the namespaces of a file.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    InvalidTwigSetError
        It is another kind of file, of another version, or damaged.
    LimitExceededError
        It is larger than one sixteenth of ``Config(payload_limit_bytes=)``.

    """
    try:
        with naming_file(path, "TwigSet.load", InvalidTwigSetError, "saved twigs are"):
            text = read_json_text(path, "TwigSet.load").decode()
    except UnicodeDecodeError as error:
        raise _damaged(path, f"it is not UTF-8 ({error.reason} at byte {error.start:,})") from None
    try:
        contents = json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise _damaged(path, f"it is not JSON ({error})") from None
    except ValueError as error:
        raise _damaged(path, str(error)) from None
    except RecursionError:
        raise _damaged(path, "its JSON is nested too deeply") from None
    if not isinstance(contents, dict) or contents.get("format") != FORMAT:
        raise InvalidTwigSetError(f'TwigSet.load: {path} is not a file of saved twigs: it lacks "format": "{FORMAT}"')
    version = contents.get("version")
    if version != VERSION:
        raise InvalidTwigSetError(
            f"TwigSet.load: {path} has format version {reprlib.repr(version)}, this polars_tadoc reads version "
            f"{VERSION}: install the polars_tadoc that saved it"
        )
    return _strings(path, contents, "queries"), _strings(path, contents, "namespaces")


def _strings(path: Path, contents: dict[str, Any], key: str) -> dict[str, str]:
    found = contents.get(key)
    if not isinstance(found, dict):
        raise _damaged(path, f'it has no object "{key}"')
    for name, value in found.items():
        if not isinstance(value, str):
            raise _damaged(path, f'"{name}" in its "{key}" is not a string')
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object; repeated names are an error."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f'it names "{name}" twice')
        found[name] = value
    return found


def _damaged(path: Path, why: str) -> InvalidTwigSetError:
    return InvalidTwigSetError(f"TwigSet.load: {path} is damaged: {why}; repair it in an editor, or save the set again")
