"""What ``forewarn init`` proposes, type by type."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

from forewarn.cli.init.catalogue import CATALOGUE, Role
from forewarn.cli.init.draft import RESERVED_WORDS
from forewarn.cli.init.naming import end_of, is_goal, is_truth, role_of
from forewarn.cli.init.writing import scalar
from forewarn.config.file import load_spec
from forewarn.config.yaml_text import parse_document
from forewarn.expressions.syntax import parse_expression
from forewarn.logic.specification import compile_spec
from forewarn.messages.definitions import installed_message_type
from forewarn.messages.extraction import compile_extractor
from forewarn.recordings.writing import RecordingWriter

STORE = get_typestore(Stores.ROS2_HUMBLE)
MARKERS, ODOMETRY = "visualization_msgs/msg/MarkerArray", "nav_msgs/msg/Odometry"


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_every_proposal_has_a_name_that_a_signal_may_have(name: str) -> None:
    assert not {proposal.name for proposal in CATALOGUE[name]} & RESERVED_WORDS


@pytest.mark.parametrize("name", sorted(set(CATALOGUE) & set(STORE.types)))
def test_every_proposal_for_a_standard_type_reads_its_message(name: str) -> None:
    mtype = installed_message_type(name)
    message = bytes(mtype.typestore.serialize_cdr(zero(name), name))
    for proposal in CATALOGUE[name]:
        extract = compile_extractor(mtype, [parse_expression(proposal.value)])
        assert len(extract(message)) == 1


def zero(name: str) -> Any:
    """Return a message of zeros and empty arrays."""

    def value(desc: Any) -> Any:
        node, detail = int(desc[0]), desc[1]
        if node == 1:
            return {"string": "", "bool": False}.get(detail[0], 0)
        if node == 2:
            return zero(detail)
        element, size = detail
        if int(element[0]) == 1 and element[1][0] != "string":
            return np.zeros(size if node == 3 else 0, dtype=element[1][0])
        return []

    mtype = installed_message_type(name)
    return mtype.typestore.types[name](*(value(desc) for _, desc in mtype.types[name][1]))


def markers(frame: str, points: list[tuple[float, float]]) -> Any:
    array = zero(MARKERS)
    for x, y in points:
        marker = zero("visualization_msgs/msg/Marker")
        marker.header.frame_id = frame
        marker.pose.position.x, marker.pose.position.y = x, y
        array.markers.append(marker)
    return array


def write(path: Path, frame: str) -> Path:
    """Record a robot at (100, 50) in the map, and two others as seen from `frame`."""
    pose = zero(ODOMETRY)
    pose.header.frame_id = "map"
    pose.pose.pose.position.x, pose.pose.pose.position.y = 100.0, 50.0
    others = markers(frame, [(103.0, 54.0), (110.0, 50.0)])
    topics = {"/odom": (ODOMETRY, pose), "/others": (MARKERS, others)}
    return record_often(path, topics, 40, 50_000_000)


def record_often(
    path: Path, topics: dict[str, tuple[str, Any]], times: int, period_ns: int
) -> Path:
    """Record the same message of each topic, of a type and a value, again and again."""
    rows = [
        (topic, name, STORE.generate_msgdef(name, ros_version=2)[0],
         bytes(STORE.serialize_cdr(message, name)))
        for topic, (name, message) in topics.items()
    ]  # fmt: skip
    with RecordingWriter(path) as writer:
        for i in range(times):
            for topic, name, text, data in rows:
                writer.write(topic, name, text, 10**18 + i * period_ns, data)
    return path


def test_distances_are_from_the_robot_where_frames_agree(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "m.yaml"
    bag = write(tmp_path / "bag.mcap", "map")
    result = forewarn("init", bag, "-o", path, "--json")
    found = json.loads(result.out)["signals"]
    assert found["nearest_marker"]["statistics"]["median"] == pytest.approx(5.0)
    assert found["nearest_marker"]["topic"] == ""
    spec = load_spec(path)
    assert spec.signals["nearest_marker"].is_derived
    assert "both in the frame map" in path.read_text()
    assert forewarn("validate", path, "--bag", bag).code == 0


def test_distances_are_from_the_frame_where_it_is_another(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "m.yaml"
    forewarn("init", write(tmp_path / "bag.mcap", "base_link"), "-o", path)
    spec = load_spec(path)
    assert not spec.signals["nearest_marker"].is_derived
    assert "from the origin of the markers' frame" in path.read_text()


def test_a_distance_from_the_origin_of_a_map_is_not_proposed(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "m.yaml"
    assert forewarn("init", write(tmp_path / "bag.mcap", "world"), "-o", path).code == 0
    assert "nearest_marker" not in load_spec(path).signals


def test_timeouts_and_rates_come_from_the_recording(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "m.yaml"
    forewarn("init", write(tmp_path / "bag.mcap", "map"), "-o", path, "--rate", "20")
    spec = load_spec(path)
    assert spec.rate == 20
    assert spec.signals["speed"].timeout == pytest.approx(0.25)  # five periods of 50 ms
    assert "usually every 0.05 s, at most 0.05 s" in path.read_text()


def test_two_topics_of_one_type_get_names_of_their_own(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    still = (ODOMETRY, zero(ODOMETRY))
    topics = {"/front/odom": still, "/rear/odom": still}
    bag = record_often(tmp_path / "bag.mcap", topics, 20, 10**8)
    path = tmp_path / "m.yaml"
    assert forewarn("init", bag, "-o", path).code == 0
    assert list(load_spec(path).signals) == [
        "front_odom_speed", "front_odom_yaw_rate", "rear_odom_speed", "rear_odom_yaw_rate",
    ]  # fmt: skip
    compile_spec(load_spec(path))


def test_a_recording_without_any_number_is_refused(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    bag = tmp_path / "bag.mcap"
    with RecordingWriter(bag) as writer:
        data = bytes(STORE.serialize_cdr(zero("std_msgs/msg/Empty"), "std_msgs/msg/Empty"))
        writer.write("/tick", "std_msgs/msg/Empty", "", 10**18, data)
    result = forewarn("init", bag, "-o", tmp_path / "m.yaml")
    assert result.code == 2
    assert "/tick" in result.err


@pytest.mark.parametrize("text", ["a.b", "yes", "min(x, y)", "a: b", "x # y", "'q'", "[1]", "é"])
def test_scalars_read_back_as_they_were(text: str) -> None:
    assert parse_document(f"k: {scalar(text)}").data == {"k": text}


def drawn(shape: str) -> np.ndarray:
    rng = np.random.default_rng(7)
    return {
        # What rounding to one digit does to a tenth, and what repeated values do to 80 %.
        "steady": rng.normal(1.39, 0.05, 400),
        "backwards": rng.normal(-2.0, 0.8, 400),
        "standing": np.where(rng.random(400) < 0.7, 0.0, rng.uniform(0, 3, 400)),
        "seldom": np.where(np.arange(400) == 17, 5.0, 1.0),
    }[shape]


def record_values(path: Path, topics: dict[str, tuple[str, np.ndarray]]) -> Path:
    with RecordingWriter(path) as writer:
        for topic, (name, values) in topics.items():
            text = STORE.generate_msgdef(name, ros_version=2)[0]
            message = zero(name)
            for i, value in enumerate(values):
                if name == ODOMETRY:
                    message.twist.twist.linear.x = value
                else:
                    message.range = value
                data = bytes(STORE.serialize_cdr(message, name))
                writer.write(topic, name, text, 10**18 + i * 10**8, data)
    return path


def percentage(share: float) -> str:
    if 0 < share < 0.01:
        return "less than 1 %"
    return "more than 99 %" if 0.99 < share < 1 else f"{100 * share:.0f} %"


@pytest.mark.parametrize("shape", ["steady", "backwards", "standing", "seldom"])
def test_shares_are_those_of_the_thresholds_as_written(
    forewarn: Callable[..., Any], tmp_path: Path, shape: str
) -> None:
    values = drawn(shape)
    path = tmp_path / "m.yaml"
    bag = record_values(tmp_path / "bag.mcap", {"/odom": (ODOMETRY, values)})
    assert forewarn("init", bag, "-o", path).code == 0
    spec, text = load_spec(path), path.read_text()
    threshold = float(spec.predicates["too_fast"].removeprefix("abs(speed) > "))
    share = percentage(float(np.mean(np.abs(values) > threshold)))
    assert re.search(rf"  too_fast: .*  # .*true {share} of the time\n", text)
    found = re.search(r"  speed:  # .*, (.*) within (\S+) to (\S+)\n", text)
    assert found is not None
    low, high = float(found[2]), float(found[3])
    assert found[1] == percentage(float(np.mean((values >= low) & (values <= high))))


def test_values_that_hardly_differ_are_told_apart(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    values = 315000 + np.linspace(0, 0.5, 101)
    bag = record_values(tmp_path / "bag.mcap", {"/odom": (ODOMETRY, values)})
    assert forewarn("init", bag, "-o", tmp_path / "m.yaml").code == 0
    text = (tmp_path / "m.yaml").read_text()
    told = "315000 to 315000.5, median 315000.25, 80 % within 315000.05 to 315000.45"
    assert f"  speed:  # {told}\n" in text


def test_one_message_is_one_message(forewarn: Callable[..., Any], tmp_path: Path) -> None:
    bag = record_values(tmp_path / "bag.mcap", {"/odom": (ODOMETRY, np.ones(1))})
    assert forewarn("init", bag, "-o", tmp_path / "m.yaml").code == 0
    assert "nav_msgs/msg/Odometry, 1 message\n" in (tmp_path / "m.yaml").read_text()


def test_shares_of_distances_count_what_is_out_of_range(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    rng = np.random.default_rng(7)
    # One tick each: float32, as the message has it.
    ranges = rng.uniform(0.3, 9.0, 400).astype(np.float32).astype(np.float64)
    ranges[rng.random(400) < 0.3] = np.inf
    path = tmp_path / "m.yaml"
    bag = record_values(tmp_path / "b.mcap", {"/range": ("sensor_msgs/msg/Range", ranges)})
    assert forewarn("init", bag, "-o", path).code == 0
    spec, text = load_spec(path), path.read_text()
    (cuts,) = spec.bins.values()
    shares = ", ".join(f"<{cut:g} {percentage(float(np.mean(ranges < cut)))}" for cut in cuts)
    assert f"  # of the time: {shares}\n" in text
    (condition,) = spec.predicates.values()
    near = percentage(float(np.mean(ranges < float(condition.removeprefix("distance < ")))))
    assert f"  # true {near} of the time\n" in text


def record_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps({"t": i / 10, **v}) + "\n" for i, v in enumerate(lines)))
    return path


def test_a_trace_is_understood_by_names_and_values(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    lines = [
        {"ego_x": 100.0 + i, "ego_y": 0.0, "groundtruth_x": 100.1 + i, "collided": i > 95,
         "obj_x": [103.0 + i, 90.0], "obj_y": [4.0, 0.0], "Speed": 3.0, "inLane": i % 9 > 1}
        for i in range(100)
    ]  # fmt: skip
    path, trace = tmp_path / "m.yaml", record_lines(tmp_path / "run.jsonl", lines)
    result = forewarn("init", trace, "-o", path, "--json")
    found = json.loads(result.out)["signals"]
    assert found["nearest_obj"]["statistics"]["median"] == pytest.approx(5.0)
    assert found["Speed"]["statistics"]["median"] == 3.0, "a name is read as the trace has it"
    spec = load_spec(path)
    assert spec.terminal == {"collision": "collided"}
    assert spec.properties["no_collision"].formula == "always(not collision)"
    assert "groundtruth_x" not in spec.signals
    assert "only a simulator knows them: groundtruth_x" in path.read_text()
    assert spec.predicates["is_inLane"] == "inLane"
    assert forewarn("learn", trace, "-c", path, "-o", tmp_path / "m.json").code == 0


def test_a_label_needs_no_rule_about_places(forewarn: Callable[..., Any], tmp_path: Path) -> None:
    lines = [{"ego_x": float(i), "collided": i > 95} for i in range(100)]
    path, trace = tmp_path / "m.yaml", record_lines(tmp_path / "run.jsonl", lines)
    assert forewarn("init", trace, "-o", path).code == 0
    assert list(load_spec(path).properties) == ["no_collision"]
    assert not load_spec(path).predicates
    assert forewarn("learn", trace, "-c", path, "-o", tmp_path / "m.json").code == 0


def test_the_danger_score_that_is_proposed_fits_the_file(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    lines = [
        {"ego_x": float(i), "gap": 20.0 - i / 5, "always": 3.0, "collided": i > 95}
        for i in range(100)
    ]
    path, trace = tmp_path / "m.yaml", record_lines(tmp_path / "run.jsonl", lines)
    assert forewarn("init", trace, "-o", path).code == 0
    assert not load_spec(path).learned_score
    heading, _, proposed = path.read_text().partition("# learned_score:\n")
    score, _, rest = proposed.partition("\n\n")
    taken = re.sub("^#", "", score, flags=re.MULTILINE)
    path.write_text(f"{heading}learned_score:\n{taken}\n\n{rest}")
    spec = load_spec(path)
    assert forewarn("validate", path).code == 0
    assert spec.learned_score["risk_ahead"].signals == ("gap",)
    assert spec.properties[spec.learned_score["risk_ahead"].property].estimator == "ensemble"


def test_a_rule_that_is_broken_all_the_time_is_only_a_comment(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    lines = [{"docked": i % 2 == 0} for i in range(100)]
    path, trace = tmp_path / "m.yaml", record_lines(tmp_path / "run.jsonl", lines)
    assert forewarn("init", trace, "-o", path).code == 0
    assert list(load_spec(path).properties) == ["write_your_own"]
    assert "  # Broken in 50 % of the ticks, so it is only a comment:\n  # no_docked:" in (
        path.read_text()
    )


def test_all_recordings_are_looked_at_within_the_seconds(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    bags = []
    for name, speed in (("a", 1.0), ("b", 5.0)):
        values = np.full(400, speed)
        bags.append(record_values(tmp_path / f"{name}.mcap", {"/odom": (ODOMETRY, values)}))
    path = tmp_path / "m.yaml"
    result = forewarn("init", *bags, "-o", path, "--seconds", "20", "--json")
    found = json.loads(result.out)["signals"]["speed"]["statistics"]
    assert (found["low"], found["high"], found["median"]) == (1.0, 5.0, pytest.approx(3.0, abs=2.0))
    text = path.read_text()
    assert "from a.mcap and 1 more" in text and "the first 20.0 s read" in text
    assert "/odom nav_msgs/msg/Odometry, 800 messages" in text


@pytest.mark.parametrize(
    ("topic", "kind", "signal"),
    [
        ("/cmd_vel", "Twist", "commanded_speed"),
        ("/planner/output", "Twist", "commanded_speed"),
        ("/vehicle/twist", "Twist", "speed"),
        ("/gps/vel", "TwistStamped", "speed"),
        ("/controller/cmd_vel", "TwistStamped", "commanded_speed"),
    ],
)
def test_a_measured_twist_is_no_command(
    forewarn: Callable[..., Any], tmp_path: Path, topic: str, kind: str, signal: str
) -> None:
    name = f"geometry_msgs/msg/{kind}"
    bag = record_often(tmp_path / "bag.mcap", {topic: (name, zero(name))}, 20, 10**8)
    path = tmp_path / "m.yaml"
    assert forewarn("init", bag, "-o", path).code == 0
    assert signal in load_spec(path).signals


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("front_dist", [1.0, 2.0], Role.DISTANCE),
        ("minDistToObj", [1.0], Role.DISTANCE),
        ("distance_travelled", [1.0], Role.OTHER),
        ("vehicle_speed", [1], Role.SPEED),
        ("speed_limit", [1.0], Role.OTHER),
        ("cmd_vel", [1.0], Role.OTHER),
        ("docked", [True, False], Role.FLAG),
        ("dist", [[1.0, 2.0]], Role.OTHER),
        ("dist", [], Role.OTHER),
    ],
)
def test_names_and_values_tell_what_a_value_is_good_for(
    name: str, values: list[Any], role: Role
) -> None:
    assert role_of(name, values) is role


def test_what_warns_of_an_end_is_none() -> None:
    ends = {"collided": "collision", "/ego/collision": "collision", "hasFallen": "fall"}
    assert {name: end_of(name) for name in ends} == ends
    assert not any(map(end_of, ["collision_warning", "near_collision", "docked", "bumper"]))


@pytest.mark.parametrize("name", ["reward", "score", "episode_return", "done", "taskSuccess"])
def test_what_a_run_is_rewarded_for_is_no_hazard(
    forewarn: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    lines = [{name: i % 7 == 6, "load": i * 0.37 % 5} for i in range(100)]
    path, trace = tmp_path / "m.yaml", record_lines(tmp_path / "run.jsonl", lines)
    assert forewarn("init", trace, "-o", path).code == 0
    assert list(load_spec(path).properties) == ["no_load_high"]
    alone = record_lines(tmp_path / "alone.jsonl", [{name: line[name]} for line in lines])
    assert forewarn("init", alone, "-o", path, "--force").code == 0
    assert list(load_spec(path).properties) == ["write_your_own"]
    assert f"no_{name}" not in path.read_text()
    assert forewarn("learn", alone, "-c", path, "-o", tmp_path / "m.json").code == 0


def test_a_score_of_harm_is_no_goal() -> None:
    hazards = ["attack_succeeded", "risk_score", "injectionDone", "goal_distance", "scored"]
    assert not any(map(is_goal, hazards))


def test_the_truth_of_a_simulator_is_told_by_its_name() -> None:
    truths = ["groundtruth_x", "/ground_truth/odom", "gt_pose", "/GroundTruth"]
    assert all(map(is_truth, truths))
    assert not any(map(is_truth, ["ground_speed", "length", "/odom", "height"]))


def test_names_that_no_signal_may_have_are_left_out_and_told(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    """A signal of another name than the column would never have a value."""
    bag, path = tmp_path / "run.csv", tmp_path / "monitor.yaml"
    bag.write_text("t,Speed (m/s),gap,état\n0.0,1.0,5.0,a\n0.1,1.1,4.8,b\n0.2,1.2,4.6,b\n")
    done = forewarn("init", bag, "-o", path)
    assert done.code == 0
    assert "left out, because no signal may have such a name: Speed (m/s), état" in done.err
    assert "#   Speed (m/s), état" in path.read_text()
    assert forewarn("validate", path, "--bag", bag).code == 0
    bag.write_text("t,Speed (m/s)\n0.0,1.0\n")
    done = forewarn("init", bag, "-o", path, "--force")
    assert done.code == 2
    assert "Speed (m/s) (accepted: a letter, then letters, digits and underscores" in done.err
    assert "speed_m_s" in done.err


def test_lines_without_a_time_are_said_to_be_steps(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    bag = tmp_path / "run.csv"
    bag.write_text("time,speed\n0.0,1\n0.1,2\n")
    done = forewarn("init", bag, "-o", tmp_path / "monitor.yaml")
    assert "each is a step (for ticks, call the seconds t)" in done.err


@pytest.mark.parametrize(("step", "rate"), [(0.02, 10.0), (0.2, 5.0), (0.21, 5.0), (4.0, 1.0)])
def test_ticks_are_no_more_than_lines_of_a_trace_and_at_most_ten_a_second(
    forewarn: Callable[..., Any], tmp_path: Path, step: float, rate: float
) -> None:
    lines = [{"t": round(i * step, 3), "gap": 20.0 - i / 5} for i in range(60)]
    path, trace = tmp_path / "m.yaml", tmp_path / "run.jsonl"
    trace.write_text("\n".join(map(json.dumps, lines)) + "\n")
    assert forewarn("init", trace, "-o", path).code == 0
    assert load_spec(path).rate == rate


@pytest.mark.parametrize("name", ["time_to_collision", "room_ahead"])
def test_what_is_infinite_at_times_is_cut_at_its_finite_values_and_an_arrival_ends_a_run(
    forewarn: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    ahead = [np.inf] * 60 + [4.0 - k / 10 for k in range(40)]
    lines = [
        {"t": k / 10, name: value, "lamp": k % 3 == 0, "arrived": k == 99}
        for k, value in enumerate(ahead)
    ]
    trace = record_lines(tmp_path / "run.jsonl", lines)
    assert forewarn("init", trace, "-o", tmp_path / "m.yaml").code == 0
    spec = load_spec(tmp_path / "m.yaml")
    cuts = spec.bins[name]
    assert [*cuts] == sorted(cuts)
    assert min(cuts) < 4.0
    assert spec.terminal == {"was_arrived": "arrived"}
    assert "is_arrived" not in spec.predicates
    assert spec.predicates["is_lamp"] == "lamp"
    assert not any("arrived" in one.formula for one in spec.properties.values())
    assert any(text.startswith(f"{name} < ") for text in spec.predicates.values())


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("timeToConflict", [1.0, 2.0], Role.DISTANCE),
        ("ttc", [1.0, np.inf], Role.DISTANCE),
        ("room", [np.inf, 3.0], Role.DISTANCE),
        ("room", [np.inf, -3.0], Role.OTHER),
        ("room", [np.inf], Role.OTHER),
        ("time", [1.0, 2.0], Role.OTHER),
    ],
)
def test_times_until_something_and_what_is_infinite_at_times_are_like_distances(
    name: str, values: list[float], role: Role
) -> None:
    assert role_of(name, values) is role
