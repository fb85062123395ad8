"""A search service over HTTP: build an index once, answer queries from any number of clients, take new documents.

    python examples/service.py                                   # a demonstration on the PEPs in examples/data
    python examples/service.py pages.parquet --port 8000         # serves your documents: /search?q=words

Only the standard library's server is used; in a web framework, the handler does the same.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit
from urllib.request import urlopen

import polars as pl

import polars_tadoc as tadoc

SAMPLE = Path(__file__).parent / "data" / "peps.parquet"
TIMEOUT = 10
"""Seconds that a client may take to send its request, or to read the answer; each holds a thread."""


class Search:
    """The index that answers now, and its server; ``replace`` takes another one without a pause."""

    def __init__(self, index: tadoc.Index) -> None:
        self.index, self.server = index, index.serve(k=5, deadline=2.0)
        self._lock = threading.Lock()  # no query goes to a server that is being closed

    def answer(self, query: str) -> list[dict[str, object]]:
        """Return the best documents with a passage each; from any thread."""
        with self._lock:
            index, waiting = self.index, self.server.submit(query)
        found = waiting.result()
        return index.snippets(found, query, words=12).select("id", "score", "snippet").to_dicts()

    def replace(self, index: tadoc.Index) -> None:
        """Answer from another index; queries that wait are still answered from the old one."""
        server = index.serve(k=5, deadline=2.0)
        with self._lock:
            old, self.index, self.server = self.server, index, server
        old.close()


def handler(search: Search) -> type[BaseHTTPRequestHandler]:
    """Return a handler of GET /search?q=words, with JSON."""

    class Handler(BaseHTTPRequestHandler):
        timeout = TIMEOUT

        def do_GET(self) -> None:
            try:
                url = urlsplit(self.path)
            except ValueError:
                self.send_error(400)
                return
            query = parse_qs(url.query).get("q", [""])[0]
            if url.path != "/search" or not query:
                self.send_error(404, "GET /search?q=words")
                return
            try:
                body = json.dumps(search.answer(query), ensure_ascii=False).encode()
            except tadoc.errors.DeadlineMissedError:
                self.send_error(503, "busy")
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    return Handler


def main(arguments: list[str] | None = None) -> None:
    """Serve a file, or show what a client sees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", nargs="?", type=Path, help="Parquet file with a column of text")
    parser.add_argument("--column", default="text", help="the column of text")
    parser.add_argument("--id", help="column that names the documents (default: row numbers)")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args(arguments)
    demonstration = options.documents is None
    frame = pl.read_parquet(options.documents or SAMPLE)
    with tempfile.TemporaryDirectory() as folder:
        print("# Build the index, save it, and load it as each server process does.")
        column, id = options.column, "pep" if demonstration else options.id
        frame.tadoc.compress(column).tadoc.build_index(column, id=id).save(f"{folder}/index")
        search = Search(tadoc.load_index(f"{folder}/index"))
        print(search.index)
        httpd = ThreadingHTTPServer(("127.0.0.1", 0 if demonstration else options.port), handler(search))
        if not demonstration:
            print(f"# http://127.0.0.1:{options.port}/search?q=…")
            httpd.serve_forever()
        threading.Thread(target=httpd.serve_forever, daemon=True).start()

        def ask(query: str) -> list[dict[str, object]]:
            with urlopen(f"http://127.0.0.1:{httpd.server_port}/search?q={quote(query)}") as response:
                return list(json.load(response))

        print("\n# What a client sees: ids, scores and passages.")
        for hit in ask('"pattern matching" -tutorial')[:2]:
            print(hit)

        print("\n# A new document: a new index that shares the unchanged parts replaces the old one, without a pause.")
        new = pl.DataFrame({"pep": [9999], "text": ["Zebras for Python."]}, schema_overrides={"pep": pl.UInt16})
        search.replace(new.tadoc.append_to(search.index, "text", id="pep"))
        print(ask("zebras"))

        print("\n# What the server has done.")
        print(search.server.statistics().answered)
        httpd.shutdown()
        httpd.server_close()
        search.server.close()


if __name__ == "__main__":
    main()
