"""Compresses rows on the device end to end: only text is copied to it, and only stored arrays back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from polars_tadoc.config import own_count, own_threads
from polars_tadoc.kernels.primitives.to_arrow_cuda import copied
from polars_tadoc.kernels.repair import batch_repair_cuda as batch_repair
from polars_tadoc.kernels.repair.compressed import (
    AUTO_RULES,
    METHODS,
    NO_RULES,
    SHARES,
    SMALL_RULES,
    Compressed,
    OnGaps,
    OnRules,
    OnWords,
    ignore,
    rules_pay,
    sample_windows,
)
from polars_tadoc.kernels.repair.gaps_cuda import predict_gaps
from polars_tadoc.kernels.repair.lines import repeated_lines_cuda
from polars_tadoc.kernels.repair.lines.repeated_lines import Gaps, mark_lines, row_starts
from polars_tadoc.kernels.repair.prune import LevelledRules, by_first_use
from polars_tadoc.kernels.repair.prune_cuda import DeviceLevelledRules, prune
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.kernels.tokenize.tokenize_cuda import LoadedText, tokenize
from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.runtime.device import copy_stream, device_errors
from polars_tadoc.runtime.interrupts import began, interruptible
from polars_tadoc.runtime.process.threads import Task

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer


RULE_METHODS: tuple[str, ...] = (METHODS[0], NO_RULES, SMALL_RULES, AUTO_RULES)
"""Methods of making rules on the device; Sequitur is sequential."""


def compress_rows(
    text: pl.Series,
    tokenizer: Tokenizer,
    *,
    method: str = RULE_METHODS[0],
    lossless: bool,
    on_round: Callable[[int, int], None],
    on_words: OnWords = ignore,
    on_rules: OnRules = ignore,
    on_gaps: OnGaps = ignore,
    loaded: Callable[[], LoadedText | None] = ignore,
) -> Compressed:
    """Compress rows to one grammar, bit for bit as the CPU does.

    Parameters as for :func:`polars_tadoc.kernels.repair.compress_cpu.compress_rows`; the method is one of
    ``RULE_METHODS``.

    Raises
    ------
    EngineUnavailableError
        The device is out of memory or failed, or the rows exceed the kernels' positions.
    ValueError
        A row is not UTF-8.

    """
    tokens = tokenize(text, tokenizer, lossless=lossless, loaded=loaded())
    size = len(tokens.vocabulary)
    gap_vocabulary, mark = pa.nulls(0, pa.large_string()), None
    if tokens.gaps is not None:
        gap_vocabulary = tokens.gaps.vocabulary
        noted = gap_vocabulary, tokens.gaps.ids, tokens.gaps.tokens
        mark = partial(repeated_lines_cuda.mark_lines, tokens.sequence, size, *noted)
    on_words(tokens.vocabulary, gap_vocabulary)
    rules = _make_rules(tokens.sequence, size, len(text), method, on_round, mark)
    copies = _CopiesBeside()
    try:
        own_rules = copies.begin([rules.rule_offsets, rules.symbols, rules.level_offsets], on_rules)
        rows = copies.begin([rules.root_offsets, rules.roots], after=own_rules, lane=1)
        if tokens.gaps is None:
            rule_offsets, symbols, level_offsets = own_rules.result()
            own: list[Any] = [np.zeros(size + len(symbols), np.uint32), np.zeros(len(text) + 1, np.int64)]
            own.append(np.zeros(0, np.uint8))
            on_gaps(own[0])
        else:
            codes: list[Task[list[Any]]] = []

            def on_codes(made: Any) -> None:
                codes.append(copies.begin([made], on_gaps, after=own_rules))

            gaps = predict_gaps(tokens.gaps, size, rules, on_codes)
            row_gaps = copied([gaps.offsets, gaps.data])
            rule_offsets, symbols, level_offsets = own_rules.result()
            own = [*codes[0].result(), *row_gaps]
        root_offsets, roots = rows.result()
    finally:
        copies.stop()
    levelled = LevelledRules(rule_offsets, symbols, level_offsets, root_offsets, roots)
    return Compressed(tokens.vocabulary, gap_vocabulary, levelled, *own)


class _CopiesBeside:
    """Copies groups of arrays to the host beside this thread's work on the device.

    The caller holds the arrays until :meth:`stop` returns.
    """

    def __init__(self) -> None:
        with device_errors("asking for the device"):
            import cupy

            self._device = cupy.cuda.Device()
        self._is_stopped = False
        self._tasks: list[Task[list[Any]]] = []

    def begin(
        self,
        arrays: list[Any],
        then: Callable[..., None] = ignore,
        *,
        after: Task[list[Any]] | None = None,
        lane: int = 0,
    ) -> Task[list[Any]]:
        """Copy arrays once this thread's work of before is done, and call a function with the copies.

        None is copied after an error.

        Parameters
        ----------
        arrays, then
            The arrays, and the function.
        after
            Arrays that are copied before, and whose function has returned before.
        lane
            Arrays of several lanes are copied side by side.

        """
        with device_errors("copying to the host"):
            import cupy

            device, made = self._device, cupy.cuda.get_current_stream().record()

        def copy(since: int = began(), threads: int = own_count()) -> list[Any]:
            if after is not None:
                after.join()
            if self._is_stopped:
                return []
            try:
                stream = copy_stream(device.id, lane)
                with own_threads(threads), interruptible(since), device, stream:
                    stream.wait_event(made)
                    own = copied(arrays)
                    then(*own)
                    return own
            except BaseException:
                self._is_stopped = True
                raise

        self._tasks.append(task := Task(copy))
        task.start_or_run()
        return task

    def stop(self) -> None:
        """Wait for the threads; each ends after what it is doing."""
        self._is_stopped = True
        for task in self._tasks:
            task.stop()


def build_rules(
    sequence: UInt32,
    vocabulary_size: int,
    rows: int,
    *,
    method: str = RULE_METHODS[0],
    on_round: Callable[[int, int], None],
    gaps: Gaps | None = None,
) -> LevelledRules:
    """Make and prune rules from word ids in host memory; parameters as for ``compress_cpu.build_rules``."""
    with device_errors(f"copying {len(sequence):,} words"):
        import cupy

        on_device = cupy.asarray(sequence)

    def mark() -> bool:
        marked = sequence.copy()  # another engine may have to take the words
        has_marks = gaps is not None and mark_lines(marked, row_starts(marked), vocabulary_size, gaps)
        if has_marks:
            with device_errors(f"copying {len(sequence):,} words"):
                on_device.set(marked)
        return has_marks

    return _make_rules(on_device, vocabulary_size, rows, method, on_round, mark).to_host()


def _make_rules(
    sequence: Any,
    vocabulary_size: int,
    rows: int,
    method: str,
    on_round: Callable[[int, int], None],
    mark: Callable[[], bool] | None,
) -> DeviceLevelledRules:
    """Make and prune the rules of a method; ``sequence`` is overwritten.

    ``mark`` marks the ends of lines in it, and tells whether there may be any; None: there are none.
    """
    if method == AUTO_RULES:
        method = METHODS[0] if _rules_pay(sequence, vocabulary_size) else NO_RULES
    if method != NO_RULES:
        has_marks = mark is not None and mark()
        made = batch_repair.build(sequence, vocabulary_size, on_round, *SHARES[method], has_marks)
        rules = prune(made, vocabulary_size, rows)
        if method != SMALL_RULES:
            return rules
        return DeviceLevelledRules.of(by_first_use(rules.to_host(), vocabulary_size))
    with device_errors("copying words on the device"):
        import cupy

        none = cupy.empty(0, np.uint32)
        words = batch_repair.DeviceRules(none, none, sequence, cupy.zeros(1, np.uint32))
    return prune(words, vocabulary_size, rows)


def _rules_pay(sequence: Any, vocabulary_size: int) -> bool:
    """Tell whether rules pay in a sample of the rows, as ``compress_cpu`` does."""
    with device_errors("sampling words"):
        import cupy

        end = cupy.full(1, SEPARATOR, np.uint32)
        windows = sample_windows(len(sequence))
        sample = cupy.concatenate([part for own in windows for part in (sequence[slice(*own)], end)])
        rows = int(cupy.count_nonzero(sample == SEPARATOR))  # synchronize!
    words = len(sample) - rows
    rules = prune(batch_repair.build(sample, vocabulary_size), vocabulary_size, rows)
    return rules_pay(words, len(rules.symbols) + len(rules.roots), len(rules.rule_offsets) - 1)
