"""What the commands that change the tree of a monitor file share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from forewarn.cli.common import (
    allow_missing_option,
    at_least_one,
    config_option,
    recordings_argument,
)
from forewarn.cli.editing import put, text_of, with_section
from forewarn.cli.options import option
from forewarn.cli.output import Output
from forewarn.cli.readers import FleetOptions, Readers
from forewarn.config.agent_signals import OF_CALL, PROPOSED
from forewarn.errors import ConfigError, RecordingError, plural
from forewarn.learning.copies import Copies
from forewarn.learning.folds import grouping_of, groups_in_words
from forewarn.logic.specification import CompiledSpec
from forewarn.states.interface import mark_of
from forewarn.wings.trees.abstraction import Role, TreeSection
from forewarn.wings.trees.candidates import EMBEDDING, TEXT_KINDS
from forewarn.wings.trees.examples import RunStep, closing_variables, run_of
from forewarn.wings.trees.growth import Growth
from forewarn.wings.trees.nodes import MAX_DEPTH, Node
from forewarn.wings.trees.tree_text import comments_of, section_text

Recordings = Sequence[Sequence[Sequence[RunStep]]]
"""Of each recording its episodes, of each episode its moments."""

GAIN = 0.001
"""Least information gain of a split, in bits."""
MOST_VARIABLES = 1_000
"""What a tree of a variable asks is tried at every leaf: more of them take hours."""


class RunsRead(NamedTuple):
    """Recordings that have episodes, with their marks (`interface.mark_of`), paths and groups."""

    runs: list[list[list[RunStep]]]
    marks: tuple[str, ...]
    paths: tuple[Path, ...]
    groups: tuple[str, ...]


def leaf_size_option(default: int) -> Any:
    """Declare ``--leaf-size``."""
    return option("moments in a leaf at least", "N", of=at_least_one, default=default)


@dataclass(frozen=True, kw_only=True)
class TreeOptions(FleetOptions):
    """The arguments that these commands share."""

    recordings: list[Path] = recordings_argument()
    config: Path = config_option()
    variables: list[str] = option(
        "signals to ask about (may be repeated); else `states.variables`, else all",
        "SIGNAL",
        "--variable",
    )
    depth: int = option("conditions on a path at most", "N", of=at_least_one, default=MAX_DEPTH)
    leaf_size: int = leaf_size_option(5)
    once: bool = option("ask about no variable twice on a path, as in the paper")
    text: list[str] = option(
        "what to ask of texts (may be repeated; all but embedding, which needs the "
        "extra forewarn[embeddings])",
        choices=(*TEXT_KINDS, EMBEDDING),
    )
    group: str | None = option(
        "hold recordings out together in which this signal begins with the same value", "SIGNAL"
    )
    allow_missing: bool = allow_missing_option()
    write: bool = option("write the tree into the monitor file")

    def growth(self, leaves: int) -> Growth:
        """Return how a tree grows; raises ConfigError."""
        return Growth(
            GAIN,
            self.depth,
            self.leaf_size,
            leaves,
            not self.once,
            text=tuple(self.text) or TEXT_KINDS,
        )


def declared_roles(compiled: CompiledSpec) -> dict[str, Role]:
    """Return what ``states.variables`` names, with roles; raises ConfigError."""
    extra = compiled.spec.states.model_extra or {}
    named = {"variables": extra["variables"]} if "variables" in extra else {}
    return TreeSection.model_validate(named).roles


def chosen_variables(options: TreeOptions, compiled: CompiledSpec) -> tuple[str, ...]:
    """Return the signals that may be asked about; raises ConfigError."""
    spec, roles = compiled.spec, declared_roles(compiled)
    asked = [name for name, role in roles.items() if role != "ignored"]
    others = [name for name in spec.signals if name not in roles]
    given = options.variables or asked or others
    for name in (*given, *roles):
        if name not in spec.signals:
            raise ConfigError(
                f"{name!r} is no signal",
                file=options.config,
                key="states.variables",
                accepted=", ".join(spec.signals),
            )
    if len(given) > MOST_VARIABLES:
        raise ConfigError(
            f"{len(given)} variables to ask about",
            file=options.config,
            key="states.variables",
            accepted=f"at most {MOST_VARIABLES:,}; name those that matter",
        )
    return tuple(dict.fromkeys(given))


def check_roles(
    paths: Sequence[Path], recordings: Recordings, compiled: CompiledSpec, variables: Sequence[str]
) -> None:
    """Check that goals stay the same through an episode, and that checkpoints are flags."""
    roles = declared_roles(compiled)
    for path, episodes in zip(paths, recordings, strict=True):
        for name in variables:
            for run in episodes:
                known = [value for moment in run if (value := moment.values[name]) is not None]
                if roles.get(name) == "goal" and any(value != known[0] for value in known):
                    other = next(value for value in known if value != known[0])
                    raise RecordingError(
                        f"the goal {name} changes within an episode: {known[0]!r}, then {other!r}",
                        file=path,
                        key="states.variables",
                        accepted="one value all through it, or the role state",
                    )
                odd = [value for value in known if not isinstance(value, bool)]
                if roles.get(name) == "checkpoint" and odd:
                    raise RecordingError(
                        f"the checkpoint {name} is {odd[0]!r}",
                        file=path,
                        key="states.variables",
                        accepted="truth values, or the role state",
                    )


def read_runs(
    paths: Sequence[Path],
    options: TreeOptions,
    compiled: CompiledSpec,
    variables: Sequence[str],
    readers: Readers,
    goal: str | None = None,
) -> RunsRead:
    """Return the episodes of each recording that has any, with a bar; raises InputError."""
    found: list[tuple[str, str, Path, list[list[RunStep]]]] = []
    copies, output = Copies(allowed=True), readers.output
    grouping, signal = grouping_of(compiled.spec), _group_signal(options.group, compiled)
    asked = variables if signal is None else (*variables, signal)
    read = readers.read(paths, run_of, compiled, asked, goal, readers.allow_missing, grouping)
    for path, (episodes, digest, group) in read:
        if episodes and copies.is_new(path, digest):
            named = group if signal is None else repr(episodes[0][0].values[signal])
            found.append((named, digest, path, episodes))
    if remark := copies.remark():
        output.warn(remark)
    if not found:
        raise RecordingError(
            f"{plural(len(paths), 'recording')} without a state",
            accepted="at least one moment at which the monitor is active and no label holds",
        )
    without = len(read) - len(found) - len(copies.left_out)
    if without:
        output.note(f"note: left out, because no state is known: {plural(without, 'recording')}")
    # The order in which they were given decides nothing.
    groups, digests, known, runs = zip(*sorted(found, key=itemgetter(0, 1)), strict=True)
    if grouping is not None:
        output.note(
            f"note: {groups_in_words(len(found), len({*groups}), ', '.join(grouping.keys))}"
        )
    check_roles(known, runs, compiled, variables)
    return RunsRead([*runs], tuple(map(mark_of, digests)), known, groups)


def _group_signal(name: str | None, compiled: CompiledSpec) -> str | None:
    """Return the signal that says which recordings belong together; raises ConfigError."""
    if name is not None and name not in compiled.spec.signals:
        raise ConfigError(
            f"--group: {name!r} is no signal",
            file=compiled.spec.file,
            accepted=", ".join(compiled.spec.signals),
        )
    if name is not None and compiled.spec.learning.group_by is not None:
        raise ConfigError(
            f"--group {name} beside `group_by`: give the groups in one place",
            file=compiled.spec.file,
            key="learning.group_by",
            accepted="one of them",
        )
    return name


def running_variables(
    recordings: Recordings, variables: Sequence[str], output: Output
) -> tuple[str, ...]:
    """Return the variables without those that only the end of an episode knows; say which."""
    closing = closing_variables(recordings, variables)
    for name in closing:
        output.note(f"note: {name} is known at the end of a run only: it is not asked about")
    return tuple(name for name in variables if name not in closing)


def variables_before_action(
    recordings: Recordings, variables: Sequence[str], compiled: CompiledSpec, output: Output
) -> tuple[str, ...]:
    """Return the variables without those that tell what is done next; say which.

    They are what equals the action wherever there is one, in runs of agents all that tells of the
    call that is proposed, and what is computed from these.
    """
    moments = [moment for runs in recordings for run in runs for moment in run if moment.action]
    late = {
        name
        for name in variables
        if moments and all(one.values[name] in (None, one.action) for one in moments)
        if any(one.values[name] == one.action for one in moments)
    }
    late |= {*OF_CALL} if PROPOSED in late else set()
    if late:
        names = compiled.abstraction.signals
        for derived in compiled.abstraction.derived:
            if late & {names[slot] for slot in derived.arguments}:
                late.add(derived.name)
    given = [name for name in variables if name in late]
    if given:
        output.note(
            f"note: {', '.join(given)}: known only with what is done next, and not asked about; "
            "--variable or `states.variables` asks all the same"
        )
    return tuple(name for name in variables if name not in late)


def put_tree(
    options: TreeOptions,
    tree: Node,
    notes: Mapping[str, str] | None,
    variables: Sequence[str],
    compiled: CompiledSpec,
    remark: str,
    marks: Iterable[str],
    output: Output,
) -> str:
    """Write a tree into the monitor file, or show what would be written; return the difference.

    `notes` stand behind leaves; None keeps the comments of the tree that is split further. `remark`
    says where the tree is from, `marks` from which recordings.
    """
    roles = declared_roles(compiled)
    named = isinstance((compiled.spec.states.model_extra or {}).get("variables"), Mapping)
    written = roles if named else tuple(variables)
    before = text_of(options.config)
    block = section_text(tree, written, remark, sorted({*marks}), comments_of(before), notes)
    after = with_section(options.config, before, "states", block)
    return put(options.config, before, after, output, write=options.write)
