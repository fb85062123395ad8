"""Compresses corpora into one grammar and writes its arrays for ``gpu_word_count.py``, which needs no Polars.

``python -m benchmarks.export_corpus out.npz docs_peps prose_books``; ``word_ids`` is the uncompressed
sequence, for the baselines.
"""

from __future__ import annotations

import argparse

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("corpora", nargs="+")
    args = parser.parse_args()
    text = pl.concat([corpora.load(name)[1] for name in args.corpora]).rechunk()
    (corpus,) = tadoc.column.split(tadoc.compress(text, lossless=False))
    sequence = tokenize(text, Tokenizer.from_argument("words"), lossless=False).sequence
    grammar = corpus.grammar
    np.savez(
        args.target,
        rule_offsets=grammar.rule_offsets,
        symbols=grammar.symbols,
        level_offsets=grammar.level_offsets,
        roots=corpus.roots,
        vocabulary_size=grammar.vocabulary_size,
        expansion_lengths=grammar.expansion_lengths,
        word_ids=sequence[sequence != SEPARATOR],
    )
    print(f"{args.target}: {corpus.word_total():,} words, {corpus.symbol_count:,} symbols")


if __name__ == "__main__":
    main()
