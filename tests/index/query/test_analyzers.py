"""Analyzers: an index of analysed words answers as one of texts that were analysed in plain Python."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidIndexError
from polars_tadoc.index.store.folder import HEADER, _header_text
from polars_tadoc.model import analyzers
from tests import ROOT

OLD = ROOT / "tests" / "data" / "struct_columns" / "index"
ENGLISH = Stemmer.Stemmer("english")
STOP_WORDS = frozenset(tadoc.stop_words("english"))


def stemmed(word: str) -> str | None:
    return None if word.lower() in STOP_WORDS else ENGLISH.stemWord(word.lower())


def folded(word: str) -> str:
    bare = "".join(own for own in unicodedata.normalize("NFKD", word) if not 0x300 <= ord(own) < 0x370)
    return unicodedata.normalize("NFC", bare.replace("ß", "ss").replace("Ø", "o").lower().replace("ς", "σ"))


WORDS = {
    "english": ["the", "Connected", "connection", "CONNECTS", "running", "run", "is", "of", "Error", "errors"],
    "folded": [
        "Été",
        "ete",
        "ÉTÉ",
        "Straße",
        "STRASSE",
        "Ørsted",
        "orsted",
        "ὈΔΥΣΣΕΎΣ",
        "οδυσσευς",
        "한글",
        "がく",
        "naïve",
    ],
}
MAPS: dict[str, Callable[[str], str | None]] = {"english": stemmed, "folded": folded}


@given(data=st.data(), name=st.sampled_from([*WORDS]), in_phrase=st.booleans(), mode=st.sampled_from(["or", "and"]))
def test_as_texts_analysed_before(engine: str, data: Any, name: str, in_phrase: bool, mode: str) -> None:
    lines = st.lists(st.sampled_from(WORDS[name]), max_size=8).map(" ".join)
    texts, queries = data.draw(st.lists(lines, min_size=1, max_size=6)), data.draw(st.lists(lines, max_size=3))

    def mapped(text: str) -> str:
        return " ".join(image for word in text.split() if (image := MAPS[name](word)))

    column, cut = pl.Series("text", texts), data.draw(st.integers(0, len(texts)))
    index = tadoc.build_index(column[:cut], analyzer=name, tokenizer="whitespace", engine=engine)
    if cut < len(texts):
        index = index.append(column[cut:])
    known = tadoc.build_index(pl.Series("text", list(map(mapped, texts))), lowercase=False, tokenizer="whitespace")
    own, plain = ([f'"{one}"' if in_phrase else one for one in some] for some in (queries, map(mapped, queries)))
    arguments = {"mode": mode, "engine": engine}
    assert index.search(own, **arguments).equals(known.search(plain, **arguments))
    assert [index.top(query, **arguments)[0].tolist() for query in own] == [
        known.top(query, **arguments)[0].tolist() for query in plain
    ]
    assert [index.count(query) for query in own] == [known.count(query) for query in plain]
    assert index.segments[0].lengths.tolist() == known.segments[0].lengths.tolist()[: index.segments[0].size]


@given(text=st.text(st.characters(max_codepoint=0x24F) | st.characters(min_codepoint=0x370, max_codepoint=0x3FF)))
def test_a_folded_word_stays(text: str) -> None:
    once = analyzers.folded(pl.Series([text]), "folded")
    assert analyzers.folded(once, "folded").to_list() == once.to_list()
    if text.isascii():
        assert once.to_list() == [text]


TEXTS = ["A null pointer", "The Pointer", "POINTER and pointer", None, "none"]


def test_lower_case_is_the_default(tmp_path: Path) -> None:
    df = pl.DataFrame({"text": TEXTS}).tadoc.compress("text")
    df.lazy().tadoc.sink_index(tmp_path / "index")
    for index in (df.tadoc.build_index(), df["text"].tadoc.build_index(), tadoc.load_index(tmp_path / "index")):
        assert [index.search(query)["id"].sort().to_list() for query in ("pointer", "POINTER")] == [[0, 1, 2]] * 2
    index = df.tadoc.build_index(lowercase=False)
    assert [index.search(query)["id"].to_list() for query in ("pointer", "POINTER")] == [[0, 2], [2]]
    assert "POINTER" in df.tadoc.word_count()["word"].to_list()  # other calls count words as they are written
    assert df.select(pl.col("text").tadoc.bm25("POINTER")).to_series().fill_null(0).gt(0).arg_true().to_list() == [2]


def test_an_older_index_and_what_is_appended_keep_their_case() -> None:
    index = tadoc.load_index(OLD)
    assert index.analyzer.morphism is None
    more = index.append(pl.Series(["Zebra"]), id=index.ids[:1], metadata=None, upsert=True)
    assert (more.count("Zebra"), more.count("zebra")) == (1, 0)


def test_patterns_and_snippets_of_stems() -> None:
    column = pl.Series("text", ["Two Connections failed", "It is Connecting", "A conn"]).tadoc.compress()
    index = tadoc.build_index(column, analyzer="english")
    assert index.search("connect* OR zz")["id"].sort().to_list() == [0, 1]
    assert (index.count("CONNECT*"), index.count("connections*"), index.count("conect~1")) == (2, 0, 2)
    assert index.suggest("Con").rows() == [("connect", 2), ("conn", 1)]
    found = index.search("connected")
    assert index.snippets(found, "connected")["snippet"].sort().to_list() == [
        "It is **Connecting**",
        "Two **Connections** failed",
    ]
    assert tadoc.build_index(column, analyzer="english", stopwords=[]).count("is") == 1
    assert tadoc.build_index(pl.Series(["Été à Paris"]), analyzer="folded").count("ÉT* AND PÀR*") == 1


def test_adjacent_ideographs_are_a_phrase() -> None:
    texts = ["明月照大江", "日月光明", "床前明月光 A１", "コーヒー", "月明 日 月"]
    index = tadoc.build_index(pl.Series("text", texts), analyzer="cjk")
    for syntax in ("lenient", "strict", "plain"):
        assert index.search("明月", syntax=syntax)["id"].sort().to_list() == [0, 2]
        assert index.top("明月", syntax=syntax)[0].tolist() == index.search("明月", syntax=syntax)["id"].to_list()
    assert index.search(["a1", "明", "明月 日", "明月 日 -大江", "ｺｰﾋｰ", "x明月"], mode="or").group_by(
        "query", maintain_order=True
    ).agg(pl.col("id").sort()).rows() == [
        (0, [2]),
        (1, [0, 1, 2, 4]),
        (2, [0, 1, 2, 4]),
        (3, [1, 2, 4]),
        (4, [3]),
        (5, [0, 2]),
    ]
    assert [index.count(query) for query in ("+明月 光", "NOT 明月", "x明月 AND 光")] == [2, 3, 0]
    assert index.snippets(index.search("明月 光", 1), "明月 光")["snippet"].to_list() == ["床前**明月****光** A１"]
    assert tadoc.build_index(pl.Series(texts)).search("明月").height == 4  # without: any of them
    df = pl.DataFrame({"text": texts, "kind": texts})
    fields = df.rename({"kind": "title"}).tadoc.build_index({"title": 2, "text": 1}, analyzer="cjk")
    assert (fields.count("title:明月"), fields.search("明月")["id"].sort().to_list()) == (2, [0, 2])
    assert df.tadoc.build_index("text", analyzer="cjk", metadata=["kind"]).count("kind:明月照大江") == 1
    with pytest.raises(ValueError, match="omit store=False"):
        tadoc.build_index(pl.Series(texts), analyzer="cjk", store=False)


@pytest.mark.parametrize("name", ["english", "folded", "cjk"])
def test_saved_by_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pl.Series("text", ["Two connections, été", "明月 connected", "ETE"])
    index = tadoc.build_index(texts, analyzer=name, stopwords=["two"])
    index.save(tmp_path / "index")
    texts.to_frame().lazy().tadoc.sink_index(tmp_path / "sunk", "text", analyzer=name, stopwords=["two"])
    header = json.loads((tmp_path / "index" / HEADER).read_text())
    assert header["format_version"] == 2
    assert header["analyzer"] == json.loads((tmp_path / "sunk" / HEADER).read_text())["analyzer"]
    queries = ["connecting two", "ÉTÉ", "明月", "Connections"]
    for folder in ("index", "sunk"):
        loaded = tadoc.load_index(tmp_path / folder)
        assert loaded.search(queries).equals(index.search(queries))
        assert loaded.append(pl.Series(["Été"])).count("été") == index.count("été") + 1
    header.pop("crc32")
    header["analyzer"]["morphism"]["analyzer"]["name"] = "klingon"
    (tmp_path / "index" / HEADER).write_text(_header_text(header))
    with pytest.raises(InvalidIndexError, match="its analyzer='klingon': use"):
        tadoc.load_index(tmp_path / "index")
    if name == "english":
        monkeypatch.setattr("polars_tadoc.index.store.storage.stemmer_version", lambda: "1.0")
        with pytest.warns(UserWarning, match="words whose stems have changed are not found"):
            tadoc.load_index(tmp_path / "sunk")
        monkeypatch.setitem(sys.modules, "Stemmer", None)
        with pytest.raises(ModuleNotFoundError, match=r'needs the package PyStemmer; install it: pip install "polars'):
            tadoc.load_index(tmp_path / "sunk")


def test_wrong_analyzers(monkeypatch: pytest.MonkeyPatch) -> None:
    column = pl.Series("text", TEXTS)
    with pytest.raises(ValueError, match=r"analyzer='englisch': use .*did you mean .english"):
        tadoc.build_index(column, analyzer="englisch")
    with pytest.raises(TypeError, match="analyzer is list, not a name"):
        tadoc.build_index(column, analyzer=["english"])
    with pytest.raises(ValueError, match=r'analyzer="english" lower-cases words: omit lowercase=False'):
        tadoc.build_index(column, analyzer="english", lowercase=False)
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(ModuleNotFoundError, match=r'analyzer="english" needs the package PyStemmer'):
        tadoc.build_index(column, analyzer="english")
    assert tadoc.build_index(column, analyzer="folded").count("none") == 1
