"""The compressed column: its type, how it is built, how it splits into corpora."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from struct import pack, unpack
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.errors import PACKED_FIELDS, InvalidGrammarError, NotCompressedError, to_strings
from polars_tadoc.model import payload
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.model.grammar_cache import grammars
from polars_tadoc.model.text_type import STORAGE, is_tadoc, storage
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32
from polars_tadoc.runtime.arrow_memory import shared, view
from polars_tadoc.runtime.plain_name import plain

MAX_WITH_SHARED_BUFFERS = 16
"""With more grammars than this, gaps are copied into one buffer first: a slice references all buffers of its column,
which made splitting quadratic."""

MAX_VIEWED = (1 << 31) - 1
"""Maximum bytes of a string that an Arrow view refers to; fewer than 13 would be in the view itself."""

ROW_CALLS = {
    "token_count",
    "content_hash",
    "eq",
    "extract",
    "extract_all",
    "find",
    "head",
    "tail",
    "contains",
    "count_matches",
    "count_phrase",
    "contains_phrase",
    "contains_any",
    "bm25",
    "repeated_share",
    "novelty",
    "minhash",
    "overlap_share",
    "overlaps",
}
"""Calls of series and expressions that frames do not have."""

FRAME_CALLS = {
    "to_csr",
    "build_index",
    "bm25_weights",
    "tfidf",
    "repeats",
    "drop_repeats",
    "overlap",
    "near_duplicates",
    "duplicate_groups",
    "collocations",
    "concordance",
}
"""Calls of series and frames that expressions do not have."""

OTHER_ARGUMENTS = {
    "twig_filter": "queries",
    **dict.fromkeys(("overlap", "overlap_share", "overlaps"), "reference"),
    **dict.fromkeys(("positions", "concordance"), "phrase"),
}
"""Arguments after the column in calls of frames."""

FUNCTIONS = {"explain", "PassageSet"}
"""Calls that no accessor has."""

_NO_ROOTS = np.zeros(0, np.uint32)
_NO_ROOTS.flags.writeable = False


def require_series(series: object, call: str) -> None:
    """Raise ``TypeError`` unless it is a Polars series."""
    if isinstance(series, pl.Series):
        return
    kind = type(series).__name__
    if type(series).__module__.partition(".")[0] == "pandas":
        kind, advice = f"pandas.{kind}", "; convert it: pl.from_pandas(…)"
    elif call in FUNCTIONS:
        advice = '; pass df["text"]'
    elif call in ROW_CALLS or (isinstance(series, pl.Expr) and call not in FRAME_CALLS):
        advice = f'; pass df["text"], or use pl.col("text").tadoc.{call}({OTHER_ARGUMENTS.get(call, "…")})'
    elif call.isidentifier():
        advice = f'; with a frame call df.tadoc.{call_of(call, "text")} or pass df["text"]'
    else:  # an argument, "compress(like=)"
        advice = '; pass df["text"]'
    raise TypeError(f"{call} takes a Polars Series, not {kind}{advice}")


def call_of(call: str, column: str) -> str:
    """Format a frame's call on a column, for messages."""
    behind = f", {OTHER_ARGUMENTS[call]}" if call in OTHER_ARGUMENTS else ""
    return f'{call}("{column}"{behind})'


def require_tadoc(series: pl.Series, call: str) -> pl.Series:
    """Return the storage of a compressed column; raise ``NotCompressedError`` if it is not one."""
    require_series(series, call)
    dtype = series.dtype
    if not is_tadoc(dtype):
        raise NotCompressedError.for_column(series.name, dtype, call)
    return storage(series)


def require_string(name: str, dtype: object, call: str) -> None:
    """Raise ``TypeError`` unless a column of this type can be compressed."""
    if is_tadoc(dtype):
        raise TypeError(f'{call}: column "{name}" is compressed already')
    if all(f"'{field}'" in str(dtype) for field in PACKED_FIELDS):
        raise TypeError(f'{call}: column "{name}" is packed; read it with tadoc.scan_packed or df.tadoc.unpack')
    if dtype != pl.String:
        raise TypeError(f'{call}: column "{name}" is {dtype}, not String; {to_strings(name, dtype)}')


def build(
    grammar: str | pa.Buffer | pl.Series,
    root_offsets: Int64,
    roots: UInt32,
    gap_offsets: Int64,
    gap_data: UInt8 | None,
    valid: pl.Series | None,
) -> pl.Series:
    """Build the rows that share one grammar.

    Parameters
    ----------
    grammar
        The grammar's payload, as text or as its bytes, or a ``grammar`` field of one row.
    root_offsets, roots
        Each row's symbols: int64 offsets, length rows + 1, into uint32 symbols.
    gap_offsets, gap_data
        Each row's gap bytes likewise; None if gaps are not kept. Arrays over Arrow's memory become part of the column.
    valid
        Boolean series, false for null rows; None if no row is null.

    """
    if not isinstance(grammar, pl.Series):
        # made of the text at once it takes four times as long
        grammar = _string(grammar).cast(STORAGE.fields[0].dtype)
    rows = len(root_offsets) - 1
    values = pa.UInt32Array.from_buffers(pa.uint32(), len(roots), [None, shared(roots)])
    symbols = pa.LargeListArray.from_buffers(
        pa.large_list(pa.uint32()), rows, [None, shared(root_offsets)], children=[values]
    )
    if gap_data is None:
        gaps = pl.Series("gaps", [None], pl.Binary).new_from_index(0, rows)
    else:
        buffers = [None, shared(gap_offsets), shared(gap_data)]
        gaps = pl.Series("gaps", pa.LargeBinaryArray.from_buffers(pa.large_binary(), rows, buffers))
    column = pl.DataFrame([grammar.new_from_index(0, rows), pl.Series("symbols", symbols), gaps]).to_struct("text")
    if valid is None:
        return column
    return pl.DataFrame([column, valid.alias("valid")]).select(pl.when("valid").then("text")).to_series()


def _string(text: str | pa.Buffer) -> pl.Series:
    """Return a series of one string; shares a buffer."""
    if isinstance(text, str) or text.size > MAX_VIEWED:
        return pl.Series("grammar", [text if isinstance(text, str) else str(text, "utf-8")], pl.String)
    view = pa.py_buffer(pack("<I4s2I", text.size, text[:4].to_pybytes(), 0, 0))
    return pl.Series("grammar", pa.Array.from_buffers(pa.string_view(), 1, [None, view, text]))


def rows_of_lists(imploded: pl.Series) -> tuple[pl.Series, Int64]:
    """Return the rows of all lists under the series' name, and int64, lists + 1: start of each list's rows."""
    found = plain(imploded)
    lengths = found.list.len().fill_null(0).to_numpy()
    rows = found.explode(empty_as_null=False, keep_nulls=False).alias(imploded.name)
    return rows, np.append(0, np.cumsum(lengths, dtype=np.int64))


def gather_or_null(values: pl.Series, places: Int64) -> pl.Series:
    """Gather the values at the given places; null if a place is negative."""
    index = pl.Series("place", places)
    places_or_null = index.to_frame().select(pl.when(pl.col("place") >= 0).then("place")).to_series()
    return plain(values).gather(places_or_null).alias(values.name)


def scatter_to_rows(values: pl.Series, documents: Sequence[Int64], rows: int) -> pl.Series:
    """Scatter per-document values, corpus after corpus, to the documents' rows; null in other rows."""
    stands = np.concatenate([np.zeros(0, np.int64), *documents])
    if len(stands) == rows and (stands[1:] > stands[:-1]).all():
        return values
    places = np.full(rows, -1, np.int64)
    places[stands] = np.arange(len(stands))
    return gather_or_null(values, places)


def split(column: pl.Series) -> list[Corpus]:
    """Split a compressed column into one corpus per grammar, in order of first use; null rows are in none.

    Copies nothing if no row is null and the rows of each grammar are adjacent.

    Raises
    ------
    InvalidGrammarError
        A payload is damaged, or a row has a symbol that its grammar lacks.

    """
    return list(split_one_by_one(column))


def split_one_by_one(column: pl.Series, cached: bool = True) -> Iterator[Corpus]:
    """Do as :func:`split`, one grammar at a time; same errors.

    Parameters
    ----------
    column
        Compressed column.
    cached
        Whether to keep decoded grammars for the next call; if not, each is freed with its corpus.

    """
    column = require_tadoc(column, "split")
    grammar, symbols, gaps = column.rechunk().struct.unnest()  # 50 µs faster than an expression per field
    rows: Int64 | None = None
    if grammar.null_count() or symbols.null_count():
        valid = grammar.is_not_null() & symbols.is_not_null()
        rows = valid.arg_true().to_numpy().astype(np.int64)
        grammar, symbols, gaps = (field.filter(valid) for field in (grammar, symbols, gaps))
    if len(grammar) == 0:
        return
    if grammar.equals(grammar.new_from_index(0, len(grammar))):  # the usual case, tested without an expression
        groups = [np.arange(len(grammar))]
    else:
        groups = _rows_by_code(grammar.to_physical().to_numpy())
    if len(groups) > MAX_WITH_SHARED_BUFFERS:
        gaps = pl.Series("gaps", gaps.to_arrow(compat_level=pl.CompatLevel.oldest()))
    for own in groups:
        yield _corpus(grammar, symbols, gaps, rows, own, cached)


def _rows_by_code(codes: UInt32) -> list[Int64]:
    """Return the rows of each distinct code, ascending; codes in order of first use."""
    starts = np.concatenate([[0], np.flatnonzero(codes[1:] != codes[:-1]) + 1])
    if len(np.unique(codes[starts])) == len(starts):  # each grammar's rows are adjacent, as written
        return [np.arange(start, stop) for start, stop in pairwise([*starts.tolist(), len(codes)])]
    order = np.argsort(codes, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    return sorted(groups, key=lambda own: int(own[0]))


def _corpus(
    grammar: pl.Series, symbols: pl.Series, gaps: pl.Series, rows: Int64 | None, own: Int64, cached: bool
) -> Corpus:
    key, decoded = _grammar(grammar.slice(int(own[0]), 1), cached)
    start, size = int(own[0]), len(own)
    if own[-1] - own[0] + 1 == size:
        symbols, gaps = symbols.slice(start, size), gaps.slice(start, size)
    else:
        symbols, gaps = symbols.gather(own), gaps.gather(own)
    lists: Any = symbols.to_arrow()
    offsets = view(lists.offsets)
    values = lists.values.slice(offsets[0], offsets[-1] - offsets[0])  # null rows may have values outside
    if values.null_count:
        raise InvalidGrammarError(f"{payload.short_name(key)}: a row's symbols contain nulls: the data is damaged")
    roots = view(values) if len(values) else _NO_ROOTS
    if len(roots):
        most, known = int(roots.max()), decoded.vocabulary_size + decoded.rule_count
        if most >= known:
            raise InvalidGrammarError(
                f"{payload.short_name(key)}: a row has symbol {most}, but there are only {known} words and rules"
            )
    return Corpus(key, decoded, own if rows is None else rows[own], offsets - offsets[0], roots, gaps)


def _grammar(code: pl.Series, cached: bool) -> tuple[str, Grammar]:
    """Decode the grammar of a one-row categorical series, or take it from the cache."""
    text = code.cast(pl.String)
    key = payload.key_of(*_start(text, payload.HEADER_LENGTH))
    grammar = grammars.get(key)
    if grammar is None:
        decoded = payload.decode(text.item())
        return key, grammars.put(key, decoded) if cached else decoded
    if not cached:
        grammars.discard(key)  # a scan of packed rows cached it for later calls
    grammar.require_within_limit()
    return key, grammar


def _start(text: pl.Series, length: int) -> tuple[bytes, int]:
    """Return the first bytes of a series' only string, which may be megabytes, and its length in bytes."""
    array: Any = text.to_arrow(compat_level=pl.CompatLevel.newest())
    view = array.buffers()[1].slice(16 * array.offset, 16).to_pybytes()
    size, _, buffer, offset = unpack("<4I", view)
    if size <= 12:  # stored in the view itself
        return view[4 : 4 + min(size, length)], size
    return array.buffers()[2 + buffer].slice(offset, min(size, length)).to_pybytes(), size
