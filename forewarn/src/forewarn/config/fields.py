"""Building blocks of the monitor file: sections that refuse unknown keys, numbers in a range."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
)

from forewarn.errors import MissingWingError
from forewarn.registry import extension, section_of_wing

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec

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


_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?B)", re.IGNORECASE)
MEGABYTE = 10**6


def byte_count(value: object) -> object:
    """Return the number of bytes that ``10 GB`` stands for."""
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is not None:
        return round(float(found[1]) * _UNITS[found[2].upper()])
    if isinstance(value, str):
        raise ValueError("a size is wanted, such as 500 MB or 10 GB")
    return no_bool(value)


#: Bytes; the file says ``10 GB``.
Size = Annotated[int, BeforeValidator(byte_count), Field(ge=MEGABYTE, le=10**15)]


def size_text(size: float) -> str:
    """Return a number of bytes for people."""
    unit, number = next(((name, n) for name, n in reversed(_UNITS.items()) if size >= n), ("B", 1))
    return f"{size / number:.3g} {unit}"


Path = tuple[object, ...]


class Misfit(NamedTuple):
    """A key whose value does not fit the rest: where, what is wrong, what would be accepted."""

    path: Path
    problem: str
    accepted: str


class Section(BaseModel):
    """A mapping of the monitor file: unknown keys are errors, values are frozen."""

    # Only the validator of the whole file is built; those of its sections are within it.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @classmethod
    def misfits(cls, spec: MonitorSpec) -> Iterator[Misfit]:
        """Yield all in which a section of a wing does not fit the rest of a monitor file."""
        yield from ()

    @classmethod
    def durations(cls, spec: MonitorSpec) -> Iterator[tuple[Path, float]]:
        """Yield its durations that are in the unit of the clock: whole numbers if it is steps."""
        yield from ()


_Own = TypeVar("_Own", bound=Section)


@dataclass(frozen=True)
class WingSection:
    """The check of a section of a wing, which is imported where a file has the section."""

    key: str
    optional: bool

    def __call__(self, value: object) -> Section | None:
        """Return the section; ValidationError names the keys within it."""
        if value is None and self.optional:
            return None
        return self.section.model_validate(value)

    @property
    def section(self) -> type[Section]:
        """The class of the section; raises ValueError if the wing is not installed."""
        try:
            found: type[Section] = section_of_wing(self.key)
        except MissingWingError as error:
            raise ValueError(str(error)) from error
        return found


def of_wing(key: str, *, optional: bool = False) -> BeforeValidator:
    """Return the check of a section that belongs to a wing."""
    return BeforeValidator(WingSection(key, optional))


def default(section: type[_Own], **values: Any) -> _Own:
    """Return a section for a key that is not given; its validator need not be built for that."""
    return section.model_construct(**values)


def with_others(cls: type[Section], given: Any, group: str) -> Any:
    """Return the values of a section with those that other packages know under ``others``."""
    if not isinstance(given, dict) or "others" in given:
        return given
    added = {
        name: _read(section, name, given[name])
        for name in given.keys() - cls.model_fields.keys()
        if (section := extension(group, name)) is not None
    }
    own = {name: value for name, value in given.items() if name not in added}
    return {**own, "others": added} if added else given


def _read(section: type[Section], name: str, value: Any) -> Section:
    """Return the section of another package; its problems name their keys."""
    try:
        return section.model_validate({} if value is None else value)
    except ValidationError as error:
        problems = (
            "".join(f".{key}" for key in one["loc"]) + f": {one['msg']}" for one in error.errors()
        )
        raise ValueError("; ".join(f"{name}{text}" for text in problems)) from error
