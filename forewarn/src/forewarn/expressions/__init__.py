"""The language of expressions over values: parsed, checked, compiled once."""

from forewarn.expressions.compiler import compile_expression
from forewarn.expressions.functions import CONSTANTS, FUNCTIONS
from forewarn.expressions.syntax import Expression, normal_form, parse_expression
from forewarn.expressions.values import Unknown, Value

__all__ = [
    "CONSTANTS",
    "FUNCTIONS",
    "Expression",
    "Unknown",
    "Value",
    "compile_expression",
    "normal_form",
    "parse_expression",
]
