"""Indices written beyond memory: the files are those that the index built in memory would save."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.index import pieces
from polars_tadoc.index.codecs import CODECS, require_codec
from polars_tadoc.index.codecs.numbers import pack_numbers, pack_streamed
from polars_tadoc.index.folder import Reader, Writer
from polars_tadoc.index.pieces import PostingsWriter
from polars_tadoc.index.spool import Spool

numbers = st.one_of(st.integers(0, 3), st.integers(0, 300), st.integers(0, (1 << 56) - 1))


@given(numbers=st.lists(numbers, max_size=300), size=st.integers(1, 5))
def test_streamed_numbers_are_packed_as_those_in_memory(numbers: list[int], size: int) -> None:
    given = np.array(numbers, np.uint64)
    with tempfile.TemporaryDirectory() as folder:
        made = iter(range(100))

        class Short(Spool):
            def chunks(self, _size: int = 0) -> Iterator[npt.NDArray[Any]]:
                return super().chunks(8 * size)

        def spool() -> Spool:
            return Short(Path(folder) / str(next(made)), np.uint64)

        held, data = spool(), bytearray()
        held.append(given)
        pack_streamed(held, spool, data.extend)
    assert bytes(data) == pack_numbers(given).tobytes()


sizes = st.one_of(st.integers(1, 4), st.sampled_from([127, 128, 129, 256, 300]))


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.data(), lists=st.lists(sizes, max_size=12), seed=st.integers(0, 1 << 30))
def test_lists_in_pieces_fill_the_files_of_all_at_once(
    codec: str, data: st.DataObject, lists: list[int], seed: int
) -> None:
    random = np.random.default_rng(seed)
    documents = 1000
    held = [np.sort(random.choice(documents, size, replace=False)).astype(np.uint32) for size in lists]
    counts = [np.minimum(random.zipf(1.3, size), 1 << 31).astype(np.uint32) for size in lists]
    how = require_codec(codec)
    expected = how.pack(how.encode(*_joined(held, counts), documents))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "LONG", 128)
        scratch, saved = Path(folder) / "scratch", Path(folder) / "saved"
        scratch.mkdir()
        saved.mkdir()
        lists_writer, writer = PostingsWriter(how, scratch), Writer(saved)
        at = 0
        while at < len(held):
            step = data.draw(st.integers(0, 4))
            if step:
                lists_writer.append(*_joined(held[at : at + step], counts[at : at + step]))
            else:
                spools = [Spool(scratch / name, np.uint32) for name in ("long documents", "long counts")]
                spools[0].append(held[at])
                spools[1].append(counts[at])
                lists_writer.append_long(*spools)
            at += max(step, 1)
        assert lists_writer.finish(writer, "segment") == list(expected)
        writer.finish({})
        reader = Reader(saved, verify=True, mapped=False)
        found = {name: reader.array(f"segment.{name}") for name in expected}
    for name, array in expected.items():
        assert found[name].dtype == array.dtype, name
        assert found[name].tobytes() == array.tobytes(), name


def _joined(
    documents: list[npt.NDArray[np.uint32]], counts: list[npt.NDArray[np.uint32]]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    none = np.zeros(0, np.uint32)
    offsets = np.cumsum([0, *map(len, documents)])
    return offsets, np.concatenate([none, *documents]), np.concatenate([none, *counts])
