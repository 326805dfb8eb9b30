"""Which of several limits an answer tells: the one that refused the request, even if another is just as used up."""

import contextlib

from frontrow.limits import Decision
from frontrow.waitingroom.entrance.entrance_limits import EntranceLimits, EntranceRules, TooManyRequests, counted

RULES = EntranceRules(per_person="1/minute", per_ip="2/second", per_device="20/minute")


def ask(limits: EntranceLimits) -> bool:
    """Whether the limits let a request of one person at one address through."""
    limits.told = None  # as the fast lane does before each request
    with contextlib.suppress(TooManyRequests):
        limits.count_ip("192.0.2.1")
        limits.count_person("ada")
        return True
    return False


def test_a_refusal_tells_the_limit_that_refused() -> None:
    limits = EntranceLimits(rules=RULES, clock=lambda: 1_000_000)
    assert ask(limits)
    assert not ask(limits), "the address has just nothing left; the person is refused for a minute"
    told = limits.told
    assert told is not None
    assert (told.rule, told.allowed) == ("person", False)


def test_the_framework_tells_the_same() -> None:
    limits = EntranceLimits(rules=RULES, clock=lambda: 1_000_000)
    noted: list[Decision] = []
    mark = counted.set(noted)
    try:
        assert ask(limits)
        noted.clear()
        assert not ask(limits)
    finally:
        counted.reset(mark)
    assert [(one.rule, one.remaining) for one in noted] == [("address", 0), ("person", 0)]
    fields = dict(limits.header_fields(noted))
    assert fields[b"ratelimit"].startswith(b'"person";r=0;t=')
    assert fields[b"x-ratelimit-limit"] == b"1"
