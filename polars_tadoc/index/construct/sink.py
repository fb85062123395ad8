"""Builds an index of more documents than fit in memory: window by window, merged and written word by word."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.engine.choose import choose
from polars_tadoc.engine.progress import counted
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError
from polars_tadoc.execute.splits import working_bytes
from polars_tadoc.execute.windows import Window, in_parts
from polars_tadoc.index.codecs import Codec
from polars_tadoc.index.construct.collect import MAX_DOCUMENTS, Counted, count_words, document_rows
from polars_tadoc.index.construct.disk_array import DiskArray
from polars_tadoc.index.construct.field_documents import count_fields, interleave, tokenizer_of_all
from polars_tadoc.index.construct.plain_text import stored_form
from polars_tadoc.index.construct.posting_files import LONG, PostingsWriter
from polars_tadoc.index.construct.sink_documents import DocumentsWriter
from polars_tadoc.index.construct.sink_terms import TermsWriter
from polars_tadoc.index.fields import Fields
from polars_tadoc.index.query.analyzer import Analyzer
from polars_tadoc.index.store.folder import Writer, new_folder
from polars_tadoc.index.store.storage import contents, require_saved
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.model.corpus import require_countable
from polars_tadoc.model.payload import short_name
from polars_tadoc.model.word_map import naming_normalize
from polars_tadoc.records import Checkpoint, Spill
from polars_tadoc.records.records import Layout, Records
from polars_tadoc.runtime.arrow_arrays import lent, strings
from polars_tadoc.traversal.options import Options
from polars_tadoc.traversal.text_corpus import WORDS, corpora_of, naming_rows, require_text, require_tokenizer

LAYOUT = Layout(("word", "row"), 2)
"""Counts of words by document; a word's documents may arrive in several ranges. The first word is the empty string,
which no tokenizer returns: its counts are the documents' lengths."""

SPILL_SHARE = 2
"""Maximum share of the limit for postings that are not yet written."""

RANGE = 1 << 20
"""Postings coded at a time."""

CALL = "sink_index"


def sink_index(
    windows: Iterable[Window],
    path: Path,
    overwrite: bool,
    documents: DocumentsWriter,
    options: Options,
    codec: Codec,
    limit: int,
    checkpoint: Checkpoint | None = None,
    fields: Fields | None = None,
) -> None:
    """Write an index of the documents of some windows.

    Parameters
    ----------
    windows
        The documents; with a checkpoint an empty window first, then one per partition.
    path, overwrite, options, codec
        As for ``lf.tadoc.sink_index``, and the same errors.
    documents
        Writes the documents' data.
    limit
        Memory limit in bytes.
    checkpoint
        Stores postings of finished partitions, for resuming.
    fields
        Columns of the windows' frames, if documents have several texts.

    """
    require_saved(options.morphism, CALL)
    room = working_bytes(limit) // SPILL_SHARE
    with Spill(LAYOUT, room, CALL, checkpoint) as spill, new_folder(path, overwrite, CALL) as folder:
        writer, scratch = Writer(folder), folder / "scratch"
        scratch.mkdir()
        building = (
            _Building(options, documents, spill) if fields is None else _OfFields(options, documents, spill, fields)
        )
        documents.open(folder, scratch)
        shown = counted(windows, CALL, lambda window: window.height)
        for partition, window in enumerate(shown, start=-1):  # the first window of a packed scan has no partition
            is_counted = partition in spill.covered
            for part in in_parts(window, limit):
                building.add(building.cut(part), is_counted)
            if partition >= 0 and not is_counted:
                spill.finish(partition)
        segment = _Segment(writer, codec, scratch)
        for records in spill.merged(batch=RANGE):
            segment.add(records)
        described = segment.finish()
        about = documents.finish(writer)
        shutil.rmtree(scratch)
        writer.finish(contents(codec, building.analyzer, about, [described], fields))


class _Building:
    """Counts the words of documents, window by window."""

    def __init__(self, options: Options, documents: DocumentsWriter, spill: Spill) -> None:
        self._options, self._documents, self._spill = options, documents, spill
        self.analyzer = Analyzer(options.tokenizer or WORDS, options.morphism)
        self._seen, self._count = False, 0

    def cut(self, window: Window) -> Window:
        """Return a window of documents as corpora, and its text compressed if it is stored."""
        text, tokenizer = window.column, self._options.tokenizer
        if text is not None and text.dtype == pl.String:
            with naming_rows(text, window.first):
                kept = stored_form(text, tokenizer or WORDS, self._options.engine, self._documents.stores_text)
                corpora = corpora_of(kept, CALL, tokenizer)
            moved = (replace(corpus, rows=corpus.rows + window.first) for corpus in corpora)
            return replace(window, corpora=tuple(moved), column=kept)
        for corpus in window.corpora:
            require_tokenizer(corpus, tokenizer, CALL)
        return window

    def add(self, window: Window, is_counted: bool) -> None:
        """Count the words of a window's documents unless already counted, and write their data."""
        corpora, first = window.corpora, self._count
        rows = document_rows(corpora)
        self._count += len(rows)
        if self._count > MAX_DOCUMENTS:
            raise LimitExceededError(f"{CALL}: an index holds at most {MAX_DOCUMENTS:,} documents; build several")
        self._documents.add(window, rows)
        if corpora:
            self._require_one_tokenizer(Analyzer.of(corpora, self._options.morphism))
        if len(rows) and not is_counted:
            self._spill.add(self._counted(window, rows, first))

    def _counted(self, window: Window, rows: npt.NDArray[np.int64], first: int) -> Records:
        corpora = window.corpora
        require_countable(corpora)
        engine = choose(self._options.engine, sum(corpus.symbol_count for corpus in corpora))
        with naming_normalize(CALL):
            counted = count_words(corpora, rows, engine, self._options)
        return self._records(counted, rows, first, short_name(corpora[0].key))

    @staticmethod
    def _records(counted: Counted, rows: npt.NDArray[np.int64], first: int, source: str) -> Records:
        lengths = counted.lengths(rows, CALL)
        terms, (offsets, documents, counts) = counted.in_order()
        if len(terms) and terms.strings[0].as_py() == "":
            raise InvalidGrammarError(f"{source}: it has an empty word: the data is damaged")
        keys = np.empty((len(rows) + len(documents), 2), np.uint32)
        keys[: len(rows), 0] = 0
        keys[: len(rows), 1] = np.arange(first, first + len(rows))
        keys[len(rows) :, 0] = np.repeat(np.arange(1, len(terms) + 1, dtype=np.uint32), np.diff(offsets))
        np.add(documents, np.uint32(first), out=keys[len(rows) :, 1])
        words = pa.concat_arrays([strings([""]), terms.strings])
        return Records(words, keys, np.concatenate([lengths, counts], dtype=np.uint64, casting="unsafe"))

    def _require_one_tokenizer(self, analyzer: Analyzer) -> None:
        own, other = self.analyzer.tokenizer, analyzer.tokenizer
        if self._seen and own != other:
            raise ValueError(
                f'{CALL}: the texts were cut by different tokenizers, "{own.name}", "{other.name}", and queries can be '
                "tokenized by only one: compress all of them with the same tokenizer"
            )
        self.analyzer, self._seen = analyzer, True


class _OfFields(_Building):
    """Counts the words of documents with several texts."""

    def __init__(self, options: Options, documents: DocumentsWriter, spill: Spill, fields: Fields) -> None:
        super().__init__(options, documents, spill)
        self._fields = fields

    def cut(self, window: Window) -> Window:
        """Return the window: its texts are cut when they are added."""
        return window

    def add(self, window: Window, is_counted: bool) -> None:
        """Count the words of a window's documents, and write their data."""
        named, store, first = self._options.tokenizer, self._documents.stores_text, self._count
        texts = [require_text(window.frame[name], CALL) for name in self._fields.names]
        is_cut = any(text.dtype != pl.String and text.null_count() < len(text) for text in texts)
        tokenizer = tokenizer_of_all(texts, named, CALL) if is_cut or not self._seen else self.analyzer.tokenizer
        with ExitStack() as stack:
            for text in texts:
                if text.dtype == pl.String:
                    stack.enter_context(naming_rows(text, window.first))
            found = interleave(window.frame, self._fields, tokenizer, self._options, store, CALL)
        rows = found.rows + window.first
        self._count += len(rows)
        if self._count * len(texts) > MAX_DOCUMENTS:
            raise LimitExceededError(f"{CALL}: an index holds at most {MAX_DOCUMENTS:,} texts; build several")
        self._documents.add(window, rows, found.column)
        if len(rows):
            self._require_one_tokenizer(Analyzer(tokenizer, self._options.morphism))
            counted = count_fields(found, self._fields, self._options, CALL)
            self._spill.add(self._records(counted, rows, first, CALL))


class _Segment:
    """Writes words and their postings, which arrive in order; a word's postings may arrive in several parts."""

    def __init__(self, writer: Writer, codec: Codec, scratch: Path) -> None:
        self._writer, self._scratch = writer, scratch
        self._terms = TermsWriter(writer, "segment_0.terms")
        self._lengths = DiskArray(scratch / "lengths", np.uint32)
        self._postings = PostingsWriter(codec, scratch)
        self._open: _OpenList | None = None
        """Postings of the last word, possibly incomplete."""

    def add(self, records: Records) -> None:
        """Write the next records."""
        if not len(records):
            return
        assert records.counts is not None
        numbers, documents, counts = records.keys[:, 0], records.keys[:, 1], records.counts
        starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
        offsets = np.append(starts, len(numbers))
        terms = records.words.take(lent(numbers[starts]))
        if terms[0].as_py() == "":
            self._lengths.append(counts[: offsets[1]])
            terms, offsets = terms[1:], offsets[1:]
            if not len(terms):
                return
        if self._open is not None and self._open.term == terms[0].as_py():
            own = slice(int(offsets[0]), int(offsets[1]))
            self._open.append(documents[own], counts[own])
            terms, offsets = terms[1:], offsets[1:]
        if len(terms):
            self._close()
            last = int(offsets[-2])
            inside = slice(int(offsets[0]), last)
            self._terms.append(terms[:-1])
            self._postings.append(offsets[:-1] - offsets[0], np.ascontiguousarray(documents[inside]), counts[inside])
            self._open = _OpenList(terms[-1].as_py(), self._scratch)
            self._open.append(documents[last:], counts[last:])

    def _close(self) -> None:
        if self._open is not None:
            self._terms.append(strings([self._open.term]))
            self._open.write(self._postings)
        self._open = None

    def finish(self) -> dict[str, Any]:
        """Write the files of the segment; return its part of the header."""
        self._close()
        lengths = self._lengths
        self._terms.finish()
        arrays = self._postings.finish(self._writer, "segment_0")
        longest = max((int(chunk.max()) for chunk in lengths.chunks()), default=0)
        dtype = np.min_scalar_type(longest)
        with self._writer.open_array("segment_0.lengths", dtype) as file:
            for chunk in lengths.chunks():
                file.write(chunk.astype(dtype).data)
        return {"documents": len(lengths), "deleted": False, "arrays": arrays}


class _OpenList:
    """A word's postings: in memory while they are few, then in files."""

    def __init__(self, term: str, scratch: Path) -> None:
        self.term, self._scratch = term, scratch
        self._documents: list[npt.NDArray[np.uint32]] = []
        self._counts: list[npt.NDArray[np.uint64]] = []
        self._held = 0
        self._long_lists: tuple[DiskArray, DiskArray] | None = None

    def append(self, documents: npt.NDArray[np.uint32], counts: npt.NDArray[np.uint64]) -> None:
        """Append postings."""
        self._documents.append(documents.copy())
        self._counts.append(counts.copy())
        self._held += len(documents)
        if self._held > LONG:
            self._write_down()

    def _write_down(self) -> None:
        if self._long_lists is None:
            names = ("open documents", "open counts")
            self._long_lists = (
                DiskArray(self._scratch / names[0], np.uint32),
                DiskArray(self._scratch / names[1], np.uint32),
            )
        for documents, counts in zip(self._documents, self._counts, strict=True):
            if int(counts.max()) >> 32:
                raise LimitExceededError(
                    f"{CALL}: a document contains a word more than 4,294,967,295 times; split this document"
                )
            self._long_lists[0].append(documents)
            self._long_lists[1].append(counts)
        self._documents, self._counts, self._held = [], [], 0

    def write(self, postings: PostingsWriter) -> None:
        """Write the list."""
        if self._long_lists is not None:
            self._write_down()
            postings.append_long(*self._long_lists)
            for one in self._long_lists:
                one.delete()
            return
        documents = np.concatenate(self._documents)
        postings.append(running_sum(np.array([len(documents)])), documents, np.concatenate(self._counts))
