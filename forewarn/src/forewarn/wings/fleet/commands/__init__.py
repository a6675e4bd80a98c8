"""The command about groups of recordings."""
