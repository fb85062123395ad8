"""All calls on shared frames from many threads at once, while caches are emptied under them: equal results.

``python -m tests.eight_threads`` runs one round and says what differed; ``benchmarks.soak`` goes on for minutes.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from polars.testing import assert_frame_equal

import polars_tadoc as tadoc
from polars_tadoc.model.grammar_cache import grammars

THREADS = 8
BUDGETS = (0, 1 << 14, 1 << 20, 2 << 30)
"""Bytes of the cache of grammars, one after another: from one that keeps nothing to the default."""

MEMORY = 400_000
"""Bytes that one grammar fits into, and the result does not."""

text, xml = pl.col("text").tadoc, pl.col("xml").tadoc


class Shared:
    """What the threads share; all of it is made anew from a number, so that no two of them have equal grammars.

    Parameters
    ----------
    number
        Which one.
    folder
        Where its files are.

    """

    def __init__(self, number: int, folder: Path) -> None:
        numbers = random.Random(number)
        words = [f"w{numbers.randrange(60)}" for _ in range(40)] + [f"x{number}y{place}" for place in range(9)]
        phrases = [" ".join(numbers.choices(words, k=7)) for _ in range(30)]
        rows = [" ".join(numbers.choices(phrases, k=5)) for _ in range(300)]
        rows[7], self.phrase = None, phrases[0]  # type: ignore[call-overload]
        elements = [f"<a><b n='{numbers.randrange(5)}'>{numbers.choice(words)}</b><c/></a>" for _ in rows]
        plain = pl.DataFrame({"id": range(300), "group": [row % 7 for row in range(300)], "text": rows})
        self.plain = plain.with_columns(pl.Series("xml", elements))
        self.frame = self.plain.tadoc.compress("text", rows_per_grammar=80).with_columns(
            xml.compress(tokenizer="xml", rows_per_grammar=150)
        )
        self.packed = folder / f"{number}.parquet"
        self.frame.drop("xml").tadoc.write_packed(self.packed, "text")
        self.twigs = tadoc.TwigSet({"one": "//b[@n='1']", "text": f"/a[b/text()='{words[0]}']", "all": "//c"})
        self.dictionary = tadoc.Dictionary.from_words(pl.Series(words).unique())
        self.words = pl.Series(words)
        self.index = self.frame.tadoc.build_index("text", id="id")
        self.index.save(folder / f"{number}.index")
        self.folder = folder
        self.own = itertools.count()

    def path(self, suffix: str) -> Path:
        """A file that no other thread writes."""
        return self.folder / f"own{next(self.own)}{suffix}"


def scan(shared: Shared) -> Any:
    return tadoc.scan_packed(shared.packed)


def written(shared: Shared) -> pl.DataFrame:
    path = shared.path(".parquet")
    shared.frame.select("id", "text").tadoc.write_packed(path)
    found = tadoc.scan_packed(path).tadoc.decompress("text").collect()
    path.unlink()
    return found


def streamed(shared: Shared) -> pl.DataFrame:
    path = shared.path(".parquet")
    shared.plain.lazy().select("id", "text").tadoc.compress("text", rows_per_grammar=80).tadoc.sink_packed(path)
    found = tadoc.scan_packed(path).tadoc.word_count("text").collect()
    path.unlink()
    return found


def sunk(shared: Shared) -> pl.DataFrame:
    path = shared.path(".parquet")
    counts = shared.frame.lazy().tadoc.sequence_count("text", n=2, memory_limit=MEMORY)
    counts.tadoc.sink_parquet(path)
    found = pl.read_parquet(path)
    path.unlink()
    return found


def sunk_index(shared: Shared) -> pl.DataFrame:
    path = shared.path(".index")
    scan(shared).tadoc.sink_index(path, "text", id="id", memory_limit="1GB")
    found = tadoc.load_index(path).search(["w1 w2", "w3"], 5)
    shutil.rmtree(path)
    return found


def saved_dictionary(shared: Shared) -> pl.DataFrame:
    path = shared.path(".dictionary")
    shared.dictionary.save(path)
    found = tadoc.Dictionary.load(path).ids(shared.words).to_frame()
    path.unlink()
    return found


def appended(shared: Shared) -> pl.DataFrame:
    new = shared.frame.head(9).with_columns(pl.col("id") + 999)
    return new.tadoc.append_to(shared.index, "text", id="id").search(["w7"])


CALLS: dict[str, Callable[[Shared], pl.DataFrame]] = {
    "compress": lambda s: s.plain.tadoc.compress("text").tadoc.decompress("text"),
    "compress in a plan": lambda s: s.plain.lazy().tadoc.compress("text").tadoc.word_count("text").collect(),
    "compress like": lambda s: tadoc.decompress(tadoc.compress(s.plain["text"], like=s.frame["text"])).to_frame(),
    "sequitur": lambda s: tadoc.decompress(tadoc.compress(s.plain["text"][:40], method="sequitur")).to_frame(),
    "decompress": lambda s: s.frame.tadoc.decompress("text"),
    "recompress": lambda s: s.frame.tadoc.recompress("text").tadoc.word_count("text"),
    "word_count": lambda s: s.frame.tadoc.word_count("text"),
    "sort": lambda s: s.frame.tadoc.sort("text"),
    "inverted_index": lambda s: s.frame.tadoc.inverted_index("text", id="id"),
    "term_vector": lambda s: s.frame.tadoc.term_vector("text", strategy="bottom_up"),
    "sequence_count": lambda s: s.frame.tadoc.sequence_count("text", n=3),
    "ranked_inverted_index": lambda s: s.frame.tadoc.ranked_inverted_index("text", n=2),
    "cooccurrence": lambda s: s.frame.tadoc.cooccurrence("text", window=3),
    "normalized": lambda s: s.frame.tadoc.word_count("text", normalize=pl.element().str.head(2), stopwords=["w1"]),
    "bm25_weights": lambda s: s.frame.tadoc.bm25_weights("text"),
    "bm25_weights of text": lambda s: s.plain.tadoc.bm25_weights("text"),
    "tfidf": lambda s: s.frame.tadoc.tfidf("text"),
    "info": lambda s: s.frame.tadoc.info("text").drop("bytes", "ratio", strict=False),
    "expressions": lambda s: s.frame.select(
        text.token_count(),
        first=text.head(3),
        middle=text.extract(2, 4),
        phrases=text.count_phrase(s.phrase),
        any=text.contains_any(["w1 w2", s.phrase]),
        score=text.bm25("w1 w5"),
    ),
    "a condition": lambda s: s.frame.filter(text.contains_phrase(s.phrase)).select("id"),
    "groups": lambda s: s.frame.group_by("group", maintain_order=True).agg(text.word_count()),
    "a plan": lambda s: s.frame.lazy().filter(pl.col("group") > 2).tadoc.inverted_index("text").collect(),
    "a streaming plan": lambda s: s.frame.lazy().tadoc.word_count("text").collect(engine="streaming"),
    "limited memory": lambda s: s.frame.lazy().tadoc.sequence_count("text", n=2, memory_limit="1GB").collect(),
    "memory for a part of the result": lambda s: (
        scan(s).tadoc.sequence_count("text", n=3, memory_limit=MEMORY).collect()
    ),
    "sink_parquet": sunk,
    "sink_index": sunk_index,
    "text in limited memory": lambda s: s.plain.lazy().tadoc.tfidf("text", memory_limit="1GB").collect(),
    "pack": lambda s: s.frame.drop("xml").tadoc.pack("text").tadoc.unpack().tadoc.decompress("text"),
    "write_packed": written,
    "sink_packed": streamed,
    "scan_packed": lambda s: scan(s).filter(pl.col("id") % 3 == 1).tadoc.decompress("text").collect(),
    "scan_packed in the streaming engine": lambda s: scan(s).tadoc.decompress("text").collect(engine="streaming"),
    "packed word_count": lambda s: scan(s).tadoc.word_count("text").collect(),
    "packed, limited": lambda s: scan(s).tadoc.term_vector("text", id="id", memory_limit="1GB").collect(),
    "packed, twice": lambda s: (
        scan(s).tadoc.word_count("text").join(scan(s).tadoc.sort("text"), on="word", maintain_order="left").collect()
    ),
    "twigs of text": lambda s: s.plain.select(xml.twig_filter(s.twigs)),
    "twigs": lambda s: s.frame.select(xml.twig_filter(s.twigs)),
    "twig_filter": lambda s: s.frame.tadoc.twig_filter("xml", s.twigs),
    "twigs in limited memory": lambda s: s.frame.lazy().tadoc.twig_filter("xml", s.twigs, memory_limit="1GB").collect(),
    "build_index": lambda s: s.frame.tadoc.build_index("text", id="id").search(["w1 w2", "w3"], 5),
    "search": lambda s: pl.concat([s.index.search(["w1 w2", "w3 w4 w5"], 9, mode=m) for m in ("and", "or")]),
    "phrases": lambda s: s.index.search([f'"{s.phrase}"', "w1"], 5),
    "append": appended,
    "load_index": lambda s: tadoc.load_index(s.folder / s.packed.with_suffix(".index").name).search(["w1", "w2"], 7),
    "dictionary": lambda s: pl.concat([s.dictionary.with_prefix("w"), s.dictionary.with_prefix("x")]),
    "dictionary's file": saved_dictionary,
}


class Round:
    """Some threads that make all calls, each in an order of its own, and what they found wrong.

    Parameters
    ----------
    shared
        What they are made on.
    seed
        Of the orders.

    """

    def __init__(self, shared: Shared, seed: int) -> None:
        self.shared = shared
        self.expected = {name: call(shared) for name, call in CALLS.items()}
        self.wrong: list[str] = []
        self.made = 0
        self._seed = seed
        self._lock = threading.Lock()

    def run(self) -> None:
        """Make the calls; returns when all threads are done."""
        threads = [threading.Thread(target=self._calls, args=(number,), daemon=True) for number in range(THREADS)]
        done = threading.Event()
        evicting = threading.Thread(target=evict, args=(done,), daemon=True)
        for thread in (*threads, evicting):
            thread.start()
        for thread in threads:
            thread.join()
        done.set()
        evicting.join()

    def _calls(self, number: int) -> None:
        names = list(CALLS)
        random.Random(f"{self._seed} {number}").shuffle(names)
        for name in names:
            try:
                assert_frame_equal(CALLS[name](self.shared), self.expected[name])
            except Exception as error:
                self.wrong.append(f"{name}: {type(error).__name__}: {error}")
            with self._lock:
                self.made += 1


def evict(done: threading.Event) -> None:
    """Change the budgets of caches, and empty them, until it is done."""
    for budget in itertools.cycle(BUDGETS):
        if done.wait(0.02):
            break
        tadoc.Config.set(host_cache_bytes=budget)
        if budget == 0:
            grammars.clear()
    tadoc.Config.reset()


def main() -> None:
    """Make one round, and say what was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--patience", type=float, default=240, help="seconds until all threads are shown")
    options = parser.parse_args()
    faulthandler.dump_traceback_later(options.patience, exit=True)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            start = time.perf_counter()
            made = Round(Shared(number, Path(folder)), number)
            alone = time.perf_counter()
            made.run()
            seconds = time.perf_counter() - alone
            print(f"{made.made} calls in {seconds:.1f} s after {alone - start:.1f} s by one thread")
            if made.wrong:
                raise SystemExit("\n".join(made.wrong))


if __name__ == "__main__":
    main()
