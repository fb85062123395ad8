"""A process that was forked after Polars had started its threads: each call says so, none waits for ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="other systems do not name threads")]

SETUP = """
import os, signal, sys
import polars as pl
import polars_tadoc as tadoc

text = pl.Series("text", ["to be or not to be", "to do is to be"] * 50)
xml = pl.Series("xml", ["<a><b/></a>"] * 9)
"""

USE = """
column = text.tadoc.compress()
frame, lazy = column.to_frame(), column.to_frame().lazy()
twigs = tadoc.TwigSet({"a": "//a/b"})
documents = xml.tadoc.compress(tokenizer="xml")
index = tadoc.build_index(column)
index.save(sys.argv[1] + "/index")
lazy.tadoc.sink_packed(sys.argv[1] + "/packed.parquet")
dictionary = tadoc.Dictionary.from_words(pl.Series(["to", "be"]))
scan = tadoc.scan_packed(sys.argv[1] + "/packed.parquet")
packed = frame.tadoc.pack("text")
frame.write_parquet(sys.argv[1] + "/rows.parquet")
"""

CALLS = [
    "text.tadoc.compress()",
    "text.to_frame().tadoc.compress('text')",
    "text.to_frame().lazy().tadoc.compress('text').collect()",
    "text.to_frame().select(pl.col('text').tadoc.compress())",
    "tadoc.compress(text)",
    "tadoc.decompress(column)",
    "column.tadoc.decompress()",
    "tadoc.recompress(column)",
    "tadoc.word_count(column)",
    "frame.tadoc.word_count('text')",
    "lazy.tadoc.word_count('text').collect()",
    "lazy.tadoc.sequence_count('text', memory_limit='300MB').collect()",
    "tadoc.term_vector(column)",
    "tadoc.tfidf(text)",
    "tadoc.to_csr(column)",
    "tadoc.sort(column)",
    "tadoc.cooccurrence(column)",
    "tadoc.info(column)",
    "tadoc.bm25(column, 'to')",
    "tadoc.head(column, 2)",
    "tadoc.extract(column, 0, 2)",
    "tadoc.contains_any(column, ['to'])",
    "tadoc.count_phrase(column, 'to be')",
    "tadoc.contains(column, 'to be', literal=True)",
    "tadoc.token_count(column)",
    "tadoc.twig_filter(documents, twigs)",
    "tadoc.build_index(column)",
    "tadoc.load_index(sys.argv[1] + '/index')",
    "index.search('to')",
    "index.save(sys.argv[1] + '/other')",
    "index.append(column)",
    "tadoc.scan_packed(sys.argv[1] + '/packed.parquet').collect()",
    "scan.tadoc.word_count('text').collect()",
    "lazy.tadoc.sink_packed(sys.argv[1] + '/again.parquet')",
    "lazy.tadoc.sink_index(sys.argv[1] + '/again', 'text')",
    "lazy.tadoc.sink_parquet(sys.argv[1] + '/again.parquet')",
    "packed.tadoc.unpack('text')",
    "frame.tadoc.pack('text')",
    "tadoc.parquet_info(sys.argv[1] + '/rows.parquet')",
    "tadoc.Dictionary.from_words(pl.Series(['to']))",
    "dictionary.ids(pl.Series(['to']))",
    "tadoc.distributed.Workers(cpus=1)",
]

EACH = """
for call in sys.argv[2:]:
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a call that waits
        try:
            eval(call)
        except tadoc.errors.ForkedProcessError as error:
            if "forkserver" not in str(error):
                os._exit(3)
            os._exit(0)
        except BaseException as error:
            print(call, type(error), error, flush=True)
            os._exit(2)
        os._exit(1)
    status = os.waitpid(child, 0)[1]
    if status:
        print(call, "has run" if status == 256 else status, flush=True)
"""

BEFORE = """
child = os.fork()
if child == 0:
    signal.alarm(100)
    column = text.tadoc.compress()
    os._exit(0 if tadoc.word_count(column, top=1).to_pydict()["word"] == ["to"] else 1)
print(os.waitpid(child, 0)[1])
"""

POOLS = """
import multiprocessing

def count(words):
    return tadoc.word_count(pl.Series("text", words).tadoc.compress(), engine="cpu").num_rows

if __name__ == "__main__":
    count(["to be"])
    with multiprocessing.get_context("fork").Pool(1) as pool:
        try:
            pool.apply_async(count, (["to be"],)).get(60)
        except tadoc.errors.ForkedProcessError as error:
            print("named")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply_async(count, (["to be"],)).get(120))
"""


def run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code, *arguments]
    done = subprocess.run(command, check=False, timeout=400, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_call_says_so(tmp_path: Path) -> None:
    assert run(SETUP + USE + EACH, str(tmp_path), *CALLS) == ""


def test_a_fork_after_polars_alone(tmp_path: Path) -> None:
    used = SETUP + "text.to_frame().lazy().group_by('text').agg(pl.len()).collect()\n"
    assert run(used + EACH, str(tmp_path), CALLS[0], CALLS[4]) == ""


def test_a_fork_before_the_first_call(tmp_path: Path) -> None:
    assert run(SETUP + BEFORE, str(tmp_path)) == "0\n"


def test_pools(tmp_path: Path) -> None:
    script = tmp_path / "pools.py"
    script.write_text(SETUP + POOLS)
    done = subprocess.run([sys.executable, script], check=True, timeout=400, capture_output=True, text=True)
    assert done.stdout.split() == ["named", "2"]
