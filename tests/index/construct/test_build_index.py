"""What an index is built of, against counts in plain Python."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.errors import ColumnMissingError, InvalidGrammarError, LimitExceededError, NotCompressedError
from polars_tadoc.kernels.postings import decode_cpu as kernels
from polars_tadoc.kernels.search.reference import decode_list
from tests import handmade
from tests.analytic_cases import COLUMN, LABELS, STRATEGIES, Case, cases, strategies

CODECS = ["pfordelta", "rice"]
TEXTS = ["the cat saw the dog", None, "the dog saw the cat saw", "", "a cat"]
ROWS = [0, 2, 3, 4]


def contents(index: tadoc.Index) -> dict[str, dict[int, int]]:
    """How often each document holds each word, as decoded from an index of one segment."""
    (segment,) = index.segments
    return {
        word: dict(zip(*decode_list(segment.postings, number), strict=True))
        for number, word in enumerate(segment.terms.series)
    }


def expected(documents: list[list[str] | None]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for number, words in enumerate(own for own in documents if own is not None):
        for word, count in Counter(words).items():
            found.setdefault(word, {})[number] = count
    return dict(sorted(found.items()))


@given(case=cases(normalised=True), codec=st.sampled_from(CODECS), strategy=strategies)
def test_contents(engine: str, case: Case, codec: str, strategy: str) -> None:
    arguments = {"lowercase": False, **case.arguments}
    index = tadoc.build_index(case.column, codec=codec, strategy=strategy, engine=engine, **arguments)
    wanted = expected(case.documents)
    assert contents(index) == wanted
    assert list(contents(index)) == list(wanted)  # ascending
    lengths = [len(words) for words in case.documents if words is not None]
    assert index.segments[0].lengths.tolist() == lengths
    assert index.segments[0].lengths.dtype == np.uint32
    assert (index.documents, index.terms) == (len(lengths), len(wanted))
    assert index.postings == sum(map(len, wanted.values()))
    assert index.average_length == sum(lengths) / max(len(lengths), 1)
    assert index.codec == codec


@given(case=cases())
def test_words_with_bytes_of_any_kind(engine: str, case: Case) -> None:
    index = tadoc.build_index(case.column, engine=engine, lowercase=False)
    assert contents(index) == expected(case.documents)
    assert index.ids.to_list() == [row for row, words in enumerate(case.documents) if words is not None]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("codec", CODECS)
def test_every_call_builds_the_same(engine: str, strategy: str, codec: str) -> None:
    frame = COLUMN.to_frame().with_columns(LABELS["dates"].head(len(COLUMN)).alias("day"))
    given = {"codec": codec, "strategy": strategy, "engine": engine, "lowercase": True, "stopwords": ["A"]}
    indexes = [
        tadoc.build_index(COLUMN, id=frame["day"], metadata=frame.select("day"), **given),
        COLUMN.tadoc.build_index(id=frame["day"], metadata=frame.select("day"), **given),
        frame.tadoc.build_index("text", id="day", metadata=["day"], **given),
        frame.tadoc.build_index(id="day", metadata=iter(["day"]), **given),
    ]
    for index in indexes:
        assert contents(index) == contents(indexes[0])
        assert index.ids.equals(frame["day"].gather(ROWS), check_names=False)
        assert index.metadata is not None
        assert index.metadata.equals(frame.select("day")[ROWS])
        assert index.search("cat").equals(indexes[0].search("cat"))
    assert "a" not in contents(indexes[0])


@pytest.mark.slow
def test_a_large_number_of_documents_and_blocks(engine: str) -> None:
    """Lists of many blocks, counts beyond a byte and gaps of many widths."""
    texts = [
        " ".join(["all", *(f"m{m}" for m in (2, 3, 5, 129, 1000, 4999) if row % m == 0), *["often"] * (row % 700)])
        for row in range(5000)
    ]
    column = tadoc.compress(pl.Series("text", texts), rows_per_grammar=1700)
    wanted = expected([text.split() for text in texts])
    for codec in CODECS:
        index = tadoc.build_index(column, codec=codec, engine=engine)
        (segment,) = index.segments
        numbers = np.arange(len(segment.terms), dtype=np.uint32)
        offsets, documents, counts = kernels.decode_lists(segment.postings, numbers)
        for number, word in enumerate(segment.terms.series):
            own = slice(offsets[number], offsets[number + 1])
            assert dict(zip(documents[own].tolist(), counts[own].tolist(), strict=True)) == wanted[word]


def test_words_of_the_grammar_that_no_row_holds() -> None:
    column = tadoc.compress(pl.Series(["rare word", "other text", "other word"]))[1:]
    index = tadoc.build_index(column)
    assert list(contents(index)) == ["other", "text", "word"]
    assert index.search("rare").is_empty()


def test_text_is_kept_as_asked() -> None:
    frame = COLUMN.to_frame()
    kept = frame.tadoc.build_index().stored.text
    assert kept is not None
    assert tadoc.decompress(kept).to_list() == [TEXTS[row] for row in ROWS]
    assert frame.tadoc.build_index(store=False).stored.text is None
    whole = COLUMN.drop_nulls()
    stored = whole.tadoc.build_index().stored
    assert stored.text is not None
    assert stored.text.equals(whole)


def test_rows_count_where_documents_have_no_ids() -> None:
    stored = tadoc.build_index(COLUMN).stored
    assert (len(stored), stored.rows, stored.labelled) == (4, 5, False)
    assert tadoc.build_index(COLUMN, id=LABELS["equal"].head(5)).stored.labelled


@pytest.mark.parametrize("name", LABELS)
def test_ids(name: str) -> None:
    ids = LABELS[name].head(len(COLUMN))
    frame = pl.DataFrame([COLUMN, ids.alias("query")])  # a name that results have, too
    index = frame.tadoc.build_index("text", id="query")
    assert index.ids.equals(ids.gather(ROWS), check_names=False)
    assert index.search("cat").columns == ["query", "rank", "id", "score"]


@pytest.mark.parametrize("dtype", [pl.Int128, pl.UInt8, pl.Float64, pl.Decimal(20, 2), pl.Time, pl.Binary])
def test_ids_of_rarer_types(dtype: Any) -> None:
    values = pl.Series(range(len(COLUMN)))
    ids = values.cast(pl.String).cast(pl.Binary) if dtype == pl.Binary else values.cast(dtype)
    index = COLUMN.tadoc.build_index(id=ids)
    assert index.search("cat")["id"].sort().to_list() == [ids.to_list()[row] for row in (0, 2, 4)]


def test_printed() -> None:
    index = tadoc.build_index(COLUMN)
    pattern = r"Index of 4 documents, 5 terms, 10 postings, [\d,]+ bytes \(pfordelta\)"
    assert re.fullmatch(pattern, repr(index))
    assert f"{index.nbytes:,}" in repr(index)
    postings = index.segments[0].postings
    assert index.nbytes > postings.heads.nbytes + postings.gaps.low.nbytes + postings.counts.low.nbytes


def test_one_analyzer_for_all_texts() -> None:
    words, spaces = (tadoc.compress(pl.Series(["a b"]), tokenizer=name) for name in ("words", "whitespace"))
    with pytest.raises(ValueError, match=r'different tokenizers, "words", "whitespace"'):
        tadoc.build_index(pl.concat([words, spaces]))
    own = tadoc.compress(pl.Series(["a-b c"]), tokenizer=re.compile("[a-z-]+"))
    assert contents(tadoc.build_index(pl.concat([own, own]))) == {"a-b": {0: 1, 1: 1}, "c": {0: 1, 1: 1}}


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"codec": "gzip"}, ValueError, "pfordelta"),
    ({"codec": None}, ValueError, "codec"),
    ({"id": ["a"] * 5}, TypeError, "id is list"),
    ({"id": pl.Series(["a"])}, ValueError, "id has 1 rows, the column 5"),
    ({"id": "text"}, TypeError, "id is str"),
    ({"id": pl.Series([object()] * 5, dtype=pl.Object)}, TypeError, "Python objects"),
    ({"metadata": ["year"]}, TypeError, "metadata is list"),
    ({"metadata": pl.DataFrame({"a": [1]})}, ValueError, "metadata has 1 rows, the column 5"),
    ({"store": 1}, TypeError, "store=1"),
    ({"strategy": "sideways"}, ValueError, "top_down"),
    ({"engine": "tpu"}, ValueError, "tpu"),
    ({"stopwords": "the"}, TypeError, "one string"),
    ({"normalize": "lower"}, TypeError, "normalize"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), WRONG)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tadoc.build_index(COLUMN, **arguments)


def test_wrong_columns() -> None:
    frame = COLUMN.to_frame().with_columns(year=1)
    with pytest.raises(ColumnMissingError, match='did you mean "text"'):
        frame.tadoc.build_index("txt")
    with pytest.raises(ColumnMissingError, match='did you mean "year"'):
        frame.tadoc.build_index("text", metadata=["yaer"])
    with pytest.raises(ColumnMissingError, match="build_index"):
        frame.tadoc.build_index("text", id="day")
    for wrong in ("year", frame.select("year"), [0]):
        with pytest.raises(TypeError, match=r'metadata=\["year"\]'):
            frame.tadoc.build_index("text", metadata=wrong)
    with pytest.raises(NotCompressedError, match='build_index: column "text" is Int64, neither String'):
        tadoc.build_index(pl.Series("text", [1]))
    with pytest.raises(TypeError, match="build_index takes a Polars Series"):
        tadoc.build_index(frame)  # type: ignore[arg-type]


def test_documents_too_long_are_refused(engine: str) -> None:
    """Rules that double one another stand for 2^31 words."""
    doubling = handmade.grammar(["a", "b"], [[0, 0], *([2 + rule, 2 + rule] for rule in range(30))])
    with pytest.raises(LimitExceededError, match="row 1 has more than 4,294,967,295 words"):
        tadoc.build_index(handmade.column(doubling, [[0], [32, 32]]), engine=engine)
    index = tadoc.build_index(handmade.column(doubling, [[0, 1], [32, 1]]), engine=engine)
    assert contents(index) == {"a": {0: 1, 1: 1 << 31}, "b": {0: 1, 1: 1}}
    assert index.search("b", engine=engine)["id"].to_list() == [0, 1]


def test_damaged_rows_are_refused(engine: str) -> None:
    grammar, symbols, gaps = COLUMN.head(1).ext.storage().struct.unnest()
    wrong = pl.DataFrame([grammar, pl.Series("symbols", [[1 << 31]], symbols.dtype), gaps]).to_struct("text")
    with pytest.raises(InvalidGrammarError):
        tadoc.build_index(wrong, engine=engine)
