"""The functions that expressions may call."""
