"""Property templates: the specification patterns of the field, bound to names of the monitor file.

The patterns are those of Dwyer, Avrunin and Corbett (Patterns in property specifications for
finite-state verification, ICSE 1999), over a whole episode, and reach-avoid, which planning and
agents use: to come to success without failure on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Template(NamedTuple):
    """A formula with places for names.

    Attributes
    ----------
    formula : str
        The formula without a time, empty if there is none.
    needs : tuple of str
        Keys that must be there.
    bounded : str
        The formula with a time, empty if there is none.
    """

    formula: str
    needs: tuple[str, ...]
    bounded: str = ""


WITHIN = "within"
TEMPLATES: Mapping[str, Template] = {
    "absence": Template("always(not ({event}))", ("event",)),
    "existence": Template("", ("event", WITHIN), "eventually[0:{within}]({event})"),
    "response": Template(
        "",
        ("event", "answer", WITHIN),
        "always(({event}) implies eventually[0:{within}]({answer}))",
    ),
    "precedence": Template(
        "always(({event}) implies once({before}))",
        ("event", "before"),
        "always(({event}) implies once[0:{within}]({before}))",
    ),
    "reach_avoid": Template(
        "(not ({failure})) unless ({success})",
        ("success", "failure"),
        "(not ({failure})) until[0:{within}] ({success})",
    ),
}
PARTS = tuple(dict.fromkeys(part for one in TEMPLATES.values() for part in (*one.needs, WITHIN)))


def with_formula(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return a section of a property with the formula in the place of its template.

    Raises
    ------
    ValueError
        If the template is unknown, or its parts are not there, or others are.
    """
    name = section["template"]
    template = TEMPLATES.get(name) if isinstance(name, str) else None
    if template is None:
        raise ValueError(f"template {name!r} is unknown (accepted: {', '.join(TEMPLATES)})")
    if "formula" in section:
        raise ValueError("a property has a formula or a template, not both")
    parts = {key: section[key] for key in PARTS if key in section}
    may = {*template.needs, *([WITHIN] if template.bounded else [])}
    for key in template.needs:
        if key not in parts:
            raise ValueError(
                f"the template {name} needs {key} (accepted: {', '.join(sorted(may))})"
            )
    for key in parts:
        if key not in may:
            raise ValueError(
                f"the template {name} has no {key} (accepted: {', '.join(sorted(may))})"
            )
    for key, value in parts.items():
        if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
            raise ValueError(f"{key}: {value!r} is no name, formula or time")
    formula = template.bounded if WITHIN in parts else template.formula
    rest = {k: v for k, v in section.items() if k != "template" and k not in parts}
    return {**rest, "formula": formula.format(**parts)}
