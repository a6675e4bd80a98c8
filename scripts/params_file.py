"""Writes config/monitor.params.yaml: every parameter of the node, with its default and meaning.

Run it with `.venv/bin/python scripts/params_file.py` after a change of `monitor_node.parameters`.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path

from monitor_node.parameters import (
    NODE_PARAMETERS,
    POLICY_TEXTS,
    PREFIX,
    Parameter,
    quality_parameters,
)

TARGET = Path(__file__).resolve().parents[1] / "config" / "monitor.params.yaml"
WIDTH = 120
INDENT = " " * 4
HEAD = (
    "All parameters of the monitor node with their defaults, made by scripts/params_file.py. Copy "
    "this file and change the copy: monitor.launch.py takes it as params_file:=..., the node alone "
    "as --ros-args --params-file ... The launch file sets config, mode, use_sim_time and autostart "
    "by its own arguments, and others that it is given."
)
POLICY_HEAD = (
    "Properties of the monitor file can be changed too, while the node runs. Where a line is left "
    "out, the monitor file counts. NAME is that of a property."
)
QUALITY_HEAD = (
    "Quality of service of an input, here of /odom. It follows the publishers where nothing is "
    "said."
)


def main() -> int:
    """Write the file."""
    TARGET.write_text(text(), encoding="utf-8")
    return 0


def text() -> str:
    """Return the file."""
    return "".join(f"{line}\n" for line in _lines())


def _lines() -> Iterator[str]:
    yield from _comment(HEAD, "")
    yield from ("/**:", "  ros__parameters:")
    yield from _comment("Take the time from /clock.")
    yield f"{INDENT}use_sim_time: false"
    for parameter in NODE_PARAMETERS:
        yield ""
        yield from _comment(_meaning(parameter))
        yield f"{INDENT}{parameter.name}: {json.dumps(parameter.default)}"
    yield ""
    yield from _comment(POLICY_HEAD)
    for key, meaning in POLICY_TEXTS.items():
        yield from _comment(f"{PREFIX}NAME.{key}: {meaning}")
    yield ""
    yield from _comment(QUALITY_HEAD)
    for parameter in quality_parameters("/odom"):
        yield from _comment(f"{parameter.name}: {parameter.default}")


def _meaning(parameter: Parameter) -> str:
    """Return what a parameter means, with its range."""
    descriptor = parameter.descriptor
    ranges = (*descriptor.floating_point_range, *descriptor.integer_range)
    limits = [f"From {found.from_value:g} to {found.to_value:g}." for found in ranges]
    fixed = ["It cannot change while the node runs."] if descriptor.read_only else []
    return " ".join([descriptor.description, *limits, *fixed])


def _comment(words: str, indent: str = INDENT) -> list[str]:
    mark = f"{indent}# "
    return textwrap.wrap(
        words,
        WIDTH,
        initial_indent=mark,
        subsequent_indent=mark,
        break_on_hyphens=False,
        break_long_words=False,
    )


if __name__ == "__main__":
    raise SystemExit(main())
