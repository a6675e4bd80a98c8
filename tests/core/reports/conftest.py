"""Fixtures of tests of pages."""

from drawn_pages import browser, learned, look, page, replayed

__all__ = ["browser", "learned", "look", "page", "replayed"]
