"""A client of cyber_bridge on one host, the bridge on another that is lost; run by a test.

This process has a network of its own, the server has another, and a pair of virtual interfaces
joins them. It prints after how many seconds the client has noticed the loss, and what it says.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from apollo_bridge.tcp import TcpTransport
from apollo_bridge.transport import Arrival, Channels, Connected, Lost

NEAR, FAR, PORT = "192.0.2.1", "192.0.2.2", 9090
CHASSIS, PAD = "/apollo/canbus/chassis", "/apollo/planning/pad"
IDLE, LIMIT = 5.0, 30.0
LOSSES = {
    "power": ("ip addr flush dev far", "ip link set far arp off"),
    "cable": ("ip link set far down",),
}


def wait(client: TcpTransport, kind: type, limit: float, meanwhile: Callable[[], object]) -> object:
    """Return the first event of a kind, None if there is none within the limit."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        meanwhile()
        for event in client.receive(0.5):
            if isinstance(event, kind):
                return event
    return None


def main(loss: str, writing: bool) -> None:
    """Connect, lose the other host, and report."""
    script = Path(__file__).with_name("bridge_server.py")
    server = subprocess.Popen(
        ["unshare", "--net", sys.executable, script, str(PORT), "0.0.0.0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdout.readline()  # it has its network and listens

    def far(*commands: str) -> None:
        for command in commands:
            inside = ["nsenter", f"--net=/proc/{server.pid}/ns/net", *command.split()]
            subprocess.run(inside, check=True)

    try:
        for item in (
            f"ip link add near type veth peer name far netns {server.pid}",
            f"ip addr add {NEAR}/30 dev near",
            "ip link set near up",
        ):
            subprocess.run(item.split(), check=True)
        far(f"ip addr add {FAR}/30 dev far", "ip link set far up")
        client = TcpTransport(FAR, PORT)
        client.open(
            Channels({CHASSIS: "apollo.canbus.Chassis"}, {PAD: "apollo.planning.PadMessage"})
        )
        assert wait(client, Connected, LIMIT, lambda: None) is not None
        for _ in range(3):  # the greeting has arrived
            server.stdout.readline()
        assert wait(client, Lost, IDLE, lambda: None) is None, "silent, and alive"
        server.stdin.write(json.dumps({"channel": CHASSIS, "message": "00"}) + "\n")
        server.stdin.flush()
        assert wait(client, Arrival, LIMIT, lambda: None) is not None
        far(*LOSSES[loss])
        begun = time.monotonic()
        lost = wait(client, Lost, LIMIT, lambda: writing and client.write(PAD, b"\x10\x04"))
        assert isinstance(lost, Lost)
        print(json.dumps({"seconds": time.monotonic() - begun, "reason": lost.reason}))
    finally:
        server.kill()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "writing")
