"""Functions that tests compile, here and in processes of their own: pytest rewrites only modules of tests."""

from __future__ import annotations

import json

from numba.core.dispatcher import Dispatcher

from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.machine_code.content import content_of
from polars_tadoc.runtime.machine_code.signatures import modules


def twice(number: int) -> int:
    return 2 * number


def compile_twice(number: int = 21) -> tuple[int, int]:
    """Compile a function anew, and return how often its machine code was found and how often not."""
    made = njit(nogil=True)(twice)
    assert made(number) == 2 * number
    return sum(made.stats.cache_hits.values()), sum(made.stats.cache_misses.values())


def keys() -> dict[str, str]:
    """Return the key of each kernel of the package, by name."""
    kernels = {value for module in modules() for value in vars(module).values() if isinstance(value, Dispatcher)}
    return {f"{one.py_func.__module__}.{one.py_func.__qualname__}": content_of(one.py_func) for one in kernels}


def main() -> None:
    """Print the keys."""
    print(json.dumps(keys()))


if __name__ == "__main__":
    main()
