"""Random definitions and random messages: what a plan reads equals what ``rosbags`` decodes."""

from __future__ import annotations

import math
import string
from functools import cache
from typing import Any

import numpy as np
import pytest
from cdr_interpreter import DECODERS
from extent import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rosbags.interfaces import Nodetype
from rosbags.serde.utils import ndtype

from forewarn.expressions.syntax import parse_expression
from forewarn.messages.columns import open_message
from forewarn.messages.definitions import MessageType
from forewarn.messages.extraction import Extractor, compile_extractor
from forewarn.messages.plan import ALL, Path, Planner, Wants
from forewarn.messages.schema import PLACEHOLDER, FieldType, Primitive, Struct

NUMBERS = {
    "bool": st.booleans(),
    "byte": st.integers(0, 127),  # rosbags takes it as signed, ROS 2 as unsigned
    "char": st.integers(0, 255),
    **{f"int{n}": st.integers(-(2 ** (n - 1)), 2 ** (n - 1) - 1) for n in (8, 16, 32, 64)},
    **{f"uint{n}": st.integers(0, 2**n - 1) for n in (8, 16, 32, 64)},
    "float32": st.floats(width=32),
    "float64": st.floats(),
}
BASES = [*NUMBERS, "string"]
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)


@st.composite
def definitions(draw: Any) -> dict[str, Any]:
    """Make up to five types; each uses only those before it. The last one is the message."""
    types: dict[str, Any] = {}
    for number in range(draw(st.integers(1, 5))):
        fields = []
        for at in range(draw(st.integers(0, 5))):
            inner: Any = (Nodetype.BASE, (draw(st.sampled_from(BASES)), 0))
            if types and draw(st.booleans()):
                inner = (Nodetype.NAME, draw(st.sampled_from(sorted(types))))
            shape = draw(st.sampled_from(["one", "one", "array", "sequence", "bounded"]))
            if shape == "array":
                inner = (Nodetype.ARRAY, (inner, draw(st.integers(1, 4))))
            elif shape != "one":
                inner = (Nodetype.SEQUENCE, (inner, 7 if shape == "bounded" else 0))
            fields.append((f"{string.ascii_lowercase[at]}{at}", inner))
        types[f"made_msgs/msg/T{number}"] = ([], fields)
    return types


def value_of(draw: Any, desc: Any, mtype: MessageType) -> Any:
    node, detail = desc
    if node == Nodetype.BASE:
        return draw(TEXT if detail[0] == "string" else NUMBERS[detail[0]])
    if node == Nodetype.NAME:
        return message_of(draw, detail, mtype)
    inner, size = detail
    count = size if node == Nodetype.ARRAY else draw(st.integers(0, 4))
    items = [value_of(draw, inner, mtype) for _ in range(count)]
    if inner[0] == Nodetype.BASE and inner[1][0] != "string":
        return np.array(items, dtype=getattr(np, ndtype(inner[1][0])))
    return items


def message_of(draw: Any, name: str, mtype: MessageType) -> Any:
    _, fields = mtype.typestore.fielddefs[name]
    values = [0 if field == PLACEHOLDER else value_of(draw, desc, mtype) for field, desc in fields]
    return mtype.typestore.types[name](*values)


@st.composite
def messages(draw: Any) -> tuple[MessageType, Any, bytes]:
    types = draw(definitions())
    mtype = MessageType(list(types)[-1], types)
    message = message_of(draw, mtype.name, mtype)
    data = mtype.typestore.serialize_cdr(message, mtype.name, little_endian=draw(st.booleans()))
    return mtype, message, bytes(data)


def leaves(part: FieldType, path: Path = ()) -> list[Path]:
    """Return the paths of all numbers and texts."""
    if isinstance(part, Primitive):
        return [path]
    if isinstance(part, Struct):
        return [
            leaf for name, field in part.fields.items() for leaf in leaves(field, (*path, name))
        ]
    return leaves(part.element, (*path, ALL))


def read(mtype: MessageType, wanted: list[Path], data: bytes, decoded_by: Any) -> Any:
    wants = Wants()
    for path in wanted:
        wants.add(path, False)
    plan = Planner().plan(mtype.struct, wants)
    return open_message(mtype.struct, plan, decoded_by(plan)(data))


def assert_equal(mine: Any, theirs: Any, part: FieldType, wanted: set[Path], path: Path) -> None:
    if isinstance(part, Struct):
        for name, field in part.fields.items():
            below = (*path, name)
            if any(leaf[: len(below)] == below for leaf in wanted):
                assert_equal(mine.field(name), getattr(theirs, name), field, wanted, below)
    elif isinstance(part, Primitive):
        same = mine == theirs or (mine != mine and theirs != theirs)
        assert same, (path, mine, theirs)
    else:
        assert len(mine) == len(theirs), path
        for a, b in zip(mine, theirs, strict=True):
            assert_equal(a, b, part.element, wanted, (*path, ALL))


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(messages(), st.data())
def test_every_field_equals_rosbags(
    made: tuple[MessageType, Any, bytes], data: st.DataObject
) -> None:
    mtype, message, raw = made
    every = leaves(mtype.struct)
    some = data.draw(st.lists(st.sampled_from(every), max_size=4))
    theirs = mtype.typestore.deserialize_cdr(raw, mtype.name)
    assert repr(theirs) == repr(message)
    for decoded_by in DECODERS:
        for wanted in (every, some):
            mine = read(mtype, wanted, raw, decoded_by)
            assert_equal(mine, theirs, mtype.struct, set(wanted), ())


MARKERS = MessageType(
    "made_msgs/msg/Markers",
    {
        "made_msgs/msg/Point": ([], [(c, (Nodetype.BASE, ("float32", 0))) for c in "xyz"]),
        "made_msgs/msg/Marker": (
            [("CAR", "uint8", 1), ("NAME", "string", "car")],
            [
                ("ns", (Nodetype.BASE, ("string", 0))),
                ("id", (Nodetype.BASE, ("int32", 0))),
                ("position", (Nodetype.NAME, "made_msgs/msg/Point")),
                ("points", (Nodetype.SEQUENCE, ((Nodetype.NAME, "made_msgs/msg/Point"), 0))),
                ("ranges", (Nodetype.SEQUENCE, ((Nodetype.BASE, ("float64", 0)), 0))),
                ("corners", (Nodetype.ARRAY, ((Nodetype.NAME, "made_msgs/msg/Point"), 2))),
                ("flags", (Nodetype.ARRAY, ((Nodetype.BASE, ("bool", 0)), 3))),
                ("tags", (Nodetype.SEQUENCE, ((Nodetype.BASE, ("string", 0)), 0))),
            ],
        ),
        "made_msgs/msg/Markers": (
            [],
            [
                ("stamp", (Nodetype.BASE, ("float64", 0))),
                ("scale", (Nodetype.ARRAY, ((Nodetype.BASE, ("float64", 0)), 3))),
                ("markers", (Nodetype.SEQUENCE, ((Nodetype.NAME, "made_msgs/msg/Marker"), 0))),
                ("spare", (Nodetype.SEQUENCE, ((Nodetype.NAME, "made_msgs/msg/Marker"), 0))),
                ("names", (Nodetype.SEQUENCE, ((Nodetype.BASE, ("string", 0)), 0))),
            ],
        ),
    },
)

# Each works as Python over what rosbags decodes too, on data without unknown values; where Python
# raises (an index out of range, min of nothing), there is no value.
EXPRESSIONS = [
    "stamp * 2 + scale[1] - scale[-1]",
    "len(markers) + len(scale) + len(names)",
    "markers[0].id",
    "markers[-1].position.x",
    "markers[1].ns == 'car'",
    "markers[1].points[0].x",
    "[m.id for m in markers]",
    "[m.position.x - stamp for m in markers]",
    "[m.ns for m in markers]",
    "[m.id for m in markers if m.ns == 'car']",
    "[m.id for m in markers if m.ns in ('car', 'bus') and m.position.x > 0]",
    "[m.id if m.ns == 'car' else -m.id for m in markers]",
    "[m.id for m in markers if m.ns == m.NAME]",
    "min([m.position.x for m in markers])",
    "min([m.position.x for m in markers], default=inf)",
    "max([abs(m.position.x) + 1 for m in markers if m.id > 0], default=-1)",
    "any([m.ns == 'car' for m in markers])",
    "all([m.id > 0 for m in markers if m.flags[1]])",
    "sum([m.id for m in markers])",
    "len([m for m in markers if m.id > 0])",
    "[m.points[0].x for m in markers]",
    "[m.points[-1].y for m in markers]",
    "[m.corners[1].z + m.corners[0].x for m in markers]",
    "[m.flags[2] for m in markers]",
    "[m.ranges[1] for m in markers]",
    "[len(m.points) for m in markers]",
    "[len(m.points) + len(m.ranges) for m in markers if len(m.points) > 1]",
    "[p.x for m in markers for p in m.points]",
    "[p.x + m.id for m in markers for p in m.points if p.y > m.position.y]",
    "[p.x for m in markers if m.id > 0 for p in m.points if p.y > 0]",
    "[r for m in markers for r in m.ranges if r > 0]",
    "[t for m in markers for t in m.tags]",
    "[c.x for m in markers for c in m.corners]",
    "[min([p.x for p in m.points], default=9) for m in markers]",
    "[max([p.x - m.position.x for p in m.points if p.y > 0], default=0) for m in markers]",
    "[sum([p.x for p in m.points]) for m in markers]",
    "[any([p.x > 0 for p in m.points]) for m in markers]",
    "[all([p.x > 0 for p in m.points]) for m in markers]",
    "[len([p for p in m.points if p.x > 0]) for m in markers]",
    "[min(m.ranges) for m in markers]",
    "[max(m.ranges, default=0) for m in markers]",
    "[sum(m.ranges) for m in markers]",
    "[any(m.flags) for m in markers]",
    "max([max([p.x for p in m.points], default=0) for m in markers], default=0)",
    "sum([1 for m in markers for n in m.points])",
    "[m.position.x - min([k.position.x for k in markers]) for m in markers]",
    "[m.position.x * scale[0] for m in markers]",
    "[3 for m in markers]",
    "['x' for m in markers]",
    "[n for n in names]",
    "[n == 'car' for n in names]",
    "'car' in names",
    "[a.id - b.id for a, b in zip(markers, spare)]",
    "[a.id - b.id for a, b in zip(markers, markers[1:])]",
    "[i * m.id for i, m in enumerate(markers)]",
    "[m.points[len(m.points) - 1].x for m in markers]",
    "[m.id + s.id for m in markers for s in spare]",
    "[m.id for m in markers[1:]]",
    "[m for m in markers if m.id > 0][0].position.y",
    "[[p.x for p in m.points] for m in markers]",
    "[m.ranges for m in markers][0]",
    "(markers[0] if stamp > 0 else spare[0]).id",
    "scale[1:]",
    "markers[0].ranges",
    "markers[len(markers) - 1].id",
    "names",
]
small = st.integers(-3, 3)


@st.composite
def marker_messages(draw: Any) -> Any:
    types = MARKERS.typestore.types

    def reals(least: int, most: int) -> Any:
        return np.array(draw(st.lists(small, min_size=least, max_size=most)), dtype=np.float64)

    def point() -> Any:
        return types["made_msgs/msg/Point"](*(float(draw(small)) for _ in range(3)))

    def marker() -> Any:
        return types["made_msgs/msg/Marker"](
            draw(st.sampled_from(["car", "bus", "ped", ""])),
            draw(small),
            point(),
            [point() for _ in range(draw(st.integers(0, 3)))],
            reals(0, 3),
            [point(), point()],
            np.array([draw(st.booleans()) for _ in range(3)]),
            draw(st.lists(st.sampled_from(["a", "b"]), max_size=2)),
        )

    return types[MARKERS.name](
        float(draw(small)),
        reals(3, 3),
        [marker() for _ in range(draw(st.integers(0, 4)))],
        [marker() for _ in range(draw(st.integers(0, 3)))],
        draw(st.lists(st.sampled_from(["car", "b"]), max_size=3)),
    )


def python_value(source: str, message: Any) -> Any:
    """Let Python itself evaluate the expression over the message that rosbags decoded."""
    names = {name: getattr(message, name) for name in MARKERS.struct.fields}
    try:
        return eval(source, {"inf": math.inf, **names})
    except (IndexError, ValueError):
        return None


def known(value: Any) -> Any:
    """Turn numpy's and our values into plain ones; None stands for unknown."""
    if isinstance(value, np.ndarray):
        return [known(item) for item in value.tolist()]
    if isinstance(value, tuple) or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, list):
        return [known(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


@cache
def extractor(decoded_by: Any) -> Extractor:
    return compile_extractor(
        MARKERS, [parse_expression(expression) for expression in EXPRESSIONS], decoded_by
    )


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(marker_messages(), st.booleans())
def test_expressions_equal_python_over_rosbags(message: Any, little: bool) -> None:
    data = bytes(MARKERS.typestore.serialize_cdr(message, MARKERS.name, little_endian=little))
    decoded = MARKERS.typestore.deserialize_cdr(data, MARKERS.name)
    for decoded_by in DECODERS:
        values = extractor(decoded_by)(data)
        for source, value in zip(EXPRESSIONS, values, strict=True):
            expected, mine = known(python_value(source, decoded)), known(value)
            if expected is None and isinstance(mine, list):
                assert None in mine, (source, mine)  # one element has no value; Python gives up
            else:
                assert mine == expected, (source, mine, expected)


def test_most_of_these_expressions_are_planned() -> None:
    notes = [note for note in extractor(DECODERS[0]).notes if "leaves readings out" not in note]
    assert len(notes) <= 14, "\n".join(notes)
    for note in notes:
        assert "is computed element by element, " in note


@pytest.mark.parametrize("source", EXPRESSIONS)
def test_an_expression_alone_reads_what_it_needs(source: str) -> None:
    types = MARKERS.typestore.types
    point = types["made_msgs/msg/Point"](1.0, 2.0, 3.0)
    marker = types["made_msgs/msg/Marker"](
        "car", 1, point, [point] * 2, np.ones(2), [point] * 2, np.ones(3, np.bool_), ["a"]
    )
    message = types[MARKERS.name](1.0, np.ones(3), [marker] * 3, [marker] * 2, ["car"])
    data = bytes(MARKERS.typestore.serialize_cdr(message, MARKERS.name))
    for decoded_by in DECODERS:
        (value,) = compile_extractor(MARKERS, [parse_expression(source)], decoded_by)(data)
        assert known(value) == known(python_value(source, message))
