"""Repeated passages, shares and overlap, on plain text and on the compressed column; a suffix array as peer.

::

    python -m benchmarks.passages versioned_cockroach prose_books
    python -m benchmarks.passages logs_elastic+logs_dmesg --length 20 --skip-peer

Names are corpora of the shared folder, or Parquet files with a column ``text``. The peer is pydivsufsort (pip install
pydivsufsort), where it is installed: suffix array and longest common prefixes of the words' numbers, from which the
same passages follow; it gets the numbers of the words, and cutting the text is not in its time. Results are compared.
With ``--processor-time``, times are those of all threads together, which other processes disturb less.

The Rust tool of Lee et al. (ACL 2022), quoted from their paper's repository and not measured here, takes 2.1 CPU-hours
for 4 GB: about 0.5 MB/s on a core.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora, side_by_side
from benchmarks.compress import PeakMemory
from benchmarks.side_by_side import Contenders, median_ms, times
from polars_tadoc.analytics.cleaning.laid_words import LaidWords, lay_out

try:
    import pydivsufsort
except ModuleNotFoundError:  # measured beside, where it is installed
    pydivsufsort = None

CORPORA = ["versioned_cockroach", "versioned_longhorn+versioned_reactnative", "prose_books"]
REFERENCE_BYTES = 10_000_000


def main() -> None:
    parser = corpora.arguments(__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=50, help="words of a window")
    parser.add_argument("--threads", type=int, default=0, help="of ours; 0: all cores")
    parser.add_argument("--skip-peer", action="store_true", help="without the suffix array")
    parser.add_argument("--processor-time", action="store_true", help="of all threads together, not the clock's")
    arguments = parser.parse_args()
    if arguments.processor_time:
        side_by_side.clock = time.process_time
    tadoc.Config.set(threads=arguments.threads)
    print(corpora.machine())
    print(f"MB of text a second, windows of {arguments.length} words; medians of {arguments.repeat} rounds")
    for name in corpora.names(arguments.corpora, CORPORA):
        measure(*corpora.load(name), arguments.length, arguments.repeat, arguments.skip_peer)


def measure(name: str, text: pl.Series, length: int, repeat: int, skip_peer: bool) -> None:
    column = tadoc.compress(text)
    for form in (text, column):  # kernels are loaded first
        form.head(1).tadoc.repeats(length=length)
    with PeakMemory() as memory:
        found = text.tadoc.repeats(length=length)
    with PeakMemory() as memory_compressed:
        assert column.tadoc.repeats(length=length).equals(found)
    contenders: Contenders = {}
    for form, own in (("text", text), ("compressed", column)):
        contenders[f"repeats, {form}"] = lambda own=own: own.tadoc.repeats(length=length)
        contenders[f"repeated_share, {form}"] = lambda own=own: own.tadoc.repeated_share(length=length)
        contenders[f"novelty(8), {form}"] = lambda own=own: own.tadoc.novelty()
        contenders[f"drop_repeats, {form}"] = lambda own=own: own.tadoc.drop_repeats(length=length)
        for kind, reference in references().items():
            contenders[f"overlaps {kind}, {form}"] = lambda own=own, known=reference: own.tadoc.overlaps(known)
            contenders[f"overlap {kind}, {form}"] = lambda own=own, known=reference: own.tadoc.overlap(known)
    taken = times(contenders, repeat)
    size, words = int(text.str.len_bytes().sum()), int(text.tadoc.token_count().sum())
    share = (text.tadoc.repeated_share(length=length) * text.tadoc.token_count()).sum() / words
    print(f"\n{name}: {len(text):,} rows, {size:,} bytes, {words:,} words")
    print(f"  {found.height:,} passages with {share:.1%} of the words")
    for form, peak in (("text", memory), ("compressed", memory_compressed)):
        print(f"  repeats, {form}: at most {(peak.most - peak.before) / size:.1f} times the text beside it")
    for call in taken:
        cost = median_ms(taken, call)
        print(f"  {call:<32} {cost:10.2f} ms   {size / cost / 1e3:8.1f} MB/s")
    if pydivsufsort is not None and not skip_peer:
        laid = lay_out(text, "benchmark")
        started = side_by_side.clock()
        rows = passages_of_suffix_array(laid, length)
        cost = 1e3 * (side_by_side.clock() - started)
        assert rows == found.rows()
        ours = median_ms(taken, "repeats, text")
        print(f"  {'suffix array, one round':<32} {cost:10.2f} ms   {size / cost / 1e3:8.1f} MB/s")
        print(f"  repeats takes 1/{cost / ours:.1f} of its time")


def references() -> dict[str, tadoc.PassageSet]:
    """The training questions of GSM8K and 10 MB of prose, where they are."""
    made = {}
    questions, prose = (Path(corpora.SHARED) / f"{name}.parquet" for name in ("qa_gsm8k_train", "docs_peps"))
    if questions.exists():
        made["GSM8K"] = tadoc.PassageSet(pl.read_parquet(questions)["text"])
    if prose.exists():
        text = pl.read_parquet(prose)["text"]
        made["10 MB"] = tadoc.PassageSet(text.filter(text.str.len_bytes().cum_sum() <= REFERENCE_BYTES))
    return made


def passages_of_suffix_array(laid: LaidWords, length: int) -> list[tuple[int, int, int, int, bool]]:
    """The rows of ``repeats``, from the suffix array of the words' numbers."""
    words, places = laid.words, np.arange(len(laid.words))
    array = pydivsufsort.divsufsort(words)
    common = pydivsufsort.kasai(words, array)  # of each suffix and the next one
    row = np.repeat(np.arange(len(laid.valid)), np.diff(laid.starts))
    has_window = places + length < laid.starts[row + 1]
    of = array[has_window[array]]
    least = np.minimum.reduceat(common, np.flatnonzero(has_window[array]))  # up to the next suffix with a window
    group = np.append(0, np.cumsum(least[:-1] < length))
    counts = np.bincount(group)
    first = np.full(len(counts), len(words))
    np.minimum.at(first, group, of)
    copies, is_first = np.zeros(len(words), np.int64), np.zeros(len(words), np.bool_)
    copies[of], is_first[of] = counts[group], first[group] == of
    edges = np.zeros(len(words) + 1, np.int64)
    hits = np.flatnonzero(copies >= 2)
    np.add.at(edges, hits, 1)
    np.add.at(edges, hits + length, -1)
    marks = np.cumsum(edges[:-1]) > 0
    starts = np.flatnonzero(marks & ~np.append(False, marks[:-1]))
    stops = np.flatnonzero(~np.append(marks, False) & np.append(False, marks))
    return [
        (
            int(row[a]),
            int(a - laid.starts[row[a]]),
            int(b - a),
            int(copies[a : b - length + 1].max()),
            bool(is_first[a : b - length + 1].all()),
        )
        for a, b in zip(starts, stops, strict=True)
    ]


if __name__ == "__main__":
    main()
