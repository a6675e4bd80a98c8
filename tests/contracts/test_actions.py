"""Every action of the one list, at everybody who has to know what to do with it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from forewarn_msgs.msg import Intervention as InterventionMessage
from pydantic import TypeAdapter, ValidationError

from forewarn.config.actions import ACTIONS, NO_ACTION, SEVERITY, Action, Asked, Stop
from forewarn.config.actuators import AutowareSpec
from forewarn.config.sections import PropertySpec
from forewarn.monitoring.intervention import Intervention, strongest
from monitor_node.statements import Statement

SPEED = 0.5
DOCUMENTS = Path(__file__).parents[2] / "docs"
every_action = pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)


def limit_of(action: Action) -> float:
    return SPEED if action.limits else math.nan


def test_the_message_has_a_constant_for_every_action_and_no_other() -> None:
    constants = {
        name
        for name in dir(InterventionMessage)
        if name.isupper() and isinstance(getattr(InterventionMessage, name), int)
    }
    assert constants - {"OBSERVE", "ACT"} == {*ACTIONS}
    assert len({getattr(InterventionMessage, name) for name in ACTIONS}) == len(ACTIONS)


@every_action
def test_the_monitor_file_takes_what_can_be_asked_for(action: Action) -> None:
    section: dict[str, object] = {"formula": "always(p)", "intervention": action.name}
    if not action.askable:
        with pytest.raises(ValidationError, match="intervention"):
            PropertySpec.model_validate(section)
        return
    if action.limits:
        with pytest.raises(ValidationError, match=f"{action.name} needs speed_limit"):
            PropertySpec.model_validate(section)
        section["speed_limit"] = SPEED
    assert PropertySpec.model_validate(section).intervention == action.name
    assert TypeAdapter(Asked).validate_python(action.name) == action.name


@every_action
def test_autoware_takes_manoeuvres_for_stops_alone(action: Action) -> None:
    if action.stops:
        assert TypeAdapter(Stop).validate_python(action.name) == action.name
        assert AutowareSpec(mrm_for=(action.name,)).mrm_for == (action.name,)
    else:
        with pytest.raises(ValidationError):
            AutowareSpec(mrm_for=(action.name,))


@every_action
def test_a_gate_understands_it_and_the_strongest_wins(action: Action) -> None:
    active = action.name != NO_ACTION
    statement = Statement(
        "life", 1, action=action.name, active=active, speed_limit=limit_of(action)
    )
    assert not statement.problem
    assert statement.demand.action == action.name
    for other in ACTIONS.values():
        both = strongest(statement.demand, Intervention(other.name, limit_of(other)))
        assert both.action == max(action.name, other.name, key=SEVERITY.index)


@every_action
def test_the_ego_of_the_closed_loop_moves_otherwise_for_limits_and_stops(action: Action) -> None:
    demand = Intervention(action.name, limit_of(action))
    assert demand.moves == (action.effect in ("limit", "stop"))
    assert demand.stops == action.stops


@every_action
@pytest.mark.parametrize("page", ["howto/interventions.md", "reference/monitor-file.md"])
def test_the_documents_name_it(action: Action, page: str) -> None:
    if action.askable:
        assert action.name in (DOCUMENTS / page).read_text()
