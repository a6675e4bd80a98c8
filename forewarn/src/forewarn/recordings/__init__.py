"""Recordings: read them whatever their format, and write MCAP."""
