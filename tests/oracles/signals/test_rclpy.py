"""What a plan reads equals what rclpy decodes: standard messages, and some with every feature."""

from __future__ import annotations

import ctypes
import importlib
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cdr_interpreter import DECODERS
from extent import examples, sampled
from interface_builds import built as built_interfaces

from forewarn.errors import ForewarnError
from forewarn.expressions.syntax import parse_expression
from forewarn.messages.columns import open_message
from forewarn.messages.definitions import installed_message_type
from forewarn.messages.extraction import compile_extractor
from forewarn.messages.plan import ALL, Planner, Wants
from forewarn.messages.plan import Path as Steps
from forewarn.messages.schema import PLACEHOLDER, ArrayOf, FieldType, Primitive, Struct

serialization = pytest.importorskip("rclpy.serialization", reason="rclpy is not installed")

PACKAGES = Path(__file__).with_name("interfaces")
OWN = ["Everything", "FromIdl", "Inner", "Nothing", "Odd", "Tiny"]
SHARE = Path(sys.prefix) / "share"
STANDARD = sorted(
    f"{file.parts[-3]}/msg/{file.stem}"
    for file in SHARE.glob("*/msg/*.msg")
    if not file.parts[-3].startswith("forewarn")
)


@pytest.fixture(scope="session")
def built(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build the messages in this folder; the result is kept until one of them changes."""
    work = tmp_path_factory.mktemp("cdr_features")
    prefix = built_interfaces(PACKAGES, repository / ".ros" / "cdr_features", work)
    with pytest.MonkeyPatch.context() as patch:
        paths = os.environ.get("AMENT_PREFIX_PATH", sys.prefix)
        patch.setenv("AMENT_PREFIX_PATH", f"{prefix}{os.pathsep}{paths}")
        patch.setenv("LD_LIBRARY_PATH", str(prefix / "lib"))
        patch.syspath_prepend(str(next((prefix / "lib").glob("python3*/site-packages"))))
        library = prefix / "lib" / "libcdr_features__rosidl_typesupport_fastrtps_c.so"
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        yield prefix


WORDS = ["", "a", "map", "base_link", "Grüße", "日本", "x" * 30]


def number(name: str, dice: random.Random) -> Any:
    if name == "bool":
        return dice.random() < 0.5
    if name in ("float32", "float64"):
        return float(
            np.dtype(name).type(dice.choice([0.0, -1.5, 1e30, float("inf"), dice.random()]))
        )
    if name in ("byte", "char", "wchar"):
        return dice.randrange(1, 128)
    bits = int(name.lstrip("uint"))
    low = 0 if name.startswith("u") else -(2 ** (bits - 1))
    return dice.randrange(low, low + 2**bits)


def text(part: Primitive, bound: int, dice: random.Random) -> str:
    word = dice.choice(WORDS if part.name == "string" else [*WORDS, "𝄞 clef"])
    return "a" * min(bound, 3) if bound else word


def fill(message: Any, part: Struct, dice: random.Random) -> Any:
    """Set all fields of a message of rclpy to random values."""
    for name, field in part.fields.items():
        if name != PLACEHOLDER:
            setattr(
                message, name, made(getattr(message, name), field, slot_type(message, name), dice)
            )
    return message


def slot_type(message: Any, name: str) -> Any:
    return message.SLOT_TYPES[list(message.get_fields_and_field_types()).index(name)]


def made(old: Any, part: FieldType, slot: Any, dice: random.Random) -> Any:
    if isinstance(part, Struct):
        package, _, base = part.name.split("/")
        cls = getattr(importlib.import_module(f"{package}.msg"), base)
        return fill(cls(), part, dice)
    if isinstance(part, Primitive):
        if part.is_text:
            return text(part, getattr(slot, "maximum_size", 0), dice)
        value = number(part.name, dice)
        typename = getattr(slot, "typename", "")
        if typename == "octet":
            return bytes([value])
        return chr(value) if typename in ("char", "wchar") else value
    count = part.length if isinstance(part, ArrayOf) else dice.randrange(0, 4)
    count = min(count, getattr(slot, "maximum_size", count))
    items = [made(None, part.element, slot.value_type, dice) for _ in range(count)]
    return np.array(items, dtype=old.dtype) if isinstance(old, np.ndarray) else items


def leaves(part: FieldType, path: Steps = ()) -> list[Steps]:
    if isinstance(part, Primitive):
        return [path]
    if isinstance(part, Struct):
        return [
            leaf for name, field in part.fields.items() for leaf in leaves(field, (*path, name))
        ]
    return leaves(part.element, (*path, ALL))


def assert_equal(mine: Any, theirs: Any, part: FieldType, path: str) -> None:
    if isinstance(part, Struct):
        for name, field in part.fields.items():
            if name != PLACEHOLDER:
                assert_equal(mine.field(name), getattr(theirs, name), field, f"{path}.{name}")
    elif isinstance(part, Primitive):
        if isinstance(theirs, bytes) or (isinstance(theirs, str) and not part.is_text):
            theirs = ord(theirs)
        assert mine == theirs or (mine != mine and theirs != theirs), (path, mine, theirs)
    else:
        assert len(mine) == len(theirs), path
        for a, b in zip(mine, theirs, strict=True):
            assert_equal(a, b, part.element, path)


def check(name: str, seeds: int) -> None:
    mtype = installed_message_type(name)
    package, _, base = name.split("/")
    cls = getattr(importlib.import_module(f"{package}.msg"), base)
    dice = random.Random(name)
    every = leaves(mtype.struct)
    for _ in range(seeds):
        message = fill(cls(), mtype.struct, dice)
        raw = serialization.serialize_message(message)
        theirs = serialization.deserialize_message(raw, cls)
        wants = Wants()
        for path in every:
            wants.add(path, False)
        plan = Planner().plan(mtype.struct, wants)
        for decoded_by in DECODERS:
            mine = open_message(mtype.struct, plan, decoded_by(plan)(raw))
            assert_equal(mine, theirs, mtype.struct, name)
            skipping = Planner().plan(mtype.struct, Wants())
            assert decoded_by(skipping)(raw) == []


@pytest.mark.parametrize("name", sampled(STANDARD))
def test_standard_messages_equal_rclpy(name: str) -> None:
    check(name, seeds=2)


@pytest.mark.parametrize("base", OWN)
def test_messages_with_every_feature_equal_rclpy(built: Path, base: str) -> None:
    check(f"cdr_features/msg/{base}", seeds=examples(40))


def test_constants_of_both_languages(built: Path) -> None:
    odd = installed_message_type("cdr_features/msg/Odd")
    idl = installed_message_type("cdr_features/msg/FromIdl")
    assert dict(odd.struct.constants) == {"ANSWER": 42, "WORD": "word", "HALF": 0.5}
    assert dict(idl.struct.constants) == {"LIMIT": 7, "NAME": "idl"}
    from cdr_features.msg import Odd

    raw = serialization.serialize_message(Odd(large=21.0))
    extract = compile_extractor(odd, [parse_expression("ANSWER == large * 2")])
    assert extract(raw) == [True]


def test_states_of_goals_by_the_constants_of_a_nested_message() -> None:
    from action_msgs.msg import GoalStatus, GoalStatusArray

    mtype = installed_message_type("action_msgs/msg/GoalStatusArray")
    goals = [GoalStatus(status=GoalStatus.STATUS_EXECUTING), GoalStatus(status=6)]
    raw = serialization.serialize_message(GoalStatusArray(status_list=goals))
    texts = [
        "status_list[-1].status == status_list[-1].STATUS_ABORTED",
        "any(s.status == s.STATUS_EXECUTING for s in status_list)",
        "any(s.status == s.STATUS_CANCELED for s in status_list)",
    ]
    extract = compile_extractor(mtype, [parse_expression(text) for text in texts])
    assert extract(raw) == [True, True, False]
    with pytest.raises(ForewarnError, match="did you mean 'STATUS_ABORTED'"):
        compile_extractor(mtype, [parse_expression("status_list[0].STATUS_ABORTEDD")])


def test_requests_and_responses_of_installed_services() -> None:
    from std_srvs.srv import SetBool

    mtype = installed_message_type("std_srvs/srv/SetBool_Response")
    raw = serialization.serialize_message(SetBool.Response(success=True, message="done"))
    extract = compile_extractor(mtype, [parse_expression("success and message == 'done'")])
    assert extract(raw) == [True]
    with pytest.raises(ForewarnError, match="not installed"):
        installed_message_type("std_srvs/srv/SetBull_Response")
