"""What a state is."""
