"""The shapes that a monitor file names, loaded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forewarn.errors import ConfigError
from forewarn.expressions.functions.shapes import LINE, POLYGON, Shape, checked, load_layer

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.expressions.functions.geometry import Shapes
    from forewarn.expressions.syntax import Expression


def load_shapes(spec: MonitorSpec, name: str) -> Shapes:
    """Return the shapes of the entry `name` of ``shapes:``.

    Raises InputError if the map file cannot be read, or a shape is not valid.
    """
    from forewarn.expressions.functions.geometry import Shapes

    section = spec.shapes[name]
    if section.file is not None and section.layer is not None:
        return Shapes(load_layer(map_path(spec, section.file), section.layer))
    points, kind = (section.polygon, POLYGON) if section.polygon else (section.line, LINE)
    assert points is not None
    try:
        return Shapes([checked(Shape(name, kind, points))])
    except ValueError as error:
        raise ConfigError(str(error)) from None


def map_path(spec: MonitorSpec, text: str) -> Path:
    """Return the path of a map file, variables of the environment filled in; raises ConfigError."""
    filled = os.path.expandvars(text)
    missing = re.search(r"\$\{?(\w+)", filled)
    if missing:
        raise ConfigError(
            f"{text!r}: the environment has no variable {missing[1]}",
            accepted=f"export {missing[1]}=..., or a path",
        )
    return (spec.file.parent if spec.file else Path()) / Path(filled).expanduser()


def shape_content(spec: MonitorSpec, used: Iterable[Expression]) -> dict[str, Any]:
    """Return what the digest covers of shapes: not where a map lies, nor what is on it.

    A model may serve on another map, as it serves on another day; a shape that is written in the
    monitor file is part of the meaning of its signals.
    """
    names = {name for expression in used for name in expression.names} & spec.shapes.keys()
    content = {
        name: spec.shapes[name].model_dump(exclude={"file"}, exclude_none=True)
        for name in sorted(names)
    }
    return {"shapes": content} if content else {}
