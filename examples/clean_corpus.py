"""Clean a corpus: what is repeated, what is left without it, what each version adds, what a test set has, too.

    python examples/clean_corpus.py [TEXTS.parquet [GROUP [TEST_SET.parquet]]]

The first file has columns ``text`` and GROUP, by default ``version``; the second one a column ``text``. Without files,
some PEPs stand in for a manual with two versions, and a few of their sentences for a test set.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc

DATA = Path(__file__).parent / "data"
BAR = 40
"""Characters of a bar that stands for all words."""


def load(paths: list[str]) -> tuple[pl.DataFrame, pl.Series]:
    """Return texts with a column ``group``, in its order, and the test set."""
    if paths:
        group = paths[1] if len(paths) > 1 else "version"
        texts = pl.read_parquet(paths[0]).select(pl.col(group).cast(pl.String).alias("group"), "text")
        tests = pl.read_parquet(paths[2])["text"] if len(paths) > 2 else texts["text"].head(0)
        return texts.sort("group", maintain_order=True), tests
    peps = pl.read_parquet(DATA / "peps.parquet").select("text")
    edited = peps.with_columns(pl.col("text").str.replace_all("Guido", "the author"))
    texts = pl.concat([peps.with_columns(group=pl.lit("1.0")), edited.with_columns(group=pl.lit("2.0"))])
    return texts, peps.select(pl.col("text").tadoc.extract(500, 20)).to_series().head(5)


def main() -> None:
    """Run the job."""
    texts, tests = load(sys.argv[1:])
    df = texts.with_row_index("row").tadoc.compress("text")
    size = texts["text"].str.len_bytes().sum()
    words = pl.col("text").tadoc.token_count()
    total = df.select(words.sum()).item()
    print(f"# {df.height:,} rows, {size:,} bytes, {total:,} words. Which passages of 50 words and more are repeated?")
    passages = df.tadoc.repeats("text", id="row")
    share = df.select((pl.col("text").tadoc.repeated_share() * words).sum() / total).item()
    print(f"{passages.height:,} passages with {share:.1%} of the words")
    most = passages.sort("copies", descending=True).unique("copies", maintain_order=True).head(5)
    shown = most.join(df, left_on="id", right_on="row", maintain_order="left")
    print(shown.select("copies", "length", begins=pl.col("text").tadoc.extract("offset", 8)))

    print("\n# Without later copies, the first of each stays. The column keeps its form.")
    left = df.tadoc.drop_repeats("text")
    kept = left.select(words.sum()).item()
    text_left = left.tadoc.decompress("text")["text"].str.len_bytes().sum()
    print(f"{kept:,} words are left, {kept / total:.1%}; {text_left:,} bytes")
    rows = {share: df.tadoc.drop_repeats("text", unit="row", share=share).height for share in (1.0, 0.8)}
    print(f"of {df.height:,} rows, {rows[1.0]:,} are no copies, {rows[0.8]:,} are not to 80 % copies")

    kept_rows = df.tadoc.duplicate_groups("text", id="row")["keep"].sum()
    pairs = df.tadoc.near_duplicates("text", id="row").filter(pl.col("similarity") < 1).height
    print(
        f"{kept_rows:,} stay if one of each group of near duplicates does; {pairs:,} pairs of distinct rows are similar"
    )

    print("\n# What does each group add? The share of its words in no window of 8 words of an earlier row.")
    new = pl.col("text").tadoc.novelty()
    added = df.select("group", words=words, new=new * words).group_by("group", maintain_order=True).sum()
    for group, of_group, new_words in added.filter(pl.col("words") > total / 1000).rows():
        part = new_words / of_group
        print(f"{group:>14} {of_group:>10,} words {'█' * round(BAR * part):<{BAR}} {part:.1%}")

    print("\n# Which passages does a test set have, too?")
    known = tadoc.PassageSet(tests, length=13, lowercase=True)
    found = df.tadoc.overlap("text", known, id="row")
    clean = df.filter(~pl.col("text").tadoc.overlaps(known).fill_null(False)).height
    of_tests = found["reference"].n_unique()
    print(f"{found.height:,} matches with {of_tests:,} of {len(tests):,} tests; {clean:,} rows have none")


if __name__ == "__main__":
    main()
