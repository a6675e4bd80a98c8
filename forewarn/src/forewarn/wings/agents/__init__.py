"""Agents: readers of their runs, a recorder, and what rules say of a call before it is made."""
