"""Models, shards and monitor files of hostile size or depth are refused, at once, in little space.

One process reads them all, one after another. For each it may use half a gigabyte more than it has
then, and 20 s of processor time.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard
from extent import WHOLE
from scipy import sparse

from forewarn.config.file import load_spec
from forewarn.errors import ForewarnError
from forewarn.learning.shard_files import MAGIC
from forewarn.models.counts import CountModel
from forewarn.models.file import dump_model, load_model
from forewarn.states.kinds import parse_states

READ = """
import gc, json, resource, sys
from forewarn.config.file import load_spec
from forewarn.errors import ForewarnError
from forewarn.learning.shard_files import unpack
from forewarn.models.file import load_model
from pathlib import Path

def load_shard(path):
    unpack(Path(path).read_bytes())

LOAD = {".yaml": load_spec, ".shard": load_shard}

def limit(kind, value):
    resource.setrlimit(kind, (value, resource.getrlimit(kind)[1]))

for path in sys.argv[1:]:
    gc.collect()
    pages = int(open("/proc/self/statm").read().split()[0])
    limit(resource.RLIMIT_AS, pages * resource.getpagesize() + (1 << 29))
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 20)
    try:
        LOAD.get(Path(path).suffix, load_model)(path)
        told = "is read"
    except ForewarnError as error:
        told = str(error)
    print(json.dumps(told), flush=True)
"""
LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 30)
)
HEAD = {"format": "forewarn-model", "version": 1}
STATES = 1 << 17


def shard(text: bytes, *, claims: int | None = None) -> bytes:
    """Return a shard whose checksum is right, whatever it unpacks to."""
    packer = zstandard.ZstdCompressor(level=9).compressobj(size=claims or len(text))
    packed = packer.compress(text) + (packer.flush() if claims is None else b"")
    return MAGIC + hashlib.sha256(packed).hexdigest().encode() + b"\n" + packed


def forbidding(kinds: list[list[list[int]]]) -> bytes:
    """Return a model of many states, whose checksum is right, with kinds of rows forbidden."""
    space = parse_states("predicates", tuple(f"p{k}" for k in range(17)), (), {})
    none = sparse.csr_matrix((STATES, STATES), dtype=np.int64)
    starts = np.zeros(STATES, dtype=np.int64)
    model = CountModel(space, 10.0, "0" * 64, tuple(range(STATES)), none, starts)
    content = {**json.loads(dump_model(model)), "forbidden": kinds}
    del content["checksum"]
    compact = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    content["checksum"] = hashlib.sha256(compact).hexdigest()
    return json.dumps(content).encode()


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
    "packed.json.gz": lambda: gzip.compress(b'{"format": [' + b"[]," * 80_000_000 + b"0]}"),
    "kinds.json.gz": lambda: gzip.compress(forbidding([[[k], [k]] for k in range(STATES)])),
    "packed.shard": lambda: shard(b'{"codes": [' + b"[]," * 2_000_000 + b"0]}"),
    "claims.shard": lambda: shard(b"{", claims=1 << 50),
}


LARGE = {"deep.json", "kinds.json.gz", "number.json", "packed.json.gz"}
"""Those that take seconds to make."""
if not WHOLE:
    FILES = {name: made for name, made in FILES.items() if name not in LARGE}
SHARDS = {"packed.shard": "unpacks to more than 4194304 bytes", "claims.shard": "cut short"}
HUGE = {"huge.json": "at most", "huge.yaml": "too large"}


def read(paths: list[Path]) -> dict[str, str]:
    """Return what is said of each file; nothing of one that ended the process."""
    said = dict.fromkeys((path.name for path in paths), "")
    while paths:
        command = [sys.executable, "-c", READ, *map(str, paths)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        said.update((path.name, answer) for path, answer in zip(paths, answers, strict=False))
        if done.returncode != 0:
            print(f"{paths[len(answers)].name} ends the process: {done.stderr[-2000:]}")
        paths = paths[len(answers) + 1 :]
    return said


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("hostile")
    for name, content in FILES.items():
        (folder / name).write_bytes(content())
    for name in HUGE:
        with (folder / name).open("wb") as file:
            file.truncate(1 << 40)  # takes no space on the disk
    return read([folder / name for name in (*FILES, *HUGE)])


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_refused_by_name(said: dict[str, str], name: str) -> None:
    assert name in said[name] or name in SHARDS
    assert len(said[name]) < 3_000


@pytest.mark.parametrize(("name", "why"), SHARDS.items())
def test_a_hostile_shard_is_refused_by_what_is_wrong(
    said: dict[str, str], name: str, why: str
) -> None:
    assert why in said[name]


@pytest.mark.parametrize("name", HUGE)
def test_a_file_that_claims_to_be_huge_is_not_read(said: dict[str, str], name: str) -> None:
    assert HUGE[name] in said[name]


@pytest.mark.parametrize("read", [load_spec, load_model])
def test_a_device_without_an_end_and_a_name_that_is_none_are_refused(
    read: Callable[[str], object],
) -> None:
    with pytest.raises(ForewarnError, match=r"/dev/zero: .*(no plain file|a plain file|at most)"):
        read("/dev/zero")
    with pytest.raises(ForewarnError, match="cannot be read"):
        read("a\0b")


@pytest.mark.long
def test_what_a_model_forbids_takes_little_more_than_it_says(tmp_path: Path) -> None:
    """It took 1.6 GB of a packed file of 1.2 MB."""
    path = tmp_path / "forbidding.json"
    path.write_bytes(forbidding([[list(range(STATES)), list(range(128))]]))
    assert read([path]) == {"forbidding.json": "is read"}
    assert load_model(path).forbidden.nnz == STATES * 128
