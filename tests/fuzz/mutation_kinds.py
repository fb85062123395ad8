"""The files that the package writes, what is asked of each, and what each promises where it was damaged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import polars_tadoc as tadoc
from polars_tadoc.errors import CalibrationWarning, TadocError
from polars_tadoc.records import Checkpoint, Spill
from polars_tadoc.records import count_order as order
from polars_tadoc.records import run_merge as merging
from polars_tadoc.records import word_runs as words
from polars_tadoc.records.records import Layout, Records
from tests.fuzz import forged_files as forged
from tests.fuzz import other_files as others
from tests.fuzz.mutation_kind import (
    CHECKSUMMED,
    EDITED,
    FORGED,
    PICKLED,
    PLAIN,
    UNVERIFIED,
    Files,
    Kind,
    Use,
    frame,
    rows_of,
    text_of,
    written,
)
from tests.fuzz.packed import coded_rows
from tests.fuzz.target import folder
from tests.fuzz.targets import checkpoint as checkpoints
from tests.fuzz.targets import records
from tests.fuzz.targets.xpath import DOCUMENTS

# Row-aligned Parquet columns


@dataclass(frozen=True)
class OfColumn:
    """A question to the column of a Parquet file.

    Parameters
    ----------
    read
        Gives the column.
    ask
        Gives what is compared.
    has_checksums
        Whether the file has checksums of pages, and the reader compares them.

    """

    read: Callable[[Path], pl.Series]
    ask: Callable[[pl.Series], Any]
    has_checksums: bool = False

    def __call__(self, path: Path) -> Any:
        """Answer for a file."""
        return self.ask(self.read(path))


QUESTIONS: list[Callable[[pl.Series], Any]] = [
    text_of,
    lambda column: rows_of(tadoc.word_count(column)),
    lambda column: rows_of(tadoc.term_vector(column)),
    lambda column: tadoc.contains_phrase(column, "the cat").to_list(),
    lambda column: rows_of(tadoc.inverted_index(column)),
]


def _read(path: Path) -> pl.Series:
    return pl.read_parquet(path)["text"]


def _scan(path: Path) -> pl.Series:
    return tadoc.scan_parquet(path).select("text").collect()["text"]


def read_by_arrow(path: Path) -> pl.Series:
    """Read the column as PyArrow does: it compares checksums of pages that have one, and checks Arrow's arrays."""
    table = pq.ParquetFile(path, page_checksum_verification=True).read()
    table.validate(full=True)
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame["text"]


def _parquet_samples() -> list[tuple[Files, list[Use]]]:
    df = frame()

    def by_pyarrow(version: str, compression: str) -> Callable[[Path], None]:
        arrow = df.to_arrow(compat_level=pl.CompatLevel.oldest())
        return lambda path: pq.write_table(
            arrow,
            path,
            data_page_version=version,
            data_page_size=64,
            write_batch_size=4,  # after which a page may end: several of each column
            compression=compression,
            write_page_checksum=True,
        )

    def asked(read: Callable[[Path], pl.Series], **options: bool) -> list[Use]:
        return [OfColumn(read, ask, **options) for ask in QUESTIONS]

    return [
        (written(lambda path: df.write_parquet(path)), asked(_read)),
        (written(lambda path: _as_struct(df).write_parquet(path)), asked(_scan)),
        # its bytes are values: nothing is noticed by a decompressor
        (written(lambda path: df.write_parquet(path, compression="uncompressed")), asked(_scan)),
        (written(by_pyarrow("1.0", "zstd")), asked(read_by_arrow, has_checksums=True)),
        (written(by_pyarrow("2.0", "none")), asked(read_by_arrow, has_checksums=True)),
    ]


def _as_struct(df: pl.DataFrame) -> pl.DataFrame:
    return df.with_columns(tadoc.as_storage(df["text"]))


def _ipc_samples() -> list[tuple[Files, list[Use]]]:
    return [(files, [OfColumn(others.read_ipc, ask) for ask in QUESTIONS]) for files in others.ipc_files()]


def _info_samples() -> list[tuple[Files, list[Use]]]:
    """What is told of files without reading rows."""
    df = frame()
    told: list[Use] = [lambda path: tadoc.parquet_info(path).to_dicts()]
    made = [written(lambda path: df.write_parquet(path)), written(lambda path: _as_struct(df).write_parquet(path))]
    return [(files, told) for files in made]


UNDETECTABLE, UNDETECTABLE_BY_PAGES = "undetectable", "undetectable by checksums of pages"
"""PyArrow reads the damaged file, too, its values are valid and not those written, and answers for them are the same.

Nothing in the file tells a reader that it is damaged; checksums of pages cover neither their headers nor the footer.
"""
READER = "wrong in Polars' reader alone"
"""Polars reads other valid values than were written; PyArrow refuses the file, or reads something else."""


def _judge_column(path: Path, use: Use, found: Any) -> str:
    """Tell damage that no reader can see from an answer that is wrong for what was read."""
    assert isinstance(use, OfColumn)
    sound = _values(frame()["text"])
    try:
        by_arrow = others.read_ipc(path) if use.read is others.read_ipc else read_by_arrow(path)
        is_seen_by_arrow = _values(by_arrow) != sound and _equal(use.ask(by_arrow), found)
    except (TadocError, *ARROW_OR_POLARS):
        is_seen_by_arrow = False
    if is_seen_by_arrow:
        return UNDETECTABLE_BY_PAGES if use.has_checksums else UNDETECTABLE
    if use.read is not read_by_arrow and _values(use.read(path)) != sound:
        return READER
    return "silently wrong"


def _values(column: pl.Series) -> Any:
    stored = tadoc.as_storage(column)
    assert isinstance(stored, pl.Series)
    return [stored.struct.field(name).to_list() for name in ("grammar", "symbols", "gaps")]


# Payloads: the text of a grammar


def _payload_samples() -> list[tuple[Files, list[Use]]]:
    column = tadoc.as_storage(frame()["text"])
    fields = {name: column.struct.field(name) for name in ("grammar", "symbols", "gaps")}
    grammars = fields["grammar"].cast(pl.String)
    found: list[tuple[Files, list[Use]]] = []
    for payload in grammars.drop_nulls().unique(maintain_order=True):
        rows = (grammars == payload).fill_null(False)

        def column_of(path: Path, rows: pl.Series = rows) -> pl.Series:
            text = path.read_bytes().decode(errors="replace")
            own = {name: values.filter(rows) for name, values in fields.items()}
            made = pl.DataFrame({**own, "grammar": pl.Series([text] * int(rows.sum()), dtype=pl.Categorical)})
            return made.to_struct("text").cast(column.dtype)

        uses: list[Use] = [
            lambda path, of=column_of: text_of(of(path)),
            lambda path, of=column_of: rows_of(tadoc.word_count(of(path))),
        ]
        found.append(({"": payload.encode()}, uses))
    return found


# Packed files


def _packed_samples() -> list[tuple[Files, list[Use]]]:
    df = frame()

    def scan(path: Path) -> pl.LazyFrame:
        return tadoc.scan_packed(path)

    uses: list[Use] = [
        lambda path: _unpacked(scan(path).collect()),
        lambda path: _unpacked(scan(path).filter(pl.col("year") > 3).collect()),
        lambda path: _unpacked(scan(path).filter(pl.col("name") == "n5").collect()),
        lambda path: _unpacked(scan(path).filter(pl.col("year").is_null()).select("name", "text").collect()),
        lambda path: _unpacked(scan(path).head(3).collect()),
        lambda path: scan(path).select(pl.len()).collect().rows(),
        lambda path: scan(path).select("kind", "year").collect().rows(),
        lambda path: scan(path).tadoc.word_count("text").collect().rows(),
        lambda path: scan(path).tadoc.term_vector("text", id="name").collect().rows(),
        lambda path: scan(path).tadoc.sequence_count("text", n=2, memory_limit="1GB").collect().rows(),
        lambda path: scan(path).filter(pl.col("year") < 2).tadoc.inverted_index("text").collect().rows(),
    ]
    sunk = written(lambda path: df.lazy().tadoc.sink_packed(path))
    with coded_rows():
        small = written(lambda path: df.tadoc.write_packed(path, effort="small"))
    made = [(sunk, uses), (written(lambda path: df.tadoc.write_packed(path)), uses), (small, uses)]
    old: list[Use] = [
        lambda path: _unpacked(scan(path).collect()),
        lambda path: scan(path).tadoc.word_count("text").collect().rows(),
    ]
    return [*made, ({"": (DATA / "coded" / "packed.parquet").read_bytes()}, old)]


DATA = Path(__file__).parents[1] / "data"
"""Files of earlier releases."""


def _packed_forged_samples() -> list[tuple[Files, list[Use]]]:
    """Files that have no checksums: what other writers write of packed columns."""
    made = _packed_samples()
    earlier = {"": (DATA / "struct_columns" / "packed.parquet").read_bytes()}
    return [*forged.without_checksums(made[1:3], rows=1), (earlier, made[-1][1])]


def _packed_folder_samples() -> list[tuple[Files, list[Use]]]:
    df = frame().with_columns(part=pl.col("name").str.len_chars())

    def write(path: Path) -> None:
        for part in (2, 3):
            own = path / f"part={part}"
            own.mkdir(parents=True)
            df.filter(pl.col("part") == part).drop("part").tadoc.write_packed(own / "a.parquet")

    uses: list[Use] = [
        lambda path: _unpacked(tadoc.scan_packed(path).collect()),
        lambda path: _unpacked(tadoc.scan_packed(path).filter(pl.col("part") == 3).collect()),
        lambda path: tadoc.scan_packed(path).tadoc.word_count("text").collect().rows(),
    ]
    return [(written(write), uses)]


def _unpacked(df: pl.DataFrame) -> Any:
    return [
        (name, tadoc.decompress(df[name]).to_list() if name == "text" else df[name].to_list()) for name in df.columns
    ]


# Saved indexes

QUERIES = ["the cat", "w3 mat", "sat", "zz", '"the mat"', None]


def _index_samples(*, verify: bool) -> list[tuple[Files, list[Use]]]:
    """Indexes that were built, appended to, deleted from, compacted, sunk; opened in each way."""
    df = frame()
    full = tadoc.build_index(df["text"][:20], id=df["name"][:20], metadata=df[:20].select("year"))
    full = full.append(df["text"][20:], id=df["name"][20:], metadata=df[20:].select("year")).delete(["n1", "n25"])
    rice = tadoc.build_index(
        df["text"], codec="rice", normalize=pl.element().str.head(3), stopwords=["on"], store=False
    )

    def load(path: Path, mmap: bool) -> tadoc.Index:
        return tadoc.load_index(path, verify=verify, mmap=mmap)

    plain: list[Use] = [
        lambda path: load(path, True).search(QUERIES[:4], 9).rows(),
        lambda path: load(path, False).search(QUERIES, 40).rows(),
    ]
    more: list[Use] = [
        lambda path: load(path, True).search("the", filter=pl.col("year") > 2).rows(),
        lambda path: _snippets(load(path, False)),
        lambda path: load(path, True).compact().search(QUERIES[:4], 5).rows(),
    ]
    whole: list[Use] = [
        lambda path: tadoc.load_index(path, verify="all", mmap=True).search(QUERIES[:4], 9).rows(),
        lambda path: tadoc.load_index(path, verify="all", mmap=False).search("sat mat", 9, mode="and").rows(),
    ]
    if not verify:
        whole = []
    both = df.with_columns(title=tadoc.compress(df["name"]))
    in_fields = both.tadoc.build_index({"title": 2.0, "text": 1.0}, id="name", analyzer="folded")
    compacted = full.compact()
    return [
        (written(lambda path: full.save(path)), [*plain, *more, *whole]),
        (written(lambda path: rice.save(path)), [plain[0], *whole]),
        (written(lambda path: compacted.save(path)), [*plain, *more, *whole]),
        (written(lambda path: in_fields.save(path)), [*plain, *whole]),
        (written(lambda path: df.lazy().tadoc.sink_index(path, "text", id="name")), [*plain, more[1], *whole]),
    ]


def _snippets(index: tadoc.Index) -> Any:
    return index.snippets(index.search("the mat", 3), "the mat").rows()


# Dictionaries


def _dictionary_samples(*, verify: bool) -> list[tuple[Files, list[Use]]]:
    found: list[tuple[Files, list[Use]]] = []
    for known in (["to", "be", "or", "not", "bee", "beer", "日本", "naïve"], [f"user{n}" for n in range(300)]):
        made = tadoc.Dictionary.from_words(pl.Series(known))
        sought = pl.Series([*known[:8], "x", "", "beers", "user299", "user3000"])

        def load(path: Path) -> tadoc.Dictionary:
            return tadoc.Dictionary.load(path, verify=verify)

        uses: list[Use] = [
            lambda path, sought=sought, load=load: load(path).ids(sought).to_list(),
            lambda path, load=load: _all_words(load(path)),
            lambda path, load=load: load(path).with_prefix("use", limit=50).rows(),
            lambda path, load=load: load(path).common_prefixes("beers").rows(),
        ]
        found.append((written(made.save), uses))
    return found


def _all_words(dictionary: tadoc.Dictionary) -> Any:
    return dictionary.words(pl.Series(range(len(dictionary)), dtype=pl.UInt32)).to_list()


# Sets of passages


def _passage_samples() -> list[tuple[Files, list[Use]]]:
    found: list[tuple[Files, list[Use]]] = []
    rows = ["to be or not to be", None, "be or not", "日本 naïve to be", ""]
    text = pl.Series("text", ["to be or", "not to be or not", "naïve to be", "x", None])
    upper = pl.element().str.to_uppercase().str.head(2)
    for options in (
        {"length": 2},
        {"length": 1, "lowercase": True, "stopwords": ["or"]},
        {"length": 2, "normalize": upper},
    ):
        made = tadoc.PassageSet(pl.Series("known", rows), **options)
        uses: list[Use] = [
            lambda path: tadoc.overlap(text, tadoc.PassageSet.load(path)).to_pylist(),
            lambda path: tadoc.overlaps(text, tadoc.PassageSet.load(path)).to_list(),
        ]
        found.append((written(made.save), uses))
    return found


# Sets of twigs


def _twig_samples() -> list[tuple[Files, list[Use]]]:
    queries = {"titled": "//article/title", "p": "//p:a[@x='1']", "any": "//*", "text": "//a[text()='\u00e9']"}
    twigs = tadoc.TwigSet(queries, namespaces={"p": "urn:one"})
    text = pl.Series("xml", DOCUMENTS)

    def use(path: Path) -> Any:
        loaded = tadoc.TwigSet.load(path)
        found = tadoc.twig_filter(text, loaded)
        said = json.loads(path.read_bytes())
        again = tadoc.TwigSet(said["queries"], namespaces=_without_xml(said["namespaces"]))
        assert loaded == again, "it is not what the file says"
        assert found == tadoc.twig_filter(text, again)
        return rows_of(found)

    return [(written(twigs.save), [use])]


def _without_xml(namespaces: dict[str, str]) -> dict[str, str]:
    return {prefix: name for prefix, name in namespaces.items() if prefix != "xml"}


# Checkpoints, and records that are spilled


def _checkpoint_samples() -> list[tuple[Files, list[Use]]]:
    found: list[tuple[Files, list[Use]]] = []
    for number, layout in enumerate(checkpoints.LAYOUTS):

        def use(path: Path, layout: Layout = layout) -> Any:
            checkpoint = Checkpoint(path, checkpoints.QUESTION, "word_count")
            try:
                with Spill(layout, 1 << 20, "word_count", checkpoint) as spilled:
                    covered = sorted(spilled.covered)
                    for partition in {0, 1, 2} - set(covered):
                        spilled.add(records.sample(layout, partition))
                        spilled.finish(partition)
                    return _named(layout, list(spilled.merged()))
            finally:
                checkpoint.close()

        found.append((checkpoints.sample(number), [use]))
    return found


def _named(layout: Layout, parts: list[Records]) -> Any:
    return [row for part in parts for row in records._named(layout, part)]


SPILLED = [records.LAYOUTS[0], records.LAYOUTS[2], records.LAYOUTS[4]]
SPILLED_RUNS = 3


def _spill_samples() -> list[tuple[Files, list[Use]]]:
    """Runs as they lie in a temporary folder; damaged ones stand where a call would have written its own."""
    found: list[tuple[Files, list[Use]]] = []
    for layout in SPILLED:
        with Spill(layout, 1 << 16, "word_count") as spilled:
            for part in range(SPILLED_RUNS):
                spilled.add(records.sample(layout, part))
                spilled._write()
            files = {file.name: file.read_bytes() for file in sorted(spilled._folder.path.iterdir())}

        def use(path: Path, layout: Layout = layout) -> Any:
            with Spill(layout, 1 << 16, "word_count") as spilled:
                spilled._runs = [spilled._next_run() for _ in range(SPILLED_RUNS)]
                _put(path, spilled._folder.path)
                return _named(layout, list(spilled.merged()))

        found.append((files, [use]))
    return found


def _put(path: Path, own: Path) -> None:
    for file in path.iterdir():
        shutil.copyfile(file, own / file.name)


ARROW_OR_POLARS = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    pa.ArrowException,
    OSError,
    UnicodeDecodeError,
)

GONE = (FileNotFoundError,)
UNKNOWN = (pl.exceptions.ColumnNotFoundError, pl.exceptions.SchemaError)
"""Of a question to a column that has another name or type now."""


def _spill_forged_samples() -> list[tuple[Files, list[Use]]]:
    return forged.without_checksums(_spill_samples(), rows=8)


def _checkpoint_forged_samples() -> list[tuple[Files, list[Use]]]:
    return forged.closed(forged.without_checksums(_checkpoint_samples(), rows=8), forged.close_checkpoint)


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("payload", CHECKSUMMED, _payload_samples),
        Kind("packed", CHECKSUMMED, _packed_samples),
        Kind("packed_folder", CHECKSUMMED, _packed_folder_samples, GONE, are_swapped=False, are_removed=False),
        Kind("index", CHECKSUMMED, lambda: _index_samples(verify=True), GONE),
        Kind("dictionary", CHECKSUMMED, lambda: _dictionary_samples(verify=True), GONE),
        Kind("passage_set", CHECKSUMMED, _passage_samples, GONE),
        Kind("checkpoint", CHECKSUMMED, _checkpoint_samples, GONE, is_written=True),
        Kind("spilled", CHECKSUMMED, _spill_samples, GONE, are_swapped=False),
        Kind("kernel_cache", CHECKSUMMED, others.kernel_samples, (others.MissedError,)),
        Kind("twig_set", EDITED, _twig_samples, GONE),
        Kind("calibration", EDITED, others.calibration_samples, (CalibrationWarning,)),
        Kind("parquet", PLAIN, _parquet_samples, ARROW_OR_POLARS, judge=_judge_column),
        Kind("ipc", PLAIN, _ipc_samples, ARROW_OR_POLARS, judge=_judge_column),
        Kind("parquet_info", UNVERIFIED, _info_samples, ARROW_OR_POLARS),
        Kind("index_unverified", UNVERIFIED, lambda: _index_samples(verify=False), GONE),
        Kind("dictionary_unverified", UNVERIFIED, lambda: _dictionary_samples(verify=False), GONE),
        Kind(
            "payload_forged",
            FORGED,
            lambda: forged.opened_payloads(_payload_samples()),
            close=forged.close_payload,
        ),
        Kind("packed_forged", FORGED, _packed_forged_samples, UNKNOWN),
        Kind("index_forged", FORGED, lambda: _index_samples(verify=True), GONE, close=forged.close_index),
        Kind(
            "dictionary_forged",
            FORGED,
            lambda: forged.opened_arrays(_dictionary_samples(verify=True)),
            close=forged.close_arrays,
        ),
        Kind("passage_set_forged", FORGED, lambda: forged.opened_arrays(_passage_samples()), close=forged.close_arrays),
        Kind(
            "checkpoint_forged",
            FORGED,
            _checkpoint_forged_samples,
            GONE,
            is_written=True,
            close=forged.close_checkpoint,
        ),
        Kind("spilled_forged", FORGED, _spill_forged_samples, GONE, are_swapped=False),
        Kind("normalize", FORGED, others.normalize_samples, (others.MissedError,)),
        Kind("pickle", PICKLED, others.pickle_samples, (Exception, pl.exceptions.PanicException)),
    )
}


@cache
def samples(name: str) -> list[tuple[Files, list[tuple[Use, Any]]]]:
    """Return the samples of a kind, with what each question gives of the sound one."""
    path = folder() / "sound"
    found = []
    for files, uses in KINDS[name].samples():
        asked = []
        for use in uses:
            lay(KINDS[name].close(files, files), path)
            try:
                asked.append((use, use(path)))
            except TadocError:
                if name != "normalize":  # some of its samples have code in them
                    raise
                asked.append((use, "refused"))
        found.append((files, asked))
    return found


def lay(files: Files, path: Path, before: Files | None = None) -> None:
    """Write files to a path, in place of what is there, which is known to be ``before``."""
    if before and files and "" not in files and "" not in before:
        for name in before.keys() - files.keys():
            (path / name).unlink()
        for name, content in files.items():
            if before.get(name) != content:
                (path / name).unlink(missing_ok=True)  # the old one may be mapped
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                (path / name).write_bytes(content)
        return
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    if "" in files:
        path.write_bytes(files[""])
        return
    path.mkdir()
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)


def outcome(kind: Kind, use: Use, path: Path, expected: Any) -> str:
    """Ask of damaged files; returns ``"same"``, ``"refused"``, or what another answer comes to.

    Raises
    ------
    Exception
        Anything that does not refuse by name.

    """
    try:
        found = use(path)
    except TadocError:
        return "refused"
    except ValueError as error:
        if kind.name.startswith("checkpoint") and any(said in str(error) for said in _SAID):
            return "refused"
        if isinstance(error, kind.refusals):
            return "refused"
        raise
    except kind.refusals:
        return "refused"
    return "same" if _equal(found, expected) else kind.judge(path, use, found)


_SAID = ("is not a checkpoint: it has", "was made for another question", "a name that checkpoints write")


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or bool(np.isnan(one) and np.isnan(other))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return type(one) is type(other) and bool(one == other)


@contextmanager
def small_runs() -> Iterator[None]:
    """Have runs be of small groups, so that a few records make several."""
    before = [(module, name, getattr(module, name)) for module, name in _GROUPS]
    try:
        for module, name in _GROUPS:
            setattr(module, name, 8)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


_GROUPS = ((merging, "MIN_GROUP"), (order, "GROUP"), (words, "GROUP"))
