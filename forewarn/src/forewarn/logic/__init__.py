"""Properties: the language, and the deterministic automata that monitor it."""
