"""The file of a passage set: the reference's words, their windows and the hash table, checked before use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polars_tadoc.analytics.cleaning.laid_words import MOST_WORDS, LaidWords
from polars_tadoc.analytics.cleaning.passage_table import PassageTable
from polars_tadoc.compress.compress import require_known
from polars_tadoc.dictionary.file import Arrays, Form, parse, to_chunks, whole
from polars_tadoc.dictionary.file import read as read_arrays
from polars_tadoc.dictionary.file import write as write_arrays
from polars_tadoc.errors import InvalidGrammarError, InvalidPassageSetError
from polars_tadoc.index.store import saved_expressions as expressions
from polars_tadoc.index.store.bounded import Bounded
from polars_tadoc.kernels.host.passages.layout import SEPARATOR
from polars_tadoc.kernels.host.passages.windows import NONE
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.traversal.options import MAX_WORDS

FORM = Form(b"TADOCPAS", "PassageSet", "passage set", InvalidPassageSetError, is_limited=True)

CHUNK = 1 << 20
"""Words that are checked at once."""


def write(
    path: Path, length: int, laid: LaidWords, table: PassageTable, first: UInt32, morphism: Morphism | None
) -> None:
    """Write attributes of a set to a file, atomically; errors as for :meth:`PassageSet.save`."""
    write_arrays(path, *_described(length, laid, table, first, morphism), FORM)


def to_bytes(length: int, laid: LaidWords, table: PassageTable, first: UInt32) -> bytes:
    """Return the bytes of the file of a set without its normalisation."""
    return b"".join(to_chunks(*_described(length, laid, table, first, None), FORM))


def _described(
    length: int, laid: LaidWords, table: PassageTable, first: UInt32, morphism: Morphism | None
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    contents: dict[str, Any] = {"length": length, "tokenizers": list(laid.tokenizers), "morphism": None}
    contents["seed"] = f"{table.seed:032x}"
    if morphism is not None:
        try:
            form = None if morphism.normalize is None else expressions.encode(morphism.normalize)
        except ValueError as error:
            raise ValueError(
                f"PassageSet.save: normalize= has {error}, which is not among the operations that a file can hold "
                "(listed in docs/search.md)"
            ) from None
        stopwords = sorted(morphism.stopwords)
        contents["morphism"] = {"normalize": form, "lowercase": morphism.lowercase, "stopwords": stopwords}
    arrays: dict[str, npt.NDArray[Any]] = {
        "words": laid.words,
        "starts": laid.starts,
        "valid": laid.valid.view(np.uint8),
        "places": np.zeros(0, np.uint32) if laid.places is None else laid.places,
        "first": first,
        "table": table.slots,
        "filter": table.bits,
        "word_ends": laid.vocabulary.offsets,
        "word_bytes": laid.vocabulary.data[: laid.vocabulary.offsets[-1]],
    }
    return contents, arrays


def read(path: Path) -> dict[str, Any]:
    """Return the attributes of a saved set; errors as for :meth:`PassageSet.load`."""
    return _checked(*read_arrays(path, True, FORM), str(path))


def from_bytes(data: bytes) -> dict[str, Any]:
    """Return the attributes of a set from the bytes of a file; errors as for :meth:`PassageSet.load`."""
    return _checked(*parse(data, True, "the pickle", FORM), "the pickle")


def _checked(contents: dict[str, Any], arrays: Arrays, source: str) -> dict[str, Any]:
    try:
        length, tokenizers = whole(contents["length"]), contents["tokenizers"]
        if not 1 <= length <= MAX_WORDS:
            raise ValueError(f"its windows have {length:,} words")
        if not isinstance(tokenizers, list) or not all(isinstance(name, str) for name in tokenizers):
            raise ValueError("its header lists no tokenizers")
        rows = int(np.count_nonzero(arrays["valid"]))
        if len(set(tokenizers)) != len(tokenizers) or not min(rows, 1) <= len(tokenizers) <= max(rows, 1):
            raise ValueError(f"its header lists {len(tokenizers):,} tokenizers for {rows:,} rows")
        for name in tokenizers:
            require_known(Tokenizer.named(name), "its reference")
        morphism = _morphism(contents["morphism"])
        vocabulary = Vocabulary(_strings(arrays))
        firsts = _require_sound(arrays, length, len(vocabulary))
        table = None
        if "seed" in contents:  # before, fingerprints could be forged
            table = PassageTable(int(contents["seed"], 16), arrays["table"], arrays["filter"])
            table.require_sound(arrays["first"], firsts)
    except (KeyError, TypeError) as error:
        raise FORM.damaged(source, f"its header has no valid {error}") from None
    except (ValueError, InvalidGrammarError, pa.ArrowInvalid) as error:
        raise FORM.damaged(source, str(error)) from None
    places = arrays["places"] if len(arrays["places"]) else None
    valid = arrays["valid"].astype(np.bool_)
    laid = LaidWords(vocabulary, arrays["starts"], arrays["words"], valid, tuple(tokenizers), places)
    first = arrays["first"]
    table = table or PassageTable.of(laid, length, first)
    return {"length": length, "morphism": morphism, "laid": laid, "first": first, "table": table}


def _morphism(described: Any) -> Morphism | None:
    if described is None:
        return None
    lowercase, stopwords = described["lowercase"], described["stopwords"]
    if not isinstance(lowercase, bool) or not isinstance(stopwords, list):
        raise ValueError("its header has no valid normalisation")
    if not all(isinstance(word, str) and _is_utf8(word) for word in stopwords):
        raise ValueError("its header has a stop word that UTF-8 cannot hold")
    if described["normalize"] is None:
        return Morphism(None, lowercase, frozenset(stopwords))
    saved = expressions.read(described["normalize"])
    return Morphism(saved, lowercase, frozenset(stopwords), Bounded(expressions.encode(saved), saved))


def _is_utf8(word: str) -> bool:
    """Tell whether a word has no surrogates, which JSON can hold."""
    return not any("\ud800" <= character <= "\udfff" for character in word)


def _strings(arrays: Arrays) -> pa.LargeStringArray:
    ends, data = arrays["word_ends"], arrays["word_bytes"]
    if ends.dtype != np.int64 or data.dtype != np.uint8 or len(ends) == 0 or ends[-1] > len(data):
        raise ValueError("its words are not those of a vocabulary")
    made = pa.LargeStringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(data))
    made.validate(full=True)
    return made


def _require_sound(arrays: Arrays, length: int, vocabulary_size: int) -> int:
    """Check all that kernels rely on but the table; raises ``ValueError``. Returns the number of distinct windows."""
    kinds = {"words": np.uint32, "starts": np.int64, "valid": np.uint8, "places": np.uint32, "first": np.uint32}
    for name, dtype in kinds.items():
        if arrays[name].dtype != dtype:
            raise ValueError(f"array {name} is {arrays[name].dtype}")
    words, starts, places, first = (arrays[name] for name in ("words", "starts", "places", "first"))
    if len(starts) == 0 or starts[0] != 0 or (starts[1:] <= starts[:-1]).any() or starts[-1] != len(words):
        raise ValueError("its rows do not fit its words")
    if len(words) > MOST_WORDS:
        raise ValueError(f"it has {len(words):,} words")
    if len(arrays["valid"]) != len(starts) - 1 or len(places) not in (0, len(words)) or len(first) != len(words):
        raise ValueError("its arrays differ in length")
    if len(places) and int(places[starts[1:] - 1].sum(dtype=np.uint64)) + len(starts) - 1 > MOST_WORDS:
        raise ValueError("its words were more than can be numbered")
    firsts = 0
    for begin in range(0, len(words), CHUNK):
        firsts += _require_sound_words(arrays, begin, min(begin + CHUNK, len(words)), length, vocabulary_size)
    return firsts


def _require_sound_words(arrays: Arrays, begin: int, stop: int, length: int, vocabulary_size: int) -> int:
    """Check some words, and their windows; return how many of these are the first of their kind."""
    starts, first, places = arrays["starts"], arrays["first"], arrays["places"]
    a, b = np.searchsorted(starts, begin, "right") - 1, np.searchsorted(starts, stop, "left")
    ends = np.repeat(starts[a + 1 : b + 1], np.diff(starts[a : b + 1].clip(begin, stop)))
    at, words, roots = np.arange(begin, stop), arrays["words"][begin:stop], first[begin:stop]
    is_separator = at == ends - 1
    if ((words == SEPARATOR) != is_separator).any() or (words[~is_separator] >= vocabulary_size).any():
        raise ValueError("it has a word that its vocabulary lacks")
    if len(places):
        after = places[begin + 1 : stop + 1]
        if not ((after > places[begin : begin + len(after)]) | is_separator[: len(after)]).all():
            raise ValueError("its words are not in the order of their places")
    has_window = at + length < ends
    if (roots[~has_window] != NONE).any() or (roots[has_window] > at[has_window]).any():
        raise ValueError("its windows do not fit its words")
    if (first[roots[has_window]] != roots[has_window]).any():
        raise ValueError("its windows do not fit its words")
    return int(np.count_nonzero(roots == at))
