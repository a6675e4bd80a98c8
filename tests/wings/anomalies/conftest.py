"""Fixtures of tests of the pages about anomalies."""

from drawn_pages import browser, look

__all__ = ["browser", "look"]
