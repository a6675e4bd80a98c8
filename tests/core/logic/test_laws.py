"""The traffic laws that ship parse, compile, and judge hand-written drives as a person would."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import yaml

from forewarn.config.file import MonitorSpec
from forewarn.logic.specification import compile_spec

RATE = 10.0
FOLDER = Path(__file__).resolve().parents[3] / "config" / "laws"
FILES = sorted(FOLDER.glob("*.yaml"))
FRAGMENTS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FILES}
LAW_OF = {name: law for law, part in FRAGMENTS.items() for name in part["properties"]}

#: An empty road by day: every law is kept.
CALM = {
    "speed": 10.0, "light_colour": 0, "light_flashing": False, "has_lights": True,
    "stop_line_distance": math.inf, "junction_distance": math.inf, "crosswalk_distance": math.inf,
    "in_junction": False, "priority_vehicle": False, "priority_pedestrian": False,
    "direction": 0, "turning_around": False, "lanes": 2, "speed_limit": 13.9, "lowest_speed": 0.0,
    "changing_lane": False, "overtaking": False, "gear": 1, "turn_signal": 0, "horn": False,
    "low_beam": False, "high_beam": False, "hour": 12.0, "rain": 0.0, "fog": 0.0, "snow": 0.0,
    "visibility": 1000.0, "lead_distance": math.inf, "lead_speed": math.inf,
    "nearest_distance": math.inf, "traffic_jam": False, "lead_cuts_in": False,
    "sight_distance": 150.0, "vehicle_speed_limit": math.inf,
}  # fmt: skip
RED, YELLOW, GREEN, LEFT, RIGHT, REVERSE = 1, 2, 3, 1, 2, 2
AT_LINE = {"stop_line_distance": 1.5, "junction_distance": 4.0}
WAITING = {"speed": 0.0, **AT_LINE}


def then(seconds: float, **changes: object) -> tuple[float, dict[str, object]]:
    """Return a stretch of a drive: how long, and what changes at its beginning."""
    return seconds, changes


#: For each property, drives: whether the law is broken, and the stretches.
DRIVES = {
    "cn_38_green": [
        (True, [then(1, **WAITING, light_colour=RED), then(2.1, light_colour=GREEN)]),
        (False, [then(1, **WAITING, light_colour=RED), then(1.5, light_colour=GREEN),
                 then(3, speed=2.0)]),
        (False, [then(5, **WAITING, light_colour=GREEN, priority_pedestrian=True)]),
    ],
    "cn_38_yellow_clear": [
        (True, [then(3, speed=0.0, in_junction=True, light_colour=YELLOW)]),
        (False, [then(3, speed=4.0, stop_line_distance=0.0, light_colour=YELLOW)]),
        (False, [then(3, **WAITING, light_colour=YELLOW)]),
    ],
    "cn_38_yellow_stop": [
        (True, [then(4, speed=6.0, stop_line_distance=3.0, light_colour=YELLOW)]),
        (False, [then(2, speed=2.0, stop_line_distance=3.0, light_colour=YELLOW),
                 then(3, speed=0.0, stop_line_distance=1.0)]),
        (False, [then(5, speed=6.0, stop_line_distance=20.0, light_colour=YELLOW)]),
    ],
    "cn_38_red_stop": [
        (True, [then(1, stop_line_distance=9.0, light_colour=RED), then(0.2, **AT_LINE),
                then(4, stop_line_distance=math.inf, in_junction=True)]),
        (False, [then(2, speed=3.0, **AT_LINE, light_colour=RED), then(5, speed=0.0)]),
        (False, [then(5, speed=3.0, **AT_LINE, light_colour=RED, direction=RIGHT)]),
    ],
    "cn_38_red_right": [
        (True, [then(2.5, **WAITING, light_colour=RED, direction=RIGHT)]),
        (False, [then(5, **WAITING, light_colour=RED, direction=RIGHT, priority_vehicle=True),
                 then(1, priority_vehicle=False), then(2, speed=2.0)]),
    ],
    "cn_42_flashing": [
        (True, [then(1, light_colour=YELLOW, light_flashing=True),
                then(0.1, stop_line_distance=0.8)]),
        (False, [then(1, light_colour=YELLOW, light_flashing=True, speed=1.0),
                 then(2, stop_line_distance=0.8)]),
        (False, [then(2, light_colour=YELLOW, stop_line_distance=0.8)]),
    ],
    "cn_44_speed": [
        (True, [then(1), then(0.1, speed=14.0)]),
        (True, [then(1, lowest_speed=9.0), then(0.1, speed=8.0)]),
        (False, [then(1), then(1, speed=14.0, lanes=1)]),
    ],
    "cn_44_lane_change": [
        (True, [then(1), then(0.1, changing_lane=True, priority_vehicle=True)]),
        (False, [then(1, changing_lane=True), then(1, changing_lane=False, priority_vehicle=True)]),
    ],
    "cn_45_highest": [(True, [then(0.1, speed=14.0)]), (False, [then(1, speed=13.9)])],
    "cn_45_lowest": [
        (True, [then(1, lowest_speed=3.0), then(0.1, speed=2.9)]),
        (False, [then(1), then(1, speed=0.0)]),
    ],
    "cn_46_turning": [
        (True, [then(1), then(0.1, direction=LEFT)]),
        (True, [then(1), then(0.1, turning_around=True)]),
        (False, [then(1), then(1, direction=RIGHT, speed=8.3)]),
    ],
    "cn_46_weather": [
        (True, [then(1), then(0.1, fog=0.7)]),
        (True, [then(1), then(0.1, visibility=40.0)]),
        (False, [then(1, rain=0.4), then(1, rain=0.9, speed=8.0)]),
    ],
    "cn_47_signal": [
        (True, [then(1), then(0.1, overtaking=True)]),
        (False, [then(1, turn_signal=LEFT), then(1, overtaking=True), then(1, turn_signal=0)]),
    ],
    "cn_47_warning": [
        (True, [then(1), then(2.1, overtaking=True)]),
        (True, [then(0.5, horn=True), then(1.1, horn=False), then(2.1, overtaking=True)]),
        (False, [then(0.5, horn=True), then(0.5, horn=False), then(5, overtaking=True)]),
        (False, [then(1, low_beam=True), then(1, overtaking=True), then(0.3, high_beam=True),
                 then(5, high_beam=False)]),
    ],
    "cn_47_return": [
        (True, [then(1), then(10.1, overtaking=True)]),
        (True, [then(1), then(9, overtaking=True),
                then(3, turn_signal=RIGHT, changing_lane=True, nearest_distance=3.0)]),
        (False, [then(1), then(9, overtaking=True, nearest_distance=3.0),
                 then(3, turn_signal=RIGHT, changing_lane=True, nearest_distance=8.0)]),
    ],
    "cn_50_reversing": [
        (True, [then(1, speed=1.0, gear=REVERSE), then(0.1, crosswalk_distance=1.0)]),
        (True, [then(1, speed=1.0, gear=REVERSE), then(0.1, priority_vehicle=True)]),
        (False, [then(1, speed=1.0, gear=REVERSE), then(1, crosswalk_distance=1.0, gear=1)]),
    ],
    "cn_51_3_left": [
        (True, [then(1), then(0.1, light_colour=GREEN, direction=LEFT)]),
        (True, [then(1, hour=21.0, turn_signal=LEFT),
                then(0.1, light_colour=GREEN, direction=LEFT)]),
        (False, [then(1, turn_signal=LEFT), then(1, light_colour=GREEN, direction=LEFT)]),
        (False, [then(1, hour=5.0, low_beam=True, turn_signal=LEFT),
                 then(1, light_colour=GREEN, direction=LEFT)]),
    ],
    "cn_51_4_follow": [
        (True, [then(1, **WAITING, light_colour=RED), then(3.1, light_colour=GREEN)]),
        (True, [then(1, light_colour=GREEN, speed=3.0),
                then(0.1, lead_distance=0.4, lead_speed=3.0)]),
        (False, [then(5, **WAITING, light_colour=GREEN, lead_distance=2.0, lead_speed=0.0),
                 then(2, lead_speed=3.0), then(3, speed=2.0)]),
    ],
    "cn_51_5_red": [
        (True, [then(1, light_colour=RED), then(2.1, **AT_LINE)]),
        (False, [then(1, light_colour=RED), then(1.5, **AT_LINE, speed=2.0), then(3, speed=0.0)]),
        (False, [then(5, light_colour=GREEN, **AT_LINE)]),
    ],
    "cn_51_6_queue": [
        (True, [then(1, direction=RIGHT), then(3.1, speed=1.0, lead_distance=1.5, lead_speed=0.0)]),
        (False, [then(2, direction=RIGHT, speed=1.0, lead_distance=1.5, lead_speed=0.0),
                 then(3, speed=0.0)]),
        (False, [then(5, direction=RIGHT, speed=1.0, lead_distance=1.5, lead_speed=1.0)]),
    ],
    "cn_51_7_yield": [
        (True, [then(1, direction=LEFT, speed=4.0), then(2.1, priority_pedestrian=True)]),
        (False, [then(1, direction=LEFT, speed=4.0), then(1, priority_vehicle=True),
                 then(5, speed=0.0)]),
        (False, [then(5, priority_vehicle=True)]),
    ],
    "cn_52_yield": [
        (True, [then(1, has_lights=False, priority_vehicle=True),
                then(2.1, junction_distance=0.5)]),
        (False, [then(1, has_lights=False, priority_vehicle=True),
                 then(1, junction_distance=0.5, speed=1.0), then(5, speed=0.0)]),
        (False, [then(5, priority_vehicle=True, junction_distance=0.5)]),
    ],
    "cn_53_jam": [
        (True, [then(1, traffic_jam=True), then(2.1, speed=3.0, junction_distance=0.5)]),
        (True, [then(1, traffic_jam=True), then(2.1, speed=3.0, lead_speed=0.0)]),
        (False, [then(1, traffic_jam=True, speed=3.0), then(1, junction_distance=0.5),
                 then(5, speed=0.0)]),
    ],
    "de_g1_safe_distance": [
        (True, [then(1, lead_distance=30.0, lead_speed=10.0), then(0.1, lead_distance=5.0)]),
        (True, [then(1, lead_distance=30.0, lead_speed=10.0),
                then(3.2, lead_distance=5.0, lead_cuts_in=True)]),
        (False, [then(1, lead_distance=30.0, lead_speed=10.0),
                 then(2.9, lead_distance=5.0, lead_cuts_in=True),
                 then(5, lead_distance=20.0, lead_cuts_in=False)]),
    ],
    "de_g3_lane_limit": [(True, [then(0.1, speed=14.0)]), (False, [then(1, speed=13.0)])],
    "de_g3_type_limit": [
        (True, [then(1, vehicle_speed_limit=9.0)]),
        (False, [then(1, vehicle_speed_limit=11.0)]),
    ],
    "de_g3_sight_limit": [
        (True, [then(1), then(0.1, sight_distance=10.0)]),
        (False, [then(1), then(1, sight_distance=12.0)]),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def monitors():
    """Return a function from a law to the compiled monitor of its fragment."""
    found = {}

    def compiled(law):
        if law not in found:
            spec = MonitorSpec.model_validate({"version": 1, "rate": RATE, **FRAGMENTS[law]})
            found[law] = compile_spec(spec)
        return found[law]

    return compiled


def violations(monitor, name: str, stretches) -> list[int]:
    """Return the ticks at which the automaton of a property is in its violated state."""
    automaton = monitor.automata[list(monitor.spec.properties).index(name)]
    vocabulary = monitor.abstraction.vocabulary
    signals, state, tick, ticks = dict(CALM), automaton.initial, 0, []
    for seconds, changes in stretches:
        signals.update(changes)
        for _ in range(round(seconds * RATE)):
            values = [signals[source] for source in monitor.abstraction.signals]
            observation = monitor.abstraction.evaluate(values)
            letter = sum(
                1 << i
                for i, atom in enumerate(automaton.atoms)
                if vocabulary.holds(atom, observation.state)
            )
            state = int(automaton.transitions[state, automaton.letter_class[letter]])
            if state == automaton.violated:
                ticks.append(tick)
            tick += 1
    return ticks


def test_the_promised_laws_are_there():
    assert [path.stem for path in FILES] == [
        *(f"cn_{n}" for n in (38, 42, 44, 45, 46, 47, 50, 51, 52, 53)), "de_interstate",
    ]  # fmt: skip


@pytest.mark.parametrize("law", FRAGMENTS)
def test_a_law_is_a_complete_fragment(law):
    fragment = FRAGMENTS[law]
    assert set(fragment) == {"signals", "predicates", "properties"}
    for name, signal in fragment["signals"].items():
        assert signal["description"], name
        assert set(signal) <= {"unit", "description"}, "a signal's source is the user's"
    for name, section in fragment["properties"].items():
        assert section["description"], name
        assert "Article" in section["source"] or "StVO" in section["source"]
        assert "LawBreaker" in section["source"] or "Maierhofer" in section["source"]


@pytest.mark.parametrize("law", FRAGMENTS)
def test_a_law_names_nothing_that_it_does_not_use(law, monitors):
    monitor = monitors(law)
    used = {atom for automaton in monitor.automata for atom in automaton.atoms}
    assert used == set(monitor.abstraction.vocabulary.predicates)
    text = " ".join(FRAGMENTS[law]["predicates"].values())
    for signal in FRAGMENTS[law]["signals"]:
        assert signal in text


def test_fragments_agree_on_the_names_they_share():
    for kind in ("signals", "predicates"):
        meaning = {}
        for law, fragment in FRAGMENTS.items():
            for name, value in fragment[kind].items():
                assert meaning.setdefault(name, value) == value, f"{name} in {law}"
    assert set(CALM) == {name for part in FRAGMENTS.values() for name in part["signals"]}


def test_every_property_has_drives_that_keep_and_break_it():
    assert set(DRIVES) == set(LAW_OF)
    for drives in DRIVES.values():
        assert {broken for broken, _ in drives} == {True, False}


@pytest.mark.parametrize("name", LAW_OF)
def test_a_calm_drive_keeps_the_law(name, monitors):
    assert not violations(monitors(LAW_OF[name]), name, [then(12)])


@pytest.mark.parametrize(
    ("name", "broken", "stretches"),
    [(name, *drive) for name, drives in DRIVES.items() for drive in drives],
)
def test_a_drive_gets_its_verdict(name, broken, stretches, monitors):
    assert bool(violations(monitors(LAW_OF[name]), name, stretches)) == broken


@pytest.mark.parametrize("name", ["cn_38_red_stop", "cn_51_5_red", "cn_52_yield"])
def test_a_response_in_time_is_violated_at_its_last_tick(name, monitors):
    monitor = monitors(LAW_OF[name])
    automaton = monitor.automata[list(monitor.spec.properties).index(name)]
    bound = {"cn_38_red_stop": 30, "cn_51_5_red": 20, "cn_52_yield": 20}[name]
    assert automaton.countdown == bound
    drive = [then(10.0, light_colour=RED, **AT_LINE, has_lights=False, priority_vehicle=True)]
    if name == "cn_52_yield":
        drive = [then(10.0, has_lights=False, priority_vehicle=True, junction_distance=0.5)]
    assert violations(monitor, name, drive)[0] == bound


def test_automata_of_the_laws_stay_small(monitors):
    for law in FRAGMENTS:
        for automaton in monitors(law).automata:
            assert automaton.n_states <= 500
