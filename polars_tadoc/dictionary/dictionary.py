"""The dictionary that users hold: words and their ids, both ways, in a succinct trie."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.dictionary import storage
from polars_tadoc.dictionary.words import as_strings, sorted_words
from polars_tadoc.engine.choose import CPU, Engine, choose
from polars_tadoc.errors import InvalidDictionaryError
from polars_tadoc.kernels.trie import trie_cpu
from polars_tadoc.kernels.trie.arrays import Trie
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.arguments import require_bool, require_integer, require_path
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.runtime.fork import require_threads
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.parallel import even_chunks, map_parallel
from polars_tadoc.runtime.writer_thread import apart

GPU_REPAYS_AT = 1 << 17
"""Words from which "auto" looks them up on a GPU: the CPU takes longer for them than the dictionary's way to the device
(``benchmarks/gpu_dictionary.py``)."""

UInt32 = npt.NDArray[np.uint32]


@dataclass(frozen=True, eq=False, repr=False)
class Dictionary:
    """Words and their ids, both ways, in a succinct trie (LOUDS: Jacobson, FOCS 1989); it never changes.

    Made by :meth:`from_words` or :meth:`load`. Ids are dense from 0, in the trie's own order (by depth, not by code
    points); the same words always get the same ids, however they come. All words that a dictionary has not share one
    id, :attr:`unknown`.

    Given to :func:`polars_tadoc.compress`, it makes the word ids of separate columns the same. Every grammar then holds
    the whole dictionary: see there.

    For users are the methods and the attributes ``unknown`` and ``nbytes``. All others belong to the package and may
    change with any release.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> words = tadoc.Dictionary.from_words(pl.Series(["to", "be", "or", "not"]))
    >>> len(words), "be" in words, "do" in words
    (4, True, False)
    >>> ids = words.ids(pl.Series(["be", "do", None]))
    >>> ids.to_list(), words.unknown
    ([0, 4, None], 4)
    >>> words.words(ids).to_list()
    ['be', None, None]

    """

    trie: Trie
    verified: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.trie, Trie):
            raise TypeError(
                f"Dictionary takes no {type(self.trie).__name__}: make one of a Series of words by "
                "Dictionary.from_words(words), or read a saved one by Dictionary.load(path)"
            )

    @classmethod
    @ends_on_interrupt
    def from_words(cls, words: pl.Series) -> Dictionary:
        """Make a dictionary of words.

        Parameters
        ----------
        words
            String series (or Categorical, or Enum), each word once, in any order. Words that are sorted already, by
            code points as ``Series.sort`` does, save the time of sorting.

        Returns
        -------
        Dictionary
            The dictionary.

        Raises
        ------
        TypeError
            It is no series, or one of another type.
        ValueError
            A word is null, empty, not UTF-8, holds NUL or stands there twice; the message names it and its rows.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be or not to be"]).tadoc.compress()
        >>> tadoc.Dictionary.from_words(column.tadoc.word_count()["word"])
        Dictionary of 4 words

        """
        require_threads()
        ordered = sorted_words(as_strings(words, "Dictionary.from_words"))
        return cls(trie_cpu.build_trie(ordered.offsets, ordered.data))

    @classmethod
    @ends_on_interrupt
    def load(cls, path: str | os.PathLike[str], *, verify: bool = True) -> Dictionary:
        """Load what :meth:`save` wrote. The file is mapped into memory: processes that load it share what they read.

        Do not change a loaded file in place: it is read while the dictionary is used. Saving another one over it makes
        a new file and does no harm.

        Parameters
        ----------
        path
            The file; ``~`` is the user's home.
        verify
            Read the file through and compare its checksums. Without, only what it begins with and its size are
            checked, and it is read when look-ups first need it: where it is damaged, ids and words may then be wrong,
            or a call raises InvalidDictionaryError. Nothing outside the file is read, and :func:`compress` compares the
            words that it stores: text stays what it was, or there is that error.

        Returns
        -------
        Dictionary
            The dictionary.

        Raises
        ------
        FileNotFoundError, OSError
            There is no such file, or it cannot be read.
        InvalidDictionaryError
            It is no saved dictionary, was saved in a format that this release does not read, or is damaged.
        TypeError
            ``path`` is no path, or ``verify`` no bool.
        ValueError
            ``path`` is an address (``s3://…``).

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> import tempfile
        >>> words = tadoc.Dictionary.from_words(pl.Series(["to", "be"]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     words.save(f"{folder}/words.dictionary")
        ...     tadoc.Dictionary.load(f"{folder}/words.dictionary") == words
        True

        """
        require_bool("verify", verify, "Dictionary.load")
        return cls(storage.read(require_path("path", path, "Dictionary.load"), verify), verify)

    @apart
    @ends_on_interrupt
    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the dictionary in one file, in place of the one that is there; it appears when it is complete.

        Parameters
        ----------
        path
            The file; ``~`` is the user's home.

        Raises
        ------
        FileNotFoundError
            The folder that it should be made in is not there.
        IsADirectoryError, OSError
            The path is a folder, or the file cannot be written.
        InvalidDictionaryError
            It was loaded unverified from a file that is damaged.
        TypeError
            ``path`` is no path.
        ValueError
            ``path`` is an address (``s3://…``).

        """
        place = require_path("path", path, "Dictionary.save")
        self._require_sound()
        storage.write(self.trie, place)

    def __len__(self) -> int:
        return self.trie.words

    @property
    def unknown(self) -> int:
        """The id of all words that the dictionary has not: one more than the last, ``len`` of it."""
        return len(self)

    @property
    def nbytes(self) -> int:
        """Bytes of the trie."""
        return self.trie.nbytes

    def __repr__(self) -> str:
        return f"Dictionary of {len(self):,} {'word' if len(self) == 1 else 'words'}"

    def __contains__(self, word: object) -> bool:
        if not isinstance(word, str):
            return False
        data = _encoded(word, "Dictionary")
        start, stop = np.zeros(1, np.int64), np.full(1, len(data), np.int64)
        return bool(trie_cpu.look_up(self.trie, _padded(data), start, stop)[0] != self.unknown)

    def __eq__(self, other: object) -> bool:
        """Tell whether the other has the same words; they then have the same ids."""
        if not isinstance(other, Dictionary):
            return NotImplemented
        return self is other or (len(self) == len(other) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        self._require_sound()
        return _from_bytes, (storage.to_bytes(self.trie),)

    def _require_sound(self) -> None:
        """Check what would get checksums of its own, and could not be told from a sound one any more."""
        if not self.verified:
            _ = self.vocabulary

    @cached_property
    def digest(self) -> str:
        """What names the contents: BLAKE2b-128 of the trie."""
        return storage.digest(self.trie)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """All words in the order of their ids.

        Raises
        ------
        InvalidDictionaryError
            The file was loaded unverified, and is damaged so that look-ups do not find the words under their ids: each
            is found, so no two are equal.

        """
        ids = np.arange(len(self), dtype=np.uint32)
        words = Vocabulary(self._spell(ids, CPU))
        if not self.verified and not np.array_equal(
            trie_cpu.look_up(self.trie, words.data, words.offsets[:-1], words.offsets[1:]), ids
        ):
            raise damaged("not every word is found under its id")
        return words

    def on(self, engine: Engine) -> Any:
        """Give the trie where an engine's kernels can use it; the second call transfers nothing."""
        # the key is made where something is kept only: the digest reads all of a file that is mapped
        return engine.keep(lambda: f"{self.digest}:trie", lambda: engine.kernels.load_trie(self.trie))

    @ends_on_interrupt
    def ids(self, words: pl.Series, *, engine: str | None = None) -> pl.Series:
        """Look words up.

        Parameters
        ----------
        words
            String series (or Categorical, or Enum).
        engine
            "auto", "cpu" or "gpu"; by default what ``tadoc.Config`` says.

        Returns
        -------
        Series
            UInt32, of the same name: the id of each word, ``unknown`` where the dictionary has it not, null where the
            word is null.

        Raises
        ------
        TypeError
            It is no series, or one of another type.
        ValueError
            There is no such ``engine``.
        EngineUnavailableError
            ``engine="gpu"`` cannot run here.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> words = tadoc.Dictionary.from_words(pl.Series(["to", "be"]))
        >>> words.ids(pl.Series(["to", "do", "be", None])).to_list()
        [1, 2, 0, None]

        """
        text = as_strings(words, "Dictionary.ids")
        chosen = choose(engine, len(text), GPU_REPAYS_AT)
        (found,) = chosen.kernels.to_arrow([chosen.kernels.look_up_rows(self.on(chosen), text)])
        ids: Any = pl.from_arrow(found)
        if text.null_count():
            ids = ids.zip_with(text.is_not_null(), pl.Series([None], dtype=pl.UInt32))
        return ids.alias(words.name)  # type: ignore[no-any-return]

    @ends_on_interrupt
    def words(self, ids: pl.Series, *, engine: str | None = None) -> pl.Series:
        """Spell the words of ids.

        Parameters
        ----------
        ids
            Series of whole numbers.
        engine
            "auto", "cpu" or "gpu"; by default what ``tadoc.Config`` says.

        Returns
        -------
        Series
            String, of the same name: the word of each id, null for ``unknown`` and null.

        Raises
        ------
        TypeError
            It is no series, or not one of whole numbers.
        ValueError
            A number is no id, or there is no such ``engine``.
        InvalidDictionaryError
            The file was loaded unverified, and is damaged: it spells what is not UTF-8.
        EngineUnavailableError
            ``engine="gpu"`` cannot run here.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> words = tadoc.Dictionary.from_words(pl.Series(["to", "be"]))
        >>> words.words(pl.Series([1, None, 2, 0])).to_list()
        ['to', None, None, 'be']

        """
        numbers = self._require_ids(ids)
        chosen = choose(engine, len(numbers), GPU_REPAYS_AT)
        known = numbers < self.unknown
        all_known = bool(known.all())
        if chosen.kernels.GATHERS_SPELLED and len(numbers) > len(self):
            every = _as_series(self._spell(np.arange(len(self), dtype=np.uint32), chosen))
            places = numbers if all_known else numbers.zip_with(known, pl.Series([None], dtype=pl.UInt32))
            return every.gather(places).alias(ids.name)
        words = _as_series(self._spell(numbers.to_numpy(), chosen))
        if not all_known:
            words = words.zip_with(known, pl.Series([None], dtype=pl.String))
        return words.alias(ids.name)

    def common_prefixes(self, word: str) -> pl.DataFrame:
        """List the words that a string begins with.

        Parameters
        ----------
        word
            Any string.

        Returns
        -------
        DataFrame
            ``word: String, id: UInt32``, the shortest first; the string itself is the last, if it is a word.

        Raises
        ------
        TypeError
            It is no string.
        InvalidDictionaryError
            The file was loaded unverified, and is damaged: it spells what is not UTF-8.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> words = tadoc.Dictionary.from_words(pl.Series(["a", "an", "and", "ant"]))
        >>> words.common_prefixes("android")["word"].to_list()
        ['a', 'an', 'and']

        """
        return self._table(trie_cpu.common_prefixes(self.trie, _encoded(word, "Dictionary.common_prefixes")))

    def with_prefix(self, prefix: str, *, limit: int | None = None) -> pl.DataFrame:
        """List the words that begin with a string.

        Parameters
        ----------
        prefix
            Any string; the empty one lists all words.
        limit
            At most so many, the first ones.

        Returns
        -------
        DataFrame
            ``word: String, id: UInt32`` in code point order.

        Raises
        ------
        TypeError
            ``prefix`` is no string, or ``limit`` no integer.
        ValueError
            ``limit`` is negative.
        InvalidDictionaryError
            The file was loaded unverified, and is damaged: it spells what is not UTF-8.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> words = tadoc.Dictionary.from_words(pl.Series(["a", "an", "and", "ant"]))
        >>> words.with_prefix("an", limit=2)["word"].to_list()
        ['an', 'and']

        """
        encoded = _encoded(prefix, "Dictionary.with_prefix")
        most = len(self) if limit is None else require_integer("Dictionary.with_prefix: limit", limit, 0)
        return self._table(trie_cpu.with_prefix(self.trie, encoded, min(most, len(self))))

    def _table(self, ids: UInt32) -> pl.DataFrame:
        return pl.DataFrame({"word": pl.Series(self._spell(ids, CPU)), "id": pl.Series(ids, dtype=pl.UInt32)})

    def _spell(self, ids: UInt32, engine: Engine) -> pa.LargeStringArray:
        """Spell ids; what is the id of no word has no bytes."""
        kernels = engine.kernels
        offsets, data = kernels.to_arrow(kernels.spell(self.on(engine), kernels.load_symbols(ids)))
        words = pa.LargeStringArray.from_buffers(len(ids), offsets.buffers()[1], data.buffers()[1])
        try:  # what a damaged file holds need not be UTF-8
            map_parallel(lambda chunk: _slice(words, chunk).validate(full=True), even_chunks(len(words)))
        except pa.ArrowInvalid as error:
            raise damaged(str(error)) from None
        return words

    def _require_ids(self, ids: object) -> pl.Series:
        """Return ids as UInt32, ``unknown`` for null."""
        if not isinstance(ids, pl.Series):
            raise TypeError(f'Dictionary.words takes a Polars Series of ids, not {type(ids).__name__}: pass df["id"]')
        if not (ids.dtype.is_integer() or ids.dtype == pl.Null):
            raise TypeError(f'Dictionary.words: column "{ids.name}" is {ids.dtype}, not one of whole numbers')
        numbers = ids.alias("id").cast(pl.UInt32, strict=False)
        largest: Any = numbers.max()
        if numbers.null_count() > ids.null_count() or (largest is not None and largest > self.unknown):
            wrong = ((numbers > self.unknown) | (numbers.is_null() & ids.alias("id").is_not_null())).arg_true()
            raise ValueError(
                f"Dictionary.words: row {wrong[0]:,} is {ids[wrong[0]]:,}, which is no id: those of words go from 0 to "
                f"{len(self) - 1:,}, and {self.unknown:,} stands for all others"
            )
        return numbers.fill_null(self.unknown)


def damaged(why: str) -> InvalidDictionaryError:
    """Make the error that says of a dictionary that was loaded unverified how it is damaged."""
    return InvalidDictionaryError(
        f"Dictionary: its file is damaged ({why}); Dictionary.load(path, verify=True) says where"
    )


def require_dictionary(dictionary: object, call: str) -> Dictionary:
    """Return it, or raise ``TypeError`` where it is none."""
    if not isinstance(dictionary, Dictionary):
        raise TypeError(
            f"{call}: dictionary= takes a tadoc.Dictionary, not {type(dictionary).__name__}; "
            "make one: tadoc.Dictionary.from_words(words)"
        )
    return dictionary


def _encoded(word: object, call: str) -> bytes:
    if not isinstance(word, str):
        raise TypeError(f"{call} takes a string, not {type(word).__name__}")
    return word.encode(errors="surrogatepass")  # which no word holds: words are UTF-8


def _slice(words: pa.LargeStringArray, chunk: tuple[int, int]) -> pa.LargeStringArray:
    first, stop = chunk
    return words.slice(first, stop - first)


def _as_series(words: pa.LargeStringArray) -> pl.Series:
    """Give strings to Polars, by several threads: it notes for each where its bytes are."""
    parts: list[Any] = map_parallel(lambda chunk: pl.from_arrow(_slice(words, chunk)), even_chunks(len(words)))
    return cast(pl.Series, pl.concat(parts))


def _padded(data: bytes) -> npt.NDArray[np.uint8]:
    """Bytes and eight spare ones, so that kernels may read eight at a time."""
    return np.frombuffer(data + bytes(8), np.uint8)


def _from_bytes(data: bytes) -> Dictionary:
    return Dictionary(storage.from_bytes(data))
