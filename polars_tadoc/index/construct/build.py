"""An index is built of the term vectors of a compressed column, never of its text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, TypedDict, Unpack

import polars as pl

from polars_tadoc.compress.compress import compress
from polars_tadoc.engine.choose import EngineOption
from polars_tadoc.index.codecs import require_codec
from polars_tadoc.index.construct.collect import document_rows, documents_of, make_segment, require_rows
from polars_tadoc.index.index import Index
from polars_tadoc.index.query.analyzer import Analyzer
from polars_tadoc.model.text_type import storage
from polars_tadoc.model.word_map import MorphismOptions, naming_normalize
from polars_tadoc.runtime.arguments import require_bool
from polars_tadoc.runtime.interrupts import interruptible
from polars_tadoc.runtime.option_signature import Default, takes_options
from polars_tadoc.traversal.options import Options, StrategyOption, TokenizerOption
from polars_tadoc.traversal.text_corpus import corpora_of, require_text


class CodecOption(TypedDict, total=False):
    """How postings are kept."""

    codec: Annotated[str, Default("pfordelta")]


class MetadataOption(TypedDict, total=False):
    """What filters read, as a frame."""

    metadata: Annotated[pl.DataFrame | None, Default(None)]


class MetadataColumnsOption(TypedDict, total=False):
    """What filters read, as columns of the frame that is indexed."""

    metadata: Annotated[Iterable[str] | None, Default(None)]


class StoreOption(TypedDict, total=False):
    """Whether the text stays with the index."""

    store: Annotated[bool, Default(True)]


class IndexOptions(
    CodecOption,
    MorphismOptions,
    MetadataOption,
    StoreOption,
    StrategyOption,
    TokenizerOption,
    EngineOption,
    total=False,
):
    """Options of :func:`build_index`."""


class IndexColumnOptions(
    CodecOption,
    MorphismOptions,
    MetadataColumnsOption,
    StoreOption,
    StrategyOption,
    TokenizerOption,
    EngineOption,
    total=False,
):
    """Options of the same call on a column of a frame."""


@takes_options
def build_index(column: pl.Series, *, id: pl.Series | None = None, **options: Unpack[IndexOptions]) -> Index:
    """Build a search index of a compressed column (Ding et al., WWW 2009), or of plain text.

    Words are counted on the compressed form; nothing is decompressed. Each row that is not null is a document. Of plain
    text the index keeps the compressed form, or with ``store=False`` nothing: then no rules are built.

    Parameters
    ----------
    column
        Compressed column, or plain text (String, Categorical or Enum).
    id
        What documents are called, one value for each row; by default the numbers of their rows. Equal ids are allowed:
        to delete one deletes all of its documents.
    codec
        How postings are kept: "pfordelta", the fastest, or "rice", smaller where neighbouring rows are unlike each
        other.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String; null or an empty one leaves it out;
        it runs over the vocabulary, once, and over the words of each batch of queries.
    lowercase
        Lower-case words (after ``normalize``), and the stop words with them.
    stopwords
        Words to leave out, compared after ``normalize`` and lower-casing.
    metadata
        A row for each row of the column, for filters.
    store
        Keep the compressed column with the index, which phrases and snippets need; it is shared, not copied. Plain
        text is compressed for it.
    strategy
        "auto", "top_down" or "bottom_up": which way the rules are traversed; the index is the same.
    tokenizer
        Cuts plain text into words, as for ``compress``; "words" by default. A compressed column is tokenized already.
    engine
        "auto", "cpu" or "gpu": where words are counted; by default what ``tadoc.Config`` says.

    Returns
    -------
    Index
        The index.

    Raises
    ------
    NotCompressedError
        The series is neither text nor a compressed column.
    InvalidGrammarError, LimitExceededError
        A payload or a row is damaged or too large.
    EngineUnavailableError
        ``engine="gpu"`` cannot run here.
    TypeError
        ``id`` is no series, or holds Python objects; ``metadata`` is no frame, ``store`` no bool, ``normalize`` no
        expression, ``lowercase`` no bool or ``stopwords`` no list of strings; or a compressed column was cut by another
        tokenizer.
    ValueError
        ``id`` or ``metadata`` has another length than the column, the column's texts were cut by different tokenizers,
        there is no such ``codec``, ``tokenizer``,
        ``strategy`` or ``engine``, a row of plain text is not UTF-8, or ``normalize`` reads columns or gives anything
        but one String or null for each word.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> text = pl.Series("text", ["To be, or not to be", "To do is to be", "Do be do be do"])
    >>> index = tadoc.build_index(text.tadoc.compress(), lowercase=True)
    >>> index.search("do be", k=2)["id"].to_list()
    [2, 1]

    """
    how, metadata, store = require_codec(options["codec"]), options["metadata"], options["store"]
    counting = Options.of(options)
    column = require_text(column, "build_index")
    require_bool("store", store, "build_index")
    require_rows(column, id, metadata)
    with interruptible():
        if store and column.dtype == pl.String:
            column = storage(compress(column, tokenizer=options["tokenizer"], engine=options["engine"]))
        corpora = corpora_of(column, "build_index", counting.tokenizer)
        analyzer = Analyzer.of(corpora, counting.morphism)
        rows = document_rows(corpora)
        with naming_normalize("build_index", column.name):
            segment = make_segment(corpora, rows, counting, how)
        return Index((segment,), analyzer, documents_of(column, rows, id, metadata, store), how.name)
