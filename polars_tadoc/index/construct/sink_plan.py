"""Indexes the rows of a lazy plan, under a memory limit, and saves the index."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from polars_tadoc.engine.host_memory import share_out, telling_share
from polars_tadoc.execute.columns import label_column, metadata_columns, text_column
from polars_tadoc.execute.plan import checkpointed_question, open_checkpoint
from polars_tadoc.execute.windows import windows_of, windows_of_texts
from polars_tadoc.index.codecs import require_codec
from polars_tadoc.index.construct.build import IndexColumnOptions, require_phrases
from polars_tadoc.index.construct.sink import sink_index
from polars_tadoc.index.construct.sink_documents import DocumentsWriter
from polars_tadoc.index.fields import Fields
from polars_tadoc.index.store.place import index_folder
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.runtime.arguments import require_bool, require_path
from polars_tadoc.storage.addresses import require_utf8
from polars_tadoc.storage.find import one_file
from polars_tadoc.storage.object_store import Access
from polars_tadoc.traversal.options import Options, require_memory_limit


def sink_plan(
    lf: pl.LazyFrame,
    path: str | os.PathLike[str],
    column: str | Mapping[str, float] | None,
    id: str | None,
    memory_limit: int | str,
    checkpoint: str | os.PathLike[str] | None,
    overwrite: bool,
    access: Access,
    options: IndexColumnOptions,
) -> None:
    """Run a plan and save the index of its rows; parameters and errors as for ``lf.tadoc.sink_index``."""
    call = "sink_index"
    schema = lf.collect_schema()
    fields = Fields.of(column, call) if isinstance(column, Mapping) else None
    name = "" if isinstance(column, Mapping) else text_column(schema, column, call)
    if fields is not None:
        fields.require_columns(schema.to_frame(), call)
        for own in fields.names:
            text_column(schema, own, call)
        if checkpoint is not None:
            raise ValueError(f"{call}: checkpoint= is for an index of one column; omit it for several")
    how, metadata, store = require_codec(options["codec"]), options["metadata"], options["store"]
    counting = Options.of(options)
    require_bool("store", store, call)
    require_phrases(counting.morphism, store, call)
    require_bool("overwrite", overwrite, call)
    place = one_file(path, call, access)
    require_utf8(str(place), call)
    limit = require_memory_limit(memory_limit)
    if limit is None:
        raise TypeError(f'{call}: memory_limit=None: give bytes, or a number with a unit such as "2GB"')
    labels = None if id is None else label_column(schema, id, call)
    listed = None if metadata is None else metadata_columns(list(schema), metadata, call)
    for own in set(listed or ()) & set(() if fields is None else fields.names):
        raise ValueError(f'{call}: "{own}" is a field and a column of the metadata; rename one of them')
    documents = DocumentsWriter(labels, listed or None, store, schema)
    own_engine, room = share_out(options["engine"], limit, call)
    counting = replace(counting, engine=own_engine)
    kept = None
    if fields is None:
        windows = windows_of(lf, name, documents.columns, room, gaps=store)
    else:
        windows = windows_of_texts(lf, fields.names, documents.columns, room)
    if checkpoint is not None:
        path_of_checkpoint = require_path("checkpoint", checkpoint, call)
        question = checkpointed_question(lf, name, documents.columns, call)
        asked = {"call": call, **(counting.morphism or Morphism()).described, **question.asked}
        kept = open_checkpoint(path_of_checkpoint, asked, call)
    with telling_share(limit, room), index_folder(place, overwrite, call, access) as (folder, replaces):
        sink_index(windows, folder, replaces, documents, counting, how, room, kept, fields)
