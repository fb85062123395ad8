"""Counts a phrase in rows; tells which rows contain one of several phrases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Unpack, cast

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.compress.compress import named_tokenizer, require_known
from polars_tadoc.engine.progress import by_steps
from polars_tadoc.kernels.host.rows.word_map import map_roots, map_rules
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.kernels.traverse.results_cpu import load_rules
from polars_tadoc.model.column import scatter_to_rows
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.word_map import Morphism, MorphismOptions, encode, naming_normalize
from polars_tadoc.rows.matching import Target
from polars_tadoc.rows.pattern_kept import KeptRows, kept_corpora, kept_rows, text_or_kept
from polars_tadoc.rows.phrase_by_row import count_phrase_by_row
from polars_tadoc.rows.phrase_words import PhraseWords
from polars_tadoc.rows.token_count import token_count
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.option_signature import ProgressOption
from polars_tadoc.runtime.parallel import map_parallel
from polars_tadoc.traversal.options import TokenizerOption, tokenizer_of
from polars_tadoc.traversal.text_corpus import WORDS, require_text, text_corpora

TOGETHER = 1 << 19
"""Symbols from which on the grammars of a column are searched side by side."""

SHOWN = 80
"""Characters of a phrase shown in messages."""


class PhraseOptions(MorphismOptions, TokenizerOption, ProgressOption, total=False):
    """Options of calls with phrases."""


@documented_by(token_count)
def count_phrase(column: pl.Series, phrase: str | pl.Series, **options: Unpack[PhraseOptions]) -> pl.Series:
    """Count how often each row contains a phrase, without decompressing it.

    The phrase is cut into words like the column's text; separators between the words do not matter. Occurrences may
    overlap, as in :func:`sequence_count`. If stop words or ``normalize`` drop all its words, a phrase occurs nowhere.
    It is text, not a pattern: ``"to.*"`` is the word "to". Each rule is matched once, with an automaton that records
    the state after it (Kida et al., SPIRE 1999); rules without a word of the phrase are not read.

    Parameters
    ----------
    phrase
        Adjacent words; or a String series with a phrase for each row, or an expression in an expression. A row's own
        phrase may be null, which gives null, or have no word, which gives 0; the row is read word by word.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String; null or an empty string drops the
        word, and the words on either side become adjacent. Applied to the words of text and phrase.
    lowercase
        Whether to lower-case words (after ``normalize``) and stop words.
    stopwords
        Words to drop, compared after ``normalize`` and lower-casing; or the name of a language (:func:`stop_words`).

    Raises
    ------
    InvalidGrammarError
        A payload or a row is damaged, or this release lacks its tokenizer.
    TypeError
        ``phrase`` is neither a string nor a String series, ``normalize`` not an expression, ``lowercase`` not a bool or
        ``stopwords`` not a list of strings.
    ValueError
        The phrase has no word by the column's tokenizer, there are not as many phrases as rows, or ``normalize`` reads
        columns or does not give one String or null per word.

    Examples
    --------
    >>> column = pl.Series("text", ["to be, or not to be", "be", None]).tadoc.compress()
    >>> tadoc.count_phrase(column, "to be").to_list()
    [2, 0, None]
    >>> tadoc.count_phrase(column, pl.Series(["be", "to be", "be"])).to_list()
    [2, 0, None]

    """
    if isinstance(phrase, pl.Series):
        column = require_text(column, "count_phrase")
        return count_phrase_by_row("count_phrase", column, phrase, Morphism.of(options), tokenizer_of(options))
    own = text_or_kept(column, "count_phrase")  # before the arguments, which the caller may have swapped
    return PhraseRequest.of_phrase("count_phrase", phrase, options).run_checked(*own, column)


BY_ROW = """Boolean series
    One value per row; null for null rows."""
"""The result of calls that answer for each row."""


@documented_by(count_phrase, returns=BY_ROW)
def contains_phrase(column: pl.Series, phrase: str | pl.Series, **options: Unpack[PhraseOptions]) -> pl.Series:
    """Tell which rows contain a phrase, with the rules of :func:`count_phrase`.

    Examples
    --------
    >>> column = pl.Series("text", ["To be, or not to be", "be", None]).tadoc.compress()
    >>> tadoc.contains_phrase(column, "not to").to_list()
    [True, False, None]
    >>> tadoc.contains_phrase(column, pl.Series(["be or", "to", "be"])).to_list()
    [True, False, None]

    """
    if isinstance(phrase, pl.Series):
        column, morphism = require_text(column, "contains_phrase"), Morphism.of(options)
        return count_phrase_by_row("contains_phrase", column, phrase, morphism, tokenizer_of(options)) > 0
    own = text_or_kept(column, "contains_phrase")  # before the arguments, which the caller may have swapped
    return PhraseRequest.of_phrase("contains_phrase", phrase, options).run_checked(*own, column)


@documented_by(contains_phrase)
def contains_any(column: pl.Series, phrases: Iterable[str], **options: Unpack[PhraseOptions]) -> pl.Series:
    """Tell which rows contain at least one of several phrases, in one pass.

    Parameters
    ----------
    phrases
        The phrases; if the list is empty, no row matches.

    Raises
    ------
    TypeError
        ``phrases`` is not a list of strings, ``normalize`` not an expression, ``lowercase`` not a bool or ``stopwords``
        not a list of strings.
    ValueError
        A phrase is empty or blank (any other phrase without a word matches nothing), or ``normalize`` reads columns or
        does not give one String or null per word.

    Examples
    --------
    >>> column = pl.Series("text", ["to be", "or not", None]).tadoc.compress()
    >>> tadoc.contains_any(column, ["not to", "to be"]).to_list()
    [True, False, None]

    """
    own = text_or_kept(column, "contains_any")
    return PhraseRequest.of_phrases(phrases, options).run_checked(*own, column)


def _require_phrase(phrase: object, call: str, what: str) -> str:
    if not isinstance(phrase, str):
        raise TypeError(f"{call}: {what} must be a string, not {type(phrase).__name__}")
    try:
        phrase.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{call}: {what} is not text: {error.reason}") from None
    if not phrase:
        raise ValueError(f"{call}: {what} has no word: it is empty")
    return phrase


@array_dataclass
class PhraseRequest:
    """The checked phrases of a call."""

    call: str
    """The call's name, for messages."""
    phrases: tuple[str, ...]
    """Text of each phrase."""
    morphism: Morphism | None
    """Normalisation of words: which are equal, which are dropped."""
    once: bool
    """Whether to tell if there is a match, instead of counting."""
    tokenizer: Tokenizer | None = None
    """Cuts plain text; None: into words."""

    @classmethod
    def of_phrase(cls, call: str, phrase: object, options: PhraseOptions) -> PhraseRequest:
        """Make a request for one phrase; errors as for :func:`count_phrase`."""
        morphism = Morphism.of(options)
        checked = (_require_phrase(phrase, call, "phrase"),)
        return cls(call, checked, morphism, call != "count_phrase", tokenizer_of(options))

    @classmethod
    def of_phrases(cls, phrases: object, options: PhraseOptions) -> PhraseRequest:
        """Make a request for any of several phrases; errors as for :func:`contains_any`."""
        morphism = Morphism.of(options)
        if isinstance(phrases, str) or not isinstance(phrases, Iterable):
            raise TypeError(f"contains_any: phrases must be a list of strings, not {type(phrases).__name__}")
        checked = tuple(_require_phrase(own, "contains_any", f"phrases[{place}]") for place, own in enumerate(phrases))
        return cls("contains_any", checked, morphism, True, tokenizer_of(options))

    @property
    def dtype(self) -> pl.DataType:
        """Type of the result."""
        return pl.Boolean() if self.once else pl.UInt64()

    def run(self, column: pl.Series) -> pl.Series:
        """Match the phrases in each row."""
        return self.run_checked(*text_or_kept(column, self.call), column)

    @ends_on_interrupt
    @by_steps
    def run_checked(self, column: pl.Series, kept: KeptRows | None, given: pl.Series) -> pl.Series:
        """Match the phrases in each row of a String column, or of a compressed column: its storage, or its kept rows.

        ``given`` is the column as the caller has it.
        """
        corpora: Iterable[Corpus]
        if kept is None and column.dtype == pl.String:  # block by block: the words of earlier ones are not held
            corpora, documents = text_corpora(column, self.tokenizer or WORDS), len(column) - column.null_count()
        else:
            kept = kept or kept_rows(column, spells=False, given=given)
            corpora = list(kept_corpora(kept, self.call, self.tokenizer))
            documents = sum(corpus.document_count for corpus in corpora)
        texts: dict[str, PhraseWords] = {}
        rows: list[Int64] = []
        buffer, counts = allocate(documents, np.uint64)
        counts[:] = 0

        def prepared(corpora: Iterable[Corpus]) -> Iterator[tuple[Corpus, PhraseWords, UInt64]]:
            at = 0
            for corpus in corpora:
                name = corpus.grammar.tokenizer
                if name not in texts:
                    tokenizer = named_tokenizer(corpus.grammar)
                    require_known(tokenizer, f"{self.call}: the column")
                    texts[name] = PhraseWords.cut(self.phrases, tokenizer)
                    self._require_words(texts[name].offsets)
                rows.append(corpus.rows)
                yield corpus, texts[name], counts[at : at + corpus.document_count]
                at += corpus.document_count

        def count(item: tuple[Corpus, PhraseWords, UInt64]) -> None:
            with naming_normalize(self.call, column.name):
                self._count(*item)

        # words are normalised by Polars, whose threads may all wait for this call
        apart = isinstance(corpora, list) and self.morphism is None
        if apart and sum(corpus.symbol_count for corpus in corpora) >= TOGETHER:
            map_parallel(count, list(prepared(corpora)))
        else:
            for item in prepared(corpora):
                count(item)
        if self.once:
            values = pl.Series(column.name, counts != 0)
        else:
            array = pa.UInt64Array.from_buffers(pa.uint64(), len(counts), [None, buffer])
            values = cast(pl.Series, pl.from_arrow(array)).alias(column.name)
        return scatter_to_rows(values, rows, len(column)) if kept is None else kept.scatter([values], len(column))

    def _require_words(self, offsets: Int64) -> None:
        """Raise ``ValueError`` for a phrase without a word; one of several, unless blank, just matches nothing."""
        for phrase, (first, stop) in zip(self.phrases, pairwise(offsets.tolist()), strict=True):
            if first == stop and (self.call != "contains_any" or not phrase.strip()):
                raise ValueError(f"{self.call}: the phrase {phrase[:SHOWN]!r} has no word")

    def _count(self, corpus: Corpus, words: PhraseWords, found: UInt64) -> None:
        """Count the matches in each document of a corpus into ``found``, initially zero."""
        grammar, plain = corpus.grammar, load_rules(corpus.grammar)
        if self.morphism is None:
            target = Target(plain, corpus.root_offsets, corpus.roots, corpus.cache_key, None)
            target.count(words.find(grammar.words), words.offsets, self.once, found)
            return
        size = len(grammar.words)
        images = self.morphism.images(pl.concat([grammar.words.series, words.series]).rechunk())
        kept = images.slice(size).is_not_null().to_numpy()
        offsets = np.append(0, np.cumsum(kept))[words.offsets]
        if offsets[-1] == 0:
            return
        if images.head(size).null_count():
            image = encode(images)
            own = image.ids[:size]
            mapped = map_rules(plain, own, len(image.words))
            root_offsets, roots = map_roots(plain, corpus.root_offsets, corpus.roots, own, mapped)
            given = image.ids[size:][kept]
            Target(mapped, root_offsets, roots, None, None).count(given, offsets, self.once, found)
            return
        # the rules stay as they are: words with one image share a class
        wanted = images.slice(size).drop_nulls()
        numbers = {word: number for number, word in enumerate(wanted.unique(maintain_order=True).to_list())}
        terminals = images.head(size).is_in(wanted.unique().implode()).arg_true()
        stands = terminals.to_numpy(), _numbered(images.gather(terminals), numbers)
        target = Target(plain, corpus.root_offsets, corpus.roots, corpus.cache_key, stands)
        target.count(_numbered(wanted, numbers), offsets, self.once, found)


def _numbered(words: pl.Series, numbers: dict[str, int]) -> UInt32:
    return np.array([numbers[word] for word in words.to_list()], np.uint32)
