"""The file of a passage set: the reference's words, their windows and the hash table, checked before use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polars_tadoc.analytics.cleaning.laid_words import LaidWords
from polars_tadoc.compress.compress import require_known
from polars_tadoc.dictionary.file import Arrays, Form, whole
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
from polars_tadoc.traversal.options import MAX_WORDS

if TYPE_CHECKING:
    from polars_tadoc.analytics.cleaning.passage_set import PassageSet

FORM = Form(b"TADOCPAS", "PassageSet", "passage set", InvalidPassageSetError)


def write(path: Path, known: PassageSet) -> None:
    """Write a file atomically; errors as for :meth:`PassageSet.save`."""
    laid, morphism = known.laid, known.morphism
    contents: dict[str, Any] = {"length": known.length, "tokenizers": list(laid.tokenizers), "morphism": None}
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
        "first": known.first,
        "slots": known.slots,
        "bits": known.bits,
        "word_ends": laid.vocabulary.offsets,
        "word_bytes": laid.vocabulary.data[: laid.vocabulary.offsets[-1]],
    }
    write_arrays(path, contents, arrays, FORM)


def read(path: Path) -> dict[str, Any]:
    """Return the attributes of a saved set; errors as for :meth:`PassageSet.load`."""
    contents, arrays = read_arrays(path, True, FORM)
    try:
        length, tokenizers = whole(contents["length"]), contents["tokenizers"]
        if not 1 <= length <= MAX_WORDS:
            raise ValueError(f"its windows have {length:,} words")
        if not isinstance(tokenizers, list) or not all(isinstance(name, str) for name in tokenizers):
            raise ValueError("its header lists no tokenizers")
        for name in tokenizers:
            require_known(Tokenizer.named(name), "its reference")
        morphism = _morphism(contents["morphism"])
        vocabulary = Vocabulary(_strings(arrays))
        _require_sound(arrays, length, len(vocabulary))
    except (KeyError, TypeError) as error:
        raise FORM.damaged(str(path), f"its header has no valid {error}") from None
    except (ValueError, InvalidGrammarError, pa.ArrowInvalid) as error:
        raise FORM.damaged(str(path), str(error)) from None
    places = arrays["places"] if len(arrays["places"]) else None
    valid = arrays["valid"].astype(np.bool_)
    laid = LaidWords(vocabulary, arrays["starts"], arrays["words"], valid, tuple(tokenizers), places)
    known = {name: arrays[name] for name in ("first", "slots", "bits")}
    return {"length": length, "morphism": morphism, "laid": laid, **known}


def _morphism(described: Any) -> Morphism | None:
    if described is None:
        return None
    lowercase, stopwords = described["lowercase"], described["stopwords"]
    if not isinstance(lowercase, bool) or not all(isinstance(word, str) for word in stopwords):
        raise ValueError("its header has no valid normalisation")
    if described["normalize"] is None:
        return Morphism(None, lowercase, frozenset(stopwords))
    saved = expressions.read(described["normalize"])
    return Morphism(saved, lowercase, frozenset(stopwords), Bounded(expressions.encode(saved), saved))


def _strings(arrays: Arrays) -> pa.LargeStringArray:
    ends, data = arrays["word_ends"], arrays["word_bytes"]
    if ends.dtype != np.int64 or data.dtype != np.uint8 or len(ends) == 0 or ends[-1] > len(data):
        raise ValueError("its words are not those of a vocabulary")
    made = pa.LargeStringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(data))
    made.validate(full=True)
    return made


def _require_sound(arrays: Arrays, length: int, vocabulary_size: int) -> None:
    """Check everything that kernels rely on; raises ``ValueError``."""
    kinds = {"words": np.uint32, "starts": np.int64, "valid": np.uint8, "places": np.uint32, "first": np.uint32}
    for name, dtype in (kinds | {"slots": np.uint64, "bits": np.uint64}).items():
        if arrays[name].dtype != dtype:
            raise ValueError(f"array {name} is {arrays[name].dtype}")
    words, starts, first, slots = (arrays[name] for name in ("words", "starts", "first", "slots"))
    sizes = np.diff(starts)
    if len(starts) == 0 or starts[0] != 0 or (sizes < 1).any() or starts[-1] != len(words):
        raise ValueError("its rows do not fit its words")
    is_separator = np.zeros(len(words), np.bool_)
    is_separator[starts[1:] - 1] = True
    if not np.array_equal(words == SEPARATOR, is_separator) or (words[~is_separator] >= vocabulary_size).any():
        raise ValueError("it has a word that its vocabulary lacks")
    if len(arrays["valid"]) != len(sizes) or len(arrays["places"]) not in (0, len(words)) or len(first) != len(words):
        raise ValueError("its arrays differ in length")
    places = np.arange(len(words))
    has_window = places + length < np.repeat(starts[1:], sizes)
    roots = first[has_window]
    if (first[~has_window] != NONE).any() or (roots > places[has_window]).any() or (first[roots] != roots).any():
        raise ValueError("its windows do not fit its words")
    used = (slots[slots != 0] & np.uint64(NONE)) - np.uint64(1)
    if (used >= np.uint64(len(words))).any() or (first[used.astype(np.int64)] != used).any() or len(used) == len(slots):
        raise ValueError("its table does not fit its windows")
    if any(len(arrays[name]).bit_count() != 1 for name in ("slots", "bits")):
        raise ValueError("its table has no size of a table")
