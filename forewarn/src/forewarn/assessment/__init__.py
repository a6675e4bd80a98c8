"""What judges a monitor: replay, events, trade-off, tuning, calibration."""
