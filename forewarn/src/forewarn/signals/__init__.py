"""Signals: named values with an age, at the ticks of a clock."""
