"""The exceptions of polars_tadoc. Each message says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
import sys
import unicodedata
import warnings
from collections.abc import Iterable

TEXT_CALLS = (
    "append",
    "append_to",
    "bm25",
    "bm25_weights",
    "build_index",
    "collocations",
    "concordance",
    "contains",
    "contains_any",
    "contains_phrase",
    "content_hash",
    "cooccurrence",
    "count_matches",
    "count_phrase",
    "duplicate_groups",
    "eq",
    "equals",
    "extract",
    "extract_all",
    "find",
    "head",
    "inverted_index",
    "minhash",
    "near_duplicates",
    "positions",
    "ranked_inverted_index",
    "sequence_count",
    "sink_index",
    "sort",
    "tail",
    "term_vector",
    "tfidf",
    "to_csr",
    "token_count",
    "twig_filter",
    "word_count",
)
"""Calls that accept a String column."""

TO_STRINGS = {
    "List(String)": '.list.join(" ")',
    "Array(String": '.arr.join(" ")',
    "List": ".explode()",
    "Array": ".explode()",
    "Struct": '.struct.field("…")',
    "Object": ".map_elements(str, return_dtype=pl.String)",
}
"""Conversions to String for types that cannot be cast."""

PACKED_FIELDS = ("rule_offsets", "document_offsets", "roots")
"""Fields that identify a packed column."""

COLUMN_FIELDS = ("grammar", "symbols", "gaps")
"""Fields that identify a compressed column that has lost its type."""

ABOUT_AS_CLOSE = 0.15
"""Difference of two names' shares of common letters, up to which both are suggested."""

MAX_COMPARED = 10_000
"""Maximum number of names compared for a suggestion: more take seconds."""

CHARACTERS_SHOWN = 40
"""Characters of a query shown on each side of a fault."""


class TadocError(Exception):
    """Base class of this package's errors; wrong arguments raise TypeError or ValueError."""


class NotCompressedError(TadocError, TypeError):
    """An analytic was called on a column that is not grammar-compressed."""

    @classmethod
    def for_column(cls, name: str, dtype: object, call: str) -> NotCompressedError:
        """Name the column, its type and the call that fixes it."""
        text = str(dtype)
        has_fields = all(f"'{field}'" in text for field in COLUMN_FIELDS)
        is_lost = any(all(f"'{field}'" in text for field in fields) for fields in (COLUMN_FIELDS, PACKED_FIELDS))
        is_list = text == "List(Text())" or (text.startswith("List(") and has_fields)
        if call in TEXT_CALLS and not (is_lost or is_list):
            mend = to_strings(name, dtype)
            return cls(f'{call}: column "{name}" is {dtype}, neither String nor a TADOC column; {mend}')
        if call == "decompress" and text == "String":
            mend = "it is text already"
        elif text.startswith(("Struct", "Text(", "Extension(")) and has_fields:
            mend = "its type was lost on the way: restore it with tadoc.as_text(df)"
        elif text.startswith("Struct") and all(f"'{field}'" in text for field in PACKED_FIELDS):
            mend = f'read the file by tadoc.scan_packed(path), or unpack the rows: df.tadoc.unpack("{name}")'
            return cls(f'{call}: column "{name}" is packed, not a TADOC column; {mend}')
        elif is_list:
            mend = f'explode it, or call on the elements of its lists: pl.col("{name}").list.eval(pl.element().tadoc…)'
        elif text == "String":
            mend = f'compress it first: df.with_columns(pl.col("{name}").tadoc.compress())'
        else:
            mend = f"only String columns can be compressed: {to_strings(name, dtype)}, then .tadoc.compress()"
        return cls(f'{call}: column "{name}" is {dtype}, not a TADOC column; {mend}')


class NotPackedError(TadocError, TypeError):
    """A column or a file is not packed, but the call needs packed rows."""

    @classmethod
    def for_column(cls, name: str, dtype: object, call: str) -> NotPackedError:
        """Name the column, its type and the call that makes a packed one."""
        return cls(
            f'{call}: column "{name}" is {dtype}, not a packed TADOC column (tadoc.PACKED_DTYPE); '
            'pack a compressed column with df.tadoc.pack("text")'
        )


class ColumnMissingError(TadocError, KeyError):
    """The frame has no column of that name."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        """Print the message as written."""
        return str(self.args[0])

    @classmethod
    def for_name(cls, name: str, columns: Iterable[str], call: str) -> ColumnMissingError:
        """Suggest the nearest names, or list all names."""
        hint = _suggestion(name, list(columns), "the columns are", "the frame has no columns")
        return cls(f'{call}: there is no column "{name}"; {hint}')


class InvalidGrammarError(TadocError, ValueError):
    """A grammar, its payload or a row that refers to it is malformed."""


class InvalidIndexError(TadocError, ValueError):
    """The files of a saved index are damaged, or not an index; the message names the file and what to do."""


class InvalidDictionaryError(TadocError, ValueError):
    """The file of a saved dictionary is damaged, or not a dictionary; the message names the file and what to do."""


class InvalidPassageSetError(TadocError, ValueError):
    """The file of a saved passage set is damaged, or not a passage set; the message names the file and what to do."""


class InvalidRecordsError(TadocError, ValueError):
    """Partial results of an analytic, spilled or sent, are damaged, or belong to another call."""


class InvalidTwigError(TadocError, ValueError):
    """An XPath query is not a supported twig; the message names the unsupported part and its position."""

    @classmethod
    def for_query(cls, name: str | None, xpath: str, position: int, why: str) -> InvalidTwigError:
        """Name the position (from 0) and the reason, and mark the character."""
        query = "the query" if name is None else f'query "{name}"'
        return cls(f"{query}, character {position + 1:,}: {why}\n{_with_caret(xpath, position)}")


class QuerySyntaxError(TadocError, ValueError):
    """A query can't be read with ``syntax="strict"``; the message marks the position."""

    @classmethod
    def for_query(cls, query: str, position: int, why: str) -> QuerySyntaxError:
        """Name the position (from 0) and the reason, and mark the character."""
        return cls(f"character {position + 1:,}: {why}\n{_with_caret(query, position)}")


class InvalidTwigSetError(TadocError, ValueError):
    """The file of saved twigs is damaged, or not a file of twigs; the message names the file and what is wrong."""


class TwigMissingError(TadocError, KeyError):
    """The set has no twig of that name."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        """Print the message as written."""
        return str(self.args[0])

    @classmethod
    def for_name(cls, name: object, names: Iterable[str], call: str) -> TwigMissingError:
        """Suggest the nearest names, or list all names."""
        hint = _suggestion(str(name), list(names), "the set has", "the set is empty")
        return cls(f"{call}: the set has no twig {name!r}; {hint}")


class InvalidXmlError(TadocError, ValueError):
    """A row is not well-formed XML, or exceeds a limit; the message names the row and what is wrong."""

    @classmethod
    def for_row(cls, name: str, row: int, why: str) -> InvalidXmlError:
        """Name the column and the row, and the option that skips such rows."""
        return cls(
            f'column "{name}", row {row}: {why}; on_error="null" skips such rows (null, where results are by row)'
        )


class LimitExceededError(TadocError, ValueError):
    """The input would expand beyond a limit; the message names the limit and how to raise it."""


class DiskFullError(TadocError, OSError):
    """A folder cannot be written to: the disk or a quota is full; the message names it, ``errno`` says which."""


class NotAFileError(TadocError, OSError):
    """A FIFO, a device, a socket or a link was given instead of a regular file; it was not read."""


class EngineUnavailableError(TadocError, RuntimeError):
    """The given engine cannot run here; the message says what is missing and how to install it."""


class ForkedProcessError(TadocError, RuntimeError):
    """The process was forked after Polars had started its threads: calls would never return."""


class DeviceMemoryError(EngineUnavailableError):
    """A GPU has too little memory, or positions, for the smallest possible part; the message says what to do."""


class DeadlineMissedError(TadocError, TimeoutError):
    """A server dropped a query: no engine could answer it before its deadline."""


class SkippedPartitionWarning(UserWarning):
    """A packed scan skipped a partition or file (``on_error="skip"``); the message names it and the reason."""


class WorkerLostError(TadocError, RuntimeError):
    """Worker processes ended repeatedly over the same task, or could not be started; the message says which."""


class DeviceMemoryWarning(UserWarning):
    """A GPU had too little memory for all rows at once: they ran in smaller batches, or with "auto" on the CPU."""


class BrokenCuPyWarning(UserWarning):
    """CuPy is installed but cannot be used: ``engine="auto"`` runs on the CPU; the message gives the reason."""


class KernelCacheWarning(UserWarning):
    """The machine code of kernels is cached in a temporary folder, or not at all; the message says what to do."""


class CalibrationWarning(UserWarning):
    """The file of ``tadoc.calibrate()`` cannot be read, or is broken: shipped costs hold; the message says why."""


class KeptFilesWarning(UserWarning):
    """Another process wrote files into a folder while it was replaced; the message says where they are kept."""


class RepeatedGrammarsWarning(UserWarning):
    """A column or a file has so many grammars, or copies of them, that they take more space than its rows."""


def to_strings(name: str, dtype: object) -> str:
    """Return the advice that makes a String column of another type."""
    made = next((made for kind, made in TO_STRINGS.items() if str(dtype).startswith(kind)), None)
    of = f'pl.col("{name}")'
    return f"cast it: {of}.cast(pl.String)" if made is None else f"convert it to strings: {of}{made}"


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line outside this package that made the call."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _with_caret(text: str, position: int) -> str:
    """Return the part of a text around a position, with a caret below it."""
    first, last = max(position - CHARACTERS_SHOWN, 0), position + CHARACTERS_SHOWN
    shown = "".join(one if one.isprintable() else " " for one in text[first:last])
    before, after = "…" if first else "", "…" if last < len(text) else ""
    width = len(before) + sum(map(_width, shown[: position - first]))
    return f"  {before}{shown}{after}\n  {' ' * width}^"


def _width(character: str) -> int:
    """Return the width of a character in a terminal, in columns."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Return up to three names that are about as close to a name as the closest, which is first."""
    close = difflib.get_close_matches(name, list(names)[:MAX_COMPARED], n=3, cutoff=0.5)
    shares = [difflib.SequenceMatcher(None, one, name).ratio() for one in close]
    return [one for one, share in zip(close, shares, strict=True) if share > shares[0] - ABOUT_AS_CLOSE]


def _suggestion(name: str, names: list[str], there_are: str, there_are_none: str) -> str:
    """Suggest one of the nearest names, or list all names."""
    near = nearest(name, names)
    if near:
        return "did you mean " + " or ".join(f'"{one}"' for one in near) + "?"
    shown = ", ".join(f'"{one}"' for one in names[:8]) + (", …" if len(names) > 8 else "")
    return f"{there_are} {shown}" if names else there_are_none
