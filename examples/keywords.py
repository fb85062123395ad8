"""Keywords of presidential speeches: the words that distinguish each speech, and words with fixed ids."""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc

DATA = Path(__file__).parent / "data"


def main() -> None:
    """Run the tour."""
    speeches = pl.read_parquet(DATA / "speeches.parquet").with_row_index("speech")
    df = speeches.tadoc.compress("text")
    pl.Config.set_fmt_table_cell_list_len(4)

    print("# The four heaviest words of each speech by TF-IDF, joined to the speech, without the frequent words.")
    frequent = df.tadoc.word_count("text", lowercase=True, top=150)["word"]
    keywords = df.tadoc.tfidf("text", id="speech", top=4, lowercase=True, stopwords=frequent).rename({"id": "speech"})
    lists = keywords.group_by("speech", maintain_order=True).agg(pl.col("word").alias("keywords"))
    print(df.select("speech", "year", "speaker").join(lists, on="speech").drop("speech").tail(5))

    print("\n# The same by BM25, from the plain text, without compressing.")
    print(speeches.tadoc.bm25_weights("text", id="year", top=1, lowercase=True, scoring="wakatsuki").tail(3))

    print("\n# A matrix for scikit-learn: which speech is most similar to the first one?")
    matrix, words = df.tadoc.to_csr("text", lowercase=True, weights=tadoc.TFIDF())
    likeness = (matrix @ matrix[[0]].T).toarray()[:, 0]
    likest = df[int(likeness[1:].argmax()) + 1].select("year", "speaker").row(0)
    print(f"{len(words):,} words; {df['speaker'][0]}, {df['year'][0]} is most like {likest[1]}, {likest[0]}")

    print("\n# A dictionary gives words fixed ids: in frames, files and other processes.")
    known = tadoc.Dictionary.from_words(df.tadoc.word_count("text", lowercase=True, min_count=3)["word"])
    print(known, f"in {known.nbytes / 1000:.0f} kB")
    print(known.with_prefix("constitut")["word"].to_list())
    with tempfile.TemporaryDirectory() as folder:
        known.save(f"{folder}/speeches.dictionary")
        again = tadoc.Dictionary.load(f"{folder}/speeches.dictionary")
        print(again.ids(pl.Series("word", ["union", "liberty", "spaceship"])).to_list(), "unknown:", again.unknown)

    print("\n# Only words of the dictionary get weights.")
    print(df.tadoc.bm25_weights("text", id="year", lowercase=True, dictionary=known, top=1).tail(3))


if __name__ == "__main__":
    main()
