"""What an index's files hold: segments and documents in a folder (:mod:`polars_tadoc.index.folder`)."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.column import is_tadoc
from polars_tadoc.compress.tokenize import Tokenizer
from polars_tadoc.errors import InvalidIndexError
from polars_tadoc.index.analyzer import Analyzer
from polars_tadoc.index.codecs import Codec, require_codec
from polars_tadoc.index.documents import Documents
from polars_tadoc.index.folder import HEADER, Reader, Writer, new_folder
from polars_tadoc.index.segment import Segment
from polars_tadoc.morphism import Morphism
from polars_tadoc.version import __version__
from polars_tadoc.vocabulary import Vocabulary


class Parts(NamedTuple):
    """What an index consists of."""

    segments: tuple[Segment, ...]
    analyzer: Analyzer
    stored: Documents
    codec: str


def write(parts: Parts, path: Path, overwrite: bool) -> None:
    """Write a folder; arguments and errors as for :meth:`polars_tadoc.Index.save`."""
    codec = require_codec(parts.codec)
    _require_storable(parts.stored)
    with new_folder(path, overwrite, "save") as folder:
        writer = Writer(folder)
        segments = [_write_segment(writer, place, one, codec) for place, one in enumerate(parts.segments)]
        writer.finish(contents(codec, parts.analyzer, _write_documents(writer, parts.stored), segments))


def contents(
    codec: Codec, analyzer: Analyzer, documents: dict[str, Any], segments: list[dict[str, Any]]
) -> dict[str, Any]:
    """Make what the header says, of what it says of documents and of each segment."""
    return {
        "polars_tadoc": __version__,
        "codec": codec.name,
        "analyzer": _describe(analyzer),
        "documents": documents,
        "segments": segments,
    }


def read(path: Path, verify: bool, mapped: bool, normalize: pl.Expr | None) -> Parts:
    """Read what :func:`write` wrote; arguments and errors as for :func:`polars_tadoc.load_index`."""
    reader = Reader(path, verify, mapped)
    header = reader.header
    with _sound(reader):
        codec = require_codec(header["codec"])
    segments = tuple(_read_segment(reader, place, known, codec) for place, known in enumerate(header["segments"]))
    stored = _read_documents(reader, header["documents"], sum(segment.size for segment in segments))
    return Parts(segments, _analyzer(header["analyzer"], normalize), stored, codec.name)


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


def _read_segment(reader: Reader, place: int, known: dict[str, Any], codec: Codec) -> Segment:
    name = f"segment_{place}"
    size = int(known["documents"])
    terms = reader.strings(f"{name}.terms")
    lengths = reader.array(f"{name}.lengths").astype(np.uint32, copy=False)
    deleted = reader.array(f"{name}.deleted", verify=True) if known["deleted"] else None
    arrays = {part: reader.array(f"{name}.{part}") for part in known["arrays"]}
    with _sound(reader):
        postings = codec.unpack(arrays, size, len(terms))
        if len(lengths) != size:
            raise ValueError(f"{name} has {len(lengths):,} lengths for {size:,} documents")
        if deleted is not None and (deleted.dtype != np.uint32 or len(deleted) != -(-size // 32)):
            raise ValueError(f"{name} has marks of deletion for another number of documents than {size:,}")
    return Segment(Vocabulary(terms), postings, lengths, deleted)


def _write_documents(writer: Writer, stored: Documents) -> dict[str, Any]:
    numbered = not stored.labelled and bool(np.array_equal(stored.ids.to_numpy(), np.arange(len(stored))))
    if not numbered:
        writer.frame("ids", stored.ids.to_frame("id"))
    if stored.metadata is not None:
        writer.frame("metadata", stored.metadata)
    if stored.text is not None:
        writer.parquet("text", stored.text.to_frame("text"))
    return {
        "rows": stored.rows,
        "labelled": stored.labelled,
        "numbered": numbered,
        "metadata": stored.metadata is not None,
        "text": stored.text is not None,
    }


def _read_documents(reader: Reader, known: dict[str, Any], count: int) -> Documents:
    if known["numbered"]:
        ids = pl.int_range(count, dtype=pl.UInt32, eager=True).alias("id")
    else:
        ids = reader.frame("ids").to_series()
    metadata = reader.frame("metadata") if known["metadata"] else None
    text = reader.parquet("text").to_series() if known["text"] else None
    with _sound(reader):
        for name, values in {"ids": ids, "metadata": metadata, "text": text}.items():
            if values is not None and len(values) != count:
                raise ValueError(f"there are {len(values):,} {name} for {count:,} documents")
        if text is not None and not is_tadoc(text.dtype):
            raise ValueError(f"the text is {text.dtype}, not compressed")
    return Documents(ids, bool(known["labelled"]), int(known["rows"]), metadata, text)


def _require_storable(stored: Documents) -> None:
    columns = [stored.ids, *(() if stored.metadata is None else stored.metadata.get_columns())]
    for column in columns:
        if column.dtype == pl.Object:
            raise TypeError(
                f'save: column "{column.name}" holds Python objects (pl.Object), which no file can; cast it, or build '
                "the index without it"
            )


def _narrow(values: npt.NDArray[np.uint32]) -> npt.NDArray[Any]:
    """Return the same numbers in the narrowest type that holds them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))), copy=False)


@contextmanager
def _sound(reader: Reader) -> Iterator[None]:
    """Turn the ``ValueError`` of what does not fit together into one that names the folder."""
    try:
        yield
    except ValueError as error:
        raise reader.damaged(HEADER, f"its files do not fit together: {error}") from None


def _describe(analyzer: Analyzer) -> dict[str, Any]:
    """Describe an analyzer; a Python function in ``normalize`` is left out."""
    described: dict[str, Any] = {"tokenizer": analyzer.tokenizer.name}
    morphism = analyzer.morphism
    if morphism is not None:
        normalize = None
        if morphism.normalize is not None:
            normalize = json.loads(morphism.normalize.meta.serialize(format="json"))
        calls_python = _calls_python(normalize)
        described["morphism"] = {
            "normalize": None if calls_python else normalize,
            "calls_python": calls_python,
            "lowercase": morphism.lowercase,
            "stopwords": sorted(morphism.stopwords),
        }
    return described


def _calls_python(node: Any) -> bool:
    """Tell whether a serialized expression holds a Python function, which is code pickled."""
    if isinstance(node, dict):
        return "AnonymousFunction" in node or any(map(_calls_python, node.values()))
    return isinstance(node, Sequence) and not isinstance(node, str) and any(map(_calls_python, node))


def _analyzer(described: dict[str, Any], normalize: pl.Expr | None) -> Analyzer:
    """Make the analyzer that was described.

    Raises
    ------
    ValueError
        ``normalize`` is needed and not given, or given and the index has none or another one.

    """
    name = described["tokenizer"]
    tokenizer = Tokenizer(name, name.removeprefix("regex:") if name.startswith("regex:") else None)
    own = described.get("morphism")
    if normalize is not None and (own is None or not (own["calls_python"] or own["normalize"])):
        raise ValueError("load_index: the index was built without normalize=; leave it out")
    if own is None:
        return Analyzer(tokenizer)
    if normalize is None and own["calls_python"]:
        raise ValueError(
            "load_index: the index was built with a normalize= that calls a Python function, and those are not saved; "
            "pass the same expression, load_index(path, normalize=…)"
        )
    if own["normalize"] is not None:
        normalize = _saved_normalize(own["normalize"], normalize)
    return Analyzer(tokenizer, Morphism(normalize, bool(own["lowercase"]), frozenset(own["stopwords"])))


def _saved_normalize(serialized: Any, given: pl.Expr | None) -> pl.Expr:
    """Return the expression that was saved; where this Polars cannot read it, the one given."""
    if _calls_python(serialized):  # code from a file is never run
        raise InvalidIndexError("load_index: the header's normalize calls a Python function, which no saved one does")
    try:
        saved = pl.Expr.deserialize(io.StringIO(json.dumps(serialized)), format="json")
    except pl.exceptions.PolarsError as error:
        if given is not None:
            return given
        raise InvalidIndexError(
            f"load_index: this Polars, {pl.__version__}, cannot read the index's normalize ({error}); pass the same "
            "expression, load_index(path, normalize=…)"
        ) from None
    if given is not None and not given.meta.eq(saved):
        raise ValueError(
            f"load_index: normalize={given} is not what the index was built with, {saved}, which is saved with it; "
            "leave it out"
        )
    return saved
