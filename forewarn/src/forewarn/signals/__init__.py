"""Signals: named values, extracted from messages by expressions, or derived from other signals."""

from forewarn.signals.compiler import compile_expression
from forewarn.signals.definitions import MessageType, installed_message_type, message_type
from forewarn.signals.extraction import Extractor, compile_extractor
from forewarn.signals.foreign import ForeignExtractor, ForeignType
from forewarn.signals.functions import CONSTANTS, FUNCTIONS
from forewarn.signals.schema import DefinitionError
from forewarn.signals.syntax import Expression, normal_form, parse_expression
from forewarn.signals.values import Unknown, Value

__all__ = [
    "CONSTANTS",
    "FUNCTIONS",
    "DefinitionError",
    "Expression",
    "Extractor",
    "ForeignExtractor",
    "ForeignType",
    "MessageType",
    "Unknown",
    "Value",
    "compile_expression",
    "compile_extractor",
    "installed_message_type",
    "message_type",
    "normal_form",
    "parse_expression",
]
