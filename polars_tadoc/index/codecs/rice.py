"""Rice: binary low bits, unary high parts."""

from __future__ import annotations

import numpy as np

from polars_tadoc.errors import InvalidIndexError
from polars_tadoc.index.codecs.codec import Codec, Parts, check_bits
from polars_tadoc.kernels.postings.coded import BLOCK, RICE, SPARE_BYTES, Stream
from polars_tadoc.kernels.postings.packed_numbers import find_blocks
from polars_tadoc.runtime.array_types import Int64


class Rice(Codec):
    """Rice coding after Ding et al. (WWW 2009, section 4.1): unary and binary parts are stored separately."""

    name = "rice"
    number = RICE
    high_parts = ("unary",)

    def _pack_high(self, sizes: Int64, block_offsets: Int64, stream: Stream) -> Parts:
        return {"unary": stream.unary}

    def _unpack_high(self, parts: Parts, name: str, sizes: Int64, block_offsets: Int64, stream: Stream) -> Stream:
        unary, total = parts["unary"], int(sizes.sum())
        check_bits(unary, f"{name}.unary", 8 * max(0, unary.size // 8 * 8 - SPARE_BYTES))
        if total > 8 * len(unary):
            raise InvalidIndexError(f"{name}: {len(unary)} bytes cannot hold {total} unary numbers")
        block_sizes = np.full(int(block_offsets[-1]), BLOCK, np.int64)
        block_sizes[block_offsets[1:] - 1] = (sizes - 1) % BLOCK + 1
        unary_offsets = np.empty(len(block_sizes) + 1, np.int64)
        words = np.require(unary[: len(unary) - SPARE_BYTES].view(np.uint64), requirements="A")
        if not find_blocks(words, block_sizes, unary_offsets):
            raise InvalidIndexError(f"{name}: there are fewer than {total} unary numbers")
        check_bits(unary, f"{name}.unary", int(unary_offsets[-1]))
        return stream._replace(unary=unary, unary_offsets=unary_offsets)
