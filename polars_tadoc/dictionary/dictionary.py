"""The public dictionary: words to ids and ids to words, in a succinct trie."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
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
from polars_tadoc.runtime.array_types import UInt8, UInt32
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.runtime.documented import documented_by, with_imports
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.parallel import even_chunks, map_parallel
from polars_tadoc.runtime.plain_name import plain
from polars_tadoc.runtime.process.fork import require_threads
from polars_tadoc.runtime.process.writer_thread import apart
from polars_tadoc.storage.saved import Saved

GPU_REPAYS_AT = 1 << 17
"""Words from which "auto" looks them up on a GPU: the CPU takes longer than the transfer of the dictionary
(``benchmarks/gpu_dictionary.py``)."""


@with_imports
@dataclass(frozen=True, eq=False, repr=False)
class Dictionary:
    """Maps words to ids and ids to words, in a succinct trie (LOUDS: Jacobson, FOCS 1989); immutable.

    Made by :meth:`from_words` or :meth:`load`. Ids are dense from 0, in the trie's own order (by depth, not by code
    point); the same set of words always gets the same ids, in whatever order it is given. All other words share one
    id, :attr:`unknown`.

    :func:`polars_tadoc.compress` takes a dictionary to give words the same ids in separate columns. Every grammar then
    holds the whole dictionary: see there.

    The public interface is the methods and the attributes ``unknown`` and ``nbytes``. All other attributes may change
    in any release.

    Examples
    --------
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
                f"Dictionary takes no {type(self.trie).__name__}: make one of a Series of words with "
                "Dictionary.from_words(words), or load a saved one with Dictionary.load(path)"
            )

    @classmethod
    @ends_on_interrupt
    def from_words(cls, words: pl.Series) -> Dictionary:
        """Make a dictionary of words.

        Parameters
        ----------
        words
            String series (or Categorical, or Enum) of distinct words, in any order. Sorted words (by code point, as by
            ``Series.sort``) save the time of sorting.

        Returns
        -------
        Dictionary
            The dictionary.

        Raises
        ------
        TypeError
            The argument is not a series, or has another type.
        ValueError
            A word is null, empty, not UTF-8, has NUL or is a duplicate; the message names the word and its rows.

        Examples
        --------
        >>> column = pl.Series("text", ["to be or not to be"]).tadoc.compress()
        >>> tadoc.Dictionary.from_words(column.tadoc.word_count()["word"])
        Dictionary of 4 words

        """
        require_threads()
        ordered = sorted_words(as_strings(words, "Dictionary.from_words"))
        return cls(trie_cpu.build_trie(ordered.offsets, ordered.data))

    @classmethod
    @documented_by(Saved.load)
    @ends_on_interrupt
    def load(cls, path: str | os.PathLike[str], *, verify: bool = True) -> Dictionary:
        """Load a dictionary saved by :meth:`save`. Maps the file into memory: processes that load it share its pages.

        Do not change a loaded file in place: the dictionary reads it while it is in use. Saving another dictionary over
        it is safe, because that makes a new file.

        Parameters
        ----------
        verify
            Whether to read the whole file and compare checksums. If false, only the header and the size are checked,
            and the rest is read when look-ups need it: in a damaged file, ids and words may then be wrong, or a call
            raises InvalidDictionaryError. Look-ups never read outside the file, and :func:`compress` compares the words
            that it stores: text is preserved, or that error is raised.

        Returns
        -------
        Dictionary
            The saved dictionary.

        Raises
        ------
        InvalidDictionaryError
            The file is not a saved dictionary, is in a format that this release does not read, or is damaged.
        TypeError
            ``path`` is not a path, or ``verify`` not a bool.

        Examples
        --------
        >>> words = tadoc.Dictionary.from_words(pl.Series(["to", "be"]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     words.save(f"{folder}/words.dictionary")
        ...     tadoc.Dictionary.load(f"{folder}/words.dictionary") == words
        True

        """
        require_bool("verify", verify, "Dictionary.load")
        return cls(storage.read(require_path("path", path, "Dictionary.load"), verify), verify)

    @documented_by(Saved.save)
    @apart
    @ends_on_interrupt
    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the dictionary in one file, as an atomic write that replaces an existing file.

        Raises
        ------
        InvalidDictionaryError
            The dictionary was loaded unverified from a damaged file.

        Examples
        --------
        >>> words = tadoc.Dictionary.from_words(pl.Series(["to", "be"]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     words.save(Path(folder) / "words")
        ...     tadoc.Dictionary.load(Path(folder) / "words") == words
        True

        """
        place = require_path("path", path, "Dictionary.save")
        self._require_sound()
        storage.write(self.trie, place)

    def __len__(self) -> int:
        return self.trie.words

    @property
    def unknown(self) -> int:
        """The id of all words that the dictionary lacks: its length."""
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
        """Tell whether the other has the same words, and so the same ids."""
        if not isinstance(other, Dictionary):
            return NotImplemented
        return self is other or (len(self) == len(other) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        self._require_sound()
        return _from_bytes, (storage.to_bytes(self.trie),)

    def _require_sound(self) -> None:
        """Raise if the file is damaged: saving would give the damage valid checksums."""
        if not self.verified:
            _ = self.vocabulary

    @cached_property
    def digest(self) -> str:
        """Digest of the contents: BLAKE2b-128 of the trie."""
        return storage.digest(self.trie)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """All words in order of their ids.

        Raises
        ------
        InvalidDictionaryError
            The file was loaded unverified, and is damaged so that look-ups do not return the ids of the words. (That
            each is found also means that no two are equal.)

        """
        ids = np.arange(len(self), dtype=np.uint32)
        words = Vocabulary(self._spell(ids, CPU))
        if not self.verified and not np.array_equal(
            trie_cpu.look_up(self.trie, words.data, words.offsets[:-1], words.offsets[1:]), ids
        ):
            raise damaged("not every word has its id")
        return words

    def on(self, engine: Engine) -> Any:
        """Return the trie in an engine's memory; copied at the first call.

        Parameters
        ----------
        engine
            The engine whose kernels read the trie.

        Returns
        -------
        resident trie
            Argument of the engine's kernels on dictionaries.

        Raises
        ------
        EngineUnavailableError
            The device is out of memory or failed.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> from polars_tadoc.engine.choose import CPU
        >>> words = tadoc.Dictionary.from_words(pl.Series(["to", "be"]))
        >>> words.on(CPU).words
        2

        """
        # the key is made only if something is cached: the digest reads all of a mapped file
        return engine.keep(lambda: f"{self.digest}:trie", lambda: engine.kernels.load_trie(self.trie))

    @ends_on_interrupt
    def ids(self, words: pl.Series, *, engine: str | None = None) -> pl.Series:
        """Look words up.

        Parameters
        ----------
        words
            String series (or Categorical, or Enum).

        Returns
        -------
        Series
            UInt32, same length and name: the id of each word, ``unknown`` if the dictionary lacks it, null for null.

        Raises
        ------
        TypeError
            ``words`` is not a series, or has another type.
        ValueError
            ``engine`` is unknown.
        EngineUnavailableError
            ``engine="gpu"`` cannot run here.

        Examples
        --------
        >>> words = tadoc.Dictionary.from_words(pl.Series(["to", "be"]))
        >>> words.ids(pl.Series(["to", "do", "be", None])).to_list()
        [1, 2, 0, None]

        """
        text = as_strings(words, "Dictionary.ids")
        chosen = choose(engine, len(text), GPU_REPAYS_AT, "words")
        (found,) = chosen.kernels.to_arrow([chosen.kernels.look_up_rows(self.on(chosen), text)])
        ids: Any = pl.from_arrow(found)
        if text.null_count():
            ids = ids.zip_with(text.is_not_null(), pl.Series([None], dtype=pl.UInt32))
        return ids.alias(words.name)  # type: ignore[no-any-return]

    @documented_by(ids)
    @ends_on_interrupt
    def words(self, ids: pl.Series, *, engine: str | None = None) -> pl.Series:
        """Return the words of ids.

        Parameters
        ----------
        ids
            Series of integers.

        Returns
        -------
        Series
            String, same length and name: the word of each id, null for ``unknown`` and null.

        Raises
        ------
        TypeError
            ``ids`` is not a series of integers.
        ValueError
            A number is not an id, or ``engine`` is unknown.
        InvalidDictionaryError
            The file was loaded unverified, and is damaged: a word is not UTF-8.

        Examples
        --------
        >>> words = tadoc.Dictionary.from_words(pl.Series(["to", "be"]))
        >>> words.words(pl.Series([1, None, 2, 0])).to_list()
        ['to', None, None, 'be']

        """
        numbers = self._require_ids(ids)
        chosen = choose(engine, len(numbers), GPU_REPAYS_AT, "words")
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
        """List the words that are prefixes of a string.

        Parameters
        ----------
        word
            Any string.

        Returns
        -------
        DataFrame
            ``word: String, id: UInt32``, shortest first; the string itself is last, if it is a word.

        Raises
        ------
        TypeError
            ``word`` is not a string.
        InvalidDictionaryError
            The file was loaded unverified, and is damaged: a word is not UTF-8.

        Examples
        --------
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
            Maximum number of words, the first ones; default: all.

        Returns
        -------
        DataFrame
            ``word: String, id: UInt32`` in code point order.

        Raises
        ------
        TypeError
            ``prefix`` is not a string, or ``limit`` not an integer.
        ValueError
            ``limit`` is negative.
        InvalidDictionaryError
            The file was loaded unverified, and is damaged: a word is not UTF-8.

        Examples
        --------
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
        """Return the words of ids; an id without a word gives an empty string."""
        kernels = engine.kernels
        offsets, data = kernels.to_arrow(kernels.spell(self.on(engine), kernels.load_symbols(ids)))
        words = pa.LargeStringArray.from_buffers(len(ids), offsets.buffers()[1], data.buffers()[1])
        try:  # a damaged file may not be UTF-8
            map_parallel(lambda chunk: _slice(words, chunk).validate(full=True), even_chunks(len(words)))
        except pa.ArrowInvalid as error:
            raise damaged(str(error)) from None
        return words

    def _require_ids(self, ids: object) -> pl.Series:
        """Return ids as UInt32, null as ``unknown``."""
        if not isinstance(ids, pl.Series):
            raise TypeError(f'Dictionary.words takes a Polars Series of ids, not {type(ids).__name__}: pass df["id"]')
        if not (ids.dtype.is_integer() or ids.dtype == pl.Null):
            raise TypeError(f'Dictionary.words: column "{ids.name}" is {ids.dtype}, not an integer type; cast it')
        numbers = plain(ids).cast(pl.UInt32, strict=False)
        largest: Any = numbers.max()
        if numbers.null_count() > ids.null_count() or (largest is not None and largest > self.unknown):
            wrong = ((numbers > self.unknown) | (numbers.is_null() & plain(ids).is_not_null())).arg_true()
            raise ValueError(
                f"Dictionary.words: row {wrong[0]:,} is {ids[wrong[0]]:,}, which is not an id: ids of words are 0 to "
                f"{len(self) - 1:,}, and {self.unknown:,} is the id of all other words"
            )
        return numbers.fill_null(self.unknown)


def damaged(why: str) -> InvalidDictionaryError:
    """Make the error for damage in a dictionary that was loaded unverified."""
    return InvalidDictionaryError(
        f"Dictionary: its file is damaged ({why}); Dictionary.load(path, verify=True) tells where"
    )


def require_dictionary(dictionary: object, call: str) -> Dictionary:
    """Return the dictionary; raise ``TypeError`` if it is not one."""
    if not isinstance(dictionary, Dictionary):
        raise TypeError(
            f"{call}: dictionary= takes a tadoc.Dictionary, not {type(dictionary).__name__}; "
            "make one: tadoc.Dictionary.from_words(words)"
        )
    return dictionary


def _encoded(word: object, call: str) -> bytes:
    if not isinstance(word, str):
        raise TypeError(f"{call} takes a string, not {type(word).__name__}")
    return word.encode(errors="surrogatepass")  # no word contains surrogates: words are UTF-8


def _slice(words: pa.LargeStringArray, chunk: tuple[int, int]) -> pa.LargeStringArray:
    first, stop = chunk
    return words.slice(first, stop - first)


def _as_series(words: pa.LargeStringArray) -> pl.Series:
    """Convert strings to Polars on several threads: it computes a view of each."""
    parts: list[Any] = map_parallel(lambda chunk: pl.from_arrow(_slice(words, chunk)), even_chunks(len(words)))
    return cast(pl.Series, pl.concat(parts))


def _padded(data: bytes) -> UInt8:
    """Return bytes plus eight bytes of padding, so that kernels may read eight at a time."""
    return np.frombuffer(data + bytes(8), np.uint8)


def _from_bytes(data: bytes) -> Dictionary:
    return Dictionary(storage.from_bytes(data))
