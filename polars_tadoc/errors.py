"""The exceptions of polars_tadoc. Each message says what was wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

TEXT_CALLS = ("bm25_weights", "tfidf", "to_csr")
"""Calls that take a String column as it is."""

PACKED_FIELDS = ("rule_offsets", "document_offsets", "roots")
"""Fields by which a packed column is known."""

COLUMN_FIELDS = ("grammar", "symbols", "gaps")
"""Fields of a compressed column, by which one is known that has lost its type tag."""


class TadocError(Exception):
    """Base class of this package's errors; a wrong argument is an ordinary TypeError or ValueError."""


class NotCompressedError(TadocError, TypeError):
    """An analytic was called on a column that is not grammar-compressed."""

    @classmethod
    def for_column(cls, name: str, dtype: object, call: str) -> NotCompressedError:
        """Name the column, its type and the call that mends it."""
        text = str(dtype)
        has_fields = all(f"'{field}'" in text for field in COLUMN_FIELDS)
        if call in TEXT_CALLS and not text.startswith(("List", "Array", "Struct", "Object")):
            return cls(
                f'{call}: column "{name}" is {dtype}, neither String nor a TADOC column; cast it: '
                f'pl.col("{name}").cast(pl.String)'
            )
        if call == "decompress" and text == "String":
            mend = "it is text already"
        elif text.startswith("Struct") and has_fields:
            mend = f'its type was lost on the way: give it back with pl.col("{name}").cast(tadoc.DTYPE)'
        elif text.startswith("Struct") and all(f"'{field}'" in text for field in PACKED_FIELDS):
            mend = f'its rows are packed: df.tadoc.unpack("{name}") gives them back'
        elif text.startswith("List(Struct") and has_fields:
            mend = f'explode it, or call on the elements of its lists: pl.col("{name}").list.eval(pl.element().tadoc…)'
        elif text == "String":
            mend = f'compress it first: df.with_columns(pl.col("{name}").tadoc.compress())'
        else:
            mend = f'only String columns can be compressed: cast it, then pl.col("{name}").tadoc.compress()'
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
        columns = list(columns)
        near = difflib.get_close_matches(name, columns, n=3, cutoff=0.5)
        if near:
            hint = "did you mean " + " or ".join(f'"{c}"' for c in near) + "?"
        else:
            shown = ", ".join(f'"{c}"' for c in columns[:8]) + (", …" if len(columns) > 8 else "")
            hint = f"the columns are {shown}" if columns else "the frame has no columns"
        return cls(f'{call}: there is no column "{name}"; {hint}')


class InvalidGrammarError(TadocError, ValueError):
    """A grammar, its payload or a row that refers to it is malformed."""


class InvalidIndexError(TadocError, ValueError):
    """The files of a saved index are damaged, or are no index; the message names the file and what to do."""


class InvalidDictionaryError(TadocError, ValueError):
    """The file of a saved dictionary is damaged, or is no dictionary; the message names the file and what to do."""


class LimitExceededError(TadocError, ValueError):
    """What was asked for would expand beyond a limit; the message names the limit and how to raise it."""


class EngineUnavailableError(TadocError, RuntimeError):
    """The engine asked for cannot run here; the message says what is missing and how to install it."""


class DeadlineMissedError(TadocError, TimeoutError):
    """A query to a server was given up: no engine could answer it in time any more."""


class RepeatedGrammarsWarning(UserWarning):
    """A column or a file holds so many grammars, or copies of them, that they weigh more than its rows."""
