"""One bucket of an object store, through ``obstore``: the Rust library that Polars uses, too.

So ``storage_options`` have the same meaning as in Polars.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polars_tadoc.storage.addresses import Address

Credentials = Callable[[], Any]

CLIENT = {
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "default_content_type",
    "default_headers",
    "http1_only",
    "http2_keep_alive_interval",
    "http2_keep_alive_timeout",
    "http2_keep_alive_while_idle",
    "http2_max_frame_size",
    "http2_only",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_ca_certificate",
    "proxy_excludes",
    "proxy_url",
    "randomize_addresses",
    "timeout",
    "user_agent",
}
"""Connection options, which Polars takes among those of the store."""

RETRIES = {"max_retries", "retry_timeout_ms", "retry_init_backoff_ms", "retry_max_backoff_ms", "retry_base_multiplier"}
"""Polars' options for retries."""


@dataclass(frozen=True)
class Access:
    """Access to stores: arguments of calls that take addresses."""

    storage_options: Mapping[str, Any] | None = None
    """As in Polars' ``scan_parquet``."""
    credential_provider: Any = "auto"
    """As in Polars: ``"auto"``, None, or a function that returns keys and their time of expiry."""

    def require(self, call: str) -> Access:
        """Raise ``TypeError`` if an argument has the wrong type."""
        options, provider = self.storage_options, self.credential_provider
        if options is not None and not (isinstance(options, Mapping) and all(isinstance(key, str) for key in options)):
            raise TypeError(f"{call}: storage_options={type(options).__name__} must be a dict of names and values")
        if provider not in (None, "auto") and not callable(provider):
            raise TypeError(f'{call}: credential_provider={provider!r} must be a function, "auto" or None')
        return self


@dataclass(frozen=True)
class ObjectInfo:
    """A store's metadata of an object."""

    path: str
    size: int
    tag: str | None
    """Entity tag of the content; changes when the object is replaced."""


class Store:
    """A bucket.

    Parameters
    ----------
    root
        Its address.
    access
        Its access.
    call
        Start of messages.

    Raises
    ------
    ModuleNotFoundError
        ``obstore`` is not installed.
    ValueError
        An option is unknown.

    """

    def __init__(self, root: str, access: Access, call: str) -> None:
        self.root, self._call = root, call
        try:
            import obstore
            from obstore.exceptions import BaseError
            from obstore.store import from_url
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f'{call}: {root} needs the package obstore; install it: pip install "polars-tadoc[cloud]"'
            ) from error
        self._obstore: Any = obstore
        self._errors = (BaseError, OSError, ValueError)  # a path that no object can have is a ValueError
        config: dict[str, Any] = {}
        client: dict[str, Any] = {}
        retries: dict[str, Any] = {}
        for name, value in (access.storage_options or {}).items():
            plain = re.sub(r"^(aws|google|gcp|azure)_", "", name.lower())
            if plain in CLIENT:
                client[plain] = value
            elif plain in RETRIES:
                retries[plain] = value
            elif name != "file_cache_ttl":  # Polars caches files on disk; this package does not
                config[name] = str(value)
        given: dict[str, Any] = {"config": config, "client_options": client}
        if "max_retries" in retries:
            most = str(retries["max_retries"])
            if not re.fullmatch("[0-9]{1,9}", most):
                raise ValueError(f'{call}: {root}: storage_options["max_retries"]={most!r} must be a whole number')
            given["retry_config"] = {"max_retries": int(most)}
        if callable(access.credential_provider):
            given["credential_provider"] = _provider(access.credential_provider)
        try:
            self._store: Any = from_url(root, **{name: value for name, value in given.items() if value})
        except (BaseError, ValueError, TypeError) as error:
            raise ValueError(f"{call}: {root}: {_first_line(error)}; see storage_options=") from error

    def address(self, path: str) -> str:
        """Return an object's address."""
        return f"{self.root}/{path}"

    def tail(self, path: str, most: int) -> tuple[ObjectInfo, bytes]:
        """Read the last bytes of an object, in one request."""
        with self._naming(path):
            try:
                found = self._obstore.get(self._store, path, options={"range": {"suffix": most}})
                return _info(found.meta), bytes(found.bytes())
            except self._errors as error:
                if isinstance(error, FileNotFoundError):
                    raise
            met = _info(self._obstore.head(self._store, path))  # stores without suffix requests, and empty objects
            start = max(met.size - most, 0)
            return met, self._range(met, start, met.size)

    def read(self, met: ObjectInfo, start: int, stop: int) -> bytes:
        """Read bytes of an object, in the version that ``met`` describes.

        Raises
        ------
        FileNotFoundError, OSError
            The object was removed or replaced, or the store cannot be reached.

        """
        with self._naming(met.path):
            return self._range(met, start, stop)

    def _range(self, met: ObjectInfo, start: int, stop: int) -> bytes:
        if stop <= start:
            return b""
        options: dict[str, Any] = {"range": (start, stop)}
        if met.tag is not None:
            options["if_match"] = met.tag
        return bytes(self._obstore.get(self._store, met.path, options=options).bytes())

    def find(self, path: str) -> ObjectInfo | None:
        """Return an object's metadata; None if it does not exist."""
        with self._naming(path):
            try:
                return _info(self._obstore.head(self._store, path))
            except FileNotFoundError:
                return None

    def below(self, folder: str) -> list[ObjectInfo]:
        """List the objects whose names begin with a folder's, in the order of their names."""
        with self._naming(folder):
            found = [_info(one) for some in self._obstore.list(self._store, prefix=folder or None) for one in some]
        return sorted(found, key=lambda met: met.path)

    def first_below(self, folder: str) -> str | None:
        """Return the name of one object whose name begins with a folder's; None if there is none."""
        with self._naming(folder):
            found = (one["path"] for some in self._obstore.list(self._store, prefix=folder) for one in some)
            return next((str(name) for name in found if name.startswith(f"{folder}/")), None)

    def write(self, path: str, file: Path) -> None:
        """Upload a local file as an object, atomically."""
        with self._naming(path):
            self._obstore.put(self._store, path, file)

    def remove(self, paths: list[str]) -> None:
        """Remove objects; missing ones are ignored."""
        with self._naming(paths[0] if paths else ""):
            for path in paths:
                try:
                    self._obstore.delete(self._store, path)
                except FileNotFoundError:
                    continue

    @contextmanager
    def _naming(self, path: str) -> Iterator[None]:
        """Turn the library's errors into the built-in ones for files, with the address."""
        try:
            yield
        except self._errors as error:
            kind = type(error).__name__
            name = self.address(path)
            if isinstance(error, FileNotFoundError):
                raise FileNotFoundError(f"{self._call}: object {name} does not exist") from error
            if isinstance(error, ValueError):
                raise ValueError(f"{self._call}: {name}: {_first_line(error)}") from error
            if kind == "PreconditionError":
                raise OSError(f"{self._call}: {name} was replaced while it was read; read it again") from error
            if kind in ("PermissionDeniedError", "UnauthenticatedError"):
                why = f"{self._call}: {name}: no permission to read or write; see storage_options="
                raise PermissionError(f"{why} ({_first_line(error)})") from error
            raise OSError(f"{self._call}: {name}: {_first_line(error)}") from error


def _info(meta: Any) -> ObjectInfo:
    return ObjectInfo(meta["path"], int(meta["size"]), meta["e_tag"])


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:300]


def _provider(given: Credentials) -> Credentials:
    """Turn a Polars provider of credentials into one of ``obstore``."""

    def credentials() -> dict[str, Any]:
        keys, expires = given()
        names = {"session_token": "token"}
        plain = (re.sub(r"^(aws|google|azure)_", "", name) for name in keys)
        found: dict[str, Any] = dict(zip((names.get(name, name) for name in plain), keys.values(), strict=True))
        found = {("token" if name == "bearer_token" else name): value for name, value in found.items()}
        found["expires_at"] = None if expires is None else datetime.datetime.fromtimestamp(expires, datetime.UTC)
        return found

    return credentials


def split_pattern(address: Address) -> tuple[str, re.Pattern[str] | None]:
    """Return the folder of a glob pattern, and the pattern as a regular expression; None if it is not a pattern."""
    parts = address.path.split("/")
    first = next((place for place, part in enumerate(parts) if re.search(r"[*?\[]", part)), None)
    if first is None:
        return address.path, None
    return "/".join(parts[:first]), re.compile(_expression(address.path))


def _expression(pattern: str) -> str:
    """Translate a glob pattern: ``*`` and ``?`` do not match slashes, ``**`` does."""
    found = ""
    for token in re.findall(r"\*\*/|\*\*|\*|\?|\[[^\]]+\]|.", pattern):
        if token == "**/":
            found += "(?:.*/)?"
        elif token == "**":
            found += ".*"
        elif token in ("*", "?"):
            found += f"[^/]{'*' if token == '*' else ''}"
        elif len(token) > 1:
            found += f"[^{token[2:]}" if token[1] == "!" else token
        else:
            found += re.escape(token)
    return f"{found}\\Z"
