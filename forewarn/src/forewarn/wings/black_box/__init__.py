"""The black box: what a node keeps in memory, and writes when something happens."""
