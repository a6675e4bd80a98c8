"""Fixtures of the commands of the wing."""

from command_line import forewarn, serve
from corridor import corridor_run, drive, record

__all__ = ["corridor_run", "drive", "forewarn", "record", "serve"]
