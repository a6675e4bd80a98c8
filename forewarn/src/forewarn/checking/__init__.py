"""Risk of every product state, by numpy and scipy or by Storm."""
