"""Word count of a frame on the GPU and on the CPU, rows' transfer and result included.

``python -m benchmarks.gpu_end_to_end``: the calls a user makes, warm (the grammar resident, as after a first
call), for all rows and for parts of them, to see from which size the GPU repays the transfer.
"""

from __future__ import annotations

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.side_by_side import median_ms, ratio, times


def main() -> None:
    args = corpora.arguments(__doc__ or "").parse_args()
    import cupy

    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"machine: {corpora.machine()}; {device}, CuPy {cupy.__version__}")
    given = corpora.names(args.corpora)
    texts = dict(corpora.load(name) for name in given)
    texts["all of them"] = pl.concat(list(texts.values()))
    heads = f"{'corpus':22}{'rows':>9}{'words':>12}{'symbols':>11}{'cpu ms':>9}{'gpu ms':>9}{'x':>6}"
    print(f"{heads}   top=20: cpu, gpu ms, x")
    for name, text in texts.items():
        packed = text.to_frame("text").tadoc.compress("text")
        for share in (64, 8, 1):
            part = packed.filter(pl.int_range(pl.len()) % share == 0)
            tadoc.testing.assert_engines_agree(lambda engine: tadoc.word_count(part["text"], engine=engine))  # noqa: B023
            taken = times(
                {engine: lambda e=engine: part.tadoc.word_count("text", engine=e) for engine in ("cpu", "gpu")},  # noqa: B023
                args.repeat,
            )
            short = times(
                {engine: lambda e=engine: part.tadoc.word_count("text", top=20, engine=e) for engine in ("cpu", "gpu")},  # noqa: B023
                args.repeat,
            )
            info = tadoc.info(part["text"]).to_dicts()[0]
            print(f"{name:22}{info['rows']:9,}{info['words']:12,}{info['symbols']:11,}", end="")
            print(
                f"{median_ms(taken, 'cpu'):9.2f}{median_ms(taken, 'gpu'):9.2f}{ratio(taken, 'cpu', 'gpu'):6.1f}", end=""
            )
            print(f"   {median_ms(short, 'cpu'):9.2f}{median_ms(short, 'gpu'):9.2f}{ratio(short, 'cpu', 'gpu'):6.1f}")


if __name__ == "__main__":
    main()
