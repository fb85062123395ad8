"""Codecs of postings, by name."""

from __future__ import annotations

from polars_tadoc.index.codecs.codec import Codec as Codec
from polars_tadoc.index.codecs.pfordelta import PForDelta as PForDelta
from polars_tadoc.index.codecs.rice import Rice as Rice

CODECS: dict[str, Codec] = {codec.name: codec for codec in (PForDelta(), Rice())}


def require_codec(name: str) -> Codec:
    """Return the codec of a name.

    Raises
    ------
    ValueError
        There is none; the message lists those there are.

    """
    if name not in tuple(CODECS):  # which takes what has no hash, too
        names = ", ".join(f'"{known}"' for known in CODECS)
        raise ValueError(f'there is no codec "{name}"; the codecs are {names}')
    return CODECS[name]
