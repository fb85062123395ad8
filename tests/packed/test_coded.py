"""Packed rows as files hold them: coded, and decoded to the same arrays."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_series_equal

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError
from polars_tadoc.kernels.host.grammars import coded_symbols as kernels
from polars_tadoc.kernels.host.grammars.coded_streams import write_places
from polars_tadoc.packed import coded, contexts
from polars_tadoc.packed.coded_words import StoredWords
from polars_tadoc.packed.files import PackedFile
from polars_tadoc.packed.partition import NAMES, partition_at
from tests import coded_reference
from tests.strategies import columns

SAMPLE = Path(__file__).parents[1] / "data" / "coded" / "packed.parquet"
LOGS = [
    f"{i % 7:02}:{i:05} host{i % 5} sshd[{i * 37 % 900}]: closed {'by user' * (i % 3)} x{i % 13:x}f" for i in range(400)
]
LONG = ["a b c d e f g h i j k l m n o p q r s t u v w x y z " * 3, None, "", "a b c"] * 3
TEXTS: dict[str, list[str | None]] = {
    "logs": [*LOGS],
    "long rules": [*LONG],
    "none": [None, None],
    "empty": ["", ""],
    "one": ["word"],
    "no rules": ["a b c d 1 22 3a"],
    "many words": [" ".join(f"w{i}" for i in range(2000))] * 2
    + [" ".join(f"w{i * 7 % 2000}" for i in range(2000))] * 2,
}


@pytest.fixture(autouse=True)
def _all_rows_are_coded() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coded, "MIN_EVENTS", 0)
        patch.setattr(contexts, "FROM_BYTES", 1 << 62)
        yield


def fields_of(packed: pl.Series, row: int = 0) -> dict[str, Any]:
    return {name: packed.struct.field(name)[row] for name in NAMES}


def packed_of(texts: Any, **options: Any) -> pl.Series:
    series = pl.Series("text", texts, pl.String)
    column: pl.Series = tadoc.compress(series, **options).to_frame("text").tadoc.pack()["text"]
    return column


def require_round_trip(packed: pl.Series) -> None:
    made = coded.coded(packed)
    assert made.dtype == packed.dtype
    for row in range(len(packed)):
        before, after = fields_of(packed, row), fields_of(made, row)
        assert after["version"] == coded.VERSION
        back = coded.decoded(after)
        for name in NAMES:
            if isinstance(before[name], pl.Series):
                assert_series_equal(back[name], before[name], check_names=False)
        require_the_reference(before, after)


def parts_of(header: list[int]) -> list[list[int]]:
    """Return the shapes' sizes, the tables of gaps, and the other tables."""
    ends = [0, *np.cumsum(coded.LENGTHS).tolist()]
    return [header[start:stop] for start, stop in pairwise(ends[1:])]


def require_the_reference(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Compare rows and bodies with what the definition decodes."""
    header = after["rule_offsets"].to_list()
    rules, predicts = header[0], bool(header[5] & coded.PREDICTS)
    shapes, gap_tables, frequencies = parts_of(header)
    tables = [frequencies[at : at + 256] for at in range(0, len(frequencies), 256)]
    words, rows = len(before["vocabulary"]), len(after["valid"])
    events = len(before["symbols"]) + len(before["roots"]) + rows
    mask = coded._mask(events)
    streams = after["symbols"].to_list(), after["roots"].to_list()
    roots, bodies, _ = coded_reference.decode(words, rules, events, predicts, mask, streams, tables, shapes)
    vocabulary = after["vocabulary"].to_list()
    if header[5] & coded.JOINS:
        pieces = []
        for shape, text in enumerate(vocabulary):
            data, length = text.encode(), shape % 16
            ends = range(0, len(data), length) if length else []
            pieces.append([data[at : at + length] for at in ends] if length else data.split(b"\n")[:-1])
        vocabulary = [word.decode() for piece in pieces for word in piece]

    def spelled(symbol: int) -> Any:
        return vocabulary[symbol] if symbol < words else tuple(map(spelled, bodies[symbol - words]))

    ids, symbols, ends = before["vocabulary"].to_list(), before["symbols"].to_list(), before["rule_offsets"].to_list()

    def expected(symbol: int) -> Any:
        rule = symbol - words
        return ids[symbol] if rule < 0 else tuple(map(expected, symbols[ends[rule] : ends[rule + 1]]))

    word_gaps, body_gaps = after["predicted_gaps"].to_list(), before["predicted_gaps"].to_list()[words:]
    plain_bodies = [symbols[start:stop] for start, stop in pairwise(ends)]
    bits = coded._bits(len(symbols), *coded.GAP_BITS)
    given = after["level_offsets"].to_list(), gap_tables, word_gaps, plain_bodies, bits
    assert [gap for own in coded_reference.gaps_of(*given) for gap in own] == body_gaps
    gap_words = before["gap_vocabulary"].to_list()
    if header[5] & coded.JOINS_GAPS:
        assert after["gap_vocabulary"].to_list() == ["".join(gap + "\0" for gap in gap_words)]
    offsets, given_roots = before["document_offsets"].to_list(), before["roots"].to_list()
    for row, found in enumerate(roots):
        assert list(map(spelled, found)) == list(map(expected, given_roots[offsets[row] : offsets[row + 1]]))


@pytest.mark.parametrize("predicts", [False, True])
@pytest.mark.parametrize("method", ["batch_repair", "sequitur"])
@pytest.mark.parametrize("name", TEXTS)
def test_round_trip(name: str, method: Any, predicts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coded, "PREDICTS_FROM_BYTES", 0)
    monkeypatch.setattr(coded, "PREDICTS_SAVES", -1 << 30 if predicts else 2)
    packed = packed_of(TEXTS[name], method=method)
    made = coded.coded(packed)
    if fields_of(made)["version"] == coded.VERSION:
        assert fields_of(made)["rule_offsets"][5] == coded.JOINS + coded.JOINS_GAPS + coded.PREDICTS * predicts
        require_round_trip(packed)
    else:
        assert name == "long rules" or method == "sequitur"
        assert_series_equal(made, packed)


def test_words_with_line_ends() -> None:
    """Their words are stored one by one."""
    packed = packed_of(["<a\nb='1'>x y 12</a>\n<c\n/> 1x é9 日12本"] * 3, tokenizer="xml")
    require_round_trip(packed)
    assert not fields_of(coded.coded(packed))["rule_offsets"][5] & coded.JOINS


def test_words_cut_within_a_character() -> None:
    made = pl.Series([*[""] * 18, "1éé1é", *[""] * 14])
    with pytest.raises(InvalidGrammarError, match="a word is not UTF-8"):
        StoredWords(made, np.array([0] * 18 + [4] + [0] * 14, np.uint32), 0)


@given(columns, st.booleans(), st.booleans())
def test_any_column(texts: list[str | None], predicts: bool, lossless: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coded, "PREDICTS_FROM_BYTES", 0)
        patch.setattr(coded, "PREDICTS_SAVES", -1 << 30 if predicts else 2)
        require_round_trip(packed_of(texts, lossless=lossless))


@given(st.lists(st.integers(0, 1 << 40), max_size=20), st.integers(0, 1 << 33))
def test_classes_ascend(uses: list[int], most: int) -> None:
    found = [kernels.class_of(one) for one in sorted(min(one, most) for one in uses)]
    assert found == sorted(found)
    assert all(one < kernels.CLASSES for one in found if most < 1 << 32)


@given(st.lists(st.tuples(st.integers(1, 1 << 23), st.integers(0, 1 << 23)), max_size=30))
def test_places(pairs: list[tuple[int, int]]) -> None:
    given_places = [(place % length, length) for length, place in pairs]
    planned = np.array([place << 32 | length for place, length in given_places], np.uint64)
    out = np.empty(len(planned) + 1, np.uint32)
    stream = coded_reference.Bits(out[: write_places(planned, out)].tolist())
    assert [(stream.place(length), length) for _, length in given_places] == given_places
    stream.require_end()


@given(st.lists(st.integers(-(1 << 30), 1 << 30), max_size=20))
def test_steps(steps: list[int]) -> None:
    """Steps of any size, which only grammars of millions of rules have."""
    kinds, places = np.empty(len(steps), np.uint32), np.empty(2 * len(steps), np.uint64)
    placed = kernels.plan_steps(np.array(steps, np.int64), kinds, places)
    out = np.empty(placed + 1, np.uint32)
    stream = coded_reference.Bits(out[: write_places(places[:placed], out)].tolist())
    found = []
    for bits in kinds.tolist():
        step = 0
        if bits > 17:
            step = stream.place(1 << bits - 17) << 16 | stream.place(1 << 16) | 1 << bits - 1
        elif bits:
            step = stream.place(1 << bits - 1) | 1 << bits - 1
        found.append(step >> 1 ^ -(step & 1))
    assert found == steps


def test_other_orders_are_stored_plainly(tmp_path: Path) -> None:
    """Rows that were filtered no longer tell how words were ordered."""
    frame = pl.DataFrame({"text": LOGS}).tadoc.compress("text").tail(50)
    frame.tadoc.write_packed(tmp_path / "a.parquet", effort="small")
    assert pq.read_table(tmp_path / "a.parquet")["text"].combine_chunks().field("version").to_pylist() == [2]
    assert_frame_equal(tadoc.scan_packed(tmp_path).collect(), frame)


def test_a_file(tmp_path: Path) -> None:
    frame = pl.DataFrame({"text": LOGS, "row": range(len(LOGS))}).tadoc.compress("text", rows_per_grammar=100)
    frame.tadoc.write_packed(tmp_path / "a.parquet", effort="small")
    stored = pl.read_parquet(tmp_path / "a.parquet")
    assert stored["text"].struct.field("version").to_list() == [coded.VERSION] * 4
    assert_frame_equal(stored.tadoc.unpack(), frame)
    assert_frame_equal(tadoc.scan_packed(tmp_path).collect(), frame)
    plain = frame.tadoc.pack()["text"]
    with PackedFile(tmp_path / "a.parquet") as file:
        for group in range(4):
            fields = fields_of(plain, group)
            symbols, _ = file.grammar_sizes(group)
            assert symbols == len(fields["symbols"]) + len(fields["roots"])
    with pytest.raises(LimitExceededError, match="memory_limit"):
        tadoc.scan_packed(tmp_path).tadoc.word_count("text", memory_limit=1000).collect()


def test_sinks_and_names(tmp_path: Path) -> None:
    frame = pl.DataFrame({"^a.*$": LOGS, "^b$": range(len(LOGS))}).tadoc.compress("^a.*$")
    frame.lazy().tadoc.sink_packed(tmp_path / "a.parquet", effort="small")
    frame.tadoc.write_packed(tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < (tmp_path / "b.parquet").stat().st_size
    assert_frame_equal(tadoc.scan_packed(tmp_path / "a.parquet").collect(), frame)
    for write, call in ((frame.tadoc.write_packed, "write_packed"), (frame.lazy().tadoc.sink_packed, "sink_packed")):
        with pytest.raises(ValueError, match=f'{call}: effort=\'fast\': use "default" or "small"'):
            write(tmp_path / "c.parquet", effort="fast")
    assert not (tmp_path / "c.parquet").exists()


def test_the_sample_is_read() -> None:
    """A file that this version's first release has written."""
    assert pq.read_table(SAMPLE)["text"].combine_chunks().field("version").to_pylist() == [3]
    assert tadoc.scan_packed(SAMPLE).tadoc.decompress("text").collect()["text"].to_list() == LOGS


def changed(packed: pl.Series, **changes: Any) -> pl.Series:
    fields = packed.struct.unnest()
    made = [pl.Series(name, [value], fields.schema[name]) for name, value in changes.items()]
    return fields.with_columns(made).to_struct("text")


def test_any_damage_is_named_or_harmless() -> None:
    """Numbers of header and streams changed, dropped and added, without the checksums that files have."""
    chance = random.Random(5)
    refused = 0
    for name in ("logs", "many words"):
        sound = coded.coded(packed_of(TEXTS[name]))
        for _ in range(400):
            field = chance.choice(
                ["rule_offsets", "symbols", "roots", "level_offsets", "document_offsets", "predicted_gaps"]
            )
            cell = fields_of(sound)[field].to_list()
            if not cell:
                continue
            at = chance.randrange(min(len(cell), 60) if chance.random() < 0.5 else len(cell))
            if chance.random() < 0.2:
                del cell[at]
            elif chance.random() < 0.2:
                cell.insert(at, chance.randrange(1 << 32))
            else:
                cell[at] = chance.choice([0, 1, cell[at] ^ 1 << chance.randrange(32), chance.randrange(1 << 32)])
            try:
                partition = partition_at(changed(sound, **{field: cell}), 0, cached=False)
            except (InvalidGrammarError, LimitExceededError):
                refused += 1
            else:
                assert partition is not None
                assert partition.document_count == len(TEXTS[name])
    assert refused > 600


@pytest.mark.parametrize("place", [0, 1, 2, 3, 4])
def test_claims_beyond_the_limit(place: int) -> None:
    sound = coded.coded(packed_of(LOGS))
    header = fields_of(sound)["rule_offsets"].to_list()
    header[place] = (1 << 32) - 1
    with pytest.raises(LimitExceededError, match="row 0: grammar: claims to decode to at least"):
        partition_at(changed(sound, rule_offsets=header), 0)


def test_wrong_headers_are_named() -> None:
    sound = coded.coded(packed_of(LOGS))
    fields = fields_of(sound)
    header, shapes = fields["rule_offsets"].to_list(), coded.HEADER
    vocabulary = fields["vocabulary"].to_list()
    gaps, table = np.cumsum(coded.LENGTHS)[1:3].tolist()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"rule_offsets": header[1:]}, "the header has [0-9],[0-9]+ numbers, not"),
        ({"document_offsets": [3]}, "counts contradict each other"),
        ({"rule_offsets": [*header[:5], 4, *header[6:]]}, "counts contradict each other"),
        ({"rule_offsets": [*header[:shapes], 9999, *header[shapes + 1 :]]}, "the shapes' sizes do not add up"),
        ({"rule_offsets": [*header[:gaps], 9999, *header[gaps + 1 :]]}, "a table of frequencies has a wrong sum"),
        ({"rule_offsets": [*header[:table], 9999, *header[table + 1 :]]}, "a table of frequencies has a wrong sum"),
        ({"vocabulary": vocabulary[:-1]}, "words of a shape do not match their number"),
        ({"vocabulary": [vocabulary[0][:-1], *vocabulary[1:]]}, "words of a shape do not match their number"),
        ({"vocabulary": [vocabulary[0], vocabulary[1] + "1", *vocabulary[2:]]}, "words of a shape do not match"),
        ({"vocabulary": [*vocabulary[:3], "é" * 5, *vocabulary[4:]]}, "words of a shape do not match|not UTF-8"),
        ({"predicted_gaps": fields["predicted_gaps"].to_list()[1:]}, "the shapes' sizes do not add up"),
        ({"symbols": []}, "a stream of symbols is truncated"),
        ({"symbols": fields["symbols"].to_list()[:-1]}, "does not end where it should|counts|class|table|rule"),
        ({"level_offsets": []}, "the stream of gaps within rules does not match"),
        ({"level_offsets": fields["level_offsets"].to_list()[:-1]}, "the stream of gaps within rules does not match"),
        ({"gap_vocabulary": []}, "the gaps are not one string"),
        ({"gap_vocabulary": ["a"]}, "the gaps do not end with a NUL"),
        ({"version": 4}, "format version 4, this release reads 2 to 3"),
    ]
    for changes, message in wrong:
        with pytest.raises(InvalidGrammarError, match=message):
            partition_at(changed(sound, **changes), 0)


def chain(rules: int) -> dict[str, Any]:
    """Code a word in a chain of rules, each of the next and the word: a few hundred bytes."""
    events = 2 * rules + 2
    kinds = np.full(events, kernels.OLD + kernels.NEW_WORD, np.uint32)
    kinds[:rules], kinds[rules], kinds[-1] = kernels.NEW_RULE, kernels.NEW_WORD, kernels.END
    tables = np.where(kinds >= kernels.OLD, 3, np.where(kinds >= kernels.NEW_WORD, 1, 2))
    tables = np.append(0, tables[:-1])
    tables[:: max(-(-events // 4), 1)] = 0
    kinds += np.uint32(256) * tables.astype(np.uint32)
    tallies = np.bincount(kinds, minlength=256 * kernels.TABLES).astype(np.uint32)
    order, states = coded._side_by_side(events)
    parts = {kernels.WORD_CLASS: np.array([20]), kernels.RULE_CLASS: np.zeros(rules, np.uint8)}
    parts[kernels.STEP] = np.zeros(rules, np.uint8)
    frequencies, stream = coded._kinds_written(parts, kinds[order], states, tallies)
    places = np.empty(0, np.uint32)
    return {
        "version": coded.VERSION,
        "vocabulary": pl.Series(["a"]),
        "symbols": pl.Series(stream.copy()),
        "roots": pl.Series(places),
        **parts_of_a_chain(rules, 0, frequencies),
    }


def parts_of_a_chain(rules: int, flags: int, tables: Any) -> dict[str, Any]:
    """Make the other fields of a chain of rules."""
    bodies, offsets = np.zeros((rules, 2), np.uint32), np.arange(0, 2 * rules + 1, 2, dtype=np.uint32)
    bodies[1:, 0] = np.arange(1, rules)
    gaps, frequencies = coded._coded_gaps(1, offsets, bodies.ravel(), np.zeros(1 + 2 * rules, np.uint32))
    header = np.array([rules, 2 * rules, 0, 1, 0, flags, 0, 0, 0, 0, 1, *[0] * 32], np.uint32)
    return {
        "rule_offsets": pl.Series(np.concatenate([header, frequencies, tables])),
        "level_offsets": pl.Series(gaps.copy()),
        "gap_vocabulary": pl.Series([], dtype=pl.String),
        "predicted_gaps": pl.Series([0], dtype=pl.UInt32),
        "document_offsets": pl.Series([2 * rules + 1]),
        "gaps": pl.Series([b""]),
        "valid": pl.Series([True]),
    }


def in_another_process(tmp_path: Path, rules: int, body: str, make: Callable[[int], dict[str, Any]] = chain) -> None:
    """Run code that has a long chain, and has decoded a short one."""
    (tmp_path / "chains").write_bytes(pickle.dumps((make(100), make(rules))))
    start = """
        import os, pickle, resource, signal, sys, threading, time
        from pathlib import Path
        from polars_tadoc.packed import coded, contexts
        import polars_tadoc as tadoc

        short, long = pickle.loads(Path(sys.argv[1]).read_bytes())
        assert coded.decoded(short)["symbols"].to_list()[:4] == [0, 0, 1, 0]
    """
    code = dedent(start) + dedent(body)
    shell = ["sh", "-c", '"$@"; exit $?', "sh"]  # so that the peak is not that of this process
    subprocess.run([*shell, sys.executable, "-c", code, tmp_path / "chains"], check=True, timeout=100)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_decoding_holds_what_it_says(tmp_path: Path) -> None:
    rules = 2_000_000
    most = coded._decoding_bytes(1, rules, 2 * rules, 1, 1)
    with (
        tadoc.Config(payload_limit_bytes=most - 1),
        pytest.raises(LimitExceededError, match=f"at least {most:,} bytes"),
    ):
        coded.decoded(chain(rules))
    in_another_process(
        tmp_path,
        rules,
        f"""
        held = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        with tadoc.Config(payload_limit_bytes={most}):
            assert len(coded.decoded(long)["symbols"]) == {2 * rules}
        took = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - held
        assert took < 1.3 * {most}, f"{{took:,}} of {most:,} bytes"
        """,
    )


def require_an_end_on_interrupts(tmp_path: Path, rules: int, make: Callable[[int], dict[str, Any]] = chain) -> None:
    in_another_process(
        tmp_path,
        rules,
        """
        began, worked = time.perf_counter(), time.process_time()
        coded.decoded(long)
        took, work = time.perf_counter() - began, time.process_time() - worked
        for share in (0.1, 0.5):
            sent = []

            def interrupt():
                time.sleep(share * took)
                sent.append(time.process_time())  # of all threads: other tests run beside this one
                os.kill(os.getpid(), signal.SIGINT)

            thread = threading.Thread(target=interrupt)
            try:
                thread.start()
                coded.decoded(long)
                thread.join()
            except KeyboardInterrupt:
                assert time.process_time() - sent[0] < 0.3 * work
            else:
                raise AssertionError("not told")
        """,
        make,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_decoding_ends_on_an_interrupt(tmp_path: Path) -> None:
    require_an_end_on_interrupts(tmp_path, 3_000_000)


@pytest.mark.parametrize("effort", ["fast", "default"])
def test_rows_without_rules_are_predicted_where_texts_repeat(effort: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(texts: list[str]) -> tuple[bool, int]:
        fields = fields_of(coded.coded(packed_of(texts, effort=effort)))
        return bool(fields["rule_offsets"][5] & coded.PREDICTS), len(fields["symbols"]) + len(fields["roots"])

    chosen = random.Random(0)
    words = [f"word{k}" for k in range(300)]
    lines = [" ".join(chosen.choices(words, k=12)) for _ in range(60)]
    repeated = chosen.choices(lines, k=3000)
    predicts, size = made(repeated)
    assert predicts == (effort == "fast")
    assert not made([" ".join(chosen.choices(words, k=12)) for _ in range(3000)])[0]
    monkeypatch.setattr(coded, "PREDICTS_SAVES_MUCH", 2)
    if predicts:
        assert size < 0.5 * made(repeated)[1]
