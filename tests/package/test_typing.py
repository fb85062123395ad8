"""The typed way in: accessors of every class, and programs that use them under a strict type checker."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.namespaces import TadocExpr, TadocFrame, TadocLazyFrame, TadocSeries

ROOT = Path(tadoc.__file__).parents[1]
FRAME = pl.DataFrame({"text": ["to be", "to do"]}).tadoc.compress("text")

PROGRAM = """
import polars as pl
import pyarrow as pa
import polars_tadoc as tadoc

text: pl.Series = pl.Series("text", ["to be", "to do"])
df = pl.DataFrame({"day": [1, 2]}).with_columns(tadoc.of(text).compress(tokenizer="words"))
counts: pl.DataFrame = tadoc.of(df).word_count("text", lowercase=True, top=3)
index: pl.DataFrame = tadoc.of(df).inverted_index("text", id="day")
lazy: pl.LazyFrame = tadoc.of(df.lazy()).sequence_count("text", n=2, stopwords=["the"])
schema: pl.Schema = lazy.collect_schema()
words: pl.Expr = tadoc.of(pl.col("text")).word_count(normalize=pl.element().str.to_lowercase())
grouped = df.group_by("day").agg(words).filter(pl.col("day") > 1)
back: list[str] = tadoc.of(df["text"]).decompress().to_list()
table: pa.Table = tadoc.word_count(df["text"])
twigs = tadoc.TwigSet({"b": "//b"})
notes = pl.DataFrame({"xml": ["<a><b/></a>"]})
matches: pl.DataFrame = tadoc.of(notes).twig_filter("xml", twigs, on_error="null")
names: pl.Expr = tadoc.of(pl.col("xml")).twig_filter({"b": "//b"}, namespaces={"x": "urn:x"}, as_struct=True)
with tadoc.Config(engine="cpu"):
    tadoc.of(df).term_vector(id="day")
"""

ERRORS = {
    'tadoc.of(df).word_count("text", tpo=3)': r'Unexpected keyword argument "tpo" for "word_count" of "FrameCounting"',
    'tadoc.of(df).word_count(top="3")': r'Argument "top" to "word_count" .* has incompatible type "str"',
    'tadoc.of(df.lazy()).sort("text").height': r'"LazyFrame" has no attribute "height"',
    'tadoc.of(pl.col("text")).term_vector(id="day")': r'Unexpected keyword argument "id"',
    'tadoc.of(df["text"]).word_coumt()': r'"TadocSeries" has no attribute "word_coumt"',
    'tadoc.of("text")': r'No overload variant of "of" matches argument type "str"',
    'pl.col("text").tadoc.word_count()': r'"Expr" has no attribute "tadoc"',
    "df.tadoc.word_count()": r'"DataFrame" has no attribute "tadoc"',
    'tadoc.of(df).twig_filter("text", "//b")': r'Argument 2 to "twig_filter" .* has incompatible type "str"',
    'tadoc.distributed.Workers(cpus=1).sort("a.parquet", engine="cpu")': r'Unexpected keyword argument "engine"',
    'tadoc.word_count(df["text"], windows=3)': r'Unexpected keyword argument "windows"',
}
"""Lines that a type checker must refuse, with what it says; attributes that Polars does not know are among them."""


@pytest.mark.parametrize(
    ("held", "accessor"),
    [
        (FRAME, TadocFrame),
        (FRAME.lazy(), TadocLazyFrame),
        (FRAME["text"], TadocSeries),
        (pl.col("text"), TadocExpr),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_accessor_of_each_class(held: Any, accessor: type) -> None:
    assert type(tadoc.of(held)) is type(held.tadoc) is accessor


def test_it_does_what_the_attribute_does() -> None:
    expected = FRAME.tadoc.word_count().rows()
    assert tadoc.of(FRAME).word_count("text").rows() == expected
    assert tadoc.of(FRAME.lazy()).word_count("text").collect().rows() == expected
    assert tadoc.of(FRAME["text"]).word_count().rows() == expected
    assert FRAME.select(tadoc.of(pl.col("text")).word_count()).explode("text").unnest("text").rows() == expected
    accessor = tadoc.of(FRAME)  # serves many calls
    assert accessor.word_count().rows() == accessor.word_count().rows() == expected


@pytest.mark.parametrize("held", ["text", None, [1], pl.DataFrame, FRAME.to_arrow()], ids=lambda v: type(v).__name__)
def test_anything_else_is_an_error(held: Any) -> None:
    with pytest.raises(TypeError, match=f"DataFrame, LazyFrame, Series or Expr, not {type(held).__name__}"):
        tadoc.of(held)


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What mypy says of a program that is right and of one that is wrong, line by line."""
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed: pip install 'polars-tadoc[lint]'")
    folder = tmp_path_factory.mktemp("programs")
    head = 'import polars as pl\nimport polars_tadoc as tadoc\n\ndf = pl.DataFrame({"text": ["a"]})\n'
    (folder / "right.py").write_text(PROGRAM)
    (folder / "wrong.py").write_text(head + "\n".join(ERRORS) + "\n")
    # the package's own errors are the linter's business: here it is somebody else's, as if it were installed
    options = ["--strict", "--follow-imports=silent", "--ignore-missing-imports", "--config-file="]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, f"--cache-dir={folder / 'cache'}", "right.py", "wrong.py"],
        cwd=folder,
        env={"MYPYPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    said: dict[str, list[str]] = {"right.py": [], "wrong.py": []}
    for line in done.stdout.splitlines():
        if match := re.match(r"(right|wrong)\.py:\d+: error: ", line):
            said[f"{match[1]}.py"].append(line)
    return said


@pytest.mark.slow
def test_a_right_program_passes(checked: dict[str, list[str]]) -> None:
    assert checked["right.py"] == []


def test_the_right_program_runs() -> None:
    exec(compile(PROGRAM, "right.py", "exec"), {})


@pytest.mark.slow
@pytest.mark.parametrize("line", ERRORS)
def test_a_wrong_line_is_refused(checked: dict[str, list[str]], line: str) -> None:
    number = 5 + list(ERRORS).index(line)
    said = [error for error in checked["wrong.py"] if error.startswith(f"wrong.py:{number}:")]
    assert any(re.search(ERRORS[line], error) for error in said), (said, checked["wrong.py"])
