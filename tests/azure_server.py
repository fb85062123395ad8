"""As much of Azure's blob service on this machine as tests need: blobs, ranges, blocks, lists."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

WHEN = "Mon, 01 Jan 2024 00:00:00 GMT"


class Server(ThreadingHTTPServer):
    """A service with one container, named ``bucket``."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.blobs: dict[str, bytes] = {}
        self.blocks: dict[tuple[str, str], bytes] = {}

    @property
    def options(self) -> dict[str, str]:
        """What Polars takes as ``storage_options``."""
        return {
            "azure_storage_account_name": "account",
            "azure_storage_endpoint": f"http://127.0.0.1:{self.server_port}",
            "azure_skip_signature": "true",
            "allow_http": "true",
        }


class Handler(BaseHTTPRequestHandler):
    """Answers requests."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *values: Any) -> None:
        """Say nothing."""

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _asked(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        return unquote(parts.path).removeprefix("/bucket").strip("/"), {
            k: v[0] for k, v in parse_qs(parts.query).items()
        }

    def do_PUT(self) -> None:
        """Put a blob, a block, or a blob of blocks."""
        name, options = self._asked()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        blobs, blocks = self.server.blobs, self.server.blocks
        if options.get("comp") == "block":
            blocks[name, options["blockid"]] = body
        elif options.get("comp") == "blocklist":
            listed = re.findall(rb"<(?:Latest|Uncommitted)>([^<]*)<", body)
            blobs[name] = b"".join(blocks.pop((name, one.decode())) for one in listed)
        elif self.headers.get("If-None-Match") == "*" and name in blobs:
            return self._answer(409)
        else:
            blobs[name] = body
        return self._answer(201, ETag=_tag(blobs.get(name, b"")), Last_Modified=WHEN)

    def do_POST(self) -> None:
        """Delete the blobs that a batch names."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        answers = ""
        for number, path in re.findall(r"Content-ID: (\d+)\r\n\r\nDELETE (\S+) HTTP/1.1", body):
            found = self.server.blobs.pop(unquote(path).split("?")[0].removeprefix("/bucket/"), None)
            status = "404 Not Found\r\nx-ms-error-code: BlobNotFound" if found is None else "202 Accepted"
            answers += f"--batch\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
            answers += f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n\r\n"
        self._answer(202, f"{answers}--batch--\r\n".encode(), Content_Type="multipart/mixed; boundary=batch")

    def do_GET(self) -> None:
        """Get a blob, a part of it, or a list."""
        name, options = self._asked()
        if options.get("comp") == "list":
            return self._list(options.get("prefix", ""))
        whole = self.server.blobs.get(name)
        if whole is None:
            return self._answer(404)
        told = {"ETag": _tag(whole), "Last_Modified": WHEN, "x_ms_blob_type": "BlockBlob"}
        if self.headers.get("If-Match", told["ETag"]) != told["ETag"]:
            return self._answer(412)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("x-ms-range") or self.headers.get("Range") or "")
        if wanted is None:
            return self._answer(200, whole, **told)
        start, stop = int(wanted[1]), min(int(wanted[2] or len(whole)), len(whole) - 1) + 1
        if start >= len(whole):
            return self._answer(416)
        return self._answer(206, whole[start:stop], Content_Range=f"bytes {start}-{stop - 1}/{len(whole)}", **told)

    do_HEAD = do_GET  # noqa: N815

    def _list(self, prefix: str) -> None:
        found = "".join(
            f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{WHEN}</Last-Modified>"
            f"<Content-Length>{len(blob)}</Content-Length><Content-Type>x</Content-Type><Etag>{_tag(blob)}</Etag>"
            "</Properties></Blob>"
            for name, blob in sorted(self.server.blobs.items())
            if name.startswith(prefix)
        )
        answer = f"<EnumerationResults><Blobs>{found}</Blobs><NextMarker/></EnumerationResults>"
        self._answer(200, answer.encode(), Content_Type="application/xml")


def _tag(blob: bytes) -> str:
    return f'"{sha256(blob).hexdigest()[:16]}"'


@contextmanager
def serving() -> Iterator[Server]:
    """Run a server, on this machine alone, until the end."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
