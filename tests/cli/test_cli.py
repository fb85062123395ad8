"""The command line: each command on small files, in this process; what it prints is what the public calls return."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.cli import writing
from polars_tadoc.cli.app import app, main
from tests import ROOT

TEXTS = ["To be, or not to be", "to do is to be", "do be do be do", "red\x1b[31m herring", "to do is to be"]
FRAME = pl.DataFrame({"year": [1999, 2001, 2003, 2005, 2007], "text": TEXTS})
COMMANDS = ["compress", "decompress", "info", "count", "grams", "search", "repeats", "twigs"]
COMMANDS += ["doctor", "calibrate", "warmup"]


class Shell:
    """Runs commands in a folder with files of the texts, as a terminal of 80 columns or piped."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> None:
        self.patch, self.captured = monkeypatch, capfdbinary
        FRAME.write_parquet("texts.parquet")

    def __call__(self, *arguments: str, code: int = 0, stdin: bytes = b"", terminal: bool = False) -> str:
        self.patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self.patch.setattr(sys.stdin, "isatty", lambda: terminal, raising=False)
        self.patch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
        self.patch.setenv("COLUMNS", "80")
        self.patch.setenv("FORCE_COLOR" if terminal else "NO_COLOR", "1")
        self.captured.readouterr()
        assert main(arguments) == code
        sys.stdout.flush()
        out, self.error = (part.decode() for part in self.captured.readouterr())
        for name in ("FORCE_COLOR", "NO_COLOR"):
            self.patch.delenv(name, raising=False)
        return str(out)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(monkeypatch, capfdbinary)


def counts(printed: str) -> list[tuple[str, int]]:
    return [(str(word), int(count)) for word, count in pl.read_csv(io.StringIO(printed)).rows()]


def test_help_fits_a_terminal_and_shows_examples(shell: Shell) -> None:
    listed = shell("--help")
    assert re.findall(r"^│ ([a-z]+) ", listed, re.MULTILINE) == COMMANDS
    for command in COMMANDS:
        shown = shell(command, "--help")
        assert f"$ tadoc {command}" in shown
        assert "Exit codes: 0 done" in shown
        assert max(map(len, shown.splitlines())) <= 80
    assert app.name == ("tadoc",)
    assert shell("--version").startswith(f"polars_tadoc {tadoc.__version__}")


@pytest.mark.parametrize("effort", ["default", "small"])
@pytest.mark.parametrize("packed", [False, True])
def test_compress_and_decompress(shell: Shell, packed: bool, effort: str) -> None:
    shell("compress", "texts.parquet", "small.parquet", *(["--packed"] if packed else []), "--effort", effort)
    assert "small.parquet: " in shell.error
    assert shell("decompress", "small.parquet", "-", "--shape", "ndjson") == FRAME.write_ndjson()
    shell("decompress", "small.parquet", "back.parquet")
    assert pl.read_parquet("back.parquet").equals(FRAME)
    described = pl.read_csv(io.StringIO(shell("info", "small.parquet")))
    assert described.select("column", "columns", "rows", "words").row(0) == ("text", 2, 5, 24)
    expected = tadoc.word_count(FRAME["text"], top=20).to_pylist()
    assert counts(shell("count", "small.parquet")) == [(row["word"], row["count"]) for row in expected]


def test_every_format_is_read_and_written(shell: Shell) -> None:
    expected = shell("count", "texts.parquet")
    for name in ("t.csv", "t.tsv", "t.ndjson", "t.arrow", "t.txt", "t.parquet"):
        shell("compress", "texts.parquet", "small.parquet")
        shell("decompress", "small.parquet", name)
        assert shell("count", name) == expected, name
    assert Path("t.txt").read_text().splitlines() == TEXTS
    FRAME.select(body="text", year=pl.col("year").cast(pl.String)).write_csv("two.csv")
    shell("compress", "two.csv", "two.parquet", "--column", "body")
    assert shell("decompress", "two.parquet", "-", "--shape", "text").splitlines() == TEXTS
    shell("decompress", "two.parquet", "two.txt")
    assert Path("two.txt").read_text().splitlines() == TEXTS
    shell("count", "texts.parquet", "--output", "words.ndjson")
    assert pl.read_ndjson("words.ndjson").rows() == counts(expected)


def test_folders_patterns_and_standard_input(shell: Shell) -> None:
    Path("logs/deep").mkdir(parents=True)
    for name, text in (("logs/a.log", "a b\na\n"), ("logs/deep/b.log", "a c\n"), ("logs/LICENSE", "no format")):
        Path(name).write_text(text)
    found = [("a", 3), ("b", 1), ("c", 1)]
    assert counts(shell("count", "logs")) == counts(shell("count", "logs/**/*.log")) == found
    assert counts(shell("count", "logs/a.log", "logs/deep/b.log")) == found
    assert counts(shell("count", "-", stdin=b"a b\na\na c\n")) == found
    assert counts(shell("count", "-", stdin=b'{"x": "a b"}\n{"x": "a"}\n')) == [("a", 2), ("b", 1)]
    assert counts(shell("count", "-", stdin=Path("texts.parquet").read_bytes()))[0] == ("be", 6)
    files = pl.read_csv(io.StringIO(shell("count", "logs", "--format", "documents", "--by", "file", "--top", "1")))
    assert files.rows() == [("logs/LICENSE", "format", 1), ("logs/a.log", "a", 2), ("logs/deep/b.log", "a", 1)]


def test_count_and_grams(shell: Shell) -> None:
    options = ["--lowercase", "--stopwords", "english", "--min-count", "2"]
    assert counts(shell("count", "texts.parquet", *options)) == []
    assert counts(shell("count", "texts.parquet", "--lowercase", "--top", "2")) == [("be", 6), ("to", 6)]
    assert counts(shell("count", "texts.parquet", "--where", "year > 2006")) == [
        ("to", 2),
        ("be", 1),
        ("do", 1),
        ("is", 1),
    ]
    limited = shell("count", "texts.parquet", "--memory-limit", "1GB")
    assert limited == shell("count", "texts.parquet")
    by = pl.read_csv(io.StringIO(shell("count", "texts.parquet", "--by", "year", "--top", "1")))
    assert by.row(2) == (2003, "do", 3)
    found = pl.read_csv(io.StringIO(shell("grams", "texts.parquet", "-n", "2", "--top", "2")))
    assert found.rows() == [("to be", 3), ("be do", 2)]


def test_search(shell: Shell) -> None:
    found = pl.read_csv(io.StringIO(shell("search", "texts.parquet", "herring", "--id", "year")))
    assert found.select("rank", "id").rows() == [(1, 2005)]
    assert "**herring**" in found["snippet"][0]
    assert shell("search", "texts.parquet", "nothing", "hering", code=1) == ""
    assert "nothing found; did you mean: nothing herring" in shell.error
    shell("search", "texts.parquet", "--save", "texts.index", "--metadata", "year")
    again = shell("search", "texts.index", "do year:2003", "-k", "1", "--words", "0")
    assert pl.read_csv(io.StringIO(again))["id"].to_list() == [2]
    assert shell("search", "texts.parquet", "--save", "texts.index", code=2) == ""
    assert "texts.index already exists; search it (tadoc search texts.index)" in shell.error


def test_a_terminal_gets_colours_and_no_control_characters(shell: Shell) -> None:
    shown = shell("search", "texts.parquet", "herring", terminal=True)
    assert "\x1b[1;32mherring\x1b[0m" in shown
    assert "red�[31m" in shown.replace("\x1b[0m", "")
    table = shell("count", "texts.parquet", "--top", "1", terminal=True)
    assert "be" in table
    assert "word,count" not in table
    assert max(len(line) for line in shell("doctor", "--shape", "table").splitlines()) <= 80


def test_the_prompt(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = iter(["herring", "", "zzz", "year:"])

    def typed(_: str) -> str:
        for query in queries:
            return query
        raise EOFError

    monkeypatch.setattr("builtins.input", typed)
    assert "1 of 1 documents" in shell("search", "texts.parquet", terminal=True)
    assert "nothing found" in shell.error


def test_repeats(shell: Shell) -> None:
    found = pl.read_csv(io.StringIO(shell("repeats", "texts.parquet", "--length", "5")))
    assert found.rows() == [(1, 0, 5, 2, "to do is to be")]
    shell("repeats", "texts.parquet", "--length", "5", "--drop", "clean.parquet")
    assert "of 5 rows" in shell.error
    kept = FRAME.tadoc.drop_repeats("text", length=5)
    assert pl.read_parquet("clean.parquet").equals(kept)


def test_twigs(shell: Shell) -> None:
    Path("notes").mkdir()
    Path("notes/a.xml").write_text("<note><to>Ann</to></note>")
    Path("notes/b.xml").write_text('<note day="1"/>')
    found = shell("twigs", "notes", "ann=//to[text()='Ann']", "//note/@day")
    assert [line.split(",", 1) for line in found.splitlines()[1:]] == [
        ["notes/a.xml", "ann"],
        ["notes/b.xml", "//note/@day"],
    ]
    Path("queries.txt").write_text("//x\n")
    assert shell("twigs", "notes", "--queries-file", "queries.txt", code=1) == ""
    Path("notes/c.xml").write_text("<note>")
    assert shell("twigs", "notes", "//to", code=2) == ""
    assert shell.error.startswith("tadoc: notes/c.xml: not well-formed XML: ")
    assert shell.error.endswith("; --skip-invalid skips such documents\n")
    assert shell("twigs", "notes", "//to", "--skip-invalid").splitlines()[1:] == ["notes/a.xml,//to"]


def test_the_machine(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {tuple(row[:2]): row[2] for row in pl.read_csv(io.StringIO(shell("doctor"))).rows()}
    assert rows["version", "polars"] == pl.__version__
    assert rows["setting", "expansion_limit"] == "2,147,483,648"
    assert rows["setting", "progress"] == "False"
    assert rows["job", "compress, count, decompress"].startswith("right")
    shell("doctor", terminal=True)
    assert shell.error == ""
    monkeypatch.setattr(tadoc, "decompress", lambda column: column)
    assert "WRONG RESULT" in shell("doctor", code=2)
    monkeypatch.setattr(tadoc, "calibrate", lambda: pl.DataFrame({"name": ["cost"]}))
    assert shell("calibrate") == "name\ncost\n"
    asked: list[Any] = []
    monkeypatch.setattr("polars_tadoc.runtime.machine_code.build.warm_up", lambda *given: asked.append(given))
    shell("warmup", "--processes", "3", "--demo")
    assert asked == [(3, True)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["count"], "no input is named"),
        (["count", "none.csv"], "none.csv: no file found"),
        (["count", "texts.parquet", "--column", "txt"], 'there is no column "txt"; the columns are year, text'),
        (["count", "texts.parquet", "--topp", "3"], "--top"),
        (["count", "texts.parquet", "--where", "yeer > 3"], 'unable to find column "yeer"'),
        (["count", "texts.parquet", "--where", "year"], "--where year: this is no condition; write one in quotes"),
        (["search", "texts.parquet", "be", "--id", "yeer"], 'there is no column "yeer"; the columns are year, text'),
        (["compress", "texts.parquet", "a.csv"], "a compressed column is written to a Parquet file"),
        (["compress", "texts.parquet"], "give the input and the output"),
        (["compress", "texts.parquet", "gone/a.parquet"], "gone does not exist; create it first"),
        (["compress", "texts.parquet", "a.parquet", "--effort", "best"], "best"),
        (["decompress", "texts.parquet", "-"], "is String, not a TADOC column"),
        (["search", "texts.parquet"], "the prompt needs a terminal"),
        (["twigs", "texts.parquet"], "give a query"),
        (["twigs", "texts.parquet", "//a"], "row 0"),
        (["decompress", "texts.parquet", "a.unknown"], "String"),
        (["nonsense"], "Unknown command"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors_are_one_message_and_exit_code_2(shell: Shell, arguments: list[str], said: str) -> None:
    assert shell(*arguments, code=2) == ""
    assert said in " ".join(shell.error.split())
    assert "Traceback" not in shell.error


def test_other_bytes_than_utf_8(shell: Shell) -> None:
    Path("latin.log").write_bytes(b"caf\xe9\n")
    assert shell("count", "latin.log", code=2) == ""
    assert "not valid UTF-8; convert it" in shell.error


def test_an_interrupt_and_a_closed_pipe(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tadoc, "calibrate", interrupted)
    shell("calibrate", code=130)
    assert shell.error == "tadoc: interrupted\n"


@pytest.mark.parametrize("name", ["old.csv", "old.ndjson", "old.parquet"])
def test_an_interrupt_leaves_the_old_output(shell: Shell, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def interrupted(_: pl.LazyFrame, target: Any) -> None:
        Path(target).write_bytes(b"half")
        raise KeyboardInterrupt

    Path(name).write_bytes(b"old")
    monkeypatch.setitem(writing.WRITERS, Path(name).suffix[1:], interrupted)
    before = sorted(Path().iterdir())
    shell("count", "texts.parquet", "--column", "text", "--output", name, code=130)
    assert Path(name).read_bytes() == b"old"
    assert sorted(Path().iterdir()) == before


def test_the_output_may_be_the_input(shell: Shell) -> None:
    text = pl.read_parquet("texts.parquet")
    shell("compress", "texts.parquet", "texts.parquet")
    assert tadoc.is_tadoc(pl.read_parquet("texts.parquet").schema["text"])
    shell("decompress", "texts.parquet", "texts.parquet")
    assert pl.read_parquet("texts.parquet").equals(text)


def test_as_a_program() -> None:
    """``python -m polars_tadoc`` in a pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "polars_tadoc", "count", "examples/data/logs/auth.log", "--top", "0"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


STEERING = "\x1b]0;title\x07\x1b[31mred\u202e"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["info", "odd.parquet"], 2, "name the column with --column"),
        (["count", "odd.parquet", "--column", "x"], 2, "there is no column"),
        (["info", f"{STEERING}.parquet"], 2, "no file found"),
        (["search", "broken"], 2, "no file found"),
        (["compress", "texts.parquet", "\x1b[31m.parquet"], 0, "of the input"),
        (["twigs", "texts.parquet", f"//{STEERING}"], 2, "cannot be used"),
        (["count", f"--{STEERING}"], 2, "Unknown option"),
    ],
    ids=lambda value: repr(value[0]) if isinstance(value, list) else "",
)
def test_messages_have_no_control_characters(shell: Shell, arguments: list[str], code: int, said: str) -> None:
    pl.DataFrame({f"a{STEERING}": ["a"], f"b{STEERING}": ["b"]}).write_parquet("odd.parquet")
    shell(*arguments, code=code)
    assert said in " ".join(shell.error.split())
    assert not re.search(r"[\x00-\x08\x0e-\x1f\x7f\u202e]", shell.error)


def test_a_text_marks_nothing_as_a_match(shell: Shell) -> None:
    pl.DataFrame({"text": ["red herring \x02told\x03 here"]}).write_parquet("marks.parquet")
    shown = shell("search", "marks.parquet", "herring", terminal=True)
    assert shown.count("\x1b[1;32m") == 1
    assert "�told� here" in shown


@pytest.mark.parametrize("end", ["csv", "tsv", "ndjson", "arrow", "txt", "parquet"])
def test_names_of_files_are_not_patterns(shell: Shell, end: str) -> None:
    for name, word in ((f"data[1].{end}", "right"), (f"data1.{end}", "wrong")):
        frame = pl.DataFrame({"text": [word]}).tadoc.compress("text")
        frame.write_parquet("word.parquet")
        shell("decompress", "word.parquet", name)
    assert counts(shell("count", f"data[1].{end}")) == [("right", 1)]
    Path("below").mkdir()
    Path(f"data[1].{end}").rename(f"below/data[1].{end}")
    assert counts(shell("count", "below")) == [("right", 1)]
    assert counts(shell("count", f"data[1-9].{end}")) == [("wrong", 1)]
