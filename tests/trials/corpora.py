"""Real texts for the trials: those of the examples, or whole corpora."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from tests import ROOT

EXAMPLES = ROOT / "examples" / "data"
CORPORA = Path(os.environ.get("TADOC_CORPORA", ROOT.parent / "shared" / "corpora"))


def log_lines(size: str) -> pl.DataFrame:
    """Lines of logs, with the system that each is of and a day out of sixty, in order."""
    found = [(name, CORPORA / f"{name}.parquet") for name in ("logs_loghub2k", "logs_elastic")]
    if size == "full" and all(path.exists() for _, path in found):
        loghub = pl.read_parquet(found[0][1]).select("system", "text")
        elastic = pl.read_parquet(found[1][1]).select(pl.lit("elastic").alias("system"), "text")
        lines = pl.concat([loghub.with_columns(pl.col("system").cast(pl.String)), elastic])
    else:
        text = (EXAMPLES / "logs" / "auth.log").read_text().splitlines()[:3000]
        lines = pl.DataFrame({"text": text}).with_columns(system=pl.col("text").str.extract(r" (\w+)[\[\(:]"))
    day = (pl.int_range(pl.len()) * 60 // pl.len()).cast(pl.Int32)
    return lines.with_row_index("line").with_columns(day=pl.date(2024, 1, 1) + pl.duration(days=day))


def manuals(size: str) -> pl.DataFrame:
    """Pages with their version: many are nearly equal."""
    path = CORPORA / "versioned_cockroach.parquet"
    if size == "full" and path.exists():
        return pl.read_parquet(path).select("version", "text").with_row_index("page")
    peps = pl.read_parquet(EXAMPLES / "peps.parquet")
    edited = peps["text"].str.replace_all("Python", "Viper")
    texts = pl.concat([peps["text"], edited])
    return pl.DataFrame({"version": ["old"] * len(peps) + ["new"] * len(peps), "text": texts}).with_row_index("page")


def documents(size: str) -> pl.DataFrame:
    """Short documents: over 100,000 of them, or some hundred paragraphs."""
    names = ["docs_tldr", "ir_vaswani_docs", "ir_cisi_docs", "ir_cranfield_docs", "logs_elastic", "qa_gsm8k_train"]
    paths = [CORPORA / f"{name}.parquet" for name in names]
    if size == "full" and all(path.exists() for path in paths):
        frames = [pl.read_parquet(path, columns=["text"]).with_columns(kind=pl.lit(path.stem)) for path in paths]
        return pl.concat(frames).with_row_index("number")
    texts = pl.read_parquet(EXAMPLES / "speeches.parquet").select("text", "kind")
    rows = texts.with_columns(pl.col("text").str.split("\n\n")).explode("text").filter(pl.col("text") != "")
    return rows.gather_every(max(1, rows.height // 1500)).with_row_index("number")


def labelled(size: str) -> pl.DataFrame:
    """Texts of several classes."""
    if size == "full" and (CORPORA / "logs_loghub2k.parquet").exists():
        rows = pl.read_parquet(CORPORA / "logs_loghub2k.parquet")
        return rows.select("text", pl.col("system").cast(pl.String).alias("class"))
    return documents("small").select("text", pl.col("kind").alias("class"))


def messages(size: str) -> pl.DataFrame:
    """XML documents, none of them with namespaces or damaged."""
    path = CORPORA / "xml_exoplanet.parquet"
    if size == "full" and path.exists():
        return pl.read_parquet(path).select("text")
    planets = [
        f"<system><name>S{i}</name><star><mass>{i % 7}</mass>"
        + "".join(
            f"<planet><name>P{i}{k}</name><list>{'Confirmed' if k % 2 else 'Open'}</list></planet>"
            for k in range(i % 4)
        )
        + ("<binary><star/></binary>" if i % 5 == 0 else "")
        + "</star></system>"
        for i in range(400)
    ]
    return pl.DataFrame({"text": planets})
