from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.errors import DecodeError, FieldError, RecordingError
from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Record
from forewarn.messages.definitions import message_type
from forewarn.messages.foreign import ForeignType
from forewarn.messages.schema import Primitive, Struct
from forewarn.signals.clock_kinds import Grid, Steps
from forewarn.signals.feed import Feed
from forewarn.signals.snapshots import Aged, Snapshot, StaleSignal, singly
from forewarn.signals.sources import SourceSignal, snapshot_of, stamp_reader

TICK = 100_000_000  # 10 Hz
FLOAT = message_type("demo_msgs/msg/Number", "float64 data\n", "ros2msg")
STAMPED = message_type(
    "demo_msgs/msg/Stamped",
    "builtin_interfaces/Time stamp\nfloat64 data\n"
    + "=" * 80
    + "\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n",
    "ros2msg",
)


class Fields(Record):
    """A record whose fields are the items of a mapping."""

    def __init__(self, values: dict[str, object]) -> None:
        self.values = values

    def field(self, name: str) -> object:
        return self.values[name]


def foreign(type_of_stamp: str) -> ForeignType:
    """Return a type like Apollo's: a header with the time in seconds, and eight bytes of data."""

    def opened(data: bytes) -> Fields:
        seconds, value = struct.unpack("<dd", data)
        stamp: object = seconds if type_of_stamp == "double" else "noon"
        return Fields({"header": Fields({"timestamp_sec": stamp}), "data": value})

    header = Struct("Header", {"timestamp_sec": Primitive(type_of_stamp)})
    layout = Struct("demo.Number", {"header": header, "data": Primitive("double")})
    return ForeignType("demo.Number", {}, layout, opened, "protobuf", b"")


SLOW = "sum([a * i for i, a in enumerate(data)])"
LIST = message_type("demo_msgs/msg/Numbers", "int32[] data\n", "ros2msg")


def number(value: float) -> bytes:
    return b"\x00\x01\x00\x00" + struct.pack("<d", value)


def stamped(time_ns: int, value: float) -> bytes:
    return b"\x00\x01\x00\x00" + struct.pack("<iId", *divmod(time_ns, 10**9), value)


def source(name: str, topic: str, timeout: int = 2, default: float | None = None) -> SourceSignal:
    return SourceSignal(name, topic, FLOAT.name, parse_expression("data"), timeout * TICK, default)


def feed(**options: object) -> Feed:
    return Feed(
        (source("x", "/x"), source("y", "/y", -1)),
        {"/x": FLOAT, "/y": FLOAT},
        Grid(10.0),
        **options,
    )


def test_a_sample_belongs_to_the_first_tick_at_or_after_its_arrival() -> None:
    inputs = feed()
    inputs.accept("/x", TICK, number(1.0))
    inputs.accept("/x", TICK + 1, number(2.0))
    assert inputs.snapshot(0).values == (None, None)
    assert inputs.snapshot(1).values == (1.0, None)
    assert inputs.snapshot(2).values == (2.0, None)


def test_only_the_newest_of_a_tick_is_decoded() -> None:
    inputs = feed()
    for i in range(50):
        inputs.accept("/x", TICK + i, number(float(i)))
    assert inputs.snapshot(2).values[0] == 49.0
    assert (inputs.counters.received, inputs.counters.decoded) == (50, 1)


def test_a_sample_with_timeout_zero_counts_at_its_own_tick_only() -> None:
    inputs = Feed((source("x", "/x", 0),), {"/x": FLOAT}, Grid(10.0))
    inputs.accept("/x", TICK, number(1.0))
    assert inputs.snapshot(1).values == (1.0,)
    assert inputs.snapshot(2).stale == (("x", TICK),)


def test_ages_are_told_of_all_signals() -> None:
    inputs = feed()
    inputs.accept("/x", TICK, number(1.0))
    assert inputs.ages(3) == [None, None]  # not taken yet
    assert inputs.snapshot(3).tick == 3
    assert inputs.ages(3) == [2 * TICK, None]
    inputs.accept("/y", 4 * TICK, number(1.0))
    inputs.snapshot(4)
    assert inputs.ages(6) == [5 * TICK, 2 * TICK]


def test_what_is_not_used_is_counted() -> None:
    inputs = feed()
    for time_ns in (0, 1, 2):
        inputs.accept("/else", time_ns, number(1.0))
        inputs.accept("", time_ns, {"else": 1.0})
        inputs.accept("/x", time_ns, number(1.0))
    assert inputs.counters.unexpected == 3
    inputs.snapshot(1)
    assert inputs.counters.unexpected == 5  # what came by name is one value a tick: 0 and 1
    for time_ns in (0, 1):
        inputs.accept("/x", time_ns, number(1.0))
    assert inputs.counters.out_of_order == 2
    assert inputs.counters.received == 11


def test_a_default_may_be_a_list_of_numbers() -> None:
    external = SourceSignal("at", "", None, None, 2 * TICK, [5.0, 5.0])
    inputs = Feed((external,), {}, Grid(10.0))
    assert inputs.snapshot(0).values == ([5.0, 5.0],)
    inputs.accept("", TICK, {"at": [1.0, 2.0]})
    assert inputs.snapshot(1).values == ([1.0, 2.0],)
    assert inputs.snapshot(9).values == (None,)


def test_what_an_old_value_means_is_a_choice_and_always_told() -> None:
    sources = (
        replace(source("x", "/x"), stale="hold"),
        replace(source("y", "/y"), stale="ignore"),
        source("z", "/z"),
    )
    inputs = Feed(sources, dict.fromkeys(["/x", "/y", "/z"], FLOAT), Grid(10.0))
    for topic in ("/x", "/y", "/z"):
        inputs.accept(topic, 0, number(1.0))
    old = inputs.snapshot(5)
    assert old.values == (1.0, None, None)
    assert old.stale == (("x", 5 * TICK), ("y", 5 * TICK), ("z", 5 * TICK))
    assert not old.suspended  # z is missing too
    inputs.accept("/z", 5 * TICK + 1, number(2.0))
    assert inputs.snapshot(6).suspended
    inputs.accept("/y", 6 * TICK + 1, number(math.nan))
    assert not inputs.snapshot(7).suspended  # a NaN that arrived is not old


def test_nan_is_unknown_and_infinity_is_a_value() -> None:
    inputs = feed()
    inputs.accept("/x", 0, number(math.nan))
    inputs.accept("/y", 0, number(math.inf))
    assert inputs.snapshot(0).values == (None, math.inf)


@pytest.mark.parametrize("payload", [b"", b"\x00\x01\x00\x00", number(1.0)[:-1], b"\xff" * 12])
def test_a_message_of_the_wrong_layout_is_unknown_and_reported(payload: bytes) -> None:
    inputs = feed()
    inputs.accept("/x", 0, number(1.0))
    for tick in (1, 2):
        inputs.accept("/x", tick * TICK, payload)
        snapshot = inputs.snapshot(tick)
        assert snapshot.values[0] is None
        assert [f.where for f in snapshot.failures] == ["/x"]
        assert f"{len(payload)} bytes" in snapshot.failures[0].reason
    assert inputs.counters.undecodable == 2
    for tick in (3, 4):
        inputs.accept("/x", tick * TICK, number(1.0))
        inputs.snapshot(tick)
    assert inputs.counters.decoded == 2


def test_a_value_that_cannot_be_had_is_named_with_the_reason() -> None:
    bad = SourceSignal("x", "/x", LIST.name, parse_expression("data[3]"), 2 * TICK, None)
    inputs = Feed((bad,), {"/x": LIST}, Grid(10.0))
    inputs.accept("/x", 0, b"\x00\x01\x00\x00" + struct.pack("<Id", 1, 2.0)[:4] + b"\0" * 4)
    ((where, reason),) = inputs.snapshot(0).failures
    assert where == "x"
    assert "3" in reason


def test_a_field_that_does_not_exist_is_an_error_at_load() -> None:
    wrong = SourceSignal("x", "/x", FLOAT.name, parse_expression("dat"), 2 * TICK, None)
    with pytest.raises(FieldError, match=r"signals\.x\.value.*dat.*data"):
        Feed((wrong,), {"/x": FLOAT}, Grid(10.0))


def test_external_signals_of_one_tick_join_and_may_be_old_already() -> None:
    sources = [SourceSignal(name, "", "", None, 5 * TICK, None) for name in "xyz"]
    inputs = Feed(sources, {}, Grid(10.0))
    inputs.accept("", 0, {"x": 0, "y": 0, "z": 0})
    inputs.accept("", 8 * TICK, {"x": 1, "nothing": 1, "y": 1})
    inputs.accept("", 8 * TICK, {"y": Aged(2, 3 * TICK), "z": 2})
    inputs.accept("", 9 * TICK, {"x": 3})
    assert inputs.snapshot(0).values == (0, 0, 0)
    assert inputs.snapshot(8).values == (1, 2, 2)
    assert inputs.ages(8) == [0, 3 * TICK, 0]
    assert inputs.snapshot(9).values == (3, 2, 2)
    inputs.accept("", 10 * TICK, {"x": 4})
    inputs.reset()
    assert inputs.snapshot(10).values == (None, None, None)


def test_stamps_decide_where_a_sample_counts_and_when_it_is_seen() -> None:
    signal = SourceSignal("x", "/x", STAMPED.name, parse_expression("data"), 5 * TICK, None)
    inputs = Feed((signal,), {"/x": STAMPED}, Grid(10.0), stamped=True, settle_ns=TICK // 2)
    inputs.accept("/x", TICK + TICK // 4, stamped(TICK, 1.0))  # in time for tick 1, which waits
    assert inputs.snapshot(1).values == (1.0,)
    inputs.accept("/x", 5 * TICK, stamped(2 * TICK, 2.0))  # far too late for tick 2
    assert inputs.snapshot(2).values == (1.0,)
    assert inputs.snapshot(5).values == (2.0,)
    assert inputs.snapshot(8).stale == (("x", 6 * TICK),)  # its age counts from its stamp
    inputs.accept("/x", 9 * TICK, stamped(TICK, 3.0))
    assert inputs.counters.out_of_order == 1


def test_a_late_sample_waits_until_it_could_have_been_known() -> None:
    signal = SourceSignal("x", "/x", STAMPED.name, parse_expression("data"), 9 * TICK, None)
    inputs = Feed((signal,), {"/x": STAMPED}, Grid(10.0), stamped=True)
    inputs.accept("/x", 2 * TICK, stamped(TICK, 1.0))
    inputs.accept("/x", 4 * TICK, stamped(2 * TICK, 2.0))
    assert inputs.snapshot(2).values == (1.0,)
    assert inputs.snapshot(3).values == (1.0,)
    assert inputs.snapshot(4).values == (2.0,)
    for tick in range(5, 50):  # all arrive at once: only the newest is kept
        inputs.accept("/x", 60 * TICK, stamped(tick * TICK, float(tick)))
    assert len(inputs._channels[0].pending) == 1


def test_a_stamp_ahead_of_its_arrival_is_told_and_keeps_nothing_out() -> None:
    signal = SourceSignal("x", "/x", STAMPED.name, parse_expression("data"), 5 * TICK, None)
    inputs = Feed((signal,), {"/x": STAMPED}, Grid(10.0), stamped=True, settle_ns=TICK // 2)
    inputs.accept("/x", 2 * TICK, stamped(2 * TICK - 1, 1.0))
    inputs.accept("/x", 3 * TICK, stamped(3 * TICK + 3600 * 10**9, 2.0))
    assert inputs.snapshot(2).values == (1.0,)
    wrong = inputs.snapshot(3)
    assert wrong.values == (None,)
    assert [failure.where for failure in wrong.failures] == ["/x"]
    assert "its stamp is 3600 s ahead of its arrival" in wrong.failures[0].reason
    inputs.accept("/x", 4 * TICK, stamped(4 * TICK - 1, 3.0))
    assert inputs.snapshot(4).values == (3.0,)
    assert (inputs.counters.out_of_order, inputs.counters.undecodable) == (0, 1)
    inputs.accept("/x", 5 * TICK, stamped(5 * TICK + 10**9, 4.0))  # clocks are not quite alike
    assert inputs.snapshot(14).values == (None,)
    assert inputs.snapshot(15).values == (4.0,)


@given(st.lists(st.sampled_from([0, 0, -TICK, 2 * 10**9, 3600 * 10**9]), max_size=30))
def test_whatever_stamps_came_before_one_that_is_right_counts_at_once(offsets: list[int]) -> None:
    signal = SourceSignal("x", "/x", STAMPED.name, parse_expression("data"), 5 * TICK, None)
    live, offline = (Feed((signal,), {"/x": STAMPED}, Grid(10.0), stamped=True) for _ in range(2))
    found = []
    for tick, offset in enumerate(offsets, 100):
        for feed in (live, offline):
            feed.accept("/x", tick * TICK, stamped(tick * TICK + offset, float(tick)))
        found.append(live.snapshot(tick))
        if offset == 0:
            assert found[-1].values == (float(tick),)
        assert live.ages(tick) == [None] or live.ages(tick)[0] >= 0
    ticks = range(100, 100 + len(offsets))
    assert [snapshot for block in offline.blocks([ticks]) for snapshot in block] == found


@pytest.mark.parametrize(
    ("stamp", "arrival", "told"),
    [
        (12.0, 1.78e9, "1.78e+09 s behind its arrivals: stamps are simulated time or time since"),
        (1.78e9, 12.0, "1.78e+09 s ahead of its arrivals: stamps are system time, arrivals are"),
        (0.0, 1.78e9, "its stamps are 0, as if the driver sets none"),
        (1.7e9, 1.7e9 + 3600, "3600 s behind its arrivals: another clock, or messages that were"),
        (1.7e9, 1.7e9 + 59, ""),
    ],
)
def test_stamps_of_another_clock_are_noted_once(stamp: float, arrival: float, told: str) -> None:
    signal = SourceSignal("x", "/x", STAMPED.name, parse_expression("data"), TICK, None)
    inputs = Feed((signal,), {"/x": STAMPED}, Grid(10.0), stamped=True)
    for later in (0, TICK):
        inputs.accept("/x", round(arrival * 1e9) + later, stamped(round(stamp * 1e9) + later, 1.0))
    assert len(inputs.notes) == bool(told)
    assert not told or (told in inputs.notes[0] and inputs.notes[0].startswith("/x: its stamps"))


def test_arrival_counts_unless_stamps_are_asked_for() -> None:
    signal = SourceSignal("x", "/x", STAMPED.name, parse_expression("data"), 9 * TICK, None)
    inputs = Feed((signal,), {"/x": STAMPED}, Grid(10.0))
    assert (inputs.notes, inputs.settle_ns) == ([], 0)
    inputs.accept("/x", 2 * TICK, stamped(TICK, 1.0))
    inputs.snapshot(2)
    assert inputs.ages(2) == [0]


def test_a_topic_without_a_stamp_counts_from_its_arrival_and_that_is_noted() -> None:
    inputs = feed(stamped=True)
    note = "demo_msgs/msg/Number has no stamp; its arrival counts"
    assert inputs.notes == [f"/x: {note}", f"/y: {note}"]
    assert feed().notes == []
    costly = SourceSignal(
        "z", "/z", LIST.name, parse_expression("[a for a in data if a]"), 1 * TICK, None
    )
    slow = SourceSignal("x", "/x", LIST.name, parse_expression(SLOW), 1 * TICK, None)
    told = Feed(
        (costly, slow, replace(slow, name="y", topic="/y")),
        dict.fromkeys(["/x", "/y", "/z"], LIST),
        Grid(10.0),
    ).notes
    assert [note.partition(":")[0] for note in told] == ["/x", "/y"]


def test_a_stamp_in_seconds_counts() -> None:
    mtype = foreign("double")
    signal = SourceSignal("x", "/x", mtype.name, parse_expression("data"), 9 * TICK, None)
    inputs = Feed((signal,), {"/x": mtype}, Grid(10.0), stamped=True)
    inputs.accept("/x", 5 * TICK, struct.pack("<dd", 0.1 + 1e-9, 1.0))
    inputs.snapshot(5)
    assert inputs.ages(5) == [5 * TICK - 100_000_001]
    for wrong in (math.nan, math.inf):
        inputs.accept("/x", 6 * TICK, struct.pack("<dd", wrong, 2.0))
        assert inputs.snapshot(6).values == (2.0,)  # unreadable: its arrival counts
        assert inputs.ages(6) == [0]
    read = stamp_reader(mtype)
    assert read is not None
    assert read(struct.pack("<dd", 1.5, 0.0)) == 1_500_000_000
    with pytest.raises(DecodeError, match=r"^header.timestamp_sec is nan \(accepted: seconds\)$"):
        read(struct.pack("<dd", math.nan, 0.0))
    with pytest.raises(DecodeError, match="is 'noon'"):
        stamp_reader(foreign("string"))(struct.pack("<dd", 0.0, 0.0))


def test_stamps_are_read_to_the_nanosecond() -> None:
    read = stamp_reader(STAMPED)
    assert read is not None
    assert read(stamped(1_700_000_000_123_456_789, 1.0)) == 1_700_000_000_123_456_789


def test_reset_forgets_everything() -> None:
    inputs = feed()
    inputs.accept("/x", 0, number(1.0))
    inputs.snapshot(0)
    inputs.accept("/x", TICK, number(1.0))
    inputs.reset()
    assert inputs.snapshot(1).values == (None, None)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["/x", "/y"])), max_size=40))
def test_every_snapshot_is_what_a_search_through_all_arrivals_finds(
    arrivals: list[tuple[int, str]],
) -> None:
    arrivals = sorted(arrivals, key=lambda a: a[0])
    inputs = feed()
    done = 0
    for tick in range(6):
        while done < len(arrivals) and arrivals[done][0] * TICK // 5 <= tick * TICK:
            step, topic = arrivals[done]
            inputs.accept(topic, step * TICK // 5, number(float(done)))
            done += 1
        expected = []
        for topic, timeout in (("/x", 2), ("/y", None)):
            past = [(i, s) for i, (s, t) in enumerate(arrivals) if t == topic and s <= 5 * tick]
            value = float(past[-1][0]) if past else None
            if past and timeout is not None and 5 * tick - past[-1][1] > 5 * timeout:
                value = None
            expected.append(value)
        assert inputs.snapshot(tick).values == tuple(expected)


def test_a_time_that_must_be_wrong_is_told_instead_of_going_through_years_of_ticks() -> None:
    day = 24 * 3600 * 10**9
    samples = [(0, "/x", number(1.0)), (TICK, "/x", number(2.0)), (31 * day, "/x", number(3.0))]
    ticks = feed().play(samples, 0, 31 * day)
    assert next(ticks) == 0
    with pytest.raises(
        RecordingError, match=r"for 31 days up to 2678400.000000000 s: .*gaps of up to 30 days"
    ):
        next(ticks)
    with pytest.raises(RecordingError, match="nothing was recorded for 50 days"):
        list(feed().play(samples[:2], 0, 50 * day))
    assert len(list(feed().play(samples[:2], 0, day // 24))) == 36_001


def test_a_recording_is_played_as_a_live_clock_would() -> None:
    inputs = feed(settle_ns=TICK // 2)
    samples = [(t * TICK // 4, "/x", number(float(t))) for t in range(0, 40, 3)]
    seen = []
    for tick in inputs.play(samples, 0, 10 * TICK):
        values = [t for t in range(0, 40, 3) if t <= 4 * tick]
        assert inputs.snapshot(tick).values[0] == float(values[-1])
        arrived = sum(t <= 4 * tick + 2 for t in range(0, 40, 3))
        assert inputs.counters.received == arrived
        seen.append(tick)
    assert seen == list(range(11))


PAYLOADS = st.sampled_from([number(1.0), number(-2.5), number(math.nan), b"", number(0.0)[:-1]])
ARRIVALS = st.lists(
    st.tuples(st.integers(0, 12 * TICK), st.sampled_from(["/x", "/y", "/l", ""]), PAYLOADS),
    max_size=40,
).map(lambda found: sorted(found, key=lambda one: one[0]))


def fed(arrivals: Sequence[tuple[int, str, bytes]]) -> tuple[Feed, Iterator[range]]:
    sources = (
        source("x", "/x"),
        source("y", "/y", -1),
        replace(source("t", "/y"), expression=parse_expression("data > 0")),
        SourceSignal("l", "/l", LIST.name, parse_expression("data[0]"), 2 * TICK, None),
        SourceSignal("n", "", "", None, 2 * TICK, None),
    )
    inputs = Feed(sources, {"/x": FLOAT, "/y": FLOAT, "/l": LIST}, Grid(10.0))
    samples = [(at, topic, data if topic else {"n": at}) for at, topic, data in arrivals]
    return inputs, inputs.stretches(samples, 0, 12 * TICK)


@given(ARRIVALS, st.sampled_from([1, 3, 256]))
def test_blocks_of_a_recording_are_the_snapshots_of_its_ticks(
    arrivals: list[tuple[int, str, bytes]], size: int
) -> None:
    one, stretches = fed(arrivals)
    live = [one.snapshot(tick) for stretch in stretches for tick in stretch]
    other, stretches = fed(arrivals)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("forewarn.signals.feed.BLOCK", size)
        found = [snapshot for block in other.blocks(stretches) for snapshot in block]
    at_once = [moment for snapshot in found for moment, _ in singly(snapshot, Grid(10.0))]
    assert at_once == live
    assert [list(map(type, s.values)) for s in at_once] == [list(map(type, s.values)) for s in live]
    assert other.counters == one.counters


def test_what_waits_for_its_tick_is_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forewarn.signals.feed.BLOCK", 2)
    signal = SourceSignal("x", "/x", STAMPED.name, parse_expression("data"), 2 * TICK, None)
    inputs = Feed((signal,), {"/x": STAMPED}, Grid(10.0), stamped=True)
    samples = [(0, "/x", stamped(0, 1.0)), (TICK, "/x", stamped(9 * TICK, 2.0))]
    blocks = inputs.blocks(inputs.stretches(samples, 0, 40 * TICK))
    found = [snapshot for block in blocks for snapshot in block]
    moments = [moment for one in found for moment, _ in singly(one, Grid(10.0))]
    known = {s.tick: s.values[0] for s in moments if s.values[0] is not None}
    assert known == {0: 1.0, 1: 1.0, 2: 1.0, 9: 2.0, 10: 2.0, 11: 2.0}
    assert [s.tick for s in moments] == [*range(41)]
    assert moments[-1].stale == (StaleSignal("x", 31 * TICK),)
    assert len(found) < 20


def test_a_block_ends_by_its_length_and_by_the_bytes_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = [(tick * TICK, "/x", number(float(tick))) for tick in range(600)]
    inputs = feed()
    assert [len(block) for block in inputs.blocks(inputs.stretches(samples, 0, 599 * TICK))] == [
        256, 256, 88
    ]  # fmt: skip
    monkeypatch.setattr("forewarn.signals.feed.BLOCK_BYTES", 100)
    inputs = feed()
    lengths = [len(block) for block in inputs.blocks(inputs.stretches(samples[:20], 0, 19 * TICK))]
    assert lengths == [9, 9, 2]


def test_an_error_comes_after_the_ticks_that_were_before_it() -> None:
    inputs, seen = feed(), []

    def damaged() -> Iterator[range]:
        yield range(3)
        raise RecordingError("it is damaged")

    with pytest.raises(RecordingError, match="damaged"):
        for block in inputs.blocks(damaged()):
            seen += [snapshot.tick for snapshot in block]
    assert seen == [0, 1, 2]


def test_memory_stays_flat_while_nobody_evaluates() -> None:
    inputs = feed()
    times = range(0, 10 * TICK, TICK // 1000)
    assert all(a < b for a, b in pairwise(times))
    for time_ns in times:
        inputs.accept("/x", time_ns, number(1.0))
    assert len(inputs._channels[0].pending) <= 11


@given(
    st.integers(1, 200),
    st.integers(1, 3 * 10**9),
    st.lists(st.integers(0, 4 * 10**9), min_size=1, max_size=20).map(sorted),
)
def test_a_value_is_unknown_once_it_is_older_than_its_timeout(
    rate: int, timeout_ns: int, arrivals: list[int]
) -> None:
    grid = Grid(float(rate))
    inputs = Feed((replace(source("x", "/x"), timeout_ns=timeout_ns),), {"/x": FLOAT}, grid)
    waiting = list(arrivals)
    for tick in range(0, 5 * rate, max(rate // 7, 1)):
        now = grid.time_ns(tick)
        while waiting and waiting[0] <= now:
            inputs.accept("/x", waiting.pop(0), number(1.0))
        ages = [now - moment for moment in arrivals if moment <= now]
        known = bool(ages) and min(ages) <= timeout_ns
        snapshot = inputs.snapshot(tick)
        assert (snapshot.values == (1.0,)) == known
        assert snapshot.stale == (() if known else (("x", min(ages) if ages else None),))


def test_a_proposal_is_looked_at_and_not_remembered() -> None:
    inputs = feed()
    inputs.accept("/x", 0, number(1.0))
    present = inputs.snapshot(0)
    assert present.stale == (("y", None),)
    proposed, given = inputs.proposing(present, "/y", number(5.0))
    assert (proposed.values, proposed.stale, given) == ((1.0, 5.0), (), [None, 5.0])
    proposed, given = inputs.proposing(present, "/x", number(math.nan))
    assert (proposed.values, proposed.stale, given) == ((None, None), present.stale, [None, None])
    assert inputs.proposing(present, "/z", b"") == (present, [None, None])
    with pytest.raises(DecodeError):
        inputs.proposing(present, "/y", b"")
    assert inputs.snapshot(0) == present


def test_a_reader_makes_something_else_of_what_arrives_and_of_nothing_nothing() -> None:
    readers = {"x": lambda value: value + 0.5}
    named = SourceSignal("x", "", "", None, 9 * TICK, None)
    by_name = Feed((named,), {}, Grid(10.0), readers=readers)
    inputs = feed(readers=readers)
    inputs.accept("/x", 0, number(1.0))
    inputs.accept("/y", 0, number(1.0))
    by_name.accept("", 0, {"x": 1.0})
    present = inputs.snapshot(0)
    assert (present.values, by_name.snapshot(0).values) == ((1.5, 1.0), (1.5,))
    assert inputs.proposing(present, "/x", number(2.0))[1] == [2.5, None]
    inputs.accept("/x", TICK, number(math.nan))
    by_name.accept("", TICK, {"x": None})
    assert (inputs.snapshot(1).values[0], by_name.snapshot(1).values) == (None, (None,))


def test_values_alone_are_a_snapshot_as_a_feed_of_steps_makes_it() -> None:
    def named(name: str, default: float | None = None) -> SourceSignal:
        return SourceSignal(name, "", "", None, -1, default)

    sources = (named("x"), named("y", 7.0), named("z"), named("text"))
    values = {"x": math.nan, "text": "a", "other": 1.0}
    inputs = Feed(sources, {}, Steps())
    inputs.accept("", 12_345, values)
    found = inputs.snapshot(0)
    assert (found.values, found.time_ns) == ((None, 7.0, None, "a"), 12_345)
    assert found.stale == (("z", None),)
    assert snapshot_of(sources, values, 0, 12_345) == found
    told = snapshot_of(sources, {**values, "y": 8.0}, 3, 5, "go")
    assert (told.tick, told.time_ns, told.action, told.values[1]) == (3, 5, "go", 8.0)


def test_a_message_of_the_topic_is_a_step_whatever_its_time() -> None:
    sources = (source("x", "/x"), source("y", "/y", -1))
    inputs = Feed(sources, {"/x": FLOAT, "/y": FLOAT}, Steps("/x"))
    inputs.accept("/y", 900, number(2.0))
    inputs.accept("/x", 800, number(1.0))
    inputs.accept("/x", 50, number(3.0))
    first, second = inputs.snapshot(0), inputs.snapshot(1)
    assert (first.values, first.time_ns) == ((1.0, 2.0), 800)
    assert (second.values, second.time_ns) == ((3.0, 2.0), 50)


NAMED = message_type("demo_msgs/msg/Named", "string name\nfloat64 data\n", "ros2msg")


def named(name: str, value: float) -> bytes:
    text = name.encode() + b"\0"
    body = struct.pack("<I", len(text)) + text
    return b"\x00\x01\x00\x00" + body + b"\0" * (-len(body) % 8) + struct.pack("<d", value)


def meant(signal: str, where: str | None, value: str = "data") -> SourceSignal:
    condition = None if where is None else parse_expression(where)
    return SourceSignal(
        signal, "/x", NAMED.name, parse_expression(value), 2 * TICK, None, where=condition
    )


def test_the_newest_message_for_which_the_condition_holds_is_the_one_that_counts() -> None:
    sources = [meant(n, f"name == '{n}'") for n in "ab"] + [meant("any", None)]
    inputs = Feed(sources, {"/x": NAMED}, Grid(10.0))
    for i, name in enumerate("abaabbc"):
        inputs.accept("/x", TICK + i, named(name, float(i)))
    assert inputs.snapshot(2).values == (3.0, 5.0, 6.0)
    assert (inputs.counters.received, inputs.counters.decoded) == (7, 3)
    inputs.accept("/x", 3 * TICK, named("b", 7.0))
    assert inputs.snapshot(3).values == (3.0, 7.0, 7.0)
    late = inputs.snapshot(5)
    assert late.values == (None, 7.0, 7.0)  # a is as old as its own newest message
    assert late.stale == (("a", 5 * TICK - TICK - 3),)


def test_a_message_that_no_signal_means_is_no_news() -> None:
    inputs = Feed([meant("a", "name == 'a'")], {"/x": NAMED}, Grid(10.0))
    inputs.accept("/x", 0, named("b", 1.0))
    assert inputs.snapshot(0) == Snapshot(0, (None,), (StaleSignal("a", None),), (), False, 0)
    unknown = Feed([meant("u", "data > 0")], {"/x": NAMED}, Grid(10.0))
    unknown.accept("/x", 0, named("b", math.nan))
    assert unknown.snapshot(0).stale == (("u", None),)  # what is unknown does not hold


def test_of_an_unreadable_message_nobody_knows_whether_it_is_meant_and_the_failure_is_told() -> (
    None
):
    inputs = Feed([meant("a", "name == 'a'")], {"/x": NAMED}, Grid(10.0))
    inputs.accept("/x", 0, named("a", 1.0))
    inputs.accept("/x", TICK, b"\x00\x01\x00\x00\x09")
    snapshot = inputs.snapshot(1)
    assert snapshot.values == (None,)
    assert [failure.where for failure in snapshot.failures] == ["/x"]


def test_a_goal_that_a_signal_does_not_mean_changes_nothing() -> None:
    inputs = Feed([meant("a", "name == 'a'"), meant("x", None)], {"/x": NAMED}, Grid(10.0))
    inputs.accept("/x", 0, named("a", 1.0))
    snapshot, given = inputs.proposing(inputs.snapshot(0), "/x", named("b", 2.0))
    assert (snapshot.values, given) == ((1.0, 2.0), [None, 2.0])


@pytest.mark.parametrize(
    ("where", "problem"),
    [("nam == 'a'", r"signals\.a\.where.*nam.*name, data"), ("name", r"signals\.a\.where.*text")],
)
def test_a_condition_that_messages_cannot_meet_is_an_error_at_load(
    where: str, problem: str
) -> None:
    with pytest.raises(FieldError, match=problem):
        Feed([meant("a", where)], {"/x": NAMED}, Grid(10.0))


@given(
    st.lists(st.tuples(st.integers(0, 20), st.sampled_from("ab"), st.integers(0, 9)), max_size=40)
)
def test_choosing_by_a_condition_is_the_same_as_a_topic_of_its_own(
    messages: list[tuple[int, str, int]],
) -> None:
    messages.sort(key=lambda message: message[0])
    one = Feed([meant(n, f"name == '{n}'") for n in "ab"], {"/x": NAMED}, Grid(10.0))
    apart = Feed(
        [replace(meant(n, None), topic=f"/{n}") for n in "ab"],
        {"/a": NAMED, "/b": NAMED},
        Grid(10.0),
    )
    for tenth, name, value in messages:
        one.accept("/x", tenth * TICK // 5, named(name, float(value)))
        apart.accept(f"/{name}", tenth * TICK // 5, named(name, float(value)))
    for tick in range(7):
        assert one.snapshot(tick) == apart.snapshot(tick)
