"""Calibrations multiply predictions; a file that is not one is ignored with a warning."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.engine import choose as choose_module
from polars_tadoc.engine.choose import CPU, GPU, choose
from polars_tadoc.engine.machine_costs import (
    LEAST,
    MAX_BYTES,
    MAX_CORRECTION,
    MAX_FACTOR,
    SHIPPED,
    MachineCosts,
    described,
    factor,
    forget,
    in_force,
    observe,
    overhead,
    processor,
    repays_at,
    save,
)
from polars_tadoc.errors import CalibrationWarning
from polars_tadoc.index.query.costs import predict
from polars_tadoc.traversal.options import Options
from polars_tadoc.traversal.selector import choose_strategy
from polars_tadoc.traversal.source import sources

NAMES = ["cpu term_vector top_down", "gpu queries or", "cpu queries and", "gpu sequence_count bottom_up"]
GOOD: dict[str, Any] = json.loads(
    MachineCosts(processor(), {NAMES[0]: 2.0}, {"cpu": 0.001}, {"rows": 5000.0}).to_json()
)
TEXT = pl.Series("text", ["to be or not to be", "to do is to be"] * 40)


@pytest.fixture(autouse=True)
def file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "folder" / "costs.json"
    forget()
    with tadoc.Config(calibration_file=path):
        yield path
    forget()


numbers = st.floats(1e-4, 1e4)


@given(
    factors=st.dictionaries(st.sampled_from(NAMES), numbers),
    overheads=st.dictionaries(st.sampled_from(["cpu", "gpu"]), st.floats(0, 10)),
    units=st.dictionaries(st.sampled_from(["rows", "text", "words"]), st.floats(1, 1e18)),
)
def test_round_trip(factors: dict[str, float], overheads: dict[str, float], units: dict[str, float]) -> None:
    made = MachineCosts(processor(), factors, overheads, units)
    assert MachineCosts.from_json(made.to_json().encode()) == made
    save(made)
    assert in_force() == made
    assert {name: factor(name) for name in NAMES} == {name: factors.get(name, 1.0) for name in NAMES}
    assert overhead("gpu", 7.0) == overheads.get("gpu", 7.0)
    assert repays_at("text", 9.0) == units.get("text", 9.0)
    assert repays_at("rows", float("inf")) == float("inf")


def test_without_a_file(file: Path) -> None:
    assert in_force() is SHIPPED
    assert factor(NAMES[0]) == 1.0
    assert described().startswith("shipped costs (tadoc.calibrate()")
    assert not file.parent.exists()


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    file.parent.mkdir()
    file.symlink_to(tmp_path / "kept elsewhere")
    save(SHIPPED)
    assert file.is_symlink()
    assert MachineCosts.from_json((tmp_path / "kept elsewhere").read_bytes()) == SHIPPED


BROKEN: dict[str, bytes] = {
    "empty": b"",
    "no JSON": b"{",
    "no UTF-8": b'{"format": "\xff"}',
    "a list": b"[]",
    "nested": b"[" * 20_000,
    "long": json.dumps(GOOD).encode() + b" " * MAX_BYTES,
    "another format": json.dumps(GOOD | {"format": "other"}).encode(),
    "another field": json.dumps(GOOD | {"more": 1}).encode(),
    "a field less": json.dumps({name: GOOD[name] for name in GOOD if name != "overheads"}).encode(),
    "long name": json.dumps(GOOD | {"processor": "x" * 201}).encode(),
    "no name": json.dumps(GOOD | {"processor": 5}).encode(),
    "factors are a list": json.dumps(GOOD | {"factors": [1]}).encode(),
    **{
        f"factor {value!r}": json.dumps(GOOD | {"factors": {NAMES[0]: value}}).encode()
        for value in (0, -1, 1e5, 1e-5, True, None, "2", [2], float("nan"), float("inf"), 10**400)
    },
    **{
        f"name {name!r}": json.dumps(GOOD | {"factors": {name: 2.0}}).encode()
        for name in ("", "cpu", "tpu queries or", "cpu queries or ", "cpu  or", "cpu queries or\n", "cpu " + "a" * 99)
    },
    "overhead": json.dumps(GOOD | {"overheads": {"cpu": 11}}).encode(),
    "overhead of": json.dumps(GOOD | {"overheads": {"tpu": 1}}).encode(),
    "units": json.dumps(GOOD | {"repays_at": {"rows": 0}}).encode(),
    "units of": json.dumps(GOOD | {"repays_at": {"columns": 5}}).encode(),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_ignored_with_one_warning(file: Path, name: str) -> None:
    file.parent.mkdir()
    file.write_bytes(BROKEN[name])
    with pytest.warns(CalibrationWarning, match="costs.json is ignored: ") as told:
        assert in_force() is SHIPPED
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert factor(NAMES[0]) == 1.0
        assert described() == "shipped costs (the calibration file is broken)"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
def test_a_fifo_does_not_wait(file: Path) -> None:
    file.parent.mkdir()
    os.mkfifo(file)
    with pytest.warns(CalibrationWarning, match="is a FIFO"):
        assert in_force() is SHIPPED


@given(data=st.data())
def test_damaged_bytes(data: st.DataObject) -> None:
    """What is read is a calibration in bounds, or an error that is expected."""
    text = bytearray(json.dumps(GOOD).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = MachineCosts.from_json(bytes(text))
    except ValueError:
        return
    assert all(1e-4 <= value <= 1e4 for value in found.factors.values())
    assert all(0 <= value <= 10 for value in found.overheads.values())


def test_another_processors_file(file: Path) -> None:
    save(MachineCosts("Z80, 1 cores", {NAMES[0]: 2.0}))
    assert in_force() is SHIPPED
    assert described() == "shipped costs (the calibration is of another processor)"


def test_observed_times_correct_predictions() -> None:
    name, peer, other = "cpu queries or", "cpu queries and", "gpu queries or"
    observe(name, 1.0, 4.0)  # the first one may have compiled
    assert factor(name) == 1.0
    observe(name, LEAST / 2, 1.0)
    assert factor(name) == 1.0
    for _ in range(60):
        observe(name, factor(name), 4.0)  # the shipped prediction is 1 s
    assert factor(name) == pytest.approx(4.0, rel=0.01)
    assert factor(peer) == pytest.approx(4.0, rel=0.01)
    assert factor(other) == 1.0
    observe(peer, 4.0, 1.0)
    observe(peer, 4.0, 1.0)
    assert factor(peer) < 4.0
    for _ in range(60):
        observe(name, factor(name), 1e6)
    assert factor(name) == pytest.approx(MAX_CORRECTION)
    assert "2 corrected by observed times" in described()
    save(MachineCosts(processor(), {name: 3.0}))
    assert factor(name) == 3.0


def test_strategies_are_chosen_by_the_calibration() -> None:
    column = TEXT.tadoc.compress()
    options = Options.from_arguments(normalize=None, lowercase=False, stopwords=None, strategy="auto", engine="cpu")
    (source,) = sources(column, "test", options)
    expected = column.tadoc.term_vector(engine="cpu")
    for cheap, dear in (("top_down", "bottom_up"), ("bottom_up", "top_down")):
        save(MachineCosts(processor(), {f"cpu term_vector {cheap}": 1e-3, f"cpu term_vector {dear}": 1e3}))
        assert choose_strategy("auto", source, "term_vector") == cheap
        text = tadoc.explain(column, "term_vector", engine="cpu")
        assert text.startswith(f"term_vector on cpu: {cheap} (estimated to be faster)")
        assert text.endswith("costs.json)")
        assert column.tadoc.term_vector(engine="cpu").equals(expected)


def test_engines_are_chosen_by_the_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose_module, "GPU", type("Fake", (), {"kernels": CPU.kernels})())
    assert choose("auto", 10_000) is CPU
    save(MachineCosts(processor(), {}, {}, {"rows": 5000.0}))
    assert choose("auto", 10_000) is choose_module.GPU
    assert choose("auto", 4_000) is CPU
    assert choose("auto", 10_000, 1e6, "words") is CPU
    assert choose("auto", 10_000, float("inf")) is CPU
    assert GPU is not choose_module.GPU


def test_queries_are_predicted_by_the_calibration() -> None:
    given_: Any = np.array([0, 2]), np.array([100_000, 2_000_000]), 10_000_000, 10
    before = predict("cpu", "or", *given_)
    save(MachineCosts(processor(), {"cpu queries or": 3.0}))
    assert predict("cpu", "or", *given_) == pytest.approx(3 * before)
    assert predict("cpu", "or", *given_, is_shipped=True) == pytest.approx(before)
    assert predict("cpu", "and", *given_) == pytest.approx(predict("cpu", "and", *given_, is_shipped=True))


def test_calibrate(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from polars_tadoc.analytics import calibrate as calibration

    monkeypatch.setattr(calibration, "DOCUMENTS", 300)
    monkeypatch.setattr(calibration, "TURNS_SECONDS", 0.0)
    made = tadoc.calibrate()
    assert made.schema == {"name": pl.String, "shipped": pl.Float64, "measured": pl.Float64, "unit": pl.String}
    assert (made["measured"] > 0).all()
    assert made["name"].is_unique().all()
    families, ways = ("inverted_index", "term_vector"), ("top_down", "bottom_up")
    expected = {f"cpu {family} {way}" for family in families for way in ways}
    assert expected | {"cpu queries or", "cpu queries and", "cpu overhead"} <= set(made["name"])
    found = MachineCosts.from_json(file.read_bytes())
    assert found == in_force()
    assert found.processor == processor()
    for name, shipped, measured, unit in made.rows():
        if unit == "ms" and not name.endswith("overhead"):
            assert found.factors[name] == pytest.approx(max(1 / MAX_FACTOR, min(measured / shipped, MAX_FACTOR)))
    assert described() == f"costs measured on this machine by tadoc.calibrate() ({file})"
    code = f"""
import polars_tadoc as tadoc
from polars_tadoc.engine.machine_costs import described
tadoc.Config.set(calibration_file={str(file)!r})
print(described())
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.startswith("costs measured on this machine")


@pytest.mark.parametrize("value", ["", "s3://bucket/costs.json", 5])
def test_the_option_is_a_path(value: Any) -> None:
    with pytest.raises(ValueError, match=r"calibration_file=.* must be the path of a local file"):
        tadoc.Config(calibration_file=value)
