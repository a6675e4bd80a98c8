"""One self-contained HTML page about a replay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from forewarn import registry as wings
from forewarn.assessment.reliability import Calibration
from forewarn.assessment.replay import RecordedRun
from forewarn.assessment.results import areas, calibrations, remarks_on, scores
from forewarn.assessment.verdict import verdict
from forewarn.models.counts import CountModel
from forewarn.monitoring.step import Monitor
from forewarn.reports.event_table import event_table
from forewarn.reports.foresight import cards, trade_offs
from forewarn.reports.model_section import chain_part, coverage_part
from forewarn.reports.packing import pack, size
from forewarn.reports.page import Part, absent, data_script, escape, page, plot, section, table
from forewarn.reports.process import process_part
from forewarn.reports.reliability import reliability
from forewarn.reports.states import in_words
from forewarn.reports.timeline import Timeline, timeline
from forewarn.reports.verdict import verdict_line, worst_moments
from forewarn.signals.clock import NANOSECONDS
from forewarn.states.interface import TREE

MAX_DRAWN = 80
MAX_DATA = 11_000_000
"""Characters of packed columns; with plotly's 5 million the page stays below 20."""
LIMITS = (None, 40_000, 12_000, 4_000, 1_200)
YEAR_2000 = 946_684_800

KEY = (
    ("risk", "risk", "risk"),
    ("bounds", "its bounds", "bounds"),
    ("lead", "expected risk, by all readings so far", "expected"),
    ("uncovered", "risk that was published live, where it is another", "published live"),
    ("warn_fill", "warning: the threshold warn was reached, and act was not", ""),
    ("act_fill", "alert: the rule asks for its intervention", ""),
    ("lead", "lead time", "lead time"),
    ("violation", "violation (hollow cross: missed)", "violation"),
    ("act", "start of an alert (hollow: false alarm)", ""),
    ("holds", "holds", ""),
    ("unknown", "unknown", "unknown"),
    ("out_of_model", "state never seen by the model", "out_of_model"),
    ("inactive", "not monitored", "inactive"),
)
"""Colour, meaning, and what has to occur in a picture for it to be explained there."""
HINT = (
    "Drag across to zoom in, double-click for all of it. A click puts a cursor through all rows, "
    "and what was at that moment stands above them; <kbd>\N{LEFTWARDS ARROW}</kbd> "
    "<kbd>\N{RIGHTWARDS ARROW}</kbd> move it by one {noun}, <kbd>n</kbd> and <kbd>p</kbd> to the "
    "next and the previous event, <kbd>Esc</kbd> takes it away. A click on the time of an event "
    "shows it. Gaps in a signal: unknown or infinite."
)
STEPS = (
    ("left", "\N{LEFTWARDS ARROW}", "cursor back (left arrow)"),
    ("right", "\N{RIGHTWARDS ARROW}", "cursor on (right arrow)"),
    ("previous", "previous event", "key p"),
    ("next", "next event", "key n"),
)
"""What moves the cursor: its name in cursor.js, the button, what the button tells."""
CALIBRATION = (
    "Of the {noun}s at which the risk was about 20 %, a violation within the horizon should follow "
    "a fifth. Points on the diagonal are right; below it risk was overestimated. Bars are 95 % "
    "intervals as if {noun}s were independent, which neighbours are not. Skill compares with "
    "always predicting the mean: 1 is perfect, 0 no better."
)


def render(
    monitor: Monitor,
    model: CountModel | None,
    runs: Sequence[RecordedRun],
    further: Sequence[Part] = (),
    *,
    opens_ns: int | None = None,
) -> str:
    """Return the page; `further` sections stand before the remarks.

    With `opens_ns`, the first picture shows what lies about that moment.
    """
    pictures = [timeline(monitor, run) for run in runs[:MAX_DRAWN]]
    packed = _packed(pictures)
    found = scores(monitor, runs)
    parts = [
        ("worst", "Worst moments", worst_moments(monitor, runs, len(pictures))),
        ("foresight", "What was foreseen", cards(monitor, found)),
    ]
    parts += [
        (
            f"run{number}",
            run.name,
            _run(
                monitor,
                run,
                number,
                (pictures[number], packed[number]),
                None if number else opens_ns,
            )
            if number < len(pictures)
            else _run(monitor, run, number, None),
        )
        for number, run in enumerate(runs)
    ]
    parts.append(("trade-off", "Trade-off", trade_offs(monitor, runs)))
    parts.append(("calibration", "Calibration", _calibration(monitor, runs)))
    if model is not None:
        parts.append(("coverage-part", "Coverage", coverage_part(monitor, model, runs)))
        parts.append(("chain", "Chain", chain_part(monitor, model)))
        if model.vocabulary.kind == TREE:
            states = wings.part("trees", "report", "a model whose states are leaves of a tree")
            parts.append(states.states_part(model))
        if (process := process_part(model)) is not None:
            parts.append(process)
    else:
        reason = "No model: give one with -m to see risk, coverage and the chain."
        parts.append(("chain", "Model", section("chain", "Model", "", absent(reason))))
    parts += further
    parts.append(("remarks", "Remarks", _remarks(monitor, runs)))
    links = [
        (identifier, title)
        for identifier, title, _ in parts
        if len(runs) < 12 or not identifier.startswith("run")
    ]
    body = verdict_line(verdict(monitor, runs, found)) + "".join(body for _, _, body in parts)
    return page("Forewarn report", _subtitle(monitor, model, runs), links, body)


def _packed(pictures: Sequence[Timeline]) -> list[dict[str, Any]]:
    """Pack all columns, with as many values of each as the page has room for."""
    found: list[dict[str, Any]] = []
    for limit in LIMITS:
        found, total = [], 0
        for picture in pictures:
            found.append({name: pack(column, limit) for name, column in picture.columns.items()})
            total += sum(map(size, found[-1].values()))
            if total > MAX_DATA and limit != LIMITS[-1]:
                break
        else:
            return found
    return found


def _subtitle(monitor: Monitor, model: CountModel | None, runs: Sequence[RecordedRun]) -> str:
    file = monitor.spec.file.name if monitor.spec.file else "monitor"
    ticks = sum(len(run.history) for run in runs)
    learned = (
        "no model"
        if model is None
        else f"model of {model.size} states from {int(model.counts.sum()):,} transitions"
    )
    clock = monitor.clock
    counted = f"{clock.noun}s" + (f" at {clock.rate:g} Hz" if clock.regular else "")
    names = ", ".join(run.name for run in runs[:3]) + (", ..." if len(runs) > 3 else "")
    return f"{file} on {names}: {ticks:,} {counted}, {learned}"


def _run(
    monitor: Monitor,
    run: RecordedRun,
    number: int,
    drawn: tuple[Timeline, dict[str, Any]] | None,
    opens_ns: int | None = None,
) -> str:
    name = f"timeline{number}"
    picture = absent(f"Not drawn: {MAX_DRAWN} recordings are.")
    if drawn is not None:
        opens = None if opens_ns is None else (opens_ns - run.start_ns) / NANOSECONDS
        picture = _picture(monitor.clock.noun, name, *drawn, opens)
    events = event_table(monitor, run, None if drawn is None else name)
    return (
        f'<section id="run{number}"><details{"" if number else " open"}>'
        f"<summary>{escape(run.name)}<small>{escape(_when(monitor, run))}</small></summary>"
        f"{picture}<h3>Events</h3><div class=events>{events}</div></details></section>"
    )


def _when(monitor: Monitor, run: RecordedRun) -> str:
    duration = len(run.history) / monitor.clock.rate
    start = run.start_ns // NANOSECONDS
    text = monitor.clock.say(duration, ".1f")
    if duration >= 600 and monitor.clock.timed:
        text = f"{duration / 60:.1f} min"
    if start < YEAR_2000 or not monitor.clock.timed:
        return text
    moment = datetime.fromtimestamp(start, tz=timezone.utc)
    return f"{text} from {moment:%Y-%m-%d %H:%M:%S} UTC"


def _picture(
    noun: str, name: str, drawn: Timeline, packed: dict[str, Any], opens: float | None = None
) -> str:
    there = drawn.meanings
    key = "".join(
        f'<span><i style="background:var(--c-{colour})"></i>{text}</span>'
        for colour, text, needed in KEY
        if not needed or needed in there
    )
    value = {
        "rate": drawn.rate,
        "unit": drawn.unit,
        "count": drawn.ticks,
        "rows": drawn.rows,
        "packed": packed,
        "opens": opens,
    }
    height = sum(row["height"] + 36 for row in drawn.rows if row["shown"]) + 80
    never = ", ".join(map(in_words, drawn.never))
    return (
        f'<div class="figure"><p class="lead">{HINT.format(noun=escape(noun))}</p>'
        f'<p class="key">{key}</p>{_chips(name, drawn)}'
        f'<p class="readout" id="{name}-readout" role="status" hidden></p>'
        f'<div class="plot" id="{name}" data-run="1" data-figure="{name}-data" '
        f'style="height:{height}px"></div></div>'
        + (absent(f"Never true here, and not drawn: {never}.") if never else "")
        + data_script(f"{name}-data", value)
    )


def _chips(name: str, drawn: Timeline) -> str:
    """Return the buttons and boxes by which a reader chooses the signals that are drawn."""
    rows = [row for row in drawn.rows if "signal" in row]
    steps = f'<button type="button" data-whole="{name}">whole run</button>' + "".join(
        f'<button type="button" data-of="{name}" data-step="{step}" title="{tip}">{shown}</button>'
        for step, shown, tip in STEPS
    )
    steps = f"<div>{steps}</div>"
    if not rows:
        return f'<div class="chips">{steps}</div>'
    buttons = ""
    for choice, text in (("deciding", "those that decide"), ("all", "all"), ("none", "none")):
        buttons += f'<button type="button" data-choose="{choice}">{text}</button>'
    first = "".join(_chip(row) for row in rows if row["decides"])
    others = [_chip(row) for row in rows if not row["decides"]]
    more = (
        f"<details><summary>{len(others)} more signals</summary>"
        f"<div>{''.join(others)}</div></details>"
    )
    return (
        f'<div class="chips" data-run="{name}">{steps}<div><b>Signals</b>{buttons}</div>'
        f"<div>{first}</div>{more if others else ''}</div>"
    )


def _chip(row: dict[str, Any]) -> str:
    unit = f"<small>{escape(row['unit'])}</small>" if row["unit"] else ""
    return (
        f'<label><input type="checkbox" value="{escape(row["signal"])}"'
        f'{" checked" if row["shown"] else ""} data-decides="{"yes" if row["decides"] else "no"}">'
        f"{escape(row['signal'])}{unit}</label>"
    )


def _calibration(monitor: Monitor, runs: Sequence[RecordedRun]) -> str:
    names, noun = list(monitor.spec.properties), monitor.clock.noun
    found = list(zip(names, calibrations(monitor, runs), strict=True))
    judged = [(name, score) for name, score in found if score is not None]
    ranked = dict(zip(names, areas(monitor, runs), strict=True))
    without = "".join(
        absent(f"{name}: no {noun} with a risk whose outcome is known.")
        for name, score in found
        if score is None
    )
    if monitor.model is None:
        without = absent("Without a model there is no risk to judge.")
    body = without
    if judged:
        body = (
            plot("reliability", reliability(judged, noun)) + _scores(judged, ranked, noun) + without
        )
    lead = escape(CALIBRATION.format(noun=noun)) if judged else ""
    return section("calibration", "Is the risk right?", lead, body)


def _scores(
    judged: Sequence[tuple[str, Calibration]], ranked: Mapping[str, float | None], noun: str
) -> str:
    rows = [
        [
            escape(name),
            f"{found.ticks:,}",
            f"{found.censored:,}",
            f"{100 * found.base_rate:.2f} %",
            f"{found.brier:.4f}",
            "-" if found.skill is None else f"{found.skill:.3f}",
            f"{found.expected_error:.4f}",
            "-" if (area := ranked[name]) is None else f"{area:.3f}",
        ]
        for name, found in judged
    ]
    columns = (
        "property", f">{noun}s judged", ">outcome unknown", ">followed by a violation",
        ">Brier score", ">skill", ">calibration error", ">precision-recall area",
    )  # fmt: skip
    return table(columns, rows)


def _remarks(monitor: Monitor, runs: Sequence[RecordedRun]) -> str:
    lines = list(_remark_lines(monitor, runs))
    body = f"<ul>{''.join(lines)}</ul>" if lines else absent("Nothing.")
    return section("remarks", "Remarks", "What was left out, worked around or compared.", body)


def _remark_lines(monitor: Monitor, runs: Sequence[RecordedRun]) -> Iterator[str]:
    for note in monitor.all_notes:
        yield f"<li>{escape(note)}</li>"
    for line in remarks_on(monitor, runs):
        yield f"<li>{escape(line)}</li>"
