"""The section `trajectories` of a monitor file: where objects stand in files of trajectories."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from forewarn.config.fields import Finite, Positive, Seconds, Section, default, no_bool
from forewarn.config.signals import Name

Column = Annotated[int, BeforeValidator(no_bool), Field(ge=0)] | Name
Size = tuple[Annotated[Finite, Field(gt=0)], Annotated[Finite, Field(gt=0)]]


class HeadingSpec(Section):
    """How a heading is counted.

    Attributes
    ----------
    unit : str
        ``radians`` or ``degrees``.
    zero : str
        The axis along which an object of heading 0 points.
    turn : str
        Which way headings grow, with x to the right and y upwards.
    """

    unit: Literal["radians", "degrees"] = "radians"
    zero: Literal["x", "y"] = "x"
    turn: Literal["counterclockwise", "clockwise"] = "counterclockwise"


class ColumnsSpec(Section):
    """Where the values of an object stand: a place in its list, a key, or a column of a table.

    Attributes
    ----------
    x, y : int or str
        Place of the centre in the plane, m. Keys within keys have dots: ``position.x``.
    heading : int or str or None
        Where not given or not known: the direction of the velocity, kept while the object stands.
        Before it first moves it is 0, and the object's box a square of its length.
    vx, vy, speed : int or str or None
        Velocity, or speed along the heading, m/s. Where neither is given: from the last two places.
    length, width : int or str or None
        Size, m. Where not given: by `sizes`.
    object, kind : int or str or None
        Name and kind. A table has names; a dictionary has them as keys.
    frame : str or None
        Number of the frame, in a table without times.
    """

    x: Column
    y: Column
    heading: Column | None = None
    vx: Column | None = None
    vy: Column | None = None
    speed: Column | None = None
    length: Column | None = None
    width: Column | None = None
    object: Column | None = None
    kind: Column | None = None
    frame: Name | None = None

    @model_validator(mode="after")
    def _pairs(self) -> ColumnsSpec:
        for one, other in (("vx", "vy"), ("length", "width")):
            if (getattr(self, one) is None) != (getattr(self, other) is None):
                raise ValueError(f"{one} and {other} go together")
        return self


class ContactSpec(Section):
    """When a run that ended badly ended, where files tell it late.

    Attributes
    ----------
    within : float
        Seconds before the last frame in which it may have been.
    gap : float
        Metres: it ended at the first frame of that time at which an object is at most so near to
        the ego, else at the last one. What comes after is left out.
    """

    within: Positive
    gap: Seconds = 0.5


def _several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


class TrajectoriesSpec(Section):
    """Recordings hold the poses of all objects; signals tell what the ego sees of them.

    JSON lines, a document in JSON, or tables in CSV, maybe packed. Signals by name: ``pose`` ([x,
    y, heading in rad, continuous]), ``speed`` (ahead), ``velocity`` ([vx, vy]) and ``size``
    ([length, width]) of the ego; ``objects`` ([x, y, yaw, vx, vy, length, width], a list for each)
    and ``kinds`` (texts) of the others; ``last`` (true at the ego's last frame).

    Attributes
    ----------
    run : str or None
        Key of a line with `frames` that names the run. Where not given, the number of the line.
    frames : str or None
        Key of the list of frames. Where not given, each line is a frame.
    objects : str or None
        Key of a frame that holds its objects: a dictionary from names, or a list. Where not given,
        the frame is that dictionary.
    files : dict of str to str
        For tables, by kind: names of files without their endings, with one ``*`` for the name of
        the run: ``{car: "*_cars", pedestrian: "*_people"}``. Where not given, each table is a run.
    period : float or str or None
        Seconds between frames, or the key of a run that says it.
    time, time_unit : str
        In place of `period`: key of a frame, or column of a table, and its unit.
    columns : ColumnsSpec
        Where the values of an object stand.
    heading : HeadingSpec
        How headings are counted.
    kinds : str or None
        Key of a run that says what its objects are: by name, a text or a list of texts. The last of
        these is the kind, those before are more exact.
    sizes : dict of str to (float, float)
        By kind, length and width in m. The first text that has an entry counts, else ``default``.
    ego : str or None
        Name of the object that is monitored.
    each : tuple of str
        In place of `ego`: kinds. Each object of theirs is the ego of a recording of its own.
    min_duration : float
        Seconds for which such an ego must be seen; others give no recording.
    ending : tuple of str
        Keys of a run that say how it ended. Each becomes a signal of its name, and is given at the
        last frame; before it, and for null, it is an empty text (0 or false for numbers, truths).
    contact : ContactSpec or None
        For runs of which a key of `ending` says something: when they ended. With `each` it is
        needed: an ego that nothing touched then does not get the ending.
    """

    run: Name | None = None
    frames: Name | None = None
    objects: Name | None = None
    files: dict[str, Annotated[str, Field(pattern=r"^[^*]*\*[^*]*$")]] = {}  # noqa: RUF012
    period: Positive | Name | None = None
    time: Name | None = None
    time_unit: Literal["s", "ms", "us", "ns"] = "s"
    columns: ColumnsSpec
    heading: HeadingSpec = default(HeadingSpec)
    kinds: Name | None = None
    sizes: dict[str, Size] = {}  # noqa: RUF012
    ego: Name | None = None
    each: Annotated[tuple[Name, ...], BeforeValidator(_several)] = ()
    min_duration: Seconds = 0.0
    ending: Annotated[tuple[Name, ...], BeforeValidator(_several)] = ()
    contact: ContactSpec | None = None

    @model_validator(mode="after")
    def _one_way(self) -> TrajectoriesSpec:
        if (self.ego is None) == (not self.each):
            raise ValueError("one of: ego (a name), each (kinds)")
        if (self.period is None) == (self.time is None):
            raise ValueError("one of: period (seconds, or a key), time (a key or a column)")
        if self.contact is not None and not self.ending:
            raise ValueError("contact needs ending: keys that say that a run ended badly")
        if self.each and self.ending and self.contact is None:
            raise ValueError(
                "ending says of a whole run how it ended, and each makes several egos of it; "
                "accepted: also contact, such as {within: 3.0}: the egos in contact get the ending"
            )
        if taken := sorted({*self.ending} & {*SIGNALS}):
            raise ValueError(f"ending: {taken[0]} is a signal already; accepted: other keys")
        if self.columns.length is None and not self.sizes:
            raise ValueError("sizes are missing: {default: [4.5, 1.8]}, or columns length, width")
        return self


SIGNALS = ("pose", "speed", "velocity", "size", "objects", "kinds", "last")
"""Signals that a recording of trajectories supplies."""
