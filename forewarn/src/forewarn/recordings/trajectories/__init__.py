"""Trajectories: recordings that hold the poses of all objects, read by the monitor file."""
