"""Model files and monitor files of hostile size or depth are refused, at once and in little space.

Each runs in a process of its own that may use half a gigabyte more than it has at the start.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

READ = """
import resource, sys
from forewarn.config import load_spec
from forewarn.errors import ForewarnError
from forewarn.models import load_model
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (1 << 29)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
try:
    (load_spec if sys.argv[1].endswith(".yaml") else load_model)(sys.argv[1])
except ForewarnError as error:
    print(error)
"""
LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 30)
)
HEAD = {"format": "forewarn-model", "version": 1}

FILES: dict[str, Callable[[], bytes]] = {
    "empty.yaml": bytes,
    "laughs.yaml": LAUGHS.encode,
    "merged-laughs.yaml": lambda: (
        b"a0: &a0 {k: v}\n"
        + b"".join(
            b"a%d: &a%d {<<: [%s]}\n" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 10))
            for i in range(1, 20)
        )
    ),
    "itself.yaml": lambda: b"a: &a [*a]\n",
    "deep.yaml": lambda: b"[" * 100_000,
    "deep-mappings.yaml": lambda: b"{a: " * 50_000,
    "deep-blocks.yaml": lambda: b"".join(b" " * i + b"a:\n" for i in range(1000)),
    "deep-dashes.yaml": lambda: b"- " * 100_000 + b"a",
    "large.yaml": lambda: b"#" * (1 << 24),
    "wide.yaml": lambda: b"[" + b"a," * 200_000 + b"]",
    "object.yaml": lambda: b"a: !!python/object/apply:os.system ['true']\n",
    "name.yaml": lambda: b"a: !!python/name:os.system\n",
    "number.yaml": lambda: b"version: 1\nrate: " + b"9" * 500_000 + b"\n",
    "sexagesimal.yaml": lambda: b"version: 1\nrate: " + b"1:" * 100_000 + b"1\n",
    "hexadecimal.yaml": lambda: b"version: 1\nrate: 0x" + b"f" * 500_000 + b"\n",
    "binary.yaml": lambda: b"a: !!binary " + b"A" * 500_000,
    "utf-16.yaml": lambda: ("version: 1\n" * 1000).encode("utf-16"),
    "formula.yaml": lambda: (
        b"version: 1\nrate: 10\nproperties: {p: {formula: '" + b"not " * 50_000 + b"a'}}\n"
    ),
    "deep.json": lambda: b"[" * 10_000_000,
    "deep-objects.json": lambda: b'{"a":' * 1_000_000,
    "number.json": lambda: b'{"version": ' + b"9" * 10_000_000 + b"}",
    "exponent.json": lambda: b'{"format": "forewarn-model", "version": 1e999999}',
    "states.json": lambda: json.dumps({**HEAD, "states": [0] * 1_000_000}).encode(),
    "twice.json": lambda: b"{" + b'"a": 1, ' * 5_000 + b'"a": 1}',
    "text.json": lambda: b'{"format": "' + b"x" * 20_000_000 + b'"}',
    "nulls.json": lambda: bytes(1 << 20),
}


def read(path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_refused_by_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name]())
    said = read(path)
    assert name in said
    assert len(said) < 3_000


def test_a_model_file_that_claims_to_be_huge_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # takes no space on the disk
    assert "at most" in read(path)


def test_a_monitor_file_that_claims_to_be_huge_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert "too large" in read(path)
