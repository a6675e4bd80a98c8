"""A fleet's recordings in an S3 bucket, read by a cluster whose processes die."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import forewarn
from forewarn.cli.main import main

pytestmark = [pytest.mark.clocked, pytest.mark.slow]

RECORDINGS = 6
SECONDS = 30.0


class Given(NamedTuple):
    """Recordings in the bucket, the same ones on the disk, and what one process learns of them."""

    url: str
    folder: Path
    config: Path
    model: bytes
    sizes: list[int]


@pytest.fixture(scope="module")
def given(
    bucket: Any,
    corridor_run: Any,
    record: Callable[..., Path],
    drive: Callable[..., Any],
    packages: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Given:
    folder = tmp_path_factory.mktemp("fleet")
    paths = []
    for seed in range(RECORDINGS):
        path = record(folder / f"robot{seed % 2}-run{seed}.mcap", drive(seed, SECONDS))
        bucket.put(f"fleet/2026-11/{path.name}", path.read_bytes())
        paths.append(path)
    model = folder / "model.json"
    config = corridor_run.config
    assert main(["learn", *map(str, sorted(paths)), "-c", str(config), "-o", str(model), "-q"]) == 0
    sizes = [path.stat().st_size for path in paths]
    return Given("s3://fleet/2026-11/*.mcap", folder, config, model.read_bytes(), sizes)


def counted(path: Path) -> dict[str, Any]:
    """Return a model file without digests of recordings: remote ones are known by their ETag."""
    document: dict[str, Any] = json.loads(path.read_bytes())
    del document["checksum"]
    for source in document["provenance"]:
        source.pop("digest")
    return document


def same(path: Path, given: Given, tmp_path: Path) -> bool:
    local = tmp_path / "local.json"
    local.write_bytes(given.model)
    return counted(path) == counted(local)


def test_a_bucket_gives_what_the_disk_gives_and_no_byte_twice(
    fleet: Any, given: Given, tmp_path: Path
) -> None:
    gateway = fleet.gateway()
    model = tmp_path / "model.json"
    found = fleet.learned(given.url, "-c", given.config, "-o", model, "-j", 1, gateway=gateway)
    assert same(model, given, tmp_path)
    ranges = [request for request in gateway.requests if request.range]
    assert found["fetched"] <= sum(given.sizes) + RECORDINGS * 24_576
    listed = gateway.answered["GET"] - found["fetched"]
    assert 0 <= listed < 50_000  # the listing
    assert len(ranges) < RECORDINGS * 60


def doom(fleet: Any, scheduler: Any, gateway: Any, folder: Path) -> list[str]:
    """Start a worker that is killed while it reads, then another; return what it was reading."""
    doomed = fleet.worker(scheduler, folder / "a", gateway)
    killed: list[str] = []

    def kill(request: Any) -> int:
        if request.range and request.number > 12 and not killed:
            killed.append(request.path)
            doomed.kill()
            fleet.worker(scheduler, folder / "b")
        return 0

    gateway.decide = kill
    return killed


def test_a_worker_that_dies_in_mid_recording_costs_nothing_but_time(
    fleet: Any, given: Given, tmp_path: Path
) -> None:
    scheduler = fleet.scheduler()
    gateway = fleet.gateway()
    killed = doom(fleet, scheduler, gateway, tmp_path)
    model = tmp_path / "model.json"
    fleet.learned(given.url, "-c", given.config, "-o", model, "--scheduler", scheduler.found)
    assert killed
    assert same(model, given, tmp_path)


def test_a_run_goes_on_after_the_scheduler_has_died(
    fleet: Any, given: Given, tmp_path: Path
) -> None:
    gateway = fleet.gateway()
    scheduler = fleet.scheduler()
    worker = fleet.worker(scheduler, tmp_path / "a", gateway)
    puts = []

    def kill(request: Any) -> int:
        if request.method == "PUT":
            puts.append(request.path)
            if len(puts) == 3:
                scheduler.kill()
        return 0

    gateway.decide = kill
    model, store = tmp_path / "model.json", "s3://fleet/resumed"
    arguments = (given.url, "-c", given.config, "-o", model, "--store", store)
    result = fleet.forewarn("learn", *arguments, "--scheduler", scheduler.found)
    assert result.returncode == 2
    assert f"{scheduler.found}: the scheduler has gone" in result.stderr
    assert "Traceback" not in result.stderr
    assert not model.exists()
    worker.kill()
    again = fleet.learned(*arguments, "-j", 1)
    assert again["from_store"] >= 2
    assert same(model, given, tmp_path)


def test_who_does_not_answer_is_named_in_one_line(fleet: Any, given: Given, tmp_path: Path) -> None:
    """A store that lets nobody list it, and an address that is none."""
    gateway = fleet.gateway()
    gateway.decide = lambda request: 403
    arguments = (given.url, "-c", given.config, "-o", tmp_path / "model.json")
    result = fleet.forewarn("learn", *arguments, gateway=gateway)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"forewarn learn: error: {given.url}: cannot be listed (")
    assert result.stderr.count("\n") == 1
    result = fleet.forewarn("learn", *arguments, "--scheduler", "nonsense")
    assert (result.returncode, result.stdout) == (2, "")
    assert "nonsense: --scheduler: no scheduler answers" in result.stderr
    assert result.stderr.count("\n") == 1, "nor is anything said when the process ends"


def test_a_worker_of_another_version_is_refused_by_name(
    fleet: Any, given: Given, tmp_path: Path
) -> None:
    source = Path(forewarn.__file__).parent
    other = tmp_path / "other" / "forewarn"
    shutil.copytree(source, other, ignore=shutil.ignore_patterns("__pycache__"))
    (other / "errors.py").write_text((other / "errors.py").read_text() + "\n# another\n")
    scheduler = fleet.scheduler()
    worker = fleet.worker(scheduler, tmp_path / "a", code=other.parent)
    model = tmp_path / "model.json"
    result = fleet.forewarn(
        "learn", given.url, "-c", given.config, "-o", model, "--scheduler", scheduler.found
    )
    assert result.returncode == 2
    assert f"{worker.found}: the worker runs forewarn {forewarn.__version__} (" in result.stderr
    assert "as here" in result.stderr and not model.exists()


@pytest.mark.parametrize(("status", "told"), [(403, True), (503, False)])
def test_a_store_that_fails_one_write_in_five_costs_only_time(
    fleet: Any, given: Given, tmp_path: Path, status: int, told: bool
) -> None:
    gateway = fleet.gateway()
    gateway.decide = lambda request: (
        status if request.method == "PUT" and request.number % 5 == 1 else 0
    )
    model, store = tmp_path / "model.json", f"s3://fleet/failing{status}"
    arguments = (given.url, "-c", given.config, "-o", model, "--store", store, "-j", 1)
    found = fleet.learned(*arguments, gateway=gateway)
    assert same(model, given, tmp_path)
    assert ("cannot be written" in found["said"]) is told
    again = fleet.learned(*arguments)
    assert again["from_store"] == RECORDINGS - told
    assert same(model, given, tmp_path)


def test_groups_and_the_report_of_a_cluster_are_those_of_this_process(
    fleet: Any, given: Given, tmp_path: Path
) -> None:
    scheduler = fleet.scheduler()
    fleet.worker(scheduler, tmp_path / "a")
    found = []
    for name, on in (("there", ("--scheduler", scheduler.found)), ("here", ("-j", 1))):
        model, page = tmp_path / f"{name}.json", tmp_path / f"{name}.html"
        groups = ("--group-by", "robot", "--group-source", "{robot}-*")
        told = fleet.learned(given.url, "-c", given.config, "-o", model, *groups, *on)["groups"]
        paths = [one.pop("model") for one in told["models"].values()]
        result = fleet.forewarn(
            "report", given.url, "-c", given.config, "-m", model, "-o", page, "--fleet",
            *groups, *on, "--json",
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        rates = json.loads(result.stdout)["groups"]
        found.append((told, [counted(Path(path)) for path in paths], rates))
    (_, models, rates), here = found
    assert found[0] == here
    assert [model["hierarchical_prior"][0]["group"] for model in models] == [
        "robot=robot0",
        "robot=robot1",
    ]
    assert [group["name"] for group in rates] == ["all", "robot=robot0", "robot=robot1"]


def test_an_unreadable_object_is_named_counted_and_left_out_by_choice(
    fleet: Any, given: Given, bucket: Any, tmp_path: Path
) -> None:
    whole = (given.folder / "robot0-run0.mcap").read_bytes()
    bucket.put("fleet/mixed/a.mcap", whole)
    bucket.put("fleet/mixed/b.mcap", b"no recording at all")
    model = tmp_path / "model.json"
    arguments = ("s3://fleet/mixed/*", "-c", given.config, "-o", model)
    result = fleet.forewarn("learn", *arguments, "-j", 1)
    assert result.returncode == 2 and "s3://fleet/mixed/b.mcap" in result.stderr
    found = fleet.learned(*arguments, "--unreadable", "leave-out")
    assert [*found["left_out"]] == ["s3://fleet/mixed/b.mcap"]
    assert "1 of 2 recordings could not be read" in found["said"]


def test_a_cluster_replays_and_converts_as_this_process_does(
    fleet: Any, given: Given, tmp_path: Path
) -> None:
    scheduler, gateway = fleet.scheduler(), fleet.gateway()
    killed = doom(fleet, scheduler, gateway, tmp_path)
    model = tmp_path / "model.json"
    model.write_bytes(given.model)
    written = []
    for name, recordings, on in (
        ("cluster", [given.url], ("--scheduler", scheduler.found)),
        ("here", sorted(given.folder.glob("*.mcap")), ()),
    ):
        verdicts = tmp_path / f"{name}.jsonl"
        arguments = (*recordings, "-c", given.config, "-m", model, "--verdicts", verdicts, *on)
        result = fleet.forewarn("replay", *arguments)
        assert result.returncode in (0, 1), result.stderr
        lines = verdicts.read_text().splitlines()
        written.append([line for line in lines if not line.startswith('{"recording"')])
    assert killed
    assert written[0] == written[1] and len(written[0]) > RECORDINGS * SECONDS
    result = fleet.forewarn(
        "convert", given.url, "-o", "s3://fleet/mcap", "--scheduler", scheduler.found
    )
    assert result.returncode == 0, result.stderr
    again = tmp_path / "again.json"
    fleet.learned("s3://fleet/mcap/*.mcap", "-c", given.config, "-o", again, "-j", 1)
    assert same(again, given, tmp_path)
