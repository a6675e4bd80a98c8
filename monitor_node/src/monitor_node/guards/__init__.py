"""Actions whose goals are checked on their way from clients to the servers that carry them out."""
