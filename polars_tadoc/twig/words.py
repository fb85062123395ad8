"""Meaning of the words of a compressed XML column for twigs; each distinct word is judged once.

The tokenizer "xml" keeps tags, comments, CDATA sections and so on whole. At positions where they are not allowed it
cuts differently (:mod:`polars_tadoc.kernels.tokenize.xml.xml_words`); words that show this are doubtful. So a word
can be judged alone, except for the nesting of tags and text outside of the root, which follow from the kinds and names
of the words. A document whose words nest and are not doubtful is well-formed, and its events are those of its words.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.kernels.host.xml.xml_roots import first_in_documents, first_in_rules
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize
from polars_tadoc.kernels.tokenize.xml.xml_words import xml_words
from polars_tadoc.kernels.twigs.arrays import CLOSE, DOUBTFUL, EMPTY, NOTHING, OPEN, SHUT, TEXT, WordEvents
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.array_types import Bools, Int64, UInt8, UInt32, array_dataclass
from polars_tadoc.twig.alphabet import Alphabet
from polars_tadoc.twig.tags import DECLARES, Numbers, Tags, parse_tags

MAX_CONTEXTS = 16
"""Maximum sets of namespaces per grammar; rows that declare rarer sets are left to the parser."""

MAX_SPREAD = 1 << 20
"""Maximum (word, text) pairs where a word may be part of several texts; beyond it the parser reads such words."""

_WHITE = rb"[ \t\r\n]"
_EQUAL = rb"[ \t\r\n]*=[ \t\r\n]*"
_NAME = rb"[A-Za-z_][A-Za-z0-9_.\-]*"
_PUBLIC = rb"""(?:"[a-zA-Z0-9 \r\n\-'()+,./:=?;!*#@$_%]*"|'[a-zA-Z0-9 \r\n\-()+,./:=?;!*#@$_%]*')"""
_FORBIDDEN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
_TAG = re.compile(rb"""<([^ \t\r\n<>"'/=]++)[^<>"']*+(?:"[^<"]*+"[^<>"']*+|'[^<']*+'[^<>"']*+)*+>""")
_END_TAG = re.compile(rb"</([^ \t\r\n<>]++)[ \t\r\n]*+>")
_REFERENCE = re.compile(rb"&(?:amp|lt|gt|apos|quot);")
_CHARACTER = re.compile(rb"&#(?:([0-9]{1,9})|x([0-9A-Fa-f]{1,8}));")
_SPACE = ord(" ")
_CDATA = re.compile(rb"<!\[CDATA\[.*\]\]>", re.DOTALL)
# the patterns may miss well-formed words; then the parser decides
_SILENT = re.compile(
    rb"<!--(?:[^\-]|-[^\-])*+-->"
    rb"|<\?(?![Xx][Mm][Ll][ \t\r\n?])" + _NAME + rb"(?:" + _WHITE + rb".*)?\?>"
    rb"|<\?xml" + _WHITE + rb"+version" + _EQUAL + rb"(?:'1\.0'|\"1\.0\")"
    rb"(?:" + _WHITE + rb"+encoding" + _EQUAL + rb"(?:'[A-Za-z][A-Za-z0-9_.\-]*'|\"[A-Za-z][A-Za-z0-9_.\-]*\"))?"
    rb"(?:" + _WHITE + rb"+standalone" + _EQUAL + rb"(?:'(?:yes|no)'|\"(?:yes|no)\"))?" + _WHITE + rb"*\?>"
    rb"|<!DOCTYPE" + _WHITE + rb"+" + _NAME
    + rb"(?:" + _WHITE + rb"+(?:SYSTEM|PUBLIC" + _WHITE + rb"+" + _PUBLIC + rb")"
    + _WHITE + rb"+(?:\"[^\"]*\"|'[^']*'))?" + _WHITE + rb"*>",
    re.DOTALL,
)  # fmt: skip


_DOCTYPE = "<!DOCTYPE"

_NONE, _WHOLE, _OTHER = range(3)
"""A string without words; a string that is one word; any other string."""

_ANY_TEXT = 6
"""Kind of a text that may consist of any words: a CDATA section or a character reference."""


@array_dataclass
class JudgedWords:
    """Words as a parser reads them with some namespaces declared; independent of the twigs."""

    vocabulary: pa.LargeStringArray
    """The words."""
    kinds: UInt8
    names: UInt32
    """``kinds``, ``names``: Per word, as in :class:`~polars_tadoc.kernels.twigs.arrays.WordEvents`."""
    any_text: Bools
    """bool by word: may be any text (CDATA sections, character references)."""
    tag_words: UInt32
    """uint32: words that are well-formed start tags or empty elements; their content is in ``tags``, in this order."""
    tags: Tags
    """Content of the tags."""

    @classmethod
    def of(
        cls, vocabulary: pa.LargeStringArray, namespaces: dict[str, str], miscut: Bools | None = None
    ) -> JudgedWords:
        """Judge words with namespaces declared, by prefix ("" for the default namespace).

        Words in ``miscut`` are doubtful. If it is not given, :func:`miscut_words` computes it, for any namespaces.
        """
        kinds, names = np.full(len(vocabulary), TEXT, np.uint8), np.zeros(len(vocabulary), np.uint32)
        special, written = _special(Vocabulary(vocabulary))
        judged = [_judge(word) for word in written]
        kinds[special] = [kind for kind, _ in judged]
        numbers = Numbers({b"": 0})
        names[special] = [numbers[name] for _, name in judged]
        any_text = kinds == _ANY_TEXT
        kinds[any_text] = TEXT
        doubtful = miscut_words(vocabulary) if miscut is None else miscut
        kinds[doubtful], names[doubtful] = DOUBTFUL, 0
        written_by_word = dict(zip(special.tolist(), written, strict=True))
        opening = np.flatnonzero((kinds == OPEN) | (kinds == EMPTY))
        declares = np.array([DECLARES in written_by_word[word] for word in opening.tolist()], np.bool_)
        opening = np.concatenate([opening[~declares], opening[declares]])  # parse similar tags together
        tags = parse_tags([written_by_word[word] for word in opening.tolist()], namespaces)
        kinds[opening[~tags.sound]] = DOUBTFUL
        tag_words = opening[tags.sound].astype(np.uint32)
        for place, declared in tags.declarations.items():
            if any(namespaces.get(prefix, "") != uri for prefix, uri in declared.items()):
                kinds[tag_words[place]] = DOUBTFUL
        return cls(vocabulary, kinds, names, any_text, tag_words, tags)

    @property
    def nbytes(self) -> int:
        """Approximate memory in bytes."""
        return 30 * len(self.kinds) + self.tags.nbytes

    def events(self, alphabet: Alphabet) -> WordEvents:
        """Return the events of the words for the twigs of an alphabet."""
        tags, owners = self.tags, self.tag_words
        listed = _Listed()
        listed.add(owners, tags.symbols_of_elements(alphabet)[tags.elements])
        named = tags.symbols_of_attributes(alphabet)[tags.attribute_names]
        valued = tags.symbols_of_values(alphabet)[tags.attribute_values]
        attributes = np.stack([named, valued], axis=1).reshape(-1)
        asked = attributes != CLOSE
        listed.add_closed(np.repeat(owners[tags.attribute_tags], 2)[asked], attributes[asked])
        kinds = self._add_texts(listed, alphabet)
        closing = (self.kinds == EMPTY) | (self.kinds == SHUT)
        listed.add(np.flatnonzero(closing), np.array([CLOSE], np.uint32))
        return WordEvents(kinds, self.names, *listed.by_word(kinds != DOUBTFUL))

    def _add_texts(self, listed: _Listed, alphabet: Alphabet) -> UInt8:
        """Add events of texts; return the kinds, doubtful if a word would be part of too many texts."""
        anywhere, by_word = _words_of(alphabet.texts, self.vocabulary)
        kinds = self.kinds
        if by_word:
            listed.add_closed(np.array([word for word, _ in by_word]), np.array([symbol for _, symbol in by_word]))
        every = np.fromiter(alphabet.texts.values(), np.uint32)
        for words, symbols in ((np.flatnonzero(self.any_text), every), (np.flatnonzero(kinds == OPEN), anywhere)):
            if len(words) * len(symbols) <= MAX_SPREAD:
                listed.add_closed(np.repeat(words, len(symbols)), np.tile(symbols, len(words)))
            else:
                kinds = kinds.copy()
                kinds[words] = DOUBTFUL
        return kinds


@array_dataclass
class Declarations:
    """Sets of namespaces that documents of a grammar may declare at their roots."""

    sets: list[dict[str, str]]
    """Each set of namespaces by prefix ("" for the default namespace); the first is empty."""
    set_of_symbol: Int64
    """int64 by word and rule: index of the set that its first start tag declares; -1 without a start tag."""

    @classmethod
    def of(cls, grammar: Grammar) -> Declarations:
        """Read the declarations in the start tags of a grammar that the tokenizer "xml" made."""
        vocabulary = grammar.words
        if DECLARES not in vocabulary.data.tobytes():
            return cls([{}], np.empty(0, np.int64))
        starts = vocabulary.offsets[:-1]
        first, second = vocabulary.data[starts], vocabulary.data[starts + 1]  # the data has spare bytes at its end
        is_tag = (first == ord("<")) & ~np.isin(second, np.frombuffer(b"/!?", np.uint8))
        is_tag &= np.diff(vocabulary.offsets) > 2
        declaring = np.flatnonzero(is_tag & vocabulary.series.str.contains(DECLARES.decode(), literal=True).to_numpy())
        written = [word.encode() for word in vocabulary.series.gather(declaring).to_list()]
        read = [_judge(word)[0] in (OPEN, EMPTY) for word in written]
        declaring, written = declaring[read], [word for word, is_read in zip(written, read, strict=True) if is_read]
        tags = parse_tags(written, {})
        sets = Numbers({frozenset(): 0})
        set_of_word = np.where(is_tag, 0, -1)
        for place, declared in tags.declarations.items():
            own = frozenset((prefix, uri) for prefix, uri in declared.items() if uri)
            set_of_word[declaring[tags.sound][place]] = sets[own]
        listed: list[frozenset[tuple[str, str]]] = list(sets)
        return cls(list(map(dict, listed)), first_in_rules(set_of_word, grammar.rule_offsets, grammar.symbols))

    @property
    def nbytes(self) -> int:
        """Approximate memory in bytes."""
        return self.set_of_symbol.nbytes + sum(
            200 + sum(100 + len(prefix) + len(uri) for prefix, uri in own.items()) for own in self.sets
        )

    def contexts(self, root_offsets: Int64, roots: UInt32) -> tuple[list[dict[str, str]], UInt32]:
        """Group documents by the namespaces that their roots declare.

        Returns
        -------
        (list of dict, uint32 array)
            Sets of namespaces (at least one), and for each document the index of its set. Beyond a limit, the rarest
            sets are dropped: their documents get the empty set, and their roots are doubtful words.

        """
        if len(self.sets) == 1:
            return self.sets, np.zeros(len(root_offsets) - 1, np.uint32)
        set_of_document = first_in_documents(self.set_of_symbol, root_offsets, roots)
        counts = np.bincount(set_of_document[set_of_document >= 0], minlength=len(self.sets))
        kept = [own for own in np.argsort(-counts, kind="stable").tolist() if counts[own]][:MAX_CONTEXTS]
        if not kept or (counts[kept].sum() < counts.sum() and 0 not in kept):
            kept[-1:] = [0]
        number_of_set = np.full(len(self.sets), kept.index(0) if 0 in kept else 0, np.uint32)
        number_of_set[kept] = np.arange(len(kept))
        found = np.where(set_of_document < 0, np.uint32(0), number_of_set[set_of_document])
        return [self.sets[own] for own in kept], found


class _Listed:
    """Events of words, added in any order of words; each word's events stay in order."""

    def __init__(self) -> None:
        self.owners: list[npt.NDArray[Any]] = []
        self.symbols: list[npt.NDArray[Any]] = []

    def add(self, owners: npt.NDArray[Any], symbols: npt.NDArray[Any]) -> None:
        """Append one event to each of some words."""
        self.owners.append(owners)
        self.symbols.append(np.broadcast_to(symbols, len(owners)))

    def add_closed(self, owners: npt.NDArray[Any], symbols: npt.NDArray[Any]) -> None:
        """Append to each of some words an event and the one that closes it."""
        pairs = np.stack([symbols, np.full(len(symbols), CLOSE)], axis=1)
        self.add(np.repeat(owners, 2), pairs.reshape(-1))

    def by_word(self, kept: Bools) -> tuple[UInt32, UInt32]:
        """Return offsets by word and the events, of kept words only."""
        owners = np.concatenate(self.owners).astype(np.uint32)
        symbols = np.concatenate(self.symbols).astype(np.uint32)
        if not kept[owners].all():
            owners, symbols = owners[kept[owners]], symbols[kept[owners]]
        offsets = np.zeros(len(kept) + 1, np.uint32)
        np.cumsum(np.bincount(owners, minlength=len(kept)), out=offsets[1:])
        return offsets, symbols[np.argsort(owners, kind="stable")]


def _special(vocabulary: Vocabulary) -> tuple[Int64, list[bytes]]:
    """Find the words that are not plain text, and return their bytes."""
    offsets, data = vocabulary.offsets, vocabulary.data  # with spare bytes at the end
    starts = offsets[:-1]
    first = data[starts]
    special = (first < _SPACE) | np.isin(first, np.frombuffer(b"<&]\xef", np.uint8)) | (offsets[1:] == starts)
    words = np.flatnonzero(special)
    raw = data.tobytes()
    ends = offsets[1:][words].tolist()
    return words, [raw[start:end] for start, end in zip(starts[words].tolist(), ends, strict=True)]


def miscut_words(vocabulary: pa.LargeStringArray, gaps: pa.LargeStringArray | None = None) -> Bools:
    """Tell which words the tokenizer would have cut differently; all words if a gap contains words."""
    if gaps is not None and (_words_in(gaps) != _NONE).any():
        return np.ones(len(vocabulary), np.bool_)
    miscut: Bools = _words_in(vocabulary) != _WHOLE
    words = np.flatnonzero(miscut)
    written = Vocabulary(vocabulary).series.gather(words)
    # in an element it is not a word, because of how words are cut there
    miscut[words[written.str.starts_with(_DOCTYPE).to_numpy()]] = False
    return miscut


def _words_in(strings: pa.LargeStringArray) -> UInt8:
    """Tell for strings inside an element whether they have no word, are one word, or something else."""
    if len(strings) == 0:
        return np.empty(0, np.uint8)
    vocabulary = Vocabulary(strings)
    data, offsets = vocabulary.data, vocabulary.offsets  # keeps the arrays alive while kernels read their addresses
    addresses = np.uint64(data.ctypes.data) + offsets[:-1].astype(np.uint64)
    lengths = np.diff(offsets).astype(np.uint32)
    cut = xml_words(addresses, lengths, is_content=True)
    counts = np.diff(cut.ends, prepend=0)
    found = np.where(counts == 0, np.uint8(_NONE), np.uint8(_OTHER))
    one = np.flatnonzero(counts == 1)
    found[one[cut.lengths[cut.ends[one] - 1] == lengths[one]]] = _WHOLE
    return found


def _judge(word: bytes) -> tuple[int, bytes]:
    """Return a word's kind (of a tag: by its syntax only) and the name in a start or end tag."""
    if word[:1] != b"<":
        if _REFERENCE.fullmatch(word):
            return TEXT, b""
        found = _CHARACTER.fullmatch(word)
        if found:
            point = int(found[1]) if found[1] else int(found[2], 16)
            return (_ANY_TEXT if _may_stand(point) else DOUBTFUL), b""
        return (DOUBTFUL if word[:1] == b"&" or word == b"]]>" or not word or _FORBIDDEN.match(word) else TEXT), b""
    found = _TAG.fullmatch(word)
    if found and word[1] not in b"/!?":
        return (EMPTY, b"") if word[-2] == ord("/") else (OPEN, found[1])
    found = _END_TAG.fullmatch(word)
    if found:
        return SHUT, found[1]
    if _FORBIDDEN.search(word):
        return DOUBTFUL, b""
    if _CDATA.fullmatch(word):
        return _ANY_TEXT, b""
    return (NOTHING if _SILENT.fullmatch(word) else DOUBTFUL), b""


def _may_stand(point: int) -> bool:
    """Tell whether XML allows a character."""
    return point in (0x9, 0xA, 0xD) or 0x20 <= point < 0xD800 or 0xE000 <= point < 0xFFFE or 0x10000 <= point < 0x110000


def _words_of(texts: dict[str, int], vocabulary: pa.LargeStringArray) -> tuple[UInt32, list[tuple[int, int]]]:
    """Find words for the texts that twigs compare.

    Returns the symbols of texts without words, which may occur anywhere, and for each other text its rarest word and
    its symbol. Texts with a word outside the vocabulary are dropped.
    """
    if not texts:
        return np.empty(0, np.uint32), []
    cut = tokenize(pl.Series(list(texts), dtype=pl.String), Tokenizer("words"), lossless=False)
    sought = Vocabulary(cut.vocabulary).series
    words = Vocabulary(vocabulary).series
    found = np.flatnonzero(words.is_in(sought.implode()).to_numpy())
    ids = dict(zip(words.gather(found).to_list(), found.tolist(), strict=True))
    id_of = np.array([ids.get(word, -1) for word in sought.to_list()], np.int64)
    anywhere, by_word = [], []
    rows = np.split(cut.sequence, np.flatnonzero(cut.sequence == SEPARATOR))[:-1]
    for row, symbol in zip(rows, texts.values(), strict=True):
        own = id_of[row[row != SEPARATOR]]
        if len(own) == 0:
            anywhere.append(symbol)
        elif own.min() >= 0:
            by_word.append((int(own.max()), symbol))
    return np.array(anywhere, np.uint32), by_word
