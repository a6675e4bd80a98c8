"""``--help`` of the executables tells their parameters, and starts no node."""

from __future__ import annotations

import sys

import pytest

from monitor_node import console
from monitor_node.console import asked
from monitor_node.parameters import (
    GATE_PARAMETERS,
    NODE_PARAMETERS,
    PLAYER_PARAMETERS,
    TOP_PARAMETERS,
    Parameter,
)

pytestmark = pytest.mark.ros


@pytest.mark.parametrize(
    ("executable", "parameters"),
    [
        ("monitor_node", NODE_PARAMETERS),
        ("bag_player_node", PLAYER_PARAMETERS),
        ("twist_gate_node", GATE_PARAMETERS),
        ("monitor_top", TOP_PARAMETERS),
    ],
)
def test_help_names_every_parameter(
    executable: str,
    parameters: tuple[Parameter, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", [executable, "--help"])
    getattr(console, executable)()
    written = capsys.readouterr()
    assert written.err == ""
    assert written.out.startswith(f"usage: {executable} --ros-args -p ")
    said = " ".join(written.out.split())
    for parameter in parameters:
        text = " ".join(parameter.descriptor.description.split())
        assert f" {parameter.name} (default: {parameter.default!r}) {text}" in said


def test_what_follows_ros_args_is_not_asked_of_us() -> None:
    assert asked(["-h"]) and asked(["--help", "--ros-args"])
    assert not asked(["--ros-args", "-p", "bag:=x", "--help"]) and not asked([])
