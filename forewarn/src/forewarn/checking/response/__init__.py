"""Risk of a bounded response, whose countdown is never multiplied out."""
