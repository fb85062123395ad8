"""Dataclasses that hold arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

Class = TypeVar("Class")


@dataclass_transform(eq_default=False, frozen_default=True)
def array_dataclass(cls: type[Class]) -> type[Class]:
    """Make a frozen dataclass whose instances are compared and hashed by identity: ``==`` of arrays is no bool.

    Examples
    --------
    >>> import numpy as np
    >>> @array_dataclass
    ... class Postings:
    ...     documents: np.ndarray
    >>> one = Postings(np.arange(2))
    >>> one == one, one == Postings(np.arange(2)), len({one})
    (True, False, 1)

    """
    return dataclass(frozen=True, eq=False)(cls)
