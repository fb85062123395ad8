"""What a frozen application runs in `.ci/check_wheel`: with a wheel's machine code, nothing is compiled."""

import sys
import time

import polars as pl

import polars_tadoc as tadoc


def main() -> None:
    """Compress, count, search, and say how long it took."""
    start = time.perf_counter()
    text = ["to be or not to be", "to do", "a friend of freedom of speech"]
    df = pl.DataFrame({"text": text}).tadoc.compress("text")
    assert df.tadoc.word_count("text", top=2).rows()[0] == ("to", 3)
    index = tadoc.build_index(df["text"])
    assert index.search("freedom of speech").height == 1
    assert df.tadoc.decompress("text")["text"].to_list() == text
    seconds = time.perf_counter() - start
    print(f"{'frozen' if hasattr(sys, '_MEIPASS') else 'not frozen'}, {seconds:.2f} s")


if __name__ == "__main__":
    main()
