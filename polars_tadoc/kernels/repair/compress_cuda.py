"""Compresses rows on the device end to end: only text is copied to it, and only stored arrays back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from polars_tadoc.kernels.repair import batch_repair_cuda as batch_repair
from polars_tadoc.kernels.repair.compressed import Compressed
from polars_tadoc.kernels.repair.gaps_cuda import predict_gaps
from polars_tadoc.kernels.repair.prune_cuda import prune
from polars_tadoc.kernels.tokenize.tokenize_cuda import tokenize
from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.runtime.device import device_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from polars_tadoc.kernels.repair.prune import LevelledRules
    from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer


RULE_METHODS: tuple[str, ...] = ("batch_repair",)
"""Methods of making rules on the device; Sequitur is sequential."""


def compress_rows(
    text: pl.Series,
    tokenizer: Tokenizer,
    *,
    method: str = RULE_METHODS[0],
    lossless: bool,
    on_round: Callable[[int, int], None],
) -> Compressed:
    """Compress rows to one grammar, bit for bit as the CPU does.

    Parameters as for :func:`polars_tadoc.kernels.repair.compress_cpu.compress_rows`; the method is the only one in
    ``RULE_METHODS``.

    Raises
    ------
    EngineUnavailableError
        The device is out of memory or failed, or the rows exceed the kernels' positions.
    ValueError
        A row is not UTF-8.

    """
    tokens = tokenize(text, tokenizer, lossless=lossless)
    size = len(tokens.vocabulary)
    rules = prune(batch_repair.build(tokens.sequence, size, on_round), size, len(text))
    if tokens.gaps is None:
        nothing = np.zeros(len(text) + 1, np.int64)
        none = pa.nulls(0, pa.large_string())
        codes = np.zeros(size + len(rules.symbols), np.uint32)
        return Compressed(tokens.vocabulary, none, rules.to_host(), codes, nothing, np.zeros(0, np.uint8))
    gaps = predict_gaps(tokens.gaps, size, rules)
    with device_errors("copying compressed rows to the host"):
        own: list[Any] = [array.get() for array in (gaps.codes, gaps.offsets, gaps.data)]  # synchronize!
    return Compressed(tokens.vocabulary, tokens.gaps.vocabulary, rules.to_host(), *own)


def build_rules(
    sequence: UInt32,
    vocabulary_size: int,
    rows: int,
    *,
    method: str = RULE_METHODS[0],
    on_round: Callable[[int, int], None],
) -> LevelledRules:
    """Make and prune rules from word ids in host memory; parameters as for ``compress_cpu.build_rules``."""
    with device_errors(f"copying {len(sequence):,} words"):
        import cupy

        on_device = cupy.asarray(sequence)
    return prune(batch_repair.build(on_device, vocabulary_size, on_round), vocabulary_size, rows).to_host()
