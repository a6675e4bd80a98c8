"""A gateway before an S3 server: counts what passes, and fails or acts where a test says so."""

from __future__ import annotations

import http.client
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Request(NamedTuple):
    """A request that came in, and how many came before it by the same method."""

    method: str
    path: str
    number: int
    range: str


Decide = Callable[[Request], int]
"""Returns a status with which to refuse a request, or 0 to pass it on."""


class Gateway:
    """Passes requests on to the server at `host` and `port`, and counts bytes of the answers."""

    def __init__(self, host: str, port: int, decide: Decide = lambda request: 0) -> None:
        self.decide = decide
        self.answered: Counter[str] = Counter()
        self.requests: list[Request] = []
        self._numbers: Counter[str] = Counter()
        lock = threading.Lock()
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                with lock:
                    number = gateway._numbers[self.command]
                    gateway._numbers[self.command] += 1
                    request = Request(
                        self.command, self.path, number, self.headers.get("Range", "")
                    )
                    gateway.requests.append(request)
                    status = gateway.decide(request)
                if status:
                    self.answer(status, {}, b"")
                    return
                connection = http.client.HTTPConnection(host, port)
                connection.request(self.command, self.path, body, dict(self.headers.items()))
                found = connection.getresponse()
                data = found.read()
                with lock:
                    gateway.answered[self.command] += len(data)
                self.answer(found.status, dict(found.getheaders()), data)
                connection.close()

            def answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
                self.send_response_only(status)
                for key, value in headers.items():
                    if key.lower() not in ("content-length", "connection", "transfer-encoding"):
                        self.send_header(key, value)
                length = headers.get("Content-Length", str(len(data)))
                self.send_header("Content-Length", length)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
