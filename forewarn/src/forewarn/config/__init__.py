"""The monitor file: one YAML that drives learning, replay, tuning and the node."""

from forewarn.config.fields import Section
from forewarn.config.file import MonitorSpec, load_spec, parse_spec
from forewarn.config.sections import PropertySpec

__all__ = [
    "MonitorSpec",
    "PropertySpec",
    "Section",
    "load_spec",
    "parse_spec",
]
