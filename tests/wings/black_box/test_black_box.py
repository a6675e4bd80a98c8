"""The black box: what it keeps, and when it hands it over, against brute force."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forewarn.wings.black_box.box import BlackBox, Kept, LogEntry, Ring
from forewarn.wings.black_box.section import BlackBoxSpec

SECOND = 10**9


class Files:
    """Takes what is handed over; a file is a list of messages."""

    def __init__(self) -> None:
        self.files: list[list[Kept]] = []
        self.continued: list[bool] = []
        self.open = False
        self.over = False

    def begin(self, first: LogEntry, kept: Sequence[Kept], *, continued: bool) -> None:
        assert not self.open
        self.open, self.over = True, False
        self.files.append(list(kept))
        self.continued.append(continued)

    def write(self, kept: Kept) -> None:
        assert self.open
        self.files[-1].append(kept)

    def end(self) -> None:
        assert self.open
        self.open = False


def message(time_ns: int, *, kind: str = "", topic: str = "/a", size: int = 1) -> Kept:
    moment = LogEntry(time_ns, kind, "rule", 0.5, "it happened") if kind else None
    return Kept(time_ns, topic, "std_msgs/msg/String", b"", size, moment)


def spec(**changes: object) -> BlackBoxSpec:
    return BlackBoxSpec.model_validate({"folder": "x", "before": 5, "after": 2, **changes})


steps = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["", "", "", "act", "warn"])))


@given(steps)
@example([(0, ""), (4, "act"), (2, ""), (1, ""), (0, "act")])
def test_files_hold_what_lies_about_a_trigger(steps: list[tuple[int, str]]) -> None:
    sink, now, fed = Files(), 0, []
    box = BlackBox(spec(longest=1e6), sink)
    for seconds, kind in steps:
        now += seconds * SECOND
        fed.append(message(now, kind=kind))
        box.keep(fed[-1])
    triggers = [n for n, one in enumerate(fed) if one.moment and one.moment.kind == "act"]
    groups: list[list[int]] = []
    for n in triggers:
        if groups and fed[n].time_ns - fed[groups[-1][-1]].time_ns <= 2 * SECOND:
            groups[-1].append(n)
        else:
            groups.append([n])
    expected = []
    for group in groups:
        first, last = group[0], group[-1]
        begin, end = fed[first].time_ns - 5 * SECOND, fed[last].time_ns + 2 * SECOND
        expected.append(
            [
                one
                for n, one in enumerate(fed)
                if (n <= first and one.time_ns >= begin) or (n > first and one.time_ns <= end)
            ]
        )
    assert sink.files == expected
    assert not any(sink.continued)


@given(st.lists(st.integers(0, 3), max_size=60))
def test_a_burst_of_triggers_goes_on_in_other_files_and_loses_nothing(gaps: list[int]) -> None:
    sink, now, fed = Files(), 0, []
    box = BlackBox(spec(longest=4, after=3), sink)
    for seconds in gaps:
        now += seconds * SECOND
        fed.append(message(now, kind="act"))
        box.keep(fed[-1])
    found = [one for file in sink.files for one in file]
    assert {id(one) for one in found} == {id(one) for one in fed}
    for file, continued in zip(sink.files, sink.continued, strict=True):
        if continued:  # begins where the one before has ended
            assert file[-1].time_ns - file[0].time_ns <= 4 * SECOND
    if sink.files and not any(sink.continued):
        assert all(f[-1].time_ns - f[0].time_ns <= 9 * SECOND for f in sink.files)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40), st.booleans())))
def test_a_ring_keeps_to_its_bytes_and_its_seconds(fed: list[tuple[int, int, bool]]) -> None:
    ring, now = Ring(5 * SECOND, 100), 0
    plain: list[Kept] = []
    for seconds, size, latched in fed:
        now += seconds * SECOND
        one = message(now, size=size, topic="/map" if latched else "/a")
        plain.append(one)
        ring.add(one, latched=latched)
        assert 0 <= ring.size <= 100
        held = list(ring)
        assert ring.size == sum(kept.size for kept in held)
        assert [kept.time_ns for kept in held] == sorted(kept.time_ns for kept in held)
        assert all(kept.time_ns >= now - 5 * SECOND for kept in held if kept.topic == "/a")
    if not ring.squeezed:
        inside = [k for k in plain if k.time_ns >= now - 5 * SECOND and k.topic == "/a"]
        assert [kept for kept in ring if kept.topic == "/a"] == inside


def test_what_publishers_keep_for_late_subscribers_outlives_the_ring() -> None:
    ring = Ring(5 * SECOND, 1000)
    ring.add(message(0, topic="/map"), latched=True)
    for second in range(1, 100):
        ring.add(message(second * SECOND))
    held = list(ring)
    assert [kept.topic for kept in held] == ["/map", *["/a"] * 6]
    assert held[0].time_ns == held[1].time_ns == 94 * SECOND


def test_a_clock_that_jumps_ends_the_incident_and_empties_the_ring() -> None:
    sink = Files()
    box = BlackBox(spec(), sink)
    box.keep(message(SECOND, kind="act"))
    box.restart()
    assert not sink.open
    box.keep(message(0, kind="act"))
    assert [len(file) for file in sink.files] == [1, 1]


def test_a_trigger_after_the_end_of_its_file_has_another_one() -> None:
    sink = Files()
    box = BlackBox(spec(), sink)
    fed = [message(second * SECOND, kind=kind) for second, kind in enumerate(("act", "", "act"))]
    for one in fed[:2]:
        box.keep(one)
    sink.over = True  # the disk is full: what comes now is not kept
    box.keep(fed[2])
    box.keep(message(3 * SECOND, kind="warn"))
    assert [len(file) for file in sink.files] == [2, 4]
    assert sink.files[1][:3] == fed, "it begins with the ring"
    assert sink.continued == [False, False]


def test_only_what_the_file_names_is_a_trigger_and_a_request_always() -> None:
    sink = Files()
    box = BlackBox(spec(trigger=["violation"]), sink)
    box.keep(message(0, kind="act"))
    assert not sink.files
    box.keep(message(1, kind="request"))
    assert len(sink.files) == 1


@pytest.mark.parametrize(
    ("text", "size"),
    [("10 GB", 10**10), ("512MB", 512 * 10**6), ("1.5 gb", 1_500_000_000), (10**7, 10**7)],
)
def test_sizes_have_units(text: object, size: int) -> None:
    assert spec(quota=text).quota == size


@pytest.mark.parametrize("text", ["10", "ten GB", "-1 MB", "1 KB", True, math.inf])
def test_what_is_no_size_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="quota"):
        spec(quota=text)
