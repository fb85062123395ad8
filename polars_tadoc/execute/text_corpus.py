"""Plain text as a corpus: words and rows, and no rules, for an answer that is wanted once."""

from __future__ import annotations

import secrets

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.engine.choose import CPU
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.traversal.text_source import prepare_text


def corpus_of_text(text: pl.Series, tokenizer: Tokenizer) -> Corpus:
    """Cut a String column into words, and give each row as these, in a fraction of the time that compressing takes.

    Parameters
    ----------
    text
        The column; null rows are no documents. What stands between words is left out.
    tokenizer
        How to cut.

    Raises
    ------
    ValueError
        A row is not UTF-8.

    Examples
    --------
    >>> import polars as pl
    >>> from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
    >>> from polars_tadoc.execute.text_corpus import corpus_of_text
    >>> corpus = corpus_of_text(pl.Series(["to be", None, "to do"]), Tokenizer("words"))
    >>> corpus.rows.tolist(), corpus.root_offsets.tolist(), corpus.grammar.vocabulary.to_pylist()
    ([0, 2], [0, 2, 4], ['be', 'do', 'to'])

    """
    source = prepare_text(text, tokenizer, CPU)
    grammar = Grammar(
        vocabulary=source.words.strings,
        rule_offsets=np.zeros(1, np.uint32),
        symbols=np.zeros(0, np.uint32),
        level_offsets=np.zeros(1, np.uint32),
        gap_vocabulary=pa.array([], pa.large_string()),
        predicted_gaps=np.zeros(len(source.words), np.uint32),
        tokenizer=tokenizer.name,
    )
    gaps = pl.Series("gaps", [None], pl.Binary).new_from_index(0, len(source.rows))
    key = f"text {secrets.token_hex(16)}"  # no other has it
    return Corpus(key, grammar, source.rows, source.root_offsets, source.roots, gaps)
