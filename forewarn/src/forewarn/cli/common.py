"""Arguments and helpers that several commands share."""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from forewarn.cli.options import argument, option
from forewarn.cli.output import Output
from forewarn.config.fields import LARGEST, RATES, Rate
from forewarn.errors import InputError
from forewarn.files.outputs import write_output
from forewarn.files.remote import address
from forewarn.registry import part
from forewarn.signals.clock import Clock

RECORDINGS_HELP = (
    "rosbag2 folder, .mcap or .db3 file (zstd or not), ROS 1 .bag, JSON lines trace, "
    "CSV table, frames or runs of agents in JSON, or a folder of these"
)


def recordings_argument() -> Any:
    """Declare the positional recordings."""
    return argument(RECORDINGS_HELP, "BAG", of=recording_path)


def recording_path(text: str) -> Path:
    """Parse an argument that is a path or a URL."""
    try:
        return address(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def config_option(text: str = "the monitor file", *, required: bool = True) -> Any:
    """Declare ``-c``."""
    return option(text, "FILE", "-c", required=required)


def output_option(what: str) -> Any:
    """Declare ``-o``, which has to be given."""
    packed = "; packed by gzip if its name ends with .gz" if what == "model" else ""
    return option(f"the {what} file to write{packed}", "FILE", "-o", required=True)


def report_option() -> Any:
    """Declare ``--report``."""
    return option("write an HTML report", "FILE")


def write_report(path: Path, page: str, output: Output, what: str = "report") -> None:
    """Write a page, and say where it is."""
    write_output(path, page)
    output.note(f"{what}: {path}")


def plot_option(what: str) -> Any:
    """Declare ``--plot``."""
    return option(f"write the {what} as an HTML page", "FILE")


def properties_option(verb: str) -> Any:
    """Declare ``--property``, which may be repeated."""
    return option(f"{verb} this property only (may be repeated)", "NAME", "--property")


def alert_share_option() -> Any:
    """Declare ``--alert-share``."""
    text = "share of the time that may be spent in alert, false or not"
    return option(text, "S", of=probability, default=0.1)


def folds_option(text: str, default: int | None = None) -> Any:
    """Declare ``--folds``."""
    return option(text, "K", of=partial(whole_number, least=2), default=default)


def top_option(what: str = "states") -> Any:
    """Declare ``-n``."""
    text = f"how many {what} to list, 0 for all"
    return option(text, "N", "-n", of=whole_number, default=10)


def model_option() -> Any:
    """Declare ``-m``."""
    text = "the model file; without it, the one that the monitor file names"
    return option(text, "FILE", "-m")


def allow_missing_option() -> Any:
    """Declare ``--allow-missing``."""
    return option("go on without topics that a recording lacks: their signals are unknown")


def incidents_option(text: str) -> Any:
    """Declare ``--incidents``, whose labels mean `text`."""
    return option(f"use the labels of `forewarn incidents`: {text} (may be repeated)", "FOLDER")


def incident_labels() -> Any:
    """Return what knows of incidents and their labels: a module of the wing ``black_box``.

    Raises
    ------
    MissingWingError
        If the wing is not installed.
    """
    return part("black_box", "incidents", "--incidents")


def labelled(folders: Sequence[Path], output: Output) -> list[Any] | None:
    """Return the incidents whose labels are to be used; None if no folder is given.

    Raises
    ------
    InputError
        If a label, or an incident that has one, cannot be read.
    """
    if not folders:
        return None
    labels = incident_labels()
    for line in labels.labels_alone(folders):
        output.warn(line)
    return list(labels.labelled_incidents(folders))


def whole_number(text: str, least: int = 0) -> int:
    """Parse an argument that is a whole number, `least` or more."""
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"{text!r} (accepted: a whole number, {least} or more)")
    return number


def at_least_one(text: str) -> int:
    """Parse an argument that is a whole number above 0."""
    return whole_number(text, 1)


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


def lasting(value: float | None, clock: Clock) -> str:
    """Return a duration for a table."""
    return "" if value is None else clock.say(value, ".2f")


def share(value: float | None) -> str:
    """Return a share for a table; a dash for None."""
    return "-" if value is None else f"{100 * value:.1f} %"


@contextmanager
def storm_speaks(output: Output) -> Iterator[None]:
    """Keep what Storm writes to stdout out of the result; it becomes remarks if all goes well."""
    sys.stdout.flush()
    with tempfile.TemporaryFile() as captured:
        kept = os.dup(1)
        os.dup2(captured.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        captured.seek(0)
        for line in captured.read().decode(errors="replace").splitlines():
            output.note(f"Storm: {line}")
