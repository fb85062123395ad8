"""Codecs of postings, by name."""

from __future__ import annotations

from polars_tadoc.index.codecs.codec import Codec as Codec
from polars_tadoc.index.codecs.pfordelta import PForDelta as PForDelta
from polars_tadoc.index.codecs.rice import Rice as Rice
from polars_tadoc.kernels.postings.coded import Postings

CODECS: dict[str, Codec] = {codec.name: codec for codec in (PForDelta(), Rice())}


def require_codec(name: str) -> Codec:
    """Return the codec with a name.

    Raises
    ------
    ValueError
        The name is unknown; the message lists the known ones.

    """
    if name not in tuple(CODECS):  # a tuple, as unhashable values may be given
        raise ValueError(f"codec={name!r}: use {' or '.join(map(repr, CODECS))}")
    return CODECS[name]


def codec_of(postings: Postings) -> Codec:
    """Return the codec of some postings."""
    return next(codec for codec in CODECS.values() if codec.number == postings.codec)
