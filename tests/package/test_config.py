from __future__ import annotations

from pathlib import Path

import pytest

import polars_tadoc as tadoc
from polars_tadoc.config import settings, thread_count
from polars_tadoc.errors import LimitExceededError
from tests import handmade


def test_block_puts_back_what_was() -> None:
    tadoc.Config.set(threads=3)
    with tadoc.Config(threads=1, engine="cpu"):
        assert (tadoc.Config.get("threads"), tadoc.Config.get("engine"), thread_count()) == (1, "cpu", 1)
        with tadoc.Config(threads=2):
            assert (tadoc.Config.get("threads"), tadoc.Config.get("engine")) == (2, "cpu")
        assert tadoc.Config.get("threads") == 1
    assert (tadoc.Config.get("threads"), tadoc.Config.get("engine")) == (3, "auto")
    tadoc.Config.reset()
    assert tadoc.Config.get("threads") == 0
    assert thread_count() >= 1


def test_block_puts_back_after_an_error() -> None:
    with pytest.raises(KeyError), tadoc.Config(threads=1):
        raise KeyError
    assert tadoc.Config.get("threads") == 0


def test_one_block_used_twice() -> None:
    config = tadoc.Config(threads=1)
    with config, config:
        assert tadoc.Config.get("threads") == 1
    assert tadoc.Config.get("threads") == 0


def test_options_are_checked_at_once() -> None:
    with pytest.raises(TypeError, match=r"Config has no option 'thread'; did you mean threads\? options are .*threads"):
        tadoc.Config(thread=1)
    with pytest.raises(ValueError, match='engine="cuda" is not one of auto, cpu, gpu'):
        tadoc.Config(engine="cuda")
    with pytest.raises(ValueError, match='device_memory="host" is not one of auto, device, unified'):
        tadoc.Config(device_memory="host")
    for value in (-1, 1.5, "2", True, None):
        for option in ("threads", "host_cache_bytes", "device_cache_bytes", "expansion_limit", "payload_limit_bytes"):
            with pytest.raises(ValueError, match=f"{option}=.* must be an integer"):
                tadoc.Config(**{option: value})


def test_spill_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tadoc.Config.get("spill_folder") is None
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "b").mkdir()
    here = str(tmp_path / "b")
    for given, known in ((tmp_path / "b", here), (here, here), ("~/b", here), (None, None)):
        with tadoc.Config(spill_folder=given):
            assert tadoc.Config.get("spill_folder") == known
    for value in (3, b"/a", True, "", "s3://bucket/a"):
        with pytest.raises(ValueError, match=r"spill_folder=.* must be the path of a local folder, or None"):
            tadoc.Config(spill_folder=value)
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError, match=r'^Config: spill_folder=".*/gone" does not exist; create it, or '):
        tadoc.Config(spill_folder=tmp_path / "gone")
    with pytest.raises(NotADirectoryError, match=r'^Config: spill_folder=".*/file" is a file; give the path of '):
        tadoc.Config.set(spill_folder=tmp_path / "file")
    assert tadoc.Config.get("spill_folder") is None
    with tadoc.Config(spill_folder=here):
        (tmp_path / "b").rmdir()  # a folder that is removed later is named by calls that need it


@pytest.mark.parametrize("option", ["engine", "threads", "host_cache_bytes", "expansion_limit", "payload_limit_bytes"])
def test_get(option: str) -> None:
    assert tadoc.Config.get(option) == getattr(settings(), option)


@pytest.mark.parametrize("value", [1 << 57, (1 << 63) - 1, 1 << 64, 1 << 80])
def test_limits_stay_far_from_64_bits(value: int) -> None:
    """A sum is compared with its limit after one addition: it must not have wrapped by then."""
    with pytest.raises(ValueError, match="must be an integer from 0 to"):
        tadoc.Config(expansion_limit=value)


def test_the_largest_limit_still_limits() -> None:
    chain = handmade.grammar(["a"], [[k, k] for k in range(70)]).to_arrow()
    with tadoc.Config(expansion_limit=1 << 56), pytest.raises(LimitExceededError, match="rule 56 expands to more"):
        tadoc.Grammar.from_arrow(chain)
    many = handmade.grammar(["a"], [[0, 0], *([k] * 100 for k in range(1, 20))]).to_arrow()
    with tadoc.Config(expansion_limit=1 << 56), pytest.raises(LimitExceededError):
        tadoc.Grammar.from_arrow(many)


def test_blocks_end_in_any_order() -> None:
    """Two threads, or generators, whose blocks overlap leave what was before them."""
    before = tadoc.Config.get("expansion_limit")
    first, second = tadoc.Config(expansion_limit=5), tadoc.Config(expansion_limit=7)
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert tadoc.Config.get("expansion_limit") == 7
    second.__exit__()
    assert tadoc.Config.get("expansion_limit") == before


def test_set_within_a_block_holds_at_once_and_after_it() -> None:
    try:
        with tadoc.Config(threads=3):
            tadoc.Config.set(threads=2)
            assert tadoc.Config.get("threads") == 2
        assert tadoc.Config.get("threads") == 2
    finally:
        tadoc.Config.reset()
