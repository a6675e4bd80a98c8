"""Wings: parts of Forewarn that the core works without, one folder each."""
