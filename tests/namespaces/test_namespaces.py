"""The accessors: thin, typed and alike."""

from __future__ import annotations

import inspect
import os
import re
import signal
import subprocess
import sys
import time
from importlib.resources import files
from typing import Any, get_type_hints

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.analytics.explain import REQUESTS
from polars_tadoc.namespaces.dataframe import TadocFrame
from polars_tadoc.namespaces.expr import TadocExpr
from polars_tadoc.namespaces.lazyframe import TadocLazyFrame
from polars_tadoc.namespaces.series import TadocSeries
from tests.package.test_surfaces import methods as every_method

ACCESSORS = [TadocFrame, TadocLazyFrame, TadocSeries, TadocExpr]
FUNCTIONS = {
    "compress": tadoc.compress,
    "recompress": tadoc.recompress,
    "decompress": tadoc.decompress,
    "word_count": tadoc.word_count,
    "sort": tadoc.sort,
    "inverted_index": tadoc.inverted_index,
    "term_vector": tadoc.term_vector,
    "bm25_weights": tadoc.bm25_weights,
    "tfidf": tadoc.tfidf,
    "to_csr": tadoc.to_csr,
    "sequence_count": tadoc.sequence_count,
    "ranked_inverted_index": tadoc.ranked_inverted_index,
    "cooccurrence": tadoc.cooccurrence,
    "info": tadoc.info,
    "repeats": tadoc.repeats,
    "drop_repeats": tadoc.drop_repeats,
    "collocations": tadoc.collocations,
    "concordance": tadoc.concordance,
    "positions": tadoc.positions,
    "near_duplicates": tadoc.near_duplicates,
    "duplicate_groups": tadoc.duplicate_groups,
    "overlap": tadoc.overlap,
    "twig_filter": tadoc.twig_filter,
}
ROW_BY_ROW = {
    "token_count": tadoc.token_count,
    "content_hash": tadoc.content_hash,
    "eq": tadoc.equals,
    "extract": tadoc.extract,
    "head": tadoc.head,
    "tail": tadoc.tail,
    "contains": tadoc.contains,
    "count_matches": tadoc.count_matches,
    "find": tadoc.find,
    "extract_all": tadoc.extract_all,
    "count_phrase": tadoc.count_phrase,
    "contains_phrase": tadoc.contains_phrase,
    "contains_any": tadoc.contains_any,
    "bm25": tadoc.bm25,
    "repeated_share": tadoc.repeated_share,
    "novelty": tadoc.novelty,
    "minhash": tadoc.minhash,
    "overlap_share": tadoc.overlap_share,
    "overlaps": tadoc.overlaps,
}
"""Calls that give a column beside others: of series and expressions, not of frames."""


PACKING = {"pack", "unpack", "write_packed", "write_parquet", "sink_packed"}
"""Methods that only frames have: all columns take part."""
INDEXING = {"build_index"}
"""Methods that need all rows: of frames and series, not of plans and expressions."""
APPENDING = {"append_to"}
"""Methods that only frames have: their columns become ids and metadata."""
SINKING = {"sink_parquet", "sink_index"}
"""Methods that only plans have: what they give need not fit into memory."""
SHOWING = {"preview"}
"""Methods that frames and series have: what is printed is there."""


STREAMED = {*REQUESTS, "twig_filter", "repeats", "drop_repeats"}
"""Calls that a lazy plan can run in bounded memory, with a checkpoint."""

LIMITED = {*STREAMED, "overlap", "near_duplicates", "duplicate_groups"}
"""Those with a memory limit in plans."""


def methods(accessor: type) -> dict[str, Any]:
    return {
        name: f
        for name, f in every_method(accessor).items()
        if name not in PACKING | INDEXING | APPENDING | SINKING | SHOWING
    }


def options(function: Any) -> dict[str, tuple[object, object]]:
    """Keyword-only parameters with annotations and defaults."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: (p.annotation, p.default) for p in parameters if p.kind is p.KEYWORD_ONLY}


def options_in_a_frame(function: Any) -> dict[str, tuple[object, object]]:
    """The same where ``id`` names a column instead of being one."""
    return {
        name: ("str | None" if name == "id" else annotation, default)
        for name, (annotation, default) in options(function).items()
    }


def options_by_row(function: Any) -> dict[str, tuple[object, object]]:
    """The same where an expression labels the rows that an index lists, and nothing those of other calls."""
    given = {name: option for name, option in options(function).items() if name != "id"}
    if function in (tadoc.inverted_index, tadoc.ranked_inverted_index):
        given["id"] = ("str | pl.Expr | None", None)
    if function not in (tadoc.compress, tadoc.recompress):  # Polars runs the rest by batches, without a bar
        given.pop("progress", None)
    return given


def options_of_rows(function: Any) -> dict[str, tuple[object, object]]:
    """The same where the answer is by row, which needs no labels and has two forms."""
    given = {name: option for name, option in options(function).items() if name != "id"}
    return {"as_struct": ("bool", False), **given}


def test_registered() -> None:
    assert isinstance(pl.DataFrame().tadoc, TadocFrame)
    assert isinstance(pl.LazyFrame().tadoc, TadocLazyFrame)
    assert isinstance(pl.Series().tadoc, TadocSeries)
    assert isinstance(pl.col("a").tadoc, TadocExpr)


@pytest.mark.parametrize("accessor", ACCESSORS)
def test_options_are_those_of_the_function(accessor: type) -> None:
    expected_of = {TadocSeries: options, TadocExpr: options_by_row}.get(accessor, options_in_a_frame)
    for name, method in methods(accessor).items():
        given = options(method)
        by_row = name == "twig_filter" and accessor in (TadocSeries, TadocExpr)
        expected = options_of_rows if by_row else expected_of
        if accessor is TadocLazyFrame and name in LIMITED:
            assert given.pop("memory_limit") == ("int | str | None", None)
        if accessor is TadocLazyFrame and name in STREAMED:
            assert given.pop("checkpoint") == ("str | os.PathLike[str] | None", None)
        if accessor is not TadocExpr and name in REQUESTS:
            assert given.pop("words") == ("WordForm", "string")
        if (accessor, name) in ((TadocLazyFrame, "decompress"), (TadocExpr, "twig_filter")):  # of batches: no bar
            given["progress"] = ("bool | None", None)
        assert given == expected((FUNCTIONS | ROW_BY_ROW)[name]), name


def test_frames_pack() -> None:
    assert PACKING & set(every_method(TadocFrame)) == PACKING - {"sink_packed"}
    assert PACKING & set(every_method(TadocLazyFrame)) == PACKING - {"write_packed", "write_parquet"}


def test_several_columns() -> None:
    """``compress`` and ``decompress`` take lists of names, also of plans; a column named twice counts once."""
    df = pl.DataFrame({"^a$": ["to be", "x"], "b": ["to do", None], "n": [1, 2]})
    packed = df.tadoc.compress(["^a$", "b", "b"])
    assert packed.dtypes == [tadoc.DTYPE, tadoc.DTYPE, pl.Int64]
    assert packed.tadoc.decompress(("b", "^a$")).equals(df)
    plan = df.lazy().tadoc.compress(["^a$", "b"])
    assert plan.collect_schema() == packed.schema
    assert plan.tadoc.decompress(["^a$", "b"]).filter(pl.col("n") > 1).collect().rows() == [("x", None, 2)]
    assert df.tadoc.compress([]).equals(df)
    for frame in (df, df.lazy()):
        with pytest.raises(tadoc.errors.ColumnMissingError, match='no column "c"'):
            frame.tadoc.compress(["b", "c"])
        with pytest.raises(TypeError, match="not by list"):
            frame.tadoc.compress([["b"]])


def test_frames_and_series_build_indices() -> None:
    for accessor in ACCESSORS:
        assert set(every_method(accessor)) >= INDEXING or accessor in (TadocLazyFrame, TadocExpr)
        assert (set(every_method(accessor)) >= APPENDING) == (accessor is TadocFrame)
    function = options(tadoc.build_index)
    assert options(TadocSeries.build_index) == function
    frame = {**options_in_a_frame(tadoc.build_index), "metadata": ("Iterable[str] | None", None)}
    assert options(TadocFrame.build_index) == frame
    assert "metadata\n    Names of columns" in inspect.getdoc(TadocFrame.build_index)


def test_frames_and_series_are_shown() -> None:
    for accessor in ACCESSORS:
        assert (set(every_method(accessor)) >= SHOWING) == (accessor in (TadocFrame, TadocSeries))


def test_plans_sink_the_index_that_frames_build() -> None:
    given = options(TadocLazyFrame.sink_index)
    assert given.pop("memory_limit") == ("int | str", "1GB")
    assert given.pop("overwrite") == ("bool", False)
    assert given.pop("checkpoint") == ("str | os.PathLike[str] | None", None)
    assert given.pop("storage_options") == ("Mapping[str, Any] | None", None)
    assert given.pop("credential_provider") == ("Any", "auto")
    assert given == options(TadocFrame.build_index)
    assert not SINKING & set(every_method(TadocFrame))


def test_frames_have_the_same_methods() -> None:
    assert set(methods(TadocFrame)) == set(FUNCTIONS)
    assert set(methods(TadocSeries)) == set(FUNCTIONS | ROW_BY_ROW)
    assert set(ROW_BY_ROW) <= set(methods(TadocExpr))
    assert set(methods(TadocLazyFrame)) == set(FUNCTIONS) - {"to_csr"}  # a matrix is no frame
    for name, method in methods(TadocFrame).items():
        if name == "to_csr":
            continue
        lazy = methods(TadocLazyFrame)[name]
        parameters = dict(inspect.signature(lazy).parameters)
        for option, calls in (("memory_limit", LIMITED), ("checkpoint", STREAMED)):
            assert (option in parameters) == (name in calls)
            parameters.pop(option, None)
        if name == "decompress":  # in a plan it is an expression, without a bar
            parameters["progress"] = inspect.signature(method).parameters["progress"]
        assert list(inspect.signature(method).parameters.values())[1:] == list(parameters.values())[1:]


@pytest.mark.parametrize("accessor", ACCESSORS)
def test_typed_and_documented(accessor: type) -> None:
    assert accessor.__doc__
    for name, method in every_method(accessor).items():
        hints = get_type_hints(method)
        assert set(hints) == {*inspect.signature(method).parameters, "return"} - {"self"}, name
        assert ">>>" in method.__doc__, name
        for option in options(method):
            assert f"\n{option}\n    " in inspect.getdoc(method), (name, option)


def test_labels_are_documented_as_what_they_are() -> None:
    for accessor in (TadocFrame, TadocLazyFrame):
        assert "id\n    Name of a column of the frame" in inspect.getdoc(accessor.term_vector)
    assert "id\n    Labels of the rows, one for each" in inspect.getdoc(TadocSeries.term_vector)


@pytest.mark.parametrize("accessor", [TadocFrame, TadocLazyFrame, TadocSeries])
def test_errors_of_arguments_are_documented(accessor: type) -> None:
    for name, method in methods(accessor).items():
        text = inspect.getdoc(method) or ""
        for argument in {"n", "window", "top", "min_count"} & set(inspect.signature(method).parameters):
            assert re.search(rf"^TypeError\n +.*``{argument}``.*\binteger", text, re.MULTILINE), (name, argument)
        if "strategy" in inspect.signature(method).parameters:
            assert re.search(r"^ValueError\n( +.*\n)* +.*``strategy``", text, re.MULTILINE), name


def test_every_public_name_is_documented() -> None:
    for name in tadoc.__all__:
        assert getattr(tadoc, name) is not None
    for function in (FUNCTIONS | ROW_BY_ROW).values():
        assert {"Parameters", "Returns", "Raises", "Examples"} <= {
            line.strip() for line in function.__doc__.splitlines()
        }


def test_marked_as_typed() -> None:
    assert files("polars_tadoc").joinpath("py.typed").is_file()


IMPORT = """
import sys
import time
import polars_tadoc
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"cupy", "pandas", "duckdb", "sklearn", "torch", "matplotlib"}, loaded
import polars as pl
df = pl.DataFrame({"text": ["a b a b"]}).tadoc.compress("text")
assert df.tadoc.word_count().rows() == [("a", 2), ("b", 2)]
assert "cupy" not in sys.modules
"""


@pytest.mark.slow
def test_import_leaves_cupy_alone() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", IMPORT], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_an_interrupt_while_polars_makes_a_schema_is_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars panics then; the harness of interrupts saw it once in a thousand moments."""
    frame = pl.DataFrame({"text": ["a b"]}).tadoc.compress("text")
    frame.tadoc.word_count("text")

    def panics(_: pl.DataFrame) -> pl.Schema:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt as error:
            raise RuntimeError("called `Result::unwrap()` on an `Err` value") from error
        raise AssertionError("no interrupt arrived")

    with monkeypatch.context() as patched:
        patched.setattr(pl.DataFrame, "schema", property(panics))
        with pytest.raises(KeyboardInterrupt):
            frame.tadoc.word_count("text")
    assert frame.tadoc.word_count("text")["count"].to_list() == [1, 1]
