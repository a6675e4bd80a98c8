"""What the log says while something lasts, and how often."""

from __future__ import annotations

from monitor_node.log_throttle import (
    Reminder,
    Reminders,
    Throttle,
    without_clock,
    without_publishers,
)


def said(patience: float, lines: dict[float, str]) -> list[tuple[float, str]]:
    """Return when which line is logged, if each is so from its time on, asked every second."""
    found: list[tuple[float, str]] = []
    now, line = 0.0, ""
    reminder = Reminder(lambda told: found.append((now, told)), patience)
    for second in range(2000):
        now = float(second)
        line = lines.get(now, line)
        reminder.take(line, now)
    return found


def test_what_lasts_is_said_ever_more_rarely() -> None:
    times = [time for time, _ in said(5.0, {3.0: "no clock"})]
    assert times == [8.0, 18.0, 38.0, 78.0, 158.0, 318.0, 638.0, 1238.0, 1838.0]


def test_what_is_over_before_long_is_never_said() -> None:
    assert said(5.0, {3.0: "no clock", 7.0: ""}) == []


def test_what_is_new_is_said_soon_and_what_comes_back_after_its_patience() -> None:
    lines = {0.0: "a, b", 100.0: "a, b, c", 101.0: "", 200.0: "c", 201.0: ""}
    assert said(0.0, lines)[-2:] == [(70.0, "a, b"), (200.0, "c")]
    assert (110.0, "a, b, c") in said(0.0, {0.0: "a, b", 100.0: "a, b, c", 150.0: ""})


def test_the_same_line_is_not_said_twice_in_five_seconds_and_the_past_is_forgotten() -> None:
    found: list[str] = []
    throttle = Throttle(found.append)
    for now in range(11):
        throttle.take("late", float(now))
    assert found == ["late"] * 3
    for number in range(3000):
        throttle.take(f"{number} late", 11.0)
    assert len(found) == 3003
    assert len(throttle._logged_at) <= 1000


def test_lines_that_differ_in_decimals_are_the_same() -> None:
    found: list[str] = []
    throttle = Throttle(found.append)
    for number in range(100):
        throttle.take(f"the clock jumped back by {number / 8:.3f} s", number / 20)
        throttle.take(f"the clock jumped ahead by {number / 8:.3f} s", number / 20)
    assert found == ["the clock jumped back by 0.000 s", "the clock jumped ahead by 0.000 s"]


def test_all_that_a_monitor_lacks_is_told_and_what_was_told_before_is_not() -> None:
    found: list[str] = []
    reminders = Reminders(found.append, ["known"])
    for now in range(7):
        reminders.take(float(now), ["/a"], [], ["known", "/b: its stamps are 0"], started=False)
    assert [line.partition(":")[0] for line in found] == [
        "/b", "no node publishes /a", without_clock([], started=False).partition(":")[0],
    ]  # fmt: skip


def test_a_clock_that_does_not_come() -> None:
    assert without_clock(None, started=False) == ""
    assert without_clock(["/gazebo"], started=True) == ""
    assert "use_sim_time is true, and no node publishes /clock" in without_clock([], started=False)
    assert "no node publishes /clock" in without_clock([], started=True)
    assert "which /gazebo publishes" in without_clock(["/gazebo"], started=False)


def test_topics_without_a_publisher_are_one_line() -> None:
    assert without_publishers([]) == ""
    assert without_publishers(["/a", "/b"]).startswith("no node publishes /a, /b: ")
