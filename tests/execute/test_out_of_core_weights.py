"""Weights and term vectors of rows that are more than memory holds: what the calls in memory give, window by window."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import polars_tadoc as tadoc
from polars_tadoc.analytics import bm25_weights, term_vector, tfidf
from polars_tadoc.execute import document_frequencies as frequencies
from polars_tadoc.execute import weight_stream, windows
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.execute.stages import Stages
from polars_tadoc.execute.stream import stream_result
from polars_tadoc.execute.weights import WeightsRequest
from polars_tadoc.execute.windows import packed_windows, windows_of
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.packed.pushdown import packed_question
from polars_tadoc.records import Checkpoint, SpillFolder
from tests.strategies import texts

LIMIT = 1 << 20
ROWS = 500
REQUESTS: dict[str, Callable[..., Analytic[Any, Any]]] = {
    "term_vector": term_vector.TermVectorRequest.from_arguments,
    "bm25_weights": bm25_weights.BM25WeightsRequest.from_arguments,
    "tfidf": tfidf.TFIDFRequest.from_arguments,
}
KNOWN = tadoc.Dictionary.from_words(pl.Series(["a", "w3", "u77", "zz"]))
CASES: list[tuple[str, dict[str, Any]]] = [
    ("term_vector", {}),
    ("term_vector", {"top": 2, "min_count": 2, "lowercase": True}),
    ("bm25_weights", {}),
    ("bm25_weights", {"top": 3, "scoring": "bm25+", "stopwords": ["a"]}),
    ("tfidf", {"sublinear_tf": True, "norm": "l1"}),
    ("tfidf", {"dictionary": KNOWN}),
]

FORMS = [
    (form, call, how)
    for form in ("packed", "few", "none", "rows", "shuffled", "text")
    for call, how in CASES
    if form != "text" or call != "term_vector"  # which takes no text
]


def documents() -> pl.DataFrame:
    words = [["a"] * (row % 5) + [f"w{n}" for n in range(row % 7, 60, 11)] + [f"u{row}"] for row in range(ROWS)]
    text = [None if row % 17 == 3 else " ".join(own) for row, own in enumerate(words)]
    return pl.DataFrame({"id": [f"document {row}" for row in range(ROWS)], "text": pl.Series(text, dtype=pl.String)})


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[pl.LazyFrame, pl.DataFrame]]:
    """The same documents in all forms, each as a plan and in memory."""
    df = documents()
    rows = df.tadoc.compress("text", rows_per_grammar=110)  # type: ignore[attr-defined]
    shuffled = rows.sample(fraction=1.0, shuffle=True, seed=1)
    path = tmp_path_factory.mktemp("packed") / "documents.parquet"
    rows.tadoc.write_packed(path)
    packed = tadoc.scan_packed(path)
    few = packed.filter(pl.col("id").str.ends_with("7"))
    return {
        "packed": (packed, rows),
        "few": (few, few.collect()),
        "none": (packed.filter(pl.col("id") == ""), rows.clear()),
        "rows": (rows.lazy(), rows),
        "shuffled": (shuffled.lazy(), shuffled),
        "text": (df.lazy(), df),
    }


# each form and call held and on disk, with labels and without, but not all combinations of them
@pytest.mark.parametrize(
    ("on_disk", "labels", "form", "call", "how"),
    [(on_disk, labels, *one) for on_disk, labels in ((False, None), (True, "id")) for one in FORMS]
    + [(True, None, *one) for one in FORMS if one[0] in ("packed", "shuffled")]
    + [(False, "id", *one) for one in FORMS if one[0] in ("packed", "text")],
)
def test_windows_give_what_all_rows_in_memory_give(
    plans: dict[str, tuple[pl.LazyFrame, pl.DataFrame]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    form: str,
    call: str,
    how: dict[str, Any],
    labels: str | None,
    on_disk: bool,
) -> None:
    if on_disk:
        monkeypatch.setattr(windows, "WORD_BYTES", LIMIT // 300)  # packed rows are cut
        monkeypatch.setattr(weight_stream, "WAITING_SHARE", 64)
        monkeypatch.setattr(weight_stream, "TABLE_SHARE", LIMIT)
        monkeypatch.setattr(frequencies, "MAX_WORDS", 64)
    plan, frame = plans[form]
    with tadoc.Config(spill_folder=str(tmp_path)):
        rows = windows_of(plan, "text", [] if labels is None else [labels], LIMIT)
        found = pl.concat(list(stream_result(rows, REQUESTS[call](**how), labels, LIMIT)))
    expected = getattr(frame.tadoc, call)("text", id=labels, **how)  # type: ignore[attr-defined]
    assert_frame_equal(found, expected, check_exact=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("call", REQUESTS)
def test_the_compressed_column_itself_may_be_the_label(call: str) -> None:
    df = pl.DataFrame({"text": ["a,  b!", None, "b--c"]}).tadoc.compress("text")  # type: ignore[attr-defined]
    found = getattr(df.lazy().tadoc, call)("text", id="text", memory_limit="1GB").collect()
    expected = getattr(df.tadoc, call)("text", id="text")
    assert found.drop("id").equals(expected.drop("id"))
    labels, same = (frame.rename({"id": "label"}).tadoc.decompress("label")["label"] for frame in (found, expected))
    assert labels.to_list() == same.to_list() == ["a,  b!"] * 2 + ["b--c"] * 2


@given(rows=st.lists(st.none() | texts, max_size=12), per_grammar=st.integers(1, 4))
def test_any_texts_have_the_same_weights(rows: list[str | None], per_grammar: int) -> None:
    column = pl.Series("text", rows, pl.String).tadoc.compress(rows_per_grammar=per_grammar)  # type: ignore[attr-defined]
    plan = column.to_frame().lazy()
    found = stream_result(
        windows_of(plan, "text", [], LIMIT), bm25_weights.BM25WeightsRequest.from_arguments(), None, LIMIT
    )
    assert_frame_equal(pl.concat(list(found)), column.to_frame().tadoc.bm25_weights(), check_exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [None, "id"])
@pytest.mark.parametrize(("call", "how"), [case for case in CASES if case[0] != "term_vector"])
def test_a_call_goes_on_behind_the_partitions_that_are_finished(
    plans: dict[str, tuple[pl.LazyFrame, pl.DataFrame]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    call: str,
    how: dict[str, Any],
    labels: str | None,
) -> None:
    plan, frame = plans["packed"]
    request = REQUESTS[call](**how)
    assert isinstance(request, WeightsRequest)
    question = packed_question(plan.select("text", *([] if labels is None else [labels])))
    assert question is not None
    monkeypatch.setattr(weight_stream, "BATCH", 100)
    counted: list[int] = []
    count = Stages.find_together

    def counting(self: Stages[Any], documents: Any, first: int) -> Any:
        if counted == [0, 110, 220]:
            counted.clear()
            raise KeyboardInterrupt
        counted.append(first)
        return count(self, documents, first)

    def ask() -> pl.DataFrame:
        found = packed_windows(question, [] if labels is None else [labels], LIMIT)
        with closing(Checkpoint(tmp_path / "checkpoint", {"call": call}, call)) as checkpoint:
            return pl.concat(list(stream_result(found, request, labels, LIMIT, checkpoint)))

    with monkeypatch.context() as patch:
        patch.setattr(Stages, "find_together", counting)
        with pytest.raises(KeyboardInterrupt):
            ask()
        expected = getattr(frame.tadoc, call)("text", id=labels, **how)  # type: ignore[attr-defined]
        assert_frame_equal(ask(), expected, check_exact=True)
        assert counted == [330, 440]
        assert_frame_equal(ask(), expected, check_exact=True)
        assert counted == [330, 440]


def test_an_abandoned_stream_leaves_nothing_behind(
    plans: dict[str, tuple[pl.LazyFrame, pl.DataFrame]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(weight_stream, "WAITING_SHARE", 64)
    with tadoc.Config(spill_folder=str(tmp_path)):
        rows = windows_of(plans["packed"][0], "text", [], LIMIT)
        frames = stream_result(rows, bm25_weights.BM25WeightsRequest.from_arguments(), None, LIMIT)
        assert next(frames).columns == ["id", "word", "weight"]
        assert list(tmp_path.iterdir())
        frames.close()  # type: ignore[attr-defined]
    assert not list(tmp_path.iterdir())


def test_packed_rows_are_cut_between_documents(plans: dict[str, tuple[pl.LazyFrame, pl.DataFrame]]) -> None:
    whole = list(windows_of(plans["packed"][0], "text", ["id"], LIMIT))
    for words in (1, 100, 1000):
        parts = [part for window in whole for part in windows.in_parts(window, words * windows.WORD_BYTES)]
        assert len(parts) > len(whole)
        assert pl.concat(part.frame for part in parts).equals(pl.concat(window.frame for window in whole))
        assert [part.first for part in parts[1:]] == np.cumsum([part.height for part in parts])[:-1].tolist()
        for part in parts:
            for corpus in part.corpora:
                assert corpus.document_count == 1 or corpus.word_total() <= words
                assert corpus.rows[0] >= part.first
                assert corpus.rows[-1] < part.first + part.height
        rows = np.concatenate([corpus.rows for part in parts for corpus in part.corpora])
        assert rows.tolist() == plans["rows"][1]["text"].is_not_null().arg_true().to_list()


@given(
    known=st.dictionaries(texts, st.integers(2, 1 << 40), max_size=30),
    asked=st.sets(texts, max_size=30),
    room=st.sampled_from([0, 1 << 30]),
)
def test_words_are_found_in_stretches(known: dict[str, int], asked: set[str], room: int) -> None:
    words = sorted(known)
    counts = pl.Series([known[word] for word in words], dtype=pl.UInt64).to_numpy()
    sought = Vocabulary.copied(pl.Series("word", sorted({*asked, *words[::2]}), pl.String))
    with pytest.MonkeyPatch.context() as patch, SpillFolder("test") as folder:
        patch.setattr(frequencies, "MAX_WORDS", 4)
        table = frequencies.FrequencyTable(folder, room)
        for start in range(0, len(words), 7):
            own = Vocabulary.copied(pl.Series("word", words[start : start + 7], pl.String)).strings
            table.append(own, counts[start : start + 7])
        found = table.look_up(sought)
    assert found.tolist() == [known.get(word, 1) for word in sought.strings.to_pylist()]
