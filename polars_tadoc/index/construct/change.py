"""Makes an index with documents added or deleted, or with one segment; it shares data with the original."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.engine.choose import require_engine
from polars_tadoc.errors import ColumnMissingError, LimitExceededError
from polars_tadoc.index.codecs import codec_of
from polars_tadoc.index.construct.collect import MAX_DOCUMENTS, document_rows, documents_of, make_segment, require_rows
from polars_tadoc.index.construct.field_documents import join
from polars_tadoc.index.construct.merge import merge
from polars_tadoc.index.construct.plain_text import stored_form
from polars_tadoc.index.documents import Documents, find, held, named
from polars_tadoc.index.fields import Fields
from polars_tadoc.index.query.analyzer import Analyzer
from polars_tadoc.index.query.filter import bitmap, filter_mask
from polars_tadoc.index.segment import Segment
from polars_tadoc.model.word_map import naming_normalize
from polars_tadoc.runtime.arguments import require_bool
from polars_tadoc.runtime.array_types import Bools
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.traversal.options import Options, require_strategy
from polars_tadoc.traversal.text_corpus import corpora_of, require_text

MAX_CHUNKS = 32
"""Maximum pieces of ids, metadata and text, one per append, before they are joined."""


class Content(NamedTuple):
    """The parts of an index that change."""

    segments: tuple[Segment, ...]
    stored: Documents
    analyzer: Analyzer
    """Analyzer; an index without documents takes that of the first ones appended."""
    fields: Fields | None = None

    @property
    def live(self) -> Bools:
        """Return whether each stored document is live."""
        none = np.zeros(0, np.bool_)
        parts = (np.ones(own.size, np.bool_) if own.live is None else own.live for own in self.segments)
        return np.concatenate([none, *parts])


@ends_on_interrupt
def append(
    content: Content,
    column: pl.Series | pl.DataFrame,
    id: pl.Series | None,
    metadata: pl.DataFrame | None,
    upsert: bool,
    strategy: str,
    engine: str | None,
) -> Content:
    """Add documents; arguments and errors as for :meth:`polars_tadoc.Index.append`."""
    require_engine(engine)
    require_strategy(strategy)
    require_bool("upsert", upsert, "append")
    texts = column
    if content.fields is not None:
        if not isinstance(texts, pl.DataFrame):
            raise TypeError(
                f"append: the index has the fields {', '.join(content.fields.names)}; pass a frame with these columns"
            )
        content.fields.require_columns(texts, "append")
        column = texts[content.fields.names[0]]
    if not isinstance(column, pl.Series):
        raise TypeError(
            f"append takes a Polars Series, compressed or plain text, not {type(column).__name__}; for a frame write "
            'df.tadoc.append_to(index, "text", id="name"), or index.append(df["text"], id=df["name"])'
        )
    column = require_text(column, "append")
    require_rows(column, id, metadata, "append")
    stored = content.stored
    id = _require_alike(stored, id)
    if upsert and id is None:
        raise ValueError(
            "append: upsert=True replaces documents by id, but this index's documents have row numbers instead of ids; "
            "build it with id=, or omit upsert="
        )
    metadata = _require_same_columns(stored.metadata, metadata)
    analyzer, keeps = content.analyzer, stored.stored_text is not None
    codec = codec_of(content.segments[0].postings)
    if content.fields is not None and isinstance(texts, pl.DataFrame):
        options = Options(analyzer.morphism, strategy, engine)
        joined = join(texts, content.fields, analyzer.tokenizer, options, keeps, codec, "append")
        content = content if id is None else _without_held(content, id, joined.rows, upsert)
        more = replace(documents_of(column, joined.rows, id, metadata, False), stored_text=joined.text)
        return _merge_small(
            content._replace(segments=(*content.segments, joined.segment), stored=_joined(stored, more))
        )
    column = stored_form(column, analyzer.tokenizer, engine, keeps)
    corpora = corpora_of(column, "append", analyzer.tokenizer if column.dtype == pl.String else None)
    if corpora:
        tokenizer = Analyzer.of(corpora, None).tokenizer
        if len(stored) == 0:  # an index of nulls takes the tokenizer of the first texts
            analyzer = replace(analyzer, tokenizer=tokenizer)
        elif tokenizer != analyzer.tokenizer:
            raise ValueError(
                f'append: the column was cut by tokenizer "{tokenizer.name}", the index\'s texts by '
                f'"{analyzer.tokenizer.name}": compress it with that tokenizer'
            )
    rows = document_rows(corpora)
    if len(stored) + len(rows) > MAX_DOCUMENTS or stored.rows + len(column) > MAX_DOCUMENTS:
        raise LimitExceededError(f"append: an index holds at most {MAX_DOCUMENTS:,} documents; build another one")
    if id is not None:
        content = _without_held(content, id, rows, upsert)
    more = documents_of(column, rows, id, metadata, keeps)
    with naming_normalize("append", column.name):
        segment = make_segment(corpora, rows, Options(analyzer.morphism, strategy, engine), codec)
    return _merge_small(Content((*content.segments, segment), _joined(stored, more), analyzer))


def _without_held(content: Content, id: pl.Series, rows: npt.NDArray[np.int64], upsert: bool) -> Content:
    """Delete the documents that the new ones replace; without ``upsert``, raise if there are any.

    Parameters
    ----------
    content
        The index.
    id
        Ids of all appended rows. A row with null text adds no document, but replaces documents.
    rows
        Rows that add a document.
    upsert
        Whether documents may be replaced.

    """
    live = content.live
    asked = id if upsert or len(rows) == len(id) else id.gather(pl.Series(rows, dtype=pl.Int64))
    documents = held(content.stored, live, asked)
    if not len(documents):
        return content
    if not upsert:
        known = named(content.stored.ids.gather(pl.Series(documents)))
        raise ValueError(
            f"append: the index already has documents with id {known}; pass upsert=True to replace them, or "
            "do not append these"
        )
    stays = live.copy()
    stays[documents] = False
    return _marked(content, live, stays)


@ends_on_interrupt
def delete(content: Content, ids: Any) -> Content:
    """Mark documents as deleted; arguments and errors as for :meth:`polars_tadoc.Index.delete`."""
    live = content.live
    stays = live.copy()
    if isinstance(ids, pl.Expr):
        metadata = content.stored.metadata
        known = None if metadata is None else metadata.filter(pl.Series(live))
        stays[live] = ~filter_mask(ids, known, int(np.count_nonzero(live)), "delete")
    else:
        _, documents = find(content.stored, live, ids, "delete")
        stays[documents] = False
    return _marked(content, live, stays)


def _marked(content: Content, live: Bools, stays: Bools) -> Content:
    """Mark documents as deleted except those in ``stays``."""
    starts = accumulate((segment.size for segment in content.segments), initial=0)
    segments = []
    for segment, start in zip(content.segments, starts, strict=False):
        own = slice(start, start + segment.size)
        same = np.array_equal(stays[own], live[own])
        segments.append(segment if same else segment.with_deleted(bitmap(~stays[own])))
    return content._replace(segments=tuple(segments))


@ends_on_interrupt
def compact(content: Content) -> Content:
    """Merge everything into one segment, without deleted documents."""
    if len(content.segments) == 1 and content.segments[0].live is None:
        return content
    return _merged(content, 0)


def _merge_small(content: Content) -> Content:
    """Merge the last segments while the last one has at least as many documents as the one before.

    So segment sizes decrease, there are at most about log2(documents) segments, and each document is rewritten at most
    that often (O'Neil et al., The log-structured merge-tree, Acta Informatica 1996, with one file per level).
    """
    sizes = [segment.live_count for segment in content.segments]
    while len(sizes) > 1 and sizes[-1] >= sizes[-2]:
        sizes[-2:] = [sizes[-2] + sizes[-1]]
    return content if len(sizes) == len(content.segments) else _merged(content, len(sizes) - 1)


def _merged(content: Content, first: int) -> Content:
    """Merge the segments from number ``first`` on."""
    merged = content.segments[first:]
    segments, stored = (*content.segments[:first], merge(merged)), content.stored
    if any(segment.live is not None for segment in merged):
        kept = content.live
        kept[: sum(segment.size for segment in content.segments[:first])] = True
        stored = _filtered(stored, pl.Series(kept), 1 if content.fields is None else len(content.fields.names))
    return content._replace(segments=segments, stored=stored)


def _filtered(stored: Documents, kept: pl.Series, texts: int) -> Documents:
    """Select documents, each with the same number of texts."""
    rows = kept if texts == 1 else pl.Series(np.repeat(kept.to_numpy(), texts))
    return Documents(
        stored.ids.filter(kept),
        stored.labelled,
        stored.rows,
        None if stored.metadata is None else stored.metadata.filter(kept),
        None if stored.stored_text is None else stored.stored_text.filter(rows),
    )


def _joined(stored: Documents, more: Documents) -> Documents:
    """Append documents to others with the same columns."""
    ids = more.ids if stored.labelled else more.ids + stored.rows
    metadata, text = stored.metadata, stored.stored_text
    if metadata is not None and more.metadata is not None:
        metadata = pl.concat([metadata, more.metadata])
        metadata = metadata.rechunk() if metadata.n_chunks() > MAX_CHUNKS else metadata
    if text is not None and more.stored_text is not None:
        text = text.followed_by(more.stored_text, _texts_joined)
    return Documents(
        _in_few_chunks(pl.concat([stored.ids, ids])), stored.labelled, stored.rows + more.rows, metadata, text
    )


def _texts_joined(text: pl.Series, more: pl.Series) -> pl.Series:
    return _in_few_chunks(pl.concat([text, more.alias(text.name)]))


def _in_few_chunks(values: pl.Series) -> pl.Series:
    return values.rechunk() if values.n_chunks() > MAX_CHUNKS else values


def _require_alike(stored: Documents, id: pl.Series | None) -> pl.Series | None:
    """Return ids with the type of the index's ids, or raise."""
    if stored.labelled and id is None:
        raise TypeError(f"append: the index has ids ({stored.ids.dtype}); pass the ids of the new documents: id=…")
    if id is None:
        return None
    if not stored.labelled:
        raise TypeError("append: the index's documents have row numbers instead of ids; omit id=")
    if id.dtype != stored.ids.dtype:
        raise TypeError(f"append: id is {id.dtype}, but the index's ids are {stored.ids.dtype}; cast it")
    return id.alias(stored.ids.name)


def _require_same_columns(known: pl.DataFrame | None, metadata: pl.DataFrame | None) -> pl.DataFrame | None:
    """Return metadata with its columns in the index's order, or raise."""
    if known is None:
        if metadata is not None:
            raise ValueError("append: the index has no metadata; omit it, or build the index again with metadata=")
        return None
    names = ", ".join(f'"{name}"' for name in known.columns)
    if metadata is None:
        raise ValueError(f"append: the index has metadata ({names}); pass metadata= for the new documents")
    for name, dtype in known.schema.items():
        if name not in metadata.columns:
            raise ColumnMissingError.for_name(name, metadata.columns, "append: metadata")
        if metadata.schema[name] != dtype:
            raise TypeError(
                f'append: column "{name}" of metadata is {metadata.schema[name]}, but the index\'s is {dtype}; cast it'
            )
    more = [name for name in metadata.columns if name not in known.columns]
    if more:
        raise ValueError(f'append: metadata has a column "{more[0]}", which the index does not have; it has {names}')
    return metadata.select(known.columns)
