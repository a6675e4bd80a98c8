"""Building blocks of the monitor file: sections that refuse unknown keys, numbers in a range."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Action = Literal["WARN", "LIMIT_SPEED", "COMFORTABLE_STOP", "EMERGENCY_STOP", "PULL_OVER", "REPLAN"]


def no_bool(value: object) -> object:
    """Refuse the Booleans that pydantic would take for 0 and 1."""
    if isinstance(value, bool):
        raise ValueError("a number is wanted, not a Boolean")
    return value


Number = Annotated[float, BeforeValidator(no_bool)]
Finite = Annotated[Number, Field(allow_inf_nan=False)]
Positive = Annotated[Finite, Field(gt=0)]
Seconds = Annotated[Finite, Field(ge=0)]


class Section(BaseModel):
    """A mapping of the monitor file: unknown keys are errors, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)
