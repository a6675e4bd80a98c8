"""The kinds of states that a monitor file can ask for.

Wings name theirs in the registry. Other packages add a `Kind` as an entry point of the group
``forewarn.state_kinds``.

A monitor file says ``states: {kind: NAME, ...}``; what else stands there belongs to the kind. A
model file says which kind its states are of, and keeps what `StateSpace.content` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from forewarn.config.fields import Section
from forewarn.config.file import MonitorSpec
from forewarn.errors import ConfigError, ModelError
from forewarn.registry import STATE_KINDS, extension, extensions, state_kind, state_kinds
from forewarn.states.interface import PREDICATES, StateSpace
from forewarn.states.learned_signal import SignalFit
from forewarn.states.predicates.compile import build_abstraction
from forewarn.states.vocabulary import Vocabulary

if TYPE_CHECKING:
    from forewarn.states.abstraction import Abstraction

Names = tuple[str, ...]
Fits = tuple[SignalFit, ...]


class Kind(NamedTuple):
    """A kind of states. Its functions have names in a module: other processes find them by these.

    Attributes
    ----------
    build : callable
        From a monitor file, the atoms of its formulas and the learned scores that are fitted to its
        abstraction; raises ConfigError.
    parse : callable
        From predicates, terminal labels and `StateSpace.content`, as a model file keeps them, to
        the states; raises ModelError, which has the key within the content.
    """

    build: Callable[[MonitorSpec, Iterable[str], Sequence[SignalFit]], Abstraction]
    parse: Callable[[Names, Names, Mapping[str, Any]], StateSpace]


def _build_predicates(
    spec: MonitorSpec, inline: Iterable[str], fitted: Sequence[SignalFit]
) -> Abstraction:
    spec.states_section(Section)
    return build_abstraction(spec, inline, fitted=fitted)


def _parse_predicates(
    predicates: Names, terminals: Names, content: Mapping[str, Any]
) -> StateSpace:
    for key in content:
        raise ModelError("unknown key", key=key, accepted="none: names are all of predicates")
    return Vocabulary(predicates, terminals)


KINDS: dict[str, Kind] = {PREDICATES: Kind(_build_predicates, _parse_predicates)}


def build_states(
    spec: MonitorSpec, inline: Iterable[str] = (), fitted: Sequence[SignalFit] = ()
) -> Abstraction:
    """Build the abstraction that a monitor file asks for.

    Parameters
    ----------
    spec : MonitorSpec
        The monitor file.
    inline : iterable of str
        Atoms of the formulas, of which some kinds make predicates.
    fitted : sequence of SignalFit
        Learned scores of the model; others are unknown at every moment.

    Raises
    ------
    ConfigError
        If the kind is unknown, or the file wrong; all findings at once.
    """
    kind = _kind(spec.states.kind)
    if kind is None:
        raise ConfigError(
            f"{spec.states.kind!r} is no kind of states",
            file=spec.file,
            key="states.kind",
            accepted=", ".join(_names()),
        )
    if spec.learning.regrow is not None and (spec.states.kind == PREDICATES or spec.action is None):
        raise ConfigError(
            "there is no tree, or no action to grow it by",
            file=spec.file,
            key="learning.regrow",
            accepted="`states: {kind: tree}` and `action:` in the monitor file",
        )
    return _build(kind.build, spec, tuple(inline), tuple(fitted))


def _build(
    build: Callable[[MonitorSpec, Iterable[str], Sequence[SignalFit]], Abstraction],
    spec: MonitorSpec,
    inline: Names,
    fitted: Fits,
) -> Abstraction:
    again = partial(_build, build, spec, inline, fitted)
    return replace(build(spec, inline, fitted), rebuild=again)


def parse_states(
    kind: str, predicates: Names, terminals: Names, content: Mapping[str, Any]
) -> StateSpace:
    """Return the states of a model file; raises ModelError."""
    found = _kind(kind)
    if found is None:
        raise ModelError(f"{kind!r} is no kind of states", key="kind", accepted=", ".join(_names()))
    return found.parse(predicates, terminals, content)


def _kind(name: str) -> Kind | None:
    """Return a kind by its name: one of ours, of a wing, or of another package."""
    return KINDS.get(name) or state_kind(name) or extension(STATE_KINDS, name)


def _names() -> list[str]:
    return [*KINDS, *state_kinds(), *extensions(STATE_KINDS)]
