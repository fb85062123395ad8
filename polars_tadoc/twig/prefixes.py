"""Checks the namespaces that a user declares for the prefixes of queries."""

from __future__ import annotations

import re
from collections.abc import Mapping

from polars_tadoc.runtime.arguments import require_text
from polars_tadoc.twig.tokens import NAME

XML = "http://www.w3.org/XML/1998/namespace"
"""Namespace of the prefix ``xml`` in every document."""

XMLNS = "http://www.w3.org/2000/xmlns/"
"""Namespace of the prefix ``xmlns``; no element or attribute is in it."""

_PREFIX = re.compile(NAME)


def checked(namespaces: Mapping[str, str] | None, call: str) -> dict[str, str]:
    """Return namespaces by prefix, including ``xml``.

    Raises
    ------
    TypeError
        Not a mapping of strings.
    ValueError
        A prefix is not a name or is reserved by XML, or a namespace is empty.

    """
    if namespaces is None:
        return {"xml": XML}
    if not isinstance(namespaces, Mapping):
        raise TypeError(f"{call}: namespaces={namespaces!r} must be a mapping of prefixes to namespaces")
    for prefix, uri in namespaces.items():
        if prefix is None or prefix == "":
            raise ValueError(
                f"{call}: namespaces names {uri!r} without a prefix, but in XPath 1.0 a name without a prefix has no "
                'namespace; give it a prefix: namespaces={"p": …}, and write //p:name'
            )
        if not isinstance(prefix, str) or not isinstance(uri, str):
            raise TypeError(f"{call}: namespaces has {prefix!r}: {uri!r}; prefixes and namespaces are strings")
        if not _PREFIX.fullmatch(prefix):
            raise ValueError(f"{call}: the prefix {prefix!r} in namespaces is not a name that XML allows")
        if not uri:
            raise ValueError(f'{call}: the namespace of the prefix "{prefix}" is empty')
        require_text(uri, f'{call}: the namespace of the prefix "{prefix}"')
        if prefix == "xmlns" or uri == XMLNS or (prefix == "xml") != (uri == XML):
            raise ValueError(
                f'{call}: namespaces has "{prefix}": "{uri}"; XML reserves the prefixes xml and xmlns '
                "and their namespaces; remove it or use others"
            )
    return {**namespaces, "xml": XML}
