"""A headless Chromium that tests talk to through its debugging pipe; no library is needed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 120.0

TRAMPOLINE = """
import fcntl, os, sys
# The browser reads commands from descriptor 3 and writes answers to descriptor 4.
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for end, wanted in zip(ends, (3, 4)):
    os.dup2(end, wanted)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_chromium() -> str | None:
    """Return the path of a browser that runs; None where there is none.

    Ubuntu has programs of these names that start a snap or ask for one. A snap sees other files
    below /tmp than everybody else, and could not open a report there.
    """
    return next((path for path in map(shutil.which, NAMES) if path and _runs(path)), None)


def _runs(path: str) -> bool:
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return told.returncode == 0 and "snap" not in told.stdout


class Page:
    """One page of a browser of its own.

    Parameters
    ----------
    profile : Path
        An empty folder for the browser.
    width, height : int
        Size of the window.
    scheme : str
        ``light`` or ``dark``: what the reader prefers.
    """

    def __init__(
        self, profile: Path, width: int = 1400, height: int = 1000, scheme: str = "light"
    ) -> None:
        browser = find_chromium()
        assert browser is not None
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", TRAMPOLINE, str(to_browser), str(from_browser), browser,
             "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--disable-dev-shm-usage",  # in a container it is too small for a page
             "--disable-background-networking", "--remote-debugging-pipe",
             f"--user-data-dir={profile}", f"--window-size={width},{height}", "about:blank"],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.console: list[str] = []
        self.requests: list[str] = []
        self._pages: list[str] = []
        # It answers before its first page is there, and tells then.
        self.call("Target.setDiscoverTargets", discover=True)
        while not self._pages:
            self._note(self._receive())
        self.call("Target.setDiscoverTargets", discover=False)
        attached = self.call("Target.attachToTarget", targetId=self._pages[0], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.prefer(scheme)
        self.resize(width, height)

    def prefer(self, scheme: str) -> None:
        """Say which colours the reader prefers, ``light`` or ``dark``."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def resize(self, width: int, height: int) -> None:
        """Change the size of the window."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def open(self, file: Path) -> None:
        """Load a report and wait until it says that all of it is drawn."""
        self.call("Page.navigate", url=file.as_uri())
        self.wait("document.readyState === 'complete'")
        self.settle()

    def settle(self) -> None:
        """Wait until nothing more is being drawn."""
        self.wait("document.body.dataset.drawn === 'yes'")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true, asking the page itself to look again."""
        end = time.monotonic() + PATIENCE
        look = (
            f"new Promise(done => {{const look = () => ({condition}) ? done(true) : "
            "setTimeout(look, 20); setTimeout(() => done(false), 2000); look();})"
        )
        while self.evaluate(look) is not True:
            assert time.monotonic() < end, f"never came true: {condition}"

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, a promise's once it has one."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def picture(self, file: Path, *, whole: bool = True) -> None:
        """Save a picture of the page."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(found["data"]))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its answer; what happens meanwhile is noted."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 20)
            assert part, "the browser has gone"
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(text)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        method, found = event.get("method"), event.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.console += [str(argument.get("value")) for argument in found["args"]]
        elif method == "Runtime.exceptionThrown":
            self.console.append(str(found["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.console.append(found["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(found["request"]["url"])
        elif method == "Target.targetCreated" and found["targetInfo"]["type"] == "page":
            self._pages.append(found["targetInfo"]["targetId"])

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        self._process.wait(PATIENCE)
        os.close(self._write)
        os.close(self._read)
