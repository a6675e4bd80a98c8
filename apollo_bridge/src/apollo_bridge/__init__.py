"""Apollo (Cyber RT) beside the Forewarn monitor: a name so far, without content."""
