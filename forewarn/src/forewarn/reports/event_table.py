"""The table of what happened in a run; a click on a time shows it in the picture."""

from __future__ import annotations

from forewarn.assessment.events import Alert, Outcome, Violation
from forewarn.assessment.published import LiveEvent
from forewarn.assessment.replay import RecordedRun
from forewarn.assessment.results import elapsed, state_name
from forewarn.monitoring.composition import values_in_words
from forewarn.monitoring.step import Monitor
from forewarn.reports.page import absent, escape, table
from forewarn.reports.states import state_cell

MAX_EVENTS = 2000
LONG_RUN = 600.0


def event_table(monitor: Monitor, run: RecordedRun, picture: str | None) -> str:
    """Return the table."""
    happened: list[tuple[float, int, Alert | Violation | LiveEvent]] = []
    for events in run.events:
        happened += [(elapsed(monitor, run, a.start), 1, a) for a in events.early_alerts]
        happened += [(elapsed(monitor, run, v.tick), 2, v) for v in events.violations]
    text = "" if happened else absent("No alert and no violation.")
    if run.published is not None:
        happened += [(event.seconds, 0, event) for event in run.published.events]
    happened.sort(key=lambda timed: timed[:2])
    rows = [event_row(monitor, run, event, picture) for _, _, event in happened[:MAX_EVENTS]]
    if rows:
        text += table(columns_of(monitor), rows, long="state", cards=True)
    if len(happened) > MAX_EVENTS:
        text += absent(f"{len(happened) - MAX_EVENTS} more are not listed.")
    return text


def columns_of(monitor: Monitor) -> tuple[str, ...]:
    """Return the headings of the rows."""
    unit = monitor.clock.unit
    return (
        ">time", "property", "event", f">lead, {unit}", f">lasted, {unit}", ">peak risk",
        "asks for", "state",
    )  # fmt: skip


def event_row(
    monitor: Monitor, run: RecordedRun, event: Alert | Violation | LiveEvent, picture: str | None
) -> list[str]:
    """Return the cells of an event, as HTML; its time can be clicked where there is a picture."""
    if isinstance(event, LiveEvent):
        when = _when(monitor, run, (event.seconds,) * 3, picture)
        tag = _tag(f"live: {event.kind}", "")
        return [when, "", tag, "", "", "", "", escape(event.details)]
    if isinstance(event, Violation):
        alert, tick = event.answer, event.tick
        first = tick if event.alert is None else event.alert
        last = tick if alert is None else alert.end
        unknown = ", unknown to the model" if alert is not None and alert.out_of_model else ""
        tag = _tag(f"violation, {event.outcome}{unknown}", "bad")
        lead = "" if event.lead is None else monitor.clock.figure(event.lead, ".2f")
    else:
        alert, tag, lead = event, _alert_tag(event), ""
        tick, first, last = event.start, event.start, event.end
    of_alert = ["", "", ""] if alert is None else _of_alert(monitor, alert)
    when = _when(
        monitor,
        run,
        tuple(elapsed(monitor, run, moment) for moment in (tick, first, last)),
        picture,
    )
    state = state_cell(state_name(monitor, run, tick))
    if isinstance(event, Violation):
        values = values_in_words(run.history.seen.get((event.name, tick), {}))
        state += f"<div>{escape(values)}</div>" if values else ""
    return [when, escape(event.name), tag, lead, *of_alert, state]


def _of_alert(monitor: Monitor, alert: Alert) -> list[str]:
    """Return how long an alert lasted, its greatest risk, and what it asks for."""
    peak = "" if alert.peak != alert.peak or alert.out_of_model else f"{alert.peak:.3f}"
    lasted = monitor.clock.figure(monitor.clock.duration(alert.end - alert.start + 1), ".1f")
    asks = monitor.spec.properties[alert.name].intervention
    return [lasted, peak, escape(asks.lower().replace("_", " "))]


def _when(monitor: Monitor, run: RecordedRun, times: tuple[float, ...], picture: str | None) -> str:
    """Return a time that can be clicked where there is a picture: itself, begin and end."""
    at, start, end = times
    when = monitor.clock.figure(at, ".2f")
    if monitor.clock.timed:
        when = clock(at, len(run.history) / monitor.clock.rate)
    if picture is None:
        return when
    return (
        f'<button class="jump" data-run="{escape(picture)}" data-at="{at:.3f}" '
        f'data-from="{start:.3f}" data-to="{end:.3f}" title="show it">{when}</button>'
    )


def _alert_tag(alert: Alert) -> str:
    if alert.outcome is Outcome.FALSE:
        text, kind = "false alarm", ""
    else:
        text = f"alert, {alert.outcome.told}"
        kind = "good" if alert.outcome in (Outcome.FORESAW, Outcome.NEAR) else ""
    text += ", unknown to the model" if alert.out_of_model else ""
    return _tag(text + (", cut short" if alert.cut_short else ""), kind)


def _tag(text: str, kind: str) -> str:
    return f'<span class="tag {kind}">{escape(text)}</span>'


def clock(seconds: float, duration: float) -> str:
    """Return a time as the axis of a run of this duration has it: seconds, or h:min:s."""
    if duration < LONG_RUN:
        return f"{seconds:.2f}"
    minutes, rest = divmod(round(seconds, 2), 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02d}:{rest:05.2f}"
