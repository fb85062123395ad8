"""Filters XML by twig queries: ``python -m benchmarks.twigs [corpus …]``; megabytes of XML a second.

Queries are drawn from the corpora's own documents (:mod:`benchmarks.twig_queries`), around 256 queries of 10 nodes and
3 splits with ``*`` and ``//`` at 10 %; each parameter of the literature is varied in turn (``--full``: all with all).
``dblp_1MB`` and ``dblp_25kB`` are documents as DBLP's (:mod:`benchmarks.dblp`).

``events``: our matcher over parsed events, ``fresh`` one that has seen nothing; ``rules``: our matcher over the grammar
of the compressed column; ``parse``: text to events; ``text`` and ``column``: the public call on strings and on the
compressed column, result and all. ``bitmask`` is the filter that twenty
lines of Numba give, over the same events and on as many threads. ``lxml`` has parsed trees and compiled queries,
``+parse`` parses, too; each of its queries is evaluated alone, so some of them stand for all: their time is multiplied.
Contenders run in turn and must agree on what they filter; figures are medians, ratios those of each round.
"""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import lxml.etree
import numba as nb
import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora, dblp
from benchmarks.twig_queries import Drawn, Sample, Shape
from polars_tadoc.config import thread_count
from polars_tadoc.engine.choose import CPU
from polars_tadoc.execute.twig_documents import Filtering
from polars_tadoc.kernels.twigs.arrays import CLOSE, NO_NODE, Events, Twigs
from polars_tadoc.kernels.twigs.reference import nodes_in, nodes_of
from polars_tadoc.model.column import split
from polars_tadoc.runtime.addresses import trailing_zeros
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks
from polars_tadoc.twig.events import parse_documents
from polars_tadoc.twig.words import Declarations

CORPORA = ["dblp_1MB", "dblp_25kB", "xml_acl_papers", "xml_exoplanet", "xml_rusdracor", "multi_cldr_annotations"]
BASE = (256, Shape(10, 3, 0.1, 0.1))
COUNTS, SHAPES, SHARES = [32, 64, 128, 256, 512, 1024, 2048], [(5, 1), (10, 3), (15, 6)], [0.1, 0.3, 0.5]
LIMITS: dict[str, Any] = {"max_depth": 10_000, "max_bytes": 1 << 30}
SAMPLED = 2_000_000
"""Bytes of documents that queries are drawn from."""
PEER_BYTES, PEER_QUERIES = 1_000_000, 16
"""What lxml runs on: it is slow, and its speed does not depend on how much there is."""
LEAST = 0.1
"""Seconds of a round of each contender."""


class Contender(NamedTuple):
    """One way to filter."""

    run: Callable[[], Any]
    size: int
    """Bytes of XML that it filters."""
    scale: float = 1.0
    """By how much its time is multiplied."""


def load(name: str) -> tuple[str, pl.Series]:
    """Return a corpus' name and documents; those as DBLP's are made."""
    if name.startswith("dblp_"):
        count, size = {"dblp_1MB": (20, 1_000_000), "dblp_25kB": (800, 25_000)}[name]
        return name, pl.Series("text", dblp.documents(count, size))
    return corpora.load(name)


def first(text: pl.Series, size: int) -> pl.Series:
    """Take documents up to so many bytes, or the first."""
    return text.head(max(1, int((text.str.len_bytes().cum_sum() <= size).sum())))


def grid(full: bool, quick: bool, queries: int | None) -> Iterator[tuple[int, Shape]]:
    """Yield numbers of queries and their shapes."""
    count, shape = queries or BASE[0], BASE[1]
    counts = [count] if queries else COUNTS
    if full:
        for each, sizes, wildcards, descendants in itertools.product(counts[::2], SHAPES, SHARES, SHARES):
            yield each, Shape(*sizes, wildcards, descendants)
        return
    yield count, shape
    yield from ((other, shape) for other in (counts if not quick else counts[::6]) if other != count)
    if not quick:
        for nodes, splits in SHAPES:
            if nodes != shape.nodes:
                yield count, shape._replace(nodes=nodes, splits=splits)
        yield from ((count, shape._replace(wildcards=share)) for share in SHARES[1:])
        yield from ((count, shape._replace(descendants=share)) for share in SHARES[1:])
        yield count, shape._replace(wildcards=SHARES[-1], descendants=SHARES[-1])


class BitmaskTables(NamedTuple):
    """Twigs for the simple filter; each lies within one word, which is why it takes no twigs of more than 64 nodes."""

    tests: Any
    """uint64[symbols, words]: nodes whose name test passes."""
    children: Any
    """uint64[64 * words]."""
    descendants: Any
    roots: Any


def bitmask_tables(twigs: Twigs) -> BitmaskTables:
    """Lay twigs out for the simple filter."""
    tests = np.zeros((len(twigs.heads), twigs.words), np.uint64)
    children = np.zeros(64 * twigs.words, np.uint64)
    passed = [nodes_of(twigs, symbol) if symbol != CLOSE else set() for symbol in range(len(twigs.heads))]
    for symbol, nodes in enumerate(passed):
        for node in nodes:
            tests[symbol, node // 64] |= np.uint64(1 << node % 64)
    for node in set(nodes_in(~twigs.leaves[: twigs.words])) & {node for own in passed for node in own}:
        child = node + 1
        while child != NO_NODE:
            children[node] |= np.uint64(1 << child % 64)
            child = int(twigs.siblings[child])
    return BitmaskTables(tests, children, twigs.descendants, twigs.roots)


@nb.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _bitmask_filter(tables: Any, symbols: Any, offsets: Any, first: int, last: int, depth: int, matched: Any) -> None:
    words = tables.tests.shape[1]
    found, opened = np.zeros((depth + 2, words), np.uint64), np.zeros(depth + 2, np.int64)
    for document in range(first, last):
        level = 0
        found[0] = 0
        for event in range(offsets[document], offsets[document + 1]):
            if symbols[event] != CLOSE:
                level += 1
                opened[level] = symbols[event]
                found[level] = 0
                continue
            for word in range(words):
                below = found[level, word]
                above = below & tables.descendants[word]
                candidates = tables.tests[opened[level], word]
                while candidates:
                    bit = trailing_zeros(candidates)
                    children = tables.children[64 * word + bit]
                    if below & children == children:
                        above |= np.uint64(1) << np.uint64(bit)
                    candidates &= candidates - np.uint64(1)
                found[level - 1, word] |= above
            level -= 1
        for twig in range(len(tables.roots)):
            root = tables.roots[twig]
            matched[document, twig] = found[0, root // 64] >> np.uint64(root % 64) & np.uint64(1)


def bitmask_filter(tables: BitmaskTables, events: Events) -> Any:
    """Tell by bit-parallel comparison which twigs match each document: bool[documents, twigs]."""
    matched = np.zeros((len(events.offsets) - 1, len(tables.roots)), np.bool_)

    def part(chunk: tuple[int, int]) -> None:
        _bitmask_filter(tables, events.symbols, events.offsets, *chunk, events.depth, matched)

    map_parallel(part, weighted_chunks(events.offsets, 1))
    return matched


def lxml_filter(trees: Sequence[Any], queries: Sequence[lxml.etree.XPath]) -> list[list[bool]]:
    """Evaluate each query on each tree."""
    return [[query(tree) for query in queries] for tree in trees]


def contenders(text: pl.Series, compressed: pl.Series, drawn: Drawn) -> dict[str, Contender]:
    """Lay out all ways to filter some documents by some queries; they must agree."""
    twig_set = tadoc.TwigSet(drawn.queries, namespaces=drawn.namespaces)
    compiled = twig_set._compiled()
    size = int(text.str.len_bytes().sum())
    parsed = parse_documents(text, compiled.alphabet, **LIMITS)
    if parsed.errors:
        raise SystemExit(f"row {parsed.errors[0][0]}: {parsed.errors[0][1]}")
    events, matcher, tables = (
        CPU.kernels.load_events(parsed.events),
        compiled.matcher(CPU),
        bitmask_tables(compiled.twigs),
    )
    part = first(text, PEER_BYTES).to_list()
    asked = list(drawn.queries.items())[:: max(1, len(drawn.queries) // PEER_QUERIES)]
    evaluated = [lxml.etree.XPath(f"boolean({query})", namespaces=drawn.namespaces) for _, query in asked]
    parser = lxml.etree.XMLParser(encoding="utf-8", huge_tree=True, resolve_entities=False)
    trees = [lxml.etree.fromstring(document.encode(), parser).getroottree() for document in part]

    offsets, found = matcher.match(events)
    ours = np.zeros((len(text), len(drawn.queries)), np.bool_)
    ours[np.repeat(np.arange(len(text)), np.diff(offsets)), found] = True
    names = {name: twig for twig, name in enumerate(compiled.names)}
    for way, column in {"text": text, "column": compressed}.items():
        table = tadoc.twig_filter(column, twig_set, engine="cpu")
        theirs = np.zeros_like(ours)
        theirs[table["id"].to_numpy(), [names[name] for name in table["query"].to_pylist()]] = True
        _agree(way, ours, theirs)
    _agree("bitmask", ours, bitmask_filter(tables, events))
    columns = [names[name] for name, _ in asked]
    _agree("lxml", ours[: len(part)][:, columns], np.array(lxml_filter(trees, evaluated)))

    def parse_again() -> list[Any]:
        return [lxml.etree.fromstring(document.encode(), parser) for document in part]

    few, scale = sum(len(document.encode()) for document in part), len(drawn.queries) / len(asked)
    return {
        "events": Contender(lambda: matcher.match(events), size),
        "fresh": Contender(lambda: CPU.kernels.TwigMatcher(compiled.twigs).match(events), size),
        "rules": Contender(_over_rules(compressed, compiled), size),
        "parse": Contender(lambda: parse_documents(text, compiled.alphabet, **LIMITS), size),
        "text": Contender(lambda: tadoc.twig_filter(text, twig_set, engine="cpu"), size),
        "column": Contender(lambda: tadoc.twig_filter(compressed, twig_set, engine="cpu"), size),
        "bitmask": Contender(lambda: bitmask_filter(tables, events), size),
        "lxml": Contender(lambda: lxml_filter(trees, evaluated), few, scale),
        "lxml parse": Contender(parse_again, few),
    }


def _over_rules(compressed: pl.Series, compiled: Any) -> Callable[[], Any]:
    """Make the matcher ready for the grammars of a column."""
    matcher, ready = compiled.matcher(CPU), []
    filtering = Filtering(compiled, **LIMITS)
    for corpus in split(compressed):
        contexts, _ = Declarations.of(corpus.grammar).contexts(corpus.root_offsets, corpus.roots)
        rules = CPU.load_rules(corpus.key, corpus.grammar)
        words = filtering._words(corpus, contexts[0], CPU)
        if len(contexts) > 1:
            raise SystemExit("documents declare different namespaces")
        ready.append((rules, corpus.root_offsets, corpus.roots, words, LIMITS["max_depth"]))
    return lambda: [matcher.match_rules(*given) for given in ready]


def _agree(way: str, ours: Any, theirs: Any) -> None:
    if not (ours == theirs).all():
        document, twig = np.argwhere(ours != theirs)[0]
        raise SystemExit(f"{way}: document {document}, query {twig}: WRONG")


def race(contenders: dict[str, Contender], repeat: int) -> dict[str, list[float]]:
    """Run contenders in turn: megabytes a second of each round."""
    speeds: dict[str, list[float]] = {name: [] for name in contenders}
    for round_ in range(repeat):
        for name, contender in contenders.items():
            gc.collect()
            start, runs, seconds = time.perf_counter(), 0, 0.0
            while seconds < LEAST:
                contender.run()
                runs, seconds = runs + 1, time.perf_counter() - start
            speeds[name].append(runs * contender.size / 1e6 / (seconds * contender.scale))
        both = 1 / (1 / speeds["lxml"][round_] + 1 / speeds["lxml parse"][round_])
        speeds.setdefault("+parse", []).append(both)
    return speeds


SHOWN = ["events", "fresh", "rules", "parse", "text", "column", "bitmask", "lxml", "+parse"]
RATIOS = [("events", "bitmask"), ("events", "lxml"), ("text", "+parse"), ("rules", "events")]


def report(speeds: dict[str, list[float]]) -> str:
    """Write medians, and ratios within rounds."""
    medians = "".join(f"{_three(statistics.median(speeds[name])):>9}" for name in SHOWN)
    ratios = [
        statistics.median(a / b for a, b in zip(speeds[ours], speeds[theirs], strict=True)) for ours, theirs in RATIOS
    ]
    return f"{medians} |" + "".join(f"{_three(each):>15}" for each in ratios)


def _three(figure: float) -> str:
    """Write three digits."""
    return f"{figure:.{max(0, 2 - int(np.floor(np.log10(figure))))}f}" if figure < 100 else f"{figure:,.0f}"


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--full", action="store_true", help="all parameters with all")
    parser.add_argument("--quick", action="store_true", help="few numbers of queries, and one shape")
    parser.add_argument("--queries", type=int, help="so many and no other numbers")
    parser.set_defaults(repeat=3)
    args = parser.parse_args()
    print(f"machine: {corpora.machine()}, lxml {lxml.etree.__version__}; {thread_count()} threads; MB/s of XML")
    ratios = "".join(f"{ours + '/' + theirs:>15}" for ours, theirs in RATIOS)
    plays = str(corpora.SAMPLES / "xml" / "plays.parquet")
    for given in args.corpora or (CORPORA if corpora.SHARED.is_dir() else [plays]):
        name, text = load(given)
        sample = Sample(first(text.sample(fraction=1, shuffle=True, seed=1), SAMPLED).to_list())
        start = time.perf_counter()
        compressed = tadoc.compress(text, tokenizer="xml")
        seconds = time.perf_counter() - start
        megabytes = text.str.len_bytes().sum() / 1e6
        print(f"\n{name}: {len(text):,} documents, {megabytes:.1f} MB, compressed at {megabytes / seconds:.0f} MB/s")
        print(f"{'queries':>8}{'nodes':>6}{'splits':>7}{'*':>5}{'//':>5}{'true':>6} |", end="")
        print("".join(f"{way:>9}" for way in SHOWN) + " |" + ratios)
        for count, shape in grid(args.full, args.quick, args.queries):
            drawn = sample.draw(count, shape, seed=count)
            ways = contenders(text, compressed, drawn)
            true = len(ways["text"].run()) / len(text) / len(drawn.queries)
            print(f"{len(drawn.queries):8,}{shape.nodes:6}{shape.splits:7}{shape.wildcards:5.0%}", end="")
            print(f"{shape.descendants:5.0%}{true:6.0%} |{report(race(ways, args.repeat))}", flush=True)


if __name__ == "__main__":
    main()
