"""Trees: states that are leaves of a learned tree, and their refinement by counterexamples."""
