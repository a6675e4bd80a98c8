"""Building blocks of the monitor file: sections that refuse unknown keys, numbers in a range."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

#: The longest time, fastest speed and so on: 1e9 s are 32 years, and 1e9 s in ns fit 64 bits.
LARGEST = 1e9
#: Ticks a second: the slowest and the fastest monitor.
RATES = (0.001, 1000.0)


def no_bool(value: object) -> object:
    """Refuse the Booleans that pydantic would take for 0 and 1."""
    if isinstance(value, bool):
        raise ValueError("a number is wanted, not a Boolean")
    return value


Number = Annotated[float, BeforeValidator(no_bool)]
Finite = Annotated[Number, Field(allow_inf_nan=False)]
Positive = Annotated[Finite, Field(gt=0, le=LARGEST)]
Seconds = Annotated[Finite, Field(ge=0, le=LARGEST)]


def no_unit(value: object) -> object:
    """Refuse ``2 s``: the clock tells the unit."""
    if isinstance(value, str) and value[:1].isdigit():
        raise ValueError("a plain number is wanted: of seconds, or of steps under clock: steps")
    return value


#: In the unit of the monitor's clock: seconds, or steps.
Duration = Annotated[Seconds, BeforeValidator(no_unit)]


def _kind(value: object) -> str:
    return "str" if value == "steps" else "float"


_Ticking = Annotated[Positive, Field(ge=RATES[0], le=RATES[1]), Tag("float")]
#: What a model remembers of its clock: ticks a second, or that it counts steps.
Rate = float | Literal["steps"]
#: The same, checked; the tags are what key paths pass over.
CheckedRate = Annotated[_Ticking | Annotated[Literal["steps"], Tag("str")], Discriminator(_kind)]


def is_rate(value: Rate) -> bool:
    """Tell whether a clock can count so: by steps, or a number of ticks a second."""
    return value == "steps" or 0 < value < math.inf


@dataclass(frozen=True)
class Endless:
    """The check of a time that may be without end, which the file says with `word`."""

    word: str

    def __call__(self, value: object) -> object:
        """Return the number that a value stands for."""
        if value == self.word:
            return math.inf
        number = no_bool(no_unit(value))
        if isinstance(number, int | float) and LARGEST < number < math.inf:
            raise ValueError(f"a time of at most {LARGEST:g} s is wanted, or {self.word}")
        return number


def endless(word: str) -> BeforeValidator:
    """Return the check of a time that may be without end."""
    return BeforeValidator(Endless(word))


class Section(BaseModel):
    """A mapping of the monitor file: unknown keys are errors, values are frozen."""

    # Only the validator of the whole file is built; those of its sections are within it.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


_Own = TypeVar("_Own", bound=Section)


def default(section: type[_Own], **values: Any) -> _Own:
    """Return a section for a key that is not given; its validator need not be built for that."""
    return section.model_construct(**values)
