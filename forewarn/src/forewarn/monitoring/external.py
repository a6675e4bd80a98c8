"""Signals that another process supplies by name, as forewarn_msgs/msg/Signals messages."""

from __future__ import annotations

from forewarn.errors import DecodeError
from forewarn.signals import MessageType, compile_extractor, parse_expression

EXTERNAL_TYPE = "forewarn_msgs/msg/Signals"


class ExternalSignals:
    """Reads the names and values of serialized Signals messages.

    Parameters
    ----------
    mtype : MessageType
        Definition of the message.
    """

    def __init__(self, mtype: MessageType) -> None:
        self._extract = compile_extractor(
            mtype, [parse_expression("names"), parse_expression("values")]
        )

    def __call__(self, data: bytes | memoryview) -> dict[str, float]:
        """Return the values by name.

        Raises
        ------
        DecodeError
            If the bytes are no such message, or names and values differ in number.
        """
        names, values = self._extract(data)
        assert isinstance(names, list)
        numbers = [float(value) for value in values]  # type: ignore[union-attr]
        if len(names) != len(numbers):
            raise DecodeError(f"{len(names)} names and {len(numbers)} values: they must be in step")
        return dict(zip(names, numbers, strict=True))
