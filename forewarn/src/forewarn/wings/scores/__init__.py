"""A learned score: what a learned ensemble of trees makes of signals and of their recent past."""
