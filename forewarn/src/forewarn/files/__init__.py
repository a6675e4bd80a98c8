"""Files: what may be read, one way to write, and the journal."""
