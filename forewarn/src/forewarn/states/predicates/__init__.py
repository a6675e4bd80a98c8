"""From signal values to states: predicates, terminal labels, validity."""
