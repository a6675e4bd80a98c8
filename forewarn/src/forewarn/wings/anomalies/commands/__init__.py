"""The command about anomalies."""
