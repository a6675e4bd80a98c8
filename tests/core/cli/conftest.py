"""Running the command line in this process."""

from command_line import Result, corridor_model, edited, forewarn, serve

__all__ = ["Result", "corridor_model", "edited", "forewarn", "serve"]
