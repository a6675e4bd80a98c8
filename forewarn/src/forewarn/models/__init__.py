"""Counts, chains and the model file: frozen values."""
