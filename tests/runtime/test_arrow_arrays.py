"""What calls don't load: pandas, and what Numba needs only to compile."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa

from polars_tadoc.runtime.arrow_arrays import bools, copied, strings

CALLS = """
import sys, tempfile
import polars as pl, polars_tadoc as tadoc

df = pl.DataFrame({"id": range(40), "text": [f"the file {k % 7} to be" for k in range(40)]})
column = df.tadoc.compress("text", rows_per_grammar=20)
with tempfile.TemporaryDirectory() as folder:
    column.tadoc.write_packed(f"{folder}/a.parquet")
    scan = tadoc.scan_packed(f"{folder}/a.parquet").tadoc
    counts = ["word_count", "sort", "inverted_index", "term_vector", "cooccurrence", "tfidf", "bm25_weights"]
    for name in [*counts, "sequence_count", "ranked_inverted_index"]:
        more = {} if name in counts else {"n": 2}
        getattr(column.tadoc, name)("text", **more)
        getattr(df.tadoc, name)("text", **more)
        limited = getattr(scan, name)("text", memory_limit="300MB", checkpoint=f"{folder}/{name}", **more)
        limited.tadoc.sink_parquet(f"{folder}/result.parquet")
    for text in (column["text"], df["text"]):
        tadoc.content_hash(text)
    column.tadoc.decompress("text"), column.tadoc.recompress(), tadoc.to_csr(column["text"])
    tadoc.equals(column["text"], column["text"].shift(1)), tadoc.tail(column["text"], 2)
    tadoc.count_phrase(column["text"], "the file"), tadoc.bm25(column["text"], "the file")
    index = column.tadoc.build_index("text", id="id")
    index.search(["the file", "to"])
    index.save(f"{folder}/index")
    index = tadoc.load_index(f"{folder}/index")
    index.search(["the file", "to"])
    index.append(column["text"], id=column["id"] + 100).delete([1]).compact().save(f"{folder}/index", overwrite=True)
    df.lazy().tadoc.compress("text").tadoc.sink_index(f"{folder}/other")
    df.lazy().tadoc.compress("text").tadoc.sink_packed(f"{folder}/b.parquet")
    tadoc.Dictionary.from_words(df["text"].unique()).save(f"{folder}/dictionary")
    df.tadoc.compress("text", like=column["text"])
print(*sorted({"pandas", "numba.misc.gdb_hook"} & sys.modules.keys()))
"""


def test_calls_import_neither_pandas_nor_what_compiles() -> None:
    """Pandas takes 35 MB and a second in which an interrupt is lost; what Numba compiles with, 60 MB and half one."""
    command = [sys.executable, "-c", CALLS]
    for _ in range(2):  # the first process compiles kernels that are in no cache
        if (imported := subprocess.run(command, capture_output=True, text=True, check=True).stdout) == "\n":
            break
    assert imported == "\n"


def test_arrays() -> None:
    given = pa.array([True, False, True, True] * 5)
    for first, count in ((0, 20), (3, 11), (9, 0), (19, 1)):
        some = given.slice(first, count)
        assert bools(some).tolist() == some.to_pylist()
    numbers = np.arange(7, dtype=np.uint32)[::2]
    made = copied(numbers)
    made.validate(full=True)
    assert made.type == pa.uint32()
    assert made.to_pylist() == [0, 2, 4, 6]
    assert strings([]).equals(pa.array([], pa.large_string()))
    assert strings(["a", "ß"]).equals(pa.array(["a", "ß"], pa.large_string()))
