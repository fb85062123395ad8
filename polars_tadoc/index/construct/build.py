"""Builds an index from the term vectors of a compressed column, without its text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, TypedDict, Unpack

import polars as pl

from polars_tadoc.engine.choose import EngineOption
from polars_tadoc.engine.progress import BATCHES, bar_of
from polars_tadoc.index.codecs import require_codec
from polars_tadoc.index.construct.collect import document_rows, documents_of, make_segment, require_rows
from polars_tadoc.index.construct.field_documents import join, tokenizer_of_all
from polars_tadoc.index.construct.plain_text import stored_form
from polars_tadoc.index.fields import Fields
from polars_tadoc.index.index import Index
from polars_tadoc.index.query.analyzer import Analyzer
from polars_tadoc.model.analyzers import CJK
from polars_tadoc.model.word_map import Morphism, naming_normalize
from polars_tadoc.runtime.arguments import require_bool
from polars_tadoc.runtime.documented import with_imports
from polars_tadoc.runtime.interrupts import interruptible
from polars_tadoc.runtime.option_signature import Default, ProgressOption, takes_options
from polars_tadoc.traversal.options import Options, StrategyOption, TokenizerOption
from polars_tadoc.traversal.text_corpus import WORDS, corpora_of, require_text


class CodecOption(TypedDict, total=False):
    """Codec of the postings."""

    codec: Annotated[str, Default("pfordelta")]


class MetadataOption(TypedDict, total=False):
    """Data for filters, as a frame."""

    metadata: Annotated[pl.DataFrame | None, Default(None)]


class MetadataColumnsOption(TypedDict, total=False):
    """Data for filters, as columns of the indexed frame."""

    metadata: Annotated[Iterable[str] | None, Default(None)]


class StoreOption(TypedDict, total=False):
    """Whether the index keeps the text."""

    store: Annotated[bool, Default(True)]


class AnalyzerOptions(TypedDict, total=False):
    """Which words an index takes for equal, and which it leaves out."""

    normalize: Annotated[pl.Expr | None, Default(None)]
    lowercase: Annotated[bool, Default(True)]
    stopwords: Annotated[Iterable[str] | None, Default(None)]
    analyzer: Annotated[str | None, Default(None)]


class RunningOptions(StoreOption, StrategyOption, TokenizerOption, ProgressOption, EngineOption, total=False):
    """Whether an index keeps the text, and how the words are counted."""


class IndexOptions(CodecOption, AnalyzerOptions, MetadataOption, RunningOptions, total=False):
    """Options of :func:`build_index`."""


class IndexColumnOptions(CodecOption, AnalyzerOptions, MetadataColumnsOption, RunningOptions, total=False):
    """Options of the same call on a column of a frame."""


@with_imports
@takes_options
def build_index(column: pl.Series, *, id: pl.Series | None = None, **options: Unpack[IndexOptions]) -> Index:
    """Build a search index of a compressed column (Ding et al., WWW 2009), or of plain text.

    Words are counted on the compressed form; nothing is decompressed. Each row that is not null is a document. Of plain
    text the index keeps the compressed form, or with ``store=False`` nothing: then no rules are built.

    Parameters
    ----------
    column
        Compressed column, or plain text (String, Categorical or Enum). Of a frame also several with their weights,
        ``{"title": 2.0, "body": 1.0}``: documents of these fields, scored by BM25F.
    id
        Ids of the documents, one value per row; default: row numbers. Several documents may have the same id; deleting
        the id deletes all of them.
    codec
        Codec of the postings: "pfordelta", the fastest, or "rice", which is smaller if consecutive rows are unlike each
        other.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String; null or "" drops the word. It is
        applied once to the vocabulary, and to the words of each batch of queries.
    lowercase
        Convert words to lower case after ``normalize``, and also the stop words. (Counts and :func:`bm25` keep the case
        by default.)
    stopwords
        Words to drop, compared after ``normalize`` and lower-casing; or the name of a language (:func:`stop_words`).
        Default: none, or those of the analyzer's language, where there is a list; ``[]`` keeps all words.
    analyzer
        "folded" also drops accents and other differences of form: "Été" is "ete", "Straße" is "strasse". The name of a
        language, such as "english", reduces words to their stems by Snowball's algorithm, after stop words are
        dropped; it needs the package PyStemmer (``pip install "polars-tadoc[analyzers]"``). "cjk" finds adjacent Han
        and kana characters of a query as a phrase, and equals full-width and half-width forms. Its name is saved.
    metadata
        One row per row of the column, for filters.
    store
        Keep the compressed column for phrases and snippets; it is shared, not copied. Plain text is compressed for it.
    strategy
        "auto", "top_down" or "bottom_up": traversal strategy; all build the same index.
    tokenizer
        Tokenizer of plain text, as for ``compress``; default: "words". A compressed column is already tokenized.
    engine
        "auto", "cpu" or "gpu": engine that counts words; default: ``tadoc.Config``.

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
        ``id`` is not a series, or holds Python objects; ``metadata`` is not a frame, ``store`` not a bool,
        ``normalize`` not an expression, ``lowercase`` not a bool or ``stopwords`` not a list of strings; or a
        compressed column was cut by a tokenizer other than ``tokenizer``.
    ValueError
        The length of ``id`` or ``metadata`` differs from the column's, the column's texts were cut by different
        tokenizers, ``codec``, ``tokenizer``, ``strategy`` or ``engine`` is unknown, a row of plain text is not UTF-8,
        or ``normalize`` reads columns or does not return one String or null per word. Or the analyzer is unknown, makes
        stems although ``lowercase`` is False, or is "cjk" without ``store``.
    ModuleNotFoundError
        The analyzer makes stems, and PyStemmer is not installed.

    Examples
    --------
    >>> text = pl.Series("text", ["To be, or not to be", "To do is to be", "Do be do be do"])
    >>> index = tadoc.build_index(text.tadoc.compress())
    >>> index.search("do be", k=2)["id"].to_list()
    [2, 1]
    >>> index = tadoc.build_index(pl.Series(["It is connected", "A connection"]), analyzer="english")
    >>> index.search("connecting")["id"].to_list()
    [0, 1]

    """
    how, metadata, store = require_codec(options["codec"]), options["metadata"], options["store"]
    counting = Options.of(options)
    column = require_text(column, "build_index")
    require_bool("store", store, "build_index")
    require_phrases(counting.morphism, store, "build_index")
    require_rows(column, id, metadata)
    with interruptible(), bar_of(len(column), "build_index", by=BATCHES):
        column = stored_form(column, counting.tokenizer or WORDS, options["engine"], store)
        corpora = corpora_of(column, "build_index", counting.tokenizer)
        analyzer = Analyzer.of(corpora, counting.morphism, counting.tokenizer)
        rows = document_rows(corpora)
        with naming_normalize("build_index", column.name):
            segment = make_segment(corpora, rows, counting, how)
        return Index((segment,), analyzer, documents_of(column, rows, id, metadata, store), how.name)


def build_fields(
    frame: pl.DataFrame, weights: Mapping[str, float], id: pl.Series | None, **options: Unpack[IndexOptions]
) -> Index:
    """Build an index of several columns of a frame; errors as for :func:`polars_tadoc.build_index`."""
    call, how, metadata, store = "build_index", require_codec(options["codec"]), options["metadata"], options["store"]
    fields, counting = Fields.of(weights, "build_index"), Options.of(options)
    require_bool("store", store, call)
    require_phrases(counting.morphism, store, call)
    fields.require_columns(frame, call)
    texts = [require_text(frame[name], call) for name in fields.names]
    require_rows(texts[0], id, metadata, call)
    for name in fields.names:
        if metadata is not None and name in metadata.columns:
            raise ValueError(f'{call}: "{name}" is a field and a column of the metadata; rename one of them')
    tokenizer = tokenizer_of_all(texts, counting.tokenizer)
    with interruptible():
        joined = join(frame, fields, tokenizer, counting, store, how, call)
        documents = documents_of(texts[0], joined.rows, id, metadata, False)
        stored = replace(documents, stored_text=joined.text)
        return Index((joined.segment,), Analyzer(tokenizer, counting.morphism), stored, how.name, fields)


def require_phrases(morphism: Morphism | None, store: bool, call: str) -> None:
    """Raise ``ValueError`` if queries become phrases and the index would not have the text."""
    if morphism is not None and morphism.analyzer == CJK and not store:
        raise ValueError(f'{call}: analyzer="cjk" finds phrases, which need the text: omit store=False')
