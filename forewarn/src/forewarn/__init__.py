"""Forewarn: how likely a robot is to break a safety rule, seconds before it does."""

__version__ = "0.1.0"
