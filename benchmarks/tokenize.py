r"""Tokenizing speed: ``python -m benchmarks.tokenize``.

Beside it run, for scale, what Polars does on the same strings: ``str.count_matches(r"\w+")`` (finds the words,
keeps none), ``str.split(" ")`` (strings, not ids, and only at spaces) and splitting followed by a categorical
(word ids, nothing kept of what stood between). The last corpus is all of them in one column.
"""

from __future__ import annotations

import statistics

import polars as pl

from benchmarks import corpora, side_by_side
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize

OURS = "words"


def contenders(text: pl.Series) -> side_by_side.Contenders:
    """What runs on one corpus."""
    words, whitespace, xml = Tokenizer("words"), Tokenizer("whitespace"), Tokenizer("xml")
    return {
        OURS: lambda: tokenize(text, words),
        "words, lossy": lambda: tokenize(text, words, lossless=False),
        "whitespace": lambda: tokenize(text, whitespace),
        "xml": lambda: tokenize(text, xml),
        "count_matches": lambda: text.str.count_matches(r"\w+"),
        "split": lambda: text.str.split(" "),
        "split + categorical": lambda: text.str.split(" ").explode().cast(pl.Categorical()),
    }


def main() -> None:
    args = corpora.arguments(__doc__ or "").parse_args()
    print(f"machine: {corpora.machine()}")
    texts = dict(corpora.load(name) for name in corpora.names(args.corpora))
    if len(texts) > 1:
        texts["all of them"] = pl.concat(texts.values()).rechunk()
    for name, text in texts.items():
        size = int(text.str.len_bytes().sum() or 0)
        taken = side_by_side.times(contenders(text), args.repeat)
        print(f"{name}, {size / 1e6:.1f} MB")
        for contender, seconds in taken.items():
            median = statistics.median(seconds)
            ratio = side_by_side.ratio(taken, contender, OURS)
            print(f"  {contender:20} {median:8.3f} s {size / 1e6 / median:8.0f} MB/s {ratio:8.2f} x the time of {OURS}")


if __name__ == "__main__":
    main()
