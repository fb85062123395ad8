"""Which rules repay themselves: ``python -m benchmarks.pruning``.

For each corpus, one grammar is built and pruned with several margins (a rule of body length l used u times stays
where ``l * u > l + u + margin``). Size is the symbols of bodies and rows plus one offset a rule, against
margin 0; levels are the parallel steps of a traversal; counting is the time of a top-down word count
over all rows, margins in turn, against margin 0.
"""

from __future__ import annotations

import statistics

import numpy as np

from benchmarks import corpora
from benchmarks.side_by_side import times
from polars_tadoc.kernels.repair import batch_repair
from polars_tadoc.kernels.repair.prune import LevelledRules, prune
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize
from polars_tadoc.kernels.traverse import counts_cpu as counts

MARGINS = (0, 1, 2, 4, 8)


def count_words(vocabulary_size: int, rules: LevelledRules) -> None:
    """Count all words top-down, on one core."""
    weights = np.zeros(vocabulary_size + len(rules.rule_offsets) - 1, np.uint64)
    counts.histogram(rules.roots, weights)
    counts.push_down(vocabulary_size, rules.rule_offsets, rules.symbols, weights)


def main() -> None:
    args = corpora.arguments(__doc__ or "").parse_args()
    print(f"machine: {corpora.machine()}")
    print(f"{'corpus':24}{'words':>10}" + "".join(f"{f'margin {m}':>24}" for m in MARGINS))
    print(f"{'':34}" + f"{'size  levels  counting':>24}" * len(MARGINS))
    for given in corpora.names(args.corpora):
        name, text = corpora.load(given)
        tokens = tokenize(text, Tokenizer("words"))
        words, size = len(tokens.sequence) - len(text), len(tokens.vocabulary)
        binary = batch_repair.build(tokens.sequence, size)
        pruned = {str(margin): prune(binary, size, len(text), margin) for margin in MARGINS}
        taken = times(
            {m: lambda size=size, rules=rules: count_words(size, rules) for m, rules in pruned.items()}, args.repeat
        )
        symbols = {m: len(r.symbols) + len(r.roots) + len(r.rule_offsets) for m, r in pruned.items()}
        print(f"{name:24}{words:10,}", end="")
        for m, rules in pruned.items():
            slower = statistics.median(a / b for a, b in zip(taken[m], taken["0"], strict=True))
            print(f"{symbols[m] / symbols['0']:12.4f}{len(rules.level_offsets) - 1:5}{slower:7.2f}", end="")
        print(flush=True)


if __name__ == "__main__":
    main()
