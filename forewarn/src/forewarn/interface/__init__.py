"""Forewarn from Python: what stands behind the names that `forewarn` itself gives.

It adds nothing to what the commands do, and calls what they call. Programs import the names from
`forewarn`; where they lie below it may change.
"""
