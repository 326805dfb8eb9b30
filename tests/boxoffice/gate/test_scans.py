"""Scans as values: what a gate's clock may say."""

from frontrow.boxoffice.gate.model.scans import MAX_CLOCK_AHEAD_US, correct_clock
from frontrow.core.clock import US_PER_S

NOW = 1_750_000_000 * US_PER_S


def test_the_clock_of_a_gate_is_believed_up_to_five_minutes_ahead() -> None:
    assert MAX_CLOCK_AHEAD_US == 300 * US_PER_S
    latest = NOW + MAX_CLOCK_AHEAD_US
    for at_us in (0, NOW, latest):
        assert correct_clock(at_us, NOW) == at_us
    assert correct_clock(latest + 1, NOW) == latest
