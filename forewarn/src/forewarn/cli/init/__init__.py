"""A first monitor file for a recording: known message types become signals with thresholds."""

from __future__ import annotations
