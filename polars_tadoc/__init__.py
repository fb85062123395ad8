"""Grammar-compressed text columns for Polars, and text analytics on the compressed form.

Importing the package registers the ``tadoc`` namespace on DataFrame, LazyFrame, Series and Expr.

Examples
--------
>>> import polars as pl
>>> import polars_tadoc as tadoc
>>> df = pl.DataFrame({"text": ["to be or not to be", "to do is to be"]})
>>> df = df.with_columns(pl.col("text").tadoc.compress())
>>> df.tadoc.word_count("text", top=2).rows()
[('to', 4), ('be', 3)]

"""

import atexit
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from polars_tadoc import errors, namespaces
from polars_tadoc.config import Config
from polars_tadoc.model.text_type import DTYPE, STORAGE, Text, as_storage, as_text, is_tadoc
from polars_tadoc.namespaces import accessors, notebook
from polars_tadoc.runtime import __version__ as __version__
from polars_tadoc.runtime import moved_modules
from polars_tadoc.runtime.process import fork as fork  # registers its check of forks first
from polars_tadoc.runtime.process.whole_import import import_whole

if TYPE_CHECKING:
    from polars_tadoc import distributed, testing
    from polars_tadoc.analytics.bm25_weights import bm25_weights
    from polars_tadoc.analytics.calibrate import calibrate
    from polars_tadoc.analytics.cleaning.drop_repeats import drop_repeats
    from polars_tadoc.analytics.cleaning.minhash import minhash
    from polars_tadoc.analytics.cleaning.near_duplicates import duplicate_groups, near_duplicates
    from polars_tadoc.analytics.cleaning.overlap import overlap, overlap_share, overlaps
    from polars_tadoc.analytics.cleaning.passage_set import PassageSet
    from polars_tadoc.analytics.cleaning.repeats import repeats
    from polars_tadoc.analytics.cleaning.shares import novelty, repeated_share
    from polars_tadoc.analytics.collocations import collocations
    from polars_tadoc.analytics.concordance import concordance, positions
    from polars_tadoc.analytics.cooccurrence import cooccurrence
    from polars_tadoc.analytics.explain import explain
    from polars_tadoc.analytics.info import info
    from polars_tadoc.analytics.inverted_index import inverted_index
    from polars_tadoc.analytics.parquet_info import parquet_info
    from polars_tadoc.analytics.ranked_inverted_index import ranked_inverted_index
    from polars_tadoc.analytics.sequence_count import sequence_count
    from polars_tadoc.analytics.sort import sort
    from polars_tadoc.analytics.term_vector import term_vector
    from polars_tadoc.analytics.tfidf import tfidf
    from polars_tadoc.analytics.to_csr import to_csr
    from polars_tadoc.analytics.twig_filter import twig_filter
    from polars_tadoc.analytics.word_count import word_count
    from polars_tadoc.compress.compress import compress
    from polars_tadoc.compress.decompress import decompress
    from polars_tadoc.compress.recompress import recompress
    from polars_tadoc.dictionary.dictionary import Dictionary
    from polars_tadoc.index.construct.build import build_index
    from polars_tadoc.index.index import Index
    from polars_tadoc.index.store.load import load_index
    from polars_tadoc.model import column
    from polars_tadoc.model.corpus import Corpus
    from polars_tadoc.model.grammar import Grammar
    from polars_tadoc.model.stop_words import stop_words
    from polars_tadoc.namespaces import plot
    from polars_tadoc.namespaces.typed import of
    from polars_tadoc.packed.partition import PACKED_DTYPE, is_packed
    from polars_tadoc.packed.scan import scan_packed
    from polars_tadoc.packed.scan_parquet import scan_parquet
    from polars_tadoc.rows.bm25 import bm25
    from polars_tadoc.rows.content_hash import content_hash
    from polars_tadoc.rows.equals import equals
    from polars_tadoc.rows.extract import extract, head, tail
    from polars_tadoc.rows.patterns import contains, count_matches, extract_all, find
    from polars_tadoc.rows.phrases import contains_any, contains_phrase, count_phrase
    from polars_tadoc.rows.token_count import token_count
    from polars_tadoc.scoring.weighting import BM25, TFIDF
    from polars_tadoc.twig.twig_set import TwigSet

_PLACES = {
    "BM25": "scoring.weighting",
    "Corpus": "model.corpus",
    "Dictionary": "dictionary.dictionary",
    "Grammar": "model.grammar",
    "Index": "index.index",
    "PACKED_DTYPE": "packed.partition",
    "PassageSet": "analytics.cleaning.passage_set",
    "TFIDF": "scoring.weighting",
    "TwigSet": "twig.twig_set",
    "bm25": "rows.bm25",
    "bm25_weights": "analytics.bm25_weights",
    "calibrate": "analytics.calibrate",
    "build_index": "index.construct.build",
    "collocations": "analytics.collocations",
    "compress": "compress.compress",
    "contains": "rows.patterns",
    "contains_any": "rows.phrases",
    "contains_phrase": "rows.phrases",
    "content_hash": "rows.content_hash",
    "concordance": "analytics.concordance",
    "cooccurrence": "analytics.cooccurrence",
    "count_matches": "rows.patterns",
    "count_phrase": "rows.phrases",
    "decompress": "compress.decompress",
    "drop_repeats": "analytics.cleaning.drop_repeats",
    "duplicate_groups": "analytics.cleaning.near_duplicates",
    "equals": "rows.equals",
    "explain": "analytics.explain",
    "extract": "rows.extract",
    "extract_all": "rows.patterns",
    "find": "rows.patterns",
    "head": "rows.extract",
    "info": "analytics.info",
    "inverted_index": "analytics.inverted_index",
    "is_packed": "packed.partition",
    "load_index": "index.store.load",
    "minhash": "analytics.cleaning.minhash",
    "near_duplicates": "analytics.cleaning.near_duplicates",
    "novelty": "analytics.cleaning.shares",
    "of": "namespaces.typed",
    "overlap": "analytics.cleaning.overlap",
    "overlap_share": "analytics.cleaning.overlap",
    "overlaps": "analytics.cleaning.overlap",
    "parquet_info": "analytics.parquet_info",
    "positions": "analytics.concordance",
    "ranked_inverted_index": "analytics.ranked_inverted_index",
    "recompress": "compress.recompress",
    "repeated_share": "analytics.cleaning.shares",
    "repeats": "analytics.cleaning.repeats",
    "scan_packed": "packed.scan",
    "scan_parquet": "packed.scan_parquet",
    "sequence_count": "analytics.sequence_count",
    "sort": "analytics.sort",
    "stop_words": "model.stop_words",
    "tail": "rows.extract",
    "term_vector": "analytics.term_vector",
    "tfidf": "analytics.tfidf",
    "to_csr": "analytics.to_csr",
    "token_count": "rows.token_count",
    "twig_filter": "analytics.twig_filter",
    "word_count": "analytics.word_count",
}
"""Modules of public names that are imported on first use: they need Numba and PyArrow."""

__all__ = [
    "BM25",
    "DTYPE",
    "PACKED_DTYPE",
    "STORAGE",
    "TFIDF",
    "Config",
    "Corpus",
    "Dictionary",
    "Grammar",
    "Index",
    "PassageSet",
    "Text",
    "TwigSet",
    "as_storage",
    "as_text",
    "bm25",
    "bm25_weights",
    "build_index",
    "calibrate",
    "collocations",
    "column",
    "compress",
    "concordance",
    "contains",
    "contains_any",
    "contains_phrase",
    "content_hash",
    "cooccurrence",
    "count_matches",
    "count_phrase",
    "decompress",
    "distributed",
    "drop_repeats",
    "duplicate_groups",
    "equals",
    "errors",
    "explain",
    "extract",
    "extract_all",
    "find",
    "head",
    "info",
    "inverted_index",
    "is_packed",
    "is_tadoc",
    "load_index",
    "minhash",
    "namespaces",
    "near_duplicates",
    "novelty",
    "of",
    "overlap",
    "overlap_share",
    "overlaps",
    "parquet_info",
    "plot",
    "positions",
    "ranked_inverted_index",
    "recompress",
    "repeated_share",
    "repeats",
    "scan_packed",
    "scan_parquet",
    "sequence_count",
    "sort",
    "stop_words",
    "tail",
    "term_vector",
    "testing",
    "tfidf",
    "to_csr",
    "token_count",
    "twig_filter",
    "word_count",
]


class _Package(ModuleType):
    """Keeps the function ``compress`` under its name, where Python would set the folder of that name."""

    def __setattr__(self, name: str, value: object) -> None:
        if name != "compress" or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> object:
        """Import the module of a public name, or a module of the package."""
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            if name not in _PLACES:
                return import_whole(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
        globals()[name] = found = getattr(import_whole(f"{__name__}.{_PLACES[name]}"), name)
        return found


def __dir__() -> list[str]:
    """List the public names only, without modules imported on the way."""
    return sorted([*__all__, "__version__"])


def _end() -> None:
    """Wait for threads of plans before the interpreter ends, after exit handlers of programs."""
    if running := sys.modules.get("polars_tadoc.runtime.process.interpreter_exit"):
        running.running.end()


sys.modules[__name__].__class__ = _Package
moved_modules.install()
accessors.register()
notebook.register()
atexit.register(_end)
