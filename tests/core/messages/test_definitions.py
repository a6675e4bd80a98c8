"""Where message definitions come from, and what is wrong with those that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from forewarn.errors import ForewarnError
from forewarn.messages.definitions import installed_message_type, message_type
from forewarn.messages.schema import ArrayOf, DefinitionError, Primitive, SequenceOf

LINE = "=" * 80
BUNDLE = """\
# The top type comes first.
int32 LIMIT=3
string NAME="a # b"
my_msgs/Inner[] inners   # used before it is defined
wstring wide
wstring<=4[2] few
string<=5 short
float64[<=3] some
byte[2] pair
---
"""


def bundle(top: str, **parts: str) -> str:
    return top + "".join(f"{LINE}\nMSG: my_msgs/{name}\n{text}\n" for name, text in parts.items())


def test_embedded_msg_definition() -> None:
    text = bundle(
        BUNDLE.replace("---\n", ""), Inner="uint8 CAR=1\nuint8 kind\nEmpty empty\n", Empty=""
    )
    struct = message_type("my_msgs/msg/Top", text, "ros2msg").struct
    assert dict(struct.constants) == {"LIMIT": 3, "NAME": "a # b"}
    assert struct.fields["wide"] == Primitive("wstring")
    assert struct.fields["few"] == ArrayOf(Primitive("wstring"), 2)
    assert struct.fields["some"] == SequenceOf(Primitive("float64"), 3)
    assert struct.fields["pair"] == ArrayOf(Primitive("byte"), 2)
    inner = struct.fields["inners"]
    assert isinstance(inner, SequenceOf)
    assert str(inner) == "my_msgs/msg/Inner[]"


def test_short_names_and_windows_line_ends() -> None:
    text = bundle("Inner inner\n", Inner="float32 x").replace("\n", "\r\n")
    assert list(message_type("my_msgs/Top", text, "ros2msg").struct.fields) == ["inner"]


def test_embedded_idl_definition() -> None:
    text = (
        f"{LINE}\nIDL: my_msgs/msg/Top\n"
        "module my_msgs { module msg {\n"
        "struct Top { my_msgs::msg::Inner inner; wstring w; }; }; };\n"
        f"{LINE}\nIDL: my_msgs/msg/Inner\n"
        "module my_msgs { module msg { module Inner_Constants { const long ONE = 1; };\n"
        "struct Inner { sequence<double, 3> few; octet raw; }; }; };\n"
    )
    struct = message_type("my_msgs/msg/Top", text, "ros2idl").struct
    inner = struct.fields["inner"]
    assert str(inner) == "my_msgs/msg/Inner"
    assert inner.constants == {"ONE": 1}  # type: ignore[union-attr]
    assert inner.fields["few"] == SequenceOf(Primitive("float64"), 3)  # type: ignore[union-attr]


def test_idl_that_uses_a_msg() -> None:
    text = (
        f"{LINE}\nIDL: my_msgs/msg/Top\n"
        "module my_msgs { module msg { struct Top { my_msgs::msg::Inner inner; }; }; };\n"
        f"{LINE}\nMSG: my_msgs/msg/Inner\nfloat64 x\n"
    )
    struct = message_type("my_msgs/msg/Top", text, "ros2idl").struct
    assert struct.fields["inner"].fields == {"x": Primitive("float64")}  # type: ignore[union-attr]


def test_service_event_definition() -> None:
    text = (
        "service_msgs/ServiceEventInfo info\n"
        "my_msgs/srv/Ask_Request[<=1] request\nmy_msgs/srv/Ask_Response[<=1] response\n"
        f"{LINE}\nMSG: service_msgs/ServiceEventInfo\nuint8 event_type\n"
        f"{LINE}\nMSG: my_msgs/srv/Ask_Request\nbool data\n"
        f"{LINE}\nMSG: my_msgs/srv/Ask_Response\nstring text\n"
    )
    struct = message_type("my_msgs/srv/Ask_Event", text, "ros2msg").struct
    assert str(struct.fields["request"]) == "my_msgs/srv/Ask_Request[<=1]"


@pytest.mark.parametrize(
    ("text", "encoding", "problem"),
    [
        ("int32", "ros2msg", "cannot be parsed"),
        ("int32 9lives", "ros2msg", "cannot be parsed"),
        (
            "Missing x",
            "ros2msg",
            r"no definition of my_msgs/msg/Missing \(used by my_msgs/msg/Top\)",
        ),
        ("Top x", "ros2msg", "contains itself"),
        ("Top[] x", "ros2msg", "contains itself"),
        ("int32[0] x", "ros2msg", "array of length 0"),
        ("string[99999999999999999999] x", "ros2msg", "array of length 99999999999999999999"),
        (f"int32 x\n{LINE}\nnonsense\nint32 y", "ros2msg", "'nonsense' after a separator"),
        ("struct {", "ros2idl", "cannot be parsed"),
        ("", "ros2idl", "cannot be parsed"),
        ("int32 x", "protobuf", "written in 'protobuf'"),
        ("\0\1\2", "ros2msg", "cannot be parsed"),
    ],
)
def test_what_is_wrong_with_a_definition(text: str, encoding: str, problem: str) -> None:
    with pytest.raises(DefinitionError, match=problem) as caught:
        message_type("my_msgs/msg/Top", text, encoding)
    assert "accepted: " in str(caught.value)


def test_deep_nesting_is_refused() -> None:
    parts = {f"T{i}": f"T{i + 1} x" for i in range(200)}
    with pytest.raises(DefinitionError, match="nested too deep"):
        message_type("my_msgs/msg/Top", bundle("T0 x\n", **parts, T200="int8 x"), "ros2msg")


def test_types_that_double_their_parts_again_and_again_are_refused() -> None:
    parts = {f"T{i}": f"T{i + 1} a\nT{i + 1}[] b" for i in range(40)}
    with pytest.raises(DefinitionError, match="at most 100000"):
        message_type("my_msgs/msg/Top", bundle("T0 x\n", **parts, T40="string x"), "ros2msg")


@pytest.mark.parametrize(
    "name", ["", "Odometry", "a/b/c/d", "../../etc/passwd", "a/x/B", "a/msg/b c", 3]
)
def test_bad_type_names(name: str) -> None:
    with pytest.raises(DefinitionError, match="not a message type"):
        installed_message_type(name)


def test_standard_types_need_no_ros() -> None:
    assert "twist" in installed_message_type("nav_msgs/Odometry").struct.fields
    with pytest.raises(DefinitionError, match=r"did you mean 'nav_msgs/msg/Odometry'\?"):
        installed_message_type("nav_msgs/msg/Odometri")


def install(prefix: Path, package: str, **files: str) -> None:
    for name, text in files.items():
        base, _, suffix = name.rpartition("_")
        folder = prefix / "share" / package / (suffix if suffix in ("srv", "action") else "msg")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{base}.{suffix}").write_text(text)


def test_installed_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    install(first, "a_msgs", Top_msg="b_msgs/Part part\n", Ask_srv="bool x\n---\nstring y\n")
    install(
        second,
        "b_msgs",
        Part_msg="float64 x\n",
        Only_idl="module b_msgs { module msg { struct Only { double x; }; }; };",
    )
    install(second, "a_msgs", Top_msg="int8 hidden_by_the_first_prefix\n")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{first}:{second}")
    top = installed_message_type("a_msgs/msg/Top")
    assert list(top.struct.fields) == ["part"]
    assert list(installed_message_type("b_msgs/msg/Only").struct.fields) == ["x"]
    assert list(installed_message_type("a_msgs/srv/Ask_Request").struct.fields) == ["x"]
    assert list(installed_message_type("a_msgs/srv/Ask_Response").struct.fields) == ["y"]
    event = installed_message_type("a_msgs/srv/Ask_Event").struct
    assert [str(event.fields[part]) for part in ("request", "response")] == [
        "a_msgs/srv/Ask_Request[<=1]",
        "a_msgs/srv/Ask_Response[<=1]",
    ]


def test_goals_results_and_feedback_of_actions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = "geometry_msgs/Point[] way\n---\n# the end\nstring text\n---\nfloat64 done\n"
    install(tmp_path, "a_msgs", Go_action=parts, Bad_action="int8 x\n---\n")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    goal = installed_message_type("a_msgs/action/Go_Goal")
    assert str(goal.struct.fields["way"]) == "geometry_msgs/msg/Point[]"
    assert list(installed_message_type("a_msgs/action/Go_Result").struct.fields) == ["text"]
    assert list(installed_message_type("a_msgs/action/Go_Feedback").struct.fields) == ["done"]
    told = installed_message_type("a_msgs/action/Go_FeedbackMessage").struct
    assert list(told.fields) == ["goal_id", "feedback"]
    assert list(told.fields["feedback"].fields) == ["done"]
    with pytest.raises(DefinitionError, match=r"Bad\.action: not an action definition"):
        installed_message_type("a_msgs/action/Bad_Goal")
    definition, _ = goal.typestore.generate_msgdef(goal.name, ros_version=2)
    again = message_type("a_msgs/action/Go_Goal", definition, "ros2msg")
    assert str(again.struct) == str(goal.struct), "records hold goals as other messages"


def test_errors_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "a_msgs", Bad_msg="int32\n", User_msg="a_msgs/Gone x\n", Ask_srv="bool x\n")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    with pytest.raises(ForewarnError, match=r"a_msgs/msg/Bad\.msg: .*cannot be parsed"):
        installed_message_type("a_msgs/msg/Bad")
    with pytest.raises(DefinitionError, match=r"a_msgs/msg/Gone \(used by a_msgs/msg/User\)"):
        installed_message_type("a_msgs/msg/User")
    with pytest.raises(DefinitionError, match=r"Ask\.srv: not a service definition"):
        installed_message_type("a_msgs/srv/Ask_Request")


def test_feedback_of_an_action_whose_definition_a_recording_embeds() -> None:
    separator = "=" * 80
    text = f"""unique_identifier_msgs/UUID goal_id
nav2_msgs/action/NavigateToPose_Feedback feedback
{separator}
MSG: unique_identifier_msgs/UUID
uint8[16] uuid
{separator}
MSG: nav2_msgs/action/NavigateToPose_Feedback
int16 number_of_recoveries
float32 distance_remaining
"""
    found = message_type("nav2_msgs/action/NavigateToPose_FeedbackMessage", text, "ros2msg").struct
    assert list(found.fields["feedback"].fields) == ["number_of_recoveries", "distance_remaining"]


ACTION = f"""{LINE}
ACTION: a_msgs/action/Go
Point to
---
string text
---
float64 done
{LINE}
MSG: a_msgs/msg/Point
float64 x
"""


@pytest.mark.parametrize(
    ("part", "fields"),
    [
        ("Goal", {"to": "a_msgs/msg/Point"}),
        ("FeedbackMessage", {"goal_id": "unique_identifier_msgs/msg/UUID",
                             "feedback": "a_msgs/action/Go_Feedback"}),
        ("GetResult_Response", {"status": "int8", "result": "a_msgs/action/Go_Result"}),
        ("SendGoal_Event", {"info": "service_msgs/msg/ServiceEventInfo",
                            "request": "a_msgs/action/Go_SendGoal_Request[<=1]",
                            "response": "a_msgs/action/Go_SendGoal_Response[<=1]"}),
    ],
)  # fmt: skip
def test_messages_of_an_action_that_a_recording_embeds_as_a_whole(
    part: str, fields: dict[str, str]
) -> None:
    found = message_type(f"a_msgs/action/Go_{part}", ACTION, "ros2msg").struct
    assert {name: str(field) for name, field in found.fields.items()} == fields


def test_the_event_of_a_service_that_a_recording_embeds_as_a_whole() -> None:
    text = f"{LINE}\nSRV: a_msgs/srv/Ask\nint8 x\n---\nint8 y\n"
    found = message_type("a_msgs/srv/Ask_Event", text, "ros2msg").struct
    assert list(found.fields) == ["info", "request", "response"]
    with pytest.raises(DefinitionError, match="has 1 parts"):
        message_type("a_msgs/srv/Ask_Event", text.replace("---", ""), "ros2msg")
    with pytest.raises(DefinitionError, match="no definition of a_msgs/srv/Tell_Request"):
        message_type("a_msgs/srv/Tell_Event", text, "ros2msg")
