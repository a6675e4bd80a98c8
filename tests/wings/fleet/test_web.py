"""Recordings on a web server, whose listing tells names and no sizes."""

from __future__ import annotations

import contextlib
import json
import pickle
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from forewarn.cli.main import main
from forewarn.files.remote import address, without_secrets
from tests import bags

pytestmark = pytest.mark.clocked


LINE = b'{"t": 0.0, "gap": 1}\n'


class Silent(SimpleHTTPRequestHandler):
    """Serves a folder, and says nothing of it; paths that begin with a status answer with it."""

    def send_head(self) -> Any:
        """Answer to GET and HEAD."""
        first = self.path.split("/")[1]
        if first in ("401", "500"):
            return self.send_error(int(first))
        if first == "endless":
            return self.send_for_ever()
        return super().send_head()

    def send_for_ever(self) -> None:
        """Send without an end, or drop by drop; a range is said to be one."""
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        self.send_response(206 if asked else 200)
        if self.command == "HEAD" and "unknown" not in self.path:
            self.send_header("Content-Length", "1000")
        self.end_headers()
        block = b"x" if "slow" in self.path else LINE * 50_000
        if asked and "whole" in self.path:  # only whoever asks for all of it gets no end
            self.wfile.write((LINE * 100)[int(asked[1]) : int(asked[2]) + 1])
            return
        self.close_connection = True
        with contextlib.suppress(OSError):
            while self.command != "HEAD":
                self.wfile.write(block)
                if block == b"x":
                    self.server.drops.wait(0.05)  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "site"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(folder))) as server:
        server.drops = threading.Event()  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.drops.set()  # type: ignore[attr-defined]
        server.shutdown()


@pytest.mark.parametrize("pattern", ["run*.mcap", "run*.jsonl", "run*.db3"])
def test_a_pattern_on_a_web_server_gives_what_the_disk_gives(
    fleet: Any,
    site: str,
    corridor_run: Any,
    record: Callable[..., Path],
    drive: Callable[..., Any],
    tmp_path: Path,
    pattern: str,
) -> None:
    folder, config = tmp_path / "site", corridor_run.config
    if pattern.endswith("mcap"):
        paths = [record(folder / f"run{seed}.mcap", drive(seed, 5.0)) for seed in range(2)]
    else:
        config = tmp_path / "monitor.yaml"
        signal = "timeout: 1"
        if pattern.endswith("db3"):
            signal += ", topic: /gap, type: std_msgs/msg/Float64, value: data"
        config.write_text(
            f"version: 1\nrate: 10\nsignals: {{gap: {{{signal}}}}}\n"
            "predicates: {close: gap < 2}\nproperties: {far: {formula: always(not close)}}\n"
        )
    if pattern.endswith("db3"):
        paths = [folder / f"run{seed}.db3" for seed in range(2)]
        for seed, path in enumerate(paths):
            gaps = [
                bags.Message(tick * 100_000_000, "/gap", float((seed + tick) % 5))
                for tick in range(40)
            ]
            bags.write_bag(tmp_path / path.stem, gaps, "sqlite3")
            shutil.move(tmp_path / path.stem / f"{path.stem}.db3", path)
    elif pattern.endswith("jsonl"):
        paths = [folder / f"run{seed}.jsonl" for seed in range(2)]
        for seed, path in enumerate(paths):
            lines = [{"t": tick / 10, "gap": (seed + tick) % 5} for tick in range(40)]
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    local, remote = tmp_path / "local.json", tmp_path / "remote.json"
    assert main(["learn", *map(str, paths), "-c", str(config), "-o", str(local), "-q"]) == 0
    fleet.learned(f"{site}/{pattern}", "-c", config, "-o", remote, "-j", 1)
    here, there = (json.loads(path.read_text()) for path in (local, remote))
    assert all(there[key] == here[key] for key in ("states", "starts", "transitions"))
    both = (f"{site}/{pattern}", paths[0], "-c", config, "-o", tmp_path / "both.json", "-j", 1)
    result = fleet.forewarn("learn", *both)
    if pattern.endswith("mcap"):  # read by ranges: its digest is not that of its content
        assert result.returncode == 0
        assert "give the same counts to the last one: they may be one recording" in result.stderr
    else:
        assert there["provenance"] == here["provenance"]
        assert result.returncode == 2 and "holds the same data as" in result.stderr


@pytest.mark.parametrize(
    ("path", "said"),
    [("401/run.mcap", "HTTP 401"), ("500/run.mcap", "HTTP 500"), ("none.mcap", "")],
)
def test_errors_name_the_status_and_no_secret(
    fleet: Any, site: str, corridor_run: Any, tmp_path: Path, path: str, said: str
) -> None:
    url = f"{site}/{path}?signature=SECRET".replace("http://", "http://user:SECRET@")
    arguments = (url, "-c", corridor_run.config, "-o", tmp_path / "m.json", "-j", 1)
    result = fleet.forewarn("learn", *arguments)
    assert result.returncode == 2
    told = "".join(result.stderr.split("\n"))
    assert path in told and said in told
    assert "SECRET" not in result.stderr + result.stdout


BOUNDED = """
import sys
from forewarn.cli.main import main
from forewarn.files import web
web.GRACE = float(sys.argv.pop(1))
code = main(sys.argv[1:])
# The peak of this program alone: getrusage tells that of the process that started it, too.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
assert int(peak.split()[1]) < 1 << 20, "a GB"
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("path", "grace", "said"),
    [
        ("run.jsonl", 60, "the server sends more than 1000 bytes"),
        ("whole.jsonl", 60, "it has more than the 1000 bytes that it announced"),
        ("unknown.jsonl", 60, "its server does not tell how long it is"),
        ("run.mcap", 60, "the server sends more than 1000 bytes"),
        ("run*.mcap", 60, "the server sends more than 268435456 bytes"),
        ("slow.jsonl", 0.5, "the server sends less than 10000 bytes a second"),
        ("slow.mcap", 0.5, "the server sends less than 10000 bytes a second"),
    ],
)
def test_an_answer_without_an_end_is_read_no_further_than_it_should_be_long(
    packages: dict[str, str],
    site: str,
    corridor_run: Any,
    tmp_path: Path,
    path: str,
    grace: float,
    said: str,
) -> None:
    arguments = (f"{site}/endless/{path}", "-c", corridor_run.config, "-o", tmp_path / "m.json")
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED, str(grace), "learn", *map(str, arguments), "-j", "1"],
        env=packages,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2, done.stderr
    assert said in " ".join(done.stderr.split())
    assert f"{site}/endless/{path}" in "".join(done.stderr.split())


def test_a_signed_url_is_read_and_its_signature_is_kept_nowhere(
    fleet: Any,
    site: str,
    corridor_run: Any,
    record: Callable[..., Path],
    drive: Callable[..., Any],
    tmp_path: Path,
) -> None:
    record(tmp_path / "site" / "run0.mcap", drive(0, 5.0))
    model = tmp_path / "m.json"
    url = f"{site}/run0.mcap?signature=SECRET"
    result = fleet.forewarn("learn", url, "-c", corridor_run.config, "-o", model, "-j", 1)
    assert result.returncode == 0, result.stderr
    assert "SECRET" not in result.stderr + result.stdout + model.read_text()
    assert "run0.mcap" in model.read_text()


def test_texts_lose_the_secrets_of_their_urls() -> None:
    text = "cannot connect to https://u:p@h/x.mcap?sig=1 and s3://b/run_?.mcap"
    assert without_secrets(text) == "cannot connect to https://h/x.mcap?... and s3://b/run_?.mcap"
    path = address("https://u:p@h/x.mcap?sig=1")
    assert (str(path), path.name, path.suffix) == ("https://h/x.mcap?...", "x.mcap", ".mcap")
    assert pickle.loads(pickle.dumps(path)).url == "https://u:p@h/x.mcap?sig=1"
