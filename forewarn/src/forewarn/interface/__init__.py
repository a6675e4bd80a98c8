"""The public Python interface: the modules behind the names that `forewarn` exports.

The functions here call the same code as the commands do. Programs import the names from
`forewarn`. The modules that define them may change.
"""
