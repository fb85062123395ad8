"""Dictionaries on the GPU: ways to map the words of texts to ids, look-ups and spelled words a second.

``python -m benchmarks.gpu_dictionary [corpus …] [--vocabulary words.parquet] [--words 10000000]``. First the words
of each corpus, of documents drawn as Wakatsuki et al. drew theirs, and of a hostile mix (one word in a hundred has
thousands of bytes), all cut on the device beforehand, are mapped to the ids of one dictionary, in several ways. Then
n-grams of the corpora make a dictionary of so many entries, which are looked up and spelled, by their real frequency
and drawn evenly. Results are checked equal before anything is timed. Times are medians between CUDA events, but for
those end to end, which are the clock's, from a Polars series in host memory to ids in host memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import cupy
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from benchmarks import corpora, drawn_text
from benchmarks.gpu_sequences import device_ms, wall_ms
from polars_tadoc.engine import cuda
from polars_tadoc.kernels.primitives import primitives_cuda as primitives
from polars_tadoc.kernels.primitives import upload_cuda as upload
from polars_tadoc.kernels.tokenize import characters
from polars_tadoc.kernels.tokenize import intern_cuda as intern
from polars_tadoc.kernels.tokenize import tokenize_cuda as tokenize
from polars_tadoc.kernels.tokenize import tokenizer as on_cpu
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.kernels.trie import trie_cuda as trie
from polars_tadoc.kernels.trie import word_table_cuda as word_table
from polars_tadoc.kernels.trie.trie_cpu import build_trie
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.arrow_memory import binary_views
from polars_tadoc.runtime.device import with_headers

WORDS = Tokenizer("words")
_THREADS = 256


class Tokens(NamedTuple):
    """Words on the device."""

    text: Any
    starts: Any
    stops: Any


def load(words: Vocabulary) -> trie.ResidentTrie:
    """Make and load the dictionary of some words, in code point order, and say what it takes."""
    start = time.perf_counter()
    built = build_trie(words.offsets, words.data)
    made = time.perf_counter() - start
    loaded = trie.load_trie(built)
    assert loaded.table is not None
    calls = {"all": lambda: trie.load_trie(built), "copy": lambda: trie.copy_trie(built)}
    ms = device_ms(calls, 3)
    size, entries, taken = int(words.offsets[-1]), len(words), loaded.trie.nbytes
    print(
        f"dictionary: {entries:,} words of {size / entries:.1f} bytes; trie made by the CPU in {made:.2f} s, "
        f"{taken / 1e6:.1f} MB ({8 * taken / entries:.1f} bits a word), copied in {ms['copy']:.2f} ms; words spelled "
        f"and their table made in {ms['all'] - ms['copy']:.2f} ms, {loaded.table.nbytes / 1e6:.1f} MB"
    )
    return loaded


def by_table(words: trie.ResidentTrie, tokens: Tokens) -> Any:
    """Look each token up in a hash table of the dictionary's words."""
    assert words.table is not None
    return word_table.find_words(words.table, *tokens)


def by_trie(words: trie.ResidentTrie, tokens: Tokens) -> Any:
    """Walk the trie with each token; lanes of a warp take tokens as they have done with others."""
    return trie.walk_words(words.trie, *tokens)


def by_trie_in_step(words: trie.ResidentTrie, tokens: Tokens) -> Any:
    """Walk the trie with each token; lanes of a warp take one token each."""
    return trie.walk_words(words.trie, *tokens, chunk=32)


def by_interning(words: trie.ResidentTrie, tokens: Tokens) -> Any:
    """Number the text's own distinct words in a hash table, walk the trie with each of those once."""
    found = intern._fill_table(*tokens, True, False)
    count = len(found.entries)
    starts, stops = cupy.empty(count, np.uint32), cupy.empty(count, np.uint32)
    intern.launch_each(
        *("intern", "describe_entries", count),
        *(found.entries, np.uint32(count), found.slots, None, tokens.starts, tokens.stops, None, starts, stops),
    )
    slot_ids = cupy.empty(len(found.slots), np.uint32)
    slot_ids[found.entries] = trie.walk_words(words.trie, tokens.text, starts, stops)
    ids, number = cupy.empty(len(tokens.starts), np.uint32), np.uint32(len(tokens.starts))
    intern.launch_each("intern", "map_slots", len(ids), found.string_slots, number, slot_ids, ids)
    return ids


def by_sorting(words: trie.ResidentTrie, tokens: Tokens) -> Any:
    """Sort the tokens' hashes, walk the trie with the first token of each run; equal hashes count as equal words."""
    count = len(tokens.starts)
    hashes = cupy.empty(count, np.uint64)
    _hash_kernel()((-(-count // _THREADS),), (_THREADS,), (*tokens, np.uint32(count), hashes))
    keys, order = primitives.radix_sort(hashes, cupy.arange(count, dtype=np.uint32), overwrite=True)
    first = cupy.ones(count, np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    chosen = primitives.compact(order, first)
    found = trie.walk_words(words.trie, tokens.text, tokens.starts[chosen], tokens.stops[chosen])
    runs = primitives.exclusive_scan(first)[1:]
    ids = cupy.empty(count, np.uint32)
    ids[order] = found[runs - 1]
    return ids


def _hash_kernel() -> Any:
    if "hash" not in _kernels:
        text = Path(__file__).with_name("word_hashes.cu").read_text("utf-8")
        _kernels["hash"] = cupy.RawModule(code=with_headers(text), options=("-std=c++17",)).get_function("hash_tokens")
    return _kernels["hash"]


_kernels: dict[str, Any] = {}

WAYS: dict[str, Callable[[trie.ResidentTrie, Tokens], Any]] = {
    "table": by_table,
    "trie": by_trie,
    "trie in step": by_trie_in_step,
    "distinct words": by_interning,
    "sort": by_sorting,
}


def cut(text: pl.Series) -> Tokens:
    """Cut texts into words on the device, leaving out the tokens without bytes that end rows."""
    addresses, lengths, views = binary_views(text)
    before = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    bytes_ = upload.upload_rows(addresses, before)
    del views
    spans = tokenize._spans_of_classes(bytes_, before.astype(np.uint32), characters.classes("words"))
    assert spans is not None
    kept = spans.starts != spans.stops
    return Tokens(bytes_, primitives.compact(spans.starts, kept), primitives.compact(spans.stops, kept))


def hostile(words: pl.Series, size: int, seed: int = 1) -> pl.Series:
    """Mix long words among those given, each a row: one in a hundred has 2,000 to 20,000 bytes."""
    random = np.random.default_rng(seed)
    long = pl.Series(["x" * int(n) for n in random.integers(2_000, 20_000, 200)]) + words.head(200)
    short = words.gather(random.integers(0, len(words), size))
    places = random.integers(0, size, size // 100)
    drawn = long.gather(random.integers(0, len(long), len(places)))
    return short.scatter(places, drawn)


def in_order(words: pl.Series) -> Vocabulary:
    """Distinct words, ascending by their bytes."""
    return Vocabulary(_large(words.unique().sort()))


def compare(label: str, words: trie.ResidentTrie, tokens: Tokens, repeat: int) -> None:
    """Map some tokens in every way and print what each takes."""
    count, unknown = len(tokens.starts), words.trie.trie.words
    expected = by_trie(words, tokens)
    for name, way in WAYS.items():
        if not bool((way(words, tokens) == expected).all()):
            raise SystemExit(f"{label}, {name}: WRONG")
    known = int((expected != unknown).sum())
    taken = device_ms({name: partial(way, words, tokens) for name, way in WAYS.items()}, repeat)
    print(f"{label}: {count:,} words, {known / max(count, 1):.1%} known, {len(cupy.unique(expected)):,} distinct ids")
    for name, ms in taken.items():
        print(f"  {name:16}{ms:9.3f} ms {count / ms / 1e3:12,.0f} M/s")


def n_grams(texts: list[pl.Series], size: int) -> tuple[Vocabulary, npt.NDArray[np.int64]]:
    """Words, pairs and triples of neighbouring words, ascending, and how often each occurs: so many, frequent first.

    Where words are numbered in order, so are the numbers of n-grams: a space stands before any byte of a word.
    """
    tokens = on_cpu.tokenize(pl.concat(texts).rechunk(), WORDS, lossless=False)
    vocabulary = Vocabulary(tokens.vocabulary)
    bits = np.uint64(len(vocabulary).bit_length())
    numbers = np.append(vocabulary.rank + np.uint64(1), np.uint64(0))
    placed = numbers[np.minimum(tokens.sequence, len(vocabulary))]
    first, second, third = placed[:-2], placed[1:-1], placed[2:]
    pair = first << bits | second
    keys = [first << bits + bits, pair << bits, pair << bits | third]
    kept = [first != 0, (first != 0) & (second != 0), (first != 0) & (second != 0) & (third != 0)]
    counted = pl.Series("key", np.concatenate([key[there] for key, there in zip(keys, kept, strict=True)]))
    chosen = counted.value_counts(sort=True).head(size).sort("key")
    found, mask = chosen["key"].to_numpy(), (np.uint64(1) << bits) - np.uint64(1)
    words = pl.Series(pl.from_arrow(tokens.vocabulary)).gather(np.argsort(vocabulary.rank))
    spaced = pl.concat([pl.Series([""]), " " + words])
    joined = (
        words.gather((found >> bits + bits) - np.uint64(1))
        + spaced.gather(found >> bits & mask)
        + spaced.gather(found & mask)
    )
    return Vocabulary(_large(joined)), chosen["count"].to_numpy().astype(np.int64)


def _large(strings: pl.Series) -> pa.LargeStringArray:
    return strings.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.large_string())


def look_ups(words: Vocabulary, counts: npt.NDArray[np.int64], number: int, repeat: int) -> None:
    """Look up and spell entries of a large dictionary."""
    loaded = load(words)
    random = np.random.default_rng(2)
    by_number = trie.walk_words(loaded.trie, *_rows(words))  # ids in code point order
    assert bool((cupy.sort(by_number) == cupy.arange(len(words), dtype=np.uint32)).all())
    pool = np.repeat(np.arange(len(words), dtype=np.uint32), counts)
    for label, drawn in (
        ("by real frequency", random.choice(pool, number)),
        ("drawn evenly", random.integers(0, len(words), number)),
    ):
        ids = by_number[cupy.asarray(drawn.astype(np.int64))]
        offsets, data = trie.spell_by_trie(loaded.trie, ids)
        tokens = Tokens(data, offsets[:-1].astype(np.uint32), offsets[1:].astype(np.uint32))
        for name, way in WAYS.items():
            assert bool((way(loaded, tokens) == ids).all()), name
        compare(label, loaded, tokens, repeat)
        ways = {"by trie": partial(trie.spell_by_trie, loaded.trie, ids), "copied": partial(trie.spell, loaded, ids)}
        for array, expected in zip(trie.spell(loaded, ids), (offsets, data[: int(offsets[-1])]), strict=True):
            assert bool((array == expected).all())
        for name, ms in device_ms(ways, repeat).items():
            size = int(offsets[-1]) / 1e6
            print(f"  spelled, {name:7}{ms:9.3f} ms {number / ms / 1e3:12,.0f} M/s, {size:,.0f} MB")
        series = words.series.gather(drawn)
        assert np.array_equal(cuda.to_arrow([trie.look_up_rows(loaded, series)])[0].to_numpy(), cuda.to_host(ids))
        ms = wall_ms(lambda: cuda.to_arrow([trie.look_up_rows(loaded, series)]), repeat)  # noqa: B023
        print(f"  end to end      {ms:9.2f} ms {number / ms / 1e3:12,.0f} M/s")


def _rows(words: Vocabulary) -> Tokens:
    offsets = cupy.asarray(words.offsets.astype(np.uint32))
    data = cupy.zeros(len(words.data) + upload.PADDING, np.uint8)
    data[: len(words.data)] = cupy.asarray(words.data)
    return Tokens(data, offsets[:-1], offsets[1:])


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--vocabulary", type=Path, help="written by benchmarks.drawn_text (default: made anew)")
    parser.add_argument("--megabytes", type=int, default=100, help="of drawn documents")
    parser.add_argument("--words", type=int, default=10_000_000, help="entries of the large dictionary")
    parser.add_argument("--look-ups", type=int, default=20_000_000)
    args = parser.parse_args()
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"machine: {corpora.machine()}; {name}, CuPy {cupy.__version__}")
    texts = dict(corpora.load(name) for name in corpora.names(args.corpora))
    vocabulary = drawn_text.vocabulary(args.vocabulary)
    mixed = hostile(vocabulary["word"].head(20_000), 2_000_000)
    loaded = load(in_order(pl.concat([vocabulary["word"], mixed])))
    for label, text in texts.items():
        compare(label, loaded, cut(text), args.repeat)
    compare("drawn documents", loaded, cut(drawn_text.draw(vocabulary, args.megabytes)), args.repeat)
    compare("hostile mix", loaded, cut(mixed), args.repeat)
    del loaded
    cupy.get_default_memory_pool().free_all_blocks()
    look_ups(*n_grams(list(texts.values()), args.words), args.look_ups, args.repeat)


if __name__ == "__main__":
    main()
