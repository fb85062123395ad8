"""Files of dictionaries: numbers and arrays of the trie edited under right checksums, or the bytes; and any words."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from polars_tadoc.dictionary import file as container
from tests.fuzz.script import Script, edit_bytes, edit_json, edit_numbers
from tests.fuzz.target import Refused, Target, folder, may_refuse

WORDS = [
    ["to", "be", "or", "not", "bee", "beer", "toe", "notable", "日本", "日", "naïve"],
    [f"{stem}{number}" for stem in ("user", "useful", "x", "") for number in range(80) if stem or number],
    [],
    ["a" * length for length in range(1, 40)],
]
SOUGHT = ["to", "bee", "user7", "日本", "zz", "", "a" * 30, "useful79x"]


@cache
def samples() -> list[bytes]:
    """The files of small dictionaries."""
    found = []
    for words in WORDS:
        path = folder() / "sample.dictionary"
        tadoc.Dictionary.from_words(pl.Series(words, dtype=pl.String)).save(path)
        found.append(path.read_bytes())
    return found


def edited(script: Script) -> bytes:
    """Make the file that a script asks for."""
    sample = script.pick(samples())
    kind = script.number(3)
    if kind == 0:
        data = bytearray(sample)
        while script.left > 8:
            edit_bytes(script, data)
        return bytes(data)
    header, arrays = container.parse(sample, True, "sample")
    contents = {name: value for name, value in header.items() if name != "arrays"}
    for _ in range(script.number(3)):
        if script.number(3) == 0:
            changed = edit_json(script, contents)
            contents = changed if isinstance(changed, dict) else contents
            continue
        name = script.pick(list(arrays))
        values = arrays[name]
        bits = 8 * values.itemsize
        numbers = values.tolist()
        count = len(numbers)
        edit_numbers(script, numbers, bits)
        if kind == 1:  # as many as before, so that they get past the first checks
            numbers = (numbers + [0] * count)[:count]
        arrays[name] = np.array(numbers, values.dtype)
    try:
        return b"".join(container.to_chunks(contents, arrays))
    except ValueError:  # the edited header is none that JSON can hold
        return sample


def check(data: bytes) -> bool:
    """Load a dictionary, and look words up both ways; or make one of words, and hold it to them."""
    script = Script(data)
    if script.number(7) == 7:
        _made(script)
        return False
    path = folder() / "words.dictionary"
    path.write_bytes(edited(script))
    try:
        with may_refuse():
            dictionary = tadoc.Dictionary.load(path, verify=bool(script.number(1)))
    except Refused:
        return False
    for kind in {script.number(5) for _ in range(2)}:
        try:
            with may_refuse():
                _use(dictionary, kind)
        except Refused:
            continue
    return True


def _use(dictionary: tadoc.Dictionary, kind: int) -> None:
    size = len(dictionary)
    if kind == 0:
        ids = dictionary.ids(pl.Series(SOUGHT))
        assert ids.max() is None or int(ids.max()) <= dictionary.unknown  # type: ignore[arg-type]
        assert [word in dictionary for word in SOUGHT] == (ids != dictionary.unknown).to_list()
    elif kind == 1:
        asked = pl.Series([0, size // 2, max(size - 1, 0), size], dtype=pl.UInt32)
        words = dictionary.words(asked.filter(asked <= size))
        words.to_arrow(compat_level=pl.CompatLevel.oldest()).validate(full=True)
    elif kind == 2:
        for word in ("beer", "user79", "a" * 50):
            dictionary.common_prefixes(word)
            dictionary.with_prefix(word[:1], limit=20)
    elif kind == 3:
        dictionary.with_prefix("")
        hash(dictionary)
    elif kind == 4:
        text = pl.Series(["to be or not to be, user7 user7", "zz a aa", ""])
        assert tadoc.decompress(tadoc.compress(text, dictionary=dictionary)).equals(text)
    else:
        again = folder() / "again.dictionary"
        dictionary.save(again)
        assert tadoc.Dictionary.load(again) == dictionary


def _made(script: Script) -> None:
    """Make a dictionary of words, and hold it to them."""
    words = sorted({part.decode(errors="replace") for part in script.take(1 << 10).split(b"\xff")} - {""})
    words = [word for word in words if "\0" not in word]
    dictionary = tadoc.Dictionary.from_words(pl.Series(words, dtype=pl.String))
    ids = dictionary.ids(pl.Series(words, dtype=pl.String))
    assert sorted(ids) == list(range(len(words)))
    assert dictionary.words(ids).to_list() == words
    for word in words[:3]:
        expected = [other for other in words if word.startswith(other)]
        assert sorted(dictionary.common_prefixes(word)["word"]) == sorted(expected)
        expected = [other for other in words if other.startswith(word[:1])]
        assert sorted(dictionary.with_prefix(word[:1])["word"]) == sorted(expected)
    near = [word[:-1] + "x" for word in words] + [word + "x" for word in words]
    found = dictionary.ids(pl.Series(near, dtype=pl.String)).to_list()
    known = set(words)
    assert all((number != dictionary.unknown) == (word in known) for number, word in zip(found, near, strict=True))


def seeds() -> list[bytes]:
    """The samples as they are, words, and scripts of any choices."""
    chance = random.Random(4)
    sound = [bytes([0, number, 1, 0, 1, *uses]) for number in range(4) for uses in ((0, 1), (2, 3), (4, 5))]
    made = [b"\x07" + "\xff".join(words).encode("latin1", "replace")[:400] for words in WORDS]
    return [*sound, *made, *(chance.randbytes(chance.choice([8, 20, 60])) for _ in range(60))]


TARGET = Target("dictionary", check, seeds())
