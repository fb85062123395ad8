"""Modules that earlier versions had under other names: objects that were pickled then name them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_PACKAGE = "polars_tadoc"
_MOVED = {
    "analytics.analytic": "execute.analytic",
    "analytics.records": "records.records",
    "analytics.terms": "execute.terms",
    "analytics.twig_documents": "execute.twig_documents",
    "analytics.weights": "execute.weights",
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
    "rows.twig_filter": "analytics.twig_filter_rows",
    "text_type": "model.text_type",
    "twig.refusals": "twig.unsupported_xpath",
    "vocabulary": "model.vocabulary",
    "weighting": "scoring.weighting",
}
"""Only the modules of 0.1 whose classes and functions a pickle can name."""


class _MovedModules(MetaPathFinder, Loader):
    """Finds a module under its former name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a moved module is loaded from, or None."""
        package, _, name = fullname.partition(".")
        return ModuleSpec(fullname, self) if package == _PACKAGE and name in _MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module under its present name."""
        module = import_module(f"{_PACKAGE}.{_MOVED[spec.name.partition('.')[2]]}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own specification back; it has run under its present name."""
        former = module.__spec__
        module.__spec__ = former.loader_state if former is not None else None


def install() -> None:
    """Let pickles name the modules as they were called before."""
    if not any(isinstance(finder, _MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, _MovedModules())
