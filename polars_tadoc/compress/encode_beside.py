"""The host's work beside a device's: it serialises a grammar whose later parts are made, and loads the next rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import polars as pl
import pyarrow as pa

from polars_tadoc.config import own_count, own_threads, thread_count
from polars_tadoc.engine.choose import Engine
from polars_tadoc.errors import DeviceMemoryError
from polars_tadoc.kernels.repair.compressed import Compressed
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.payload import JoinedParts, encode_words, pack_gaps, pack_rules
from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.runtime.interrupts import began, interruptible
from polars_tadoc.runtime.process.threads import Task

Made = TypeVar("Made")

FEWEST_THREADS = 4
"""Threads of the CPU from which on some wait now and then, and can serialise meanwhile."""


class EncodingBeside:
    """The payload of one grammar: each part is serialised in a thread of its own as soon as it is known.

    The methods that add parts return at once. :meth:`payload` or :meth:`stop` waits for the threads' end.
    """

    def __init__(self, tokenizer: str) -> None:
        self._joined = JoinedParts(tokenizer)
        self._is_stopped = self._has_placed_rules = False
        self.has_ended = False
        """Whether its payload was taken, or it was stopped."""
        self._tasks: list[Task[Any]] = []

    def _begin(self, work: Callable[[], Made]) -> Task[Made | None]:
        """Do a part of the work in a thread of its own, unless it is stopped before."""
        self._tasks.append(task := begin(lambda: None if self._is_stopped else work()))
        return task

    def add_words(self, words: pa.LargeStringArray, gaps: pa.LargeStringArray) -> None:
        """Add the vocabularies of words and of gaps."""
        self._words = len(words)
        self._encoded_words = self._begin(partial(encode_words, words, gaps))

    def add_rules(self, rule_offsets: UInt32, symbols: UInt32, level_offsets: UInt32) -> None:
        """Add the rules."""
        rules, joined = (rule_offsets, symbols, level_offsets), self._joined
        self._rules = rules[:2]

        def add_words() -> None:
            words = self._encoded_words.result()
            if words is not None:
                joined.add_words(words, *rules)

        added = self._begin(add_words)

        def place() -> Callable[[], None]:
            sections = pack_rules(*rules)
            added.result()
            self._has_placed_rules = not self._is_stopped
            return joined.place(sections) if self._has_placed_rules else lambda: None

        placed = self._placed_rules = self._begin(place)

        def compress() -> None:
            compress_rules = placed.result()
            if compress_rules is not None and not self._is_stopped:
                compress_rules()

        self._encoded_rules = self._begin(compress)

    def add_gaps(self, predicted_gaps: UInt32) -> None:
        """Add the predicted gaps: the last part. They are compressed beside the rules, behind which is their place."""

        def encode() -> None:
            sections = pack_gaps(predicted_gaps, self._words, *self._rules)
            self._placed_rules.join()
            if self._has_placed_rules:
                self._joined.place(sections)()

        self._encoded_gaps = self._begin(encode)

    def payload(self) -> pa.Buffer:
        """Wait for all parts, and return the payload; or raise the first error of a thread."""
        self._encoded_rules.result()
        self._encoded_gaps.result()
        self.has_ended = True
        return self._joined.text()

    def stop(self) -> None:
        """Wait for the threads; each ends after what it is doing."""
        self._is_stopped = True
        for task in self._tasks:
            task.stop()
        self.has_ended = True


class Encodings:
    """The work of one call beside that of a device: grammars are serialised, and the next block is loaded.

    A ``with`` block stops its threads. ``blocks`` are those that a device works on, in order; none if it
    does not work on all.
    """

    def __init__(self, blocks: Sequence[tuple[pl.Series, object]]) -> None:
        self._coming = [block for block, _ in blocks[1:]][::-1]
        self._begun: list[EncodingBeside] = []
        self._loaded: tuple[pl.Series, Task[Any]] | None = None

    def __enter__(self) -> Encodings:
        return self

    def __exit__(self, *_: object) -> None:
        for encoding in self._begun:
            encoding.stop()
        self._drop_loaded()

    def compress_rows(
        self, engine: Engine, rows: pl.Series, tokenizer: Tokenizer, **options: Any
    ) -> tuple[Compressed, EncodingBeside | None]:
        """Compress rows to one grammar; begin to encode it with its first part if a device or many threads do it.

        The next block is copied to the device while rules are made. Parameters and errors as of the engine's
        ``compress_rows``.
        """
        kernels = engine.kernels
        if engine.resident is None and thread_count() < FEWEST_THREADS:
            return kernels.compress_rows(rows, tokenizer, **options), None
        encoding = EncodingBeside(tokenizer.name)
        self._begun.append(encoding)
        for one in [one for one in self._begun if one.has_ended]:
            with suppress(ValueError):  # another thread did
                self._begun.remove(one)

        def add_words(words: pa.LargeStringArray, gaps: pa.LargeStringArray) -> None:
            encoding.add_words(words, gaps)
            if self._coming and self._loaded is None:
                following = self._coming.pop()
                self._loaded = following, begin(kernels.loading(following))

        try:
            made = kernels.compress_rows(
                *(rows, tokenizer),
                **options,
                on_words=add_words,
                on_rules=encoding.add_rules,
                on_gaps=encoding.add_gaps,
                loaded=partial(self._take, rows),
            )
        except BaseException:
            encoding.stop()
            self._drop_loaded()  # it takes memory that these rows may need
            raise
        return made, encoding

    def _drop_loaded(self) -> None:
        if self._loaded is not None:
            self._loaded[1].stop()
            self._loaded = None

    def _take(self, rows: pl.Series) -> Any:
        """Return a block that was loaded; None if it was not, or could not be for lack of memory."""
        if self._loaded is None or self._loaded[0] is not rows:
            return None
        task, self._loaded = self._loaded[1], None
        try:
            return task.result()
        except DeviceMemoryError:
            return None


def begin(function: Callable[[], Made]) -> Task[Made]:
    """Run a function in a thread of its own, which works for this thread's call."""

    def run(since: int = began(), threads: int = own_count()) -> Made:
        with own_threads(threads), interruptible(since):
            return function()

    task = Task(run)
    task.start_or_run()
    return task
