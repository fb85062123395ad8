"""``make test`` runs every public call, kernel and documented example; tests lie where the package has its modules.

What a tier runs is known where the whole tree is collected: a run of some files skips these checks.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path

import pytest

from tests import ROOT
from tests.kernels.test_kernel_protocols import members

TESTS = ROOT / "tests"
SURFACES: dict[str, dict[str, object]] = json.loads((TESTS / "surfaces.json").read_text("utf-8"))
NAMESPACES = {"DataFrame", "LazyFrame", "Series", "Expr"}
CALLS = [(surface, name) for surface, calls in SURFACES.items() for name in calls]
OTHER_FOLDERS = {"fuzz", "package", "trials"}
TIERS = {"", "not slow"}
"""What `make test-all` and `make test` choose by marker."""

OF_WORKERS = {
    "__init__": "test_arguments",
    "close": "test_closed",
    "compress": "test_gives_the_rows_back",
    "twig_filter": "test_twigs",
    "repeats": "test_passages[text]",
    "drop_repeats": "test_passages[text]",
    "overlap": "test_passages[text]",
    "near_duplicates": "test_near_duplicates[text]",
    "duplicate_groups": "test_near_duplicates[text]",
}
"""Tests of what is no analytic; analytics are cases of ``test_equals_one_process``."""
OF_SPARK = {"compress": "test_cells_are_files_of_packed_rows", "unpack": "test_cells_are_files_of_packed_rows"} | (
    dict.fromkeys(["repeats", "drop_repeats", "overlap"], "test_passages_are_those_of_one_process")
    | dict.fromkeys(["near_duplicates", "duplicate_groups"], "test_near_duplicates_are_those_of_one_process")
)
"""Tests of what is no analytic; what tasks of analytics do are cases of ``test_the_answer_is_that_of_one_process``.
Spark itself is slow to start: ``test_spark.py`` is of ``make test-all``."""

HOST_KERNELS = {
    "grammars.append": "test_append::test_text_comes_back",
    "grammars.adaptive_codes": "test_contexts",
    "grammars.coded_contexts": "test_contexts",
    "grammars.coded_gaps": "test_coded",
    "grammars.coded_guesses": "test_coded",
    "grammars.coded_row_gaps": "test_contexts",
    "grammars.coded_rules": "test_coded",
    "grammars.coded_runs": "test_coded",
    "grammars.coded_streams": "test_coded",
    "grammars.coded_symbols": "test_coded",
    "grammars.coded_words": "test_coded",
    "grammars.event_contexts": "test_contexts",
    "grammars.checks": "test_grammar::test_says_what_is_wrong",
    "grammars.parquet_pages": "test_bombs",
    "grammars.payload": "test_payload::test_round_trip",
    "grammars.statistics": "test_statistics",
    "near.pairs": "test_near_duplicates::test_pairs_and_groups",
    "near.rows": "test_near_duplicates::test_pairs_and_groups",
    "near.sha1": "test_minhash::test_signatures",
    "near.signatures": "test_minhash::test_signatures",
    "near.text_signatures": "test_minhash::test_signatures",
    "patterns.exact": "test_patterns",
    "patterns.exact_rows": "test_patterns",
    "patterns.literal_rows": "test_patterns::test_literals",
    "patterns.literals": "test_patterns::test_literals",
    "patterns.match": "test_patterns",
    "patterns.sequences": "test_patterns::test_regexes",
    "patterns.triples": "test_patterns::test_regexes",
    "patterns.windows": "test_patterns::test_literals",
    "patterns.words": "test_patterns::test_regexes",
    "passages.cuts": "test_drop_repeats",
    "passages.distinct": "test_limited::test_results_are_those_without_a_limit",
    "passages.layout": "test_repeats::test_windows_equal_the_reference",
    "passages.matches": "test_overlap::test_overlap",
    "passages.runs": "test_repeats::test_repeats",
    "passages.stretches": "test_repeats::test_windows_equal_the_reference",
    "passages.windows": "test_repeats::test_windows_equal_the_reference",
    "records.by_count": "test_spill",
    "records.gather_views": "test_vocabulary",
    "records.merge_counts": "test_word_numbers",
    "records.merge_words": "test_spill::test_merge_words",
    "records.number_words": "test_word_numbers",
    "records.packed_keys": "test_spill",
    "records.records": "test_records",
    "records.sort_keys": "test_spill",
    "records.sort_words": "test_word_numbers",
    "rows.content_hash": "test_content_hash",
    "rows.expand": "test_decompress",
    "rows.flat_phrases": "test_short_way::test_short_queries",
    "rows.programs": "test_short_way::test_short_queries",
    "rows.extract": "test_extract::test_takes_words_of_the_text",
    "rows.near": "test_query_language::test_any_tree",
    "rows.one_query": "test_top::test_top_is_what_search_finds",
    "rows.mersenne": "test_content_hash",
    "rows.occurrences": "test_concordance::test_occurrences",
    "rows.phrase_words": "test_phrases",
    "rows.phrases": "test_phrases",
    "rows.query_shapes": "test_short_way::test_texts_are_cut_as_by_the_pattern",
    "rows.query_words": "test_query_words::test_find_terms",
    "rows.row_words": "test_query_language::test_any_tree",
    "rows.snippets": "test_snippets",
    "rows.parts": "test_code::test_any_code",
    "rows.spelling": "test_query_language::test_words_that_are_spelled_alike",
    "rows.term_counts": "test_bm25",
    "rows.word_map": "test_image::test_mapped_rows",
    "sequences.hash_counts": "test_text_sequences",
    "sequences.ordered_pairs": "test_collocations::test_scores",
    "sequences.text_sequences": "test_text_sequences",
    "xml.xml_events": "test_twig_events",
    "xml.xml_names": "test_twig_set",
    "xml.xml_prolog": "test_twig_events",
    "xml.xml_roots": "test_twig_words",
}
"""By module: the file, or the test, that holds its kernels to a definition. Kernels of an engine are those of
``test_kernel_protocols.py``."""


@pytest.fixture(scope="module")
def quick(request: pytest.FixtureRequest) -> list[str]:
    """Tests that ``make test`` runs, as pytest names them."""
    config = request.config
    if config.args != config.getini("testpaths") or config.option.keyword or config.option.markexpr not in TIERS:
        pytest.skip("only some tests are collected: run `make test`")
    return [item.nodeid for item in request.session.items if item.get_closest_marker("slow") is None]


def test_every_public_call(quick: list[str]) -> None:
    """Each has an example that runs; those of workers and Spark, whose examples start processes, have tests."""
    examples = {name.split("::")[1] for name in quick if name.startswith("polars_tadoc/")}
    names = {name.partition("::")[2].split("::")[-1] for name in quick if name.startswith("tests/distributed/")}
    tests = names | {name.split("[")[0] for name in names}
    missing = []
    for surface, call in CALLS:
        if surface == "Workers":
            held = OF_WORKERS.get(call, f"test_equals_one_process[{{'cpus': 1}}-{call}]") in tests
        elif surface == "Spark":
            held = OF_SPARK.get(call, f"test_the_answer_is_that_of_one_process[{call}]") in tests
        else:
            start = f"polars_tadoc.namespaces.{surface.lower()}." if surface in NAMESPACES else ""
            start = start or "polars_tadoc.index." * (surface == "Index")  # a class of searches, and one of the index
            end = f".{call}" if surface == "functions" or start else f".{surface}.{call}"
            held = any(name.startswith(start) and name.endswith(end) for name in examples)
        missing += [] if held else [f"{surface}: {call}"]
    assert missing == []


def test_every_kernel(quick: list[str]) -> None:
    tests = {name.split("/")[-1].replace(".py::", "::") for name in quick}
    compared = "test_kernel_protocols::test_engine_equals_the_reference"
    assert [one for one in members() if f"{compared}[cpu-{one}]" not in tests] == []
    run = {name.split("[")[0] for name in tests} | {name.split("::")[0] for name in tests}
    assert [module for module, test in HOST_KERNELS.items() if test not in run] == []


def test_every_kernel_of_the_host_has_its_test() -> None:
    host = ROOT / "polars_tadoc" / "kernels" / "host"
    modules = {
        ".".join(path.relative_to(host).with_suffix("").parts)
        for path in host.rglob("*.py")
        if path.name != "__init__.py" and "reference" not in path.stem
    }
    assert modules == set(HOST_KERNELS)


def test_every_documented_example(quick: list[str]) -> None:
    """Pages and docstrings with prompts are doctests; scripts are run; code without prompts: ``test_doc_code.py``."""
    missing = []
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        name = path.relative_to(ROOT).as_posix()
        missing += [name] if ">>> " in path.read_text("utf-8") and f"{name}::{path.name}" not in quick else []
    for path in (ROOT / "examples").glob("*.py"):
        name = f"tests/package/test_examples.py::test_example[{path.stem}]"
        missing += [] if name in quick else [name]
    for path in (ROOT / "polars_tadoc").rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        if name != "polars_tadoc/distributed/spark.py":  # test_spark.py runs its examples
            run = {one.split("::")[1] for one in quick if one.startswith(f"{name}::")}
            missing += [f"{name}: {count - len(run)}" for count in [_examples(path)] if count > len(run)]
    assert missing == []


def _examples(path: Path) -> int:
    """How many docstrings of a module show examples."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    nodes = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, kinds)]
    return sum(">>> " in (ast.get_docstring(node) or "") for node in nodes)


def test_tests_lie_where_the_package_has_them() -> None:
    files = list(TESTS.rglob("test_*.py"))
    assert [path.name for path in files if path.parent == TESTS] == []
    assert [name for name, count in Counter(path.name for path in files).items() if count > 1] == []
    folders = {path.parent.relative_to(TESTS) for path in files}
    own = {folder for folder in folders if folder.parts[0] not in OTHER_FOLDERS}
    assert [folder for folder in own if not (ROOT / "polars_tadoc" / folder).is_dir()] == []
