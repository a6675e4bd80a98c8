"""The wings: parts of Forewarn that the core works without.

A wing is a folder of ``forewarn.wings`` with its code and its commands. The core names what belongs
to each wing, and imports it when that is asked for. So a wing can be taken out. An error then names
the wing that a command or a key needs.

Other packages add to Forewarn by entry points, each named as a monitor file or a shell names it::

    [options.entry_points]
    forewarn.state_kinds =
        zones = my_package.zones:KIND

``docs/reference/extending.md`` lists the groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from forewarn.errors import InputError, MissingWingError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PACKAGE = "forewarn.wings"
STATE_KINDS, ESTIMATORS = "forewarn.state_kinds", "forewarn.estimators"
SECTIONS, REPORT_SECTIONS = "forewarn.sections", "forewarn.report_sections"
MODEL_SECTIONS = "forewarn.model_sections"
ACTUATORS, ACTUATOR_SECTIONS = "forewarn.actuators", "forewarn.actuator_sections"
COMMAND_POINTS = "forewarn.commands"
TO_MODULE = str.maketrans(" -", "__")


class Wing(NamedTuple):
    """What belongs to a wing.

    Attributes
    ----------
    purpose : str
        For people.
    commands : tuple of str
        Its commands; each is a module of the wing's package ``commands``.
    sections : mapping of str to str
        Its keys of the monitor file, each with the module and the class that check it.
    model_sections : mapping of str to str
        Its keys of the model file, each with the module and the `ModelSection` that keeps them.
    state_kinds : mapping of str to str
        Its kinds of states, each with the module and the attribute that has it.
    report : str
        Module and function that give parts of a report, if the monitor file has one of its keys.
    """

    purpose: str
    commands: tuple[str, ...] = ()
    sections: Mapping[str, str] = MappingProxyType({})
    model_sections: Mapping[str, str] = MappingProxyType({})
    state_kinds: Mapping[str, str] = MappingProxyType({})
    report: str = ""


WINGS = MappingProxyType(
    {
        "plans": Wing(
            "plans, requirements and computation trees",
            commands=(
                "plan check",
                "plan ask",
                "check-runs",
                "spec grade",
                "spec ask",
                "spec fret",
            ),
        ),
        "black_box": Wing(
            "what a node keeps in memory, and writes when something happens",
            commands=("incidents",),
            sections={"black_box": "section:BlackBoxSpec"},
        ),
        "decisions": Wing(
            "decision processes, the shield, Storm, and exchange with other tools",
            commands=("check", "import", "export"),
            sections={"shield": "section:ShieldSpec"},
        ),
        "trees": Wing(
            "states that are leaves of a learned tree, and their refinement",
            commands=("learn-states", "refine"),
            state_kinds={"tree": "abstraction:KIND"},
        ),
        "scores": Wing(
            "signals that are learned: how likely a violation is",
            sections={"learned_score": "section:LearnedScoreSpec"},
            model_sections={"learned_score": "model_file:SECTION"},
            report="report:report_parts",
        ),
        "fleet": Wing(
            "clusters, groups of recordings, and the page about many of them",
            commands=("drift",),
        ),
        "agents": Wing(
            "runs of agents, and what rules say of a call or a goal before it is made",
            sections={"guards": "section:GuardSpec"},
        ),
        "anomalies": Wing(
            "runs that are unlike normal ones",
            commands=("anomalies",),
            sections={"anomaly": "section:AnomalySpec"},
            model_sections={"normal_moments": "normal_file:SECTION"},
            report="report_section:report_parts",
        ),
    }
)


def wing_of(command: str) -> str | None:
    """Return the wing that a command belongs to; None if it is the core's."""
    return next((name for name, wing in WINGS.items() if command in wing.commands), None)


def command_module(name: str) -> ModuleType:
    """Return the module of a command.

    Raises
    ------
    MissingWingError
        If it belongs to a wing that is not installed; names the wing.
    InputError
        If it is another package's and does not load.
    """
    wing, module = wing_of(name), name.translate(TO_MODULE)
    if wing is None:
        try:
            return import_module(f"forewarn.cli.{module}_command")
        except ModuleNotFoundError as error:
            if error.name != f"forewarn.cli.{module}_command":
                raise
            found: ModuleType | None = extension(COMMAND_POINTS, name)
            if found is None:
                raise
            return found
    return part(wing, f"commands.{module}", f"the command {name}")


def section_of_wing(key: str) -> Any:
    """Return the class that checks a section of the monitor file.

    Raises
    ------
    MissingWingError
        If its wing is not installed; names the wing.
    """
    wing = next(name for name, wing in WINGS.items() if key in wing.sections)
    return _attribute(wing, WINGS[wing].sections[key], f"the section {key}")


def wing_keys() -> list[str]:
    """Return the keys of the monitor file that belong to wings."""
    return [key for wing in WINGS.values() for key in wing.sections]


def state_kinds() -> list[str]:
    """Return the names of the kinds of states of wings."""
    return [name for wing in WINGS.values() for name in wing.state_kinds]


def state_kind(name: str) -> Any | None:
    """Return a kind of states of a wing; None if no wing has it.

    Raises
    ------
    MissingWingError
        If its wing is not installed; names the wing.
    """
    for wing, found in WINGS.items():
        if name in found.state_kinds:
            return _attribute(wing, found.state_kinds[name], f"the kind of states {name}")
    return None


def model_sections() -> list[str]:
    """Return the keys of the model file that wings and other packages add."""
    own = [key for wing in WINGS.values() for key in wing.model_sections]
    return [*own, *extensions(MODEL_SECTIONS)]


def model_section(key: str) -> Any:
    """Return the `ModelSection` that a wing or another package adds; raises MissingWingError."""
    for wing, found in WINGS.items():
        if key in found.model_sections:
            return _attribute(wing, found.model_sections[key], f"the key {key} of the model file")
    return extension(MODEL_SECTIONS, key)


def report_sections(spec: Any) -> Iterator[Any]:
    """Yield what adds to the report of a monitor file: functions for the keys that it has."""
    for name, wing in WINGS.items():
        if wing.report and any(getattr(spec, key) for key in wing.sections):
            yield _attribute(name, wing.report, "the report")
    added = (extension(REPORT_SECTIONS, key) for key in spec.others)
    yield from (parts for parts in added if parts is not None)


def _attribute(wing: str, place: str, asked: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(part(wing, module, asked), name)


def has(wing: str) -> bool:
    """Tell whether a wing is installed."""
    try:
        import_module(f"{PACKAGE}.{wing}")
    except ModuleNotFoundError:
        return False
    return True


def part(wing: str, module: str, asked: str) -> ModuleType:
    """Return a module of a wing.

    Parameters
    ----------
    asked : str
        What needs it, for the error.

    Raises
    ------
    MissingWingError
        If the wing is not installed; names the wing.
    """
    try:
        return import_module(f"{PACKAGE}.{wing}.{module}")
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if not f"{PACKAGE}.{wing}.".startswith(f"{missing}."):
            raise
        raise MissingWingError(
            f"{asked} needs the wing {wing} ({WINGS[wing].purpose}), which is not installed",
            accepted=f"an installation with the folder {PACKAGE.replace('.', '/')}/{wing}",
        ) from error


def _points(group: str) -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # it takes as long to import as all else here

    return entry_points(group=group)


def extensions(group: str) -> list[str]:
    """Return the names that other packages add to a group of entry points, rising."""
    return sorted({point.name for point in _points(group)})


def extension(group: str, name: str) -> Any | None:
    """Return what another package adds under a name; None if none does.

    Raises
    ------
    InputError
        If it does not load; names the package.
    """
    for point in _points(group):
        if point.name == name:
            try:
                return point.load()
            except Exception as error:  # whatever another package's import raises
                raise InputError(
                    f"{name!r} of {group} ({point.value}) does not load: {error!r}",
                    accepted="a package that can be imported here",
                ) from error
    return None
