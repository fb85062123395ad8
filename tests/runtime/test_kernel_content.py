"""Machine code is found again for equal content alone: sources, values, versions, processors."""

from __future__ import annotations

import ast
import importlib
import io
import json
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numba as nb
import pytest
from numba.core.codegen import JITCPUCodegen

import polars_tadoc as tadoc
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.machine_code import cache, content, entries, folders, targets
from tests.kernel_samples import compile_twice, twice
from tests.runtime.test_kernel_cache import NOWHERE, run

PACKAGE = Path(tadoc.__file__).parent

SOURCES = {
    "__init__": "",
    "shapes": (
        '"""Shapes."""\nfrom typing import NamedTuple\nclass Shape(NamedTuple):\n    """One."""\n    width: int = 1\n'
    ),
    "emit": (
        "from numba import types\nfrom numba.extending import intrinsic\n"
        "def amount():\n    return 5\n"
        "@intrinsic\ndef five(typing):\n"
        "    def generate(context, builder, signature, values):\n"
        "        return context.get_constant(types.int64, amount())\n"
        "    return types.int64(), generate\n"
    ),
    "inner": (
        "import os\nfrom polars_tadoc.runtime.compiled import njit\n"
        "ADDED = int(os.environ.get('TADOC_TEST_ADDED', '1'))\nTIMES = 3\n"
        "def least(limit=0):\n"
        "    def take(number, above=limit):\n        return number if number > above else above\n"
        "    return njit(nogil=True)(take)\n"
        "at_least = least()\n"
        "@njit(nogil=True)\ndef grow(number):\n"
        '    """up"""\n    side = \'up\'\n'
        "    return at_least(TIMES * number + ADDED)\n"
    ),
    "outer": (
        "from polars_tadoc.runtime.compiled import njit\n"
        "from tadoc_test_kernels.inner import (\n    grow,  # a kernel\n)\n"
        "from tadoc_test_kernels import emit\nfrom tadoc_test_kernels.emit import five\n"
        "def _types():\n    from tadoc_test_kernels.shapes import Shape\n    return Shape\n"
        "@njit(nogil=True)\ndef outer(number):\n    return grow(number) + five()\n"
    ),
    "other": "OTHER = 1\n",
}


def outer(folder: Path) -> Any:
    """Import the package anew from a folder and return its outermost kernel."""
    for name in [name for name in sys.modules if name.startswith("tadoc_test_kernels")]:
        del sys.modules[name]
    for kept in (content._read, content.imports_of, content.sources_of):
        kept.cache_clear()
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        return importlib.import_module("tadoc_test_kernels.outer").outer
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = before


def write(folder: Path, changed: dict[str, str] | None = None) -> Path:
    (folder / "tadoc_test_kernels").mkdir(parents=True, exist_ok=True)
    for name, source in {**SOURCES, **(changed or {})}.items():
        (folder / "tadoc_test_kernels" / f"{name}.py").write_text(source)
    return folder


def key(folder: Path) -> str:
    return content.content_of(outer(folder).py_func)


def edit(name: str, old: str, new: str) -> dict[str, str]:
    assert old in SOURCES[name]
    return {name: SOURCES[name].replace(old, new)}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("inner", "+ ADDED", "- ADDED"),
        ("inner", "TIMES = 3", "TIMES = 4"),
        ("inner", "nogil=True", "nogil=True, inline='always'"),
        ("emit", "return 5", "return 6"),
        ("inner", "least()", "least(1)"),
        ("inner", "limit=0", "limit=1"),
        ("inner", "number > above", "number >= above"),
        ("inner", "side = 'up'", "side = 'no'"),
        ("inner", '"""up"""\n    side = \'up\'', '"""no"""\n    side = \'no\''),  # one constant of both
        ("inner", "take(number, above=limit)", "take(number, *, above=limit)"),
        ("shapes", "width: int", "width: float"),
        ("shapes", "= 1", "= 2"),
        ("outer", "+ five", "- five"),
    ],
)
def test_an_edit_of_what_a_kernel_depends_on_is_another_key(name: str, old: str, new: str, tmp_path: Path) -> None:
    before = key(write(tmp_path))
    assert key(write(tmp_path, edit(name, old, new))) != before
    assert key(write(tmp_path)) == before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("inner", "TIMES = 3", "# thrice\n\nTIMES = 3  # three"),
        ("inner", "    side", "    # a comment\n    side"),
        ("emit", "@intrinsic", "\n# numbers\n@intrinsic"),
        ("shapes", "Shapes.", "Other\n\nshapes."),
        ("shapes", "One.", "Several\n\n    lines."),
        ("shapes", "class Shape", "# a class\n\nclass Shape"),
        ("outer", "# a kernel", "# another comment"),
    ],
)
def test_an_edit_for_readers_keeps_the_key(name: str, old: str, new: str, tmp_path: Path) -> None:
    before = key(write(tmp_path))
    assert key(write(tmp_path, edit(name, old, new))) == before


@pytest.mark.parametrize("words", ["up, up", "down"])
def test_a_docstring_that_code_reads_is_part_of_the_key(words: str, tmp_path: Path) -> None:
    kept, reads = SOURCES["inner"].replace('"""up"""', '"""high"""'), "TEXT = len(grow.__doc__)\n"
    edited = kept.replace("high", words)
    before = key(write(tmp_path, {"inner": kept}))
    assert key(write(tmp_path, {"inner": edited})) == before
    before = key(write(tmp_path, {"inner": kept + reads}))
    assert key(write(tmp_path, {"inner": edited + reads})) != before


def test_lines_are_part_of_the_key_with_debugging_information(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.core.config.DEBUGINFO_DEFAULT", 1)
    before = key(write(tmp_path))
    assert key(write(tmp_path, edit("inner", "TIMES = 3", "\nTIMES = 3"))) != before


def code_key(source: str) -> str:
    return content._key_of_code(compile(source, "some.py", "exec", dont_inherit=True))


def documented(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the docstrings of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            yield node.body[0].value  # type: ignore[attr-defined]


def test_comments_and_docstrings_of_all_kernels_are_not_part_of_their_keys() -> None:
    for text in random.Random(1).sample(kernel_texts(), 60):
        lines, docstrings = text.splitlines(keepends=True), list(documented(ast.parse(text)))
        for one in sorted(docstrings, key=lambda one: -one.lineno):
            end = lines[one.end_lineno - 1].encode()[one.end_col_offset :].decode()  # type: ignore[operator]
            lines[one.lineno - 1 : one.end_lineno] = [" " * one.col_offset + '"""Other.\n\n  words"""' + end]
        tokens = tokenize.generate_tokens(io.StringIO("".join(lines)).readline)
        without = [(one.type, "" if one.type == tokenize.COMMENT else one.string, *one[2:]) for one in tokens]
        edited = tokenize.untokenize(without)
        assert edited != text
        assert code_key("# first\n\n" + edited) == code_key(text)


OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.LShift: ast.RShift}
COMPARISONS = {ast.Lt: ast.LtE, ast.Gt: ast.GtE, ast.LtE: ast.Lt, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}


def change(node: ast.AST) -> bool:
    """Change what a node computes, in place; changed twice it need not be as before."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        node.value += "_"
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATORS:
        node.op = OPERATORS[type(node.op)]()
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        node.ops[0] = COMPARISONS[type(node.ops[0])]()
    elif isinstance(node, ast.Name):
        node.id += "_"
    elif isinstance(node, ast.Attribute):
        node.attr += "_"
    elif isinstance(node, ast.arg):
        node.arg += "_"
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    else:
        return False
    return True


def read_by_nobody(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what is not compiled: texts as statements, types of local variables; and literal parts of f-strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            yield node.value
        elif isinstance(node, ast.AnnAssign):
            yield from ast.walk(node.annotation)
        elif isinstance(node, ast.JoinedStr):
            yield from ast.walk(node)


def test_any_change_of_a_kernel_is_another_key() -> None:
    rng, tried = random.Random(1), 0
    for text in rng.sample(kernel_texts(), 60):
        before = code_key(text)
        for _ in range(2):
            tree = ast.parse(text)
            passed = {*documented(tree), *read_by_nobody(tree)}
            nodes = [one for one in ast.walk(tree) if one not in passed]
            rng.shuffle(nodes)
            changed = next((one for one in nodes if change(one)), None)
            if changed is not None:
                code = compile(ast.fix_missing_locations(tree), "some.py", "exec", dont_inherit=True)
                assert content._key_of_code(code) != before, ast.unparse(changed)
                tried += 1
    assert tried > 100


def test_neither_place_nor_time_nor_other_modules_matter(tmp_path: Path) -> None:
    before = key(write(tmp_path / "one"))
    moved = write(tmp_path / "two", {"other": "OTHER = 2\n"})
    os.utime(moved / "tadoc_test_kernels" / "inner.py", (1, 1))
    assert key(moved) == before


def test_values_of_equal_sources_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(write(tmp_path))
    monkeypatch.setenv("TADOC_TEST_ADDED", "2")
    assert key(tmp_path) != before


def adds(amount: Any) -> FunctionType:
    def add(number: int) -> int:
        return number + amount

    return add  # type: ignore[return-value]


@pytest.mark.parametrize("amounts", [(1, 2), (1, 1.0), (True, 1)])
def test_values_of_closures_are_told_apart(amounts: tuple[Any, Any]) -> None:
    one, other = (adds(amount) for amount in amounts)
    assert content.content_of(one) != content.content_of(other)
    assert content.content_of(one) == content.content_of(adds(amounts[0]))
    assert [njit(nogil=True)(each)(1) for each in (one, other)] == [1 + amount for amount in amounts]


def test_a_closure_over_something_unknown_is_kept_nowhere() -> None:
    with pytest.raises(content.UnknownContentError, match="amount is object"):
        content.content_of(adds(object()))

    def add(number: int, amount: Any = object()) -> int:  # noqa: B008 -- any value
        return number

    with pytest.raises(content.UnknownContentError, match="unknown defaults"):
        content.content_of(add)  # type: ignore[arg-type]


def test_an_edited_inner_kernel_is_compiled_into_its_callers(tmp_path: Path) -> None:
    assert outer(write(tmp_path))(2) == 12
    assert outer(write(tmp_path, edit("inner", "TIMES = 3", "TIMES = 4")))(2) == 14
    again = outer(write(tmp_path))
    assert again(2) == 12
    assert sum(again.stats.cache_hits.values()) == 1


def kernel_modules() -> list[str]:
    files = (PACKAGE / "kernels").rglob("*.py")
    return sorted(".".join(("polars_tadoc", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in files)


def kernel_texts() -> list[str]:
    """Return the sources of modules with code."""
    files = [*(PACKAGE / "kernels").rglob("*.py"), *(PACKAGE / "runtime").glob("*.py")]
    return [text for path in sorted(files) if "def " in (text := path.read_text("utf-8"))]


def test_no_kernel_takes_a_value_from_a_docstring_elsewhere() -> None:
    """Keys cover the docstrings of a module that reads any, but no other module's."""
    copies = {"interrupts.py", "cached_property.py", "documented.py", "option_signature.py"}
    found = {
        path.name
        for root in ("kernels", "runtime")
        for path in (PACKAGE / root).rglob("*.py")
        if path.parent.name != "machine_code" and content._READS_SOURCES.search(path.read_text("utf-8"))
    }
    assert found <= copies


def test_imports_are_those_that_python_sees() -> None:
    names = set(kernel_modules())
    assert len(names) > 100
    for name in names:
        source = content._read(name)
        if source is None:
            assert name.endswith("__init__")
            continue
        imported = set()
        for node in ast.walk(ast.parse(source.text)):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert not node.level
                imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        own = {one for one in imported if one in names}
        own -= {one for one in own if f"{one}.__init__" in names}  # packages: their names may be modules
        assert own <= content.imports_of(name), name


@pytest.mark.slow
def test_keys_do_not_depend_on_the_process() -> None:
    runs = []
    for seed in ("1", "2"):
        command, given = [sys.executable, "-m", "tests.kernel_samples"], {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, env=given, cwd=PACKAGE.parent, stdout=subprocess.PIPE, check=True)
        runs.append(json.loads(done.stdout))
    assert runs[0] == runs[1]
    assert len(runs[0]) > 200
    assert len(set(runs[0].values())) == len(runs[0])


def test_versions_and_settings_are_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = targets.compiler()
    monkeypatch.setattr(nb, "__version__", f"{nb.__version__}.patched")
    assert targets.compiler() == before  # a patch
    for name, value in (("nb.__version__", "0.999.0"), ("np.__version__", "9.0.0"), ("config.BOUNDSCHECK", 1)):
        with monkeypatch.context() as changed:
            changed.setattr(f"polars_tadoc.runtime.machine_code.targets.{name}", value)
            assert targets.compiler() != before, name
    with monkeypatch.context() as changed:
        changed.setattr(sys, "version_info", (3, 99, 0))
        assert targets.compiler() != before


def features(level: str) -> str:
    return ",".join(f"+{one}" for one in sorted(targets.LEVELS[level]))


def test_a_processor_takes_its_level_and_those_below() -> None:
    triple = "x86_64-unknown-linux-gnu"
    for level, levels in (
        ("x86-64-v4", ["x86-64-v4", "x86-64-v3", "x86-64-v2"]),
        ("x86-64-v3", ["x86-64-v3", "x86-64-v2"]),
        ("x86-64-v2", ["x86-64-v2"]),
    ):
        assert targets.targets_of((triple, "some", features(level)))[1] == levels
        own = targets.environment_of(level)
        described = (triple, own["NUMBA_CPU_NAME"], own["NUMBA_CPU_FEATURES"])
        assert targets.targets_of(described) == (level, [level])
    assert targets.targets_of((triple, "generic", ""))[1] == []
    without = features("x86-64-v3").replace("+avx2", "-avx2")  # NUMBA_ENABLE_AVX=0, or a virtual machine
    assert targets.targets_of((triple, "haswell", without))[1] == ["x86-64-v2"]
    assert targets.targets_of(("arm64-apple-darwin", "apple-m1", "+neon,+sve"))[1] == ["aarch64"]
    assert targets.targets_of(("aarch64-unknown-linux-gnu", "generic", "-aes,-sve"))[1] == ["aarch64"]  # in qemu
    assert targets.targets_of(("aarch64-unknown-linux-gnu", "generic", "-neon"))[1] == []
    exact = {targets.targets_of((triple, "some", features(level)))[0] for level in targets.LEVELS}
    assert len(exact) == 3


def test_of_all_levels_in_a_wheel_the_highest_is_read_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = cache.KernelCache(twice)
    names = {level: found._file("key", level) for level in targets.LEVELS}
    for level, name in names.items():
        (tmp_path / level).mkdir()
        (tmp_path / level / name).touch()
    monkeypatch.setattr(folders, "SHIPPED", tmp_path)
    monkeypatch.setattr(folders, "readable", lambda: ())
    cache._shipped.cache_clear()
    try:
        for level, own in zip(targets.LEVELS, ([0, 1, 2], [1, 2], [2]), strict=True):
            places = found._places("key", ("x86_64-unknown-linux-gnu", "some", features(level)))
            assert list(places) == [tmp_path / list(names)[k] / list(names.values())[k] for k in own]
    finally:
        cache._shipped.cache_clear()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what a process that compiles for level 2 has kept."""
    folder = tmp_path_factory.mktemp("built")
    code = "from tests.kernel_samples import compile_twice; compile_twice()"
    environment = {**os.environ, **targets.environment_of("x86-64-v2"), "NUMBA_CACHE_DIR": str(folder)}
    subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=PACKAGE.parent,
        check=True,
    )
    return folder / folders.NAME


def runs_level_2() -> bool:
    described = nb.core.registry.cpu_target.target_context.codegen().magic_tuple()
    return "x86-64-v2" in targets.targets_of(described)[1]


@pytest.mark.slow
@pytest.mark.skipif(not runs_level_2(), reason="another processor family")
def test_code_of_a_lower_level_is_loaded_from_the_package(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [path.name for path in built.iterdir()] == ["x86-64-v2"]
    monkeypatch.setattr(folders, "SHIPPED", tmp_path / "_compiled")
    monkeypatch.setattr(folders, "readable", lambda: ())
    monkeypatch.setattr(folders, "writable", lambda: None)
    monkeypatch.setattr(cache, "_announced", [])
    cache._shipped.cache_clear()

    try:
        assert compile_twice() == (0, 1)  # nothing is shipped
        assert capsys.readouterr().err.count("compiling kernels, once") == 1
        shutil.copytree(built, tmp_path / "_compiled")
        cache._shipped.cache_clear()
        assert compile_twice() == (1, 0)
        with monkeypatch.context() as other:  # a processor that lacks what level 2 needs
            other.setattr(JITCPUCodegen, "magic_tuple", lambda self: ("x86_64-unknown-linux-gnu", "k8", "+sse2"))
            assert compile_twice() == (0, 1)
        with monkeypatch.context() as other:  # another Numba
            other.setattr(cache, "_compiler", lambda: "0.999")
            assert compile_twice() == (0, 1)
        for path in (tmp_path / "_compiled").rglob(f"*{entries.SUFFIX}"):
            path.write_bytes(path.read_bytes()[:100])
        assert compile_twice() == (0, 1)
        assert capsys.readouterr().err == ""  # once in a process
    finally:
        cache._shipped.cache_clear()


SHIPPED = """
import warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    from polars_tadoc.runtime.compiled import njit
    from tests.kernel_samples import twice
    made = njit(nogil=True)(twice)
    found = made(4), sum(made._cache_hits.values()), sum(made._cache_misses.values())
import polars_tadoc
print(polars_tadoc.__file__, found, [str(one.message) for one in told], sep="\\n")
"""


@pytest.mark.slow
@pytest.mark.skipif(not runs_level_2() or os.name != "posix", reason="another processor family or system")
def test_where_nothing_can_be_written_shipped_code_is_loaded_without_a_word(built: Path, tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "polars_tadoc", ignore=shutil.ignore_patterns("__pycache__", "_compiled"))
    shutil.copytree(built, tmp_path / "polars_tadoc" / "runtime" / "_compiled")
    (tmp_path / "tests").mkdir()
    for name in ("__init__.py", "kernel_samples.py"):
        shutil.copy(PACKAGE.parent / "tests" / name, tmp_path / "tests")
    before = sorted(tmp_path.rglob("*"))
    assert run(SHIPPED, tmp_path, NOWHERE) == ["(8, 1, 0)", "[]"]
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.slow
def test_code_for_arm_is_compiled_on_any_processor(tmp_path: Path) -> None:
    code = (
        "from polars_tadoc.runtime.machine_code import targets; targets.compile_for_arm()\n"
        "from polars_tadoc.runtime.compiled import njit\n"
        "from tests.kernel_samples import twice\n"
        "from numba import int64; njit(nogil=True)(twice).compile((int64,))"
    )
    given = {**os.environ, **targets.environment_of(targets.ARM), "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=given, cwd=PACKAGE.parent, check=True)
    (path,) = (tmp_path / folders.NAME / targets.ARM).iterdir()
    entry = entries.read(path)
    assert entry is not None
    _, kind, (machine_code, _) = entry.code[0]
    assert kind == "object"
    assert machine_code[:4] == b"\x7fELF"
    assert int.from_bytes(machine_code[18:20], "little") == 183  # AArch64


@pytest.mark.slow
def test_settings_of_numba_are_the_users() -> None:
    code = (
        "import os, polars, numba.core.config as config\n"
        "def settings(): return {n: repr(v) for n, v in vars(config).items() if n.isupper()}\n"
        "before, variables = settings(), dict(os.environ)\n"
        "import numba; own = numba.njit(cache=True); kinds = dict(vars(numba.core.caching))\n"
        "import polars_tadoc\n"
        "from polars_tadoc.runtime.compiled import njit\n"
        "assert njit(nogil=True)(lambda number: number + 1)(1) == 2\n"
        "assert settings() == before and dict(os.environ) == variables\n"
        "assert dict(vars(numba.core.caching)) == kinds\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_spawned_processes_find_what_was_compiled() -> None:
    compile_twice()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(compile_twice, [4]) == [(1, 0)]


def test_a_function_as_an_argument_is_compiled_each_time() -> None:
    def apply(function: Callable[[int], int], number: int) -> int:
        return function(number)

    for expected, function in ((-14, twice), (7, abs_of)):
        made = njit(nogil=True)(apply)
        assert made(njit(nogil=True)(function), -7) == expected
        assert sum(made.stats.cache_hits.values()) == 0


def abs_of(number: int) -> int:
    return abs(number)
