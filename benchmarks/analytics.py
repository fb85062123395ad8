r"""The analytics on a compressed column against Polars and DuckDB on the strings: ``python -m benchmarks.analytics``.

Everything is warm: text, compressed column, grammar and what is kept with it (ranks of words, tables of rules) in
memory; each contender ends with the table in memory. All count the same words, runs of Unicode word characters: rows
with Han or kana, which are words by themselves for us, are left out.

"Same" is the same table from each, as a Polars frame (DuckDB: an Arrow table): words as strings, sequences as lists of
strings, rows in our order. "Loose" is what each gives most cheaply: Polars and DuckDB leave out the rows' order and
give a sequence's words as columns, Polars as categories; ours is the Arrow table of ``tadoc.<analytic>``, in order,
words dictionary-encoded. The queries are the quickest found for each analytic that work for any text: words as
categories for Polars, pairs of them as 64-bit keys; lists unnested side by side for DuckDB. "Packed" is Polars, loose,
with three words in one key, which only vocabularies below 2^21 words allow.

Results are compared first: the number of rows, all counts or lengths of lists, and the whole of a thousand rows. That
run is the warm-up; DuckDB is stopped if it takes longer than ``--limit`` in it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from time import perf_counter

import duckdb
import polars as pl
import pyarrow as pa

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.side_by_side import median_ms, ratio, times

RE2_WORD = r"[\pL\pM\p{Nd}\p{Nl}\p{Pc}]+"  # RE2's \w is ASCII
WINDOW = 5
SEQUENCE = ["first", "second", "third"]
BITS = 32  # of a word in a key
PACKED_BITS = 21  # so that three words fit
WORDS = pl.col("text").str.extract_all(r"\w+").alias("word")


def occurrences(texts: pl.LazyFrame) -> pl.LazyFrame:
    """Each word with its row."""
    return texts.select("id", WORDS).explode("word").drop_nulls()


def category_ids(texts: pl.LazyFrame) -> pl.LazyFrame:
    """Each word's category as a number with its row, made once; the plan keeps the categories."""
    made = occurrences(texts).select("id", pl.col("word").cast(pl.Categorical)).collect(engine="streaming")
    return made.lazy().select("id", pl.col("word").to_physical().cast(pl.UInt64))


def category(key: pl.Expr, place: int, bits: int) -> pl.Expr:
    """The category at a place of a packed key, counted from the last."""
    return ((key // (1 << bits * place)) % (1 << bits)).cast(pl.UInt32).cat.to(pl.Categorical)


def polars_sequences(texts: pl.LazyFrame) -> pl.LazyFrame:
    """Each run of three words, as categories, with its row."""
    word, row = pl.col("word"), pl.col("id")
    categories = occurrences(texts).select("id", word.cast(pl.Categorical))
    words = [word.shift(-place).alias(name) for place, name in enumerate(SEQUENCE)]
    return categories.select("id", *words, whole=row == row.shift(-2)).filter("whole").select("id", *SEQUENCE)


def packed_sequences(texts: pl.LazyFrame) -> pl.LazyFrame:
    """Each run of three words as a key, with its row."""
    word, row = pl.col("word"), pl.col("id")
    key = word * (1 << 2 * PACKED_BITS) + word.shift(-1) * (1 << PACKED_BITS) + word.shift(-2)
    return category_ids(texts).select("id", key=key, whole=row == row.shift(-2)).filter("whole").select("id", "key")


def polars_pairs(texts: pl.LazyFrame) -> pl.LazyFrame:
    """Each pair of places at most ``WINDOW`` apart as a key."""
    ids, word, row = category_ids(texts), pl.col("word"), pl.col("id")
    parts = []
    for apart in range(1, WINDOW + 1):
        other = word.shift(-apart)
        key = pl.min_horizontal(word, other) * (1 << BITS) + pl.max_horizontal(word, other)
        parts.append(ids.select(key=key, whole=row == row.shift(-apart)).filter("whole").select("key"))
    return pl.concat(parts)


def words_of_key(*names: str, bits: int) -> list[pl.Expr]:
    """The words that a key holds."""
    last = len(names) - 1
    return [category(pl.col("key"), last - place, bits).alias(name) for place, name in enumerate(names)]


def polars_ranked_index(texts: pl.LazyFrame) -> pl.LazyFrame:
    counted = polars_sequences(texts).group_by(*SEQUENCE, "id").len("count")
    ranked = counted.sort(["count", "id"], descending=[True, False])
    return ranked.group_by(SEQUENCE).agg(pl.struct("id", "count").alias("documents"))


def packed_sequence_count(texts: pl.LazyFrame) -> pl.LazyFrame:
    counted = packed_sequences(texts).group_by("key").len("count")
    return counted.select(*words_of_key(*SEQUENCE, bits=PACKED_BITS), "count")


def packed_ranked_index(texts: pl.LazyFrame) -> pl.LazyFrame:
    counted = packed_sequences(texts).group_by("key", "id").len("count")
    ranked = counted.sort(["key", "count", "id"], descending=[False, True, False])
    listed = ranked.group_by("key").agg(pl.struct("id", "count").alias("documents"))
    return listed.select(*words_of_key(*SEQUENCE, bits=PACKED_BITS), "documents")


def polars_cooccurrence(texts: pl.LazyFrame) -> pl.LazyFrame:
    counted = polars_pairs(texts).group_by("key").len("count")
    return counted.select(*words_of_key("word", "other", bits=BITS), "count")


DUCKDB_WORDS = f"regexp_extract_all(text, '{RE2_WORD}')"
DUCKDB_COUNTS = f"SELECT word, count(*) AS count FROM (SELECT unnest({DUCKDB_WORDS}) AS word FROM texts) GROUP BY ALL"
DUCKDB_SEQUENCES = f"""
    SELECT * FROM (
        SELECT id, unnest(words) AS first, unnest(words[2:]) AS second, unnest(words[3:]) AS third
        FROM (SELECT id, {DUCKDB_WORDS} AS words FROM texts)
    ) WHERE third IS NOT NULL
"""
DUCKDB_PAIRS = " UNION ALL ".join(
    f"SELECT unnest(words) AS a, unnest(words[{apart + 1}:]) AS b FROM lists" for apart in range(1, WINDOW + 1)
)


@dataclass(frozen=True)
class Analytic:
    """One analytic in three ways."""

    name: str
    ours: Callable[[pl.DataFrame], pl.DataFrame]
    polars: Callable[[pl.LazyFrame], pl.LazyFrame]
    duckdb: str
    keys: tuple[str, ...]
    """Columns that name a row of the result, once sequences are columns."""
    order: tuple[str, ...]
    """Columns that our rows are in the order of; "count" falling."""
    value: str = "count"
    packed: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None


ANALYTICS = {
    "word_count": Analytic(
        "word_count",
        lambda df: df.tadoc.word_count("text"),
        lambda texts: occurrences(texts).group_by("word").len("count"),
        DUCKDB_COUNTS,
        ("word",),
        ("count", "word"),
    ),
    "sort": Analytic(
        "sort",
        lambda df: df.tadoc.sort("text"),
        lambda texts: occurrences(texts).group_by("word").len("count").sort("word"),
        f"{DUCKDB_COUNTS} ORDER BY word",
        ("word",),
        ("word",),
    ),
    "inverted_index": Analytic(
        "inverted_index",
        lambda df: df.tadoc.inverted_index("text"),
        lambda texts: (
            texts.select("id", WORDS.list.unique())
            .explode("word")
            .drop_nulls()
            .group_by("word")
            .agg(pl.col("id").sort().alias("documents"))
        ),
        f"""SELECT word, list(id ORDER BY id) AS documents
            FROM (SELECT id, unnest(list_distinct({DUCKDB_WORDS})) AS word FROM texts) GROUP BY word""",
        ("word",),
        ("word",),
        "documents",
    ),
    "term_vector": Analytic(
        "term_vector",
        lambda df: df.tadoc.term_vector("text"),
        lambda texts: occurrences(texts).group_by("id", "word").len("count"),
        f"SELECT id, word, count(*) AS count FROM (SELECT id, unnest({DUCKDB_WORDS}) AS word FROM texts) GROUP BY ALL",
        ("id", "word"),
        ("id", "count", "word"),
    ),
    "sequence_count": Analytic(
        "sequence_count",
        lambda df: df.tadoc.sequence_count("text"),
        lambda texts: polars_sequences(texts).group_by(SEQUENCE).len("count"),
        f"SELECT first, second, third, count(*) AS count FROM ({DUCKDB_SEQUENCES}) GROUP BY ALL",
        tuple(SEQUENCE),
        ("count", *SEQUENCE),
        packed=packed_sequence_count,
    ),
    "ranked_inverted_index": Analytic(
        "ranked_inverted_index",
        lambda df: df.tadoc.ranked_inverted_index("text"),
        polars_ranked_index,
        f"""SELECT first, second, third, list({{id: id, count: n}} ORDER BY n DESC, id) AS documents
            FROM (SELECT id, first, second, third, count(*) AS n FROM ({DUCKDB_SEQUENCES}) GROUP BY ALL)
            GROUP BY first, second, third""",
        tuple(SEQUENCE),
        tuple(SEQUENCE),
        "documents",
        packed_ranked_index,
    ),
    "cooccurrence": Analytic(
        "cooccurrence",
        lambda df: df.tadoc.cooccurrence("text", window=WINDOW),
        polars_cooccurrence,
        f"""WITH lists AS MATERIALIZED (SELECT {DUCKDB_WORDS} AS words FROM texts)
            SELECT least(a, b) AS word, greatest(a, b) AS other, count(*) AS count
            FROM ({DUCKDB_PAIRS}) WHERE b IS NOT NULL GROUP BY ALL""",
        ("word", "other"),
        ("count", "word", "other"),
    ),
}


def same_by_polars(analytic: Analytic, texts: pl.LazyFrame) -> pl.LazyFrame:
    """The loose result as our table: strings, in order, sequences as lists."""
    words = [name for name in analytic.keys if name != "id"]
    result = analytic.polars(texts).with_columns(pl.col(words).cast(pl.String))
    if analytic.keys == ("word", "other"):
        low, high = pl.min_horizontal("word", "other"), pl.max_horizontal("word", "other")
        result = result.with_columns(word=low, other=high)
    result = result.sort(analytic.order, descending=[name == "count" for name in analytic.order])
    if SEQUENCE[0] in analytic.keys:
        result = result.select(pl.concat_list(SEQUENCE).alias("sequence"), analytic.value)
    return result


def same_by_duckdb(analytic: Analytic) -> str:
    """The same by DuckDB."""
    columns = ", ".join([*analytic.keys, analytic.value])
    if SEQUENCE[0] in analytic.keys:
        columns = f"[{', '.join(SEQUENCE)}] AS sequence, {analytic.value}"
    order = ", ".join(f"{name} DESC" if name == "count" else name for name in analytic.order)
    return f"SELECT {columns} FROM ({analytic.duckdb}) ORDER BY {order}"


def comparable(result: pl.DataFrame, analytic: Analytic) -> pl.DataFrame:
    """A result with words as strings, a sequence's as columns, a pair's in order."""
    if "sequence" in result.columns:  # a list
        places = [pl.col("sequence").list.get(place).alias(name) for place, name in enumerate(SEQUENCE)]
        result = result.select(*places, analytic.value)
    result = result.with_columns(pl.col(name).cast(pl.String) for name in analytic.keys if name != "id")
    if analytic.keys == ("word", "other"):
        low, high = pl.min_horizontal("word", "other"), pl.max_horizontal("word", "other")
        result = result.with_columns(word=low, other=high)
    if analytic.value == "count":
        return result.with_columns(pl.col("count").cast(pl.UInt64))
    document = pl.Struct({"id": pl.UInt32, "count": pl.UInt64}) if "third" in analytic.keys else pl.UInt32
    return result.with_columns(pl.col("documents").cast(pl.List(document)))


def check(name: str, analytic: Analytic, ours: pl.DataFrame, peer: pl.DataFrame, who: str) -> None:
    """Stop if a contender's result is another one."""
    sizes = pl.col("count") if analytic.value == "count" else pl.col("documents").list.len()
    ours, peer = comparable(ours, analytic), comparable(peer, analytic)
    sample = ours.sample(min(len(ours), 1000), seed=0)
    if analytic.keys[0] == "id":
        peer = peer.with_columns(pl.col("id").cast(pl.UInt32))
    found = sample.join(peer, on=list(analytic.keys), how="left", maintain_order="left", suffix=" of peer")
    same = found[analytic.value].equals(found[f"{analytic.value} of peer"].alias(analytic.value), null_equal=False)
    if len(ours) != len(peer) or not same or not ours.select(sizes.sort()).equals(peer.select(sizes.sort())):
        raise SystemExit(f"{name}: {who} has another result")


def within(limit: float, run: Callable[[], object], stop: Callable[[], None]) -> object | None:
    """Run, but call ``stop`` after some seconds; returns the result, None if stopped."""
    timer = threading.Timer(limit, stop)
    timer.start()
    try:
        return run()
    except duckdb.InterruptException:
        return None
    finally:
        timer.cancel()


def compare(
    analytic: Analytic,
    name: str,
    plain: pl.DataFrame,
    packed: pl.DataFrame,
    limit: float,
    budget: float,
    repeat: int,
    only: Collection[str] | None = None,
) -> dict[str, list[float]]:
    """Seconds of each contender, or ``only`` of some, by round, after their results were found equal."""
    connection = duckdb.connect()
    connection.register("source", plain.to_arrow())
    connection.execute("CREATE TABLE texts AS SELECT id, text FROM source")

    def with_polars(query: Callable[[pl.LazyFrame], pl.LazyFrame]) -> pl.DataFrame:
        return query(plain.lazy()).collect(engine="streaming")

    def with_duckdb(query: str) -> pa.Table:
        return connection.sql(query).to_arrow_table()

    column = packed["text"]
    contenders: dict[str, Callable[[], object]] = {
        "ours": lambda: analytic.ours(packed),
        "ours loose": lambda: getattr(tadoc, analytic.name)(column),
    }
    expected = analytic.ours(packed)  # compiles
    start = perf_counter()
    peers: dict[str, Callable[[], object]] = {
        "polars": lambda: with_polars(lambda texts: same_by_polars(analytic, texts)),
        "duckdb": lambda: with_duckdb(same_by_duckdb(analytic)),
        "polars loose": lambda: with_polars(analytic.polars),
        "duckdb loose": lambda: with_duckdb(analytic.duckdb),
    }
    in_one_key = analytic.packed
    if in_one_key is not None:
        peers["packed"] = lambda: with_polars(in_one_key)
    if only is not None:
        peers = {peer: run for peer, run in peers.items() if peer in only}
        contenders = {contender: run for contender, run in contenders.items() if contender in only}
    for peer, run in peers.items():
        result = within(limit, run, connection.interrupt)
        if result is not None:
            check(name, analytic, expected, pl.DataFrame(result), peer)
            contenders[peer] = run
    del expected, result  # else the next results could not have their memory
    rounds = max(1, min(repeat, int(budget / (perf_counter() - start))))
    return times(contenders, rounds, warm_up=0)


def better(taken: dict[str, list[float]], ours: str, peers: tuple[str, str]) -> float:
    """How many times faster ours is than the quickest of its peers."""
    return min((ratio(taken, peer, ours) for peer in peers if peer in taken), default=float("nan"))


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--limit", type=float, default=60, help="seconds that a peer may take for one analytic")
    parser.add_argument("--budget", type=float, default=10, help="seconds for the rounds of one analytic on one corpus")
    parser.add_argument("--only", nargs="*", choices=list(ANALYTICS), default=list(ANALYTICS), help="these analytics")
    args = parser.parse_args()
    print(f"machine: {corpora.machine()}, DuckDB {duckdb.__version__}; engine cpu")
    tadoc.Config.set(engine="cpu")
    for given in corpora.names(args.corpora):
        name, text = corpora.load(given)
        plain = text.to_frame("text").filter(~pl.col("text").str.contains(r"[\p{Han}\p{Hiragana}\p{Katakana}\u30fc]"))
        plain = plain.with_row_index("id").rechunk()
        packed = plain.tadoc.compress("text").select("text")
        print(f"\n{name}, {plain['text'].str.len_bytes().sum() / 1e6:.1f} MB, {len(plain)} rows")
        print(f"{'same':23}{'ours ms':>9}{'Polars ms':>11}{'DuckDB ms':>11}{'x better':>10}", end="")
        print(f"   loose:{'ours ms':>9}{'Polars ms':>11}{'DuckDB ms':>11}{'x better':>10}{'packed ms':>11}", end="")
        print(f"{'rounds':>8}", flush=True)
        for analytic in args.only:
            label = f"{name}, {analytic}"
            taken = compare(ANALYTICS[analytic], label, plain, packed, args.limit, args.budget, args.repeat)
            line = f"{analytic:23}"
            for ours, polars, duck in (("ours", "polars", "duckdb"), ("ours loose", "polars loose", "duckdb loose")):
                line += f"{median_ms(taken, ours):9.1f}"
                for peer in (polars, duck):
                    line += f"{median_ms(taken, peer):11.0f}" if peer in taken else f"{'stopped':>11}"
                line += f"{better(taken, ours, (polars, duck)):10.1f}" + " " * 9 * (ours == "ours")
            line += f"{median_ms(taken, 'packed'):11.0f}" if "packed" in taken else " " * 11
            print(line + f"{len(taken['ours']):8}", flush=True)


if __name__ == "__main__":
    main()
