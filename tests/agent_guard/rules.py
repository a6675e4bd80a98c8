"""The rules that the tests of the guard keep to."""

from __future__ import annotations

from pathlib import Path

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
