"""The commands that learn and refine trees."""
