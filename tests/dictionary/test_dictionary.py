"""Dictionaries: words to ids and back, prefixes, wrong arguments, equality, pickles."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.dictionary import dictionary as module
from polars_tadoc.dictionary import storage

Dictionary = tadoc.Dictionary

LETTERS = "ab\x01é日\U0010ffff"
words_of_letters = st.text(LETTERS, min_size=1, max_size=6)
any_words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12)
long_words = st.builds(lambda unit, times: unit * times, words_of_letters, st.integers(1, 80))
word_sets = st.sets(st.one_of(words_of_letters, any_words, long_words), max_size=40)
strings = st.one_of(st.just(""), words_of_letters, any_words, long_words, st.text(LETTERS + "\0", max_size=4))

FEW = ["to", "be", "or", "not", "b", "bee", "beer", "naïve", "日本", "日本語"]
TO_BE = Dictionary.from_words(pl.Series("word", FEW))


def make(words: set[str] | list[str]) -> tadoc.Dictionary:
    return Dictionary.from_words(pl.Series("word", sorted(words), pl.String))


@given(word_sets, st.lists(st.none() | strings, max_size=20))
def test_against_a_dict(engine: str, words: set[str], others: list[str | None]) -> None:
    made = make(words)
    asked = [*words, *others]
    ids = made.ids(pl.Series("asked", asked, pl.String), engine=engine)
    assert (ids.dtype, ids.name) == (pl.UInt32, "asked")
    known = dict(zip(words, ids[: len(words)].to_list(), strict=True))
    assert sorted(known.values()) == list(range(len(words)))
    assert ids.to_list() == [None if word is None else known.get(word, made.unknown) for word in asked]
    back = made.words(ids, engine=engine)
    assert (back.dtype, back.name) == (pl.String, "asked")
    assert back.to_list() == [word if word in words else None for word in asked]
    assert len(made) == made.unknown == len(words)
    assert all(word in made for word in words)
    assert [word in made for word in others if word is not None] == [w in words for w in others if w is not None]


@given(word_sets, strings, st.none() | st.integers(0, 5))
def test_prefixes_against_a_list(words: set[str], string: str, limit: int | None) -> None:
    made = make(words)
    for asked in [string, *sorted(words)[:3], "".join(sorted(words)[:2])]:
        prefixes = sorted((word for word in words if asked.startswith(word)), key=len)
        assert_table(made, made.common_prefixes(asked), prefixes)
        for prefix in (asked, asked[:1], asked[:-1]):
            longer = sorted(word for word in words if word.startswith(prefix))
            assert_table(made, made.with_prefix(prefix, limit=limit), longer[:limit])


def assert_table(made: tadoc.Dictionary, table: pl.DataFrame, words: list[str]) -> None:
    assert table.schema == {"word": pl.String, "id": pl.UInt32}
    assert table["word"].to_list() == words
    assert table["id"].to_list() == made.ids(pl.Series(words, dtype=pl.String)).to_list()


@given(word_sets, st.randoms(use_true_random=False))
def test_order_does_not_matter(words: set[str], random: Any) -> None:
    shuffled = sorted(words)
    random.shuffle(shuffled)
    made = Dictionary.from_words(pl.Series(shuffled, dtype=pl.String))
    assert made == make(words)
    assert hash(made) == hash(make(words))
    assert made.vocabulary.strings.to_pylist() == make(words).vocabulary.strings.to_pylist()


def test_many_words(engine: str) -> None:
    words = pl.select(pl.int_range(200_000).cast(pl.String) + "-" + (pl.int_range(200_000) % 977).cast(pl.String))
    series = words.to_series()
    made = Dictionary.from_words(series)
    assert len(made) == 200_000
    assert made.words(made.ids(series, engine=engine), engine=engine).equals(series)
    asked = pl.concat([series.str.head(5), series + "x"])
    found = made.ids(asked, engine=engine)
    assert (found != made.unknown).equals(asked.is_in(series.implode()))
    assert made.with_prefix("1234")["word"].to_list() == sorted(word for word in series if word.startswith("1234"))
    assert made.nbytes < series.str.len_bytes().sum()


class TestSeries:
    """Whatever series hold words, or ids."""

    @pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(FEW)])
    def test_categories(self, dtype: Any) -> None:
        categories = pl.Series("word", [*FEW, None], dtype=dtype)
        assert Dictionary.from_words(categories.drop_nulls()) == TO_BE
        assert TO_BE.ids(categories).to_list() == [*TO_BE.ids(pl.Series(FEW)).to_list(), None]

    def test_results_of_functions(self) -> None:
        column = tadoc.compress(pl.Series(["to be or not to be"]))
        table: Any = pl.from_arrow(tadoc.word_count(column))
        assert len(Dictionary.from_words(table["word"])) == 4

    def test_chunks_and_slices(self) -> None:
        chunks = pl.concat([pl.Series("w", ["x", "to"]), pl.Series("w", [None, "be"])], rechunk=False)[1:]
        assert chunks.n_chunks() == 2
        expected = [TO_BE.ids(pl.Series([word])).item() if word else None for word in ("to", None, "be")]
        assert TO_BE.ids(chunks).to_list() == expected
        ids = pl.concat([pl.Series("i", [1, 0]), pl.Series("i", [None, 2])], rechunk=False)[1:]
        assert TO_BE.words(ids).to_list() == [TO_BE.words(pl.Series([i])).item() for i in (0, None, 2)]
        assert Dictionary.from_words(pl.concat([pl.Series(["b"]), pl.Series(["a"])], rechunk=False)) == make(["a", "b"])

    def test_many_ids_of_few_words(self, engine: str) -> None:
        ids = pl.concat([pl.Series("i", [0, None, 10, 9, 3], dtype=pl.UInt8)] * 7, rechunk=False)
        words = TO_BE.words(ids, engine=engine)
        expected = TO_BE.words(pl.Series([0, 9, 3])).to_list()
        assert (words.name, words.to_list()) == ("i", [expected[0], None, None, *expected[1:]] * 7)
        assert TO_BE.words(ids.drop_nulls().filter(ids.drop_nulls() < 10), engine=engine).to_list() == expected * 7

    def test_nulls_only(self) -> None:
        assert TO_BE.ids(pl.Series("n", [None, None])).to_list() == [None, None]
        assert TO_BE.words(pl.Series("n", [None, None])).to_list() == [None, None]

    def test_nothing(self, engine: str) -> None:
        nothing = make([])
        assert repr(nothing) == "Dictionary of 0 words"
        assert Dictionary.from_words(pl.Series([])) == nothing
        assert nothing.ids(pl.Series(["a", "", None]), engine=engine).to_list() == [0, 0, None]
        assert nothing.words(pl.Series([0, None]), engine=engine).to_list() == [None, None]
        assert nothing.ids(pl.Series([], dtype=pl.String), engine=engine).to_list() == []
        assert TO_BE.words(pl.Series([], dtype=pl.UInt32), engine=engine).to_list() == []
        assert nothing.with_prefix("").rows() == nothing.common_prefixes("a").rows() == []
        assert "" not in nothing

    @pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt8, pl.Int64, pl.UInt64, pl.Int128])
    def test_integers(self, dtype: Any, engine: str) -> None:
        many = make([f"{number:03}" for number in range(300)])
        assert many.words(pl.Series([0, 127, None], dtype=dtype), engine=engine).null_count() == 1

    @pytest.mark.parametrize("name", ["", "^a.*$", "word", "*"])
    def test_names(self, name: str) -> None:
        assert TO_BE.ids(pl.Series(name, ["to", None])).name == name
        assert TO_BE.words(pl.Series(name, [0, None, 10])).name == name
        assert Dictionary.from_words(pl.Series(name, FEW)) == TO_BE


class TestWrongWords:
    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["a", None, "b", None], "rows 1, 3 are null; drop nulls: words.drop_nulls()"),
            (["a", ""], 'row 1 is empty; drop empty words: words.filter(words != "")'),
            (["a\0b", "a"], r"'a\x00b' in row 0 contains NUL; remove it"),
            (["b", "a", "b", "a"], "'a' is in rows 1, 3; keep one of each word: words.unique()"),
            (["a"] * 9, "'a' is in rows 0, 1, 2, 3, 4, …; keep one of each word: words.unique()"),
        ],
    )
    def test_messages(self, words: list[str | None], message: str) -> None:
        with pytest.raises(ValueError) as caught:
            Dictionary.from_words(pl.Series("some name", words))
        assert str(caught.value) == f"Dictionary.from_words: {message}"

    def test_the_way_out(self) -> None:
        words = pl.Series(["b", None, "", "a", "b"]).drop_nulls()
        assert len(Dictionary.from_words(words.filter(words != "").unique())) == 2

    def test_what_is_not_utf8(self) -> None:
        import pyarrow as pa

        buffers = [None, pa.py_buffer(b"\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0"), pa.py_buffer(b"a\xc3(")]
        broken: Any = pl.from_arrow(pa.Array.from_buffers(pa.large_string(), 2, buffers))
        with pytest.raises(ValueError, match=r"^Dictionary\.from_words: .*UTF8.*index 1"):
            Dictionary.from_words(broken)


class TestWrongArguments:
    @pytest.mark.parametrize("wrong", [["a"], "a", pl.DataFrame({"a": ["a"]}), pl.col("a"), None])
    def test_no_series(self, wrong: Any) -> None:
        for call in (Dictionary.from_words, TO_BE.ids, TO_BE.words):
            with pytest.raises(
                TypeError, match=rf"Dictionary\.\w+ takes a Polars Series of (words|ids), not {type(wrong).__name__}"
            ):
                call(wrong)

    @pytest.mark.parametrize("values", [[1], [1.5], [["a"]], [b"a"], [True]])
    def test_no_strings(self, values: list[Any]) -> None:
        for call in (Dictionary.from_words, TO_BE.ids):
            with pytest.raises(TypeError, match=r'^Dictionary\.\w+: column "c" is .*, not String'):
                call(pl.Series("c", values))

    @pytest.mark.parametrize("wrong", [["a"], pl.Series(["a"]), None])
    def test_dictionaries_are_not_made_of_words_at_once(self, wrong: Any) -> None:
        with pytest.raises(
            TypeError, match=r"^Dictionary takes no \w+: .*from_words\(words\), .*Dictionary\.load\(path\)$"
        ):
            Dictionary(wrong)

    def test_compressed_text(self) -> None:
        column = tadoc.compress(pl.Series("t", ["to be"]))
        with pytest.raises(TypeError, match=r'^Dictionary\.from_words: column "t" is compressed text; take') as caught:
            Dictionary.from_words(column)
        words = eval(str(caught.value).rpartition(": ")[2], {"column": column})
        assert len(Dictionary.from_words(words)) == 2

    @pytest.mark.parametrize("values", [["1"], [1.0], [True], [[1]]])
    def test_no_ids(self, values: list[Any]) -> None:
        with pytest.raises(TypeError, match=r'^Dictionary\.words: column "c" is .*, not an integer type'):
            TO_BE.words(pl.Series("c", values))

    @pytest.mark.parametrize("dtype", [pl.Int8, pl.Int64, pl.Int128])
    @pytest.mark.parametrize(("values", "first"), [([0, -1, 99], "row 1 is -1"), ([None, 10, 11], "row 2 is 11")])
    def test_numbers_that_are_no_ids(self, dtype: Any, values: list[int], first: str, engine: str) -> None:
        with pytest.raises(ValueError) as caught:
            TO_BE.words(pl.Series(values, dtype=dtype), engine=engine)
        assert str(caught.value) == (
            f"Dictionary.words: {first}, which is not an id: "
            "ids of words are 0 to 9, and 10 is the id of all other words"
        )

    def test_numbers_beyond_64_bits(self) -> None:
        for values, dtype in (([1 << 63], pl.UInt64), ([(1 << 64) + 1], pl.Int128), ([1 << 32], pl.Int64)):
            with pytest.raises(ValueError, match=r"^Dictionary\.words: row 0 is [\d,]+, which is not an id"):
                TO_BE.words(pl.Series(values, dtype=dtype))

    def test_engine(self) -> None:
        for call in (
            lambda: TO_BE.ids(pl.Series(["a"]), engine="abacus"),
            lambda: TO_BE.words(pl.Series([0]), engine="x"),
        ):
            with pytest.raises(ValueError, match='use "auto", "cpu" or "gpu"'):
                call()

    @pytest.mark.parametrize("wrong", [None, 1, b"a", ["a"]])
    def test_prefixes_are_strings(self, wrong: Any) -> None:
        for call in (TO_BE.common_prefixes, TO_BE.with_prefix):
            with pytest.raises(TypeError, match=rf"takes a string, not {type(wrong).__name__}$"):
                call(wrong)

    @pytest.mark.parametrize("wrong", ["3", 1.0, True])
    def test_limits_are_integers(self, wrong: Any) -> None:
        with pytest.raises(TypeError, match=rf"^Dictionary\.with_prefix: limit={wrong!r} must be an integer$"):
            TO_BE.with_prefix("a", limit=wrong)

    def test_limits_are_numpy_s_too(self) -> None:
        assert TO_BE.with_prefix("b", limit=np.int64(2))["word"].to_list() == ["b", "be"]  # type: ignore[arg-type]

    def test_limits_are_not_negative(self) -> None:
        with pytest.raises(ValueError, match=r"^Dictionary\.with_prefix: limit=-1 must be at least 0$"):
            TO_BE.with_prefix("a", limit=-1)


def test_what_is_no_word_is_not_in_it() -> None:
    for other in (1, None, b"to", ["to"], "\ud800", "to\0", "", TO_BE):
        assert other not in TO_BE
    assert TO_BE.common_prefixes("be\ud800").height == 2
    assert TO_BE.with_prefix("\ud800").height == 0


class TestEquality:
    def test_equal_words(self) -> None:
        assert make(FEW) == TO_BE
        assert make(FEW[1:]) != TO_BE
        assert make([*FEW[1:], "too"]) != TO_BE
        assert TO_BE != FEW
        assert len({make(FEW), TO_BE, make(["a"])}) == 2

    @pytest.mark.parametrize("dump", [pickle.dumps, cloudpickle.dumps], ids=["pickle", "cloudpickle"])
    def test_pickle(self, dump: Callable[[object], bytes]) -> None:
        for one in (TO_BE, make([])):
            back = pickle.loads(dump(one))
            assert back == one
            assert back.with_prefix("").equals(one.with_prefix(""))
        assert copy.deepcopy(TO_BE) == copy.copy(TO_BE) == TO_BE

    def test_a_damaged_pickle(self) -> None:
        dumped = pickle.dumps(TO_BE)
        at = dumped.index(b"TADOCDIC") + len(storage.to_bytes(TO_BE.trie)) - 1
        with pytest.raises(tadoc.errors.InvalidDictionaryError, match="the pickle is damaged"):
            pickle.loads(dumped[:at] + bytes([dumped[at] ^ 1]) + dumped[at + 1 :])

    def test_it_cannot_be_changed(self) -> None:
        with pytest.raises(AttributeError):
            TO_BE.trie = None  # type: ignore[misc, assignment]
        for value in TO_BE.trie:
            assert isinstance(value, int) or not value.flags.writeable


def test_repr() -> None:
    assert repr(TO_BE) == "Dictionary of 10 words"
    assert repr(make(["a"])) == "Dictionary of 1 word"
    assert repr(make([str(number) for number in range(1234)])) == "Dictionary of 1,234 words"


def test_auto_takes_a_gpu_for_many_words(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    choose = module.choose
    monkeypatch.setattr(module, "choose", lambda *how: asked.append(how) or choose(*how))
    TO_BE.ids(pl.Series(["a"] * 7))
    TO_BE.words(pl.Series([0, None, 10, 1]), engine="cpu")
    assert asked == [(None, 7, module.GPU_REPAYS_AT, "words"), ("cpu", 4, module.GPU_REPAYS_AT, "words")]


def test_config_decides_the_engine() -> None:
    with tadoc.Config(engine="cpu"):
        assert TO_BE.ids(pl.Series(["to"])).len() == 1
    if tadoc.testing.engines() == ["cpu"]:
        with pytest.raises(tadoc.errors.EngineUnavailableError, match='engine="gpu"'):
            TO_BE.ids(pl.Series(["to"]), engine="gpu")
