"""Documents built as DBLP's, of real papers: names, titles and all else are those of the ACL Anthology."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice
from xml.sax.saxutils import escape, quoteattr

import lxml.etree
import polars as pl

from benchmarks import corpora

PAPERS = "xml_acl_papers"
FIELDS = ["pages", "year", "volume", "journal", "booktitle", "publisher", "month", "doi", "url"]
"""What follows authors, editors and the title, in DBLP's order; ``doi`` becomes ``ee``."""


def record(paper: str) -> str:
    r"""Write a paper of the ACL Anthology as a record of DBLP.

    Examples
    --------
    >>> record('<paper id="1"><title><fixed-case>T</fixed-case>wigs</title><year>2013</year></paper>')
    '<inproceedings key="1">\n<title>Twigs</title>\n<year>2013</year>\n</inproceedings>\n'

    """
    root = lxml.etree.fromstring(paper.encode())
    kind = (root.findtext("bibtype") or "inproceedings").lower()
    kind = {"book": "proceedings", "misc": "www"}.get(kind, kind)
    lines = [f"<{kind} key={quoteattr(root.findtext('bibkey') or root.get('id', ''))}>"]
    for role in ("author", "editor"):
        for person in root.iter(role):
            name = f"{person.findtext('first') or ''} {person.findtext('last') or ''}".strip()
            lines.append(f"<{role}>{escape(name)}</{role}>")
    lines += [f"<title>{_one_line(_mixed(title))}</title>" for title in root.iter("title")]
    for field in FIELDS:
        name = {"doi": "ee"}.get(field, field)
        if field == "booktitle" and kind == "article":
            name = "journal"
        texts = ["".join(found.itertext()) for found in root.iterchildren(field)]
        lines += [f"<{name}>{escape(_one_line(text))}</{name}>" for text in texts]
    return "\n".join([*lines, f"</{kind}>", ""])


def _mixed(title: lxml.etree._Element) -> str:
    """Write a title with what is set in italics, as DBLP's are; other marks go, their text stays."""
    written = escape(title.text or "")
    for child in title:
        inner = _mixed(child)
        written += (f"<i>{inner}</i>" if child.tag == "i" else inner) + escape(child.tail or "")
    return written


def _one_line(text: str) -> str:
    return " ".join(text.split())


def documents(count: int, size: int) -> list[str]:
    """Give so many documents of so many bytes (nearly); where the papers do not suffice they come again."""
    papers = pl.read_parquet(corpora.SHARED / f"{PAPERS}.parquet", columns=["text"])["text"]
    drawn = papers.sample(fraction=1, shuffle=True, seed=1)
    return list(islice(_cut(drawn, size), count))


def _cut(papers: pl.Series, size: int) -> Iterator[str]:
    records: list[str] = []
    length = 0
    for paper in cycle(papers):
        records.append(record(paper))
        length += len(records[-1].encode())
        if length >= size:
            yield '<?xml version="1.0" encoding="UTF-8"?>\n<dblp>\n' + "".join(records) + "</dblp>\n"
            records, length = [], 0
