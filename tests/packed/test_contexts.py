"""Packed rows whose symbols and gaps are coded in context."""

from __future__ import annotations

import random
import sys
from itertools import pairwise
from pathlib import Path
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
from polars_tadoc.kernels.host.grammars import adaptive_codes
from polars_tadoc.kernels.host.grammars import coded_contexts as kernels
from polars_tadoc.packed import coded, contexts
from polars_tadoc.packed.partition import NAMES, partition_at
from tests import coded_reference, contexts_reference
from tests.packed.test_coded import (
    LOGS,
    TEXTS,
    changed,
    fields_of,
    in_another_process,
    packed_of,
    parts_of,
    parts_of_a_chain,
    require_an_end_on_interrupts,
)
from tests.strategies import columns

SAMPLE = Path(__file__).parents[1] / "data" / "coded" / "contexts.parquet"
CASES: dict[str, list[str | None]] = {
    **TEXTS,
    "gaps": [f"GET  /a{i % 9}/b?c={i % 5}{'  ' * (i % 7 == 0)}d {i}" if i % 11 else None for i in range(300)],
    "loud rules": [("a b c d e f g" if i % 5 else "a b c\td e f g") + f" {i}" for i in range(200)],
    "many gaps": ["".join(f"w{i % 50}{chr(300 + i)}" for i in range(600)) for _ in range(2)],
}


@pytest.fixture(autouse=True)
def _all_rows_are_coded_in_context() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in [
            *((coded, "MIN_EVENTS", 0), (contexts, "FROM_BYTES", 0), (contexts, "LEAST_SAVING", 1 << 30)),
            (contexts, "SAVES", 1 << 30),
        ]:
            patch.setattr(module, name, value)
        yield


def is_in_context(fields: dict[str, Any]) -> bool:
    return bool(fields["version"] == coded.VERSION and fields["rule_offsets"][5] & coded.IN_CONTEXT)


def require_round_trip(packed: pl.Series) -> None:
    made = coded.coded(packed)
    assert made.dtype == packed.dtype
    for row in range(len(packed)):
        before, after = fields_of(packed, row), fields_of(made, row)
        assert is_in_context(after)
        back = coded.decoded(after)
        for name in NAMES:
            if isinstance(before[name], pl.Series):
                assert_series_equal(back[name], before[name], check_names=False)
        require_the_reference(before, after)


def require_the_reference(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Compare rows, bodies and gaps with what the definitions decode."""
    header = after["rule_offsets"].to_list()
    rules, (shapes, gap_tables, _) = header[0], parts_of(header)
    words, rows = len(before["vocabulary"]), len(after["valid"])
    symbols, given_roots = before["symbols"].to_list(), before["roots"].to_list()
    mask = (1 << contexts._bits(len(symbols) + len(given_roots) + rows)) - 1
    streams = after["symbols"].to_list(), after["roots"].to_list()
    roots, bodies, steps = contexts_reference.decode(words, rules, rows, mask, streams, shapes)
    assert len(steps) == rules
    numbers: dict[int, int] = {}
    ends, offsets = before["rule_offsets"].to_list(), before["document_offsets"].to_list()
    plain_bodies = [symbols[start:stop] for start, stop in pairwise(ends)]
    plain_rows = [given_roots[start:stop] for start, stop in pairwise(offsets)]

    def compare(found: list[int], wanted: list[int]) -> None:
        for one, other in zip(found, wanted, strict=True):
            if one not in numbers and one >= words:
                compare(bodies[one - words], plain_bodies[other - words])
            assert numbers.setdefault(one, other) == other

    for one, other in zip(roots, plain_rows, strict=True):
        compare(one, other)
    word_gaps, bits = after["predicted_gaps"].to_list(), coded._bits(len(symbols), *coded.GAP_BITS)
    given = after["level_offsets"].to_list(), gap_tables, word_gaps, plain_bodies, bits
    body_gaps = coded_reference.gaps_of(*given)
    assert [gap for own in body_gaps for gap in own] == before["predicted_gaps"].to_list()[words:]
    if header[5] & coded.GAPS:
        stream = np.frombuffer(after["gaps"][0], "<u4").tolist()
        mask = (1 << contexts._bits(rows)) - 1
        made = contexts_reference.row_strings(words, mask, plain_bodies, plain_rows, stream)
        strings = after["gaps"].to_list()[1:]
        assert [strings[number] for number in made] == [gap or b"" for gap in before["gaps"].to_list()]


@pytest.mark.parametrize("method", ["batch_repair", "sequitur"])
@pytest.mark.parametrize("name", CASES)
def test_round_trip(name: str, method: Any) -> None:
    packed = packed_of(CASES[name], method=method)
    made = coded.coded(packed)
    if is_in_context(fields_of(made)):
        assert fields_of(made)["rule_offsets"][5] == coded.JOINS + coded.JOINS_GAPS + coded.GAPS + coded.IN_CONTEXT
        require_round_trip(packed)
    else:
        assert name == "long rules" or method == "sequitur"
        assert_series_equal(made, packed)


@given(columns, st.booleans())
def test_any_column(texts: list[str | None], lossless: bool) -> None:
    require_round_trip(packed_of(texts, lossless=lossless))


@given(st.lists(st.tuples(st.sampled_from("ab \t19é"), st.integers(1, 3)), max_size=200), st.integers(1, 9))
def test_any_text(runs: list[tuple[str, int]], rows: int) -> None:
    text = "".join(character * count for character, count in runs)
    size = max(len(text) // rows, 1)
    require_round_trip(packed_of([text[at : at + size] for at in range(0, len(text), size)] or [None]))


@given(st.integers(0, 1 << 33))
def test_classes(uses: int) -> None:
    assert kernels.class_of(uses) == contexts_reference.class_of(uses) < kernels.CLASSES


@given(st.lists(st.integers(0, 15), max_size=300))
def test_codes_keep_a_frequency(codes: list[int]) -> None:
    """However often the others occurred, each code can be written."""
    made, out = adaptive_codes.new_contexts(1), np.empty(1, np.uint32)
    for code in codes * 40:
        adaptive_codes.code_4_bits(False, np.uint64(0), out, 0, made, 0, code)
        assert out[0] & 0xFFFF
    starts = [int(word) >> 16 * lane & 0xFFFF for word in made for lane in range(4)]
    assert starts[0] == 0
    assert all(low < high for low, high in pairwise([*starts, 1 << adaptive_codes.SCALE]))


def test_words_by_column() -> None:
    """Numbers that ascend, and words of several bytes for a character, which are not stored by column."""
    packed = packed_of([f"{10**9 + i} é{i % 10}ü{i % 7} {i:04x}" for i in range(500)])
    made = fields_of(coded.coded(packed))
    turned = made["rule_offsets"][8] | made["rule_offsets"][9] << 32
    assert turned >> 10 & 1
    assert made["vocabulary"][10].startswith("1" * 100)
    assert not turned >> 16 + len("é1ü1".encode()) & 1
    require_round_trip(packed)


def test_gaps_that_no_tokenizer_writes_are_kept() -> None:
    packed = packed_of(["a b", "c"])
    for gaps in ([b"\x81\x00\x05", b""], [b"\x01\x00", b""], [b"\x7f\x01", b"\x00"], [b"\xff" * 9, b"\x00\x01"]):
        odd = changed(packed, gaps=gaps)
        made = fields_of(coded.coded(odd))
        assert is_in_context(made)
        assert coded.decoded(made)["gaps"].to_list() == gaps


def test_only_clear_savings_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "LEAST_SAVING", 0)
    assert not is_in_context(fields_of(coded.coded(packed_of(LOGS))))
    monkeypatch.setattr(contexts, "LEAST_SAVING", 1 << 30)
    monkeypatch.setattr(contexts, "FROM_BYTES", 1 << 30)
    assert not is_in_context(fields_of(coded.coded(packed_of(LOGS))))


def test_a_file(tmp_path: Path) -> None:
    frame = pl.DataFrame({"text": LOGS, "row": range(len(LOGS))}).tadoc.compress("text", rows_per_grammar=100)
    frame.tadoc.write_packed(tmp_path / "a.parquet", effort="small")
    stored = pl.read_parquet(tmp_path / "a.parquet")
    assert all(is_in_context(fields_of(stored["text"], group)) for group in range(4))
    assert_frame_equal(stored.tadoc.unpack(), frame)
    assert_frame_equal(tadoc.scan_packed(tmp_path).collect(), frame)


def test_the_sample_is_read() -> None:
    """A file that this version's first release has written."""
    assert pq.read_table(SAMPLE)["text"].combine_chunks().field("rule_offsets")[0][5].as_py() & coded.IN_CONTEXT
    assert tadoc.scan_packed(SAMPLE).tadoc.decompress("text").collect()["text"].to_list() == LOGS


@pytest.mark.parametrize("name", ["logs", "many words", "gaps", "loud rules"])
def test_any_damage_is_named_or_harmless(name: str) -> None:
    """Numbers of header and streams changed, dropped and added, without the checksums that files have."""
    chance = random.Random(5)
    refused = 0
    sound = coded.coded(packed_of(CASES[name]))
    for _ in range(300):
        field = chance.choice(["rule_offsets", "symbols", "roots", "level_offsets", "document_offsets", "gaps"])
        cell = fields_of(sound)[field].to_list()
        others = cell[1:]
        cell = list(cell[0]) if field == "gaps" else cell
        if not cell:
            continue
        most = 256 if field == "gaps" else 1 << 32
        at = chance.randrange(min(len(cell), 60) if chance.random() < 0.5 else len(cell))
        if chance.random() < 0.2:
            del cell[at]
        elif chance.random() < 0.2:
            cell.insert(at, chance.randrange(most))
        else:
            cell[at] = chance.choice([0, 1, (cell[at] ^ 1 << chance.randrange(32)) % most, chance.randrange(most)])
        try:
            partition = partition_at(
                changed(sound, **{field: [bytes(cell), *others] if field == "gaps" else cell}), 0, cached=False
            )
        except (InvalidGrammarError, LimitExceededError):
            refused += 1
        else:
            assert partition is not None
            assert partition.document_count == len(CASES[name])
    assert refused > 200


@pytest.mark.parametrize("place", [0, 1, 2, 3, 4, 7])
def test_claims_beyond_the_limit(place: int) -> None:
    sound = coded.coded(packed_of(LOGS))
    header = fields_of(sound)["rule_offsets"].to_list()
    header[place] = (1 << 32) - 1
    with pytest.raises(LimitExceededError, match="row 0: grammar: claims to decode to at least"):
        partition_at(changed(sound, rule_offsets=header), 0)


def test_wrong_headers_are_named() -> None:
    sound = coded.coded(packed_of(LOGS))
    fields = fields_of(sound)
    header, gaps = fields["rule_offsets"].to_list(), fields["gaps"].to_list()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"rule_offsets": header[1:]}, "the header has [0-9]+ numbers, not"),
        ({"rule_offsets": [*header[:5], header[5] + 1, *header[6:]]}, "counts contradict each other"),
        ({"rule_offsets": [*header[:6], header[6] + 1, *header[7:]]}, "the stream of gaps does not match the rows"),
        ({"gaps": []}, "the gaps of rows are not one stream"),
        ({"gaps": [*gaps, b""]}, "the stream of gaps does not match the rows"),
        ({"gaps": gaps[:-1]}, "the stream of gaps does not match the rows"),
        ({"gaps": [None, *gaps[1:]]}, "the gaps of rows are not one stream"),
        ({"gaps": [*gaps[:-1], None]}, "the gaps of rows are not one stream"),
        ({"gaps": [gaps[0][:-1], *gaps[1:]]}, "the gaps of rows are not one stream"),
        ({"gaps": [b""]}, "the stream of gaps does not match the rows"),
        ({"symbols": []}, "a stream of symbols is truncated"),
    ]
    for changes, message in wrong:
        with pytest.raises(InvalidGrammarError, match=message):
            partition_at(changed(sound, **changes), 0)


def chain(rules: int) -> dict[str, Any]:
    """Code a word in a chain of rules, each of the next and the word."""
    nothing, shapes = np.zeros(rules, np.int64), np.zeros(1, np.uint8)
    bodies = np.zeros((rules, 2), np.uint32)
    bodies[:-1, 0] = np.arange(2, rules + 1)
    uses = np.zeros(rules + 1, np.uint32)
    uses[0] = rules
    starts = np.arange(0, 2 * rules + 1, 2, dtype=np.uint32)
    order = np.arange(rules + 1, dtype=np.uint32)
    rows = starts, bodies.ravel(), np.array([0, 1]), np.ones(1, np.uint32), shapes, order, uses
    made = contexts.encode(1, *rows, nothing)
    assert made is not None
    return {
        "version": coded.VERSION,
        "vocabulary": pl.Series(["a"]),
        "symbols": pl.Series(made[0].copy()),
        "roots": pl.Series(made[1].copy()),
        **parts_of_a_chain(rules, coded.IN_CONTEXT, np.zeros(0, np.uint32)),
    }


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_decoding_holds_what_it_says(tmp_path: Path) -> None:
    rules = 500_000
    most = coded._decoding_bytes(1, rules, 2 * rules, 1, 1, is_in_context=True)
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
        chain,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_decoding_ends_on_an_interrupt(tmp_path: Path) -> None:
    require_an_end_on_interrupts(tmp_path, 1_000_000, chain)
