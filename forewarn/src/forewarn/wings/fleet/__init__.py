"""Fleets: workers of a Dask cluster, groups of recordings, and the page about many of them."""
