"""What Spark's workers do, without Spark: what is found of partitions and merged is the answer of one process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.analytics.cleaning.drop_repeats import DropRepeatsRequest
from polars_tadoc.analytics.cleaning.near_duplicates import DuplicateGroupsRequest, NearDuplicatesRequest
from polars_tadoc.analytics.cleaning.options import OverlapOptions
from polars_tadoc.analytics.cleaning.overlap import OverlapRequest
from polars_tadoc.analytics.cleaning.repeats import RepeatsRequest
from polars_tadoc.compress.compress import Compression
from polars_tadoc.distributed import spark_passages, spark_tasks
from polars_tadoc.distributed.binary_cells import unpack
from polars_tadoc.distributed.spark_near import AskedNear
from polars_tadoc.distributed.spark_passages import AskedPassages
from polars_tadoc.distributed.spark_tasks import Asked, Compressing, Rows
from polars_tadoc.errors import ColumnMissingError, DeviceMemoryWarning, InvalidGrammarError, NotPackedError
from polars_tadoc.kernels.host.passages.stretches import draw_grams
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from tests.analytics.cleaning.test_repeats import columns
from tests.engine.test_device_batches import chosen, tight_engine
from tests.spark_cases import Case, cases, rows
from tests.strategies import columns as all_columns

CASES = cases(pa.int64())
XML = ["<r><a><b/></a></r>", "<r><a/></r>", "<r>", None, "<a/>", "<r><b/></r>"]


def compression(tokenizer: str = "words", rows_per_grammar: int | None = None, place: int = 1) -> Compressing:
    how = Compression.from_arguments(
        like=None,
        tokenizer=tokenizer,
        method="batch_repair",
        lossless=True,
        rows_per_grammar=rows_per_grammar,
        progress=False,
        engine="cpu",
    )
    return Compressing(how, place, 1)


def batches(frame: pl.DataFrame, size: int) -> Iterator[pa.RecordBatch]:
    """As Spark hands them over: strings and lists with offsets of 31 bits."""
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    plain = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    schema = pa.schema([(one.name, plain.get(one.type, one.type)) for one in table.schema])
    return iter(table.cast(schema).to_batches(max_chunksize=size))


def partitions(frame: pl.DataFrame, count: int, size: int, packed: Compressing | None) -> list[list[pa.RecordBatch]]:
    parts = [list(batches(frame[place::count], size)) for place in range(count)]
    return parts if packed is None else [list(packed(part)) for part in parts]


def by(found: list[pa.RecordBatch], name: str) -> Iterator[pa.Table]:
    """As a grouped merge sees them."""
    if found:
        table = pa.Table.from_batches(found)
        for value in sorted(set(table[name].to_pylist())):
            yield table.filter(pa.compute.equal(table[name], value))


def answer(case: Case, parts: list[list[pa.RecordBatch]], packed: bool, shards: int) -> list[dict[str, Any]]:
    reading = Rows("text", "id" if case.labelled else None, packed, Tokenizer(case.tokenizer))
    asked = Asked(case.request, reading, shards, case.schema, 1)
    parts = [[batch.select(["text", "id"]) for batch in part] for part in parts]
    if case.name in ("term_vector", "twig_filter"):
        made = [batch for part in parts for batch in asked.answer(iter(part))]
    elif case.name in ("bm25_weights", "tfidf"):
        found = []
        for place, part in enumerate(parts):  # no task tells its number here
            for batch in asked.find_terms(iter(part)):
                number = pa.array([place], pa.int64())
                found.append(batch.set_column(1, "part", number))
        counted = [batch for group in by(found, "shard") for batch in asked.count_documents(group).to_batches()]
        made = [batch for group in by(counted, "part") for batch in asked.weigh(group).to_batches()]
    else:
        found = [batch for part in parts for batch in asked.find(iter(part))]
        made = [batch for group in by(found, "shard") for batch in asked.merge(group).to_batches()]
    return pa.Table.from_batches(made, case.schema).to_pylist()


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
@settings(max_examples=10)
def test_the_answer_is_that_of_one_process(name: str, data: st.DataObject) -> None:
    case = CASES[name]
    text = data.draw(all_columns if case.tokenizer == "words" else st.lists(st.sampled_from(XML), max_size=12))
    ids = data.draw(st.permutations(range(len(text))))
    frame = pl.DataFrame({"id": pl.Series(ids, dtype=pl.Int64), "text": pl.Series(text, dtype=pl.String)})
    count, shards = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    packed = data.draw(st.sampled_from([None, compression(case.tokenizer), compression(case.tokenizer, 2)]))
    parts = partitions(frame, count, data.draw(st.integers(1, 4)), packed)
    assert rows(answer(case, parts, packed is not None, shards)) == rows(case.expected(frame))


def passages(request: Any, parts: list[list[pa.RecordBatch]], packed: bool, schema: pa.Schema) -> pl.DataFrame:
    """The rows of a call about passages, in any order; columns are text, id and another."""
    grams = None if isinstance(request, OverlapRequest) else draw_grams(request.length)
    asked = AskedPassages(request, "text", 0, 1, packed, grams, 3, schema, 1)
    if grams is None:
        made = [batch for part in parts for batch in asked.match(iter(part))]
    else:
        found = []
        for place, part in enumerate(parts):  # no task tells its number here
            for batch in asked.find(iter(part)):
                number = pa.array([place << 32 | batch["part"][0].as_py()], pa.int64())
                found.append(batch.set_column(1, "part", number))
        compared = [batch for group in by(found, "shard") for batch in asked.compare(group).to_batches()]
        made = [batch for group in by(compared, "part") for batch in asked.finish(group).to_batches()]
    table: Any = pl.from_arrow(pa.Table.from_batches(made, schema))
    return table


@given(columns(), st.data())
@settings(max_examples=10)
def test_passages_are_those_of_one_process(text: list[str | None], data: st.DataObject) -> None:
    """Documents are in the order of their ids, which no task knows."""
    length, ids = data.draw(st.integers(1, 6)), data.draw(st.permutations(range(len(text))))
    frame = pl.DataFrame({"text": pl.Series(text, dtype=pl.String), "id": pl.Series(ids, dtype=pl.Int64)})
    frame, ordered = frame.with_columns(other=pl.col("id") % 3), frame.sort("id")
    packed = data.draw(st.sampled_from([None, compression(place=0), compression(rows_per_grammar=2, place=0)]))
    parts = partitions(frame, data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4)), packed)
    options = {"length": length, "lowercase": data.draw(st.booleans())}
    whole = {"offset": pa.int64(), "length": pa.int64(), "copies": pa.int64(), "first": pa.bool_()}
    schema = pa.schema({"id": pa.int64(), **whole})
    least = data.draw(st.integers(1, 3))
    found = passages(RepeatsRequest.from_arguments(min_count=least, **options), parts, packed is not None, schema)
    expected = ordered.tadoc.repeats("text", min_count=least, id="id", **options)
    assert sorted(found.rows()) == sorted(expected.rows())
    more: Any = data.draw(st.sampled_from([{}, {"keep": "none"}, {"unit": "row", "share": 0.5}]))
    kind = pa.binary() if packed else pa.string()
    flat = {"text": kind, "id": pa.int64(), "other": pa.int64()}
    schema = pa.schema({name: one if name == "text" or not packed else pa.list_(one) for name, one in flat.items()})
    left = passages(DropRepeatsRequest.from_arguments(**options, **more), parts, packed is not None, schema)
    left = unpack(left, "text").tadoc.decompress("text") if packed else left
    expected = ordered.with_columns(other=pl.col("id") % 3).tadoc.drop_repeats("text", **options, **more)
    assert left.sort("id").rows() == expected.rows()
    schema = pa.schema({"id": pa.int64(), **dict.fromkeys(["offset", "length", "reference", "at"], pa.int64())})
    schema = schema.set(4, pa.field("reference_offset", pa.int64()))
    reference = pl.Series(text[::2], dtype=pl.String)
    request = OverlapRequest.of(reference, None, OverlapOptions(**options))
    shared = passages(request, parts, packed is not None, schema)
    assert sorted(shared.rows()) == sorted(ordered.tadoc.overlap("text", reference, id="id", **options).rows())


def near(request: Any, parts: list[list[pa.RecordBatch]], packed: bool) -> pl.DataFrame:
    """The rows of a call about near duplicates, in any order."""
    last = {"similarity": pa.float64()} if request.name == "near_duplicates" else {"keep": pa.bool_()}
    schema = pa.schema({"id": pa.int64(), **{"other" if "similarity" in last else "group": pa.int64()}, **last})
    asked = AskedNear(request, "text", 0, 1, packed, 3, schema, 1)
    signed = [batch for part in parts for batch in asked.sign(iter(part))]
    joined = [batch for group in by(signed, "shard") for batch in asked.join(group).to_batches()]
    given = [batch for group in by(joined, "shard") for batch in asked.assign(group).to_batches()]
    given += [batch for part in parts for batch in asked.send(iter(part))]
    routed = [batch for group in by(given, "shard") for batch in asked.route(group).to_batches()]
    made = [batch for group in by(routed, "shard") for batch in asked.compare(group).to_batches()]
    table: Any = pl.from_arrow(pa.Table.from_batches(made, schema))
    return table


WORDS = st.sampled_from(["a", "b", "c", "d"])


@given(st.lists(st.none() | st.lists(WORDS, max_size=7).map(" ".join), max_size=14), st.data())
@settings(max_examples=10)
def test_near_duplicates_are_those_of_one_process(text: list[str | None], data: st.DataObject) -> None:
    """Copies within a task and in several, rows that nothing is like, and those without words."""
    ids, several = data.draw(st.permutations(range(len(text)))), data.draw(st.booleans())
    frame = pl.DataFrame({"text": pl.Series(text, dtype=pl.String), "id": pl.Series(ids, dtype=pl.Int64)})
    packed = data.draw(st.sampled_from([None, compression(place=0), compression(rows_per_grammar=2, place=0)]))
    parts = partitions(frame, 3 if several else 1, data.draw(st.integers(1, 4)), packed)
    options: Any = {"ngram": 2, "threshold": data.draw(st.sampled_from([0.3, 0.8, 1.0])), "permutations": 16}
    for kind in (NearDuplicatesRequest, DuplicateGroupsRequest):
        request: Any = kind.from_arguments(**options)
        with patch.object(spark_passages, "TEXT_BYTES", data.draw(st.sampled_from([1, 1 << 25]))):
            found = near(request, parts, packed is not None)
        expected = getattr(frame.sort("id").tadoc, request.name)("text", id="id", **options)
        assert sorted(found.rows()) == sorted(expected.rows())


@pytest.mark.parametrize("name", ["sequence_count", "ranked_inverted_index", "tfidf"])
def test_a_task_hands_over_what_it_found_now_and_then(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_tasks, "ROOM", 1 << 9)
    monkeypatch.setattr(spark_tasks, "TEXT_BYTES", 1 << 7)
    case = CASES[name]
    frame = pl.DataFrame({"id": range(60), "text": [f"to be or {k % 7} not {k % 11} to be" for k in range(60)]})
    (part,) = partitions(frame, 1, 5, None)
    reading = Rows("text", "id" if case.labelled else None, False, Tokenizer("words"))
    asked = Asked(case.request, reading, 2, case.schema, 1)
    part = [batch.select(["text", "id"]) for batch in part]
    found = list(asked.find(iter(part)) if name != "tfidf" else asked.find_terms(iter(part)))
    assert len(found) > 2 * 2
    if name != "tfidf":  # whose parts are numbered by the task
        assert rows(answer(case, [part], False, 2)) == rows(case.expected(frame))


@pytest.mark.parametrize("name", ["word_count", "sequence_count", "term_vector", "tfidf"])
def test_a_device_with_too_little_memory_works_in_batches(name: str) -> None:
    case = CASES[name]
    frame = pl.DataFrame({"id": range(60), "text": [f"to be or {k % 7} not {k % 11} to be" for k in range(60)]})
    parts = partitions(frame, 2, 60, compression())
    with chosen(tight_engine(40)), pytest.warns(DeviceMemoryWarning):
        found = answer(case, parts, True, 2)
    assert rows(found) == rows(case.expected(frame))


LABELS = {
    "equal": pl.Series(["b", "a", "b", "a", "b"]),
    "null": pl.Series([3, None, 1, None, 2], dtype=pl.Int32),
    "dates": pl.Series(["2024-01-03", "2024-01-01", None, "2023-01-01", "2024-01-02"]).str.to_date(),
    "decimals": pl.Series(["1.10", "-1.10", "2.00", "1.00", "3.00"]).cast(pl.Decimal(9, 2)),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("labels", LABELS)
def test_documents_are_called_by_values_of_many_types(labels: str, packed: bool) -> None:
    text = pl.Series("text", ["to be", "to do be to", None, "to be or not to be", "be"])
    frame = pl.DataFrame([LABELS[labels].alias("id"), text])
    kind = next(batches(frame, 10)).schema.field("id").type
    case = cases(kind)["ranked_inverted_index"]
    parts = partitions(frame, 2, 2, compression() if packed else None)
    assert rows(answer(case, parts, packed, 2)) == rows(case.expected(frame))


def test_cells_are_files_of_packed_rows(tmp_path: Any) -> None:
    text = [None, "to be", "", "to do"] * 2 + ["x"]
    frame = pl.DataFrame({"id": range(9), "text": text, "on": [None, True, False] * 3})
    made = pl.concat([pl.from_arrow(batch) for batch in compression(rows_per_grammar=4)(batches(frame, 2))])
    assert made.schema == {"id": pl.List(pl.Int64), "text": pl.Binary, "on": pl.List(pl.Boolean)}
    assert made["id"].to_list() == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]
    unpacked = unpack(made, "text")
    assert unpacked.with_columns(tadoc.decompress(unpacked["text"])).equals(frame)
    made.write_parquet(tmp_path / "made.parquet")
    assert unpack(pl.scan_parquet(tmp_path / "made.parquet"), "text").collect().equals(unpacked)
    (tmp_path / "cell.parquet").write_bytes(made["text"][0])
    cell = tadoc.scan_packed(tmp_path / "cell.parquet").tadoc.decompress()
    assert cell.collect()["text"].to_list() == text[:4]


def test_what_is_no_cell_is_named() -> None:
    frame = pl.DataFrame({"id": [[1]], "text": [b"no file"]})
    with pytest.raises(ColumnMissingError, match='did you mean "text"'):
        unpack(frame, "txt")
    with pytest.raises(NotPackedError, match='column "id" is List'):
        unpack(frame, "id")
    with pytest.raises(Exception, match='column "text", row 0: not a Parquet file'):
        unpack(frame, "text")
    asked = Asked(CASES["sort"].request, Rows("text", None, True, Tokenizer("words")), 1, CASES["sort"].schema, 1)
    with pytest.raises(InvalidGrammarError, match="text: not a Parquet file"):
        list(asked.find(batches(frame.select("text"), 1)))


def test_there_is_one_label_for_each_document() -> None:
    frame = pl.DataFrame({"id": range(3), "text": ["to be", "to do", "be"]})
    (part,) = partitions(frame, 1, 3, compression())
    short = [batch.set_column(0, "id", pa.array([[1, 2]])) for batch in part]
    case = CASES["inverted_index"]
    with pytest.raises(InvalidGrammarError, match='a cell has 3 documents, "id" has 2'):
        answer(case, [short], True, 1)
