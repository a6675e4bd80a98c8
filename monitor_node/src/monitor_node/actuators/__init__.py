"""From interventions to what planners understand: one module for each stack."""
