"""A column's words after normalisation, numbered together and laid out in row order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from polars_tadoc.compress.decompress import Allowance
from polars_tadoc.engine.choose import CPU, Engine
from polars_tadoc.engine.progress import part
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.execute.windows import Window
from polars_tadoc.kernels.host.passages import layout as kernels
from polars_tadoc.kernels.primitives.codes import DELETED
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.corpus import Corpus, require_countable
from polars_tadoc.model.vocabulary import Vocabulary, unify
from polars_tadoc.model.word_map import Morphism, naming_normalize
from polars_tadoc.rows.token_count import document_words
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32, array_dataclass
from polars_tadoc.runtime.free_memory import trim_heap
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks
from polars_tadoc.runtime.plain_name import plain
from polars_tadoc.runtime.scratch import drop_scratch
from polars_tadoc.traversal.source import resident_rows
from polars_tadoc.traversal.text_corpus import WORDS, corpora_of, naming_rows, require_text, require_tokenizer
from polars_tadoc.traversal.text_source import prepare_text

LAYING_SHARE = 0.3
"""Share of a call's bar for its words."""

MANY_WORDS = 1 << 22
"""Above it, work space of cutting text is not kept: it would be a tenth of what a call holds."""

FEW_SYMBOLS = 4
"""Uses of each symbol in rows, on average, from which on short expansions are listed first."""

MOST_WORDS = (1 << 32) - 2
"""Maximum number of words and rows of a call: their places are numbered in 32 bits."""


@array_dataclass
class LaidWords:
    """Words of all rows in one array, a separator after each row; null rows have no words."""

    vocabulary: Vocabulary
    """The distinct words."""
    starts: Int64
    """int64, rows + 1: start of each row in ``words``."""
    words: Any
    """uint32, an array of the engine."""
    valid: Bools
    """bool by row: false for null rows."""
    tokenizers: tuple[str, ...]
    """Names of the tokenizers that cut the rows."""
    places: UInt32 | None = None
    """uint32, as long as ``words`` if normalisation dropped words: the number of each word among its row's own words,
    at the separator the number of these; otherwise None."""
    engine: Engine = CPU
    """The engine that reads the words."""

    @property
    def counts(self) -> Int64:
        """Words of each row, int64."""
        return np.diff(self.starts) - 1

    def own(self, rows: Int64, at: Int64) -> Int64:
        """Return the number that the words at some places have among their row's own words; int64."""
        if self.places is not None:
            return self.places[at].astype(np.int64)
        return at - self.starts[rows]


def lay_out(
    column: pl.Series,
    call: str,
    tokenizer: Tokenizer | None = None,
    morphism: Morphism | None = None,
    engine: Engine = CPU,
) -> LaidWords:
    """Number and lay out the words of a column.

    Parameters
    ----------
    column
        Compressed column, or plain text.
    call
        The call, for messages.
    tokenizer
        Tokenizer of plain text, default: words.
    morphism
        Normalisation of words.
    engine
        The engine that reads the words, and cuts and lays them out.

    Raises
    ------
    NotCompressedError, TypeError, ValueError, InvalidGrammarError
        As for :func:`polars_tadoc.traversal.text_corpus.corpora_of`.
    LimitExceededError
        The rows have more words than 32 bits can number, or a compressed column more than
        ``Config(expansion_limit=)``.

    """
    column = require_text(column, call)
    with part(LAYING_SHARE):
        if column.dtype == pl.String:
            laid = _of_text(column, call, tokenizer or WORDS, engine)
        else:
            laid = _of_corpora(corpora_of(column, call, tokenizer), len(column), call, engine)
        return _normalised(laid, call, column.name, morphism)


def lay_out_window(window: Window, call: str, tokenizer: Tokenizer | None, morphism: Morphism | None) -> LaidWords:
    """Like :func:`lay_out` for some rows of a plan."""
    if window.column is not None and window.column.dtype == pl.String:
        return lay_out(window.column, call, tokenizer, morphism)
    for corpus in window.corpora:
        require_tokenizer(corpus, tokenizer, call)
    corpora = [replace(corpus, rows=corpus.rows - window.first) for corpus in window.corpora]
    return _normalised(_of_corpora(corpora, window.height, call, CPU), call, "", morphism)


def _normalised(laid: LaidWords, call: str, column: str, morphism: Morphism | None) -> LaidWords:
    if morphism is None:
        return laid
    with naming_normalize(call, column):
        image = morphism.apply(laid.vocabulary.series)
    return _mapped(replace(laid, vocabulary=image.words), image.ids)


def starts_of(counts: Int64, call: str) -> Int64:
    """Return the starts of rows with some numbers of words; raises ``LimitExceededError``."""
    starts = running_sum(counts + 1)
    if starts[-1] > MOST_WORDS:
        raise LimitExceededError(f"{call}: the column has more than {MOST_WORDS:,} words and rows; split it")
    return starts


def _of_text(text: pl.Series, call: str, tokenizer: Tokenizer, engine: Engine) -> LaidWords:
    with naming_rows(text, 0):
        source = prepare_text(plain(text), tokenizer, engine)
    valid = plain(text).is_not_null().to_numpy()
    counts = np.zeros(len(text), np.int64)
    counts[source.rows] = np.diff(engine.kernels.to_host(source.root_offsets))
    starts = starts_of(counts, call)
    vocabulary = source.words
    image = np.arange(len(vocabulary), dtype=np.uint32)
    words = engine.kernels.lay_words(starts, [(source.root_offsets, source.roots, image, source.rows)])
    del source
    if len(words) > MANY_WORDS:
        drop_scratch()  # tables of the tokenizer; what follows takes the most memory
        trim_heap()
    return LaidWords(vocabulary, starts, words, valid, (tokenizer.name,), engine=engine)


def _of_corpora(corpora: list[Corpus], rows: int, call: str, engine: Engine) -> LaidWords:
    require_countable(corpora)
    valid, counts = np.zeros(rows, np.bool_), np.zeros(rows, np.int64)
    for corpus in corpora:
        valid[corpus.rows], counts[corpus.rows] = True, document_words(corpus)
    starts = starts_of(counts, call)
    Allowance(call, corpora).take(int(starts[-1]) - rows, 0)
    vocabulary, images = unify([corpus.grammar.words for corpus in corpora])
    if engine.keeps_rows:
        parts = [
            (*_expanded(corpus, engine), image, corpus.rows) for corpus, image in zip(corpora, images, strict=True)
        ]
        words = engine.kernels.lay_words(starts, parts)
    else:
        words = np.empty(starts[-1], np.uint32)
        words[starts[1:][~valid] - 1] = kernels.SEPARATOR
        for corpus, image in zip(corpora, images, strict=True):
            _expand(corpus, image, starts[corpus.rows], starts[corpus.rows + 1], words)
    tokenizers = tuple({one.grammar.tokenizer: None for one in corpora})
    return LaidWords(vocabulary, starts, words, valid, tokenizers, engine=engine)


def _expanded(corpus: Corpus, engine: Engine) -> tuple[Any, Any]:
    """Return where the words of each document start, and the words, on a device."""
    rules = engine.load_rules(corpus.cache_key, corpus.grammar)
    return engine.kernels.expand_words(rules, *resident_rows(corpus, engine).arrays)


def _expand(corpus: Corpus, image: UInt32, starts: Int64, stops: Int64, words: UInt32) -> None:
    """Write the documents of a corpus."""
    grammar = corpus.grammar
    count = grammar.vocabulary_size + grammar.rule_count
    short, sizes = np.zeros(0, np.uint32), np.zeros(count, np.uint8)
    if len(corpus.roots) > FEW_SYMBOLS * count:
        short = np.empty(kernels.SHORT * count, np.uint32)
        kernels.list_short(grammar.vocabulary_size, grammar.rule_offsets, grammar.symbols, image, short, sizes)

    def expand(documents: tuple[int, int]) -> None:
        first, stop = documents
        kernels.expand_rows(
            grammar.vocabulary_size,
            grammar.rule_offsets,
            grammar.symbols,
            image,
            corpus.root_offsets[first : stop + 1],
            corpus.roots,
            starts[first:stop],
            stops[first:stop],
            short,
            sizes,
            words,
            np.full(grammar.rule_count, -1, np.int64),
            np.zeros(grammar.rule_count, np.int64),
            np.zeros(3 * grammar.level_count + 3, np.int64),
        )

    map_parallel(expand, weighted_chunks(corpus.root_offsets))


def _mapped(laid: LaidWords, image: UInt32) -> LaidWords:
    """Map each word, and drop those that map to nothing."""
    starts, rows = laid.starts, weighted_chunks(laid.starts)
    if not (image == DELETED).any():
        return replace(laid, words=laid.engine.kernels.map_words(laid.words, image))
    of = laid.engine.kernels.to_host(laid.words)
    kept = np.empty(len(laid.valid), np.int64)

    def count(chunk: tuple[int, int]) -> None:
        first, stop = chunk
        kernels.count_kept(starts[first : stop + 1], of, image, kept[first:stop])

    map_parallel(count, rows)
    kept_starts = running_sum(kept + 1)
    words, places = np.empty((2, kept_starts[-1]), np.uint32)

    def keep(chunk: tuple[int, int]) -> None:
        first, stop = chunk
        own = slice(first, stop + 1)
        kernels.keep_words(starts[own], of, image, kept_starts[own], words, places)

    map_parallel(keep, rows)
    return replace(laid, starts=kept_starts, words=laid.engine.kernels.load_array(words), places=places)
