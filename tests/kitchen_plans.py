"""A monitor of plans for a household, and the rules in `kitchen.yaml` by which it judges them."""

from __future__ import annotations

RULES = """\
actions: household
transitive: [inside]
rules:
  no_fork: >-
    forall f in objects: f.type == "Fork" implies
    always(not (inside(f, "Microwave") and on("Microwave")))
  closed_again: 'forall d in objects: always(open(d) implies eventually(not open(d)))'
"""
MONITOR = """\
rate: 10
startup_grace: 0
mode: act
signals:
  objection:
    topic: /plan
    type: std_msgs/msg/String
    value: data
    rules: kitchen.yaml
    timeout: never
predicates: {bad_plan: objection != ''}
properties:
  safe_plan:
    formula: always(not bad_plan)
    intervention: REPLAN
    enter: 1
    exit: 1
    hold: 0
    breach_clear_time: 0
"""
