"""Apollo (Cyber RT) beside the Forewarn monitor: the package is reserved, it has no content in this release."""
