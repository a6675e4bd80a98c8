"""Reports: what a replay gave, as JSON lines for machines and as one HTML page for people."""

from __future__ import annotations
