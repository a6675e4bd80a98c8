"""States that are leaves of a predicate tree, each with the declared predicates."""
