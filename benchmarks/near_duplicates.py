"""MinHash signatures and near duplicates, beside datasketch, rensa, datatrove, text-dedup and scikit-learn.

::

    python -m benchmarks.near_duplicates versioned_cockroach
    python -m benchmarks.near_duplicates prose_books --sample 5000 --repeat 5

Rows are the corpus' paragraphs, split on blank lines. Peers take part where they are installed (pip install datasketch
rensa datatrove scikit-learn; text-dedup 0.4 without its dependencies, and datasets, click). Times are processor time of
all threads together, unless they say "clock". All take n-grams of 5 of the same words, and 128 permutations:

- Signatures, of a sample of distinct paragraphs. Ours start from the text or the compressed column. datasketch, rensa
  and datatrove get each row's n-grams as strings or bytes, made before; making them in Python is measured beside.
  text-dedup starts from the text and cuts it by its own rule. datasketch's signatures are asserted to be equal to ours.
- Near duplicates at a similarity of 0.8, of all paragraphs, end to end. Peers get the n-grams of the distinct
  paragraphs, and only propose pairs (datasketch) or rows (rensa); ours also compares. Truth, for a sample of rows
  against all: the product of sparse matrices of n-grams, by scikit-learn and SciPy.
"""

from __future__ import annotations

import importlib
import random
import time
from typing import Any

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora, side_by_side
from benchmarks.side_by_side import Contenders, median_ms, ratio, times

PERMUTATIONS, NGRAM, THRESHOLD = 128, 5, 0.8
OURS, OURS_AS_DATASKETCH = "tadoc, fast, from text", "tadoc, datasketch's scheme, from text"
JOINED = "making the n-grams in Python"


def peer(name: str) -> Any:
    """Return a module, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def main() -> None:
    parser = corpora.arguments(__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=0, help="of ours; 0: all cores")
    parser.add_argument("--sample", type=int, default=20_000, help="distinct paragraphs that are signed")
    parser.add_argument("--truth", type=int, default=5_000, help="distinct paragraphs whose true pairs are computed")
    parser.set_defaults(repeat=3)
    arguments = parser.parse_args()
    side_by_side.clock = time.process_time
    tadoc.Config.set(threads=arguments.threads)
    print(corpora.machine())
    for name in corpora.names(arguments.corpora, ["versioned_cockroach"]):
        name, text = corpora.load(name)
        paragraphs = text.str.split("\n\n").explode().drop_nulls()
        paragraphs = paragraphs.filter(paragraphs != "").rechunk()
        # a regular expression cuts words by our rule where no character is a word by itself
        simple = paragraphs.filter(~paragraphs.str.contains(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{M}]"))
        words = simple.unique(maintain_order=True).str.extract_all(r"\w+").to_list()
        distinct = {tuple(row): None for row in words if len(row) >= NGRAM}
        print(f"\n{name}: {len(paragraphs):,} paragraphs, {len(distinct):,} distinct of {NGRAM} words and more")
        sign([" ".join(row) for row in distinct][: arguments.sample], arguments.repeat)
        find(paragraphs, list(distinct), arguments.truth, arguments.repeat)


def ngrams(row: list[str]) -> list[str]:
    return [" ".join(row[at : at + NGRAM]) for at in range(len(row) - NGRAM + 1)]


def sign(rows: list[str], repeat: int) -> None:
    """Compare signatures of some rows."""
    text = pl.Series("text", rows)
    column = tadoc.compress(text)
    strings = [ngrams(row.split()) for row in rows]
    encoded = [[one.encode() for one in row] for row in strings]
    total = sum(map(len, strings))
    contenders: Contenders = {
        OURS: lambda: tadoc.minhash(text),
        "tadoc, fast, compressed": lambda: tadoc.minhash(column),
        "tadoc, double, from text": lambda: tadoc.minhash(text, scheme="double"),
        OURS_AS_DATASKETCH: lambda: tadoc.minhash(text, scheme="datasketch"),
        JOINED: lambda: [ngrams(row.split()) for row in rows],
    }
    theirs = []
    if datasketch := peer("datasketch"):

        def bulk(scheme: str) -> Any:
            return datasketch.MinHash.bulk(encoded, num_perm=PERMUTATIONS, scheme=scheme)

        contenders |= {f"datasketch, {scheme}": lambda scheme=scheme: bulk(scheme) for scheme in ("legacy", "affine32")}
        theirs += [("datasketch, legacy", OURS_AS_DATASKETCH), ("datasketch, affine32", OURS_AS_DATASKETCH)]
        for scheme, own in (("legacy", "datasketch"), ("affine32", "datasketch-affine32")):
            signed = tadoc.minhash(text, scheme=own).to_numpy()
            assert np.array_equal(np.stack([sketch.hashvalues for sketch in bulk(scheme)]), signed)
    if rensa := peer("rensa"):
        contenders["rensa, R-MinHash"] = lambda: rensa.RMinHash.digest_matrix_from_token_sets(strings, PERMUTATIONS, 42)
        contenders["rensa, C-MinHash"] = lambda: rensa.CMinHash.digests_from_token_sets(strings, PERMUTATIONS, 42)
        theirs += [("rensa, R-MinHash", OURS), ("rensa, C-MinHash", OURS)]
    if datatrove := peer("datatrove.pipeline.dedup.minhash"):
        config = datatrove.MinhashConfig(n_grams=NGRAM, num_buckets=16, hashes_per_bucket=8)
        step = datatrove.MinhashDedupSignature("/nowhere", config)

        def one_by_one() -> None:
            for row in encoded:
                step.get_signature(np.fromiter(map(step._hash_func, row), np.uint64).reshape(-1, 1))

        contenders["datatrove"] = one_by_one
        theirs.append(("datatrove", OURS))
    if text_dedup := peer("text_dedup.minhash"):
        prime = np.uint64((1 << 61) - 1)
        draw = text_dedup.RNG
        fixed: dict[str, Any] = {
            "num_perm": PERMUTATIONS,
            "ngram_size": NGRAM,
            "min_length": NGRAM,
            "hashranges": [(at, at + 8) for at in range(0, PERMUTATIONS, 8)],
            "permutations": tuple(draw.randint(k, prime, PERMUTATIONS, np.uint64) for k in (1, 0)),
            "hash_func": text_dedup.xxh3_32hash,
            "dtype": np.uint64,
            "max_hash": np.uint32((1 << 32) - 1),
            "modulo_prime": prime,
        }
        contenders["text-dedup, from text"] = lambda: [text_dedup.embed_func(row, 0, **fixed) for row in rows]
        theirs.append(("text-dedup, from text", OURS))
    taken = times(contenders, repeat)
    print(f"  signatures of {len(rows):,} rows, {total:,} n-grams; {repeat} rounds")
    for call in taken:
        print(
            f"  {call:<40} {median_ms(taken, call):10.1f} ms  {1e6 * median_ms(taken, call) / total:8.1f} ns an n-gram"
        )
    for slow, fast in theirs:
        alone, made = ratio(taken, slow, fast), 0.0 if "from text" in slow else ratio(taken, JOINED, fast)
        print(f"  {slow} takes {alone:.1f} times as long as {fast}; with its n-grams {alone + made:.1f}")


def find(paragraphs: pl.Series, distinct: list[tuple[str, ...]], sample: int, repeat: int) -> None:
    """Compare near duplicates of all rows."""
    column = tadoc.compress(paragraphs)
    contenders: Contenders = {}
    for form, own in (("text", paragraphs), ("compressed", column)):
        contenders[f"near_duplicates, {form}"] = lambda own=own: own.tadoc.near_duplicates(threshold=THRESHOLD)
        contenders[f"duplicate_groups, {form}"] = lambda own=own: own.tadoc.duplicate_groups(threshold=THRESHOLD)
    strings = [ngrams(list(row)) for row in distinct]
    proposed: set[tuple[int, int]] = set()
    if datasketch := peer("datasketch"):
        encoded = [[one.encode() for one in row] for row in strings]

        def propose() -> None:
            proposed.clear()
            index = datasketch.MinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS)
            for row, sketch in enumerate(datasketch.MinHash.bulk(encoded, num_perm=PERMUTATIONS)):
                proposed.update((other, row) for other in index.query(sketch))
                index.insert(row, sketch, check_duplication=False)

        contenders["datasketch, MinHashLSH"] = propose
    if rensa := peer("rensa"):

        def flag() -> Any:
            matrix = rensa.RMinHash.digest_matrix_from_token_sets(strings, PERMUTATIONS, 42)
            return rensa.RMinHashLSH(THRESHOLD, PERMUTATIONS, 16).query_duplicate_flags_matrix_one_shot(matrix)

        contenders["rensa, RMinHashLSH"] = flag
    taken = times(contenders, repeat)
    started = time.perf_counter()
    found = paragraphs.tadoc.near_duplicates(threshold=THRESHOLD)
    clock = time.perf_counter() - started
    print(f"  {found.height:,} pairs, {found.filter(pl.col('similarity') < 1).height:,} of them no copies")
    print(f"  near_duplicates, text, by the clock: {clock:.1f} s")
    for call in taken:
        print(f"  {call:<40} {median_ms(taken, call):10.1f} ms")
    ours = "near_duplicates, text"
    for call in list(taken)[4:]:
        print(f"  {call} takes {ratio(taken, call, ours):.1f} times as long as {ours}")
    if peer("sklearn") is None:
        return
    of = pl.Series([" ".join(row) for row in distinct]).tadoc.near_duplicates(threshold=THRESHOLD)
    pick = sorted(random.Random(0).sample(range(len(distinct)), min(sample, len(distinct))))
    true = true_pairs(strings, pick)
    own = {(one, other): similarity for one, other, similarity in of.rows()}
    assert all(own[pair] == similarity for pair, similarity in true.items() if pair in own)
    chosen = set(pick)
    assert all(pair in true for pair in own if chosen & set(pair))
    recall = sum(pair in own for pair in true) / len(true)
    print(f"  {len(true):,} true pairs of {len(pick):,} rows with all; recall {recall:.4f}")
    if proposed:
        print(f"  recall of datasketch {sum(pair in proposed for pair in true) / len(true):.4f}")


def true_pairs(strings: list[list[str]], pick: list[int]) -> dict[tuple[int, int], float]:
    """All similar pairs of some rows with all, by multiplying matrices."""
    from sklearn.feature_extraction.text import CountVectorizer

    matrix = CountVectorizer(analyzer=list, binary=True, dtype=np.int32).fit_transform(strings)
    sizes, true = np.diff(matrix.indptr), {}
    for at in range(0, len(pick), 500):
        rows = pick[at : at + 500]
        common = (matrix[rows] @ matrix.T).tocoo()
        one, other = np.array(rows)[common.row], common.col
        similarity = common.data / (sizes[one] + sizes[other] - common.data)
        hits = np.flatnonzero((similarity >= THRESHOLD) & (one != other))
        for k in hits:
            true[min(one[k], other[k]).item(), max(one[k], other[k]).item()] = similarity[k].item()
    return true


if __name__ == "__main__":
    main()
