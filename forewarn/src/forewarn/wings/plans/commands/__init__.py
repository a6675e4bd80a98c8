"""The commands about plans, requirements and computation trees."""
