"""What a first use costs on a fresh machine: Numba's compilation, then the same with its cache filled.

``python -m benchmarks.first_call``: each line is a process of its own; the first one has an empty cache.
Calls come one after the other, so that each pays for what none before it has compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from benchmarks import corpora

STEPS = """
import time
start = time.perf_counter()
import polars as pl
import polars_tadoc as tadoc
def done(step):
    global start
    print(f"{step} {time.perf_counter() - start:.2f} s", end="; ", flush=True)
    start = time.perf_counter()
done("import")
column = tadoc.compress(pl.Series("text", ["to be, or not to be"] * 3))
done("compress")
tadoc.word_count(column)
done("word_count")
tadoc.decompress(column)
done("decompress")
tadoc.extract(column, 1, 2)
done("extract")
for name in ("term_vector", "inverted_index", "sequence_count", "ranked_inverted_index", "cooccurrence", "sort"):
    getattr(tadoc, name)(column)
    done(name)
index = tadoc.build_index(column)
done("build_index")
index.search("to be")
done("search")
index.append(column).delete([0]).compact()
done("append, delete and compact")
tadoc.bm25(column, "to be")
done("bm25")
tadoc.tfidf(column)
done("tfidf")
tadoc.tfidf(pl.Series("text", ["to be, or not to be"] * 3))
done("tfidf of a String column")
words = tadoc.Dictionary.from_words(pl.Series(["to", "be", "or", "not"]))
done("Dictionary.from_words")
words.ids(pl.Series(["to", "do"]))
done("Dictionary.ids")
words.words(pl.Series([0, 1]))
done("Dictionary.words")
"""


def main() -> None:
    print(f"machine: {corpora.machine()}")
    with tempfile.TemporaryDirectory() as cache:
        for label in ("nothing compiled yet", "compiled before"):
            print(f"{label}: ", end="", flush=True)
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            subprocess.run([sys.executable, "-c", STEPS], check=True, env=environment, cwd=corpora.ROOT)
            print()


if __name__ == "__main__":
    main()
