"""Makes and merges partial results: the stages shared by the in-memory, streaming, Workers and Spark runners."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Generic

import polars as pl

from polars_tadoc.engine.choose import Engine
from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.engine.progress import BATCHES, bar_of, batch, is_bar_shown
from polars_tadoc.errors import DeviceMemoryError, LimitExceededError
from polars_tadoc.execute.aggregation import Aggregation, Part
from polars_tadoc.execute.joined_grammars import joined
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.corpus import Corpus, require_countable
from polars_tadoc.model.word_map import naming_normalize
from polars_tadoc.runtime.parallel import map_beside
from polars_tadoc.traversal.text_corpus import (
    BYTES_A_WORD,
    WORDS,
    corpora_of,
    cut_on_cpu,
    naming_rows,
    require_text,
    text_corpora,
)
from polars_tadoc.traversal.text_source import TextSource, prepare_text


class Stages(Generic[Part]):
    """The stages of one call.

    Parameters
    ----------
    aggregation
        What to count.
    tokenizer
        Tokenizer of String columns; None: as in the options.

    """

    def __init__(self, aggregation: Aggregation[Part], tokenizer: Tokenizer | None = None) -> None:
        self.limited, self.every = aggregation, aggregation.without_limits()
        self.batches = DeviceBatches(aggregation.name, aggregation.options.engine)
        self._tokenizer = tokenizer

    def all(self, column: pl.Series, owner: object = None) -> Part:
        """Count in a compressed or String column in memory, with the limits applied.

        Parameters
        ----------
        column
            The column.
        owner
            While it lives, a compressed column stays split for the next call, and its rows on a device.

        Raises
        ------
        NotCompressedError
            It is not compressed, and also not a String column or the call does not take text.
        InvalidGrammarError, LimitExceededError
            A payload or a row is damaged or too large.
        EngineUnavailableError
            ``engine="gpu"`` cannot run here.

        """
        call, tokenizer = self.limited.name, self.limited.options.tokenizer
        column = require_text(column, call)
        with naming_normalize(call, column.name), bar_of(len(column), call, by=BATCHES):
            if column.dtype != pl.String:
                kept_for = owner if self.limited.joins_grammars_on else None
                return self.all_of(corpora_of(column, call, tokenizer, kept_for))
            if self.limited.takes_text:
                return self.limited.merge(list(self.limited.text_partials(column, 0, self.batches)))
            return self._all_of_text(column, tokenizer or WORDS)

    def _all_of_text(self, column: pl.Series, tokenizer: Tokenizer) -> Part:
        part = self._text_part(self.limited, column, tokenizer, 0)
        if part is not None:
            return part
        blocks = text_corpora(column, tokenizer, cut=self._cutting(self.limited, column))
        first, second = next(blocks, None), next(blocks, None)
        if first is None or second is None:
            return self.all_of([] if first is None else [first])
        engine = self.limited.choose_engine(int(column.estimated_size()) // BYTES_A_WORD)
        words, parts = 0, []
        for corpus in chain([first, second], blocks):
            words += len(corpus.roots)
            if words * min(self.limited.pairs_per_word, words) >= 1 << 63:
                raise LimitExceededError(f"{self.limited.name}: more than 64 bits can count; split the column")
            parts.append(self.find_on(corpus, engine))
        return self.limited.merge(parts)

    def _text_part(
        self, aggregation: Aggregation[Part], text: pl.Series, tokenizer: Tokenizer, first: int
    ) -> Part | None:
        with naming_rows(text, first):
            engine = aggregation.choose_engine(int(text.estimated_size()) // BYTES_A_WORD)
            part = None
            with batch(aggregation.name, len(text), lambda: part is not None):
                part = aggregation.text_part(text, tokenizer, engine)
            return part

    def _cutting(self, aggregation: Aggregation[Part], text: pl.Series) -> Callable[[pl.Series, Tokenizer], TextSource]:
        """Return what cuts blocks of a String column into words: the engine that counts them, if memory suffices."""
        engine = aggregation.choose_engine(int(text.estimated_size()) // BYTES_A_WORD)

        def cut(block: pl.Series, tokenizer: Tokenizer) -> TextSource:
            try:
                with engine.guarded("cutting text into words"):
                    return prepare_text(block, tokenizer, engine)
            except DeviceMemoryError as error:
                self.batches.leave_to_cpu("cutting text into words", error)
            engine.release()  # not inside the handler: the traceback holds the arrays that filled the device
            return cut_on_cpu(block, tokenizer)

        return cut

    def all_of(self, corpora: Sequence[Corpus]) -> Part:
        """Count in corpora in memory, all on one engine; raises as :meth:`all`."""
        require_countable(corpora, self.limited.pairs_per_word)
        engine = self.limited.choose_engine(sum(corpus.symbol_count for corpus in corpora))
        if engine.name in self.limited.joins_grammars_on:
            corpora = joined(corpora, engine.budget)
        if len(corpora) == 1:
            return self._partial(self.limited, corpora[0], engine)
        if engine.keeps_rows or is_bar_shown():  # a device has one queue; a bar counts batches one after another
            return self.limited.merge([self.find_on(corpus, engine) for corpus in corpora])
        sizes = [corpus.symbol_count for corpus in corpora]
        return self.limited.merge(map_beside(lambda corpus: self.find_on(corpus, engine), corpora, sizes))

    def find(self, documents: Corpus | pl.Series, first: int = 0) -> Iterator[Part]:
        """Count in one corpus or String column without limits; yields partial results in host memory.

        Parameters
        ----------
        documents
            The rows.
        first
            Number of the first row of a String column.

        """
        if isinstance(documents, pl.Series):
            if self.every.takes_text:
                with naming_normalize(self.every.name):
                    yield from map(self.every.on_host, self.every.text_partials(documents, first, self.batches))
                return
            tokenizer = self._tokenizer or self.every.options.tokenizer or WORDS
            part = self._text_part(self.every, documents, tokenizer, first)
            if part is not None:
                yield part
                return
            for corpus in text_corpora(documents, tokenizer, first, cut=self._cutting(self.every, documents)):
                yield from self.find(corpus)
            return
        require_countable([documents], self.every.pairs_per_word)
        yield self.find_on(documents, self.every.choose_engine(documents.symbol_count))

    def find_together(self, documents: Sequence[Corpus | pl.Series], first: int) -> Part:
        """Count in rows and merge, in the order of their numbers; parameters as for :meth:`find`."""
        corpora = [one for one in documents if isinstance(one, Corpus)]
        require_countable(corpora, self.every.pairs_per_word)
        return self.every.merge([part for one in documents for part in self.find(one, first)])

    def find_on(self, corpus: Corpus, engine: Engine) -> Part:
        """Count in one corpus on an engine, without limits; the partial result is in host memory."""
        return self.every.on_host(self._partial(self.every, corpus, engine))

    def _partial(self, aggregation: Aggregation[Part], corpus: Corpus, engine: Engine) -> Part:
        """Count in one corpus, in batches if the device has too little memory."""

        def some(corpus: Corpus, engine: Engine) -> Part:
            return self.every.on_host(self.every.partial(corpus, engine))

        with naming_normalize(aggregation.name):
            parts = self.batches.parts(corpus, engine, aggregation.partial, some)
        return parts[0] if len(parts) == 1 else aggregation.merge(parts)
