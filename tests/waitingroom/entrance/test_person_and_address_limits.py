"""Which of several limits a response names: the one that refused the request, even if another is just as used up."""

import contextlib

import pytest

from frontrow.limits import Decision
from frontrow.waitingroom.entrance.person_and_address_limits import (
    EntranceLimits,
    EntranceRules,
    TooManyRequests,
    counted,
)

RULES = EntranceRules(per_person="1/minute", per_ip="2/second", per_device="20/minute")


def ask(limits: EntranceLimits) -> list[Decision]:
    """The decisions about one request of one person at one address."""
    decisions: list[Decision] = []
    mark = counted.set(decisions)
    try:
        with contextlib.suppress(TooManyRequests):
            limits.count_ip("192.0.2.1")
            limits.count_person("ada")
    finally:
        counted.reset(mark)
    return decisions


def test_a_refusal_names_the_limit_that_refused() -> None:
    limits = EntranceLimits(rules=RULES, clock=lambda: 1_000_000)
    assert [one.allowed for one in ask(limits)] == [True, True]
    refused = ask(limits)
    assert [(one.rule, one.allowed, one.remaining) for one in refused] == [("address", True, 0), ("person", False, 0)]
    fields = dict(limits.headers.fields(refused))
    assert fields[b"ratelimit"].startswith(b'"person";r=0;t=')
    assert fields[b"x-ratelimit-limit"] == b"1"
    assert limits.headers.lines(refused).startswith(b'ratelimit: "person";r=0;t=')
    assert limits.refused == 1


def test_an_allowed_request_names_the_limit_with_the_least_left() -> None:
    limits = EntranceLimits(rules=RULES, clock=lambda: 1_000_000)
    fields = dict(limits.headers.fields(ask(limits)))
    assert fields[b"ratelimit"].startswith(b'"person";r=0;'), (
        "one request per minute is used up, one per second is left"
    )


def test_without_headers_to_write_requests_are_counted_all_the_same() -> None:
    limits = EntranceLimits(rules=RULES, clock=lambda: 1_000_000)
    limits.count_ip("192.0.2.1")
    limits.count_ip("192.0.2.1")
    with pytest.raises(TooManyRequests):
        limits.count_ip("192.0.2.1")


def test_a_request_that_was_refused_for_another_reason_counts_and_is_never_refused_twice() -> None:
    limits = EntranceLimits(rules=RULES, clock=lambda: 1_000_000)
    decisions = [limits.count_refused("192.0.2.1") for _ in range(3)]
    assert [one.allowed for one in decisions] == [True, True, False]
    assert limits.refused == 1


@pytest.mark.parametrize("per_ip", ["1/hour", "50/second", "1000000000/second", "2147483647/day"])
def test_any_limit_of_an_address_can_be_multiplied_for_its_crowd(per_ip: str) -> None:
    limits = EntranceLimits(rules=EntranceRules(per_ip=per_ip))
    limits.count_visit("concert.0.1.1", "192.0.2.1")
    limits.count_ip("192.0.2.1")
