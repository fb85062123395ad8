"""How often rows hold a phrase, and which rows hold one of several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.arrow import allocate
from polars_tadoc.cache import ByteLRU
from polars_tadoc.column import gather_or_null, require_tadoc, split
from polars_tadoc.compress import characters
from polars_tadoc.compress.compress import named_tokenizer, require_known
from polars_tadoc.compress.tokenize import Tokenizer, tokenize
from polars_tadoc.config import settings
from polars_tadoc.corpus import Corpus, require_countable
from polars_tadoc.kernels.cpu import load_rules
from polars_tadoc.kernels.cpu import phrase_words as word_kernels
from polars_tadoc.kernels.cpu import phrases as kernels
from polars_tadoc.kernels.cpu.bodies import read_only
from polars_tadoc.kernels.cpu.image import map_roots, map_rules
from polars_tadoc.kernels.cpu.parallel import map_parallel, weighted_chunks
from polars_tadoc.kernels.cpu.tokenize import BLOCK, SEPARATOR
from polars_tadoc.kernels.rules import Rules
from polars_tadoc.morphism import Morphism, encode
from polars_tadoc.rows.automaton import build_automaton
from polars_tadoc.vocabulary import Vocabulary

UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]

FEW_ROWS = 4
"""Rows are searched for touched symbols first where less than one in so many has one."""

SAMPLE = 1 << 10
"""Symbols that this is estimated from."""

CHUNK = 1 << 17
"""Symbols that are worth another thread where each must be matched."""

SKIPPED = 1 << 20
"""Symbols that are where most are skipped."""


def count_phrase(
    column: pl.Series,
    phrase: str,
    *,
    normalize: pl.Expr | None = None,
    lowercase: bool = False,
    stopwords: Iterable[str] | None = None,
) -> pl.Series:
    """Count how often each row holds a phrase, without expanding it.

    The phrase is cut into words as the column's text was; whatever stands between the words does not matter.
    Occurrences may overlap, as :func:`sequence_count` counts them. Each rule is matched once, with an automaton that
    knows the state after it (Kida et al., SPIRE 1999); rules without a word of the phrase are not read.

    Parameters
    ----------
    column
        Compressed column.
    phrase
        Words that follow one another.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String, or to null to leave it out; it is
        applied to the words of text and phrase alike. The neighbours of words left out become neighbours of each other.
    lowercase
        Lower-case words (after ``normalize``), and the stop words with them.
    stopwords
        Words to leave out, compared after ``normalize`` and lower-casing.

    Returns
    -------
    UInt64 series
        One number per row; null where the row is null.

    Raises
    ------
    NotCompressedError
        The series is not a compressed column.
    InvalidGrammarError
        A payload or a row is damaged, or was cut by a tokenizer that this release does not have.
    LimitExceededError
        The rows stand for more words than 64 bits count.
    TypeError
        ``phrase`` is no string, ``normalize`` no expression or ``stopwords`` no list of strings.
    ValueError
        The phrase has no word, or ``normalize`` reads columns or gives anything but one String or null for each word.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> column = pl.Series("text", ["to be, or not to be", "be", None]).tadoc.compress()
    >>> tadoc.count_phrase(column, "to be").to_list()
    [2, 0, None]

    """
    morphism = Morphism.from_arguments(normalize, lowercase, stopwords)
    return Request.of_phrase("count_phrase", phrase, morphism).run(column)


def contains_phrase(
    column: pl.Series,
    phrase: str,
    *,
    normalize: pl.Expr | None = None,
    lowercase: bool = False,
    stopwords: Iterable[str] | None = None,
) -> pl.Series:
    """Tell which rows hold a phrase, as :func:`count_phrase` finds it.

    Parameters
    ----------
    column
        Compressed column.
    phrase
        Words that follow one another.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String, or to null to leave it out; it is
        applied to the words of text and phrase alike, as for :func:`count_phrase`.
    lowercase
        Lower-case words (after ``normalize``), and the stop words with them.
    stopwords
        Words to leave out, compared after ``normalize`` and lower-casing.

    Returns
    -------
    Boolean series
        One value per row; null where the row is null.

    Raises
    ------
    NotCompressedError, InvalidGrammarError, LimitExceededError, TypeError, ValueError
        As :func:`count_phrase`.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> column = pl.Series("text", ["To be, or not to be", "be", None]).tadoc.compress()
    >>> tadoc.contains_phrase(column, "not to").to_list()
    [True, False, None]

    """
    morphism = Morphism.from_arguments(normalize, lowercase, stopwords)
    return Request.of_phrase("contains_phrase", phrase, morphism).run(column)


def contains_any(
    column: pl.Series,
    phrases: Iterable[str],
    *,
    normalize: pl.Expr | None = None,
    lowercase: bool = False,
    stopwords: Iterable[str] | None = None,
) -> pl.Series:
    """Tell which rows hold at least one of several phrases, all found in one pass.

    Parameters
    ----------
    column
        Compressed column.
    phrases
        Phrases; where there are none, no row holds one.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String, or to null to leave it out; it is
        applied to the words of text and phrase alike, as for :func:`count_phrase`.
    lowercase
        Lower-case words (after ``normalize``), and the stop words with them.
    stopwords
        Words to leave out, compared after ``normalize`` and lower-casing.

    Returns
    -------
    Boolean series
        One value per row; null where the row is null.

    Raises
    ------
    NotCompressedError, InvalidGrammarError, LimitExceededError, TypeError, ValueError
        As :func:`count_phrase`; each phrase must have a word.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> column = pl.Series("text", ["to be", "or not", None]).tadoc.compress()
    >>> tadoc.contains_any(column, ["not to", "to be"]).to_list()
    [True, False, None]

    """
    return Request.of_phrases(phrases, Morphism.from_arguments(normalize, lowercase, stopwords)).run(column)


def _require_phrase(phrase: object, argument: str) -> str:
    if not isinstance(phrase, str):
        raise TypeError(f"{argument}={phrase!r} must be a string")
    try:
        phrase.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{argument}={phrase!r} is not text: {error.reason}") from None
    return phrase


@dataclass(frozen=True, eq=False)
class Request:
    """What is to be found, checked when it is made.

    Parameters
    ----------
    call
        The call's name, for messages.
    phrases
        Text of each phrase.
    morphism
        Which words are taken for equal, which are left out.
    once
        Tell whether there is a match, instead of how many.

    """

    call: str
    phrases: tuple[str, ...]
    morphism: Morphism | None
    once: bool

    @classmethod
    def of_phrase(cls, call: str, phrase: object, morphism: Morphism | None) -> Request:
        """Look for one phrase; errors as :func:`count_phrase`'s."""
        return cls(call, (_require_phrase(phrase, "phrase"),), morphism, once=call != "count_phrase")

    @classmethod
    def of_phrases(cls, phrases: object, morphism: Morphism | None) -> Request:
        """Look for any of several phrases; errors as :func:`contains_any`'s."""
        if isinstance(phrases, str) or not isinstance(phrases, Iterable):
            raise TypeError(f"phrases={phrases!r} is not a list of strings")
        return cls("contains_any", tuple(_require_phrase(own, "phrases: every one") for own in phrases), morphism, True)

    @property
    def dtype(self) -> pl.DataType:
        """Type of the result."""
        return pl.Boolean() if self.once else pl.UInt64()

    def run(self, column: pl.Series) -> pl.Series:
        """Find the phrases in each row."""
        require_tadoc(column, self.call)
        corpora = split(column)
        require_countable(corpora)
        texts: dict[str, _Words] = {}
        buffer, counts = allocate(sum(corpus.document_count for corpus in corpora), np.uint64)
        counts[:] = 0
        at = 0
        for corpus in corpora:
            name = corpus.grammar.tokenizer
            if name not in texts:
                tokenizer = named_tokenizer(corpus.grammar)
                require_known(tokenizer, f"{self.call}: the column")
                texts[name] = _Words.cut(self.phrases, tokenizer)
                self._require_words(texts[name].offsets)
            self._count(corpus, texts[name], counts[at : at + corpus.document_count])
            at += corpus.document_count
        if self.once:
            values = pl.Series(column.name, counts != 0)
        else:
            array = pa.UInt64Array.from_buffers(pa.uint64(), len(counts), [None, buffer])
            values = cast(pl.Series, pl.from_arrow(array)).alias(column.name)
        if len(corpora) == 1 and len(counts) == len(column):
            return values
        place = np.full(len(column), -1, np.int64)
        rows = np.concatenate([np.zeros(0, np.int64), *(corpus.rows for corpus in corpora)])
        place[rows] = np.arange(len(rows))
        return gather_or_null(values, place).alias(column.name)

    def _require_words(self, offsets: Int64, after: str = "") -> None:
        for own, (first, stop) in enumerate(pairwise(offsets.tolist())):
            if first == stop:
                raise ValueError(f"{self.call}: the phrase {self.phrases[own]!r} has no word{after}")

    def _count(self, corpus: Corpus, words: _Words, found: UInt64) -> None:
        """Count the matches in each document of a corpus into ``found``, all zero at first."""
        grammar, plain = corpus.grammar, load_rules(corpus.grammar)
        if self.morphism is None:
            target = _Target(plain, corpus.root_offsets, corpus.roots, corpus.key, None)
            return target.count(words.find(grammar.words), words.offsets, self.once, found)
        size = len(grammar.words)
        images = self.morphism.images(pl.concat([grammar.words.series, words.series]).rechunk())
        kept = images.slice(size).is_not_null().to_numpy()
        offsets = np.append(0, np.cumsum(kept))[words.offsets]
        self._require_words(offsets, " left")
        if images.head(size).null_count():
            image = encode(images)
            own = image.ids[:size]
            mapped = map_rules(plain, own, len(image.words))
            root_offsets, roots = map_roots(plain, corpus.root_offsets, corpus.roots, own, mapped)
            given = image.ids[size:][kept]
            return _Target(mapped, root_offsets, roots, None, None).count(given, offsets, self.once, found)
        # the rules are good as they are: what is written alike now is of one class
        wanted = images.slice(size).drop_nulls()
        numbers = {word: number for number, word in enumerate(wanted.unique(maintain_order=True).to_list())}
        terminals = images.head(size).is_in(wanted.unique().implode()).arg_true()
        stands = terminals.to_numpy(), _numbered(images.gather(terminals), numbers)
        target = _Target(plain, corpus.root_offsets, corpus.roots, corpus.key, stands)
        return target.count(_numbered(wanted, numbers), offsets, self.once, found)


def _numbered(words: pl.Series, numbers: dict[str, int]) -> UInt32:
    return np.array([numbers[word] for word in words.to_list()], np.uint32)


@dataclass(frozen=True, eq=False)
class _Words:
    """The words of phrases.

    Parameters
    ----------
    data
        UTF-8 bytes in which they stand.
    spans
        int64: where each word starts and ends, one after another.
    offsets
        int64, phrases + 1: the first word of each phrase.

    """

    data: npt.NDArray[np.uint8]
    spans: Int64
    offsets: Int64

    @classmethod
    def cut(cls, phrases: tuple[str, ...], tokenizer: Tokenizer) -> _Words:
        """Cut phrases into words."""
        if tokenizer.pattern is not None:
            tokens = tokenize(pl.Series("phrase", phrases, pl.String), tokenizer, lossless=False)
            vocabulary = [word.encode() for word in tokens.vocabulary.to_pylist()]
            ends = np.flatnonzero(tokens.sequence == SEPARATOR)
            words = [vocabulary[word] for word in tokens.sequence.tolist() if word != SEPARATOR]
            stops = np.cumsum([0, *map(len, words)])
            data = np.frombuffer(b"".join(words), np.uint8)
            spans = np.stack([stops[:-1], stops[1:]], axis=1).reshape(-1)
            return cls(data, spans, np.append(0, ends - np.arange(len(ends))))
        encoded = [phrase.encode() for phrase in phrases]
        data = np.frombuffer(b"".join(encoded), np.uint8)
        spans, offsets = np.empty(2 * len(data), np.int64), np.empty(len(phrases) + 1, np.int64)
        count = word_kernels.cut_words(
            data,
            np.cumsum([0, *map(len, encoded)]),
            characters.classes(tokenizer.name),
            np.empty(BLOCK, np.uint8),
            spans,
            offsets,
        )
        return cls(data, spans[: 2 * count], offsets)

    @property
    def series(self) -> pl.Series:
        """The words as a String series."""
        data, spans = self.data.tobytes(), self.spans.tolist()
        words = [data[start:stop].decode() for start, stop in zip(spans[::2], spans[1::2], strict=True)]
        return pl.Series("word", words, pl.String)

    def find(self, vocabulary: Vocabulary) -> UInt32:
        """Return each word's id, ``UNKNOWN`` where the vocabulary does not have it."""
        ids = np.empty(len(self.spans) // 2, np.uint32)
        word_kernels.find_words(self.data, self.spans, vocabulary.offsets, vocabulary.data, vocabulary.by_rank, ids)
        return ids


class _Space(NamedTuple):
    """Work space of one call: memory that is new each time would take longer to come by than to use."""

    classes: UInt32
    """All zero between calls."""
    matches: kernels.Matches
    """None touched between calls."""

    @classmethod
    def of(cls, rules: Rules) -> _Space:
        size = rules.terminals + rules.rule_count
        matches = kernels.Matches(np.zeros(size, np.uint8), np.empty(size, np.uint32), np.empty(size, np.uint64))
        return cls(np.zeros(rules.terminals, np.uint32), matches)


class _Links(NamedTuple):
    """Rules with the way back from symbols to the rules that name them."""

    text: kernels.Text
    owners: kernels.Owners
    spaces: list[_Space]
    """One for each call that ran at the same time as others; a call takes one away while it runs."""

    @classmethod
    def of(cls, rules: Rules, key: str | None) -> _Links:
        """Link rules; those of a grammar (by its key) are kept for the next call."""
        found = None if key is None else _links.get(key)
        if found is not None:
            return found
        size = rules.terminals + rules.rule_count
        first_words = np.empty(size, np.uint32)
        text = kernels.Text(rules.terminals, rules.rule_offsets.view(np.uint64), rules.symbols, first_words)
        kernels.find_first_words(text)
        owners = kernels.Owners(np.zeros(size + 2, np.uint32), np.empty(len(rules.symbols), np.uint32))
        kernels.find_owners(text, owners)
        made = cls(text, owners, [_Space.of(rules)])
        return made if key is None else _links.put(key, made)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it holds."""
        arrays = (*self.text[1:], *self.owners, *(own for space in self.spaces for own in (space[0], *space[1])))
        return sum(array.nbytes for array in arrays)


_links: ByteLRU[_Links] = ByteLRU(lambda: settings().host_cache_bytes // 4, lambda links: links.nbytes)
"""Links of grammars that phrases were looked for in."""


@dataclass(frozen=True, eq=False)
class _Target:
    """Rules and documents that phrases are looked for in.

    Parameters
    ----------
    rules, root_offsets, roots
        As kernels take them.
    key
        Names the rules among those kept; None where they are made for one call.
    stands
        uint32: some terminals, and what phrases call each; None where they call all by their ids.

    """

    rules: Rules
    root_offsets: Int64
    roots: UInt32
    key: str | None
    stands: tuple[UInt32, UInt32] | None

    def count(self, words: UInt32, offsets: Int64, once: bool, found: UInt64) -> None:
        """Count matches by document (or tell whether there is one), of phrases given as words under offsets."""
        ids, classes = words.tolist(), dict[int, int]()  # of few words nearly always
        cut = [ids[first:stop] for first, stop in pairwise(offsets.tolist())]
        known = [own for own in cut if word_kernels.UNKNOWN not in own]
        phrases = [[classes.setdefault(word, len(classes) + 1) for word in own] for own in known]
        if not phrases:
            return
        links = _Links.of(self.rules, self.key)
        try:
            space = links.spaces.pop()
        except IndexError:  # another call runs
            space = _Space.of(self.rules)
        terminals = self._classify(np.array(list(classes), np.uint32), space.classes)
        automaton = build_automaton(phrases, space.classes, len(classes) + 1)
        if len(terminals):
            self._match(links, automaton, terminals, space.matches, once, found)
        space.classes[terminals] = 0
        space.matches.touched[:] = 0
        links.spaces.append(space)

    def _classify(self, words: UInt32, classes: UInt32) -> UInt32:
        """Set each terminal's class, the word's place from 1 on; return the terminals that words stand for."""
        places = np.arange(1, len(words) + 1, dtype=np.uint32)
        if self.stands is None:
            classes[words] = places
            return words
        terminals, called = self.stands
        by_name = np.zeros(int(max(called.max(initial=0), words.max(initial=0))) + 1, np.uint32)
        by_name[words] = places
        classes[terminals] = by_name[called]
        return terminals

    def _match(
        self,
        links: _Links,
        automaton: kernels.Automaton,
        words: UInt32,
        matches: kernels.Matches,
        once: bool,
        found: UInt64,
    ) -> None:
        """Match the rules that hold the words, then the documents that hold such rules."""
        levels, rules = len(self.rules.level_offsets), self.rules.rule_count
        stack = np.empty(2 * levels, np.uint64)
        pending, read = _bits(rules, False), _bits(rules, False)
        kernels.match_rules(links.text, automaton, words, links.owners, once, pending, read, stack, matches)
        dense = self._share(matches.touched) * len(self.roots) * FEW_ROWS > len(found)
        roots = read_only(self.roots)

        def match(rows: tuple[int, int]) -> None:
            first, stop = rows
            offsets = self.root_offsets[first : stop + 1].view(np.uint64)
            pending, stack = _bits(stop - first, dense), np.empty(2 * levels, np.uint64)
            if not dense:
                kernels.find_rows(matches.touched, offsets, roots, pending)
            kernels.match_rows(links.text, automaton, matches, offsets, roots, once, pending, stack, found[first:stop])

        smallest = CHUNK if dense and not once else SKIPPED
        chunks = [(0, len(found))] if len(roots) < 2 * smallest else weighted_chunks(self.root_offsets, smallest)
        map_parallel(match, chunks)

    def _share(self, touched: npt.NDArray[np.uint8]) -> float:
        """Estimate which share of the documents' symbols is touched."""
        sample = touched[self.roots[:: max(1, len(self.roots) // SAMPLE)]]
        return np.count_nonzero(sample) / max(1, len(sample))


def _bits(count: int, value: bool) -> UInt64:
    """Return ``count`` bits, 64 in each number."""
    bits = np.zeros(-(-count // 64), np.uint64)
    if value:
        bits[:] = ~np.uint64(0)
        bits[count // 64 :] = (1 << count % 64) - 1
    return bits
