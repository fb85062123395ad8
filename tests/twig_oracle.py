"""What twigs match by lxml (libxml2's XPath 1.0), and makers of small documents and queries that often meet."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

import lxml.etree

NAMESPACES = {"p": "urn:one", "q": "urn:two/"}
"""What the prefixes of made queries stand for; documents bind prefixes as they like."""

_NAMES = ["a", "b", "c", "é-1"]
_ATTRIBUTES = ["x", "y", "a"]
_VALUES = ["1", "v", "two words", " v ", "", "é", "<&>", "it's", "x\ny", "-", "]]>"]
_SPACES = ["", "", "", " ", "\n"]
_MARKS = ["<!-- a -->", "<!---->", "<!--<a x='1'>-->", "<?go a?>", "<?p v?>"]
_PROLOGUES = [
    *("", "", "", '<?xml version="1.0"?>', "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>\n"),
    *('<?xml version="1.0" encoding="ISO-8859-1"?>', "<!-- v --><?go?>\n"),
    *('<!DOCTYPE a SYSTEM "none.dtd">\n', "<!DOCTYPE a>"),
]

_BREAKS = [
    *(
        "<",
        "&",
        ">",
        "]]>",
        "</a>",
        "<a>",
        "<b/>",
        "&amp",
        "&x;",
        "&#0;",
        "&#x110000;",
        "&#65;",
        '"',
        "'",
        "=",
        "/",
        "!",
    ),
    *("<!--", "-->", "--", "<![CDATA[", "<?", "?>", "<!DOCTYPE a>", "\x0b", "\ufffe", "\x85", " ", "é", "<1/>", "x=''"),
]


def parse(document: str) -> lxml.etree._Element:
    """Parse a document as filters do: nothing is loaded, strings are UTF-8 whatever they say."""
    parser = lxml.etree.XMLParser(
        encoding="utf-8", no_network=True, resolve_entities=False, huge_tree=True, attribute_defaults=True
    )
    return lxml.etree.fromstring(document.encode(), parser)


def matches(
    documents: Sequence[str | None], queries: Mapping[str, str], namespaces: Mapping[str, str] | None = None
) -> list[list[str]]:
    """Return the names of the queries that are true of each document, in the order of the queries."""
    compiled = {
        name: lxml.etree.XPath(f"boolean({query})", namespaces=dict(namespaces or {}))
        for name, query in queries.items()
    }
    found: list[list[str]] = []
    for document in documents:
        tree = None if document is None else parse(document).getroottree()
        found.append([name for name, query in compiled.items() if tree is not None and query(tree)])
    return found


class Maker:
    """Makes documents and queries over few names and values.

    Parameters
    ----------
    chance
        What chooses: Hypothesis' random, which shrinks, or Python's, which is fast.

    """

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def _often(self, probability: float) -> bool:
        return self.chance.random() >= 1 - probability  # what shrinks does not happen

    def _space(self) -> str:
        return self.chance.choice(_SPACES)

    def document(self) -> str:
        """Write a well-formed document with any of the ways to write one."""
        deep = 40 if self._often(0.05) else self.chance.randrange(1, 6)
        mark = self.chance.choice(_MARKS) if self._often(0.1) else ""
        return self.chance.choice(_PROLOGUES) + self._element(deep, {"": ""}) + mark + self._space()

    def broken(self) -> str:
        """Write a document and change it in one place, after which it may be none.

        Namespaces stay as they are: libxml2 refuses names of namespaces that are no URIs, XML does not.
        """
        while True:
            document = self.document()
            at = self.chance.randrange(len(document))
            if self._often(0.3):
                changed = document[:at] + document[at + 1 :]
            else:
                changed = document[:at] + self.chance.choice(_BREAKS) + document[at:]
            if "xmlns" not in document and not changed.startswith("<?xml"):
                return changed

    def _element(self, levels: int, scope: dict[str, str]) -> str:
        scope = dict(scope)
        attributes: dict[tuple[str, str], str] = {}
        for _ in range(self._often(0.15) + self._often(0.02)):
            prefix = self.chance.choice(["", "p", "q", "other"])
            scope[prefix] = self.chance.choice([*NAMESPACES.values(), *([] if prefix else [""])])
            attributes["", f"xmlns:{prefix}" if prefix else "xmlns"] = scope[prefix]
        for _ in range(self.chance.choice([0, 0, 1, 2])):
            prefix = self.chance.choice(list(scope)) if self._often(0.3) else ""
            name, value = self.chance.choice(_ATTRIBUTES), self.chance.choice(_VALUES)
            if not any(key == (prefix and scope[prefix], name) for key in self._expanded(attributes, scope)):
                attributes[prefix, name] = value
        prefix = self.chance.choice(list(scope)) if self._often(0.5) else ""
        name = f"{prefix}:" * bool(prefix) + self.chance.choice(_NAMES)
        tag = name + "".join(
            f"{self.chance.choice([' ', '  ', chr(10)])}{own}{self._assigned(value)}"
            for own, value in ((f"{p}:{n}" if p else n, value) for (p, n), value in attributes.items())
        )
        content = "".join(self._content(levels, scope))
        if not content and self._often(0.7):
            return f"<{tag}{self._space()}/>"
        return f"<{tag}{self._space()}>{content}</{name}{self._space()}>"

    def _expanded(self, attributes: Mapping[tuple[str, str], str], scope: Mapping[str, str]) -> list[tuple[str, str]]:
        return [(prefix and scope[prefix], name) for prefix, name in attributes]

    def _assigned(self, value: str) -> str:
        quote = self.chance.choice("\"'")
        written = "".join(self._reference(c) if c in "<&\n" + quote or self._often(0.03) else c for c in value)
        return f"{self._space()}={self._space()}{quote}{written}{quote}"

    def _reference(self, character: str) -> str:
        named = {"<": "lt", ">": "gt", "&": "amp", '"': "quot", "'": "apos"}
        code = ord(character)
        ways = [f"&#{code};", f"&#x{code:x};", f"&#0{code};"]
        return self.chance.choice([f"&{named[character]};", *ways] if character in named else ways)

    def _content(self, levels: int, scope: dict[str, str]) -> list[str]:
        parts = []
        for _ in range(self.chance.choice([0, 1, 1, 2, 3]) if levels < 10 else 1):
            kind = self.chance.random()
            if kind < 0.55:
                parts.append(self._element(levels - 1, scope) if levels > 1 else "")
            elif kind < 0.9:
                parts.append(self._text(self.chance.choice(_VALUES)))
            else:
                parts.append(self.chance.choice(_MARKS))
        return parts

    def _text(self, value: str) -> str:
        """Write a text, perhaps in pieces of several kinds."""
        cuts = sorted(self.chance.randrange(len(value) + 1) for _ in range(self._often(0.2) + self._often(0.1)))
        pieces = [value[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(value)], strict=True)]
        return "".join(self._piece(piece) for piece in pieces)

    def _piece(self, text: str) -> str:
        if self._often(0.15) and "]]>" not in text:
            return f"<![CDATA[{text}]]>"
        if self._often(0.1):
            return "".join(map(self._reference, text))
        return escape(text)

    def query(self) -> str:
        """Write a query of the subset."""
        return self.chance.choice(["/", "//"]) + self._path(self.chance.choice([0, 1, 1, 2, 2, 3, 4]), False)

    def _path(self, more: int, within: bool) -> str:
        """Write steps and their predicates; so many steps more at most, in all branches together or nearly so."""
        if within and self._often(0.3):
            return self._leaf()
        written = self._name(_NAMES) if self._often(0.75) else "*"
        while more > 0 and self._often(0.4):
            spent = self.chance.randrange(1, more + 1)
            lead = self.chance.choice(["", "", ".//", "./"])
            written += f"{self._space()}[{self._space()}{lead}{self._path(spent - 1, True)}{self._space()}]"
            more -= spent
        if more <= 0:
            return written
        slashes = self.chance.choice(["/", "//"])
        if not within and self._often(0.1):
            return f"{written}{slashes}@{self._name(_ATTRIBUTES)}"
        return f"{written}{self._space()}{slashes}{self._space()}{self._path(more - 1, within)}"

    def _name(self, names: Sequence[str]) -> str:
        return ("p:" if self._often(0.15) else "q:" if self._often(0.1) else "") + self.chance.choice(names)

    def _leaf(self) -> str:
        is_text = self._often(0.5)
        # XPath knows no empty text; libxml2 makes one of an empty CDATA section
        value = self.chance.choice([value for value in _VALUES if value or not is_text])
        quote = "'" if '"' in value else '"' if "'" in value else self.chance.choice("\"'")
        equals = f"{self._space()}={self._space()}{quote}{value}{quote}"
        if is_text:
            return f"text(){equals}"
        return f"@{self._name(_ATTRIBUTES)}{equals if self._often(0.6) else ''}"
