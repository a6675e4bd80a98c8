"""What several commands share: arguments, and the way from files to a monitor."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from forewarn.cli.output import Output
from forewarn.config import MonitorSpec, load_spec
from forewarn.config.fields import LARGEST, RATES, Rate
from forewarn.errors import ModelError
from forewarn.files.outputs import write_output
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models import CountModel, load_model
from forewarn.monitoring.anomaly_section import open_detector
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.step import Monitor
from forewarn.recordings import find_recordings
from forewarn.signals.clock import Clock

RECORDINGS_HELP = (
    "rosbag2 folder, .mcap or .db3 file (zstd or not), ROS 1 .bag, JSON lines trace, "
    "frames or runs of agents in JSON, or a folder of these"
)


def add_recordings(parser: argparse.ArgumentParser) -> None:
    """Add the positional recordings."""
    parser.add_argument("recordings", nargs="+", type=Path, metavar="BAG", help=RECORDINGS_HELP)


def add_config(
    parser: argparse.ArgumentParser, text: str = "the monitor file", *, required: bool = True
) -> None:
    """Add ``-c``."""
    parser.add_argument("-c", "--config", type=Path, required=required, metavar="FILE", help=text)


def add_output(parser: argparse.ArgumentParser, what: str) -> None:
    """Add ``-o``, which has to be given."""
    text = f"the {what} file to write"
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help=text)


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add ``--report``."""
    parser.add_argument("--report", type=Path, metavar="FILE", help="write an HTML report")


def write_report(path: Path, page: str, output: Output) -> None:
    """Write a page, and say where it is."""
    write_output(path, page)
    output.note(f"report: {path}")


def add_top(parser: argparse.ArgumentParser, what: str = "states") -> None:
    """Add ``-n``."""
    text = f"how many {what} to list, 0 for all (default: 10)"
    parser.add_argument("-n", "--top", type=whole_number, default=10, metavar="N", help=text)


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add ``-m``."""
    parser.add_argument(
        "-m",
        "--model",
        type=Path,
        metavar="FILE",
        help="the model file; without it, the one that the monitor file names",
    )


def add_allow_missing(parser: argparse.ArgumentParser) -> None:
    """Add ``--allow-missing``."""
    parser.add_argument(
        "--allow-missing",
        action="store_true",
        help="go on without topics that a recording lacks: their signals are unknown, as live",
    )


def whole_number(text: str, least: int = 0) -> int:
    """Parse an argument that is a whole number, `least` or more."""
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"{text!r} (accepted: a whole number, {least} or more)")
    return number


def positive_number(text: str) -> float:
    """Parse an argument that is above 0 and no larger than numbers of the monitor file may be."""
    return _between(text, math.ulp(0.0), LARGEST, f"a number above 0, at most {LARGEST:g}")


def probability(text: str) -> float:
    """Parse an argument that lies between 0 and 1, both left out."""
    inside = math.nextafter(1.0, 0.0)
    return _between(text, math.ulp(0.0), inside, "a number between 0 and 1")


def hertz(text: str) -> float:
    """Parse an argument that is a rate as the monitor file may have it."""
    return _between(text, *RATES, f"a number from {RATES[0]:g} to {RATES[1]:g}")


def hertz_or_steps(text: str) -> Rate:
    """Parse an argument that is a rate, or the word ``steps``: what a model remembers."""
    return "steps" if text == "steps" else hertz(text)


def _between(text: str, least: float, most: float, accepted: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"{text!r} (accepted: {accepted})")
    return number


def existing_recordings(paths: Iterable[Path], spec: MonitorSpec | None = None) -> list[Path]:
    """Return all recordings that `paths` stand for, folders of recordings opened up.

    With a monitor file whose clock is steps, each run within a trace is one.
    """
    key = None if spec is None else spec.episode_key
    found: dict[Path, None] = {}
    for path in paths:
        found.update(dict.fromkeys(find_recordings(path, key)))
    return list(found)


def load_compiled(path: Path) -> CompiledSpec:
    """Load and compile a monitor file; raises ConfigError."""
    return compile_spec(load_spec(path))


def find_model(given: Path | None, spec: MonitorSpec) -> CountModel | None:
    """Load the model that was given, or that the monitor file names; None without any."""
    path = given if given is not None else spec.model_path
    if path is None:
        return None
    if given is None and not path.exists():
        raise ModelError(
            f"the model file {path} does not exist",
            file=spec.file,
            key="model",
            accepted="a file made by `forewarn learn`; -m names another one",
        )
    return load_model(path)


def make_monitor(config: Path, model: Path | None) -> tuple[Monitor, CountModel | None]:
    """Load a monitor file, its model and what tells anomalies, and solve; raises ForewarnError."""
    compiled = load_compiled(config)
    counts = find_model(model, compiled.spec)
    try:
        monitor = build_monitor(compiled, counts)
        return replace(monitor, detector=open_detector(compiled, counts)), counts
    except ModelError as error:
        path = model if model is not None else compiled.spec.model_path
        raise error.located(file=path) from error


def overall(
    paths: Sequence[Path], tell: Callable[[float, float], None]
) -> Callable[[Path, float], None]:
    """Return a progress callback per recording that moves one bar over all of them."""
    done = dict.fromkeys(paths, 0.0)

    def update(path: Path, fraction: float) -> None:
        done[path] = max(done[path], fraction)
        tell(sum(done.values()), len(done))

    return update


def lasting(value: float | None, clock: Clock) -> str:
    """Return a duration for a table."""
    return "" if value is None else clock.say(value, ".2f")


def share(value: float | None) -> str:
    """Return a share for a table, with a dash where there is none."""
    return "-" if value is None else f"{100 * value:.1f} %"
