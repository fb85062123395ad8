"""A corpus of versions is cleaned: copies found, dropped and proved; a test set saved and asked in a new process."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc
from tests.trials.corpora import manuals

LENGTH = 50
PROVED = 40
"""Passages that are searched for with plain Python."""

COMPARED = 15
"""Paragraphs that plain Python compares with all others."""

IN_A_NEW_PROCESS = """
import json, sys
import polars as pl
import polars_tadoc as tadoc
known, pages = tadoc.PassageSet.load(sys.argv[1]), pl.read_parquet(sys.argv[2])
found = pages.tadoc.overlap("text", known, id="page")
print(json.dumps([found["id"].unique().sort().to_list(), pages.filter(pl.col("text").tadoc.overlaps(known)).height]))
"""


def near(pages: pl.DataFrame) -> None:
    """Find near duplicates among paragraphs; plain Python compares some rows with all others."""
    paragraphs = pages["text"].str.split("\n\n").explode().drop_nulls()
    found = paragraphs.tadoc.near_duplicates(threshold=0.7)
    groups = paragraphs.tadoc.duplicate_groups(threshold=0.7)
    assert paragraphs.tadoc.compress().tadoc.duplicate_groups(threshold=0.7).equals(groups)
    assert groups["id"].to_list() == list(range(len(paragraphs)))
    assert groups.filter("keep")["id"].to_list() == groups["group"].unique().sort().to_list()
    of = groups["group"].to_list()
    assert all(of[one] == of[other] for one, other, _ in found.rows())

    words = [tuple(own) for own in paragraphs.str.extract_all(r"\w+").to_list()]
    firsts = {own: row for row, own in reversed([*enumerate(words)]) if own}
    sets = {row: {own[at : at + 5] for at in range(max(len(own) - 4, 1))} for own, row in firsts.items()}
    pairs = {(one, other): similarity for one, other, similarity in found.rows()}
    copies = {(firsts[own], row) for row, own in enumerate(words) if own and firsts[own] != row}
    assert copies <= pairs.keys()
    true = {}
    for row in random.Random(1).sample(sorted(sets), min(COMPARED, len(sets))):
        for other, members in sets.items():
            similarity = len(sets[row] & members) / len(sets[row] | members)
            if other != row and similarity >= 0.7:
                true[min(row, other), max(row, other)] = similarity
    assert true
    assert all(pairs[pair] == similarity for pair, similarity in true.items() if pair in pairs)
    assert sum(pair in pairs for pair in true) >= 0.95 * len(true)
    seen = pl.DataFrame({"text": paragraphs}).tadoc.positions("text", "cluster setting", lowercase=True)
    assert seen.height == sum(
        (own[at].lower(), own[at + 1].lower()) == ("cluster", "setting") for own in words for at in range(len(own) - 1)
    )


def run(folder: Path, size: str) -> None:
    """Clean the pages; what is found is searched for in the text with plain Python."""
    # plain Python's words are ours where there are no characters that are words by themselves
    pages = manuals(size).filter(~pl.col("text").str.contains(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{M}]"))
    pages = pages.with_columns(page=pl.int_range(pl.len(), dtype=pl.UInt32))
    packed = pages.tadoc.compress("text")
    found = packed.tadoc.repeats("text", length=LENGTH, id="page")
    assert found.equals(pages.tadoc.repeats("text", length=LENGTH, id="page"))
    assert found.height > 0

    words = [re.findall(r"\w+", text) for text in pages["text"]]
    assert [len(own) for own in words] == pages["text"].tadoc.token_count().to_list()
    everything = "\n".join(" ".join(["", *own, ""]) for own in words)
    pick = random.Random(0)
    for page, offset, length, copies, _ in pick.sample(found.rows(), min(PROVED, found.height)):
        most = 0
        for at in {offset, pick.randrange(offset, offset + length - LENGTH + 1), offset + length - LENGTH}:
            window = f" {' '.join(words[page][at : at + LENGTH])} "
            most = max(most, everything.count(window))
        assert 1 <= most <= copies
        for at in (offset - 1, offset + length - LENGTH + 1):  # a window more is not repeated
            window = words[page][at : at + LENGTH] if at >= 0 else []
            assert len(window) < LENGTH or everything.count(f" {' '.join(window)} ") == 1

    left = packed.tadoc.drop_repeats("text", length=LENGTH)
    assert left.tadoc.decompress("text").equals(pages.tadoc.drop_repeats("text", length=LENGTH))
    counts = left.select(pl.col("text").tadoc.token_count()).to_series()
    kept = packed.filter(~pages["page"].is_in(found["id"].implode()))
    assert kept.select(pl.col("text").tadoc.decompress()).equals(
        left.filter(pl.col("page").is_in(kept["page"].implode())).select(pl.col("text").tadoc.decompress())
    )
    assert 0 < counts.sum() < sum(map(len, words))
    rest = "\n".join(" ".join(["", *re.findall(r"\w+", text), ""]) for text in left.tadoc.decompress("text")["text"])
    firsts = found.filter("first").head(PROVED)
    for page, offset, length, _, _ in firsts.rows():  # nothing is lost that is nowhere else
        assert f" {' '.join(words[page][offset : offset + length])} " in rest

    near(pages)

    tests = pl.Series(
        [" ".join(own[3 : 3 + LENGTH]) for own in words[:: max(1, len(words) // 50)] if len(own) >= 3 + LENGTH]
    )
    tadoc.PassageSet(tests, length=LENGTH).save(folder / "tests")
    pages.write_parquet(folder / "pages.parquet")
    command = [sys.executable, "-c", IN_A_NEW_PROCESS, str(folder / "tests"), str(folder / "pages.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = everything.split("\n")  # a line per page
    expected = [page for page, line in enumerate(lines) if any(f" {test} " in line for test in tests)]
    assert json.loads(done.stdout) == [expected, len(expected)]
