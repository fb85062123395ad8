"""The windows of a reference, for finding them in other columns."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, ClassVar, Unpack

import numpy as np
import polars as pl

from polars_tadoc.analytics.cleaning import passage_set_file
from polars_tadoc.analytics.cleaning.laid_words import LaidWords, lay_out
from polars_tadoc.analytics.cleaning.options import PassageSetOptions, reading_of, require_length
from polars_tadoc.analytics.cleaning.passage_table import PassageTable
from polars_tadoc.analytics.cleaning.windows import find_windows
from polars_tadoc.engine.choose import CPU, Engine
from polars_tadoc.engine.progress import by_steps
from polars_tadoc.kernels.host.passages import matches as kernels
from polars_tadoc.kernels.host.passages.windows import NONE, fingerprints_of
from polars_tadoc.kernels.host.records.number_words import number_words
from polars_tadoc.kernels.primitives.lists import filled
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.runtime.arguments import require_path
from polars_tadoc.runtime.array_types import UInt32, array_dataclass
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.runtime.documented import documented_by, with_imports
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.option_signature import takes_options
from polars_tadoc.storage.saved import Saved
from polars_tadoc.traversal.text_corpus import is_text

COUNTED = 1 << 22
"""Windows that are counted at once."""


@with_imports
class PassageSet:
    """The windows of a reference column, for :func:`polars_tadoc.overlap` and similar calls; immutable.

    Parameters
    ----------
    reference
        Compressed column, or plain text (String, Categorical or Enum).
    length
        Words of a window.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String; null or an empty string drops the
        word, and the words on either side become adjacent. Applied to the reference and to the columns compared.
    lowercase
        Whether to lower-case words (after ``normalize``) and stop words.
    stopwords
        Words to drop, compared after ``normalize`` and lower-casing; or the name of a language (:func:`stop_words`).
    tokenizer
        Cuts plain text into words, as for ``compress``; "words" by default.
    progress
        Whether to show a progress bar on standard error; default: ``Config(progress=)``.

    Raises
    ------
    NotCompressedError, InvalidGrammarError, TypeError, ValueError
        As for :func:`polars_tadoc.overlap`.
    LimitExceededError
        The reference has more than 4,294,967,294 words and rows.

    Examples
    --------
    >>> known = tadoc.PassageSet(pl.Series(["To be, or not to be: that is the question"]), length=4, lowercase=True)
    >>> text = pl.Series("text", ["He said: to be or not to be!", "She did not"])
    >>> tadoc.overlaps(text, known).to_list()
    [True, False]

    """

    name: ClassVar[str] = "PassageSet"

    @takes_options
    @ends_on_interrupt
    @by_steps
    def __init__(self, reference: pl.Series, **options: Unpack[PassageSetOptions]) -> None:
        self.length = require_length(options["length"])
        tokenizer, self.morphism = reading_of(options)
        self.laid = lay_out(reference, "PassageSet", tokenizer, self.morphism)
        self.first = find_windows(self.laid, self.length).first
        self.table = PassageTable.of(self.laid, self.length, self.first)

    @property
    def rows(self) -> int:
        """Number of rows of the reference."""
        return len(self.laid.valid)

    @documented_by(Saved.save)
    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the set in one file, as an atomic write that replaces an existing file.

        Raises
        ------
        ValueError
            ``path`` is an address (``s3://…``), or ``normalize`` has an operation that files cannot hold.

        Examples
        --------
        >>> known = tadoc.PassageSet(pl.Series(["to be or not to be"]), length=4)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     known.save(f"{folder}/known")
        ...     tadoc.PassageSet.load(f"{folder}/known")
        PassageSet of 1 rows, windows of 4 words

        """
        place = require_path("path", path, "PassageSet.save")
        passage_set_file.write(place, self.length, self.laid, self.table, self.first, self.morphism)

    @classmethod
    @documented_by(Saved.load)
    def load(cls, path: str | os.PathLike[str]) -> PassageSet:
        """Load a set saved by :meth:`save`. Maps the file into memory: processes that load it share its pages.

        Checksums and all numbers are checked. Do not change a loaded file in place; saving another set over it is safe,
        because that makes a new file.

        Returns
        -------
        PassageSet
            The set.

        Raises
        ------
        InvalidPassageSetError
            The file is not a saved set, is in a format that this release does not read, or is damaged.
        LimitExceededError
            The file is larger than ``Config(payload_limit_bytes=)``, or the saved ``normalize`` would make huge words.

        Examples
        --------
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tadoc.PassageSet(pl.Series(["To be or not"]), length=3, lowercase=True).save(f"{folder}/known")
        ...     tadoc.overlaps(pl.Series(["to be or", "not"]), tadoc.PassageSet.load(f"{folder}/known")).to_list()
        [True, False]

        """
        made = cls.__new__(cls)
        made.__dict__.update(passage_set_file.read(require_path("path", path, "PassageSet.load")))
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        data = passage_set_file.to_bytes(self.length, self.laid, self.table, self.first)
        return _from_bytes, (data, self.morphism)

    def __repr__(self) -> str:
        return f"PassageSet of {self.rows:,} rows, windows of {self.length} words"

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer for plain text: the first that cut the reference."""
        return next(map(Tokenizer.named, self.laid.tokenizers), None)

    @cached_property
    def neighbours(self) -> tuple[UInt32, UInt32, UInt32, UInt32]:
        """Next occurrence of each window, windows after and before its occurrences, number of occurrences."""
        later, latest, after, before = (filled(len(self.first), NONE, np.uint32) for _ in range(4))
        kernels.find_neighbours(self.first, later, latest, after, before)
        amounts = np.zeros(len(self.first), np.uint32)
        for start in range(0, len(self.first), COUNTED):  # an interrupt waits for one part
            some = self.first[start : start + COUNTED]
            np.add.at(amounts, some[some != NONE], np.uint32(1))
        return later, after, before, amounts


def _from_bytes(data: bytes, morphism: Morphism | None) -> PassageSet:
    """Return a set from its pickle, checked as a file of one."""
    made = PassageSet.__new__(PassageSet)
    made.__dict__.update(passage_set_file.from_bytes(data), morphism=morphism)
    return made


def read(known: PassageSet, column: pl.Series, call: str, engine: Engine = CPU) -> LaidWords:
    """Lay out a column with the numbers that its words have in a reference.

    Raises
    ------
    TypeError
        The column was cut by another tokenizer.

    """
    laid = lay_out(column, call, known.tokenizer if is_text(column.dtype) else None, known.morphism, engine)
    return renumbered(known, laid, column.name, call)


def renumbered(known: PassageSet, laid: LaidWords, column: str, call: str) -> LaidWords:
    """Give words the numbers that they have in a reference; errors as for :func:`read`."""
    foreign = [name for name in laid.tokenizers if name not in known.laid.tokenizers]
    if foreign and known.laid.tokenizers:
        raise TypeError(
            f'{call}: column "{column}" was cut by "{foreign[0]}", the reference by '
            f'"{known.laid.tokenizers[0]}": compress it again with that tokenizer'
        )
    own = known.laid.vocabulary
    _, (_, image) = number_words([own.strings, laid.vocabulary.strings])
    image = np.where(image < len(own), image, kernels.UNKNOWN).astype(np.uint32)
    return replace(laid, words=laid.engine.kernels.map_words(laid.words, image))


@array_dataclass
class _Loaded:
    """Slots and bits of a reference's table, its words and first occurrences, in an engine's memory."""

    arrays: tuple[Any, Any, Any, Any]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(int(array.nbytes) for array in self.arrays)


def find(known: PassageSet, laid: LaidWords) -> Any:
    """Return the first place in the reference of each window of a column read by :meth:`read`, on its engine."""
    kernels, table = laid.engine.kernels, known.table

    def load() -> _Loaded:
        slots, bits, words, first = map(kernels.load_array, (table.slots, table.bits, known.laid.words, known.first))
        return _Loaded((slots, bits, words, first))

    loaded: _Loaded = laid.engine.keep(f"{table.seed:x}:windows:{known.length}", load, owner=known)
    fingerprints = fingerprints_of(table.seed, known.length)
    return kernels.find_known(laid.words, laid.starts, fingerprints, known.length, loaded.arrays)
