"""The commands about queries and exchange."""
