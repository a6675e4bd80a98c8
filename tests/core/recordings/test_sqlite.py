"""SQLite bags that are damaged, unfinished or oddly placed."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from forewarn.errors import RecordingError
from forewarn.recordings.registry import open_recording


@pytest.fixture
def database(bags, tmp_path) -> Path:
    """Return a bare .db3 file with 400 messages."""
    folder = bags.write(tmp_path / "bag", bags.drive(200), "sqlite3")
    return Path(shutil.move(folder / "bag.db3", tmp_path / "x.db3"))


def test_a_file_cut_anywhere_yields_some_messages_or_says_that_there_is_nothing(bags, database):
    whole = database.read_bytes()
    everything = bags.expected(bags.drive(200))
    lengths = []
    for length in range(100, len(whole), 4096 * 3 + 11):
        database.write_bytes(whole[:length])
        try:
            with open_recording(database) as recording:
                found = bags.read(recording)
                assert "the file is cut short or damaged" in recording.warnings[0]
                assert recording.count == len(found)
        except RecordingError as error:
            assert str(database) in str(error)
            assert "accepted: an SQLite bag of rosbag2" in str(error)
            found = []
        assert found == everything[: len(found)]
        lengths.append(len(found))
    assert lengths == sorted(lengths)
    assert lengths[-1] > 200


def test_the_messages_in_the_log_of_a_killed_recorder_are_read(bags, database, tmp_path):
    live = tmp_path / "live.db3"
    shutil.copy(database, live)
    connection = sqlite3.connect(live)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    connection.execute(
        "INSERT INTO messages(topic_id, timestamp, data) VALUES (1, 90000000000, ?)",
        (bags.cdr("/odom", 9.0),),
    )
    connection.commit()
    killed = tmp_path / "killed.db3"
    shutil.copy(live, killed)
    shutil.copy(tmp_path / "live.db3-wal", tmp_path / "killed.db3-wal")
    connection.close()
    before = killed.read_bytes()
    with open_recording(killed) as recording:
        samples = bags.read(recording)
        assert "write-ahead log" in recording.warnings[0]
    assert samples == [
        *bags.expected(bags.drive(200)),
        (90_000_000_000, "/odom", bags.cdr("/odom", 9.0)),
    ]
    assert killed.read_bytes() == before


def test_times_that_go_back_are_reported_with_their_size(bags, tmp_path):
    messages = bags.drive(10)
    path = bags.write(tmp_path / "bag", messages[10:] + messages[:10], "sqlite3")
    with open_recording(path) as recording:
        assert bags.read(recording) == bags.expected(messages)
        assert recording.warnings == [
            "log times go backwards 1 time, by up to 0.900000007 s; "
            "messages are read in log-time order"
        ]


@pytest.mark.parametrize("name", ["a#b.db3", "50%.db3", "what?.db3", "with space.db3"])
def test_marks_of_a_uri_in_the_path_do_not_matter(bags, database, tmp_path, name):
    path = shutil.move(database, tmp_path / name)
    with open_recording(path) as recording:
        assert bags.read(recording) == bags.expected(bags.drive(200))
        assert recording.warnings == []


def test_a_database_of_something_else_is_refused(tmp_path):
    path = tmp_path / "x.db3"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipes(name TEXT)")
    connection.close()
    with pytest.raises(RecordingError, match=r"x.db3: cannot be read as a bag \(no such table"):
        open_recording(path)


def test_a_bag_without_definitions_uses_the_installed_ones(bags, database):
    with sqlite3.connect(database) as connection:
        connection.execute("DROP TABLE message_definitions")
        connection.execute("DROP TABLE schema")
    connection.close()
    with open_recording(database) as recording:
        info = recording.topics["/odom"]
        assert info.error is None
        (warning,) = recording.warnings
        assert "holds no definition of nav_msgs/msg/Odometry" in warning
        assert bags.read(recording) == bags.expected(bags.drive(200))


def test_a_bag_without_definitions_that_is_damaged_as_well_is_called_so(bags, database):
    with sqlite3.connect(database) as connection:
        connection.execute("DROP TABLE message_definitions")
        connection.execute("UPDATE messages SET data = 'text' WHERE id = 7")
    connection.close()
    with open_recording(database) as recording:
        assert recording.count == 399
        assert "the file is cut short or damaged (some of its rows" in recording.warnings[0]


@pytest.mark.parametrize("encoding", ["unknown", "proto"])
def test_a_definition_in_an_unknown_language_spoils_its_own_topic_only(bags, database, encoding):
    with sqlite3.connect(database) as connection:
        connection.execute(
            "UPDATE message_definitions SET encoding = ? WHERE topic_type LIKE 'nav%'", (encoding,)
        )
    connection.close()
    with open_recording(database) as recording:
        assert repr(encoding) in recording.topics["/odom"].error
        assert recording.warnings == []
        assert recording.topics["/limit"].error is None
        assert bags.read(recording) == bags.expected(bags.drive(200))


def test_a_damaged_schema_is_refused_even_where_its_text_cannot_be_decoded(database):
    # SQLite quotes the damaged text in its error, and Python may fail to decode that.
    whole = database.read_bytes()
    assert b"NOT NULL" in whole
    database.write_bytes(whole.replace(b"NOT NULL", b"NOT \xceULL"))
    with pytest.raises(RecordingError, match="cannot be read as a bag") as caught:
        open_recording(database)
    assert str(database) in str(caught.value)


@pytest.mark.parametrize("column", ["name", "type", "serialization_format"])
def test_a_topic_that_lost_a_text_is_left_out(bags, database, column):
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(  # the original columns are NOT NULL, which damage ignores
            f"""CREATE TABLE damaged AS SELECT * FROM topics; DROP TABLE topics;
            ALTER TABLE damaged RENAME TO topics;
            UPDATE topics SET {column} = NULL WHERE name = '/odom';"""
        )
    with open_recording(database) as recording:
        assert list(recording.topics) == ["/limit"]
        assert recording.warnings
        everything = bags.expected(bags.drive(200))
        assert bags.read(recording) == [item for item in everything if item[1] == "/limit"]
