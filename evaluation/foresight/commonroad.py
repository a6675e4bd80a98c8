"""Recorded traffic in CommonRoad's XML (2018b and 2020a): cars, ten times a second, and lanes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import InputError
from forewarn.expressions.functions.geometry import Shapes
from forewarn.expressions.functions.shapes import LINE, Shape

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Car:
    """One recorded car of `length` and `width`, seen from step `first` on.

    Its centre, direction and speed have one entry for each step, shape (n,).
    """

    number: int
    length: float
    width: float
    first: int
    x: Floats
    y: Floats
    heading: Floats
    speed: Floats

    @property
    def steps(self) -> range:
        """Steps at which it was seen."""
        return range(self.first, self.first + len(self.x))


@dataclass(frozen=True, eq=False)
class Scene:
    """One file: its name, seconds a step, cars, and lanes as the library knows them."""

    name: str
    step: float
    cars: tuple[Car, ...]
    lanes: Shapes


def load_scene(path: Path) -> Scene:
    """Read a scene."""
    try:
        root = ElementTree.parse(path).getroot()
        cars = [_car(item) for item in root if _is_dynamic(item)]
        lanes = Shapes([_lane(item) for item in root.findall("lanelet")])
        step = float(root.get("timeStepSize", "0.1"))
    except (ElementTree.ParseError, ValueError) as error:
        raise InputError(
            f"cannot be read: {error}", accepted="a scene of CommonRoad in XML", file=path
        ) from error
    return Scene(path.stem, step, tuple(cars), lanes)


def _is_dynamic(element: ElementTree.Element) -> bool:
    return element.tag == "dynamicObstacle" or (
        element.tag == "obstacle" and element.findtext("role") == "dynamic"
    )


def _number(element: ElementTree.Element, path: str) -> float:
    text = element.findtext(path)
    if text is None:
        raise ValueError(f"<{element.tag} id={element.get('id')}> has no {path}")
    return float(text)


def _measured(state: ElementTree.Element, name: str) -> float:
    """Return what was measured, or the middle of an interval that it was in."""
    if state.find(f"{name}/exact") is not None:
        return _number(state, f"{name}/exact")
    ends = (_number(state, f"{name}/interval{end}") for end in ("Start", "End"))
    return sum(ends) / 2


def _size(element: ElementTree.Element) -> tuple[float, float]:
    """Return length and width; those of the box around a circle or a polygon."""
    if element.find("shape/circle") is not None:
        across = 2 * _number(element, "shape/circle/radius")
        return across, across
    if (polygon := element.find("shape/polygon")) is not None:
        points = [(_number(p, "x"), _number(p, "y")) for p in polygon.findall("point")]
        length, width = np.ptp(points, axis=0).tolist()
        return length, width
    return _number(element, "shape/rectangle/length"), _number(element, "shape/rectangle/width")


def _car(element: ElementTree.Element) -> Car:
    states = [*element.findall("initialState"), *element.findall("trajectory/state")]
    steps = [int(_number(state, "time/exact")) for state in states]
    if not steps:
        raise ValueError(f"car {element.get('id')} has no state")
    if steps != list(range(steps[0], steps[0] + len(steps))):
        raise ValueError(f"car {element.get('id')}: its record has gaps")

    def column(path: str) -> Floats:
        return np.array([_number(state, path) for state in states])

    def measured(name: str) -> Floats:
        return np.array([_measured(state, name) for state in states])

    length, width = _size(element)
    return Car(
        number=int(element.get("id", "0")),
        length=length,
        width=width,
        first=steps[0],
        x=column("position/point/x"),
        y=column("position/point/y"),
        heading=measured("orientation"),
        speed=measured("velocity"),
    )


def _bound(element: ElementTree.Element, side: str) -> Floats:
    points = element.findall(f"{side}/point")
    return np.array([[_number(p, "x"), _number(p, "y")] for p in points])


def _lane(element: ElementTree.Element) -> Shape:
    left, right = _bound(element, "leftBound"), _bound(element, "rightBound")
    half = float(np.hypot(*(left - right).T).mean() / 2)
    centre = tuple((float(x), float(y)) for x, y in (left + right) / 2)
    successors = tuple(item.get("ref", "") for item in element.findall("successor"))
    attributes = {"successors": successors, "left": half, "right": half}
    return Shape(element.get("id", ""), LINE, centre, attributes)


def at_step(scene: Scene, step: int, without: int) -> Iterator[tuple[Car, int]]:
    """Yield every car but one that is seen at a step, with its row."""
    for car in scene.cars:
        if car.number != without and step in car.steps:
            yield car, step - car.first


def backward_slope(values: Floats, step: float, span: int) -> Floats:
    """Return the mean rate of change over the last `span` steps: what was known at the time.

    At the beginning the span is shorter; with less than half of it, the rate is NaN.
    """
    rows = np.arange(len(values))
    steps = np.minimum(rows, span)
    slope = (values - values[rows - steps]) / (np.maximum(steps, 1) * step)
    slope[steps < span / 2] = math.nan
    return slope
