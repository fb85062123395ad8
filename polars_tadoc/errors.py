"""The exceptions of polars_tadoc. Each message says what was wrong, where, and what to do."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable

TEXT_CALLS = ("content_hash", "equals", "eq", "bm25_weights", "tfidf", "to_csr", "twig_filter")
"""Calls that take a String column as it is."""

TO_STRINGS = {
    "List(String)": '.list.join(" ")',
    "Array(String": '.arr.join(" ")',
    "List": ".explode()",
    "Array": ".explode()",
    "Struct": '.struct.field("…")',
    "Object": ".map_elements(str, return_dtype=pl.String)",
}
"""What makes strings of types that cannot be cast."""

PACKED_FIELDS = ("rule_offsets", "document_offsets", "roots")
"""Fields by which a packed column is known."""

COLUMN_FIELDS = ("grammar", "symbols", "gaps")
"""Fields of a compressed column, by which one is known that has lost its type tag."""

MAX_COMPARED = 10_000
"""Names among which the nearest is looked for: more take seconds."""

CHARACTERS_SHOWN = 40
"""Of a query, on each side of what is wrong in it."""


class TadocError(Exception):
    """Base class of this package's errors; a wrong argument is an ordinary TypeError or ValueError."""


class NotCompressedError(TadocError, TypeError):
    """An analytic was called on a column that is not grammar-compressed."""

    @classmethod
    def for_column(cls, name: str, dtype: object, call: str) -> NotCompressedError:
        """Name the column, its type and the call that mends it."""
        text = str(dtype)
        has_fields = all(f"'{field}'" in text for field in COLUMN_FIELDS)
        is_lost = any(all(f"'{field}'" in text for field in fields) for fields in (COLUMN_FIELDS, PACKED_FIELDS))
        if call in TEXT_CALLS and not is_lost:
            mend = to_strings(name, dtype)
            return cls(f'{call}: column "{name}" is {dtype}, neither String nor a TADOC column; {mend}')
        if call == "decompress" and text == "String":
            mend = "it is text already"
        elif text.startswith(("Struct", "Text(", "Extension(")) and has_fields:
            mend = "its type was lost on the way: tadoc.as_text(df) gives it back"
        elif text.startswith("Struct") and all(f"'{field}'" in text for field in PACKED_FIELDS):
            mend = f'its rows are packed: df.tadoc.unpack("{name}") gives them back'
        elif text == "List(Text())" or (text.startswith("List(") and has_fields):
            mend = f'explode it, or call on the elements of its lists: pl.col("{name}").list.eval(pl.element().tadoc…)'
        elif text == "String":
            mend = f'compress it first: df.with_columns(pl.col("{name}").tadoc.compress())'
        else:
            mend = f"only String columns can be compressed: {to_strings(name, dtype)}, then .tadoc.compress()"
        return cls(f'{call}: column "{name}" is {dtype}, not a TADOC column; {mend}')


class NotPackedError(TadocError, TypeError):
    """A column or a file was to be read as packed rows that is none."""

    @classmethod
    def for_column(cls, name: str, dtype: object, call: str) -> NotPackedError:
        """Name the column, its type and the call that makes a packed one."""
        return cls(
            f'{call}: column "{name}" is {dtype}, not a packed TADOC column (tadoc.PACKED_DTYPE); '
            'df.tadoc.pack("text") makes one of a compressed column'
        )


class ColumnMissingError(TadocError, KeyError):
    """A column name that the frame does not have."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        """Print the message as written."""
        return str(self.args[0])

    @classmethod
    def for_name(cls, name: str, columns: Iterable[str], call: str) -> ColumnMissingError:
        """Suggest the nearest names, or list what there is."""
        hint = _suggestion(name, list(columns), "the columns are", "the frame has no columns")
        return cls(f'{call}: there is no column "{name}"; {hint}')


class InvalidGrammarError(TadocError, ValueError):
    """A grammar, its payload or a row that refers to it is malformed."""


class InvalidIndexError(TadocError, ValueError):
    """The files of a saved index are damaged, or are no index; the message names the file and what to do."""


class InvalidDictionaryError(TadocError, ValueError):
    """The file of a saved dictionary is damaged, or is no dictionary; the message names the file and what to do."""


class InvalidRecordsError(TadocError, ValueError):
    """Partial results of an analytic, spilled or sent, are damaged, or are those of another question."""


class InvalidTwigError(TadocError, ValueError):
    """An XPath query is no twig; the message names what in it cannot be used, and where it stands."""

    @classmethod
    def for_query(cls, name: str | None, xpath: str, position: int, why: str) -> InvalidTwigError:
        """Name the character (from 0) where it begins, say what it is, and point at it."""
        query = "the query" if name is None else f'query "{name}"'
        return cls(f"{query}, character {position + 1:,}: {why}\n{_with_caret(xpath, position)}")


class InvalidTwigSetError(TadocError, ValueError):
    """The file of saved twigs is damaged, or is none; the message names the file and what is wrong."""


class TwigMissingError(TadocError, KeyError):
    """The name of a twig that the set does not have."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        """Print the message as written."""
        return str(self.args[0])

    @classmethod
    def for_name(cls, name: object, names: Iterable[str], call: str) -> TwigMissingError:
        """Suggest the nearest names, or list what there is."""
        hint = _suggestion(str(name), list(names), "the set has", "the set is empty")
        return cls(f"{call}: the set has no twig {name!r}; {hint}")


class InvalidXmlError(TadocError, ValueError):
    """A row is not well-formed XML, or exceeds a limit; the message names the row and what is wrong there."""

    @classmethod
    def for_row(cls, name: str, row: int, why: str) -> InvalidXmlError:
        """Name the column, the row and how to go on without it."""
        return cls(
            f'column "{name}", row {row}: {why}; on_error="null" passes over such rows (null, where results are by row)'
        )


class LimitExceededError(TadocError, ValueError):
    """What was asked for would expand beyond a limit; the message names the limit and how to raise it."""


class DiskFullError(TadocError, OSError):
    """No more can be written in a folder: it is full, or a quota is; the message names it. ``errno`` says which."""


class NotAFileError(TadocError, OSError):
    """What should be a regular file is a FIFO, a device, a socket or a link; it was not read."""


class EngineUnavailableError(TadocError, RuntimeError):
    """The engine asked for cannot run here; the message says what is missing and how to install it."""


class ForkedProcessError(TadocError, RuntimeError):
    """The process was forked after Polars had started its threads: calls would wait for ever."""


class DeviceMemoryError(EngineUnavailableError):
    """A GPU has too little memory for what cannot be cut any smaller; the message says what it is and what to do."""


class DeadlineMissedError(TadocError, TimeoutError):
    """A query to a server was given up: no engine could answer it in time any more."""


class SkippedPartitionWarning(UserWarning):
    """A partition or file of a packed scan was passed over (``on_error="skip"``); the message names it and says why."""


class WorkerLostError(TadocError, RuntimeError):
    """Worker processes ended again and again over the same work, or could not be started; the message says which."""


class DeviceMemoryWarning(UserWarning):
    """A GPU had too little memory for all rows at once: they went in smaller batches, or with "auto" to the CPU."""


class BrokenCuPyWarning(UserWarning):
    """CuPy is installed but cannot be imported or used: ``engine="auto"`` takes the CPU; the message says why."""


class KernelCacheWarning(UserWarning):
    """The machine code of kernels is kept in a temporary folder, or nowhere; the message says which and what to do."""


class KeptFilesWarning(UserWarning):
    """Another process put files into a folder just when it was replaced; the message says where they were kept."""


class RepeatedGrammarsWarning(UserWarning):
    """A column or a file holds so many grammars, or copies of them, that they weigh more than its rows."""


def to_strings(name: str, dtype: object) -> str:
    """Say what makes a String column of one of another type."""
    made = next((made for kind, made in TO_STRINGS.items() if str(dtype).startswith(kind)), None)
    of = f'pl.col("{name}")'
    return f"cast it: {of}.cast(pl.String)" if made is None else f"make strings of it: {of}{made}"


def _with_caret(text: str, position: int) -> str:
    """Show the characters about a place in a text, and below them a caret at it."""
    first, last = max(position - CHARACTERS_SHOWN, 0), position + CHARACTERS_SHOWN
    shown = "".join(one if one.isprintable() else " " for one in text[first:last])
    before, after = "…" if first else "", "…" if last < len(text) else ""
    width = len(before) + sum(map(_width, shown[: position - first]))
    return f"  {before}{shown}{after}\n  {' ' * width}^"


def _width(character: str) -> int:
    """Return how many columns of a terminal a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _suggestion(name: str, names: list[str], there_are: str, there_are_none: str) -> str:
    """Ask whether one of the nearest names was meant, or list what there is."""
    near = difflib.get_close_matches(name, names[:MAX_COMPARED], n=3, cutoff=0.5)
    if near:
        return "did you mean " + " or ".join(f'"{one}"' for one in near) + "?"
    shown = ", ".join(f'"{one}"' for one in names[:8]) + (", …" if len(names) > 8 else "")
    return f"{there_are} {shown}" if names else there_are_none
