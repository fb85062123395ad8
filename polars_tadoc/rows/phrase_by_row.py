"""Counts in each row a phrase of its own, or tells whether it has it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from polars_tadoc.compress.compress import named_tokenizer, require_known
from polars_tadoc.kernels.host.rows.phrases import LEFT_OUT, count_in_rows
from polars_tadoc.kernels.primitives.codes import DELETED
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.kernels.traverse.results_cpu import load_rules
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.word_map import Morphism, encode, naming_normalize
from polars_tadoc.rows.pattern_kept import kept_corpora, kept_rows
from polars_tadoc.rows.phrase_words import PhraseWords
from polars_tadoc.runtime.array_types import Int64, UInt64
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.parallel import even_chunks, map_parallel
from polars_tadoc.traversal.text_corpus import WORDS, text_corpora

PHRASES = 64
"""Minimum phrases per thread."""


@ends_on_interrupt
def count_phrase_by_row(
    call: str, column: pl.Series, phrases: pl.Series, morphism: Morphism | None, tokenizer: Tokenizer | None
) -> pl.Series:
    """Count each row's phrase in it; only the rows themselves are read, word by word.

    Parameters
    ----------
    call
        The call's name, for messages.
    column
        Text, or compressed text.
    phrases
        A phrase for each row, or one for all. Null gives null; a phrase without words occurs nowhere.
    morphism, tokenizer
        Normalisation of words, and the tokenizer of plain text.

    """
    if phrases.dtype not in (pl.String, pl.Null):
        raise TypeError(f"{call}: the phrases are {phrases.dtype}, not String; cast them")
    phrases = phrases.cast(pl.String)
    if len(phrases) == 1:
        phrases = phrases.new_from_index(0, len(column))
    if len(phrases) != len(column):
        raise ValueError(f"{call}: there are {len(phrases):,} phrases for {len(column):,} rows; give one for each")
    counts, is_null = np.zeros(len(column), np.uint64), np.ones(len(column), np.bool_)
    corpora: Iterable[Corpus]
    if column.dtype == pl.String:
        corpora = text_corpora(column, tokenizer or WORDS)
    else:
        corpora = kept_corpora(kept_rows(column, spells=False), call, tokenizer)
    for corpus in corpora:
        own = phrases.gather(pl.Series(corpus.rows))
        with naming_normalize(call, column.name):
            counts[corpus.rows] = _in_corpus(call, corpus, own, morphism)
        is_null[corpus.rows] = own.is_null().to_numpy()
    return pl.Series(column.name, counts).set(pl.Series(is_null), None)


def _in_corpus(call: str, corpus: Corpus, phrases: pl.Series, morphism: Morphism | None) -> UInt64:
    tokenizer = named_tokenizer(corpus.grammar)
    require_known(tokenizer, f"{call}: the column")
    grouped = pl.DataFrame({"phrase": phrases, "row": np.arange(len(phrases))}).drop_nulls("phrase")
    grouped = grouped.filter(pl.col("phrase") != "").group_by("phrase", maintain_order=True).agg("row")
    counts = np.zeros(len(phrases), np.uint64)
    if not len(grouped):
        return counts
    cut = PhraseWords.cut(tuple(grouped["phrase"].to_list()), tokenizer)
    size = len(corpus.grammar.words)
    words = pl.concat([corpus.grammar.words.series, cut.series.alias(corpus.grammar.words.series.name)])
    ids = encode(words if morphism is None else morphism.images(words.rechunk())).ids
    terms = ids.astype(np.int64)
    terms[ids == DELETED] = LEFT_OUT
    rules = load_rules(corpus.grammar)
    given = rules.terminals, rules.rule_offsets, rules.symbols, len(rules.level_offsets), terms[:size]
    owners = grouped["row"].explode().to_numpy().astype(np.int64)
    starts = np.append(0, np.cumsum(grouped["row"].list.len().to_numpy(), dtype=np.int64))

    def count(places: tuple[int, int]) -> None:
        for place in range(*places):
            phrase = terms[size + cut.offsets[place] : size + cut.offsets[place + 1]]
            phrase = phrase[phrase != LEFT_OUT]
            if len(phrase):
                rows = owners[starts[place] : starts[place + 1]]
                found = np.empty(len(rows), np.uint64)
                count_in_rows(*given, corpus.root_offsets, corpus.roots, rows, phrase, borders(phrase.tolist()), found)
                counts[rows] = found

    map_parallel(count, even_chunks(len(grouped), PHRASES, each=4))
    return counts


def borders(phrase: list[int]) -> Int64:
    """Return the border table of a phrase: by prefix, the length of its longest proper prefix that is a suffix."""
    found = [0, 0]
    for place in range(1, len(phrase)):
        length = found[place]
        while length and phrase[length] != phrase[place]:
            length = found[length]
        found.append(length + 1 if phrase[length] == phrase[place] else 0)
    return np.array(found, np.int64)
