"""The file of a calibration of anomaly rules."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from forewarn.errors import ModelError, located
from forewarn.files.outputs import write_output
from forewarn.models.checked_json import Reader, read_json
from forewarn.wings.anomalies.calibration import RULES, Calibration, Checkpoint
from forewarn.wings.anomalies.surprise import WHATS

FORMAT = "forewarn-anomalies"
VERSION = 2
MAX_RUNS = 1 << 20
MAX_STEPS = 1 << 22
_CHECKPOINT = "[steps, runs, mean, deviation]"


def save_calibration(calibration: Calibration, path: Path) -> None:
    """Write a calibration; raises InputError."""
    write_output(path, dump_calibration(calibration), ModelError)


def dump_calibration(calibration: Calibration) -> str:
    """Return the text of a file that holds a calibration."""
    content = {"format": FORMAT, "version": VERSION, **asdict(calibration)}
    return json.dumps(content, allow_nan=False) + "\n"


def load_calibration(path: Path, model: str, abstraction: str) -> Calibration:
    """Read a calibration.

    `model`, `abstraction`: digests of the predictor and the abstraction that it has to belong to.

    Raises ModelError if the file cannot be read, is no calibration, or was made for another model.
    """
    try:
        content = read_json(path)
    except ModelError as error:
        accepted = "a file that `forewarn anomalies --save` wrote"
        raise ModelError(error.problem, accepted=accepted, file=path, key=error.key) from error
    with located(file=path):
        return check_calibration(content, model, abstraction)


def check_calibration(content: Any, model: str, abstraction: str) -> Calibration:
    """Return the calibration that the JSON of a file holds; see `load_calibration`."""
    found = _parse(Reader(content, ""))
    for key, theirs, ours in (
        ("abstraction", found.abstraction, abstraction),
        ("model", found.model, model),
    ):
        if theirs != ours:
            raise ModelError(
                f"was calibrated for another {key} (digest {theirs[:12]}, this one has "
                f"{ours[:12]})",
                key=key,
                accepted="a file calibrated with this model: calibrate again",
            )
    return found


def _parse(reader: Reader) -> Calibration:
    reader.expect("format", FORMAT)
    reader.integer("version", VERSION, VERSION)
    alpha, test = reader.number("alpha"), reader.choice("test", RULES)
    if not 0 < alpha <= 0.5:
        raise ModelError(f"{alpha:g}", accepted="a number above 0, at most 0.5", key="alpha")
    recordings = reader.items("recordings", MAX_RUNS)
    if not all(isinstance(digest, str) for digest in recordings):
        raise ModelError("not all are texts", accepted="digests", key="recordings")
    greatest = _rising(reader, "greatest")
    likelihoods, deviations = _rising(reader, "likelihoods"), _rising(reader, "deviations")
    if (len(likelihoods), len(deviations)) != (len(greatest), len(greatest) // 2):
        raise ModelError(
            f"{len(likelihoods)} likelihoods and {len(deviations)} deviations",
            accepted=f"{len(greatest)}, as many as runs, and {len(greatest) // 2}",
            key="likelihoods",
        )
    sums = _rising(reader, "sums")
    if len(sums) != len(greatest) // 2:
        raise ModelError(f"{len(sums)} sums", accepted=f"{len(greatest) // 2}", key="sums")
    return Calibration(
        reader.text("model"),
        reader.text("abstraction"),
        reader.choice("statistic", WHATS),
        test,
        reader.integer("period", 1, 1 << 40),
        alpha,
        tuple(recordings),
        greatest,
        likelihoods,
        _checkpoints(reader, "checkpoints"),
        _checkpoints(reader, "reference"),
        deviations,
        _weighted(reader, "steps"),
        _weighted(reader, "reference_steps"),
        sums,
    )


def _weighted(reader: Reader, key: str) -> tuple[tuple[float, float], ...]:
    steps = [_numbers(reader, f"{key}[{i}]", item, 2) for i, item in _items(reader, key)]
    values = [value for value, _ in steps]
    if not steps or values != sorted(set(values)) or min(weight for _, weight in steps) <= 0:
        raise ModelError("are not in order", accepted="rising, with weights > 0", key=key)
    return tuple((value, weight) for value, weight in steps)


def _items(reader: Reader, key: str) -> list[tuple[int, Any]]:
    return list(enumerate(reader.items(key, MAX_STEPS)))


def _numbers(reader: Reader, path: str, value: Any, length: int) -> list[float]:
    if not isinstance(value, list) or len(value) != length:
        raise ModelError(f"{value!r:.80}", accepted=f"{length} numbers", key=path)
    named = Reader({f"{path}[{i}]": number for i, number in enumerate(value)}, reader.path)
    return [named.number(key) for key in named.value]


def _rising(reader: Reader, key: str) -> tuple[float, ...]:
    items = reader.items(key, MAX_RUNS)
    numbers = _numbers(reader, key, items, len(items))
    if numbers != sorted(numbers):
        raise ModelError("are not in order", accepted="rising numbers", key=key)
    return tuple(numbers)


def _checkpoints(reader: Reader, key: str) -> tuple[Checkpoint, ...]:
    found = []
    for i, item in _items(reader, key):
        path = f"{key}[{i}]"
        steps, runs, mean, deviation = _numbers(reader, path, item, 4)
        if steps < 1 or runs < 2 or steps % 1 or runs % 1 or deviation < 0:
            raise ModelError(f"{item!r}", accepted=_CHECKPOINT, key=path)
        found.append(Checkpoint(int(steps), int(runs), mean, deviation))
    return tuple(found)
