"""The examples run, without a warning, and print what they say."""

from __future__ import annotations

import re
import runpy
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from tests import ROOT

EXAMPLES = ROOT / "examples"


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
    (path,) = etl["load"](EXAMPLES / "data" / "logs", tmp_path, 2017)
    assert path == tmp_path / "auth" / "0001.parquet"
    counts = etl["words_by_day"](etl["scan"](tmp_path)).collect()
    expected = words_by_day((EXAMPLES / "data" / "logs" / "auth.log").read_text())
    assert {(f"{day:%e}", word): count for day, word, count in counts.rows()} == expected
    trend = etl["trend"](counts)
    assert trend["word"].to_list()[:5] == ["sshd", "from", "port", "failed", "password"]
    failed = trend.row(by_predicate=pl.col("word") == "failed", named=True)
    by_day = [expected[f"{day:2}", "failed"] for day in range(9, 14)]
    assert [failed[f"2017-04-{day:02}"] for day in range(9, 14)] == by_day
    assert (failed["usual"], failed["excess"]) == (sum(by_day[:4]) / 4, by_day[4] - sum(by_day[:4]) / 4)


class Logs:
    """A folder of logs, and the script run over it with a store that stays."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.store, self.capsys = folder / "logs", folder / "store", capsys
        self.folder.mkdir()
        self.main = run("etl_script")["main"]

    def write(self, name: str, *lines: str) -> None:
        (self.folder / name).write_text("".join(f"{line}\n" for line in lines))

    def run(self, year: int = 1999) -> str:
        self.main([str(self.folder), "--store", str(self.store), "--year", str(year)])
        return self.capsys.readouterr().out

    def lines(self) -> list[str]:
        """Year, minute and text of all lines of the store."""
        stored = pl.scan_parquet(self.store / "**" / "*.parquet").tadoc.decompress("text").collect()
        return sorted(f"{time:%Y %H:%M} {text}" for time, text in stored.select("time", "text").rows())


@pytest.fixture
def logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Logs:
    return Logs(tmp_path, capsys)


def test_the_etl_script_takes_other_folders(logs: Logs) -> None:
    logs.write("a.log", "Dec 30 23:59:59 all is well", "no time at all")
    logs.write("b.log", "Dec 31 00:00:01 all is lost", "Dec 31 00:00:02 lost again")
    printed = logs.run()
    assert "a/0001.parquet: 1 lines" in printed
    assert "b/0001.parquet: 2 lines" in printed
    for _ in range(2):  # a step can be run again
        assert 'that hold "lost"' in printed
        assert printed.endswith("1999-12-31 00:00:01 all is lost\n1999-12-31 00:00:02 lost again\n")
        printed = logs.run()
        assert "Nothing is new." in printed
    assert sorted(path.name for path in logs.store.rglob("*.*")) == ["0001.parquet"] * 2


def test_the_etl_script_adds_to_its_store(logs: Logs) -> None:
    logs.write("a.log", "Dec 30 10:00:00 one", "Dec 30 10:00:00 one", "Dec 30 11:00:00 two")
    logs.run()
    logs.write("a.log", "Dec 30 10:00:00 one", "Dec 30 10:00:00 one", "Dec 30 11:00:00 two", "Dec 30 11:00:00 too")
    assert "a/0002.parquet: 1 lines" in logs.run()
    logs.write("a.log", "Dec 30 12:00:00 after the log was rotated", "Dec 31 00:00:01 next day")
    assert "a/0003.parquet: 2 lines" in logs.run()
    day = ["10:00 one", "10:00 one", "11:00 too", "11:00 two", "12:00 after the log was rotated"]
    assert logs.lines() == sorted([*(f"1999 {line}" for line in day), "1999 00:00 next day"])


def test_the_etl_script_knows_years_apart(logs: Logs) -> None:
    logs.write("a.log", "Dec 30 10:00:00 one", "Dec 31 10:00:00 two")
    logs.run(1999)
    logs.write("a.log", "Dec 30 10:00:00 two", "Dec 31 10:00:00 two two")
    printed = logs.run(2001)
    assert re.search("1999-12-30 ┆ 1999-12-31 ┆ 2001-12-30 ┆ 2001-12-31 ┆ usual", printed)
    assert re.search(r"two +┆ 0 +┆ 1 +┆ 1 +┆ 2 +┆ 0.7 +┆ 1.3", printed)
    assert printed.endswith("2001-12-31 10:00:00 two two\n")


def test_the_etl_script_takes_one_day(logs: Logs) -> None:
    logs.write("a.log", "Dec 30 10:00:00 one")
    assert logs.run().endswith("There is one day of words only: nothing to compare it with.\n")


def test_the_etl_script_says_what_is_missing(logs: Logs, tmp_path: Path) -> None:
    for folder in (logs.folder, logs.folder / "none", Path(__file__)):
        with pytest.raises(SystemExit):
            logs.main([str(folder)])
        assert f"{folder} is no folder with *.log files" in logs.capsys.readouterr().err
    for content in ("", "no time at all\n"):
        (logs.folder / "a.log").write_text(content)
        with pytest.raises(SystemExit):
            logs.run()
        assert "starts as syslog's do" in logs.capsys.readouterr().err
    assert not list(logs.store.rglob("*.*"))


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


@contextmanager
def served(service: dict[str, Any]) -> Iterator[int]:
    """The port of the service over one document."""
    search = service["Search"](tadoc.build_index(pl.Series(["<b>zebra</b>"])))
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), service["handler"](search))
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    try:
        yield httpd.server_port
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()
        search.server.close()


def answered(port: int, sent: bytes) -> bytes:
    """All that the service answers before it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(sent)
        return b"".join(iter(lambda: client.recv(1 << 16), b""))


def test_the_service_answers_requests_of_any_form(capsys: pytest.CaptureFixture[str]) -> None:
    with served(run("service")) as port:
        assert b" 400 " in answered(port, b"GET http://[::1/search?q=zebra HTTP/1.0\r\n\r\n")
        assert b" 404 " in answered(port, b"GET //other/search?q=zebra HTTP/1.0\r\n\r\n")
        found = answered(port, b"GET /search?q=%ff%00zebra HTTP/1.0\r\n\r\n")
        assert b"Content-Type: application/json" in found
        assert b"b>**zebra**</b" in found
    assert "Traceback" not in capsys.readouterr().err


def test_the_service_does_not_wait_for_slow_clients() -> None:
    service = run("service")
    assert service["handler"](None).timeout == service["TIMEOUT"] == 10
    service["handler"].__globals__["TIMEOUT"] = 0.1
    with served(service) as port:
        assert answered(port, b"GET /sea") == b""
