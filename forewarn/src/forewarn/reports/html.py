"""One self-contained HTML page about a replay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plotly.offline import get_plotlyjs

from forewarn.models import CountModel
from forewarn.monitoring.calibration import Calibration
from forewarn.monitoring.events import Alert, Outcome, Score, Violation
from forewarn.monitoring.monitor import Monitor
from forewarn.monitoring.tables import CompiledProperty
from forewarn.reports.chain import chain_figure
from forewarn.reports.page import escape, page, plot, section, table
from forewarn.reports.palette import COLOURS
from forewarn.reports.results import calibrations, elapsed, remarks, scores, state_name
from forewarn.reports.run import RecordedRun
from forewarn.reports.states import riskiest
from forewarn.reports.summary import coverage, reliability
from forewarn.reports.timeline import POINTS, timeline
from forewarn.reports.ways import Way, likeliest_way

MAX_EVENTS = 2000
MAX_DRAWN = 80
RISKY_STATES = 8


def render(monitor: Monitor, model: CountModel | None, runs: Sequence[RecordedRun]) -> str:
    """Return the page.

    Parameters
    ----------
    monitor : Monitor
        What was replayed.
    model : CountModel or None
        Its model.
    runs : sequence of RecordedRun
        What came of it; with raw signals if they were kept.
    """
    found, agreement = scores(monitor, runs), calibrations(monitor, runs)
    parts = [("foresight", "What was foreseen", _foresight(monitor, found))]
    # Many runs share the room: a page stays below 20 MB, however much it tells of.
    points = max(POINTS // max(1, len(runs) // 4), POINTS // 10)
    parts += [
        (f"run{number}", run.name, _run(monitor, run, number, points if number < MAX_DRAWN else 0))
        for number, run in enumerate(runs)
    ]
    judged = [(s.name, c) for s, c in zip(found, agreement, strict=True) if c is not None]
    if judged:
        parts.append(("calibration", "Calibration", _calibration(judged)))
    if model is not None:
        parts.append(("model", "Model", _model(monitor, model)))
    parts.append(("remarks", "Left out", _remarks(monitor, runs)))
    return page(
        "Forewarn report",
        _subtitle(monitor, model, runs),
        [
            (identifier, title)
            for identifier, title, _ in parts
            if len(runs) < 12 or not identifier.startswith("run")
        ],
        "".join(body for _, _, body in parts),
        get_plotlyjs(),
    )


def _subtitle(monitor: Monitor, model: CountModel | None, runs: Sequence[RecordedRun]) -> str:
    file = monitor.spec.file.name if monitor.spec.file else "monitor"
    ticks = sum(len(run.history) for run in runs)
    learned = (
        "no model"
        if model is None
        else f"model of {model.size} states from {int(model.counts.sum())} transitions"
    )
    names = ", ".join(run.name for run in runs[:3]) + (", ..." if len(runs) > 3 else "")
    return f"{file} on {names}: {ticks} ticks at {monitor.spec.rate:g} Hz, {learned}"


def _foresight(monitor: Monitor, found: Sequence[Score]) -> str:
    cards = "".join(_card(monitor, each) for each in found)
    lead = (
        "Lead time is the time from the start of the alert that is on when a violation happens to "
        "the violation. A false alarm is an alert with no violation during it or within the "
        "horizon of its start. None of these figures means anything without the others."
    )
    return section("foresight", "What was foreseen", lead, f'<div class="cards">{cards}</div>')


def _card(monitor: Monitor, each: Score) -> str:
    per_hour = each.false_alarms_per_hour
    figures = [
        (f"{each.detected} / {each.violations}", "violations foreseen"),
        (f"{each.lead.median:.2f} s" if each.lead else "-", "median lead time"),
        (
            f"{each.lead.least:.1f}..{each.lead.greatest:.1f}" if each.lead else "-",
            "lead times, s",
        ),
        (str(each.false_alarms), f"false alarms of {each.alerts} alerts"),
        ("-" if per_hour is None else f"{per_hour:.1f}", "false alarms an hour"),
        (_percent(each.precision), "precision"),
    ]
    cells = "".join(f"<div><b>{escape(v)}</b><span>{escape(t)}</span></div>" for v, t in figures)
    formula = monitor.spec.properties[each.name].formula
    remark = []
    if each.unseen:
        remark.append(f"false alarms that began in a state unknown to the model: {each.unseen}")
    if each.cut_short:
        remark.append(f"false alarms cut short by the end of a recording: {each.cut_short}")
    if each.late:
        remark.append(f"alerts that came with or after the violation: {each.late}")
    note = f'<p class="lead">{escape("; ".join(remark))}</p>' if remark else ""
    return (
        f'<div class="card"><h3>{escape(each.name)}</h3><p class="formula">{escape(formula)}</p>'
        f'<div class="figures">{cells}</div>{note}</div>'
    )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


def _run(monitor: Monitor, run: RecordedRun, number: int, points: int) -> str:
    key = "".join(
        f'<span><i style="background:{COLOURS[colour]}"></i>{text}</span>'
        for colour, text in (
            ("risk", "risk"),
            ("bounds", "its bounds"),
            ("warn_fill", "warning"),
            ("act_fill", "alert: intervention asked for"),
            ("lead", "lead time"),
            ("violation", "violation (hollow: missed)"),
            ("holds", "predicate holds"),
            ("unknown", "state not fully known"),
        )
    )
    picture = f'<p class="lead">Not drawn: {MAX_DRAWN} recordings are.</p>'
    if points:
        figure = timeline(monitor, run, points)
        picture = f'<p class="key">{key}</p>{plot(f"timeline{number}", figure)}'
    return (
        f'<section id="run{number}"><details{"" if number else " open"}>'
        f"<summary>{escape(run.name)}</summary>{picture}"
        f"<h3>Events</h3>{_events(monitor, run)}</details></section>"
    )


def _events(monitor: Monitor, run: RecordedRun) -> str:
    happened: list[tuple[int, bool, Alert | Violation]] = []
    for events in run.events:
        happened += [(alert.start, False, alert) for alert in events.alerts]
        happened += [(violation.tick, True, violation) for violation in events.violations]
    happened.sort(key=lambda item: item[:2])
    rows = [_event_row(monitor, run, event) for _, _, event in happened[:MAX_EVENTS]]
    if not rows:
        return '<p class="lead">No alert and no violation.</p>'
    columns = (">time, s", "property", "event", ">lead, s", ">lasted, s", ">peak risk", "state")
    text = table(columns, rows, scroll=len(rows) > 14)
    if len(happened) > MAX_EVENTS:
        text += f'<p class="lead">{len(happened) - MAX_EVENTS} more are not listed.</p>'
    return text


def _event_row(monitor: Monitor, run: RecordedRun, event: Alert | Violation) -> list[str]:
    if isinstance(event, Violation):
        missed = event.lead is None
        tag = _tag("violation, missed" if missed else "violation, foreseen", "bad")
        return [
            f"{elapsed(monitor, run, event.tick):.2f}",
            escape(event.name),
            tag,
            "" if event.lead is None else f"{event.lead:.2f}",
            "",
            "",
            escape(state_name(monitor, run, event.tick)),
        ]
    good = event.outcome in (Outcome.FORESAW, Outcome.NEAR)
    extra = ", unknown to the model" if event.unseen else ""
    text = (
        event.outcome.value if event.outcome is Outcome.FALSE else f"alert, {event.outcome.value}"
    )
    return [
        f"{elapsed(monitor, run, event.start):.2f}",
        escape(event.name),
        _tag(text + extra, "good" if good else ""),
        "",
        f"{(event.end - event.start + 1) / monitor.spec.rate:.1f}",
        "" if event.peak != event.peak else f"{event.peak:.3f}",
        escape(state_name(monitor, run, event.start)),
    ]


def _tag(text: str, kind: str) -> str:
    return f'<span class="tag {kind}">{escape(text)}</span>'


def _calibration(judged: Sequence[tuple[str, Calibration]]) -> str:
    rows = [
        [
            escape(name),
            str(found.ticks),
            str(found.censored),
            f"{100 * found.base_rate:.2f} %",
            f"{found.brier:.4f}",
            "-" if found.skill is None else f"{found.skill:.3f}",
            f"{found.expected_error:.4f}",
        ]
        for name, found in judged
    ]
    columns = (
        "property",
        ">ticks judged",
        ">outcome unknown",
        ">followed by a violation",
        ">Brier score",
        ">skill",
        ">calibration error",
    )
    lead = (
        "Of the ticks at which the risk was about 20 %, a violation within the horizon should "
        "follow a fifth. Points on the diagonal are right, below it risk was overestimated. Bars "
        "show 95 % intervals as if ticks were independent, which neighbours are not. Skill "
        "compares with always predicting the mean: 1 is perfect, 0 no better."
    )
    body = plot("reliability", reliability(judged)) + table(columns, rows)
    return section("calibration", "Is the risk right?", lead, body)


def _model(monitor: Monitor, model: CountModel) -> str:
    body = ""
    for compiled in monitor.properties:
        if compiled.table is None:
            continue
        bounded = compiled.table.lower is not None
        rows = [
            [
                f"{each.risk:.4f}",
                f"{each.lower:.3f} .. {each.upper:.3f}" if bounded else "-",
                escape(each.name),
                escape(each.automaton),
                str(each.visits),
            ]
            for each in riskiest(compiled, model, RISKY_STATES)
        ]
        body += f"<h3>{escape(compiled.name)}: the riskiest states</h3>" + (
            table((">risk", ">bounds", "state", "obligation", ">visits"), rows)
            if rows
            else '<p class="lead">No state has a risk above 0.</p>'
        )
        body += _chain(compiled, model)
    body += "<h3>Visits</h3>" + plot("coverage", coverage(model))
    seen = int(model.observed.sum())
    lead = escape(
        f"{model.size} states, {seen} of them observed; {int(model.counts.sum())} transitions of "
        f"{model.counts.nnz} kinds from {len(model.provenance)} recordings; smoothing "
        f"{model.smoothing.alpha} over {model.smoothing.candidates} states. A state with few "
        "visits has a risk that is little more than a guess."
    )
    return section("model", "Model", lead, body)


def _chain(compiled: CompiledProperty, model: CountModel) -> str:
    way = likeliest_way(compiled, model)
    figure = chain_figure(compiled, model, way)
    text = (
        "Each dot is a state: further right is riskier, further up was seen more often; lines are "
        "transitions."
    )
    picture = f'<p class="lead wide">{text}</p>' + plot(f"chain-{compiled.name}", figure)
    if way is None:
        return picture
    steps = "".join(f"<li>{line}</li>" for line in _way_lines(way, model))
    return (
        f'{picture}<p class="lead wide">The likeliest way from the most common state to a '
        f"violation, and what changes at each step:</p><ol>{steps}</ol>"
    )


def _way_lines(way: Way, model: CountModel) -> Iterator[str]:
    before: list[str] | None = None
    for stay in way.stays:
        now = model.name(stay.row).split(" & ")
        if before is None:
            text = escape(" & ".join(now))
        else:
            begins = [f"<b>{escape(name)}</b>" for name in now if name not in before]
            ends = [f"<s>{escape(name)}</s>" for name in before if name not in now]
            text = ", ".join([*begins, *ends])
        before = now
        yield text + (f", for {stay.ticks} ticks of the obligation" if stay.ticks > 1 else "")


def _remarks(monitor: Monitor, runs: Sequence[RecordedRun]) -> str:
    lines = [escape(note) for note in monitor.notes]
    lines += [f"{escape(run.name)}: {escape(line)}" for run in runs for line in remarks(run)]
    body = (
        f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>" if lines else "<p>Nothing.</p>"
    )
    return section("remarks", "What was left out or worked around", "", body)
