"""Where a user's call spends its time on the GPU, and on the CPU beside it: ``python -m benchmarks.gpu_calls``.

Seven calls on the four standard corpora as one column (118 MB), in one grammar and in several, with the result as a
frame, as an Arrow table and with ``top=20``. Each is warm: timed are the medians of rounds in which the engines take
turns. ``--stages`` adds the milliseconds of each stage by the host's clock (a device's work is waited for at the end of
each stage, so their sum is above the call's own time) and, of kernels, by CUDA events.
"""

from __future__ import annotations

import functools
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.side_by_side import median_ms, ratio, times
from polars_tadoc.engine import cuda

CALLS: dict[str, dict[str, Any]] = {
    "word_count": {},
    "sort": {},
    "inverted_index": {},
    "term_vector": {},
    "sequence_count": {"n": 3},
    "ranked_inverted_index": {"n": 3},
    "cooccurrence": {},
}
FORMS = ("frame", "table", "top=20")
WITHOUT_TOP = ("sort", "inverted_index")
"""Calls whose rows have no counts to choose by: their least count is 20 instead."""

STAGES = {
    "split": ["model.column.split"],
    "grammar": ["engine.cuda.load_rules", "engine.cuda.load_grammar"],
    "upload": ["engine.cuda.load_array", "engine.cuda.load_symbols"],
    "cost model": ["traversal.selector.choose_strategy", "traversal.selector.settle"],
    "kernels": [
        f"engine.cuda.{name}"
        for name in (
            "top_down_weights",
            "terminal_counts",
            "count_by_terminal",
            "count_by_document",
            "sequence_counts",
            "sequence_postings",
            "pair_counts",
        )
    ],
    "select": ["engine.cuda.select"],
    "download": ["engine.cuda.to_host", "engine.cuda.to_arrow"],
    "numbering": ["model.vocabulary.unify"],
    "merge": [
        "analytics.word_count.CountsWords.merge",
        "analytics.inverted_index.InvertedIndexRequest.merge",
        "analytics.term_vector.TermVectorRequest.merge",
        "execute.sequence_counts.CountsSequences.merge",
        "analytics.ranked_inverted_index.RankedInvertedIndexRequest.merge",
    ],
    "result": [
        f"{made}.{form}"
        for form in ("to_frame", "to_arrow")
        for made in (
            "analytics.word_count.Selection",
            "analytics.inverted_index.InvertedIndex",
            "analytics.term_vector.TermVectors",
            "analytics.sequence_count.Sequences",
            "analytics.ranked_inverted_index.RankedInvertedIndex",
            "analytics.cooccurrence.Pairs",
        )
    ],
}
"""Functions of the package by stage; a stage inside another is taken off the outer one."""


class Clocks:
    """Milliseconds by stage, each without the stages within it."""

    def __init__(self) -> None:
        self.host: dict[str, float] = defaultdict(float)
        self.device: dict[str, float] = defaultdict(float)
        self.running: list[str] = []
        self._since = 0.0

    def switch(self) -> None:
        """Give the time since the last switch to the innermost stage."""
        now = time.perf_counter()
        if self.running:
            self.host[self.running[-1]] += 1e3 * (now - self._since)
        self._since = now

    def around(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, timed as a stage."""
        import cupy

        @functools.wraps(function)
        def timed(*args: Any, **options: Any) -> Any:
            self.switch()
            self.running.append(stage)
            first, last = cupy.cuda.Event(), cupy.cuda.Event()
            first.record()
            try:
                return function(*args, **options)
            finally:
                last.record()
                last.synchronize()
                self.device[stage] += cupy.cuda.get_elapsed_time(first, last)
                self.switch()
                self.running.pop()

        return timed


@contextmanager
def timing(clocks: Clocks) -> Iterator[None]:
    """Time the stages of calls within a ``with`` block."""
    changed: list[tuple[Any, str, Any]] = []
    modules = [module for name, module in sys.modules.items() if name.startswith("polars_tadoc")]
    for stage, paths in STAGES.items():
        for path in paths:
            place, _, name = path.rpartition(".")
            owner: Any = sys.modules.get(f"polars_tadoc.{place}")
            if owner is None:  # a method
                module, _, kind = place.rpartition(".")
                owner = getattr(sys.modules[f"polars_tadoc.{module}"], kind)
            own = getattr(owner, name)
            timed = clocks.around(stage, own)
            for holder in [owner, *modules]:
                if vars(holder).get(name) is own:
                    changed.append((holder, name, own))
                    setattr(holder, name, timed)
    try:
        yield
    finally:
        for holder, name, own in changed:
            setattr(holder, name, own)


def call_of(column: pl.Series, call: str, form: str, engine: str) -> Callable[[], object]:
    """Return a public call."""
    options = {**CALLS[call], "engine": engine}
    if form == "top=20":
        options["min_count" if call in WITHOUT_TOP else "top"] = 20
    if form == "table":
        return functools.partial(getattr(tadoc, call), column, **options)
    return functools.partial(getattr(column.to_frame("text").tadoc, call), "text", **options)


def stages_of(run: Callable[[], object], repeat: int) -> str:
    """Time a call's stages, and return them as a line: medians of the host's milliseconds (kernels: the device's)."""
    import cupy

    rounds = []
    for _ in range(repeat):
        clocks = Clocks()
        with timing(clocks):
            clocks.switch()
            clocks.running.append("rest")
            run()
            cupy.cuda.Device().synchronize()
            clocks.switch()
        rounds.append(clocks)
    told = []
    for stage in [*STAGES, "rest"]:
        spent = statistics.median(one.host[stage] for one in rounds)
        if spent >= 0.01:
            device = statistics.median(one.device[stage] for one in rounds)
            told.append(f"{stage} {spent:.2f}" + (f" ({device:.2f})" if stage == "kernels" else ""))
    return ", ".join(told)


def measure(name: str, column: pl.Series, args: Any) -> None:
    """Print a line for each call and form."""
    grammars = len(tadoc.column.split(column))
    print(f"{name}, {grammars} grammar{'s' * (grammars > 1)}, {len(column):,} rows")
    print(f"  {'':22}" + "".join(f"{form:>30}" for form in args.forms))
    ratios: dict[str, list[float]] = defaultdict(list)
    lines = []
    for call in args.calls:
        row = f"  {call:22}"
        for form in args.forms:
            contenders = {engine: call_of(column, call, form, engine) for engine in ("gpu", "cpu")}
            taken = times(contenders, args.repeat, 2)
            ratios[form].append(ratio(taken, "cpu", "gpu"))
            row += f"{median_ms(taken, 'cpu'):11.2f} /{median_ms(taken, 'gpu'):9.2f} ={ratios[form][-1]:6.2f}"
            if args.stages:
                lines.append(f"  {call}, {form}: {stages_of(contenders['gpu'], args.repeat)}")
        print(row, flush=True)
    means = "".join(f"{statistics.geometric_mean(ratios[form]):30.2f}" for form in args.forms)
    print(f"  {'geometric mean':22}{means}")
    print(*lines, sep="\n", flush=True)


def evenly(text: pl.Series, parts: int) -> Iterator[tuple[int, int]]:
    """Cut rows into parts of about as many bytes."""
    before = text.str.len_bytes().cast(pl.Int64).cum_sum()
    ends = [before.search_sorted(part * int(before[-1]) // parts) for part in range(1, parts)]
    return pairwise([0, *ends, len(text)])


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--calls", nargs="+", default=list(CALLS), choices=list(CALLS))
    parser.add_argument("--forms", nargs="+", default=list(FORMS), choices=FORMS)
    parser.add_argument("--parts", nargs="+", type=int, default=[1, 4], help="grammars, of about as many bytes each")
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; 0 is one for each core")
    parser.add_argument("--stages", action="store_true", help="also print where the GPU's calls spend their time")
    args = parser.parse_args()
    import cupy

    tadoc.Config.set(threads=args.threads)
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"machine: {corpora.machine()}; {device}, CuPy {cupy.__version__}; {cuda.name} against cpu, ms")
    for given in args.corpora or ["+".join(corpora.STANDARD)]:
        name, text = corpora.load(given)
        for parts in args.parts:
            column = pl.concat([text[start:stop].tadoc.compress() for start, stop in evenly(text, parts)]).rechunk()
            measure(f"{name}, {text.str.len_bytes().sum() / 1e6:.1f} MB", column, args)


if __name__ == "__main__":
    main()
