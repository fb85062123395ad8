"""A service: eight threads search, compress and count at the same time, and each gets what it would get alone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl

import polars_tadoc as tadoc
from tests.trials.corpora import documents


def run(folder: Path, size: str) -> None:
    """Answer alone first, then many times from eight threads; the answers are equal."""
    docs = documents(size).head(20_000)
    compressed = docs.tadoc.compress("text")
    index = compressed.tadoc.build_index("text", id="number")
    compressed.tadoc.write_packed(folder / "docs.parquet")
    slices = [docs["text"].slice(start, 200) for start in range(0, min(docs.height, 2000), 200)]
    questions = [" ".join((text or "").split()[:3]) for text in docs["text"].gather_every(max(1, docs.height // 20))]
    jobs: list[Callable[[], Any]] = [
        *(lambda question=question: index.search(question, k=10) for question in questions),  # type: ignore[misc]
        *(lambda part=part: tadoc.decompress(tadoc.compress(part)) for part in slices),  # type: ignore[misc]
        lambda: compressed.tadoc.word_count("text", top=500),
        lambda: compressed.tadoc.sequence_count("text", n=2, top=100),
        lambda: compressed.filter(pl.col("text").tadoc.contains_phrase("of the"))["number"],
        lambda: tadoc.scan_packed(folder / "docs.parquet").tadoc.word_count("text", top=50).collect(),
        lambda: compressed.with_columns(pl.col("text").tadoc.token_count())["text"],
    ]
    alone = [job() for job in jobs]
    for part, text in zip(slices, alone[len(questions) :], strict=False):
        assert text.equals(part)
    repeated = [(number, job) for _ in range(4) for number, job in enumerate(jobs)]
    with ThreadPoolExecutor(8) as pool:
        for number, answer in pool.map(lambda one: (one[0], one[1]()), repeated):
            assert answer.equals(alone[number]), number
