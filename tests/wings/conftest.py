"""Fixtures of tests of wings: the robot in the corridor, and commands in this process."""

from command_line import corridor_model, edited, forewarn, serve
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
    "corridor_model",
    "corridor_run",
    "drive",
    "edited",
    "embedding_model",
    "forewarn",
    "no_embedding_model",
    "our_messages",
    "record",
    "risk_array",
    "risk_type",
    "serve",
]
