"""Content of an index's folder: segments and documents (:mod:`polars_tadoc.index.store.folder` has the file format)."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.compress.compress import require_known
from polars_tadoc.errors import InvalidIndexError, LimitExceededError, warn_caller
from polars_tadoc.index.codecs import Codec, require_codec
from polars_tadoc.index.construct.collect import MAX_DOCUMENTS
from polars_tadoc.index.documents import Documents
from polars_tadoc.index.fields import Fields
from polars_tadoc.index.query.analyzer import Analyzer
from polars_tadoc.index.segment import Segment
from polars_tadoc.index.store import saved_expressions as expressions
from polars_tadoc.index.store.bounded import Bounded
from polars_tadoc.index.store.folder import HEADER, VERSION, LaterTable, Reader, Verify, Writer, field, new_folder
from polars_tadoc.index.store.saved_documents import SavedDocuments
from polars_tadoc.index.store.saved_segment import SavedSegment
from polars_tadoc.index.store.stored_text import StoredText
from polars_tadoc.kernels.postings.coded import Postings
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.analyzers import is_language, require_analyzer, require_stemmer, stemmer_version
from polars_tadoc.model.text_type import is_tadoc, storage
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.runtime import __version__
from polars_tadoc.runtime.array_types import UInt32


class Parts(NamedTuple):
    """The parts of an index."""

    segments: tuple[Segment, ...]
    analyzer: Analyzer
    stored: Documents
    codec: str
    fields: Fields | None = None


def write(parts: Parts, path: Path, overwrite: bool) -> None:
    """Write a folder; arguments and errors as for :meth:`polars_tadoc.Index.save`."""
    codec = require_codec(parts.codec)
    _require_storable(parts.stored)
    require_saved(parts.analyzer.morphism, "save")
    with new_folder(path, overwrite, "save") as folder:
        writer = Writer(folder)
        segments = [_write_segment(writer, place, one, codec) for place, one in enumerate(parts.segments)]
        writer.finish(contents(codec, parts.analyzer, _write_documents(writer, parts.stored), segments, parts.fields))


def contents(
    codec: Codec,
    analyzer: Analyzer,
    documents: dict[str, Any],
    segments: list[dict[str, Any]],
    fields: Fields | None = None,
) -> dict[str, Any]:
    """Make the header's content from those of the documents and of each segment."""
    morphism = analyzer.morphism
    is_first = fields is None and (morphism is None or morphism.analyzer is None)
    return {
        "format_version": 1 if is_first else VERSION,
        "polars_tadoc": __version__,
        "codec": codec.name,
        "analyzer": _describe(analyzer),
        "documents": documents,
        "segments": segments,
        **({} if fields is None else {"fields": fields.described()}),
    }


def read(path: Path, verify: Verify, mapped: bool, normalize: pl.Expr | None) -> Parts:
    """Read a folder of :func:`write`; arguments and errors as for :func:`polars_tadoc.load_index`."""
    reader = Reader(path, verify, mapped)
    header = reader.header
    with reader.sound():
        codec = require_codec(field(header, "codec", str))
        described, listed = field(header, "documents", dict), field(header, "segments", list)
        if not listed:
            raise ValueError("it lists no segments")
        known = [_SegmentHeader.of(one) for one in listed]
        tokenizer, morphism = _analyzer_header(field(header, "analyzer", dict))
        fields = Fields.read(header["fields"]) if "fields" in header else None
    segments = tuple(_read_segment(reader, place, one, codec) for place, one in enumerate(known))
    texts = 1 if fields is None else len(fields.names)
    stored = _read_documents(reader, described, sum(segment.size for segment in segments), texts, verify == "all")
    if verify == "all":
        for segment in segments:
            segment.check()
    return Parts(segments, _analyzer(tokenizer, morphism, normalize), stored, codec.name, fields)


class _SegmentHeader(NamedTuple):
    """The header's data of a segment."""

    documents: int
    deleted: bool
    arrays: tuple[str, ...]

    @classmethod
    def of(cls, known: Any) -> _SegmentHeader:
        """Parse it; raises ``ValueError`` if it is invalid."""
        if not isinstance(known, dict):
            raise ValueError(f"a segment is {reprlib.repr(known)}")
        size, arrays = field(known, "documents", int), field(known, "arrays", list)
        if not 0 <= size <= MAX_DOCUMENTS:
            raise ValueError(f"a segment has {size:,} documents")
        if not all(isinstance(name, str) and re.fullmatch(r"[a-z_.]+", name) for name in arrays):
            raise ValueError(f"a segment's arrays are {reprlib.repr(arrays)}")
        return cls(size, field(known, "deleted", bool), tuple(arrays))


def _write_segment(writer: Writer, place: int, segment: Segment, codec: Codec) -> dict[str, Any]:
    name = f"segment_{place}"
    arrays = codec.pack(segment.postings)
    writer.strings(f"{name}.terms", segment.terms.strings)
    writer.array(f"{name}.lengths", _narrow(segment.lengths))
    if segment.deleted is not None:
        writer.array(f"{name}.deleted", segment.deleted)
    for part, values in arrays.items():
        writer.array(f"{name}.{part}", values)
    return {"documents": segment.size, "deleted": segment.deleted is not None, "arrays": list(arrays)}


def _read_segment(reader: Reader, place: int, known: _SegmentHeader, codec: Codec) -> SavedSegment:
    """Open a segment's files."""
    name, size = f"segment_{place}", known.documents
    strings = reader.strings(f"{name}.terms")
    lengths = reader.array(f"{name}.lengths")
    deleted = reader.array(f"{name}.deleted", verify=True)() if known.deleted else None
    arrays = {part: reader.array(f"{name}.{part}", mapped=part.endswith(".low")) for part in known.arrays}
    with _sound(reader):
        if deleted is not None and (deleted.dtype != np.uint32 or len(deleted) != -(-size // 32)):
            raise ValueError(f"{name} has a deletion bitmap that does not match the {size:,} documents")

    def decode_postings(count: int) -> Postings:
        parts = {part: read() for part, read in arrays.items()}
        with _sound(reader):
            return codec.unpack(parts, size, count)

    def read_lengths() -> UInt32:
        values = lengths()
        with _sound(reader):
            if len(values) != size:
                raise ValueError(f"{name} has {len(values):,} lengths for {size:,} documents")
        return values.astype(np.uint32, copy=False)

    return SavedSegment(size, lambda: Vocabulary(strings()), decode_postings, read_lengths, deleted)


def _write_documents(writer: Writer, stored: Documents) -> dict[str, Any]:
    numbered = not stored.labelled and bool(np.array_equal(stored.ids.to_numpy(), np.arange(len(stored))))
    if not numbered:
        writer.frame("ids", stored.ids.to_frame("id"))
    if stored.metadata is not None:
        writer.frame("metadata", stored.metadata)
    text = stored.text
    if text is not None:
        writer.parquet("text", text.to_frame("text"))
    return {
        "rows": stored.rows,
        "labelled": stored.labelled,
        "numbered": numbered,
        "metadata": stored.metadata is not None,
        "text": text is not None,
    }


def _read_documents(reader: Reader, known: dict[str, Any], count: int, texts: int, verifies: bool) -> Documents:
    """Open the files of the documents; ``verifies`` reads and checks them now, of the text footer and checksum."""
    with reader.sound():
        labelled, numbered, has_metadata, has_text = (
            field(known, name, bool) for name in ("labelled", "numbered", "metadata", "text")
        )
        rows = field(known, "rows", int)
        if not count <= rows <= MAX_DOCUMENTS:
            raise ValueError(f"there are {rows:,} rows for {count:,} documents")
    read_ids = None if numbered else reader.frame("ids")
    frame = reader.frame("metadata") if has_metadata else None
    opened = reader.parquet("text") if has_text else None

    def require_count(name: str, values: Any, wanted: int) -> None:
        with _sound(reader):
            if len(values) != wanted:
                raise ValueError(f"there are {len(values):,} {name} for {wanted:,} documents")

    def ids() -> pl.Series:
        if read_ids is None:
            return pl.int_range(count, dtype=pl.UInt32, eager=True).alias("id")
        own = _only_column(reader, read_ids(), "ids.arrow")
        require_count("ids", own, count)
        with _sound(reader):
            if not labelled and (own.dtype != pl.UInt32 or own.null_count()):
                raise ValueError(f"the row numbers are {own.dtype}")
        return own

    def metadata() -> pl.DataFrame:
        assert frame is not None
        own = frame()
        require_count("metadata", own, count)
        return own

    def text() -> LaterTable:
        assert opened is not None
        table = opened()
        if len(table.schema) != 1:
            raise reader.damaged("text.parquet", f"it has {len(table.schema)} columns")
        dtype = table.schema.dtypes()[0]
        with _sound(reader):
            if not is_tadoc(dtype):
                raise ValueError(f"the text is {dtype}, not compressed")
        require_count("text", range(table.rows), texts * count)
        return table

    stored = StoredText(texts * count, lambda: storage(text().read().to_series())) if has_text else None
    made = SavedDocuments(count, ids, labelled, rows, metadata if has_metadata else None, stored)
    if verifies:
        made.ids, made.metadata  # noqa: B018 - reads and checks them
        if has_text:
            text()
    return made


def _only_column(reader: Reader, frame: pl.DataFrame, name: str) -> pl.Series:
    if frame.width != 1:
        raise reader.damaged(name, f"it has {frame.width} columns")
    return frame.to_series()


def _require_storable(stored: Documents) -> None:
    columns = [stored.ids, *(() if stored.metadata is None else stored.metadata.get_columns())]
    for column in columns:
        if column.dtype == pl.Object:
            raise TypeError(
                f'save: column "{column.name}" has type pl.Object, which files cannot hold;  cast it, or build '
                "the index without it"
            )


def _narrow(values: npt.NDArray[np.uint32]) -> npt.NDArray[Any]:
    """Return the numbers in the narrowest type that holds them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))), copy=False)


@contextmanager
def _sound(reader: Reader) -> Iterator[None]:
    """Convert a ``ValueError`` about inconsistent files to an error that names the folder."""
    try:
        yield
    except ValueError as error:
        raise reader.damaged(HEADER, f"its files do not fit together: {error}") from None


def require_saved(morphism: Morphism | None, call: str) -> None:
    """Raise for a ``normalize`` that can neither be saved nor, as a Python function, be left out.

    Raises
    ------
    ValueError
        It has an operation that is not supported.

    """
    try:
        normalize_form(morphism)
    except ValueError as error:
        raise ValueError(
            f"{call}: normalize= has {error}, which is not among the operations that an index can save; write it with "
            "others (listed in docs/search.md), or call it in map_elements and pass the same expression to "
            "load_index(path, normalize=…)"
        ) from None


def normalize_form(morphism: Morphism | None) -> tuple[expressions.Form | None, bool]:
    """Return the saved form of ``normalize``, and whether it is left out because it calls Python or a library."""
    if morphism is None or morphism.normalize is None:
        return None, False
    try:
        return expressions.encode(morphism.normalize), False
    except expressions.CallsCodeError:
        return None, True


def _describe(analyzer: Analyzer) -> dict[str, Any]:
    """Describe an analyzer for the header; a ``normalize`` that calls code is left out."""
    described: dict[str, Any] = {"tokenizer": analyzer.tokenizer.name}
    morphism = analyzer.morphism
    if morphism is not None:
        normalize, calls_code = normalize_form(morphism)
        described["morphism"] = {
            "normalize": normalize,
            "calls_python": calls_code,
            "lowercase": morphism.lowercase,
            "stopwords": sorted(morphism.stopwords),
        }
        if morphism.analyzer is not None:
            version = stemmer_version() if is_language(morphism.analyzer) else None
            described["morphism"]["analyzer"] = {"name": morphism.analyzer, "stemmer": version}
    return described


class _MorphismHeader(NamedTuple):
    """The header's data of a morphism."""

    normalize: Any
    """Serialised expression; None if there is none."""
    calls_code: bool
    """Whether an expression was left out because it calls code."""
    lowercase: bool
    stopwords: frozenset[str]
    analyzer: str | None
    """Name of the analyzer."""
    stemmer: str | None
    """Version of PyStemmer."""


def _analyzer_header(described: dict[str, Any]) -> tuple[Tokenizer, _MorphismHeader | None]:
    """Parse the header's data of the analyzer.

    Raises
    ------
    ValueError
        It is invalid, or names a tokenizer that this release does not have.

    """
    name = field(described, "tokenizer", str)
    tokenizer = Tokenizer.named(name)
    require_known(tokenizer, "its text")
    if "morphism" not in described:
        return tokenizer, None
    own = field(described, "morphism", dict)
    stopwords = field(own, "stopwords", list)
    if not all(isinstance(word, str) for word in stopwords):
        raise ValueError(f"its stopwords are {reprlib.repr(stopwords)}")
    calls_code, lowercase = field(own, "calls_python", bool), field(own, "lowercase", bool)
    named = field(own, "analyzer", dict) if "analyzer" in own else {"name": None, "stemmer": None}
    asked, stemmer = named.get("name"), named.get("stemmer")
    if not isinstance(asked, str | None) or not isinstance(stemmer, str | None):
        raise ValueError(f"its analyzer is {reprlib.repr(named)}")
    analyzer = require_analyzer(asked, "its analyzer")
    known = own.get("normalize"), calls_code, lowercase, frozenset(stopwords)
    return tokenizer, _MorphismHeader(*known, analyzer, stemmer)


def _analyzer(tokenizer: Tokenizer, own: _MorphismHeader | None, normalize: pl.Expr | None) -> Analyzer:
    """Make the described analyzer.

    Raises
    ------
    ValueError
        ``normalize`` is required and missing, or given although the index has none or another one.
    InvalidIndexError
        The saved one cannot be read and ``normalize`` was not given.

    """
    if normalize is not None and (own is None or not (own.calls_code or own.normalize)):
        raise ValueError("load_index: the index was built without normalize=; omit it")
    if own is None:
        return Analyzer(tokenizer)
    if normalize is None and own.calls_code:
        raise ValueError(
            "load_index: the index was built with a normalize= that calls a Python function, which is not saved; "
            "pass the same expression, load_index(path, normalize=…)"
        )
    _require_stems(own)
    if own.normalize is not None:
        saved = _saved_normalize(own.normalize, normalize)
        if saved is not None:
            evaluate = Bounded(expressions.encode(saved), saved)
            return Analyzer(tokenizer, Morphism(saved, own.lowercase, own.stopwords, evaluate, own.analyzer))
    return Analyzer(tokenizer, Morphism(normalize, own.lowercase, own.stopwords, analyzer=own.analyzer))


def _require_stems(own: _MorphismHeader) -> None:
    """Raise if stems cannot be made here; warn if they may be others than the index's."""
    if own.analyzer is None or not is_language(own.analyzer):
        return
    require_stemmer(own.analyzer)
    if own.stemmer != stemmer_version():
        warn_caller(
            f'load_index: the index was built with analyzer="{own.analyzer}" of PyStemmer {own.stemmer}; this is '
            f"{stemmer_version()}, and words whose stems have changed are not found: build the index again, or install "
            "that version",
            UserWarning,
        )


def _saved_normalize(serialized: Any, given: pl.Expr | None) -> pl.Expr | None:
    """Return the saved expression; None if it cannot be read and one is given."""
    try:
        saved = expressions.read(serialized)
    except LimitExceededError as error:
        if given is not None:
            return None
        raise LimitExceededError(f"load_index: the index's normalize: {error}") from None
    except ValueError as error:
        if given is not None:
            return None
        raise InvalidIndexError(
            f"load_index: cannot read the index's normalize: {error}; if the index is trusted, pass the original "
            "expression: load_index(path, normalize=…)"
        ) from None
    if given is not None and not _are_equal(given, saved):
        raise ValueError(
            f"load_index: normalize={given} differs from the index's own, {saved}, which is saved with it; omit it"
        )
    return saved


def _are_equal(given: pl.Expr, saved: pl.Expr) -> bool:
    """Compare the saved forms; expressions may also differ in flags of sortedness of their lists."""
    try:
        return expressions.encode(given) == expressions.encode(saved)
    except ValueError:
        return False
