"""The language of expressions over values: parsed, checked, compiled once."""
