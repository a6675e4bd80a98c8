"""Counting, coverage and tests of what was learned."""
