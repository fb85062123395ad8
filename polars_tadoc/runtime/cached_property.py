"""Attributes computed on first access and kept."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property:  # noqa: N801 - named like functools' class
        """Like that of ``functools`` from Python 3.12 on: without a lock shared by all objects of a class.

        With such a lock, the computing thread could wait for Polars' threads, while these run functions of ours that
        wait for the lock. Without it two threads may compute the same value: both get the one that is kept.
        """

        def __init__(self, function: Any) -> None:
            self._function = function
            self.__doc__ = function.__doc__

        def __set_name__(self, _owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, _owner: type | None = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self._name, self._function(instance))
