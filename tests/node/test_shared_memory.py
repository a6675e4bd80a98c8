"""What killed processes leave in shared memory must not stop a test that comes after them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from live_process import FINISHED, free_domain, remove_unfinished_ports


@pytest.mark.parametrize("left", [b"", b"\0", bytes(64), b"\1" + bytes(63)])
def test_a_port_that_nobody_will_finish_is_removed(tmp_path: Path, left: bytes) -> None:
    def made(name: str, content: bytes, at: float) -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        os.utime(path, (at, at))
        return path

    abandoned = made("fastdds_port7001", left, 1e9)
    kept = [
        made("fastdds_port7002", FINISHED + bytes(60), 1e9),
        made("fastdds_port7002_el", b"", 1e9),
        made("fastdds_port7003", left, 4e9),  # somebody is making it
    ]
    remove_unfinished_ports(tmp_path)
    assert not abandoned.exists()
    assert all(path.exists() for path in kept)


def test_each_domain_is_handed_out_without_them() -> None:
    port = Path("/dev/shm/fastdds_port7399")
    port.touch()
    os.utime(port, (1e9, 1e9))
    with free_domain():
        assert not port.exists()
