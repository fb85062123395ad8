"""``tadoc count`` and ``grams``."""

from __future__ import annotations

from typing import Annotated

import polars as pl
from cyclopts import Parameter

import polars_tadoc as tadoc
from polars_tadoc.cli.reading import Reading, Source
from polars_tadoc.cli.running import Running
from polars_tadoc.cli.writing import Writing

DEFAULTS = Reading(), Writing(), Running()


def count(
    *sources: Source,
    top: int = 20,
    min_count: int = 1,
    lowercase: bool = False,
    stopwords: str | None = None,
    by: str | None = None,
    memory_limit: str | None = None,
    reading: Reading = DEFAULTS[0],
    writing: Writing = DEFAULTS[1],
    running: Running = DEFAULTS[2],
) -> None:
    """Count words.

    Parameters
    ----------
    top
        Number of words; 0: all.
    min_count
        Leave out words that occur less often.
    lowercase
        Count words in lower case.
    stopwords
        Leave out the stop words of a language, such as "english".
    by
        Column with groups: count the words of each.
    memory_limit
        Memory to use, such as 2GB, for input that is larger.

    Examples
    --------
    $ tadoc count speeches.parquet --lowercase --stopwords english

    $ tadoc count speeches.parquet --by speaker --top 3

    $ tadoc count huge.parquet --memory-limit 2GB --top 0 --output words.parquet

    """
    lf, column = reading.scan(sources)
    options = {"top": top or None, "min_count": min_count, "lowercase": lowercase, "stopwords": stopwords}
    if by is None:
        writing.write(tadoc.of(lf).word_count(column, memory_limit=memory_limit, **options).collect())  # type: ignore[arg-type]
        return
    words = tadoc.of(pl.col(column)).word_count(**options)  # type: ignore[arg-type]
    frame = lf.select(pl.col(by), pl.col(column)).collect()
    writing.write(frame.group_by(by).agg(words).sort(by).explode(column).unnest(column))


def grams(
    *sources: Source,
    n: Annotated[int, Parameter(name=("--n", "-n"))] = 3,
    top: int = 20,
    min_count: int = 1,
    lowercase: bool = False,
    stopwords: str | None = None,
    memory_limit: str | None = None,
    reading: Reading = DEFAULTS[0],
    writing: Writing = DEFAULTS[1],
    running: Running = DEFAULTS[2],
) -> None:
    """Count sequences of words.

    Parameters
    ----------
    n
        Words in a sequence.
    top
        Number of sequences; 0: all.
    min_count
        Leave out sequences that occur less often.
    lowercase
        Count words in lower case.
    stopwords
        Leave out the stop words of a language, such as "english".
    memory_limit
        Memory to use, such as 2GB, for input that is larger.

    Examples
    --------
    $ tadoc grams speeches.parquet -n 2 --lowercase

    $ tadoc grams 'logs/*.log' -n 5 --min-count 10 --top 0 > sequences.csv

    """
    lf, column = reading.scan(sources)
    counts = tadoc.of(lf).sequence_count(
        column,
        n=n,
        top=top or None,
        min_count=min_count,
        lowercase=lowercase,
        stopwords=stopwords,
        memory_limit=memory_limit,
    )
    writing.write(counts.collect())
