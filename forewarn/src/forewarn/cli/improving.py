"""``forewarn init --improve``: predicates that would make a risk better, found in recordings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from forewarn.assessment.censoring import settled
from forewarn.assessment.comparison import Estimate
from forewarn.assessment.history import UNKNOWN_STATE, Track
from forewarn.assessment.improvement import LEVEL, Improvement, Proposal, improve
from forewarn.assessment.progress import overall
from forewarn.assessment.reliability import UNDECIDED, outcomes
from forewarn.assessment.replay import Replaying, replay
from forewarn.assessment.split_states import Recorded, Setting
from forewarn.cli.editing import difference, text_of, with_predicate
from forewarn.cli.moving import moved
from forewarn.cli.output import Output
from forewarn.config.file import MonitorSpec, parse_spec
from forewarn.config.includes import with_fragments
from forewarn.config.signals import SignalSpec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError, InputError, plural
from forewarn.expressions.functions.memory import MOST_MOMENTS
from forewarn.expressions.syntax import parse_expression
from forewarn.files.outputs import write_output
from forewarn.learning.copies import Copies
from forewarn.learning.executors import Here
from forewarn.learning.folds import grouping_of
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.counts import Smoothing
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.loading import load_compiled
from forewarn.monitoring.verdict import Verdict
from forewarn.recordings.groups import Grouping
from forewarn.recordings.parts import Part
from forewarn.recordings.registry import open_recording
from forewarn.signals.clock import horizon_ticks
from forewarn.states.predicates.validity import Validity

WINDOWS = {True: (0.5, 1.0), False: (2.0, 5.0)}
"""Windows of memory that are tried: seconds, or steps."""

LEAST_RECORDINGS = 4
OF_NUMBERS = ("rate", "lowest", "highest")
PREFIX = "improve_"


def run_improvement(
    config: Path,
    recordings: Sequence[Path],
    target: Path | None,
    name: str | None,
    most: int,
    tries: int,
    output: Output,
    *,
    allow_missing: bool,
) -> Improvement:
    """Search, show what was found, and write it if that is asked for."""
    compiled = load_compiled(config)
    spec = compiled.spec
    chosen = _property(spec, name)
    if len(recordings) < LEAST_RECORDINGS:
        raise InputError(
            plural(len(recordings), "recording"),
            key="BAG",
            accepted=f"{LEAST_RECORDINGS} or more, or --blocks S to cut them: half of them choose, "
            "the others judge",
        )
    if spec.learned_score:
        output.warn(
            "learned scores are those of the model that the file names: where it has learned from "
            "these recordings they flatter the file as it is, and gains are too small"
            if compiled.abstraction.fitted
            else "learned scores are unknown before the first `forewarn learn`, and so are states "
            "that rest on them"
        )
    sources = dict(_sources(spec, compiled))
    recorded = _read(compiled, chosen, sources, recordings, output, allow_missing=allow_missing)
    clusters = len({one.cluster for one in recorded})
    if clusters < LEAST_RECORDINGS:
        raise InputError(
            f"{plural(clusters, 'group')} of recordings",
            key="BAG",
            accepted=f"{LEAST_RECORDINGS} or more: half of them choose, the others judge",
        )
    if not any((one.followed & one.judged).any() for one in recorded):
        raise InputError(
            f"{chosen} is violated in none of the recordings",
            key="BAG",
            accepted="recordings in which a violation happens, and its horizon before",
        )
    index = list(spec.properties).index(chosen)
    with output.progress("trying conditions") as tell:
        found = improve(recorded, _setting(compiled, index), most=most, tries=tries, progress=tell)
    _show(chosen, found, output)
    change = _write(config, target, found, output)
    output.emit(_record(chosen, found, change, target))
    return found


def blocks_of(recordings: Sequence[Path], seconds: float) -> list[Path]:
    """Return the parts that recordings are cut into, each so long; the rest of one is left out.

    Raises
    ------
    InputError
        If a recording has no times.
    """
    found = []
    for path in recordings:
        with open_recording(path) as recording:
            if not recording.timed:
                raise InputError(
                    f"{path} has no times", key="--blocks", accepted="recordings with times"
                )
            count = int(recording.duration / seconds)
        # A moment belongs to one block: both ends of a part count.
        found += [
            Part(f"{k * seconds:.3f}", f"{(k + 1) * seconds - 0.001:.3f}").of(path)
            for k in range(count)
        ]
    return found


def _property(spec: MonitorSpec, name: str | None) -> str:
    if name is None:
        return next(iter(spec.properties))
    if name not in spec.properties:
        raise ConfigError(
            f"there is no property {name!r}",
            file=spec.file,
            key="properties",
            accepted=", ".join(spec.properties),
        )
    return name


def _sources(spec: MonitorSpec, compiled: CompiledSpec) -> Iterator[tuple[str, str]]:
    """Yield what may be cut: the text of an expression, and what computes it from signals alone."""
    timed = compiled.abstraction.clock.timed
    rate = compiled.abstraction.clock.rate
    windows = [d for d in WINDOWS[timed] if 2 <= d * rate <= MOST_MOMENTS]
    for name in spec.signals:
        yield name, name
        for function in OF_NUMBERS:
            for window in windows:
                text = f"{function}({name}, {window:g})"
                yield text, text
    for name, text in spec.predicates.items():
        expression = parse_expression(text)
        if expression.names <= spec.signals.keys():
            yield f"for_how_long({name})", f"for_how_long({text})"


def _read(
    compiled: CompiledSpec,
    chosen: str,
    sources: dict[str, str],
    recordings: Sequence[Path],
    output: Output,
    *,
    allow_missing: bool,
) -> list[Recorded]:
    """Read each recording once, with all that may be cut as derived signals."""
    spec = compiled.spec
    derived = {f"{PREFIX}{i}": SignalSpec(value=text) for i, text in enumerate(sources.values())}
    for name in derived.keys() & spec.signals.keys():
        raise ConfigError(
            f"the name {name!r} is reserved for --improve",
            file=spec.file,
            key="signals",
            accepted="other names",
        )
    wide = compile_spec(spec.derived({**spec.signals, **derived}), compiled.abstraction.fitted)
    how = Replaying(build_monitor(wide, None), (), allow_missing, keep_signals=True)
    names, index = dict(zip(derived, sources, strict=True)), list(spec.properties).index(chosen)
    validity = compiled.abstraction.validity(spec)
    shared, copies = (how, index, validity, names, grouping_of(spec)), Copies(allowed=False)
    found, tracks = [], []
    with (
        output.progress("reading") as tell,
        closing(Here().each(recordings, _recorded, shared, overall(recordings, tell))) as reading,
    ):
        for path, (one, track) in reading:
            copies.is_new(path, one.digest)  # one half would judge what the other one chose by
            found.append(one)
            tracks.append(track)
    common = set.intersection(*(set(one.values) for one in found))
    return [
        one._replace(
            values={k: v for k, v in one.values.items() if k in common}, **_outcomes(track)
        )
        for one, track in zip(found, settled(tracks), strict=True)
    ]


def _outcomes(track: Track) -> dict[str, Any]:
    """Return at which moments a violation followed, and at which of them that is judged."""
    followed, known = outcomes(track)
    judged = known & (track.state != UNKNOWN_STATE) & ~track.ambiguous & ~track.terminal
    return {"followed": followed, "judged": judged & np.isin(track.status, UNDECIDED)}


def _recorded(
    path: Path,
    how: Replaying,
    index: int,
    validity: Validity,
    names: Mapping[str, str],
    grouping: Grouping | None,
    progress: Callable[[float], None] | None = None,
) -> tuple[Recorded, Track]:
    """Return what a recording says of one property, with all that may be cut, and its columns."""
    active: list[bool] = []
    intervened: list[bool] = []

    def note(verdict: Verdict) -> None:
        active.append(verdict.observation.active is True)
        intervened.append(verdict.observation.intervened is not False)

    with open_recording(path) as recording:
        run = replay(how, recording, on_verdict=note, progress=progress)
        digest = recording.digest()
        group = "" if grouping is None else grouping.of(recording)
    track = run.tracks[index]
    codes = (*run.history.known_states, None)
    admitted = [c if c is not None and validity.admits(c) else None for c in codes]
    states = zip(track.state.tolist(), active, strict=True)
    known = _outcomes(track)
    recorded = Recorded(
        str(path),
        digest,
        track.ticks,
        tuple(admitted[place] if on else None for place, on in states),
        np.array(intervened, dtype=bool),
        track.automaton.astype(np.int64),
        known["followed"],
        known["judged"],
        {
            names[series.name]: series.values
            for series in run.signals
            if series.name in names and series.kind in ("number", "truth")
        },
        group,
    )
    return recorded, track


def _setting(compiled: CompiledSpec, index: int) -> Setting:
    spec, abstraction = compiled.spec, compiled.abstraction
    section = list(spec.properties.values())[index]
    return Setting(
        abstraction.vocabulary,
        compiled.automata[index],
        horizon_ticks(abstraction.clock, section.horizon),
        Smoothing(spec.learning.alpha),
        spec.learning.recording_end,
        abstraction.validity(spec),
    )


def _show(name: str, found: Improvement, output: Output) -> None:
    output.say(
        f"{name}: {len(found.choosing)} recordings choose, {len(found.judging)} judge; "
        f"{found.tried} conditions tried"
    )
    output.say(
        f"as it is: log loss {found.loss:.4f}, PR area {_number(found.area)}, {found.states} states"
    )
    if not found.proposals:
        output.say("no condition lowers the log loss of the recordings that choose")
        return
    columns = ("condition", ">chosen by", ">log loss", ">PR area", ">p", ">states", "")
    output.table(columns, list(map(_cells, found.proposals)))
    output.say(
        "each adds to those above it; gains with 95 % intervals on recordings that had no part in "
        "the choice"
    )


def _cells(one: Proposal) -> list[str]:
    return [
        one.cut.text,
        f"{-one.chosen_by:+.4f}",
        _signed(Estimate(-one.gain.value, -one.gain.high, -one.gain.low)),
        _signed(one.area),
        f"{one.p_value:.3g}",
        str(one.states),
        "holds" if one.holds else "may be chance",
    ]


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def _signed(estimate: Estimate) -> str:
    value, low, high = estimate
    return "-" if math.isnan(value) else f"{value:+.4f} ({low:+.4f} to {high:+.4f})"


def _tell_of_few(found: Improvement, output: Output) -> None:
    """Tell whether nothing could have been more than chance, whatever it gained."""
    least = len(found.proposals) / 2 ** len(found.judging)  # all signs alike, by Holm
    if least > LEVEL:
        enough = 2 * math.ceil(math.log2(len(found.proposals) / LEVEL))
        output.note(
            f"with {len(found.judging)} recordings that judge no p is below {min(least, 1):.2g}, "
            f"whatever is gained: it takes {enough} recordings, or parts of them as "
            "run.mcap::0..600"
        )


def _write(
    config: Path,
    target: Path | None,
    found: Improvement,
    output: Output,
) -> str:
    """Return what would change, and write it if a file is named."""
    before = after = text_of(config)
    for one in found.confirmed:
        after = _added(config, after, one)
    parsed = parse_spec(with_fragments(parse_document(after, config)))
    compile_spec(parsed, load_compiled(config).abstraction.fitted)
    change = difference(config, before, after)
    if not found.confirmed:
        output.say(f"nothing to write: no proposal is more than chance (p at most {LEVEL})")
        _tell_of_few(found, output)
    elif target is None:
        output.say(change)
        output.say("not written: -o FILE does it")
    else:
        write_output(target, moved(after, config, target))
        added = plural(len(found.confirmed), "predicate")
        output.say(f"{added} added -> {target}; learn again")
    return change


def _added(config: Path, text: str, one: Proposal) -> str:
    """Return the text of a monitor file with one more predicate."""
    gain = f"log loss {-one.gain.value:+.4f}, p = {one.p_value:.2g}"
    taken = parse_document(text, config).data
    name = _name(one.cut.text, {*taken.get("signals", {}), *taken.get("predicates", {})})
    return with_predicate(config, text, name, one.cut.text, gain)


def _name(condition: str, taken: set[str]) -> str:
    """Return a name for a condition: ``rate_gap_0_5_above_m1``."""
    words = condition.replace(" > ", "_above_").replace("-", "m")
    plain = re.sub(r"[\W_]+", "_", words).strip("_")
    name, number = plain, 2
    while name in taken:
        name, number = f"{plain}_{number}", number + 1
    return name


def _record(name: str, found: Improvement, change: str, target: Path | None) -> dict[str, Any]:
    return {
        "property": name,
        "choosing": found.choosing,
        "judging": found.judging,
        "log_loss": found.loss,
        "pr_area": found.area,
        "states": found.states,
        "tried": found.tried,
        "level": LEVEL,
        "proposals": [
            {
                "condition": one.cut.text,
                "chosen_by": one.chosen_by,
                "log_loss_gain": one.gain,
                "pr_area_gain": one.area,
                "p_value": one.p_value,
                "states": one.states,
                "holds": one.holds,
            }
            for one in found.proposals
        ],
        "change": change,
        "file": target if found.confirmed else None,
    }
