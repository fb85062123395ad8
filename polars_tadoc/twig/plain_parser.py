"""Plain-Python definition of a document's events, the reference of the kernels that call Expat."""

from __future__ import annotations

from typing import Any
from xml.parsers import expat

from polars_tadoc.kernels.twigs.arrays import CLOSE, OTHER
from polars_tadoc.twig.alphabet import Alphabet
from polars_tadoc.twig.expat import SEPARATOR

ENTITIES_DECLARED = "the DOCTYPE declares entities, which are not expanded"
DEFAULTS_DECLARED = "the DOCTYPE expands to default values of more than 100 times the document"
"""Errors of documents that may be well-formed."""

INVALID_TOKEN: int = expat.errors.codes[expat.errors.XML_ERROR_INVALID_TOKEN]


class DocumentError(Exception):
    """A document is not well-formed or exceeds a limit; the message has the reason and the position."""

    @classmethod
    def at(cls, why: str, line: int, column: int) -> DocumentError:
        """Make an error at a position; lines and columns count from 1."""
        return cls(f"{why} (line {line:,}, column {column:,})")

    @classmethod
    def not_well_formed(cls, code: int, line: int, column: int) -> DocumentError:
        """Make the error of one of Expat's codes."""
        why = "invalid token" if code == INVALID_TOKEN else expat.ErrorString(code)
        return cls.at(f"not well-formed XML: {why}", line, column)

    @classmethod
    def too_deep(cls, most: int, line: int, column: int) -> DocumentError:
        """Make the error for the limit ``max_depth``."""
        return cls(f"{cls.at(f'more than max_depth={most:,} elements are open', line, column)}; raise max_depth=")


def too_large(size: int, most: int) -> str:
    """Return the message for the limit ``max_bytes``."""
    return f"it has {size:,} bytes, more than max_bytes={most:,}; raise max_bytes="


def parse_document(document: bytes, alphabet: Alphabet, max_depth: int) -> list[int]:
    """Return the events of one document.

    An element opens; its attributes that have a symbol follow, name before name with value, in document
    order. Adjacent character data and CDATA sections are one text. Comments, processing instructions and references to
    undeclared entities separate texts.

    Parameters
    ----------
    document
        UTF-8, regardless of its XML declaration.
    alphabet
        Elements, attributes and texts that have a symbol.
    max_depth
        Maximum number of open elements.

    Raises
    ------
    DocumentError
        The document is not well-formed, declares entities, or is too deep.

    """
    if 0 in document[:2]:  # Expat would decode it as UTF-16
        line, column = (2, 1) if document[0] in b"\r\n" else (1, 1 + document.index(0))
        raise DocumentError.not_well_formed(INVALID_TOKEN, line, column)
    parser = expat.ParserCreate("UTF-8", SEPARATOR)
    parser.ordered_attributes = True
    events: list[int] = []
    text: list[str] = []
    opened = 0

    def place() -> tuple[int, int]:
        return parser.CurrentLineNumber, parser.CurrentColumnNumber + 1

    def leaf(symbol: int | None) -> None:
        if symbol is not None:
            events.extend((symbol, CLOSE))

    def end_text(*_: Any) -> None:
        if text:
            leaf(alphabet.texts.get("".join(text)))
            text.clear()

    def start(name: str, attributes: list[str]) -> None:
        nonlocal opened
        end_text()
        opened += 1
        if opened > max_depth:
            raise DocumentError.too_deep(max_depth, *place())
        events.append(alphabet.elements.get(_split(name), OTHER))
        for attribute, value in zip(attributes[::2], attributes[1::2], strict=True):
            leaf(alphabet.attributes.get(_split(attribute)))
            leaf(alphabet.attribute_values.get((*_split(attribute), value)))

    def end(name: str) -> None:
        nonlocal opened
        end_text()
        opened -= 1
        events.append(CLOSE)

    def refuse_entity(*_: Any) -> None:
        raise DocumentError.at(ENTITIES_DECLARED, *place())

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text.append
    parser.CommentHandler = end_text
    parser.ProcessingInstructionHandler = end_text
    parser.SkippedEntityHandler = end_text
    parser.EntityDeclHandler = refuse_entity
    try:
        parser.Parse(document, True)
    except expat.ExpatError as error:
        raise DocumentError.not_well_formed(error.code, error.lineno, error.offset + 1) from None
    return events


def _split(name: str) -> tuple[str, str]:
    uri, _, local = name.rpartition(SEPARATOR)
    return uri, local
