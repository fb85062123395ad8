"""The list of specialisations that wheels and ``warmup`` compile, and the wheels."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from numba import types

import polars_tadoc as tadoc
from polars_tadoc.runtime.machine_code import build, signatures
from polars_tadoc.runtime.machine_code.cache import KernelCache

ROOT = Path(tadoc.__file__).parents[1]
DEMO = ROOT / "examples" / "quickstart.py"


def test_what_is_listed_is_read_as_it_was_written() -> None:
    listed = list(signatures.specialisations())
    assert len(listed) > 250
    for name, _, form in listed:
        assert [signatures.encode(signatures.decode(one)) for one in form] == form, name


def test_nothing_is_listed_that_is_gone() -> None:
    assert sorted(signatures.read().keys() - signatures.kernels().keys()) == [], "record again: see signatures.py"


def test_types_that_the_list_cannot_hold_are_named() -> None:
    with pytest.raises(signatures.UnknownTypeError, match="ListType"):
        signatures.encode(types.ListType(types.int64))


def test_what_the_demo_runs_is_a_part_of_all() -> None:
    listed, demo = signatures.read(), signatures.read(signatures.DEMO)
    assert 20 < len(demo) < len(listed) / 3
    assert [name for name, forms in demo.items() for form in forms if form not in listed.get(name, [])] == []


def unlisted() -> list[str]:
    """Return what was called in this process, and is not listed as a part of the demo."""
    listed, found = signatures.read(signatures.DEMO), []
    for name, kernels in signatures.kernels().items():
        for one in kernels:
            for given in getattr(one, "overloads", ()):
                form = [signatures.encode(kind) for kind in given]
                if form not in listed.get(name, []):
                    found.append(f"{name} {json.dumps(form)}")
    return found


@pytest.mark.slow
def test_the_demo_calls_only_what_is_listed() -> None:
    command = [sys.executable, "-m", "tests.runtime.test_kernel_list"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    *_, last = done.stdout.splitlines()
    assert json.loads(last) == [], f"python -m {build.__name__} --record-demo {DEMO.relative_to(ROOT)}"


def test_kernels_that_are_called_are_known() -> None:
    called = signatures.called()
    inner = {
        one.py_func.__name__ for kernels in signatures.kernels().values() for one in kernels if signatures.is_inner(one)
    }
    assert len(inner) > 100
    assert inner - called == set()  # nobody else could call them
    assert "compress_rows" not in called


def test_a_listed_kernel_is_compiled_and_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (name,) = [name for name in signatures.kernels() if name.endswith("mersenne.power")]
    monkeypatch.setattr(signatures, "LIST", tmp_path / "list.json")
    signatures.write({"varint.gone": [["uint8"]], name: [["uint64", "int64"], ["no"]]})
    assert build.compile_listed(0, 1) == 1  # a type that there is not
    (kernel,) = [one for one in signatures.kernels()[name] if hasattr(one, "py_func")]
    assert (types.uint64, types.int64) in kernel.overloads
    assert kernel._cache.__class__ is KernelCache


@pytest.mark.slow
@pytest.mark.parametrize("tag", [None, "cp311 none manylinux2014_x86_64"])
def test_a_wheel_says_whether_it_holds_machine_code(tag: str | None, tmp_path: Path) -> None:
    setuptools = pytest.importorskip("setuptools")
    if int(setuptools.__version__.split(".")[0]) < 77:
        pytest.skip("an older setuptools")
    package = tmp_path / "polars_tadoc"
    shutil.copytree(ROOT / "polars_tadoc" / "runtime" / "machine_code", package / "runtime" / "machine_code")
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    for folder in (package, package / "runtime"):
        (folder / "__init__.py").touch()
    if tag:
        (package / "runtime" / "_compiled" / "x86-64-v3").mkdir(parents=True)
        (package / "runtime" / "_compiled" / "TAG").write_text(tag)
        (package / "runtime" / "_compiled" / "x86-64-v3" / "some-0123.kernel").touch()
    command = [sys.executable, "setup.py", "--quiet", "bdist_wheel"]
    given = {**os.environ, "PYTHONWARNINGS": "ignore"}
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, env=given)
    (wheel,) = (tmp_path / "dist").iterdir()
    assert wheel.name.endswith("-".join(tag.split() if tag else ["py3", "none", "any"]) + ".whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("signatures.json") for name in names)
    assert any(name.endswith("some-0123.kernel") for name in names) == bool(tag)


if __name__ == "__main__":
    runpy.run_path(str(DEMO), run_name="__main__")
    print(json.dumps(unlisted()))
