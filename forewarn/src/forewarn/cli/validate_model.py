"""Check that a model fits a monitor file, and that its risks can be computed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import TimeoutError
from pathlib import Path

from forewarn.assessment.sufficiency import horizons
from forewarn.checking.numeric import risk_table
from forewarn.cli.findings import Finding
from forewarn.errors import InputError
from forewarn.logic.automaton import horizon_notes
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import CountModel
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.memory_bound import growing_parts, memory_bound
from forewarn.monitoring.model_fit import check_model
from forewarn.monitoring.run_anomaly import open_detector
from forewarn.threads import in_background

# Seconds after which one learns that a file takes long, and need not wait how long.
SOLVING = 10.0


def against_model(
    compiled: CompiledSpec, path: Path, model: CountModel | InputError
) -> Iterator[Finding]:
    """Yield what keeps a model from serving a monitor file, or would surprise.

    Where the model cannot be read, `model` is the error that says why.
    """
    spec = compiled.spec
    # Bounds by sampling say nothing more about whether the model fits, and take most of the time.
    solver = risk_table if spec.bounds.kind in ("credible", "clustered") else None
    if isinstance(model, InputError):
        yield Finding("error", str(model.located(file=path)))
        return
    try:
        check_model(compiled, model)
        open_detector(compiled, model)
        solving = in_background("solving", lambda: build_monitor(compiled, model, solver))
        monitor = solving.result(SOLVING)
    except InputError as error:
        yield Finding("error", str(error.located(file=path)))
        return
    except TimeoutError:
        longest = max((s.horizon for s in spec.properties.values()), default=0.0)
        yield Finding(
            "warning",
            f"{path}: it fits, but the risk of {model.size} states and a horizon of up to "
            f"{compiled.abstraction.clock.say(longest)} is not computed within {SOLVING:g} s: "
            "`replay` and the node would have to wait for it (accepted: a shorter horizon, or "
            "fewer predicates)",
        )
        return
    known = {
        f"{name}: {note}"
        for name, automaton, horizon in zip(
            spec.properties, compiled.automata, horizons(compiled), strict=True
        )
        for note in horizon_notes(automaton, horizon)
    }
    for note in monitor.notes:
        if note not in known:
            yield Finding("warning", f"{path}: {note}")
    for remark in monitor.remarks:
        yield Finding("note", f"{path}: {remark}")
    parts = growing_parts(spec, compiled.abstraction, monitor)
    yield Finding("note", f"{spec.file}: {memory_bound(parts)}")
