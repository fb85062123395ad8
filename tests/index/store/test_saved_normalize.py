"""What an index saves of ``normalize=``: operations on words, and nothing that could call code."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidIndexError, LimitExceededError
from polars_tadoc.index.store import saved_expressions as expressions
from polars_tadoc.index.store.bounded import Bounded, _Steps, evaluated
from polars_tadoc.index.store.folder import HEADER
from polars_tadoc.index.store.growth import GROWTH, Reckoning, measured
from polars_tadoc.index.store.saved_operations import OPERATIONS
from tests.fuzz.expressions import MARK, apply, every, places, planted, plants, serialized, was_run
from tests.untrusted.test_hostile_files import put, reseal

WORDS = ["Cafés", "tails", "a-b", "2024", "a", "ein", "Ünï", "foo_bar"]

word = pl.element()
short = word.str.len_chars() < 3
parts = word.str.split("-")

SAVED: dict[str, pl.Expr] = {
    "the word": word,
    "lower case": word.str.to_lowercase(),
    "upper case": word.str.to_uppercase(),
    "title case": word.str.to_titlecase(),
    "without accents": word.str.normalize("NFKD").str.replace_all(r"\p{M}", ""),
    "composed": word.str.normalize("NFC"),
    "stripped": word.str.strip_chars(),
    "stripped of letters": word.str.strip_chars("as").str.strip_chars_start("C").str.strip_chars_end("n"),
    "prefix": word.str.strip_prefix("foo"),
    "suffix": word.str.strip_suffix("s"),
    "replaced once": word.str.replace("a", "b"),
    "replaced twice": word.str.replace("o", "0", n=2, literal=True),
    "replaced all": word.str.replace_all(r"\d+", "0"),
    "replaced by a group": word.str.replace_all(r"(\w)s$", "${1}"),
    "many": word.str.replace_many(["a", "b"], ["1", "2"]),
    "many of a map": word.str.replace_many({"A": "x"}, ascii_case_insensitive=True, leftmost=True),
    "slice": word.str.slice(1, 2),
    "slice from the end": word.str.slice(-3),
    "slice by length": word.str.slice(0, word.str.len_chars() - 1),
    "head": word.str.head(3),
    "tail": word.str.tail(-1),
    "extract": word.str.extract(r"^(\w)", 1),
    "extract all": word.str.extract_all(r"[a-z]").list.join(""),
    "reversed": word.str.reverse(),
    "padded": word.str.pad_start(6, "*").str.pad_end(8),
    "zeros": word.str.zfill(6),
    "condition": pl.when(short).then(word).otherwise(pl.lit("long")),
    "three conditions": pl.when(short).then(word).when(word == "ein").then(pl.lit("one")).otherwise(word),
    "condition or null": pl.when(word.str.contains(r"^\p{L}+$")).then(word),
    "two predicates": pl.when(~short, word != "ein").then(word),
    "stop words": pl.when(~word.is_in(["a", "ein"])).then(word),
    "stop words of a series": pl.when(word.is_in(pl.Series(["a", "ein"]).implode()).not_()).then(word),
    "stop words, any case": pl.when(word.str.to_lowercase().is_in({"ein"})).then(None).otherwise(word),
    "map": word.replace({"tails": "tail", "a": None}),
    "two lists": word.replace(["a", "ein"], ["b", "one"]),
    "strict map": word.replace_strict({"a": "b"}, default=word),
    "strict map of a type": word.replace_strict({"a": 1}, default=0, return_dtype=pl.Int64).cast(pl.String),
    "bounds": pl.when(word.str.len_bytes().is_between(2, 5, closed="left")).then(word),
    "number": word.cast(pl.Int64, strict=False).cast(pl.String),
    "bucket": (word.cast(pl.Int64, strict=False) // 10 * 10).cast(pl.String).fill_null(word),
    "whole number": word.str.to_integer(strict=False).cast(pl.String),
    "joined": pl.concat_str(word, pl.lit("x"), separator="_").alias("y"),
    "formatted": pl.format("é{}y{{z{}", word, word.str.head(1)),
    "plus": word.str.len_bytes().cast(pl.String) + "!",
    "coalesced": pl.coalesce(word.str.extract(r"(\d+)"), word),
    "first part": parts.list.first(),
    "last part": parts.list.get(-1, null_on_oob=True),
    "joined parts": parts.list.slice(0, 2).list.join("_"),
    "letters in order": word.str.split("").list.sort(descending=True).list.join(""),
    "letters once": word.str.split("").list.unique(maintain_order=True).list.join(""),
    "letters reversed": word.str.split("").list.reverse().list.join(""),
    "parts by themselves": parts.list.eval(pl.element().str.to_uppercase().str.head(1)).list.join("-"),
    "part of a structure": word.str.split_exact("-", 1).struct.field("field_0"),
    "split by a regex": word.str.split(r"[-_]", literal=False).list.first(),
    "combined conditions": pl.when((word > "b") & (word <= "z") | (word == "a") ^ short).then(word),
    "starts and ends": pl.when(word.str.starts_with("C"), ~word.str.ends_with("x")).then(word),
    "any of many": pl.when(word.str.contains_any(["ai", "oo"])).then(word),
    "all of some": pl.when(pl.all_horizontal(short, pl.any_horizontal(short, word == "a"))).then(word),
    "missing values": pl.when(word.replace({"a": None}).is_null()).then(pl.lit("none")).otherwise(word),
    "encoded": word.str.encode("hex"),
    "count": word.str.count_matches("[aeiou]").cast(pl.String),
    "year": word.str.to_date("%Y", strict=False).dt.year().cast(pl.String),
    "day": word.str.to_date("%Y", strict=False).dt.to_string("%Y-%m"),
    "capital": word.str.head(1).str.to_uppercase() + word.str.tail(-1),
}


def images(normalize: pl.Expr) -> list[str | None]:
    return pl.Series(WORDS).implode().list.eval(normalize).explode().to_list()


@pytest.mark.parametrize("name", SAVED)
def test_what_is_saved_is_made_again(name: str) -> None:
    expected = images(SAVED[name])
    form = json.loads(json.dumps(expressions.encode(SAVED[name])))
    assert images(expressions.read(form)) == expected
    assert images(expressions.read(serialized(SAVED[name]))) == expected  # as earlier releases have saved it


@pytest.mark.slow
def test_through_a_folder(tmp_path: Path) -> None:
    text = pl.Series("text", [" ".join(WORDS), "tails a-b", "ein a", "2024"]).tadoc.compress(tokenizer="whitespace")
    queries = [*WORDS, "tail", "café", "long", None]
    for number, (name, normalize) in enumerate(SAVED.items()):
        path = tmp_path / str(number)
        index = tadoc.build_index(text, normalize=normalize, store=False)
        index.save(path)
        assert tadoc.load_index(path).search(queries).equals(index.search(queries)), name
        assert tadoc.load_index(path, normalize=normalize).analyzer.morphism is not None


def test_every_operation_is_among_them() -> None:
    """Each operation is made by a call of Polars, and written by Polars as the table has it."""
    trees = [*every().values(), *map(serialized, SAVED.values())]
    seen: set[str] = set()
    for tree in trees:
        try:
            form = expressions._translated(tree)
        except ValueError:
            continue
        seen.update(_names(form))
    assert set(OPERATIONS) | set(expressions._OWN) | set(expressions._LITERALS) == seen


def _names(form: Any) -> set[str]:
    return set() if isinstance(form, str) else {form[0]}.union(*map(_names, form[2:]))


NOT_SAVED: dict[str, tuple[pl.Expr, str]] = {
    "of other words": (pl.when(word.is_duplicated()).then(word), "Boolean.IsDuplicated"),
    "order": (word.sort(), "Sort"),
    "json": (word.str.json_decode(pl.List(pl.String)).list.first(), "StringExpr.JsonDecode"),
    "a type that is told": (word.cast(pl.dtype_of(word)), "OfExpr"),
    "an enumeration": (word.cast(pl.Enum(WORDS)).cast(pl.String), "a cast to"),
    "a hash": (word.hash().cast(pl.String), "Hash"),
    "a length of its own": (word.str.pad_start(1 << 40), "str.pad_start to a length"),
    "a length that is told": (word.str.zfill(word.str.len_chars()), "str.zfill to a length"),
    "not a number": (pl.when(word.cast(pl.Float64, strict=False) == float("nan")).then(word), "a literal"),
    "a guessed date": (word.str.to_date().dt.to_string("%Y"), "str.to_date with format="),
    "a window": (word.over(word), "Over"),
}


@pytest.mark.parametrize("name", NOT_SAVED)
def test_what_is_not_saved_is_refused_when_it_is_saved(name: str, tmp_path: Path) -> None:
    normalize, named = NOT_SAVED[name]
    index = tadoc.build_index(pl.Series("text", ["2024"]).tadoc.compress(), lowercase=True)
    morphism = index.analyzer.morphism
    assert morphism is not None
    object.__setattr__(morphism, "normalize", normalize)  # some cannot normalise these words
    with pytest.raises(ValueError, match=r"^save: normalize= has .*, which is not among the operations") as error:
        index.save(tmp_path / "index")
    assert named in str(error.value)
    assert "load_index(path, normalize=…)" in str(error.value)
    assert not list(tmp_path.iterdir())


def test_sink_index_refuses_before_it_reads(tmp_path: Path) -> None:
    lf = pl.LazyFrame({"text": ["a b", "b c"]}).tadoc.compress("text")
    with pytest.raises(ValueError, match="sink_index: normalize= has"):
        lf.tadoc.sink_index(tmp_path / "index", "text", normalize=pl.element().str.decode("hex").cast(pl.String))
    assert not list(tmp_path.iterdir())


# Code in a header


def save(path: Path) -> Path:
    tadoc.build_index(pl.Series("text", ["a b", "b"]).tadoc.compress(), lowercase=True).save(path)
    return path


TYPED: dict[str, Callable[[Any], Any]] = {
    "Cast.dtype": lambda code: {"Cast": {"expr": "Element", "dtype": {"OfExpr": code}, "options": "Strict"}},
    "JsonDecode": lambda code: {
        "Function": {"input": ["Element"], "function": {"StringExpr": {"JsonDecode": {"OfExpr": code}}}}
    },
    "ReplaceStrict.return_dtype": lambda code: {
        "Function": {
            "input": ["Element", *[{"Literal": {"Scalar": {"String": "a"}}}] * 2],
            "function": {"ReplaceStrict": {"return_dtype": {"OfExpr": code}}},
        }
    },
    "Strptime": lambda code: {
        "Function": {
            "input": ["Element", {"Literal": {"Scalar": {"String": "raise"}}}],
            "function": {
                "StringExpr": {
                    "Strptime": [{"OfExpr": code}, {"format": "%Y", "strict": False, "exact": True, "cache": True}]
                }
            },
        }
    },
}


@pytest.mark.parametrize("name", TYPED)
def test_a_function_in_the_place_of_a_type_is_not_run(name: str, tmp_path: Path) -> None:
    path, tree = save(tmp_path / "index"), TYPED[name](plants()["node"])
    apply(pl.Expr.deserialize(io.StringIO(json.dumps(tree)), format="json"))
    assert was_run(), "what Polars' own reader makes runs it"
    reseal(path, put("analyzer/morphism/normalize", tree))
    with pytest.raises(
        InvalidIndexError, match=r"cannot read the index's normalize: it has .*, which is not an operation"
    ):
        tadoc.load_index(path)
    assert not was_run()
    assert tadoc.load_index(path, normalize=pl.element()).search("b").height == 2
    assert not was_run()


def test_code_at_any_place_of_any_expression_is_not_run() -> None:
    """Plant what calls code at each value of what Polars writes of each of its calls, in its place and beside it."""
    tried = 0
    for name, tree in every().items():
        ways = list(places(tree))
        for way in ways:
            for kind, plant in plants().items():
                _read(planted(tree, way, plant), f"{kind} at {way} of {name}")
                tried += 1
            for beside in ("dtype", "OfExpr", "AnonymousFunction"):
                _read(planted(tree, way, plants()["node"], beside=beside), f"{beside} at {way} of {name}")
                tried += 1
    assert tried > 40_000


def test_code_at_any_place_of_a_form_is_not_run() -> None:
    for name, expression in SAVED.items():
        form = expressions.encode(expression)
        for way in places(form):
            for kind, plant in plants().items():
                _read(planted(form, way, plant), f"{kind} at {way} of {name}")


def _read(tree: Any, where: str) -> None:
    with suppress(ValueError):
        apply(expressions.read(tree))
    assert not was_run(), where


def test_polars_never_reads_what_a_file_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError

    path = save(tmp_path / "index")
    monkeypatch.setattr(pl.Expr, "deserialize", fail)
    monkeypatch.setattr(pl.Expr, "from_json", fail, raising=False)
    for normalize in (serialized(SAVED["map"]), expressions.encode(SAVED["map"])):
        reseal(path, put("analyzer/morphism/normalize", normalize))
        assert tadoc.load_index(path).search("b").height == 2


@pytest.mark.parametrize(
    "form",
    [
        ["str.head", {}, "element"],
        ["str.head", {"n": 1}, "element", ["int", {"value": 1}]],
        ["str.head", {}, "element", ["int", {"value": True}]],
        ["str.head", {}, "element", ["int", {"value": 1 << 63}]],
        ["str.head", {}, "element", ["int", {"value": 1, "more": 1}]],
        ["str.pad_end", {"fill_char": "ab"}, "element", ["int", {"value": 3}]],
        ["str.pad_end", {"fill_char": " "}, "element", ["int", {"value": 1 << 40}]],
        ["str.replace", {"n": 1.0, "literal": True}, "element", "element", "element"],
        ["lit", {"dtype": "String", "value": "\ud800"}],
        ["lit", {"dtype": "Int8", "value": 128}],
        ["lit", {"dtype": "Object", "value": None}],
        ["lit", {"dtype": ["String"], "value": None}],
        ["list", {"dtype": "String", "values": ["a", 1]}],
        ["float", {"value": float("inf")}],
        ["cast", {"dtype": "Object", "options": "Strict"}, "element"],
        ["cast", {"dtype": {"List": {"List": "String"}}, "options": "Strict"}, "element"],
        ["cast", {"dtype": {"OfExpr": "Element"}, "options": "Strict"}, "element"],
        ["binary", {"op": "__class__"}, "element", "element"],
        ["struct.field", {"name": "^.*$"}, "element"],
        ["format", {"parts": ["a"]}, "element"],
        ["format", {"parts": ["a", "b", "c"]}, "element"],
        ["str.__class__", {}, "element"],
        ["map_batches", {}, "element"],
        ["when", {}, "element"],
        [["str.head"], {}, "element"],
        ["str.to_lowercase", {}, "element", "element"],
        ["str.to_lowercase", {}],
        ["str.to_lowercase"],
        [],
        "Elements",
        7,
        json.loads("[" * 900 + "]" * 900),
    ],
)
def test_forms_that_are_none(form: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"it has|too few arguments"):
        expressions.read(form)
    path = save(tmp_path / "index")
    reseal(path, put("analyzer/morphism/normalize", form))
    with pytest.raises(InvalidIndexError, match="cannot read the index's normalize"):
        tadoc.load_index(path)


def test_deep_forms() -> None:
    form: Any = "element"
    for _ in range(150):
        form = ["str.to_lowercase", {}, form]
    assert images(expressions.read(form)) == images(SAVED["lower case"])
    for _ in range(5_000):
        form = ["str.to_lowercase", {}, form]
    with pytest.raises(ValueError, match=r"it has .*, which is not an operation on words|it is nested too deeply"):
        expressions.read(form)


def test_long_chains_of_conditions_are_saved() -> None:
    chain: Any = pl.when(word == "a").then(pl.lit("b"))
    for number in range(100):
        chain = chain.when(word == str(number)).then(pl.lit("n"))
    chain = chain.otherwise(word)
    assert images(expressions.read(expressions.encode(chain))) == images(chain)


def test_a_claimed_order_of_a_list_is_not_believed() -> None:
    """Polars writes beside a literal's list whether it is sorted, and searches it so."""
    tree = serialized(pl.when(word.is_in(["a", "b", "c"])).then(word))
    way = next(way for way in places(tree) if way and way[-1] == "List")
    batch = pa.record_batch({"": pa.array(["b", "c", "a"])}).replace_schema_metadata({"_PL_FLAGS": "[5]"})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    made = expressions.read(planted(tree, way, list(sink.getvalue().to_pybytes())))
    assert images(made) == ["a" if one == "a" else None for one in WORDS]


def test_a_literal_that_unfolds_is_refused() -> None:
    tree = serialized(word.replace({"a": "b"}))
    way = next(way for way in places(tree) if way and way[-1] == "List")
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"": pa.array(["a" * 100_000])})
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    with pytest.raises(ValueError, match="a compressed literal"):
        expressions.read(planted(tree, way, list(sink.getvalue().to_pybytes())))


def test_the_header_holds_no_code(tmp_path: Path) -> None:
    index = tadoc.build_index(pl.Series(["a b"]).tadoc.compress(), normalize=plants_are_live)
    index.save(tmp_path / "index")
    assert MARK not in (tmp_path / "index" / HEADER).read_text()
    assert '"normalize": null' in (tmp_path / "index" / HEADER).read_text()


plants_are_live = pl.element().map_elements(lambda one: one, return_dtype=pl.String)


# What words become


def nested(form: Any, *operations: Callable[[Any], Any]) -> Any:
    for operation in operations:
        form = operation(form)
    return form


def text(value: str) -> list[Any]:
    return ["lit", {"dtype": "String", "value": value}]


def widened(form: Any) -> Any:
    return ["str.replace", {"n": -1, "literal": False}, form, text(""), text("x" * 20_000)]


def joined(form: Any) -> Any:
    return [
        "list.join",
        {"ignore_nulls": True},
        ["str.split", {"inclusive": False}, form, text("")],
        text("y" * 20_000),
    ]


def in_lists(form: Any) -> Any:
    each = nested("element", widened, widened, widened)
    parts = ["list.eval", {}, ["str.split", {"inclusive": False}, form, text("a")], each]
    return ["list.get", {"null_on_oob": True}, parts, ["int", {"value": 0}]]


def hexed(form: Any) -> Any:
    return ["str.encode.hex", {}, form]


def many(form: Any) -> Any:
    values = [["list", {"dtype": "String", "values": [value]}] for value in ("x", "x" * 20_000)]
    return ["str.replace_many", {"ascii_case_insensitive": False, "leftmost": False}, widened(form), *values]


def padded(form: Any) -> Any:
    return ["str.pad_end", {"fill_char": "x"}, form, ["int", {"value": 1 << 16}]]


BOMBS: dict[str, Any] = {
    "three replacements": nested("element", widened, widened, widened),
    "hex": nested("element", *[hexed] * 60),
    "base64": nested("element", *[lambda form: ["str.encode.base64", {}, form]] * 120),
    "joined letters": nested("element", widened, joined, joined),
    "elements of lists": in_lists("element"),
    "many": many("element"),
    "padded": nested("element", padded, widened, widened),
    "in a condition": ["when", {}, ["is_null", {}, nested("element", widened, widened, widened)], "element", "element"],
}


@pytest.mark.parametrize("name", BOMBS)
def test_words_that_become_too_long(name: str, tmp_path: Path) -> None:
    path = save(tmp_path / "index")
    reseal(path, put("analyzer/morphism/normalize", BOMBS[name]))
    index = tadoc.load_index(path)
    limit = 4 << 30 if name == "three replacements" else 64 << 20
    with tadoc.Config(payload_limit_bytes=limit):
        with pytest.raises(LimitExceededError, match=r"normalize: .* the limit is .*payload_limit_bytes="):
            index.search("b")
        with pytest.raises(LimitExceededError, match=r"normalize: .* the limit is .*payload_limit_bytes="):
            index.append(pl.Series("text", ["a b", "b"]).tadoc.compress())


def test_literals_that_become_too_long(tmp_path: Path) -> None:
    path = save(tmp_path / "index")
    constant = nested(text("a"), widened, widened, widened)
    for form in (constant, ["coalesce", {}, "element", constant]):
        reseal(path, put("analyzer/morphism/normalize", form))
        with pytest.raises(LimitExceededError, match="load_index: the index's normalize: its literals become up to"):
            tadoc.load_index(path)


def test_all_images_together_have_a_limit() -> None:
    widen = pl.element().str.pad_end(1 << 12)
    evaluate = Bounded(expressions.encode(widen), widen)
    words = pl.Series([str(number) for number in range(2_000)])
    with (
        tadoc.Config(payload_limit_bytes=4 << 20),
        pytest.raises(LimitExceededError, match="more than 4,194,304"),
    ):
        evaluate(words)
    with tadoc.Config(payload_limit_bytes=9 << 20):
        assert evaluate(words).equals(evaluated(words, widen))


@pytest.mark.parametrize("name", SAVED)
def test_operations_one_by_one_give_the_same(name: str) -> None:
    words = pl.Series("word", [*WORDS, "", *WORDS])
    form = expressions.encode(SAVED[name])
    made, expected = _Steps(words, 1 << 30).value(form), evaluated(words, SAVED[name])
    assert made.to_list() == expected.to_list()
    assert made.dtype == expected.dtype


@pytest.mark.parametrize("name", SAVED)
def test_no_operation_gives_more_than_is_reckoned(name: str) -> None:
    every_letter = "".join(map(chr, [*range(0x20, 0x2000, 7), 0xFDFA, 0x390, 0x130, 0xDF]))
    words = pl.Series([*WORDS, "", every_letter, "ﷺΐİ" * 100, "aa" * 50])
    with suppress(pl.exceptions.PolarsError):
        made = measured(evaluated(words, SAVED[name]))
        most = Reckoning(len(words)).of(expressions.encode(SAVED[name]), measured(words))
        assert made.bytes <= most.bytes
        assert made.longest <= most.longest
        assert made.items <= most.items


def test_every_operation_is_reckoned() -> None:
    assert set(GROWTH) | {"list.eval"} == set(OPERATIONS) | set(expressions._OWN)


def test_long_chains_that_make_nothing_longer() -> None:
    chain: Any = word
    for _ in range(15):
        chain = chain.str.replace_all(r"\d", "0").str.to_uppercase()
    words = pl.Series([f"{letter}{number}" for letter in "abc" for number in range(10_000)])
    assert Bounded(expressions.encode(chain), chain)(words).equals(evaluated(words, chain))
