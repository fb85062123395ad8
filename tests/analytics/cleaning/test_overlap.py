"""Matches with a reference, against the plain-Python definition."""

from __future__ import annotations

import pickle
import re
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.analytics.cleaning import passage_set_file, passage_table
from polars_tadoc.dictionary import file
from polars_tadoc.errors import InvalidPassageSetError, LimitExceededError
from tests import passages_oracle
from tests.analytic_cases import COLUMN, LABELS
from tests.analytics.cleaning.test_repeats import IMAGES, columns, documents_of, forms

DATA = Path(__file__).parents[2] / "data" / "passage_sets"
KNOWN = tadoc.PassageSet(pl.Series(["a"]))


@given(columns(), columns(), st.booleans(), st.integers(1, 6), st.sampled_from(list(IMAGES)))
def test_overlap(
    engine: str, rows: list[str | None], others: list[str | None], itself: bool, length: int, name: str
) -> None:
    arguments, image = IMAGES[name]
    others = others + rows[:3] if itself else others
    documents, references = documents_of(rows, image), documents_of(others, image)
    expected = passages_oracle.overlap(documents, references, length)
    shares = passages_oracle.overlap_share(documents, references, length)
    found = [None if share is None and row is None else bool(share) for share, row in zip(shares, rows, strict=True)]
    for reference in forms(others):
        known = tadoc.PassageSet(reference, length=length, **arguments)
        assert (known.rows, known.length) == (len(others), length)
        for column in forms(rows)[:2]:
            got = column.tadoc.overlap(reference, length=length, engine=engine, **arguments)
            assert got.rows() == expected
            assert column.tadoc.overlap(known, engine=engine).equals(got)
            assert column.tadoc.overlap_share(known, engine=engine).to_list() == shares
            assert column.tadoc.overlaps(known, engine=engine).to_list() == found
            frame = column.to_frame()
            assert frame.tadoc.overlap("text", reference, length=length, engine=engine, **arguments).equals(got)
            lazy = frame.lazy().tadoc.overlap("text", known, engine=engine)
            assert lazy.collect().equals(got)
            assert lazy.collect_schema() == got.schema
            by_expression = frame.select(
                a=pl.col("text").tadoc.overlap_share(reference, length=length, engine=engine, **arguments),
                b=pl.col("text").tadoc.overlaps(known, engine=engine),
            )
            assert by_expression.rows() == list(zip(shares, found, strict=True))


@pytest.mark.parametrize("threads", [1, 3])
def test_many_occurrences_that_go_on_differently(threads: int) -> None:
    """A notice that is in many rows of the reference, each time between other words."""
    notice = "we use cookies to make this page work"
    others = [f"{'x ' * (k % 7)}b{k} {notice} a{k} {notice} c{k % 3}" for k in range(60)]
    rows = [f"b{k} {notice} a{j} {notice} c{j % 2}" for k in range(0, 60, 7) for j in range(0, 60, 11)] * 3
    expected = passages_oracle.overlap(documents_of(rows), documents_of(others), 4)
    with tadoc.Config(threads=threads):
        assert pl.Series("text", rows).tadoc.overlap(pl.Series(others), length=4).rows() == expected


@pytest.mark.parametrize("kinds", [7, 1 << 20])
def test_a_notice_in_all_rows_takes_time_in_proportion(kinds: int) -> None:
    """Also where few words or many different ones follow it."""
    notice = "we use cookies to make this page better for you and for all others"

    def seconds(rows: int) -> float:
        known = tadoc.PassageSet(pl.Series([f"r{k} {notice} q{k % kinds}" for k in range(rows)]))
        text = pl.Series([f"s{k} {notice} q{k % kinds}" for k in range(rows)])
        assert len(known.neighbours) == 4
        start = time.process_time()
        found = text.tadoc.overlap(known)
        assert found["reference"].to_list() == [k % kinds for k in range(rows)]
        return time.process_time() - start

    seconds(100)
    assert min(seconds(20_000) for _ in range(2)) < 3 * min(seconds(10_000) for _ in range(3)) + 0.2


@pytest.mark.parametrize("labels", LABELS)
def test_labels(labels: str) -> None:
    ids = LABELS[labels]
    text = pl.Series("text", [f"a b {k}" for k in range(10)])
    got = text.tadoc.overlap(text, id=ids, reference_id=ids, length=3)
    assert got["id"].equals(ids.alias("id"))
    assert got["reference"].equals(ids.alias("reference"))
    frame = pl.DataFrame({"label": ids, "text": text})
    assert frame.tadoc.overlap("text", text, id="label", reference_id=ids, length=3).equals(got)
    lazy = frame.lazy().tadoc.overlap("text", text, id="label", reference_id=ids, length=3)
    assert lazy.collect_schema() == got.schema
    assert lazy.collect().equals(got)


def test_a_column_cut_otherwise_is_refused() -> None:
    known = tadoc.PassageSet(pl.Series(["a b c"]), length=2, tokenizer="whitespace")
    column = pl.Series("text", ["x, a b"])
    assert column.tadoc.overlaps(known).to_list() == [True]  # plain text is cut as the reference
    same = tadoc.PassageSet(pl.Series(["x, a b"]).tadoc.compress(tokenizer="whitespace"), length=3)
    assert column.tadoc.overlap(same)["length"].to_list() == [3]
    message = 'column "text" was cut by "words", the reference by "whitespace"'
    for call in ("overlap", "overlaps", "overlap_share"):
        with pytest.raises(TypeError, match=rf"{call}: .*({message})"):
            getattr(column.tadoc.compress().tadoc, call)(known)
    other = pl.Series("text", ["a b"]).tadoc.compress(tokenizer=re.compile("[ab]"))
    with pytest.raises(TypeError, match=r'overlap: column "text" was cut by "regex:\[ab\]", the reference by "words"'):
        other.tadoc.overlap(pl.Series(["a b c"]), length=2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"reference": ["a"]}, TypeError, "reference is list, not a Series of texts or a PassageSet"),
        ({"reference": pl.Series(["a"]), "length": 0}, ValueError, "length=0 must be at least 1"),
        ({"reference": pl.Series(["a"]), "reference_id": ["x"]}, TypeError, "reference_id is list"),
        ({"reference": pl.Series(["a"]), "reference_id": pl.Series([1, 2])}, ValueError, "2 labels for the 1 rows"),
        ({"reference": KNOWN, "length": 3}, ValueError, "length= is for a Series"),
        ({"reference": KNOWN, "lowercase": True}, ValueError, "lowercase= is for a Series"),
    ],
)
def test_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        COLUMN.tadoc.overlap(**arguments)


@given(columns(), columns(), st.integers(1, 4), st.sampled_from(list(IMAGES)))
def test_saved_sets(rows: list[str | None], others: list[str | None], length: int, name: str) -> None:
    known = tadoc.PassageSet(pl.Series("text", others, dtype=pl.String), length=length, **IMAGES[name][0])
    with TemporaryDirectory() as folder:
        known.save(Path(folder) / "known")
        loaded = tadoc.PassageSet.load(Path(folder) / "known")
        column = pl.Series("text", rows, dtype=pl.String)
        assert column.tadoc.overlap(loaded).equals(column.tadoc.overlap(known))
        assert column.tadoc.overlap_share(loaded).equals(column.tadoc.overlap_share(known))
        sent = pickle.loads(pickle.dumps(known))
        assert column.tadoc.overlap(sent).equals(column.tadoc.overlap(known))
        with pytest.raises(TypeError, match='cut by "whitespace", the reference by "words"'):
            pl.Series("text", ["a"]).tadoc.compress(tokenizer="whitespace").tadoc.overlaps(loaded)


def test_python_functions_are_not_saved(tmp_path: Path) -> None:
    known = tadoc.PassageSet(pl.Series(["a b"]), normalize=pl.element().map_elements(str.upper, pl.String), length=1)
    assert pl.Series(["A"]).tadoc.overlaps(known).to_list() == [True]
    with pytest.raises(ValueError, match=r"PassageSet\.save: normalize= has a Python function or a library"):
        known.save(tmp_path / "known")


def test_damaged_pickles_are_refused() -> None:
    """Damage of a number that kernels follow ended the process."""
    known = tadoc.PassageSet(pl.Series(["a b c a b c", "b c a"]), length=2, stopwords=["x"])
    data = pickle.dumps(known)
    for array in (known.laid.words, known.first, known.laid.starts, known.table.slots):
        damaged = bytearray(data)
        damaged[data.index(array.tobytes()) + 1] ^= 0x80
        with pytest.raises(InvalidPassageSetError, match=r"the pickle is damaged: the checksum of array"):
            pickle.loads(bytes(damaged))


def test_other_files_are_refused(tmp_path: Path) -> None:
    tadoc.Dictionary.from_words(pl.Series(["a"])).save(tmp_path / "words")
    with pytest.raises(InvalidPassageSetError, match=r"PassageSet\.load: .*words is not a saved passage set"):
        tadoc.PassageSet.load(tmp_path / "words")
    with pytest.raises(FileNotFoundError):
        tadoc.PassageSet.load(tmp_path / "none")


@given(st.data())
def test_damaged_files_are_refused(data: st.DataObject) -> None:
    """Every flipped byte, and every changed number under a right checksum that kernels would follow."""
    known = tadoc.PassageSet(pl.Series(["a b c a b c", "b c a", None, "c"]), length=2, stopwords=["x"])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "known"
        known.save(path)
        damaged = bytearray(path.read_bytes())
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(damaged)
        with pytest.raises(InvalidPassageSetError):
            tadoc.PassageSet.load(path)
        known.save(path)
        contents, arrays = file.read(path, True, passage_set_file.FORM)
        name = data.draw(st.sampled_from(["words", "starts", "first", "table", "word_ends"]))
        changed = arrays[name].copy()
        at = data.draw(st.integers(0, len(changed) - 1))
        value = data.draw(st.one_of(st.integers(0, 40), st.integers(0, (1 << 32) - 1)))
        changed[at] = value
        file.write(path, contents, {**arrays, name: changed}, passage_set_file.FORM)
        try:
            loaded = tadoc.PassageSet.load(path)
        except InvalidPassageSetError:
            return
        pl.Series("text", ["a b c a b", "b c", "a"]).tadoc.overlap(loaded)  # wrong answers, but within the arrays


def test_headers_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "known"
    tadoc.PassageSet(pl.Series(["a b c"]), length=2, normalize=pl.element().str.head(1)).save(path)
    contents, arrays = file.read(path, True, passage_set_file.FORM)
    for wrong in (
        {"length": 0},
        {"seed": 5},
        {"seed": "no number"},
        {"length": "2"},
        {"tokenizers": ["unknown"]},
        {"tokenizers": 3},
        {"tokenizers": []},
        {"tokenizers": ["words"] * 1000},
        {"tokenizers": ["words", "whitespace"]},
        {"morphism": {**contents["morphism"], "stopwords": "abc"}},
        {"morphism": {**contents["morphism"], "stopwords": ["\ud800"]}},
        {"morphism": {}},
        {"morphism": {**contents["morphism"], "lowercase": 1}},
        {"morphism": {**contents["morphism"], "normalize": ["os.system", {}]}},
    ):
        file.write(path, {**contents, **wrong}, arrays, passage_set_file.FORM)
        with pytest.raises(InvalidPassageSetError, match=r"PassageSet\.load: .*known is damaged"):
            tadoc.PassageSet.load(path)


def test_arrays_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where rows and windows span several chunks of the check."""
    path = tmp_path / "known"
    tadoc.PassageSet(pl.Series(["a b x c a b", None, "b c x", "c"]), length=2, stopwords=["x"]).save(path)
    contents, arrays = file.read(path, True, passage_set_file.FORM)
    assert arrays["places"].tolist() == [0, 1, 3, 4, 5, 6, 0, 0, 1, 3, 0, 1]
    size, slots = len(arrays["words"]), arrays["table"]
    used = np.flatnonzero(slots)
    twice = slots.copy()
    twice[used[1]] = slots[used[0]]
    fewer = slots.copy()
    fewer[used[0]] = 0
    wrong: list[tuple[dict[str, list[int]], str]] = [
        ({"starts": [0, (1 << 63) - 1, -1 << 63, -1, size]}, "rows do not fit"),
        ({"starts": [0, 6, 6, 7, size]}, "rows do not fit"),
        ({"starts": [0, 6, 7, 10, size + 1]}, "rows do not fit"),
        ({"places": [0] * size}, "not in the order of their places"),
        ({"places": [*arrays["places"][:-1], (1 << 32) - 1]}, "more than can be numbered"),
        ({"places": [*arrays["places"][:2], 1, *arrays["places"][3:]]}, "not in the order of their places"),
        ({"table": [0] * len(slots)}, "table does not fit"),
        ({"table": twice.tolist()}, "table does not fit"),
        ({"table": fewer.tolist()}, "table does not fit"),
        ({"table": slots[: len(used)].tolist()}, "no size of a table"),
        ({"table": [*np.repeat(slots[used], 200), *[0] * (8192 - 200 * len(used))]}, "too many filled slots"),
    ]
    for chunk in (1, 2, 5, 1 << 20):
        monkeypatch.setattr(passage_set_file, "CHUNK", chunk)
        monkeypatch.setattr(passage_table, "CHUNK", chunk)
        file.write(path, contents, arrays, passage_set_file.FORM)
        assert pl.Series(["b c a"]).tadoc.overlaps(tadoc.PassageSet.load(path)).to_list() == [True]
        for changes, message in wrong:
            made = {name: np.array(values, arrays[name].dtype) for name, values in changes.items()}
            file.write(path, contents, {**arrays, **made}, passage_set_file.FORM)
            with pytest.raises(InvalidPassageSetError, match=message):
                tadoc.PassageSet.load(path)


def test_files_with_public_fingerprints_are_read() -> None:
    """Saved before fingerprints had a seed, by::

    rows = ["To be, or not to be: that is the question", "whether to be or not", None]
    rows.append("to be or not to be or not to be")
    tadoc.PassageSet(pl.Series(rows), length=3, lowercase=True, stopwords=["that"]).save("public_base")
    """
    known = tadoc.PassageSet.load(DATA / "public_base")
    assert (known.rows, known.length) == (4, 3)
    text = pl.Series("text", ["He said: not to be, that is the end", "whether to", None, "WHETHER TO BE"])
    assert tadoc.overlap(text, known).select(["id", "offset", "length", "reference"]).to_pylist() == [
        {"id": 0, "offset": 2, "length": 6, "reference": 0},
        {"id": 3, "offset": 0, "length": 3, "reference": 1},
    ]


def test_equal_references_give_equal_files(tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "other"]
    for path in paths:
        tadoc.PassageSet(pl.Series(["to be or not to be"]), length=2).save(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_sizes_of_files_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known, path = tadoc.PassageSet(pl.Series(["a b c"]), length=2), tmp_path / "known"
    known.save(path)
    size = path.stat().st_size
    with (
        tadoc.Config(payload_limit_bytes=size - 1),
        pytest.raises(LimitExceededError, match=rf"PassageSet\.load: .*known has {size:,} bytes, the limit"),
    ):
        tadoc.PassageSet.load(path)
    with tadoc.Config(payload_limit_bytes=size):
        assert tadoc.PassageSet.load(path).rows == 1
    monkeypatch.setattr(file, "MAX_HEADER_BYTES", 512)
    with pytest.raises(InvalidPassageSetError, match=r"its header has [0-9,]+ bytes, the most is 512"):
        tadoc.PassageSet.load(path)
    with pytest.raises(LimitExceededError, match=r"PassageSet\.save: the header would have"):
        known.save(path)
    assert path.stat().st_size == size
