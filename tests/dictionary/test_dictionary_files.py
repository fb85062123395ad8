"""Saved dictionaries: round trips, and files that are damaged or made up."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.dictionary import file, storage
from polars_tadoc.errors import InvalidDictionaryError
from polars_tadoc.model import payload
from tests.dictionary.test_dictionary import word_sets

WORDS = [*(f"word{number}{'é' * (number % 5)}" for number in range(900)), "a", "ab", "日本", "x" * 400]
MADE = tadoc.Dictionary.from_words(pl.Series("word", WORDS))
BYTES = storage.to_bytes(MADE.trie)
HEADER_BYTES = int.from_bytes(BYTES[16:24], "little")
FLIPS = 2000
HARMED = 300


@pytest.fixture
def path(tmp_path: Path) -> Path:
    MADE.save(tmp_path / "words.dictionary")
    return tmp_path / "words.dictionary"


@pytest.mark.parametrize("verify", [True, False])
def test_round_trip(path: Path, verify: bool, engine: str) -> None:
    loaded = tadoc.Dictionary.load(str(path), verify=verify)
    assert loaded == MADE
    assert hash(loaded) == hash(MADE)
    assert len(loaded) == len(WORDS)
    ids = loaded.ids(pl.Series([*WORDS, "no word"]), engine=engine)
    assert ids.equals(MADE.ids(pl.Series([*WORDS, "no word"]), engine=engine))
    assert loaded.words(ids, engine=engine).to_list() == [*WORDS, None]
    assert loaded.with_prefix("word89").equals(MADE.with_prefix("word89"))


@given(st.one_of(st.just(set()), word_sets))
def test_any_words(words: set[str]) -> None:
    made = tadoc.Dictionary.from_words(pl.Series(sorted(words), dtype=pl.String))
    data = storage.to_bytes(made.trie)
    assert tadoc.Dictionary(storage.from_bytes(data)) == made
    assert len(data) % file.ALIGNMENT == 0


def test_the_file_is_what_it_says(path: Path) -> None:
    data = path.read_bytes()
    assert data == BYTES
    magic, version, checksum, size = struct.unpack("<8sIIQ", data[:24])
    assert (magic, version, size % 64) == (b"TADOCDIC", 1, 0)
    assert checksum == zlib.crc32(data[16:24] + data[24:size], zlib.crc32(data[8:12]))
    at = size
    for known in json.loads(data[24:size])["arrays"]:
        length = np.dtype(known["dtype"]).itemsize * known["length"]
        stop = at + length + -length % 64
        assert zlib.crc32(data[at:stop]) == known["crc32"]
        assert np.array_equal(
            np.frombuffer(data, known["dtype"], known["length"], at), getattr(MADE.trie, known["name"])
        )
        at = stop
    assert at == len(data)
    assert list(path.parent.iterdir()) == [path]  # nothing temporary is left


def test_saving_replaces(path: Path) -> None:
    loaded = tadoc.Dictionary.load(path)
    path.chmod(0o640)
    other = tadoc.Dictionary.from_words(pl.Series(["other"]))
    other.save(path)
    assert path.stat().st_mode & 0o777 == 0o640
    assert tadoc.Dictionary.load(path) == other
    assert loaded == MADE  # the old file lives on while it is mapped
    assert loaded.words(loaded.ids(pl.Series(WORDS))).to_list() == WORDS
    loaded.save(path)
    tadoc.Dictionary.load(path).save(path)
    assert tadoc.Dictionary.load(path) == MADE


def test_the_user_s_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    MADE.save("~/words")
    assert (tmp_path / "words").is_file()
    assert tadoc.Dictionary.load("~/words") == MADE
    with pytest.raises(FileNotFoundError, match=f"file {tmp_path}/none does not exist$"):
        tadoc.Dictionary.load("~/none")


@pytest.mark.parametrize("wrong", [None, 1, ["words"]])
def test_what_is_no_path(wrong: Any) -> None:
    for call in (MADE.save, tadoc.Dictionary.load):
        with pytest.raises(TypeError):
            call(wrong)


def test_where_nothing_can_be_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match=r"^Dictionary\.save: folder .*/none does not exist; create it first$"):
        MADE.save(tmp_path / "none" / "words")
    with pytest.raises(IsADirectoryError, match=r"^Dictionary\.save: .* is a folder; give the path of a file in it$"):
        MADE.save(tmp_path)

    def fail(_one: object, _other: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="the disk is full"):
        MADE.save(tmp_path / "words")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"^Dictionary\.load: file .*/none does not exist$"):
        tadoc.Dictionary.load(tmp_path / "none")
    with pytest.raises(InvalidDictionaryError, match=r"^Dictionary\.load: .* is a folder; a dictionary is one file$"):
        tadoc.Dictionary.load(tmp_path)
    with pytest.raises(TypeError, match="verify"):
        tadoc.Dictionary.load(tmp_path / "none", verify=1)  # type: ignore[arg-type]


def use(loaded: tadoc.Dictionary) -> None:
    """Everything that reads a trie: whatever it gives, it ends, and reads nothing outside the file."""
    for call in (
        lambda: loaded.ids(pl.Series([*WORDS, "", "no word", "x" * 1000])),
        lambda: loaded.words(pl.int_range(min(len(loaded), 2000), eager=True)),
        lambda: loaded.common_prefixes("word100 and more"),
        lambda: loaded.with_prefix("wo"),
        lambda: loaded.with_prefix("", limit=50),
        lambda: "word1" in loaded,
        lambda: repr(loaded),
        lambda: hash(loaded),
        lambda: pickle.dumps(loaded),
    ):
        with contextlib.suppress(InvalidDictionaryError):
            call()


def load(data: bytes, path: Path, verify: bool) -> tadoc.Dictionary:
    path.write_bytes(data)
    return tadoc.Dictionary.load(path, verify=verify)


def edges() -> Iterator[int]:
    """Lengths at which a file is cut short: around everything that begins or ends somewhere."""
    ends = [0, 8, 12, 16, 24, HEADER_BYTES, len(BYTES)]
    at = HEADER_BYTES
    for known in json.loads(BYTES[24:HEADER_BYTES])["arrays"]:
        size = np.dtype(known["dtype"]).itemsize * known["length"]
        ends += [at + size, at + size + -size % 64]
        at = ends[-1]
    yield from sorted({near for end in ends for near in range(end - 2, end + 3) if 0 <= near < len(BYTES)})


@pytest.mark.parametrize("verify", [True, False])
def test_cut_short(tmp_path: Path, verify: bool) -> None:
    for size in [*edges(), *range(0, len(BYTES), 997)]:
        with pytest.raises(InvalidDictionaryError, match=r"^Dictionary\.load: .*/words(\.| |$)"):
            load(BYTES[:size], tmp_path / "words", verify)


@pytest.mark.parametrize("more", [b"\0", bytes(64), BYTES])
@pytest.mark.parametrize("verify", [True, False])
def test_too_long(tmp_path: Path, more: bytes, verify: bool) -> None:
    with pytest.raises(InvalidDictionaryError, match=r"is damaged: it has [0-9,]+ bytes, not [0-9,]+; copy it again"):
        load(BYTES + more, tmp_path / "words", verify)


def test_flipped_bits_are_found() -> None:
    choose = random.Random(7)
    places = {*range(8 * HEADER_BYTES)} if len(BYTES) < FLIPS else set(choose.sample(range(8 * len(BYTES)), FLIPS))
    places |= set(choose.sample(range(8 * HEADER_BYTES), 500))
    for place in places:
        flipped = bytearray(BYTES)
        flipped[place // 8] ^= 1 << place % 8
        with pytest.raises(InvalidDictionaryError):
            storage.from_bytes(bytes(flipped))


HARM = """
import itertools, random, sys
from polars_tadoc.dictionary import file, storage
from polars_tadoc.errors import InvalidDictionaryError
from tests.dictionary import test_dictionary_files as this

def attempt(data):
    try:
        trie = storage._trie(*file.parse(data, False, "it"), "it")
    except InvalidDictionaryError:
        return 0
    this.use(this.tadoc.Dictionary(trie, verified=False))
    return 1

used = 0
for off in itertools.product((-1, 0, 1), repeat=4):
    used += attempt(this.with_header(lambda header: this.shift(header["numbers"], off)))
choose = random.Random(11)
for turn in range(int(sys.argv[1])):
    data = bytearray(this.BYTES)
    for _ in range(choose.choice([1, 1, 2, 50])):
        place = choose.randrange(8 * this.HEADER_BYTES, 8 * len(data))
        data[place // 8] ^= 1 << place % 8
    used += attempt(bytes(data))
print("used", used)
"""


def shift(numbers: dict[str, int], off: tuple[int, ...]) -> None:
    """Change a header's numbers."""
    for name, more in zip(numbers, off, strict=True):
        numbers[name] += more


@pytest.mark.slow
def test_what_is_not_verified_does_no_harm() -> None:
    """In a process of its own: a wild read would end it."""
    done = subprocess.run(
        [sys.executable, "-c", HARM, str(FLIPS // 4)], capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.removeprefix("used ")) > FLIPS // 4


def test_text_is_never_stored_wrong() -> None:
    """Compressed with a dictionary that is damaged and unverified it stays what it was, or there is an error."""
    text = pl.Series("text", [" ".join(WORDS[start::7]) for start in range(7)] + ["no word, ab日本 x"])
    choose, refused = random.Random(13), 0
    for _ in range(HARMED):
        data = bytearray(BYTES)
        place = choose.randrange(8 * HEADER_BYTES, 8 * len(data))
        data[place // 8] ^= 1 << place % 8
        trie = storage._trie(*file.parse(bytes(data), False, "it"), "it")
        try:
            column = tadoc.compress(text, dictionary=tadoc.Dictionary(trie, verified=False))
        except InvalidDictionaryError as error:
            assert str(error).startswith("Dictionary: its file is damaged (")  # noqa: PT017
            refused += 1
        else:
            (corpus,) = tadoc.column.split(column)
            grammar = payload.decode(payload.encode(corpus.grammar))  # which checks all of it
            assert grammar.vocabulary.equals(corpus.grammar.vocabulary)
            assert tadoc.decompress(column).equals(text)
    assert 0 < refused < HARMED


def test_damage_gets_no_checksums_of_its_own(tmp_path: Path) -> None:
    choose, refused = random.Random(17), 0
    for _ in range(50):
        data = bytearray(BYTES)
        place = choose.randrange(8 * HEADER_BYTES, 8 * len(data))
        data[place // 8] ^= 1 << place % 8
        loaded = load(bytes(data), tmp_path / "words", verify=False)
        try:
            loaded.save(tmp_path / "again")
        except InvalidDictionaryError:
            refused += 1
            with pytest.raises(InvalidDictionaryError):
                pickle.dumps(loaded)
        else:
            again = tadoc.Dictionary.load(tmp_path / "again")
            every = pl.int_range(len(again), dtype=pl.UInt32, eager=True)
            assert again.ids(again.words(every)).equals(every.alias("literal"), check_names=False)
    assert refused > 10


def with_header(change: Any) -> bytes:
    """The file with another header, its checksum right."""
    header = json.loads(BYTES[24:HEADER_BYTES])
    header = change(header) or header
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-(24 + len(text)) % 64)
    size = 24 + len(text)
    checksum = zlib.crc32(text, zlib.crc32(struct.pack("<IQ", 1, size)))
    return struct.pack("<8sIIQ", b"TADOCDIC", 1, checksum, size) + text + BYTES[HEADER_BYTES:]


def first_array(**values: Any) -> Any:
    return lambda header: header["arrays"][0].update(values)


MADE_UP = {
    "no JSON": lambda header: b"{" * 5000,
    "no object": lambda header: b"[]",
    "no UTF-8": lambda header: b'"\xff"',
    "no arrays": lambda header: header.pop("arrays") and None,
    "arrays of numbers": lambda header: header.update(arrays=[1]),
    "another dtype": first_array(dtype="<f8"),
    "objects": first_array(dtype="|O"),
    "no dtype": first_array(dtype="nonsense"),
    "shorter": first_array(length=0),
    "negative": first_array(length=-1),
    "huge": first_array(length=1 << 62),
    "no length": first_array(length="many"),
    "a length in words": lambda header: header["arrays"][0].update(length=str(header["arrays"][0]["length"])),
    "a length with a point": lambda header: header["arrays"][0].update(length=float(header["arrays"][0]["length"])),
    "endless": first_array(length=float("inf")),
    "no number": first_array(length=float("nan")),
    "another name": first_array(name="other"),
    "a number missing": lambda header: header["numbers"].clear(),
    "no numbers": lambda header: header.pop("numbers") and None,
    "numbers in words": lambda header: header.update(numbers=dict.fromkeys(header["numbers"], "many")),
    "numbers as strings": lambda header: header.update(numbers={k: str(v) for k, v in header["numbers"].items()}),
    "numbers with a point": lambda header: header.update(numbers={k: float(v) for k, v in header["numbers"].items()}),
    "numbers endless": lambda header: header.update(numbers=dict.fromkeys(header["numbers"], float("inf"))),
    "numbers true": lambda header: header.update(numbers=dict.fromkeys(header["numbers"], True)),
    "numbers negative": lambda header: header.update(numbers=dict.fromkeys(header["numbers"], -1)),
    "numbers huge": lambda header: header.update(numbers=dict.fromkeys(header["numbers"], 1 << 80)),
}


@pytest.mark.parametrize("change", MADE_UP)
@pytest.mark.parametrize("verify", [True, False])
def test_made_up_headers(tmp_path: Path, change: str, verify: bool) -> None:
    with pytest.raises(InvalidDictionaryError, match=r"^Dictionary\.load: .*/words is damaged: .*; copy it again from"):
        load(with_header(MADE_UP[change]), tmp_path / "words", verify)


def test_other_files(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("to\nbe\n")
    with pytest.raises(
        InvalidDictionaryError, match=r"words is not a saved dictionary, or its first bytes are damaged"
    ):
        tadoc.Dictionary.load(tmp_path / "words")
    newer = BYTES[:8] + struct.pack("<I", 2) + BYTES[12:]
    with pytest.raises(InvalidDictionaryError, match="has format version 2, this polars_tadoc reads version 1"):
        load(newer, tmp_path / "words", verify=False)


def test_the_message_names_what_is_damaged(tmp_path: Path) -> None:
    data = bytearray(BYTES)
    data[-70] ^= 1
    names = "|".join(known["name"] for known in json.loads(BYTES[24:HEADER_BYTES])["arrays"])
    with pytest.raises(
        InvalidDictionaryError, match=rf"words is damaged: the checksum of array ({names}) does not match"
    ):
        load(bytes(data), tmp_path / "words", verify=True)


def test_large_arrays_are_written_and_checked_in_pieces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An interrupt waits for one piece."""
    words = pl.Series([f"word{number}" for number in range(500)])
    known = tadoc.Dictionary.from_words(words)
    known.save(tmp_path / "whole")
    monkeypatch.setattr(file, "AT_ONCE", 100)
    known.save(tmp_path / "pieces")
    assert (tmp_path / "pieces").read_bytes() == (tmp_path / "whole").read_bytes()
    assert tadoc.Dictionary.load(tmp_path / "whole") == known
    contents, arrays = file.read(tmp_path / "whole", True)
    header, *chunks = list(file.to_chunks(contents, arrays))[1:]
    assert max(len(chunk) for chunk in chunks) == 100
    assert len(header) > 100
