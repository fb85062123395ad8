"""Files that are no containers of columns: calibrations, machine code, pickles, expressions of normalisation, Arrow."""

from __future__ import annotations

import io
import json
import pickle
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

import polars_tadoc as tadoc
from polars_tadoc.engine import machine_costs
from polars_tadoc.index.store import saved_expressions as expressions
from polars_tadoc.index.store.bounded import Bounded
from polars_tadoc.index.store.storage import _saved_normalize
from polars_tadoc.model.word_map import Morphism, NormalizeError
from polars_tadoc.runtime.machine_code import entries
from tests.fuzz.expressions import every, places, planted, plants, was_run
from tests.fuzz.mutation_kind import Files, Use, frame, rows_of, written

Samples = list[tuple[Files, list[Use]]]

# Calibrations


def calibration_samples() -> Samples:
    """A calibration of this machine."""
    factors = {"cpu word_count bottom_up": 1.5, "gpu word_count top_down": 0.25, "cpu queries or": 2.0}
    made = machine_costs.MachineCosts(
        machine_costs.processor(), factors, {"cpu": 0.001, "gpu": 0.5}, {"rows": 1e6, "words": 5000.0}
    )
    return [({"": made.to_json().encode()}, [costs])]


def costs(path: Path) -> Any:
    """Return the costs in force with a file, which are those that it says."""
    machine_costs.forget()
    try:
        with tadoc.Config(calibration_file=str(path)):
            found = machine_costs.in_force()
            machine_costs.described()
            numbers = [machine_costs.factor("cpu word_count bottom_up"), machine_costs.overhead("cpu", 1.0)]
            numbers.append(machine_costs.repays_at("rows", 7.0))
    finally:
        machine_costs.forget()
    if found is not machine_costs.SHIPPED:
        said = json.loads(path.read_bytes())
        assert [said[name] for name in ("processor", "factors", "overheads", "repays_at")] == [
            found.processor,
            found.factors,
            found.overheads,
            found.repays_at,
        ]
    return [found.processor, sorted(found.factors.items()), *numbers]


# Machine code


class MissedError(Exception):
    """No machine code: the kernel is compiled."""


def kernel_samples() -> Samples:
    """Entries of the cache of machine code."""
    code = [(f"kernel_{number}", "object", (bytes(range(256)) * number, b"BC" * 50)) for number in (1, 9)]
    return [
        (
            written(
                lambda path, one=one: entries.write(path, entries.Entry("a.b", "c.d", False, ((), None), (one, "")))
            ),
            [_entry],
        )
        for one in code
    ]


def _entry(path: Path) -> Any:
    entry = entries.read(path)
    if entry is None:
        raise MissedError
    return list(entry)


# Pickles


class _Known(pickle._Unpickler):
    """Takes the classes of sound pickles only: damage could name others, which run anything.

    It is Python's reader in Python: that in C allocates gigabytes for one damaged number of its own.
    """

    def __init__(self, file: io.BytesIO, known: set[tuple[str, str]] | None, found: set[tuple[str, str]]) -> None:
        super().__init__(file)
        self._known, self._found = known, found

    def find_class(self, module: str, name: str) -> Any:
        self._found.add((module, name))
        if self._known is not None and (module, name) not in self._known:
            raise pickle.UnpicklingError(f"{module}.{name}")
        return super().find_class(module, name)


def pickle_samples() -> Samples:
    """Pickles of what reads itself from checked bytes or text: the others hold arrays and columns as they are."""
    asked: list[tuple[Any, Callable[[Any], Any]]] = [
        (tadoc.Dictionary.from_words(pl.Series(["to", "be"])), lambda one: one.ids(pl.Series(["be", "x"])).to_list()),
        (tadoc.TwigSet({"a": "//a"}), lambda one: rows_of(tadoc.twig_filter(pl.Series(["<a/>"]), one))),
        (
            tadoc.PassageSet(pl.Series(["to be or not to be"]), length=2, lowercase=True),
            lambda one: rows_of(tadoc.overlap(pl.Series(["not to be", "x"]), one)),
        ),
    ]
    made: Samples = []
    for one, ask in asked:
        data, known = pickle.dumps(one), set[tuple[str, str]]()
        _Known(io.BytesIO(data), None, known).load()

        def use(path: Path, known: set[tuple[str, str]] = known, ask: Callable[[Any], Any] = ask) -> Any:
            return ask(_Known(io.BytesIO(path.read_bytes()), known, set()).load())

        made.append(({"": data}, [use]))
    return made


# Expressions of normalisation


@cache
def _forms() -> list[Any]:
    """Saved forms, and what Polars writes of calls, with and without code in them."""
    made: list[Any] = []
    for tree in every().values():
        try:
            made.append(expressions.encode(expressions.read(tree)))
        except ValueError:
            continue
        made.append(tree)
    element = pl.element()
    long = element.str.to_lowercase().str.replace_all("a", "bb").str.strip_chars_end("s").str.slice(0, 9)
    form = expressions.encode(pl.when(element.str.len_chars() > 3).then(long).otherwise(element + "x"))
    made.append(form)
    for number, (name, plant) in enumerate(sorted(plants().items())):
        ways = list(places(form))
        made.append(planted(form, ways[(7 * number + len(name)) % len(ways)], plant))
    return made


def normalize_samples() -> Samples:
    """Expressions as the header of an index holds them."""
    return [({"": json.dumps({"normalize": form}).encode()}, [normalized]) for form in _forms()]


WORDS = pl.Series("word", ["ab", "a-b", "", "Straße", "2020-01-02", "x" * 40])


def normalized(path: Path) -> Any:
    """Read a saved expression and map words; no code is run."""
    try:
        saved = json.loads(path.read_bytes())["normalize"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MissedError from error
    try:
        expression = _saved_normalize(saved, None)
        assert expression is not None
        form = expressions.encode(expression)
        assert expressions.encode(expressions.read(form)) == form
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Polars, about types
            return Morphism(expression, evaluate=Bounded(form, expression)).images(WORDS).to_list()
    except NormalizeError:  # calls name it, with theirs
        return "no words"
    finally:
        assert not was_run(), saved


# Arrow's files


def read_ipc(path: Path) -> pl.Series:
    """Read a column as PyArrow does, with its arrays validated."""
    data = path.read_bytes()
    opened = pa.ipc.open_file(data) if data[:6] == b"ARROW1" else pa.ipc.open_stream(data)
    table = opened.read_all()
    table.validate(full=True)
    made = pl.from_arrow(table)
    assert isinstance(made, pl.DataFrame)
    return made["text"]


def ipc_files() -> list[Files]:
    """The column in Arrow's files and streams."""
    df = frame().select("text", "year")
    return [
        written(lambda path: df.write_ipc(path)),
        written(lambda path: df.write_ipc(path, compression="zstd")),
        written(lambda path: df.write_ipc(path, compression="lz4")),
        written(lambda path: df.write_ipc_stream(path, compression="uncompressed")),
        written(lambda path: df.with_columns(tadoc.as_storage(df["text"])).write_ipc(path)),
    ]
