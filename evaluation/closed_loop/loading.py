"""The monitor of the studies."""

from __future__ import annotations

from pathlib import Path

from forewarn.config import MonitorSpec, load_spec
from forewarn.logic.specification import CompiledSpec
from forewarn.messages import MessageType, installed_message_type
from forewarn.models import CountModel, load_model
from forewarn.monitoring.build import build_monitor, compile_spec
from forewarn.monitoring.live_session import Watch
from forewarn.monitoring.session import Session
from forewarn.monitoring.step import Monitor

CONFIG = Path(__file__).resolve().parents[2] / "config" / "demo.yaml"


def load_monitor(
    config: Path = CONFIG, *, with_model: bool = True
) -> tuple[Monitor, CountModel | None]:
    """Return the monitor that a file describes, with the model that the file names."""
    spec = load_spec(config)
    model = load_model(spec.model_path) if with_model and spec.model_path else None
    return build_monitor(compile_spec(spec), model), model


def open_session(monitor: Monitor) -> Session:
    """Return a session that reads the messages of the town."""
    return Session(monitor, installed_types(monitor.spec))


def open_watch(compiled: CompiledSpec, model: CountModel | None) -> Watch:
    """Return a watch that reads the topics of a monitor file."""
    return Watch(compiled, model, installed_types(compiled.spec))


def installed_types(spec: MonitorSpec) -> dict[str, MessageType]:
    """Return the types of a monitor file's topics, as they are installed here."""
    return {topic: installed_message_type(kind) for topic, kind in spec.topics.items()}
