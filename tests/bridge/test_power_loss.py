"""A host that loses power, or whose cable is pulled, is noticed within two seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.clocked

SCRIPT = Path(__file__).with_name("two_hosts.py")
LIMIT = 120.0
PROBE = "ip link add near type veth peer name far && command -v nsenter"


@pytest.fixture(scope="module")
def private_network() -> list[str]:
    """Return what runs a command in a network of its own, as root of that network."""
    problem = "no unshare"
    for options in (["--net"], ["--map-root-user", "--net"]):
        try:
            tried = subprocess.run(
                ["unshare", *options, "sh", "-c", PROBE], capture_output=True, text=True
            )
        except OSError:
            break
        if tried.returncode == 0:
            return ["unshare", *options]
        problem = tried.stderr.strip()
    pytest.skip(f"a network of two hosts cannot be made here: {problem}")


@pytest.mark.parametrize("doing", ["idle", "writing"])
@pytest.mark.parametrize("loss", ["power", "cable"])
def test_a_lost_host_is_noticed_within_two_seconds_and_a_silent_one_is_not_lost(
    private_network: list[str], loss: str, doing: str
) -> None:
    done = subprocess.run(
        [*private_network, sys.executable, SCRIPT, loss, doing],
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["seconds"] <= 2.0, found
    assert "192.0.2.2:9090: " in found["reason"]
