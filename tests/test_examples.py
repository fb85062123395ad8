"""The examples run, without a warning, and print what they say."""

from __future__ import annotations

import re
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_example(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [name])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.count("# ") >= 4
    assert "shape: (0," not in printed


def run(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def words_by_day(log: str) -> Counter[tuple[str, str]]:
    """The words that the script counts, in plain Python, by day of the month."""
    counts: Counter[tuple[str, str]] = Counter()
    for line in log.splitlines():
        if stamp := re.match(r"[A-Z][a-z]{2} ([ \d]\d) \d\d:\d\d:\d\d ", line):
            tokens = re.findall(r"\w+", line[stamp.end() :])
            counts.update((stamp[1], word.lower()) for word in tokens if re.fullmatch("[A-Za-z]{3,}", word))
    return counts


def test_the_etl_script_counts_what_the_logs_hold(tmp_path: Path) -> None:
    etl = run("etl_script")
    files = list(etl["load"](etl["extract"](EXAMPLES / "data" / "logs", 2017), tmp_path))
    assert [path.name for path in files] == [f"2017-04-{day:02}.parquet" for day in range(9, 14)]
    counts = etl["count"](tmp_path).collect()
    expected = words_by_day((EXAMPLES / "data" / "logs" / "auth.log").read_text())
    assert {(f"{day:%e}", word): count for day, word, count in counts.rows()} == expected
    trend = etl["trend"](counts)
    assert trend["word"].to_list()[:5] == ["sshd", "from", "port", "failed", "password"]
    failed = trend.row(by_predicate=pl.col("word") == "failed", named=True)
    assert [failed[f"Apr {day:02}"] for day in range(9, 14)] == [expected[f"{day:2}", "failed"] for day in range(9, 14)]


def test_the_etl_script_takes_other_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs, store = tmp_path / "logs", tmp_path / "store"
    logs.mkdir()
    (logs / "a.log").write_text("Dec 30 23:59:59 all is well\nno time at all\n")
    (logs / "b.log").write_text("Dec 31 00:00:01 all is lost\nDec 31 00:00:02 lost again\n")
    main = run("etl_script")["main"]
    for _ in range(2):  # a step can be run again
        main([str(logs), "--store", str(store), "--year", "1999"])
        printed = capsys.readouterr().out
        assert "1999-12-30.parquet: 1 lines" in printed
        assert "1999-12-31.parquet: 2 lines" in printed
        assert 'that hold "lost"' in printed
        assert printed.endswith("1999-12-31 00:00:01 all is lost\n1999-12-31 00:00:02 lost again\n")
    assert sorted(path.name for path in store.iterdir()) == ["1999-12-30.parquet", "1999-12-31.parquet"]


def test_the_lazy_plan_reads_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    run("lazy_plan")["main"]()
    printed = capsys.readouterr().out
    assert "PROJECT 2/5 COLUMNS" in printed
    assert 'SELECTION: col("year") >= 2000' in printed
    plan = printed.partition("# A filter and a count")[2].partition("its schema")[0]
    assert "FILTER" not in plan
    assert re.search(r"will +┆ 571", printed)
    assert re.search(r"Reagan +┆ freedom ┆ 115", printed)
    assert re.search(r"1793 ┆ Washington ┆ Fellow citizens", printed)
