"""Whether two formulas of linear temporal logic mean the same, and what tells them apart."""
