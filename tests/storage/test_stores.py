"""Object stores, ``file://`` and open files: read and written like paths."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_tadoc as tadoc

pytest.importorskip("moto")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tests import azure_server
    from tests.s3_server import Server, serving


@pytest.fixture(scope="module")
def s3() -> Iterator[Server]:
    with serving() as server:
        yield server


def texts(rows: int) -> pl.DataFrame:
    lines = [f"word{(i * i) % 3011} of line {i} and {(i * 7) % 1013} more, by host-{i % 17}" for i in range(rows)]
    return pl.DataFrame({"year": [2000 + i * 8 // rows for i in range(rows)], "note": lines[::-1], "text": lines})


FRAME = texts(8000)
COMPRESSED = FRAME.tadoc.compress("text", rows_per_grammar=1000)


def test_a_packed_file_is_written_and_scanned(s3: Server) -> None:
    COMPRESSED.tadoc.write_packed("s3://bucket/one/a.parquet", storage_options=s3.options)
    COMPRESSED.lazy().tadoc.sink_packed("s3://bucket/one/b.parquet", storage_options=s3.options)
    for source in ("s3://bucket/one", "s3://bucket/one/", "s3://bucket/one/*.parquet", "s3://bucket/**/one/?.parquet"):
        lf = tadoc.scan_packed(source, storage_options=s3.options)
        assert lf.select(pl.len()).collect().item() == 16_000
    lf = tadoc.scan_packed(["s3://bucket/one/b.parquet"], storage_options=s3.options)
    assert_frame_equal(lf.collect().tadoc.decompress("text"), FRAME)
    assert_frame_equal(lf.tadoc.word_count("text", memory_limit="100MB").collect(), COMPRESSED.tadoc.word_count("text"))
    assert s3.client.list_multipart_uploads(Bucket="bucket").get("Uploads", []) == []


def test_only_ranges_that_are_needed_are_read(s3: Server) -> None:
    frame = texts(60_000)
    frame.tadoc.compress("text", rows_per_grammar=7500).tadoc.write_packed(
        "s3://bucket/ranges.parquet", storage_options=s3.options
    )
    size = s3.size("ranges.parquet")
    lf = tadoc.scan_packed("s3://bucket/ranges.parquet", storage_options=s3.options)
    s3.given()
    assert_frame_equal(lf.select("year").collect(), frame.select("year"))
    requests, taken = s3.given("ranges")
    assert taken < 66_000 + size / 20
    assert requests <= 1 + 8
    found = lf.filter(pl.col("year") == 2003).tadoc.decompress("text").collect()
    assert_frame_equal(found, frame.filter(pl.col("year") == 2003))
    requests, taken = s3.given("ranges")
    assert taken < 66_000 + size / 4
    assert requests <= 6
    found = lf.select("text").head(10).tadoc.decompress("text").collect()
    assert_frame_equal(found, frame.select("text").head(10))
    requests, taken = s3.given("ranges")
    assert taken < 66_000 + size / 4
    assert requests <= 4
    assert size > 1_000_000


def test_hive_folders_of_a_store(s3: Server) -> None:
    for system in ("sshd", "a%20b"):
        for day in ("2024-01-01", "2024-01-02"):
            COMPRESSED.head(500).tadoc.write_packed(
                f"s3://bucket/hive/system={system}/day={day}/x.parquet", storage_options=s3.options
            )
    lf = tadoc.scan_packed("s3://bucket/hive", storage_options=s3.options)
    assert lf.collect_schema()["day"] == pl.Date
    s3.given()
    found = lf.filter((pl.col("system") == "a b") & (pl.col("day").dt.day() == 2)).tadoc.decompress("text").collect()
    assert_frame_equal(found.select(FRAME.columns), FRAME.head(500))
    asked = {path for method, path, _ in s3.asked if method == "GET"}
    assert len(asked) == 1
    assert "day=2024-01-02" in asked.pop()


def test_row_aligned_files(s3: Server) -> None:
    COMPRESSED.lazy().tadoc.sink_parquet("s3://bucket/rows/a.parquet", storage_options=s3.options)
    back = pl.scan_parquet("s3://bucket/rows/a.parquet", storage_options=s3.options).collect()
    assert_frame_equal(back.tadoc.decompress("text"), FRAME)
    s3.given()
    info = tadoc.parquet_info("s3://bucket/rows", storage_options=s3.options).to_dicts()[0]
    assert (info["files"], info["rows"], info["grammars"]) == (1, 8000, 8)
    assert s3.given("rows/a")[1] < s3.size("rows/a.parquet")
    with pytest.raises(ValueError, match="object stores cannot replace a folder atomically"):
        COMPRESSED.tadoc.write_parquet("s3://bucket/parts", partition_by="year", storage_options=s3.options)


def test_an_index_is_saved_and_loaded(s3: Server) -> None:
    index = COMPRESSED.tadoc.build_index("text", id="year")
    index.save("s3://bucket/index", storage_options=s3.options)
    loaded = tadoc.load_index("s3://bucket/index", storage_options=s3.options)
    wanted = index.search("word16 host-3", k=20)
    assert_frame_equal(loaded.search("word16 host-3", k=20), wanted)
    assert_frame_equal(loaded.snippets(wanted, "host-3"), index.snippets(wanted, "host-3"))
    with pytest.raises(FileExistsError, match="save: s3://bucket/index already exists"):
        index.save("s3://bucket/index", storage_options=s3.options)
    with pytest.raises(ValueError, match="an object store cannot replace several objects at once"):
        index.save("s3://bucket/index", overwrite=True, storage_options=s3.options)
    COMPRESSED.lazy().tadoc.sink_index("s3://bucket/sunk", id="year", storage_options=s3.options)
    sunk = tadoc.load_index("s3://bucket/sunk", storage_options=s3.options)
    assert_frame_equal(sunk.search("word16 host-3", k=20), wanted)


def test_an_index_that_is_not_whole(s3: Server) -> None:
    COMPRESSED.head(100).tadoc.build_index("text").save("s3://bucket/cut", storage_options=s3.options)
    (name,) = [key for key in s3.keys if key.startswith("cut/") and key.endswith("lengths.npy")]
    s3.client.put_object(Bucket="bucket", Key=name, Body=b"x" * 10_000_000)
    with pytest.raises(tadoc.errors.InvalidIndexError, match=r"load_index: .*lengths.npy has 10,000,000 bytes, not"):
        tadoc.load_index("s3://bucket/cut", storage_options=s3.options)
    s3.client.delete_object(Bucket="bucket", Key=name)
    with pytest.raises(tadoc.errors.InvalidIndexError, match=r"lengths.npy is missing"):
        tadoc.load_index("s3://bucket/cut", storage_options=s3.options)
    with pytest.raises(FileNotFoundError, match=r"load_index: s3://bucket/none has no object header.json"):
        tadoc.load_index("s3://bucket/none", storage_options=s3.options)
    s3.client.put_object(Bucket="bucket", Key="cut/header.json", Body=b"{")
    with pytest.raises(tadoc.errors.InvalidIndexError, match=r"header.json"):
        tadoc.load_index("s3://bucket/cut", storage_options=s3.options)


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil", "..", "é" * 300, "x" * 101, ""])
def test_names_of_files_in_a_header_lead_nowhere(name: str, azure: azure_server.Server, tmp_path: Path) -> None:
    from polars_tadoc.storage import writing

    folder = tmp_path.name
    COMPRESSED.head(100).tadoc.build_index("text").save(f"az://bucket/{folder}", storage_options=azure.options)
    header = azure.blobs[f"{folder}/header.json"].decode()
    changed = header.replace('"segment_0.lengths.npy"', json.dumps(name))
    assert changed != header
    azure.blobs[f"{folder}/header.json"] = changed.encode()
    azure.blobs[f"{folder}/{name}"] = azure.blobs["evil"] = azure.blobs[f"{folder}/segment_0.lengths.npy"]
    written: list[str] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writing.Store, "read", _noting(writing.Store.read, written))
        with pytest.raises(tadoc.errors.InvalidIndexError, match=r"load_index: .*header\.json is damaged"):
            tadoc.load_index(f"az://bucket/{folder}", storage_options=azure.options)
    assert written == [f"{folder}/header.json"]


def _noting(read: Any, noted: list[str]) -> Any:
    def reading(self: Any, met: Any, start: int, stop: int) -> Any:
        noted.append(met.path)
        return read(self, met, start, stop)

    return reading


def test_an_upload_that_fails_leaves_what_was_there(s3: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from polars_tadoc.storage.object_store import Store

    COMPRESSED.head(10).tadoc.write_packed("s3://bucket/kept.parquet", storage_options=s3.options)
    before = s3.client.get_object(Bucket="bucket", Key="kept.parquet")["Body"].read()

    def fails(frame: pl.DataFrame) -> pl.DataFrame:
        raise RuntimeError("half way")

    plan = pl.concat([COMPRESSED.lazy(), COMPRESSED.lazy().map_batches(fails)])
    with pytest.raises(Exception, match="half way"):
        plan.tadoc.sink_packed("s3://bucket/kept.parquet", storage_options=s3.options)
    assert s3.client.get_object(Bucket="bucket", Key="kept.parquet")["Body"].read() == before

    write = Store.write

    def full(self: Store, path: str, file: Path) -> None:
        if path.endswith("terms.parquet"):
            raise OSError("the line is down")
        write(self, path, file)

    monkeypatch.setattr(Store, "write", full)
    with pytest.raises(OSError, match="the line is down"):
        COMPRESSED.tadoc.build_index("text").save("s3://bucket/half", storage_options=s3.options)
    assert [key for key in s3.keys if key.startswith("half")] == []


def test_objects_of_others_are_not_replaced_by_an_index(s3: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from polars_tadoc.storage.object_store import Store

    index = COMPRESSED.tadoc.build_index("text", id="year")
    held = {"taken/ids.arrow": b"years of work", "taken/below/notes": b"more"}
    for key, body in held.items():
        s3.client.put_object(Bucket="bucket", Key=key, Body=body)
    for overwrite in (False, True):
        with pytest.raises(FileExistsError, match=r"save: s3://bucket/taken contains taken/(ids\.arrow|below/notes), "):
            index.save("s3://bucket/taken", overwrite=overwrite, storage_options=s3.options)
        with pytest.raises(FileExistsError, match=r"sink_index: s3://bucket/taken contains taken/"):
            COMPRESSED.lazy().tadoc.sink_index("s3://bucket/taken", overwrite=overwrite, storage_options=s3.options)
    s3.client.put_object(Bucket="bucket", Key="filled2/notes", Body=b"beside")
    write = Store.write

    def meanwhile(self: Store, path: str, file: Path) -> None:
        write(self, path, file)
        raise OSError("the line is down")

    monkeypatch.setattr(Store, "write", meanwhile)
    with pytest.raises(OSError, match="the line is down"):
        index.save("s3://bucket/filled", storage_options=s3.options)
    assert [key for key in s3.keys if key.startswith(("taken", "filled"))] == ["filled2/notes", *sorted(held)]
    for key, body in held.items():
        assert s3.client.get_object(Bucket="bucket", Key=key)["Body"].read() == body


def test_a_replaced_object_is_not_read_on(s3: Server) -> None:
    COMPRESSED.tadoc.write_packed("s3://bucket/replaced.parquet", storage_options=s3.options)
    lf = tadoc.scan_packed("s3://bucket/replaced.parquet", storage_options=s3.options)
    batches = iter(lf.collect_batches(chunk_size=1, maintain_order=True))
    from polars_tadoc.storage.object_store import Access, Store

    store = Store("s3://bucket", Access(s3.options), "scan_packed")
    met, _ = store.tail("replaced.parquet", 10)
    COMPRESSED.head(5000).tadoc.write_packed("s3://bucket/replaced.parquet", storage_options=s3.options)
    with pytest.raises(OSError, match=r"scan_packed: s3://bucket/replaced.parquet was replaced while it was read"):
        store.read(met, 0, 10)
    del batches


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (
            "s3://bucket/none.parquet",
            FileNotFoundError,
            "scan_packed: s3://bucket/none.parquet: no Parquet file found",
        ),
        ("s3://nobucket/none", (FileNotFoundError, OSError), "scan_packed: .*nobucket"),
        ("s3:///none", ValueError, "the bucket is missing"),
        ("ftp://bucket/none", ValueError, ": unknown scheme"),
        ("file://host/none", ValueError, "not a local file"),
    ],
)
def test_addresses_that_name_nothing(s3: Server, source: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tadoc.scan_packed(source, storage_options=s3.options)


def test_arguments_that_are_wrong(s3: Server) -> None:
    with pytest.raises(ValueError, match=r"scan_packed: s3://bucket: .*bogus.*; see storage_options="):
        tadoc.scan_packed("s3://bucket/one", storage_options={"bogus": "x"})
    with pytest.raises(TypeError, match="storage_options=list must be a dict"):
        tadoc.scan_packed("s3://bucket/one", storage_options=[])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="credential_provider=3 must be a function"):
        tadoc.scan_packed("s3://bucket/one", credential_provider=3)
    with pytest.raises(
        ValueError, match=r"""scan_packed: s3://bucket: storage_options\["max_retries"\]='x' must be a"""
    ):
        tadoc.scan_packed("s3://bucket/one", storage_options={**s3.options, "max_retries": "x"})
    for path in ("../x", "a//x", "a/./x"):
        with pytest.raises(ValueError, match=rf"write_packed: s3://bucket/{path}: .*[Pp]ath"):
            COMPRESSED.head(5).tadoc.write_packed(f"s3://bucket/{path}", storage_options=s3.options)
    off = {**s3.options, "aws_endpoint_url": "http://127.0.0.1:9", "max_retries": 0}
    with pytest.raises(OSError, match="scan_packed: s3://bucket/one"):
        tadoc.scan_packed("s3://bucket/one", storage_options=off)


def test_a_provider_of_credentials(s3: Server) -> None:
    asked = []

    def provider() -> tuple[dict[str, str], int | None]:
        asked.append(1)
        return {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}, None

    COMPRESSED.head(10).tadoc.write_packed("s3://bucket/provided.parquet", storage_options=s3.options)
    options = {name: value for name, value in s3.options.items() if not name.endswith(("key_id", "access_key"))}
    lf = tadoc.scan_packed("s3://bucket/provided.parquet", storage_options=options, credential_provider=provider)
    assert lf.select(pl.len()).collect().item() == 10
    assert asked


@pytest.fixture(scope="module")
def azure() -> Iterator[azure_server.Server]:
    with azure_server.serving() as server:
        yield server


@pytest.mark.parametrize("scheme", ["gs", "az", "abfss"])
def test_stores_of_google_and_azure(scheme: str, s3: Server, azure: azure_server.Server) -> None:
    options = s3.google_options if scheme == "gs" else azure.options
    root = f"{scheme}://bucket/by-{scheme}"
    COMPRESSED.tadoc.write_packed(f"{root}/packed/a.parquet", storage_options=options)
    COMPRESSED.lazy().tadoc.sink_packed(f"{root}/packed/b.parquet", storage_options=options, effort="small")
    for source in (f"{root}/packed", f"{root}/packed/*.parquet"):
        assert tadoc.scan_packed(source, storage_options=options).select(pl.len()).collect().item() == 16_000
    lf = tadoc.scan_packed(f"{root}/packed/b.parquet", storage_options=options)
    found = lf.filter(pl.col("year") == 2003).tadoc.decompress("text").collect()
    assert_frame_equal(found, FRAME.filter(pl.col("year") == 2003))
    COMPRESSED.lazy().tadoc.sink_parquet(f"{root}/rows/a.parquet", storage_options=options)
    by_polars = pl.scan_parquet(f"{root}/rows/a.parquet", storage_options=options)
    for rows in (by_polars, tadoc.scan_parquet(f"{root}/rows/a.parquet", storage_options=options)):
        assert_frame_equal(rows.collect().tadoc.decompress("text"), FRAME)
    assert tadoc.parquet_info(f"{root}/rows", storage_options=options)["rows"].to_list() == [8000]
    index = COMPRESSED.tadoc.build_index("text", id="year")
    index.save(f"{root}/index", storage_options=options)
    COMPRESSED.lazy().tadoc.sink_index(f"{root}/sunk", id="year", storage_options=options)
    wanted = index.search("word16 host-3", k=20)
    for name in ("index", "sunk"):
        loaded = tadoc.load_index(f"{root}/{name}", storage_options=options)
        assert_frame_equal(loaded.search("word16 host-3", k=20), wanted)
    with pytest.raises(FileExistsError, match=f"save: {root}/index already exists"):
        index.save(f"{root}/index", storage_options=options)
    with pytest.raises(FileNotFoundError, match=f"load_index: {root}/none has no object header.json"):
        tadoc.load_index(f"{root}/none", storage_options=options)
    with pytest.raises(FileNotFoundError, match=f"scan_packed: {root}/none: no Parquet file found"):
        tadoc.scan_packed(f"{root}/none", storage_options=options)


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_an_object_of_many_parts(scheme: str, s3: Server, azure: azure_server.Server, tmp_path: Path) -> None:
    from polars_tadoc.storage.object_store import Access, Store

    options = {"s3": s3.options, "gs": s3.google_options, "az": azure.options}[scheme]
    content = random.Random(1).randbytes(17_000_000)
    (tmp_path / "file").write_bytes(content)
    store = Store(f"{scheme}://bucket", Access(options), "write_packed")
    store.write("large", tmp_path / "file")
    met, end = store.tail("large", 1000)
    assert (met.size, end) == (len(content), content[-1000:])
    assert store.read(met, 5_000_000, 12_000_000) == content[5_000_000:12_000_000]
    (tmp_path / "file").write_bytes(b"other")
    store.write("large", tmp_path / "file")
    with pytest.raises(OSError, match=f"write_packed: {scheme}://bucket/large was replaced while it was read"):
        store.read(met, 0, 3)
    store.remove(["large", "none"])
    assert store.find("large") is None


@pytest.mark.slow
def test_without_obstore_the_package_that_is_missing_is_named() -> None:
    code = (
        "import sys; sys.modules['obstore'] = None\n"
        "import polars_tadoc as tadoc\n"
        "try: tadoc.scan_packed('s3://bucket/a.parquet')\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        'scan_packed: s3://bucket needs the package obstore; install it: pip install "polars-tadoc[cloud]"'
        in done.stdout
    )


def test_addresses_of_this_machine(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    address = f"file://{str(folder).replace(' ', '%20')}"
    COMPRESSED.tadoc.write_packed(f"{address}/a.parquet")
    COMPRESSED.lazy().tadoc.sink_packed(f"{address}/b.parquet")
    assert sorted(one.name for one in folder.iterdir()) == ["a.parquet", "b.parquet"]
    for source in (address, f"{address}/*.parquet", f"{address}/a.parquet"):
        assert_frame_equal(tadoc.scan_packed(source).head(8000).collect().tadoc.decompress("text"), FRAME)
    COMPRESSED.tadoc.build_index("text").save(f"{address}/index")
    assert tadoc.load_index(f"{address}/index").documents == 8000
    COMPRESSED.lazy().tadoc.sink_parquet(f"{address}/rows.parquet")
    assert tadoc.parquet_info(f"{address}/rows.parquet")["rows"].to_list() == [8000]


def test_open_files(tmp_path: Path) -> None:
    written = io.BytesIO()
    COMPRESSED.tadoc.write_packed(written)
    COMPRESSED.tadoc.write_packed(tmp_path / "a.parquet")
    assert written.getvalue() == (tmp_path / "a.parquet").read_bytes()
    lf = tadoc.scan_packed(written)
    assert_frame_equal(lf.collect().tadoc.decompress("text"), FRAME)
    joined = lf.join(lf.select("note"), on="note").select(pl.len()).collect().item()
    assert joined == FRAME.join(FRAME.select("note"), on="note").height
    with (tmp_path / "a.parquet").open("rb") as file:
        file.seek(5)
        lf = tadoc.scan_packed([file, written])
        assert lf.select(pl.len()).collect().item() == 16_000
        assert_frame_equal(
            lf.tadoc.word_count("text").head(3).collect(), pl.concat([COMPRESSED] * 2).tadoc.word_count("text").head(3)
        )
    with pytest.raises(Exception, match=r"a\.parquet was closed; keep it open"):
        lf.collect()
    rows = io.BytesIO()
    COMPRESSED.lazy().tadoc.sink_parquet(rows)
    assert tadoc.parquet_info(rows)["rows"].to_list() == [8000]


def test_an_open_file_may_give_fewer_bytes_than_asked_for(tmp_path: Path) -> None:
    df = pl.DataFrame({"text": [f"to be or not {k}" for k in range(1000)]}).tadoc.compress("text")
    df.tadoc.write_packed(tmp_path / "a.parquet")

    class Short(io.FileIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(size if size is None or size < 0 else min(size, 100))

    with Short(tmp_path / "a.parquet") as file:
        assert_frame_equal(tadoc.scan_packed(file).collect(), df)


def test_open_files_that_will_not_do(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r'gives text; open it in binary mode: open\(path, "rb"\)'):
        tadoc.scan_packed(io.StringIO("a"))  # type: ignore[arg-type]
    with pytest.raises(tadoc.errors.InvalidGrammarError, match="<BytesIO 1>: not a Parquet file"):
        tadoc.scan_packed(io.BytesIO(b"nothing"))

    class Pipe(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> Any:
            return b""

    with pytest.raises(TypeError, match=r"is not seekable; read it into io\.BytesIO"):
        tadoc.scan_packed(Pipe())  # type: ignore[arg-type]
