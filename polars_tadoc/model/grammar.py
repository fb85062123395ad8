"""The grammar: immutable, content-addressed, checked before use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from polars_tadoc.config import settings
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError
from polars_tadoc.kernels.host.grammars import checks as kernels
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.array_types import UInt8, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.arrow_arrays import copied, strings
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.runtime.documented import with_imports

VERSION = 2

LONG = 8
"""Minimum words of rules that are expanded by copying their text: for shorter ones, writing is faster."""

ARROW_TYPE = pa.struct(
    [
        pa.field("vocabulary", pa.large_list(pa.large_string())),
        pa.field("rule_offsets", pa.large_list(pa.uint32())),
        pa.field("symbols", pa.large_list(pa.uint32())),
        pa.field("level_offsets", pa.large_list(pa.uint32())),
        pa.field("gap_vocabulary", pa.large_list(pa.large_string())),
        pa.field("predicted_gaps", pa.large_list(pa.uint32())),
        pa.field("tokenizer", pa.large_string()),
        pa.field("version", pa.uint32()),
    ]
)
"""One grammar as an Arrow struct; words and gaps in id order, offsets with a leading 0."""

_WRONG = {
    kernels.RULES_START: "rule_offsets does not start with 0",
    kernels.RULES_FALL: "rule_offsets falls after rule {where}",
    kernels.TOO_SHORT: "rule {where} has fewer than two symbols",
    kernels.RULES_END: "rule_offsets does not end at the number of symbols",
    kernels.LEVELS: "level_offsets does not ascend from 0 to the number of rules (level {where})",
    kernels.SYMBOL_RANGE: "symbol {where} is neither a word nor a rule",
    kernels.NOT_LOWER: "rule {where} uses a rule that is not on a lower level (a cycle, or levels out of order)",
}


@with_imports
@array_dataclass
class Grammar:
    """Words and rules that any number of rows share.

    Symbol ``s`` below the vocabulary's size is word ``s``; any other is rule ``s - len(vocabulary)``.
    A rule's body has words and rules of lower levels only; rules of one level are adjacent. Words are numbered by
    descending frequency, ties in code point order. If the rows were compressed with a dictionary, its words come first,
    with its ids, even if they do not occur.

    Parameters
    ----------
    vocabulary
        Distinct words in id order, ``large_string``.
    rule_offsets
        uint32, rules + 1: start of each rule's body in ``symbols``.
    symbols
        uint32: the bodies of all rules, in rule order.
    level_offsets
        uint32, levels + 1: the first rule of each level.
    gap_vocabulary
        Separators between words, in id order, ``large_string``.
    predicted_gaps
        uint32, vocabulary + symbols: the gap predicted before each word that starts a top-level symbol of a row (not
        the first one), then before each symbol of the bodies (unused for the first symbol); 0 is one space, otherwise 1
        + the gap's id.
    tokenizer
        Name of the tokenizer that produced the words.

    Examples
    --------
    >>> column = pl.Series(["to be or not", "to be or not", "to be or not to be"]).tadoc.compress()
    >>> grammar = tadoc.column.split(column)[0].grammar
    >>> grammar.vocabulary.to_pylist(), grammar.rule_count, grammar.symbols.tolist()
    (['be', 'to', 'not', 'or'], 1, [1, 0, 3, 2])

    """

    vocabulary: pa.LargeStringArray
    rule_offsets: UInt32
    symbols: UInt32
    level_offsets: UInt32
    gap_vocabulary: pa.LargeStringArray
    predicted_gaps: UInt32
    tokenizer: str

    @property
    def vocabulary_size(self) -> int:
        """Number of distinct words."""
        return len(self.vocabulary)

    @property
    def rule_count(self) -> int:
        """Number of rules."""
        return len(self.rule_offsets) - 1

    @property
    def level_count(self) -> int:
        """Number of levels: the parallel steps of one traversal."""
        return len(self.level_offsets) - 1

    @cached_property
    def words(self) -> Vocabulary:
        """The vocabulary with its orders."""
        return Vocabulary(self.vocabulary)

    @cached_property
    def expansion_lengths(self) -> UInt64:
        """Words in each rule's expansion, uint64 by rule; computing them checks the grammar.

        Raises
        ------
        InvalidGrammarError
            An offset, level or symbol is out of range or order, or a rule is cyclic.
        LimitExceededError
            A rule expands to more words than ``Config(expansion_limit=)``.

        """
        lengths = np.zeros(max(self.rule_count, 0), np.uint64)
        limit = settings().expansion_limit
        code, where = kernels.check(
            self.vocabulary_size, self.rule_offsets, self.symbols, self.level_offsets, limit, lengths
        )
        if code == kernels.TOO_LONG:
            raise _too_long(f"rule {where}", limit)
        if code != kernels.OK:
            raise InvalidGrammarError("grammar: " + _WRONG[code].format(where=where))
        return lengths

    @property
    def expansion(self) -> tuple[int, UInt32, UInt32, int, UInt64]:
        """Arguments of kernels that expand rules: words, rule offsets, symbols, levels and lengths."""
        return self.vocabulary_size, self.rule_offsets, self.symbols, self.level_count, self.expansion_lengths

    @cached_property
    def short_lengths(self) -> UInt8:
        """Words in each symbol's expansion, capped at 255; uint8 by symbol, so that all fit in fast memory."""
        lengths = np.ones(self.vocabulary_size + self.rule_count, np.uint8)
        lengths[self.vocabulary_size :] = np.minimum(self.expansion_lengths, 255)
        return lengths

    def require_within_limit(self) -> None:
        """Check all rules against the current limit.

        Raises
        ------
        LimitExceededError
            A rule expands to more words than ``Config(expansion_limit=)``.

        Examples
        --------
        >>> column = pl.Series(["to be or not"] * 4).tadoc.compress()
        >>> grammar = tadoc.column.split(column)[0].grammar
        >>> with tadoc.Config(expansion_limit=2):
        ...     grammar.require_within_limit()
        Traceback (most recent call last):
        polars_tadoc.errors.LimitExceededError: grammar: rule 0 expands to more than 2 words; if the data is trusted,
        raise the limit: tadoc.Config(expansion_limit=…)

        """
        limit = settings().expansion_limit
        if self.rule_count and self.longest > limit:
            raise _too_long(f"rule {int(self.expansion_lengths.argmax())}", limit)

    @cached_property
    def longest(self) -> int:
        """Words in the longest rule's expansion; 1 if there are no rules."""
        return int(self.expansion_lengths.max(initial=1))

    @cached_property
    def gaps(self) -> Vocabulary:
        """The gap vocabulary, for kernels."""
        return Vocabulary(self.gap_vocabulary)

    @cached_property
    def leading_gaps(self) -> UInt32:
        """Code of the gap predicted between each symbol and the top-level symbol before it, uint32 by symbol."""
        codes = np.empty(self.vocabulary_size + self.rule_count, np.uint32)
        codes[: self.vocabulary_size] = self.predicted_gaps[: self.vocabulary_size]
        kernels.inherit_from_first(self.vocabulary_size, self.rule_offsets, self.symbols, codes)
        return codes

    @cached_property
    def gap_bytes(self) -> UInt64:
        """UTF-8 bytes of each gap, uint64 by gap code."""
        return np.concatenate([[1], np.diff(self.gaps.offsets)]).astype(np.uint64)

    @cached_property
    def symbol_bytes(self) -> UInt64:
        """UTF-8 bytes of each symbol's expansion with the gaps predicted inside it, uint64 by symbol."""
        sums = np.empty(self.vocabulary_size + self.rule_count, np.uint64)
        sums[: self.vocabulary_size] = np.diff(self.words.offsets)
        kernels.sum_bytes(
            self.vocabulary_size,
            self.rule_offsets,
            self.symbols,
            self.gap_bytes[self.predicted_gaps[self.vocabulary_size :]],
            sums,
        )
        return sums

    @cached_property
    def leads(self) -> UInt32:
        """``leading_gaps`` doubled, plus 1 for long rules: one look-up per symbol for decompression."""
        leads = self.leading_gaps << np.uint32(1)
        leads[self.vocabulary_size :] |= self.expansion_lengths >= LONG
        return leads

    @cached_property
    def led_bytes(self) -> UInt64:
        """UTF-8 bytes of each symbol's expansion and its leading gap, uint64 by symbol."""
        return self.symbol_bytes + self.gap_bytes[self.leading_gaps]

    @cached_property
    def nbytes(self) -> int:
        """Bytes of memory of the arrays and of the tables made on first use."""
        stored = self.rule_offsets.nbytes + self.symbols.nbytes + self.level_offsets.nbytes
        stored += self.predicted_gaps.nbytes
        strings = 2 * (self.vocabulary.nbytes + self.gap_vocabulary.nbytes)  # in Arrow's form and in Polars'
        return int(stored + strings + 41 * self.rule_count + 45 * self.vocabulary_size)

    def to_arrow(self) -> pa.StructArray:
        """Return the grammar as an Arrow struct array.

        Returns
        -------
        pyarrow.StructArray
            Length 1, type ``ARROW_TYPE``; read it with :meth:`from_arrow`.

        Examples
        --------
        >>> column = pl.Series(["to be or not to be"]).tadoc.compress()
        >>> tadoc.column.split(column)[0].grammar.to_arrow().field("tokenizer").to_pylist()
        ['words']

        """
        columns = [
            _cell(self.vocabulary),
            _cell(copied(self.rule_offsets)),
            _cell(copied(self.symbols)),
            _cell(copied(self.level_offsets)),
            _cell(self.gap_vocabulary),
            _cell(copied(self.predicted_gaps)),
            strings([self.tokenizer]),
            copied(np.array([VERSION], np.uint32)),
        ]
        return pa.StructArray.from_arrays(columns, fields=list(ARROW_TYPE))

    @classmethod
    def from_arrow(cls, array: pa.StructArray) -> Grammar:
        """Read a grammar from an Arrow struct array of length 1 and check all of it.

        Parameters
        ----------
        array
            Array of :meth:`to_arrow`.

        Returns
        -------
        Grammar
            The grammar, checked.

        Raises
        ------
        InvalidGrammarError
            The type, the version, an offset, a level or a symbol is wrong.
        LimitExceededError
            A rule expands to more words than ``Config(expansion_limit=)``.

        Examples
        --------
        >>> column = pl.Series("text", ["to be or not to be"]).tadoc.compress()
        >>> grammar = tadoc.column.split(column)[0].grammar
        >>> tadoc.Grammar.from_arrow(grammar.to_arrow()).vocabulary.to_pylist()
        ['be', 'to', 'not', 'or']

        """
        if array.type != ARROW_TYPE:
            raise InvalidGrammarError(f"grammar: the Arrow type is {array.type}, not {ARROW_TYPE}")
        if len(array) != 1 or array.null_count:
            raise InvalidGrammarError(f"grammar: expected one struct, got {len(array)}")
        try:
            array.validate(full=True)
        except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
            raise InvalidGrammarError(f"grammar: broken Arrow data: {error}") from error
        version = array.field("version")[0].as_py()
        if version != VERSION:
            raise InvalidGrammarError(f"grammar: format version {version}, this release reads {VERSION}")
        tokenizer = array.field("tokenizer")[0].as_py()
        if tokenizer is None:
            raise InvalidGrammarError("grammar: the tokenizer's name is missing")
        cells = {name: _values(array.field(name), name) for name in ARROW_TYPE.names[:6]}
        grammar = cls(
            vocabulary=cells["vocabulary"],
            rule_offsets=cells["rule_offsets"].to_numpy(),
            symbols=cells["symbols"].to_numpy(),
            level_offsets=cells["level_offsets"].to_numpy(),
            gap_vocabulary=cells["gap_vocabulary"],
            predicted_gaps=cells["predicted_gaps"].to_numpy(),
            tokenizer=tokenizer,
        )
        grammar.check()
        return grammar

    def check(self) -> None:
        """Check everything that kernels rely on.

        Raises
        ------
        InvalidGrammarError
            An array, an offset, a level or a symbol is wrong, a word occurs twice, or a rule is cyclic.
        LimitExceededError
            A rule expands to more words than ``Config(expansion_limit=)``.

        Examples
        --------
        >>> tadoc.column.split(pl.Series(["to be or not to be"]).tadoc.compress())[0].grammar.check()

        """
        if self.vocabulary_size + max(self.rule_count, 0) >= 1 << 32:
            raise InvalidGrammarError("grammar: more words and rules than 32-bit symbols can number")
        if not self.words.are_distinct:
            raise InvalidGrammarError("grammar: the vocabulary holds a word twice")
        self.expansion_lengths  # noqa: B018 - the check
        if len(self.predicted_gaps) != self.vocabulary_size + len(self.symbols):
            raise InvalidGrammarError("grammar: predicted_gaps does not have one entry for each word and symbol")
        if len(self.gap_vocabulary) >= 1 << 31:
            raise InvalidGrammarError("grammar: more gaps than 31-bit codes can number")
        if self.predicted_gaps.max(initial=0) > len(self.gap_vocabulary):
            raise InvalidGrammarError("grammar: predicted_gaps has a code that gap_vocabulary lacks")


def _too_long(rule: str, limit: int) -> LimitExceededError:
    return LimitExceededError(
        f"grammar: {rule} expands to more than {limit:,} words; "
        "if the data is trusted, raise the limit: tadoc.Config(expansion_limit=…)"
    )


def _cell(values: pa.Array) -> pa.Array:
    offsets = copied(np.array([0, len(values)], np.int64))
    return pa.LargeListArray.from_arrays(offsets, values)


def _values(column: Any, name: str) -> Any:
    if column.null_count or column[0].values is None or column[0].values.null_count:
        raise InvalidGrammarError(f"grammar: {name} contains nulls")
    return column[0].values
