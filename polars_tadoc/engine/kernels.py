"""The parts of an engine: the typed functions of every family of kernels.

The modules :mod:`polars_tadoc.engine.cpu` and :mod:`polars_tadoc.engine.cuda` satisfy :class:`Kernels` (PEP 544), which
mypy checks where :mod:`polars_tadoc.engine.choose` makes engines of them.
"""

from __future__ import annotations

from typing import Protocol

from polars_tadoc.kernels.documents.protocol import DocumentKernels
from polars_tadoc.kernels.postings.protocol import PostingKernels
from polars_tadoc.kernels.primitives.protocol import PrimitiveKernels
from polars_tadoc.kernels.repair.protocol import RepairKernels
from polars_tadoc.kernels.search.protocol import SearchKernels
from polars_tadoc.kernels.sequences.protocol import SequenceKernels
from polars_tadoc.kernels.tokenize.protocol import TokenizeKernels
from polars_tadoc.kernels.traverse.protocol import TraverseKernels
from polars_tadoc.kernels.trie.protocol import TrieKernels
from polars_tadoc.kernels.twigs.protocol import TwigKernels
from polars_tadoc.kernels.weights.protocol import WeightKernels
from polars_tadoc.kernels.windows.protocol import WindowKernels


class Kernels(
    DocumentKernels,
    PostingKernels,
    PrimitiveKernels,
    RepairKernels,
    SearchKernels,
    SequenceKernels,
    TokenizeKernels,
    TraverseKernels,
    TrieKernels,
    TwigKernels,
    WeightKernels,
    WindowKernels,
    Protocol,
):
    """All kernels of one engine."""
