"""File sizes against plain text, and where ours come from: ``python -m benchmarks.size``.

Parquet files as Polars writes them at zstd 9, with the compressed column and with the text. The parts of the payload
are measured apart, each compressed by zstd 9 (together with its neighbours it may take less); rows are the file's own
column chunks. The last column is for scale: all texts joined by line ends under zstd 19 (a window of 8 MB).
"""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import polars_tadoc as tadoc
from benchmarks import corpora
from polars_tadoc.model import payload

FAMILIES = ("logs", "versioned", "docs", "prose", "multi", "wiki")
LEVEL = 9
PARTS = {
    "words": ["shared_words", "word_lengths", "word_bytes"],
    "bodies": ["levels", "rules", "first_symbols", "other_symbols"],
    "junctions": ["word_gaps", "body_gaps"],
    "gaps": ["shared_gaps", "gap_lengths", "gap_bytes"],
}


def parquet(frame: pl.DataFrame, level: int = LEVEL) -> tuple[int, Counter[str]]:
    """Bytes of a frame's file, and of each column of it."""
    file = io.BytesIO()
    frame.write_parquet(file, compression_level=level)
    columns: Counter[str] = Counter()
    metadata = pq.ParquetFile(file).metadata
    for group in range(metadata.num_row_groups):
        for i in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(i)
            columns[chunk.path_in_schema] += chunk.total_compressed_size
    return file.tell() if file.seek(0, io.SEEK_END) else 0, columns


def packed(data: bytes, level: int = LEVEL) -> int:
    """Bytes after zstd."""
    return len(pa.Codec("zstd", compression_level=level).compress(data, asbytes=True))


def measure(text: pl.Series) -> dict[str, float]:
    """Sizes of one corpus in bytes."""
    plain, _ = parquet(text.to_frame("text"))
    frame = tadoc.compress(text).to_frame("text")
    ours, columns = parquet(frame)
    sections: Counter[str] = Counter()
    for corpus in tadoc.column.split(frame["text"]):
        stream = np.frombuffer(b"".join(payload.pack(corpus.grammar)), np.uint8)
        for name, part in payload.sections(stream).items():
            sections[name] += packed(part.tobytes())
    return {
        "text": int(text.str.len_bytes().sum()),
        "plain": plain,
        "ours": ours,
        "ratio": ours / plain,
        "payload": columns["text.grammar"],
        **{name: sum(sections[section] for section in own) for name, own in PARTS.items()},
        "row symbols": sum(size for name, size in columns.items() if "symbols" in name),
        "row gaps": columns["text.gaps"],
        "zstd -19": packed("\n".join(text).encode(), 19),
    }


def main() -> None:
    args = corpora.arguments(__doc__ or "").parse_args()
    print(f"machine: {corpora.machine()}; bytes")
    names = args.corpora
    if not names and corpora.SHARED.is_dir():
        paths = (path for family in FAMILIES for path in sorted(Path(corpora.SHARED).glob(f"{family}_*.parquet")))
        names = [str(path) for path in paths]
    header = False
    for given in corpora.names(names):
        name, text = corpora.load(given)
        sizes = measure(text)
        if not header:
            print(f"{'corpus':24}" + "".join(f"{column:>12}" for column in sizes))
            header = True
        print(f"{name:24}", end="")
        print("".join(f"{v:12.3f}" if isinstance(v, float) else f"{v:12,}" for v in sizes.values()), flush=True)


if __name__ == "__main__":
    main()
