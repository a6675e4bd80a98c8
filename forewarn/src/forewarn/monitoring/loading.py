"""From files to a monitor: what commands, guard and Python programs begin with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from forewarn.config.file import MonitorSpec, load_spec
from forewarn.errors import ModelError
from forewarn.logic.specification import CompiledSpec, all_problems, compile_spec
from forewarn.models.counts import CountModel
from forewarn.models.file import load_model
from forewarn.monitoring.build import build_monitor, compile_for
from forewarn.monitoring.run_anomaly import open_detector

if TYPE_CHECKING:
    from forewarn.monitoring.step import Monitor


def load_compiled(path: Path, model: CountModel | None = None) -> CompiledSpec:
    """Load and compile a monitor file; raises ConfigError.

    Learned scores are those of the model; without one, of the model that the file names if there is
    one already.
    """
    with all_problems(path):
        spec = load_spec(path)
        named = spec.model_path if spec.learned_score and model is None else None
        if named is not None and named.exists():
            model = load_model(named)
        return compile_for(spec, model)


def load_bare(path: Path) -> CompiledSpec:
    """Load and compile a monitor file before anything is learned; raises ConfigError."""
    with all_problems(path):
        return compile_spec(load_spec(path))


def load_fitting(
    config: Path, given: Path | CountModel | None
) -> tuple[CompiledSpec, CountModel | None]:
    """Load a monitor file and its model; raises ForewarnError.

    `given`: the model or its file; None for the one that the monitor file names, if it does.
    """
    with all_problems(config):
        spec = load_spec(config)
        model = find_model(given, spec)
        return compile_for(spec, model), model


def find_model(given: Path | CountModel | None, spec: MonitorSpec) -> CountModel | None:
    """Return the model that was given, or that the monitor file names; None without any."""
    if isinstance(given, CountModel):
        return given
    path = given if given is not None else spec.model_path
    if path is None:
        return None
    if given is None and not path.exists():
        raise ModelError(
            f"the model file {path} does not exist",
            file=spec.file,
            key="model",
            accepted="a file made by `forewarn learn`; -m names another one",
        )
    return load_model(path)


def make_monitor(
    config: Path, model: Path | CountModel | None
) -> tuple[Monitor, CountModel | None]:
    """Load a monitor file, its model and what tells anomalies, and solve; raises ForewarnError."""
    compiled, counts = load_fitting(config, model)
    try:
        monitor = build_monitor(compiled, counts)
        return replace(monitor, detector=open_detector(compiled, counts)), counts
    except ModelError as error:
        path = compiled.spec.model_path if model is None else model
        raise error.located(file=None if isinstance(path, CountModel) else path) from error
