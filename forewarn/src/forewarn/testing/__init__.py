"""What other packages can run their own kinds against: contracts, as test classes to inherit."""
