"""An S3 server, and a Dask cluster of real processes, in an environment of their own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from drawn_pages import browser, learned, look, replayed
from live_process import Forked
from object_store import Gateway
from own_environment import NotInstalledError, variables

__all__ = ["browser", "learned", "look", "replayed"]
PATIENCE = 600


class Started:
    """A process that has said a line on its standard error which matches a pattern."""

    def __init__(self, module: str, arguments: list[str], pattern: str, env: dict[str, str]):
        reading, writing = os.pipe()
        with open(writing, "w") as errors, open(os.devnull, "w") as output:
            self.process = Forked(module, arguments, env, output, errors, module=True)
        lines = open(reading)  # noqa: SIM115
        said = []
        for line in lines:
            said.append(line)
            if found := re.search(pattern, line):
                self.found = found[1]
                break
        else:
            raise AssertionError("".join(said))
        threading.Thread(target=lines.read, daemon=True).start()

    def kill(self) -> None:
        """Kill it, as a machine that loses its power does."""
        self.process.kill()
        self.process.wait(PATIENCE)


class Bucket(NamedTuple):
    """A bucket of an S3 server."""

    host: str
    port: int

    def put(self, key: str, data: bytes) -> None:
        """Put an object, or make the bucket."""
        url = f"http://{self.host}:{self.port}/{key}"
        plain = {"Content-Type": "application/octet-stream"}  # a form would be parsed
        request = urllib.request.Request(url, data, plain, method="PUT")
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 200


@pytest.fixture(scope="session")
def packages() -> dict[str, str]:
    """Return the environment of a process that has the extra `fleet`."""
    try:
        found = variables("fleet")
    except NotInstalledError as error:
        pytest.skip(f"the extra fleet cannot be installed here: {error}")
    kept = {key: value for key, value in found.items() if not key.startswith("AWS_")}
    return {
        **kept,
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@pytest.fixture(scope="session")
def bucket(packages: dict[str, str]) -> Iterator[Bucket]:
    """Return a bucket of moto's server."""
    server = Started("moto.server", ["-p", "0"], r"http://127\.0\.0\.1:(\d+)", packages)
    found = Bucket("127.0.0.1", int(server.found))
    found.put("fleet", b"")
    yield found
    server.kill()


class Fleet:
    """Runs commands and processes of a cluster that see the bucket, each through a gateway."""

    def __init__(self, bucket: Bucket, packages: dict[str, str]) -> None:
        self._bucket, self._packages = bucket, packages
        self._ends = contextlib.ExitStack()

    def gateway(self) -> Gateway:
        """Return a gateway of the bucket."""
        found = Gateway(self._bucket.host, self._bucket.port)
        self._ends.callback(found.close)
        return found

    def environment(self, gateway: Gateway | None = None) -> dict[str, str]:
        """Return the environment of a process whose requests go through a gateway."""
        url = f"http://{self._bucket.host}:{self._bucket.port}" if gateway is None else gateway.url
        return {**self._packages, "AWS_ENDPOINT_URL": url}

    def scheduler(self) -> Started:
        """Start a scheduler; its address is in `found`."""
        arguments = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        return self._started(
            "distributed.cli.dask_scheduler", arguments, r"Scheduler at:\s+(tcp://\S+)", None
        )

    def worker(
        self,
        scheduler: Started,
        folder: Path,
        gateway: Gateway | None = None,
        code: Path | None = None,
    ) -> Started:
        """Start a worker, perhaps with Forewarn from another folder."""
        arguments = [
            scheduler.found, "--nthreads", "1", "--no-nanny", "--no-dashboard",
            "--host", "127.0.0.1", "--local-directory", str(folder),
        ]  # fmt: skip
        return self._started(
            "distributed.cli.dask_worker",
            arguments,
            r"Start worker at:\s+(tcp://\S+)",
            gateway,
            code,
        )

    def _started(
        self,
        module: str,
        arguments: list[str],
        pattern: str,
        gateway: Gateway | None,
        code: Path | None = None,
    ) -> Started:
        env = self.environment(gateway)
        if code is not None:
            env["PYTHONPATH"] = os.pathsep.join([str(code), env["PYTHONPATH"]])
        found = Started(module, arguments, pattern, env)
        self._ends.callback(found.kill)
        return found

    def forewarn(
        self, *arguments: object, gateway: Gateway | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            words, env = [*map(str, arguments)], self.environment(gateway)
            code = Forked("forewarn", words, env, output, errors, module=True).wait(PATIENCE)
            for file in (output, errors):
                file.seek(0)
            return subprocess.CompletedProcess(words, code, output.read(), errors.read())

    def learned(self, *arguments: object, gateway: Gateway | None = None) -> dict[str, Any]:
        """Learn, and return what the command says as JSON."""
        result = self.forewarn("learn", *arguments, "--json", gateway=gateway)
        assert result.returncode == 0, result.stderr
        return {**json.loads(result.stdout), "said": result.stderr}

    def close(self) -> None:
        """End all processes."""
        self._ends.close()


@pytest.fixture
def fleet(bucket: Bucket, packages: dict[str, str]) -> Iterator[Fleet]:
    """Return what runs commands and clusters."""
    found = Fleet(bucket, packages)
    yield found
    found.close()
