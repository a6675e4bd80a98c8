"""The commands of the black box."""
