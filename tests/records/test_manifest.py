"""The manifest of a checkpoint: no change of it is taken, whatever it says then."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidRecordsError
from polars_tadoc.records import Checkpoint
from polars_tadoc.records.checkpoint import manifest_text

PARTITIONS = 3
MUTATIONS = int(os.environ.get("TADOC_MANIFEST_MUTATIONS", "600"))
"""Of each kind: bytes, JSON, and JSON under a right checksum."""

VALUES: list[Any] = [None, True, -1, 0, 1, 2, 7, 1 << 70, 0.5, "", "run-000002", [], [[0, 1]], [0, 2], {}, {"a": [1]}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Packed files, and the checkpoint of a call over them that is finished."""
    folder = tmp_path_factory.mktemp("manifest")
    for place in range(PARTITIONS):
        df = pl.DataFrame({"text": [f"the cat w{place} saw w{row % 5}" for row in range(20)]}).tadoc.compress("text")
        df.tadoc.write_packed(folder / f"{place}.parquet")
    asked(folder).collect()
    return folder


def asked(folder: Path, **more: Any) -> pl.LazyFrame:
    files = sorted(folder.glob("*.parquet"))
    given = {"memory_limit": "300MB", "checkpoint": folder / "kept", **more}
    return tadoc.scan_packed(files).tadoc.word_count("text", **given)


def places(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Give where each value of some JSON stands."""
    yield at
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for name, value in inside:
        yield from places(value, (*at, name))


def changed_json(said: Any, chance: random.Random) -> Any:
    """Put another value somewhere, or take one away, or add one."""
    tree = json.loads(json.dumps(said))
    where = chance.choice([place for place in places(tree) if place])
    around = tree
    for name in where[:-1]:
        around = around[name]
    how = chance.choice(["put", "put", "put", "near", "take", "add"])
    if how == "take":
        del around[where[-1]]
    elif how == "add" and isinstance(around, list):
        around.insert(where[-1], chance.choice([*VALUES, around[0]]))
    elif how == "near" and type(around[where[-1]]) is int:
        around[where[-1]] += chance.choice([-1, 1, 1 << 20])
    else:
        around[where[-1]] = chance.choice(VALUES)
    return tree


def changed_bytes(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content))
    how = chance.choice(["flip", "flip", "digit", "cut", "insert", "remove"])
    if how == "flip":
        return content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]
    if how == "digit":
        digits = [at for at, byte in enumerate(content) if 48 <= byte < 58]
        place = chance.choice(digits)
        return content[:place] + str(chance.randrange(10)).encode() + content[place + 1 :]
    if how == "cut":
        return content[:place]
    if how == "remove":
        return content[:place] + content[place + 1 :]
    return content[:place] + chance.choice([b" ", b"0", b"1", b",", b"\n", b"\xff"]) + content[place:]


def named(folder: Path) -> bool:
    """Make the call again; tell whether what is wrong was named."""
    try:
        question = json.loads((folder / "sound.json").read_text())["question"]
        Checkpoint(folder / "kept", question, "word_count", PARTITIONS).close()
    except InvalidRecordsError as error:
        assert "manifest.json is damaged" in str(error) or "/kept/run-" in str(error)  # noqa: PT017
        return True
    except ValueError as error:
        assert "was made for another question" in str(error)  # noqa: PT017
        return True
    return False


@pytest.mark.parametrize("kind", ["bytes", "JSON", "sealed JSON"])
def test_no_change_of_a_manifest_is_taken(folder: Path, kind: str) -> None:
    """Under a right checksum, which chance does not make, nothing unnamed is raised either."""
    path, chance = folder / "kept" / "manifest.json", random.Random(kind)
    sound = path.read_bytes()
    (folder / "sound.json").write_bytes(sound)
    said = json.loads(sound)
    kept = {file.name: file.read_bytes() for file in (folder / "kept").iterdir()}
    taken = 0
    try:
        for _ in range(MUTATIONS):
            if kind == "bytes":
                content = changed_bytes(sound, chance)
            else:
                tree = changed_json(said, chance)
                content = (manifest_text(tree) if kind == "sealed JSON" and tree else json.dumps(tree)).encode()
            if content == sound:
                continue
            path.write_bytes(content)
            if not named(folder):
                taken += 1
                assert kind == "sealed JSON"
            for name in kept.keys() - {file.name for file in (folder / "kept").iterdir()}:
                (folder / "kept" / name).write_bytes(kept[name])  # files of runs that the change had taken away
    finally:
        for name, content in kept.items():
            (folder / "kept" / name).write_bytes(content)
    assert taken < MUTATIONS // 4
    expected = asked(folder, memory_limit=None, checkpoint=None).collect()
    assert asked(folder).collect().equals(expected)


def test_counts_are_right_or_the_manifest_is_refused(folder: Path) -> None:
    """The whole call, of numbers that are changed: partitions that are covered, sizes and checksums of runs."""
    path = folder / "kept" / "manifest.json"
    sound = path.read_bytes()
    expected = asked(folder, memory_limit=None, checkpoint=None).collect()
    digits = [at for at, byte in enumerate(sound) if 48 <= byte < 58]
    try:
        for at in digits[:: max(len(digits) // 40, 1)]:
            path.write_bytes(sound[:at] + bytes([48 + (sound[at] - 47) % 10]) + sound[at + 1 :])
            with pytest.raises((InvalidRecordsError, pl.exceptions.ComputeError), match=r"manifest\.json is damaged"):
                asked(folder).collect()
    finally:
        path.write_bytes(sound)
    assert asked(folder).collect().equals(expected)


def test_a_checkpoint_of_an_older_release_is_refused_by_name(folder: Path) -> None:
    """Its manifest had no checksum."""
    path = folder / "kept" / "manifest.json"
    sound = path.read_bytes()
    said = json.loads(sound)
    del said["crc32"]
    try:
        path.write_text(json.dumps(said))
        with pytest.raises(
            (InvalidRecordsError, pl.exceptions.ComputeError),
            match=r"word_count: .*manifest\.json is damaged, or written by an older polars_tadoc, without a checksum; "
            r"delete the checkpoint and start again",
        ):
            asked(folder).collect()
    finally:
        path.write_bytes(sound)
