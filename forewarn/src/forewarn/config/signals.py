"""The section `signals` of a monitor file."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from forewarn.config.fields import Section, endless

VALUE = float | bool | str | list[float]
TRANSFORMS = "tf2_msgs/msg/TFMessage"


def _expression(value: object) -> object:
    # YAML reads `value: 1` as a number and `p: true` as a Boolean; both are expressions.
    return str(value) if isinstance(value, int | float) else value


Limit = Annotated[float, endless("never"), Field(gt=0)]
Expr = Annotated[str, BeforeValidator(_expression), Field(min_length=1)]
Name = Annotated[str, Field(min_length=1)]


def topic_in(namespace: str, topic: str) -> str:
    """Return the full name of a ROS topic; one that begins with a slash is one already."""
    return topic if topic.startswith("/") else f"{namespace.rstrip('/')}/{topic}"


class FrameSpec(Section):
    """A pose: where one frame lies in another, by the transforms of tf2.

    Attributes
    ----------
    of, inside : str
        The frame, and the frame whose axes its place refers to; without a slash before them.
    topic, static : str
        Topics of transforms that change, and of those that stay. A recording may lack the latter.
    """

    of: Name
    inside: Name = Field(alias="in")
    topic: Name = "/tf"
    static: Name = "/tf_static"

    @field_validator("of", "inside")
    @classmethod
    def _without_slash(cls, name: str) -> str:
        if name.startswith("/"):
            raise ValueError(f"{name!r}: frames of tf2 have no slash before them: {name[1:]}")
        return name

    @model_validator(mode="after")
    def _two(self) -> FrameSpec:
        if self.of == self.inside:
            raise ValueError(f"{self.of!r} in itself: two frames are wanted")
        if self.topic == self.static:
            raise ValueError(f"topic and static are both {self.topic}: each has its own")
        return self


class SignalSpec(Section):
    """A named number: from a message field, from another process, or derived from other signals.

    Attributes
    ----------
    topic, type : str or None
        ROS topic and message type, ``nav_msgs/msg/Odometry``. ``odom`` without a slash lies in the
        namespace of the node; in a recording it is ``/odom``, or ``/robot1/odom`` of the recording
        ``BAG::namespace=robot1``. For goals of an action under a guard:
        ``/NAME/goal`` and ``nav2_msgs/action/NavigateToPose_Goal``. For its feedback:
        ``/NAME/_action/feedback`` and ``nav2_msgs/action/NavigateToPose_FeedbackMessage``.
    channel, message : str or None
        Channel of Apollo's Cyber RT and its message, ``apollo.canbus.Chassis``; or a topic of an
        MCAP file in JSON or protobuf and its schema, ``foxglove.PoseInFrame``.
    frame : FrameSpec or None
        A pose in place of a topic: ``{of: base_link, in: map}``. ``value`` is over ``translation``
        (``x``, ``y``, ``z``) and ``rotation``: ``yaw(rotation)``.
    value : str or None
        Expression over the message's fields, or over other signals.
    where : str or None
        Only messages for which this condition over their fields holds count. What is unknown does
        not hold.
    within : str
        Which messages of a tick count. ``last``: the newest; the others are not read. ``max``,
        ``min``: the greatest or smallest value of them. ``any``: true if it is true in one of
        them. ``count``: in how many of them it is true, or not 0.
    timeout : float
        Seconds after which a value is unknown, from its arrival (or stamp) to the tick. ``never``
        suits topics that speak only when something changes. Where not given: 1, and ``never`` under
        ``clock: steps``.
    default : float or bool or str or list of float or None
        Value before the first message; a list of numbers for an array.
    stale : str
        What a value that is too old means. ``worst``: anything is possible. ``hold``: the last
        value stays and is reported as old. ``ignore``: meanwhile properties are not judged and
        no new alert begins.
    rules : str or None
        A file of rules about plans; a relative path starts at this file. ``value`` is a plan then,
        and the signal says what the rules have against it: an empty text if nothing.
    unit, description : str
        For people and reports.
    """

    topic: str | None = None
    type: str | None = None
    channel: str | None = None
    message: str | None = None
    frame: FrameSpec | None = None
    value: Expr | None = None
    where: Expr | None = None
    within: Literal["last", "max", "min", "any", "count"] = "last"
    timeout: Limit | None = None
    default: VALUE | None = None
    stale: Literal["worst", "hold", "ignore"] = "worst"
    rules: Annotated[str, Field(min_length=1)] | None = None
    unit: str = ""
    description: str = ""

    @model_validator(mode="after")
    def _source_or_derived(self) -> SignalSpec:
        if (self.topic is None) != (self.type is None):
            raise ValueError("topic and type go together; a derived signal has neither")
        if (self.topic or "").startswith("~"):
            raise ValueError(
                f"{self.topic!r} is in the monitor node's own namespace (accepted: /odom, or odom "
                "for the namespace around the node)"
            )
        if (self.channel is None) != (self.message is None):
            raise ValueError("channel and message go together: apollo.canbus.Chassis, say")
        if self.topic is not None and self.channel is not None:
            raise ValueError("a signal comes from a topic or from a channel, not from both")
        if self.frame is not None and (self.topic is not None or self.channel is not None):
            raise ValueError("frame has its own topic: /tf, or frame: {topic: ...}")
        if self.source is not None and self.value is None:
            fields_text = (
                "the message's fields" if self.frame is None else "translation and rotation"
            )
            raise ValueError(f"value is missing: an expression over {fields_text}")
        if self.where is not None and (self.source is None or self.frame is not None):
            raise ValueError("where chooses among messages: it belongs to a signal with a topic")
        if self.within != "last" and (self.topic is None or self.rules is not None):
            raise ValueError(
                f"within: {self.within} takes the messages of a topic together: it belongs to a "
                "signal with a topic, and to no plan"
            )
        if self.is_derived and self.model_fields_set & {"timeout", "default", "stale"}:
            raise ValueError("timeout, default and stale belong to signals that arrive")
        if self.rules is not None and (self.is_derived or self.channel is not None):
            raise ValueError("rules belong to signals that arrive, from a topic or by name")
        if self.type is not None and not re.match(
            r"[a-z]\w*/((msg|action|srv)/)?[A-Z]\w*\Z", self.type
        ):
            raise ValueError(f"{self.type!r} is no message type (accepted: nav_msgs/msg/Odometry)")
        if self.message is not None and not re.match(r"[A-Za-z_]\w*(\.\w+)+\Z", self.message):
            raise ValueError(f"{self.message!r} is no message (accepted: apollo.canbus.Chassis)")
        return self

    @property
    def source(self) -> str | None:
        """Return the topic or channel that the signal is read from."""
        if self.frame is not None:
            return self.frame.topic
        return self.channel if self.topic is None else self.topic

    def in_namespace(self, namespace: str) -> SignalSpec:
        """Return a copy whose relative topics lie in a ROS namespace."""
        if self.topic is not None:
            return self.model_copy(update={"topic": topic_in(namespace, self.topic)})
        if self.frame is None:
            return self
        topics = {key: topic_in(namespace, getattr(self.frame, key)) for key in ("topic", "static")}
        return self.model_copy(update={"frame": self.frame.model_copy(update=topics)})

    def reads(self, topic: str) -> bool:
        """Tell whether the signal is read from a topic or channel."""
        return topic == self.source or (self.frame is not None and topic == self.frame.static)

    @property
    def reads_all(self) -> bool:
        """Tell whether every message of a tick counts."""
        return self.within != "last"

    @property
    def reads_last(self) -> bool:
        """Tell whether messages of a tick are left out because the file does not say `within`."""
        return self.topic is not None and "within" not in self.model_fields_set

    @property
    def is_derived(self) -> bool:
        """Tell whether other signals determine this one."""
        return self.source is None and self.value is not None

    @property
    def message_type(self) -> str:
        """Return the type as ``package/msg/Name``, or the full name of a channel's message."""
        if self.frame is not None:
            return TRANSFORMS
        if self.message is not None:
            return self.message
        package, *folder, name = (self.type or "/").split("/")
        return f"{package}/{folder[0] if folder else 'msg'}/{name}"
