"""What the journal of a monitor keeps, and what it says of one that is damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from monitor_node.journal import Journal


def idle(tick: int) -> dict[str, Any]:
    return {"tick": tick, "pending": False, "violations": [0]}


def test_the_file_is_replaced_as_a_whole_and_only_when_something_changed(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, 60.0)
    assert journal.left is None
    journal.write(idle(1), [])
    first = path.stat()
    journal.write(idle(2), [])
    assert path.stat().st_mtime_ns == first.st_mtime_ns
    journal.write({**idle(3), "pending": True}, ["autoware"])
    journal.write({**idle(4), "pending": True}, ["autoware"])
    found = Journal(path, 60.0).left
    assert found is not None
    assert (found.memory["tick"], found.owing) == (4, ("autoware",))
    assert [one_path.name for one_path in tmp_path.iterdir()] == ["journal"]


def test_what_a_damaged_journal_has_lost_is_an_error_until_somebody_acknowledges_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal"
    Journal(path, 60.0).write(idle(1), ["autoware"])
    torn = path.read_bytes()[:-9]
    path.write_bytes(torn)
    journal = Journal(path, 60.0, ["autoware"])
    assert journal.left is None
    assert path.with_name("journal.damaged-1").read_bytes() == torn
    journal.write(idle(2), [])
    for life in (journal, Journal(path, 60.0)):  # also after another crash
        assert life.status().level == 2
        for told in ("obligations", "mutes", "autoware", "journal.damaged-1", "acknowledge"):
            assert told in life.status().message
    assert "obligations" in life.acknowledge()
    assert life.status().level == 0
    life.write(idle(2), [])
    assert Journal(path, 60.0).status().level == 0


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "absent" / "journal", 60.0)
    journal.write(idle(1), [])
    assert journal.status().level == 2
