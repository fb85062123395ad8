"""Every member of every engine against its reference: a member without one fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, is_hypothesis_test, settings
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.compress.encode_beside import begin
from polars_tadoc.engine.choose import choose
from polars_tadoc.engine.kernels import Kernels
from polars_tadoc.kernels.postings.coded import PFORDELTA, RICE, Postings, Queries
from polars_tadoc.kernels.repair import reference as repair_reference
from polars_tadoc.kernels.repair.compressed import AUTO_RULES, METHODS, NO_RULES, SHARES, SMALL_RULES
from polars_tadoc.kernels.repair.prune import MARGIN, LevelledRules
from polars_tadoc.kernels.search import reference as search_reference
from polars_tadoc.kernels.tokenize import reference as tokenize_reference
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.kernels.traverse import analytics_reference
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.trie import reference as trie_reference
from tests.analytics import test_text_weights
from tests.handmade import cut, flatten
from tests.kernels.documents import test_document_kernels
from tests.kernels.search import test_search_kernels
from tests.kernels.sequences import test_sequence_kernels
from tests.kernels.tokenize import test_count_words
from tests.kernels.traverse import test_expand_words, test_kernels
from tests.kernels.trie import test_trie
from tests.kernels.twigs import test_twig_matches, test_twig_rule_matches
from tests.kernels.weights import test_weight_kernels
from tests.kernels.windows import test_window_kernels
from tests.strategies import columns_without_nulls, sequences

EXAMPLES = 6
"""Inputs that each comparison draws; the tests that hold the comparisons draw more."""

STRATEGIES = ("top_down", "bottom_up")

arrays = st.sampled_from([np.uint32, np.int64, np.uint64, np.float64]).flatmap(
    lambda dtype: st.lists(st.integers(0, 1 << 31), max_size=20).map(lambda values: np.array(values, dtype))
)


def runs_by_row(kernels: Kernels, got: tuple[Any, Any, Any, Any]) -> list[dict[tuple[int, ...], int]]:
    """Count the runs of words in each document that was derived, from its rules."""
    rules, *others = got
    offsets, roots, words = (kernels.to_host(array).tolist() for array in others)
    bodies = kernels.to_host(rules.rule_offsets).tolist(), kernels.to_host(rules.symbols).tolist()
    rows = analytics_reference.expand_documents(rules.terminals, *bodies, offsets, roots)
    return [Counter(tuple(words[run]) for run in row) for row in rows]


def derived(engine: str, case: Any, name: str, size: int) -> list[dict[tuple[int, ...], int]]:
    kernels = choose(engine, 0).kernels
    load = kernels.load_array
    rules = Rules(case.terminals, load(case.rule_offsets), load(case.symbols), case.level_offsets, load(case.lengths))
    rank = None if case.rank is None else load(np.array(case.rank, np.uint32))
    got = getattr(kernels, name)(rules, load(case.root_offsets), load(case.roots), size, rank)
    return runs_by_row(kernels, got)


@given(made=test_sequence_kernels.made_rules(), size=st.integers(1, 6), data=st.data())
def derive_sequences(engine: str, made: Any, size: int, data: Any) -> None:
    case = test_sequence_kernels.drawn(made, data)
    expected = [dict(analytics_reference.sequence_counts([row], size, case.rank)) for row in case.rows]
    assert derived(engine, case, "derive_sequences", size) == expected


@given(made=test_sequence_kernels.made_rules(), size=st.integers(1, 6), data=st.data())
def derive_pairs(engine: str, made: Any, size: int, data: Any) -> None:
    case = test_sequence_kernels.drawn(made, data)
    expected = [dict(analytics_reference.pair_counts([row], size, case.rank)) for row in case.rows]
    assert derived(engine, case, "derive_pairs", size) == expected


@given(array=arrays)
def there_and_back(engine: str, array: Any) -> None:
    kernels = choose(engine, 0).kernels
    for load in (kernels.load_array, *([kernels.load_symbols] if array.dtype == np.uint32 else [])):
        back = kernels.to_host(load(array))
        assert (back.dtype, back.tolist()) == (array.dtype, array.tolist())


@given(parts=st.lists(arrays, max_size=3))
def to_arrow(engine: str, parts: list[Any]) -> None:
    kernels = choose(engine, 0).kernels
    got = kernels.to_arrow([kernels.load_array(part) for part in parts])
    assert got == [pa.array(part) for part in parts]


def name(engine: str) -> None:
    assert choose(engine, 0).kernels.name == engine


def availability(engine: str) -> None:
    kernels = choose(engine, 0).kernels
    assert (kernels.device_problem(), kernels.can_run()) == (None, True)


def current_device(engine: str) -> None:
    kernels = choose(engine, 0).kernels
    devices = [None] if engine == "cpu" else range(__import__("cupy").cuda.runtime.getDeviceCount())
    assert kernels.current_device() in devices


def device_errors(engine: str) -> None:
    """What no device reports passes as it is; what one reports is named (``test_device_memory``)."""
    with pytest.raises(KeyError, match="a word"), choose(engine, 0).kernels.device_errors("counting"):
        raise KeyError("a word")


@given(array=arrays)
def release_memory(engine: str, array: Any) -> None:
    """What an array takes is not given back."""
    kernels = choose(engine, 0).kernels
    held = kernels.load_array(array)
    kernels.release_memory()
    assert kernels.to_host(held).tolist() == array.tolist()


def search_case(seed: int, codec: int) -> Any:
    return test_search_kernels.Case(seed, codec, 3000, [1, 127, 128, 129, 1000], [])


coded = {"seed": st.integers(0, 1 << 30), "codec": st.sampled_from([PFORDELTA, RICE])}


@given(**coded)
def decode_lists(engine: str, seed: int, codec: int) -> None:
    kernels, case = choose(engine, 0).kernels, search_case(seed, codec)
    lists = np.array([3, 0, 4, 1, 2, 3], np.uint32)
    found = kernels.decode_lists(kernels.load_postings(case.postings), kernels.load_array(lists))
    offsets, documents, counts = (kernels.to_host(array).tolist() for array in found)
    expected = [search_reference.decode_list(case.postings, number) for number in lists.tolist()]
    assert [(documents[a:b], counts[a:b]) for a, b in pairwise(offsets)] == [(list(d), list(c)) for d, c in expected]


@given(**coded, budget=st.sampled_from([0, 3000, 1 << 30]))
def resident_postings(engine: str, seed: int, codec: int, budget: int) -> None:
    """Postings that are resident in part or as a whole are searched with the same results."""
    kernels, case = choose(engine, 0).kernels, search_case(seed, codec)
    queries = case.queries(6)
    held = kernels.resident_postings(case.postings, budget)
    norms = kernels.load_array(case.norms)
    parts = []
    if isinstance(held, Postings):
        loaded = Queries(*map(kernels.load_array, queries))
        parts.append([*map(kernels.to_host, kernels.search(held, norms, None, loaded, 5, False))])
    else:
        for there, part in held.bring(queries):
            parts.append([*map(kernels.to_host, kernels.search(there, norms, None, part, 5, False))])
    expected = search_reference.search(case.postings, case.norms, queries, 5, False)
    for mine, wanted in zip(zip(*parts, strict=True), expected, strict=True):
        np.testing.assert_array_equal(np.concatenate(mine), wanted)


@given(**coded, require_all=st.booleans())
def reads_bounds(engine: str, seed: int, codec: int, require_all: bool) -> None:
    """A search finds the same with what its engine says of bounds, and with the opposite."""
    case = search_case(seed, codec)
    for bounded in (choose(engine, 0).kernels.READS_BOUNDS, not choose(engine, 0).kernels.READS_BOUNDS):
        case.check(engine, case.queries(4), 5, require_all, None, bounded)


@given(words=test_trie.vocabularies, others=st.lists(test_trie.few_letters, max_size=5))
def look_up_rows(engine: str, words: list[bytes], others: list[bytes]) -> None:
    kernels, trie = choose(engine, 0).kernels, test_trie.built(words)
    rows = [*words, *others]
    found = kernels.look_up_rows(kernels.load_trie(trie), pl.Series([row.decode() for row in rows], dtype=pl.String))
    assert kernels.to_host(found).tolist() == [trie_reference.look_up(trie, row) for row in rows]


def gathers_spelled(engine: str) -> None:
    """Many ids are spelled the same whether each word is spelled once or each id."""
    dictionary = tadoc.Dictionary.from_words(pl.Series(["to", "be", "or", "not"]))
    ids = pl.Series([0, 3, None, 1, 2, 4] * 5, dtype=pl.UInt32)
    expected = [
        None if i is None or i == 4 else trie_reference.spell(dictionary.trie, i).decode() for i in ids.to_list()
    ]
    for value in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(choose(engine, 0).kernels, "GATHERS_SPELLED", value)
            assert dictionary.words(ids, engine=engine).to_list() == expected


def expected_rules(
    rows: list[list[int]], vocabulary_size: int, method: str, ends: list[list[int]] | None = None
) -> Any:
    if method == "sequitur":
        return repair_reference.sequitur(rows, vocabulary_size)
    if method == NO_RULES:
        return [], [0], rows
    if method == AUTO_RULES:  # the sample is all rows
        bodies, _, roots = expected_rules(rows, vocabulary_size, METHODS[0])
        words, symbols = sum(map(len, rows)), sum(map(len, roots)) + sum(map(len, bodies))
        method = NO_RULES if 10 * (symbols + len(bodies)) > 7 * words else METHODS[0]
        return expected_rules(rows, vocabulary_size, method, ends)
    made = repair_reference.batch_repair(rows, vocabulary_size, *SHARES[method], ends)
    return repair_reference.prune(*made, vocabulary_size, MARGIN)


def plain_rules(rules: LevelledRules) -> Any:
    bodies, roots = cut(rules.symbols, rules.rule_offsets), cut(rules.roots, rules.root_offsets)
    return bodies, rules.level_offsets.tolist(), roots


@given(given_rows=sequences())
def build_rules(engine: str, given_rows: tuple[list[list[int]], int]) -> None:
    rows, vocabulary_size = given_rows
    kernels = choose(engine, 0).kernels
    assert set(kernels.RULE_METHODS) <= {*METHODS, NO_RULES, SMALL_RULES, AUTO_RULES}
    for method in kernels.RULE_METHODS:
        made = kernels.build_rules(
            flatten(rows), vocabulary_size, len(rows), method=method, on_round=lambda number, alive: None
        )
        assert plain_rules(made) == expected_rules(rows, vocabulary_size, method)


@given(texts=columns_without_nulls.filter(len))
def compress_rows(engine: str, texts: list[str]) -> None:
    kernels = choose(engine, 0).kernels
    tokens = [tokenize_reference.tokenize(text, "words") for text in texts]
    counts = Counter(word for words, _ in tokens for word in words)
    vocabulary = sorted(counts, key=lambda word: (-counts[word], word.encode()))
    numbers = {word: number for number, word in enumerate(vocabulary)}
    rows = [[numbers[word] for word in words] for words, _ in tokens]
    ends = [[gap.count("\n") for gap in gaps[1:-1]] for _, gaps in tokens]
    text = pl.Series("text", texts, pl.String)
    for method in kernels.RULE_METHODS:
        load = begin(kernels.loading(text))
        made = kernels.compress_rows(
            text,
            Tokenizer("words"),
            method=method,
            lossless=True,
            on_round=lambda number, alive: None,
            loaded=load.result,
        )
        assert made.vocabulary.to_pylist() == vocabulary
        bodies, _, roots = plain_rules(made.rules)
        assert plain_rules(made.rules) == expected_rules(rows, len(vocabulary), method, ends)
        gap_words = made.gap_vocabulary.to_pylist()
        body = (len(vocabulary), made.rules.rule_offsets.tolist(), made.rules.symbols.tolist())
        codes = [
            [
                0 if gap == ("" if place in (0, len(gaps) - 1) else " ") else 1 + gap_words.index(gap)
                for place, gap in enumerate(gaps)
            ]
            for _, gaps in tokens
        ]
        predicted = repair_reference.predict_gaps(roots, codes, *body)
        assert made.predicted_gaps.tolist() == predicted
        for row, own, (first, stop) in zip(roots, codes, pairwise(made.gap_offsets.tolist()), strict=True):
            keys = [predicted[key] for key in repair_reference.gap_keys(row, *body)]
            assert made.gap_data[first:stop].tobytes() == repair_reference.encode_predicted_gaps(own, keys)
        assert len(bodies) == len(made.rules.rule_offsets) - 1


COMPARISONS: dict[str, Callable[..., None]] = {
    "name": name,
    "device_problem": availability,
    "can_run": availability,
    "current_device": current_device,
    "device_errors": device_errors,
    "release_memory": release_memory,
    "load_symbols": there_and_back,
    "load_array": there_and_back,
    "to_host": there_and_back,
    "to_arrow": to_arrow,
    "load_grammar": test_kernels.test_top_down_weights,
    "top_down_weights": test_kernels.test_top_down_weights,
    "map_counts": test_kernels.test_map_counts,
    "select": test_kernels.test_select,
    "load_rules": test_document_kernels.test_any_grammar,
    "expand_words": test_expand_words.test_any_grammar,
    "terminal_counts": test_document_kernels.test_any_grammar,
    "count_by_document": test_document_kernels.test_any_grammar,
    "count_by_terminal": test_document_kernels.test_any_grammar,
    "terms_by_document": test_weight_kernels.test_terms_of_any_grammar,
    "document_lengths": test_weight_kernels.test_terms_of_any_grammar,
    "document_frequencies": test_weight_kernels.test_document_frequencies,
    "merge_terms": test_weight_kernels.test_merge,
    "weigh_bm25": test_weight_kernels.test_bm25,
    "weigh_tfidf": test_weight_kernels.test_tfidf,
    "top_weights": test_weight_kernels.test_top,
    "sequence_counts": test_sequence_kernels.test_sequence_counts,
    "sequence_counts_of_lengths": test_sequence_kernels.test_sequence_counts_of_lengths,
    "sequence_postings": test_sequence_kernels.test_sequence_postings,
    "pair_counts": test_sequence_kernels.test_pair_counts,
    "derive_sequences": derive_sequences,
    "derive_pairs": derive_pairs,
    "load_postings": decode_lists,
    "decode_lists": decode_lists,
    "resident_postings": resident_postings,
    "READS_BOUNDS": reads_bounds,
    "block_bounds": test_search_kernels.test_bounds_are_the_largest_of_their_blocks,
    "search": test_search_kernels.test_search,
    "GATHERS_SPELLED": gathers_spelled,
    "load_trie": test_trie.test_any_words,
    "look_up": test_trie.test_any_words,
    "spell": test_trie.test_any_words,
    "look_up_rows": look_up_rows,
    "TwigMatcher": test_twig_matches.test_equals_the_definition,
    "load_events": test_twig_matches.test_equals_the_definition,
    "load_word_events": test_twig_rule_matches.test_equals_the_definition,
    "count_text_words": test_count_words.test_counts_the_words_of_all_rows,
    "number_words": test_text_weights.test_source_is_the_words_of_the_rows_that_are_there,
    "lay_words": test_window_kernels.test_lay_words,
    "map_words": test_window_kernels.test_map_words,
    "find_windows": test_window_kernels.test_find_windows,
    "find_known": test_window_kernels.test_find_known,
    "find_runs": test_window_kernels.test_find_runs,
    "describe_runs": test_window_kernels.test_describe_runs,
    "count_covered": test_window_kernels.test_count_covered,
    "RULE_METHODS": build_rules,
    "build_rules": build_rules,
    "compress_rows": compress_rows,
    "loading": compress_rows,
}
"""By member: what runs it on an engine and compares it with a plain-Python definition."""


def members() -> list[str]:
    """List the members of all Protocols that an engine is made of."""
    protocols = [one for one in Kernels.__mro__ if getattr(one, "_is_protocol", False) and one.__name__ != "Protocol"]
    names = {name for one in protocols for name in (*vars(one), *vars(one).get("__annotations__", {}))}
    return sorted(name for name in names if not name.startswith("_"))


OPTIONS: dict[str, list[dict[str, str]]] = {
    "sequence_counts": [{"strategy": one} for one in STRATEGIES],
    "sequence_counts_of_lengths": [{"strategy": one} for one in STRATEGIES],
    "sequence_postings": [{"strategy": one} for one in STRATEGIES],
    "pair_counts": [{"strategy": one} for one in STRATEGIES],
    "count_text_words": [{"tokenizer": "words"}, {"tokenizer": "whitespace"}],
    "number_words": [{"tokenizer": "words"}, {"tokenizer": "whitespace"}],
}
"""By member: the parameters of its comparison beside the engine, one call for each."""


def test_every_member_has_a_reference_and_nothing_else_has() -> None:
    assert members() == sorted(COMPARISONS)


@pytest.mark.parametrize("member", members())
def test_engine_equals_the_reference(engine: str, member: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = choose(engine, 0).kernels
    assert member in COMPARISONS, f"{member}: no reference; register what compares it in COMPARISONS"
    supplied = getattr(kernels, member)
    calls: list[str] = []

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(member)
        return supplied(*arguments, **options)

    if callable(supplied):
        monkeypatch.setattr(kernels, member, counted)
    compare = COMPARISONS[member]
    if is_hypothesis_test(compare):
        own = compare._hypothesis_internal_use_settings  # type: ignore[attr-defined]
        monkeypatch.setattr(compare, "_hypothesis_internal_use_settings", settings(own, max_examples=EXAMPLES))
    for options in OPTIONS.get(member, [{}]):
        compare(engine=engine, **options)
    assert calls or not callable(supplied), f"{member}: its comparison does not call it"


def test_engine_modules_list_the_members_and_nothing_else(engine: str) -> None:
    listed = {name for name in vars(choose(engine, 0).kernels) if not name.startswith("_")}
    assert listed - {"annotations"} == set(members())
