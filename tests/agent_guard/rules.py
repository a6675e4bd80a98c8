"""The rules that the tests of the guard keep to."""

from __future__ import annotations

import json
from pathlib import Path

from forewarn.cli.main import main

RULES = """\
version: 1
clock: steps
mode: act
signals:
  task: {}
  calls: {}
  outputs: {}
  proposed: {}
  arguments: {}
  last_action: {}
  foreign:
    value: "len([a for a in taken(arguments, outputs) if a not in taken(arguments, [task])])"
predicates:
  foreign_payee: proposed == 'send_money' and foreign > 0
  deleted: last_action == 'delete_all'
  second_read: "proposed == 'read_file' and 'read_file' in calls"
  leaves: proposed == 'leave'
properties:
  no_foreign_payee:
    formula: always(not foreign_payee)
    horizon: 3
    intervention: REPLAN
    description: Money goes only to whom the user names.
  no_delete: {formula: always(not deleted), horizon: 3, intervention: ASK}
  read_once: {formula: always(not second_read), horizon: 3, intervention: REPLACE}
  stay: {formula: always(not leaves), horizon: 3, intervention: COMFORTABLE_STOP}
"""


def written(folder: Path, text: str = RULES) -> Path:
    """Return the monitor file, written into a folder."""
    path = folder / "monitor.yaml"
    path.write_text(text)
    return path


SHIELDED = """\
version: 1
clock: steps
mode: act
signals: {calls: {}, last_action: {}}
predicates:
  checked: "'check' in calls"
  paid: last_action == 'pay'
  lost: last_action == 'call_bank'
properties:
  checked_first: {formula: always(paid implies checked), horizon: 3, intervention: REPLACE}
shield: {failure: lost, success: paid & checked, at_least: 0.5}
"""


def learned(rules: Path) -> Path:
    """Learn a model from runs that check before they pay, and from runs that lose the money."""
    runs, model = rules.with_name("runs.jsonl"), rules.with_name("model.json")
    careful, hasty = ["read", "check", "pay", "say"], ["read", "pay", "call_bank", "say"]
    with runs.open("w") as file:
        for names in [careful] * 20 + [hasty] * 10:
            steps = [{"action": name, "args": {}} for name in names]
            file.write(json.dumps({"task": "Pay", "steps": steps}) + "\n")
    assert main(["learn", str(runs), "-c", str(rules), "-o", str(model), "--quiet"]) == 0
    return model
