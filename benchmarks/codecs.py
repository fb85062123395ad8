"""Codecs of postings: integers decoded a second on one core, and bits a posting beside what theory allows.

``--sizes`` prints the sizes alone. If the package pyfastpfor is installed, its codecs are timed beside ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.side_by_side import times
from polars_tadoc.index.codecs import CODECS, Codec
from polars_tadoc.index.construct.build import build_index
from polars_tadoc.kernels.postings.coded import BLOCK, RICE, Postings
from polars_tadoc.kernels.postings.decode_cpu import addresses_of, decode_counts, decode_documents, view_at
from polars_tadoc.runtime.addresses import move
from polars_tadoc.runtime.jit import kernel

DENSITIES = [0.5, 0.1, 0.01, 0.001]
LENGTHS = [1 << 10, 1 << 13, 1 << 16, 1 << 20, 1 << 22]
CORPORA = ["docs_tldr", "logs_elastic", "xml_acl_papers", "prose_books", "ir_vaswani_docs"]
LONG = 1024
"""Postings of a list whose gaps' entropy says something."""
NUMBERS = 1 << 22
"""Decoded in each round, whatever the length of the list."""


@kernel
def decode_list(addresses: Any, blocks: int, documents: Any, counts: Any, with_counts: bool, times: int) -> None:
    """Decode the first list, of so many whole blocks, so many times."""
    view = view_at(addresses)
    for _ in range(times):
        to_documents, to_counts = nb.uint64(documents.ctypes.data), nb.uint64(counts.ctypes.data)
        for block in range(blocks):
            decode_documents(view, nb.uint64(0), nb.uint64(block), to_documents)
            to_documents += nb.uint64(4 * BLOCK)
            if with_counts:
                decode_counts(view, nb.uint64(0), nb.uint64(block), to_counts)
                to_counts += nb.uint64(4 * BLOCK)


@nb.njit(nogil=True, cache=True)
def copy(numbers: Any, times: int) -> None:
    """Copy the first half to the second so many times: what memory allows."""
    for _ in range(times):
        move(numbers, len(numbers) // 2, 0, len(numbers) // 2)


def main() -> None:
    parser = corpora.arguments(__doc__.splitlines()[0])
    parser.add_argument("--sizes", action="store_true", help="print sizes alone")
    arguments = parser.parse_args()
    print(corpora.machine())
    if not arguments.sizes:
        print_speeds(arguments.repeat)
    print_random_sizes()
    print_real_sizes(arguments.corpora or CORPORA)


def print_speeds(repeat: int) -> None:
    """Print a table of G integers/s: the fastest of the rounds, one core, warm."""
    peers = fastpfor_peers()
    named = [f"{name} {what}" for name in CODECS for what in ("documents", "+counts")]
    print(f"\nG integers/s (a document and its count are two), lists of geometric gaps; {repeat} rounds, the fastest")
    print(f"{'density':>8}{'postings':>10}" + "".join(f"{name:>21}" for name in [*named, "copy", *peers]))
    for density in DENSITIES:
        for length in LENGTHS:
            documents, counts = random_list(length, density, 1)
            contenders: dict[str, Callable[[], object]] = {}
            kept = []
            rounds, room = NUMBERS // length, np.empty((2, length), np.uint32)
            for name, codec in CODECS.items():
                postings = codec.encode(np.array([0, length]), documents, counts, int(documents[-1]) + 1)
                for what, suffix in ((False, "documents"), (True, "+counts")):
                    given = (addresses_of(postings), len(postings.heads), room[0], room[1], what, rounds)
                    contenders[f"{name} {suffix}"] = partial(decode_list, *given)
                kept.append(postings)  # their addresses do not
            contenders["copy"] = partial(copy, room.reshape(-1), rounds)
            contenders |= {name: make(documents, rounds) for name, make in peers.items()}
            taken = times(contenders, repeat)
            speeds = [NUMBERS * (1 + ("+" in name)) / min(taken[name]) / 1e9 for name in contenders]
            print(f"{density:>8}{length:>10}" + "".join(f"{speed:>21.2f}" for speed in speeds))


def fastpfor_peers() -> dict[str, Callable[[Any, int], Callable[[], object]]]:
    """Return peers, where they are installed: a function of documents that gives what decodes them.

    Each of their calls goes through Python, which tells on short lists.
    """
    try:
        import pyfastpfor
    except ImportError:
        return {}

    def peer(name: str) -> Callable[[Any, int], Callable[[], object]]:
        def prepare(documents: Any, rounds: int) -> Callable[[], object]:
            codec = pyfastpfor.getCodec(name)
            gaps, packed = documents.copy(), np.zeros(len(documents) + 1024, np.uint32)
            pyfastpfor.delta1(gaps, len(gaps))
            size = codec.encodeArray(gaps, len(gaps), packed, len(packed))
            room = np.empty(len(documents) + 1024, np.uint32)

            def decode() -> None:
                for _ in range(rounds):
                    count = codec.decodeArray(packed, size, room, len(room))
                    pyfastpfor.prefixSum1(room, count)

            decode()
            assert np.array_equal(room[: len(documents)], documents)
            return decode

        return prepare

    return {name: peer(name) for name in ("simdfastpfor128", "simdbinarypacking", "streamvbyte")}


def random_list(length: int, density: float, seed: int) -> tuple[Any, Any]:
    """Return documents of geometric gaps and counts, uint32."""
    random = np.random.default_rng(seed)
    documents = np.cumsum(random.geometric(density, length)) - 1
    return documents.astype(np.uint32), random.geometric(0.6, length).astype(np.uint32)


def print_random_sizes() -> None:
    print("\nbits a posting, a random list of 2^20: the codes of documents, beside the entropy of geometric gaps;")
    print("with heads and all else a file holds of documents; and the codes of counts (geometric, 0.6)")
    print(f"{'density':>8}{'entropy':>9}{'codec':>11}{'codes':>8}{'ratio':>7}{'in file':>9}{'ratio':>7}{'counts':>8}")
    for density in [0.9, 0.5, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001]:
        documents, counts = random_list(1 << 20, density, 2)
        entropy = -np.log2(density) - np.log2(1 - density) * (1 - density) / density
        for name, codec in CODECS.items():
            postings = codec.encode(np.array([0, len(documents)]), documents, counts, int(documents[-1]) + 1)
            codes, counts_codes = (code_bits(codec, postings, what).sum() / len(documents) for what in (0, 1))
            file = file_bits(codec, postings, "gaps") / len(documents)
            print(
                f"{density:>8}{entropy:>9.3f}{name:>11}{codes:>8.3f}{codes / entropy:>7.3f}{file:>9.3f}"
                f"{file / entropy:>7.3f}{counts_codes:>8.3f}"
            )


def print_real_sizes(names: list[str]) -> None:
    """Print two lines for each corpus: all lists, and the long ones beside their gaps' entropy."""
    print("\nbits a posting of the words of corpora (prose in paragraphs)")
    print("bound: log2 C(N, n) of each list; codes: of documents alone; file: with heads, frequencies and widths")
    print(f"long: lists of {LONG} postings and more, whose gaps have an entropy of their own: at least 1 bit, or less")
    for name in names:
        _, text = corpora.load(name)
        if name == "prose_books":
            text = text.str.split("\r\n\r\n").explode()
        index = build_index(tadoc.compress(text), store=False)
        segment = index.segments[0]
        plain = CODECS[index.codec].decode(segment.postings, np.arange(len(segment.terms), dtype=np.uint32))
        for codec in CODECS.values():
            print_corpus(name, codec, codec.encode(*plain, segment.postings.documents), plain)


def print_corpus(name: str, codec: Codec, postings: Postings, plain: Any) -> None:
    """Print the lines of one corpus and codec."""
    sizes = postings.frequencies.astype(np.int64)
    total = int(sizes.sum())
    bounds = np.array([log2_choose(postings.documents, int(size)) for size in sizes])
    codes = code_bits(codec, postings, 0)
    file, counts = (file_bits(codec, postings, part) for part in ("gaps", "counts"))
    megabytes = sum(part.nbytes for part in codec.pack(postings).values()) / 1e6
    print(f"{name}, {codec.name}: {postings.documents} documents, {len(sizes)} lists, {total} postings;", end="")
    print(f" file {megabytes:.2f} MB")
    print(f"  all: bound {bounds.sum() / total:.2f}, codes {codes.sum() / total:.2f}", end="")
    print(
        f" ({codes.sum() / bounds.sum():.3f} of it), file {file / total:.2f} ({file / bounds.sum():.3f} of it);", end=""
    )
    print(f" counts {counts / total:.2f}")
    entropies = np.zeros(len(sizes))
    for t in np.flatnonzero(sizes >= LONG):
        entropies[t] = entropy_bits(np.diff(plain[1][plain[0][t] : plain[0][t + 1]], prepend=np.uint32(0)))
    for which, chosen in (
        ("at least 1 bit", (sizes >= LONG) & (entropies >= sizes)),
        ("less than 1 bit", (sizes >= LONG) & (entropies < sizes)),
    ):
        share, own = int(sizes[chosen].sum()), codes[chosen].sum()
        if share:
            entropy = entropies[chosen].sum()
            print(f"  long, {which}: {share} postings, entropy {entropy / share:.2f}, codes {own / share:.2f}", end="")
            print(f" ({own / entropy:.3f} of it, {own / bounds[chosen].sum():.3f} of the bound)")


def code_bits(codec: Codec, postings: Postings, what: int) -> npt.NDArray[np.float64]:
    """Return the bits of each list's codes: low bits, and unary numbers or exceptions as the file has them."""
    stream = (postings.gaps, postings.counts)[what]
    sizes = postings.frequencies.astype(np.float64)
    if codec.number == RICE:
        return sizes * stream.widths + np.diff(stream.unary_offsets[postings.block_offsets])
    parts = codec.pack(postings)
    name = ("gaps", "counts")[what]
    high = 8 * sum(parts[f"{name}.{part}"].nbytes for part in codec.high_parts)
    exceptions = np.diff(stream.exception_offsets[postings.block_offsets])
    return sizes * stream.widths + high * exceptions / max(1, exceptions.sum())


def file_bits(codec: Codec, postings: Postings, name: str) -> int:
    """Return the bits of a file's arrays: for gaps with heads and frequencies."""
    parts = codec.pack(postings)
    return 8 * sum(
        a.nbytes for part, a in parts.items() if part.startswith(name) or (name == "gaps" and "." not in part)
    )


def entropy_bits(numbers: Any) -> float:
    """Return the zero-order entropy of numbers, of all of them."""
    counts = np.unique(numbers, return_counts=True)[1]
    return float(-(counts * np.log2(counts / counts.sum())).sum())


def log2_choose(total: int, chosen: int) -> float:
    """Return the bits that tell one set of so many documents from all others."""
    return (math.lgamma(total + 1) - math.lgamma(chosen + 1) - math.lgamma(total - chosen + 1)) / math.log(2)


if __name__ == "__main__":
    main()
