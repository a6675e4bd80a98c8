"""Record a session without a node: as the node does it, in a process with another environment.

``python session.py FOLDER OUTPUT [old]`` reads ``monitor.yaml``, ``model.json`` and ``bag.mcap`` of
the folder; with ``old``, the record lacks what older versions did not write.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1]))

from corridor import _risk_array

from forewarn.config.file import load_spec
from forewarn.logic.specification import compile_spec
from forewarn.messages.definitions import installed_message_type
from forewarn.models.file import load_model
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.record import RISK_TYPE, Names, RecordWriter
from forewarn.monitoring.session_events import Start
from forewarn.recordings.registry import open_recording


def main(folder: Path, output: Path, old: bool) -> None:
    compiled = compile_spec(load_spec(folder / "monitor.yaml"))
    model = load_model(folder / "model.json")
    risk_type = installed_message_type(RISK_TYPE)
    with open_recording(folder / "bag.mcap") as recording:
        types = {t: i.message_type for t, i in recording.topics.items() if i.message_type}
        watch = LiveSession(compiled, model, types)
        text = (folder / "monitor.yaml").read_text()
        writer = RecordWriter(output, Names.of("/monitor"), text, types)
        name = writer.model(model)
        tables = None if old else writer.tables(watch.monitor)
        grid = watch.clock
        tick = grid.tick_at_or_after(recording.start_ns)
        writer.start(Start("activated", tick, recording.start_ns), name, tables=tables)
        for sample in recording.read():
            while grid.time_ns(tick) < sample.time_ns:
                rows, due = watch.tick(tick).rows, grid.time_ns(tick)
                writer.risk(due, _risk_array(risk_type, rows, due), None if old else watch.decided)
                tick += 1
            watch.accept(sample.topic, sample.time_ns, sample.data)
            writer.message(sample.topic, sample.time_ns, bytes(sample.data))
        writer.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] == ["old"])
