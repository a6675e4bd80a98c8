"""Decisions: decision processes, the shield, Storm, and exchange with other tools."""
