"""Grammar construction, speed and size: ``python -m benchmarks.construction``.

Words are cut by ``whitespace``. Batch RePair and Sequitur take the same word ids; pruning is timed with batch
RePair. ``scikit-sequitur`` (pure Python) takes the first words only. zstd compresses the text, joined by line ends, for
scale; beside its bytes stand those of the packed file of the whole column with ``effort="small"``.
A size is the symbols of all rules' bodies and rows: RePair's before pruning (two a rule) and after. Exact
RePair, plain Python of the tests, takes a minute or so per corpus: ``--exact``.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import polars as pl
import pyarrow as pa
from sksequitur import Grammar, Mark, Parser

import polars_tadoc as tadoc
from benchmarks import corpora, side_by_side
from benchmarks.file_sizes import file_of
from polars_tadoc.config import thread_count
from polars_tadoc.kernels.repair import batch_repair
from polars_tadoc.kernels.repair import sequitur_cpu as sequitur
from polars_tadoc.kernels.repair.batch_repair import BinaryRules
from polars_tadoc.kernels.repair.lines.repeated_lines import Gaps, mark_lines, row_starts
from polars_tadoc.kernels.repair.prune import LevelledRules, prune
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, Tokens, tokenize
from tests import exact_repair

PEER_WORDS = 50_000
"""Words that scikit-sequitur is given."""


def measure(name: str, text: pl.Series, repeat: int, exact: bool) -> None:
    tokens = tokenize(text, Tokenizer("whitespace"))
    vocabulary_size, rows = len(tokens.vocabulary), len(text)
    words = len(tokens.sequence) - rows
    gaps = Gaps(tokens.gap_vocabulary, tokens.gap_offsets, tokens.gap_data)
    joined = "\n".join(text.fill_null("").to_list()).encode()
    print(f"\n{name}: {words:,} words in {rows:,} rows, {len(joined) / 1e6:.1f} MB, {vocabulary_size:,} distinct")

    def repair() -> tuple[BinaryRules, LevelledRules]:
        sequence = tokens.sequence.copy()
        starts = row_starts(sequence)
        has_marks = mark_lines(sequence, starts, vocabulary_size, gaps)
        binary = batch_repair.build(sequence, vocabulary_size, has_marks=has_marks, starts=starts)
        return binary, prune(binary, vocabulary_size, rows)

    def infer() -> LevelledRules:
        return sequitur.build(tokens.sequence, vocabulary_size, rows)

    contenders: side_by_side.Contenders = {"batch RePair": repair, "Sequitur": infer}
    sizes: dict[str, int] = {}

    def compress(level: int) -> None:
        sizes[f"zstd -{level}"] = len(pa.Codec("zstd", level).compress(joined))

    for level in (3, 9, 19):
        contenders[f"zstd -{level}"] = partial(compress, level)
    taken = side_by_side.times(contenders, repeat)
    for contender in contenders:
        seconds = side_by_side.median_ms(taken, contender) / 1e3
        speed = f"{len(joined) / 1e6 / seconds:9.1f} MB/s"
        if not contender.startswith("zstd"):
            speed += f" {words / 1e6 / seconds:8.2f} M words/s, best {words / 1e6 / min(taken[contender]):.2f}"
        print(
            f"  {contender:16}{speed}, {side_by_side.ratio(taken, contender, 'batch RePair'):.2f} x batch RePair's time"
            + (f", {ratio(joined, sizes[contender])}" if contender in sizes else "")
        )
    packed = file_of(tadoc.compress(text).to_frame("text").tadoc.pack(), "small")
    print(f"  packed, small: {ratio(joined, len(packed))}")
    compare_with_peer(tokens)
    binary, pruned = repair()
    inferred = infer()
    unpruned = 2 * len(binary.left) + len(binary.sequence) - rows
    print_size("batch RePair", unpruned, words, len(binary.left))
    print_size("  pruned", levelled_size(pruned), words, len(pruned.rule_offsets) - 1, len(pruned.level_offsets) - 1)
    levels = len(inferred.level_offsets) - 1
    print_size("Sequitur", levelled_size(inferred), words, len(inferred.rule_offsets) - 1, levels)
    if exact:
        binary = exact_repair.build(tokens.sequence, vocabulary_size)
        pruned_exact = prune(binary, vocabulary_size, rows)
        exact_size = 2 * len(binary.left) + len(binary.sequence) - rows
        print_size("exact RePair", exact_size, words, len(binary.left))
        levels = len(pruned_exact.level_offsets) - 1
        print_size("  pruned", levelled_size(pruned_exact), words, len(pruned_exact.rule_offsets) - 1, levels)
        ratios = unpruned / exact_size, levelled_size(pruned) / levelled_size(pruned_exact)
        print(f"  batch / exact: {ratios[0]:.4f}, pruned {ratios[1]:.4f}")


def ratio(text: bytes, size: int) -> str:
    return f"{size:,} bytes, text / bytes {len(text) / size:.2f}"


def compare_with_peer(tokens: Tokens) -> None:
    """Speed of scikit-sequitur and size of its grammar, and of ours, on the first words; a mark ends each row."""
    beginning = np.append(tokens.sequence[:PEER_WORDS], np.uint32(SEPARATOR))
    fed = [Mark() if symbol == SEPARATOR else symbol for symbol in beginning.tolist()]
    parser = Parser()
    start = time.perf_counter()
    parser.feed(fed)
    seconds = time.perf_counter() - start
    size = sum(not isinstance(symbol, Mark) for body in Grammar(parser.tree).values() for symbol in body)
    rows = int(np.count_nonzero(beginning == SEPARATOR))
    start = time.perf_counter()
    own = sequitur.build(beginning, len(tokens.vocabulary), rows)
    own_seconds = time.perf_counter() - start
    words = len(fed) - rows
    print(
        f"  scikit-sequitur {words / seconds / 1e6:8.4f} M words/s on the first {words:,} words, {size:,} symbols "
        f"(Sequitur: {words / own_seconds / 1e6:.2f} M words/s, {levelled_size(own):,} symbols)"
    )


def levelled_size(rules: LevelledRules) -> int:
    return len(rules.symbols) + len(rules.roots)


def print_size(contender: str, size: int, words: int, rules: int, levels: int | None = None) -> None:
    depth = "" if levels is None else f", {levels:,} levels"
    print(f"  {contender:16}{size:11,} symbols, {size / words:.4f} a word; {rules:,} rules{depth}", flush=True)


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--exact", action="store_true", help="also build with exact RePair")
    args = parser.parse_args()
    print(f"machine: {corpora.machine()}; {thread_count()} threads (Sequitur and zstd: one)")
    for given in corpora.names(args.corpora):
        measure(*corpora.load(given), args.repeat, args.exact)


if __name__ == "__main__":
    main()
