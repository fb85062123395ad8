"""One packed row: a grammar and the documents that use it, with everything needed to read them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.errors import InvalidGrammarError, LimitExceededError, NotPackedError
from polars_tadoc.model import payload
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.grammar import VERSION, Grammar
from polars_tadoc.model.grammar_cache import grammars
from polars_tadoc.model.text_type import is_tadoc
from polars_tadoc.packed import coded
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.parallel import map_parallel
from polars_tadoc.runtime.plain_name import plain

PACKED_DTYPE = pl.Struct(
    {
        "vocabulary": pl.List(pl.String),
        "rule_offsets": pl.List(pl.UInt32),
        "symbols": pl.List(pl.UInt32),
        "level_offsets": pl.List(pl.UInt32),
        "gap_vocabulary": pl.List(pl.String),
        "predicted_gaps": pl.List(pl.UInt32),
        "tokenizer": pl.String,
        "version": pl.UInt32,
        "document_offsets": pl.List(pl.Int64),
        "roots": pl.List(pl.UInt32),
        "gaps": pl.List(pl.Binary),
        "valid": pl.List(pl.Boolean),
    }
)
"""A packed column: each row holds one grammar (the fields of :class:`polars_tadoc.Grammar`) and its documents.

Document ``d`` has the symbols ``roots[document_offsets[d]:document_offsets[d + 1]]`` and the separators ``gaps[d]``,
which is null if separators were not kept; document ``d`` is null if ``valid[d]`` is false."""

NAMES = tuple(field.name for field in PACKED_DTYPE.fields)
WITHOUT_NULLS = tuple(
    field.name for field in PACKED_DTYPE.fields if isinstance(field.dtype, pl.List) and field.name != "gaps"
)


def short_dtype(dtype: pl.DataType | None) -> str:
    """Format a column's type for messages: types of compressed and packed columns are long."""
    if dtype is None:
        return "not there"
    return "packed text" if is_packed(dtype) else "compressed text" if is_tadoc(dtype) else str(dtype)


@documented_by(
    is_tadoc, returns="Whether it is ``tadoc.PACKED_DTYPE``.", dtype="A Polars data type; anything else is not packed."
)
def is_packed(dtype: object) -> bool:
    """Tell whether a data type is that of a packed column.

    Examples
    --------
    >>> tadoc.is_packed(tadoc.PACKED_DTYPE), tadoc.is_packed(tadoc.DTYPE)
    (True, False)

    """
    return isinstance(dtype, pl.Struct) and dtype == PACKED_DTYPE


@array_dataclass
class Partition:
    """The contents of one packed row, checked."""

    key: str
    """The grammar's content digest, in the form of a payload key."""
    grammar: Grammar
    """The shared rules."""
    offsets: pl.Series
    """Int64 series, documents + 1: start of each document's symbols in ``roots``; a null document has none."""
    roots: pl.Series
    """UInt32 series: the top-level symbols of all documents, in document order."""
    gaps: pl.Series
    """Binary series by document: the separators between words, as varint pairs."""
    valid: pl.Series
    """Boolean series by document: false for null documents."""

    @property
    def document_count(self) -> int:
        """Number of documents, null ones included."""
        return len(self.valid)

    def corpus(self, first_row: int = 0, documents: pl.Series | None = None) -> Corpus:
        """Return the non-null documents as a corpus.

        Copies only offsets and gaps if some documents are null, and the taken documents if ``documents`` is given.

        Parameters
        ----------
        first_row
            Row of the first document; other documents have consecutive rows, null documents included.
        documents
            Numbers of the documents to take, Int64, ascending; default: all.

        """
        if documents is not None and len(documents) < self.document_count:
            return self._some(documents).corpus(first_row)
        offsets, roots = self.offsets.to_numpy(), self.roots.to_numpy()
        if self.valid.all():
            rows = np.arange(first_row, first_row + self.document_count)
            return Corpus(self.key, self.grammar, rows, offsets, roots, self.gaps)
        kept = self.valid.arg_true().to_numpy().astype(np.int64)
        offsets = np.append(offsets[kept], offsets[-1])  # null documents are empty
        return Corpus(self.key, self.grammar, kept + first_row, offsets, roots, self.gaps.filter(self.valid))

    def _some(self, documents: pl.Series) -> Partition:
        lists = pa.LargeListArray.from_arrays(self.offsets.to_arrow(), self.roots.to_arrow())
        taken = lists.take(documents.to_arrow())
        offsets, roots = pl.Series("offsets", taken.offsets), pl.Series("roots", taken.values)
        gaps, valid = self.gaps.gather(documents), self.valid.gather(documents)
        return Partition(self.key, self.grammar, offsets, roots, gaps, valid)


def partition_at(packed: pl.Series, row: int, cached: bool = True) -> Partition | None:
    """Read one packed row; None if it is null, which means no documents.

    Parameters
    ----------
    packed
        Packed column.
    row
        Row number.
    cached
        Whether to keep the grammar for the next call.

    Raises
    ------
    InvalidGrammarError
        The packed row is damaged.
    LimitExceededError
        A rule expands to more words than ``Config(expansion_limit=)``.

    """
    return partition_of(fields_at(packed, row), packed.name, row, cached)


def fields_at(packed: pl.Series, row: int) -> dict[str, Any] | None:
    """Return the fields of one packed row; None if it is null."""
    cell = plain(packed.slice(row, 1))
    return None if cell.null_count() else {name: cell.struct.field(name)[0] for name in NAMES}


def fields_of(column: pa.ChunkedArray) -> list[dict[str, Any] | None]:
    """Return the fields of each packed row of a table, None for null ones; calls no threads of Polars."""
    return [
        {name: _value(chunk.field(name).slice(row, 1)) for name in NAMES}
        if chunk.slice(row, 1).null_count == 0
        else None
        for chunk in column.chunks
        for row in range(len(chunk))
    ]


def _value(cell: pa.Array) -> Any:
    """Return the value of an array of length one: a series if it is a list."""
    if not pa.types.is_nested(cell.type):
        return cell[0].as_py()
    return None if cell.null_count else cast(pl.Series, pl.from_arrow(cell.flatten()))


def partition_of(
    fields: dict[str, Any] | None,
    name: str,
    row: int,
    cached: bool = True,
    *,
    gaps: bool = True,
    on_grammar: Callable[[str, Grammar], object] = lambda _key, _grammar: None,
) -> Partition | None:
    """Do as :func:`partition_at`, given the row's fields; calls no threads of Polars.

    Parameters
    ----------
    fields, name, row, cached
        The row, and what errors call it.
    gaps
        Whether to read the separators between words; otherwise they are null.
    on_grammar
        Called with key and grammar as soon as these are known.

    """
    if fields is None:
        return None
    try:
        return _read(fields, cached, gaps, on_grammar)
    except (InvalidGrammarError, LimitExceededError) as error:
        raise type(error)(f'packed column "{name}", row {row}: {error}') from error


def partitions(packed: pl.Series) -> Iterator[Partition]:
    """Read the non-null packed rows one by one; errors as for :func:`partition_at`.

    Raises
    ------
    NotPackedError
        The series is not a packed column.

    """
    if not is_packed(packed.dtype):
        raise NotPackedError.for_column(packed.name, packed.dtype, "partitions")
    for row in range(len(packed)):
        partition = partition_at(packed, row)
        if partition is not None:
            yield partition


def _read(
    fields: dict[str, Any], cached: bool, reads_gaps: bool, on_grammar: Callable[[str, Grammar], object]
) -> Partition:
    for name, value in fields.items():
        if value is None or (name in WITHOUT_NULLS and value.null_count()):
            raise InvalidGrammarError(f"{name} is null or contains nulls")
    is_coded = fields["version"] == coded.VERSION
    if is_coded:
        fields = coded.decode(fields)
    elif fields["version"] != VERSION:
        raise InvalidGrammarError(
            f"grammar: format version {fields['version']}, this release reads {VERSION} to {coded.VERSION}"
        )

    def read_gaps() -> pl.Series:
        found = fields["gaps"]
        if not reads_gaps and (callable(found) or len(found) == len(fields["valid"])):
            return pl.Series("gaps", [None], pl.Binary).new_from_index(0, len(fields["valid"]))
        return cast(pl.Series, found() if callable(found) else found)

    def read_grammar() -> tuple[str, Grammar]:
        key, grammar = _grammar(fields, cached, is_coded)
        on_grammar(key, grammar)
        return key, grammar

    makers: list[Callable[[], Any]] = [read_gaps, read_grammar]
    are_beside = reads_gaps and callable(fields["gaps"])
    gaps, (key, grammar) = map_parallel(_called, makers) if are_beside else map(_called, makers)
    offsets, valid = fields["document_offsets"].to_numpy(), fields["valid"]
    count, roots = len(valid), fields["roots"].to_numpy()
    if len(gaps) != count or len(offsets) != count + 1:
        raise InvalidGrammarError(
            f"document_offsets, gaps and valid differ in length: {len(offsets):,}, {len(gaps):,} and {count:,} entries"
        )
    inside = offsets.min() >= 0 and offsets.max() <= len(roots)  # so that no difference wraps around
    lengths = np.diff(offsets)
    if not inside or offsets[0] != 0 or offsets[-1] != len(roots) or lengths.min(initial=0) < 0:
        raise InvalidGrammarError("document_offsets do not ascend from 0 to the number of roots")
    if lengths[~valid.to_numpy()].any():
        raise InvalidGrammarError("a null document has symbols")
    most, known = int(roots.max(initial=0)), grammar.vocabulary_size + grammar.rule_count
    if len(roots) and most >= known:
        raise InvalidGrammarError(f"a document has symbol {most}, but there are only {known} words and rules")
    return Partition(key, grammar, fields["document_offsets"], fields["roots"], gaps, valid)


def _called(make: Callable[[], Any]) -> Any:
    return make()


def _grammar(fields: dict[str, Any], cached: bool, is_decoded: bool) -> tuple[str, Grammar]:
    """Read and check the grammar of a packed row, or take it from the cache."""
    grammar = Grammar(
        vocabulary=_strings(fields["vocabulary"]),
        rule_offsets=fields["rule_offsets"].to_numpy(),
        symbols=fields["symbols"].to_numpy(),
        level_offsets=fields["level_offsets"].to_numpy(),
        gap_vocabulary=_strings(fields["gap_vocabulary"]),
        predicted_gaps=fields["predicted_gaps"].to_numpy(),
        tokenizer=fields["tokenizer"],
    )
    if is_decoded:
        grammar.words.are_distinct = True  # or they would not have been decoded
    key = content_key(grammar)
    known = grammars.get(key)
    if known is not None:
        known.require_within_limit()
        return key, known
    if not cached:
        grammar.check()
        return key, grammar
    if not is_decoded:
        arrays = ("rule_offsets", "symbols", "level_offsets", "predicted_gaps")
        # copied: these are slices of the buffers of all packed rows, which the cache would keep alive
        grammar = replace(grammar, **{name: getattr(grammar, name).copy() for name in arrays})
    grammar.check()
    return key, grammars.put(key, grammar)


def _strings(values: pl.Series | pa.LargeStringArray) -> pa.LargeStringArray:
    if not isinstance(values, pl.Series):
        return values
    array: Any = values.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    return array


_PIECE = 1 << 20
"""Bytes that one thread hashes at once."""


def _digest(piece: npt.NDArray[np.uint8]) -> bytes:
    return hashlib.blake2b(piece.data, digest_size=16).digest()


def content_key(grammar: Grammar) -> str:
    """Return the cache key of a grammar that has no payload: digest and size of its arrays."""
    words, gaps = grammar.words, grammar.gaps
    arrays: list[npt.NDArray[Any]] = [words.offsets, words.data, gaps.offsets, gaps.data]
    arrays += [grammar.rule_offsets, grammar.symbols, grammar.level_offsets, grammar.predicted_gaps]
    bytes_of = [array.view(np.uint8) for array in arrays]
    pieces = [own[at : at + _PIECE] for own in bytes_of for at in range(0, len(own), _PIECE)]
    digest = hashlib.blake2b(grammar.tokenizer.encode(), digest_size=16)
    digest.update(b"".join(len(array).to_bytes(8, "little") for array in arrays))
    digest.update(b"".join(map_parallel(_digest, pieces)))
    size = sum(array.nbytes for array in arrays)
    return f"{payload.MAGIC}P{size:016x}{digest.hexdigest()}:{size}"
