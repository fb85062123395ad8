"""What MkDocs does beside its plugins: cross-references of docstrings become links."""

import re

_ROLE = re.compile(r":(?:func|class|meth|mod|data|attr):<code>~?([\w.]+)</code>")


def on_page_content(html: str, **_given: object) -> str:
    """Turn ``:func:`polars_tadoc.compress``` into a link, where that name has a place in the reference."""
    return _ROLE.sub(r'<autoref optional identifier="\1"><code>\1</code></autoref>', html)
