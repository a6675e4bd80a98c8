"""The monitor file: one YAML that drives learning, replay, tuning and the node."""
