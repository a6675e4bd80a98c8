"""Whom the gate trusts: one monitor that speaks alone, and in a way that can be understood."""

from __future__ import annotations

import math
from typing import Any

import pytest

from forewarn.monitoring.intervention import NOTHING, Intervention, strongest
from monitor_node.statements import Statement
from monitor_node.watchdog import MOST_SESSIONS, WEAKER, Watchdog

TIMEOUT, PERIOD = 0.5, 0.1
LIMIT: dict[str, Any] = {"action": "LIMIT_SPEED", "active": True, "speed_limit": 1.0, "id": 7}
STOP: dict[str, Any] = {"action": "COMFORTABLE_STOP", "active": True, "id": 8}
EMERGENCY: dict[str, Any] = {"action": "EMERGENCY_STOP", "active": True, "id": 9}
NONE: dict[str, Any] = {}


class Told:
    """A watchdog, and monitors that speak to it."""

    def __init__(self) -> None:
        self.watchdog = Watchdog(TIMEOUT, PERIOD, TIMEOUT)
        self.numbers: dict[str, int] = {}

    def statement(self, session: str = "a", **said: Any) -> Statement:
        number = self.numbers[session] = self.numbers.get(session, 0) + 1
        return Statement(session, said.pop("sequence", number), **said)

    def intervene(self, now: float, session: str = "a", **said: Any) -> None:
        self.watchdog.intervene(self.statement(session, **said), now)

    def judge(self, now: float, session: str = "a", **said: Any) -> None:
        self.watchdog.verdict(self.statement(session, **said), now)

    def tick(self, now: float, session: str = "a", **said: Any) -> None:
        """Say the same on both topics, as a monitor does at a tick at which it asks for it."""
        self.intervene(now, session, **said)
        self.judge(now, session, **said)

    def action(self, now: float) -> str:
        return self.watchdog.demand(now)[0].action

    def reason(self, now: float) -> str:
        return self.watchdog.demand(now)[1]


@pytest.fixture
def told() -> Told:
    found = Told()
    found.tick(10.0)
    return found


def test_before_the_first_verdict_the_robot_stands() -> None:
    watchdog = Told().watchdog
    demand, reason = watchdog.demand(0.0)
    assert demand.action == "COMFORTABLE_STOP"
    assert reason == "the monitor has not spoken yet"


@pytest.mark.parametrize("topic", ["intervene", "judge"])
def test_half_a_verdict_is_none(topic: str) -> None:
    told = Told()
    for k in range(3):
        getattr(told, topic)(10.0 + 0.1 * k)
        assert told.action(10.0 + 0.1 * k) == "COMFORTABLE_STOP"
    told.tick(10.3)
    assert told.watchdog.demand(10.3)[0] == NOTHING


def test_a_monitor_that_asks_for_nothing_lets_pass(told: Told) -> None:
    assert told.watchdog.demand(10.1)[0] == NOTHING
    told.tick(10.1, action="WARN", active=True)
    assert told.watchdog.demand(10.2)[0] == NOTHING
    told.tick(10.2, mode="observe", action="EMERGENCY_STOP")
    assert told.watchdog.demand(10.2)[0] == NOTHING


def test_what_it_asks_for_is_done(told: Told) -> None:
    for said in (LIMIT, STOP, EMERGENCY):
        told.tick(10.1, **said)
        wanted = Intervention(said["action"], said.get("speed_limit", math.nan), said["id"])
        assert repr(told.watchdog.demand(10.2)) == repr((wanted, "asked for by the monitor"))
    told.tick(10.3, id=9)
    assert told.watchdog.demand(10.3)[0] == NOTHING


def test_silence_stops_the_robot_until_it_speaks_again(told: Told) -> None:
    assert told.watchdog.demand(10.5)[0] == NOTHING
    assert (told.action(10.51), told.reason(10.51)) == ("COMFORTABLE_STOP", "the monitor is silent")
    told.judge(12.0)
    assert told.watchdog.demand(12.1)[0] == NOTHING


def test_a_verdict_counts_from_the_moment_that_it_is_about() -> None:
    """Fresh was who arrives: a monitor that lagged by seconds let the robot drive."""
    told = Told()
    told.watchdog = Watchdog(TIMEOUT, PERIOD, 0.2)
    lags = "the monitor lags: its verdicts are too old"
    ahead = "the monitor's verdicts are about a time to come: the clocks differ"
    for now, age, why in (
        (10.0, 0.0, "nothing is asked for"),
        (10.1, 0.19, "nothing is asked for"),
        (10.2, 0.21, lags),
        (10.3, 4.0, lags),
        (10.4, math.inf, lags),
        (10.5, -0.19, "nothing is asked for"),
        (10.6, -0.21, ahead),
        (10.7, 0.1, "nothing is asked for"),
    ):
        told.tick(now, age=age)
        assert told.reason(now) == why
        assert told.watchdog.age(now) == pytest.approx(age)
    assert told.reason(10.79) == "nothing is asked for"
    assert told.reason(10.81) == lags  # a period of silence after a verdict that was a period old
    assert told.reason(10.91) == "the monitor misses its deadline"
    told.tick(11.0, age=4.0, **STOP)  # a stop counts, however old it is
    assert told.watchdog.demand(11.0)[0].stops
    assert not told.watchdog.way_out(11.0)


def test_an_emergency_stop_stays_one_when_the_monitor_dies(told: Told) -> None:
    told.tick(10.1, **EMERGENCY)
    assert (told.action(11.0), told.reason(11.0)) == ("EMERGENCY_STOP", "the monitor is silent")


def test_lost_liveliness_counts_at_once(told: Told) -> None:
    told.watchdog.liveliness(0)
    assert told.reason(10.3) == "the monitor has lost its liveliness"
    told.watchdog.liveliness(1)
    assert told.watchdog.demand(10.3)[0] == NOTHING


def test_an_intervention_left_alone_stops_the_robot(told: Told) -> None:
    told.tick(10.1, **LIMIT)
    for k in range(10):
        told.judge(10.2 + 0.1 * k, **LIMIT)
    assert told.action(11.1) == "COMFORTABLE_STOP"
    assert told.reason(11.1) == "the monitor went silent during an intervention"
    told.intervene(11.1, **LIMIT)
    assert told.watchdog.demand(11.1) == (
        Intervention("LIMIT_SPEED", 1.0, 7),
        "asked for by the monitor",
    )


# Content


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"session": ""}, "without a session"),
        ({"session": "x" * 65}, "without a session"),
        ({"mode": ""}, "unknown mode"),
        ({"action": "", "active": True}, "unknown action"),
        ({"action": ""}, "unknown action"),
        ({"verdicts": 0}, "an empty verdict"),
        ({"active": True}, "contradicts itself"),
        ({**STOP, "mode": "observe"}, "contradicts itself"),
        ({**LIMIT, "speed_limit": math.nan}, "no number"),
        ({**LIMIT, "speed_limit": math.inf}, "no number"),
    ],
)
def test_what_is_not_understood_stops_until_a_full_verdict_comes(
    told: Told, said: dict[str, Any], why: str
) -> None:
    told.judge(10.1, **said)
    assert told.action(10.1) == "COMFORTABLE_STOP"
    assert why in told.reason(10.1)
    told.tick(10.4)
    assert told.action(10.4) == "COMFORTABLE_STOP", "too soon"
    told.tick(10.7)
    assert told.watchdog.demand(10.7)[0] == NOTHING


def test_whichever_topic_asks_first_is_obeyed_and_both_have_to_end_it(told: Told) -> None:
    """DDS keeps no order across topics."""
    told.judge(10.1, **STOP)
    assert told.action(10.1) == "COMFORTABLE_STOP"
    told.intervene(10.15, **STOP)
    told.judge(10.2, **STOP)
    told.intervene(10.3, id=8)
    assert told.action(10.3) == "COMFORTABLE_STOP"
    told.judge(10.35, id=8)
    assert told.action(10.35) == "NONE"


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (NONE, {"id": 1}),
        (NONE, {"action": "WARN", "active": True}),
        (NONE, {"mode": "observe"}),
        (LIMIT, {**LIMIT, "speed_limit": 2.0}),
    ],
)
def test_topics_that_differ_for_longer_than_a_period_stop(
    told: Told, first: dict[str, Any], then: dict[str, Any]
) -> None:
    """So does an intervention that was not published: the risk array tells of it all the same."""
    told.tick(10.0, **first)
    told.judge(10.1, **then)
    assert told.action(10.2) == first.get("action", "NONE")
    told.judge(10.2, **then)
    assert told.action(10.21) == "COMFORTABLE_STOP"
    assert told.reason(10.21) == "the monitor's risk and intervention contradict each other"
    told.intervene(10.3, **then)
    assert told.action(10.3) == then.get("action", "NONE").replace("WARN", "NONE")


def test_a_late_message_does_not_bring_back_what_was_withdrawn(told: Told) -> None:
    told.tick(10.1, **STOP)
    told.tick(10.2, **EMERGENCY)
    told.intervene(10.3, sequence=1)
    told.judge(10.3, sequence=2)
    assert told.action(10.3) == "EMERGENCY_STOP"
    assert told.watchdog.late == 2


# Who speaks


def test_only_the_session_that_asked_lifts_a_stop(told: Told) -> None:
    told.tick(10.1, **STOP)
    for k in range(20):
        now = 10.2 + 0.1 * k
        told.tick(now, **STOP)
        told.tick(now + 0.05, "b", mode="observe")  # a twin that only observes
        assert told.action(now + 0.05) == "COMFORTABLE_STOP"
        assert told.reason(now + 0.05) == "another monitor speaks as well"
    for k in range(8):
        told.tick(12.3 + 0.1 * k, **STOP)
    assert (told.action(13.0), told.reason(13.0)) == (
        "COMFORTABLE_STOP",
        "asked for by the monitor",
    )
    told.tick(13.1, id=8)
    assert told.action(13.1) == "NONE"


@pytest.mark.parametrize("asked", [NONE, STOP, EMERGENCY])
def test_a_successor_that_only_observes_lifts_nothing_until_somebody_acknowledges(
    told: Told, asked: dict[str, Any]
) -> None:
    """The acting monitor dies, and its twin observes: the robot drove on."""
    told.tick(10.1, **asked)
    for k in range(30):  # the twin speaks alone
        told.tick(11.0 + 0.1 * k, "b", mode="observe")
    assert told.action(13.91) == "COMFORTABLE_STOP"
    assert told.reason(13.91) == WEAKER
    assert told.watchdog.acknowledge(13.92)
    assert told.action(13.93) == "NONE"
    assert not told.watchdog.acknowledge(13.94), "there is nothing left"
    for k in range(20):  # one that acts needs nobody, and the next that observes does again
        told.tick(14.8 + 0.1 * k, "c")
    assert told.action(16.71) == "NONE"
    for k in range(20):
        told.tick(17.5 + 0.1 * k, "d", mode="observe")
    assert told.reason(19.41) == WEAKER
    for k in range(20):
        told.tick(20.2 + 0.1 * k, "e")
    assert told.action(22.11) == "NONE", "a monitor that acts is back"


def test_a_monitor_that_only_ever_observes_is_trusted() -> None:
    told = Told()
    told.tick(10.0, mode="observe")
    assert told.action(10.01) == "NONE"


def test_a_stop_of_any_monitor_counts(told: Told) -> None:
    told.tick(10.1, "b", **EMERGENCY)
    assert told.action(10.1) == "EMERGENCY_STOP"


def test_a_second_publisher_stops_even_if_it_never_speaks(told: Told) -> None:
    told.watchdog.publishers(2, 10.1)
    for k in range(8):
        told.judge(10.1 + 0.1 * k)
    assert told.action(10.6) == "NONE", "the graph may be behind"
    assert told.action(10.61) == "COMFORTABLE_STOP"
    assert told.reason(10.61) == "the monitor's topics have another publisher"
    told.watchdog.publishers(1, 10.7)
    assert told.action(10.7) == "NONE"
    told.watchdog.liveliness(2)
    assert "another publisher" in told.reason(10.7)


def test_a_restarted_monitor_is_adopted_when_the_old_one_is_dead_and_its_verdict_is_full(
    told: Told,
) -> None:
    told.tick(10.1, **EMERGENCY)
    told.watchdog.publishers(2, 10.2)
    told.tick(10.2, "b")
    assert told.action(10.2) == "EMERGENCY_STOP"
    told.judge(10.9, "b")
    assert told.action(10.9) == "EMERGENCY_STOP", "the old one is not known to be dead"
    told.watchdog.publishers(1, 11.0)
    told.watchdog.liveliness(1)
    assert told.action(11.0) == "EMERGENCY_STOP", "no verdict since"
    assert told.reason(11.0) == "no full verdict of one monitor has been heard"
    told.judge(11.0, "b")
    assert (told.action(11.0), told.watchdog.adopted) == ("NONE", "b")


def test_a_successor_waits_for_nothing_if_the_old_one_is_long_dead(told: Told) -> None:
    told.watchdog.liveliness(0)
    told.intervene(20.0, "b")
    assert told.action(20.0) == "COMFORTABLE_STOP"
    told.watchdog.liveliness(1)
    told.judge(20.0, "b")
    assert told.action(20.0) == "NONE"


def test_nobody_speaks_in_the_name_of_another() -> None:
    told = Told()
    told.tick(10.0, writer=b"right")
    told.tick(10.1, writer=b"right", **STOP)
    told.tick(10.2, writer=b"wrong", sequence=100)
    assert told.action(10.2) == "COMFORTABLE_STOP"
    assert told.reason(10.2) == "another node publishes in the name of the monitor"
    for k in range(8):
        told.tick(10.3 + 0.1 * k, writer=b"right", **STOP)
    assert told.reason(11.0) == "asked for by the monitor"
    told.tick(11.1, writer=b"right", id=8)
    assert told.action(11.1) == "NONE"


FORGED = 2**64 - 1


def test_a_forged_number_does_not_keep_the_robot_for_ever(told: Told) -> None:
    """Without identities only the graph tells of the forger, and only while it is there."""
    told.tick(10.1, sequence=FORGED)
    told.watchdog.publishers(2, 10.1)
    for k in range(8):
        told.tick(10.2 + 0.1 * k, **STOP)
        assert told.action(10.2 + 0.1 * k) == ("NONE" if k < 5 else "COMFORTABLE_STOP")
    assert told.reason(10.9) == "the monitor's topics have another publisher"
    told.watchdog.publishers(1, 11.0)
    told.tick(11.0, **STOP)
    assert told.action(11.0) == "COMFORTABLE_STOP"
    assert told.reason(11.0) == "the monitor's numbers fall: another node has published in its name"
    for k in range(1, 7):
        told.tick(11.0 + 0.1 * k, **STOP)
    assert told.reason(11.6) == "asked for by the monitor"
    told.tick(11.7, id=8)
    assert told.action(11.7) == "NONE"


def test_an_intervention_that_was_refused_is_asked_for_once_more() -> None:
    told = Told()
    told.tick(10.0, writer=b"wrong")
    told.tick(10.25, writer=b"right")
    for k in range(8):
        told.judge(10.75 + 0.25 * k, writer=b"right")
        asks = told.watchdog.misses_intervention(10.75 + 0.25 * k)
        assert asks == (k >= 3), "its first verdict alone is that at 10.75"
    told.intervene(12.75, sequence=1, writer=b"right")
    told.judge(12.75, writer=b"right")
    assert told.action(12.75) == "NONE"


def test_an_intervention_that_was_forged_is_asked_for_once_more(told: Told) -> None:
    """The true one is not repeated while nothing is asked for."""
    told.intervene(10.1, sequence=FORGED, id=3)
    for k in range(1, 6):
        told.judge(10.1 + 0.1 * k)
        assert not told.watchdog.misses_intervention(10.1 + 0.1 * k)
    assert "contradict" in told.reason(10.6)
    told.judge(10.7)
    assert told.watchdog.misses_intervention(10.7)
    told.intervene(10.7, sequence=1)  # as it is kept for late subscribers
    assert not told.watchdog.misses_intervention(10.7)
    for k in range(7):
        assert told.action(10.7 + 0.1 * k) == "COMFORTABLE_STOP"
        told.judge(10.7 + 0.1 * k)
    assert told.action(11.3) == "NONE"
    told.intervene(11.3, id=4)
    assert not told.watchdog.misses_intervention(12.0), "whom nobody hears is not asked"


@pytest.mark.parametrize(
    ("publishers", "now", "sequence"),
    [(1, 10.5, 3), (2, 20.0, 3), (1, 20.0, 50)],
    ids=["not long since", "not alone", "the same number"],
)
def test_what_comes_late_is_left_out(
    told: Told, publishers: int, now: float, sequence: int
) -> None:
    told.tick(10.0, sequence=50, **STOP)
    told.watchdog.publishers(publishers, now)
    told.tick(now, sequence=sequence, id=8)
    assert told.watchdog.late == 2
    assert "numbers fall" not in told.reason(now)


def test_who_was_there_before_the_monitor_does_not_keep_the_robot_for_ever() -> None:
    told = Told()
    told.tick(10.0, writer=b"wrong")
    for k in range(3):
        told.tick(10.1 + 0.1 * k, writer=b"right")
        assert told.action(10.1 + 0.1 * k) == "COMFORTABLE_STOP"
    told.tick(10.6, writer=b"right")
    told.tick(11.2, writer=b"right")
    assert told.action(11.2) == "NONE"


def test_many_names_take_no_more_room_than_few(told: Told) -> None:
    for k in range(10 * MOST_SESSIONS):
        told.tick(10.1 + 0.001 * k, f"s{k}", **STOP)
    assert len(told.watchdog._heard) == MOST_SESSIONS
    assert told.action(10.2) == "COMFORTABLE_STOP"


def test_of_two_limits_the_lower_counts() -> None:
    low, high = Intervention("LIMIT_SPEED", 1.0), Intervention("LIMIT_SPEED", 2.0)
    assert strongest(high, low) == strongest(low, high) == low
    assert strongest(low, Intervention("PULL_OVER")).action == "PULL_OVER"


def test_no_limit_here_and_no_limit_there_is_no_contradiction(told: Told) -> None:
    """Each message brings a NaN of its own, which no other equals."""
    for k in range(4):
        said: dict[str, Any] = {**STOP, "speed_limit": float("nan")}
        told.intervene(10.1 + 0.1 * k, **said)
        told.judge(10.1 + 0.1 * k, **{**said, "speed_limit": float("nan")})
    assert told.reason(10.45) == "asked for by the monitor"


def test_a_second_monitor_whose_numbers_stand_still_is_one_all_the_same(told: Told) -> None:
    """A recording that is played in a loop, say: the robot moved for a moment now and then."""
    told.judge(10.0, "b", sequence=5)
    for k in range(20):
        told.judge(10.1 + 0.1 * k, "b", sequence=5)
        told.tick(10.15 + 0.1 * k)
        assert told.reason(10.15 + 0.1 * k) == "another monitor speaks as well"


def test_a_second_message_of_the_same_number_withdraws_nothing(told: Told) -> None:
    told.tick(10.1, sequence=50, **STOP)
    told.tick(10.2, sequence=50, id=8)
    assert told.reason(10.2) == "asked for by the monitor"
    assert told.watchdog.late == 2


@pytest.mark.parametrize(
    ("publishers", "now"),
    [(1, 10.25), (1, 10.5), (2, 20.0)],
    ids=["it lives", "at the timeout", "it may live"],
)
def test_who_speaks_in_the_name_of_another_lifts_no_emergency_stop(
    publishers: int, now: float
) -> None:
    told = Told()
    told.tick(10.0, writer=b"right", **EMERGENCY)
    told.watchdog.publishers(publishers, 10.0)
    told.tick(now, writer=b"wrong", sequence=100)
    assert told.action(now) == "EMERGENCY_STOP"


def test_of_too_many_sessions_those_are_forgotten_that_spoke_longest_ago() -> None:
    told = Told()
    for k in range(MOST_SESSIONS):
        told.tick(10.0 + 0.01 * k, f"s{9 - k}", **(EMERGENCY if k == MOST_SESSIONS - 1 else NONE))
    told.tick(10.1, "z")
    assert told.action(10.1) == "EMERGENCY_STOP"


def test_while_two_start_none_is_adopted() -> None:
    told = Told()
    told.intervene(10.0, "b")
    told.tick(10.0)
    assert told.reason(10.0) == "another monitor speaks as well"
    told.judge(10.5)  # half a second ago is not long enough
    assert told.reason(10.75) == "no full verdict of one monitor has been heard"
    told.judge(10.75)
    assert told.action(10.75) == "NONE"


def test_while_two_live_none_is_adopted() -> None:
    told = Told()
    told.watchdog.liveliness(2)
    told.tick(10.0)
    told.watchdog.liveliness(1)
    assert told.reason(10.0) == "no full verdict of one monitor has been heard"


# At the very moment at which a time is over, it is not yet (all these numbers are exact)


def test_a_doubt_lasts_for_the_whole_timeout(told: Told) -> None:
    told.judge(10.0, verdicts=0)
    told.tick(10.5)
    assert told.reason(10.5) == "an empty verdict"
    assert told.reason(10.75) == "no full verdict of one monitor has been heard"


def test_a_monitor_is_asked_for_its_intervention_for_the_whole_timeout(told: Told) -> None:
    told.judge(10.0, id=1)
    told.judge(10.25, id=1)
    asks = [told.watchdog.misses_intervention(now) for now in (10.5, 10.75, 10.875)]
    assert asks == [False, True, False]


def test_a_monitor_counts_for_the_whole_timeout() -> None:
    told = Told()
    told.intervene(10.0)
    told.intervene(10.5, "b")
    assert told.reason(10.5) == "another monitor speaks as well"


def test_a_successor_is_afraid_of_the_old_one_for_the_whole_timeout(told: Told) -> None:
    told.tick(10.5, "b")
    told.judge(10.75, "b")
    assert told.reason(10.75) == "another monitor speaks as well"


def test_an_intervention_may_be_left_alone_for_the_whole_timeout(told: Told) -> None:
    told.tick(10.0, **LIMIT)
    told.judge(10.25, **LIMIT)
    assert told.reason(10.5) == "asked for by the monitor"


def test_topics_may_differ_for_the_whole_period() -> None:
    told = Told()
    told.watchdog = Watchdog(TIMEOUT, 0.125, TIMEOUT)
    told.tick(10.0)
    told.judge(10.0, id=1)
    assert told.action(10.125) == "NONE"
    assert told.action(10.25) == "COMFORTABLE_STOP"
