"""An S3 server on this machine, for tests, that counts what is asked of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
from moto.server import ThreadedMotoServer


@dataclass
class Server:
    """A server with one bucket."""

    port: int
    asked: list[tuple[str, str, int]] = field(default_factory=list)
    """Method, path and bytes given of each request."""

    @property
    def options(self) -> dict[str, str]:
        """What Polars takes as ``storage_options``."""
        return {
            "aws_access_key_id": "key",
            "aws_secret_access_key": "secret",
            "aws_region": "us-east-1",
            "aws_endpoint_url": f"http://127.0.0.1:{self.port}",
            "aws_allow_http": "true",
        }

    @property
    def google_options(self) -> dict[str, str]:
        """The same for Google's protocol (``gs://``)."""
        account = {"gcs_base_url": f"http://127.0.0.1:{self.port}", "disable_oauth": True}
        unused = dict.fromkeys(["client_email", "private_key", "private_key_id"], "")
        return {"google_service_account_key": json.dumps(account | unused), "allow_http": "true"}

    @property
    def client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            region_name="us-east-1",
        )

    @property
    def keys(self) -> list[str]:
        return [one["Key"] for one in self.client.list_objects_v2(Bucket="bucket").get("Contents", [])]

    def size(self, key: str) -> int:
        return int(self.client.head_object(Bucket="bucket", Key=key)["ContentLength"])

    def given(self, key: str = "") -> tuple[int, int]:
        """Number of GETs, and bytes given, of what begins so, since the last time."""
        found = [size for method, path, size in self.asked if method == "GET" and path.startswith(f"/bucket/{key}")]
        self.asked.clear()
        return len(found), sum(found)


@contextmanager
def serving() -> Iterator[Server]:
    """Run a server, on this machine alone, until the end."""
    import moto.server

    server = Server(0)
    made = moto.server.DomainDispatcherApplication.__call__

    def counted(self: Any, environ: Any, start_response: Any) -> Any:
        if not environ.get("HTTP_AUTHORIZATION", "").startswith("AWS"):  # Google's: its requests are else those of S3
            environ["HTTP_AUTHORIZATION"] = "AWS4-HMAC-SHA256 Credential=key/20240101/us-east-1/s3/aws4_request"
        given = list(made(self, environ, start_response))
        server.asked.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], sum(map(len, given))))
        return given

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto.server.DomainDispatcherApplication.__call__ = counted  # type: ignore[method-assign]
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    try:
        running.start()
        server.port = running.get_host_and_port()[1]
        server.client.create_bucket(Bucket="bucket")
        yield server
    finally:
        running.stop()
        moto.server.DomainDispatcherApplication.__call__ = made  # type: ignore[method-assign]
