"""Scans as values: what a gate's clock may say, their order, and which ticket was let in twice."""

from frontrow.boxoffice.gate.model.scans import (
    MAX_CLOCK_AHEAD_US,
    DuplicateScan,
    Scan,
    Way,
    correct_clock,
    find_duplicates,
    later_than,
    order_scans,
)
from frontrow.core.clock import US_PER_S

NOW = 1_750_000_000 * US_PER_S


def test_the_clock_of_a_gate_is_believed_up_to_five_minutes_ahead() -> None:
    assert MAX_CLOCK_AHEAD_US == 300 * US_PER_S
    latest = NOW + MAX_CLOCK_AHEAD_US
    for at_us in (0, NOW, latest):
        assert correct_clock(at_us, NOW) == at_us
    assert correct_clock(latest + 1, NOW) == latest


def scan(name: str, at_us: int, way: Way = Way.IN, ticket: str = "tkt_1") -> Scan:
    return Scan(name, "evt_1", ticket, "north", at_us, way=way)


def test_the_scans_of_a_ticket_are_in_the_order_of_their_time_and_each_counts_once() -> None:
    one, two, three = scan("scn_b", 5), scan("scn_a", 5), scan("scn_c", 1)
    assert order_scans([one, two, three, one]) == [three, two, one]


def test_a_new_scan_is_later_than_all_before_it() -> None:
    assert (later_than([], 7), later_than([], 0)) == (7, 0)
    assert later_than([scan("scn_a", 5_000), scan("scn_b", 1_000)], 7) == 6_000
    assert later_than([scan("scn_a", 5_000)], 9_000) == 9_000


def test_a_ticket_that_was_let_in_twice_is_a_duplicate_unless_it_left_between() -> None:
    first, out, again = scan("scn_a", 1), scan("scn_b", 2, Way.OUT), scan("scn_c", 3)
    assert find_duplicates([first, out, again]) == []
    assert find_duplicates([first, first]) == [], "one scan, reported twice"
    third = scan("scn_d", 4)
    assert find_duplicates([third, out, again, first]) == [DuplicateScan("tkt_1", (first, again, third))]
    other = [scan("scn_e", 9, ticket="tkt_0"), scan("scn_f", 8, ticket="tkt_0")]
    assert find_duplicates([first, again, *other]) == [
        DuplicateScan("tkt_0", (other[1], other[0])),
        DuplicateScan("tkt_1", (first, again)),
    ]
    assert find_duplicates([scan("scn_g", 1, Way.OUT), scan("scn_h", 2, Way.OUT)]) == []
