"""Size and build time of search indices beside bm25s: ``python -m benchmarks.index_size``.

Bytes of saved indices without the text, ours in parts, and bm25s' of the same words (its own ``save``, its defaults).
Then seconds to build, words as they are (no lower-casing, no stop words): ours of the compressed column, ours of text,
compression included, and bm25s' tokenizing and indexing, its faster tokenizer and the faster of its two ways to sort
(SciPy, or Numba compiled beforehand); contenders take turns, printed are medians, and ratios over rounds. bm25s runs on
one thread whatever it is given. Saving and loading are timed, too.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.search import passages
from benchmarks.side_by_side import Contenders, median_ms, ratio, times
from polars_tadoc.index.codecs import CODECS
from polars_tadoc.model.grammar_cache import grammars

COLLECTIONS = ["docs_tldr", "logs_elastic", "xml_acl_papers", "prose_books", "ir_vaswani_docs"]
PARTS = ("gaps", "counts", "heads", "frequencies", "terms", "lengths", "ids", "other")


def saved_bytes(save: Callable[[Path], Any]) -> Counter[str]:
    """Bytes of the files that are saved, by name."""
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / "index")
        return Counter({file.name: file.stat().st_size for file in (Path(folder) / "index").iterdir()})


def parts(index: tadoc.Index) -> Counter[str]:
    """Bytes of our index by part."""
    known: Counter[str] = Counter()
    for name, size in saved_bytes(index.save).items():
        part = name.split(".")[1] if name.startswith("segment") else name.split(".")[0]
        known[part if part in PARTS else "other"] += size
    return known


def words_of(column: pl.Series) -> Any:
    """The column's words as bm25s takes them; of a document it only asks how often it has which."""
    from bm25s.tokenization import Tokenized

    counted = column.to_frame("text").tadoc.term_vector("text")
    words = counted["word"].unique(maintain_order=True)
    numbers = counted["word"].cast(pl.Enum(words)).to_physical().to_numpy()
    counts = counted["count"].to_numpy()
    ends = np.cumsum(np.bincount(counted["id"].to_numpy(), counts, len(column))).astype(np.int64)
    rows = np.split(np.repeat(numbers, counts.astype(np.int64)), ends[:-1])
    return Tokenized([row.tolist() for row in rows], {word: number for number, word in enumerate(words)})


def bm25s_index(tokens: Any, sort: Any = None) -> Any:
    """Build bm25s' index; with a function compiled beforehand, else with SciPy."""
    import bm25s

    model = bm25s.BM25(csc_backend="scipy" if sort is None else "numpy")
    if sort is not None:
        model._np_csc = sort
    model.index(tokens, show_progress=False)
    return model


def compiled_sort() -> Any:
    """The function that ``activate_numba_csc`` compiles for every new index, compiled once."""
    import bm25s

    model = bm25s.BM25(csc_backend="numpy")
    model.activate_numba_csc()
    model.warmup_numba_csc()
    return model._np_csc


def builders(text: pl.Series, column: pl.Series) -> Contenders:
    """What is timed."""
    import bm25s

    texts = text.to_list()
    sort = compiled_sort()

    def ours(column: pl.Series, codec: str = "pfordelta") -> tadoc.Index:
        grammars.clear()  # decoded grammars and their tables
        return tadoc.build_index(column, codec=codec, store=False)

    def tokens() -> Any:
        tokenizer = bm25s.tokenization.Tokenizer(lower=False, stopwords=None, splitter=r"\w+")
        return tokenizer.tokenize(texts, return_as="tuple", show_progress=False)

    return {
        **{codec: lambda codec=codec: ours(column, codec) for codec in CODECS},  # type: ignore[misc]
        "from text": lambda: ours(text.tadoc.compress()),
        "bm25s, SciPy": lambda: bm25s_index(tokens()),
        "bm25s, Numba": lambda: bm25s_index(tokens(), sort),
    }


def report_sizes(name: str, column: pl.Series) -> None:
    """Print sizes."""
    theirs = saved_bytes(bm25s_index(words_of(column)).save)
    for codec in CODECS:
        index = tadoc.build_index(column, codec=codec, store=False)
        known = parts(index)
        print(f"{name:16}{codec:>10}{index.postings:>12,}", end="")
        print("".join(f"{known[part]:>11,}" for part in PARTS), end="")
        print(f"{known.total():>12,}{theirs.total():>13,}{known.total() / theirs.total():>8.3f}", flush=True)


def report_times(name: str, text: pl.Series, column: pl.Series, repeat: int) -> None:
    """Print times of building, saving and loading."""
    contenders = builders(text, column)
    for threads in (1, 2):
        tadoc.Config.set(threads=threads)
        taken = times(contenders, repeat)
        fastest = min(("bm25s, SciPy", "bm25s, Numba"), key=lambda contender: median_ms(taken, contender))
        print(f"{name:16}{threads:>8}", end="")
        print("".join(f"{median_ms(taken, contender):>14,.0f}" for contender in contenders), end="")
        print("".join(f"{ratio(taken, fastest, ours):>11.1f}" for ours in ("pfordelta", "from text")), flush=True)
    index = tadoc.build_index(column)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        taken = times(
            {
                "save": lambda: index.save(path, overwrite=True),
                "load": lambda: tadoc.load_index(path),
                "load and check": lambda: tadoc.load_index(path, verify="all"),
                "load unverified": lambda: tadoc.load_index(path, verify=False),
            },
            repeat,
        )
    print(f"{name:16}{'':8}" + ", ".join(f"{what} {median_ms(taken, what):.0f} ms" for what in taken) + " (with text)")


def main() -> None:
    args = corpora.arguments(__doc__ or "").parse_args()
    print(f"machine: {corpora.machine()}")
    loaded = {name: passages(*corpora.load(name)) for name in args.corpora or COLLECTIONS}
    columns = {name: text.tadoc.compress() for name, text in loaded.items()}
    print(f"\nbytes\n{'collection':16}{'codec':>10}{'postings':>12}", end="")
    print("".join(f"{part:>11}" for part in PARTS) + f"{'all':>12}{'bm25s':>13}{'ratio':>8}")
    for name, column in columns.items():
        report_sizes(name, column)
    print(f"\nms to build\n{'collection':16}{'threads':>8}", end="")
    print("".join(f"{name:>14}" for name in (*CODECS, "from text", "bm25s, SciPy", "bm25s, Numba")), end="")
    print(f"{'faster':>11}{'from text':>11}")
    for name, text in loaded.items():
        report_times(name, text, columns[name], args.repeat)


if __name__ == "__main__":
    main()
