"""A server on this machine that speaks OpenAI's protocol, as its script says."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Stub:
    """A server that answers each request as the next of `script` says; the last one stays.

    An entry is a status with a body, or ``hang`` (no answer until `close`), ``drip`` (a byte now
    and then), ``cut`` (the connection closes), or a barrier that must be passed before "G a" is
    answered.
    """

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.times: list[float] = []
        self.under_way = self.most_under_way = 0
        self.counting = threading.Lock()
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.closing = threading.Event()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with stub.counting:
                    stub.times.append(time.monotonic())
                    stub.requests.append((self.path, dict(self.headers), body))
                    stub.under_way += 1
                    stub.most_under_way = max(stub.most_under_way, stub.under_way)
                    action = stub.script.pop(0) if len(stub.script) > 1 else stub.script[0]
                if isinstance(action, threading.Barrier):
                    action.wait(30)
                    action = completion("G a")
                with stub.counting:
                    stub.under_way -= 1
                if action == "cut":
                    return
                if action == "hang":
                    stub.closing.wait(30)
                    return
                status, text, *headers = (200, " " * 10_000) if action == "drip" else action
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                for name, value in headers:
                    self.send_header(name, value)
                self.end_headers()
                if action != "drip":
                    self.wfile.write(text.encode())
                    return
                while not stub.closing.wait(0.02):
                    self.wfile.write(b" ")
                    self.wfile.flush()

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def close(self) -> None:
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()


def completion(text: Any, **more: Any) -> tuple[int, str]:
    message = {"role": "assistant", "content": text}
    return 200, json.dumps({"choices": [{"message": message}], **more})
