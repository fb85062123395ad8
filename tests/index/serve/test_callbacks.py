"""Callbacks of queries cannot end a server."""

from __future__ import annotations

from contextlib import suppress

import polars as pl
import pytest

import polars_tadoc as tadoc  # noqa: F401


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), KeyboardInterrupt()])
@pytest.mark.parametrize("query", ["to " * 2000, "\udc80"])
def test_a_callback_that_raises_ends_no_server(error: BaseException, query: str) -> None:
    def fail(_: object) -> None:
        raise error

    index = pl.DataFrame({"text": ["to be or not", "to do"] * 20}).tadoc.build_index("text")
    with index.serve(engine="cpu") as server:
        for _ in range(20):
            future = server.submit(query)
            with suppress(SystemExit, KeyboardInterrupt):  # it was done: the callback ran here
                future.add_done_callback(fail)
        assert server.submit("do").result(20).height == 10
