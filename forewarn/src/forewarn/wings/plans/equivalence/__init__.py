"""Whether two formulas of linear temporal logic mean the same, and a trace that shows it if not."""
