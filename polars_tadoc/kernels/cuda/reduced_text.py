"""The words that own windows are made of: of each child the first and the last ones, as plain text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polars_tadoc.kernels.cuda.bodies import Text
from polars_tadoc.kernels.cuda.device import launch_each
from polars_tadoc.kernels.cuda.primitives import exclusive_scan
from polars_tadoc.kernels.cuda.rule_occurrences import weigh_rules
from polars_tadoc.kernels.cuda.windows import Kind, too_many
from polars_tadoc.kernels.rules import Rules

THREADS = 256


@dataclass(frozen=True, eq=False)
class Words:
    """The words that windows are made of, see ``write_text`` in ``sequences.cu``."""

    words: Any
    """cupy uint32."""
    of_rules: int
    """Words of rules: the first ones."""
    owners: Any
    """cupy uint32: the rule of each of them."""
    weights: Any
    """cupy uint64 by rule."""
    most: int
    """The largest weight."""
    reach: int

    def arguments(self) -> tuple[Any, ...]:
        """Return what the kernels take."""
        sizes = (np.uint64(len(self.words)), np.uint64(self.of_rules))
        return (self.words, *sizes, self.owners, self.weights, np.uint32(self.reach))


def write_words(kind: Kind, rules: Rules, roots: Any, texts: tuple[Text, Text], documents: bool = False) -> Words:
    """Write out what windows are made of; rules that do not occur have none. Owners may tell documents too."""
    import cupy

    if rules.terminals > 1 << 30:
        raise too_many(rules.terminals, "words of the vocabulary")
    weights = weigh_rules(rules, roots)
    blocks = [-(-len(text.symbols) // THREADS) for text in texts]
    sizes = cupy.zeros(1 + sum(blocks), np.uint64)  # the largest weight, then words by block
    starts = (1, 1 + blocks[0])
    for text, start, own in zip(texts, starts, (weights, None), strict=True):
        arguments = text.arguments()
        launch_each(
            *("reduced_text", "measure_text", len(text.symbols), *arguments[:6], arguments[7], own),
            *(text.offsets, np.uint32(len(text.offsets) - 1), sizes[start:], sizes),
        )
    before = exclusive_scan(sizes[1:])
    told = cupy.empty(3, np.uint64)
    launch_each("reduced_text", "tell", 1, before, np.uint64(blocks[0]), np.uint64(sum(blocks)), sizes, told)
    of_rules, total, most = told.get().tolist()  # synchronize!
    words, owners = cupy.empty(total, np.uint32), cupy.empty(total if documents else of_rules, np.uint32)
    for text, start, own in zip(texts, starts, (weights, None), strict=True):
        launch_each(
            *("reduced_text", "write_text", len(text.symbols), *text.arguments(), own, text.offsets),
            *(
                np.uint32(len(text.offsets) - 1),
                before[start - 1 :],
                words,
                owners if documents or own is not None else None,
            ),
        )
    return Words(words, of_rules, owners, weights, max(most, 1), kind.reach)
