"""The policy of the gate (F3): what is shed, in which order, and when; all with numbers passed in."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.core.errors import ConfigError
from frontrow.core.settings_loader import load
from frontrow.limits.adaptive import DelayPressure
from frontrow.limits.adaptive.standing_delay import StandingDelay
from frontrow.settings.overload import OverloadSettings
from frontrow.web.guard.overload import CROWD, HIGHEST, LEAST_ANSWERS, OverloadGate, Rank, rank_of
from frontrow.web.guard.overload_watch import Watch
from frontrow.web.guard.route_metrics import Traffic

E = b"/v1/events/evt_01"
RANKS = [
    (b"POST", b"/v1/bookings/bkg_1/pay", Rank.PAY),
    (b"GET", b"/v1/bookings/bkg_1", Rank.PAY),
    (b"POST", b"/v1/webhooks/stripe", Rank.PAY),
    (b"POST", b"/v1/door/scan", Rank.PAY),
    (b"POST", E + b"/holds", Rank.HOLD),
    (b"POST", E + b"/room/claim", Rank.HOLD),
    (b"POST", b"/v1/offers/off_1/claim", Rank.HOLD),
    (b"PATCH", b"/v1/organiser/events/evt_01", Rank.HOLD),
    (b"GET", E + b"/seats.bin", Rank.MAP),
    (b"GET", E + b"/seats/poll?after=1-2", Rank.MAP),
    (b"GET", E + b"/map/abc.json", Rank.MAP),
    (b"POST", E + b"/room/join", Rank.JOIN),
    (b"GET", E + b"/room/status", Rank.JOIN),
    (b"GET", E, Rank.BROWSE),
    (b"GET", b"/v1/events?q=a", Rank.BROWSE),
    (b"GET", b"/anything/else", Rank.BROWSE),
    (b"POST", b"/checkout/bkg_1/pay", Rank.PAY),
    (b"GET", b"/bookings/bkg_1", Rank.PAY),
    (b"GET", b"/v1/bookings/bkg_1/tickets.pdf", Rank.MAP),
    (b"GET", b"/bookings/bkg_1/tickets.pdf", Rank.MAP),
    (b"POST", b"/events/evt_01/hold", Rank.HOLD),
    (b"GET", b"/events/evt_01/seats", Rank.MAP),
    (b"POST", b"/events/evt_01/enter", Rank.JOIN),
    (b"GET", b"/events/evt_01", Rank.BROWSE),
    (b"GET", b"/organiser/events/evt_01", Rank.HOLD),
    (b"GET", b"/healthz", Rank.EXEMPT),
    (b"GET", b"/metrics", Rank.EXEMPT),
]


@pytest.mark.parametrize(("method", "path", "rank"), RANKS)
def test_f3_every_request_has_a_class(method, path, rank):
    assert rank_of(method, path) is rank


def under(gate: OverloadGate, intervals: int, lag_s: float) -> None:
    for _ in range(intervals):
        gate.lag.saw(lag_s)
        gate.close_interval()


def shed_share(gate: OverloadGate, rank: Rank, asked: int = 1000) -> float:
    return sum(not gate.admits(rank) for _ in range(asked)) / asked


def test_f3_a_quiet_server_sheds_nobody_and_decides_nothing():
    gate = OverloadGate()
    under(gate, 100, 0.001)
    assert not gate.active
    assert [shed_share(gate, rank) for rank in Rank] == [0] * 6


def test_f3_a_late_loop_without_a_crowd_sheds_nobody():
    """Something else on the machine took the CPU: refusing the few who ask would help nobody."""
    gate = OverloadGate()
    for _ in range(50):
        gate.lag.saw(0.5)
        gate.close_interval(CROWD - 1)
    assert gate.pressure == 0
    gate.lag.saw(0.5)
    gate.close_interval(CROWD)
    assert gate.pressure > 0


def test_f3_a_burst_passes_because_one_moment_of_the_interval_was_free():
    gate = OverloadGate()
    for lag_s in (0.5, 0.4, 0.001, 0.3):
        gate.lag.saw(lag_s)
    gate.close_interval()
    assert gate.pressure == 0


def test_f3_a_standing_queue_sheds_from_the_bottom_class_by_class():
    gate = OverloadGate()
    seen = []
    for _ in range(8):
        under(gate, 1, 0.2)
        seen.append([round(shed_share(gate, rank), 2) for rank in Rank])
    assert seen[0] == [0.5, 0, 0, 0, 0, 0]
    assert seen[2] == [1, 0.5, 0, 0, 0, 0]
    assert seen[7] == [1, 1, 1, 1, 0, 0]
    for shares in seen:
        assert shares == sorted(shares, reverse=True), "a higher class was shed more than a lower one"


def test_f3_pressure_is_bounded_and_goes_when_the_queue_goes():
    gate = OverloadGate()
    under(gate, 1000, 10.0)
    assert gate.pressure == HIGHEST
    assert shed_share(gate, Rank.PAY) == 0
    under(gate, 41, 0.0)
    assert gate.pressure == 0
    assert not gate.active


def test_f3_answers_that_wait_too_long_for_a_store_are_overload_as_well():
    gate = OverloadGate()
    for _ in range(LEAST_ANSWERS - 1):
        gate.wait.saw(3.0)
    gate.close_interval()
    assert gate.pressure == 0, "a few slow answers on a quiet server are no queue"
    for _ in range(LEAST_ANSWERS):
        gate.wait.saw(3.0)
    gate.close_interval()
    assert gate.pressure > 0


def test_f3_requests_in_flight_are_bounded_lower_classes_first():
    gate = OverloadGate(OverloadSettings(max_in_flight=100))
    admitted = dict.fromkeys(Rank, 0)
    for rank in (Rank.BROWSE, Rank.JOIN, Rank.MAP, Rank.HOLD, Rank.PAY):
        while gate.admits(rank):
            gate.began()
            admitted[rank] += 1
    assert gate.in_flight == 100
    assert admitted == {
        Rank.BROWSE: 50,
        Rank.JOIN: 10,
        Rank.MAP: 10,
        Rank.HOLD: 15,
        Rank.PAY: 15,
        Rank.EXEMPT: 0,
    }
    assert gate.admits(Rank.EXEMPT)
    for _ in range(100):
        gate.ended()
    assert not gate.active
    assert gate.admits(Rank.BROWSE)


def test_f3_the_shortest_delay_of_an_interval_counts_and_an_empty_one_is_none():
    standing = StandingDelay()
    standing.saw(0.3)
    standing.saw(0.1)
    assert standing.close() == 0.1
    assert standing.close() == 0.0


def test_settings_out_of_range_are_named():
    with pytest.raises(ConfigError, match="max_in_flight"):
        load(OverloadSettings, "overload", tables={"overload": {"max_in_flight": 0}}, env={})


def test_o7_the_log_says_when_the_gate_begins_to_shed_and_when_it_is_over(caplog):
    gate = OverloadGate()
    watch = Watch(gate, Traffic(), lambda peer: False)
    with caplog.at_level(logging.INFO, "frontrow.limits"):
        watch.note_shedding(0.0)
        for now_s, pressure in enumerate((0.5, 1.5, 0, 0.1, 0, 0, 0, 0, 0)):
            gate.pressure = float(pressure)
            watch.note_shedding(float(now_s))
        assert [record.action for record in caplog.records] == ["limits_shedding"]
        watch.note_shedding(8.1)
    assert [record.action for record in caplog.records] == ["limits_shedding", "limits_shedding_over"]


@given(st.lists(st.floats(0, 0.5), max_size=50))
def test_o7_the_gate_s_pressure_is_that_of_the_library_s_controller(lags_s):
    gate, rule, pressure = OverloadGate(), DelayPressure(HIGHEST), 0.0
    for lag_s in lags_s:
        under(gate, 1, lag_s)
        pressure = rule.next(pressure, lag_s * 1000 / gate.settings.max_lag_ms)
        assert gate.pressure == pressure
