"""Compresses a String column: tokenizes, makes rules, builds the column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict, Unpack

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.compress.append import RecentGrammar, encode, row_bytes
from polars_tadoc.compress.encode_beside import EncodingBeside, Encodings
from polars_tadoc.compress.known_words import number_by_dictionary
from polars_tadoc.config import asked_progress
from polars_tadoc.dictionary.dictionary import Dictionary, require_dictionary
from polars_tadoc.engine.choose import Engine, EngineOption, choose, engines_for, map_on, require_engine
from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.engine.progress import BlockProgress, bar_of
from polars_tadoc.errors import EngineUnavailableError, InvalidGrammarError
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.repair.compressed import AUTO_RULES, METHODS, NO_RULES, SMALL_RULES, Compressed
from polars_tadoc.kernels.repair.gaps import predict_gaps
from polars_tadoc.kernels.repair.lines.repeated_lines import Gaps
from polars_tadoc.kernels.repair.prune import LevelledRules
from polars_tadoc.kernels.tokenize.tokenizer import BUILT_IN, Tokenizer, Tokens, require_utf8, tokenize
from polars_tadoc.model import column, payload
from polars_tadoc.model.blocks import cut_blocks
from polars_tadoc.model.column import require_series, require_string, require_tadoc
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.model.grammar_cache import grammars
from polars_tadoc.model.text_type import DTYPE, STORAGE, in_form, result_type
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, array_dataclass
from polars_tadoc.runtime.arrow_memory import string_sizes
from polars_tadoc.runtime.documented import with_imports
from polars_tadoc.runtime.interrupts import interruptible
from polars_tadoc.runtime.option_signature import Default, takes_options
from polars_tadoc.runtime.plain_name import plain

ROWS_PER_GRAMMAR = 250_000
"""About one Parquet row group, so that a file has little more than one copy of each payload."""

BYTES_PER_GRAMMAR = 1 << 28
"""Maximum text bytes of one grammar's rows (about 2^26 words); a longer single row still has one grammar."""

GPU_REPAYS_AT = 1 << 20
"""Text bytes from which "auto" uses a GPU (``benchmarks/gpu_compress.py``)."""

EFFORTS = {"default": METHODS[0], "fast": NO_RULES, "small": SMALL_RULES, "auto": AUTO_RULES}
"""How much work goes into rules, and the method of making them."""

MIN_REUSED = 0.1
"""Minimum share of rows for reusing a grammar: with fewer, the saving does not repay a second grammar's cost."""


class LikeOption(TypedDict, total=False):
    """Whose grammar is taken."""

    like: Annotated[pl.Series | None, Default(None)]


class RuleOptions(TypedDict, total=False):
    """How words are cut and numbered, and how rules are made of them."""

    dictionary: Annotated[Dictionary | None, Default(None)]
    tokenizer: Annotated[str | re.Pattern[str] | None, Default(None)]
    method: Annotated[str, Default("batch_repair")]
    effort: Annotated[str, Default("default")]


class LosslessLikeOption(TypedDict, total=False):
    """Whether separators are kept; None: as an existing grammar does."""

    lossless: Annotated[bool | None, Default(None)]


class LosslessOption(TypedDict, total=False):
    """Whether separators are kept."""

    lossless: Annotated[bool, Default(True)]


class RowsOption(TypedDict, total=False):
    """How many rows share a grammar."""

    rows_per_grammar: Annotated[int | None, Default(None)]


class ShownOption(TypedDict, total=False):
    """Whether a progress bar is shown; also by expressions."""

    progress: Annotated[bool | None, Default(None)]


class CompressOnWorkers(RuleOptions, LosslessLikeOption, RowsOption, ShownOption, total=False):
    """Options of :func:`compress` where workers settle the engine."""


class CompressOnSpark(RuleOptions, LosslessOption, RowsOption, EngineOption, total=False):
    """Options of :func:`compress` on Spark."""


class CompressOptions(LikeOption, CompressOnWorkers, EngineOption, total=False):
    """Options of :func:`compress`."""


@dataclass(frozen=True)
class Compression:
    """The checked options of one compression."""

    tokenizer: Tokenizer
    method: str
    lossless: bool
    rows_per_grammar: int | None
    """None: the default of the call."""
    progress: bool | None
    """None: as ``tadoc.Config`` says."""
    engine: str
    recent: RecentGrammar | None = None
    """A grammar to encode rows with if that saves bytes."""
    dictionary: Dictionary | None = None
    """Numbers the words."""
    cached: bool = True
    """Whether to cache new grammars in decoded form."""
    dtype: pl.DataType = DTYPE
    """Type of the result: ``tadoc.Text``, or the struct."""

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[CompressOptions]) -> Compression:
        """Check the arguments of :func:`compress`; errors as there."""
        like, dictionary, tokenizer = options["like"], options["dictionary"], options["tokenizer"]
        method, lossless, rows_per_grammar = options["method"], options["lossless"], options["rows_per_grammar"]
        effort = options["effort"]
        engine = options["engine"]
        if method not in METHODS:
            raise ValueError(f'method={method!r}: use "batch_repair" or "sequitur"')
        if effort not in EFFORTS:
            raise ValueError(f'effort={effort!r}: use "default", "fast", "small" or "auto"')
        if effort != "default":
            if method != METHODS[0]:
                raise ValueError(f'method={method!r}: effort="{effort}" settles how rules are made; pass only one')
            method = EFFORTS[effort]
        if lossless is not None and not isinstance(lossless, bool):
            raise TypeError(f"lossless={lossless!r} must be True or False")
        if rows_per_grammar is not None and (
            not isinstance(rows_per_grammar, int) or isinstance(rows_per_grammar, bool) or rows_per_grammar < 1
        ):
            raise ValueError(f"rows_per_grammar={rows_per_grammar!r} must be an integer of at least 1")
        asked = require_engine(engine)
        if not _rule_engines(asked, method):
            raise EngineUnavailableError(f'engine="{asked}": "{method}" is sequential; use engine="cpu"')
        cut = None if tokenizer is None else Tokenizer.from_argument(tokenizer)
        if dictionary is not None:
            require_dictionary(dictionary, "compress")
            if like is not None:
                raise ValueError(
                    "compress: like= numbers words as its grammar does, dictionary= as the dictionary does; use only "
                    "one: rows compressed with the same dictionary can be concatenated as they are"
                )
        recent = None
        if like is not None:
            if not isinstance(like, pl.Series):
                raise TypeError(
                    f'compress: like= takes a compressed Series, such as df["text"], not {type(like).__name__}'
                )
            require_tadoc(like, "compress(like=)")
            recent = RecentGrammar.of(like)
        if recent is None:
            if like is not None and cut is None:
                raise ValueError(
                    "compress: like= has only null rows, so its tokenizer is unknown; pass "
                    'tokenizer="words" (the default without like=) or another one'
                )
            cut = cut or Tokenizer("words")
            lossless = True if lossless is None else lossless
        else:
            own = named_tokenizer(recent.corpus.grammar)
            require_known(own, "compress: like=")
            if cut not in (None, own):
                raise ValueError(f'compress: like= has tokenizer "{own.name}", not "{cut.name}"; pass only one')
            cut = own
            if lossless not in (None, recent.lossless):
                recent = None  # its grammar cannot be reused, its tokenizer can
            else:
                lossless = recent.lossless
        return cls(
            cut,
            method,
            lossless,
            rows_per_grammar,
            asked_progress(),
            asked,
            recent,
            dictionary,
            dtype=result_type() if like is None else like.dtype,
        )

    def engine_for(self, size: int) -> Engine:
        """Choose the engine for a number of bytes; no other function chooses."""
        able = _rule_engines(self.engine, self.method)
        return able[0] if len(able) == 1 else choose(self.engine, size, GPU_REPAYS_AT, "text")

    def run(self, text: pl.Series) -> pl.Series:
        """Compress a String series."""
        require_series(text, "compress")
        require_string(text.name, text.dtype, "compress")
        named, text = text, plain(text.rechunk())
        sizes = string_sizes(text)
        # sizes are computed first: threads must not call Polars, all of whose threads may be waiting for them
        cuts, before = list(cut_grammars(sizes, self.rows_per_grammar)), running_sum(sizes)
        del sizes
        blocks = [(text.slice(start, stop - start), before[start : stop + 1]) for start, stop in cuts]
        engines = [self.engine_for(int(own[-1] - own[0])) for _, own in blocks]
        on_device = blocks if all(engine.resident is not None for engine in engines) else []
        with interruptible(), bar_of(len(text), "compress", self.progress) as bar, Encodings(on_device) as encodings:
            batches = DeviceBatches("compress", self.engine)

            def make_like(rows: tuple[pl.Series, Int64], recent: RecentGrammar) -> pl.Series:
                block, own = rows
                with BlockProgress(bar, len(block)) as shown:
                    return _compress_like(block, own, self, recent, shown, batches)

            def make_rules(rows: tuple[pl.Series, Int64]) -> list[_Ruled]:
                block, own = rows
                with BlockProgress(bar, len(block)) as shown:
                    return _make_rules(block, own, self, shown, batches, encodings)

            def encode(made: list[_Ruled]) -> pl.Series:
                return _column([_encode_rows(rows, self) for rows in made], self)

            try:
                if self.recent:  # encoding with an existing grammar calls Polars
                    parts = [make_like(block, self.recent) for block in blocks]
                else:
                    parts = map_on(engines, make_rules, encode, blocks)
            except ValueError:
                require_utf8(named)  # names the row of the whole column
                raise
        return in_form((pl.concat(parts) if parts else pl.Series(dtype=STORAGE)).alias(named.name), self.dtype)


@with_imports
@takes_options
def compress(text: pl.Series, **options: Unpack[CompressOptions]) -> pl.Series:
    r"""Compress a String series into a grammar-compressed one.

    Parameters
    ----------
    text
        String series; null rows stay null.
    like
        Compressed series that the new rows will be appended to. Rows whose words are all in its grammar are encoded
        with its words and rules, if that takes fewer bytes than a new grammar for all rows; the grammar is the one that
        most of its last 250,000 rows use. The result has the new rows only:
        ``pl.concat([column, tadoc.compress(text, like=column)])``.
    dictionary
        Numbers the words, so that they have the same ids in all columns compressed with it: every grammar's vocabulary
        begins with all words of the dictionary, in order of their ids, whether they occur or not; other words follow.
        Results do not change; results over several such columns are merged faster. Cannot be combined with ``like``.
        Each grammar stores the whole dictionary, about four bytes of payload per word: 0.4 MB for 100,000 words.
    tokenizer
        Default: that of ``like``, which must have a non-null row, else ``"words"``.

        - ``"words"``: runs of Unicode word characters (as ``\w+`` in Polars); each Han or kana character is a word.
        - ``"whitespace"``: the parts that Python's ``str.split()`` returns.
        - ``"xml"``: whole tags with their attributes, comments, CDATA sections and so on, and the words of the text
          between them.
        - ``"code"``: names with dots, and ``++`` or ``#`` after them: ``foo_bar``, ``a.b.c``, ``C++``. An index also
          finds the parts of such words. Slower than ``"words"``: Polars' regex engine runs it.
        - a compiled regex whose matches are the words (run by Polars' regex engine: no look-around, no
          back-references).
    method
        How rules are made: ``"batch_repair"`` (:mod:`polars_tadoc.kernels.repair.batch_repair`), or ``"sequitur"``, the
        algorithm of the TADOC papers (Nevill-Manning and Witten, 1997), for comparison.
    effort
        How much work goes into rules. Results are the same.

        - ``"default"``.
        - ``"fast"``: no rules are made, rows are word ids only. Compressing is faster, but columns are larger, and
          analytics read every word.
        - ``"small"``: more rounds, which take longer, and rules numbered by first use. Columns and Parquet files are up
          to 2 % smaller, files of ``write_packed(effort="small")`` 1 to 4 %; those of short rows become smaller by a
          larger ``rows_per_grammar``.
        - ``"auto"``: ``"default"`` for each grammar of whose words rules save three tenths in a sample, else
          ``"fast"``. ``words_only`` of ``info`` counts the grammars that got ``"fast"``.
    lossless
        Whether to keep the separators between words; by default as in ``like``, else true. Without them, ``decompress``
        returns the words joined by single spaces.
    rows_per_grammar
        Consecutive rows per grammar; by default 250,000, or 100,000 in a lazy frame (one row group of
        ``sink_parquet``). A grammar also ends at 256 MiB of text.
    progress
        Whether to show a progress bar (tqdm) on standard error; by default as ``tadoc.Config`` says.
    engine
        "auto", "cpu" or "gpu"; by default the engine of ``tadoc.Config``.

    Returns
    -------
    Series of type ``tadoc.Text``
        Or the type of ``like`` if given, else that of ``Config(column_type=)``. Same length and name as ``text``.

    Raises
    ------
    TypeError
        The series is not String, ``like`` is not a series, ``dictionary`` not a ``tadoc.Dictionary``, or ``lossless``
        or ``progress`` not a bool.
    NotCompressedError
        ``like`` is not a compressed column.
    ValueError
        The tokenizer, method, effort or engine is unknown, an effort is combined with a method, Polars cannot
        run the regex, the tokenizer differs from that of ``like``, ``like`` has only null rows and ``tokenizer`` is
        missing, or ``like`` and ``dictionary`` are combined.
    InvalidDictionaryError
        ``dictionary`` was loaded unverified, and its file is damaged.
    EngineUnavailableError
        ``engine="gpu"`` cannot run here, or not with this method.

    Examples
    --------
    >>> column = tadoc.compress(pl.Series("text", ["to be, or not to be", None, ""]))
    >>> tadoc.decompress(column).to_list()
    ['to be, or not to be', None, '']

    """
    return Compression.from_arguments(**options).run(text)


def cut_grammars(sizes: Int64, rows_per_grammar: int | None) -> Iterator[tuple[int, int]]:
    """Cut rows of the given text bytes into blocks of one grammar each."""
    return cut_blocks(sizes, rows_per_grammar or ROWS_PER_GRAMMAR, BYTES_PER_GRAMMAR)


def _compress_like(
    text: pl.Series, before: Int64, how: Compression, recent: RecentGrammar, bar: BlockProgress, batches: DeviceBatches
) -> pl.Series:
    """Compress a block with an existing grammar if that takes fewer bytes than a new one for all rows."""
    valid = text.is_not_null().to_numpy()
    encoded, rows = encode(tokenize(text, how.tokenizer, lossless=how.lossless), recent, valid)
    anew = _compress_rows(text, before, how, bar, batches)
    if len(rows) < MIN_REUSED * np.count_nonzero(valid):
        return _column(anew, how)
    place = np.full(len(text), -1, np.int64)
    place[rows] = np.arange(len(rows))
    rest = np.flatnonzero((place < 0) & valid)
    others = []
    if len(rest):
        others = _compress_rows(text.gather(rest), running_sum(np.diff(before)[rest]), how, bar, batches)
    if row_bytes(encoded) + sum(block.nbytes for block in others) > sum(block.nbytes for block in anew):
        return _column(anew, how)
    mixed = encoded
    if others:
        place[rest] = np.arange(len(rows), len(rows) + len(rest))
        mixed = pl.concat([encoded, _column(others, how)])
    return column.gather_or_null(mixed, place)


@array_dataclass
class _Block:
    """Compressed rows that share one grammar, before a column is made of them.

    A payload becomes a category, which lives as long as any compressed column; blocks that are only compared must not.
    """

    grammar: Grammar
    payload: pa.Buffer
    root_offsets: Int64
    roots: UInt32
    gap_offsets: Int64
    gap_data: UInt8 | None
    """None if gaps are not kept."""
    valid: pl.Series | None

    @property
    def nbytes(self) -> int:
        """Bytes of the payload, the rows' symbols and their gaps."""
        gap_bytes = 0 if self.gap_data is None else self.gap_data.nbytes
        return int(self.payload.size) + self.roots.nbytes + gap_bytes

    def column(self, *, cached: bool) -> pl.Series:
        """Make the column; if ``cached``, keep the grammar in the cache."""
        if cached:
            grammars.put(payload.key(self.payload), self.grammar)
        return column.build(self.payload, self.root_offsets, self.roots, self.gap_offsets, self.gap_data, self.valid)


_Ruled = tuple[Compressed, pl.Series | None, EncodingBeside | None]
"""One grammar and its rows; which rows are not null, None: all; its payload, if it is being made."""


def _column(blocks: list[_Block], how: Compression) -> pl.Series:
    return pl.concat([block.column(cached=how.cached) for block in blocks])


def _compress_rows(
    text: pl.Series, before: Int64, how: Compression, bar: BlockProgress, batches: DeviceBatches
) -> list[_Block]:
    """Compress rows that share one grammar, or several if a GPU has too little memory to make one for all."""
    return [_encode_rows(rows, how) for rows in _make_rules(text, before, how, bar, batches)]


def _make_rules(
    text: pl.Series,
    before: Int64,
    how: Compression,
    bar: BlockProgress,
    batches: DeviceBatches,
    encodings: Encodings | None = None,
) -> list[_Ruled]:
    """Do the part of :func:`_compress_rows` that an engine does; ``before`` has the text bytes before each row."""

    def work(first: int, stop: int, engine: Engine) -> _Ruled:
        rows = text[first:stop] if stop - first < len(text) else text
        valid = rows.is_not_null() if rows.null_count() else None
        options: Any = {"method": how.method, "lossless": how.lossless, "on_round": bar.round}
        if encodings is None or how.dictionary is not None:  # which numbers the words again
            return engine.kernels.compress_rows(rows, how.tokenizer, **options), valid, None
        made, encoding = encodings.compress_rows(engine, rows, how.tokenizer, **options)
        return made, valid, encoding

    return list(batches.each(how.engine_for(int(before[-1] - before[0])), before, work, "bytes"))


def _encode_rows(rows: _Ruled, how: Compression) -> _Block:
    """Do the part of :func:`_compress_rows` that the host does."""
    made, valid, encoding = rows
    gaps = (made.predicted_gaps, made.gap_offsets, made.gap_data)
    return _encode(made.vocabulary, made.gap_vocabulary, made.rules, gaps, how, valid, encoding)


def build_rules(tokens: Tokens, rows: int, how: Compression, bar: BlockProgress) -> LevelledRules:
    """Make the rules of rows that are word ids already; overwrites ``tokens.sequence``."""
    size = 4 * len(tokens.sequence)

    def work(_first: int, _stop: int, engine: Engine) -> LevelledRules:
        size = len(tokens.vocabulary)
        gaps = Gaps(tokens.gap_vocabulary, tokens.gap_offsets, tokens.gap_data) if how.lossless else None
        return engine.kernels.build_rules(tokens.sequence, size, rows, method=how.method, on_round=bar.round, gaps=gaps)

    batches = DeviceBatches("recompress", how.engine)  # the rows of one grammar stay together
    (rules,) = batches.each(how.engine_for(size), np.array([0, size]), work, "bytes")
    return rules


def _rule_engines(asked: str, method: str) -> list[Engine]:
    """List the engines, of those that ``engine=`` allows, that support a method."""
    return [engine for engine in engines_for(asked) if method in engine.kernels.RULE_METHODS]


def assemble(tokens: Tokens, rules: LevelledRules, how: Compression, valid: pl.Series | None) -> pl.Series:
    """Build the rows of one grammar; ``valid`` is false for null rows, None if there are none."""
    made = _encode(tokens.vocabulary, tokens.gap_vocabulary, rules, predict_gaps(tokens, rules), how, valid)
    return made.column(cached=how.cached)


def _encode(
    vocabulary: pa.LargeStringArray,
    gap_vocabulary: pa.LargeStringArray,
    rules: LevelledRules,
    gaps: tuple[UInt32, Int64, UInt8],
    how: Compression,
    valid: pl.Series | None,
    encoding: EncodingBeside | None = None,
) -> _Block:
    predicted_gaps, gap_offsets, gap_data = gaps
    if how.dictionary is not None:
        known = number_by_dictionary(how.dictionary, vocabulary, rules, predicted_gaps, how.engine)
        vocabulary, rules, predicted_gaps = known
    grammar = Grammar(
        vocabulary=vocabulary,
        rule_offsets=rules.rule_offsets,
        symbols=rules.symbols,
        level_offsets=rules.level_offsets,
        gap_vocabulary=gap_vocabulary,
        predicted_gaps=predicted_gaps,
        tokenizer=how.tokenizer.name,
    )
    encoded = payload.encode_text(grammar) if encoding is None else encoding.payload()
    kept = gap_data if how.lossless else None
    return _Block(grammar, encoded, rules.root_offsets, rules.roots, gap_offsets, kept, valid)


def named_tokenizer(grammar: Grammar) -> Tokenizer:
    """Return the tokenizer of a grammar."""
    return Tokenizer.named(grammar.tokenizer)


def require_known(tokenizer: Tokenizer, what: str) -> None:
    """Raise ``InvalidGrammarError`` unless this release has a grammar's tokenizer; ``what`` names the grammar."""
    if tokenizer.name in BUILT_IN:
        return
    problem = None
    if tokenizer.pattern is not None:
        try:
            pl.Series([""]).str.extract_all(tokenizer.pattern)
            return
        except pl.exceptions.ComputeError as error:
            problem = error
    raise InvalidGrammarError(f'{what}: its tokenizer "{tokenizer.name}" does not exist in this release') from problem
