"""Fixtures of all tests of the core: the robot in the corridor."""

from corridor import (
    corridor_run,
    drive,
    embedding_model,
    no_embedding_model,
    our_messages,
    record,
    risk_array,
    risk_type,
)

__all__ = [
    "corridor_run",
    "drive",
    "embedding_model",
    "no_embedding_model",
    "our_messages",
    "record",
    "risk_array",
    "risk_type",
]
