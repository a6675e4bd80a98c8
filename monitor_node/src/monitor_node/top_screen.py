"""What `monitor_top` shows: a screen of lines from what was heard; it knows no middleware."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

from forewarn.config.actions import NO_ACTION
from forewarn.reports.palette import risk_colour

LEVELS = ("", "WARN", "ACT")
BAR = "\N{FULL BLOCK}"
REST = "\N{MIDDLE DOT}"
LIMIT = "|"
LEAST = 20
"""Columns below which only a request for more room is shown."""
KEYS = "up/down choose  a acknowledge  A all  m mute  u unmute  q quit"
CONTROL = re.compile(r"[^\S ]|[\x00-\x1f\x7f-\x9f]")
SILENT = 2.0
"""Seconds without a risk after which the monitor is called silent."""
WARNING, ACTING, QUIET = Style(color="#d9822b"), Style(color="#b3261e", bold=True), Style(dim=True)


@dataclass
class Heard:
    """What is known of a monitor."""

    monitor: str
    present: bool = False
    silent: float = math.inf  # Seconds since the last risk; infinite before the first
    mode: str = ""
    action: str = NO_ACTION
    tick: int = 0
    risks: Sequence[Any] = ()
    alerts: Sequence[Any] = ()
    chosen: int = 0  # Position of the property that keys are about
    answer: str = ""  # What came of the last key

    @property
    def property(self) -> str:
        """The property that keys are about; empty without one."""
        return str(self.risks[self.chosen].property) if self.risks else ""

    def choose(self, by: int) -> None:
        """Choose the next property or the one before."""
        self.chosen = max(0, min(len(self.risks) - 1, self.chosen + by))

    def take(self, risks: Sequence[Any]) -> None:
        """Take the risks of a tick; the same property stays chosen where it is still there."""
        name = self.property
        self.risks = risks
        names = [str(risk.property) for risk in risks]
        self.chosen = names.index(name) if name in names else 0


def screen(heard: Heard, width: int, height: int) -> Text:
    """Return exactly as many lines as fit, none longer than `width`."""
    if width < LEAST or height < 3:
        return _fitted([Text("more room, please")], width, height)
    head, foot = list(_head(heard)), [Text(heard.answer), Text(KEYS, style=QUIET)]
    rows = list(_risks(heard, width))
    rest = [*_stale(heard), *_alerts(heard, width)]
    room = max(0, height - len(head) - len(foot))
    # The chosen property stays in view; unacknowledged alerts have at least a third.
    for_risks = min(len(rows), max(1, room - min(len(rest), room // 3)))
    begin = max(0, min(heard.chosen - for_risks + 1, len(rows) - for_risks))
    shown = [*rows[begin : begin + for_risks], *rest][:room]
    blank = [Text("")] * (room - len(shown))
    return _fitted([*head, *shown, *blank, *foot], width, height)


def _fitted(lines: Sequence[Text], width: int, height: int) -> Text:
    cut = []
    for line in lines[:height]:
        short = line.copy()
        short.plain = CONTROL.sub(" ", short.plain)  # a reason may hold anything
        short.truncate(width, overflow="crop")
        cut.append(short)
    return Text("\n", no_wrap=True, end="").join(cut)


def _head(heard: Heard) -> Iterator[Text]:
    line = Text(heard.monitor, style=Style(bold=True))
    if not heard.present:
        line.append("  no node publishes its risk: waiting", style=WARNING)
    elif heard.silent == math.inf:
        line.append("  waiting for the first risk", style=WARNING)
    elif heard.silent > SILENT:
        line.append(f"  silent for {heard.silent:.0f} s", style=WARNING)
    if heard.mode:
        line.append(f"  {heard.mode}  tick {heard.tick}  ")
        asked = heard.action.lower().replace("_", " ")
        asking = heard.action != NO_ACTION
        line.append(f"asks for {asked}" if asking else "asks for nothing", ACTING if asking else "")
    yield line


def _risks(heard: Heard, width: int) -> Iterator[Text]:
    longest = max((cell_len(risk.property) for risk in heard.risks), default=0)
    name_width = min(longest, _name_width(width))
    old = not heard.present or heard.silent > SILENT
    for position, risk in enumerate(heard.risks):
        line = Text("> " if position == heard.chosen else "  ", style=QUIET if old else "")
        line.append(set_cell_size(risk.property, name_width))
        value = risk.probability
        line.append("  -    " if value != value else f"  {value:.3f}")
        line.append(" ")
        _bar(line, risk, max(0, min(30, width - name_width - 30)))
        style = {"WARN": WARNING, "ACT": ACTING}.get(LEVELS[risk.level], "")
        line.append(f" {LEVELS[risk.level]:4}", style=style)
        line.append(" muted" if risk.muted else "")
        line.append(f" violated {risk.violations}x" if risk.violations else "")
        yield line


def _name_width(width: int) -> int:
    """Return how much of a line the name of a property may take."""
    return max(8, width // 3)


def _bar(line: Text, risk: Any, width: int) -> None:
    """Draw the risk, and where an alert begins."""
    if not width:
        return
    value = 0.0 if risk.probability != risk.probability else risk.probability
    filled = round(max(0.0, min(1.0, value)) * width)
    limit = min(width - 1, int(risk.threshold_act * width))
    for cell in range(width):
        text = LIMIT if cell == limit and cell >= filled else BAR if cell < filled else REST
        line.append(text, Style(color=risk_colour(value)) if cell < filled else QUIET)


def _stale(heard: Heard) -> Iterator[Text]:
    ages: dict[str, float] = {}
    for risk in heard.risks:
        ages.update(zip(risk.stale_signals, risk.stale_ages, strict=False))
    if ages:
        stale = ", ".join(
            f"{name} ({'never heard' if not math.isfinite(age) else f'{age:.1f} s'})"
            for name, age in ages.items()
        )
        yield Text(f"stale inputs: {stale}", style=WARNING)


def _alerts(heard: Heard, width: int) -> Iterator[Text]:
    waiting = [alert for alert in heard.alerts if _unacknowledged(alert)]
    if not waiting:
        yield Text("no unacknowledged alert", style=QUIET)
        return
    yield Text(f"unacknowledged alerts: {len(waiting)}", style=Style(bold=True))
    for alert in reversed(waiting):
        state = "over" if alert.state == alert.ENDED else "acting"
        style = ACTING if state == "acting" else ""
        name = set_cell_size(alert.property, min(cell_len(alert.property), _name_width(width)))
        reason = alert.reason.removeprefix(f"{alert.property}: ")
        yield Text(f"  {alert.id} {name} {state}: {reason}", style=style)


def _unacknowledged(alert: Any) -> bool:
    return bool((alert.acted.sec or alert.acted.nanosec) and not alert.acknowledged_by)


def unacknowledged_of(heard: Heard, name: str) -> list[int]:
    """Return the numbers of the unacknowledged alerts of a property."""
    return [alert.id for alert in heard.alerts if _unacknowledged(alert) and alert.property == name]
