"""Anomalies: runs that are unlike normal ones, and the steps that were surprising."""
