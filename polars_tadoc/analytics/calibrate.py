"""Measures this machine: what calls take, by what they are predicted to take."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import polars as pl

from polars_tadoc.analytics.explain import REQUESTS
from polars_tadoc.compress.compress import GPU_REPAYS_AT as TEXT_REPAYS_AT
from polars_tadoc.compress.compress import compress
from polars_tadoc.config import one_thread, showing
from polars_tadoc.dictionary.dictionary import GPU_REPAYS_AT as WORDS_REPAYS_AT
from polars_tadoc.dictionary.dictionary import Dictionary
from polars_tadoc.engine.choose import CPU, GPU, GPU_REPAYS_AT, Engine
from polars_tadoc.engine.machine_costs import MAX_FACTOR, MachineCosts, processor, save
from polars_tadoc.index.construct.build import build_index
from polars_tadoc.index.index import Index
from polars_tadoc.index.query.costs import OVERHEADS, predict
from polars_tadoc.index.query.find import find
from polars_tadoc.index.query.plan import Plan, plan
from polars_tadoc.index.query.request import Request
from polars_tadoc.index.query.results import as_frame
from polars_tadoc.model.column import split
from polars_tadoc.runtime.documented import with_imports
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.traversal.selector import FAMILIES, STRATEGIES, features_of, shipped_milliseconds
from polars_tadoc.traversal.source import prepare

DOCUMENTS, WORDS, VOCABULARY = 6_000, 40, 20_000
"""Size of the texts that are measured."""

LEAST_TURNS, MOST_TURNS, TURNS_SECONDS = 3, 15, 0.25
"""How often each call is measured, after once that is not: the fastest counts. Short ones are measured more often."""

NOISE = 1.2
"""Strategies whose costs differ from the shipped ones by factors this near are taken to differ as those do."""

COPIES = 16
"""How often the texts are in the index, and in the column that a GPU reads."""

MAX_SHIFT = 16.0
"""Times by which a GPU may be worth it for fewer or more units than by the shipped costs."""

SCHEMA = {"name": pl.String, "shipped": pl.Float64, "measured": pl.Float64, "unit": pl.String}
_MEASURED = ("inverted_index", "term_vector", "sequence_count", "ranked_inverted_index", "cooccurrence")
_SPANS = {"sequence_count": 3, "ranked_inverted_index": 3, "cooccurrence": 5}


@with_imports
@ends_on_interrupt
def calibrate() -> pl.DataFrame:
    """Measure what calls take on this machine, and keep that for all further calls and processes.

    Without a calibration, costs hold that were measured on other machines. They decide between top-down and bottom-up
    traversals, between CPU and GPU, and which engine serves which query; results never depend on them. Measuring takes
    a few seconds on texts that are made for it, and more where kernels are compiled first. Other programs should rest.
    No bar is shown, which would be measured, too.

    The file is ``tadoc.Config.get("calibration_file")``, by default one in the user's cache folder, in JSON. It holds
    for this processor only. Delete it to return to the shipped costs.

    Returns
    -------
    DataFrame
        A row for each measurement: ``name: String``; ``shipped: Float64``, the prediction of the shipped costs;
        ``measured: Float64``; ``unit: String``, "ms", or "symbols", "characters" or "words" from which on a GPU is
        faster.

    Raises
    ------
    OSError
        The file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, tadoc.Config(calibration_file=f"{folder}/costs.json"):
    ...     tadoc.calibrate().columns
    ['name', 'shipped', 'measured', 'unit']

    """
    with showing(False):
        return _measured()


def _measured() -> pl.DataFrame:
    engines = [engine for engine in (CPU, GPU) if engine.kernels.can_run()]
    text = _text()
    column = compress(text, engine="cpu")
    large = pl.concat([column] * COPIES)
    index = build_index(large, engine="cpu")
    rows: list[tuple[str, float, float, str]] = []
    for engine in engines:
        rows += _strategies(column if engine is CPU else large, engine)
        rows += _queries(index, engine)
    repays: dict[str, float] = {}
    if GPU in engines:
        for kind, shipped, unit, found in _crossings(text, large):
            repays[kind] = min(max(found, shipped / MAX_SHIFT), MAX_SHIFT * shipped)
            rows.append((f"gpu {kind}", shipped, repays[kind], unit))
    factors = {
        name: min(max(measured / shipped, 1 / MAX_FACTOR), MAX_FACTOR)
        for name, shipped, measured, unit in rows
        if unit == "ms" and not name.endswith(" overhead")
    }
    overheads = {name.split()[0]: measured / 1e3 for name, _, measured, _ in rows if name.endswith(" overhead")}
    save(MachineCosts(processor(), factors, overheads, repays))
    return pl.DataFrame(rows, SCHEMA, orient="row")


def _text() -> pl.Series:
    """Make documents of words by Zipf's law, a third of them sentences that repeat."""
    random = np.random.default_rng(0)
    words = np.array([f"w{number:05d}" for number in range(VOCABULARY)])
    ranks = np.minimum(random.zipf(1.2, (DOCUMENTS, WORDS)) - 1, VOCABULARY - 1)
    repeated = random.integers(0, DOCUMENTS, (DOCUMENTS, 1)) % 200
    ranks[::3, : WORDS // 2] = ranks[repeated[::3, 0], : WORDS // 2]
    return pl.Series("text", [" ".join(own) for own in words[ranks]])


def _fastest(*calls: Callable[[], object]) -> list[float]:
    """Return the seconds of calls, which are measured in turns."""
    best, spent = [math.inf] * len(calls), 0.0
    for turn in range(-1, MOST_TURNS):
        for number, call in enumerate(calls):
            start = time.perf_counter()
            call()
            taken = time.perf_counter() - start
            if turn >= 0:
                best[number], spent = min(best[number], taken), spent + taken
        if turn + 1 >= LEAST_TURNS and spent > TURNS_SECONDS:
            break
    return best


def _strategies(column: pl.Series, engine: Engine) -> Iterator[tuple[str, float, float, str]]:
    """Measure both strategies of each family of analytics; differences within the noise are dropped."""
    (corpus,) = split(column)
    source = prepare(corpus, engine)
    for analytic in _MEASURED:
        span = _SPANS.get(analytic, 1)
        given = {} if span == 1 else {"window" if analytic == "cooccurrence" else "n": span}
        shipped = shipped_milliseconds(engine.name, analytic, features_of(source, span))
        requests = [
            REQUESTS[analytic].from_arguments(strategy=strategy, engine=engine.name, **given) for strategy in STRATEGIES
        ]
        with one_thread():
            taken = _fastest(*(partial(request.partial, corpus, engine) for request in requests))
        factors = [1e3 * own / shipped[strategy] for own, strategy in zip(taken, STRATEGIES, strict=True)]
        if max(factors) < NOISE * min(factors):
            factors = [math.sqrt(math.prod(factors))] * len(factors)
        for strategy, own in zip(STRATEGIES, factors, strict=True):
            yield f"{engine.name} {FAMILIES[analytic]} {strategy}", shipped[strategy], own * shipped[strategy], "ms"


def _queries(index: Index, engine: Engine) -> Iterator[tuple[str, float, float, str]]:
    """Measure a batch of queries by mode, on one CPU thread or the GPU, and what any batch takes."""
    words = [f"w{number:05d}" for number in np.random.default_rng(1).zipf(1.3, 384).clip(max=VOCABULARY) - 1]
    texts = pl.Series([f"{first} {second}" for first, second in zip(words[::2], words[1::2], strict=True)])
    scoring = Request.of(10, "or", "lucene", 1.5, 0.75, 0.5).scoring

    def seconds(batch: Plan, mode: str) -> float:
        request = Request.of(10, mode, "lucene", 1.5, 0.75, 0.5)
        with one_thread():
            return _fastest(lambda: as_frame(index.stored, find(index, batch, request, [None], engine)))[0]

    rare = plan(index, pl.Series([index.segments[0].terms.series[0]]), scoring, "calibrate")
    overhead = seconds(rare, "and")
    yield f"{engine.name} overhead", 1e3 * OVERHEADS[engine.name], 1e3 * overhead, "ms"
    batch = plan(index, texts, scoring, "calibrate")
    frequencies = batch.frequencies[batch.items]
    for mode in ("and", "or"):
        shipped = predict(engine.name, mode, batch.offsets, frequencies, index.documents, 10, is_shipped=True).sum()
        taken = max(seconds(batch, mode) - overhead, 1e-9)
        yield f"{engine.name} queries {mode}", 1e3 * float(shipped), 1e3 * taken, "ms"


def _crossings(text: pl.Series, large: pl.Series) -> Iterator[tuple[str, float, str, float]]:
    """Measure from how many units on the GPU is faster, what it must be sent included: kind, shipped, unit, units."""
    word_count = REQUESTS["word_count"].from_arguments(engine="auto")
    places = itertools.count(1)  # rows that were counted before stay on the device

    def rows(engine: Engine, size: int) -> object:
        (corpus,) = split(large.slice(next(places), size))
        return word_count.partial(corpus, engine)

    (corpus,) = split(large)
    per_document = corpus.symbol_count / len(large)
    yield "rows", float(GPU_REPAYS_AT), "symbols", per_document * _crossing(rows, len(large) - 100)

    def made(engine: Engine, size: int) -> object:
        return compress(text.head(size), engine=engine.name)

    per_document = float(text.str.len_bytes().sum()) / len(text)
    yield "text", float(TEXT_REPAYS_AT), "characters", per_document * _crossing(made, len(text))
    words = text.str.split(" ").explode()
    dictionary = Dictionary.from_words(words.unique(maintain_order=True))

    def ids(engine: Engine, size: int) -> object:
        return dictionary.ids(words.head(size), engine=engine.name)

    yield "words", float(WORDS_REPAYS_AT), "words", _crossing(ids, len(words))


def _crossing(call: Callable[[Engine, int], object], size: int) -> float:
    """Return the size from which on the GPU is faster, by lines through times at two sizes; infinite if it never is."""
    (cpu_few, cpu_many), (gpu_few, gpu_many) = (
        _fastest(partial(call, engine, size // 4), partial(call, engine, size)) for engine in (CPU, GPU)
    )
    gained = (cpu_many - gpu_many) - (cpu_few - gpu_few)  # due to the additional documents
    if gained <= 0:
        return 1.0 if gpu_many < cpu_many else math.inf
    return max(size - (cpu_many - gpu_many) * (size - size // 4) / gained, 1.0)
