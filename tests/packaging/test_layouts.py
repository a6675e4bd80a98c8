"""The layouts for PlotJuggler and Foxglove: every topic and field that they name exists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from forewarn.config.actions import ACTIONS

ROOT = Path(__file__).parents[2]
MESSAGES = ROOT / "ros2_ws" / "src" / "forewarn_msgs" / "msg"
NODE = ROOT / "monitor_node" / "src" / "monitor_node"
DIAGNOSTICS = {
    "monitor: timing": NODE / "diagnosis.py",
    "monitor: alerts": NODE / "run_diagnostics.py",
}
BUILT_IN = {"bool", "string", "float64", "uint8", "uint32", "uint64", "int32", "int64"}
OTHERS = {"std_msgs/Header": {"stamp": "time", "frame_id": "string"}, "String": {"data": "string"}}


def published() -> dict[str, str]:
    """Return the type of every topic of a node called /monitor, as its source declares them."""
    found = re.findall(r'_create\((\w+), "~/([\w/]+)"', (NODE / "outputs.py").read_text())
    return {f"/monitor/{topic}": kind.removesuffix("Message") for kind, topic in found}


def fields(kind: str) -> dict[str, str]:
    """Return the types of a message's fields; a type ends with [] if it is an array."""
    if kind in OTHERS:
        return OTHERS[kind]
    lines = (MESSAGES / f"{kind}.msg").read_text().splitlines()
    texts = [text for line in lines if (text := line.partition("#")[0].strip())]
    return {name: kind for kind, name in (text.split()[:2] for text in texts) if "=" not in name}


def kind_of(topic: str, steps: list[str]) -> str:
    """Return the type that a path of fields leads to.

    Raises
    ------
    LookupError
        If there is no such topic or field, or an index where there is no array.
    """
    kind = published()[topic]
    for step in steps:
        name, index = re.fullmatch(r"(\w+)(\[\d*:?\d*\])?(?:\{.*\})?", step).groups()  # type: ignore[union-attr]
        kind = fields(kind)[name]
        if index:
            if not kind.endswith("[]"):
                raise LookupError(f"{name} of {topic} is no array")
            kind = kind.removesuffix("[]") if ":" not in index or len(steps) > 1 else kind
        for field in re.findall(r"\{(\w+)==", step):
            if field not in fields(kind.removesuffix("[]")):
                raise LookupError(f"{kind} has no {field}")
    return kind


def split_foxglove(path: str) -> tuple[str, list[str]]:
    """Take a path such as ``/topic.field[:]{key==$x}.field`` apart."""
    topic, *steps = path.split(".")
    return topic, steps


def split_plotjuggler(name: str) -> tuple[str, list[str]]:
    """Take a series such as ``/topic/field[0]/field`` apart."""
    topic = next((t for t in published() if name.startswith(f"{t}/")), None)
    if topic is None:
        raise LookupError(f"no topic of the monitor begins {name}")
    return topic, name.removeprefix(f"{topic}/").split("/")


@pytest.fixture(scope="module")
def plotjuggler() -> ElementTree.Element:
    return ElementTree.parse(ROOT / "config" / "plotjuggler.xml").getroot()


@pytest.fixture(scope="module")
def foxglove() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (ROOT / "config" / "foxglove.json").read_text(encoding="utf-8")
    )
    return found


@pytest.mark.parametrize(
    ("topic", "steps"),
    [
        ("/monitor/output/risks", ["risks[0]", "probability"]),
        ("/monitor/output/risk", ["risks[0]", "chance"]),
        ("/monitor/output/intervention", ["action[0]"]),
        ("/monitor/output/alerts", ['alerts[:]{heard_by==""}']),
    ],
)
def test_a_path_that_leads_nowhere_is_noticed(topic: str, steps: list[str]) -> None:
    assert kind_of("/monitor/output/risk", ["risks[0]", "probability"]) == "float64"
    with pytest.raises(LookupError):
        kind_of(topic, steps)


def test_plotjuggler_draws_numbers_that_exist(plotjuggler: ElementTree.Element) -> None:
    names = [curve.attrib["name"] for curve in plotjuggler.iter("curve")]
    assert len(names) > 25
    for name in names:
        if name.startswith("/diagnostics/"):
            # PlotJuggler's own parser of diagnostics: topic, status, key.
            _, _, status, key = name.split("/", 3)
            assert f'"{key}":' in DIAGNOSTICS[status].read_text()
        else:
            assert kind_of(*split_plotjuggler(name)) in BUILT_IN - {"string"}, name


def test_plotjuggler_subscribes_to_what_it_draws(plotjuggler: ElementTree.Element) -> None:
    drawn = {curve.attrib["name"] for curve in plotjuggler.iter("curve")}
    plugins = list(plotjuggler.iter("plugin"))
    assert {p.attrib["ID"] for p in plugins} == {"DataLoad ROS2 bags", "ROS2 Topic Subscriber"}
    for plugin in plugins:
        topics = plugin.find("selected_topics").attrib["value"].split(";")  # type: ignore[union-attr]
        assert set(topics) <= published().keys() | {"/diagnostics"}
        assert all(any(name.startswith(f"{t}/") for t in topics) for name in drawn)
        assert all(any(name.startswith(f"{t}/") for name in drawn) for t in topics)


def test_plotjuggler_can_read_the_file(plotjuggler: ElementTree.Element) -> None:
    """As its own `xmlLoadState` does: splitters count their areas, styles are of its list."""
    for splitter in plotjuggler.iter("DockSplitter"):
        assert int(splitter.attrib["count"]) == len(splitter)
        sizes = [float(size) for size in splitter.attrib["sizes"].split(";")]
        assert sum(sizes) == pytest.approx(1, abs=1e-4)
    for plot in plotjuggler.iter("plot"):
        assert plot.attrib["style"] in {"Lines", "Dots", "LinesAndDots", "Sticks", "Steps"}
        assert plot.attrib["line_width"] in {"1.0", "1.5", "2.0", "3.0"}
    # With this element it would ask whether to start streaming, every time.
    assert plotjuggler.find("previouslyLoaded_Streamer") is None


def texts(value: Any) -> Iterator[tuple[str, str]]:
    """Yield every (key, text) in a JSON document."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from ((key, item),) if isinstance(item, str) else texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def test_foxglove_shows_fields_that_exist(foxglove: dict[str, Any]) -> None:
    paths = [
        (panel, text)
        for panel, config in foxglove["configById"].items()
        for key, text in texts(config)
        if key in ("value", "path", "topicPath") and text
    ]
    assert len(paths) > 30
    for panel, path in paths:
        kind = kind_of(*split_foxglove(path))
        if panel.startswith("Plot!"):
            assert kind in BUILT_IN - {"string"}, path
        for variable in re.findall(r"==\$(\w+)\}", path):
            assert variable in foxglove["globalVariables"]
    others = {text for key, text in texts(foxglove) if key == "topicToRender"}
    assert others == {"/diagnostics", "/rosout"}


def test_both_layouts_show_alerts_incidents_and_sources(
    foxglove: dict[str, Any], plotjuggler: ElementTree.Element
) -> None:
    shown = {text for _, text in texts(foxglove)}
    for path in ("alerts.alerts[:]", "alerts.alerts[:].incident", "intervention.sources[:]"):
        assert f"/monitor/output/{path}" in shown
    drawn = {curve.attrib["name"] for curve in plotjuggler.iter("curve")}
    for path in ("alerts/alerts[0]/state", "intervention/sources[0]/age"):
        assert f"/monitor/output/{path}" in drawn


def test_foxglove_places_every_panel_once(foxglove: dict[str, Any]) -> None:
    def leaves(node: Any) -> Iterator[str]:
        if isinstance(node, str):
            yield node
            for item in foxglove["configById"][node].get("tabs", ()):
                yield from leaves(item["layout"])
        else:
            assert 0 < node["splitPercentage"] < 100
            assert node["direction"] in ("row", "column")
            yield from leaves(node["first"])
            yield from leaves(node["second"])

    assert sorted(leaves(foxglove["layout"])) == sorted(foxglove["configById"])


def test_foxglove_has_a_word_for_every_action(foxglove: dict[str, Any]) -> None:
    text = (MESSAGES / "Intervention.msg").read_text()
    constants = re.findall(r"^uint8 ([A-Z_]+)=(\d+)", text, flags=re.MULTILINE)
    actions = {name: number for name, number in constants if name in ACTIONS}
    rules = foxglove["configById"]["Indicator!action"]["rules"]
    words = {rule["rawValue"]: rule["label"] for rule in rules}
    assert sorted(words) == sorted(actions.values())
    assert words[actions["EMERGENCY_STOP"]] == "stop at once"
    assert words[actions["NONE"]] == "nothing"
    assert len({rule["label"] for rule in rules}) == len(actions)


def test_the_layouts_are_installed_and_explained() -> None:
    cmake = (ROOT / "ros2_ws" / "src" / "forewarn_bringup" / "CMakeLists.txt").read_text()
    assert '"${FILES_ROOT}/config"' in cmake
    guide = (ROOT / "docs" / "howto" / "watching.md").read_text(encoding="utf-8")
    for name in ("plotjuggler.xml", "foxglove.json"):
        assert name in guide


@pytest.mark.parametrize("package", ["monitor_node", "forewarn_ros"])
def test_the_page_about_the_node_names_every_module_and_no_other(package: str) -> None:
    page = (ROOT / "docs" / "design" / "node.md").read_text()
    table = page[page.index("| Module |") : page.index("## Interfaces")]
    named = set(re.findall(r"`(\w+)\.py`", table))
    modules = {path.stem for path in (ROOT / package / "src" / package).glob("*.py")}
    others = {path.stem for path in (ROOT / "forewarn_ros/src/forewarn_ros").glob("*.py")}
    others |= {path.stem for path in NODE.glob("*.py")}
    assert modules - {"__init__"} <= named <= others
