"""The output about groups of recordings and their models."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from forewarn.cli.common import share
from forewarn.cli.output import Output
from forewarn.cli.tables import changed
from forewarn.errors import InputError, plural
from forewarn.files.outputs import is_stdout
from forewarn.models.counts import CountModel
from forewarn.models.hierarchical_prior import prior_record
from forewarn.signals.clock_kinds import clock_of
from forewarn.wings.fleet.group_differences import Differences
from forewarn.wings.fleet.grouped_models import GroupedModels
from forewarn.wings.fleet.prior import Strength

LONGEST = 240
"""Bytes that the name of a file may have: file systems take 255, and some of them are added."""
_UNSAFE = re.compile(r"[^\w=+. -]")


def group_file(model: Path, group: str) -> Path:
    """Return where the model of a group is written, beside that of all.

    Raises InputError if that of all is written to stdout.
    """
    if is_stdout(model):
        raise InputError(
            "has no files beside it", file=model, key="--group-by", accepted="a file for -o"
        )
    # Letters of any script stay as they are; commas of values differ from those between keys.
    parts = (
        _UNSAFE.sub(lambda found: quote(found[0], "", errors="surrogateescape"), p)
        for p in group.split(", ")
    )
    name = f"{model.stem}.{','.join(parts)}{model.suffix}"
    if len(name.encode()) > LONGEST:
        digest = hashlib.sha256(group.encode(errors="surrogateescape")).hexdigest()[:16]
        name = f"{model.stem}.{digest}{model.suffix}"
    return model.with_name(name)


def print_groups(found: GroupedModels, files: Sequence[Path], output: Output) -> None:
    """Print the models of groups and what differs between them."""
    rows = []
    for (name, model), path in zip(found.models.items(), files, strict=True):
        assert model.hierarchical_prior is not None
        spent = sum(source.duration for source in model.provenance)
        rows.append(
            [
                name,
                str(len(model.provenance)),
                clock_of(model.rate).span(spent),
                f"{int(model.counts.sum()):,}",
                str(int((model.visits > 0).sum())),
                share(model.hierarchical_prior.share(model.visits)),
                path.name,
            ]
        )
    columns = ("group", ">recordings", ">length", ">transitions", ">states", ">borrowed", "model")
    output.say()
    output.table(columns, rows)
    output.say(strength_in_words(found.strength))
    model = next(iter(found.models.values()))
    print_differences(found.differences, model, len(found.models), output)


def strength_in_words(strength: Strength) -> str:
    """Say how much groups borrow, and how well that predicts."""
    losses = f"{strength.loss:.4f} with it, {strength.alone:.4f} without, {strength.together:.4f} "
    return (
        f"borrowed from other groups: a row of theirs counts for {strength.visits:g} visits at "
        f"most. Loss on recordings left out: {losses}with all of theirs"
    )


def print_differences(
    found: Differences, model: CountModel, groups: int, output: Output, top: int = 10
) -> None:
    """Print in which states groups do not go on alike."""
    about = f"{plural(groups, 'group')}, {plural(found.tested, 'state')} compared"
    if found.untold:
        about += f", {found.untold} with too few recordings to tell"
    if not found.moved:
        output.say(f"no state goes on differently ({about}; false discovery rate {found.level:g})")
        return
    rows = []
    for one in found.moved[: top or None]:
        name = model.name(one.state)
        following = "stays" if one.to == one.state else changed(name, model.name(one.to))
        cells = [f"{one.q:.2g}", str(one.recordings), one.group, following]
        rows.append([name, *cells, share(one.share), share(one.elsewhere)])
    number = len(found.moved)
    goes = "state goes" if number == 1 else "states go"
    output.say(
        f"{number} {goes} on differently ({about}; false discovery rate {found.level:g}"
        f"{f'; the surest {len(rows)}' if len(rows) < number else ''}):"
    )
    columns = ("state", ">q", "?>recordings", "most in", "next", ">there", ">elsewhere")
    output.table(columns, rows)


def differences_record(found: Differences, model: CountModel) -> dict[str, Any]:
    """Return what differs, for ``--json``."""
    moved = [
        {**one._asdict(), "state": model.name(one.state), "to": model.name(one.to)}
        for one in found.moved
    ]
    return {**found._asdict(), "moved": moved}


def groups_record(found: GroupedModels, files: Sequence[Path]) -> dict[str, Any]:
    """Return the models of groups, for ``--json``."""
    models = {
        name: {
            "model": path,
            "recordings": len(model.provenance),
            "transitions": int(model.counts.sum()),
            "hierarchical_prior": prior_record(model),
        }
        for (name, model), path in zip(found.models.items(), files, strict=True)
    }
    model = next(iter(found.models.values()))
    return {
        "models": models,
        "strength": found.strength,
        "differences": differences_record(found.differences, model),
    }
