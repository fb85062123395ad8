"""Holds an accepted compressed column to what its grammar says by the plain-Python definitions."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import polars as pl

import polars_tadoc as tadoc
from polars_tadoc.errors import TadocError
from polars_tadoc.kernels.repair import reference as repair_reference
from polars_tadoc.kernels.traverse import reference as traverse_reference
from polars_tadoc.model.column import split
from polars_tadoc.model.corpus import Corpus
from tests import oracle
from tests.fuzz.script import Script

MAX_EXPANDED = 2_000
"""Words of a column that are counted in Python, too."""

Words = list[list[str] | None]

ANALYTICS: list[tuple[Callable[[pl.Series], Any], Callable[[Words], Any]]] = [
    (lambda column: _rows(tadoc.word_count(column)), oracle.word_count),
    (lambda column: _rows(tadoc.sort(column)), oracle.sort),
    (lambda column: _rows(tadoc.term_vector(column, top=3)), lambda words: oracle.term_vector(words, top=3)),
    (lambda column: _rows(tadoc.inverted_index(column)), oracle.inverted_index),
    (lambda column: _rows(tadoc.sequence_count(column, n=2)), lambda words: oracle.sequence_count(words, n=2)),
    (lambda column: _rows(tadoc.ranked_inverted_index(column)), oracle.ranked_inverted_index),
    (lambda column: _rows(tadoc.cooccurrence(column, window=3)), lambda words: oracle.cooccurrence(words, window=3)),
    (
        lambda column: tadoc.token_count(column).to_list(),
        lambda words: [None if row is None else len(row) for row in words],
    ),
]
"""Calls that read no gaps, and their definitions over the words of each row."""

OTHERS: list[Callable[[pl.Series], Any]] = [
    tadoc.info,
    lambda column: tadoc.extract(column, 1, 5),
    lambda column: tadoc.contains_phrase(column, "a b"),
    lambda column: tadoc.to_csr(column),
    lambda column: tadoc.tfidf(column),
    lambda column: tadoc.bm25_weights(column),
    lambda column: _tokenizers(column) != {"words"} or tadoc.build_index(column).search(["a b", "the"]),
    lambda column: (
        _tokenizers(column) != {"xml"}
        or tadoc.twig_filter(column, {"a": "//a", "b": "/a/b[text()='x']"}, on_error="null")
    ),
    lambda column: column.to_frame("text").tadoc.pack("text"),
]
"""Calls that must answer, or refuse by name."""


def hold(column: pl.Series, script: Script) -> None:
    """Hold a column that nothing was refused of when it was split; which calls are made the script says."""
    corpora = split(column)
    words = words_of(corpora, len(column))
    if words is not None:
        call, definition = script.pick(ANALYTICS)
        got, expected = call(column), definition(words)
        assert got == expected, f"{got} is not {expected}"
    else:
        script.pick(ANALYTICS)[0](column)
    text = _decompressed(column)
    if text is None:
        return
    text.to_arrow(compat_level=pl.CompatLevel.oldest()).validate(full=True)
    if words is not None:
        for row, expected_text in _texts(corpora, words).items():
            assert text[row] == expected_text, f"row {row}: {text[row]!r} is not {expected_text!r}"
    kind = script.number(3)
    try:
        if kind == 0:
            again = tadoc.decompress(tadoc.recompress(column))
            if not any(corpus.gaps.null_count() for corpus in corpora):  # else words are parted by one space
                assert again.equals(text, check_names=False), f"{again.to_list()} is not {text.to_list()}"
        elif kind == 1:
            packed = column.to_frame("text").tadoc.pack("text").tadoc.unpack("text").to_series()
            assert tadoc.decompress(packed).equals(text, check_names=False)
        else:
            script.pick(OTHERS)(column)
    except TadocError:
        return


def words_of(corpora: list[Corpus], rows: int) -> Words | None:
    """Expand each row; None where that is too much."""
    total = sum(_length(corpus) for corpus in corpora)
    if total > MAX_EXPANDED:
        return None
    words: Words = [None] * rows
    for corpus in corpora:
        grammar = corpus.grammar
        vocabulary, size = grammar.vocabulary.to_pylist(), grammar.vocabulary_size
        offsets, symbols = grammar.rule_offsets.tolist(), grammar.symbols.tolist()
        for row, document in zip(corpus.rows.tolist(), _documents(corpus), strict=True):
            words[row] = [
                vocabulary[word]
                for symbol in document
                for word in traverse_reference.expand(symbol, size, offsets, symbols)
            ]
    return words


def _documents(corpus: Corpus) -> list[list[int]]:
    offsets = corpus.root_offsets.tolist()
    return [corpus.roots[first:stop].tolist() for first, stop in pairwise(offsets)]


def _length(corpus: Corpus) -> int:
    lengths = [1] * corpus.grammar.vocabulary_size + corpus.grammar.expansion_lengths.tolist()
    return sum(lengths[symbol] for symbol in corpus.roots.tolist())


def _decompressed(column: pl.Series) -> pl.Series | None:
    try:
        return tadoc.decompress(column)
    except TadocError:
        return None


def _texts(corpora: list[Corpus], words: Words) -> dict[int, str]:
    """The text of each row whose gaps were kept, by the definition."""
    texts = {}
    for corpus in corpora:
        grammar = corpus.grammar
        offsets, symbols = grammar.rule_offsets.tolist(), grammar.symbols.tolist()
        predictions, gap_vocabulary = grammar.predicted_gaps.tolist(), grammar.gap_vocabulary.to_pylist()
        for row, document, data in zip(corpus.rows.tolist(), _documents(corpus), corpus.gaps, strict=True):
            own = words[row]
            if data is None or own is None or re.search(rb"[\x80-\xff]{5}", data):  # too long for a number
                continue
            keys = repair_reference.gap_keys(document, grammar.vocabulary_size, offsets, symbols)
            predicted = [predictions[key] for key in keys] if document else None
            gaps = repair_reference.decode_predicted_gaps(data, predicted, gap_vocabulary)
            texts[row] = gaps[0] + "".join(word + gap for word, gap in zip(own, gaps[1:], strict=True))
    return texts


def _tokenizers(column: pl.Series) -> set[str]:
    return {corpus.grammar.tokenizer for corpus in split(column)}


def _rows(table: Any) -> list[Any]:
    """Rows of a result as the definitions give them."""
    return pl.DataFrame(table).rows()
