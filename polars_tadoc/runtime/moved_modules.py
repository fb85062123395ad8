"""Modules and classes that earlier versions had under other names: objects that were pickled then name them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, cast

_PACKAGE = "polars_tadoc"
_MOVED = {
    "analytics.analytic": "execute.analytic",
    "analytics.records": "records.records",
    "analytics.terms": "execute.terms",
    "analytics.twig_documents": "execute.twig_documents",
    "analytics.weights": "execute.weights",
    "calibration": "analytics.calibrate",
    "column": "model.column",
    "compress.tokenize": "kernels.tokenize.tokenizer",
    "corpus": "model.corpus",
    "grammar": "model.grammar",
    "index.analyzer": "index.query.analyzer",
    "index.saved_segment": "index.store.saved_segment",
    "index.stored_text": "index.store.stored_text",
    "morphism": "model.word_map",
    "once": "runtime.cached_property",
    "packed.question": "packed.pushdown",
    "payload": "model.payload",
    "plot": "namespaces.plot",
    "rows.twig_filter": "analytics.twig_filter_rows",
    "text_type": "model.text_type",
    "twig.refusals": "twig.unsupported_xpath",
    "version": "runtime",
    "vocabulary": "model.vocabulary",
    "weighting": "scoring.weighting",
}
"""Only the modules of 0.1 whose classes and functions a pickle can name."""
_REQUESTS = {
    "analytics.bm25_weights": "BM25WeightsRequest",
    "analytics.by_group": "GroupRequest",
    "analytics.cooccurrence": "CooccurrenceRequest",
    "analytics.info": "InfoRequest",
    "analytics.inverted_index": "InvertedIndexRequest",
    "analytics.ranked_inverted_index": "RankedInvertedIndexRequest",
    "analytics.sequence_count": "SequenceCountRequest",
    "analytics.sort": "SortRequest",
    "analytics.term_vector": "TermVectorRequest",
    "analytics.tfidf": "TFIDFRequest",
    "analytics.to_csr": "ToCSRRequest",
    "analytics.twig_filter": "TwigFilterRequest",
    "analytics.twig_filter_rows": "TwigFilterRowsRequest",
    "analytics.word_count": "WordCountRequest",
    "execute.weights": "WeightsRequest",
    "rows.bm25": "BM25Request",
    "rows.equals": "EqualsRequest",
    "rows.phrases": "PhraseRequest",
}
"""The classes that 0.1 called ``Request``, by their present modules."""


class _MovedModules(MetaPathFinder, Loader):
    """Finds a module under its former name, and lets modules have their classes' former names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a moved module, or one of :data:`_REQUESTS`, is loaded from, or None."""
        package, _, name = fullname.partition(".")
        if package != _PACKAGE:
            return None
        if name in _MOVED:
            return ModuleSpec(fullname, self)
        spec = PathFinder.find_spec(fullname, path, target) if name in _REQUESTS else None
        if spec is not None:
            _add_former_names(cast(Any, spec.loader))
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module under its present name."""
        module = import_module(f"{_PACKAGE}.{_MOVED[spec.name.partition('.')[2]]}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own specification back; it has run under its present name."""
        former = module.__spec__
        module.__spec__ = former.loader_state if former is not None else None


def _add_former_names(loader: Any) -> None:
    """Let each of :data:`_REQUESTS` that a loader runs have its class as ``Request``, too; one may run many modules."""
    run = loader.exec_module
    if hasattr(run, "names_requests"):  # of a zip file: it's the loader of all
        return

    def run_and_name(module: ModuleType) -> None:
        run(module)
        if request := _REQUESTS.get(module.__name__.partition(".")[2]):
            vars(module)["Request"] = getattr(module, request)

    run_and_name.names_requests = True  # type: ignore[attr-defined]
    loader.exec_module = run_and_name


def install() -> None:
    """Let pickles name the modules and classes as they were called before."""
    if not any(isinstance(finder, _MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, _MovedModules())
